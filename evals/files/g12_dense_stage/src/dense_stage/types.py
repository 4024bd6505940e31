"""Types of the element systems."""

import warp as wp

mat66 = wp.types.matrix(shape=(6, 6), dtype=float)
vec6 = wp.types.vector(length=6, dtype=float)
