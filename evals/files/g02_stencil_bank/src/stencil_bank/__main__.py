"""Apply the bank to a chirp and print the energies."""

import argparse
import json

import warp as wp

from . import StencilBank
from .weights import chirp


def main() -> None:
    """Entry point of `python -m stencil_bank`."""
    parser = argparse.ArgumentParser(prog="stencil_bank", description=__doc__)
    parser.add_argument("--count", type=int, default=8192, help="samples of the signal (default: %(default)s)")
    parser.add_argument("--device", help="Warp device (default: cuda:0, or cpu without CUDA)")
    options = parser.parse_args()
    bank = StencilBank(options.device or ("cuda:0" if wp.is_cuda_available() else "cpu"))
    responses = bank.respond(chirp(options.count))
    print(json.dumps({f"radius_{radius}": round(response.energy, 2) for radius, response in responses.items()}))


if __name__ == "__main__":
    main()
