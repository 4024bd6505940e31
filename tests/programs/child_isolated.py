"""child_isolated.py isolated | emptied: a child that the recorder cannot enter runs `simple.py`.

`isolated`: under `python -I`, which ignores PYTHONPATH. `emptied`: with an environment that holds HOME alone, so that
the child uses Warp's default cache. Standard output still tells of the child's build, or of the cache it came from.

Truth: builds=1
"""

import os
import subprocess
import sys
from pathlib import Path

SIMPLE = str(Path(__file__).with_name("simple.py"))

if sys.argv[1] == "isolated":
    subprocess.run([sys.executable, "-I", SIMPLE], check=True)
else:
    subprocess.run([sys.executable, SIMPLE], check=True, env={"HOME": os.environ["HOME"]})
