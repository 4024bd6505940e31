"""Runs `simple.py` through runpy, as a runner of examples does: the build is of the module `__main__` of that file.

Truth: builds=1 launches=3
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).with_name("simple.py")), run_name="__main__")
