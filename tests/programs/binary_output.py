"""Every byte value on both streams, around a build whose log line stands between them; no line end at the end.

Truth: builds=1 launches=1
"""

import sys

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


EVERY_BYTE = bytes(range(256))

sys.stdout.buffer.write(EVERY_BYTE)
sys.stderr.buffer.write(EVERY_BYTE)
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
sys.stdout.flush()
sys.stdout.buffer.write(EVERY_BYTE)
sys.stderr.buffer.write(EVERY_BYTE)
