"""Eight kernels with backward code, and a tape that needs it."""

import warp as wp


def make(number):
    def law(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        a = wp.cross(x[i], x[i]) * wp.static(float(number))
        b = wp.normalize(a + x[i]) - wp.cw_mul(a, x[i])
        y[i] = b * wp.dot(a, b) + wp.cross(b, x[i]) / (1.0 + wp.length(a))

    law.__name__ = law.__qualname__ = f"law_{number}"
    return wp.kernel(law)


laws = [make(number) for number in range(8)]
x = wp.ones(4, dtype=wp.vec3, device="cpu", requires_grad=True)
with wp.Tape() as tape:
    for law in laws:
        y = wp.zeros(4, dtype=wp.vec3, device="cpu", requires_grad=True)
        wp.launch(law, dim=4, inputs=[x, y], device="cpu")
y.grad.fill_(wp.vec3(1.0, 1.0, 1.0))
tape.backward()


@wp.kernel(module="clean_tape.other", enable_backward=False)
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


z = wp.zeros(4, dtype=float, device="cpu")
wp.launch(other, dim=4, inputs=[z], device="cpu")
