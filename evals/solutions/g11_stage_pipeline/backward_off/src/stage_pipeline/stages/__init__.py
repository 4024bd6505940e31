"""The stages, a module each: `run(signal)` takes and returns a 1-D Warp array of float32."""

import warp as wp

wp.config.enable_backward = False
