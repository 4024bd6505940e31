"""Run several programs of the corpus in one process, each as a Python module of its own name: `together.py NAME...`.

The first build of a process pays for Warp's precompiled header, so this saves minutes and changes no finding about a
module. Findings about the whole process are its own:

May: CS-10 hint module=- at=-
May (<1.18): CS-12 hint module=- at=-
"""

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def run(name):
    (path,) = [path for kind in ("programs", "cuda") if (path := FOLDER / kind / name / "program.py").exists()]
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    for program in sys.argv[1:]:
        run(program)
