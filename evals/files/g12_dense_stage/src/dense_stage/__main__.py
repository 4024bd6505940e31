"""Solve rounds of synthetic deformations and print energy and gradient of the last one."""

import argparse
import json

import numpy as np
import warp as wp

from . import DenseStage
from .deformations import synthetic


def main() -> None:
    """Entry point of `python -m dense_stage`."""
    parser = argparse.ArgumentParser(prog="dense_stage", description=__doc__)
    parser.add_argument("--elements", type=int, default=2048, help="systems to solve (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=120, help="rounds (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()

    stage = DenseStage(options.elements, options.device or ("cuda:0" if wp.is_cuda_available() else "cpu"))
    energy, norm = 0.0, 0.0
    deformations = synthetic(options.elements, 0.1)
    for _ in range(options.rounds):
        stage.solve(deformations)
        energy, gradient = stage.energy_gradient(deformations)
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        deformations = (deformations - 0.01 * gradient).astype(np.float32)
    print(json.dumps({"energy": round(energy, 3), "gradient_norm": round(norm, 4)}))


if __name__ == "__main__":
    main()
