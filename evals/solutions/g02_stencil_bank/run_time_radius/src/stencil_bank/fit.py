"""How far a stencil is from what it should give, and the gradient for an optimiser."""

import numpy as np
import warp as wp

from . import kernels


@wp.kernel
def misfit(response: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    """Add half the squared difference of every sample."""
    i = wp.tid()
    difference = response[i] - target[i]
    wp.atomic_add(loss, 0, 0.5 * difference * difference)


def loss_gradient(signal: np.ndarray, target: np.ndarray, weights: np.ndarray, device: str) -> tuple[float, np.ndarray]:
    """Half the sum of squared differences between response and target, and its gradient to the weights.

    Signal and target have shape (count,), weights (2 * radius + 1,).
    """
    source = wp.array(signal, dtype=float, device=device)
    wanted = wp.array(target, dtype=float, device=device)
    taps = wp.array(weights, dtype=float, device=device, requires_grad=True)
    response = wp.zeros(source.shape, dtype=float, device=device, requires_grad=True)
    loss = wp.zeros(1, dtype=float, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        inputs = [source, taps, len(weights) // 2, response]
        wp.launch(kernels.stencil, dim=len(source), inputs=inputs, device=device)
        wp.launch(misfit, dim=len(source), inputs=[response, wanted, loss], device=device)
    tape.backward(loss)
    return float(loss.numpy()[0]), taps.grad.numpy()
