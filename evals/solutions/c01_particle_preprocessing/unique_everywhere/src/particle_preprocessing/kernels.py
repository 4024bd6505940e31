"""The kernels of the preprocessing itself. Those of plugins are in `plugins`."""

import functools

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def wrap_positions(positions: wp.array(dtype=wp.vec3), box: float):
    """Put every particle back into the periodic box."""
    i = wp.tid()
    p = positions[i]
    positions[i] = wp.vec3(
        p[0] - box * wp.floor(p[0] / box),
        p[1] - box * wp.floor(p[1] / box),
        p[2] - box * wp.floor(p[2] / box),
    )


@wp.kernel
def limit_speed(velocities: wp.array(dtype=wp.vec3), max_speed: float):
    """Scale down the velocity of particles that are faster than allowed."""
    i = wp.tid()
    speed = wp.length(velocities[i])
    if speed > max_speed:
        velocities[i] = velocities[i] * (max_speed / speed)


@functools.cache
def weight_kernel(order: int):
    """A kernel that weights particles by their distance from the centre of the box, with a compact support."""

    @wp.kernel(module="unique", enable_backward=False)
    def weight(positions: wp.array(dtype=wp.vec3), box: float, weights: wp.array(dtype=float)):
        i = wp.tid()
        centre = wp.vec3(0.5 * box, 0.5 * box, 0.5 * box)
        q = wp.length(positions[i] - centre) / box
        base = wp.max(0.0, 1.0 - q)
        value = float(1.0)
        for _ in range(wp.static(order)):
            value = value * base
        weights[i] = value * (1.0 + wp.static(float(order)) * q)

    return weight


@functools.cache
def bin_kernel(cells: int):
    """A kernel that finds the cell of each particle on a grid of `cells` a side."""

    @wp.kernel(module="unique", enable_backward=False)
    def bin_particles(positions: wp.array(dtype=wp.vec3), box: float, cell: wp.array(dtype=int)):
        i = wp.tid()
        scale = wp.static(float(cells)) / box
        last = wp.static(cells - 1)
        x = wp.clamp(int(positions[i][0] * scale), 0, last)
        y = wp.clamp(int(positions[i][1] * scale), 0, last)
        z = wp.clamp(int(positions[i][2] * scale), 0, last)
        cell[i] = (x * wp.static(cells) + y) * wp.static(cells) + z

    return bin_particles
