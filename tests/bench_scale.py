"""How memory, time and report size grow with the program. Prints a Markdown table; asserts nothing.

    python tests/bench_scale.py [--size FACTOR] [NAME ...]

Each program is measured once, cold and warm, at a tenth of its size and at its full size (FACTOR: both times that, to
see that it runs), then its report is compared with itself. All of them use the stand-in for Warp of tests/stub_warp,
which compiles and computes nothing: the recorder and the probe do what they do with Warp, and Warp's own time is left
out. Columns: wall time of the measurement; what its launches added to the resident memory of the program; peak
resident memory of the probe; bytes of the report; wall time and peak memory of the comparison, and its exit code.

periodic       10 million launches of two kernels in a fixed period of five
aperiodic      10 million launches of five kinds in random order
threads        64 threads, one after the other, 40,000 launches each in random order
modules        2,000 modules of one kernel, each built and launched once
processes      200 child processes, each builds a module and launches 1,000 times in random order
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "warp_compile_probe.py"
STUB_WARP = ROOT / "tests" / "stub_warp"
HEADER = (
    *("program", "size", "wall s", "program grew MB", "probe peak MB", "report bytes"),
    *("compare s", "compare peak MB", "compare exit"),
)
CHOICES_A_BLOCK = 1000

# ---------------------------------------------------------------------------------------------------------------------
# Inside the measured process: `bench_scale.py --worker NAME SIZE`
# ---------------------------------------------------------------------------------------------------------------------


def kinds_of_launches() -> list[tuple[Any, int]]:
    """Kernels and dims of five kinds of launches, two kernels in all."""
    import warp as wp

    @wp.kernel
    def add(x: float) -> None: ...

    @wp.kernel
    def halve(x: float) -> None: ...

    return [(add, 8), (halve, 8), (add, 4), (halve, 2), (add, 2)]


def launch_periodic(count: int) -> None:
    import warp as wp

    kinds = kinds_of_launches()
    for _ in range(count // len(kinds)):
        for kernel, dim in kinds:
            wp.launch(kernel, dim=dim, inputs=[1.0])


def launch_aperiodic(count: int, seed: int = 0, kinds: Sequence[tuple[Any, int]] = ()) -> None:
    import warp as wp

    generator = random.Random(seed)
    kinds = kinds or kinds_of_launches()
    for _ in range(-(-count // CHOICES_A_BLOCK)):
        for kernel, dim in generator.choices(kinds, k=CHOICES_A_BLOCK):
            wp.launch(kernel, dim=dim, inputs=[1.0])


def launch_in_threads(count: int) -> None:
    kinds = kinds_of_launches()
    for seed in range(count):
        thread = threading.Thread(target=launch_aperiodic, args=(40_000, seed, kinds))
        thread.start()
        thread.join()


def build_modules(count: int) -> None:
    import warp as wp
    from warp._src import context

    for number in range(count):

        def work(x: float) -> None: ...

        work.__module__ = f"scale_{number}"
        kernel = context.Kernel(work)
        wp.launch(kernel, dim=8, inputs=[1.0])


def start_processes(count: int) -> None:
    for number in range(count):
        subprocess.run([sys.executable, __file__, "--worker", "child", str(number)], check=True)


def work_as_child(number: int) -> None:
    launch_aperiodic(1000, number)


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Program:
    """What runs, and how much of it at full size."""

    work: Callable[[int], None]
    size: int


PROGRAMS = {
    "periodic": Program(launch_periodic, 10_000_000),
    "aperiodic": Program(launch_aperiodic, 10_000_000),
    "threads": Program(launch_in_threads, 64),
    "modules": Program(build_modules, 2000),
    "processes": Program(start_processes, 200),
}


def work(name: str, size: int) -> None:
    """Do the work; the first run leaves its growth of resident memory, in bytes, in the file that SCALE_GREW names."""
    if name == "child":
        work_as_child(size)
        return
    import warp as wp

    wp.init()
    before = resident_bytes()
    PROGRAMS[name].work(size)
    path = Path(os.environ["SCALE_GREW"])
    if not path.exists():
        path.write_text(str(resident_bytes() - before), encoding="ascii")


# ---------------------------------------------------------------------------------------------------------------------
# The driver
# ---------------------------------------------------------------------------------------------------------------------


def peak_bytes(pid: int) -> int:
    """The most resident memory that a process has had so far; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) * 1024 if peaks else 0


def watched(command: Sequence[str], folder: Path, env: dict[str, str]) -> tuple[float, int, int]:
    """Run to the end: wall time in s, peak resident memory of the process itself in bytes, exit code."""
    start, peak = time.perf_counter(), 0
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while process.poll() is None:
            peak = max(peak, peak_bytes(process.pid))
            time.sleep(0.01)
    return time.perf_counter() - start, peak, process.returncode


def measured(name: str, size: int, folder: Path) -> tuple[str, ...]:
    """The cells of one program at one size."""
    report, grew = folder / "report.json", folder / "grew"
    grew.unlink(missing_ok=True)
    env = {**os.environ, "PYTHONPATH": str(STUB_WARP), "SCALE_GREW": str(grew), "HOME": str(folder)}
    worker = [sys.executable, __file__, "--worker", name, str(size)]
    probe = [sys.executable, str(SCRIPT)]
    options = ["--samples", "1", "--json", str(report)]
    wall, peak, code = watched([*probe, "measure", *options, "--", *worker], folder, env)
    if code != 0:
        sys.stderr.write((folder / "output").read_text(encoding="utf-8", errors="replace"))
        raise SystemExit(f"exit code {code} of the measurement of {name}")
    compared = watched([*probe, "compare", str(report), str(report)], folder, env)
    return (
        *(name, f"{size:,}", f"{wall:.1f}", f"{int(grew.read_text(encoding='ascii')) / 1e6:.1f}"),
        *(f"{peak / 1e6:.0f}", f"{report.stat().st_size:,}"),
        *(f"{compared[0]:.1f}", f"{compared[1] / 1e6:.0f}", str(compared[2])),
    )


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, metavar="FACTOR", help="of the sizes (default: 1)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(PROGRAMS)} (default: all)")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(PROGRAMS)):
        parser.error(f"no program {unknown[0]!r}; there are {', '.join(PROGRAMS)}")
    for cells in (HEADER, ("---",) * len(HEADER)):
        print(f"| {' | '.join(cells)} |")
    for name in arguments.names or PROGRAMS:
        for share in (0.1, 1.0):
            with tempfile.TemporaryDirectory(prefix="scale-") as folder:
                size = max(1, round(PROGRAMS[name].size * share * arguments.size))
                print(f"| {' | '.join(measured(name, size, Path(folder)))} |", flush=True)


if __name__ == "__main__":
    main()
