"""Set-up of Warp for this package."""

import warp as wp

from . import kernels


def pick_device(name: str | None) -> str:
    """The named device, or CUDA where there is some, or the CPU."""
    return name or ("cuda:0" if wp.is_cuda_available() else "cpu")


def rebuild(device: str) -> None:
    """Compile the kernels of this package, where they are not compiled yet."""
    wp.load_module(kernels, device=device)
