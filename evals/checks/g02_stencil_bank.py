"""Responses of the bank, gradients of the loss to the weights, and whether each radius still has a kernel."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("src").resolve()))

import warp as wp

launched = []
launch = wp.launch


def recording_launch(kernel, *args, **kwargs):
    """Launch as Warp does, and note the kernel."""
    launched.append(kernel)
    return launch(kernel, *args, **kwargs)


wp.launch = recording_launch

from stencil_bank import RADII, StencilBank, fit
from stencil_bank.weights import binomial, chirp

responses = StencilBank("cpu").respond(chirp(300))
numeric = {f"response_{radius}": response.values.tolist() for radius, response in responses.items()}
numeric["energies"] = [response.energy for response in responses.values()]
stencils = {id(kernel) for kernel in launched if kernel.key.endswith("stencil")}

gradients = {}
signal = chirp(120)
for radius in (2, 4):
    target = np.roll(signal, 1)
    loss, gradient = fit.loss_gradient(signal, target, binomial(radius), "cpu")
    numeric[f"loss_{radius}"] = [loss]
    gradients[f"weights_{radius}"] = gradient.tolist()

trap = {"one_kernel_a_radius": len(stencils) == len(RADII)}
print(json.dumps({"numeric": numeric, "gradients": gradients, "trap": trap}))
