"""Answer one request and print what came out."""

import argparse
import json

import warp as wp

from . import requests
from .service import solve_pressure


def main() -> None:
    """Entry point of `python -m pressure_service`."""
    parser = argparse.ArgumentParser(prog="pressure_service", description=__doc__)
    parser.add_argument("--size", type=int, default=48, help="cells a side (default: %(default)s)")
    parser.add_argument("--sweeps", type=int, default=30, help="smoothing sweeps (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()
    device = options.device or ("cuda:0" if wp.is_cuda_available() else "cpu")

    divergence, permeability = requests.synthetic(options.size)
    pressure = solve_pressure(divergence, permeability, device, options.sweeps)
    figures = {
        "lowest": round(float(pressure.field.min()), 5),
        "highest": round(float(pressure.field.max()), 5),
        "defect": round(pressure.defect, 5),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
