"""fails_warm.py COUNTER [N]: fails in its Nth run (the second one if not given: a warm run) with exit code 7.

COUNTER is a file in which the program counts its runs.

Truth: builds=0
"""

import sys
from pathlib import Path

counter = Path(sys.argv[1])
failing_run = int(sys.argv[2]) if len(sys.argv) > 2 else 2
run = 1 + (int(counter.read_text()) if counter.exists() else 0)
counter.write_text(str(run))
print("run", run)
if run == failing_run:
    print(f"run {run} met something it did not expect", file=sys.stderr)
    sys.exit(7)
