#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what an NVIDIA Warp program compiles and launches, and judge whether a change helped.

The pipeline: run the command with empty private caches, and again with the caches it filled -> a recorder inside
each of its Python processes writes down every module load and kernel launch -> cross-check with the output and the
cache directories -> one JSON report -> text.

    warp_compile_probe.py measure [options] -- COMMAND   measure a program, cold and warm
    warp_compile_probe.py measure --demo                 the same on a small built-in program

What it promises: the command runs unmodified, its output and exit status stay what they are; every cold run starts
from caches of its own, for Warp and for the CUDA driver; the user's own caches are neither read nor changed; where
the recorder could not look, the report says so.

Exit codes, the first that applies:
    130  interrupted
    143  terminated
    124  a run exceeded --timeout
    70   a bug in the probe
    2    usage, or an input that cannot be read
    10   the command failed (--expect-exit N for a program that means it)
    4    not comparable, not cold, unverified or invalid
    3    the launch topology changed
    1    a regression
    6    a gate is exceeded
    5    the evidence that an option asked for is missing
    0    fine
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
import operator
import re
import shlex
import statistics
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

# ---------------------------------------------------------------------------------------------------------------------
# Constants
# ---------------------------------------------------------------------------------------------------------------------

PROBE_VERSION = "0.1.0"
REPORT_SCHEMA = "warp-compile-probe/report"
SCHEMA_VERSION = 1


class ExitCode(enum.IntEnum):
    """Exit codes of every command; `EXIT_PRECEDENCE` says which one wins."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    TOPOLOGY_CHANGED = 3
    UNVERIFIED = 4
    EVIDENCE_MISSING = 5
    GATE_EXCEEDED = 6
    COMMAND_FAILED = 10
    PROBE_BUG = 70
    TIMEOUT = 124
    INTERRUPTED = 130
    TERMINATED = 143


# ---------------------------------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------------------------------


class ProbeError(Exception):
    """What a user can cause: one sentence that says what came, what was expected and what to do next."""

    exit_code = ExitCode.USAGE


class InputError(ProbeError):
    """A file or option that cannot be read or used."""


# ---------------------------------------------------------------------------------------------------------------------
# Data model: what a report holds. All times are milliseconds, as floats, from the start of the run unless said else.
# ---------------------------------------------------------------------------------------------------------------------


class RunKind(str, enum.Enum):
    """COLD starts from empty private caches, WARM from those it filled, SETTLE follows a warm run that compiled."""

    COLD = "cold"
    WARM = "warm"
    SETTLE = "settle"


class Status(str, enum.Enum):
    """What Warp says of a load. UNKNOWN: a log line without a status (Warp before 1.3, or a codegen error)."""

    COMPILED = "compiled"
    CACHED = "cached"
    ERROR = "error"
    UNKNOWN = "unknown"


class LoadKind(str, enum.Enum):
    """JIT: on launch or preload. AOT: compile_aot_module, load_aot_module. OFFLINE: for an architecture, no device."""

    JIT = "jit"
    AOT = "aot"
    OFFLINE = "offline"


class Source(str, enum.Enum):
    """Where a load is known from: the recorder's hooks, or only a line of the program's output."""

    HOOK = "hook"
    LOG = "log"


class ProcessEnd(str, enum.Enum):
    """How a process ended, as far as it could still say; UNRECORDED: killed, crashed, or still running."""

    EXIT = "exit"
    OS_EXIT = "os._exit"
    EXEC = "exec"
    UNRECORDED = "unrecorded"


class Order(str, enum.Enum):
    """EXACT: the order of a stream of launches is recoverable. DIGEST: counts, a digest and the first ones are kept."""

    EXACT = "exact"
    DIGEST = "digest"


class CacheEventKind(str, enum.Enum):
    """What the program did to a kernel cache."""

    CLEAR_KERNEL_CACHE = "clear-kernel-cache"
    CLEAR_LTO_CACHE = "clear-lto-cache"
    DIRECTORY_SET = "directory-set"
    DIRECTORY_DELETED = "directory-deleted"
    CACHING_OFF = "caching-off"


class GapReason(str, enum.Enum):
    """Why something may have gone unseen; a closed set."""

    NOT_RECORDED = "not-recorded"
    ISOLATED_PYTHON = "isolated-python"
    DROPPED_ENVIRONMENT = "dropped-environment"
    CHILD_NOT_RECORDED = "child-not-recorded"
    UNSUPPORTED_WARP = "unsupported-warp"
    HOOK_FAILED = "hook-failed"
    LOG_ONLY_LOADS = "log-only-loads"
    UNEXPLAINED_CACHE_ENTRY = "unexplained-cache-entry"
    MISSING_CACHE_ENTRY = "missing-cache-entry"
    RECORD_TRUNCATED = "record-truncated"
    LAUNCHES_NOT_RECORDED = "launches-not-recorded"
    GRAPH_CONTENT_UNSEEN = "graph-content-unseen"


class FindingKind(str, enum.Enum):
    """REDUNDANT: work that need not have happened. HINT: a lever to measure."""

    REDUNDANT = "redundant"
    HINT = "hint"


class CauseReason(str, enum.Enum):
    """Why a module was built, against its closest earlier identity in that process; a closed set."""

    FIRST_BUILD = "first-build"
    NEW_BLOCK_DIM = "new-block-dim"
    NEW_DEVICE = "new-device"
    KERNEL_ADDED = "kernel-added"
    KERNEL_REMOVED = "kernel-removed"
    KERNEL_REDEFINED = "kernel-redefined"
    GENERIC_INSTANCE_ADDED = "generic-instance-added"
    FUNCTION_CHANGED = "function-changed"
    STRUCT_CHANGED = "struct-changed"
    OPTION_CHANGED = "option-changed"
    SAME_HASH_AGAIN = "same-hash-again"
    NOTHING_OBVIOUS = "nothing-obvious"


@dataclass(frozen=True)
class Site:
    """A place in source code."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Change:
    """One difference between two identities of a module: what (a kernel key, option name, ...), before and after."""

    reason: CauseReason
    name: str
    before: str | None
    after: str | None
    site: Site | None


@dataclass(frozen=True)
class Cause:
    """Why a build happened: the main reason, every difference, and the hash it was compared with."""

    reason: CauseReason
    changes: tuple[Change, ...]
    compared_with: str | None


@dataclass(frozen=True)
class Phases:
    """Where the timer interval of a load went. `header_ms` is a part of `native_ms`; null where it cannot be told."""

    codegen_ms: float
    lto_ms: float
    native_ms: float
    header_ms: float | None
    install_ms: float
    load_ms: float
    rest_ms: float


@dataclass(frozen=True)
class LtoArtifact:
    """One link-time-optimisation artifact as it was compiled (not one that was found in the cache)."""

    symbol: str
    bytes: int
    ms: float


@dataclass(frozen=True)
class Load:
    """One module load that was not already resident.

    `ms` is Warp's own timer interval, from `start_ms` to `end_ms`; `hash_ms` lies before it. `hash` has 64 hex digits
    (7 where only a log line is known, null where Warp strips it). `workers` is set for loads through `force_load`.
    """

    name: str
    hash: str | None
    device: str
    block_dim: int | None
    status: Status
    kind: LoadKind
    source: Source
    thread: int
    start_ms: float | None
    end_ms: float | None
    ms: float
    hash_ms: float
    phases: Phases | None
    generated_source_bytes: int
    lto: tuple[LtoArtifact, ...]
    site: Site | None
    workers: int | None
    cause: Cause | None
    error: str | None

    @property
    def is_build(self) -> bool:
        """A compiled just-in-time load."""
        return self.status is Status.COMPILED and self.kind is LoadKind.JIT


@dataclass(frozen=True)
class CacheEvent:
    """Something the program did to a kernel cache, where and when."""

    kind: CacheEventKind
    at_ms: float
    path: str | None
    site: Site | None


@dataclass(frozen=True)
class LaunchedKernel:
    """A kernel as loaded: `content` digests its source without decorator and name, its argument types, the functions,
    constants and static values it uses (not module options); `hash`, `device` and `block_dim` are those of its module.
    """

    key: str
    module: str
    hash: str
    device: str
    block_dim: int
    content: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class LaunchEntry:
    """A distinct launch: index into `kernels`, effective dim, adjoint flag, and how often it executed."""

    kernel: int
    dim: tuple[int, ...]
    adjoint: bool
    count: int


@dataclass(frozen=True)
class LaunchStream:
    """The ordered launches of one thread of a process.

    `data` is base64 of xz of little-endian unsigned integers of `width` bytes, each an index into `entries`.
    With `order` EXACT it holds all `count` launches; with DIGEST the first 100,000. `digest` is the SHA-256 over the
    indices of all launches as 4-byte little-endian integers.
    """

    thread: int
    count: int
    order: Order
    width: int
    data: str
    digest: str


@dataclass(frozen=True)
class Launches:
    """All launches that a process executed; a lower bound where `graph_replays_unknown` is not zero."""

    count: int
    graph_replays_unknown: int
    kernels: tuple[LaunchedKernel, ...]
    entries: tuple[LaunchEntry, ...]
    streams: tuple[LaunchStream, ...]


