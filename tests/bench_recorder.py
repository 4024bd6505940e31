"""What the recorder and the probe cost. Prints figures; asserts nothing.

    python tests/bench_recorder.py [--target-python PATH] [--quick] [--json FILE]
                                   [launch] [build] [memory] [startup] [own-time]

launch    one launch of a three-argument kernel on the CPU, recorded against bare. Two bare processes and a recorded one
          run blocks of 100 launches in shuffled order, one at a time; the figures are thread CPU time, paired by round.
          The two bare ones against each other show the noise.
build     a cold process that builds 25 small modules, recorded (loads, phases, causes) against bare, in pairs of varied
          order: wall time and CPU time of the process, from `import warp` to its end.
memory    resident memory that a million launches of a periodic program add to it, bare and recorded; and report bytes.
startup   a Python process that never imports Warp, recorded against bare, in shuffled pairs.
own-time  wall time of the probe beyond the runs of the command, for each sample and once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "warp_compile_probe.py"
BLOCK_LAUNCHES = 100
WARM_UP_LAUNCHES = 20  # after its wait a process has cold caches; not timed

# ---------------------------------------------------------------------------------------------------------------------
# Inside the measured process: `bench_recorder.py --worker NAME ...`
# ---------------------------------------------------------------------------------------------------------------------


def three_argument_launch() -> Callable[[int], None]:
    """A function that launches a three-argument kernel that many times, on the CPU, after its module is loaded."""
    import warp as wp

    @wp.kernel
    def add(x: wp.array(dtype=float), y: wp.array(dtype=float), factor: float):
        i = wp.tid()
        y[i] = y[i] + x[i] * factor

    x = wp.zeros(8, dtype=float, device="cpu")
    y = wp.zeros(8, dtype=float, device="cpu")

    def launch(count: int) -> None:
        for _ in range(count):
            wp.launch(add, dim=8, inputs=[x, y, 0.5], device="cpu")

    launch(1)
    return launch


def work_in_blocks(requests_path: str, answers_path: str) -> None:
    """For each line that arrives, one timed block; answers its thread CPU time in nanoseconds. Two named pipes."""
    with open(requests_path, encoding="ascii") as requests, open(answers_path, "w", encoding="ascii") as answers:
        launch = three_argument_launch()
        answers.write("ready\n")
        answers.flush()
        for _ in requests:
            launch(WARM_UP_LAUNCHES)
            start = time.thread_time_ns()
            launch(BLOCK_LAUNCHES)
            answers.write(f"{time.thread_time_ns() - start}\n")
            answers.flush()


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def work_a_million(launches: str, answer_path: str) -> None:
    """Launch two kernels over three sizes in a fixed period; answer the growth of resident memory."""
    import warp as wp

    @wp.kernel
    def add(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + 1.0

    @wp.kernel
    def halve(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * 0.5

    x = wp.zeros(8, dtype=float, device="cpu")
    period = [(add, 8), (halve, 8), (add, 4), (halve, 2), (add, 8)]

    def launch(count: int) -> None:
        for _ in range(count // len(period)):
            for kernel, dim in period:
                wp.launch(kernel, dim=dim, inputs=[x], device="cpu")

    launch(1000)
    before = resident_bytes()
    launch(int(launches))
    Path(answer_path).write_text(str(resident_bytes() - before), encoding="ascii")


def work_at_building(modules: str, answer_path: str) -> None:
    """Build that many modules of two kernels and a function each; add a line to the answer: wall and CPU time in ms."""
    start, start_cpu = time.perf_counter(), time.process_time()
    import warp as wp

    def define(number: int) -> list[wp.Kernel]:
        @wp.func
        def law(value: float):
            return value * wp.static(float(number)) + 1.0

        def move(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), dt: float):
            i = wp.tid()
            x[i] = x[i] + v[i] * law(dt)

        def bounce(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), height: float):
            i = wp.tid()
            if x[i][1] < law(height):
                v[i] = wp.vec3(v[i][0], -v[i][1], v[i][2])

        return [wp.kernel(function, module=f"bench_{number}") for function in (move, bounce)]

    x, v = (wp.zeros(8, dtype=wp.vec3, device="cpu") for _ in range(2))
    for number in range(int(modules)):
        for kernel in define(number):
            wp.launch(kernel, dim=8, inputs=[x, v, 0.1], device="cpu")
    spent = (time.perf_counter() - start) * 1e3, (time.process_time() - start_cpu) * 1e3
    with Path(answer_path).open("a", encoding="ascii") as file:
        file.write(json.dumps(spent) + "\n")


def work_at_starting(pairs: str, answer_path: str) -> None:
    """Start Python processes that do nothing, with the recorder and without; answer the pairs of wall times in ms."""
    recorded = dict(os.environ)
    bare = {name: value for name, value in recorded.items() if name != "PYTHONPATH"}
    environments = [("recorded", recorded), ("bare", bare)]
    generator = random.Random(0)
    rows = []
    for _ in range(int(pairs)):
        row = {}
        for name, env in generator.sample(environments, 2):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True, env=env)
            row[name] = (time.perf_counter() - start) * 1e3
        rows.append((row["bare"], row["recorded"]))
    Path(answer_path).write_text(json.dumps(rows), encoding="ascii")


WORKERS = {
    "blocks": work_in_blocks,
    "building": work_at_building,
    "million": work_a_million,
    "starting": work_at_starting,
}

# ---------------------------------------------------------------------------------------------------------------------
# The driver
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Where things are: the Python of the workers, a folder for pipes and answers, whether to take few samples, and
    the figures so far."""

    target_python: str
    folder: Path
    quick: bool
    figures: list[dict[str, Any]] = field(default_factory=list)

    def worker(self, name: str, *arguments: str | Path) -> list[str]:
        return [self.target_python, __file__, "--worker", name, *map(str, arguments)]

    def measured(self, command: Sequence[str], samples: int = 1) -> list[str]:
        """The command, under the probe; its report is `report_path`."""
        json_option = ["--json", str(self.report_path), "--samples", str(samples)]
        return [sys.executable, str(SCRIPT), "measure", *json_option, "--", *command]

    @property
    def report_path(self) -> Path:
        return self.folder / "report.json"

    def show(self, what: str, label: str, values: Sequence[float], unit: str, base: float | None = None) -> None:
        """Print and keep median and quartiles, and the mean, which holds what happens in few blocks only; with a base
        also what the median adds to it."""
        low, _, high = statistics.quantiles(values, n=4)
        middle, mean = statistics.median(values), statistics.fmean(values)
        added = "" if base is None else f" = {middle / base:+.1%}"
        print(
            f"  {label:38}{middle:10.2f} {unit}   quartiles {low:.2f} to {high:.2f}, mean {mean:.2f},"
            f" n {len(values)}{added}"
        )
        mad = statistics.median(abs(value - middle) for value in values)
        figure = {"what": what, "label": label, "unit": unit, "median": middle, "mad": mad, "n": len(values)}
        self.figures.append({**figure, "share": None if base is None else middle / base})

    def keep(self, what: str, label: str, value: float, unit: str) -> None:
        """Keep a figure that there is only one of."""
        figure = {"what": what, "label": label, "unit": unit, "median": value, "mad": None, "n": 1, "share": None}
        self.figures.append(figure)


