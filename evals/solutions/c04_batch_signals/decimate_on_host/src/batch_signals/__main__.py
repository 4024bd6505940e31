"""Command line: run a batch of synthetic signals, or rebuild the compiled kernels."""

import argparse
import json

import numpy as np

from . import Batch, runtime, signals


def run(rows: int, columns: int, batches: int, device: str) -> None:
    """Process batches and print a checksum of every stage."""
    batch = Batch(rows, columns, device)
    figures = {}
    for number in range(batches):
        stages = batch.process(signals.synthetic(rows, columns) * (number + 1))
        figures[f"batch_{number}"] = {
            name: round(float(np.mean(values, dtype=np.float64)), 6) for name, values in vars(stages).items()
        }
    print(json.dumps(figures))


def main() -> None:
    """Entry point of `python -m batch_signals`."""
    parser = argparse.ArgumentParser(prog="batch_signals", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "rebuild"], default="run")
    parser.add_argument("--rows", type=int, default=32, help="signals in a batch (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=256, help="samples of a signal (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=2, help="how many to run (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()
    if options.command == "rebuild":
        device = runtime.pick_device(options.device)
        runtime.rebuild(device)
        print(f"rebuilt the kernels for {device}")
    else:
        run(options.rows, options.columns, options.batches, runtime.pick_device(options.device))


if __name__ == "__main__":
    main()