@dataclass(frozen=True)
class ProcessPhases:
    """Where the time of a process went; loads are the union of their intervals, the rest is everything else."""

    interpreter_ms: float
    imports_before_warp_ms: float
    import_warp_ms: float
    init_ms: float
    loads_ms: float
    rest_ms: float


@dataclass(frozen=True)
class Process:
    """One process in which the recorder started.

    `path` names it across runs: "0" is the first one, "0.1" its second child. `how` is how it came to be: "exec" (a
    fresh interpreter) or "fork". `hash_ms` is all time spent hashing modules, with or without a load that followed.
    """

    pid: int
    path: str
    how: str
    argv: tuple[str, ...]
    executable: str
    python: str
    warp: str | None
    start_ms: float
    end_ms: float | None
    end: ProcessEnd
    exit_code: int | None
    phases: ProcessPhases | None
    hash_ms: float
    hashings: int
    loads: tuple[Load, ...]
    cache_events: tuple[CacheEvent, ...]
    launches: Launches
    hook_errors: tuple[str, ...]


@dataclass(frozen=True)
class Exit:
    """How the command ended: an exit code, or the signal that killed it, or the probe ended it after --timeout."""

    code: int | None
    signal: str | None
    timed_out: bool


@dataclass(frozen=True)
class Output:
    """What the command wrote: sizes, and the SHA-256 of its standard output without Warp's own lines."""

    stdout_bytes: int
    stderr_bytes: int
    stdout_digest: str


@dataclass(frozen=True)
class CrossCheck:
    """The two independent counts that the recorded loads were held against."""

    log_records: int
    log_only: int
    cache_directories: int
    unexplained_directories: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One execution of the command."""

    kind: RunKind
    wall_ms: float
    exit: Exit
    processes: tuple[Process, ...]
    output: Output
    cross_check: CrossCheck

    @property
    def builds(self) -> int:
        """Builds of all processes."""
        return sum(load.is_build for process in self.processes for load in process.loads)


@dataclass(frozen=True)
class Sample:
    """A cold run and what follows it; a run that failed or was not reached leaves `complete` false."""

    index: int
    complete: bool
    cold: Run | None
    warm: Run | None
    settle: Run | None

    @property
    def concluding_warm(self) -> Run | None:
        """The run that every warm figure comes from."""
        return self.settle or self.warm


@dataclass(frozen=True)
class Timed:
    """A timed figure over the complete samples: median, unscaled median absolute deviation, and each value."""

    median: float
    mad: float
    values: tuple[float, ...]


@dataclass(frozen=True)
class Summary:
    """Counts of the first complete sample, times over all complete ones; see the table in the README."""

    builds: int
    rebuilds: int
    variants: int
    modules: int
    identities: int
    cached_loads: int
    error_loads: int
    aot_loads: int
    warm_builds: int
    generated_source_bytes: int
    lto_artifacts: int
    lto_bytes: int
    launches: int
    graph_replays_unknown: int
    cold_module_ms: Timed
    error_ms: Timed
    native_compile_ms: Timed
    codegen_ms: Timed
    lto_ms: Timed
    load_ms: Timed
    hash_ms: Timed
    warm_module_ms: Timed
    warm_wall_ms: Timed
    cold_wall_ms: Timed
    compile_elapsed_ms: Timed | None
    build_span_ms: Timed
    overlap_factor: Timed | None
    compile_share: Timed


@dataclass(frozen=True)
class IdentityRecord:
    """A module identity over all samples; `cold` and `warm` count its loads by status in the first complete sample,
    `phases` are medians like `ms`, null where no load tells them."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None
    cold: dict[str, int]
    warm: dict[str, int]
    ms: Timed
    samples_seen: int
    phases: Phases | None
    generated_source_bytes: int
    causes: tuple[Cause, ...]
    sites: tuple[Site, ...]
    launches: int


@dataclass(frozen=True)
class Finding:
    """A diagnosed mechanism with its evidence; `avoidable_ms` is null where only a measurement can tell."""

    mechanism: str
    kind: FindingKind
    module: str | None
    device: str | None
    block_dim: int | None
    cost_ms: float
    avoidable_ms: float | None
    evidence: tuple[str, ...]
    where: Site | None
    text: str
    see: str | None


@dataclass(frozen=True)
class Gap:
    """Something the recorder could not see, and why."""

    reason: GapReason
    pid: int | None
    detail: str


@dataclass(frozen=True)
class Coverage:
    """What the recorder saw: processes in the first complete sample's cold run, how many used Warp, how many ended
    with an end line, and every gap of any run."""

    processes: int
    used_warp: int
    ended_cleanly: int
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class Notice:
    """A warning: a slug that stays the same, and a sentence."""

    name: str
    text: str


@dataclass(frozen=True)
class Device:
    """A device that Warp listed in the target."""

    alias: str
    name: str
    arch: int | None


@dataclass(frozen=True)
class Environment:
    """What was measured on; null is "could not be told"."""

    target_python: str | None
    warp: str | None
    cuda_toolkit: str | None
    cuda_driver: str | None
    devices: tuple[Device, ...]
    cpu_model: str | None
    cores: int | None
    os: str
    architecture: str
    load_average_start: float | None
    load_average_end: float | None
    git_commit: str | None
    git_dirty: bool | None
    variables: dict[str, str]


@dataclass(frozen=True)
class Options:
    """The options of `measure` that a comparison must know."""

    samples: int
    timeout_s: float | None
    env: dict[str, str]
    inherit_tmpdir: bool
    expect_exit: int
    demo: bool


@dataclass(frozen=True)
class Report:
    """The JSON of `measure`."""

    schema: str
    schema_version: int
    probe_version: str
    created: str
    command: tuple[str, ...]
    cwd: str
    label: str | None
    options: Options
    environment: Environment
    coverage: Coverage
    samples: tuple[Sample, ...]
    summary: Summary | None
    identities: tuple[IdentityRecord, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[Notice, ...]
    offline: dict[str, Any]

    @classmethod
    def from_json(cls, value: Any) -> Report:
        """Read a report from parsed JSON. Raises InputError with the path of the first thing that is not as expected."""
        if not isinstance(value, dict) or value.get("schema") != REPORT_SCHEMA:
            raise InputError(f'not a probe report: expected "schema": "{REPORT_SCHEMA}" at the top level')
        if value.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"report of schema version {value.get('schema_version')!r}: this probe reads version {SCHEMA_VERSION};"
                " measure again with this probe, or read it with the one that wrote it"
            )
        return from_json(cls, value, "report")


T = TypeVar("T")


def to_json(value: Any) -> Any:
    """A dataclass, enum or container of them as plain JSON values; field names are the keys."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[T], value: Any, path: str) -> T:
    """Build `kind` (a dataclass) from parsed JSON, checking every type; unknown keys are refused.

    Raises InputError naming the path of what is wrong.
    """
    return typing.cast(T, _read(kind, value, path))


_HINTS: dict[type, dict[str, Any]] = {}


def _read(kind: Any, value: Any, path: str) -> Any:
    """One value of any annotation used in the data model."""
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        (inner,) = [option for option in typing.get_args(kind) if option is not types.NoneType]
        return None if value is None else _read(inner, value, path)
    if origin is tuple:
        if not isinstance(value, list):
            raise InputError(f"{path}: expected a list, found {type(value).__name__}")
        item_kind = typing.get_args(kind)[0]
        return tuple(_read(item_kind, item, f"{path}[{index}]") for index, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"{path}: expected an object, found {type(value).__name__}")
        item_kind = typing.get_args(kind)[1]
        return {key: _read(item_kind, item, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_dataclass(kind, value, path)
    if issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            allowed = ", ".join(str(member.value) for member in kind)
            raise InputError(f"{path}: expected one of {allowed}; found {value!r}") from None
    if kind is float:
        return _read_float(value, path)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{path}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def _read_float(value: Any, path: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InputError(f"{path}: expected a number, found {type(value).__name__}")
    if not abs(value) <= sys.float_info.max:
        raise InputError(f"{path}: expected a finite number")
    return float(value)


def _read_dataclass(kind: type, value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected an object, found {type(value).__name__}")
    hints = _HINTS.get(kind)
    if hints is None:
        hints = _HINTS[kind] = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    missing = [name for name in names if name not in value]
    if missing:
        raise InputError(f"{path}: {missing[0]!r} is missing")
    unknown = [key for key in value if key not in hints]
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}")
    return kind(**{name: _read(hints[name], value[name], f"{path}.{name}") for name in names})


# ---------------------------------------------------------------------------------------------------------------------
# Log parsing: Warp's module-timer and compiler lines into records
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Statistics
# ---------------------------------------------------------------------------------------------------------------------


def timed(values: Sequence[float]) -> Timed:
    """Median and unscaled median absolute deviation of at least one value."""
    median = statistics.median(values)
    return Timed(median, statistics.median(abs(value - median) for value in values), tuple(values))


# ---------------------------------------------------------------------------------------------------------------------
# Diagnosis: from recorded runs to summary, identities, findings and warnings
# ---------------------------------------------------------------------------------------------------------------------

# From where on a finding is worth a reader's time; times below NOTABLE_MS or NOTABLE_SHARE of the run are not.
OVERLAP_FACTOR = 1.15
LINK_DOMINATED_SHARE = 0.5
MANY_CACHED_LOADS = 1000
NOTABLE_MS = 200.0
NOTABLE_SHARE = 0.10
MAX_EVIDENCE = 12


class Mechanism(str, enum.Enum):
    """What a finding can say; a closed set, explained in `MECHANISMS`."""

    REBUILD = "rebuild"
    UNPROVEN_REBUILD = "unproven-rebuild"
    VARIANT = "variant"
    VARIANT_NEVER_LAUNCHED = "variant-never-launched"
    BUILT_PER_PROCESS = "built-per-process"
    WARM_BUILD = "warm-build"
    SECOND_RUN_BUILD = "second-run-build"
    CACHED_LOAD_COST = "cached-load-cost"
    HASHING_COST = "hashing-cost"
    BUILDS_OVERLAPPED = "builds-overlapped"
    LINK_DOMINATED = "link-dominated"
    BUILD_ERROR = "build-error"


MECHANISMS: dict[Mechanism, str] = {
    Mechanism.REBUILD: "A process built a module that it had already built for the same device and block_dim.",
    Mechanism.UNPROVEN_REBUILD: "The output shows several hashes of a module and no block_dim: rebuilds, or variants.",
    Mechanism.VARIANT: "A process built a module at several block_dims on one device.",
    Mechanism.VARIANT_NEVER_LAUNCHED: "A process built a module at a block_dim at which it launched none of it.",
    Mechanism.BUILT_PER_PROCESS: "Several processes of one run each built the same module.",
    Mechanism.WARM_BUILD: "The run that found the caches filled still built modules.",
    Mechanism.SECOND_RUN_BUILD: "The second run still built modules, the third one no longer did.",
    Mechanism.CACHED_LOAD_COST: "Loading modules from a filled cache takes notable time.",
    Mechanism.HASHING_COST: "Hashing modules that are not loaded afterwards takes notable time.",
    Mechanism.BUILDS_OVERLAPPED: "Modules were built at the same time, so their timers count some time twice.",
    Mechanism.LINK_DOMINATED: "Link-time optimisation takes most of the time of building a module.",
    Mechanism.BUILD_ERROR: "A module load took time and ended with an error.",
}


class Identity(typing.NamedTuple):
    """What Warp compiles once and caches; `hash` has as many digits as are known."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None


