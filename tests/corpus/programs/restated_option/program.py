"""An option is set, after the first launch, to what `None` means anyway: only the hash moves.

Expect: CS-3 redundant module=self at=option
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
release = tuple(int(part) for part in wp.config.version.split(".")[:2])
wp.set_module_options({"optimization_level": 2 if release >= (1, 13) else 3})  # here: option
wp.launch(first, dim=4, inputs=[x], device="cpu")
