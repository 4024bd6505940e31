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

import argparse
import base64
import collections
import dataclasses
import enum
import functools
import hashlib
import itertools
import json
import lzma
import math
import os
import shlex
import statistics
import sys
import types
import typing
from array import array
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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

SIGNIFICANCE = Fraction(1, 20)
MIN_JUDGED_SAMPLES = 3
MAX_JUDGED_SAMPLES = 50  # what the exact test is computed for; the first ones of a longer report are judged


def timed(values: Iterable[float]) -> Timed:
    """A timed figure: the median of `values`, their unscaled median absolute deviation from it, and each of them.

    `values` must not be empty.
    """
    kept = tuple(values)
    middle = statistics.median(kept)
    return Timed(middle, statistics.median(abs(value - middle) for value in kept), kept)


def noise_band(baseline: Timed) -> float:
    """How far the median of a candidate may lie from that of the baseline and still be noise, in the same unit."""
    return max(0.01 * abs(baseline.median), 2 * baseline.mad)


def rank_sum_p(lower: Sequence[float], higher: Sequence[float]) -> Fraction:
    """Exact one-sided Mann-Whitney p of "`lower` tends to be smaller than `higher`"; neither may be empty.

    It is the share of all ways to deal the pooled values out to two arms of these sizes in which the first arm gets
    ranks that sum to no more than those of `lower` do. Equal values share their mean rank, so ties are exact too.
    A fraction, so that three values all below three others give 1/20 and not something just above 0.05.
    """
    pooled = sorted((*lower, *higher))
    first = {value: len(pooled) - index for index, value in enumerate(reversed(pooled))}
    last = {value: index for index, value in enumerate(pooled, 1)}
    # Twice the mean rank: the sum of the first and the last place of a value, and so an integer.
    doubled = tuple(first[value] + last[value] for value in pooled)
    ways = _ways_up_to(doubled, len(lower))
    observed = sum(first[value] + last[value] for value in lower)
    return Fraction(ways[observed], ways[-1])


@functools.lru_cache(maxsize=16)
def _ways_up_to(ranks: tuple[int, ...], size: int) -> tuple[int, ...]:
    """At index s: how many ways there are to choose `size` of the ranks with a sum of at most s."""
    # ways[k] is a polynomial whose coefficient at s is the number of ways to choose k ranks that sum to s. Its
    # coefficients are packed into one integer, a field each that no coefficient can overflow: fast without NumPy.
    field_bytes = len(ranks) // 8 + 1
    ways = [1] + [0] * size
    for rank in ranks:
        for chosen in range(size, 0, -1):
            ways[chosen] += ways[chosen - 1] << (8 * field_bytes * rank)
    packed = ways[size].to_bytes(field_bytes * (sum(ranks) + 1), "little")
    fields = (packed[start : start + field_bytes] for start in range(0, len(packed), field_bytes))
    return tuple(itertools.accumulate(int.from_bytes(field, "little") for field in fields))


def needed_samples(lower: Sequence[float], higher: Sequence[float]) -> int | None:
    """Samples an arm with which the test would find a difference like the one seen in four of five attempts.

    Noether's formula for the rank test at 5 %, one-sided, from how often a value of `lower` is below one of `higher`.
    None where the samples do not lean that way at all, or where more than 50 an arm would be needed.
    """
    pairs = [(low, high) for low in lower for high in higher]
    leaning = sum((low < high) + 0.5 * (low == high) for low, high in pairs) / len(pairs)
    if leaning <= 0.5:
        return None
    at_least = max(MIN_JUDGED_SAMPLES, min(len(lower), len(higher)) + 1)
    if leaning == 1:
        return at_least
    quantiles = 1.6449 + 0.8416  # of the normal distribution at 95 % and 80 %
    needed = max(at_least, math.ceil(quantiles**2 / (6 * (leaning - 0.5) ** 2)))
    return needed if needed <= MAX_JUDGED_SAMPLES else None


class Support(str, enum.Enum):
    """What the samples say about two medians. INSIDE: within the band. TOO_FEW: fewer than three in an arm. OVERLAP:
    the samples overlap too much. SUPPORTED: beyond the band, and the exact test agrees."""

    INSIDE = "inside"
    TOO_FEW = "too-few"
    OVERLAP = "overlap"
    SUPPORTED = "supported"


@dataclass(frozen=True)
class TimeEvidence:
    """Two timed figures held against each other: candidate median minus baseline median, the band of the baseline,
    what the samples say, p where the test was made, and how many samples an arm would settle it where they do not."""

    change: float
    band: float
    support: Support
    p: Fraction | None
    needed: int | None


def weigh(baseline: Timed, candidate: Timed) -> TimeEvidence:
    """Decide whether the medians differ by more than noise. A difference needs both: beyond the band, and p <= 1/20."""
    change = candidate.median - baseline.median
    band = noise_band(baseline)
    if abs(change) <= band:
        return TimeEvidence(change, band, Support.INSIDE, None, None)
    lower, higher = (candidate, baseline) if change < 0 else (baseline, candidate)
    p = rank_sum_p(lower.values, higher.values)
    needed = needed_samples(lower.values, higher.values)
    if min(len(baseline.values), len(candidate.values)) < MIN_JUDGED_SAMPLES:
        return TimeEvidence(change, band, Support.TOO_FEW, p, needed)
    if p > SIGNIFICANCE:
        return TimeEvidence(change, band, Support.OVERLAP, p, needed)
    return TimeEvidence(change, band, Support.SUPPORTED, p, None)


def machine_warnings(environment: Environment) -> tuple[Notice, ...]:
    """A warning if more was running than the machine has cores for, before or after the samples."""
    loads = [load for load in (environment.load_average_start, environment.load_average_end) if load is not None]
    if environment.cores is None or not loads or max(loads) <= environment.cores:
        return ()
    text = (
        f"the load average was {max(loads):.1f} on {environment.cores} cores: times include waiting for other programs;"
        " measure again on a quiet machine"
    )
    return (Notice("loaded-machine", text),)


def sample_warnings(values: Sequence[float], what: str) -> tuple[Notice, ...]:
    """Warnings about the samples of one figure, in the order they were taken: a first one unlike the rest, a drift.

    `what` names the figure in the text.
    """
    notices: list[Notice] = []
    if len(values) >= 3:
        rest = timed(values[1:])
        away = values[0] - rest.median
        if abs(away) > max(0.1 * abs(rest.median), 5 * rest.mad):
            side = "above" if away > 0 else "below"
            text = f"the first sample lies {abs(away):,.0f} ms {side} the others ({what}): something was not warmed up"
            notices.append(Notice("first-sample-outlier", text))
    if _drifts(values):
        text = f"{what} drifts from sample to sample: the machine was changing; measure both sides again, interleaved"
        notices.append(Notice("drift", text))
    return tuple(notices)


def _drifts(values: Sequence[float]) -> bool:
    """Whether values rise or fall over the samples by more than 2 %, and by more than chance (Mann's test, 5 %)."""
    half = len(values) // 2
    if len(values) < 5:
        return False
    early, late = statistics.median(values[:half]), statistics.median(values[-half:])
    if abs(late - early) <= 0.02 * abs(early):
        return False
    pairs = list(itertools.combinations(values, 2))
    discordant = sum(after < before for before, after in pairs)
    tied = sum(after == before for before, after in pairs)
    fewest = min(discordant, len(pairs) - discordant - tied) + tied
    orders = _orders_up_to(len(values))
    return fewest < len(orders) and Fraction(2 * orders[fewest], orders[-1]) <= SIGNIFICANCE


@functools.lru_cache(maxsize=64)
def _orders_up_to(size: int) -> tuple[int, ...]:
    """At index i: how many orders of `size` different values have at most i pairs that fall."""
    counts = [1]
    for places in range(2, size + 1):
        wider = [0] * (len(counts) + places - 1)
        for index, count in enumerate(counts):
            for shift in range(places):
                wider[index + shift] += count
        counts = wider
    return tuple(itertools.accumulate(counts))


# ---------------------------------------------------------------------------------------------------------------------
# Diagnosis: from recorded runs to summary, identities, findings and warnings
# ---------------------------------------------------------------------------------------------------------------------

# ---------------------------------------------------------------------------------------------------------------------
# Comparison
# ---------------------------------------------------------------------------------------------------------------------

COMPARISON_SCHEMA = "warp-compile-probe/comparison"
PREFIX_LAUNCHES = 100_000  # how many launches a stream of order DIGEST keeps
CHUNK_LAUNCHES = 1 << 16
DECODER_MEMORY_BYTES = 128 << 20
OVERLAP_LIMIT = 1.15


class Verdict(str, enum.Enum):
    """The answer of `compare`."""

    NOT_COMPARABLE = "not-comparable"
    INVALID = "invalid"
    UNVERIFIED = "unverified"
    TOPOLOGY_CHANGED = "topology-changed"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> ExitCode:
        """What `compare` exits with, unless an option asks for more."""
        return VERDICT_EXIT_CODES.get(self, ExitCode.OK)


VERDICT_EXIT_CODES = {
    Verdict.NOT_COMPARABLE: ExitCode.UNVERIFIED,
    Verdict.INVALID: ExitCode.UNVERIFIED,
    Verdict.UNVERIFIED: ExitCode.UNVERIFIED,
    Verdict.TOPOLOGY_CHANGED: ExitCode.TOPOLOGY_CHANGED,
    Verdict.REGRESSED: ExitCode.REGRESSION,
}


