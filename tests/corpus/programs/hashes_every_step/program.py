"""A kernel factory with equal arguments makes Warp hash a module of many kernels in every step; nothing is loaded.

Expect: hashing-cost hint module=- at=-
"""

import warp as wp

wp.set_module_options({"enable_backward": False})


def make(number):
    def law(x: wp.array(dtype=float)):
        x[wp.tid()] = x[wp.tid()] * wp.static(float(number))

    law.__name__ = law.__qualname__ = f"law_{number}"
    return wp.kernel(law)


kept = [make(number) for number in range(40)]
x = wp.zeros(4, dtype=float, device="cpu")
for _ in range(400):
    kept[0] = make(0)
    wp.launch(kept[0], dim=4, inputs=[x], device="cpu")


@wp.kernel(module="hashes_every_step.other", enable_backward=False)
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


z = wp.zeros(4, dtype=float, device="cpu")
wp.launch(other, dim=4, inputs=[z], device="cpu")
