"""Numbers of an analysis in both precisions, and what the integer audit may cost the ordinary job."""

import json
import tempfile
from pathlib import Path

import numpy as np
import warp as wp

cache = tempfile.TemporaryDirectory()
wp.config.kernel_cache_dir = cache.name

import gpu_analytics
from gpu_analytics import kernels

INTEGERS = ("array_t<wp::int32>", "array_t<wp::int64>", "array_t<wp::int16>", "array_t<wp::int8>")
FLOATS = ("array_t<wp::float32>", "array_t<wp::float64>")


def generated():
    """The generated source of each module that was built, by file."""
    return {path: path.read_text() for path in Path(cache.name).rglob("*.cpp")}


def holds(text, types):
    """Whether generated source has a kernel over arrays of one of these types."""
    return any(name in text for name in types)


rng = np.random.default_rng(6)
channel = rng.normal(size=1024)
single = gpu_analytics.analyse(channel.astype(np.float32), "cpu")
double = gpu_analytics.analyse(channel, "cpu")
ordinary = generated()

from gpu_analytics import audit

counters = np.array([0, 3, 3, 7, 6, 6, 9], dtype=np.int32)
found = audit.count_steps(counters, "cpu")
with_audit = generated()
again = gpu_analytics.analyse(channel, "cpu")

rebuilt = generated().keys() - with_audit.keys()
added = with_audit.keys() - ordinary.keys()
print(
    json.dumps(
        {
            "numeric": {
                **{f"float32 {name}": [float(value) for value in values] for name, values in single.items()},
                **{f"float64 {name}": [float(value) for value in values] for name, values in double.items()},
                "audit": [float(found["still"]), float(found["back"])],
            },
            "trap": {
                "integers-lazy": not any(holds(text, INTEGERS) for text in ordinary.values()),
                "audit-apart": bool(added) and not any(holds(with_audit[path], FLOATS) for path in added),
                "job-not-rebuilt": not rebuilt and np.array_equal(again["scores"], double["scores"]),
                "precision-kept": single["scores"].dtype == np.float32 and double["scores"].dtype == np.float64,
                "kernels-generic": all(
                    getattr(kernels, name).is_generic for name in ("smooth", "standardise", "energy", "peak")
                ),
            },
        }
    )
)
