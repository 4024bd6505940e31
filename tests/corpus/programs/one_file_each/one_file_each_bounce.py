"""One kernel."""

import warp as wp


@wp.kernel
def bounce(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.abs(x[wp.tid()])
