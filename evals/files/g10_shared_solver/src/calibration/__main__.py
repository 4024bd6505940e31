"""Fit a conductivity to synthetic observations and print the losses."""

import argparse
import json

import numpy as np
import warp as wp

from .fit import descend


def main() -> None:
    """Entry point of `python -m calibration`."""
    parser = argparse.ArgumentParser(prog="calibration", description=__doc__)
    parser.add_argument("--size", type=int, default=16, help="cells a side (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="descent steps (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()
    device = options.device or ("cuda:0" if wp.is_cuda_available() else "cpu")
    shape = (options.size, options.size)
    losses = descend(np.full(shape, 1.5), np.ones(shape), np.full(shape, 0.8), device, options.steps)
    print(json.dumps({"losses": [round(loss, 3) for loss in losses]}))


if __name__ == "__main__":
    main()
