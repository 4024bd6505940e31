"""A child launches and waits, and its parent kills it with SIGKILL; the command itself succeeds.

Truth: builds=1 launches=3
"""

import subprocess
import sys


def child():
    import warp as wp

    @wp.kernel
    def add(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + 1.0

    x = wp.zeros(4, dtype=float, device="cpu")
    for _ in range(3):
        wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
    print("launched", flush=True)
    sys.stdin.read()


def parent():
    with subprocess.Popen(
        [sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if line == "launched\n":
                break
        process.kill()
        process.stdout.read()
    print("child ended with", process.returncode)


child() if sys.argv[1:] == ["child"] else parent()
