"""Set-up of Warp for this package."""

import atexit
import shutil
import tempfile

import warp as wp

from . import kernels


def pick_device(name: str | None) -> str:
    """The named device, or CUDA where there is some, or the CPU."""
    return name or ("cuda:0" if wp.is_cuda_available() else "cpu")


def configure() -> None:
    """Prepare a process of the job scheduler.

    Processes of one host run side by side, so each has a kernel directory for itself and leaves nothing behind.
    """
    folder = tempfile.mkdtemp(prefix="batch_signals_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    wp.config.kernel_cache_dir = folder
    # Kernels of an older release must never be picked up.
    wp.config.cache_kernels = False


def rebuild(device: str) -> None:
    """Throw away all compiled kernels and compile those of this package again."""
    wp.clear_kernel_cache()
    wp.load_module(kernels, device=device)
