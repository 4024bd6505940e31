"""Step a synthetic field and print what became of it."""

import argparse
import json

import numpy as np
import warp as wp

from . import Stepper


def initial(size: int) -> np.ndarray:
    """A smooth bump off the centre, float32 of shape (size, size)."""
    axis = np.linspace(0.0, 1.0, size)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return (0.05 + 0.8 * np.exp(-40.0 * ((x - 0.4) ** 2 + (y - 0.55) ** 2))).astype(np.float32)


def main() -> None:
    """Entry point of `python -m pde_stepper`."""
    parser = argparse.ArgumentParser(prog="pde_stepper", description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="cells a side (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="time steps (default: %(default)s)")
    parser.add_argument("--dt", type=float, default=0.1, help="length of a step (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()

    stepper = Stepper(options.size, options.device or ("cuda:0" if wp.is_cuda_available() else "cpu"))
    stepper.load(initial(options.size))
    residual = 0.0
    for _ in range(options.steps):
        residual = stepper.step(options.dt)
    field = stepper.field()
    figures = {
        "mass": round(float(field.mean(dtype=np.float64)), 6),
        "lowest": round(float(field.min()), 5),
        "highest": round(float(field.max()), 5),
        "residual": round(residual, 4),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
