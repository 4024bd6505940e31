"""Three modules of one kernel each need different options, so they cannot share one.

Run: together
"""

import warp as wp


@wp.kernel(module="clean_two_options.exact")
def exact(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.exp(x[wp.tid()])


@wp.kernel(module="clean_two_options.fast")
def fast(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.exp(x[wp.tid()])


@wp.kernel(module="clean_two_options.forward")
def forward(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.exp(x[wp.tid()])


wp.get_module("clean_two_options.fast").options["fast_math"] = True
wp.get_module("clean_two_options.forward").options["enable_backward"] = False
x = wp.zeros(4, dtype=float, device="cpu")
for kernel in (exact, fast, forward):
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")
