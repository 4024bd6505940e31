"""Results of the service, and gradients of those who differentiate through the library."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("src").resolve()))

from pressure_service import requests
from pressure_service.service import solve_pressure

# First, as in a process that uses the service as a function and differentiates afterwards.
pressure = solve_pressure(*requests.synthetic(20), "cpu", sweeps=10)

import linsolve
import warp as wp
from calibration.fit import loss_gradient

axis = np.arange(12, dtype=np.float64)
conductivity = (1.2 + 0.3 * np.sin(axis)[:, None] * np.cos(0.7 * axis)[None, :]).astype(np.float32)
source = (0.5 + 0.1 * axis[:, None] * np.ones(12)).astype(np.float32)
observed = np.full((12, 12), 0.7, dtype=np.float32)
loss, by_conductivity = loss_gradient(conductivity, source, observed, "cpu")

# As a program outside this repository uses the library.
rhs = wp.array(source, dtype=float, device="cpu", requires_grad=True)
fixed = wp.array(conductivity, dtype=float, device="cpu")
tape = wp.Tape()
with tape:
    norms = linsolve.residual(fixed, rhs, linsolve.solve(fixed, rhs, 4))
tape.backward(grads={norms: wp.ones(norms.shape, dtype=float, device="cpu")})

numeric = {"loss": [loss], "pressure": pressure.field.ravel().tolist(), "defect": [pressure.defect]}
gradients = {"conductivity": by_conductivity.ravel().tolist(), "rhs": rhs.grad.numpy().ravel().tolist()}
kept = all(any(values) for values in gradients.values())
trap = {"library_differentiable": kept, "imports_change_no_setting": bool(wp.config.enable_backward)}
print(json.dumps({"numeric": numeric, "gradients": gradients, "trap": trap}))
