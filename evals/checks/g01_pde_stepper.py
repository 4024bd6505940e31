"""Fields and residuals of the stepper, the terms on arrays of their own, and which kernels have fast math."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("src").resolve()))

import warp as wp

launched = {}
launch = wp.launch


def recording_launch(kernel, *args, **kwargs):
    """Launch as Warp does, and note the kernel."""
    launched[kernel.key.rpartition("__locals__")[2]] = kernel
    return launch(kernel, *args, **kwargs)


wp.launch = recording_launch

from pde_stepper import Stepper, advection, boundary, diffusion, reaction

axis = np.arange(24, dtype=np.float64)
start = (0.4 + 0.3 * np.sin(0.5 * axis)[:, None] * np.cos(0.3 * axis)[None, :]).astype(np.float32)
stepper = Stepper(24, "cpu")
stepper.load(start)
residuals = [stepper.step(0.05) for _ in range(12)]

field = wp.array(start, dtype=float, device="cpu")
rate = wp.zeros(field.shape, dtype=float, device="cpu")
advection.advect(field, wp.vec2(-0.2, 0.1), rate)
diffusion.diffuse(field, 0.1, rate)
numeric = {"field": stepper.field().ravel().tolist(), "residuals": residuals, "rate": rate.numpy().ravel().tolist()}
reaction.react(field, rate, 0.3, 0.1)
boundary.fix_borders(field, 0.25)
numeric["terms"] = field.numpy().ravel().tolist()


def fast(name):
    """Whether a kernel that was launched is compiled with fast math."""
    return bool(launched[name].module.options["fast_math"])


trap = {
    "terms_have_fast_math": all(map(fast, ("upwind", "laplace", "grow", "hold"))),
    "residual_has_none": not fast("row_residual"),
}
print(json.dumps({"numeric": numeric, "trap": trap}))