class VerdictReason(str, enum.Enum):
    """Why a verdict was given; a closed set."""

    FIELD_DIFFERS = "field-differs"
    NO_COMPLETE_SAMPLE = "no-complete-sample"
    COVERAGE_GAP = "coverage-gap"
    GRAPH_REPLAYS_UNKNOWN = "graph-replays-unknown"
    KERNEL_CONTENT_UNKNOWN = "kernel-content-unknown"
    SAMPLES_DISAGREE = "samples-disagree"
    LAUNCHES_DIFFER = "launches-differ"
    LAUNCH_ORDER_DIFFERS = "launch-order-differs"
    TIME_SUPPORTED = "time-supported"
    INSIDE_BAND = "inside-band"
    INSIDE_BAND_FACTS_DIFFER = "inside-band-facts-differ"
    TOO_FEW_SAMPLES = "too-few-samples"
    SAMPLES_OVERLAP = "samples-overlap"
    WARM_RUN_MOVED = "warm-run-moved"
    COLD_TIME_REGRESSED = "cold-time-regressed"
    TIME_NOT_JUDGED = "time-not-judged"


class DecidedBy(str, enum.Enum):
    """What was timed. TIMED: Warp's own timers over cold builds. CLOCK: wall time. WARM: loads of the warm run."""

    TIMED = "timed"
    CLOCK = "clock"
    WARM = "warm"


class Metric(str, enum.Enum):
    """The timed figures that are held against each other; the values are the names of the fields of `Summary`."""

    COLD_MODULE = "cold_module_ms"
    COMPILE_ELAPSED = "compile_elapsed_ms"
    BUILD_SPAN = "build_span_ms"
    WARM_MODULE = "warm_module_ms"
    COLD_WALL = "cold_wall_ms"
    WARM_WALL = "warm_wall_ms"
    NATIVE_COMPILE = "native_compile_ms"
    CODEGEN = "codegen_ms"
    LTO = "lto_ms"
    LOAD = "load_ms"
    HASH = "hash_ms"


class Fact(str, enum.Enum):
    """The exact facts that are held against each other; the values are the names of the fields of `Summary`."""

    BUILDS = "builds"
    REBUILDS = "rebuilds"
    VARIANTS = "variants"
    IDENTITIES = "identities"
    GENERATED_SOURCE_BYTES = "generated_source_bytes"
    LTO_ARTIFACTS = "lto_artifacts"
    LTO_BYTES = "lto_bytes"
    WARM_BUILDS = "warm_builds"


class Exact(str, enum.Enum):
    """Which way the exact facts went, all of them together."""

    FEWER = "fewer"
    MORE = "more"
    SAME = "same"
    MIXED = "mixed"


class ComparableField(str, enum.Enum):
    """What must be the same in both reports, or be named by `--allow-different`."""

    COMMAND = "command"
    WARP = "warp"
    TOOLKIT = "toolkit"
    DEVICES = "devices"
    PYTHON = "python"
    HOST = "host"
    OPTIONS = "options"


class LaunchOrder(str, enum.Enum):
    """How far the order of launches was compared, the most first. EXACT: all of it. PREFIX: how often each launch
    happened, and the order of the first 100,000 of a thread. UNORDERED: only how often, since work was shared out
    differently between processes or threads."""

    EXACT = "exact"
    PREFIX = "prefix"
    UNORDERED = "unordered"


@dataclass(frozen=True)
class FieldDifference:
    """A property of the set-up that is not the same in both reports; null is "could not be told"."""

    field: ComparableField
    name: str
    baseline: str | None
    candidate: str | None
    allowed: bool


@dataclass(frozen=True)
class Arm:
    """One of the two reports: what names it, and how many of the samples asked for are complete."""

    label: str | None
    created: str
    command: tuple[str, ...]
    git_commit: str | None
    git_dirty: bool | None
    complete_samples: int
    requested_samples: int


@dataclass(frozen=True)
class LaunchView:
    """A launch as a reader tells it from another; `args` holds the concrete argument types."""

    kernel: str
    module: str
    content: str
    args: tuple[str, ...]
    dim: tuple[int, ...]
    device: str
    block_dim: int
    adjoint: bool


@dataclass(frozen=True)
class Divergence:
    """The first place where two runs launch something else.

    `thread` counts the launching threads of the process, `index` the launches of that thread; `index` is null where
    the difference lies behind the launches that a report keeps. A launch is null where that side had no more.
    """

    run: RunKind
    process: str
    thread: int
    index: int | None
    baseline: LaunchView | None
    candidate: LaunchView | None


@dataclass(frozen=True)
class CountDelta:
    """A launch that happened another number of times."""

    launch: LaunchView
    baseline: int
    candidate: int


@dataclass(frozen=True)
class Topology:
    """Whether both reports launch the same. `equal` is null where that could not be verified; then the first
    divergence, if there is one, is one between samples of the same report."""

    equal: bool | None
    order: LaunchOrder | None
    baseline_launches: int
    candidate_launches: int
    first_divergence: Divergence | None
    counts: tuple[CountDelta, ...]


@dataclass(frozen=True)
class Rename:
    """A kernel of the same content under another name or in another module."""

    content: str
    baseline_kernel: str
    baseline_module: str
    candidate_kernel: str
    candidate_module: str


@dataclass(frozen=True)
class ModuleHashes:
    """The hashes of one module at one device and block_dim; `renamed_to` where the candidate gives it another name."""

    name: str
    device: str
    block_dim: int | None
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    renamed_to: str | None


@dataclass(frozen=True)
class IdentityChanges:
    """Every module of both reports: whether its hashes moved. `unknown`: Warp was told to strip the hash."""

    added: tuple[ModuleHashes, ...]
    removed: tuple[ModuleHashes, ...]
    moved: tuple[ModuleHashes, ...]
    same: tuple[ModuleHashes, ...]
    unknown: tuple[ModuleHashes, ...]


@dataclass(frozen=True)
class FactDelta:
    """An exact fact in both reports."""

    fact: Fact
    baseline: int
    candidate: int


@dataclass(frozen=True)
class Delta:
    """A timed figure in both reports: candidate median minus baseline median, and whether that is beyond the band.
    `percent` is null where the baseline is zero."""

    baseline: Timed
    candidate: Timed
    change: float
    percent: float | None
    outside_band: bool


@dataclass(frozen=True)
class FindingChanges:
    """Findings that only the baseline has, and that only the candidate has."""

    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]


@dataclass(frozen=True)
class SampleCounts:
    """Complete samples in each arm."""

    baseline: int
    candidate: int


@dataclass(frozen=True)
class Ruling:
    """A verdict with the evidence that decided; `why` is the sentence for a reader."""

    verdict: Verdict
    reason: VerdictReason
    why: str
    decided_by: DecidedBy | None = None
    metric: Metric | None = None
    p: Fraction | None = None
    needed_samples: int | None = None


@dataclass(frozen=True)
class Comparison:
    """The JSON of `compare`.

    `metric` is the figure that decided, `p` its exact one-sided p (and as a fraction), `needed_samples` how many
    samples an arm would settle it where they do not. `deltas` and `bands` hold every timed figure that both reports
    have; they are empty where times were not looked at. `exact` sums up `facts`.
    """

    schema: str
    schema_version: int
    probe_version: str
    verdict: Verdict
    decided_by: DecidedBy | None
    reason: VerdictReason
    why: str
    metric: Metric | None
    n: SampleCounts
    p: float | None
    p_exact: str | None
    needed_samples: int | None
    deltas: dict[Metric, Delta]
    bands: dict[Metric, float]
    exact: Exact | None
    facts: tuple[FactDelta, ...]
    topology: Topology | None
    renames: tuple[Rename, ...]
    identities: IdentityChanges | None
    findings: FindingChanges
    differences: tuple[FieldDifference, ...]
    baseline: Arm
    candidate: Arm
    warnings: tuple[Notice, ...]


@dataclass(frozen=True)
class Evidence:
    """What two reports say, before anything is decided from it."""

    topology: Topology
    renames: tuple[Rename, ...]
    identities: IdentityChanges
    facts: tuple[FactDelta, ...]
    exact: Exact
    pairs: dict[Metric, tuple[Timed, Timed]]
    decided_by: DecidedBy


def compare_reports(
    baseline: Report, candidate: Report, allowed: frozenset[ComparableField] = frozenset()
) -> Comparison:
    """Judge a candidate against a baseline. `allowed` names what may differ between them.

    Raises InputError where a report contradicts itself, or its launches cannot be decoded.
    """
    differences = field_differences(baseline, candidate, allowed)
    ruling = _rule_on_fields(differences) or _rule_on_samples(baseline, candidate)
    if ruling is not None:
        return _comparison(baseline, candidate, ruling, differences, None)
    topology, topology_ruling = judge_topology(baseline, candidate)
    coverage_ruling = _rule_on_coverage(baseline, candidate)
    if coverage_ruling is not None:
        # "The same" would claim more than was seen; a difference was seen.
        topology = dataclasses.replace(topology, equal=None if topology.equal else topology.equal)
    evidence = gather_evidence(baseline, candidate, topology)
    ruling = coverage_ruling or topology_ruling or rule_on_time(evidence, differences)
    if differences:
        names = ", ".join(difference.name for difference in differences)
        ruling = dataclasses.replace(ruling, why=f"{ruling.why}; allowed to differ: {names}")
    return _comparison(baseline, candidate, ruling, differences, evidence)


def complete_runs(report: Report) -> list[tuple[Run, Run]]:
    """The cold and the concluding warm run of every complete sample."""
    runs = ((sample.cold, sample.concluding_warm) for sample in report.samples if sample.complete)
    return [(cold, warm) for cold, warm in runs if cold is not None and warm is not None]


