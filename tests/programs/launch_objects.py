"""The ways in which a launch executes, or does not.

A recorded launch that runs three times (recording it runs nothing), a tiled launch, a forward and a backward launch
of a tape, and a launch over nothing, which does not execute.

Truth: builds=1 launches=6
"""

import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=float), y: wp.array(dtype=float), factor: float):
    i = wp.tid()
    y[i] = y[i] + x[i] * factor


@wp.kernel
def fill(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 5.0


x = wp.full(4, 2.0, dtype=float, device="cpu", requires_grad=True)
y = wp.zeros(4, dtype=float, device="cpu", requires_grad=True)

command = wp.launch(scale, dim=4, inputs=[x, y, 3.0], device="cpu", record_cmd=True)  # site: record
for _ in range(3):
    command.launch()  # site: replay

wp.launch_tiled(fill, dim=[4], inputs=[y], block_dim=32, device="cpu")  # site: tiled

tape = wp.Tape()
with tape:
    wp.launch(scale, dim=4, inputs=[x, y, 0.5], device="cpu")  # site: forward
tape.backward(grads={y: wp.full(4, 1.0, dtype=float, device="cpu")})  # site: backward

wp.launch(scale, dim=0, inputs=[x, y, 1.0], device="cpu")  # site: nothing
print(y.numpy().tolist(), x.grad.numpy().tolist())