@dataclass(frozen=True)
class Measured:
    """A complete sample: its cold run, the run after it, and the run that every warm figure comes from."""

    index: int
    cold: Run
    second: Run
    warm: Run


def complete_samples(samples: Sequence[Sample]) -> list[Measured]:
    """The samples that can be counted, in order."""
    return [
        Measured(sample.index, sample.cold, sample.warm, concluding)
        for sample in samples
        if sample.complete and sample.cold and sample.warm and (concluding := sample.concluding_warm)
    ]


def loads_of(run: Run) -> list[Load]:
    """The loads of every process; those for an architecture without a device are never mixed into other figures."""
    return [load for process in run.processes for load in process.loads if load.kind is not LoadKind.OFFLINE]


def builds_of(run: Run) -> list[Load]:
    """The builds of every process."""
    return [load for load in loads_of(run) if load.is_build]


def union_ms(intervals: Iterable[tuple[float, float]]) -> float:
    """Length that the intervals (start, end) cover together; an interval that ends before it starts covers nothing."""
    covered = 0.0
    reached = float("-inf")
    for start, end in sorted(intervals):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def family(name: str) -> str:
    """A module name with every hash in it replaced by `*`: kernels of one factory share it."""
    return _HASH_IN_NAME.sub("*", name)


_HASH_IN_NAME = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8,64}(?![0-9A-Za-z])")


def duration(ms: float) -> str:
    """Milliseconds with three digits and a unit."""
    if ms == 0:
        return "0 ms"
    value, unit = (ms / 1000, "s") if abs(ms) >= 999.5 else (ms, "ms")
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f} {unit}"


def place(site: Site) -> str:
    """A call site as an editor understands it, and the function."""
    return f"{site.file}:{site.line} in {site.function}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 build`, `1,234 builds`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


# Summary and identities


def summarise(samples: Sequence[Sample]) -> Summary | None:
    """Counts of the first complete sample, times over all complete samples; None where no sample is complete."""
    measured = complete_samples(samples)
    if not measured:
        return None
    first = measured[0].cold
    loads = loads_of(first)
    builds = builds_of(first)
    jit = [load for load in loads if load.kind is LoadKind.JIT]
    identity_of = identity_resolver([first])

    def over(figure: Callable[[Measured], float]) -> Timed:
        return timed([figure(sample) for sample in measured])

    def over_known(figure: Callable[[Measured], float | None]) -> Timed | None:
        values = [value for value in map(figure, measured) if value is not None]
        return timed(values) if values else None

    def over_parts(part: Callable[[Phases], float]) -> Timed:
        return over(lambda sample: math.fsum(part(load.phases) for load in builds_of(sample.cold) if load.phases))

    return Summary(
        builds=len(builds),
        rebuilds=sum(len(rebuilt) - 1 for rebuilt in _build_slots(_ordered_builds(first)).values()),
        variants=sum(len(by_dim) - 1 for by_dim in _block_dims(_ordered_builds(first)).values()),
        modules=len({load.name for load in loads}),
        identities=len({identity_of(load) for load in loads}),
        cached_loads=sum(load.status is Status.CACHED for load in jit),
        error_loads=sum(load.status is Status.ERROR for load in loads),
        aot_loads=sum(load.kind is LoadKind.AOT for load in loads),
        warm_builds=len(builds_of(measured[0].warm)),
        generated_source_bytes=sum(load.generated_source_bytes for load in builds),
        lto_artifacts=sum(len(load.lto) for load in jit),
        lto_bytes=sum(artifact.bytes for load in jit for artifact in load.lto),
        launches=sum(process.launches.count for process in first.processes),
        graph_replays_unknown=sum(process.launches.graph_replays_unknown for process in first.processes),
        cold_module_ms=over(lambda sample: math.fsum(load.ms for load in builds_of(sample.cold))),
        error_ms=over(
            lambda sample: math.fsum(load.ms for load in loads_of(sample.cold) if load.status is Status.ERROR)
        ),
        native_compile_ms=over_parts(lambda phases: phases.native_ms),
        codegen_ms=over_parts(lambda phases: phases.codegen_ms),
        lto_ms=over_parts(lambda phases: phases.lto_ms),
        load_ms=over_parts(lambda phases: phases.load_ms),
        hash_ms=over(lambda sample: math.fsum(load.hash_ms for load in builds_of(sample.cold))),
        warm_module_ms=over(lambda sample: math.fsum(load.ms for load in loads_of(sample.warm))),
        warm_wall_ms=over(lambda sample: sample.warm.wall_ms),
        cold_wall_ms=over(lambda sample: sample.cold.wall_ms),
        compile_elapsed_ms=over_known(_compile_elapsed_ms),
        build_span_ms=over(lambda sample: _build_span_ms(sample.cold)),
        overlap_factor=over_known(lambda sample: _overlap_factor(sample.cold)),
        compile_share=over(lambda sample: _compile_share(sample.cold)),
    )


def identity_resolver(runs: Iterable[Run]) -> Callable[[Load], Identity]:
    """A function from a load to its identity, the same for all the runs.

    A line of the output shows 7 digits of the hash and no block_dim: it is the identity of a recorded load where
    name, device and those digits agree.
    """
    full: dict[tuple[str, str, str], dict[Identity, None]] = {}
    for run in runs:
        for load in loads_of(run):
            if load.hash is not None and load.source is Source.HOOK:
                identity = Identity(load.name, load.hash, load.device, load.block_dim)
                full.setdefault((load.name, load.device, load.hash[:7]), {})[identity] = None

    def resolve(load: Load) -> Identity:
        if load.source is Source.LOG and load.hash is not None:
            for identity in full.get((load.name, load.device, load.hash[:7]), ()):
                if load.block_dim in (None, identity.block_dim):
                    return identity
        return Identity(load.name, load.hash, load.device, load.block_dim)

    return resolve


def identity_records(samples: Sequence[Sample]) -> tuple[IdentityRecord, ...]:
    """Every identity that a complete sample loaded, in the order of first appearance.

    `ms` is over the cold runs; for an identity that only warm runs load, over those.
    """
    measured = complete_samples(samples)
    if not measured:
        return ()
    identity_of = identity_resolver(run for sample in measured for run in (sample.cold, sample.warm))
    cold = [_by_identity(sample.cold, identity_of) for sample in measured]
    warm = [_by_identity(sample.warm, identity_of) for sample in measured]
    launches: collections.Counter[Identity] = collections.Counter()
    for process in measured[0].cold.processes:
        for entry in process.launches.entries:
            kernel = process.launches.kernels[entry.kernel]
            # A module whose hash Warp strips is known by the rest of its identity.
            for module_hash in (kernel.hash, None):
                launches[Identity(kernel.module, module_hash, kernel.device, kernel.block_dim)] += entry.count
    records = []
    for identity in dict.fromkeys(identity for found in (*cold, *warm) for identity in found):
        in_cold = cold[0].get(identity, [])
        in_warm = warm[0].get(identity, [])
        seen = [found[identity] for found in cold if identity in found]
        timings = seen or [found[identity] for found in warm if identity in found]
        records.append(
            IdentityRecord(
                *identity,
                cold=dict(collections.Counter(load.status.value for load in in_cold)),
                warm=dict(collections.Counter(load.status.value for load in in_warm)),
                ms=timed([math.fsum(load.ms for load in loads) for loads in timings]),
                samples_seen=sum(identity in one or identity in two for one, two in zip(cold, warm, strict=True)),
                phases=_median_phases([[load.phases for load in loads if load.phases] for loads in timings]),
                generated_source_bytes=max(load.generated_source_bytes for loads in timings for load in loads),
                causes=tuple(dict.fromkeys(load.cause for load in in_cold if load.cause)),
                sites=tuple(dict.fromkeys(load.site for load in in_cold or in_warm if load.site)),
                launches=launches[identity],
            )
        )
    return tuple(records)