def call(command: Sequence[str], env: dict[str, str] | None = None) -> float:
    """Run to the end, quietly; its wall time in ms. Shows what it said if it fails."""
    start = time.perf_counter()
    done = subprocess.run(command, check=False, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    wall_ms = (time.perf_counter() - start) * 1e3
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace"))
        raise SystemExit(f"exit code {done.returncode} of {' '.join(command)}")
    return wall_ms


@dataclass(frozen=True)
class Arm:
    """A process that runs a block on request, over two named pipes."""

    requests: TextIO
    answers: TextIO

    def block_ns(self) -> int:
        self.requests.write("block\n")
        self.requests.flush()
        return int(self.answers.readline())

    def end(self) -> None:
        """Tell the process to end and wait until it has left the pipes, which the next one opens by the same names."""
        self.requests.close()
        self.answers.read()


@contextlib.contextmanager
def deadline(seconds: int, doing: str) -> Iterator[None]:
    """A worker that died never opens its end of a pipe: give up instead of waiting for it for ever."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(f"gave up {doing} after {seconds} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@contextlib.contextmanager
def started_arm(bench: Bench, name: str, *, recorded: bool) -> Iterator[Arm]:
    """Under the probe the cold run is the arm; the warm run is told at once that there is nothing to do."""
    pipes = [bench.folder / f"{name}-{end}" for end in ("requests", "answers")]
    for pipe in pipes:
        os.mkfifo(pipe)
    command = bench.worker("blocks", *pipes)
    env = {**os.environ, "WARP_CACHE_PATH": str(bench.folder / "cache")}

    def opened(stack: contextlib.ExitStack) -> tuple[TextIO, TextIO]:
        with deadline(120, f"waiting for the process {name!r}"):
            requests = stack.enter_context(pipes[0].open("w", encoding="ascii"))
            answers = stack.enter_context(pipes[1].open(encoding="ascii"))
            assert answers.readline() == "ready\n"
        return requests, answers

    argv = bench.measured(command) if recorded else command
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, env=env, **quiet) as process:
        try:
            with contextlib.ExitStack() as stack:
                arm = Arm(*opened(stack))
                yield arm
                arm.end()
            if recorded:
                with contextlib.ExitStack() as stack:
                    Arm(*opened(stack)).end()
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise SystemExit(f"exit code {process.returncode} of {' '.join(argv)}")
    for pipe in pipes:
        pipe.unlink()


def bench_launch(bench: Bench) -> None:
    generator = random.Random(0)
    repeats, rounds = (1, 100) if bench.quick else (5, 400)
    for repeat in range(repeats):
        with (
            started_arm(bench, "bare", recorded=False) as bare,
            started_arm(bench, "other", recorded=False) as other,
            started_arm(bench, "recorded", recorded=True) as recorded,
        ):
            times: dict[str, list[float]] = {"bare": [], "other": [], "recorded": []}
            arms = [("bare", bare), ("other", other), ("recorded", recorded)]
            for _ in range(rounds):
                for name, arm in generator.sample(arms, len(arms)):
                    times[name].append(arm.block_ns() / 1e3 / BLOCK_LAUNCHES)
        base = statistics.median(times["bare"])
        print(f"launch, processes {repeat + 1} of {repeats}")
        bench.show("launch", "bare", times["bare"], "us")
        for name in ("other", "recorded"):
            added = [b - a for a, b in zip(times["bare"], times[name], strict=True)]
            bench.show("launch", f"{'bare' if name == 'other' else name} - bare", added, "us", base)
    print("  wanted: at most 5 % or 1.5 us, whichever is larger")


def bench_build(bench: Bench) -> None:
    generator = random.Random(0)
    modules, pairs = ("3", 2) if bench.quick else ("25", 7)
    answer = bench.folder / "answer"
    command = bench.worker("building", modules, answer)
    rows = []
    for number in range(pairs):
        spent = {}
        for name in generator.sample(["bare", "recorded"], 2):
            answer.unlink(missing_ok=True)
            cache = {"WARP_CACHE_PATH": str(bench.folder / f"cache-{number}")}
            call(bench.measured(command) if name == "recorded" else command, {**os.environ, **cache})
            spent[name] = json.loads(answer.read_text(encoding="ascii").splitlines()[0])  # of the cold run
        rows.append((spent["bare"], spent["recorded"]))
    print(f"build of {modules} small modules in one cold process")
    for position, label in enumerate(("wall", "CPU")):
        base = statistics.median(bare[position] for bare, _ in rows)
        added = [recorded[position] - bare[position] for bare, recorded in rows]
        bench.show("build", f"{label} bare", [bare[position] for bare, _ in rows], "ms")
        bench.show("build", f"{label} recorded - bare", added, "ms", base)
    print("  wanted: at most 3 %")


def bench_memory(bench: Bench) -> None:
    launches = 50_000 if bench.quick else 1_000_000
    answer = bench.folder / "answer"
    command = bench.worker("million", str(launches), answer)
    growth = {}
    for name, arm in (("bare", command), ("recorded", bench.measured(command))):
        call(arm, {**os.environ, "WARP_CACHE_PATH": str(bench.folder / "cache")})
        growth[name] = int(answer.read_text(encoding="ascii"))
    print(f"memory, {launches:,} launches of a periodic program")
    print(f"  resident memory grew by {growth['bare'] / 1e6:.2f} MB bare, {growth['recorded'] / 1e6:.2f} MB recorded")
    print(f"  report of a cold and a warm run: {bench.report_path.stat().st_size:,} bytes")
    for name, grown in growth.items():
        bench.keep("memory", f"{launches:,} launches, growth {name}", grown / 1e6, "MB")
    bench.keep(
        "memory", f"{launches:,} launches, report of a cold and a warm run", bench.report_path.stat().st_size, "bytes"
    )
    print("  wanted: at most 5 MB more, at most 1,000,000 bytes")


def bench_startup(bench: Bench) -> None:
    answer = bench.folder / "answer"
    call(bench.measured(bench.worker("starting", "10" if bench.quick else "100", answer)))
    rows = json.loads(answer.read_text(encoding="ascii"))
    print("startup of a Python that never imports Warp")
    bench.show("startup", "bare", [bare for bare, _ in rows], "ms")
    bench.show("startup", "recorded - bare", [recorded - bare for bare, recorded in rows], "ms")
    print("  wanted: at most 5 ms")


def bench_own_time(bench: Bench) -> None:
    def beyond_ms(samples: int) -> float:
        wall_ms = call(bench.measured([bench.target_python, "-c", "pass"], samples))
        report = json.loads(bench.report_path.read_text(encoding="utf-8"))
        runs = [sample[kind] for sample in report["samples"] for kind in ("cold", "warm", "settle")]
        return wall_ms - sum(run["wall_ms"] for run in runs if run is not None)

    few, many = 1, 3 if bench.quick else 11
    rounds = [(beyond_ms(few), beyond_ms(many)) for _ in range(2 if bench.quick else 5)]
    print("own time of the probe, beyond the runs of a command that does nothing")
    bench.show("own-time", "each sample", [(b - a) / (many - few) for a, b in rounds], "ms")
    bench.show("own-time", "one sample and all that is done once", [a for a, _ in rounds], "ms")
    print("  wanted: at most 300 ms a sample")


BENCHES = {
    "launch": bench_launch,
    "build": bench_build,
    "memory": bench_memory,
    "startup": bench_startup,
    "own-time": bench_own_time,
}


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        WORKERS[sys.argv[2]](*sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target-python", default=sys.executable, help="the Python of the measured processes")
    parser.add_argument("--quick", action="store_true", help="few samples: to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure (default: all)")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHES))
    if unknown:
        parser.error(f"no benchmark {unknown[0]}; there are {', '.join(BENCHES)}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(arguments.target_python, Path(folder), arguments.quick)
        for name in arguments.names or BENCHES:
            BENCHES[name](bench)
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