def _comparison(
    baseline: Report,
    candidate: Report,
    ruling: Ruling,
    differences: tuple[FieldDifference, ...],
    evidence: Evidence | None,
) -> Comparison:
    host_differs = any(difference.field is ComparableField.HOST for difference in differences)
    pairs = evidence.pairs if evidence and not host_differs else {}
    arms = (_arm(baseline), _arm(candidate))
    return Comparison(
        schema=COMPARISON_SCHEMA,
        schema_version=SCHEMA_VERSION,
        probe_version=PROBE_VERSION,
        verdict=ruling.verdict,
        decided_by=ruling.decided_by,
        reason=ruling.reason,
        why=ruling.why,
        metric=ruling.metric,
        n=SampleCounts(arms[0].complete_samples, arms[1].complete_samples),
        p=None if ruling.p is None else float(ruling.p),
        p_exact=None if ruling.p is None else str(ruling.p),
        needed_samples=ruling.needed_samples,
        deltas={metric: _delta(*pair) for metric, pair in pairs.items()},
        bands={metric: noise_band(before) for metric, (before, _) in pairs.items()},
        exact=evidence.exact if evidence else None,
        facts=evidence.facts if evidence else (),
        topology=evidence.topology if evidence else None,
        renames=evidence.renames if evidence else (),
        identities=evidence.identities if evidence else None,
        findings=_finding_changes(baseline, candidate),
        differences=differences,
        baseline=arms[0],
        candidate=arms[1],
        warnings=comparison_warnings(baseline, candidate, ruling, evidence),
    )


def _arm(report: Report) -> Arm:
    environment = report.environment
    return Arm(
        label=report.label,
        created=report.created,
        command=report.command,
        git_commit=environment.git_commit,
        git_dirty=environment.git_dirty,
        complete_samples=len(complete_runs(report)),
        requested_samples=report.options.samples,
    )


def _delta(before: Timed, after: Timed) -> Delta:
    change = after.median - before.median
    scale = abs(before.median)
    percent = 100 * change / scale if scale > 1e-6 else None
    return Delta(before, after, change, percent, abs(change) > noise_band(before))


def _finding_changes(baseline: Report, candidate: Report) -> FindingChanges:
    def name(finding: Finding) -> tuple[str, str | None, str | None, int | None]:
        return finding.mechanism, finding.module, finding.device, finding.block_dim

    before = {name(finding) for finding in baseline.findings}
    after = {name(finding) for finding in candidate.findings}
    return FindingChanges(
        gone=tuple(finding for finding in baseline.findings if name(finding) not in after),
        new=tuple(finding for finding in candidate.findings if name(finding) not in before),
    )


# Step 1: comparable?


def field_differences(
    baseline: Report, candidate: Report, allowed: frozenset[ComparableField]
) -> tuple[FieldDifference, ...]:
    """Every property of the set-up that differs. What a report without a complete sample could not tell is none."""
    differences = []
    for (field, name, before), (_, _, after) in zip(_fields(baseline), _fields(candidate), strict=True):
        untold = (before is None and not complete_runs(baseline)) or (after is None and not complete_runs(candidate))
        if before != after and not untold:
            differences.append(FieldDifference(field, name, before, after, field in allowed))
    return tuple(differences)


def _fields(report: Report) -> list[tuple[ComparableField, str, str | None]]:
    """What must be the same, with its name and its value as text. How many samples and the timeout may differ."""
    environment, options = report.environment, report.options
    devices = [
        f"{device.alias} ({device.name}{'' if device.arch is None else f', sm_{device.arch}'})"
        for device in environment.devices
    ]
    return [
        (ComparableField.COMMAND, "command", shlex.join(report.command)),
        (ComparableField.WARP, "Warp", environment.warp),
        (ComparableField.TOOLKIT, "CUDA toolkit", environment.cuda_toolkit),
        (ComparableField.TOOLKIT, "CUDA driver", environment.cuda_driver),
        (ComparableField.DEVICES, "devices", ", ".join(devices) or None),
        (ComparableField.PYTHON, "target Python", environment.target_python),
        (ComparableField.HOST, "CPU model", environment.cpu_model),
        (ComparableField.HOST, "usable cores", None if environment.cores is None else str(environment.cores)),
        (ComparableField.HOST, "operating system", environment.os),
        (ComparableField.HOST, "architecture", environment.architecture),
        (ComparableField.OPTIONS, "--env", " ".join(f"{k}={v}" for k, v in sorted(options.env.items())) or "none"),
        (ComparableField.OPTIONS, "--inherit-tmpdir", "yes" if options.inherit_tmpdir else "no"),
        (ComparableField.OPTIONS, "--expect-exit", str(options.expect_exit)),
        (ComparableField.OPTIONS, "--demo", "yes" if options.demo else "no"),
    ]


def _rule_on_fields(differences: tuple[FieldDifference, ...]) -> Ruling | None:
    refused = [difference for difference in differences if not difference.allowed]
    if not refused:
        return None
    names = ", ".join(difference.name for difference in refused)
    fields = dict.fromkeys(difference.field.value for difference in refused)
    options = " ".join(f"--allow-different {field}" for field in fields)
    first = refused[0]
    why = (
        f"the reports differ in {names} ({first.name}: {_short(first.baseline)} against {_short(first.candidate)});"
        f" if that is meant, add {options}"
    )
    return Ruling(Verdict.NOT_COMPARABLE, VerdictReason.FIELD_DIFFERS, why)


def _short(text: str | None, limit: int = 80) -> str:
    """A value of a report within a sentence."""
    if text is None:
        return "unknown"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


# Step 2: seen?

# A gap that hides nothing: the load was recorded, only what it left in the cache directory is missing.
HARMLESS_GAPS = frozenset({GapReason.MISSING_CACHE_ENTRY})


def _rule_on_samples(baseline: Report, candidate: Report) -> Ruling | None:
    empty = [name for name, report in (("baseline", baseline), ("candidate", candidate)) if not complete_runs(report)]
    if not empty:
        return None
    why = f"the {' and the '.join(empty)} has no complete cold and warm sample: the command failed or was interrupted"
    return Ruling(Verdict.INVALID, VerdictReason.NO_COMPLETE_SAMPLE, why)


def _rule_on_coverage(baseline: Report, candidate: Report) -> Ruling | None:
    for name, report in (("baseline", baseline), ("candidate", candidate)):
        gaps = [gap for gap in report.coverage.gaps if gap.reason not in HARMLESS_GAPS]
        if gaps:
            more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
            why = (
                f"the recorder could not see everything in the {name}: {gaps[0].reason.value}"
                f" ({_short(gaps[0].detail, 160)}){more}; loads or launches may be missing"
            )
            return Ruling(Verdict.UNVERIFIED, VerdictReason.COVERAGE_GAP, why)
        runs = itertools.chain.from_iterable(complete_runs(report))
        launches = [process.launches for run in runs for process in run.processes]
        replays = sum(item.graph_replays_unknown for item in launches)
        if replays:
            why = f"the {name} replayed graphs {replays} times whose content is unknown: its launches are a lower bound"
            return Ruling(Verdict.UNVERIFIED, VerdictReason.GRAPH_REPLAYS_UNKNOWN, why)
        nameless = [kernel for item in launches for kernel in item.kernels if not kernel.content]
        if nameless:
            why = f"what kernel {_short(nameless[0].key)} of the {name} computes could not be read"
            return Ruling(Verdict.UNVERIFIED, VerdictReason.KERNEL_CONTENT_UNKNOWN, why)
    return None


# Step 3: the same work?


def iter_launch_ids(stream: LaunchStream, limit: int | None = None) -> Iterator[array[int]]:
    """The indices of a stream in order, in arrays of 65,536 (the last one may be shorter), at most `limit` in all.

    Memory does not grow with the stream. Raises InputError where it is damaged.
    """
    expected = stream.count if stream.order is Order.EXACT else min(stream.count, PREFIX_LAUNCHES)
    typecode = {1: "B", 2: "H", 4: "I"}.get(stream.width)
    if typecode is None or array(typecode).itemsize != stream.width:
        raise InputError(f"damaged report: launches of {stream.width} bytes, expected 1, 2 or 4")
    left = expected if limit is None else min(limit, expected)
    complete = left == expected
    seen = 0
    for raw in _unpack(stream.data, CHUNK_LAUNCHES * stream.width):
        if len(raw) % stream.width:
            raise InputError("damaged report: a stream of launches ends within a launch")
        ids = array(typecode, raw)
        if sys.byteorder == "big":
            ids.byteswap()
        seen += len(ids)
        if seen > expected:
            break
        if left:
            yield ids[:left]
        left -= min(left, len(ids))
        if not left and not complete:
            return
    if seen != expected:
        raise InputError(f"damaged report: a stream of launches does not hold the {expected} it should")


def decode_stream(stream: LaunchStream) -> array[int]:
    """All indices that a stream keeps, in order: 4 bytes each. Raises InputError where it is damaged."""
    return array("I", itertools.chain.from_iterable(iter_launch_ids(stream)))


def _unpack(data: str, size: int) -> Iterator[bytes]:
    """The bytes of base64 of xz in pieces of `size`; the last one may be shorter."""
    try:
        packed = base64.b64decode(data, validate=True)
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECODER_MEMORY_BYTES)
        piece = bytearray(decoder.decompress(packed, size))
        while not decoder.eof:
            if decoder.needs_input:
                raise InputError("damaged report: a stream of launches is cut off")
            piece += decoder.decompress(b"", size)
            while len(piece) >= size:
                yield bytes(piece[:size])
                del piece[:size]
    except (ValueError, lzma.LZMAError) as error:
        raise InputError(f"damaged report: a stream of launches cannot be unpacked ({error})") from None
    if decoder.unused_data:
        raise InputError("damaged report: something follows a stream of launches")
    if piece:
        yield bytes(piece)


@dataclass(frozen=True)
class Thread:
    """The launches of one thread; `numbers[index]` is the number of the launch that both reports know as `index`.

    Equal signatures mean equal launches in the same order.
    """

    position: int
    stream: LaunchStream
    launches: Launches
    numbers: tuple[int, ...]
    signature: tuple[object, ...]


