"""A struct gains a member between two launches, and the kernel that takes it is defined again.

Expect: CS-1 redundant module=self at=kernel
Run: together
"""

import warp as wp


def make(members):
    body = type("State", (), {"__annotations__": members, "__module__": __name__})
    state_type = wp.struct(body)

    @wp.kernel
    def advance(state: state_type, x: wp.array(dtype=float)):  # here: kernel
        x[wp.tid()] = x[wp.tid()] + state.rate

    return state_type, advance


x = wp.zeros(4, dtype=float, device="cpu")
kept = []  # until the garbage collector runs, dropped kernels may live on or not
for members in ({"rate": float}, {"rate": float, "limit": float}):
    state_type, advance = make(members)
    kept.append(advance)
    state = state_type()
    state.rate = 1.0
    wp.launch(advance, dim=4, inputs=[state, x], device="cpu")
