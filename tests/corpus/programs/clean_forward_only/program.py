"""Many kernels, backward code off: nothing to say."""

import warp as wp

wp.config.enable_backward = False


def make(number):
    def law(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        a = wp.cross(x[i], y[i]) * wp.static(float(number))
        y[i] = wp.normalize(a + x[i]) - wp.cw_mul(a, y[i])

    law.__name__ = law.__qualname__ = f"law_{number}"
    return wp.kernel(law)


laws = [make(number) for number in range(8)]
x, y = (wp.zeros(4, dtype=wp.vec3, device="cpu") for _ in range(2))
for law in laws:
    wp.launch(law, dim=4, inputs=[x, y], device="cpu")


@wp.kernel(module="clean_forward_only.other", enable_backward=False)
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


z = wp.zeros(4, dtype=float, device="cpu")
wp.launch(other, dim=4, inputs=[z], device="cpu")