def number_launches(ids: array[int], numbers: tuple[int, ...]) -> array[int]:
    """`numbers[index]` for each index, 4 bytes each. Raises InputError for an index that is out of range."""
    try:
        if ids.itemsize == 1 and len(numbers) <= 256 and max(numbers, default=256) < 256:
            # Much faster than the general way, and most programs launch fewer than 256 different things.
            raw = ids.tobytes()
            if not raw.translate(None, delete=bytes(range(len(numbers)))):
                wide = bytearray(4 * len(raw))
                first = 0 if sys.byteorder == "little" else 3
                wide[first::4] = raw.translate(bytes(numbers).ljust(256))
                return array("I", bytes(wide))
        return array("I", map(numbers.__getitem__, ids))
    except IndexError:
        raise InputError("damaged report: a launch that is not in the table of launches") from None


@dataclass(frozen=True)
class RunLaunches:
    """The launching threads of each process of a run, by the path of the process."""

    kind: RunKind
    threads: dict[str, tuple[Thread, ...]]


class LaunchReader:
    """Reads the launches of several runs as comparable numbers: the same launch has the same number in all of them.

    A launch is the same if content, argument types, dim, device, block_dim and adjoint flag are; names do not count.
    """

    def __init__(self) -> None:
        self.views: list[LaunchView] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._digests: dict[object, str] = {}

    def read(self, run: Run) -> RunLaunches:
        """The launching threads of each process. Raises InputError where the launches are damaged."""
        found: dict[str, tuple[Thread, ...]] = {}
        for process in run.processes:
            if process.path in found:
                raise InputError(f"damaged report: two processes are called {process.path}")
            found[process.path] = self._threads(process)
        return RunLaunches(run.kind, found)

    def _number(self, launches: Launches) -> tuple[int, ...]:
        """The number of each launch in a table of launches."""
        kernels = [(kernel.content, kernel.args, kernel.device, kernel.block_dim) for kernel in launches.kernels]
        numbers = []
        for index, entry in enumerate(launches.entries):
            if not 0 <= entry.kernel < len(kernels):
                raise InputError("damaged report: a launch of a kernel that is not in the table of kernels")
            number = self._numbers.setdefault((kernels[entry.kernel], entry.dim, entry.adjoint), len(self.views))
            if number == len(self.views):
                self.views.append(launch_view(launches, index))
            numbers.append(number)
        return tuple(numbers)

    def _threads(self, process: Process) -> tuple[Thread, ...]:
        """The launching threads of a process. All is decoded, so that damage shows even where both reports have it."""
        launches = process.launches
        numbers = self._number(launches)
        streams = [(position, stream) for position, stream in enumerate(launches.streams) if stream.count]
        in_table = sum(entry.count for entry in launches.entries)
        in_streams = sum(stream.count for _, stream in streams)
        if not launches.count == in_table == in_streams:
            raise InputError(
                f"damaged report: process {process.path} counts {launches.count} launches, its table of launches"
                f" {in_table}, its threads {in_streams}"
            )
        threads = []
        for position, stream in streams:
            digest = self.digest(stream, numbers)
            signature: tuple[object, ...] = (stream.count, digest)
            if stream.order is not Order.EXACT:
                signature = (stream.count, stream.digest, numbers)
            threads.append(Thread(position, stream, launches, numbers, signature))
        return tuple(threads)

    def digest(self, stream: LaunchStream, numbers: tuple[int, ...], limit: int | None = None) -> str:
        """A digest of the numbers of the launches that a stream keeps, of at most `limit`, in order."""
        key = (limit, stream.data, stream.count, stream.width, stream.order, numbers)
        known = self._digests.get(key)
        if known is None:
            digest = hashlib.sha256()
            for ids in iter_launch_ids(stream, limit):
                digest.update(number_launches(ids, numbers))
            known = self._digests[key] = digest.hexdigest()
        return known


def count_launches(threads: Sequence[Thread]) -> collections.Counter[int]:
    """How often each launch happened in threads of a process: all of it, unless they are EXACT."""
    counts: collections.Counter[int] = collections.Counter()
    if any(thread.stream.order is not Order.EXACT for thread in threads):
        for number, entry in zip(threads[0].numbers, threads[0].launches.entries, strict=True):
            counts[number] += entry.count
        return counts
    for thread in threads:
        by_index: collections.Counter[int] = collections.Counter()
        for ids in iter_launch_ids(thread.stream):
            by_index.update(ids)
        for index, count in by_index.items():
            counts[thread.numbers[index]] += count
    return counts


def launch_view(launches: Launches, index: int) -> LaunchView:
    """The launch at an index of the table."""
    entry = launches.entries[index]
    kernel = launches.kernels[entry.kernel]
    return LaunchView(
        kernel=kernel.key,
        module=kernel.module,
        content=kernel.content,
        args=kernel.args,
        dim=entry.dim,
        device=kernel.device,
        block_dim=kernel.block_dim,
        adjoint=entry.adjoint,
    )


@dataclass(frozen=True)
class UnequalProcess:
    """The threads of a process in both runs, and those of them that have no equal on the other side."""

    path: str
    baseline: tuple[Thread, ...]
    candidate: tuple[Thread, ...]
    left_baseline: tuple[Thread, ...]
    left_candidate: tuple[Thread, ...]


@dataclass(frozen=True)
class RunMatch:
    """How far the order of launches of two runs was compared; where they differ, the first place and the counts."""

    order: LaunchOrder
    divergence: Divergence | None = None
    counts: tuple[CountDelta, ...] = ()


def match_runs(reader: LaunchReader, baseline: RunLaunches, candidate: RunLaunches) -> RunMatch:
    """Hold the launches of two runs against each other, process by process and thread by thread.

    What differs is then taken together over all processes of the same generation: pool workers may have shared the
    same work differently.
    """
    before, after = baseline.threads, candidate.threads
    unequal = []
    only_prefix = False
    for path in sorted({**before, **after}, key=_generation_and_age):
        threads = before.get(path, ()), after.get(path, ())
        left_before, left_after, prefix = _unmatched(reader, *threads)
        if prefix and count_launches(threads[0]) != count_launches(threads[1]):
            left_before, left_after = threads
        only_prefix = only_prefix or prefix
        if left_before or left_after:
            unequal.append(UnequalProcess(path, *threads, left_before, left_after))
    for _, group in itertools.groupby(unequal, key=lambda process: process.path.count(".")):
        processes = tuple(group)
        counts_before = _sum_counts(process.baseline for process in processes)
        counts_after = _sum_counts(process.candidate for process in processes)
        if not _shared_differently(reader, processes, counts_before, counts_after):
            divergence = _first_divergence(baseline.kind, processes[0])
            counts = tuple(
                CountDelta(reader.views[number], counts_before[number], counts_after[number])
                for number in sorted({**counts_before, **counts_after})
                if counts_before[number] != counts_after[number]
            )
            return RunMatch(LaunchOrder.EXACT, divergence, counts)
    order = LaunchOrder.UNORDERED if unequal else LaunchOrder.PREFIX if only_prefix else LaunchOrder.EXACT
    return RunMatch(order)


def _sum_counts(processes: Iterable[Sequence[Thread]]) -> collections.Counter[int]:
    """How often each launch happened in several processes; each comes with all of its threads."""
    total: collections.Counter[int] = collections.Counter()
    for threads in processes:
        if threads:
            total.update(count_launches(threads))
    return total


def _generation_and_age(path: str) -> tuple[int, int, str]:
    """Sorts "0" before "0.2" before "0.10" before "0.0.0"."""
    return path.count("."), len(path), path


def _unmatched(
    reader: LaunchReader, before: Sequence[Thread], after: Sequence[Thread]
) -> tuple[tuple[Thread, ...], tuple[Thread, ...], bool]:
    """The threads without an equal on the other side, and whether of some only the first launches could be compared.

    Threads have no names that last from run to run, so any of one side may be the equal of any of the other.
    """
    missing = collections.Counter(thread.signature for thread in before)
    missing.subtract(thread.signature for thread in after)
    left_before = _surplus(before, missing, 1)
    left_after = _surplus(after, missing, -1)
    if all(thread.stream.order is Order.EXACT for thread in (*left_before, *left_after)):
        return tuple(left_before), tuple(left_after), False
    only_prefix = False
    unmatched_before = []
    for thread in left_before:
        equal = next((other for other in left_after if _same_as_far_as_kept(reader, thread, other)), None)
        if equal is None:
            unmatched_before.append(thread)
        else:
            left_after.remove(equal)
            only_prefix = only_prefix or thread.numbers != equal.numbers
    return tuple(unmatched_before), tuple(left_after), only_prefix


def _surplus(threads: Sequence[Thread], missing: collections.Counter[Any], sign: int) -> list[Thread]:
    """Of the threads with the same signature, as many as this side has more of than the other."""
    budget = {signature: sign * count for signature, count in missing.items()}
    surplus = []
    for thread in threads:
        if budget[thread.signature] > 0:
            budget[thread.signature] -= 1
            surplus.append(thread)
    return surplus


def _same_as_far_as_kept(reader: LaunchReader, one: Thread, other: Thread) -> bool:
    """Whether two threads, of which not both are EXACT, launch the same as far as the reports tell."""
    if one.stream.count != other.stream.count:
        return False
    if one.numbers == other.numbers:
        return one.stream.digest == other.stream.digest
    # The digest of all launches is one of table indices: it says nothing across tables in another order.
    return reader.digest(one.stream, one.numbers, PREFIX_LAUNCHES) == reader.digest(
        other.stream, other.numbers, PREFIX_LAUNCHES
    )


def _shared_differently(
    reader: LaunchReader,
    processes: Sequence[UnequalProcess],
    before: collections.Counter[int],
    after: collections.Counter[int],
) -> bool:
    """Whether these processes do the same launches, only shared out differently between processes or threads.

    `before` and `after` count the launches of all of them together.
    """
    if before != after:
        return False
    left_before = [thread for process in processes for thread in process.left_baseline]
    left_after = [thread for process in processes for thread in process.left_candidate]
    rest_before, rest_after, _ = _unmatched(reader, left_before, left_after)
    if any(thread.stream.order is not Order.EXACT for thread in (*rest_before, *rest_after)):
        return max(len(rest_before), len(rest_after)) > 1
    shares_before = collections.Counter(frozenset(count_launches([thread]).items()) for thread in rest_before)
    shares_after = collections.Counter(frozenset(count_launches([thread]).items()) for thread in rest_after)
    # Equal shares in another order are a changed order, not another assignment.
    return shares_before != shares_after or not (rest_before or rest_after)


