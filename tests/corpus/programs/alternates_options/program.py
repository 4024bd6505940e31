"""An option of the module is switched to and fro in every step: two builds, then a load from the cache each time.

Expect: CS-3 redundant module=self at=option
Expect: cached-load-cost redundant module=- at=launch
"""

import warp as wp

if hasattr(wp, "LOG_WARNING"):
    wp.config.log_level = wp.LOG_WARNING


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.sin(x[wp.tid()])


x = wp.zeros(4, dtype=float, device="cpu")
for step in range(1500):
    wp.set_module_options({"fast_math": step % 2 == 1})  # here: option
    wp.launch(first, dim=4, inputs=[x], device="cpu")  # here: launch
