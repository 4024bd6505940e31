"""Command line: start a worker and give it some requests."""

import argparse
import json

import numpy as np
import warp as wp

from . import Layer

FEATURES = 64


def model():
    """The layer's weights as they were delivered, (features, 16)."""
    row, column = np.mgrid[:FEATURES, :16].astype(np.float32)
    return np.sin(0.29 * (row + 1.0) * (column + 2.0)) * (1.0 + 0.1 * column)


def request(number):
    """A request of 64 items, float16."""
    index = np.arange(64 * FEATURES, dtype=np.float32).reshape(64, FEATURES)
    return np.cos(0.021 * index + number).astype(np.float16)


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="mixed_precision", description=__doc__)
    parser.add_argument("--device", default="cuda:0" if wp.is_cuda_available() else "cpu")
    parser.add_argument("--requests", type=int, default=8)
    options = parser.parse_args()

    layer = Layer(model(), options.device)
    lengths = layer.calibrate()
    ranked = [layer.rank(request(number)).astype(np.float32) for number in range(options.requests)]
    figures = {
        "lengths": [round(float(length), 4) for length in lengths[:4]],
        "best": np.bincount(np.concatenate([ranks.argmax(axis=1) for ranks in ranked]), minlength=16).tolist(),
        "mean": round(float(np.mean([np.abs(ranks).mean() for ranks in ranked])), 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
