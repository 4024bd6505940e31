"""outlives_term.py READY TOLD: ignores SIGTERM, and tells each one that comes.

The process id goes to READY when the program is up, and a line to TOLD for each SIGTERM; both are named pipes.

Truth: builds=0
"""

import os
import signal
import sys
from pathlib import Path


def tell(number, frame):
    Path(sys.argv[2]).write_text("told\n")


signal.signal(signal.SIGTERM, tell)
Path(sys.argv[1]).write_text(f"{os.getpid()}\n")
while True:
    signal.pause()
