"""A law that can be replaced."""

import warp as wp


@wp.func
def law(value: float):
    return value * value


def choose_cubic():
    global law

    @wp.func
    def law(value: float):  # here: function
        return value * value * value
