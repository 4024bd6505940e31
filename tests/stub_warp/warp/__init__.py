"""A stand-in for Warp: the shape of 1.19's internals as far as the recorder hooks them, with nothing behind it.

Kernels are Python functions that are called once per launch with the inputs; "compiling" copies a file. Tests of how
processes, threads and failures are recorded need no more, and each process costs a tenth of a second.
"""

from warp import config as config
from warp._src.context import Tape as Tape
from warp._src.context import capture_begin as capture_begin
from warp._src.context import capture_end as capture_end
from warp._src.context import capture_if as capture_if
from warp._src.context import capture_launch as capture_launch
from warp._src.context import capture_while as capture_while
from warp._src.context import force_load as force_load
from warp._src.context import func as func
from warp._src.context import init as init
from warp._src.context import kernel as kernel
from warp._src.context import launch as launch
from warp._src.utils import ScopedTimer as ScopedTimer
