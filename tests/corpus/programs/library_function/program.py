"""A function of a library, another module, is replaced after the kernel that calls it was launched.

Expect: CS-1 redundant module=self at=library_function_laws.py:function
Run: together
"""

import library_function_laws as laws
import warp as wp


@wp.kernel
def apply(x: wp.array(dtype=float)):
    x[wp.tid()] = laws.law(x[wp.tid()])


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(apply, dim=4, inputs=[x], device="cpu")
laws.choose_cubic()
wp.get_module(__name__).mark_modified()
wp.launch(apply, dim=4, inputs=[x], device="cpu")