def _first_divergence(kind: RunKind, process: UnequalProcess) -> Divergence:
    """Where the first thread without an equal leaves its counterpart on the other side."""
    before = process.left_baseline[0] if process.left_baseline else None
    after = process.left_candidate[0] if process.left_candidate else None
    first = before or after
    place = Divergence(kind, process.path, first.position if first else 0, None, None, None)
    pairs = itertools.zip_longest(_numbered_chunks(before), _numbered_chunks(after), fillvalue=(array("I"), array("I")))
    start = 0
    for (ids, numbers), (other_ids, other_numbers) in pairs:
        if numbers != other_numbers:
            both = zip(numbers, other_numbers, strict=False)
            shorter = min(len(numbers), len(other_numbers))
            index = next((index for index, (one, other) in enumerate(both) if one != other), shorter)
            return dataclasses.replace(
                place,
                index=start + index,
                baseline=launch_view(before.launches, ids[index]) if before and index < len(ids) else None,
                candidate=launch_view(after.launches, other_ids[index]) if after and index < len(other_ids) else None,
            )
        start += len(numbers)
    return place


def _numbered_chunks(thread: Thread | None) -> Iterator[tuple[array[int], array[int]]]:
    """The indices of a thread's launches in arrays, each with the numbers that they stand for."""
    if thread is not None:
        for ids in iter_launch_ids(thread.stream):
            yield ids, number_launches(ids, thread.numbers)


def judge_topology(baseline: Report, candidate: Report) -> tuple[Topology, Ruling | None]:
    """Whether the samples of each report agree on what is launched, and then the reports with each other.

    Cold runs are held against cold ones and concluding warm runs against such: work that only a warm run leaves out
    was not saved by compiling less. The ruling is None where nothing differs. Both need a complete sample.
    """
    reader = LaunchReader()
    arms = {"baseline": _read_launches(reader, "baseline", baseline)}
    arms["candidate"] = _read_launches(reader, "candidate", candidate)
    before, after = (sum(p.launches.count for p in complete_runs(r)[0][0].processes) for r in (baseline, candidate))
    topology = Topology(None, None, before, after, None, ())
    orders = []
    for name, runs in arms.items():
        for index in range(1, len(runs)):
            match = _match_samples(reader, runs[0], runs[index])
            if match.divergence is not None:
                why = (
                    f"the samples of the {name} do not launch the same, sample {index + 1} against the first:"
                    f" {_divergence_text(match.divergence, 'first', f'sample {index + 1}')}"
                )
                topology = dataclasses.replace(topology, first_divergence=match.divergence, counts=match.counts)
                return topology, Ruling(Verdict.UNVERIFIED, VerdictReason.SAMPLES_DISAGREE, why)
            orders.append(match.order)
    match = _match_samples(reader, arms["baseline"][0], arms["candidate"][0])
    if match.divergence is not None:
        reason = VerdictReason.LAUNCHES_DIFFER if match.counts else VerdictReason.LAUNCH_ORDER_DIFFERS
        topology = dataclasses.replace(topology, equal=False, first_divergence=match.divergence, counts=match.counts)
        why = _divergence_text(match.divergence, "baseline", "candidate")
        return topology, Ruling(Verdict.TOPOLOGY_CHANGED, reason, why)
    orders.append(match.order)
    weakest = max(orders, key=list(LaunchOrder).index)
    return dataclasses.replace(topology, equal=True, order=weakest), None


def _read_launches(reader: LaunchReader, name: str, report: Report) -> list[tuple[RunLaunches, RunLaunches]]:
    """The launches of the cold and the concluding warm run of every complete sample."""
    try:
        return [(reader.read(cold), reader.read(warm)) for cold, warm in complete_runs(report)]
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _match_samples(
    reader: LaunchReader, first: tuple[RunLaunches, RunLaunches], second: tuple[RunLaunches, RunLaunches]
) -> RunMatch:
    """Two cold runs, then two warm ones: the first that differ, or else the one whose order was compared least."""
    cold = match_runs(reader, first[0], second[0])
    if cold.divergence is not None:
        return cold
    warm = match_runs(reader, first[1], second[1])
    return (
        warm if warm.divergence is not None else max(cold, warm, key=lambda match: list(LaunchOrder).index(match.order))
    )


def _divergence_text(place: Divergence, baseline: str, candidate: str) -> str:
    """What differs first, in one clause."""
    where = f"process {place.process}, {place.run.value} run"
    if place.index is None:
        return f"the order of launches differs behind the first {PREFIX_LAUNCHES:,} ({where})"
    sides = (
        f"{baseline} {_launch_text(place.baseline)}, {candidate} {_launch_text(place.candidate)}"
        f"{_differing_parts(place.baseline, place.candidate)}"
    )
    return f"launch {place.index + 1} differs ({where}): {sides}"


def _launch_text(view: LaunchView | None) -> str:
    """A launch in a few words."""
    if view is None:
        return "has no more launches"
    dim = "x".join(str(size) for size in view.dim)
    adjoint = " adjoint" if view.adjoint else ""
    return f"{_short(kernel_name(view.kernel), 60)}{adjoint} dim {dim} on {view.device} block_dim {view.block_dim}"


def _differing_parts(one: LaunchView | None, other: LaunchView | None) -> str:
    """Which parts of two launches differ, in brackets."""
    if one is None or other is None:
        return ""
    parts = {
        "argument types": one.args != other.args,
        "dim": one.dim != other.dim,
        "device": one.device != other.device,
        "block_dim": one.block_dim != other.block_dim,
        "adjoint flag": one.adjoint != other.adjoint,
    }
    # The content digests the argument types too, so another content says more only where those are equal.
    parts["what the kernel computes"] = one.content != other.content and one.args == other.args
    return f" (different: {', '.join(part for part, differs in parts.items() if differs)})"


def kernel_name(key: str) -> str:
    """The part of a kernel's key after the last `__locals__`: a closure keeps its name when it moves."""
    return key.rpartition("__locals__")[2] or key


def find_renames(baseline: Report, candidate: Report) -> tuple[Rename, ...]:
    """Launched kernels of the same content and argument types that have another name or module in the candidate."""
    before, after = _names_by_content(baseline), _names_by_content(candidate)
    renames = []
    for (content, args), old_names in before.items():
        new_names = after.get((content, args))
        if new_names is None:
            continue
        gone = [name for name in old_names if name not in new_names]
        new = [name for name in new_names if name not in old_names]
        # Two kernels of the same content may have become one, or one two.
        for old_name, new_name in itertools.zip_longest(gone, new):
            old_key, old_module = old_name or next(iter(old_names))
            new_key, new_module = new_name or next(iter(new_names))
            renames.append(Rename(content, old_key, old_module, new_key, new_module))
    return tuple(renames)


def _names_by_content(report: Report) -> dict[tuple[str, tuple[str, ...]], dict[tuple[str, str], None]]:
    """(key, module) of the kernels of the first complete sample, in order, by content and argument types."""
    names: dict[tuple[str, tuple[str, ...]], dict[tuple[str, str], None]] = {}
    for run in complete_runs(report)[0]:
        for process in run.processes:
            for kernel in process.launches.kernels:
                names.setdefault((kernel.content, kernel.args), {})[kernel.key, kernel.module] = None
    return names


# Step 4: exact facts


def gather_evidence(baseline: Report, candidate: Report, topology: Topology) -> Evidence:
    """Everything that later steps look at. Both reports must have a complete sample."""
    before, after = _summary(baseline), _summary(candidate)
    renames = find_renames(baseline, candidate)
    facts = tuple(FactDelta(fact, getattr(before, fact.value), getattr(after, fact.value)) for fact in Fact)
    pairs = {}
    for metric in Metric:
        pair = _judged_values(baseline, metric), _judged_values(candidate, metric)
        if pair[0] is not None and pair[1] is not None:
            pairs[metric] = (pair[0], pair[1])
    return Evidence(
        topology=topology,
        renames=renames,
        identities=compare_identities(baseline.identities, candidate.identities, renames),
        facts=facts,
        exact=sum_up(facts),
        pairs=pairs,
        decided_by=choose_measure(baseline, candidate, facts, pairs),
    )


def _summary(report: Report) -> Summary:
    if report.summary is None:
        raise InputError("damaged report: it has complete samples, but no summary")
    return report.summary


def _judged_values(report: Report, metric: Metric) -> Timed | None:
    """A timed figure of the samples that are judged: the first 50. None where some sample has no value."""
    figure: Timed | None = getattr(_summary(report), metric.value)
    samples = len(complete_runs(report))
    if figure is None or len(figure.values) < samples:
        return None
    return timed(figure.values[: min(samples, MAX_JUDGED_SAMPLES)])


def sum_up(facts: Sequence[FactDelta]) -> Exact:
    """Which way all facts together went."""
    fewer = any(fact.candidate < fact.baseline for fact in facts)
    more = any(fact.candidate > fact.baseline for fact in facts)
    if fewer and more:
        return Exact.MIXED
    return Exact.FEWER if fewer else Exact.MORE if more else Exact.SAME


Place = tuple[str, str, int | None]  # name, device and block_dim of a module


