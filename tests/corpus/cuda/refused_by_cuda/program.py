"""Native code that only the CUDA compiler refuses: the program runs on the CPU, and on a CUDA device it would not.

Expect: build-error redundant module=self at=launch
Run: together
"""

import warp as wp


@wp.func_native("""
#ifdef __CUDA_ARCH__
this is not C++;
#endif
""")
def refused(): ...


@wp.kernel
def first(x: wp.array(dtype=float)):
    refused()
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")  # here: launch
