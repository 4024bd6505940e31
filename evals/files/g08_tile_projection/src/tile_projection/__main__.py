"""Command line: score a batch, or relink after an update of the driver or toolkit."""

import argparse
import json

import numpy as np
import warp as wp

from . import relink, run_batch


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tile_projection", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("batch", "relink"), default="batch")
    parser.add_argument("--device", default="cuda:0" if wp.is_cuda_available() else "cpu")
    parser.add_argument("--vectors", type=int, default=1024, help="a multiple of 16")
    options = parser.parse_args()
    if options.command == "relink":
        relink(options.device)
        print(json.dumps({"relinked": True}))
        return
    index = np.arange(options.vectors * 32, dtype=np.float32).reshape(-1, 32)
    projected, scores = run_batch(np.sin(0.013 * index).astype(np.float32), options.device)
    best = np.argmax(scores, axis=1)
    figures = {
        "projected": round(float(np.abs(projected).mean()), 5),
        "best": np.bincount(best, minlength=16).tolist(),
        "score": round(float(scores.max(axis=1).mean()), 5),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