def compare_identities(
    baseline: Sequence[IdentityRecord], candidate: Sequence[IdentityRecord], renames: Sequence[Rename]
) -> IdentityChanges:
    """Whether the hashes of each module at each device and block_dim moved.

    A module under another name is found by its hashes, else by a kernel that was renamed from one to the other.
    """
    length = _common_hash_length((*baseline, *candidate))
    before, after = _hashes_by_place(baseline, length), _hashes_by_place(candidate, length)
    partners = _renamed_places(before, after, renames)
    removed, moved, same, unknown = [], [], [], []
    for place, hashes in before.items():
        partner = place if place in after else partners.get(place)
        if partner is None:
            removed.append(ModuleHashes(*place, hashes, (), None))
            continue
        change = ModuleHashes(*place, hashes, after[partner], None if partner == place else partner[0])
        if not change.baseline or not change.candidate:
            unknown.append(change)
        elif set(change.baseline) == set(change.candidate):
            same.append(change)
        else:
            moved.append(change)
    taken = {*before, *partners.values()}
    added = [ModuleHashes(*place, (), hashes, None) for place, hashes in after.items() if place not in taken]
    return IdentityChanges(tuple(added), tuple(removed), tuple(moved), tuple(same), tuple(unknown))


def _common_hash_length(records: Sequence[IdentityRecord]) -> int:
    """How many digits all hashes have: 7 where one is known from a log line only."""
    return min((len(record.hash) for record in records if record.hash), default=0)


def _hashes_by_place(records: Sequence[IdentityRecord], length: int) -> dict[Place, tuple[str, ...]]:
    """The different hashes of each module in order; none where Warp was told to strip them."""
    hashes: dict[Place, dict[str, None]] = {}
    for record in records:
        known = hashes.setdefault((record.name, record.device, record.block_dim), {})
        if record.hash:
            known[record.hash[:length]] = None
    return {place: tuple(known) for place, known in hashes.items()}


def _renamed_places(
    before: dict[Place, tuple[str, ...]], after: dict[Place, tuple[str, ...]], renames: Sequence[Rename]
) -> dict[Place, Place]:
    """Pairs the modules that only one side has."""
    free = {place: frozenset(hashes) for place, hashes in after.items() if place not in before}
    by_hash = {(hashes, *place[1:]): place for place, hashes in free.items() if hashes}
    new_names: dict[str, list[str]] = {}
    for rename in renames:
        new_names.setdefault(rename.baseline_module, []).append(rename.candidate_module)
    partners: dict[Place, Place] = {}
    gone = [place for place in before if place not in after]
    for by_name in (False, True):
        for place in gone:
            if place in partners:
                continue
            options = [by_hash.get((frozenset(before[place]), *place[1:]))]
            if by_name:
                options = [(name, *place[1:]) for name in new_names.get(place[0], ())]
            partner = next((option for option in options if option in free), None)
            if partner is not None:
                partners[place] = partner
                del free[partner]
    return partners


# Step 5: time


def choose_measure(
    baseline: Report, candidate: Report, facts: Sequence[FactDelta], pairs: dict[Metric, tuple[Timed, Timed]]
) -> DecidedBy:
    """What to judge by: see DecidedBy.

    WARM where the cold facts are equal and the warm ones are not: other warm builds; or the very same cold builds, and
    warm loads that differ enough to matter. CLOCK where the sum over builds says little: builds overlapped in either
    report, or both build the very same.
    """
    moved = {fact.fact for fact in facts if fact.baseline != fact.candidate}
    length = _common_hash_length((*baseline.identities, *candidate.identities))
    same_builds = Fact.GENERATED_SOURCE_BYTES not in moved and (
        _builds(baseline.identities, length) == _builds(candidate.identities, length)
    )
    if moved == {Fact.WARM_BUILDS}:
        return DecidedBy.WARM
    if not moved and same_builds and _warm_loads_differ(baseline, candidate, pairs):
        return DecidedBy.WARM
    overlaps = [_summary(report).overlap_factor for report in (baseline, candidate)]
    if any(overlap is not None and overlap.median > OVERLAP_LIMIT for overlap in overlaps):
        return DecidedBy.CLOCK
    return DecidedBy.CLOCK if same_builds else DecidedBy.TIMED


def _warm_loads_differ(baseline: Report, candidate: Report, pairs: dict[Metric, tuple[Timed, Timed]]) -> bool:
    """Whether the warm runs load another number of times, or one takes more than twice as long, and it matters.

    The last part keeps a millisecond more or less of cached loads from deciding over seconds of compiling.
    """
    if Metric.WARM_MODULE not in pairs or Metric.COLD_WALL not in pairs:
        return False
    less, more = sorted(figure.median for figure in pairs[Metric.WARM_MODULE])
    if more - less <= 0.01 * pairs[Metric.COLD_WALL][0].median:
        return False
    return more > 2 * less or _warm_loads(baseline) != _warm_loads(candidate)


def _warm_loads(report: Report) -> dict[str, int]:
    """How many loads the concluding warm run had, by status."""
    loads: dict[str, int] = {}
    for record in report.identities:
        for status, count in record.warm.items():
            if count:
                loads[status] = loads.get(status, 0) + count
    return loads


def _builds(records: Sequence[IdentityRecord], length: int) -> collections.Counter[tuple[str, str, int | None]]:
    """How often each identity was built in the cold run; names count only where the hash is unknown."""
    builds: collections.Counter[tuple[str, str, int | None]] = collections.Counter()
    for record in records:
        built = record.cold.get(Status.COMPILED, 0)
        if built:
            builds[record.hash[:length] if record.hash else record.name, record.device, record.block_dim] += built
    return builds


def rule_on_time(evidence: Evidence, differences: Sequence[FieldDifference]) -> Ruling:
    """The verdict where the work is the same."""
    same = evidence.exact is Exact.SAME
    if any(difference.field is ComparableField.HOST for difference in differences):
        why = f"the hosts differ, so times were not judged; launches: the same; exact facts: {evidence.exact.value}"
        return Ruling(Verdict.UNCHANGED if same else Verdict.INCONCLUSIVE, VerdictReason.TIME_NOT_JUDGED, why)
    metric = _deciding_metric(evidence)
    before, after = evidence.pairs[metric]
    weighed = weigh(before, after)
    verdict, reason = _weighed_verdict(evidence, metric, weighed)
    moved, support = _change_text(metric, before, after), _reason_text(reason, before, after, weighed)
    return Ruling(
        verdict=verdict,
        reason=reason,
        why=f"{moved}, {support}; exact facts: {evidence.exact.value}",
        decided_by=evidence.decided_by,
        metric=metric,
        p=weighed.p,
        needed_samples=weighed.needed,
    )


def _deciding_metric(evidence: Evidence) -> Metric:
    """The figure to judge by. Raises InputError where a report does not have it."""
    if evidence.decided_by is DecidedBy.CLOCK:
        # Null where a warm run compiled: its wall is then no measure of a run without compiling.
        metric = Metric.COMPILE_ELAPSED if Metric.COMPILE_ELAPSED in evidence.pairs else Metric.BUILD_SPAN
    else:
        metric = Metric.WARM_MODULE if evidence.decided_by is DecidedBy.WARM else Metric.COLD_MODULE
    if metric not in evidence.pairs:
        raise InputError(f"damaged report: {metric.value} does not have a value for every complete sample")
    return metric


def _weighed_verdict(evidence: Evidence, metric: Metric, weighed: TimeEvidence) -> tuple[Verdict, VerdictReason]:
    if weighed.support is Support.INSIDE:
        if evidence.exact is Exact.SAME:
            return Verdict.UNCHANGED, VerdictReason.INSIDE_BAND
        return Verdict.INCONCLUSIVE, VerdictReason.INSIDE_BAND_FACTS_DIFFER
    if weighed.support is Support.TOO_FEW:
        return Verdict.INCONCLUSIVE, VerdictReason.TOO_FEW_SAMPLES
    if weighed.support is Support.OVERLAP:
        return Verdict.INCONCLUSIVE, VerdictReason.SAMPLES_OVERLAP
    if metric is Metric.COMPILE_ELAPSED and _owed_to_warm_run(evidence, weighed.change):
        return Verdict.INCONCLUSIVE, VerdictReason.WARM_RUN_MOVED
    if weighed.change > 0:
        return Verdict.REGRESSED, VerdictReason.TIME_SUPPORTED
    if evidence.decided_by is DecidedBy.WARM and _regressed(evidence, Metric.COLD_MODULE):
        return Verdict.INCONCLUSIVE, VerdictReason.COLD_TIME_REGRESSED
    return Verdict.IMPROVED, VerdictReason.TIME_SUPPORTED


def _owed_to_warm_run(evidence: Evidence, change: float) -> bool:
    """Whether cold wall minus warm wall moved because of the warm run: a slower warm run is no faster compile."""
    if Metric.WARM_WALL not in evidence.pairs or Metric.BUILD_SPAN not in evidence.pairs:
        return False
    warm_before, warm_after = evidence.pairs[Metric.WARM_WALL]
    span_before, span_after = evidence.pairs[Metric.BUILD_SPAN]
    from_warm_run = (warm_before.median - warm_after.median) / change
    seen_in_loads = (span_after.median - span_before.median) / change
    return from_warm_run > 0.5 and seen_in_loads < 0.5


def _regressed(evidence: Evidence, metric: Metric) -> bool:
    pair = evidence.pairs.get(metric)
    weighed = weigh(*pair) if pair else None
    return weighed is not None and weighed.support is Support.SUPPORTED and weighed.change > 0


def _change_text(metric: Metric, before: Timed, after: Timed) -> str:
    delta = _delta(before, after)
    size = f"{abs(delta.change):,.1f} ms" if delta.percent is None else f"{abs(delta.percent):,.1f} %"
    way = "did not move" if not delta.change else f"{'fell' if delta.change < 0 else 'rose'} by {size}"
    return f"{metric.value} {way} ({before.median:,.1f} to {after.median:,.1f} ms)"


