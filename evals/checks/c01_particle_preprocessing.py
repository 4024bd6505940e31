"""Results of the preprocessing, and whether plugins stay in modules of their own and no backward code is built."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path("src").resolve()))

import warp as wp

launched = []
launch = wp.launch


def recording_launch(kernel, *args, **kwargs):
    """Launch as Warp does, and note the kernel."""
    launched.append(kernel)
    return launch(kernel, *args, **kwargs)


wp.launch = recording_launch

from particle_preprocessing import Preprocessor, Settings, plugins, synthetic


def backward(kernel):
    """Whether the backward code of a kernel is built."""
    return kernel.options.get("enable_backward", kernel.module.options["enable_backward"])


settings = Settings()
preprocessor = Preprocessor(settings, "cpu")
numeric = {}
for count in (257, 500):
    result = preprocessor.run(synthetic(count, settings.box))
    numeric[f"positions_{count}"] = result.positions.ravel().tolist()
    numeric[f"velocities_{count}"] = result.velocities.ravel().tolist()
    numeric[f"cells_{count}"] = result.cells.tolist()
    for order, weights in result.weights.items():
        numeric[f"weights_{order}_{count}"] = weights.tolist()

own = {id(kernel): kernel for kernel in launched if not kernel.key.endswith("plugin")}
used = {id(kernel): kernel for kernel in launched if kernel.key.endswith("plugin")}
later = plugins.build(plugins.PluginSpec("later", (0.5, 0.5)))
homes = [id(kernel.module) for kernel in (*used.values(), later)]
shared = {id(kernel.module) for kernel in own.values()}

trap = {
    "plugins_isolated": len(used) == len(settings.plugins) and len(set(homes)) == len(homes) and not shared & {*homes},
    "no_backward_code": not any(backward(kernel) for kernel in own.values()),
}
print(json.dumps({"numeric": numeric, "trap": trap}))