def _median_phases(samples: Sequence[Sequence[Phases]]) -> Phases | None:
    """Each phase summed over the loads of a sample, as the median over the samples in which it is known."""

    def median(part: Callable[[Phases], float | None]) -> float | None:
        known = [[value for value in map(part, loads) if value is not None] for loads in samples]
        sums = [math.fsum(values) for values in known if values]
        return statistics.median(sums) if sums else None

    medians: dict[str, Any] = {
        field.name: median(operator.attrgetter(field.name)) for field in dataclasses.fields(Phases)
    }
    return Phases(**medians) if any(samples) else None


def exact_facts(summary: Summary) -> list[tuple[str, int]]:
    """The figures of a summary that are counted, not timed, by name."""
    return [(field.name, getattr(summary, field.name)) for field in dataclasses.fields(Summary) if field.type == "int"]


def exact_differences(samples: Sequence[Sample]) -> list[Notice]:
    """A warning for every exact fact that is not the same in all complete samples."""
    measured = complete_samples(samples)
    summaries = [summary for sample in samples if (summary := summarise([sample]))]
    notices = []
    for facts in zip(*map(exact_facts, summaries), strict=True):
        name = facts[0][0]
        if len(set(facts)) > 1:
            shown = ", ".join(str(value) for _, value in facts)
            text = f"{name} differs between samples ({shown}); the report counts the first complete one"
            notices.append(Notice(f"{name.replace('_', '-')}-differ-between-samples", text))
    identity_of = identity_resolver(sample.cold for sample in measured)
    built = [{identity_of(load) for load in builds_of(sample.cold)} for sample in measured]
    unstable = sorted({identity.name for found in built for identity in found ^ built[0]})
    if unstable:
        text = f"what was built differs between samples: other hashes, devices or block_dims of {_listed(unstable, 5)}"
        notices.append(Notice("built-identities-differ-between-samples", text))
    return notices


@dataclass(frozen=True)
class Build:
    """A build in the run it belongs to: position among the builds of the run, position of its process, and both."""

    number: int
    owner: int
    process: Process
    load: Load


def _ordered_builds(run: Run) -> list[Build]:
    """Builds by process, within one by start; those without a known start keep their order, after the others."""
    ordered = [
        (owner, process, load)
        for owner, process in enumerate(run.processes)
        for load in sorted(process.loads, key=lambda load: float("inf") if load.start_ms is None else load.start_ms)
        if load.is_build
    ]
    return [Build(number, *parts) for number, parts in enumerate(ordered)]


def _build_slots(builds: Iterable[Build]) -> dict[tuple[object, ...], list[Build]]:
    """Builds that are each other's rebuilds: of one module in one process, for the same device and block_dim.

    Where the block_dim is not known (a line of the output), only the same hash again is a proven rebuild: Warp's hash
    holds the block_dim.
    """
    slots: dict[tuple[object, ...], list[Build]] = {}
    for build in builds:
        load = build.load
        known: object = load.block_dim if load.block_dim is not None else load.hash or build
        slots.setdefault((build.owner, load.name, load.device, known), []).append(build)
    return slots


def _block_dims(builds: Iterable[Build]) -> dict[tuple[int, str, str], dict[int, list[Build]]]:
    """Builds of one module on one device in one process (its position), by block_dim."""
    modules: dict[tuple[int, str, str], dict[int, list[Build]]] = {}
    for build in builds:
        load = build.load
        if load.block_dim is not None:
            by_dim = modules.setdefault((build.owner, load.name, load.device), {})
            by_dim.setdefault(load.block_dim, []).append(build)
    return modules


def _by_identity(run: Run, identity_of: Callable[[Load], Identity]) -> dict[Identity, list[Load]]:
    found: dict[Identity, list[Load]] = {}
    for load in loads_of(run):
        found.setdefault(identity_of(load), []).append(load)
    return found


def _compile_elapsed_ms(sample: Measured) -> float | None:
    return None if sample.warm.builds else sample.cold.wall_ms - sample.warm.wall_ms


def _build_span_ms(run: Run) -> float:
    """Wall time during which anything was hashed, built or loaded for a load."""
    placed = []
    unplaced = 0.0
    for load in loads_of(run):
        if interval := _timer_interval(load):
            placed.append((interval[0] - load.hash_ms, interval[1]))
        else:
            unplaced += load.hash_ms + load.ms
    span = union_ms(placed)
    # When a load known from the output happened is not known, only how long it took: it is taken to stand alone.
    return span + min(unplaced, max(0.0, run.wall_ms - span))


def _compile_share(run: Run) -> float:
    return _build_span_ms(run) / run.wall_ms if run.wall_ms > 0 else 0.0


def _timer_interval(load: Load) -> tuple[float, float] | None:
    return None if load.start_ms is None or load.end_ms is None else (load.start_ms, load.end_ms)


def _overlap_factor(run: Run) -> float | None:
    """How far the timers of builds count the same time twice; 1.0 is not at all, None without builds."""
    summed = covered = 0.0
    for process in run.processes:
        builds = [load for load in process.loads if load.is_build]
        intervals = [_timer_interval(load) for load in builds]
        summed += math.fsum(load.ms for load in builds)
        covered += union_ms(interval for interval in intervals if interval)
        covered += math.fsum(load.ms for load, interval in zip(builds, intervals, strict=True) if interval is None)
    return summed / covered if covered else None


# Findings: every rule looks at one sample and says what it found; a build is credited to the first rule that claims it.