def _reason_text(reason: VerdictReason, before: Timed, after: Timed, weighed: TimeEvidence) -> str:
    """The clause that says what the samples make of the change."""
    band = f"{weighed.band:,.1f} ms"
    arms = f"{len(before.values)} against {len(after.values)} samples"
    odds = (
        f"{arms}, p = {weighed.p}"
        if weighed.p is None or weighed.p.denominator <= 1000
        else (f"{arms}, p = {float(weighed.p):.2g}")
    )
    more = (
        f"about {weighed.needed} samples an arm may settle it"
        if weighed.needed
        else f"more than {MAX_JUDGED_SAMPLES} samples an arm would be needed"
    )
    texts = {
        VerdictReason.INSIDE_BAND: f"inside the noise band of {band} in {arms}",
        VerdictReason.INSIDE_BAND_FACTS_DIFFER: f"inside the noise band of {band}, though the exact facts differ",
        VerdictReason.TOO_FEW_SAMPLES: f"beyond the noise band of {band}, but {arms} are too few to tell; {more}",
        VerdictReason.SAMPLES_OVERLAP: f"beyond the noise band of {band}, but the samples overlap ({odds}); {more}",
        VerdictReason.WARM_RUN_MOVED: "but that is owed to the wall time of the warm run, not to compiling",
        VerdictReason.COLD_TIME_REGRESSED: "but the cold run takes longer now",
        VerdictReason.TIME_SUPPORTED: f"beyond the noise band of {band} ({odds})",
    }
    return texts[reason]


def comparison_warnings(
    baseline: Report, candidate: Report, ruling: Ruling, evidence: Evidence | None
) -> tuple[Notice, ...]:
    """What a reader must know before trusting the verdict; those of one report say which."""
    notices = [
        dataclasses.replace(notice, text=f"{name}: {notice.text}")
        for name, report in (("baseline", baseline), ("candidate", candidate))
        for notice in _arm_warnings(report, ruling.metric)
    ]
    notices += _environment_warnings(baseline, candidate)
    if evidence is not None:
        notices += _evidence_warnings(baseline, candidate, ruling, evidence)
    return tuple(notices)


def _arm_warnings(report: Report, metric: Metric | None) -> list[Notice]:
    """Warnings about one report, and those that it holds itself."""
    samples, asked = len(complete_runs(report)), report.options.samples
    notices = []
    if 0 < samples < asked:
        notices.append(Notice("partial-report", f"{samples} of {asked} samples are complete; those are judged"))
    if 0 < samples < MIN_JUDGED_SAMPLES:
        text = f"{samples} sample{'s' if samples > 1 else ''}: fewer than three can never show a change of time"
        notices.append(Notice("few-samples", text))
    if samples > MAX_JUDGED_SAMPLES:
        text = f"times of the first {MAX_JUDGED_SAMPLES} of {samples} samples are judged"
        notices.append(Notice("many-samples", text))
    if samples and metric is not None:
        figure = _judged_values(report, metric)
        notices += sample_warnings(figure.values, metric.value) if figure else ()
        if figure and noise_band(figure) > 0.1 * abs(figure.median) > 0:
            scatter = f"{figure.mad:,.1f} around {figure.median:,.1f} ms"
            text = f"{metric.value} scatters by {scatter}, which hides small changes"
            notices.append(Notice("noisy-samples", text))
    unrecorded = {
        process.path
        for runs in complete_runs(report)
        for run in runs
        for process in run.processes
        if process.end is ProcessEnd.UNRECORDED and process.warp is not None
    }
    if unrecorded:
        paths = ", ".join(sorted(unrecorded)[:5])
        text = f"the end of process {paths} was not recorded: its last launches may be missing"
        notices.append(Notice("end-not-recorded", text))
    notices += machine_warnings(report.environment)
    known = {notice.name for notice in notices}
    return notices + [notice for notice in report.warnings if notice.name not in known]


def _environment_warnings(baseline: Report, candidate: Report) -> list[Notice]:
    notices = []
    before, after = baseline.environment.variables, candidate.environment.variables
    differing = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if differing:
        text = f"the environment differs in {', '.join(differing[:10])}"
        notices.append(Notice("environment-differs", text))
    if baseline.probe_version != candidate.probe_version:
        text = f"measured by different probes: {baseline.probe_version} and {candidate.probe_version}"
        notices.append(Notice("probe-differs", text))
    return notices


def _evidence_warnings(baseline: Report, candidate: Report, ruling: Ruling, evidence: Evidence) -> list[Notice]:
    """Where the evidence says more than the verdict."""
    notices = []
    before, after = _summary(baseline), _summary(candidate)
    if evidence.topology.order is LaunchOrder.PREFIX:
        text = f"of some threads only counts and the first {PREFIX_LAUNCHES:,} launches could be compared"
        notices.append(Notice("order-not-compared", text))
    if before.error_loads != after.error_loads:
        text = f"loads that failed: {before.error_loads} in the baseline, {after.error_loads} in the candidate"
        notices.append(Notice("error-loads-differ", text))
    if after.warm_builds > before.warm_builds:
        text = f"the warm run compiles more: {before.warm_builds} builds in the baseline, {after.warm_builds} now"
        notices.append(Notice("warm-builds-more", text))
    if ruling.verdict is Verdict.IMPROVED and _regressed(evidence, Metric.COLD_WALL):
        text = f"the whole cold run takes longer: {_change_text(Metric.COLD_WALL, *evidence.pairs[Metric.COLD_WALL])}"
        notices.append(Notice("cold-wall-regressed", text))
    if _machine_may_have_moved(evidence, ruling):
        text = (
            "both reports build the very same, and the wall time of the warm run moved the same way: the machine may"
            " have changed between them; measure both again, interleaved"
        )
        notices.append(Notice("machine-moved", text))
    digests = [{run.output.stdout_digest for run, _ in complete_runs(report)} for report in (baseline, candidate)]
    if all(len(seen) == 1 for seen in digests) and digests[0] != digests[1]:
        notices.append(Notice("output-differs", "the program prints something else in the candidate"))
    return notices


def _machine_may_have_moved(evidence: Evidence, ruling: Ruling) -> bool:
    if ruling.verdict not in {Verdict.IMPROVED, Verdict.REGRESSED} or evidence.decided_by is not DecidedBy.CLOCK:
        return False
    pair = evidence.pairs.get(Metric.WARM_WALL)
    if pair is None or evidence.exact is not Exact.SAME or evidence.identities.moved:
        return False
    walls = _delta(*pair)
    slower = ruling.verdict is Verdict.REGRESSED
    return walls.outside_band and (walls.change > 0) is slower


# ---------------------------------------------------------------------------------------------------------------------
# Rendering
# ---------------------------------------------------------------------------------------------------------------------

# Rendering of a comparison

MAX_TEXT_LINES = 120
MAX_TEXT_CHARACTERS = 10_000
MAX_TABLE_ROWS = 12
MAX_CELL_CHARACTERS = 60


class TextFormat(str, enum.Enum):
    """How a result is written for readers."""

    TEXT = "text"
    MARKDOWN = "markdown"


@dataclass(frozen=True)
class Table:
    """A table for readers; `rows` may hold more than is shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cell_limit: int = MAX_CELL_CHARACTERS


def printable(text: str, limit: int = MAX_CELL_CHARACTERS) -> str:
    """Text from a report that can be shown on a terminal: control characters escaped, at most `limit` characters."""
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:limit]
    )
    return shown if len(shown) <= limit and len(text) <= limit else f"{shown[: limit - 3]}..."


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is: no formatting, link, HTML, table cell or mention comes of it."""
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
    return "".join(f"\\{c}" if c in "\\`*_{}[]#|~$" else entities.get(c, c) for c in text)


def render_comparison(comparison: Comparison, style: TextFormat) -> str:
    """The text of `compare`: the verdict, why, and the tables; at most 120 lines and 10,000 characters."""
    by = f" ({comparison.decided_by.value})" if comparison.decided_by else ""
    why = printable(comparison.why, 1_000)
    if style is TextFormat.MARKDOWN:
        lines = [f"**{comparison.verdict.value.upper()}**{by}: {markdown_text(why)}"]
    else:
        lines = [f"{comparison.verdict.value.upper()}{by}: {why}"]
    for table in _comparison_tables(comparison):
        lines += ["", *_render_table(table, style)]
    return bounded_text(lines)


def bounded_text(lines: Sequence[str]) -> str:
    """Lines as one text within the bounds of the output; the text says where it leaves something to the JSON."""
    rest = "... the rest is in --json FILE"
    kept: list[str] = []
    size = len(rest) + 1
    for line in lines:
        size += len(line) + 1
        if size > MAX_TEXT_CHARACTERS or (len(kept) == MAX_TEXT_LINES - 1 and len(lines) > MAX_TEXT_LINES):
            kept.append(rest)
            break
        kept.append(line)
    return "\n".join(kept) + "\n"


def _render_table(table: Table, style: TextFormat) -> list[str]:
    """A title line, a header line, and up to 12 rows."""
    hidden = len(table.rows) - MAX_TABLE_ROWS
    rows = [[printable(cell, table.cell_limit) for cell in row] for row in table.rows[:MAX_TABLE_ROWS]]
    more = [f"... and {hidden} more in --json FILE"] if hidden > 0 else []
    if style is TextFormat.MARKDOWN:
        cells = [[markdown_text(cell) for cell in row] for row in (table.columns, *rows)]
        separator = ["---"] * len(table.columns)
        grid = [f"| {' | '.join(row)} |" for row in (cells[0], separator, *cells[1:])]
        return [f"### {markdown_text(table.title)}", "", *grid, *(["", *more] if more else [])]
    widths = [max(len(row[index]) for row in (table.columns, *rows)) for index in range(len(table.columns))]
    lines = [table.title]
    for row in (table.columns, *rows):
        padded = [
            cell.rjust(width) if index and _looks_numeric(rows, index) else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(padded)}".rstrip())
    return lines + [f"  {line}" for line in more]


def _looks_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    return all(row[column][:1] in "+-0123456789" for row in rows)


