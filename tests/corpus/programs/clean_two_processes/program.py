"""Two processes build the same module: no rebuild, only the hint that the cache could be filled once before.

Expect: built-per-process hint module=- at=-
Expect (>=1.13): CS-12 hint module=- at=-
"""

import subprocess
import sys

import warp as wp


@wp.kernel(module="clean_two_processes.shared")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


def work():
    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(first, dim=4, inputs=[x], device="cpu")


if len(sys.argv) > 1:
    wp.init()
    print("ready", flush=True)
    sys.stdin.readline()
    work()
else:
    # Both wait until both are ready, so that neither finds what the other has built.
    children = [
        subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for child in children:
        while child.stdout.readline().strip() != "ready":
            pass
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate()
