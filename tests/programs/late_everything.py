"""Everything that changes a module after its first launch, in a program that keeps Warp quiet.

A second kernel, an option and two instances of a generic kernel arrive late: each builds the whole module again.

Truth: builds=5 rebuilds=4 launches=5
"""

from typing import Any

import warp as wp

if hasattr(wp, "LOG_WARNING"):
    wp.config.log_level = wp.LOG_WARNING
else:
    wp.config.quiet = True  # Warp before 1.14 has no log level


@wp.kernel
def first(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def twice(x: wp.array(dtype=Any)):
    i = wp.tid()
    x[i] = x[i] + x[i]


def add_kernel():
    @wp.kernel
    def second(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * 3.0

    return second


def main():
    x = wp.zeros(4, dtype=float, device="cpu")
    y = wp.full(4, 7, dtype=int, device="cpu")
    wp.launch(first, dim=4, inputs=[x], device="cpu")  # site: first-build
    second = add_kernel()
    wp.launch(second, dim=4, inputs=[x], device="cpu")  # site: late-kernel
    wp.set_module_options({"fast_math": True})
    wp.launch(first, dim=4, inputs=[x], device="cpu")  # site: late-option
    wp.launch(twice, dim=4, inputs=[x], device="cpu")  # site: late-float
    wp.launch(twice, dim=4, inputs=[y], device="cpu")  # site: late-int
    print(x.numpy().tolist(), y.numpy().tolist())


main()
