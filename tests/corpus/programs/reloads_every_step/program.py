"""The module is unloaded and loaded from the cache in every step.

Expect: cached-load-cost redundant module=- at=launch
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp

if hasattr(wp, "LOG_WARNING"):
    wp.config.log_level = wp.LOG_WARNING


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
for _ in range(1500):
    wp.launch(first, dim=4, inputs=[x], device="cpu")  # here: launch
    wp.get_module(__name__).unload()
