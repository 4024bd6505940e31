"""Fills the disk of its temporary directory in an offline run, between two modules; goes on where a launch fails."""

import contextlib
import os
from pathlib import Path

import warp as wp


@wp.kernel
def halve(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 0.5 * x[i]


x = wp.ones(8, dtype=float, device="cpu")
wp.launch(halve, dim=8, inputs=[x], device="cpu", block_dim=64)
if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
    path = Path(os.environ["TMPDIR"]) / "everything"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
wp.launch(halve, dim=8, inputs=[x], device="cpu", block_dim=128)
