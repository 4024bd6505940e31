"""Command line: a job with a channel of each precision."""

import argparse
import json

import numpy as np
import warp as wp

from .analysis import analyse

LENGTH = 8192


def test_channel(precision):
    """Two tones and a drift, of the precision asked for."""
    t = np.arange(LENGTH, dtype=np.float64) / LENGTH
    return (np.sin(40.0 * t) + 0.3 * np.sin(900.0 * t) + 0.5 * t).astype(precision)


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="gpu_analytics", description=__doc__)
    parser.add_argument("--device", default="cuda:0" if wp.is_cuda_available() else "cpu")
    parser.add_argument("--audit", action="store_true", help="also audit the recorder's integer counters")
    options = parser.parse_args()

    figures = {}
    for precision in (np.float32, np.float64):
        found = analyse(test_channel(precision), options.device)
        figures[np.dtype(precision).name] = {
            "energy": round(float(found["energies"].max()), 3),
            "peak": round(float(found["peaks"].max()), 4),
        }
    if options.audit:
        from .audit import count_steps

        counters = (np.arange(LENGTH) // 3 * 2).astype(np.int32)
        figures["audit"] = count_steps(counters, options.device)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
