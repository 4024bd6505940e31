"""Preprocess a synthetic snapshot and print checksums of the result."""

import argparse
import json

import warp as wp

from . import Preprocessor, Settings, synthetic


def main() -> None:
    """Entry point of `python -m particle_preprocessing`."""
    parser = argparse.ArgumentParser(prog="particle_preprocessing", description=__doc__)
    parser.add_argument("--count", type=int, default=4096, help="particles (default: %(default)s)")
    parser.add_argument("--snapshots", type=int, default=2, help="how many to run (default: %(default)s)")
    parser.add_argument("--device", default=None, help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()
    device = options.device or ("cuda:0" if wp.is_cuda_available() else "cpu")

    settings = Settings()
    preprocessor = Preprocessor(settings, device)
    figures = {}
    for number in range(options.snapshots):
        result = preprocessor.run(synthetic(options.count + 64 * number, settings.box))
        figures[f"snapshot_{number}"] = {
            "mean_position": round(float(result.positions.mean(dtype="float64")), 5),
            "fastest": round(float((result.velocities**2).sum(axis=1).max() ** 0.5), 5),
            "weights": {order: round(float(w.sum(dtype="float64")), 3) for order, w in result.weights.items()},
            "cells": len(set(result.cells.tolist())),
        }
        print(f"snapshot {number}: {len(result.positions)} particles")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
