"""Command line: the pyramid of a test frame, and the statistics of the regions asked for."""

import argparse
import json

import numpy as np
import warp as wp

from . import Pyramid, Region, region_statistics

SHAPE = (96, 160)


def test_frame():
    """A frame with a gradient, a grating and a bright part, in sensor counts."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float32)
    frame = 400.0 + 8.0 * x + 300.0 * np.sin(x * 0.35) * np.cos(y * 0.2)
    frame[30:60, 40:80] += 1500.0
    return np.clip(frame, 66.0, 4095.0).astype(np.float32)


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="image_pyramid", description=__doc__)
    parser.add_argument("--device", default="cuda:0" if wp.is_cuda_available() else "cpu")
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--roi", action="append", metavar="X,Y,WIDTH,HEIGHT", help="a region; may be repeated")
    options = parser.parse_args()
    texts = options.roi or ["10,8,24,16", "30,12,90,40"]
    regions = [Region(*map(int, text.split(","))) for text in texts]

    pyramid = Pyramid(SHAPE, options.levels, options.device)
    levels = pyramid.build(test_frame())
    statistics = [region_statistics(levels[0], region, options.device) for region in regions]
    figures = {
        "black": round(pyramid.black, 3),
        "levels": [round(float(level.numpy().mean()), 5) for level in levels],
        "regions": [{name: round(value, 5) for name, value in found.items()} for found in statistics],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
