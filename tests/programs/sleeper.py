"""sleeper.py READY [COUNTER N] [--stubborn]: starts a child and a grandchild, then all three sleep for ten minutes.

When all are up, one line with the three process ids goes to READY, a file or a named pipe. With COUNTER and N the
program sleeps in its Nth run only and ends at once in all others. `--stubborn`: the grandchild ignores SIGTERM and
SIGINT and leaves the session of the program.

Truth: builds=0
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LENGTH_S = 600.0


def run_number(counter):
    run = 1 + (int(counter.read_text()) if counter.exists() else 0)
    counter.write_text(str(run))
    return run


def sleep_as_child(stubborn):
    grandchild = start("grandchild", stubborn)
    grandchild.stdout.readline()
    print(grandchild.pid, flush=True)
    time.sleep(LENGTH_S)


def sleep_as_grandchild(stubborn):
    if stubborn:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("up", flush=True)
    time.sleep(LENGTH_S)


def start(role, stubborn):
    command = [sys.executable, __file__, role, "--stubborn" if stubborn else "--plain"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main(arguments):
    stubborn = "--stubborn" in arguments
    ready, *rest = [argument for argument in arguments if not argument.startswith("--")]
    if ready == "child":
        sleep_as_child(stubborn)
    if ready == "grandchild":
        sleep_as_grandchild(stubborn)
    if rest and run_number(Path(rest[0])) != int(rest[1]):
        return
    child = start("child", stubborn)
    grandchild_pid = child.stdout.readline().strip()
    Path(ready).write_text(f"{os.getpid()} {child.pid} {grandchild_pid}\n")
    time.sleep(LENGTH_S)


main(sys.argv[1:])
