"""One kernel."""

import warp as wp


@wp.kernel
def drag(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 0.9
