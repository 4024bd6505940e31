"""One kernel."""

import warp as wp


@wp.kernel
def one(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0
