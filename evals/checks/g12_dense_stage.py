"""Solutions, energies and gradients of the dense stage."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path("src").resolve()))

from dense_stage import DenseStage
from dense_stage.deformations import synthetic

stage = DenseStage(64, "cpu")
numeric, gradients = {}, {}
for amplitude in (0.05, 0.2):
    deformations = synthetic(64, amplitude)
    solutions, energy = stage.solve(deformations)
    numeric[f"solutions_{amplitude}"] = solutions.ravel().tolist()
    again, gradient = stage.energy_gradient(deformations)
    numeric[f"energies_{amplitude}"] = [energy, again]
    gradients[f"deformations_{amplitude}"] = gradient.ravel().tolist()
print(json.dumps({"numeric": numeric, "gradients": gradients}))
