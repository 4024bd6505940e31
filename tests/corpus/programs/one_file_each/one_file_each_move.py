"""One kernel."""

import warp as wp


@wp.kernel
def move(x: wp.array(dtype=float)):  # here: first
    x[wp.tid()] = x[wp.tid()] + 0.1
