"""The program clears the kernel cache whenever it is imported.

Expect: CS-2 redundant module=- at=clear
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp

wp.clear_kernel_cache()  # here: clear


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
