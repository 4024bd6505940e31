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
import codecs
import contextlib
import dataclasses
import enum
import functools
import json
import os
import re
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
LOG_SCHEMA = "warp-compile-probe/log"
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

# The longest module name that is read: as part of a directory name in Warp's cache it cannot be longer than 255 bytes.
LOG_NAME_BYTES = 512
# No record reaches further than this to the left and to the right of its words "load on device".
LOG_LOOK_BACK = LOG_NAME_BYTES + 32
LOG_LOOK_AHEAD = 256
# Beyond so many records `parse` lists one line per identity and status; beyond so many of those it only counts.
LOG_DETAIL_LIMIT = 50_000
# A cached load slower than this, or more cached loads of one module than this, is worth a flag.
SLOW_CACHED_LOAD_MS = 100.0
MANY_CACHED_LOADS = 100

_RECORD_ANCHOR = b"load on device"
_NATIVE_ANCHOR = b"Compile "
_BANNER_ANCHOR = b" initialized:"
# A quotation mark as Warp prints it, or as JSON, HTML, a shell or a word processor rewrote it.
_QUOTE = rb"(?:\\?'|\\u0027|&#39;|&#x27;|\xe2\x80[\x98\x99])"
_DEVICE = (
    rb"(load on device) "
    + _QUOTE
    + rb"([^\x00-\x20\x7f'\"\\<>{}&]{1,64}?)"
    + _QUOTE
    + rb"(?: \(block_dim=(\d{1,9})\))?"
)
_TIME = rb" took (\d{1,12}(?:\.\d{1,6})?) ms"
_STATUS = rb"(?: {0,8}\((compiled|cached|error)\))?"
# No hash up to Warp 1.1 and with the module option strip_hash; no status up to Warp 1.2.
_HEAD = rb"Module ([^\x00-\x20\x7f'\"]{1,%d})(?: ([0-9a-f]{7}))? " % LOG_NAME_BYTES
_RECORD = re.compile(_HEAD + _DEVICE + _TIME + _STATUS)
_RECORD_HEAD = re.compile(_HEAD + rb"\Z")
_RECORD_TAIL = re.compile(_DEVICE + _TIME)
_RECORD_BEGIN = re.compile(_DEVICE + rb" \.\.\.")
_TORN_TAIL = re.compile(rb"load on device(?: ?(?:[\r\n]|\Z)| " + _QUOTE + rb"(?:[A-Za-z0-9]|[\r\n]|\Z))")
# "x86" on every CPU; from Warp 1.9 on the CUDA line names architecture, mode and block_dim.
_NATIVE_NAME = rb"Compile (?:x86|CUDA(?: \([^()\r\n]{0,160}\))?)"
_NATIVE = re.compile(_NATIVE_NAME + _TIME)
_BANNER = re.compile(rb"Warp (\d[0-9A-Za-z.+_-]{0,40})\Z")
_BANNER_LOOK_BACK = 48
_VERSIONS_KEPT = 16
_ANSI = re.compile(rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\([0-~])")
_ANSI_OPEN = re.compile(rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|\()?")

# What Warp writes itself, up to the end of a line; the program's own text may stand before it.
_WARP_TEXT = re.compile(
    rb"(?:"
    + rb"|".join(
        (
            _HEAD + _DEVICE + rb"(?: \.\.\.|" + _TIME + _STATUS + rb")",
            _NATIVE_NAME + rb"(?: \.\.\.|" + _TIME + rb")",
            rb"Warp \d[0-9A-Za-z.+_-]{0,40} initialized:",
            rb"\[(?:wp\.kernel|Kernel\.\w+|Module\.\w+|ModuleHasher)\] [^\r\n]{0,1000}",
            rb"Warp: [^\r\n]{0,300}?(?:recompiled header|PCH)[^\r\n]{0,1000}",
            rb"\"[^\"\r\n]{1,1000}\.cu\": (?:creating|using) precompiled header file [^\r\n]{0,1000}",
        )
    )
    + rb")[ \r\n]*\Z"
)
# The lines under "Warp 1.19.0 initialized:", with the indents that every release from 1.0 on gives them.
_BANNER_BODY = re.compile(
    rb"   (?:Git commit: |CUDA (?:Toolkit |not enabled |driver |devices |peer access:)|Devices:|Kernel cache:"
    rb"|  (?:\"[^\"]+\" *: [\"\[N]|Supported (?:fully|partially) \(|Not supported|/|[A-Za-z]:[\\/]|\\\\))"
)
_LOG_PREFIX = re.compile(rb"\b(?:INFO|DEBUG)\b")


@dataclass(frozen=True)
class LogRecord:
    """A module-timer line of Warp: `hash` as printed (7 hex digits), null where it is not; `line` counts from 1."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None
    ms: float
    status: Status
    line: int


class LogParser:
    """Reads a log as a stream of bytes, cut anywhere; keeps about a kilobyte of it, whatever the log holds.

    `native_compile_ms` sums the `native_compiles` lines of the native compiler (Warp prints them in debug output only,
    and threads interleave them, so that they belong to no record); `unreadable` counts what looked like a record and
    was torn; `starts` counts Warp's banners and `versions` names the releases in them.
    """

    def __init__(self) -> None:
        self.native_compile_ms = 0.0
        self.native_compiles = 0
        self.unreadable = 0
        self.starts = 0
        self.versions: list[str] = []
        self._buffer = b""  # the last bytes, without colour; [:_settled] is only there to look back at
        self._settled = 0
        self._line = 1  # of the byte at _settled
        self._escape = b""  # a colour sequence that the last chunk cut

    def feed(self, chunk: bytes) -> list[LogRecord]:
        """The records that `chunk` completes. Where the stream is cut into chunks makes no difference."""
        chunk = self._escape + chunk
        self._escape = b""
        last = chunk.rfind(b"\x1b")
        if last >= 0:
            if _ANSI_OPEN.fullmatch(chunk, last):
                chunk, self._escape = chunk[:last], chunk[last:]
            chunk = _ANSI.sub(b"", chunk)
        self._buffer += chunk
        # What stands before the last newline, or far enough before the end, no further byte can change.
        limit = max(self._buffer.rfind(b"\n") + 1, len(self._buffer) - LOG_LOOK_AHEAD, self._settled)
        records = self._scan(limit)
        self._line += self._buffer.count(b"\n", self._settled, limit)
        kept = max(0, limit - LOG_LOOK_BACK)
        self._buffer = self._buffer[kept:]
        self._settled = limit - kept
        return records

    def close(self) -> list[LogRecord]:
        """The records in what is left at the end of the log."""
        records = self._scan(len(self._buffer))
        self._buffer, self._settled, self._escape = b"", 0, b""
        return records

    def _scan(self, limit: int) -> list[LogRecord]:
        """Everything that is anchored in the buffer from `_settled` to before `limit`."""
        anchors = self._buffer.count(_RECORD_ANCHOR, self._settled, limit + len(_RECORD_ANCHOR) - 1)
        records = self._records(limit, anchors) if anchors else []
        for at in _positions(self._buffer, _NATIVE_ANCHOR, self._settled, limit):
            native = _NATIVE.match(self._buffer, at, at + LOG_LOOK_AHEAD)
            if native:
                self.native_compile_ms += float(native[1])
                self.native_compiles += 1
        for at in _positions(self._buffer, _BANNER_ANCHOR, self._settled, limit):
            banner = _BANNER.search(self._buffer, max(0, at - _BANNER_LOOK_BACK), at)
            if banner:
                self.starts += 1
                version = banner[1].decode("ascii")
                if version not in self.versions and len(self.versions) < _VERSIONS_KEPT:
                    self.versions.append(version)
        return records

    def _records(self, limit: int, anchors: int) -> list[LogRecord]:
        buffer = self._buffer
        records: list[LogRecord] = []
        whole: set[int] = set()
        line, counted = self._line, self._settled
        for found in _RECORD.finditer(buffer, max(0, self._settled - LOG_LOOK_BACK), limit + LOG_LOOK_AHEAD):
            at = found.start(3)
            if self._settled <= at < limit:
                whole.add(at)
                line += buffer.count(b"\n", counted, at)
                counted = at
                records.append(_log_record(found, line))
        if len(whole) < anchors:
            others = set(_positions(buffer, _RECORD_ANCHOR, self._settled, limit)) - whole
            self.unreadable += sum(_is_torn(buffer, at) for at in others)
        return records


def _positions(buffer: bytes, word: bytes, start: int, limit: int) -> typing.Iterator[int]:
    """Where `word` begins, from `start` to before `limit`; a plain search, so that huge logs cost little."""
    at = buffer.find(word, start)
    while 0 <= at < limit:
        yield at
        at = buffer.find(word, at + len(word))


def _is_torn(buffer: bytes, at: int) -> bool:
    """Whether words that are no record are the rest of one: the line lacks its start, or broke off after it."""
    if _RECORD_TAIL.match(buffer, at, at + LOG_LOOK_AHEAD):
        return True
    if _RECORD_BEGIN.match(buffer, at, at + LOG_LOOK_AHEAD):
        return False
    head = _RECORD_HEAD.search(buffer, max(0, at - LOG_LOOK_BACK), at)
    return head is not None and _TORN_TAIL.match(buffer, at, at + LOG_LOOK_AHEAD) is not None


def _log_record(found: re.Match[bytes], line: int) -> LogRecord:
    name, digits, _, device, block_dim, ms, status = found.groups()
    return LogRecord(*_log_identity(name, digits, device, block_dim), float(ms), _STATUSES[status], line)


@functools.lru_cache(maxsize=4096)
def _log_identity(
    name: bytes, digits: bytes | None, device: bytes, block_dim: bytes | None
) -> tuple[str, str | None, str, int | None]:
    """Name, hash, device and block_dim; kept for a while, since logs repeat themselves."""
    return (
        sys.intern(name.decode("utf-8", "backslashreplace")),
        digits.decode("ascii") if digits else None,
        sys.intern(device.decode("utf-8", "backslashreplace")),
        int(block_dim) if block_dim else None,
    )


_STATUSES = {
    b"compiled": Status.COMPILED,
    b"cached": Status.CACHED,
    b"error": Status.ERROR,
    None: Status.UNKNOWN,
}


def own_output(line: bytes) -> bytes:
    """What the program itself wrote in a line of its standard output: nothing if the line is Warp's, the text in front
    if Warp's was glued to it, else the whole line. Line by line, so that the lines may come from anywhere."""
    if not line.strip():
        return line
    plain = _ANSI.sub(b"", line) if b"\x1b" in line else line
    if _BANNER_BODY.match(plain):
        return b""
    found = _WARP_TEXT.search(plain)
    if found is None:
        return line
    before = plain[: found.start()]
    return b"" if not before.strip() or _LOG_PREFIX.search(before) else before


def is_warp_line(line: bytes) -> bool:
    """Whether a line of a program's output is one of Warp's own: banner, module, compiler, header, hash-changed."""
    return bool(line) and not own_output(line)


@dataclass(frozen=True)
class LogBuild:
    """A record; where builds are aggregated, all records of an identity with one status: `ms` is then their sum and
    `line` the first. `log` is an index into `logs`."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None
    ms: float
    status: Status
    count: int
    slowest_ms: float
    log: int
    line: int


@dataclass(frozen=True)
class SeveralHashes:
    """A module with several hashes at one device and block_dim (null: not shown), and its compiled records."""

    name: str
    device: str
    block_dim: int | None
    hashes: int
    compiled: int
    compiled_ms: float


@dataclass(frozen=True)
class CachedLoads:
    """A module whose loads from the cache were slow or very many."""

    name: str
    device: str
    loads: int
    ms: float
    slowest_ms: float


@dataclass(frozen=True)
class LogSummary:
    """Counts and times of all records. `native_compile_ms` is null where the log shows no compiler line."""

    records: int
    identities: int
    compiled: int
    cached: int
    error: int
    no_status: int
    cold_module_ms: float
    cached_ms: float
    error_ms: float
    no_status_ms: float
    native_compile_ms: float | None
    unreadable: int
    starts: int


@dataclass(frozen=True)
class LogFlags:
    """What a log alone can show; the costliest first."""

    several_hashes: tuple[SeveralHashes, ...]
    compiled_again: tuple[LogBuild, ...]
    errors: tuple[LogBuild, ...]
    cached_loads: tuple[CachedLoads, ...]


@dataclass(frozen=True)
class LogReport:
    """The JSON of `parse`. With `builds_aggregated`, `builds` has one entry per identity and status."""

    schema: str
    schema_version: int
    probe_version: str
    logs: tuple[str, ...]
    warp_versions: tuple[str, ...]
    summary: LogSummary
    flags: LogFlags
    notes: tuple[Notice, ...]
    builds_aggregated: bool
    builds: tuple[LogBuild, ...]


_LogKey = tuple[str, "str | None", str, "int | None", Status]


class LogTally:
    """Adds up the records of one or more logs in bounded memory."""

    def __init__(self) -> None:
        self._logs: list[str] = []
        self._versions: list[str] = []
        self._builds: list[LogBuild] | None = []
        self._groups: dict[_LogKey, _LogGroup] = {}
        self._left_out = {status: _LogGroup(0, 0) for status in Status}
        self._native_ms = 0.0
        self._natives = 0
        self._unreadable = 0
        self._starts = 0

    def open_log(self, name: str) -> None:
        """Name the log that the records after this come from."""
        self._logs.append(name)

    def add(self, record: LogRecord) -> None:
        """Count a record of the log opened last."""
        log = len(self._logs) - 1
        key = (record.name, record.hash, record.device, record.block_dim, record.status)
        group = self._groups.get(key)
        if group is None and len(self._groups) < LOG_DETAIL_LIMIT:
            group = self._groups[key] = _LogGroup(log, record.line)
        (group or self._left_out[record.status]).add(record.ms)
        if self._builds is not None:
            if len(self._builds) < LOG_DETAIL_LIMIT:
                self._builds.append(LogBuild(*key[:4], record.ms, record.status, 1, record.ms, log, record.line))
            else:
                self._builds = None

    def close_log(self, parser: LogParser) -> None:
        """Take over what the parser of a log counted beside its records."""
        self._native_ms += parser.native_compile_ms
        self._natives += parser.native_compiles
        self._unreadable += parser.unreadable
        self._starts += parser.starts
        self._versions += [version for version in parser.versions if version not in self._versions]

    def report(self) -> LogReport:
        """The result so far."""
        groups = [group.build(key) for key, group in self._groups.items()]
        flags = log_flags(groups)
        return LogReport(
            schema=LOG_SCHEMA,
            schema_version=SCHEMA_VERSION,
            probe_version=PROBE_VERSION,
            logs=tuple(self._logs),
            warp_versions=tuple(self._versions),
            summary=self._summary(groups),
            flags=flags,
            notes=log_notes(flags, tuple(self._versions), self._builds, self._left_out_count()),
            builds_aggregated=self._builds is None,
            builds=tuple(groups if self._builds is None else self._builds),
        )

    def _left_out_count(self) -> int:
        return sum(group.count for group in self._left_out.values())

    def _summary(self, groups: list[LogBuild]) -> LogSummary:
        counts = {status: left_out.count for status, left_out in self._left_out.items()}
        times = {status: left_out.ms for status, left_out in self._left_out.items()}
        for group in groups:
            counts[group.status] += group.count
            times[group.status] += group.ms
        return LogSummary(
            records=sum(counts.values()),
            identities=len({(group.name, group.hash, group.device, group.block_dim) for group in groups}),
            compiled=counts[Status.COMPILED],
            cached=counts[Status.CACHED],
            error=counts[Status.ERROR],
            no_status=counts[Status.UNKNOWN],
            cold_module_ms=round(times[Status.COMPILED], 3),
            cached_ms=round(times[Status.CACHED], 3),
            error_ms=round(times[Status.ERROR], 3),
            no_status_ms=round(times[Status.UNKNOWN], 3),
            native_compile_ms=round(self._native_ms, 3) if self._natives else None,
            unreadable=self._unreadable,
            starts=self._starts,
        )


class _LogGroup:
    """Count and time of records that share something, and where the first one stands."""

    __slots__ = ("count", "line", "log", "ms", "slowest_ms")

    def __init__(self, log: int, line: int) -> None:
        self.log = log
        self.line = line
        self.count = 0
        self.ms = 0.0
        self.slowest_ms = 0.0

    def add(self, ms: float) -> None:
        self.count += 1
        self.ms += ms
        self.slowest_ms = max(self.slowest_ms, ms)

    def build(self, key: _LogKey) -> LogBuild:
        return LogBuild(*key[:4], round(self.ms, 3), key[4], self.count, self.slowest_ms, self.log, self.line)


def log_flags(groups: list[LogBuild]) -> LogFlags:
    """The flags of records that are aggregated by identity and status."""
    by_place: dict[tuple[str, str, int | None], list[LogBuild]] = {}
    by_module: dict[tuple[str, str], list[LogBuild]] = {}
    for group in groups:
        if group.hash is not None:
            by_place.setdefault((group.name, group.device, group.block_dim), []).append(group)
        if group.status is Status.CACHED:
            by_module.setdefault((group.name, group.device), []).append(group)
    several = [_several_hashes(*place, members) for place, members in by_place.items()]
    cached = [_cached_loads(*module, members) for module, members in by_module.items()]
    again = [group for group in groups if group.status is Status.COMPILED and group.count > 1]
    errors = [group for group in groups if group.status is Status.ERROR]
    costly = [one for one in cached if one.slowest_ms >= SLOW_CACHED_LOAD_MS or one.loads >= MANY_CACHED_LOADS]
    return LogFlags(
        several_hashes=tuple(
            sorted((one for one in several if one.hashes > 1), key=lambda one: (-one.compiled_ms, -one.hashes))
        ),
        compiled_again=tuple(sorted(again, key=lambda one: -one.ms)),
        errors=tuple(sorted(errors, key=lambda one: -one.ms)),
        cached_loads=tuple(sorted(costly, key=lambda one: -one.ms)),
    )


def _several_hashes(name: str, device: str, block_dim: int | None, groups: list[LogBuild]) -> SeveralHashes:
    compiled = [group for group in groups if group.status is Status.COMPILED]
    return SeveralHashes(
        name=name,
        device=device,
        block_dim=block_dim,
        hashes=len({group.hash for group in groups}),
        compiled=sum(group.count for group in compiled),
        compiled_ms=round(sum(group.ms for group in compiled), 3),
    )


def _cached_loads(name: str, device: str, groups: list[LogBuild]) -> CachedLoads:
    return CachedLoads(
        name=name,
        device=device,
        loads=sum(group.count for group in groups),
        ms=round(sum(group.ms for group in groups), 3),
        slowest_ms=max(group.slowest_ms for group in groups),
    )


def log_notes(
    flags: LogFlags, versions: tuple[str, ...], builds: list[LogBuild] | None, left_out: int
) -> tuple[Notice, ...]:
    """What keeps the figures and flags of a log from meaning more than they do."""
    notes = []
    hidden = any(one.block_dim is None for one in flags.several_hashes)
    if hidden and not (versions and all(_version(version) < (1, 5) for version in versions)):
        notes.append(
            Notice(
                "block-dim-not-shown",
                "without block_dim in the lines, several hashes of a module prove no rebuild: from Warp 1.5 on"
                " block_dim is in the hash. Warp 1.9 and later print it in debug output (wp.config.log_level ="
                " wp.LOG_DEBUG; before 1.14 wp.config.verbose = True)",
            )
        )
    if flags.compiled_again:
        notes.append(
            Notice(
                "compiled-again",
                "an identity compiled more than once: several processes or runs in one log, or a cache that was"
                " cleared, moved or switched off; a log cannot tell which, `measure` can",
            )
        )
    repeated = _repeated_lines(builds or [])
    if repeated:
        notes.append(
            Notice(
                "repeated-lines",
                f"{repeated} compiled records repeat an earlier one to the hundredth of a millisecond: the log probably"
                " shows them twice (test runners repeat output in failure reports), and the sums count them twice",
            )
        )
    if left_out:
        notes.append(
            Notice(
                "identities-left-out",
                f"more than {LOG_DETAIL_LIMIT} different identities and statuses: {left_out} records are counted by"
                " status only, and the number of identities is a lower bound",
            )
        )
    return tuple(notes)


def _version(text: str) -> tuple[int, ...]:
    """Major and minor number of a release."""
    return tuple(int(digits) for digits in re.findall(r"\d+", text)[:2])


def _repeated_lines(builds: list[LogBuild]) -> int:
    """How many compiled records have the identity and the time of an earlier one."""
    compiled = [build for build in builds if build.status is Status.COMPILED]
    return len(compiled) - len({(one.name, one.hash, one.device, one.block_dim, one.ms) for one in compiled})


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

TEXT_LINES = 120
TEXT_CHARACTERS = 10_000

# --- Rendering of `parse` ---

_LOG_TABLE_ROWS = 40
_LOG_FLAG_ROWS = 8
# A module of a single kernel (`module="unique"`) is named after the kernel and 8 hex digits of its hash.
_UNIQUE_NAME = re.compile(r"_[0-9a-f]{8}\Z")


def render_log_report(report: LogReport) -> str:
    """The text of `parse`: what compilation cost, the flags, then the identities; at most 120 lines."""
    lines = [*_log_head(report), *_log_flag_lines(report.flags)]
    if report.notes:
        lines += ["", *(f"note ({note.name}): {note.text}" for note in report.notes)]
    if report.builds:
        lines += ["", *_log_table(report.builds)]
    return bounded_text(lines)


def bounded_text(lines: list[str]) -> str:
    """Lines as text that is safe for a terminal, within the limits of lines and characters."""
    text = [printable(line) + "\n" for line in lines]
    if len(text) > TEXT_LINES or sum(map(len, text)) > TEXT_CHARACTERS:
        kept: list[str] = []
        room = TEXT_CHARACTERS - 80  # for the line that says what is missing
        for line in text[: TEXT_LINES - 1]:
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        text = [*kept, f"... {len(text) - len(kept)} more lines: --json FILE has all of it\n"]
    return "".join(text)


def printable(text: str) -> str:
    """`text` with everything that a terminal could act on written as a backslash escape."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def _log_head(report: LogReport) -> list[str]:
    summary = report.summary
    shown = ", ".join(report.logs[:3]) + (f" and {len(report.logs) - 3} more" if len(report.logs) > 3 else "")
    shown = _shortened(shown, 100)
    unreadable = f"unreadable  {summary.unreadable:>7}  torn lines that looked like records"
    if not summary.records:
        lines = [
            f"{shown}: no module line of Warp",
            "Warp prints them to stdout at log level INFO; a program may have raised the level, set its own logger",
            "or redirected its output. `measure` does not depend on them.",
        ]
        return [*lines, unreadable] if summary.unreadable else lines
    versions = ", Warp " + ", ".join(report.warp_versions[:4]) if report.warp_versions else ""
    native = "not shown: Warp prints it in debug output only"
    if summary.native_compile_ms is not None:
        native = f"{_ms(summary.native_compile_ms)} in lines of its own"
    lines = [
        f"{shown}: {_count(summary.records, 'record')} of {_count(summary.identities, 'module identity')}{versions}",
        f"compiled    {summary.compiled:>7}  {_ms(summary.cold_module_ms)}",
        f"cached      {summary.cached:>7}  {_ms(summary.cached_ms)}",
        f"error       {summary.error:>7}  {_ms(summary.error_ms)}",
    ]
    if summary.no_status:
        lines.append(
            f"no status   {summary.no_status:>7}  {_ms(summary.no_status_ms)}  (Warp before 1.3, or a torn line)"
        )
    if summary.unreadable:
        lines.append(unreadable)
    if summary.starts > 1:
        lines.append(f"Warp starts {summary.starts:>7}  so the log holds several processes or runs")
    return [*lines, f"native compiler      {native}"]


def _log_flag_lines(flags: LogFlags) -> list[str]:
    several = [
        f"{_ms(one.compiled_ms)}  {one.hashes:>4} hashes  {one.compiled:>4} compiled"
        f"  {_place(one.device, one.block_dim)}  {_shortened(one.name)}"
        for one in flags.several_hashes
    ]
    again = [
        f"{_ms(one.ms)}  {one.count:>4} times  {one.hash or '-':7}  {_place(one.device, one.block_dim)}"
        f"  {_shortened(one.name)}"
        for one in flags.compiled_again
    ]
    cached = [
        f"{_ms(one.ms)}  {one.loads:>4} loads, slowest {one.slowest_ms:,.1f} ms  {one.device}  {_shortened(one.name)}"
        for one in flags.cached_loads
    ]
    blocks = [
        ("SEVERAL HASHES of a module at one device and block_dim", several),
        ("COMPILED AGAIN: the same identity more than once", again),
        ("ERRORS by module", _error_rows(flags.errors)),
        (f"CACHED LOADS slower than {SLOW_CACHED_LOAD_MS:.0f} ms, or {MANY_CACHED_LOADS} and more of a module", cached),
    ]
    lines = []
    for title, rows in blocks:
        if rows:
            lines += ["", f"{title} ({len(rows)})", *(f"  {row}" for row in rows[:_LOG_FLAG_ROWS])]
        if len(rows) > _LOG_FLAG_ROWS:
            lines.append(f"  ... {len(rows) - _LOG_FLAG_ROWS} more")
    return lines


def _error_rows(errors: tuple[LogBuild, ...]) -> list[str]:
    """One row for each module or family of unique modules at a device and block_dim, the costliest first."""
    families = _log_families(errors)
    rows = sorted(families.items(), key=lambda item: -sum(error.ms for error in item[1]))
    return [
        f"{_ms(sum(error.ms for error in members))}  {sum(error.count for error in members):>4} errors"
        f"  {_place(device, block_dim)}  {_shortened(family)}"
        for (family, device, block_dim), members in rows
    ]


def _log_families(builds: tuple[LogBuild, ...]) -> dict[tuple[str, str, int | None], list[LogBuild]]:
    """The records by module, or family of unique modules, device and block_dim."""
    families: dict[tuple[str, str, int | None], list[LogBuild]] = {}
    for build in builds:
        family = _UNIQUE_NAME.sub("_*", build.name)
        families.setdefault((family, build.device, build.block_dim), []).append(build)
    return families


def _log_table(builds: tuple[LogBuild, ...]) -> list[str]:
    """The identities, the costliest first; modules and families of unique modules with more than three are one row."""
    rows = []
    for (family, device, block_dim), members in _log_families(builds).items():
        identities: dict[tuple[str, str | None], list[LogBuild]] = {}
        for member in members:
            identities.setdefault((member.name, member.hash), []).append(member)
        if len(identities) > 3:
            rows.append(_log_row(f"x{len(identities)}", device, block_dim, family, members))
        else:
            rows += [
                _log_row(digits or "-", device, block_dim, name, same) for (name, digits), same in identities.items()
            ]
    rows.sort(key=lambda row: -row[0])
    title = "device, block_dim, module (xN: N identities)"
    lines = [f"{'ms':>14}  {'compiled':>8} {'cached':>6} {'error':>5}  {'hash':7}  {title}"]
    lines += [text for _, text in rows[:_LOG_TABLE_ROWS]]
    if len(rows) > _LOG_TABLE_ROWS:
        lines.append(f"... {len(rows) - _LOG_TABLE_ROWS} more rows: --json FILE has all of them")
    return lines


def _log_row(digits: str, device: str, block_dim: int | None, name: str, builds: list[LogBuild]) -> tuple[float, str]:
    """The time of all loads of one row, and the row."""
    ms = sum(build.ms for build in builds)
    counts = {status: sum(build.count for build in builds if build.status is status) for status in Status}
    compiled, cached, error = counts[Status.COMPILED], counts[Status.CACHED], counts[Status.ERROR]
    return ms, (
        f"{_ms(ms)}  {compiled:>8} {cached:>6} {error:>5}  {digits:7}  {_place(device, block_dim)}  {_shortened(name)}"
    )


def _place(device: str, block_dim: int | None) -> str:
    device = _shortened(device, 16)
    return device if block_dim is None else f"{device} {block_dim}"


def _ms(value: float) -> str:
    return f"{value:>11,.1f} ms"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def _shortened(text: str, width: int = 72) -> str:
    """`text` without its middle where it is longer than `width`."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width // 2]}...{text[len(text) - width // 2 + 3 :]}"


# --- End of the rendering of `parse` ---

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

# --- The command `parse` ---

_READ_BYTES = 1 << 20


def command_parse(args: argparse.Namespace) -> ExitCode:
    """`parse LOG... [--json FILE|-]`. Raises InputError for a file that cannot be read or written."""
    logs: list[str] = args.logs
    target: str | None = args.json
    if logs.count("-") > 1:
        raise InputError("the log '-' came more than once: standard input can be read only once, name it once")
    if target not in (None, "-"):
        _refuse_to_overwrite(target, logs)
    report = parse_logs(logs)
    if target is not None:
        _write_document(target, to_json(report))
    if target != "-":
        sys.stdout.write(render_log_report(report))
    return ExitCode.OK


def parse_logs(logs: list[str]) -> LogReport:
    """Read the named logs ('-': standard input) piece by piece. Raises InputError for one that cannot be read."""
    tally = LogTally()
    for name in logs:
        parser = LogParser()
        tally.open_log(name)
        for chunk in _log_chunks(name):
            for record in parser.feed(chunk):
                tally.add(record)
        for record in parser.close():
            tally.add(record)
        tally.close_log(parser)
    return tally.report()


def _log_chunks(name: str) -> typing.Iterator[bytes]:
    """The bytes of a log; UTF-16 with a byte order mark, into which PowerShell 5 redirects, becomes UTF-8."""
    try:
        with _open_log(name) as stream:
            chunk = stream.read(_READ_BYTES)
            if chunk[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                while chunk:
                    yield chunk
                    chunk = stream.read(_READ_BYTES)
                return
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
            while chunk:
                yield decoder.decode(chunk).encode("utf-8")
                chunk = stream.read(_READ_BYTES)
    except FileNotFoundError:
        raise InputError(f"no log {name!r}: expected the path of a text file, or - for standard input") from None
    except IsADirectoryError:
        raise InputError(f"{name!r} is a directory: expected a log file; name the files in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read the log {name!r}: {reason}; check its path and permissions") from None


def _open_log(name: str) -> typing.BinaryIO:
    if name != "-":
        return open(name, "rb")
    if sys.stdin is None:
        raise InputError("standard input is closed: pipe a log into it, or name a file")
    return open(sys.stdin.fileno(), "rb", closefd=False)


def _refuse_to_overwrite(target: str, logs: list[str]) -> None:
    for name in logs:
        with contextlib.suppress(OSError, ValueError):
            if name != "-" and os.path.samefile(target, name):
                raise InputError(f"--json {target!r} is one of the logs and would overwrite it: name another file")


def _write_document(target: str, document: Any) -> None:
    """One JSON document to a file (whole or not at all) or, for '-', to standard output."""
    if target == "-":
        _dump(document, sys.stdout)
        return
    path = os.path.realpath(target)
    partial = f"{path}.{os.getpid()}.part"
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe is written to, not replaced.
            with open(target, "w", encoding="utf-8") as stream:
                _dump(document, stream)
            return
        try:
            with open(partial, "w", encoding="utf-8") as stream:
                _dump(document, stream)
            os.replace(partial, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot write --json {target!r}: {reason}; name a file in a writable directory") from None


def _dump(document: Any, stream: typing.TextIO) -> None:
    json.dump(document, stream, indent=1)
    stream.write("\n")


# --- End of the command `parse` ---

# ---------------------------------------------------------------------------------------------------------------------
# Argument parser and main
# ---------------------------------------------------------------------------------------------------------------------


def add_parse_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `parse` to the commands; the parsed arguments name `command_parse` as `handler`."""
    parser = commands.add_parser(
        "parse",
        help="read Warp's module lines out of a log",
        description="Read Warp's module and compiler lines out of logs: which modules were compiled, what that cost,"
        " and what a log alone can show of avoidable work.",
    )
    parser.add_argument("logs", nargs="+", metavar="LOG", help="a log file, or - for standard input")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - is standard output, without text")
    parser.set_defaults(handler=command_parse)


def main(argv: list[str] | None = None) -> int:
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
