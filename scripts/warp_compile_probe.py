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

import dataclasses
import enum
import sys
import types
import typing
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
    """A module identity over all samples; `cold` and `warm` count its loads by status in the first complete sample."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None
    cold: dict[str, int]
    warm: dict[str, int]
    ms: Timed
    samples_seen: int
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
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{path}: expected {kind.__name__}, found {type(value).__name__}")
    return value


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

# ---------------------------------------------------------------------------------------------------------------------
# Diagnosis: from recorded runs to summary, identities, findings and warnings
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Comparison
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Rendering
# ---------------------------------------------------------------------------------------------------------------------

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
