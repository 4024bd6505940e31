"""The types of a generic kernel are registered before the first launch.

Run: together
"""

from typing import Any

import warp as wp


@wp.kernel
def fill(x: wp.array(dtype=Any), value: Any):
    x[wp.tid()] = value


kept = [wp.overload(fill, [wp.array(dtype=kind), kind]) for kind in (wp.float32, wp.int32)]
x = wp.zeros(4, dtype=wp.float32, device="cpu")
y = wp.zeros(4, dtype=wp.int32, device="cpu")
wp.launch(fill, dim=4, inputs=[x, wp.float32(1.0)], device="cpu")
wp.launch(fill, dim=4, inputs=[y, wp.int32(1)], device="cpu")
