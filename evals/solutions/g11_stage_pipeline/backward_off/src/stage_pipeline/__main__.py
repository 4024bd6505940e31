"""Command line: run the pipeline over one recording."""

import argparse
import json
import os

import numpy as np
import warp as wp

from . import STAGES, Pipeline

LENGTH = 4096


def recording():
    """A recording of noise, a tone that comes and goes, and two spikes, in counts."""
    t = np.arange(LENGTH, dtype=np.float64)
    tone = 900.0 * np.sin(0.11 * t) * (np.sin(0.004 * t) > 0.6)
    noise = 60.0 * np.sin(12.9898 * t) * np.cos(78.233 * t)
    counts = 2048.0 + tone + noise
    counts[[700, 2900]] += 1500.0
    return counts.astype(np.float32)


def preload(names, device):
    """Compile the kernels of some stages at once, before the first launch.

    On CUDA devices only: several threads must not compile for the CPU.
    """
    if not device.is_cuda:
        return
    modules = [wp.get_module(STAGES[name].__name__) for name in names]
    wp.force_load(device=device, modules=modules, max_workers=min(len(modules), os.cpu_count() or 1, 8))


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="stage_pipeline", description=__doc__)
    parser.add_argument("--device", default="cuda:0" if wp.is_cuda_available() else "cpu")
    parser.add_argument("--only", default=",".join(STAGES), metavar="STAGE,...", help="run only these stages")
    options = parser.parse_args()

    pipeline = Pipeline(options.only.split(","))
    preload(pipeline.names, wp.get_device(options.device))
    found = pipeline.run(wp.array(recording(), dtype=float, device=options.device)).numpy()
    figures = {
        "stages": list(pipeline.names),
        "mean": round(float(np.abs(found).mean()), 5),
        "largest": [round(float(found.max()), 5), int(found.argmax())],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
