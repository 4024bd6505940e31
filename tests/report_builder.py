"""Builds complete, consistent reports from a few words, for tests of what reads reports."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import lzma
from array import array
from dataclasses import dataclass

import warp_compile_probe as probe

BASE_MS = 1_000.0  # what every run takes without loading modules
CACHED_MS = 2.0  # a cached load
HASH_MS = 0.5  # hashing before a load
KEPT_LAUNCHES = 100_000  # of a stream of order DIGEST


@dataclass(frozen=True)
class Launch:
    """A launch. The content of its kernel follows from `does`, by default the key."""

    key: str = "scale"
    dim: tuple[int, ...] = (64,)
    args: tuple[str, ...] = ("array(ndim=1, dtype=float32)", "float32")
    does: str | None = None
    module: str = "program"
    device: str = "cpu"
    block_dim: int = 1
    adjoint: bool = False


@dataclass(frozen=True)
class Module:
    """A module that the cold run builds. `state` stands for all that its hash digests; None strips the hash."""

    name: str = "program"
    state: str | None = "a"
    device: str = "cpu"
    block_dim: int = 1
    ms: float = 4_000.0
    source_bytes: int = 2_000
    lto_bytes: int = 0
    times: int = 1
    warm: probe.Status = probe.Status.CACHED
    warm_times: int = 1
    warm_ms: float | None = None

    @property
    def hash(self) -> str | None:
        return None if self.state is None else hashlib.sha256(f"{self.state} {self.block_dim}".encode()).hexdigest()


@dataclass(frozen=True)
class Proc:
    """A process: what it loads, and what each of its threads launches."""

    path: str = "0"
    modules: tuple[Module, ...] = (Module(),)
    threads: tuple[tuple[Launch, ...], ...] = ((Launch(), Launch(key="add"), Launch()),)
    overlapping: bool = False
    order: probe.Order = probe.Order.EXACT
    shuffled_table: bool = False
    end: probe.ProcessEnd = probe.ProcessEnd.EXIT
    graph_replays_unknown: int = 0


def make_report(
    *processes: Proc,
    factors: tuple[float, ...] = (1.0, 1.01, 0.99),
    warm_processes: tuple[Proc, ...] | None = None,
    failed_samples: int = 0,
    **changes: object,
) -> probe.Report:
    """A report with a complete sample for each factor, which all its load times are multiplied by.

    `changes` are fields of the report, of its environment or of its options.
    """
    processes = processes or (Proc(),)
    samples = []
    for index, factor in enumerate(factors):
        cold = make_run(probe.RunKind.COLD, processes, factor)
        warm = make_run(probe.RunKind.WARM, warm_processes or processes, factor)
        samples.append(probe.Sample(index, True, cold, warm, None))
    for index in range(len(factors), len(factors) + failed_samples):
        run = make_run(probe.RunKind.COLD, (Proc(modules=(), threads=()),), 1.0)
        failed = dataclasses.replace(run, exit=probe.Exit(1, None, False))
        samples.append(probe.Sample(index, False, failed, None, None))
    report = probe.Report(
        schema=probe.REPORT_SCHEMA,
        schema_version=probe.SCHEMA_VERSION,
        probe_version=probe.PROBE_VERSION,
        created="2026-01-02T03:04:05+00:00",
        command=("python", "program.py"),
        cwd="/home/user/project",
        label=None,
        options=probe.Options(max(1, len(samples)), None, {}, False, 0, False),
        environment=make_environment(),
        coverage=probe.Coverage(len(processes), len(processes), len(processes), ()),
        samples=tuple(samples),
        summary=None,
        identities=(),
        findings=(),
        warnings=(),
        offline={},
    )
    if factors:
        report = dataclasses.replace(report, summary=summarise(samples), identities=make_identities(samples))
    return change(report, **changes)


def change(report: probe.Report, **changes: object) -> probe.Report:
    """A report with other fields, or fields of its environment, options or summary (timed ones by their values)."""
    for name, value in changes.items():
        part = next(
            part for part in (None, "environment", "options", "summary") if hasattr(get_part(report, part), name)
        )
        if part is None:
            report = dataclasses.replace(report, **{name: value})
            continue
        is_timed = part == "summary" and isinstance(value, tuple)
        inner = dataclasses.replace(get_part(report, part), **{name: timed(value) if is_timed else value})
        report = dataclasses.replace(report, **{part: inner})
    return report


def get_part(report: probe.Report, part: str | None) -> object:
    return report if part is None else getattr(report, part)


def make_environment() -> probe.Environment:
    return probe.Environment(
        target_python="3.11.7",
        warp="1.19.0",
        cuda_toolkit="13.4",
        cuda_driver=None,
        devices=(probe.Device("cpu", "x86_64", None),),
        cpu_model="A CPU",
        cores=8,
        os="Linux 6.1",
        architecture="x86_64",
        load_average_start=0.5,
        load_average_end=1.5,
        git_commit="0123456789abcdef0123456789abcdef01234567",
        git_dirty=False,
        variables={},
    )


def make_run(kind: probe.RunKind, processes: tuple[Proc, ...], factor: float) -> probe.Run:
    made = tuple(make_process(kind, process, factor, 100 + index) for index, process in enumerate(processes))
    span = max((load.end_ms or 0.0 for process in made for load in process.loads), default=0.0)
    loads = [load for process in made for load in process.loads]
    return probe.Run(
        kind=kind,
        wall_ms=BASE_MS + span,
        exit=probe.Exit(0, None, False),
        processes=made,
        output=probe.Output(120, 0, hashlib.sha256(b"the same output").hexdigest()),
        cross_check=probe.CrossCheck(len(loads), 0, len(loads), ()),
    )


def make_process(kind: probe.RunKind, process: Proc, factor: float, pid: int) -> probe.Process:
    loads = []
    now = 0.0
    for module in process.modules:
        cold = kind is probe.RunKind.COLD
        status = probe.Status.COMPILED if cold else module.warm
        plain_ms = module.ms if status is probe.Status.COMPILED else CACHED_MS
        ms = factor * (module.warm_ms if module.warm_ms is not None and not cold else plain_ms)
        for _ in range(module.times if cold else module.warm_times):
            start = 0.0 if process.overlapping else now
            loads.append(make_load(module, status, start + HASH_MS, ms))
            now = start + HASH_MS + ms
    return probe.Process(
        pid=pid,
        path=process.path,
        how="exec",
        argv=("python", "program.py"),
        executable="/usr/bin/python3",
        python="3.11.7",
        warp="1.19.0",
        start_ms=0.0,
        end_ms=None if process.end is probe.ProcessEnd.UNRECORDED else BASE_MS + now,
        end=process.end,
        exit_code=None if process.end is probe.ProcessEnd.UNRECORDED else 0,
        phases=None,
        hash_ms=HASH_MS * len(loads),
        hashings=len(loads),
        loads=tuple(loads),
        cache_events=(),
        config_events=(),
        option_sets=(),
        built_kernels=(),
        tapes=0,
        launches=make_launches(process),
        hook_errors=(),
    )


def make_load(module: Module, status: probe.Status, start: float, ms: float) -> probe.Load:
    compiled = status is probe.Status.COMPILED
    lto = (probe.LtoArtifact("dot", module.lto_bytes, ms / 2),) if compiled and module.lto_bytes else ()
    lto_ms = ms / 2 if lto else 0.0
    phases = probe.Phases(0.1 * ms, lto_ms, 0.85 * ms - lto_ms, None, 0.01 * ms, 0.02 * ms, 0.02 * ms)
    return probe.Load(
        name=module.name,
        hash=module.hash,
        device=module.device,
        block_dim=module.block_dim,
        status=status,
        kind=probe.LoadKind.JIT,
        source=probe.Source.HOOK,
        thread=1,
        start_ms=start,
        end_ms=start + ms,
        ms=ms,
        hash_ms=HASH_MS,
        phases=phases if compiled else None,
        generated_source_bytes=module.source_bytes if compiled else 0,
        lto=lto,
        site=probe.Site("program.py", 10, "main"),
        workers=None,
        in_capture=False,
        option_set=None,
        kernels=(),
        unreached=(),
        cause=None,
        error=None,
    )


def make_launches(process: Proc) -> probe.Launches:
    """The launches of a process, interned in the order in which they first happen."""
    distinct = list(dict.fromkeys(launch for thread in process.threads for launch in thread))
    if process.shuffled_table:
        distinct.reverse()
    ids = {launch: index for index, launch in enumerate(distinct)}
    kernels: dict[probe.LaunchedKernel, int] = {}
    entries = []
    counts = [0] * len(distinct)
    for thread in process.threads:
        for launch in thread:
            counts[ids[launch]] += 1
    for launch, count in zip(distinct, counts, strict=True):
        kernel = kernels.setdefault(make_kernel(launch), len(kernels))
        entries.append(probe.LaunchEntry(kernel, launch.dim, launch.adjoint, count))
    streams = tuple(
        make_stream(position, [ids[launch] for launch in thread], process.order)
        for position, thread in enumerate(process.threads)
    )
    return probe.Launches(sum(counts), process.graph_replays_unknown, tuple(kernels), tuple(entries), streams)


def make_kernel(launch: Launch) -> probe.LaunchedKernel:
    does = f"{launch.does or launch.key} {launch.args}"
    return probe.LaunchedKernel(
        key=launch.key,
        module=launch.module,
        hash=hashlib.sha256(launch.module.encode(errors="replace")).hexdigest(),
        device=launch.device,
        block_dim=launch.block_dim,
        content=hashlib.sha256(does.encode(errors="replace")).hexdigest(),
        args=launch.args,
    )


def make_stream(position: int, ids: list[int], order: probe.Order, width: int | None = None) -> probe.LaunchStream:
    kept = ids if order is probe.Order.EXACT else ids[:KEPT_LAUNCHES]
    highest = max(ids, default=0)
    width = width or (1 if highest < 1 << 8 else 2 if highest < 1 << 16 else 4)
    return probe.LaunchStream(
        thread=140_000_000_000 + position,
        count=len(ids),
        order=order,
        width=width,
        data=encode_ids(kept, width),
        digest=hashlib.sha256(array("I", ids).tobytes()).hexdigest(),
    )


def encode_ids(ids: list[int], width: int) -> str:
    raw = array({1: "B", 2: "H", 4: "I"}[width], ids).tobytes()
    return base64.b64encode(lzma.compress(raw, lzma.FORMAT_XZ, preset=1)).decode()


def summarise(samples: list[probe.Sample]) -> probe.Summary:
    """The summary that these complete samples have, for loads in one thread of each process."""
    runs = [(sample.cold, sample.warm) for sample in samples if sample.complete]
    first_cold = loads_of(runs[0][0])
    builds = [load for load in first_cold if load.is_build]
    places = [(load.name, load.device, load.block_dim) for load in builds]
    per_process = [
        {(load.name, load.device, load.block_dim) for load in process.loads} for process in runs[0][0].processes
    ]
    bare = {len({(name, device) for name, device, _ in places}) for places in per_process}
    return probe.Summary(
        builds=len(builds),
        rebuilds=len(builds) - sum(len(places) for places in per_process),
        variants=sum(len(places) for places in per_process) - sum(bare),
        modules=len({name for name, _, _ in places}),
        identities=len({(load.name, load.hash, load.device, load.block_dim) for load in first_cold}),
        cached_loads=0,
        error_loads=0,
        aot_loads=0,
        warm_builds=runs[0][1].builds,
        generated_source_bytes=sum(load.generated_source_bytes for load in builds),
        lto_artifacts=sum(len(load.lto) for load in builds),
        lto_bytes=sum(artifact.bytes for load in builds for artifact in load.lto),
        launches=sum(process.launches.count for process in runs[0][0].processes),
        graph_replays_unknown=sum(process.launches.graph_replays_unknown for process in runs[0][0].processes),
        cold_module_ms=timed(sum(load.ms for load in loads_of(cold)) for cold, _ in runs),
        error_ms=timed(0.0 for _ in runs),
        native_compile_ms=timed(sum(load.phases.native_ms for load in loads_of(cold)) for cold, _ in runs),
        codegen_ms=timed(sum(load.phases.codegen_ms for load in loads_of(cold)) for cold, _ in runs),
        lto_ms=timed(sum(load.phases.lto_ms for load in loads_of(cold)) for cold, _ in runs),
        load_ms=timed(sum(load.phases.load_ms for load in loads_of(cold)) for cold, _ in runs),
        hash_ms=timed(sum(load.hash_ms for load in loads_of(cold)) for cold, _ in runs),
        warm_module_ms=timed(sum(load.ms for load in loads_of(warm)) for _, warm in runs),
        warm_wall_ms=timed(warm.wall_ms for _, warm in runs),
        cold_wall_ms=timed(cold.wall_ms for cold, _ in runs),
        compile_elapsed_ms=None if runs[0][1].builds else timed(cold.wall_ms - warm.wall_ms for cold, warm in runs),
        build_span_ms=timed(cold.wall_ms - BASE_MS for cold, _ in runs),
        overlap_factor=timed(overlap(cold) for cold, _ in runs) if builds else None,
        compile_share=timed((cold.wall_ms - BASE_MS) / cold.wall_ms for cold, _ in runs),
    )


def timed(values) -> probe.Timed:
    return probe.timed(tuple(values))


def loads_of(run: probe.Run) -> list[probe.Load]:
    return [load for process in run.processes for load in process.loads]


def overlap(run: probe.Run) -> float:
    """Sum of the timer intervals over their union in each process: all overlap from the start, or none do."""
    union = 0.0
    for process in run.processes:
        starts = {load.start_ms for load in process.loads}
        together = len(starts) < len(process.loads)
        union += (
            max((load.ms for load in process.loads), default=0.0)
            if together
            else sum(load.ms for load in process.loads)
        )
    return sum(load.ms for load in loads_of(run)) / union if union else 1.0


def make_identities(samples: list[probe.Sample]) -> tuple[probe.IdentityRecord, ...]:
    complete = [sample for sample in samples if sample.complete]
    first = complete[0]
    keys = dict.fromkeys(
        (load.name, load.hash, load.device, load.block_dim)
        for run in (first.cold, first.warm)
        for load in loads_of(run)
    )
    records = []
    for key in keys:
        times = [sum(load.ms for load in select(sample.cold, key)) for sample in complete]
        records.append(
            probe.IdentityRecord(
                *key,
                cold=count_by_status(first.cold, key),
                warm=count_by_status(first.warm, key),
                ms=timed(times),
                samples_seen=len(complete),
                phases=None,
                generated_source_bytes=max(
                    (load.generated_source_bytes for load in select(first.cold, key)), default=0
                ),
                causes=(),
                sites=(probe.Site("program.py", 10, "main"),),
                launches=1,
            )
        )
    return tuple(records)


def select(run: probe.Run, key: tuple) -> list[probe.Load]:
    return [load for load in loads_of(run) if (load.name, load.hash, load.device, load.block_dim) == key]


def count_by_status(run: probe.Run, key: tuple) -> dict[str, int]:
    counts: dict[str, int] = {}
    for load in select(run, key):
        counts[load.status.value] = counts.get(load.status.value, 0) + 1
    return counts


def decode_stream(stream: probe.LaunchStream) -> array[int]:
    """All indices that a stream keeps, in order."""
    return array("I", itertools.chain.from_iterable(probe.iter_launch_ids(stream)))
