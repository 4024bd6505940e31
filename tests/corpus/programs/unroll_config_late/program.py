"""`warp.config.max_unroll` is set after the modules of two libraries were imported, and missed by both.

Expect: option-never-arrived redundant module=- at=assignment
Run: together
"""

import unroll_config_late_a
import unroll_config_late_b
import warp as wp

wp.config.max_unroll = 4  # here: assignment
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(unroll_config_late_a.one, dim=4, inputs=[x], device="cpu")
wp.launch(unroll_config_late_b.two, dim=4, inputs=[x], device="cpu")
wp.config.max_unroll = 16