def _comparison_tables(comparison: Comparison) -> list[Table]:
    """The tables in the order of what a reader asks next; empty ones are left out."""
    tables = [
        _arms_table(comparison),
        Table(
            "Warnings",
            ("name", "what"),
            tuple((notice.name, notice.text) for notice in comparison.warnings),
            cell_limit=300,
        ),
        Table(
            "Differences of the set-up",
            ("what", "baseline", "candidate", ""),
            tuple(
                (item.name, item.baseline or "unknown", item.candidate or "unknown", "allowed" if item.allowed else "")
                for item in comparison.differences
            ),
        ),
        *_topology_tables(comparison),
        _times_table(comparison),
        _facts_table(comparison),
        *_module_tables(comparison),
        Table(
            "Findings",
            ("", "mechanism", "module", "cost"),
            tuple(
                (change, finding.mechanism, finding.module or "-", f"{finding.cost_ms:,.1f} ms")
                for change, findings in (("gone", comparison.findings.gone), ("new", comparison.findings.new))
                for finding in findings
            ),
        ),
    ]
    return [table for table in tables if table.rows]


def _arms_table(comparison: Comparison) -> Table:
    rows = []
    for name, arm in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        commit = f"{arm.git_commit[:10]}{' and changes' if arm.git_dirty else ''}" if arm.git_commit else "-"
        samples = f"{arm.complete_samples} of {arm.requested_samples}"
        rows.append((name, samples, arm.label or "-", commit, arm.created, shlex.join(arm.command)))
    return Table("Reports", ("", "samples", "label", "commit", "created", "command"), tuple(rows))


def _topology_tables(comparison: Comparison) -> list[Table]:
    topology = comparison.topology
    if topology is None:
        return []
    state = {True: "the same", False: "changed", None: "not verified"}[topology.equal]
    order = f", order: {topology.order.value}" if topology.order else ""
    summary = (state + order, f"{topology.baseline_launches:,}", f"{topology.candidate_launches:,}")
    counts = tuple((_launch_cell(item.launch), f"{item.baseline:,}", f"{item.candidate:,}") for item in topology.counts)
    renames = tuple(
        (f"{item.baseline_kernel} in {item.baseline_module}", f"{item.candidate_kernel} in {item.candidate_module}")
        for item in comparison.renames
    )
    return [
        Table("Launches", ("launches", "baseline", "candidate"), (summary,)),
        Table("Launches that happen another number of times", ("launch", "baseline", "candidate"), counts),
        Table("Renamed kernels (same content, allowed)", ("baseline", "candidate"), renames),
    ]


def _launch_cell(view: LaunchView) -> str:
    return f"{_launch_text(view)}, content {view.content[:7]}"


def _times_table(comparison: Comparison) -> Table:
    rows = []
    for metric, delta in comparison.deltas.items():
        if not delta.baseline.median and not delta.candidate.median:
            continue
        percent = "-" if delta.percent is None else f"{delta.percent:+,.1f} %"
        note = "" if delta.outside_band else "noise"
        if metric is comparison.metric:
            note = f"decides{', noise' if note else ''}"
        rows.append(
            (
                metric.value,
                f"{delta.baseline.median:,.1f}",
                f"{delta.candidate.median:,.1f}",
                f"{delta.change:+,.1f}",
                percent,
                f"{comparison.bands[metric]:,.1f}",
                note,
            )
        )
    return Table("Times (medians, ms)", ("", "baseline", "candidate", "change", "%", "band", ""), tuple(rows))


def _facts_table(comparison: Comparison) -> Table:
    rows = tuple(
        (item.fact.value, f"{item.baseline:,}", f"{item.candidate:,}", f"{item.candidate - item.baseline:+,}")
        for item in comparison.facts
    )
    state = f": {comparison.exact.value}" if comparison.exact else ""
    return Table(f"Exact facts{state}", ("", "baseline", "candidate", "change"), rows)


def _module_tables(comparison: Comparison) -> list[Table]:
    """Whether the hash of each module moved: the receipt for an option that was meant to arrive."""
    changes = comparison.identities
    if changes is None:
        return []
    groups = (
        ("moved", changes.moved),
        ("added", changes.added),
        ("removed", changes.removed),
        ("unknown", changes.unknown),
        ("same", changes.same),
    )
    rows = tuple(
        (
            state,
            item.name if item.renamed_to is None else f"{item.name}, now {item.renamed_to}",
            item.device if item.block_dim is None else f"{item.device}, {item.block_dim}",
            _hash_cell(item.baseline),
            _hash_cell(item.candidate),
        )
        for state, items in groups
        for item in items
    )
    told = ", ".join(f"{len(items)} {state}" for state, items in groups if items)
    nothing = "" if any(items for _, items in groups[:4]) else "; no hash moved, so no option arrived in a module"
    return [Table(f"Modules: {told}{nothing}", ("hash", "module", "at", "baseline", "candidate"), rows)]


def _hash_cell(hashes: Sequence[str]) -> str:
    shown = " ".join(text[:7] for text in hashes[:4])
    return f"{shown} and {len(hashes) - 4} more" if len(hashes) > 4 else shown or "-"


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

# compare

MAX_REPORT_BYTES = 1 << 30
MAX_INTEGER_DIGITS = 18
MAX_NUMBER = 1e15


def load_report(path: str) -> Report:
    """Read the JSON file of `measure`. Raises InputError, in one sentence that names the file, if it is none."""
    shown = printable(path, 200)
    try:
        report = Report.from_json(_parse_json(_read_bounded(path)))
    except InputError as error:
        raise InputError(f"{shown}: {printable(str(error), 400)}") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror or error}); expected a report of measure") from None
    if complete_runs(report) and report.summary is None:
        raise InputError(f"{shown}: damaged report: it has complete samples, but no summary")
    return report


def _read_bounded(path: str) -> bytes:
    """The content of a file or pipe of at most 1 GB."""
    with Path(path).open("rb") as file:
        too_large = os.fstat(file.fileno()).st_size > MAX_REPORT_BYTES
        data = b"" if too_large else file.read(MAX_REPORT_BYTES + 1)
    if too_large or len(data) > MAX_REPORT_BYTES:
        raise InputError("larger than 1 GB, so not a report of measure")
    return data


def _parse_json(data: bytes) -> Any:
    """JSON as plain values. Numbers that no report holds are refused here, so that none overflows later."""
    if not data.strip():
        raise InputError("the file is empty; expected a report of measure")
    try:
        return json.loads(data, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse_number)
    except (ValueError, RecursionError) as error:
        # UnicodeDecodeError, a ValueError too, quotes the bytes that it is about.
        cause = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(f"not JSON ({cause}); expected a whole report of measure, is the file cut off?") from None


def _parse_integer(text: str) -> int:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else _refuse_number(text)


def _parse_float(text: str) -> float:
    value = float(text)
    return value if abs(value) <= MAX_NUMBER else _refuse_number(text)


def _refuse_number(text: str) -> typing.NoReturn:
    raise InputError(f"the number {text[:40]} is out of range; expected a report of measure")


def add_compare_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `compare` command to the commands of the probe."""
    parser = commands.add_parser(
        "compare",
        help="judge a candidate report against a baseline report",
        description=(
            "Judge a candidate against a baseline: comparable, seen, the same launches, exact facts, time."
            " Exits with 0 for improved, unchanged and inconclusive, 1 for regressed, 3 for topology-changed, 4 for"
            " not-comparable, invalid and unverified, 5 where --require is not met, 2 for a file that cannot be read."
        ),
    )
    parser.add_argument("baseline", metavar="BASELINE", help="the report of measure before the change")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the report of measure after it")
    parser.add_argument("--json", metavar="FILE", help="write the comparison as JSON; - for standard output, no text")
    parser.add_argument(
        "--format",
        choices=[style.value for style in TextFormat],
        default=TextFormat.TEXT.value,
        help="of the text (default: %(default)s)",
    )
    parser.add_argument(
        "--require",
        metavar="VERDICT",
        choices=[verdict.value for verdict in Verdict],
        help="exit with 5 instead of 0 unless the verdict is this one, for example improved",
    )
    parser.add_argument(
        "--allow-different",
        metavar="FIELD",
        action="append",
        default=[],
        choices=[field.value for field in ComparableField],
        help="compare although this differs: %(choices)s; with host, times are not judged; may be repeated",
    )
    parser.set_defaults(handler=command_compare)


def command_compare(args: argparse.Namespace) -> ExitCode:
    """Compare two reports, print what was found, and say in the exit code what it means."""
    if args.json not in (None, "-"):
        _refuse_overwriting(args.json, (args.baseline, args.candidate))
    allowed = frozenset(ComparableField(field) for field in args.allow_different)
    comparison = compare_reports(load_report(args.baseline), load_report(args.candidate), allowed)
    document = json.dumps(to_json(comparison), indent=2, allow_nan=False) + "\n"
    if args.json == "-":
        write_stdout(document)
    else:
        if args.json is not None:
            write_file(args.json, document)
        write_stdout(render_comparison(comparison, TextFormat(args.format)))
    code = comparison.verdict.exit_code
    if code is ExitCode.OK and args.require not in (None, comparison.verdict.value):
        print(f"--require {args.require} is not met: the verdict is {comparison.verdict.value}", file=sys.stderr)
        return ExitCode.EVIDENCE_MISSING
    return code


def _refuse_overwriting(path: str, reports: Sequence[str]) -> None:
    """Raises InputError if the file to write is one of the reports to read."""
    target = Path(path)
    if any(target.exists() and Path(report).exists() and target.samefile(report) for report in reports):
        raise InputError(f"--json {printable(path, 200)} would overwrite a report that is compared; name another file")


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all; a pipe or device is written to directly. Raises InputError if it cannot be."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise InputError(f"{printable(path, 200)}: cannot be written ({cause}); name another file") from None


def write_stdout(text: str) -> None:
    """Print text as it is; characters that the encoding of standard output lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


# ---------------------------------------------------------------------------------------------------------------------
# Argument parser and main
# ---------------------------------------------------------------------------------------------------------------------


def main(argv: list[str] | None = None) -> int:
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