@dataclass(frozen=True)
class Case:
    """What a rule looks at: a complete sample, the builds of its cold run in order, and what went unseen in any run."""

    sample: Measured
    builds: tuple[Build, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class Claim:
    """A finding and the numbers of the builds that it accounts for; `avoidable_ms` may count only those."""

    finding: Finding
    credited: frozenset[int] = frozenset()


Rule = Callable[[Case, frozenset[int]], list[Claim]]


def findings(samples: Sequence[Sample], gaps: Sequence[Gap]) -> tuple[Finding, ...]:
    """What the complete samples show: redundant work first, by what it would save, then hints by what they cost.

    Costs are those of one sample, the middle one by cold module time of those with the exact facts of the first, so
    that the avoidable times of all findings together stay within `cold_module_ms`.
    """
    measured = complete_samples(samples)
    if not measured:
        return ()
    sample = _typical(samples)
    case = Case(sample, tuple(_ordered_builds(sample.cold)), tuple(gaps))
    uncredited = frozenset(build.number for build in case.builds)
    found = []
    for rule in RULES:
        for claim in rule(case, uncredited):
            uncredited -= claim.credited
            found.append(claim.finding)
    return tuple(sorted(found, key=_rank))


def _rank(finding: Finding) -> tuple[bool, bool, float, float]:
    avoidable = finding.avoidable_ms
    return (finding.kind is FindingKind.HINT, avoidable is None, -(avoidable or 0.0), -finding.cost_ms)


def _typical(samples: Sequence[Sample]) -> Measured:
    summaries = [summary for sample in samples if (summary := summarise([sample]))]
    pairs = zip(summaries, complete_samples(samples), strict=True)
    alike = [pair for pair in pairs if exact_facts(pair[0]) == exact_facts(summaries[0])]
    alike.sort(key=lambda pair: pair[0].cold_module_ms.median)
    return alike[(len(alike) - 1) // 2][1]


def _find_rebuilds(case: Case, uncredited: frozenset[int]) -> list[Claim]:
    """One finding a module, device and block_dim; all builds but the dearest of each process need not have happened."""
    modules: dict[tuple[str, str, int | None], list[list[Build]]] = {}
    for slot in _build_slots(case.builds).values():
        load = slot[0].load
        if any(build.number in uncredited for build in slot[1:]):
            modules.setdefault((load.name, load.device, load.block_dim), []).append(slot)
    claims = []
    for (name, device, block_dim), slots in modules.items():
        again = [build for slot in slots for build in slot[1:] if build.number in uncredited]
        cost = math.fsum(build.load.ms for build in again)
        spare = math.fsum(_total_ms(slot) - max(build.load.ms for build in slot) for slot in slots)
        hashes = {build.load.hash for slot in slots for build in slot}
        changed = len(hashes) > 1 or None in hashes
        why = "it changed after it was first loaded" if changed else "it was unloaded, or its cache cleared or off"
        count = sum(map(len, slots))
        finding = _finding(
            Mechanism.REBUILD,
            FindingKind.REDUNDANT,
            module=(name, device, block_dim),
            cost_ms=cost,
            avoidable_ms=min(cost, spare),
            evidence=(
                f"build {number} of {len(slot)}: {_how(build.load)}"
                for slot in slots
                for number, build in enumerate(slot, 1)
            ),
            where=_first_site(build.load for build in again),
            text=f"{name} was built {count} times on {device}{_at_dim(block_dim)} in"
            f" {plural(len(slots), 'process', 'processes')}, {_hashes_seen(hashes)}: {why}.",
        )
        claims.append(Claim(finding, frozenset(build.number for build in again)))
    return claims


def _find_unproven_rebuilds(case: Case, uncredited: frozenset[int]) -> list[Claim]:
    """Builds known from the output only, which shows no block_dim."""
    modules: dict[tuple[int, str, str], list[Build]] = {}
    for build in case.builds:
        if build.load.block_dim is None and build.number in uncredited:
            modules.setdefault((build.owner, build.load.name, build.load.device), []).append(build)
    claims = []
    for (_, name, device), builds in modules.items():
        hashes = {build.load.hash for build in builds}
        if len(hashes) > 1:
            finding = _finding(
                Mechanism.UNPROVEN_REBUILD,
                FindingKind.HINT,
                module=(name, device, None),
                cost_ms=_total_ms(builds[1:]),
                evidence=[_how(build.load) for build in builds],
                text=f"{name} was built {len(builds)} times on {device}, {_hashes_seen(hashes)}; the output shows no"
                " block_dim, so whether it changed or was asked for at several block_dims cannot be told.",
            )
            claims.append(Claim(finding))
    return claims


def _find_never_launched(case: Case, uncredited: frozenset[int]) -> list[Claim]:
    """Builds at a block_dim without a launch, of modules that are launched at another one."""
    modules: dict[tuple[str, str, int], list[Build]] = {}
    launched_at: dict[tuple[str, str, int], set[int]] = {}
    for (owner, name, device), by_dim in _block_dims(case.builds).items():
        if len(by_dim) < 2 or not _launches_seen(case, owner):
            continue
        launched = _launched(case.sample.cold, owner, name, device)
        for block_dim in sorted(by_dim.keys() - launched.keys()) if launched else ():
            builds = [build for build in by_dim[block_dim] if build.number in uncredited]
            modules.setdefault((name, device, block_dim), []).extend(builds)
            launched_at.setdefault((name, device, block_dim), set()).update(launched)
    unused = frozenset(build.number for builds in modules.values() for build in builds)
    claims = []
    for (name, device, block_dim), builds in modules.items():
        cost = _total_ms(builds)
        moved = math.fsum(_header_ms(build) for build in builds if _header_is_shared(build, case, unused))
        others = _listed([str(dim) for dim in sorted(launched_at[name, device, block_dim])], 8)
        finding = _finding(
            Mechanism.VARIANT_NEVER_LAUNCHED,
            FindingKind.REDUNDANT,
            module=(name, device, block_dim),
            cost_ms=cost,
            avoidable_ms=max(0.0, cost - moved),
            evidence=[*(_how(build.load) for build in builds), f"launched on {device} at block_dim {others} only"],
            where=_first_site(build.load for build in builds),
            text=f"{name} was built on {device} at block_dim {block_dim}, and nothing was launched at it.",
        )
        claims.append(Claim(finding, frozenset(build.number for build in builds)))
    return claims


def _find_variants(case: Case, uncredited: frozenset[int]) -> list[Claim]:
    """Modules built at several block_dims; redundant where a kernel is built at one at which it is never launched."""
    modules: dict[tuple[str, str], list[tuple[int, dict[int, list[Build]]]]] = {}
    for (owner, name, device), by_dim in _block_dims(case.builds).items():
        kept = {dim: builds for dim, builds in by_dim.items() if builds[0].number in uncredited}
        if len(kept) > 1:
            modules.setdefault((name, device), []).append((owner, kept))
    claims = []
    for (name, device), groups in modules.items():
        further = []
        evidence = []
        redundant = False
        for owner, by_dim in groups:
            launched = _launched(case.sample.cold, owner, name, device)
            kernels = [launched.get(dim, collections.Counter()) for dim in by_dim]
            if _launches_seen(case, owner):
                redundant |= any(used.keys() != kernels[0].keys() for used in kernels)
            further += sorted((builds[0] for builds in by_dim.values()), key=lambda build: build.number)[1:]
            for (dim, builds), used in zip(by_dim.items(), kernels, strict=True):
                launches = plural(used.total(), "launch", "launches")
                evidence.append(f"block_dim {dim}: {_how(builds[0].load)}, {launches} of {_listed(sorted(used), 4)}")
        dims = _listed([str(dim) for dim in sorted({dim for _, by_dim in groups for dim in by_dim})], 8)
        unused = "; some were launched at one of these only" if redundant else ""
        finding = _finding(
            Mechanism.VARIANT,
            FindingKind.REDUNDANT if redundant else FindingKind.HINT,
            module=(name, device, None),
            cost_ms=_total_ms(further),
            evidence=evidence,
            where=_first_site(build.load for build in further),
            text=f"{name} was built on {device} at block_dim {dims}, each time with all of its kernels{unused}.",
        )
        claims.append(Claim(finding, frozenset(build.number for build in further)))
    return claims


def _find_warm_builds(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    """What the concluding warm run built, and what the program did to its caches."""
    warm = case.sample.warm
    builds = builds_of(warm)
    if not builds:
        return []
    identity_of = identity_resolver([case.sample.cold, warm])
    cold_identities = {identity_of(load) for load in builds_of(case.sample.cold)}
    again = sum(identity_of(load) in cold_identities for load in builds)
    evidence = []
    if again:
        evidence.append(f"{again} with the hash that the cold run built: the cache was not reused")
    if again < len(builds):
        evidence.append(f"{len(builds) - again} with a hash that the cold run did not build: it differs between runs")
    events = [event for process in warm.processes for event in process.cache_events]
    evidence += dict.fromkeys(map(_event_line, events))
    evidence += [_load_line(load) for load in builds]
    return [
        Claim(
            _finding(
                Mechanism.WARM_BUILD,
                FindingKind.REDUNDANT,
                cost_ms=math.fsum(load.ms for load in builds),
                evidence=evidence,
                where=_first_site([*events, *builds]),
                text=f"With the caches filled, the program still built {plural(len(builds), 'module')}:"
                " every start pays for them again.",
            )
        )
    ]


def _find_second_run_builds(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    builds = builds_of(case.sample.second)
    if not builds or case.sample.warm.builds:
        return []
    return [
        Claim(
            _finding(
                Mechanism.SECOND_RUN_BUILD,
                FindingKind.HINT,
                cost_ms=math.fsum(load.ms for load in builds),
                evidence=map(_load_line, builds),
                where=_first_site(builds),
                text=f"The second run still built {plural(len(builds), 'module')}, the third none: it took two starts"
                " to fill the cache.",
            )
        )
    ]


def _find_cached_load_cost(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    """Thousands of small loads, or slow ones, where nothing needs compiling any more."""
    warm = case.sample.warm
    loads = [
        (process.path, load)
        for process in warm.processes
        for load in process.loads
        if load.status is Status.CACHED and load.kind is LoadKind.JIT
    ]
    cost = math.fsum(load.ms + load.hash_ms for _, load in loads)
    if len(loads) < MANY_CACHED_LOADS and not _is_notable(cost, warm):
        return []
    distinct = len({(path, load.name, load.hash, load.device, load.block_dim) for path, load in loads})
    families: dict[str, list[float]] = {}
    for _, load in loads:
        families.setdefault(f"{family(load.name)} on {load.device}", []).append(load.ms + load.hash_ms)
    dearest = sorted(families.items(), key=lambda item: -math.fsum(item[1]))
    sites = collections.Counter(load.site for _, load in loads if load.site)
    return [
        Claim(
            _finding(
                Mechanism.CACHED_LOAD_COST,
                FindingKind.REDUNDANT if distinct * 2 <= len(loads) else FindingKind.HINT,
                cost_ms=cost,
                evidence=[f"{name}: {plural(len(ms), 'load')}, {duration(math.fsum(ms))}" for name, ms in dearest],
                where=sites.most_common(1)[0][0] if sites else None,
                text=f"With the caches filled, {plural(len(loads), 'load')} of"
                f" {plural(distinct, 'identity', 'identities')} took {duration(cost)}.",
            )
        )
    ]


def _find_hashing_cost(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    warm = case.sample.warm
    hashings = sum(process.hashings for process in warm.processes)
    cost = math.fsum(process.hash_ms for process in warm.processes) - math.fsum(load.hash_ms for load in loads_of(warm))
    if not _is_notable(cost, warm):
        return []
    return [
        Claim(
            _finding(
                Mechanism.HASHING_COST,
                FindingKind.HINT,
                cost_ms=cost,
                evidence=[f"{plural(hashings, 'hashing')}, {plural(len(loads_of(warm)), 'load')} in the warm run"],
                text=f"Hashing modules that were already loaded took {duration(cost)} of the warm run: kernels or"
                " functions are defined again and again.",
            )
        )
    ]


def _find_overlap(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    factor = _overlap_factor(case.sample.cold)
    if factor is None or factor <= OVERLAP_FACTOR:
        return []
    summed = _total_ms(case.builds)
    threads = len({(build.owner, build.load.thread) for build in case.builds})
    return [
        Claim(
            _finding(
                Mechanism.BUILDS_OVERLAPPED,
                FindingKind.HINT,
                cost_ms=summed - summed / factor,
                evidence=[
                    f"timers add up to {duration(summed)} and cover {duration(summed / factor)}: factor {factor:.2f}",
                    f"builds ran on {plural(threads, 'thread')}",
                ],
                where=_first_site(build.load for build in case.builds if build.load.workers),
                text="BUILDS OVERLAPPED: each timer also counts its wait for the other builds, so judge a change by"
                " the clock (compile elapsed, build span), not by the sum of the timers.",
            )
        )
    ]


def _find_link_dominated(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    modules: dict[tuple[str, str], list[tuple[Load, float]]] = {}
    for load in (build.load for build in case.builds):
        if load.phases and load.phases.lto_ms > LINK_DOMINATED_SHARE * load.ms:
            modules.setdefault((load.name, load.device), []).append((load, load.phases.lto_ms))
    claims = []
    for (name, device), builds in modules.items():
        linking = math.fsum(lto_ms for _, lto_ms in builds)
        total = math.fsum(load.ms for load, _ in builds)
        artifacts = [artifact for load, _ in builds for artifact in load.lto]
        finding = _finding(
            Mechanism.LINK_DOMINATED,
            FindingKind.HINT,
            module=(name, device, None),
            cost_ms=linking,
            evidence=[
                *(f"{_how(load)}; {duration(lto_ms)} of it linking" for load, lto_ms in builds),
                *(f"{artifact.symbol}: {duration(artifact.ms)}, {artifact.bytes:,} bytes" for artifact in artifacts),
            ],
            where=_first_site(load for load, _ in builds),
            text=f"Link-time optimisation of {plural(len(artifacts), 'artifact')} took {duration(linking)} of the"
            f" {duration(total)} that building {name} on {device} took.",
        )
        claims.append(Claim(finding))
    return claims


def _find_errors(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    modules: dict[tuple[str, str], tuple[list[Load], list[Load]]] = {}
    for position, run in enumerate((case.sample.cold, case.sample.warm)):
        for load in loads_of(run):
            if load.status is Status.ERROR:
                modules.setdefault((load.name, load.device), ([], []))[position].append(load)
    claims = []
    for (name, device), (cold, warm) in modules.items():
        errors = cold or warm
        again = "the warm run failed at it too" if cold and warm else "not in the warm run" if cold else ""
        finding = _finding(
            Mechanism.BUILD_ERROR,
            FindingKind.REDUNDANT,
            module=(name, device, errors[0].block_dim),
            cost_ms=math.fsum(load.ms for load in errors),
            evidence=[*map(_error_line, errors), again],
            where=_first_site(errors),
            text=f"{plural(len(errors), 'load')} of {name} on {device} ended with an error in the"
            f" {'cold' if cold else 'warm'} run.",
        )
        claims.append(Claim(finding))
    return claims


def _find_built_per_process(case: Case, _uncredited: frozenset[int]) -> list[Claim]:
    identity_of = identity_resolver([case.sample.cold])
    identities: dict[Identity, dict[int, float]] = {}
    for build in case.builds:
        owners = identities.setdefault(identity_of(build.load), {})
        owners[build.owner] = max(build.load.ms, owners.get(build.owner, 0.0))
    shared = {identity: owners for identity, owners in identities.items() if identity.hash and len(owners) > 1}
    if not shared:
        return []
    cost = {identity: sum(owners.values()) - max(owners.values()) for identity, owners in shared.items()}
    return [
        Claim(
            _finding(
                Mechanism.BUILT_PER_PROCESS,
                FindingKind.HINT,
                cost_ms=math.fsum(cost.values()),
                evidence=[
                    f"{identity.name} {_short(identity.hash)} on {identity.device}: built by {len(shared[identity])}"
                    f" processes, {duration(ms)} beyond the first"
                    for identity, ms in sorted(cost.items(), key=lambda item: -item[1])
                ],
                text=f"{plural(len(shared), 'identity was', 'identities were')} built by more than one process: with"
                " the cache filled once before these start, they load it instead.",
            )
        )
    ]


# The order decides which rule is credited with a build that several could claim.
RULES: tuple[Rule, ...] = (
    _find_rebuilds,
    _find_unproven_rebuilds,
    _find_never_launched,
    _find_variants,
    _find_warm_builds,
    _find_second_run_builds,
    _find_cached_load_cost,
    _find_hashing_cost,
    _find_overlap,
    _find_link_dominated,
    _find_errors,
    _find_built_per_process,
)


def _finding(
    mechanism: Mechanism,
    kind: FindingKind,
    *,
    module: tuple[str | None, str | None, int | None] = (None, None, None),
    cost_ms: float,
    avoidable_ms: float | None = None,
    evidence: Iterable[str],
    where: Site | None = None,
    text: str,
) -> Finding:
    """A finding about `module` (name, device, block_dim; None is any), or about the program as a whole."""
    name, device, block_dim = module
    shown = _limited(evidence)
    return Finding(mechanism.value, kind, name, device, block_dim, cost_ms, avoidable_ms, shown, where, text, see=None)


def _first_site(found: Iterable[Load | CacheEvent]) -> Site | None:
    return next((item.site for item in found if item.site), None)


def _launched(run: Run, owner: int, module: str, device: str) -> dict[int, collections.Counter[str]]:
    """Launches of a module on a device by block_dim and kernel key, in a process and what it forked."""
    path = run.processes[owner].path
    launched: dict[int, collections.Counter[str]] = {}
    for position, process in enumerate(run.processes):
        if position != owner and not (process.how == "fork" and process.path.startswith(path + ".")):
            continue
        for entry in process.launches.entries:
            kernel = process.launches.kernels[entry.kernel]
            if kernel.module == module and kernel.device == device:
                launched.setdefault(kernel.block_dim, collections.Counter())[kernel.key] += entry.count
    return launched


def _launches_seen(case: Case, owner: int) -> bool:
    """Whether every launch of the process (and of what it forked) is known, so that "never launched" can be said."""
    processes = case.sample.cold.processes
    path = processes[owner].path
    kin = [process for process in processes if process.path == path or process.path.startswith(path + ".")]
    pids = {process.pid for process in kin}
    hidden = any(gap.reason in LAUNCHES_HIDDEN_BY and (gap.pid is None or gap.pid in pids) for gap in case.gaps)
    return not hidden and all(
        process.end is not ProcessEnd.UNRECORDED and not process.launches.graph_replays_unknown for process in kin
    )


LAUNCHES_HIDDEN_BY = frozenset(
    {
        GapReason.HOOK_FAILED,
        GapReason.UNSUPPORTED_WARP,
        GapReason.RECORD_TRUNCATED,
        GapReason.LAUNCHES_NOT_RECORDED,
        GapReason.GRAPH_CONTENT_UNSEEN,
    }
)


def _header_ms(build: Build) -> float:
    return (build.load.phases and build.load.phases.header_ms) or 0.0


def _header_is_shared(build: Build, case: Case, unused: frozenset[int]) -> bool:
    """Whether another build of the process needs the same precompiled header, and would pay for it instead.

    On the CPU there is one a block_dim (Warp 1.13 and up), on CUDA one a process.
    """
    for other in case.builds:
        if other.owner != build.owner or other.number in unused:
            continue
        on_cpu = build.load.device == "cpu", other.load.device == "cpu"
        if on_cpu == (False, False) or (all(on_cpu) and other.load.block_dim == build.load.block_dim):
            return True
    return False


def _is_notable(ms: float, run: Run) -> bool:
    return ms >= NOTABLE_MS and ms >= NOTABLE_SHARE * run.wall_ms


def _total_ms(builds: Iterable[Build]) -> float:
    return math.fsum(build.load.ms for build in builds)


def _short(module_hash: str | None) -> str:
    return module_hash[:7] if module_hash else "-"


def _at_dim(block_dim: int | None) -> str:
    return "" if block_dim is None else f" at block_dim {block_dim}"


def _hashes_seen(hashes: set[str | None]) -> str:
    if None in hashes:
        return "its hashes are not known"
    return "with the same hash" if len(hashes) == 1 else f"with {len(hashes)} different hashes"


def _listed(words: Sequence[str], limit: int) -> str:
    """`a, b, c and 4 more`; the words stay apart from what counts them."""
    shown = ", ".join(words[:limit])
    return f"{shown} and {len(words) - limit} more" if len(words) > limit else shown or "nothing"


def _limited(lines: Iterable[str]) -> tuple[str, ...]:
    kept = [line for line in lines if line]
    return (*kept[:MAX_EVIDENCE], f"and {len(kept) - MAX_EVIDENCE} more") if len(kept) > MAX_EVIDENCE else tuple(kept)


def _load_line(load: Load) -> str:
    """A load in one line: name, device, block_dim, then as `_how`."""
    return f"{load.name} on {load.device}{_at_dim(load.block_dim)}: {_how(load)}"


def _how(load: Load) -> str:
    """Hash and time of a load, and who asked for it."""
    asked = f", asked for at {place(load.site)}" if load.site else ""
    workers = f" with {plural(load.workers, 'worker')}" if load.workers else ""
    source = ", known from the output only" if load.source is Source.LOG else ""
    return f"hash {_short(load.hash)}, {duration(load.ms)}{asked}{workers}{source}"


def _error_line(load: Load) -> str:
    message = (load.error or "").strip().splitlines()
    return f"{_load_line(load)}; {message[0] if message else 'no message'}"


def _event_line(event: CacheEvent) -> str:
    path = f" of {event.path}" if event.path else ""
    asked = f" at {place(event.site)}" if event.site else ""
    return f"{event.kind.value}{path}{asked}"


# ---------------------------------------------------------------------------------------------------------------------
# Comparison
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Rendering
# ---------------------------------------------------------------------------------------------------------------------


MAX_LINES = 120
MAX_CHARACTERS = 10_000
WIDTH = 116
SMALL_SHARE = 0.10
# Rows a section shows: the first number with which the whole text stays within its bounds.
ROW_LIMITS = (40, 25, 16, 10, 6, 4, 2)


def render_report(report: Report, *, stderr_tail: Sequence[str] = (), saved_to: str | None = None) -> str:
    """A report as text of at most `MAX_LINES` lines and `MAX_CHARACTERS` characters, without colour.

    `stderr_tail` holds the last lines that a failed run wrote to its standard error; `saved_to` is the file that the
    report was saved to.
    """
    text = ""
    for rows in ROW_LIMITS:
        lines = [_clip(printable(line), WIDTH).rstrip() for line in _report_lines(report, rows, stderr_tail, saved_to)]
        text = "\n".join(lines) + "\n"
        if len(lines) <= MAX_LINES and len(text) <= MAX_CHARACTERS:
            break
    return text


def _report_lines(report: Report, rows: int, stderr_tail: Sequence[str], saved_to: str | None) -> list[str]:
    sections = [
        [*_headline(report), *_failure_lines(report, rows, stderr_tail), *_coverage_lines(report, rows)],
        _subject_lines(report),
        _finding_lines(report, rows),
        _figure_lines(report),
        _module_lines(report, rows),
        _process_lines(report, rows),
        _cache_event_lines(report, rows),
        _warning_lines(report.warnings, rows),
        [f"Everything else is in {saved_to}." if saved_to else "Everything else: --json FILE."],
    ]
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if lines and section else section
    return lines


def printable(text: str) -> str:
    """The text with everything that could steer a terminal (control and format characters) written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def with_mad(figure: Timed) -> str:
    """A median with its deviation, in the same unit, and the number of values: `12.4 s (MAD 0.20 s, n=3)`."""
    n = len(figure.values)
    median = duration(figure.median)
    mad = f"{figure.mad / 1000:.2f} s" if median.endswith(" s") else duration(figure.mad)
    return f"{median} ({f'MAD {mad}, ' if n > 1 else ''}n={n})"


def table(header: Sequence[str], align: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, `align` holds an `l` or `r` for each; the first one gives way where the width is too small."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[0] = max(12, min(widths[0], WIDTH - sum(widths[1:]) - 2 * len(widths)))
    lines = []
    for row in cells:
        row[0] = _clip_middle(row[0], widths[0])
        aligned = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ]
        lines.append("  " + "  ".join(aligned).rstrip())
    return lines


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _clip_middle(text: str, width: int) -> str:
    head = (width - 3) // 2
    return text if len(text) <= width else f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def _wrapped(text: str, indent: str, most: int) -> list[str]:
    """The text in at most `most` lines; a newline in it is a space, every other control character an escape."""
    clean = printable(" ".join(text.split()))
    return textwrap.wrap(
        clean, WIDTH, initial_indent=indent, subsequent_indent=indent, max_lines=most, placeholder=" ..."
    )


def _shown(items: Sequence[T], rows: int, noun: str) -> tuple[Sequence[T], list[str]]:
    """The first rows, and a line that counts those left out."""
    hidden = len(items) - rows
    return items[:rows], [f"  ... and {hidden:,} more {noun}"] if hidden > 0 else []


def _headline(report: Report) -> list[str]:
    summary = report.summary
    if summary is None:
        return ["No sample is complete, so nothing can be said about a cold start yet."]
    wall, span, share = with_mad(summary.cold_wall_ms), with_mad(summary.build_span_ms), summary.compile_share.median
    if share < SMALL_SHARE:
        first = f"Compilation is not what you wait for: {share:.1%} of a cold start of {wall}, {span}."
    else:
        first = f"Cold start {wall}, {share:.0%} of it compiling and loading modules: {span}."
    warm = f"Warm start {with_mad(summary.warm_wall_ms)}"
    warm += f", still building {plural(summary.warm_builds, 'module')}" if summary.warm_builds else ""
    warm += f"; cold minus warm {with_mad(summary.compile_elapsed_ms)}" if summary.compile_elapsed_ms else ""
    done = len(complete_samples(report.samples))
    count = [] if done == report.options.samples else [f"Only {done} of {report.options.samples} samples complete."]
    return [first, warm + ".", *count]


def run_failure(run: Run, options: Options) -> str | None:
    """How a run failed, as the end of a sentence; None where it ended as expected."""
    if run.exit.timed_out:
        limit = f" of {duration(options.timeout_s * 1000)}" if options.timeout_s else ""
        return f"had not finished at the time limit{limit}"
    if run.exit.signal:
        return f"was killed by {run.exit.signal}"
    if run.exit.code is None:
        return "did not finish"
    if run.exit.code != options.expect_exit:
        expected = f" instead of {options.expect_exit}" if options.expect_exit else ""
        return f"ended with exit code {run.exit.code}{expected}"
    return None


def _failure_lines(report: Report, rows: int, stderr_tail: Sequence[str]) -> list[str]:
    """The first run that failed, what it had done by then, and what it wrote last."""
    runs = [(number, run) for number, one in enumerate(report.samples, 1) for run in (one.cold, one.warm, one.settle)]
    failed = [(number, run, how) for number, run in runs if run and (how := run_failure(run, report.options))]
    if not failed:
        return []
    number, run, how = failed[0]
    after = f"after {duration(run.wall_ms)} and {plural(run.builds, 'build')}"
    lines = [f"FAILED: the {run.kind.value} run of sample {number} {how}, {after}."]
    errors, more = _shown([load for load in loads_of(run) if load.status is Status.ERROR], min(rows, 6), "failed loads")
    for load in errors:
        lines += _wrapped(f"module load failed: {_from_here(_error_line(load), report)}", "  ", 2)
    lines += more
    if stderr_tail:
        kept = [line.rstrip() for line in stderr_tail][-min(rows, 15) :]
        lines += ["  The last lines of its standard error:", *(f"  | {line}" for line in kept)]
    return lines


def _coverage_lines(report: Report, rows: int) -> list[str]:
    coverage = report.coverage
    if coverage.gaps:
        shown, more = _shown(coverage.gaps, rows, "gaps")
        return [
            f"NOT EVERYTHING WAS SEEN ({plural(len(coverage.gaps), 'gap')}): counts and times may be too low.",
            *(f"  - {gap.reason.value}{f' (pid {gap.pid})' if gap.pid else ''}: {gap.detail}" for gap in shown),
            *more,
        ]
    if report.summary is None:
        return []
    unclean = coverage.processes - coverage.ended_cleanly
    ends = f"; {unclean} ended without saying how" if unclean else ""
    used = f"{coverage.used_warp} of them used Warp" if coverage.processes > 1 else "Warp was used"
    used = used if coverage.used_warp else "none used Warp"
    return [f"Nothing went unseen: {plural(coverage.processes, 'process', 'processes')}, {used}{ends}."]


def _subject_lines(report: Report) -> list[str]:
    environment = report.environment
    program = shlex.join(report.command)
    known = [
        ("Warp", environment.warp),
        ("CUDA toolkit", environment.cuda_toolkit),
        ("CUDA driver", environment.cuda_driver),
        ("Python", environment.target_python),
    ]
    parts = [f"{name} {value}" for name, value in known if value]
    parts += [_clip(_listed([device.alias for device in environment.devices], 4), 40)] if environment.devices else []
    parts += [environment.cpu_model] if environment.cpu_model else []
    parts += [plural(environment.cores, "core")] if environment.cores else []
    label = [f"Label:    {report.label}"] if report.label else []
    return [*label, f"Program:  {program}", *([f"Measured: {', '.join(parts)}"] if parts else [])]


def _finding_lines(report: Report, rows: int) -> list[str]:
    if report.summary is None:
        return []
    avoidable = [finding.avoidable_ms for finding in report.findings if finding.avoidable_ms is not None]
    redundant = sum(finding.kind is FindingKind.REDUNDANT for finding in report.findings)
    saved = f"; {duration(math.fsum(avoidable))} of the module time is avoidable" if avoidable else ""
    seen = " in what was seen" if report.coverage.gaps else ""
    lines = [f"FINDINGS  {redundant} redundant, {plural(len(report.findings) - redundant, 'hint')}{saved}"]
    if not redundant:
        lines.append(f"  No redundant work was found{seen}. Whether every module and option is needed was not tested.")
    shown, more = _shown(report.findings, max(2, rows // 2), "findings")
    for number, finding in enumerate(shown, 1):
        known = f", avoidable {duration(finding.avoidable_ms)}" if finding.avoidable_ms is not None else ""
        lines.append(
            f"{number:>3}. {finding.mechanism} ({finding.kind.value}): cost {duration(finding.cost_ms)}{known}"
        )
        lines += _wrapped(_from_here(finding.text, report), "     ", 3)
        lines += [f"     at {_from_here(place(finding.where), report)}"] if finding.where else []
        evidence, rest = _shown(finding.evidence, min(5, rows // 2), "lines of evidence")
        lines += [f"     - {_from_here(line, report)}" for line in evidence]
        lines += [f"   {line}" for line in rest]
    return lines + more


def _from_here(text: str, report: Report) -> str:
    """Paths under the program's directory as seen from it."""
    return text.replace(report.cwd.rstrip("/\\") + "/", "") if len(report.cwd) > 1 else text


def _figure_lines(report: Report) -> list[str]:
    summary = report.summary
    if summary is None:
        return []
    counts = [
        f"{plural(summary.builds, 'build')}, {plural(summary.rebuilds, 'rebuild')}",
        plural(summary.variants, "variant"),
        plural(summary.modules, "module"),
        plural(summary.identities, "identity", "identities"),
        plural(summary.cached_loads, "cached load"),
        plural(summary.error_loads, "error"),
        *([plural(summary.aot_loads, "ahead-of-time load")] if summary.aot_loads else []),
        plural(summary.warm_builds, "warm build"),
        f"{summary.generated_source_bytes:,} bytes of source",
        *(
            [f"{plural(summary.lto_artifacts, 'LTO artifact')} of {summary.lto_bytes:,} bytes"]
            if summary.lto_artifacts
            else []
        ),
        f"{'at least ' if summary.graph_replays_unknown else ''}{plural(summary.launches, 'launch', 'launches')}",
    ]
    times: list[tuple[str, Timed | None]] = [
        ("cold wall", summary.cold_wall_ms),
        ("warm wall", summary.warm_wall_ms),
        ("cold wall minus warm wall", summary.compile_elapsed_ms),
        ("with a module load in progress", summary.build_span_ms),
        ("builds, sum of Warp's timers", summary.cold_module_ms),
        ("  code generation", summary.codegen_ms),
        ("  link-time optimisation", summary.lto_ms),
        ("  native compile", summary.native_compile_ms),
        ("  binary load", summary.load_ms),
        ("hashing before builds", summary.hash_ms),
        ("loads that failed", summary.error_ms),
        ("warm loads, sum of Warp's timers", summary.warm_module_ms),
    ]
    rows = [
        [
            name,
            f"{figure.median:,.1f}",
            f"{figure.mad:,.1f}" if len(figure.values) > 1 else "-",
            f"{len(figure.values)}",
        ]
        for name, figure in times
        if figure and any(figure.values)
    ]
    partial = _parts_unknown(report)
    return [
        *_wrapped("COUNTS  " + ", ".join(counts), "", 3),
        "",
        "TIMES",
        *table(["", "median ms", "MAD", "n"], "lrrr", rows),
        *([f"  The parts of {partial} are not known and not in the rows below the sum."] if partial else []),
        *_where_it_goes(report),
    ]


def _parts_unknown(report: Report) -> str:
    builds = [load for sample in complete_samples(report.samples)[:1] for load in builds_of(sample.cold)]
    unknown = sum(load.phases is None for load in builds)
    return f"{unknown} of {plural(len(builds), 'build')}" if unknown else ""


def _where_it_goes(report: Report) -> list[str]:
    """Phases of the first process that used Warp."""
    for process in (process for sample in complete_samples(report.samples)[:1] for process in sample.cold.processes):
        phases = process.phases
        if phases and process.warp:
            parts = [
                ("interpreter", phases.interpreter_ms),
                ("imports before Warp", phases.imports_before_warp_ms),
                ("import warp", phases.import_warp_ms),
                ("wp.init", phases.init_ms),
                ("loads", phases.loads_ms),
                ("everything else", phases.rest_ms),
            ]
            where = ", ".join(f"{name} {duration(ms)}" for name, ms in parts)
            return _wrapped(f"Process {process.path} in the first cold run: {where}.", "  ", 2)
    return []


def _module_lines(report: Report, rows: int) -> list[str]:
    """A row an identity, dearest module first; kernels of a factory, and many hashes of one module, share a row."""
    families: dict[tuple[str, str, int | None], list[IdentityRecord]] = {}
    for record in report.identities:
        families.setdefault((family(record.name), record.device, record.block_dim), []).append(record)
    totals = _family_times(report)
    cost: dict[str, float] = {}
    found: list[tuple[str, list[str]]] = []
    for key, records in families.items():
        cost[key[0]] = cost.get(key[0], 0.0) + math.fsum(record.ms.median for record in records)
        names = len({record.name for record in records})
        if len(records) >= (3 if names > 1 else 7):
            label = f"{key[0]} ({plural(names, 'module')})" if names > 1 else key[0]
            found.append((key[0], _module_cells(label, f"{len(records)} hashes", records, totals.get(key))))
        else:
            rows_of = [_module_cells(record.name, _short(record.hash), [record], record.ms) for record in records]
            found += [(key[0], cells) for cells in rows_of]
    found.sort(key=lambda row: -cost[row[0]])
    shown, more = _shown([cells for _, cells in found], rows, "rows")
    header = ["MODULE", "hash", "device", "block_dim", "cold", "warm", "ms", "MAD", "n", "source B", "launches"]
    return [*table(header, "llllllrrrrr", shown), *more] if shown else []


def _module_cells(name: str, shown_hash: str, records: Sequence[IdentityRecord], ms: Timed | None) -> list[str]:
    first = records[0]
    timing = [f"{ms.median:,.1f}", f"{ms.mad:,.1f}" if len(ms.values) > 1 else "-", f"{len(ms.values)}"] if ms else None
    return [
        name,
        shown_hash,
        first.device,
        "-" if first.block_dim is None else str(first.block_dim),
        _statuses(record.cold for record in records),
        _statuses(record.warm for record in records),
        *(timing or ["-", "-", "-"]),
        f"{sum(record.generated_source_bytes for record in records):,}",
        f"{sum(record.launches for record in records):,}",
    ]


def _statuses(counts: Iterable[dict[str, int]]) -> str:
    summed: collections.Counter[str] = collections.Counter()
    for count in counts:
        summed.update(count)
    if list(summed.values()) == [1]:
        return next(iter(summed))
    return ", ".join(f"{count:,} {status}" for status, count in summed.items()) or "-"


def _family_times(report: Report) -> dict[tuple[str, str, int | None], Timed]:
    """Time of the loads of each family of modules in the cold runs, over the samples where it appears."""
    measured = complete_samples(report.samples)
    identity_of = identity_resolver(run for sample in measured for run in (sample.cold, sample.warm))
    totals: dict[tuple[str, str, int | None], list[float]] = {}
    for sample in measured:
        in_sample: dict[tuple[str, str, int | None], float] = {}
        for load in loads_of(sample.cold):
            identity = identity_of(load)
            key = (family(identity.name), identity.device, identity.block_dim)
            in_sample[key] = in_sample.get(key, 0.0) + load.ms
        for key, ms in in_sample.items():
            totals.setdefault(key, []).append(ms)
    return {key: timed(values) for key, values in totals.items()}


def _process_lines(report: Report, rows: int) -> list[str]:
    """The processes of the cold run that the counts come from, where there is more than one."""
    processes = [process for sample in complete_samples(report.samples)[:1] for process in sample.cold.processes]
    if len(processes) < 2:
        return []
    cells = []
    for process in processes:
        code = "" if process.exit_code is None else f" {process.exit_code}"
        ended = "not recorded" if process.end is ProcessEnd.UNRECORDED else process.end.value + code
        cells.append(
            [
                _clip(" ".join(process.argv), 44),
                process.path,
                process.how,
                ended,
                process.warp or "-",
                f"{len(process.loads):,}",
                f"{sum(load.is_build for load in process.loads):,}",
                f"{math.fsum(load.ms for load in process.loads):,.1f}",
                f"{process.launches.count:,}",
            ]
        )
    shown, more = _shown(cells, rows, "processes")
    header = ["PROCESS", "path", "start", "end", "Warp", "loads", "builds", "ms", "launches"]
    return [*table(header, "lllllrrrr", shown), *more]


def _cache_event_lines(report: Report, rows: int) -> list[str]:
    events: collections.Counter[str] = collections.Counter()
    for sample in complete_samples(report.samples)[:1]:
        for run in (sample.cold, sample.warm):
            for event in (event for process in run.processes for event in process.cache_events):
                events[f"{run.kind.value} run: {_from_here(_event_line(event), report)}"] += 1
    shown, more = _shown(list(events.items()), rows, "kinds of cache event")
    lines = [f"  - {line}{f', {count:,} times' if count > 1 else ''}" for line, count in shown]
    return ["WHAT THE PROGRAM DID TO ITS CACHES", *lines, *more] if lines else []


def _warning_lines(warnings: Sequence[Notice], rows: int) -> list[str]:
    shown, more = _shown(warnings, rows, "warnings")
    lines = [line for notice in shown for line in _wrapped(f"- {notice.name}: {notice.text}", "  ", 2)]
    return ["WARNINGS", *lines, *more] if lines else []


# ---------------------------------------------------------------------------------------------------------------------
# Recorder: everything between the two markers runs inside the target. Python 3.8 syntax, no imports at start-up that
# the interpreter has not made already.
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Running and isolation
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Commands
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Argument parser and main
# ---------------------------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
