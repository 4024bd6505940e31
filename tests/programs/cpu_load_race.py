"""The first loads of the process are for the CPU and run on several threads at once; then the kernels are launched.

`cpu_load_race.py` does it once: with `wp.force_load(max_workers=...)` where Warp has that (1.11), else, or with
`--threads`, with threads of its own that load as a launch does. A kernel that a launch does not find, or that computes
nothing, is printed; the last line counts them: `lost 0 of 2`.

`cpu_load_race.py --tries 50` does it in 50 processes, all over one cache that a process before them filled (`--cold`:
each with an empty one, and then once more), and prints in how many of them a kernel was lost, the process died, or the
second process built again what the first one had. `--modules N`: how many
modules, with a thread for each (default 2). `--aligned` lets the threads wait for each other right before Warp's native
library loads its first object, so that they enter it together; otherwise that is left to chance.
"""

import argparse
import collections
import contextlib
import inspect
import os
import subprocess
import sys
import tempfile
import threading

OUTCOMES = {0: "nothing lost", 3: "kernels lost"}


def align_native_loads(llvm, count):
    """Let the first `count` native loads, of as many threads, begin at the same time."""
    name = "wp_load_obj" if hasattr(llvm, "wp_load_obj") else "load_obj"
    load, together = getattr(llvm, name), threading.Barrier(count)

    first = iter(range(count))

    def load_aligned(*arguments):
        if next(first, None) is not None:
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(timeout=60)
        return load(*arguments)

    setattr(llvm, name, load_aligned)


def load_together(count, *, aligned, threads):
    """Exit status: 0, or 3 if kernels were lost."""
    import warp as wp

    def define(number):
        @wp.kernel(module=f"cpu_load_race.m{number}")
        def fill(x: wp.array(dtype=float)):
            x[wp.tid()] = wp.static(float(number + 1))

        return fill

    kernels = [define(number) for number in range(count)]
    modules = [kernel.module for kernel in kernels]
    wp.init()
    if aligned:
        context = sys.modules.get("warp._src.context") or sys.modules["warp.context"]
        align_native_loads(context.runtime.llvm, count)
    if not threads and "max_workers" in inspect.signature(wp.force_load).parameters:
        how = {"block_dim": 1} if "block_dim" in inspect.signature(wp.force_load).parameters else {}
        wp.force_load(device="cpu", modules=modules, max_workers=count, **how)
    else:
        together = threading.Barrier(count)

        def load(module):
            together.wait()
            module.load(wp.get_device("cpu"), block_dim=1)  # what a launch does

        loading = [threading.Thread(target=load, args=[module]) for module in modules]
        for thread in loading:
            thread.start()
        for thread in loading:
            thread.join()
    lost = 0
    for number, kernel in enumerate(kernels):
        x = wp.zeros(4, dtype=float, device="cpu")
        try:
            wp.launch(kernel, dim=4, inputs=[x], device="cpu")
            wrong = None if x.numpy().tolist() == [number + 1.0] * 4 else f"computed {x.numpy().tolist()}"
        except RuntimeError as error:
            wrong = str(error)
        if wrong:
            lost += 1
            print(f"{kernel.module.name}: {wrong}")
    print(f"lost {lost} of {count}")
    return 3 if lost else 0


def count_losses(tries, options):
    """Run the program `tries` times; print what came of them."""
    flags = ["--aligned"] * options.aligned + ["--threads"] * options.threads
    command = [sys.executable, __file__, "--modules", str(options.modules), *flags]
    outcomes = collections.Counter()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(-1, tries):  # the first one fills the cache, and is not counted
            cache = os.path.join(folder, f"cache{number}" if options.cold else "cache")
            if options.cold and number < 0:
                continue
            env = {**os.environ, "WARP_CACHE_PATH": cache}
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if options.cold:
                again = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
                outcomes["built again by the next process"] += "(compiled)" in again.stdout
            if number >= 0:
                outcomes[OUTCOMES.get(done.returncode, f"died with status {done.returncode}")] += 1
                if done.returncode and not failures:
                    print("the first failure:\n" + (done.stdout + done.stderr)[-1500:])
                failures += bool(done.returncode)
    print(f"{tries} tries: " + ", ".join(f"{name} in {times}" for name, times in sorted(outcomes.items())))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int)
    parser.add_argument("--modules", type=int, default=2)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--aligned", action="store_true")
    parser.add_argument("--threads", action="store_true")
    options = parser.parse_args()
    if options.tries is None:
        return load_together(options.modules, aligned=options.aligned, threads=options.threads)
    count_losses(options.tries, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
