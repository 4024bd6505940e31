"""One overload is registered before the first launch, the other only when it is needed.

Expect: CS-6 redundant module=self at=kernel
Run: together
"""

from typing import Any

import warp as wp


@wp.kernel
def fill(x: wp.array(dtype=Any), value: Any):  # here: kernel
    x[wp.tid()] = value


as_float = wp.overload(fill, [wp.array(dtype=float), float])
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(fill, dim=4, inputs=[x, 1.0], device="cpu")
as_double = wp.overload(fill, [wp.array(dtype=wp.float64), wp.float64])
y = wp.zeros(4, dtype=wp.float64, device="cpu")
wp.launch(fill, dim=4, inputs=[y, wp.float64(1.0)], device="cpu")
