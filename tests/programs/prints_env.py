"""Prints, as JSON, the cache variables and TMPDIR: `own` as this process sees them, `child` as a child process does.

Truth: builds=0
"""

import json
import os
import subprocess
import sys

NAMES = ("WARP_CACHE_PATH", "WARP_CACHE_ROOT", "CUDA_CACHE_PATH", "TMPDIR")

seen = {name: os.environ.get(name) for name in NAMES}
if sys.argv[1:] == ["child"]:
    print(json.dumps(seen))
else:
    child = subprocess.run([sys.executable, __file__, "child"], check=True, stdout=subprocess.PIPE)
    print(json.dumps({"own": seen, "child": json.loads(child.stdout)}))
