"""One kernel."""

import warp as wp


@wp.kernel
def two(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0
