"""The loss of a conductivity, its gradient, and steps down it."""

import linsolve
import numpy as np
import warp as wp


@wp.kernel
def misfit(x: wp.array2d(dtype=float), observed: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    """Add the squared difference of every cell."""
    i, j = wp.tid()
    difference = x[i, j] - observed[i, j]
    wp.atomic_add(loss, 0, difference * difference)


def loss_gradient(
    conductivity: np.ndarray, rhs: np.ndarray, observed: np.ndarray, device: str, sweeps: int = 8
) -> tuple[float, np.ndarray]:
    """The loss of a conductivity and its gradient; arrays of shape (size, size)."""
    parameter = wp.array(conductivity, dtype=float, device=device, requires_grad=True)
    source = wp.array(rhs, dtype=float, device=device)
    target = wp.array(observed, dtype=float, device=device)
    loss = wp.zeros(1, dtype=float, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        x = linsolve.solve(parameter, source, sweeps)
        wp.launch(misfit, dim=x.shape, inputs=[x, target, loss], device=device)
    tape.backward(loss)
    return float(loss.numpy()[0]), parameter.grad.numpy()


def descend(conductivity: np.ndarray, rhs: np.ndarray, observed: np.ndarray, device: str, steps: int) -> list[float]:
    """The losses of `steps` steps of gradient descent, each a little lower than the one before."""
    losses = []
    for _ in range(steps):
        loss, gradient = loss_gradient(conductivity, rhs, observed, device)
        losses.append(loss)
        conductivity = conductivity - 0.05 * gradient / max(float(np.abs(gradient).max()), 1e-12)
    return losses
