"""Numbers and gradients of the pipeline, and where and when it compiles on the CPU."""

import json
import runpy
import sys
import tempfile
import threading

import numpy as np
import warp as wp
from warp._src import build

cache = tempfile.TemporaryDirectory()
wp.config.kernel_cache_dir = cache.name

compiled = []  # the thread of each module that was compiled for the CPU
real_build_cpu = build.build_cpu
real_launch = wp.launch
modules_of = {}  # stage: modules of the kernels that it launched


def noted_build(*args, **kwargs):
    """Note the thread, then compile."""
    compiled.append(threading.get_ident())
    return real_build_cpu(*args, **kwargs)


def noted_launch(kernel, *args, **kwargs):
    """Note the kernel's module, then launch."""
    modules_of.setdefault(STAGE_OF[kernel.key], set()).add(kernel.module.name)
    return real_launch(kernel, *args, **kwargs)


build.build_cpu = noted_build
wp.launch = noted_launch

KERNELS = {
    "ingest": ("to_volts", "remove_drift"),
    "denoise": ("clip_spikes", "low_pass"),
    "features": ("slope", "activity"),
    "classify": ("logits", "likelihood"),
    "report": ("section_means", "contrast"),
}
STAGE_OF = {kernel: stage for stage, kernels in KERNELS.items() for kernel in kernels}

from stage_pipeline import Pipeline

after_import = len(compiled)
pipeline = Pipeline(["features"])
after_creation = len(compiled)
rng = np.random.default_rng(11)
pipeline.run(wp.array(rng.normal(size=64), dtype=float, device="cpu"))
after_one_stage = len(compiled)

# The command itself, in this process: what it compiles is seen thread by thread.
arguments = sys.argv
sys.argv = ["stage_pipeline", "--device", "cpu"]
runpy.run_module("stage_pipeline", run_name="__main__", alter_sys=True)
sys.argv = arguments
threads = set(compiled)

counts = (2048.0 + 600.0 * rng.normal(size=512)).astype(np.float32)
signal = wp.array(counts, dtype=float, device="cpu", requires_grad=True)
tape = wp.Tape()
with tape:
    contrasts = Pipeline().run(signal)
contrasts.grad = wp.array(np.linspace(-1.0, 1.0, 16), dtype=float, device="cpu")
tape.backward()
by_stage = list(modules_of.values())
print(
    json.dumps(
        {
            "numeric": {"contrasts": [float(value) for value in contrasts.numpy()]},
            # Scaled to volts: a count is 0.0005 V, and its gradient would drown in the tolerance.
            "gradients": {"recording": [float(value) / 0.0005 for value in signal.grad.numpy()]},
            "trap": {
                "serial-on-cpu": threads == {threading.get_ident()},
                "only-what-runs": (after_import, after_creation, after_one_stage) == (0, 0, 1),
                "stages-apart": len(by_stage) == 5
                and all(len(modules) == 1 for modules in by_stage)
                and len(set().union(*by_stage)) == 5,
            },
        }
    )
)
