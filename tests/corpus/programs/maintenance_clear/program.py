"""A documented maintenance option clears the cache: it must keep doing so, and is only reported.

Arguments: --rebuild-kernels
Expect: CS-2 hint module=- at=clear
Expect (>=1.13): CS-12 hint module=- at=-
"""

import argparse

import warp as wp

parser = argparse.ArgumentParser()
parser.add_argument("--rebuild-kernels", action="store_true", help="throw away the compiled kernels first")
if parser.parse_args().rebuild_kernels:
    wp.clear_kernel_cache()  # here: clear


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
