#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what an NVIDIA Warp program compiles and launches, and judge whether a change helped.

The pipeline: run the command with empty private caches, and again with the caches it filled -> a recorder inside
each of its Python processes writes down every module load and kernel launch -> cross-check with the output and the
cache directories -> one JSON report -> text.

    warp_compile_probe.py measure [options] -- COMMAND   measure a program, cold and warm
    warp_compile_probe.py measure --demo                 the same on a small built-in program
    warp_compile_probe.py report FILE --format html      show a saved report: text, page, or trace for Perfetto
    warp_compile_probe.py compare BASELINE CANDIDATE     judge two reports: improved, regressed, or not to be told
    warp_compile_probe.py ab [options] -- COMMAND        measure two trees, revisions or options interleaved, and judge
    warp_compile_probe.py what-if [options] -- COMMAND   try options of Warp one by one: a ledger of what each buys
    warp_compile_probe.py parse LOG                      read Warp's module lines out of a log

Reading order: what a report holds, what a log says; statistics, diagnosis, comparison and gates; rendering as text,
Markdown, trace and page; the recorder, which alone runs inside the target; reading what it wrote; running the command
in isolation, and several arms of it; the commands and their options.

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

import _thread
import argparse
import ast
import atexit
import base64
import codecs
import collections
import contextlib
import dataclasses
import datetime
import difflib
import enum
import errno
import functools
import hashlib
import heapq
import importlib.util
import io
import itertools
import json
import lzma
import marshal
import math
import operator
import os
import platform
import random
import re
import shlex
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import types
import typing
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar
from xml.etree import ElementTree as ET

# ---------------------------------------------------------------------------------------------------------------------
# Constants
# ---------------------------------------------------------------------------------------------------------------------

PROBE_VERSION = "0.1.0"
REPORT_SCHEMA = "warp-compile-probe/report"
LOG_SCHEMA = "warp-compile-probe/log"
SCHEMA_VERSION = 1
MAX_INTEGER_DIGITS = 18  # no report holds more, and sums of such numbers do not overflow
MAX_NUMBER = 1e15
MAX_ENCODED_LAUNCH_BYTES = 1 << 20  # compressed launch order kept a run
FIRST_LAUNCHES_KEPT = 100_000  # of a stream whose order is too long to keep
ENCODED_PIECE_BYTES = 1 << 18
# The releases of Warp whose internals the recorder hooks, as far as they have been tried.
OLDEST_WARP = "1.10"
NEWEST_WARP = "1.19"


class ExitCode(enum.IntEnum):
    """Exit codes of every command. Where several apply, the first one here wins."""

    INTERRUPTED = 130
    TERMINATED = 143
    TIMEOUT = 124
    PROBE_BUG = 70
    USAGE = 2
    COMMAND_FAILED = 10
    UNVERIFIED = 4
    TOPOLOGY_CHANGED = 3
    REGRESSION = 1
    GATE_EXCEEDED = 6
    EVIDENCE_MISSING = 5
    OK = 0


def winning_exit_code(codes: Iterable[ExitCode]) -> ExitCode:
    """The first of `codes` in the order of `ExitCode`; OK if there are none."""
    return min(codes, key=list(ExitCode).index, default=ExitCode.OK)


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
    """COLD starts from empty private caches, WARM from those it filled, SETTLE follows a warm run that compiled.

    OFFLINE compiles for a CUDA architecture what it loads on the CPU, from empty caches; OFFLINE_WARM from those.
    """

    COLD = "cold"
    WARM = "warm"
    SETTLE = "settle"
    OFFLINE = "offline"
    OFFLINE_WARM = "offline-warm"


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
    DRIVER_CACHE_OFF = "driver-cache-off"


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
    ENDED_BY_PROBE = "ended-by-probe"


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
    OPTION_RESTATED = "option-restated"
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
class UnreachedOption:
    """A configuration value that a module had copied at its creation and that was assigned another value since."""

    name: str
    module_value: str
    config_value: str


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel in a module that was loaded: `unique` if it has a module of its own, `backward` if adjoint code is built
    for it, `overload` if it is an instance of a generic kernel; `unrolled` is the largest number of copies of a loop
    body in it (1 without constant loops)."""

    key: str
    site: Site
    unique: bool
    overload: bool
    backward: bool
    unrolled: int


@dataclass(frozen=True)
class LtoArtifact:
    """One link-time-optimisation artifact as it was compiled (not one that was found in the cache); `adjoint` if it is
    for backward code."""

    symbol: str
    bytes: int
    ms: float
    adjoint: bool = False


@dataclass(frozen=True)
class Load:
    """One module load that was not already resident.

    `ms` is Warp's own timer interval, from `start_ms` to `end_ms`; `hash_ms` lies before it. `hash` has 64 hex digits
    (7 where only a log line is known, null where Warp strips it). `workers` is set for loads through `force_load`: 1
    where they ran one after the other. `error` is set too where a load succeeded and a kernel was missing in it.
    `option_set` and `kernels` are indices into the `option_sets` and `built_kernels` of the process.
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
    in_capture: bool
    option_set: int | None
    kernels: tuple[int, ...]
    unreached: tuple[UnreachedOption, ...]
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
class ConfigEvent:
    """An assignment to `warp.config` by the program, values as text."""

    name: str
    before: str
    after: str
    at_ms: float
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
    `option_sets` are the resolved module options of its loads, `tapes` how often it began to record a tape.
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
    config_events: tuple[ConfigEvent, ...]
    option_sets: tuple[dict[str, str], ...]
    built_kernels: tuple[BuiltKernel, ...]
    tapes: int
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
    """What the command wrote: sizes, and the SHA-256 of its standard output without Warp's own lines.

    `line_digests` holds 8 hex digits for each of the first 2,000 of those lines, so that a difference has a place.
    """

    stdout_bytes: int
    stderr_bytes: int
    stdout_digest: str
    line_digests: str = ""


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
    """A diagnosed mechanism with its evidence; `avoidable_ms` is null where only a measurement can tell.

    `see` names the section of the page about mechanisms, relative to the folder above the script's.
    """

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


class Varied(str, enum.Enum):
    """What an experiment varies on purpose between its arms: the working tree, variables, or options of Warp."""

    TREE = "tree"
    ENV = "env"
    SET = "set"


@dataclass(frozen=True)
class Options:
    """The options of `measure` that a comparison must know.

    `set` holds the values of --set as they were given. `revision` is the git revision whose files were measured, null
    for a directory as it was. `varied` says in what the arms of the experiment differ that this report belongs to.
    """

    samples: int
    timeout_s: float | None
    env: dict[str, str]
    inherit_tmpdir: bool
    expect_exit: int
    demo: bool
    set: dict[str, str] = dataclasses.field(default_factory=dict)
    revision: str | None = None
    varied: tuple[Varied, ...] = ()


@dataclass(frozen=True)
class OfflineBlock:
    """What the command would build on a CUDA architecture, compiled through NVRTC right where it loads its modules on
    the CPU, without a device.

    Only loads of kind `offline` are in its samples, and launches at the block_dim that was asked for; `wall_ms` of its
    runs is the time of those loads alone, so that `cold_wall_ms` is what compiling costs and nothing else.
    """

    toolkit: str | None
    coverage: Coverage
    samples: tuple[Sample, ...]
    summary: Summary | None
    identities: tuple[IdentityRecord, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[Notice, ...]


@dataclass(frozen=True)
class Report:
    """The JSON of `measure`; `offline` holds what `--cuda-arch` added, by device (`sm_90`)."""

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
    offline: dict[str, OfflineBlock]

    @classmethod
    def from_json(cls, value: Any) -> Report:
        """Read a report from parsed JSON. Raises InputError with the path of what is not as expected."""
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


_type_hints = functools.cache(typing.get_type_hints)


def _read(kind: Any, value: Any, path: str) -> Any:
    """One value of any annotation used in the data model."""
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        (inner,) = [option for option in typing.get_args(kind) if option is not types.NoneType]
        return None if value is None else _read(inner, value, path)
    if origin is tuple:
        _expect(list, "a list", value, path)
        item_kind = typing.get_args(kind)[0]
        return tuple(_read(item_kind, item, f"{path}[{index}]") for index, item in enumerate(value))
    if origin is dict:
        _expect(dict, "an object", value, path)
        item_kind = typing.get_args(kind)[1]
        return {key: _read(item_kind, item, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value, path)
    if issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            allowed = ", ".join(str(member.value) for member in kind)
            raise InputError(f"{path}: expected one of {allowed}; found {value!r}") from None
    if kind is float:
        _expect((int, float), "a number", value, path)
        if not abs(value) <= MAX_NUMBER:
            raise InputError(f"{path}: expected a number of at most {MAX_NUMBER:g}")
        return float(value)
    _expect(kind, kind.__name__, value, path)
    if kind is int and abs(value) >= 10**MAX_INTEGER_DIGITS:
        raise InputError(f"{path}: expected a whole number of at most {MAX_INTEGER_DIGITS} digits")
    return value


def _expect(kinds: type | tuple[type, ...], called: str, value: Any, path: str) -> None:
    # To Python true and false are integers, to JSON they are not.
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise InputError(f"{path}: expected {called}, found {type(value).__name__}")


def _read_dataclass(kind: Any, value: Any, path: str) -> Any:
    _expect(dict, "an object", value, path)
    hints = _type_hints(kind)
    for name in hints:
        if name not in value:
            raise InputError(f"{path}: {name!r} is missing")
    for name in value:
        if name not in hints:
            raise InputError(f"{path}: unknown key {name!r}")
    return kind(**{name: _read(hint, value[name], f"{path}.{name}") for name, hint in hints.items()})


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
MANY_CACHED_LOG_RECORDS = 100

_RECORD_ANCHOR = b"load on device"
_NATIVE_ANCHOR = b"Compile "
_BANNER_ANCHOR = b" initialized:"
# A quotation mark as Warp prints it, or as JSON, HTML, a shell or a word processor rewrote it.
_QUOTE = rb"(?:\\?'|\\u0027|&#39;|&#x27;|\xe2\x80[\x98\x99])"
_DEVICE = rb"(load on device) %b([^\x00-\x20\x7f'\"\\<>{}&]{1,64}?)%b(?: \(block_dim=(\d{1,9})\))?" % (_QUOTE, _QUOTE)
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
    known = Status(status.decode()) if status else Status.UNKNOWN
    return LogRecord(*_log_identity(name, digits, device, block_dim), float(ms), known, line)


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
        self._parsers: list[LogParser] = []
        self._builds: list[LogBuild] | None = []
        self._groups: dict[_LogKey, _LogGroup] = {}
        self._left_out = {status: _LogGroup(0, 0) for status in Status}

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
        self._parsers.append(parser)

    def report(self) -> LogReport:
        """The result so far."""
        groups = [group.build(key) for key, group in self._groups.items()]
        flags = log_flags(groups)
        versions = tuple(dict.fromkeys(version for parser in self._parsers for version in parser.versions))
        left_out = sum(group.count for group in self._left_out.values())
        return LogReport(
            schema=LOG_SCHEMA,
            schema_version=SCHEMA_VERSION,
            probe_version=PROBE_VERSION,
            logs=tuple(self._logs),
            warp_versions=versions,
            summary=self._summary(groups),
            flags=flags,
            notes=log_notes(flags, versions, self._builds or [], left_out),
            builds_aggregated=self._builds is None,
            builds=tuple(groups if self._builds is None else self._builds),
        )

    def _summary(self, groups: list[LogBuild]) -> LogSummary:
        counts = {status: left_out.count for status, left_out in self._left_out.items()}
        times = {status: left_out.ms for status, left_out in self._left_out.items()}
        for group in groups:
            counts[group.status] += group.count
            times[group.status] += group.ms
        native = [parser.native_compile_ms for parser in self._parsers if parser.native_compiles]
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
            native_compile_ms=round(math.fsum(native), 3) if native else None,
            unreadable=sum(parser.unreadable for parser in self._parsers),
            starts=sum(parser.starts for parser in self._parsers),
        )


@dataclass(slots=True)
class _LogGroup:
    """Count and time of records that share something, and where the first one stands."""

    log: int
    line: int
    count: int = 0
    ms: float = 0.0
    slowest_ms: float = 0.0

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
    costly = [one for one in cached if one.slowest_ms >= SLOW_CACHED_LOAD_MS or one.loads >= MANY_CACHED_LOG_RECORDS]
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


def log_notes(flags: LogFlags, versions: Sequence[str], builds: list[LogBuild], left_out: int) -> tuple[Notice, ...]:
    """What keeps the figures and flags of a log from meaning more than they do. `builds` is empty where aggregated."""
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
    repeated = _repeated_lines(builds)
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
    too_few = min(len(lower.values), len(higher.values)) < MIN_JUDGED_SAMPLES
    if not too_few and p <= SIGNIFICANCE:
        return TimeEvidence(change, band, Support.SUPPORTED, p, None)
    support = Support.TOO_FEW if too_few else Support.OVERLAP
    return TimeEvidence(change, band, support, p, needed_samples(lower.values, higher.values))


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
    if len(values) < 5:
        return False
    half = len(values) // 2
    early, late = statistics.median(values[:half]), statistics.median(values[-half:])
    if abs(late - early) <= 0.02 * abs(early):
        return False
    pairs = list(itertools.combinations(values, 2))
    discordant = sum(after < before for before, after in pairs)
    tied = sum(after == before for before, after in pairs)
    fewest = min(discordant, len(pairs) - discordant - tied) + tied
    orders = _orders_up_to(len(values))
    return Fraction(2 * orders[fewest], orders[-1]) <= SIGNIFICANCE


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

# From where on a finding is worth a reader's time; times below NOTABLE_MS or NOTABLE_SHARE of the run are not.
OVERLAP_FACTOR = 1.15
LINK_DOMINATED_SHARE = 0.5
MANY_CACHED_LOADS = 1000
NOTABLE_MS = 200.0
NOTABLE_SHARE = 0.10
MAX_EVIDENCE = 12


class Mechanism(str, enum.Enum):
    """What a finding can say; a closed set, explained in `MECHANISMS_PAGE` and in the schema of the report."""

    CS_1 = "CS-1"  # kernels or functions changed after the first load
    CS_2 = "CS-2"  # the cache was not reused
    CS_3 = "CS-3"  # an option set after the first load
    CS_4 = "CS-4"  # modules of one kernel
    CS_5 = "CS-5"  # several block_dims
    CS_6 = "CS-6"  # new instances of a generic kernel
    CS_7 = "CS-7"  # link-time optimisation
    CS_8 = "CS-8"  # CPU loads at the same time
    CS_9 = "CS-9"  # unique modules of one kernel
    CS_10 = "CS-10"  # unused backward code
    CS_11 = "CS-11"  # unrolled loops
    CS_12 = "CS-12"  # the precompiled header
    CS_13 = "CS-13"  # CUDA modules built one at a time
    REBUILD = "rebuild"
    UNPROVEN_REBUILD = "unproven-rebuild"
    VARIANT_NEVER_LAUNCHED = "variant-never-launched"
    MODULE_NEVER_LAUNCHED = "module-never-launched"
    BUILT_PER_PROCESS = "built-per-process"
    OPTION_NEVER_ARRIVED = "option-never-arrived"
    IDENTITY_UNSTABLE = "identity-unstable"
    SECOND_RUN_BUILD = "second-run-build"
    CACHED_LOAD_COST = "cached-load-cost"
    HASHING_COST = "hashing-cost"
    BUILDS_OVERLAPPED = "builds-overlapped"
    CPU_PARALLEL_LOAD = "cpu-parallel-load"
    LOAD_IN_CAPTURE = "load-in-capture"
    BUILD_ERROR = "build-error"


class Identity(typing.NamedTuple):
    """What Warp compiles once and caches; `hash` has as many digits as are known."""

    name: str
    hash: str | None
    device: str
    block_dim: int | None


@dataclass(frozen=True)
class Measured:
    """A complete sample: its cold run, the run after it, and the run that every warm figure comes from."""

    cold: Run
    second: Run
    warm: Run


def complete_samples(samples: Sequence[Sample]) -> list[Measured]:
    """The samples that can be counted, in order."""
    return [
        Measured(sample.cold, sample.warm, concluding)
        for sample in samples
        if sample.complete and sample.cold and sample.warm and (concluding := sample.concluding_warm)
    ]


def loads_of(run: Run) -> list[Load]:
    """The loads of every process; those for an architecture without a device are never mixed into other figures."""
    return [load for process in run.processes for load in process.loads if load.kind is not LoadKind.OFFLINE]


def builds_of(run: Run) -> list[Load]:
    """The builds of every process."""
    return [load for load in loads_of(run) if load.is_build]


def counted_sample(sample: Sample) -> Sample:
    """A sample of an offline block with its loads as builds, so that everything that counts builds counts them."""

    def counted(run: Run | None) -> Run | None:
        if run is None:
            return None
        processes = tuple(
            dataclasses.replace(
                process, loads=tuple(dataclasses.replace(load, kind=LoadKind.JIT) for load in process.loads)
            )
            for process in run.processes
        )
        return dataclasses.replace(run, processes=processes)

    return dataclasses.replace(sample, cold=counted(sample.cold), warm=counted(sample.warm))


def offline_report(report: Report, device: str, name: str) -> Report:
    """The offline block of a report as a report of its own. `name` is what an InputError calls the report."""
    block = report.offline.get(device)
    if block is None:
        there = ", ".join(report.offline) or "none"
        raise InputError(
            f"{name} holds no offline block for {device} (there: {there});"
            f" measure it with --cuda-arch {device.removeprefix('sm_')}"
        )
    return dataclasses.replace(
        report,
        environment=dataclasses.replace(report.environment, cuda_toolkit=block.toolkit),
        coverage=block.coverage,
        samples=tuple(map(counted_sample, block.samples)),
        summary=block.summary,
        identities=block.identities,
        findings=block.findings,
        warnings=block.warnings,
        offline={},
    )


def options_of(process: Process, load: Load) -> dict[str, str]:
    """The resolved options of a module as it was loaded; none where they are not known, or a report points nowhere."""
    index = load.option_set
    return {} if index is None or not 0 <= index < len(process.option_sets) else process.option_sets[index]


def kernels_of(process: Process, load: Load) -> list[BuiltKernel]:
    """The kernels in a module as it was loaded; none where they are not known."""
    return [process.built_kernels[index] for index in load.kernels]


def union_ms(intervals: Iterable[tuple[float, float]]) -> float:
    """Length that the intervals (start, end) cover together; an interval that ends before it starts covers nothing."""
    covered = 0.0
    reached = -math.inf
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
        warm_builds=measured[0].warm.builds,
        generated_source_bytes=sum(load.generated_source_bytes for load in builds),
        lto_artifacts=sum(len(load.lto) for load in jit),
        lto_bytes=sum(artifact.bytes for load in jit for artifact in load.lto),
        launches=sum(process.launches.count for process in first.processes),
        graph_replays_unknown=sum(process.launches.graph_replays_unknown for process in first.processes),
        cold_module_ms=over(lambda sample: _total_ms(builds_of(sample.cold))),
        error_ms=over(lambda sample: _total_ms(load for load in loads_of(sample.cold) if load.status is Status.ERROR)),
        native_compile_ms=over_parts(lambda phases: phases.native_ms),
        codegen_ms=over_parts(lambda phases: phases.codegen_ms),
        lto_ms=over_parts(lambda phases: phases.lto_ms),
        load_ms=over_parts(lambda phases: phases.load_ms),
        hash_ms=over(lambda sample: math.fsum(load.hash_ms for load in builds_of(sample.cold))),
        warm_module_ms=over(lambda sample: _total_ms(loads_of(sample.warm))),
        warm_wall_ms=over(lambda sample: sample.warm.wall_ms),
        cold_wall_ms=over(lambda sample: sample.cold.wall_ms),
        compile_elapsed_ms=over_known(_compile_elapsed_ms),
        build_span_ms=over(lambda sample: _build_span_ms(sample.cold)),
        overlap_factor=over_known(lambda sample: _overlap_factor(sample.cold)),
        compile_share=over(
            lambda sample: _span_within_ms(sample.cold) / sample.cold.wall_ms if sample.cold.wall_ms > 0 else 0.0
        ),
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
    """The figures of a summary that are counted, not timed, by name.

    The size of linked artifacts is none: two links of the same code differ by some bytes (CUDA toolkit 13.4).
    """
    counted = [field.name for field in dataclasses.fields(Summary) if field.type == "int" and field.name != "lto_bytes"]
    return [(name, getattr(summary, name)) for name in counted]


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

    @property
    def ms(self) -> float:
        """Its timer interval."""
        return self.load.ms

    @property
    def header_ms(self) -> float:
        """What of that went into a precompiled header."""
        return (self.load.phases and self.load.phases.header_ms) or 0.0

    @property
    def site(self) -> Site | None:
        """Where it was asked for."""
        return self.load.site

    @property
    def kernels(self) -> list[BuiltKernel]:
        """The kernels in the module."""
        return kernels_of(self.process, self.load)


def _ordered_builds(run: Run) -> list[Build]:
    """Builds by process, within one by start; those without a known start keep their order, after the others."""
    ordered = [
        (owner, process, load)
        for owner, process in enumerate(run.processes)
        for load in sorted(process.loads, key=lambda load: math.inf if load.start_ms is None else load.start_ms)
        if load.is_build
    ]
    return [Build(number, *parts) for number, parts in enumerate(ordered)]


def _build_slots(builds: Iterable[Build]) -> dict[tuple[object, ...], list[Build]]:
    """Builds that are each other's rebuilds: of one module in one process, for the same device and block_dim.

    Where the block_dim is not known (a line of the output), only the same hash again is a proven rebuild: Warp's hash
    holds the block_dim. A build without either has a slot to itself.
    """
    slots: dict[tuple[object, ...], list[Build]] = {}
    for build in builds:
        load = build.load
        known: object = load.block_dim if load.block_dim is not None else load.hash or (build.number,)
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


def _build_span_ms(run: Run, until: float = math.inf) -> float:
    """Wall time, up to a moment, during which anything was hashed, built or loaded for a load."""
    timers = [(load, _timer_interval(load)) for load in loads_of(run)]
    span = union_ms((min(timer[0] - load.hash_ms, until), min(timer[1], until)) for load, timer in timers if timer)
    # When a load known from the output happened is not known, only how long it took: it is taken to stand alone.
    unplaced = math.fsum(load.hash_ms + load.ms for load, timer in timers if timer is None)
    return span + min(unplaced, max(0.0, run.wall_ms - span))


def _span_within_ms(run: Run) -> float:
    """The part of that time before the command's end: processes that outlive it may load modules afterwards."""
    view = run.kind in (RunKind.OFFLINE, RunKind.OFFLINE_WARM)  # it lasts as long as its loads, wherever they are
    return _build_span_ms(run, math.inf if view else run.wall_ms)


def _timer_interval(load: Load) -> tuple[float, float] | None:
    return None if load.start_ms is None or load.end_ms is None else (load.start_ms, load.end_ms)


def _overlap_factor(run: Run) -> float | None:
    """How far the timers of builds count the same time twice; 1.0 is not at all, None without builds."""
    summed = covered = 0.0
    for process in run.processes:
        builds = [load for load in process.loads if load.is_build]
        summed += _total_ms(builds)
        covered += union_ms(interval for load in builds if (interval := _timer_interval(load)))
        covered += _total_ms(load for load in builds if _timer_interval(load) is None)
    return summed / covered if covered else None


# Findings: every rule looks at one sample and says what it found; a build is credited to the first rule that claims it.


@dataclass(frozen=True)
class Case:
    """What a rule looks at: a complete sample, the builds of its cold run in order, what went unseen in any run, and
    the numbers of the builds that no earlier rule was credited with."""

    sample: Measured
    builds: tuple[Build, ...]
    gaps: tuple[Gap, ...]
    uncredited: frozenset[int]

    def is_open(self, build: Build) -> bool:
        """Whether a rule may still claim the build."""
        return build.number in self.uncredited


@dataclass(frozen=True)
class Claim:
    """A finding and the numbers of the builds that it accounts for; `avoidable_ms` may count only those."""

    finding: Finding
    credited: frozenset[int]


def findings(samples: Sequence[Sample], gaps: Sequence[Gap]) -> tuple[Finding, ...]:
    """What the complete samples show: redundant work first, by what it would save, then hints by what they cost.

    Costs are those of one sample, the middle one by cold module time of those with the exact facts of the first, so
    that the avoidable times of all findings together stay within `cold_module_ms`.
    """
    measured = complete_samples(samples)
    if not measured:
        return ()
    sample = _typical(samples)
    builds = tuple(_ordered_builds(sample.cold))
    case = Case(sample, builds, tuple(gaps), frozenset(range(len(builds))))
    found: list[Finding] = []
    for rule in RULES:
        claims = list(rule(case))
        found += [claim.finding for claim in claims]
        credited = frozenset().union(*(claim.credited for claim in claims))
        case = dataclasses.replace(case, uncredited=case.uncredited - credited)
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


def _find_rebuilds(case: Case) -> Iterator[Claim]:
    """One finding a module, device and block_dim; all builds but the dearest of each process need not have happened."""
    modules: dict[tuple[str, str, int | None], list[list[Build]]] = {}
    for slot in _build_slots(case.builds).values():
        load = slot[0].load
        if any(case.is_open(build) for build in slot[1:]):
            modules.setdefault((load.name, load.device, load.block_dim), []).append(slot)
    for (name, device, block_dim), slots in modules.items():
        again = [build for slot in slots for build in slot[1:] if case.is_open(build)]
        cost = _total_ms(again)
        spare = math.fsum(_total_ms(slot) - max(build.ms for build in slot) for slot in slots)
        hashes = {build.load.hash for slot in slots for build in slot}
        changed = len(hashes) > 1 or None in hashes
        why = "it changed after it was first loaded" if changed else "it was unloaded, or its cache cleared or off"
        yield _claim(
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
            where=_first_site(again),
            text=f"{name} was built {sum(map(len, slots))} times on {device}{_at_dim(block_dim)} in"
            f" {plural(len(slots), 'process', 'processes')}, {_hashes_seen(hashes)}: {why}.",
            credited=again,
        )


def _find_unproven_rebuilds(case: Case) -> Iterator[Claim]:
    """Builds known from the output only, which shows no block_dim."""
    modules: dict[tuple[int, str, str], list[Build]] = {}
    for build in case.builds:
        if build.load.block_dim is None and case.is_open(build):
            modules.setdefault((build.owner, build.load.name, build.load.device), []).append(build)
    for (_, name, device), builds in modules.items():
        hashes = {build.load.hash for build in builds}
        if len(hashes) > 1:
            yield _claim(
                Mechanism.UNPROVEN_REBUILD,
                FindingKind.HINT,
                module=(name, device, None),
                cost_ms=_total_ms(builds[1:]),
                evidence=[_how(build.load) for build in builds],
                text=f"{name} was built {len(builds)} times on {device}, {_hashes_seen(hashes)}; the output shows no"
                " block_dim, so whether it changed or was asked for at several block_dims cannot be told.",
            )


def _find_never_launched(case: Case) -> Iterator[Claim]:
    """Builds at a block_dim without a launch, of modules that are launched at another one."""
    modules: dict[tuple[str, str, int], list[Build]] = {}
    launched_at: dict[tuple[str, str, int], set[int]] = {}
    for (owner, name, device), by_dim in _block_dims(case.builds).items():
        if len(by_dim) < 2 or not _launches_seen(case, owner):
            continue
        launched = _launched(case, owner, name, device)
        for block_dim in sorted(by_dim.keys() - launched.keys()) if launched else ():
            builds = [build for build in by_dim[block_dim] if case.is_open(build)]
            modules.setdefault((name, device, block_dim), []).extend(builds)
            launched_at.setdefault((name, device, block_dim), set()).update(launched)
    for (name, device, block_dim), builds in modules.items():
        others = _listed([str(dim) for dim in sorted(launched_at[name, device, block_dim])], 8)
        yield _claim(
            Mechanism.VARIANT_NEVER_LAUNCHED,
            FindingKind.REDUNDANT,
            module=(name, device, block_dim),
            cost_ms=_total_ms(builds),
            avoidable_ms=_spared_ms(case, builds, modules.values()),
            evidence=[*(_how(build.load) for build in builds), f"launched on {device} at block_dim {others} only"],
            where=_first_site(builds),
            text=f"{name} was built on {device} at block_dim {block_dim}, and nothing was launched at it.",
            credited=builds,
        )


def _find_loaded_in_vain(case: Case) -> Iterator[Claim]:
    """Modules that a program built ahead, all that are registered perhaps, and of which it launched nothing.

    A process that launches nothing at all may fill the cache for others.
    """
    groups: dict[tuple[str, Site | None], list[Build]] = {}
    for build in case.builds:
        ahead = build.load.workers is not None and case.is_open(build)
        if ahead and _is_idle(case, build) and _launches_seen(case, build.owner):
            groups.setdefault((build.load.device, build.site), []).append(build)
    for (device, site), builds in groups.items():
        names = sorted({build.load.name for build in builds})
        yield _claim(
            Mechanism.MODULE_NEVER_LAUNCHED,
            FindingKind.REDUNDANT,
            module=(names[0] if len(names) == 1 else None, device, None),
            cost_ms=_total_ms(builds),
            avoidable_ms=_spared_ms(case, builds, groups.values()),
            evidence=[_load_line(build.load) for build in builds],
            where=site,
            text=f"{_listed(names, 6)} {'was' if len(names) == 1 else 'were'} built ahead on {device}, and nothing of"
            f" {'it' if len(names) == 1 else 'them'} was launched in this run.",
            credited=builds,
        )


def _find_variants(case: Case) -> Iterator[Claim]:
    """Modules built at several block_dims; redundant where a kernel is built at one at which it is never launched."""
    modules: dict[tuple[str, str], list[tuple[int, dict[int, list[Build]]]]] = {}
    for (owner, name, device), by_dim in _block_dims(case.builds).items():
        kept = {dim: builds for dim, builds in by_dim.items() if case.is_open(builds[0])}
        if len(kept) > 1:
            modules.setdefault((name, device), []).append((owner, kept))
    for (name, device), groups in modules.items():
        further = []
        evidence = []
        redundant = False
        for owner, by_dim in groups:
            launched = _launched(case, owner, name, device)
            kernels = [launched.get(dim, collections.Counter()) for dim in by_dim]
            if _launches_seen(case, owner):
                redundant |= any(used.keys() != kernels[0].keys() for used in kernels)
            further += sorted((builds[0] for builds in by_dim.values()), key=lambda build: build.number)[1:]
            for (dim, builds), used in zip(by_dim.items(), kernels, strict=True):
                launches = plural(used.total(), "launch", "launches")
                evidence.append(f"block_dim {dim}: {_how(builds[0].load)}, {launches} of {_listed(sorted(used), 4)}")
        dims = _listed([str(dim) for dim in sorted({dim for _, by_dim in groups for dim in by_dim})], 8)
        unused = "; some were launched at one of these only" if redundant else ""
        yield _claim(
            Mechanism.CS_5,
            FindingKind.REDUNDANT if redundant else FindingKind.HINT,
            module=(name, device, None),
            cost_ms=_total_ms(further),
            evidence=evidence,
            where=_first_site(further),
            text=f"{name} was built on {device} at block_dim {dims}, each time with all of its kernels{unused}.",
            credited=further,
        )


def _modules_built(builds: Sequence[Load]) -> str:
    """`1 module`; where one was built more than once, `1 module in 2 builds`."""
    modules = len({load.name for load in builds})
    return plural(modules, "module") + (f" in {len(builds):,} builds" if modules < len(builds) else "")


def _find_warm_builds(case: Case) -> Iterator[Claim]:
    """What the concluding warm run built: the same hashes again (the cache was not reused), or others."""
    warm = case.sample.warm
    identity_of = identity_resolver([case.sample.cold, warm])
    cold_identities = {identity_of(load) for load in builds_of(case.sample.cold)}
    builds = builds_of(warm)
    again = [load for load in builds if identity_of(load) in cold_identities]
    other = [load for load in builds if identity_of(load) not in cold_identities]
    if again:
        events = [event for process in warm.processes for event in process.cache_events]
        clearing = any(event.kind in CLEARING for event in events)
        word = _maintenance_word(warm) if clearing else None
        why = f", as the command asks for with {word}" if word else ": every start pays for them again"
        yield _claim(
            Mechanism.CS_2,
            FindingKind.HINT if word else FindingKind.REDUNDANT,
            cost_ms=_total_ms(again),
            evidence=[*dict.fromkeys(map(_event_line, events)), *map(_load_line, again)],
            where=_first_site([*events, *again]),
            text=f"With the caches filled, the program still built {_modules_built(again)} with the hash that"
            f" the cold run had built{why}.",
        )
    if other:
        yield _claim(
            Mechanism.IDENTITY_UNSTABLE,
            FindingKind.REDUNDANT,
            cost_ms=_total_ms(other),
            evidence=_explained(other),
            where=_first_site([*(change for load in other for change in _changes(load)), *other]),
            text=f"With the caches filled, the program still built {_modules_built(other)} with a name or hash"
            " that the cold run had not built: what they are made of differs between runs of unchanged code.",
        )


CLEARING = (CacheEventKind.CLEAR_KERNEL_CACHE, CacheEventKind.DIRECTORY_DELETED)  # what makes a module build again


def _find_driver_cache_off(case: Case) -> Iterator[Claim]:
    """CUDA_CACHE_DISABLE set by the program itself, where it loads modules for CUDA."""
    events = [event for process in case.sample.cold.processes for event in process.cache_events]
    off = [event for event in events if event.kind is CacheEventKind.DRIVER_CACHE_OFF]
    loads = [load for load in loads_of(case.sample.cold) if load.device.startswith("cuda")]
    if not off or not loads:
        return
    yield _claim(
        Mechanism.CS_2,
        FindingKind.HINT,
        cost_ms=math.fsum(load.phases.load_ms for load in loads if load.phases),
        evidence=[*map(_event_line, off), *map(_load_line, loads)],
        where=_first_site(off),
        text="The program sets CUDA_CACHE_DISABLE=1: where Warp hands PTX to the driver, the driver compiles it anew at"
        " every start.",
    )


def _find_second_run_builds(case: Case) -> Iterator[Claim]:
    builds = builds_of(case.sample.second)
    if not builds or case.sample.warm.builds:
        return
    yield _claim(
        Mechanism.SECOND_RUN_BUILD,
        FindingKind.HINT,
        cost_ms=_total_ms(builds),
        evidence=_explained(builds),
        where=_first_site(builds),
        text=f"The second run still built {_modules_built(builds)}, the third none: it took two starts"
        " to fill the cache.",
    )


def _find_cached_load_cost(case: Case) -> Iterator[Claim]:
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
        return
    distinct = len({(path, load.name, load.hash, load.device, load.block_dim) for path, load in loads})
    families: dict[str, list[float]] = {}
    for _, load in loads:
        families.setdefault(f"{family(load.name)} on {load.device}", []).append(load.ms + load.hash_ms)
    dearest = sorted(families.items(), key=lambda item: -math.fsum(item[1]))
    sites = collections.Counter(load.site for _, load in loads if load.site)
    yield _claim(
        Mechanism.CACHED_LOAD_COST,
        FindingKind.REDUNDANT if distinct * 2 <= len(loads) else FindingKind.HINT,
        cost_ms=cost,
        evidence=[f"{name}: {plural(len(ms), 'load')}, {duration(math.fsum(ms))}" for name, ms in dearest],
        where=sites.most_common(1)[0][0] if sites else None,
        text=f"With the caches filled, {plural(len(loads), 'load')} of"
        f" {plural(distinct, 'identity', 'identities')} took {duration(cost)}.",
    )


def _find_hashing_cost(case: Case) -> Iterator[Claim]:
    warm = case.sample.warm
    hashings = sum(process.hashings for process in warm.processes)
    cost = math.fsum(process.hash_ms for process in warm.processes) - math.fsum(load.hash_ms for load in loads_of(warm))
    if not _is_notable(cost, warm):
        return
    yield _claim(
        Mechanism.HASHING_COST,
        FindingKind.HINT,
        cost_ms=cost,
        evidence=[f"{plural(hashings, 'hashing')}, {plural(len(loads_of(warm)), 'load')} in the warm run"],
        text=f"Hashing modules that were already loaded took {duration(cost)} of the warm run: kernels or"
        " functions are defined again and again.",
    )


def _find_overlap(case: Case) -> Iterator[Claim]:
    factor = _overlap_factor(case.sample.cold)
    if factor is None or factor <= OVERLAP_FACTOR:
        return
    summed = _total_ms(case.builds)
    threads = len({(build.owner, build.load.thread) for build in case.builds})
    yield _claim(
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


def _find_link_dominated(case: Case) -> Iterator[Claim]:
    modules: dict[tuple[str, str], list[tuple[Load, float]]] = {}
    for load in (build.load for build in case.builds):
        if load.phases and load.phases.lto_ms > LINK_DOMINATED_SHARE * load.ms:
            modules.setdefault((load.name, load.device), []).append((load, load.phases.lto_ms))
    for (name, device), builds in modules.items():
        linking = math.fsum(lto_ms for _, lto_ms in builds)
        total = math.fsum(load.ms for load, _ in builds)
        artifacts = [artifact for load, _ in builds for artifact in load.lto]
        yield _claim(
            Mechanism.CS_7,
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


def _find_errors(case: Case) -> Iterator[Claim]:
    modules: dict[tuple[str, str], tuple[list[Load], list[Load]]] = {}
    for position, run in enumerate((case.sample.cold, case.sample.warm)):
        for load in loads_of(run):
            if load.status is Status.ERROR:
                modules.setdefault((load.name, load.device), ([], []))[position].append(load)
    for (name, device), (cold, warm) in modules.items():
        errors = cold or warm
        again = "the warm run failed at it too" if cold and warm else "not in the warm run" if cold else ""
        yield _claim(
            Mechanism.BUILD_ERROR,
            FindingKind.REDUNDANT,
            module=(name, device, errors[0].block_dim),
            cost_ms=_total_ms(errors),
            evidence=[*map(_error_line, errors), again],
            where=_first_site(errors),
            text=f"{plural(len(errors), 'load')} of {name} on {device} ended with an error in the"
            f" {'cold' if cold else 'warm'} run.",
        )


def _find_built_per_process(case: Case) -> Iterator[Claim]:
    identity_of = identity_resolver([case.sample.cold])
    identities: dict[Identity, dict[int, float]] = {}
    for build in case.builds:
        owners = identities.setdefault(identity_of(build.load), {})
        owners[build.owner] = max(build.ms, owners.get(build.owner, 0.0))
    shared = {identity: owners for identity, owners in identities.items() if identity.hash and len(owners) > 1}
    if not shared:
        return
    cost = {identity: sum(owners.values()) - max(owners.values()) for identity, owners in shared.items()}
    yield _claim(
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


# Rules for the mechanisms CS-1 to CS-13, from causes, options and kernels of the builds.

# What a rebuild of such a cause is called, and what to say of it.
REBUILD_CAUSES: dict[CauseReason, tuple[Mechanism, str]] = {
    CauseReason.KERNEL_ADDED: (Mechanism.CS_1, "kernels were added to it after it was first loaded"),
    CauseReason.KERNEL_REDEFINED: (
        Mechanism.CS_1,
        "kernels were defined again, with other contents, after it was first loaded",
    ),
    CauseReason.KERNEL_REMOVED: (Mechanism.CS_1, "kernels that it was first loaded with were dropped"),
    CauseReason.FUNCTION_CHANGED: (
        Mechanism.CS_1,
        "a function that its kernels call changed after it was first loaded",
    ),
    CauseReason.STRUCT_CHANGED: (Mechanism.CS_1, "a struct that its kernels use changed after it was first loaded"),
    CauseReason.OPTION_CHANGED: (Mechanism.CS_3, "an option of it was set after it was first loaded"),
    CauseReason.OPTION_RESTATED: (
        Mechanism.CS_3,
        "an option of it was set, after it was first loaded, to what it meant anyway",
    ),
    CauseReason.GENERIC_INSTANCE_ADDED: (
        Mechanism.CS_6,
        "a generic kernel of it met new argument types after it was first loaded",
    ),
    CauseReason.SAME_HASH_AGAIN: (
        Mechanism.CS_2,
        "nothing in it had changed, but its compiled form was no longer in the cache or not looked for there",
    ),
}
SINGLE_KERNEL_MODULES = 3  # from how many on modules of one kernel count as too finely cut
# Generated source from which unused backward code is worth a look. About half of it is backward code; a small module
# of 3 kB builds in the same time with and without, since its build is fixed cost.
BACKWARD_SOURCE_BYTES = 40_000
LARGE_SOURCE_BYTES = 40_000  # generated source a kernel from which its unrolled loops are worth a look
MANY_COPIES = 8  # of a loop body, from which unrolling can be what makes source large
PARALLEL_CEILING = 1.3  # sum of builds over the largest one, from which overlapping them could pay
MAINTENANCE_WORD = re.compile(
    r"^-*(rebuild|clean|clear|purge|reset|relink|refresh|invalidate)([-_=].*)?$", re.IGNORECASE
)


def _find_changed_modules(case: Case) -> Iterator[Claim]:
    """Rebuilds whose cause is known: one finding a mechanism, module, device and block_dim."""
    groups: dict[tuple[Mechanism, str, str, int | None], list[tuple[Build, float, str]]] = {}
    for slot in _build_slots(case.builds).values():
        for build, avoidable in zip(slot[1:], _avoidable_parts(slot), strict=True):
            load = build.load
            if load.cause is not None and load.cause.reason in REBUILD_CAUSES:
                mechanism, clause = REBUILD_CAUSES[load.cause.reason]
                group = groups.setdefault((mechanism, load.name, load.device, load.block_dim), [])
                group.append((build, avoidable, clause))
    purpose = _maintenance_word(case.sample.cold)
    for (mechanism, name, device, block_dim), found in groups.items():
        builds = [build for build, _, _ in found]
        changes = list(dict.fromkeys(change for build in builds for change in _changes(build.load)))
        times = "once" if len(builds) == 1 else f"{len(builds):,} times"
        clauses = list(dict.fromkeys(clause for _, _, clause in found))
        clearing = any(change.name in CLEARING for change in changes)
        on_purpose = purpose if mechanism is Mechanism.CS_2 and clearing else None
        yield _claim(
            mechanism,
            FindingKind.HINT if on_purpose else FindingKind.REDUNDANT,
            module=(name, device, block_dim),
            cost_ms=_total_ms(builds),
            avoidable_ms=None if on_purpose else math.fsum(part for _, part, _ in found),
            evidence=[*map(change_text, changes), *(_how(build.load) for build in builds)],
            where=_first_site([*changes, *builds]),
            text=f"{name} was built again {times} on {device}{_at_dim(block_dim)}:"
            f" {_joined(clauses)}"
            f"{f', as the command asks for with {on_purpose}' if on_purpose else ''}.",
            credited=builds,
        )


def _joined(clauses: Sequence[str]) -> str:
    """`a`, `a, and b`, `a, b, and c`."""
    return ", ".join(clauses[:-1]) + f", and {clauses[-1]}" if len(clauses) > 1 else "".join(clauses)


def _maintenance_word(run: Run) -> str | None:
    """A word of the program's command line that asks for a clean build, such as `--rebuild-kernels`."""
    for process in run.processes:
        for before, word in itertools.pairwise(process.argv):
            if before != "-m" and MAINTENANCE_WORD.match(word):
                return word
    return None


def _avoidable_parts(slot: Sequence[Build]) -> list[float]:
    """What each rebuild of a slot would save if its module were built once, as large as its dearest build: the sum of
    all but the dearest. Where the dearest is a rebuild itself, the first build's time is what it would save."""
    dearest = max(range(len(slot)), key=lambda index: slot[index].ms)
    return [slot[0].ms if index == dearest else slot[index].ms for index in range(1, len(slot))]


def _changes(load: Load) -> tuple[Change, ...]:
    return load.cause.changes if load.cause is not None else ()


def change_text(change: Change) -> str:
    """One difference between two identities, in words: before this, now that, and where."""
    where = f" (at {place(change.site)})" if change.site else ""
    values = "" if change.before is None and change.after is None else f": before {change.before}, now {change.after}"
    key, _, part = change.name.partition(": ")
    name, value = kernel_name(key), f", {part}{values}" if part else values
    phrases = {
        CauseReason.KERNEL_ADDED: f"kernel {name} was added",
        CauseReason.KERNEL_REMOVED: f"kernel {name} was no longer alive",
        CauseReason.KERNEL_REDEFINED: f"kernel {name} was defined again{value or ' with another body'}",
        CauseReason.GENERIC_INSTANCE_ADDED: f"generic kernel {name} gained the instance ({change.after})",
        CauseReason.FUNCTION_CHANGED: f"function {name} was defined again or uses other values{value}",
        CauseReason.STRUCT_CHANGED: f"struct {change.name} changed{values}",
        CauseReason.OPTION_CHANGED: f"option {change.name}{values}",
        CauseReason.OPTION_RESTATED: f"option {change.name}{values}: the same in other words, only the hash moved",
        CauseReason.SAME_HASH_AGAIN: f"{change.name}{f' of {change.after}' if change.after else ''}",
    }
    return phrases.get(change.reason, change.reason.value) + where


def _find_never_arrived(case: Case) -> Iterator[Claim]:
    """Configuration that a program assigned after a module had copied it: the module never saw the new value."""
    missed: dict[str, list[tuple[Load, UnreachedOption, ConfigEvent | None]]] = {}
    for process in case.sample.cold.processes:
        for load in process.loads:
            kernels = kernels_of(process, load)
            for option in load.unreached:
                if option.name == "enable_backward" and kernels and not any(kernel.backward for kernel in kernels):
                    continue  # each kernel says so itself
                missed.setdefault(option.name, []).append((load, option, _assignment(process, option, load)))
    for name, found in missed.items():
        by_values: dict[str, dict[str, None]] = {}
        for load, option, _ in found:
            values = f"kept {option.module_value}, warp.config has {option.config_value}"
            by_values.setdefault(values, {})[load.name] = None
        events = list(dict.fromkeys(event for _, _, event in found if event))
        names = sorted({load.name for load, _, _ in found})
        yield _claim(
            Mechanism.OPTION_NEVER_ARRIVED,
            FindingKind.REDUNDANT,
            module=(names[0] if len(names) == 1 else None, None, None),
            cost_ms=math.fsum(load.ms for load, _, _ in found if load.is_build),
            evidence=[
                *(f"warp.config.{name} = {e.after}, before {e.before}, at {place(e.site)}" for e in events if e.site),
                *(f"{_listed(list(modules), 6)}: {values}" for values, modules in by_values.items()),
            ],
            where=_first_site(events),
            text=f"warp.config.{name} was assigned after {_listed(names, 8)} had been created, so it never arrived"
            " there: a module copies it when its first kernel is defined.",
        )


def _assignment(process: Process, option: UnreachedOption, load: Load) -> ConfigEvent | None:
    """The assignment that a module missed: the last one of that value before the load."""
    until = math.inf if load.start_ms is None else load.start_ms
    for event in reversed(process.config_events):
        if (event.name, event.after) == (option.name, option.config_value) and event.at_ms <= until:
            return event
    return None


def _find_single_kernel_modules(case: Case) -> Iterator[Claim]:
    """Modules of one kernel that may belong together: each repeats the fixed cost of a build.

    Kernels with equal options that one file defines at its top level and that one process built are taken for one
    feature. What is left of a folder is a hint: its files may be several features, and kernels that a function makes
    may be specialised by run-time data.
    """
    larger = {(build.owner, build.load.name) for build in case.builds if len(build.load.kernels) > 1}
    groups: dict[object, dict[str, list[tuple[Build, BuiltKernel]]]] = {}
    for build in case.builds:
        load = build.load
        alone = len(load.kernels) == 1 and (build.owner, load.name) not in larger
        if not case.is_open(build) or not alone or load.option_set is None:
            continue
        (kernel,) = build.kernels
        options = {item for item in options_of(build.process, load).items() if item[0] != "block_dim"}
        folder = os.path.dirname(kernel.site.file)
        key = (kernel.unique, build.owner, folder, load.device, load.block_dim, frozenset(options))
        groups.setdefault(key, {}).setdefault(kernel.site.file, []).append((build, kernel))
    for files in groups.values():
        rest = []
        for found in files.values():
            fixed = [(build, kernel) for build, kernel in found if _is_top_level(kernel)]
            stable = len(_definitions(fixed)) >= SINGLE_KERNEL_MODULES
            if stable:
                yield _single_kernel_claim(fixed, stable=True)
            rest += [item for item in found if not stable or not _is_top_level(item[1])]
        if len({build.load.name for build, _ in rest}) >= SINGLE_KERNEL_MODULES:
            yield _single_kernel_claim(rest, stable=False)


def _is_top_level(kernel: BuiltKernel) -> bool:
    """Whether a kernel is known as soon as its file is imported: not made by a function, nor under a generated name,
    nor an instance of a generic kernel, which the types of its arguments make."""
    made = "__locals__" in kernel.key or not kernel.key.endswith(kernel.site.function)
    return not made and not kernel.overload


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package, which is not the user's to change."""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def _definitions(found: Sequence[tuple[Build, BuiltKernel]]) -> set[tuple[str, int]]:
    """Where the kernels are defined; one place may make several, specialised by their arguments."""
    return {(kernel.site.file, kernel.site.line) for _, kernel in found}


def _single_kernel_claim(found: Sequence[tuple[Build, BuiltKernel]], *, stable: bool) -> Claim:
    """What a group of modules of one kernel could save. Specialised kernels count once: in a shared module each further
    one would change it (CS-1)."""
    builds = [build for build, _ in found]
    definitions = len(_definitions(found))
    unique = found[0][1].unique
    fixed = min(build.ms - build.header_ms for build in builds)
    files = {kernel.site.file for _, kernel in found}
    folder = os.path.dirname(found[0][1].site.file)  # none: cells of a notebook, code that a program made
    where = (folder or f"{len(files):,} files") if len(files) > 1 else files.pop()
    sort = 'a unique module (module="unique")' if unique else "a module"
    repeated = len({build.load.hash for build in builds}) == 1
    others = all(is_installed(kernel.site.file) for _, kernel in found)
    installed = " They are of an installed package: the change is for its authors." if others else ""
    made = plural(definitions, "kernel")
    if definitions == 1:
        made = f"One kernel, {'each time with the same contents' if repeated else 'in several specialisations'},"
    if stable:
        advice = "loaded together, they could share a module and pay the fixed cost of a build once"
    elif definitions == 1 and repeated:
        advice = "under one module name it would be built once"
    else:
        advice = (
            "if they belong together and are all known at start, one module pays the fixed cost of a build once; if"
            " they depend on run-time data, or change apart, leave them apart"
        )
    return _claim(
        Mechanism.CS_9 if unique else Mechanism.CS_4,
        FindingKind.REDUNDANT if stable else FindingKind.HINT,
        module=(None, builds[0].load.device, builds[0].load.block_dim),
        cost_ms=_total_ms(builds),
        avoidable_ms=fixed * (definitions - 1) if stable else None,
        evidence=[
            f"the smallest of {len(builds)} builds took {duration(fixed)} without the header: each pays as much",
            *(f"{kernel_name(kernel.key)} at {place(kernel.site)}: {_how(build.load)}" for build, kernel in found),
        ],
        where=found[0][1].site,
        text=f"{made} of {where} {'are' if definitions > 1 else 'is'} built in {sort} each, {len(builds)} in all, with"
        f" equal options: {advice}.{installed}",
        credited=builds if stable else (),
    )


def _find_parallel_cpu_loads(case: Case) -> Iterator[Claim]:
    """CPU loads that overlap or may do so: Warp's native CPU compiler has lost kernels that way.

    A load whose error is set though it succeeded has a kernel that was not found in what had been built.
    """
    asked: list[Load] = []
    overlapping: list[Load] = []
    for process in case.sample.cold.processes:
        loads = [load for load in process.loads if load.device == "cpu" and load.kind is LoadKind.JIT]
        asked += [load for load in loads if (load.workers or 0) > 1]
        overlapping += [
            load for load in loads if any(_overlap(load, other) for other in loads if other.thread != load.thread)
        ]
    lost = [load for load in loads_of(case.sample.cold) if load.error and load.status is not Status.ERROR]
    loads = list(dict.fromkeys([*overlapping, *asked, *lost]))
    if not loads:
        return
    workers = max(load.workers or 0 for load in loads)
    together = f"{plural(len(overlapping), 'CPU load')} ran at the same time on several threads"
    could = f"{plural(len(asked), 'CPU load')} ran with up to {workers} workers"
    kernels = f"; {len(lost)} of them lost a kernel" if lost else ""
    yield _claim(
        Mechanism.CS_8 if overlapping or lost else Mechanism.CPU_PARALLEL_LOAD,
        FindingKind.HINT,
        module=(None, "cpu", None),
        cost_ms=_total_ms(loads),
        evidence=[*map(_error_line, lost), *map(_load_line, loads)],
        where=_first_site(loads),
        text=f"{together if overlapping or lost else could}{kernels}: some releases of Warp then lose kernels ('Failed"
        " to find ...' at a launch, not in every run). Use at most one worker wherever a load can be for the CPU.",
    )


def _overlap(one: Load, other: Load) -> bool:
    first, second = _timer_interval(one), _timer_interval(other)
    return bool(first and second and max(first[0], second[0]) < min(first[1], second[1]))


def _find_unused_backward(case: Case) -> Iterator[Claim]:
    """Adjoint code in modules of a run that recorded no tape and launched no adjoint."""
    processes = case.sample.cold.processes
    if any(process.tapes for process in processes):
        return
    if any(entry.adjoint for process in processes for entry in process.launches.entries):
        return
    found = []
    for build in case.builds:
        count = sum(kernel.backward for kernel in build.kernels)
        if count and not _is_idle(case, build):
            found.append((build, count))
    small = sum(build.load.generated_source_bytes for build, _ in found) < BACKWARD_SOURCE_BYTES
    if small and not any(artifact.adjoint for build, _ in found for artifact in build.load.lto):
        return
    modules = {build.load.name for build, _ in found}
    yield _claim(
        Mechanism.CS_10,
        FindingKind.HINT,
        module=(modules.pop() if len(modules) == 1 else None, None, None),
        cost_ms=math.fsum(build.ms - build.header_ms for build, _ in found),
        evidence=[
            f"{build.load.name} {_short(build.load.hash)}: {count} of {plural(len(build.kernels), 'kernel')} with"
            f" backward code, {build.load.generated_source_bytes:,} bytes of source, {duration(build.ms)}"
            f"{_adjoint_links(build.load)}"
            for build, count in sorted(found, key=lambda item: -item[0].ms)
        ],
        text=f"{plural(len(found), 'build')} generated backward code, and it was not used in this run: no tape"
        " was recorded and no adjoint launched.",
    )


def _adjoint_links(load: Load) -> str:
    """What linking for the adjoint took of a build; only the module option takes that away, not a kernel's."""
    links = [artifact for artifact in load.lto if artifact.adjoint]
    spent = duration(_total_ms(links))
    return f", {plural(len(links), 'LTO artifact')} of it for backward code, {spent}" if links else ""


def _find_unrolled_source(case: Case) -> Iterator[Claim]:
    """Large generated source of kernels with loops that were unrolled."""
    found = []
    for build in case.builds:
        unrolled = [kernel for kernel in build.kernels if kernel.unrolled >= MANY_COPIES]
        large = build.load.generated_source_bytes > LARGE_SOURCE_BYTES * len(build.load.kernels)
        if unrolled and large and not _is_idle(case, build):
            found.append((build, sorted(unrolled, key=lambda kernel: -kernel.unrolled)))
    if not found:
        return
    found.sort(key=lambda item: -item[0].load.generated_source_bytes)
    yield _claim(
        Mechanism.CS_11,
        FindingKind.HINT,
        cost_ms=_total_ms(build for build, _ in found),
        evidence=[
            f"{build.load.name} {_short(build.load.hash)}: {build.load.generated_source_bytes:,} bytes; "
            + ", ".join(
                f"{kernel_name(kernel.key)} repeats a loop body {kernel.unrolled} times" for kernel in unrolled[:4]
            )
            for build, unrolled in found
        ],
        where=found[0][1][0].site,
        text="Unrolled loops make the generated source of these kernels large.",
    )


def _find_header(case: Case) -> Iterator[Claim]:
    """The precompiled header: off where it would pay, or built for too few modules to pay, and most of their time."""
    off: dict[object, list[Build]] = {}
    on: dict[object, list[Build]] = {}
    for build in case.builds:
        process, load = build.process, build.load
        # A header serves one thread and block_dim, on CUDA (toolkit below 13, Warp 1.12 to 1.17) as on the CPU.
        key = (build.owner, load.device, load.thread, load.block_dim)
        if options_of(process, load).get("use_precompiled_headers") == "False":
            off.setdefault(key, []).append(build)
        elif load.phases and load.phases.header_ms is not None:
            on.setdefault(key, []).append(build)
    missed = [build for builds in off.values() if len(builds) > _header_pays_beyond(builds) for build in builds]
    wasted = [
        builds
        for builds in on.values()
        if 2 * _header_total_ms(builds) >= _total_ms(builds)
        and len(builds) <= _header_pays_beyond(builds)
        # A build that is redundant itself is no reason to switch the header off.
        and any(build.header_ms for build in builds)
        and any(map(case.is_open, builds))
    ]
    if missed:
        events = [event for process in case.sample.cold.processes for event in process.config_events]
        off_events = [event for event in events if (event.name, event.after) == ("use_precompiled_headers", "False")]
        yield _claim(
            Mechanism.CS_12,
            FindingKind.HINT,
            cost_ms=_total_ms(missed),
            evidence=[_load_line(build.load) for build in missed],
            where=_first_site(off_events),
            text=f"warp.config.use_precompiled_headers is off, so each of {plural(len(missed), 'build')} parsed Warp's"
            " headers again.",
        )
    if wasted:
        served = [build for builds in wasted for build in builds]
        header = _header_total_ms(served)
        yield _claim(
            Mechanism.CS_12,
            FindingKind.HINT,
            cost_ms=header,
            evidence=[
                f"{duration(build.header_ms)} for the header, in {_load_line(build.load)}"
                for build in served
                if build.header_ms
            ],
            text=f"{plural(len(wasted), 'precompiled header')} took {duration(header)} and served"
            f" {plural(len(served), 'build')}: with so few it may cost more than it saves.",
        )


def _header_pays_beyond(builds: Sequence[Build]) -> int:
    """Up to how many builds a header costs more than it saves, as measured on small modules.

    CPU, Warp 1.19, two cores: one module takes 5.1 s with and 3.6 s without, two 5.6 s and 7.9 s. CUDA toolkit 12.9:
    five take 2.38 s with and 1.94 s without, of which a header is 1.3 s.
    """
    return 1 if builds[0].load.device == "cpu" else 5


def _find_loads_in_capture(case: Case) -> Iterator[Claim]:
    loads = [load for run in (case.sample.cold, case.sample.warm) for load in loads_of(run) if load.in_capture]
    if not loads:
        return
    yield _claim(
        Mechanism.LOAD_IN_CAPTURE,
        FindingKind.HINT,
        cost_ms=math.fsum(load.ms for load in loads if load.is_build),
        evidence=map(_load_line, loads),
        where=_first_site(loads),
        text="Modules were loaded while a graph was being captured. CUDA drivers from 12.3 on can do that. With"
        " an older one Warp loads all modules first, unless force_module_load=False or a capture of another"
        " library keeps it from that: then it fails with error 900 on a cold cache and passes on a warm one.",
    )


def _find_serial_cuda_builds(case: Case) -> Iterator[Claim]:
    """Several independent CUDA modules, each built once, one after the other, and nothing redundant among them."""
    builds = [build for build in case.builds if build.load.device.startswith(("cuda", "sm_"))]
    if len(builds) < 2 or not all(map(case.is_open, builds)):
        return
    if any(build.load.device.startswith("sm_") and (build.load.workers or 0) > 1 for build in builds):
        return  # on a device the workers would overlap them; offline they run one at a time all the same
    total, largest = _total_ms(builds), max(build.ms for build in builds)
    spans = [span for build in builds if (span := _timer_interval(build.load))]
    serial = math.fsum(end - start for start, end in spans) <= OVERLAP_FACTOR * union_ms(spans)
    ceiling = total / largest if largest else 1.0
    if not serial or ceiling < PARALLEL_CEILING or len({build.load.name for build in builds}) < len(builds):
        return
    yield _claim(
        Mechanism.CS_13,
        FindingKind.HINT,
        module=(None, builds[0].load.device, None),
        cost_ms=total - largest,
        evidence=[
            f"ceiling {ceiling:.2f}: {duration(total)} in all, {duration(largest)} the largest",
            *(_load_line(build.load) for build in builds),
        ],
        where=_first_site(builds),
        text=f"{plural(len(builds), 'CUDA module')} were built one at a time. Loading them with several workers"
        f" before the first launch can be up to {ceiling:.1f} times as fast; for CUDA devices only.",
    )


# The order decides which rule is credited with a build that several could claim.
RULES: tuple[Callable[[Case], Iterator[Claim]], ...] = (
    _find_changed_modules,
    _find_rebuilds,
    _find_unproven_rebuilds,
    _find_never_launched,
    _find_loaded_in_vain,
    _find_variants,
    _find_single_kernel_modules,
    _find_serial_cuda_builds,
    _find_never_arrived,
    _find_warm_builds,
    _find_driver_cache_off,
    _find_second_run_builds,
    _find_cached_load_cost,
    _find_hashing_cost,
    _find_overlap,
    _find_link_dominated,
    _find_errors,
    _find_built_per_process,
    _find_parallel_cpu_loads,
    _find_unused_backward,
    _find_unrolled_source,
    _find_header,
    _find_loads_in_capture,
)


def section_of(mechanism: Mechanism) -> str:
    """Where the references explain a mechanism and its fix: a path in the skill's folder, with anchor."""
    return f"{MECHANISMS_PAGE}#{SHARED_SECTIONS.get(mechanism, mechanism.value.lower())}"


def _claim(
    mechanism: Mechanism,
    kind: FindingKind,
    *,
    module: tuple[str | None, str | None, int | None] = (None, None, None),
    cost_ms: float,
    avoidable_ms: float | None = None,
    evidence: Iterable[str],
    where: Site | None = None,
    text: str,
    credited: Iterable[Build] = (),
) -> Claim:
    """A finding about `module` (name, device, block_dim; None is any), or about the program as a whole."""
    shown = _limited(evidence)
    text = f"{text} {CONFIRM[mechanism]}"
    finding = Finding(mechanism.value, kind, *module, cost_ms, avoidable_ms, shown, where, text, section_of(mechanism))
    return Claim(finding, frozenset(build.number for build in credited))


# What a finding means and how to fix it: a page in the folder above the script's. A mechanism has a section of its own,
# called like it, or shares one.
MECHANISMS_PAGE = "references/mechanisms.md"
SHARED_SECTIONS: dict[Mechanism, str] = {
    Mechanism.CPU_PARALLEL_LOAD: "cs-8",
    Mechanism.VARIANT_NEVER_LAUNCHED: "never-launched",
    Mechanism.MODULE_NEVER_LAUNCHED: "never-launched",
    Mechanism.CACHED_LOAD_COST: "warm-costs",
    Mechanism.HASHING_COST: "warm-costs",
}


# The measurement that would confirm a finding, or show that it was none.
CONFIRM: dict[Mechanism, str] = {
    Mechanism.CS_1: "Define all of it before its first launch and measure again: one hash is left, and fewer builds.",
    Mechanism.CS_2: "Keep the cache and measure again: the warm run builds nothing.",
    Mechanism.CS_3: "Set it before the first launch and measure again: one hash is left, and fewer builds.",
    Mechanism.CS_4: "Merge those launched at one block_dim and measure again: fewer modules, less module time.",
    Mechanism.CS_5: "Give each block_dim a module of its own kernels, or ask for fewer, and measure again.",
    Mechanism.CS_6: "Register the usual types with wp.overload() before the first launch and measure again.",
    Mechanism.CS_7: "Measure with enable_mathdx_gemm, _solver or _fft off: the build, and the kernel's own run time.",
    Mechanism.CS_8: "Measure with max_workers=1.",
    Mechanism.CS_9: "Name a shared module and measure again: fewer modules, and less cold module time.",
    Mechanism.CS_10: "If nothing needs gradients, measure with enable_backward=False on these kernels or modules.",
    Mechanism.CS_11: "A smaller max_unroll shrinks it: measure the build, and the kernel's own run time.",
    Mechanism.CS_12: "Measure with the other setting, on the clock.",
    Mechanism.CS_13: "Measure wp.force_load(device, modules, max_workers) before the first launch, on the clock.",
    Mechanism.REBUILD: "Look for what differs between the two hashes, then measure again.",
    Mechanism.UNPROVEN_REBUILD: "Measure the program itself to tell.",
    Mechanism.VARIANT_NEVER_LAUNCHED: "Load it at the block_dim of its launches, or not ahead, and measure again.",
    Mechanism.MODULE_NEVER_LAUNCHED: "Name the modules that the program launches, not all, and measure again.",
    Mechanism.BUILT_PER_PROCESS: "Build once before they start, and measure again.",
    Mechanism.OPTION_NEVER_ARRIVED: "Assign it before the import that creates them and compare: their hashes move.",
    Mechanism.IDENTITY_UNSTABLE: "Make it the same in every run and measure again: the warm run builds nothing.",
    Mechanism.SECOND_RUN_BUILD: "Ship or keep a cache that two starts have filled.",
    Mechanism.CACHED_LOAD_COST: "Keep modules loaded, or join them, and measure the warm run again.",
    Mechanism.HASHING_COST: "Define them once and measure the warm run again.",
    Mechanism.BUILDS_OVERLAPPED: "Compare elapsed times only.",
    Mechanism.CPU_PARALLEL_LOAD: "Measure with max_workers=1.",
    Mechanism.LOAD_IN_CAPTURE: "If it must run there, launch each kernel once, or load its module, before the capture.",
    Mechanism.BUILD_ERROR: "Read its message; the time is spent at every start while the error remains.",
}


def _first_site(found: Iterable[Load | Build | CacheEvent | ConfigEvent | Change]) -> Site | None:
    return next((item.site for item in found if item.site), None)


def _launched(case: Case, owner: int, module: str, device: str) -> dict[int, collections.Counter[str]]:
    """Launches of a module on a device by block_dim and kernel key, in a process and what it forked."""
    processes = case.sample.cold.processes
    path = processes[owner].path
    launched: dict[int, collections.Counter[str]] = {}
    for position, process in enumerate(processes):
        if position != owner and not (process.how == "fork" and process.path.startswith(path + ".")):
            continue
        for entry in process.launches.entries:
            kernel = process.launches.kernels[entry.kernel]
            if kernel.module == module and kernel.device == device:
                launched.setdefault(kernel.block_dim, collections.Counter())[kernel.key] += entry.count
    return launched


def _is_idle(case: Case, build: Build) -> bool:
    """Whether nothing of the module was launched, though its process launched something: all of its code is unused,
    which is another finding than what its code is like."""
    launches = build.process.launches.count
    return launches > 0 and not _launched(case, build.owner, build.load.name, build.load.device)


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
        GapReason.ENDED_BY_PROBE,
    }
)


def _spared_ms(case: Case, builds: Sequence[Build], unused: Iterable[Sequence[Build]]) -> float:
    """What a program saves without these builds (some of the unused ones): all but the precompiled headers that other
    builds of the process need too, and would pay for instead.

    On the CPU there is a header a block_dim (Warp 1.13 and up). On CUDA that depends on the toolkit; one a process is
    assumed, so that no more is called avoidable than is.
    """

    def header_of(build: Build) -> tuple[int, str, int | None]:
        on_cpu = build.load.device == "cpu"
        return build.owner, "cpu" if on_cpu else "cuda", build.load.block_dim if on_cpu else None

    unused_numbers = {build.number for group in unused for build in group}
    needed = {header_of(build) for build in case.builds if build.number not in unused_numbers}
    moved = _header_total_ms(build for build in builds if header_of(build) in needed)
    return max(0.0, _total_ms(builds) - moved)


def _is_notable(ms: float, run: Run) -> bool:
    return ms >= NOTABLE_MS and ms >= NOTABLE_SHARE * run.wall_ms


def _header_total_ms(builds: Iterable[Build]) -> float:
    return math.fsum(build.header_ms for build in builds)


def _total_ms(timed: Iterable[Load | Build | LtoArtifact]) -> float:
    return math.fsum(one.ms for one in timed)


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


def _explained(loads: Iterable[Load]) -> list[str]:
    """Each load, and what differs from the identity that it was compared with."""
    return [line for load in loads for line in (_load_line(load), *map(change_text, _changes(load)))]


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

COMPARISON_SCHEMA = "warp-compile-probe/comparison"
CHUNK_LAUNCHES = 1 << 16
DECODER_MEMORY_BYTES = 128 << 20


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
    cwd: str


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


class OutputState(str, enum.Enum):
    """What the standard output of both reports says. VARIES: it is not even the same in all samples of one report."""

    SAME = "same"
    DIFFERS = "differs"
    VARIES = "varies"


@dataclass(frozen=True)
class OutputChange:
    """Where the standard output, without Warp's own lines, first differs: the run, and the line, counted from 1 (null
    behind the lines that a report has digests of). A hint on numerics, never a proof."""

    state: OutputState
    run: RunKind | None
    line: int | None


class OptionOutcome(str, enum.Enum):
    """What became of an option that was set for the candidate, in one module."""

    MOVED = "moved"
    HAD_VALUE = "had-that-value"
    MODULE_OPTION = "module-option"
    ASSIGNED_LATER = "assigned-later"
    NOT_HASHED = "not-in-hash"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class OptionReceipt:
    """Whether an option reached a module. `value` is what it was set to, null for Warp's own value; `detail` says why
    the hash did not move."""

    option: str
    value: str | None
    module: str
    device: str
    block_dim: int | None
    outcome: OptionOutcome
    detail: str


@dataclass(frozen=True)
class OptionChange:
    """An option of a module that has other values in the arms, and whether the hashes of the module moved with it."""

    option: str
    module: str
    device: str
    block_dim: int | None
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    hash_moved: bool


@dataclass(frozen=True)
class MissedOption:
    """An option that the candidate assigned in warp.config and that a module of it never got: it kept its value."""

    option: str
    module: str
    device: str
    block_dim: int | None
    kept: str
    assigned: str


@dataclass(frozen=True)
class OptionChanges:
    """Options that arrived in modules of the candidate, and those that did not; from the first complete samples."""

    arrived: tuple[OptionChange, ...]
    missed: tuple[MissedOption, ...]


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
    have; they are empty where times were not looked at. `exact` sums up `facts`. `varied` says what the experiment
    varied on purpose, `receipts` where the options it set arrived. `on` is the architecture whose offline blocks were
    judged, null for the reports themselves.
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
    options: OptionChanges
    findings: FindingChanges
    differences: tuple[FieldDifference, ...]
    varied: tuple[str, ...]
    receipts: tuple[OptionReceipt, ...]
    output: OutputChange | None
    baseline: Arm
    candidate: Arm
    warnings: tuple[Notice, ...]
    null_test: NullTest | None = None
    on: str | None = None


@dataclass(frozen=True)
class NullFigure:
    """How the verdict on one figure does where nothing differs: over `splits` ways to deal its values out to two arms,
    how many percent were called improved and regressed, and how many samples an arm an effect would need (null: more
    than 50)."""

    pooled: Timed
    splits: int
    improved_percent: float
    regressed_percent: float
    needed_samples: int | None


@dataclass(frozen=True)
class NullTest:
    """What the samples of one tree, taken as both arms, say about the verdict on this machine."""

    samples_an_arm: int
    effect_percent: float
    figures: dict[Metric, NullFigure]


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
    output: OutputChange


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
    names = [
        difference.name for difference in differences if difference.name not in meant_to_differ(baseline, candidate)
    ]
    if names:
        ruling = dataclasses.replace(ruling, why=f"{ruling.why}; allowed to differ: {', '.join(names)}")
    return _comparison(baseline, candidate, ruling, differences, evidence)


def complete_runs(report: Report) -> list[tuple[Run, Run]]:
    """The cold and the concluding warm run of every complete sample."""
    return [(sample.cold, sample.warm) for sample in complete_samples(report.samples)]


def first_cold_processes(report: Report) -> tuple[Process, ...]:
    """The processes of the first complete sample's cold run; none where no sample is complete."""
    return next((sample.cold.processes for sample in complete_samples(report.samples)), ())


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
    varied = varied_on_purpose(baseline, candidate)
    return Comparison(
        schema=COMPARISON_SCHEMA,
        schema_version=SCHEMA_VERSION,
        probe_version=PROBE_VERSION,
        verdict=ruling.verdict,
        decided_by=ruling.decided_by,
        reason=ruling.reason,
        why=f"{ruling.why}; varied on purpose: {', '.join(varied)}" if varied else ruling.why,
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
        options=option_changes(baseline, candidate),
        findings=_finding_changes(baseline, candidate),
        differences=differences,
        varied=varied,
        receipts=option_receipts(baseline, candidate, evidence.identities) if evidence else (),
        output=evidence.output if evidence else None,
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
        cwd=report.cwd,
    )


def _delta(before: Timed, after: Timed) -> Delta:
    change = after.median - before.median
    scale = abs(before.median)
    percent = 100 * change / scale if scale > 1e-6 else None
    return Delta(before, after, change, percent, abs(change) > noise_band(before))


def _finding_changes(baseline: Report, candidate: Report) -> FindingChanges:
    """What only one report finds. A finding that names no module (or device, or block_dim) is of any: one hint on
    several modules that becomes one on a single module is still there."""

    def subject(finding: Finding) -> tuple[str | int | None, ...]:
        return finding.module, finding.device, finding.block_dim

    def without(findings: Sequence[Finding], others: Sequence[Finding]) -> tuple[Finding, ...]:
        subjects: dict[str, set[tuple[str | int | None, ...]]] = {}
        for other in others:
            subjects.setdefault(other.mechanism, set()).add(subject(other))

        def is_there(finding: Finding) -> bool:
            known = subjects.get(finding.mechanism, set())
            pairs = (zip(subject(finding), other, strict=True) for other in known)
            return subject(finding) in known or any(all(a == b or None in (a, b) for a, b in both) for both in pairs)

        return tuple(finding for finding in findings if not is_there(finding))

    return FindingChanges(
        gone=without(baseline.findings, candidate.findings), new=without(candidate.findings, baseline.findings)
    )


@dataclass
class ModuleOptions:
    """The hashes of a module at one device and block_dim, and the values of each of its options, the last one last."""

    hashes: dict[str | None, None] = dataclasses.field(default_factory=dict)
    values: dict[str, dict[str, None]] = dataclasses.field(default_factory=dict)

    def last(self, name: str) -> str | None:
        """The value of an option in the last load; null where that was not seen."""
        return next(reversed(self.values.get(name, {})), None)


def option_changes(baseline: Report, candidate: Report) -> OptionChanges:
    """Options of modules that both reports have: which differ, and which the candidate assigned in vain."""
    before, after = _module_options(baseline), _module_options(candidate)
    arrived = []
    for key, old in before.items():
        new = after.get(key, ModuleOptions())
        for option in sorted(old.values.keys() | new.values.keys()) if old.values and new.values else ():
            values = tuple(old.values.get(option, ())), tuple(new.values.get(option, ()))
            if set(values[0]) != set(values[1]):
                moved = set(old.hashes) != set(new.hashes)
                arrived.append(OptionChange(option, *key, *values, hash_moved=moved))
    missed = dict.fromkeys(
        MissedOption(late.name, load.name, load.device, load.block_dim, late.module_value, late.config_value)
        for process in first_cold_processes(candidate)
        for load in process.loads
        if load.kind is not LoadKind.OFFLINE
        for late in load.unreached
    )
    return OptionChanges(tuple(arrived), tuple(missed))


def _module_options(report: Report) -> dict[Place, ModuleOptions]:
    """By name, device and block_dim, from the cold run of the first complete sample."""
    found: dict[Place, ModuleOptions] = {}
    for process in first_cold_processes(report):
        for load in process.loads:
            module = found.setdefault((load.name, load.device, load.block_dim), ModuleOptions())
            module.hashes[load.hash] = None
            for name, value in options_of(process, load).items():
                values = module.values.setdefault(name, {})
                values.pop(value, None)
                values[value] = None
    return found


# Step 1: comparable?


def field_differences(
    baseline: Report, candidate: Report, allowed: frozenset[ComparableField]
) -> tuple[FieldDifference, ...]:
    """Every property of the set-up that differs. What a report without a complete sample could not tell is none."""
    differences = []
    meant = meant_to_differ(baseline, candidate)
    for (field, name, before), (_, _, after) in zip(_fields(baseline), _fields(candidate), strict=True):
        untold = (before is None and not complete_runs(baseline)) or (after is None and not complete_runs(candidate))
        if before != after and not untold:
            differences.append(FieldDifference(field, name, before, after, field in allowed or name in meant))
    return tuple(differences)


def meant_to_differ(baseline: Report, candidate: Report) -> set[str]:
    """Names of the properties that the experiment of both reports varies."""
    return {f"--{varied.value}" for varied in set(baseline.options.varied) & set(candidate.options.varied)}


def varied_on_purpose(baseline: Report, candidate: Report) -> tuple[str, ...]:
    """What the experiment that both reports belong to varied between them, for a reader; empty without one."""
    before, after = baseline.options, candidate.options
    meant = set(before.varied) & set(after.varied)
    found = []
    if Varied.TREE in meant and (baseline.cwd, before.revision) != (candidate.cwd, after.revision):
        found.append(f"tree {before.revision or baseline.cwd} against {after.revision or candidate.cwd}")
    for varied, word, old, new in (
        (Varied.ENV, "env", before.env, after.env),
        (Varied.SET, "set", before.set, after.set),
    ):
        if varied not in meant:
            continue
        for arm, own, other in (("baseline", old, new), ("candidate", new, old)):
            found += [f"--{arm}-{word} {name}={own[name]}" for name in own if other.get(name) != own[name]]
    return tuple(found)


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
        (ComparableField.OPTIONS, "--set", " ".join(f"{k}={v}" for k, v in sorted(options.set.items())) or "none"),
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
    values = ["unknown" if value is None else printable(value, 80) for value in (first.baseline, first.candidate)]
    why = f"the reports differ in {names} ({first.name}: {' against '.join(values)}); if that is meant, add {options}"
    return Ruling(Verdict.NOT_COMPARABLE, VerdictReason.FIELD_DIFFERS, why)


# Step 2: seen?

# A gap that hides nothing: the load was recorded, only what it left in the cache directory is missing.
HARMLESS_GAPS = frozenset({GapReason.MISSING_CACHE_ENTRY})


def _rule_on_samples(baseline: Report, candidate: Report) -> Ruling | None:
    empty = [name for name, report in (("baseline", baseline), ("candidate", candidate)) if not complete_runs(report)]
    if not empty:
        return None
    verb = "has" if len(empty) == 1 else "have"
    why = (
        f"the {' and the '.join(empty)} {verb} no complete cold and warm sample: the command failed or was interrupted"
    )
    return Ruling(Verdict.INVALID, VerdictReason.NO_COMPLETE_SAMPLE, why)


def _deciding_gaps(report: Report) -> list[str]:
    """The gaps that could hide loads or launches, in words."""
    gaps = (gap for gap in report.coverage.gaps if gap.reason not in HARMLESS_GAPS)
    return [f"{gap.reason.value} ({printable(gap.detail, 160)})" for gap in gaps]


def _rule_on_coverage(baseline: Report, candidate: Report) -> Ruling | None:
    for name, report in (("baseline", baseline), ("candidate", candidate)):
        if gaps := _deciding_gaps(report):
            more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
            seen = f"the recorder could not see everything in the {name}: {gaps[0]}{more}"
            why = f"{seen}; loads or launches may be missing"
            return Ruling(Verdict.UNVERIFIED, VerdictReason.COVERAGE_GAP, why)
        runs = itertools.chain.from_iterable(complete_runs(report))
        launches = [process.launches for run in runs for process in run.processes]
        replays = sum(item.graph_replays_unknown for item in launches)
        if replays:
            why = f"the {name} replayed graphs {replays} times whose content is unknown: its launches are a lower bound"
            return Ruling(Verdict.UNVERIFIED, VerdictReason.GRAPH_REPLAYS_UNKNOWN, why)
        nameless = [kernel for item in launches for kernel in item.kernels if not kernel.content]
        if nameless:
            why = f"what kernel {printable(nameless[0].key, 80)} of the {name} computes could not be read"
            return Ruling(Verdict.UNVERIFIED, VerdictReason.KERNEL_CONTENT_UNKNOWN, why)
    return None


# Step 3: the same work?


def iter_launch_ids(stream: LaunchStream, limit: int | None = None) -> Iterator[array[int]]:
    """The indices of a stream in order, in arrays of 65,536 (the last one may be shorter), at most `limit` in all.

    Memory does not grow with the stream. Raises InputError where it is damaged.
    """
    expected = stream.count if stream.order is Order.EXACT else min(stream.count, FIRST_LAUNCHES_KEPT)
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


class LaunchNumbering:
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


def match_runs(reader: LaunchNumbering, baseline: RunLaunches, candidate: RunLaunches) -> RunMatch:
    """Hold the launches of two runs against each other, process by process and thread by thread.

    What differs is then taken together over all processes of the same generation: pool workers may have shared the
    same work differently.
    """
    before, after = baseline.threads, candidate.threads
    unequal = []
    order = LaunchOrder.EXACT
    for path in sorted({**before, **after}, key=_generation_and_age):
        threads = before.get(path, ()), after.get(path, ())
        left_before, left_after, prefix = _unmatched(reader, *threads)
        if prefix:
            order = LaunchOrder.PREFIX
            if count_launches(threads[0]) != count_launches(threads[1]):
                left_before, left_after = threads
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
    return RunMatch(LaunchOrder.UNORDERED if unequal else order)


def _sum_counts(processes: Iterable[Sequence[Thread]]) -> collections.Counter[int]:
    """How often each launch happened in several processes; each comes with all of its threads."""
    total: collections.Counter[int] = collections.Counter()
    for threads in processes:
        total.update(count_launches(threads))
    return total


def _generation_and_age(path: str) -> tuple[int, int, str]:
    """Sorts "0" before "0.2" before "0.10" before "0.0.0"."""
    return path.count("."), len(path), path


def _unmatched(
    reader: LaunchNumbering, before: Sequence[Thread], after: Sequence[Thread]
) -> tuple[tuple[Thread, ...], tuple[Thread, ...], bool]:
    """The threads without an equal on the other side, and whether of some only the first launches could be compared.

    Threads have no names that last from run to run, so any of one side may be the equal of any of the other.
    """
    ours, theirs = (collections.Counter(thread.signature for thread in threads) for threads in (before, after))
    left_before, left_after = _surplus(before, ours - theirs), _surplus(after, theirs - ours)
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


def _surplus(threads: Sequence[Thread], excess: collections.Counter[Any]) -> list[Thread]:
    """The first threads of each signature, as many as this side has more of than the other; empties `excess`."""
    surplus = []
    for thread in threads:
        if excess[thread.signature] > 0:
            excess[thread.signature] -= 1
            surplus.append(thread)
    return surplus


def _same_as_far_as_kept(reader: LaunchNumbering, one: Thread, other: Thread) -> bool:
    """Whether two threads, of which not both are EXACT, launch the same as far as the reports tell."""
    if one.stream.count != other.stream.count:
        return False
    if one.numbers == other.numbers:
        return one.stream.digest == other.stream.digest
    # The digest of all launches is one of table indices: it says nothing across tables in another order.
    return reader.digest(one.stream, one.numbers, FIRST_LAUNCHES_KEPT) == reader.digest(
        other.stream, other.numbers, FIRST_LAUNCHES_KEPT
    )


def _shared_differently(
    reader: LaunchNumbering,
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
    return shares_before != shares_after or not rest_before


def _first_divergence(kind: RunKind, process: UnequalProcess) -> Divergence:
    """Where the first thread without an equal leaves its counterpart on the other side."""
    before = process.left_baseline[0] if process.left_baseline else None
    after = process.left_candidate[0] if process.left_candidate else None
    position = (*process.left_baseline, *process.left_candidate)[0].position
    whole = Divergence(kind, process.path, position, None, None, None)
    pairs = itertools.zip_longest(_numbered_chunks(before), _numbered_chunks(after), fillvalue=(array("I"), array("I")))
    start = 0
    for (ids, numbers), (other_ids, other_numbers) in pairs:
        if numbers != other_numbers:
            both = itertools.zip_longest(numbers, other_numbers)
            index = next(index for index, (one, other) in enumerate(both) if one != other)
            return dataclasses.replace(
                whole,
                index=start + index,
                baseline=launch_view(before.launches, ids[index]) if before and index < len(ids) else None,
                candidate=launch_view(after.launches, other_ids[index]) if after and index < len(other_ids) else None,
            )
        start += len(numbers)
    return whole


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
    reader = LaunchNumbering()
    arms = {"baseline": _read_launches(reader, "baseline", baseline)}
    arms["candidate"] = _read_launches(reader, "candidate", candidate)
    before, after = (sum(p.launches.count for p in first_cold_processes(r)) for r in (baseline, candidate))
    topology = Topology(None, None, before, after, None, ())
    orders = []
    for name, (first, *others) in arms.items():
        for number, other in enumerate(others, 2):
            match = _match_samples(reader, first, other)
            if match.divergence is not None:
                why = (
                    f"the samples of the {name} do not launch the same, sample {number} against the first:"
                    f" {_divergence_text(match.divergence, 'first', f'sample {number}')}"
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


def _read_launches(reader: LaunchNumbering, name: str, report: Report) -> list[tuple[RunLaunches, RunLaunches]]:
    """The launches of the cold and the concluding warm run of every complete sample."""
    try:
        return [(reader.read(cold), reader.read(warm)) for cold, warm in complete_runs(report)]
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _match_samples(
    reader: LaunchNumbering, first: tuple[RunLaunches, RunLaunches], second: tuple[RunLaunches, RunLaunches]
) -> RunMatch:
    """Two cold runs, then two warm ones: the first that differ, or else the one whose order was compared least."""
    cold = match_runs(reader, first[0], second[0])
    if cold.divergence is not None:
        return cold
    warm = match_runs(reader, first[1], second[1])
    return (
        warm if warm.divergence is not None else max(cold, warm, key=lambda match: list(LaunchOrder).index(match.order))
    )


def _divergence_text(found: Divergence, baseline: str, candidate: str) -> str:
    """What differs first, in one clause."""
    where = f"process {found.process}, {found.run.value} run"
    if found.index is None:
        return f"the order of launches differs behind the first {FIRST_LAUNCHES_KEPT:,} ({where})"
    sides = (
        f"{baseline} {_launch_text(found.baseline)}, {candidate} {_launch_text(found.candidate)}"
        f"{_differing_parts(found.baseline, found.candidate)}"
    )
    return f"launch {found.index + 1} differs ({where}): {sides}"


def _launch_text(view: LaunchView | None) -> str:
    """A launch in a few words."""
    if view is None:
        return "has no more launches"
    dim = "x".join(str(size) for size in view.dim)
    adjoint = " adjoint" if view.adjoint else ""
    return f"{printable(kernel_name(view.kernel), 60)}{adjoint} dim {dim} on {view.device} block_dim {view.block_dim}"


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
        output=compare_output(baseline, candidate),
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
    hashes: dict[Place, list[str]] = {}
    for record in records:
        known = hashes.setdefault((record.name, record.device, record.block_dim), [])
        if record.hash:
            known.append(record.hash[:length])
    return {place: tuple(dict.fromkeys(known)) for place, known in hashes.items()}


def _renamed_places(
    before: dict[Place, tuple[str, ...]], after: dict[Place, tuple[str, ...]], renames: Sequence[Rename]
) -> dict[Place, Place]:
    """Pairs the modules that only one side has."""
    free = after.keys() - before.keys()
    by_hash: dict[tuple[object, ...], list[Place]] = {}
    for place, hashes in after.items():
        if hashes:
            by_hash.setdefault((frozenset(hashes), *place[1:]), []).append(place)
    new_names: dict[str, list[str]] = {}
    for rename in renames:
        new_names.setdefault(rename.baseline_module, []).append(rename.candidate_module)
    partners: dict[Place, Place] = {}
    gone = [place for place in before if place not in after]
    for by_name in (False, True):
        for place in gone:
            if place in partners:
                continue
            options = by_hash.get((frozenset(before[place]), *place[1:]), [])
            if by_name:
                options = [(name, *place[1:]) for name in new_names.get(place[0], ())]
            partner = next((option for option in options if option in free), None)
            if partner is not None:
                partners[place] = partner
                free.remove(partner)
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
    if any(overlap is not None and overlap.median > OVERLAP_FACTOR for overlap in overlaps):
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
        if built := record.cold.get(Status.COMPILED):
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
    way = f"rose by {size}" if delta.change > 0 else f"fell by {size}" if delta.change < 0 else "did not move"
    return f"{metric.value} {way} ({before.median:,.1f} to {after.median:,.1f} ms)"


def _reason_text(reason: VerdictReason, before: Timed, after: Timed, weighed: TimeEvidence) -> str:
    """The clause that says what the samples make of the change."""
    band = f"{weighed.band:,.1f} ms"
    arms = f"{len(before.values)} against {len(after.values)} samples"
    p = weighed.p if weighed.p is None or weighed.p.denominator <= 1000 else f"{float(weighed.p):.2g}"
    odds = f"{arms}, p = {p}"
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
        text = f"of some threads only counts and the first {FIRST_LAUNCHES_KEPT:,} launches could be compared"
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
    if evidence.output.state is OutputState.DIFFERS:
        where = output_place(evidence.output)
        text = f"the program prints something else in the candidate, {where}: numerics may have moved"
        notices.append(Notice("output-differs", text))
    return notices


# The program's output, and where the options of an experiment arrived


def compare_output(baseline: Report, candidate: Report) -> OutputChange:
    """Hold the standard output of both reports against each other; both must have a complete sample."""
    arms = [complete_runs(report) for report in (baseline, candidate)]
    pairs = [(OutputState.VARIES, runs[0][i], other[i]) for i in (0, 1) for runs in arms for other in runs[1:]]
    pairs += [(OutputState.DIFFERS, arms[0][0][i], arms[1][0][i]) for i in (0, 1)]
    changes = (_output_change(*pair) for pair in pairs)
    return next((change for change in changes if change), OutputChange(OutputState.SAME, None, None))


def _output_change(state: OutputState, one: Run, other: Run) -> OutputChange | None:
    """None where both runs printed the same."""
    if one.output.stdout_digest == other.output.stdout_digest:
        return None
    width = LINE_DIGEST_DIGITS
    pairs = itertools.zip_longest(
        *(
            [run.output.line_digests[start : start + width] for start in range(0, len(run.output.line_digests), width)]
            for run in (one, other)
        )
    )
    line = next((number for number, (before, after) in enumerate(pairs, 1) if before != after), None)
    return OutputChange(state, one.kind, line)


def output_place(output: OutputChange) -> str:
    """Where an output differs, in a clause."""
    where = f"behind line {MAX_LINE_DIGESTS:,}" if output.line is None else f"from line {output.line:,}"
    return f"{where} of the {output.run.value if output.run else 'cold'} run on"


LINE_DIGEST_DIGITS = 8
MAX_LINE_DIGESTS = 2_000


def option_receipts(baseline: Report, candidate: Report, changes: IdentityChanges) -> tuple[OptionReceipt, ...]:
    """For each option that is set otherwise in the candidate, whether the hash of each module moved, or why not."""
    before, after = baseline.options.set, candidate.options.set
    names = [name for name in dict.fromkeys((*after, *before)) if before.get(name) != after.get(name)]
    seen = [_module_options(report) for report in (baseline, candidate)]
    none = ModuleOptions()
    receipts = []
    for name in names:
        assigned = _late_assignment(candidate, name)
        for moved, modules in ((True, changes.moved), (False, (*changes.same, *changes.unknown))):
            for item in modules:
                place = (item.renamed_to or item.name, item.device, item.block_dim)
                values = seen[0].get((item.name, *place[1:]), none), seen[1].get(place, none)
                outcome, detail = _option_outcome(name, after.get(name), values, moved=moved, assigned=assigned)
                receipts.append(OptionReceipt(name, after.get(name), item.name, *place[1:], outcome, detail))
    return tuple(receipts)


def _late_assignment(report: Report, name: str) -> ConfigEvent | None:
    """The program's own last assignment of an option."""
    events = [
        event for process in first_cold_processes(report) for event in process.config_events if event.name == name
    ]
    return events[-1] if events else None


def _assigned_text(event: ConfigEvent) -> str:
    return f"{event.after} later{f' at {place(event.site)}' if event.site else ''}"


def shows_value(shown: str, text: str) -> bool:
    """Whether the repr of a configuration value is that of what --set was given as `text`."""
    return shown in (text, repr(text)) or (shown.startswith("<") and f".{text}:" in shown)


def _option_outcome(
    name: str,
    value: str | None,
    values: tuple[ModuleOptions, ModuleOptions],
    *,
    moved: bool,
    assigned: ConfigEvent | None,
) -> tuple[OptionOutcome, str]:
    before, after = values
    shown = after.last(name)
    if value is not None and shown is not None and not shows_value(shown, value):
        if assigned is not None and shown == assigned.after:
            return OptionOutcome.ASSIGNED_LATER, f"the program assigned {_assigned_text(assigned)}; that wins"
        return OptionOutcome.MODULE_OPTION, f"an option of the module itself says {shown}; that wins"
    if moved:
        return OptionOutcome.MOVED, ""
    if not after.values:
        return OptionOutcome.UNKNOWN, "the options of this module were not seen"
    if shown is None:
        return OptionOutcome.NOT_HASHED, "this Warp does not hash the option, so it makes no other module"
    if before.last(name) == shown:
        return OptionOutcome.HAD_VALUE, f"it was {shown} before"
    return OptionOutcome.UNKNOWN, "the option arrived, and the hash is the same"


def _machine_may_have_moved(evidence: Evidence, ruling: Ruling) -> bool:
    if ruling.verdict not in {Verdict.IMPROVED, Verdict.REGRESSED} or evidence.decided_by is not DecidedBy.CLOCK:
        return False
    pair = evidence.pairs.get(Metric.WARM_WALL)
    if pair is None or evidence.exact is not Exact.SAME or evidence.identities.moved:
        return False
    before, after = pair
    rise = after.median - before.median
    return (rise if ruling.verdict is Verdict.REGRESSED else -rise) > noise_band(before)


# ---------------------------------------------------------------------------------------------------------------------
# Gates: limits that a report or a comparison must keep
# ---------------------------------------------------------------------------------------------------------------------


class Gate(str, enum.Enum):
    """What can be limited; the values are the names of the options."""

    BUILDS = "--max-builds"
    REBUILDS = "--max-rebuilds"
    VARIANTS = "--max-variants"
    WARM_BUILDS = "--max-warm-builds"
    FINDING = "--fail-on"
    REGRESSION = "--max-regression"


GATE_NOUNS = {
    Gate.BUILDS: ("build", "builds"),
    Gate.REBUILDS: ("rebuild", "rebuilds"),
    Gate.VARIANTS: ("variant", "variants"),
    Gate.WARM_BUILDS: ("warm build", "warm builds"),
}


@dataclass(frozen=True)
class Gates:
    """The limits of one `measure`: at most so many of each in every sample, and none of these findings (mechanisms, or
    the kinds `redundant` and `hint`)."""

    limits: dict[Gate, int]
    fail_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Violation:
    """A limit that was exceeded: the option as given, what was found instead, and the evidence for it."""

    gate: str
    found: str
    evidence: tuple[str, ...]
    where: Site | None


def parse_fail_on(texts: Iterable[str]) -> tuple[str, ...]:
    """Names of --fail-on, several to a text. Raises InputError for a name that no finding can have."""
    known = [*(kind.value for kind in FindingKind), *(mechanism.value for mechanism in Mechanism)]
    by_lower = {name.lower(): name for name in known}
    found = []
    for name in (part.strip() for text in texts for part in text.split(",")):
        if name.lower() not in by_lower:
            close = difflib.get_close_matches(name.lower(), by_lower)
            hint = f"did you mean {by_lower[close[0]]}?" if close else f"known are {', '.join(known)}"
            raise InputError(f"--fail-on {name!r}: no finding has this name; {hint}")
        found.append(by_lower[name.lower()])
    return tuple(dict.fromkeys(found))


def gate_violations(report: Report, gates: Gates) -> tuple[Violation, ...]:
    """Every limit that some complete sample of the report exceeds, with the loads that do."""
    samples = [counted_loads(sample) for sample in complete_samples(report.samples)]
    violations = []
    for gate, limit in gates.limits.items():
        worst = max((sample[gate] for sample in samples), key=len, default=[])
        if len(worst) > limit:
            violations.append(
                Violation(
                    f"{gate.value} {limit}",
                    f"{plural(len(worst), *GATE_NOUNS[gate])}, at most {limit} allowed",
                    tuple(_limited(map(_load_line, worst))),
                    next((load.site for load in worst if load.site), None),
                )
            )
    for finding in report.findings:
        name = next((name for name in (finding.mechanism, finding.kind.value) if name in gates.fail_on), None)
        if name is not None:
            violations.append(
                Violation(f"--fail-on {name}", f"{finding.mechanism}: {finding.text}", finding.evidence, finding.where)
            )
    return tuple(violations)


def counted_loads(sample: Measured) -> dict[Gate, list[Load]]:
    """The loads of a sample that each gate counts; as many as the summary of that sample says."""
    builds = _ordered_builds(sample.cold)
    rebuilds = [build.load for slot in _build_slots(builds).values() for build in slot[1:]]
    variants = [built[0].load for by_dim in _block_dims(builds).values() for built in list(by_dim.values())[1:]]
    return {
        Gate.BUILDS: [build.load for build in builds],
        Gate.REBUILDS: rebuilds,
        Gate.VARIANTS: variants,
        Gate.WARM_BUILDS: builds_of(sample.warm),
    }


def undecided_gates(report: Report, gates: Gates) -> str | None:
    """Why limits that seem to be kept cannot be vouched for, if so."""
    gaps = _deciding_gaps(report)
    return f"the gates cannot be vouched for: {gaps[0]}" if gaps and (gates.limits or gates.fail_on) else None


def regression_violation(comparison: Comparison, percent: float) -> Violation | None:
    """Whether the deciding time rose by more than `percent`, and the samples support it."""
    if comparison.verdict is not Verdict.REGRESSED or comparison.metric is None:
        return None
    delta, metric = comparison.deltas[comparison.metric], comparison.metric.value
    if delta.percent is not None and delta.percent <= percent:
        return None
    rise = f"{delta.change:+,.1f} ms" if delta.percent is None else f"{delta.percent:+,.1f} %"
    values = "; ".join(
        f"{name} {', '.join(f'{value:,.1f}' for value in figure.values[:12])} ms"
        for name, figure in (("baseline", delta.baseline), ("candidate", delta.candidate))
    )
    return Violation(f"--max-regression {percent:g}", f"{metric} {rise}", (f"{metric}: {values}", comparison.why), None)


def undecided_regression(comparison: Comparison, percent: float) -> str | None:
    """Why it cannot be told whether the limit is kept, where the medians say that it is not but the samples do not."""
    if comparison.verdict is not Verdict.INCONCLUSIVE or comparison.metric is None:
        return None
    delta = comparison.deltas[comparison.metric]
    if not delta.outside_band or delta.percent is None or delta.percent <= percent:
        return None
    return f"--max-regression {percent:g} cannot be decided: {comparison.why}"


# ---------------------------------------------------------------------------------------------------------------------
# Rendering
# ---------------------------------------------------------------------------------------------------------------------

TEXT_LINES = 120
TEXT_CHARACTERS = 10_000

# A log: what `parse` says

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


def bounded_text(lines: Sequence[str]) -> str:
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


def printable(text: str, limit: int | None = None) -> str:
    """`text` with everything that a terminal could act on as an escape like \x1b, at most `limit` characters."""
    shown = text if limit is None else text[:limit]
    if not shown.isprintable():
        shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in shown)
    return shown if limit is None or len(shown) <= limit >= len(text) else f"{shown[: limit - 3]}..."


def shortened(text: str, width: int = 72) -> str:
    """As `printable`, without its middle where it is longer than `width`."""
    text = printable(text)
    head = (width - 3) // 2
    return text if len(text) <= width else f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def _at(device: str, block_dim: int | None) -> str:
    """Where a module was built, as a cell of a table."""
    device = shortened(device, 16)
    return device if block_dim is None else f"{device}, {block_dim}"


def _log_head(report: LogReport) -> list[str]:
    summary = report.summary
    shown = ", ".join(report.logs[:3]) + (f" and {len(report.logs) - 3} more" if len(report.logs) > 3 else "")
    shown = shortened(shown, 100)
    unreadable = f"unreadable  {summary.unreadable:>7}  torn lines that looked like records"
    if not summary.records:
        lines = [
            f"{shown}: no module line of Warp",
            "Warp prints them to stdout at log level INFO; a program may have raised the level, set a logger of its",
            "own or redirected its output. `measure` does not depend on them.",
        ]
        return [*lines, unreadable] if summary.unreadable else lines
    versions = ", Warp " + ", ".join(report.warp_versions[:4]) if report.warp_versions else ""
    native = "not shown: Warp prints it in debug output only"
    if summary.native_compile_ms is not None:
        native = f"{duration(summary.native_compile_ms)} in lines of its own"
    identities = plural(summary.identities, "module identity", "module identities")
    lines = [
        f"{shown}: {plural(summary.records, 'record')} of {identities}{versions}",
        f"compiled    {summary.compiled:>7}  {duration(summary.cold_module_ms):>8}",
        f"cached      {summary.cached:>7}  {duration(summary.cached_ms):>8}",
        f"error       {summary.error:>7}  {duration(summary.error_ms):>8}",
    ]
    if summary.no_status:
        note = "(Warp before 1.3, or a torn line)"
        lines.append(f"no status   {summary.no_status:>7}  {duration(summary.no_status_ms):>8}  {note}")
    if summary.unreadable:
        lines.append(unreadable)
    if summary.starts > 1:
        lines.append(f"Warp starts {summary.starts:>7}  so the log holds several processes or runs")
    return [*lines, f"native compiler      {native}"]


def _log_flag_lines(flags: LogFlags) -> list[str]:
    several = [
        f"{duration(one.compiled_ms):>8}  {one.hashes:>4} hashes  {one.compiled:>4} compiled"
        f"  {_at(one.device, one.block_dim)}  {shortened(one.name)}"
        for one in flags.several_hashes
    ]
    again = [
        f"{duration(one.ms):>8}  {one.count:>4} times  {one.hash or '-':7}  {_at(one.device, one.block_dim)}"
        f"  {shortened(one.name)}"
        for one in flags.compiled_again
    ]
    cached = [
        f"{duration(one.ms):>8}  {one.loads:>4} loads, slowest {duration(one.slowest_ms)}  {_at(one.device, None)}"
        f"  {shortened(one.name)}"
        for one in flags.cached_loads
    ]
    blocks = [
        ("SEVERAL HASHES of a module at one device and block_dim", several),
        ("COMPILED AGAIN: the same identity more than once", again),
        ("ERRORS by module", _error_rows(flags.errors)),
        (
            f"CACHED LOADS slower than {SLOW_CACHED_LOAD_MS:.0f} ms, or {MANY_CACHED_LOG_RECORDS} and more of a module",
            cached,
        ),
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
        f"{duration(sum(error.ms for error in members)):>8}  {sum(error.count for error in members):>4} errors"
        f"  {_at(device, block_dim)}  {shortened(family)}"
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
        f"{ms:>14,.1f}  {compiled:>8} {cached:>6} {error:>5}  {digits:7}  {_at(device, block_dim)}  {shortened(name)}"
    )


# A report as text

WIDTH = 116
SMALL_SHARE = 0.10
# Rows a section shows: the first number with which the whole text stays within its bounds.
ROW_LIMITS = (40, 25, 16, 10, 6, 4, 2)


def render_report(
    report: Report,
    *,
    stderr_tail: Sequence[str] = (),
    saved_to: str | None = None,
    violations: Sequence[Violation] = (),
) -> str:
    """A report as text of at most `TEXT_LINES` lines and `TEXT_CHARACTERS` characters, without colour.

    `stderr_tail` holds the last lines that a failed run wrote to its standard error; `saved_to` is the file that the
    report was saved to; `violations` are the gates that it exceeds.
    """
    text = ""
    for rows in ROW_LIMITS:
        made = _report_lines(report, rows, stderr_tail, saved_to, violations)
        lines = [printable(line, WIDTH).rstrip() for line in made]
        text = "\n".join(lines) + "\n"
        if len(lines) <= TEXT_LINES and len(text) <= TEXT_CHARACTERS:
            break
    return text


def _report_lines(
    report: Report, rows: int, stderr_tail: Sequence[str], saved_to: str | None, violations: Sequence[Violation]
) -> list[str]:
    sections = [
        [*_headline(report), *_failure_lines(report, rows, stderr_tail), *_coverage_lines(report, rows)],
        [_from_here(line, report) for line in violation_lines(violations, rows)],
        _subject_lines(report),
        _finding_lines(report, rows),
        _figure_lines(report),
        _bare_table(_module_table(report), rows, "rows"),
        _bare_table(_process_table(report), rows, "processes"),
        _cache_event_lines(report, rows),
        _warning_lines(report.warnings, rows),
        *(_offline_lines(report, device, rows) for device in report.offline),
        [f"Everything else is in {saved_to}." if saved_to else "Everything else: --json FILE."],
    ]
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if lines and section else section
    return lines


def with_mad(figure: Timed) -> str:
    """A median with its deviation, in the same unit, and the number of values: `12.4 s (MAD 0.20 s, n=3)`."""
    n = len(figure.values)
    median = duration(figure.median)
    mad = f"{figure.mad / 1000:.2f} s" if median.endswith(" s") else duration(figure.mad)
    return f"{median} ({f'MAD {mad}, ' if n > 1 else ''}n={n})"


_NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?( %| ms)?|-|")


def numeric_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns hold numbers; the first one names the row."""
    return [index > 0 and all(map(_NUMBER.fullmatch, column)) for index, column in enumerate(zip(*rows, strict=True))]


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Aligned columns, numbers to the right; the first one names the row, and gives way where `width` is too small."""
    cells = [[printable(cell) for cell in row] for row in (columns, *rows)]
    right = numeric_columns(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        widths[0] = min(widths[0], max(12, width - sum(widths[1:]) - 2 * len(widths)))
    lines = []
    for first, *others in cells:
        row = (shortened(first, widths[0]), *others)
        aligned = [
            cell.rjust(size) if side else cell.ljust(size) for cell, size, side in zip(row, widths, right, strict=True)
        ]
        lines.append("  " + "  ".join(aligned).rstrip())
    return lines


def _bare_table(table: Table, rows: int, noun: str) -> list[str]:
    """A table without a title line: its first column says what it lists."""
    shown, more = _shown(table.rows, rows, noun)
    return [*grid((table.columns[0].upper(), *table.columns[1:]), shown, WIDTH), *more] if shown else []


def _timed_cells(figure: Timed) -> tuple[str, str, str]:
    """A median in milliseconds, its deviation and the number of values, as cells."""
    n = len(figure.values)
    return f"{figure.median:,.1f}", f"{figure.mad:,.1f}" if n > 1 else "-", str(n)


def _wrapped(text: str, indent: str, most: int) -> list[str]:
    """The text in at most `most` lines; a newline in it is a space, every other control character an escape."""
    clean = printable(" ".join(text[: 20 * WIDTH * most].split()))  # all that may be shown, and what says there is more
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
    colds = [sample.cold for sample in complete_samples(report.samples)]
    within = [_span_within_ms(cold) for cold in colds]
    late = [_build_span_ms(cold) - inside for cold, inside in zip(colds, within, strict=True)]
    outlived = bool(late) and round(statistics.median(late), 3) > 0
    if outlived:
        span = with_mad(timed(within))
    if share < SMALL_SHARE:
        first = f"Compilation is not what you wait for: {share:.1%} of a cold start of {wall}, {span}."
    else:
        first = f"Cold start {wall}, {share:.0%} of it compiling and loading modules: {span}."
    warm = f"Warm start {with_mad(summary.warm_wall_ms)}"
    warm += f", still with {plural(summary.warm_builds, 'build')}" if summary.warm_builds else ""
    warm += f"; cold minus warm {with_mad(summary.compile_elapsed_ms)}" if summary.compile_elapsed_ms else ""
    done = len(colds)
    rest = [] if done == report.options.samples else [f"Only {done} of {report.options.samples} samples complete."]
    if outlived:
        rest.append(f"Processes that outlived the command loaded modules after its end, for {with_mad(timed(late))}.")
    return [first, warm + ".", *rest]


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
    """What was seen, and what was not; the first line says which."""
    coverage = report.coverage
    if coverage.gaps:
        shown, more = _shown(_gap_texts(report), rows, "gaps")
        return [
            f"NOT EVERYTHING WAS SEEN ({plural(len(coverage.gaps), 'gap')}): counts and times may be too low.",
            *(f"  - {text}" for text in shown),
            *more,
        ]
    if report.summary is None:
        return []
    unclean = coverage.processes - coverage.ended_cleanly
    ends = f"; {unclean} ended without saying how" if unclean else ""
    used = f"{coverage.used_warp} of them used Warp" if coverage.processes > 1 else "Warp was used"
    used = used if coverage.used_warp else "none used Warp"
    return [f"Nothing went unseen: {plural(coverage.processes, 'process', 'processes')}, {used}{ends}."]


def _gap_texts(report: Report) -> list[str]:
    return [f"{gap.reason.value}{f' (pid {gap.pid})' if gap.pid else ''}: {gap.detail}" for gap in report.coverage.gaps]


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
    parts += (
        [printable(_listed([device.alias for device in environment.devices], 4), 40)] if environment.devices else []
    )
    parts += [environment.cpu_model] if environment.cpu_model else []
    parts += [plural(environment.cores, "core")] if environment.cores else []
    label = [f"Label:    {report.label}"] if report.label else []
    return [*label, f"Program:  {program}", *([f"Measured: {', '.join(parts)}"] if parts else [])]


def _finding_lines(report: Report, rows: int) -> list[str]:
    if report.summary is None:
        return []
    avoidable = [finding.avoidable_ms for finding in report.findings if finding.avoidable_ms is not None]
    saved = f"; {duration(math.fsum(avoidable))} of the module time is avoidable" if avoidable else ""
    lines = [f"FINDINGS  {_finding_counts(report)}{saved}", *_no_redundant_builds(report)]
    shown, more = _shown(report.findings, max(2, rows // 2), "findings")
    for number, finding in enumerate(shown, 1):
        known = f", avoidable {duration(finding.avoidable_ms)}" if finding.avoidable_ms is not None else ""
        lines.append(
            f"{number:>3}. {finding.mechanism} ({finding.kind.value}): cost {duration(finding.cost_ms)}{known}"
        )
        lines += _wrapped(_from_here(finding.text, report), "     ", 4)
        lines += [f"     at {_from_here(place(finding.where), report)}"] if finding.where else []
        evidence, rest = _shown(finding.evidence, min(5, rows // 2), "lines of evidence")
        lines += [f"     - {_from_here(line, report)}" for line in evidence]
        lines += [f"   {line}" for line in rest]
    sections = ", ".join(dict.fromkeys(finding.see for finding in shown if finding.see))
    pointer = f"Why, and how to fix: {sections.replace(f', {MECHANISMS_PAGE}#', ', #')}"
    lines += _wrapped(pointer, "  ", 3) if sections else []
    hidden = [f"{finding.mechanism} of {finding.module or 'the program'}" for finding in report.findings[len(shown) :]]
    return lines + [line for text in more for line in _wrapped(f"{text}: {', '.join(hidden)}", "", 3)]


def _finding_counts(report: Report) -> str:
    redundant = sum(finding.kind is FindingKind.REDUNDANT for finding in report.findings)
    return f"{redundant} redundant, {plural(len(report.findings) - redundant, 'hint')}"


def _no_redundant_builds(report: Report) -> list[str]:
    """Where nothing redundant was found, that, and what it does not rule out."""
    if any(finding.kind is FindingKind.REDUNDANT for finding in report.findings):
        return []
    seen = " in what was seen" if report.coverage.gaps else ""
    loads = [load for sample in complete_samples(report.samples) for load in loads_of(sample.cold)]
    open_questions = ["what the gaps above hide"] if report.coverage.gaps else []
    if not report.offline and not any(load.device.startswith(("cuda", "sm_")) for load in loads):
        open_questions.append("what only CUDA shows (CS-5 and CS-12 there, CS-7, CS-13): no module was loaded for it")
    open_questions.append("paths that this command did not take")
    open_questions.append("whether every module and option is needed")
    return _wrapped(f"No redundant builds were found{seen}. Not ruled out: {'; '.join(open_questions)}.", "  ", 3)


def violation_lines(violations: Sequence[Violation], rows: int) -> list[str]:
    """The gates that are exceeded, with evidence."""
    if not violations:
        return []
    lines = [f"GATE EXCEEDED ({len(violations)})"]
    shown, more = _shown(violations, max(2, rows // 2), "gates")
    for violation in shown:
        lines += _wrapped(f"- {violation.gate}: {violation.found}", "  ", 3)
        evidence, rest = _shown(violation.evidence, min(5, rows // 2), "lines of evidence")
        lines += [f"      {line}" for line in evidence]
        lines += [f"    {line}" for line in rest]
    return lines + more


def _from_here(text: str, report: Report) -> str:
    """Paths under the program's directory as seen from it, those of installed packages from where these are."""
    # A path begins where a word does, so that a text of slashes is read once and not once for each slash.
    text = re.sub(r"(?<![^\s:'\"(=])/[^\s:'\"(=]*/(?:site|dist)-packages/", "", text)
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
    partial = _parts_unknown(report)
    times = _timed_table(report, summary)
    return [
        *_wrapped("COUNTS  " + ", ".join(counts), "", 3),
        "",
        "TIMES",
        *grid(times.columns, times.rows, WIDTH),
        *([f"  The parts of {partial} are not known and not in the rows below the sum."] if partial else []),
        *_header_lines(report),
        *_where_it_goes(report),
    ]


def _timed_table(report: Report, summary: Summary, *, loads_only: bool = False) -> Table:
    """The times of a report by name, a part indented below its whole; those that are zero are left out. `loads_only`:
    without those of whole runs, which an offline block has not."""
    whole_run: list[tuple[str, Timed | None]] = [
        ("cold wall", summary.cold_wall_ms),
        ("warm wall", summary.warm_wall_ms),
        ("cold wall minus warm wall", summary.compile_elapsed_ms),
        ("with a module load in progress", summary.build_span_ms),
    ]
    loads: list[tuple[str, Timed | None]] = [
        ("builds, sum of Warp's timers", summary.cold_module_ms),
        ("  code generation", summary.codegen_ms),
        ("  link-time optimisation", summary.lto_ms),
        ("  native compile", summary.native_compile_ms),
        ("    of it precompiled headers", _phase_of_builds(report, lambda phases: phases.header_ms or 0.0)),
        ("  installation", _phase_of_builds(report, lambda phases: phases.install_ms)),
        ("  binary load", summary.load_ms),
        ("  left over", _phase_of_builds(report, lambda phases: phases.rest_ms)),
        ("hashing before builds", summary.hash_ms),
        ("loads that failed", summary.error_ms),
        ("warm loads, sum of Warp's timers", summary.warm_module_ms),
    ]
    times = loads if loads_only else whole_run + loads
    rows = tuple((name, *_timed_cells(figure)) for name, figure in times if figure and any(figure.values))
    return Table("Times", ("", "median ms", "MAD", "n"), rows)


def _phase_of_builds(report: Report, part: Callable[[Phases], float]) -> Timed | None:
    """A phase summed over the builds of each complete sample's cold run; None where the samples are not there."""
    sums = [
        math.fsum(part(load.phases) for load in builds_of(sample.cold) if load.phases)
        for sample in complete_samples(report.samples)
    ]
    return timed(sums) if sums else None


def _header_lines(report: Report) -> list[str]:
    """The precompiled headers of the first cold run, where there are several: one a thread and block_dim."""
    headers = [
        f"{duration(load.phases.header_ms)} on thread {load.thread} of process {process.path}"
        f" for {load.device}{_at_dim(load.block_dim)}"
        for process in first_cold_processes(report)
        for load in process.loads
        if load.is_build and load.phases and load.phases.header_ms
    ]
    return _wrapped(f"Precompiled headers: {_listed(headers, 6)}.", "  ", 3) if len(headers) > 1 else []


def _parts_unknown(report: Report) -> str:
    builds = [load for sample in complete_samples(report.samples)[:1] for load in builds_of(sample.cold)]
    unknown = sum(load.phases is None for load in builds)
    return f"{unknown} of {plural(len(builds), 'build')}" if unknown else ""


def _where_it_goes(report: Report) -> list[str]:
    """The parts of the first process of the first complete cold run that used Warp."""
    for process in first_cold_processes(report):
        if process.phases and process.warp:
            where = ", ".join(f"{name} {duration(ms)}" for name, ms in _process_parts(process.phases))
            return _wrapped(f"Process {process.path} in the first cold run: {where}.", "  ", 2)
    return []


def _process_parts(phases: ProcessPhases) -> list[tuple[str, float]]:
    """The parts of a process in milliseconds, in the order in which they happen; the last one is spread out."""
    return [
        ("interpreter", phases.interpreter_ms),
        ("imports before Warp", phases.imports_before_warp_ms),
        ("import warp", phases.import_warp_ms),
        ("wp.init", phases.init_ms),
        ("loads", phases.loads_ms),
        ("everything else", phases.rest_ms),
    ]


def _module_table(report: Report) -> Table:
    columns = ("module", "hash", "device", "block_dim", "cold", "warm", "ms", "MAD", "n", "source B", "launches")
    return Table("Modules", columns, tuple(cells for cells, _ in _module_rows(report)))


def _module_rows(report: Report) -> list[tuple[tuple[str, ...], list[IdentityRecord]]]:
    """A row an identity, dearest module first; kernels of a factory, and many hashes of one module, share a row."""
    families: dict[tuple[str, str, int | None], list[IdentityRecord]] = {}
    for record in report.identities:
        families.setdefault((family(record.name), record.device, record.block_dim), []).append(record)
    totals = _family_times(report)
    cost: dict[str, float] = {}
    found: list[tuple[str, tuple[str, ...], list[IdentityRecord]]] = []
    for key, records in families.items():
        cost[key[0]] = cost.get(key[0], 0.0) + math.fsum(record.ms.median for record in records)
        names = len({record.name for record in records})
        if len(records) >= (3 if names > 1 else 7):
            label = f"{key[0]} ({plural(names, 'module')})" if names > 1 else key[0]
            found.append((key[0], _module_cells(label, f"{len(records)} hashes", records, totals.get(key)), records))
        else:
            found += [
                (key[0], _module_cells(record.name, _short(record.hash), [record], record.ms), [record])
                for record in records
            ]
    found.sort(key=lambda row: -cost[row[0]])
    return [(cells, records) for _, cells, records in found]


def _module_cells(name: str, shown_hash: str, records: Sequence[IdentityRecord], ms: Timed | None) -> tuple[str, ...]:
    first = records[0]
    return (
        name,
        shown_hash,
        first.device,
        "-" if first.block_dim is None else str(first.block_dim),
        _statuses(record.cold for record in records),
        _statuses(record.warm for record in records),
        *(_timed_cells(ms) if ms else "---"),
        f"{sum(record.generated_source_bytes for record in records):,}",
        f"{sum(record.launches for record in records):,}",
    )


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


def _offline_title(block: Report) -> str:
    toolkit = f" with CUDA toolkit {block.environment.cuda_toolkit}" if block.environment.cuda_toolkit else ""
    return f"compiled{toolkit} where the command loads its modules on the CPU, no device needed"


def _offline_lines(report: Report, device: str, rows: int) -> list[str]:
    """What `--cuda-arch` measured for one architecture, as far below the rest as it is apart from it."""
    block = offline_report(report, device, "the report")
    head = [f"OFFLINE {device}  {_offline_title(block)}"]
    if block.coverage.gaps:
        head += _coverage_lines(block, rows)
    summary = block.summary
    if summary is None:
        return [*head, "  No offline sample is complete."]
    ms = sorted(record.ms.median for record in block.identities if record.cold)
    ceiling = f"; sum over largest {math.fsum(ms) / ms[-1]:.1f}" if ms and ms[-1] else ""
    parts = [
        f"native {duration(summary.native_compile_ms.median)}",
        f"link-time optimisation {duration(summary.lto_ms.median)}",
        f"code generation {duration(summary.codegen_ms.median)}",
    ]
    built = (
        f"{plural(summary.builds, 'build')} of {plural(summary.modules, 'module')} in"
        f" {with_mad(summary.cold_module_ms)}"
    )
    counts = [
        plural(summary.rebuilds, "rebuild"),
        plural(summary.variants, "variant"),
        plural(summary.error_loads, "error"),
        f"{summary.generated_source_bytes:,} bytes of source",
        plural(summary.launches, "launch", "launches"),
    ]
    lines = [
        *head,
        *_wrapped(f"Cold: {built}: {', '.join(parts)}{ceiling}.", "  ", 3),
        f"  From the filled cache: {with_mad(summary.warm_module_ms)}, {plural(summary.warm_builds, 'build')}.",
        *_wrapped(f"{', '.join(counts)}. LTO artifacts: {_lto_counts(block)}.", "  ", 4),
        *_wrapped(DIFFERS_ON_DEVICE, "  ", 3),
    ]
    return [
        *lines,
        *_finding_lines(block, max(2, rows // 2)),
        *_bare_table(_module_table(block), rows, "rows"),
        *_warning_lines(block.warnings, rows),
    ]


DIFFERS_ON_DEVICE = (
    "A real device adds what only it does: code that asks device.is_cuda, kernels launched only there, and the time its"
    " driver takes to load a module or to compile PTX."
)


def _lto_counts(block: Report) -> str:
    """LTO artifacts of the first sample, forward and adjoint, and of which builds."""
    told = []
    for load in itertools.chain.from_iterable(process.loads for process in first_cold_processes(block)):
        if load.lto:
            adjoint = sum(artifact.adjoint for artifact in load.lto)
            spent = duration(math.fsum(artifact.ms for artifact in load.lto))
            forward = len(load.lto) - adjoint
            told.append(f"{load.name}{_at_dim(load.block_dim)} {forward} forward and {adjoint} adjoint in {spent}")
    return _listed(told, 4)


def _process_table(report: Report) -> Table:
    """The processes of the cold run that the counts come from, where there is more than one."""
    processes = first_cold_processes(report)
    rows = []
    for process in processes if len(processes) > 1 else ():
        code = "" if process.exit_code is None else f" {process.exit_code}"
        ended = "not recorded" if process.end is ProcessEnd.UNRECORDED else process.end.value + code
        rows.append(
            (
                printable(" ".join(process.argv), 44),
                process.path,
                process.how,
                ended,
                process.warp or "-",
                f"{len(process.loads):,}",
                f"{sum(load.is_build for load in process.loads):,}",
                f"{math.fsum(load.ms for load in process.loads):,.1f}",
                f"{process.launches.count:,}",
            )
        )
    columns = ("process", "path", "start", "end", "Warp", "loads", "builds", "ms", "launches")
    return Table("Processes", columns, tuple(rows))


def _cache_event_lines(report: Report, rows: int) -> list[str]:
    shown, more = _shown(_cache_event_texts(report), rows, "kinds of cache event")
    return ["WHAT THE PROGRAM DID TO ITS CACHES", *(f"  - {text}" for text in shown), *more] if shown else []


def _cache_event_texts(report: Report) -> list[str]:
    """What the program did to its caches in the first complete sample; each kind of event once."""
    events: collections.Counter[str] = collections.Counter()
    for sample in complete_samples(report.samples)[:1]:
        for run in (sample.cold, sample.warm):
            for event in (event for process in run.processes for event in process.cache_events):
                events[f"{run.kind.value} run: {_from_here(_event_line(event), report)}"] += 1
    return [text if count == 1 else f"{text}, {count:,} times" for text, count in events.items()]


def _warning_lines(warnings: Sequence[Notice], rows: int) -> list[str]:
    shown, more = _shown(warnings, rows, "warnings")
    lines = [line for notice in shown for line in _wrapped(f"- {notice.name}: {notice.text}", "  ", 2)]
    return ["WARNINGS", *lines, *more] if lines else []


# A comparison as text or Markdown

MAX_TABLE_ROWS = 12
MAX_CELL_CHARACTERS = 60


class TextFormat(str, enum.Enum):
    """How a result is written: for a terminal, for a job summary or comment, or as annotations of a GitHub workflow."""

    TEXT = "text"
    MARKDOWN = "markdown"
    GITHUB = "github"


class ReportFormat(str, enum.Enum):
    """What `report` makes of a saved report: one of `TextFormat`, the document itself, a page, or a trace."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"
    TRACE = "trace"
    GITHUB = "github"


@dataclass(frozen=True)
class Table:
    """A table for readers; `rows` may hold more than is shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cell_limit: int = MAX_CELL_CHARACTERS


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is: no formatting, link, HTML, table cell or mention comes of it."""
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
    return "".join(f"\\{c}" if c in "\\`*_{}[]#|~$" else entities.get(c, c) for c in text)


def render_comparison(
    comparison: Comparison, style: TextFormat, violations: Sequence[Violation] = (), here: str = ""
) -> str:
    """The text of `compare`: the verdict, why, and the tables; at most 120 lines and 10,000 characters. `here` is the
    directory that files of annotations are relative to."""
    by = f" ({comparison.decided_by.value})" if comparison.decided_by else ""
    by += f" on {comparison.on}, offline" if comparison.on else ""
    why = printable(comparison.why, 1_000)
    if style is TextFormat.GITHUB:
        plain = [f"{comparison.verdict.value}: {why}"]
        return render_annotations(comparison_annotations(comparison, violations), plain, here)
    if style is TextFormat.MARKDOWN:
        lines = [f"**{comparison.verdict.value.upper()}**{by}: {markdown_text(why)}"]
    else:
        lines = [f"{comparison.verdict.value.upper()}{by}: {why}"]
    return bounded_text(
        [*lines, *_table_lines((_violations_table(violations), *_comparison_tables(comparison)), style)]
    )


def _table_lines(tables: Iterable[Table], style: TextFormat) -> list[str]:
    """The tables that have rows, an empty line before each."""
    return [line for table in tables if table.rows for line in ("", *_render_table(table, style))]


def _render_table(table: Table, style: TextFormat) -> list[str]:
    """A title line, a header line, and up to 12 rows."""
    hidden = len(table.rows) - MAX_TABLE_ROWS
    rows = [[printable(cell, table.cell_limit) for cell in row] for row in table.rows[:MAX_TABLE_ROWS]]
    more = [f"... and {hidden} more in --json FILE"] if hidden > 0 else []
    if style is TextFormat.MARKDOWN:
        cells = [[markdown_text(cell) for cell in row] for row in (table.columns, *rows)]
        separator = ["---"] * len(table.columns)
        lines = [f"| {' | '.join(row)} |" for row in (cells[0], separator, *cells[1:])]
        return [f"### {markdown_text(table.title)}", "", *lines, *(["", *more] if more else [])]
    return [table.title, *grid(table.columns, rows), *(f"  {line}" for line in more)]


def _comparison_tables(comparison: Comparison) -> list[Table]:
    """The tables in the order of what a reader asks next."""
    return [
        _arms_table(comparison),
        _warnings_table(comparison.warnings),
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
        _output_table(comparison),
        _null_table(comparison.null_test),
        *_module_tables(comparison),
        # What --set says of its own options is the fuller account.
        *([_receipts_table(comparison.receipts)] if comparison.receipts else _option_tables(comparison.options)),
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


def _warnings_table(notices: Sequence[Notice]) -> Table:
    return Table("Warnings", ("name", "what"), tuple((one.name, one.text) for one in notices), cell_limit=300)


def _arms_table(comparison: Comparison) -> Table:
    rows = []
    for name, arm in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        commit = f"{arm.git_commit[:10]}{' and changes' if arm.git_dirty else ''}" if arm.git_commit else "-"
        samples = f"{arm.complete_samples} of {arm.requested_samples}"
        rows.append((name, samples, arm.label or "-", commit, arm.created, shlex.join(arm.command)))
    return Table("Reports", ("", "samples", "label", "commit", "created", "command"), tuple(rows))


TOPOLOGY_STATES = {True: "the same", False: "changed", None: "not verified"}


def _topology_tables(comparison: Comparison) -> list[Table]:
    topology = comparison.topology
    if topology is None:
        return []
    state = TOPOLOGY_STATES[topology.equal]
    order = f", order: {topology.order.value}" if topology.order else ""
    summary = (state + order, f"{topology.baseline_launches:,}", f"{topology.candidate_launches:,}")
    counts = tuple(
        (f"{_launch_text(item.launch)}, content {item.launch.content[:7]}", f"{item.baseline:,}", f"{item.candidate:,}")
        for item in topology.counts
    )
    renames = tuple(
        (f"{item.baseline_kernel} in {item.baseline_module}", f"{item.candidate_kernel} in {item.candidate_module}")
        for item in comparison.renames
    )
    return [
        Table("Launches", ("launches", "baseline", "candidate"), (summary,)),
        Table("Launches that happen another number of times", ("launch", "baseline", "candidate"), counts),
        Table(
            "Kernels renamed or in another module (same content, allowed)",
            ("baseline", "candidate"),
            renames,
        ),
    ]


def _times_table(comparison: Comparison) -> Table:
    rows = []
    for metric, delta in comparison.deltas.items():
        if not delta.baseline.median and not delta.candidate.median:
            continue
        if comparison.on is not None and metric in {Metric.COLD_WALL, Metric.WARM_WALL}:
            continue  # a view on a device is as long as its builds: no run of the command
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
            _at(item.device, item.block_dim),
            _hash_cell(item.baseline),
            _hash_cell(item.candidate),
        )
        for state, items in groups
        for item in items
    )
    told = ", ".join(f"{len(items)} {state}" for state, items in groups if items)
    nothing = "" if any(items for _, items in groups[:4]) else "; no hash moved, so no option arrived in a module"
    return [Table(f"Modules: {told}{nothing}", ("hash", "module", "at", "baseline", "candidate"), rows)]


def _option_tables(options: OptionChanges) -> list[Table]:
    arrived = tuple(
        (
            item.option,
            item.module,
            _at(item.device, item.block_dim),
            ", ".join(item.baseline) or "-",
            ", ".join(item.candidate) or "-",
            "moved" if item.hash_moved else "did not move",
        )
        for item in options.arrived
    )
    missed = tuple(
        (item.option, item.module, _at(item.device, item.block_dim), item.kept, item.assigned)
        for item in options.missed
    )
    return [
        Table("Options that arrived", ("option", "module", "at", "baseline", "candidate", "hash"), arrived),
        Table(
            "Options that never arrived: the candidate assigned them in warp.config after the module was created",
            ("option", "module", "at", "module has", "warp.config has"),
            missed,
        ),
    ]


def _output_table(comparison: Comparison) -> Table:
    """What the program's own output says; a hint, never a proof."""
    output = comparison.output
    if output is None:
        return Table("Output", (), ())
    texts = {
        OutputState.SAME: "the same in all runs",
        OutputState.DIFFERS: "differs between the reports",
        OutputState.VARIES: "differs between samples of one report, so it cannot be compared",
    }
    where = "" if output.state is OutputState.SAME else f", {output_place(output)}"
    row = (texts[output.state] + where, "a hint on numerics, no proof")
    return Table("Output", ("standard output, Warp's lines left out", ""), (row,), cell_limit=160)


def _null_table(test: NullTest | None) -> Table:
    """How often the verdict would be wrong here."""
    if test is None:
        return Table("", (), ())
    rows = tuple(
        (
            metric.value,
            with_mad(figure.pooled),
            f"{figure.improved_percent:.1f} %",
            f"{figure.regressed_percent:.1f} %",
            str(figure.needed_samples or f"more than {MAX_JUDGED_SAMPLES}"),
        )
        for metric, figure in test.figures.items()
    )
    effect = f"samples for {test.effect_percent:g} %"
    title = f"The same tree as both arms of {test.samples_an_arm}: how often dealing its samples out anew is called so"
    return Table(title, ("decided by", "all samples", "improved", "regressed", effect), rows)


def _receipts_table(receipts: Sequence[OptionReceipt]) -> Table:
    """Where each option that was set arrived; modules that it reached in one row."""
    rows = []
    for option in dict.fromkeys((receipt.option, receipt.value) for receipt in receipts):
        own = [receipt for receipt in receipts if (receipt.option, receipt.value) == option]
        name = option[0] if option[1] is None else f"{option[0]}={option[1]}"
        reached = [receipt.module for receipt in own if receipt.outcome is OptionOutcome.MOVED]
        if reached:
            rows.append((name, "moved", _listed(reached, 6), ""))
        rows += [
            (name, receipt.outcome.value, receipt.module, receipt.detail)
            for receipt in own
            if receipt.outcome is not OptionOutcome.MOVED
        ]
    return Table("Where the options arrived", ("option", "hash", "module", "why"), tuple(rows), cell_limit=90)


def _violations_table(violations: Sequence[Violation]) -> Table:
    rows = tuple(
        (violation.gate if not index else "", line)
        for violation in violations
        for index, line in enumerate((violation.found, *violation.evidence))
    )
    return Table(f"GATE EXCEEDED ({len(violations)})", ("gate", "found"), rows, cell_limit=300)


def _hash_cell(hashes: Sequence[str]) -> str:
    shown = " ".join(text[:7] for text in hashes[:4])
    return f"{shown} and {len(hashes) - 4} more" if len(hashes) > 4 else shown or "-"


# A report as Markdown, and annotations of a GitHub workflow

MAX_ANNOTATIONS = 40  # GitHub shows 10 warnings a step and 50 annotations a job


def render_markdown(report: Report, violations: Sequence[Violation] = (), stderr_tail: Sequence[str] = ()) -> str:
    """A report for a job summary or a comment: at most 120 lines and 10,000 characters, hidden rows counted."""
    head = [*_headline(report), *_failure_lines(report, 6, stderr_tail), *_coverage_lines(report, 6)]
    lines = [f"**{markdown_text(head[0])}**", *(f"{markdown_text(line.strip())}  " for line in head[1:])]
    lines += ["", f"Program: {markdown_text(printable(shlex.join(report.command), 200))}"]
    tables = [
        _violations_table(violations),
        _findings_table(report),
        *_figure_tables(report),
        *(table for device in report.offline for table in _offline_tables(report, device)),
        _warnings_table(report.warnings),
    ]
    # Before anything is escaped: a path of the report may hold what Markdown escapes.
    near = [
        dataclasses.replace(one, rows=tuple(tuple(_from_here(cell, report) for cell in row) for row in one.rows))
        for one in tables
    ]
    return bounded_text([*lines, *_table_lines(near, TextFormat.MARKDOWN)])


def _findings_table(report: Report) -> Table:
    rows = tuple(
        (
            finding.mechanism,
            finding.kind.value,
            duration(finding.cost_ms),
            "-" if finding.avoidable_ms is None else duration(finding.avoidable_ms),
            finding.text,
            place(finding.where) if finding.where else "-",
        )
        for finding in report.findings
    )
    columns = ("finding", "kind", "cost", "avoidable", "what", "where")
    return Table(f"Findings: {_finding_counts(report)}", columns, rows, cell_limit=300)


def _offline_tables(report: Report, device: str) -> list[Table]:
    """What `--cuda-arch` measured for one architecture, as tables that name it."""
    block = offline_report(report, device, "the report")
    unseen = Table("Not everything was seen", ("gap",), tuple((text,) for text in _gap_texts(block)), cell_limit=300)
    figures = _figure_tables(block, loads_only=True)
    tables = [unseen, _findings_table(block), *figures, _warnings_table(block.warnings)]
    return [dataclasses.replace(table, title=f"Offline for {device}: {table.title}") for table in tables]


def _figure_tables(report: Report, *, loads_only: bool = False) -> list[Table]:
    """Counts, times and modules of a report, as tables."""
    summary = report.summary
    if summary is None:
        return []
    counts = exact_facts(summary)
    return [
        Table("Counts", tuple(name for name, _ in counts), (tuple(f"{value:,}" for _, value in counts),)),
        _timed_table(report, summary, loads_only=loads_only),
        _module_table(report),
    ]


@dataclass(frozen=True)
class Annotation:
    """A message of a workflow at a place in the source; `level` is `error`, `warning` or `notice`."""

    level: str
    title: str
    text: str
    where: Site | None
    root: str


def render_annotations(annotations: Sequence[Annotation], rest: Sequence[str], here: str) -> str:
    """Workflow commands, one a line and at most 40, then plain lines; files are relative to `here`, or to the program's
    own directory."""
    lines = []
    for annotation in annotations[:MAX_ANNOTATIONS]:
        properties = []
        if annotation.where is not None:
            file = _relative(annotation.where.file, (here, annotation.root))
            properties = [("file", file), ("line", str(annotation.where.line))] if file else []
        properties.append(("title", annotation.title))
        shown = ",".join(f"{name}={_property(value)}" for name, value in properties)
        lines.append(f"::{annotation.level} {shown}::{_message(annotation.text)}")
    hidden = len(annotations) - MAX_ANNOTATIONS
    if hidden > 0:
        lines.append(f"::notice title=warp-compile-probe::and {hidden} more, in --json FILE")
    # A line of the program's own words must not be taken for a command.
    lines += [f" {line}" if line.startswith("::") else line for line in map(printable, rest)]
    return "\n".join(lines) + "\n"


def _message(text: str) -> str:
    """The data of a workflow command: what would end it is percent-encoded."""
    encoded = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(encoded)


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: str, folders: Sequence[str]) -> str | None:
    """A path as seen from the first folder that holds it; None outside of all, where GitHub could not show it."""
    if not os.path.isabs(file):
        return file
    inside = (folder.rstrip(os.sep) + os.sep for folder in folders if folder)
    return next((file[len(folder) :] for folder in inside if file.startswith(folder)), None)


def report_annotations(report: Report, violations: Sequence[Violation]) -> list[Annotation]:
    """Exceeded gates as errors, redundant work as warnings, hints as notices."""
    found = [_violation_annotation(violation, report.cwd) for violation in violations]
    told = {(violation.found, violation.where) for violation in violations}
    offline = (finding for block in report.offline.values() for finding in block.findings)
    untold = (one for one in (*report.findings, *offline) if (f"{one.mechanism}: {one.text}", one.where) not in told)
    return [*found, *(_finding_annotation(finding, report.cwd) for finding in untold)]


def comparison_annotations(comparison: Comparison, violations: Sequence[Violation]) -> list[Annotation]:
    """The verdict, exceeded gates, and the findings that only the candidate has."""
    root = comparison.candidate.cwd
    level = "error" if comparison.verdict.exit_code is not ExitCode.OK else "notice"
    return [
        Annotation(level, f"Warp compile time: {comparison.verdict.value}", comparison.why, None, root),
        *(_violation_annotation(violation, root) for violation in violations),
        *(_finding_annotation(finding, root) for finding in comparison.findings.new),
    ]


def _violation_annotation(violation: Violation, root: str) -> Annotation:
    text = "\n".join((violation.found, *violation.evidence))
    return Annotation("error", f"gate exceeded: {violation.gate}", text, violation.where, root)


def _finding_annotation(finding: Finding, root: str) -> Annotation:
    level = "warning" if finding.kind is FindingKind.REDUNDANT else "notice"
    saved = "" if finding.avoidable_ms is None else f", {duration(finding.avoidable_ms)} avoidable"
    text = f"{finding.text} (cost {duration(finding.cost_ms)}{saved})"
    return Annotation(level, finding.mechanism, text, finding.where, root)


# Time lines: what a page and a trace draw

ROUNDING_MS = 0.002  # times of a report are rounded to the microsecond


def drawn_runs(report: Report) -> list[tuple[str, Run]]:
    """The runs of the first complete sample, or of the first one where none is, and those of each offline block."""
    found = []
    blocks = [("", report.samples), *((f" for {device}", block.samples) for device, block in report.offline.items())]
    for device, samples in blocks:
        sample = next((one for one in samples if one.complete), next(iter(samples), None))
        runs = (sample.cold, sample.warm, sample.settle) if sample else ()
        found += [(f"{run.kind.value} run{device}", run) for run in runs if run]
    return found


@dataclass(frozen=True)
class Span:
    """A named piece of time, in milliseconds since the start of a run."""

    name: str
    start_ms: float
    end_ms: float


def laid(start_ms: float, end_ms: float, parts: Iterable[tuple[str, float]]) -> list[Span]:
    """Parts of known length one after the other, none beyond the end; empty ones are left out."""
    spans = []
    for name, length in parts:
        until = min(end_ms, start_ms + max(0.0, length))
        if until > start_ms:
            spans.append(Span(name, start_ms, until))
            start_ms = until
    return spans


def process_span(process: Process) -> Span:
    """A process from its birth to its end, or to the last that is known of it."""
    birth = max(0.0, process.start_ms - (process.phases.interpreter_ms if process.phases else 0.0))
    known = [load.end_ms for load in process.loads if load.end_ms is not None]
    known += [event.at_ms for event in process.cache_events] + [event.at_ms for event in process.config_events]
    ends = [process.start_ms, *known] if process.end_ms is None else [process.end_ms]
    return Span(f"process {process.path}", birth, max(birth, *ends))


def start_up_spans(process: Process) -> list[Span]:
    """A process until it had imported Warp; empty where that is not known. When it called wp.init is not recorded."""
    whole = process_span(process)
    return laid(whole.start_ms, whole.end_ms, _process_parts(process.phases)[:3]) if process.phases else []


@dataclass(frozen=True)
class PlacedLoad:
    """A load and where its hashing begins, in milliseconds since the start of the run."""

    load: Load
    start_ms: float
    end_ms: float

    def phases(self) -> list[Span]:
        """Hashing, and the phases after it: their lengths are known, they are laid one after the other."""
        begin = min(max(self.start_ms, self.load.start_ms or 0.0), self.end_ms)
        hashing = laid(self.start_ms, begin, [("hashing", begin - self.start_ms)])
        return hashing + laid(begin, self.end_ms, load_parts(self.load.phases) if self.load.phases else [])


def load_parts(phases: Phases) -> list[tuple[str, float]]:
    """The phases of a load in milliseconds, in the order in which they happen; a header is part of native compile."""
    return [
        ("code generation", phases.codegen_ms),
        ("link-time optimisation", phases.lto_ms),
        ("native compile", phases.native_ms),
        ("installation", phases.install_ms),
        ("binary load", phases.load_ms),
        ("left over", phases.rest_ms),
    ]


def load_lanes(loads: Iterable[Load]) -> list[tuple[int, list[PlacedLoad]]]:
    """Loads of a process in lanes of one thread each, in which none overlap; without those that have no time."""
    timed_loads = [(load.thread, load.start_ms - load.hash_ms, load) for load in loads if load.start_ms is not None]
    lanes: list[tuple[int, list[PlacedLoad]]] = []
    free: dict[int, list[tuple[float, int]]] = {}  # when the lanes of each thread end, the first one first
    for thread, start_ms, load in sorted(timed_loads, key=lambda item: item[:2]):
        ends = free.setdefault(thread, [])
        start = max(0.0, start_ms)
        if ends and ends[0][0] - ROUNDING_MS <= start:
            last, lane = heapq.heappop(ends)
            start = max(start, last)
        else:
            lane = len(lanes)
            lanes.append((thread, []))
        placed = PlacedLoad(load, start, max(start, load.end_ms or 0.0))
        lanes[lane][1].append(placed)
        heapq.heappush(ends, (placed.end_ms, lane))
    return lanes


def longest_loads(processes: Iterable[Process], most: int) -> set[int]:
    """The `id` of the longest loads that have a time."""
    loads = [load for process in processes for load in process.loads if load.start_ms is not None]
    return {id(load) for load in sorted(loads, key=lambda load: -load.ms)[:most]}


def cause_text(cause: Cause) -> str:
    """Why a build happened: its changes in words, or the reason where there are none."""
    if not cause.changes:
        return cause.reason.value.replace("-", " ")
    return _listed([change_text(change) for change in cause.changes], 4)


# A trace for https://ui.perfetto.dev, in the Trace Event Format of Chrome

MAX_TRACE_LOADS = 20_000
MAX_TRACE_PROCESSES = 1_000  # of all runs
MAX_TRACE_INSTANTS = 500  # of a process
MAX_TRACE_ITEMS = 50  # in a list of arguments, and of parts of a phase
MAX_TRACE_TEXT = 300

TRACE_NOTES = (
    "Each run starts at 0, in lanes of its own; the runs happened one after the other.",
    "Exact to the microsecond: start and end of processes, of importing Warp and of loads, and the length of phases.",
    "The phases of a load are laid one after the other in their order; where one began is not recorded.",
    "When wp.init was called is not recorded: its time is in the arguments of the process.",
    "Launches are counted where a process starts (none) and ends (all); when each one happened is not recorded.",
)


@dataclass(frozen=True)
class TraceEvent:
    """An event of the Trace Event Format: `phase` X is a slice, i an instant, C a counter, M the name of a lane."""

    phase: str
    name: str
    pid: int
    tid: int
    span: Span
    args: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def start_us(self) -> int:
        """Microseconds since the start of the run."""
        return round(self.span.start_ms * 1000)

    @property
    def length_us(self) -> int:
        """Rounded at both ends, so that a slice stays within the one around it."""
        return round(self.span.end_ms * 1000) - self.start_us

    def to_json(self) -> dict[str, Any]:
        """The event as the format has it."""
        more: dict[str, Any] = {"dur": self.length_us} if self.phase == "X" else {"s": "p"} if self.phase == "i" else {}
        event = {"ph": self.phase, "name": printable(self.name or "?", MAX_TRACE_TEXT), "cat": "warp", "pid": self.pid}
        return {**event, "tid": self.tid, "ts": self.start_us, **more, "args": self.args}


def render_trace(report: Report) -> str:
    """The runs of the first complete sample as a Chrome trace: lanes for each process and thread, a slice for each load
    with its phases in it, times in microseconds since the start of the run. It holds the longest `MAX_TRACE_LOADS`
    loads; `otherData` counts what is left out, and says what is exact."""
    runs = drawn_runs(report)
    everything = [(title, process) for title, run in runs for process in run.processes]
    drawn = everything[:MAX_TRACE_PROCESSES]
    kept = longest_loads((process for _, process in drawn), MAX_TRACE_LOADS)
    names: list[TraceEvent] = []
    events: list[TraceEvent] = []
    numbers = itertools.count(1)
    for title, process in drawn:
        lanes = load_lanes(load for load in process.loads if id(load) in kept)
        # No two lanes share a number, and a process's own lane has that of the process, as on Linux: Perfetto (v52)
        # takes lanes of one number for one lane, and 0 for the number of the process.
        pid = next(numbers)
        labels = {pid: "process"}
        for thread, lane in lanes:
            tid = next(numbers)
            labels[tid] = f"loads of thread {thread}"
            events += [event for placed in lane for event in _load_events(placed, pid, tid)]
        names += _lane_names(title, process, labels)
        events += _process_events(process, pid)
    events.sort(key=lambda event: (event.start_us, -event.length_us))
    loads = [load for _, process in everything for load in process.loads]
    without_time = sum(load.start_ms is None for load in loads)
    document = {
        "traceEvents": [event.to_json() for event in (*names, *events)],
        "displayTimeUnit": "ms",
        "otherData": {
            "probe_version": PROBE_VERSION,
            "created": printable(report.created, MAX_TRACE_TEXT),
            "command": printable(shlex.join(report.command), MAX_TRACE_TEXT),
            "notes": TRACE_NOTES,
            "loads_without_a_time": without_time,
            "loads_left_out": len(loads) - without_time - len(kept),
            "processes_left_out": len(everything) - len(drawn),
        },
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"


def _lane_names(title: str, process: Process, labels: dict[int, str]) -> list[TraceEvent]:
    """The names of the lanes of a process, the first of which is its own, and their order."""
    name = printable(f"{title}, process {process.path}: {shlex.join(process.argv)}", MAX_TRACE_TEXT)
    start = Span("", 0.0, 0.0)
    pid = next(iter(labels))
    return [
        TraceEvent("M", "process_name", pid, pid, start, {"name": name}),
        TraceEvent("M", "process_sort_index", pid, pid, start, {"sort_index": pid}),
        *(TraceEvent("M", "thread_name", pid, tid, start, {"name": label}) for tid, label in labels.items()),
        *(TraceEvent("M", "thread_sort_index", pid, tid, start, {"sort_index": tid}) for tid in labels),
    ]


def _process_events(process: Process, pid: int) -> list[TraceEvent]:
    """A process, how it started, what it did to caches and configuration, and how many launches it made."""
    whole = process_span(process)
    unseen = [load for load in process.loads if load.start_ms is None]
    args = {
        "pid": process.pid,
        "argv": printable(shlex.join(process.argv), MAX_TRACE_TEXT),
        "python": printable(process.python, MAX_TRACE_TEXT),
        "warp": printable(process.warp or "not used", MAX_TRACE_TEXT),
        "end": process.end.value,
        "exit_code": process.exit_code,
        "phases_ms": to_json(process.phases),
        "launches": _launch_args(process.launches),
        "loads_without_a_time": [printable(_load_line(load), MAX_TRACE_TEXT) for load in unseen[:MAX_TRACE_ITEMS]],
    }
    unknown = process.launches.graph_replays_unknown
    counted = "launches (at least)" if unknown or process.end is ProcessEnd.UNRECORDED else "launches"
    moments: list[tuple[float, str, Site | None]] = [(whole.start_ms, f"born by {process.how}", None)]
    moments += [(one.at_ms, f"{one.kind.value} {one.path or ''}".strip(), one.site) for one in process.cache_events]
    moments += [
        (one.at_ms, f"warp.config.{one.name} = {one.after} (before: {one.before})", one.site)
        for one in process.config_events
    ]
    args["instants_left_out"] = max(0, len(moments) - MAX_TRACE_INSTANTS)
    return [
        TraceEvent("X", whole.name, pid, pid, whole, args),
        *(TraceEvent("X", span.name, pid, pid, span) for span in start_up_spans(process)),
        *(
            TraceEvent("i", name, pid, pid, Span(name, max(0.0, at), max(0.0, at)), _site_args(site))
            for at, name, site in moments[:MAX_TRACE_INSTANTS]
        ),
        *(
            TraceEvent("C", "kernel", pid, pid, Span(counted, at, at), {counted: count})  # shown as "kernel launches"
            for at, count in ((whole.start_ms, 0), (whole.end_ms, process.launches.count))
        ),
    ]


def _launch_args(launches: Launches) -> dict[str, int]:
    """How often the kernels that were launched most ran, by name and module."""
    counts: collections.Counter[str] = collections.Counter()
    for entry in launches.entries:
        if 0 <= entry.kernel < len(launches.kernels):
            kernel = launches.kernels[entry.kernel]
            name = f"{kernel_name(kernel.key)} of {kernel.module} on {kernel.device}{_at_dim(kernel.block_dim)}"
            counts[printable(name, MAX_TRACE_TEXT)] += entry.count
    return dict(counts.most_common(MAX_TRACE_ITEMS))


def _site_args(site: Site | None) -> dict[str, Any]:
    return {"site": printable(place(site), MAX_TRACE_TEXT)} if site else {}


def _load_events(placed: PlacedLoad, pid: int, tid: int) -> list[TraceEvent]:
    """A load as a slice, its phases in it, and in these what is known to be a part of them."""
    load = placed.load
    name = f"{load.name} {_short(load.hash)}{_at_dim(load.block_dim)} ({load.status.value})"
    args = {
        "hash": load.hash and printable(load.hash, MAX_TRACE_TEXT),
        "device": printable(load.device, MAX_TRACE_TEXT),
        "block_dim": load.block_dim,
        "kind": load.kind.value,
        "ms": load.ms,
        "hash_ms": load.hash_ms,
        "source_bytes": load.generated_source_bytes,
        "workers": load.workers,
        **_site_args(load.site),
        **({"cause": printable(cause_text(load.cause), MAX_TRACE_TEXT)} if load.cause else {}),
        **({"error": printable(load.error, MAX_TRACE_TEXT)} if load.error else {}),
    }
    events = [TraceEvent("X", name, pid, tid, Span(name, placed.start_ms, placed.end_ms), args)]
    for span in placed.phases():
        inner: list[tuple[str, float]] = []
        if span.name == "native compile" and load.phases:
            inner = [("precompiled header", load.phases.header_ms or 0.0)]
        elif span.name == "link-time optimisation":
            inner = [(artifact.symbol, artifact.ms) for artifact in load.lto[:MAX_TRACE_ITEMS]]
        events.append(TraceEvent("X", span.name, pid, tid, span))
        events += [TraceEvent("X", part.name, pid, tid, part) for part in laid(span.start_ms, span.end_ms, inner)]
    return events


# A page of its own: one file, no script, nothing loaded. It is built as a tree, so whatever a report holds is text.

PAGE_ROWS = 100  # of a table
PAGE_FINDINGS = 40
PAGE_LINES = 20  # of evidence, gaps, warnings or cache events
PAGE_TEXT = 600  # characters of one piece of text
TIMELINE_LOADS = 30  # with a row of their own
TIMELINE_PROCESSES = 12

PAGE_STYLE = """
:root { color-scheme: light dark; --bg: #fff; --panel: #f4f6f8; --fg: #1b1f24; --muted: #57606a; --line: #d3d9e0;
  --good: #1a6b38; --bad: #b3261e; --hint: #6a4b00; --busy: #4b5563;
  --interpreter: #8b949e; --imports: #6e7781; --import-warp: #3f6fb0; --init: #0f7f8c; --loads: #c24d0f;
  --hashing: #a8488b; --codegen: #9a6a00; --lto: #2b7cb8; --header: #7a4fc0; --native: #c24d0f; --install: #5c7a1f;
  --binary: #00805c; --rest: #aab2bb; --cached: #00805c; --life: #e3e8ed; }
@media (prefers-color-scheme: dark) { :root { --bg: #0f1318; --panel: #171d24; --fg: #e6eaef; --muted: #9ba6b2;
  --line: #303944; --good: #6fce8f; --bad: #ff8f85; --hint: #e8c268; --busy: #aab4c0;
  --interpreter: #6e7781; --imports: #8b949e; --import-warp: #6ea3e8; --init: #45b5c0; --loads: #f08a4b;
  --hashing: #e08cc3; --codegen: #dba83a; --lto: #6cb6ee; --header: #b597f2; --native: #f08a4b; --install: #a7c957;
  --binary: #46c79c; --rest: #5d6875; --cached: #46c79c; --life: #262e37; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 1rem/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 2.5rem) 4rem; overflow-wrap: anywhere; }
h1 { font: 600 clamp(1.15rem, .9rem + 1.4vw, 1.6rem)/1.3 ui-monospace, monospace; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { margin: .3rem 0; max-width: 62rem; }
code, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .875em; }
.eyebrow, .quiet, figcaption, dt { color: var(--muted); font-size: .875rem; }
.bar { font-weight: 600; }
.lead { font-size: 1.2rem; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .6rem; margin: 1.2rem 0; }
.figures div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem; }
dt { margin: 0; } dd { margin: 0; font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; }
figure { margin: .75rem 0 1.25rem; }
svg { display: block; width: 100%; overflow: hidden; }
svg text { fill: var(--muted); font: .75rem ui-monospace, monospace; } svg line { stroke: var(--line); }
ol.timeline { list-style: none; margin: 0; padding: 0; font-size: .8125rem; }
ol.timeline li { display: grid; grid-template-columns: minmax(0, 24rem) minmax(0, 1fr); gap: 0 1rem; }
ol.timeline p { margin: 0; line-height: 20px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
ol.timeline strong { display: inline-block; min-width: 4.2rem; font-variant-numeric: tabular-nums; }
ol.timeline .process { border-top: 1px solid var(--line); } ol.timeline .process strong { margin-right: .6rem; }
ul.legend { display: flex; flex-wrap: wrap; gap: .15rem 1.2rem; list-style: none; padding: 0; margin: .5rem 0;
  font-size: .875rem; font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .45em; border-radius: .2em; }
.c-life { outline: 1px solid var(--line); }
ol.findings { list-style: none; padding: 0; }
ol.findings > li { border: 1px solid var(--line); border-left: .3rem solid var(--hint); border-radius: .4rem;
  padding: .6rem .9rem; margin: .7rem 0; }
ol.findings > li.redundant { border-left-color: var(--bad); }
.finding { display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: 0; }
.kind { color: var(--hint); font-weight: 600; } .redundant .kind { color: var(--bad); }
li ul { padding-left: 1.2rem; margin: .3rem 0; font-size: .875rem; color: var(--muted); }
.scroll { overflow-x: auto; } .narrow { max-width: 44rem; }
.scroll:focus-visible { outline: 2px solid var(--import-warp); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; color: var(--muted); padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--muted); font-weight: 600; white-space: nowrap; vertical-align: bottom; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td { white-space: nowrap; } tbody th { font-weight: 400; min-width: 16rem; }
tbody th > span:first-child { font-weight: 600; } tbody th > span { display: block; white-space: pre-wrap; }
tbody th > span + span { color: var(--muted); font-size: .8125rem; }
details { margin: .5rem 0; } summary { cursor: pointer; padding: .3rem 0; font-weight: 600; }
li details, header details { margin: 0; }
li summary, header summary { padding: 0; font-size: .875rem; font-weight: 400; }
@media (max-width: 44rem) {
  ol.timeline li { grid-template-columns: minmax(0, 1fr); padding: .15rem 0; }
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards, .cards tbody, .cards tr, .cards th, .cards td, .cards caption { display: block; }
  .cards tr { border-bottom: 1px solid var(--line); padding: .5rem 0; display: flex; flex-wrap: wrap; gap: .1rem 1rem; }
  .cards tbody th { flex: 1 0 100%; padding: 0; border: 0; }
  .cards td, .cards td.n { padding: 0; border: 0; text-align: left; }
  .cards td::before { content: attr(data-label) " "; color: var(--muted); }
}
@media print { details { display: block; } }
"""

LOADS_IN_PROGRESS = "loads in progress"
PROCESS_RUNS = "the process runs, no load in progress"

# The colour of each part of a process or load: a variable of the style, and the class of what is drawn in it.
PAGE_COLOURS = {
    "interpreter": "interpreter",
    "imports before Warp": "imports",
    "import warp": "import-warp",
    "wp.init": "init",
    "loads": "loads",
    "everything else": "rest",
    "hashing": "hashing",
    "code generation": "codegen",
    "link-time optimisation": "lto",
    "precompiled header": "header",
    "native compile": "native",
    "installation": "install",
    "binary load": "binary",
    "left over": "rest",
    "cached": "cached",
    "error": "bad",
    LOADS_IN_PROGRESS: "busy",
    PROCESS_RUNS: "life",
}


def page_style() -> str:
    """The style sheet of the page, with a class for each colour."""
    names = sorted(set(PAGE_COLOURS.values()))
    return PAGE_STYLE + "".join(
        f".c-{name} {{ fill: var(--{name}); background: var(--{name}); stroke: var(--{name}); stroke-width: 0; }}\n"
        for name in names
    )


def render_html(report: Report) -> str:
    """A report as one page that loads nothing and runs nothing, for light and dark, narrow and wide; hidden rows are
    counted."""
    style = page_style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = ET.Element("html", {"lang": "en"})
    head = _add(page, "head")
    _add(head, "meta", charset="utf-8")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    _add(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "meta", name="referrer", content="no-referrer")
    _add(head, "title", f"Cold start of {printable(shlex.join(report.command), 80)}")
    # Not through _add: its line ends stay, and the policy above is the digest of exactly this text.
    ET.SubElement(head, "style").text = style
    main = _add(_add(page, "body"), "main")
    _page_head(main, report)
    _page_shares(main, report)
    _page_findings(main, report)
    _page_timelines(main, report)
    _page_modules(main, report)
    _page_times(main, report)
    _page_processes(main, report)
    for device in report.offline:
        _page_offline(main, report, device)
    _page_notes(main, report)
    _page_subject(main, report)
    return "<!DOCTYPE html>\n" + ET.tostring(page, encoding="unicode", method="html") + "\n"


def _add(parent: ET.Element, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """A new child with text and attributes; `class_` and `http_equiv` stand for `class` and `http-equiv`."""
    names = {name.rstrip("_").replace("_", "-"): printable(value, PAGE_TEXT) for name, value in attributes.items()}
    child = ET.SubElement(parent, tag, names)
    child.text = printable(text, PAGE_TEXT)
    child.tail = "\n"
    return child


def _section(parent: ET.Element, title: str) -> ET.Element:
    """A new section with its heading, one level below that of a section around it."""
    section = _add(parent, "section")
    _add(section, "h3" if parent.tag == "section" else "h2", title)
    return section


def _page_head(parent: ET.Element, report: Report) -> None:
    """What you wait for, whether everything was seen, and the counts."""
    header = _add(parent, "header")
    label = f": {report.label}" if report.label else ""
    _add(header, "p", f"warp-compile-probe{label}", class_="eyebrow")
    _add(header, "h1", shlex.join(report.command))
    first, *rest = _headline(report)
    _add(header, "p", first, class_="lead")
    for line in rest:
        _add(header, "p", line)
    for line in _failure_lines(report, PAGE_LINES, ()):
        _add(header, "p", line.strip(), class_="bad")
    _page_coverage(header, report)
    summary = report.summary
    if summary is None:
        return
    figures = [
        ("cold start", duration(summary.cold_wall_ms.median)),
        ("warm start", duration(summary.warm_wall_ms.median)),
        ("loading modules", duration(summary.build_span_ms.median)),
    ]
    for fact, count in exact_facts(summary):
        if count or fact in ("builds", "rebuilds", "variants", "warm_builds"):
            figures.append((fact.replace("_", " ").replace("lto", "LTO"), f"{count:,}"))
    grid = _add(header, "dl", class_="figures")
    for name, value in figures:
        tile = _add(grid, "div")
        _add(tile, "dt", name)
        _add(tile, "dd", value)


def _page_coverage(parent: ET.Element, report: Report) -> None:
    for line in _coverage_lines(report, PAGE_LINES)[:1]:
        _add(parent, "p", line, class_="bad" if report.coverage.gaps else "good")
    _page_list(parent, _gap_texts(report))


def _page_list(parent: ET.Element, lines: Sequence[str]) -> None:
    """Lines as a list: four, those up to `PAGE_LINES` folded, the others counted."""
    if not lines:
        return
    first = lines if len(lines) <= 5 else lines[:4]
    _add_lines(parent, first)
    if len(lines) > len(first):
        folded = _add(parent, "details")
        _add(folded, "summary", f"{len(lines) - len(first):,} more")
        hidden = len(lines) - PAGE_LINES
        _add_lines(folded, [*lines[len(first) : PAGE_LINES], *([f"and {hidden:,} more"] if hidden > 0 else [])])


def _add_lines(parent: ET.Element, lines: Sequence[str]) -> None:
    items = _add(parent, "ul")
    for line in lines:
        _add(items, "li", line)


def _page_shares(parent: ET.Element, report: Report) -> None:
    """Stacked bars: where the time of the first cold run goes, and that of its builds."""
    cold = next((sample.cold for sample in complete_samples(report.samples)), None)
    if cold is None:
        return
    section = _section(parent, "Where the time goes")
    _share_bar(section, "The first cold run", *_run_parts(cold))
    _build_bar(section, report)


def _build_bar(parent: ET.Element, report: Report) -> None:
    """The phases of all builds, as a stacked bar."""
    summary = report.summary
    if summary is None or not summary.builds:
        return
    header = _phase_of_builds(report, lambda phases: phases.header_ms or 0.0)
    install = _phase_of_builds(report, lambda phases: phases.install_ms)
    rest_of_builds = _phase_of_builds(report, lambda phases: phases.rest_ms)
    header_ms = header.median if header else 0.0
    parts = [
        ("hashing", summary.hash_ms.median),
        ("code generation", summary.codegen_ms.median),
        ("link-time optimisation", summary.lto_ms.median),
        ("precompiled header", header_ms),
        ("native compile", max(0.0, summary.native_compile_ms.median - header_ms)),
        ("installation", install.median if install else 0.0),
        ("binary load", summary.load_ms.median),
        ("left over", rest_of_builds.median if rest_of_builds else 0.0),
    ]
    note = f"Medians of {plural(len(summary.cold_wall_ms.values), 'sample')}; builds that overlap count in full."
    _share_bar(parent, plural(summary.builds, "build"), parts, note)


def _run_parts(run: Run) -> tuple[list[tuple[str, float]], str]:
    """Where the wall time of a run went, and what that means: as its only process tells, or by what any process was
    doing, module loads before anything else."""
    only = run.processes[0].phases if len(run.processes) == 1 else None
    if only is not None:
        parts = _process_parts(only)
        outside = max(0.0, run.wall_ms - math.fsum(ms for _, ms in parts))
        return [*parts[:-1], (parts[-1][0], parts[-1][1] + outside)], "Loads: hashing, and Warp's own timer."
    spans = [
        Span("loads", placed.start_ms, placed.end_ms)
        for process in run.processes
        for _, lane in load_lanes(process.loads)
        for placed in lane
    ]
    spans += [span for process in run.processes for span in start_up_spans(process)]
    parts, before, counted = [], 0.0, list[tuple[float, float]]()
    for name in ("loads", "import warp", "imports before Warp", "interpreter"):
        counted += [(span.start_ms, span.end_ms) for span in spans if span.name == name]
        covered = union_ms(counted)
        parts.append((name, covered - before))
        before = covered
    note = "What any of the processes was doing at a time: loads first, then importing Warp, then starting."
    return [*parts, ("everything else", max(0.0, run.wall_ms - before))], note


def _share_bar(parent: ET.Element, title: str, parts: Sequence[tuple[str, float]], note: str) -> None:
    """A stacked bar with a legend that holds the same as text."""
    parts = [(name, ms) for name, ms in parts if ms > 0]
    total = math.fsum(ms for _, ms in parts)
    if not total:
        return
    figure = _add(parent, "figure")
    _add(figure, "p", f"{title}: {duration(total)}", class_="bar")
    # The legend says it all in words, so the drawing is none for a screen reader.
    drawing = _add(figure, "svg", height="26", aria_hidden="true")
    at = 0.0
    for name, ms in parts:
        _add(_rect(drawing, name, at / total, ms / total, 0, 26), "title", f"{name}: {duration(ms)}")
        at += ms
    legend = _add(figure, "ul", class_="legend")
    for name, ms in parts:
        _swatch(legend, name, f"{name} {duration(ms)}, {ms / total:.1%}")
    _add(figure, "figcaption", note)


def _rect(parent: ET.Element, name: str, start: float, width: float, y: int, height: int) -> ET.Element:
    """A piece of a drawing in the colour of `name`; `start` and `width` are shares of the whole width."""
    where = {"x": f"{100 * start:.3f}%", "width": f"{100 * width:.3f}%", "y": str(y), "height": str(height)}
    return _add(parent, "rect", class_=f"c-{PAGE_COLOURS[name]}", **where)


def _page_findings(parent: ET.Element, report: Report) -> None:
    if report.summary is None:
        return
    section = _section(parent, f"Findings: {_finding_counts(report)}")
    if not_ruled_out := _no_redundant_builds(report):
        _add(section, "p", " ".join(line.strip() for line in not_ruled_out))
    found = _add(section, "ol", class_="findings")
    for finding in report.findings[:PAGE_FINDINGS]:
        item = _add(found, "li", class_=finding.kind.value)
        line = _add(item, "p", class_="finding")
        _add(line, "strong", finding.mechanism)
        _add(line, "span", finding.kind.value, class_="kind")
        _add(line, "span", f"cost {duration(finding.cost_ms)}")
        if finding.avoidable_ms is not None:
            _add(line, "span", f"avoidable {duration(finding.avoidable_ms)}")
        _add(item, "p", _from_here(finding.text, report))
        if finding.where:
            _add(_add(item, "p", "at "), "code", _from_here(place(finding.where), report))
        _page_list(item, [_from_here(line, report) for line in finding.evidence])
    if len(report.findings) > PAGE_FINDINGS:
        _add(section, "p", f"and {len(report.findings) - PAGE_FINDINGS:,} more findings")


def _page_timelines(parent: ET.Element, report: Report) -> None:
    runs = [(title, run) for title, run in drawn_runs(report) if any(process.loads for process in run.processes)]
    if not runs:
        return
    section = _section(parent, "Module loads over time")
    for number, (title, run) in enumerate(runs[:8]):
        shown = _add(section, "details", **({} if number else {"open": ""}))
        loads = sum(len(process.loads) for process in run.processes)
        _add(shown, "summary", f"{title[0].upper()}{title[1:]}: {duration(run.wall_ms)}, {plural(loads, 'load')}")
        _timeline(_add(shown, "figure"), run)
    if len(runs) > 8:
        _add(section, "p", f"and {len(runs) - 8} more runs")


class Timeline:
    """The rows of a drawing, each with its words beside it or, on a narrow screen, above it."""

    def __init__(self, parent: ET.Element, span_ms: float) -> None:
        self.rows = _add(parent, "ol", class_="timeline")
        self.span_ms = span_ms
        self.least_ms = span_ms / 400  # of a gap that is drawn: one or two pixels
        self.drawn: dict[str, None] = {}  # names of pieces, for the legend
        self.ticks = [(at, f"{100 * self.share(at):.3f}%") for at in round_ticks(span_ms)]
        line = _add(self.rows, "li", aria_hidden="true")
        _add(line, "p")
        axis = _add(line, "svg", height="18")
        for at, x in self.ticks:
            anchor = "start" if not at else "end" if self.share(at) > 0.94 else "middle"
            tick = "0" if not at else f"{at / 1000:g} s" if span_ms >= 2000 else f"{at:g} ms"
            _add(axis, "text", tick, x=x, y="13", text_anchor=anchor)

    def share(self, ms: float) -> float:
        """Where a time is, as a share of the width."""
        return min(1.0, max(0.0, ms / self.span_ms))

    def row(self, strong: str, text: str, told: str, class_: str = "load") -> ET.Element:
        """A row without pieces; `told` is what its drawing says in words."""
        line = _add(self.rows, "li", class_=class_)
        words = _add(line, "p", title=f"{strong} {text}")
        _add(words, "strong", strong)
        _add(words, "code", text)
        drawing = _add(line, "svg", height="20", role="img")
        _add(drawing, "title", told)
        for _, x in self.ticks:
            _add(drawing, "line", x1=x, x2=x, y1="0", y2="100%")
        return drawing

    def piece(self, drawing: ET.Element, name: str, span: Span, told: str | None = None) -> None:
        """A piece of a row in the colour of its name."""
        start, end = self.share(span.start_ms), self.share(span.end_ms)
        self.drawn[name] = None
        # What is thinner than a pixel must still be seen.
        piece = _rect(drawing, name, start, max(end - start, 0.001), 4, 12)
        if told is not None:
            _add(piece, "title", f"{told}: {duration(span.end_ms - span.start_ms)}")


def _timeline(parent: ET.Element, run: Run) -> None:
    """The loads of a run, a row each under their process: the longest `TIMELINE_LOADS` of them, in the
    `TIMELINE_PROCESSES` that spent most time on them. The other loads of a process share a row."""

    def spent(process: Process) -> float:
        return math.fsum(load.ms for load in process.loads if load.start_ms is not None)

    dearest = {id(process) for process in sorted(run.processes, key=spent, reverse=True)[:TIMELINE_PROCESSES]}
    shown = [process for process in run.processes if id(process) in dearest]
    kept = longest_loads(shown, TIMELINE_LOADS)
    lanes_of = [load_lanes(process.loads) for process in shown]
    ends = [placed.end_ms for lanes in lanes_of for _, lane in lanes for placed in lane]
    ends += [process_span(process).end_ms for process in shown]
    line = Timeline(parent, max(0.001, run.wall_ms, *ends))
    for process, lanes in zip(shown, lanes_of, strict=True):
        placed = [one for _, lane in lanes for one in lane]
        _timeline_process(line, process, placed)
        several = len({thread for thread, _ in lanes}) > 1
        for thread, lane in lanes:
            for one in lane:
                if id(one.load) in kept:
                    _timeline_load(line, one, f", thread {thread}" if several else "")
        hidden = [one for one in placed if id(one.load) not in kept]
        if hidden:
            told = f"{plural(len(hidden), 'shorter load')} of process {process.path}"
            drawing = line.row(duration(math.fsum(one.load.ms for one in hidden)), told, told)
            for span in joined_spans(hidden, line.least_ms):
                line.piece(drawing, LOADS_IN_PROGRESS, span)
    _timeline_legend(parent, line.drawn, run, len(run.processes) - len(shown))


def _timeline_process(line: Timeline, process: Process, placed: Sequence[PlacedLoad]) -> None:
    """A process from its birth to its end: starting, with loads in progress, and the gaps between them."""
    whole = process_span(process)
    words = f"process {process.path} from {duration(whole.start_ms)} to {duration(whole.end_ms)}"
    drawing = line.row(f"process {process.path}", shlex.join(process.argv), words, "process")
    line.piece(drawing, PROCESS_RUNS, whole)
    for span in start_up_spans(process):
        line.piece(drawing, span.name, span, span.name)
    busy = joined_spans(placed, line.least_ms)
    for before, after in itertools.pairwise(busy):
        line.piece(drawing, PROCESS_RUNS, Span("", before.end_ms, after.start_ms), "no load in progress")
    for span in busy:
        line.piece(drawing, LOADS_IN_PROGRESS, span, LOADS_IN_PROGRESS)


def _timeline_load(line: Timeline, placed: PlacedLoad, thread: str) -> None:
    load = placed.load
    state = "" if load.status is Status.COMPILED else f", {load.status.value}"
    pieces: list[Span] = []
    for span in placed.phases() if load.status is Status.COMPILED else ():
        header = load.phases.header_ms if load.phases and span.name == "native compile" else None
        parts = [("precompiled header", header or 0.0), (span.name, math.inf)]
        pieces += laid(span.start_ms, span.end_ms, parts)
    told = f"{load.name} {_short(load.hash)}{_at_dim(load.block_dim)} on {load.device}, {load.status.value},"
    told += f" from {duration(placed.start_ms)} to {duration(placed.end_ms)}"
    told += "".join(f", {one.name} {duration(one.end_ms - one.start_ms)}" for one in pieces)
    told += f"; {cause_text(load.cause)}" if load.cause else ""
    drawing = line.row(duration(load.ms), f"{shortened(load.name, 36)} {_short(load.hash)}{state}{thread}", told)
    name = {Status.CACHED: "cached", Status.ERROR: "error"}.get(load.status, LOADS_IN_PROGRESS)
    for span in pieces or [Span(name, placed.start_ms, placed.end_ms)]:
        line.piece(drawing, span.name, span)


def _timeline_legend(parent: ET.Element, names: Iterable[str], run: Run, hidden_processes: int) -> None:
    drawn = set(names)
    legend = _add(parent, "ul", class_="legend")
    for name in PAGE_COLOURS:
        if name in drawn:
            _swatch(legend, name, name)
    without_time = sum(load.start_ms is None for process in run.processes for load in process.loads)
    notes = ["The phases of a load are laid in their order; where one began is not recorded."]
    if hidden_processes:
        notes.append(f"{plural(hidden_processes, 'more process', 'more processes')} not drawn.")
    if without_time:
        notes.append(f"{plural(without_time, 'load')} known from the output only, at no known time.")
    _add(parent, "figcaption", " ".join(notes))


def _swatch(legend: ET.Element, name: str, text: str) -> None:
    """A line of a legend, in the colour of `name`."""
    _add(_add(legend, "li"), "span", class_=f"swatch c-{PAGE_COLOURS[name]}").tail = text


def joined_spans(placed: Iterable[PlacedLoad], gap_ms: float) -> list[Span]:
    """When loads were in progress, in order; gaps of at most `gap_ms` are left out."""
    joined: list[Span] = []
    for one in sorted(placed, key=lambda one: one.start_ms):
        if joined and one.start_ms - joined[-1].end_ms <= gap_ms:
            last = joined.pop()
            joined.append(Span(last.name, last.start_ms, max(last.end_ms, one.end_ms)))
        else:
            joined.append(Span(LOADS_IN_PROGRESS, one.start_ms, one.end_ms))
    return joined


def round_ticks(span: float) -> list[float]:
    """At most six round numbers from 0 to `span`."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / 5)
    return [step * index for index in range(int(span / step) + 1)]


def _page_table(parent: ET.Element, caption: str, table: Table, told: Sequence[Sequence[str]] = ()) -> None:
    """A table whose first column names the row, with the lines in `told` below it. Narrow screens show a row as a
    card."""
    frame = _add(
        parent,
        "div",
        class_="scroll" if len(table.columns) > 4 else "scroll narrow",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
    drawn = _add(frame, "table", class_="cards")
    _add(drawn, "caption", caption)
    header = _add(_add(drawn, "thead"), "tr")
    sides: list[dict[str, str]] = [{"class_": "n"} if right else {} for right in numeric_columns(table.rows)]
    for column, side in zip(table.columns, sides, strict=True):
        _add(header, "th", column, scope="col", **side)
    body = _add(drawn, "tbody")
    for number, cells in enumerate(table.rows[:PAGE_ROWS]):
        line = _add(body, "tr")
        name = _add(line, "th", scope="row")
        for text in (cells[0], *(told[number] if told else ())):
            _add(name, "span", text)
        for cell, column, side in zip(cells[1:], table.columns[1:], sides[1:], strict=True):
            _add(line, "td", cell, data_label=column, **side)
    if len(table.rows) > PAGE_ROWS:
        _add(parent, "p", f"and {len(table.rows) - PAGE_ROWS:,} more rows")


def _page_modules(parent: ET.Element, report: Report) -> None:
    told = []
    for _, records in _module_rows(report):
        causes = list(dict.fromkeys(cause_text(cause) for record in records for cause in record.causes))
        sites = list(dict.fromkeys(place(site) for record in records for site in record.sites))
        lines = [_from_here(line, report) for line in causes[:3]]
        lines += [f"and {plural(len(causes) - 3, 'more cause')}"] if len(causes) > 3 else []
        lines += [_from_here(f"asked for at {_listed(sites, 2)}", report)] if sites else []
        told.append(lines)
    if told:
        caption = "A row for each identity; kernels of one factory share a row. Times in ms, over the samples."
        _page_table(_section(parent, "Modules by cost"), caption, _module_table(report), told)


def _page_times(parent: ET.Element, report: Report) -> None:
    if report.summary is not None:
        caption = "Medians in ms, their median absolute deviation (MAD), number of samples (n)"
        _page_table(_section(parent, "Times"), caption, _timed_table(report, report.summary))


def _page_processes(parent: ET.Element, report: Report) -> None:
    table = _process_table(report)
    if table.rows:
        _page_table(_section(parent, "Processes"), "Processes of the first complete cold run", table)


def _page_offline(parent: ET.Element, report: Report, device: str) -> None:
    block = offline_report(report, device, "the report")
    section = _section(parent, f"Offline for {device}")
    _add(section, "p", _offline_title(block))
    _add(section, "p", DIFFERS_ON_DEVICE)
    if block.summary is None:
        _add(section, "p", "No offline sample is complete.", class_="bad")
    _page_coverage(section, block)
    _page_list(section, [f"{one.name}: {one.text}" for one in block.warnings])
    _build_bar(section, block)
    _page_findings(section, block)
    _page_modules(section, block)


def _page_notes(parent: ET.Element, report: Report) -> None:
    """Warnings, and what the program did to its caches."""
    events = _cache_event_texts(report)
    if report.warnings:
        _page_list(_section(parent, "Warnings"), [f"{one.name}: {one.text}" for one in report.warnings])
    if events:
        _page_list(_section(parent, "What the program did to its caches"), events)


def _page_subject(parent: ET.Element, report: Report) -> None:
    section = _section(parent, "Measured")
    for line in _subject_lines(report):
        _add(section, "p", line)
    commit = f", commit {report.environment.git_commit}" if report.environment.git_commit else ""
    _add(section, "p", f"{report.created}, in {report.cwd}{commit}, probe {report.probe_version}", class_="quiet")


# ---------------------------------------------------------------------------------------------------------------------
# Recorder: everything between the two markers runs inside the target, nothing else does. Python 3.8 syntax; at start-up
# it imports only what the interpreter has loaded already. Facts go to one append-only file per process, a JSON object a
# line, times as nanoseconds of the monotonic clock. It holds no Kernel, Function, Module, Launch, Graph or array: Warp
# keeps live kernels in weak sets, and a kernel kept alive changes the hashes of what is built later.
# ---------------------------------------------------------------------------------------------------------------------

# <recorder>
try:
    from _json import encode_basestring_ascii as encode_string
except ImportError:  # an interpreter other than CPython
    from json.encoder import py_encode_basestring_ascii as encode_string

MAIN_STREAM_IDS = 65536  # ids buffered for the first launching thread, 4 bytes each
OTHER_STREAM_IDS = 4096  # the same for each further thread
MAX_DISTINCT_LAUNCHES = 100000  # beyond, dims are no longer told apart
MAX_HOOK_ERRORS = 20
MAX_CONFIG_EVENTS = 200
MAX_STATES = 5000  # module states described a process; what comes after has no known cause
MAX_TEXT = 400  # characters kept of a value's repr, of a word of a command line
PROCESS_VARIABLE = "_WARP_COMPILE_PROBE_PROCESS"  # tells a child the name of its parent's record


def encode(value: Any) -> str:
    """JSON text of plain values; the json package is not imported, since the target may not have done so."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_string(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        text = float.__repr__(value)
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
    if isinstance(value, dict):
        return "{" + ",".join(encode_string(key) + ":" + encode(item) for key, item in value.items()) + "}"
    return "[" + ",".join(encode(item) for item in value) + "]"


def text_of(value: Any) -> str:
    """A repr that never raises, for values of the target; of a long one the beginning and a digest."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: repr failed with {type(error).__name__}>"
    if len(text) <= MAX_TEXT:
        return text
    from hashlib import sha256

    return f"{text[:MAX_TEXT]}... {sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def pack(ids: Any) -> str:
    """Launch numbers, a buffer of 4-byte integers, as text."""
    from base64 import b64encode
    from zlib import compress

    return b64encode(compress(ids, 1)).decode("ascii")


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a path is that of a folder or of something in it."""
    return (path + os.sep).startswith(folder + os.sep)


def command_line() -> list[str]:
    """The arguments of this process; sys.argv is not set yet when site runs."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(65536).split(b"\0")[:-1]
        return [word.decode("utf-8", "replace")[:MAX_TEXT] for word in words[:40]]
    except OSError:
        return [str(word)[:MAX_TEXT] for word in getattr(sys, "orig_argv", [])[:40]]


def option_value(kinds: Any, members: Any, text: str) -> Any:
    """What `text` stands for as a value of a configuration option; `kinds` are the names of its types, `members` those
    of its enum, if it is one. Raises ValueError saying what was expected."""
    if text == "None" and ("None" in kinds or "NoneType" in kinds or "Optional" in kinds):
        return None
    if "bool" in kinds and text in ("True", "False"):
        return text == "True"
    for kind, convert in (("int", int), ("float", float)):
        if kind in kinds:
            try:
                return convert(text)
            except ValueError:
                # The text may still be a member, or fit another type that the option takes.
                pass
    if text in members:
        return members[text]
    if "str" in kinds:
        return text
    known = [("bool", "True or False"), ("int", "an integer"), ("float", "a number"), ("NoneType", "None")]
    words = [words for kind, words in known if kind in kinds] + list(members)
    raise ValueError("expected " + (" or ".join(words) or "a value that can be written as text") + ", found " + text)


def option_kinds(annotation: Any) -> Any:
    """The names of the types of a configuration option, from its annotation: a text, a type, or None without one."""
    import re

    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or str(annotation)
    kinds = set(re.findall(r"bool|int|float|str|None|Optional", text)) if annotation is not None else set()
    return kinds | ({"Optional"} if "Optional" in str(annotation) else set())


def is_of_signal_handler(error: BaseException) -> bool:
    """Whether a handler that the program has for a signal raised this, in the midst of a hook: it is the program's."""
    place = error.__traceback__ and error.__traceback__.tb_next
    if place is None:
        return False  # raised in the hook itself, as for every launch that is new to it

    from _signal import getsignal, valid_signals  # type: ignore[import-not-found]

    codes = set()
    for number in valid_signals():
        handler: Any = getsignal(number)
        handler = getattr(handler, "func", handler)  # functools.partial
        handler = getattr(handler, "__func__", handler)  # a method
        if not hasattr(handler, "__code__"):
            handler = getattr(type(handler), "__call__", None)  # noqa: B004 - its code is asked for, not whether it is there
        codes.add(getattr(handler, "__code__", None))
    while place is not None:
        if place.tb_frame.f_code in codes:
            return True
        place = place.tb_next
    return False


class LoadRecord:
    """A load in progress on one thread, with exclusive time per phase."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.timer: int | None = None  # id of Warp's timer, where it has one
        self.start = time.monotonic_ns()
        self.phases = {"codegen": 0, "lto": 0, "native": 0, "install": 0, "load": 0}
        self.stack: list[list[Any]] = []  # [phase, time since which it accumulates]
        self.header: int | None = None
        self.source_bytes = 0
        self.lto: list[dict[str, Any]] = []
        self.dispatch: Any = None  # the frame that asked for the last artifact, until the load ends
        self.adjoint = False  # whether that one was for backward code
        self.error_text: str | None = None

    def enter(self, phase: str) -> None:
        now = time.monotonic_ns()
        if self.stack:
            outer = self.stack[-1]
            self.phases[outer[0]] += now - outer[1]
            if outer[0] == "lto":
                phase = "lto"  # the renames of an artifact belong to it
        self.stack.append([phase, now])

    def leave(self) -> None:
        now = time.monotonic_ns()
        phase, since = self.stack.pop()
        self.phases[phase] += now - since
        if self.stack:
            self.stack[-1][1] = now


class HashFrame:
    """What Warp's hasher met while it hashed one item: a module, a kernel, a function or a body."""

    def __init__(self) -> None:
        self.adjoints: list[str] = []  # digests of bodies
        self.functions: dict[str, str] = {}  # key -> digest
        self.constants: dict[str, str] = {}
        self.types: list[list[str]] = []  # [name, type code]

    def add_function(self, key: str, digest: str) -> None:
        """Note a function; further ones of the same key (closures, say) get primes."""
        while self.functions.setdefault(key, digest) != digest:
            key += "'"


class GraphContent:
    """What a graph holds: the numbers of its launches, and whether more of them run than were seen."""

    def __init__(self) -> None:
        from array import array

        self.numbers = array("I")
        self.unknown = False
        self.number: int | None = None  # of one replay, once it was described


class Stream:
    """The launch numbers of one thread: a mapped file, so that what SIGKILL leaves can still be read.

    Slot 0 of `slots` holds the sequence number of the next flush, then come the numbers up to the first zero.
    """

    def __init__(self, recorder: Recorder, thread: int, size: int) -> None:
        import mmap

        self.recorder = recorder
        self.thread = thread
        self.flushed = 0  # sequence number of the last piece in the record
        self.position = 1
        self.mapped = True
        path = f"{recorder.base}.{thread}.ids"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                # Real blocks, not a hole: a store into a mapped hole of a full disk kills the process.
                if os.write(descriptor, bytes(4 * (size + 1))) != 4 * (size + 1):
                    os.unlink(path)
                    raise OSError("short write")
                buffer = mmap.mmap(descriptor, 4 * (size + 1))
            finally:
                os.close(descriptor)
        except Exception as error:
            recorder.note_error(f"launch buffer in memory only, a kill loses up to {size} launches", error)
            self.mapped = False
            buffer = mmap.mmap(-1, 4 * (size + 1))
        self.slots = memoryview(buffer).cast("I")
        self.slots[0] = 1

    def append(self, number: int) -> None:
        if self.position == len(self.slots):
            self.flush()
        self.slots[self.position] = number
        self.position += 1

    def flush(self) -> None:
        """Move the numbers to the record. Whenever a kill comes, slot 0 tells whether they are there already: it is
        counted up only when the slots are empty again. After an exception from a signal's handler, the next flush goes
        on where this one was."""
        end = self.position
        sequence = self.slots[0]
        if self.slots[1] and self.flushed < sequence:
            self.recorder.emit("ids", thread=self.thread, sequence=sequence, z=pack(self.slots[1:end]))
            self.flushed = sequence
        self.slots[1:end] = memoryview(bytes(4 * (end - 1))).cast("I")
        self.slots[0] = self.flushed + 1
        self.position = 1


class Recorder:
    """State of the recorder in one process; `bootstrap` makes the only instance."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.replaced: list[tuple[str, Any, Any]] = []
        self.entry_numbers = itertools.count(1)
        self.kernel_numbers = itertools.count(1)
        self.entries: dict[Any, dict[Any, int]] = {}
        self.adjoint_entries: dict[Any, dict[Any, int]] = {}
        self.use_main_stream: list[Any] = []
        self.kernel_of_hooks: dict[Any, int] = {}
        self.cuda_hooks: dict[int, tuple[Any, bool, Any]] = {}
        self.distinct = 0
        self.pending_states: dict[str, dict[str, Any]] = {}
        self.written: set[str] = set()
        self.twins: list[Twin] = []
        self.warp_was_followed = False
        self.begin("exec")

    def begin(self, how: str) -> None:
        """Open the books of this process; after a fork it keeps what it has from its parent."""
        now = time.monotonic_ns()
        self.pid = os.getpid()
        self.base = os.path.join(self.config["records"], f"{self.pid}-{now}")
        self.lost_lines = 0
        self.error_count = 0
        self.ended = False
        self.thread_numbers = itertools.count()
        self.thread_indices: dict[int, int] = {}
        self.streams: dict[int, Stream] = {}
        self.streams_lock = _thread.RLock()  # a signal's handler may launch in the midst of a first launch
        self.loads: dict[int, list[LoadRecord]] = {}
        self.last_hash: dict[int, tuple[str, int]] = {}
        self.hash_frames: dict[int, list[HashFrame]] = {}
        self.conditional_threads: set[int] = set()  # those inside the body of a capture_if or capture_while
        self.replaying_threads: set[int] = set()  # those inside a capture_launch
        self.deterministic_threads: set[int] = set()  # those inside a launch in deterministic mode
        self.hash_ns = 0
        self.hashings = 0
        self.config_events = 0
        self.states_written = 0
        self.driver_cache_off = os.environ.get("CUDA_CACHE_DISABLE") == "1"
        for use in self.use_main_stream:
            use(None, None)
        self.emit(
            "start",
            at=now,
            pid=self.pid,
            parent=os.environ.get(PROCESS_VARIABLE),
            how=how,
            argv=command_line(),
            executable=sys.executable,
            python=".".join(str(part) for part in sys.version_info[:3]),
        )
        os.environ[PROCESS_VARIABLE] = os.path.basename(self.base)

    # -- writing -------------------------------------------------------------------------------------------------

    def emit(self, kind: str, /, **fields: Any) -> None:
        """Append one line. The file is opened each time: a program may close every descriptor it finds."""
        data = (encode({"t": kind, **fields}) + "\n").encode("ascii")
        try:
            descriptor = os.open(self.base + ".rec", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                written = os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            if is_of_signal_handler(error):  # TimeoutError is an OSError
                raise
            written = 0  # a full disk, no descriptor left, a root directory of the program's own
        if written != len(data):
            self.lost_lines += 1
            if self.lost_lines == 1:
                self.mark_loss()

    def mark_loss(self) -> None:
        """Say that lines are lost where not one more can be written: an empty file needs no room on the disk."""
        try:
            descriptor = os.open(self.base + ".lost", os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError:
            return  # no descriptor is left, or another root directory: `finish` may still say it
        os.close(descriptor)

    def note_error(self, what: str, error: BaseException) -> None:
        """A hook failed: written down, never raised in the target. What a signal's handler raised is the program's, for
        which it waits: it goes on."""
        self.error_count += 1
        if self.error_count <= MAX_HOOK_ERRORS:
            self.emit("error", text=f"{what}: {text_of(error)}")
        if is_of_signal_handler(error):
            raise error

    def finish(self, how: str, code: int | None = None) -> None:
        """Flush and write the end line, once."""
        if self.ended or self.pid != os.getpid():
            return
        self.ended = True
        for stream in list(self.streams.values()):
            if not stream.mapped:
                stream.flush()
        if not self.warp_was_followed and not {"warp._src.context", "warp.context"}.isdisjoint(sys.modules):
            self.note_error("import of Warp", LookupError("the recorder's finder was not asked for it"))
        if self.lost_lines:
            self.emit("error", text=f"{self.lost_lines} lines of the record could not be written")
        now = time.monotonic_ns()
        self.emit("end", at=now, how=how, code=code, total_hash_ns=self.hash_ns, total_hashings=self.hashings)

    def revive(self) -> None:
        """An exec that failed: the process goes on."""
        self.ended = False
        self.emit("revived", at=time.monotonic_ns())

    def replace(self, owner: Any, name: str, make: Any, optional: bool = False) -> None:
        """Replace `owner.name` by `make(original)`. Where it is missing and not optional, something goes unseen."""
        original = vars(owner).get(name)
        if original is None:
            if not optional:
                self.note_error(f"hook of {owner.__name__}.{name}", LookupError("there is none"))
            return
        replacement = make(original)
        replacement.__name__ = name
        replacement.__doc__ = original.__doc__
        # Pickled by reference, a function must be found again where it was replaced.
        replacement.__module__ = getattr(owner, "__module__", owner.__name__)
        replacement.__qualname__ = f"{owner.__qualname__}.{name}" if hasattr(owner, "__qualname__") else name
        replacement.__wrapped__ = original
        setattr(owner, name, replacement)
        self.replaced.append((name, original, replacement))

    # -- processes -----------------------------------------------------------------------------------------------

    def watch_processes(self) -> None:
        """Record births, execs and os._exit, and flush before what leaves no chance to."""
        import _posixsubprocess

        def make_fork_exec(original: Any) -> Any:
            def fork_exec(argv: Any, paths: Any, *args: Any) -> Any:
                at = time.monotonic_ns()
                pid = original(argv, paths, *args)
                if self.can_run(paths, args[2]):
                    self.birth(at, pid, argv, args[3])
                return pid

            return fork_exec

        def make_spawn(original: Any) -> Any:
            def spawn(path: Any, argv: Any, env: Any, **keywords: Any) -> Any:
                at = time.monotonic_ns()
                pid = original(path, argv, env, **keywords)
                self.birth(at, pid, argv, env)
                return pid

            return spawn

        def make_exec(original: Any) -> Any:
            def execute(path: Any, argv: Any, *env: Any, **keywords: Any) -> Any:
                self.birth(time.monotonic_ns(), self.pid, argv, env[0] if env else keywords.get("env"))
                self.finish("exec")
                try:
                    return original(path, argv, *env, **keywords)
                finally:
                    self.revive()

            return execute

        def make_exit(original: Any) -> Any:
            def _exit(status: Any) -> Any:
                self.finish("os._exit", int(status) if isinstance(status, int) else None)
                return original(status)

            return _exit

        self.replace(_posixsubprocess, "fork_exec", make_fork_exec)
        self.replace(os, "posix_spawn", make_spawn, optional=True)
        self.replace(os, "posix_spawnp", make_spawn, optional=True)
        self.replace(os, "execv", make_exec)
        self.replace(os, "execve", make_exec)
        self.replace(os, "_exit", make_exit)
        subprocess = sys.modules.get("subprocess")
        if hasattr(subprocess, "_fork_exec"):  # Python 3.11 and up import it by name, a .pth file may have done so
            setattr(subprocess, "_fork_exec", _posixsubprocess.fork_exec)  # noqa: B010 - mypy knows no such name
        os.register_at_fork(after_in_child=self.after_fork)
        atexit.register(self.finish, "exit")

    def after_fork(self) -> None:
        try:
            self.begin("fork")
        except Exception as error:
            self.note_error("after fork", error)

    def can_run(self, paths: Any, folder: Any) -> bool:
        """Whether one of the files that a child tries to run exists; if not, it ends at once and was never born."""
        try:
            where = os.fsdecode(folder or b"")
            return any(os.path.exists(os.path.join(where, os.fsdecode(path))) for path in paths)
        except Exception as error:
            self.note_error("birth of a process", error)
            return True

    def birth(self, at: int, pid: int, argv: Any, env: Any) -> None:
        """A child that this process started at `at` or just after it, its words, and whether its environment still
        starts the recorder."""
        try:
            if env is None:
                passed = os.environ.get("PYTHONPATH", "")
            elif isinstance(env, (list, tuple)):
                found = [item[11:] for item in env if os.fsencode(item).startswith(b"PYTHONPATH=")]
                passed = os.fsdecode(found[0]) if found else ""
            else:
                passed = {os.fsdecode(key): os.fsdecode(value) for key, value in env.items()}.get("PYTHONPATH", "")
            words = [os.fsdecode(word)[:MAX_TEXT] for word in list(argv)[:40]]
            injected = self.config["inject"] in passed.split(os.pathsep)
            self.emit("birth", at=at, pid=pid, argv=words, injected=injected)
        except Exception as error:
            self.note_error("birth of a process", error)

    # -- places --------------------------------------------------------------------------------------------------

    def site(self, frame: Any) -> list[Any] | None:
        """[file, line, function] of the innermost frame that is the user's, from `frame` outwards."""
        while frame is not None:
            name = frame.f_code.co_filename
            if not self.is_internal(name):
                return [name, frame.f_lineno, frame.f_code.co_name]
            frame = frame.f_back
        return None

    def is_internal(self, name: str) -> bool:
        """Whether a file is Warp's own (its examples and tests are not), the recorder's, or machinery of Python."""
        if name.startswith(self.warp_folder):
            inner = name[len(self.warp_folder) :]
            return not inner.startswith(("examples" + os.sep, "tests" + os.sep))
        return name == self.config["script"] or name.startswith("<frozen ") or name in self.machinery

    def preload_frame(self, frame: Any, site: list[Any] | None) -> Any:
        """The frame of the force_load that asked for a load, or None: further out, or on the stack of another thread
        when a worker loads, which nobody's code has called (`site` is None)."""
        for innermost in [frame] if site is not None else [frame, *sys._current_frames().values()]:
            outer = innermost
            while outer is not None:
                if outer.f_code is self.force_load_code:
                    return outer
                outer = outer.f_back
        return None

    @staticmethod
    def workers_of(preload: Any, kind: str, site: list[Any] | None) -> int | None:
        """The number of workers of a force_load. On the CPU Warp loads a single module, or with one worker, on the
        calling thread (`site` is known); for a device it counts how many were asked for."""
        if site is not None and kind != "offline":
            return 1
        workers = preload.f_locals.get("max_workers")
        return None if workers is None else int(workers)

    def thread_index(self) -> int:
        """A small number for this thread."""
        ident = _thread.get_ident()
        index = self.thread_indices.get(ident)
        if index is None:
            index = self.thread_indices[ident] = next(self.thread_numbers)
        return index

    # -- Warp ----------------------------------------------------------------------------------------------------

    def patch_warp(self, context: Any) -> None:
        """Hook Warp, right after its context module ran and before anything could import names from it."""
        self.context = context
        package = context.__name__.rpartition(".")[0]
        self.build = sys.modules[package + ".build"]
        self.codegen = sys.modules[package + ".codegen"]
        self.types = sys.modules[package + ".types"]
        self.warp_config = sys.modules.get(package + ".config") or sys.modules["warp.config"]
        self.warp_folder = os.path.dirname(os.path.abspath(sys.modules["warp"].__file__ or "")) + os.sep
        library = os.path.dirname(os.__file__)
        self.machinery = {
            os.path.join(library, "threading.py"),
            os.path.join(library, "concurrent", "futures", "thread.py"),
            os.path.join(library, "concurrent", "futures", "_base.py"),
        }
        self.force_load_code = getattr(getattr(context, "force_load", None), "__code__", None)
        self.set_options()
        for step in (
            self.patch_options,
            self.patch_hasher,
            self.patch_phases,
            self.patch_aot,
            self.patch_launches,
            self.patch_graphs,
            self.patch_runtime,
            self.patch_config,
            self.patch_caches,
        ):
            self.attempt(step)

    def attempt(self, step: Any) -> None:
        """Set up hooks; those that a Warp cannot take are a gap, the others work."""
        try:
            step()
        except Exception as error:
            self.note_error(step.__name__, error)

    def set_options(self) -> None:
        """Give Warp's configuration the values of --set, before there is a module that could have copied the old ones;
        what the program assigns later wins."""
        config = self.warp_config
        for name, text in self.config["set"].items():
            try:
                if name.startswith("_") or name not in vars(config):
                    raise ValueError("Warp's configuration has no such name")
                before = vars(config)[name]
                kinds = option_kinds(getattr(config, "__annotations__", {}).get(name)) | {type(before).__name__}
                setattr(config, name, option_value(kinds, getattr(type(before), "__members__", {}), text))
                self.emit("set", name=name, before=text_of(before), after=text_of(vars(config)[name]))
            except Exception as error:
                self.emit("unset", text=f"--set {name}={text}: {str(error)[:MAX_TEXT]}")

    def warp_imported(self, module: Any, started: int) -> None:
        """`import warp` is over: its other modules are there now, names that it had imported too early are mended."""
        if hasattr(self, "context"):
            self.attempt(self.patch_timer)
            self.attempt(self.patch_tape)
            self.warp_is_imported = True
        for name, original, replacement in self.replaced:
            if vars(module).get(name) is original:
                setattr(module, name, replacement)
        config = getattr(module, "config", None)
        version = str(getattr(config, "version", None) or getattr(module, "__version__", None))
        self.emit("warp", start=started, end=time.monotonic_ns(), version=version, missing=self.missing())

    def patch_tape(self) -> None:
        """Note each tape that the program begins to record: with one, backward code may be needed."""

        def make(original: Any) -> Any:
            def enter(tape: Any) -> Any:
                self.emit("tape")
                return original(tape)

            return enter

        self.replace(sys.modules["warp"].Tape, "__enter__", make)

    def missing(self) -> list[str]:
        """What cannot be recorded in this Warp, since it lacks what the hooks need."""
        if not hasattr(self, "context"):
            return ["loads", "launches"]
        load = vars(self.context.Module).get("load")
        load = getattr(load, "__wrapped__", load)
        names = load.__code__.co_varnames if hasattr(load, "__code__") else ()
        found = {"loads": "active_block_dim" in names, "launches": "invoke" in vars(self.context)}
        return [what for what, there in found.items() if not there]

    # -- loads ---------------------------------------------------------------------------------------------------

    def patch_timer(self) -> None:
        """Warp wraps each real load in a ScopedTimer named "Module ...", active or not: the start and end of a load."""
        timer = sys.modules[self.context.__name__.rpartition(".")[0] + ".utils"].ScopedTimer
        own = vars(self.context)

        def make_enter(original: Any) -> Any:
            def enter(timer: Any) -> Any:
                frame = sys._getframe(1)
                if frame.f_globals is own and str(getattr(timer, "name", None)).startswith("Module "):
                    self.begin_timed_load(timer, frame)
                result = original(timer)
                load = self.load_of(timer)
                if load is not None:
                    load.start = time.monotonic_ns()
                return result

            return enter

        def make_exit(original: Any) -> Any:
            def leave(timer: Any, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
                load = self.load_of(timer)
                if load is not None:
                    self.end_load(load, str(getattr(timer, "extra_msg", "")), exc_value)
                return original(timer, exc_type, exc_value, traceback)

            return leave

        self.replace(timer, "__enter__", make_enter)
        self.replace(timer, "__exit__", make_exit)

    def current_load(self) -> LoadRecord | None:
        loads = self.loads.get(_thread.get_ident())
        return loads[-1] if loads else None

    def load_of(self, timer: Any) -> LoadRecord | None:
        load = self.current_load()
        return load if load is not None and load.timer == id(timer) else None

    def begin_timed_load(self, timer: Any, frame: Any) -> None:
        try:
            names = frame.f_locals
            digest = names["module_hash"].hex()
            kind = "aot" if names.get("binary_path") else "jit"
            self.check_twins()
            load = self.begin_load(kind, names["self"], digest, names["device"], names["active_block_dim"], frame)
            load.timer = id(timer)
        except Exception as error:
            self.note_error("start of a load", error)

    def begin_load(
        self, kind: str, module: Any, digest: str | None, device: Any, block_dim: Any, frame: Any
    ) -> LoadRecord:
        """Open the books of a load on this thread; `frame` is Warp's, from which on the user's is looked for."""
        site = self.site(frame)
        preload = self.preload_frame(frame, site)
        load = LoadRecord(
            {
                "name": module.name,
                "hash": digest,
                "device": str(device),
                "block_dim": None if block_dim is None else int(block_dim),
                "kind": kind,
                "site": site or self.site(preload),
                "workers": None if preload is None else self.workers_of(preload, kind, site),
                "hash_ns": self.take_hash_time(digest),
                **self.circumstances(module),
            }
        )
        self.loads.setdefault(_thread.get_ident(), []).append(load)
        return load

    def circumstances(self, module: Any) -> dict[str, Any]:
        """What a load happened under: a graph capture, options that never arrived, where options were set last."""
        if not self.driver_cache_off and os.environ.get("CUDA_CACHE_DISABLE") == "1":
            self.driver_cache_off = True
            self.cache_event("driver-cache-off", None, None)
        config = self.warp_config.__dict__
        unreached = [
            [name, text_of(value), text_of(config[name])]
            for name, value in self.copied_options.get(module, {}).items()
            if module.options.get(name) == value and config.get(name) != value
        ]
        return {
            "in_capture": self.active_capture() is not None,
            "unreached": unreached,
            "options_site": self.option_sites.get(module),
        }

    def take_hash_time(self, digest: str | None) -> int:
        """The time that hashing took just before this load, on this thread."""
        thread = _thread.get_ident()
        hashed, spent = self.last_hash.get(thread, (None, 0))
        if hashed is None or hashed != digest:
            return 0
        del self.last_hash[thread]
        return spent

    def end_load(self, load: LoadRecord, message: str, error: BaseException | None) -> None:
        end = time.monotonic_ns()
        try:
            self.loads[_thread.get_ident()].remove(load)
            load.dispatch = None
            status = "error" if error is not None else message.strip(" ()") or "unknown"
            if status not in ("compiled", "cached", "error", "unknown"):
                self.note_error("status of a load", ValueError(status))
                status = "unknown"
            self.write_state(load.fields["hash"])
            self.emit(
                "load",
                **load.fields,
                status=status,
                start=load.start,
                end=end,
                thread=self.thread_index(),
                phases=load.phases,
                header=load.header,
                source_bytes=load.source_bytes,
                lto=load.lto,
                error=load.error_text or (None if error is None else text_of(error)),
                total_hash_ns=self.hash_ns,
                total_hashings=self.hashings,
            )
        except Exception as failure:
            self.note_error("end of a load", failure)

    def patch_aot(self) -> None:
        """compile_aot_module compiles without a timer: a compilation outside any load is one of its own."""
        method = "_compile" if "_compile" in vars(self.context.Module) else "compile"

        def make(original: Any) -> Any:
            def compile_module(module: Any, *args: Any, **keywords: Any) -> Any:
                if self.current_load() is not None:
                    return original(module, *args, **keywords)
                load = self.begin_aot(module, args, keywords)
                try:
                    result = original(module, *args, **keywords)
                except BaseException as error:
                    if load is not None:
                        self.end_load(load, "error", error)
                    raise
                if load is not None:
                    load.fields["hash"] = self.last_hash_of(module) or load.fields["hash"]
                    self.end_load(load, "cached" if result is False else "compiled", None)
                return result

            return compile_module

        self.replace(self.context.Module, method, make)

    def begin_aot(self, module: Any, args: Any, keywords: Any) -> LoadRecord | None:
        try:
            device = args[0] if args else keywords.get("device")
            arch = args[3] if len(args) > 3 else keywords.get("output_arch")
            options = args[5] if len(args) > 5 else keywords.get("options")
            block_dim = (options or module.options).get("block_dim")
            if device is None and arch:
                device = f"sm_{arch}"
            return self.begin_load("aot", module, None, device, block_dim, sys._getframe(2))
        except Exception as error:
            self.note_error("start of an ahead-of-time compilation", error)
            return None

    def last_hash_of(self, module: Any) -> str | None:
        """The hash that Warp holds for the module's own block_dim; read, not computed."""
        try:
            hasher = module.__dict__["hashers"].get(module.options["block_dim"])
            digest = getattr(hasher, "hash", None) or getattr(hasher, "module_hash", None)
            return digest.hex() if digest is not None else None
        except Exception as error:
            self.note_error("hash of an ahead-of-time module", error)
            return None

    # -- phases --------------------------------------------------------------------------------------------------

    def patch_phases(self) -> None:
        def timed(phase: str, after: Any = None) -> Any:
            def make(original: Any) -> Any:
                def wrapper(*args: Any, **keywords: Any) -> Any:
                    load = self.current_load()
                    if load is None:
                        return original(*args, **keywords)
                    load.enter(phase)
                    finish = after(load, args, keywords) if after is not None else None
                    try:
                        return original(*args, **keywords)
                    finally:
                        load.leave()
                        if finish is not None:
                            finish()

                return wrapper

            return make

        builder = self.context.ModuleBuilder
        for name in ("__init__", "codegen", "build_meta"):
            self.replace(builder, name, timed("codegen"), optional=name == "build_meta")
        self.replace(self.build, "build_cpu", timed("native", self.watch_native(1)))
        self.replace(self.build, "build_cuda", timed("native", self.watch_native(0)))
        self.replace(self.build, "load_cuda", timed("load"))
        self.replace(self.build, "safe_rename", timed("install"), optional=True)
        for name in ("build_lto_dot", "build_lto_solver", "build_lto_fft"):
            self.replace(self.build, name, timed("lto", self.note_dispatch), optional=True)
        self.timed_load = timed("load")
        self.replace(self.build, "_build_lto_base", self.make_lto_base, optional=True)
        files = vars(self.context).get("shutil")
        if files is not None:
            current_load = self.current_load

            class TimedShutil(type(sys)):  # type: ignore[misc]
                """What Warp's context module knows as `shutil`: it removes the build folder after installation. In
                everything else it is that module, which a program may patch by this name too."""

                def __getattribute__(self, name: str) -> Any:
                    found = getattr(files, name)
                    return timed("install")(found) if name == "rmtree" and current_load() is not None else found

                def __setattr__(self, name: str, value: Any) -> None:
                    setattr(files, name, value)

                def __delattr__(self, name: str) -> None:
                    delattr(files, name)

            self.context.shutil = TimedShutil("shutil")

    def watch_native(self, source_position: int) -> Any:
        """Around a native compilation: the size of its source, and when a precompiled header appeared."""

        def after(load: LoadRecord, args: Any, keywords: Any) -> Any:
            def headers() -> dict[str, int]:
                found = {}
                folder = keywords.get("pch_dir")
                if folder and os.path.isdir(folder):
                    with os.scandir(folder) as entries:
                        for entry in entries:
                            if entry.name.endswith(".pch"):
                                found[entry.path] = entry.stat().st_mtime_ns
                return found

            try:
                load.source_bytes += os.path.getsize(args[source_position])
                before = headers()
                clock = time.time_ns()
            except Exception as error:
                self.note_error("before a native compilation", error)
                return None

            def finish() -> None:
                try:
                    new = [stamp for path, stamp in headers().items() if path not in before]
                    if new:
                        load.header = (load.header or 0) + max(0, max(new) - clock)
                    elif keywords.get("pch_dir"):
                        load.header = load.header or 0
                except Exception as error:
                    self.note_error("after a native compilation", error)

            return finish

        return after

    @staticmethod
    def note_dispatch(load: LoadRecord, _args: Any, _keywords: Any) -> None:
        """A tile operation asks for its artifacts in one function: the forward one first, then those of the adjoint."""
        frame = sys._getframe(2)
        load.adjoint = frame is load.dispatch
        load.dispatch = frame

    def make_lto_base(self, original: Any) -> Any:
        """Count the artifacts that are compiled, not those found in the cache."""

        def build_lto_base(symbol: Any, compile_artifact: Any, *args: Any, **keywords: Any) -> Any:
            def compile_and_count(*inner: Any, **inner_keywords: Any) -> Any:
                start = time.monotonic_ns()
                result = compile_artifact(*inner, **inner_keywords)
                try:
                    load = self.current_load()
                    if load is not None and result[0]:
                        size = len(result[1][".lto"] or b"")
                        spent = time.monotonic_ns() - start
                        load.lto.append({"symbol": str(symbol), "bytes": size, "ns": spent, "adjoint": load.adjoint})
                except Exception as error:
                    self.note_error("link-time artifact", error)
                return result

            return original(symbol, compile_and_count, *args, **keywords)

        return build_lto_base

    # -- hashing: what explains a build, copied as text while Warp computes it --------------------------------------

    def patch_hasher(self) -> None:
        """Follow Warp's hasher through a module: each item it hashes has a frame that collects what belongs to it."""

        def make_init(original: Any) -> Any:
            def init(hasher: Any, *args: Any, **keywords: Any) -> None:
                thread = _thread.get_ident()
                outer = self.hash_frames.get(thread)
                root = HashFrame()
                self.hash_frames[thread] = [root]
                start = time.monotonic_ns()
                try:
                    original(hasher, *args, **keywords)
                finally:
                    if outer is None:
                        self.hash_frames.pop(thread, None)
                    else:
                        self.hash_frames[thread] = outer
                self.end_hashing(hasher, args, root, time.monotonic_ns() - start)

            return init

        def make_get_references(original: Any) -> Any:
            def get_references(adjoint: Any) -> Any:
                result = original(adjoint)
                frames = self.hash_frames.get(_thread.get_ident())
                if frames is not None:
                    self.note_references(result, frames[-1])
                return result

            return get_references

        hasher = self.context.ModuleHasher
        self.replace(hasher, "__init__", make_init)
        self.replace(hasher, "hash_adjoint", self.framed("an adjoint", self.note_adjoint))
        self.replace(hasher, "hash_function", self.framed("a function", self.note_function))
        self.replace(hasher, "hash_kernel", self.framed("a kernel", self.note_kernel))
        self.replace(self.codegen.Adjoint, "get_references", make_get_references)

    def framed(self, what: str, note: Any) -> Any:
        """A hook of a hashing method: `note(item, digest, its frame, the enclosing frame)` follows the original."""

        def make(original: Any) -> Any:
            def hash_item(hasher: Any, item: Any, *args: Any) -> Any:
                frames = self.hash_frames.get(_thread.get_ident())
                if frames is None:
                    return original(hasher, item, *args)
                frames.append(HashFrame())
                try:
                    digest = original(hasher, item, *args)
                finally:
                    frame = frames.pop()
                try:
                    note(item, digest.hex(), frame, frames[-1])
                except Exception as error:
                    self.note_error("hash of " + what, error)
                return digest

            return hash_item

        return make

    def write_once(self, kind: str, digest: str, make: Any, module: str = "") -> None:
        """Describe what has this digest, once; kernels once a module, since equal ones may stand in several files."""
        key = kind + digest + module
        if key not in self.written:
            self.written.add(key)
            self.emit(kind, digest=digest, **make())

    def note_references(self, references: Any, frame: HashFrame) -> None:
        """What Warp found that a body refers to: (constants by name, types, functions). The functions are noted when
        they are hashed."""
        try:
            constants, types_used, _functions = references
            frame.constants = {str(name): text_of(value) for name, value in constants.items()}
            frame.types = [
                [str(getattr(item, "__name__", None) or getattr(item, "key", "?")), self.type_code(item)]
                for item in types_used
            ]
        except Exception as error:
            self.note_error("references of an adjoint", error)

    def note_adjoint(self, adjoint: Any, digest: str, frame: HashFrame, outer: HashFrame) -> None:
        """A body was hashed, that of a kernel or one of a function's."""
        outer.adjoints.append(digest)

        def describe() -> dict[str, Any]:
            # Warp 1.10 names the values that it has resolved `static_expressions`.
            known = vars(adjoint)
            resolved = known.get("resolved_static_expressions", known.get("static_expressions")) or {}
            statics = list(resolved.items()) + list(known.get("deferred_static_expressions") or [])
            return {
                "file": adjoint.filename,
                "line": self.definition_line(adjoint),
                "source": adjoint.source,
                "name": adjoint.fun_name,
                "args": [
                    [label, self.type_name(kind), self.type_code(kind)] for label, kind in adjoint.arg_types.items()
                ],
                "constants": frame.constants,
                "types": frame.types,
                "statics": [[str(key), text_of(value)] for key, value in statics],
                "functions": frame.functions,
            }

        self.write_once("adjoint", digest, describe)

    @staticmethod
    def definition_line(adjoint: Any) -> int:
        """The line with `def`; Warp knows that of the first decorator."""
        line = int(adjoint.fun_lineno)
        for number, text in enumerate(adjoint.source.splitlines()):
            if text.lstrip().startswith("def "):
                return line + number
        return line

    def type_name(self, kind: Any) -> str:
        """A type as Warp prints it; Python's scalar types by the Warp types that they stand for."""
        name = str(self.types.type_repr(kind))
        return {"float": "float32", "int": "int32"}.get(name, name.rpartition("._src.types.")[2])

    def type_code(self, kind: Any) -> str:
        """Warp's code of a type, as hashed: it tells structs of one name and other members apart."""
        try:
            return str(self.types.get_type_code(kind))
        except Exception:
            # An annotation without a code; Warp refuses such a kernel later.
            return text_of(kind)

    def note_function(self, function: Any, digest: str, frame: HashFrame, outer: HashFrame) -> None:
        """A function was hashed, or its digest was known from an earlier caller."""
        outer.add_function(function.key, digest)
        self.hash_frames[_thread.get_ident()][0].add_function(function.key, digest)

        def describe() -> dict[str, Any]:
            overloads = {**function.user_overloads, **function.user_templates}
            snippets = [
                vars(overload).get(attribute)
                for _, overload in sorted(overloads.items())
                if vars(overload).get("generic_parent") is None
                for attribute in ("native_snippet", "adj_native_snippet", "replay_snippet")
            ]
            return {"adjoints": frame.adjoints, "snippets": [snippet for snippet in snippets if snippet]}

        self.write_once("function", digest, describe)

    def note_kernel(self, kernel: Any, digest: str, frame: HashFrame, _outer: HashFrame) -> None:
        """A kernel was hashed, a plain one or an instance of a generic one."""
        # An instance of a generic kernel has no line of its own.
        defined = (vars(kernel).get("generic_parent") or kernel).adj
        self.write_once(
            "kernel",
            digest,
            lambda: {
                "key": kernel.key,
                "site": [defined.filename, self.definition_line(defined), defined.fun_name],
                "module": kernel.module.name,
                "adjoint": frame.adjoints[0] if frame.adjoints else None,
                "options": {str(key): text_of(value) for key, value in kernel.options.items()},
                "overload": vars(kernel).get("generic_parent") is not None,
            },
            kernel.module.name,
        )

    def end_hashing(self, hasher: Any, args: Any, root: HashFrame, spent: int) -> None:
        """A module was hashed: keep its state as text until a load asks for it."""
        try:
            self.hash_ns += spent
            self.hashings += 1
            digest = (getattr(hasher, "hash", None) or hasher.module_hash).hex()
            self.last_hash[_thread.get_ident()] = (digest, spent)
            if len(args) > 1:
                alive, options = args
            else:  # up to Warp 1.12 the hasher reads the module and four configuration flags, the mode from both
                config = vars(self.warp_config)
                alive, options = vars(args[0])["kernels"].values(), dict(args[0].options)
                for flag in ("verify_fp", "line_directives", "enable_vector_component_overwrites"):
                    options[flag] = config.get(flag)
                options["config.mode"] = config.get("mode")
            self.pending_states[digest] = {
                "options": {str(key): text_of(value) for key, value in options.items()},
                "kernels": [key.hex() for key in hasher.unique_kernels],
                "generics": [kernel.key for kernel in alive if kernel.is_generic],
                "functions": root.functions,
            }
            while len(self.pending_states) > 256:
                self.pending_states.pop(next(iter(self.pending_states)))
        except Exception as error:
            self.note_error("hash of a module", error)

    def write_state(self, digest: str | None) -> None:
        state = self.pending_states.get(digest) if digest else None
        if state is not None and digest is not None and self.states_written < MAX_STATES:
            self.states_written += 1
            self.write_once("state", digest, lambda: state)

    def patch_options(self) -> None:
        """Modules copy some of the configuration when they are created: remember what, to tell when a value that is
        assigned later never arrives. And where the program last set options of a module."""
        from weakref import WeakKeyDictionary

        self.copied_options: Any = WeakKeyDictionary()  # module -> {name: value}
        self.option_sites: Any = WeakKeyDictionary()  # module -> site
        self.warp_is_imported = False  # Warp's own modules copy what no program could have assigned before
        set_options_code = getattr(getattr(self.context, "set_module_options", None), "__code__", None)

        def make_init(original: Any) -> Any:
            def init(module: Any, *args: Any, **keywords: Any) -> None:
                original(module, *args, **keywords)
                try:
                    if not self.warp_is_imported:
                        return
                    config = self.warp_config.__dict__
                    self.copied_options[module] = {
                        name: value
                        for name, value in module.options.items()
                        if value is not None and name in config and config[name] == value
                    }
                except Exception as error:
                    self.note_error("creation of a module", error)

            return init

        def make_mark(original: Any) -> Any:
            def mark_modified(module: Any, *args: Any, **keywords: Any) -> Any:
                try:
                    frame = sys._getframe(1)
                    if frame.f_code is set_options_code:
                        self.option_sites[module] = self.site(frame)
                        for option in frame.f_locals["options"]:  # the program has decided
                            self.copied_options.get(module, {}).pop(option, None)
                    elif not self.is_internal(frame.f_code.co_filename):
                        self.option_sites[module] = self.site(frame)  # after module.options[...] = ...
                except Exception as error:
                    self.note_error("options of a module", error)
                return original(module, *args, **keywords)

            return mark_modified

        self.replace(self.context.Module, "__init__", make_init)
        self.replace(self.context.Module, "mark_modified", make_mark)

    # -- launches ------------------------------------------------------------------------------------------------

    def patch_launches(self) -> None:
        """CPU launches of every kind end in `invoke`; hooks say which kernel, the bounds say how large."""
        recorder = self
        executable = self.context.ModuleExec

        class KernelHooksDict(dict):  # type: ignore[type-arg]
            """Tells the recorder of each kernel as Warp looks up its entry points."""

            def __setitem__(self, key: Any, hooks: Any) -> None:
                super().__setitem__(key, hooks)
                recorder.note_hooks(self.identity, hooks, sys._getframe(1))  # type: ignore[attr-defined]

        def make_init(original: Any) -> Any:
            def init(executable: Any, *args: Any, **keywords: Any) -> None:
                original(executable, *args, **keywords)
                try:
                    block_dim = vars(executable).get("block_dim")
                    if block_dim is None:  # up to Warp 1.14 only the loading frame knows
                        block_dim = sys._getframe(1).f_locals.get("active_block_dim")
                    hooks = KernelHooksDict(executable.kernel_hooks)
                    hooks.identity = (executable.module_hash.hex(), str(executable.device), block_dim)  # type: ignore[attr-defined]
                    executable.kernel_hooks = hooks
                except Exception as error:
                    recorder.note_error("executable module", error)

            return init

        self.replace(executable, "__init__", make_init)
        self.replace(self.context, "invoke", self.make_invoke)
        self.replace(self.context, "invoke_cpu_blocks", self.make_invoke, optional=True)  # from Warp 1.18

    def note_hooks(self, identity: Any, hooks: Any, frame: Any) -> None:
        try:
            kernel = frame.f_locals["kernel"]
            number = next(self.kernel_numbers)
            self.kernel_of_hooks[hooks] = number
            self.entries[hooks] = {}
            self.adjoint_entries[hooks] = {}
            digest = kernel.hash
            self.emit(
                "hooks",
                number=number,
                key=kernel.key,
                module=kernel.module.name,
                hash=identity[0],
                device=identity[1],
                block_dim=None if identity[2] is None else int(identity[2]),
                digest=digest.hex() if digest is not None else None,
                args=[self.type_name(item.type) for item in kernel.adj.args],
                lost=not hooks.forward,
            )
            if identity[1] != "cpu":
                bounds = self.types.launch_bounds_t
                if not isinstance(bounds, type):
                    bounds = type(bounds((1,) * kernel.adj.kernel_dim))
                for handle, adjoint in ((hooks.forward, False), (hooks.backward, True)):
                    if handle:
                        self.cuda_hooks[handle] = (hooks, adjoint, bounds)
        except Exception as error:
            self.note_error("entry points of a kernel", error)

    def make_invoke(self, original: Any) -> Any:
        """The hot path of a CPU launch. Reading a field of the bounds is several times cheaper than their bytes, so a
        plain one-dimensional launch is known by its size: its bounds have `ndim` 1, or where they come in a class for
        each number of dimensions (in Warp 1.16, not yet in 1.12) `coord_mult` 1."""
        get_ident = _thread.get_ident
        entries, adjoint_entries = self.entries, self.adjoint_entries
        note, append = self.note_launch, self.append
        main_thread: Any = None
        stream: Any = None
        slots: Any = None

        def use_main_stream(thread: Any, new_stream: Any) -> None:
            nonlocal main_thread, stream, slots
            main_thread, stream, slots = thread, new_stream, new_stream and new_stream.slots

        def invoke_ndim(kernel: Any, hooks: Any, params: Any, adjoint: Any) -> Any:
            try:
                bounds = params[0]
                known = (adjoint_entries if adjoint else entries)[hooks]
                number = known[bounds.size if bounds.ndim == 1 else bytes(bounds)]
                if get_ident() == main_thread:
                    position = stream.position
                    slots[position] = number
                    stream.position = position + 1
                else:
                    append(number)
            except Exception as error:
                note(hooks, params, adjoint, error)
            return original(kernel, hooks, params, adjoint)

        def invoke_coord_mult(kernel: Any, hooks: Any, params: Any, adjoint: Any) -> Any:
            try:
                bounds = params[0]
                known = (adjoint_entries if adjoint else entries)[hooks]
                number = known.get(bounds.size) if bounds.coord_mult == 1 else None
                if number is None:
                    number = known[bytes(bounds)]
                if get_ident() == main_thread:
                    position = stream.position
                    slots[position] = number
                    stream.position = position + 1
                else:
                    append(number)
            except Exception as error:
                note(hooks, params, adjoint, error)
            return original(kernel, hooks, params, adjoint)

        self.use_main_stream.append(use_main_stream)
        return invoke_ndim if isinstance(self.types.launch_bounds_t, type) else invoke_coord_mult

    def note_launch(self, hooks: Any, params: Any, adjoint: Any, error: BaseException | None = None) -> None:
        """The unhurried way to note a launch: a new one, a full buffer. One that a signal's handler kept from beginning
        is none."""
        if error is not None and is_of_signal_handler(error):
            raise error
        self.append(self.number_of(hooks, params[0], adjoint))

    def number_of(self, hooks: Any, bounds: Any, adjoint: Any) -> int:
        """The number of a launch, (kernel as loaded, bounds, adjoint); a new one is described first."""
        try:
            known, more = self.known_launches(hooks, adjoint)
            key: Any = bytes(bounds)
            if key not in known and self.distinct >= MAX_DISTINCT_LAUNCHES:
                key = b""
            if key not in known:
                self.distinct += 1
                dim = self.dim_of(bounds) if key else None
                kernel = self.kernel_of_hooks.get(hooks)
                known[key] = self.describe(kernel=kernel, dim=dim, adjoint=bool(adjoint), **more)
                if dim is not None and len(dim) == 1:
                    known[bounds.size] = known[key]  # what `make_invoke` looks up
            return known[key]
        except Exception as error:
            self.note_error("a launch", error)
            return self.special_number("unknown")

    def known_launches(self, hooks: Any, adjoint: Any) -> tuple[dict[Any, int], dict[str, Any]]:
        """The numbers of the known launches of a kernel by their bounds, and what else describes a new one."""
        return (self.adjoint_entries if adjoint else self.entries).setdefault(hooks, {}), {}

    def special_number(self, what: str) -> int:
        """The number of something that is no known launch: a graph replay whose content was not seen, say."""
        known = self.entries.setdefault(what, {})
        if b"" not in known:
            known[b""] = self.describe(special=what)
        return known[b""]

    def describe(self, **fields: Any) -> int:
        number = next(self.entry_numbers)
        self.emit("launch", number=number, **fields)
        return number

    @staticmethod
    def dim_of(bounds: Any) -> list[int]:
        """The executed dimensions, from a shape of four with `ndim`, or from a shape of the kernel's own number of
        dimensions with a multiplier that the further ones are folded into."""
        shape = [int(extent) for extent in bounds.shape]
        if hasattr(bounds, "ndim"):
            return shape[: bounds.ndim]
        return shape if bounds.coord_mult == 1 else [*shape, int(bounds.coord_mult)]

    def append(self, number: int) -> None:
        """Add to the stream of this thread, which its first launch makes; the first one has the hot path."""
        try:
            ident = _thread.get_ident()
            stream = self.streams.get(ident)
            if stream is None:
                with self.streams_lock:
                    first = not self.streams
                    size = MAIN_STREAM_IDS if first else OTHER_STREAM_IDS
                    stream = self.streams.setdefault(ident, Stream(self, self.thread_index(), size))
                    if first:
                        for use in self.use_main_stream:
                            use(ident, stream)
            stream.append(number)
        except Exception as error:
            self.note_error("a launch", error)

    # -- graphs --------------------------------------------------------------------------------------------------

    def patch_graphs(self) -> None:
        """A capture executes nothing itself; each replay executes what was captured."""
        from weakref import WeakKeyDictionary

        self.graphs: Any = WeakKeyDictionary()  # capture (CPU) or graph (CUDA) -> GraphContent

        def make_begin(original: Any) -> Any:
            def capture_begin(*args: Any, **keywords: Any) -> Any:
                result = original(*args, **keywords)
                self.attempt(self.patch_capture)
                return result

            return capture_begin

        def make_launch(original: Any) -> Any:
            def capture_launch(graph: Any, *args: Any, **keywords: Any) -> Any:
                thread = _thread.get_ident()
                self.replaying_threads.add(thread)
                try:
                    result = original(graph, *args, **keywords)
                finally:
                    self.replaying_threads.discard(thread)
                self.note_replay(graph)
                return result

            return capture_launch

        def make_conditional(original: Any) -> Any:
            def conditional(*args: Any, **keywords: Any) -> Any:
                capture = self.active_capture()
                thread = _thread.get_ident()
                if capture is None or thread in self.conditional_threads:
                    return original(*args, **keywords)
                self.content_of(capture).unknown = True
                self.conditional_threads.add(thread)
                try:
                    return original(*args, **keywords)
                finally:
                    self.conditional_threads.discard(thread)

            return conditional

        self.replace(self.context, "capture_begin", make_begin)
        self.replace(self.context, "capture_launch", make_launch)
        self.replace(self.context, "capture_if", make_conditional, optional=True)
        self.replace(self.context, "capture_while", make_conditional, optional=True)

    def active_capture(self) -> Any:
        """The capture or graph that launches go into at the moment, or None."""
        try:
            runtime = vars(self.context.runtime)
            capture = runtime.get("_apic_capture")
            return capture if capture is not None else next(iter((runtime.get("captures") or {}).values()), None)
        except Exception as error:
            self.note_error("active capture", error)
            return None

    def content_of(self, capture: Any) -> GraphContent:
        """What is known of a capture; made when it is first asked for."""
        content: GraphContent = self.graphs.setdefault(capture, GraphContent())
        return content

    def patch_capture(self) -> None:
        """Launches in a capture on the CPU pass `build_launch_info` (from Warp 1.13); its module loads late."""
        module = sys.modules.get("warp._src.apic.capture")
        if module is None or hasattr(module.APICapture.build_launch_info, "__wrapped__"):
            return

        def make(original: Any) -> Any:
            def build_launch_info(
                capture: Any, kernel: Any, executable: Any, hooks: Any, params: Any, *args: Any, **keywords: Any
            ) -> Any:
                result = original(capture, kernel, executable, hooks, params, *args, **keywords)
                try:
                    if str(executable.device) == "cpu":
                        adjoint = args[1] if len(args) > 1 else keywords.get("adjoint", False)
                        self.note_captured(capture, self.number_of(hooks, params[0], adjoint))
                except Exception as error:
                    self.note_error("a captured launch", error)
                return result

            return build_launch_info

        self.replace(module.APICapture, "build_launch_info", make)

    def note_captured(self, capture: Any, number: int) -> None:
        """A launch went into a graph; how often a conditional body runs is not known."""
        if _thread.get_ident() not in self.conditional_threads:
            self.content_of(capture).numbers.append(number)

    def note_replay(self, graph: Any) -> None:
        """A graph was launched: one number stands for all its launches."""
        try:
            capture = vars(graph).get("_apic_capture") if str(graph.device) == "cpu" else graph
            content = None if capture is None else self.graphs.get(capture)
            if content is None:
                # Without a launch that Python made, or read from a file.
                content = GraphContent()
                content.unknown = vars(graph).get("_native_graph") is not None
                if capture is not None:
                    self.graphs[capture] = content
            if content.number is None:
                content.number = self.describe(graph=pack(content.numbers), unknown=content.unknown)
            self.append(content.number)
        except Exception as error:
            self.note_error("a graph replay", error)

    # -- the runtime: known only after wp.init() ------------------------------------------------------------------

    def patch_runtime(self) -> None:
        def make(original: Any) -> Any:
            def init(runtime: Any, *args: Any, **keywords: Any) -> None:
                start = time.monotonic_ns()
                original(runtime, *args, **keywords)
                self.runtime_ready(runtime, start)

            return init

        self.replace(self.context.Runtime, "__init__", make)

    def runtime_ready(self, runtime: Any, start: int) -> None:
        end = time.monotonic_ns()
        try:
            devices = [
                [device.alias, str(device.name), getattr(device, "arch", None) or None]
                for device in [runtime.cpu_device, *runtime.cuda_devices]
            ]
            versions = [
                ".".join(str(part) for part in value) if isinstance(value, tuple) else None
                for value in (vars(runtime).get("toolkit_version"), vars(runtime).get("driver_version"))
            ]
            self.emit(
                "init",
                start=start,
                end=end,
                devices=devices,
                toolkit=versions[0],
                driver=versions[1],
                cuda_archs=sorted(vars(runtime).get("nvrtc_supported_archs") or ()),
            )
            # The native functions have the prefix from Warp 1.9 on.
            prefix = "wp_" if hasattr(runtime.llvm, "wp_load_obj") else ""
            self.replace_native(runtime.llvm, prefix + "load_obj", self.timed_load)
            if runtime.cuda_devices:
                self.is_capturing = getattr(runtime.core, prefix + "cuda_stream_is_capturing")
                self.capture_id = getattr(runtime.core, prefix + "cuda_stream_get_capture_id")
                self.captures = vars(runtime).get("captures", {})
                self.replace_native(runtime.core, prefix + "cuda_launch_kernel", self.make_cuda_launch)
                self.replace_native(runtime.core, prefix + "cuda_graph_launch", self.make_graph_launch)
                self.attempt(self.patch_deterministic)
        except Exception as error:
            self.note_error("initialised runtime", error)

    @staticmethod
    def replace_native(library: Any, name: str, make: Any) -> None:
        """Replace a native function by `make(it)`, which has the same signature for those who look."""
        original = getattr(library, name)
        replacement = make(original)
        replacement.__name__ = name
        replacement.__wrapped__ = original
        for attribute in ("argtypes", "restype", "errcheck"):
            if hasattr(original, attribute):
                setattr(replacement, attribute, getattr(original, attribute))
        setattr(library, name, replacement)

    def make_cuda_launch(self, original: Any) -> Any:
        """Every CUDA launch ends in this native function; a kernel is known there by its function handle. Arguments
        as of Warp 1.10 to 1.19: context, function, size, ..., parameters, stream[, capture information]."""

        def cuda_launch_kernel(*args: Any) -> Any:
            failed = original(*args)
            try:
                if not failed and _thread.get_ident() not in self.deterministic_threads:
                    hooks, adjoint, bounds = self.cuda_hooks[args[1]]
                    position = next(index for index in range(5, len(args)) if hasattr(args[index], "_length_"))
                    number = self.number_of(hooks, bounds.from_address(args[position][0]), adjoint)
                    self.note_cuda_launch(number, args[position + 1])
            except Exception as error:
                self.note_error("a CUDA launch", error)
                self.append(self.special_number("unknown"))
            return failed

        return cuda_launch_kernel

    def note_cuda_launch(self, number: int, stream: Any) -> None:
        """A kernel was executed on a stream, or captured where that is being captured."""
        if not self.is_capturing(stream):
            self.append(number)
            return
        graph = self.captures.get(self.capture_id(stream))
        if graph is not None:
            self.note_captured(graph, number)
        elif _thread.get_ident() not in self.conditional_threads:
            # A capture that Warp does not know of, by PyTorch, say: so are its replays.
            self.append(self.special_number("graph"))

    def make_graph_launch(self, original: Any) -> Any:
        """A graph that is launched past capture_launch, as Warp's FFI for JAX does."""

        def cuda_graph_launch(*args: Any) -> Any:
            result = original(*args)
            if _thread.get_ident() not in self.replaying_threads:
                self.append(self.special_number("graph"))
            return result

        return cuda_graph_launch

    def patch_deterministic(self) -> None:
        """In deterministic mode (from Warp 1.15) one wp.launch may run its kernel twice: it stays one launch."""
        from importlib import import_module

        try:
            module = import_module("warp._src.deterministic")
        except ImportError:
            return

        def make(original: Any) -> Any:
            def launch_deterministic(kernel: Any, hooks: Any, params: Any, bounds: Any, *args: Any, **keys: Any) -> Any:
                thread = _thread.get_ident()
                self.deterministic_threads.add(thread)
                try:
                    result = original(kernel, hooks, params, bounds, *args, **keys)
                finally:
                    self.deterministic_threads.discard(thread)
                try:
                    number = self.number_of(hooks, bounds, keys.get("adjoint", False))
                    stream = args[1] if len(args) > 1 else keys["stream"]
                    self.note_cuda_launch(number, stream.cuda_stream)
                except Exception as error:
                    self.note_error("a deterministic launch", error)
                return result

            return launch_deterministic

        self.replace(module, "launch_deterministic", make)

    # -- caches --------------------------------------------------------------------------------------------------

    def patch_config(self) -> None:
        """Map the cache directory that the program sets to its private twin, and note what it does to caching."""
        recorder = self
        config = self.warp_config

        class ConfigModule(type(config)):  # type: ignore[misc]
            """The configuration module, with the cache directory mapped."""

            def __setattr__(self, name: str, value: Any) -> None:
                frame = sys._getframe(1)
                own = recorder.is_internal(frame.f_code.co_filename)
                before = self.__dict__.get(name)
                if name == "kernel_cache_dir":
                    if value is not None and not own:
                        recorder.cache_event("directory-set", value, frame)
                    value = recorder.private_directory(value)
                if name in ("verbose", "quiet") and recorder.is_warp_frame(frame):
                    # Warp 1.14 to 1.17 warn of these names unless Warp itself is the direct caller.
                    self.__dict__[name] = value
                else:
                    super().__setattr__(name, value)  # which may refuse the value
                if name == "cache_kernels" and not value:
                    recorder.cache_event("caching-off", None, frame)
                elif name != "kernel_cache_dir" and not own:
                    recorder.config_event(name, before, value, frame)

        config.__class__ = ConfigModule

    @staticmethod
    def is_warp_frame(frame: Any) -> bool:
        """Whether code of one of Warp's modules runs in a frame, as Warp itself decides that."""
        name = str(frame.f_globals.get("__name__"))
        return name == "warp" or name.startswith("warp.")

    def config_event(self, name: str, before: Any, after: Any, frame: Any) -> None:
        """An assignment to the configuration by the program itself."""
        try:
            if self.config_events < MAX_CONFIG_EVENTS and before != after:
                self.config_events += 1
                now = time.monotonic_ns()
                self.emit(
                    "config", name=name, before=text_of(before), after=text_of(after), at=now, site=self.site(frame)
                )
        except Exception as error:
            self.note_error("configuration", error)

    def patch_caches(self) -> None:
        """Keep every kernel cache inside the sample, and note when the program clears one."""
        recorder = self

        def make_init_cache(original: Any) -> Any:
            def init_kernel_cache(path: Any = None) -> Any:
                frame = sys._getframe(1)
                given, default = (os.path.join(recorder.config["sample"], name) for name in ("warp", "default"))
                asked = path is not None and not recorder.is_internal(frame.f_code.co_filename)
                if path is None:
                    path = os.environ.get("WARP_CACHE_PATH", default)
                    asked = asked or path not in (given, default)
                private = recorder.private_directory(path)
                if asked or private != path:
                    recorder.cache_event("directory-set", path, frame)
                result = original(private)
                recorder.attempt(recorder.check_twins)
                return result

            return init_kernel_cache

        def make_clear(kind: str) -> Any:
            def make(original: Any) -> Any:
                def clear(*args: Any, **keywords: Any) -> Any:
                    recorder.cache_event(kind, vars(recorder.warp_config).get("kernel_cache_dir"), sys._getframe(1))
                    return original(*args, **keywords)

                return clear

            return make

        self.replace(self.build, "init_kernel_cache", make_init_cache)
        self.replace(self.build, "clear_kernel_cache", make_clear("clear-kernel-cache"))
        self.replace(self.build, "clear_lto_cache", make_clear("clear-lto-cache"), optional=True)

    def cache_event(self, kind: str, path: Any, frame: Any) -> None:
        try:
            real = None if path is None else os.path.abspath(os.fsdecode(path))
            for twin in self.twins:
                if real is not None and is_in_folder(real, twin.private):
                    real = twin.real + real[len(twin.private) :]
            self.emit("cache", kind=kind, at=time.monotonic_ns(), path=real, site=self.site(frame))
        except Exception as error:
            self.note_error("cache event", error)

    def private_directory(self, path: Any) -> Any:
        """The private twin of a cache directory that the program chose; a path inside the sample stays itself."""
        try:
            if not isinstance(path, (str, bytes, os.PathLike)):
                return path
            real = os.path.realpath(os.fsdecode(path))
            if is_in_folder(real, os.path.realpath(self.config["sample"])):
                return path
            from hashlib import sha256

            name = sha256(os.fsencode(real)).hexdigest()[:16]
            private = os.path.join(self.config["sample"], "twins", name)
            if not any(twin.private == private for twin in self.twins):
                self.twins.append(Twin(real, private))
            return private
        except Exception as error:
            self.note_error("private cache directory", error)
            return path

    def check_twins(self) -> None:
        """When Warp has made its cache directory, and before a load: make the program's own directory where Warp would
        have, and see that a twin is worth as much as the directory that it stands for."""
        current = str(vars(self.warp_config).get("kernel_cache_dir"))
        for twin in self.twins:
            if twin.descriptor is None and is_in_folder(current, twin.private):
                twin.settle(self, twin.real + current[len(twin.private) :], current)
            elif twin.gone():
                self.cache_event("directory-deleted", twin.private, None)
                twin.settle(self, twin.real_resolved, twin.private_resolved)


class Twin:
    """A cache directory of the program's and the private one that stands in for it.

    A twin is valid as long as the real directory is the one it was made for: the identity (device, inode) is written
    beside the twin for the next run, and an open descriptor tells of a deletion even when the inode is used again.
    """

    def __init__(self, real: str, private: str) -> None:
        self.real = real
        self.private = private
        self.real_resolved = real
        self.private_resolved = private
        self.descriptor: int | None = None
        self.identity: tuple[int, int] | None = None

    def settle(self, recorder: Recorder, real: str, private: str) -> None:
        """Make the real directory where it is missing, and empty the twin unless it belongs to this very one."""
        self.real_resolved, self.private_resolved = real, private
        missing = []
        path = real
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        made = [path for path in reversed(missing) if self.make(path)]
        if made:
            recorder.emit("made", paths=made)
        found = os.stat(real)
        note = self.private + ".identity"
        text = f"{real} {found.st_dev} {found.st_ino}"
        try:
            with open(note, encoding="utf-8", errors="surrogateescape") as file:
                known = file.read()
        except OSError:
            known = ""
        if known != text or made:
            if known:  # else it is new, and another process may be using it already
                from shutil import rmtree

                rmtree(self.private, ignore_errors=True)
            os.makedirs(private, exist_ok=True)
            with open(note, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        held = self.held()
        if held is not None and self.descriptor is not None:
            os.close(self.descriptor)
        self.identity = (found.st_dev, found.st_ino)
        self.descriptor = os.open(real, os.O_RDONLY)

    @staticmethod
    def make(path: str) -> bool:
        """Make a directory; False where another process was faster."""
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            return False
        return True

    def held(self) -> os.stat_result | None:
        """The state of the directory that the descriptor holds; None once the program has closed it, together with
        all others, say."""
        try:
            held = os.fstat(-1 if self.descriptor is None else self.descriptor)
        except OSError:
            return None
        return held if (held.st_dev, held.st_ino) == self.identity else None

    def gone(self) -> bool:
        """Whether the real directory was deleted or replaced since."""
        if self.descriptor is None:
            return False
        held = self.held()
        if held is not None and held.st_nlink == 0:
            return True
        try:
            found = os.stat(self.real_resolved)
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self.identity


class Handover:
    """Loads a module that the recorder has had and that the program does not know yet."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, _spec: Any) -> Any:
        return self.module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.spec


# What an offline run adds: it compiles for a CUDA architecture, without driver or device, what is loaded on the CPU.


class KeptState:
    """What compiling changes in Warp's objects, to put it back: the attributes of kernels and of their adjoints as they
    were. It refers to kernels strongly, so it lives no longer than one compilation."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[Any, dict[str, Any]]] = {}

    def keep(self, item: Any) -> None:
        if id(item) not in self.kept:
            self.kept[id(item)] = (item, dict(vars(item)))

    def keep_adjoint(self, adjoint: Any) -> None:
        self.keep(adjoint)
        for argument in adjoint.args:
            self.keep(argument)

    def restore(self) -> None:
        for item, attributes in self.kept.values():
            found = vars(item)
            for name in [name for name in found if name not in attributes]:
                del found[name]
            found.update(attributes)


class StderrFile:
    """Takes what native code writes to standard error meanwhile, as the CUDA compiler does with its messages."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = b""

    def __enter__(self) -> StderrFile:  # noqa: PYI034 - Self is not there in Python 3.8
        self.original = -1
        try:
            self.original = os.dup(2)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, 2)
            os.close(descriptor)
        except OSError:
            # Standard error is closed, or the disk is full: the exception alone has to say what failed.
            pass
        return self

    def __exit__(self, *_: object) -> None:
        if self.original >= 0:
            os.dup2(self.original, 2)
            os.close(self.original)
        try:
            with open(self.path, "rb") as file:
                self.text = file.read(65536)
            os.unlink(self.path)
        except OSError:
            # Without the compiler's words the load is an error all the same.
            pass

    def first_lines(self) -> str:
        """The first lines about errors, without the notes of the compiler about its own files."""
        lines = self.text.decode("utf-8", "replace").splitlines()
        kept = [line for line in lines if line.strip() and "precompiled header" not in line]
        return "\n".join(kept[:8])[: 4 * MAX_TEXT]


class AskedBlockDim(int):
    """The block_dim of a CPU launch as a tape keeps it, with the one that was asked for."""

    asked: int


class OfflineRecorder(Recorder):
    """The recorder of an offline run.

    Right after a module is known to be loaded for a launch on the CPU it compiles the module's state for
    `config["cuda_arch"]` at the block_dim that the launch asked for, through Warp's own code, unless a device would
    hold that state already. Whatever Warp keeps of it is put back, and nothing of Warp is held.
    """

    CUDA_BLOCK_DIM = 256  # where a launch asks for none

    def __init__(self, config: dict[str, Any]) -> None:
        self.architecture, self.suffix = config["cuda_arch"]
        self.device_name = f"sm_{self.architecture}{self.suffix}"
        self.asked_entries: dict[Any, dict[Any, int]] = {}
        super().__init__(config)

    def begin(self, how: str) -> None:
        self.scopes: dict[int, list[list[Any]]] = {}  # by thread: [block_dim asked for, hash of what is loaded]
        self.kept_states: dict[int, KeptState] = {}  # by thread, while it compiles
        self.compiling = _thread.RLock()
        super().begin(how)

    def patch_warp(self, context: Any) -> None:
        super().patch_warp(context)
        from weakref import WeakKeyDictionary

        self.resident: Any = WeakKeyDictionary()  # module -> {block_dim: (state, hash)} that a device would hold
        self.asked_by_launch: Any = WeakKeyDictionary()  # Launch -> its scope
        for step in (self.patch_asked, self.patch_residency, self.patch_adjoints):
            self.attempt(step)

    def warp_imported(self, module: Any, started: int) -> None:
        if hasattr(self, "context"):
            self.attempt(self.patch_asked_on_tape)
        super().warp_imported(module, started)

    # -- which block_dim a launch asks for -------------------------------------------------------------------------

    def asked(self, block_dim: Any) -> int:
        """The block_dim of a launch on a CUDA device, from the argument."""
        try:
            known = int(getattr(block_dim, "asked", block_dim))
        except (TypeError, ValueError):  # None; of anything else Warp will complain
            return self.CUDA_BLOCK_DIM
        return known if known > 0 else self.CUDA_BLOCK_DIM

    def scope(self) -> list[Any] | None:
        """Of the innermost launch on this thread."""
        scopes = self.scopes.get(_thread.get_ident())
        return scopes[-1] if scopes else None

    def in_scope(self, scope: list[Any], original: Any, args: Any, keywords: Any) -> Any:
        scopes = self.scopes.setdefault(_thread.get_ident(), [])
        scopes.append(scope)
        try:
            return original(*args, **keywords)
        finally:
            scopes.pop()
            # From Warp 1.17 on the frames of an error are cleared of kernels, but not those that still run.
            del args, keywords

    def patch_asked(self) -> None:
        def make_launch(original: Any) -> Any:
            code = original.__code__
            position = code.co_varnames[: code.co_argcount].index("block_dim")

            def launch(*args: Any, **keywords: Any) -> Any:
                outer = self.scope()
                block_dim = args[position] if len(args) > position else keywords.get("block_dim")
                scope = [outer[0] if outer is not None and outer[1] == "tiled" else self.asked(block_dim), None]
                try:
                    return self.in_scope(scope, original, args, keywords)
                finally:
                    del args, keywords

            return launch

        def make_launch_tiled(original: Any) -> Any:
            def launch_tiled(*args: Any, **keywords: Any) -> Any:
                # On the CPU the block_dim is 1 by the time that it reaches `launch`.
                scope = [self.asked(keywords.get("block_dim")), "tiled"]
                try:
                    return self.in_scope(scope, original, args, keywords)
                finally:
                    del args, keywords

            return launch_tiled

        def make_init(original: Any) -> Any:
            def init(launch: Any, *args: Any, **keywords: Any) -> None:
                scope = self.scope() or [self.asked(keywords.get("block_dim")), None]
                self.asked_by_launch[launch] = scope
                self.in_scope(scope, original, (launch, *args), keywords)

            return init

        def make_replay(original: Any) -> Any:
            def launch(recorded: Any, *args: Any, **keywords: Any) -> Any:
                scope = self.asked_by_launch.get(recorded) or [self.CUDA_BLOCK_DIM, None]
                return self.in_scope(scope, original, (recorded, *args), keywords)

            return launch

        self.replace(self.context, "launch", make_launch)
        self.replace(self.context, "launch_tiled", make_launch_tiled)
        self.replace(self.context.Launch, "__init__", make_init)
        self.replace(self.context.Launch, "launch", make_replay)

    def patch_asked_on_tape(self) -> None:
        """A tape keeps the block_dim of a launch for its adjoint; on the CPU that is 1."""

        def make(original: Any) -> Any:
            def record_launch(tape: Any, *args: Any, **keywords: Any) -> Any:
                result = original(tape, *args, **keywords)
                try:
                    scope = self.scope()
                    recorded = tape.launches[-1]
                    if scope is not None and isinstance(recorded, list):
                        recorded[6] = AskedBlockDim(recorded[6])
                        recorded[6].asked = scope[0]
                except Exception as error:
                    self.note_error("a launch on a tape", error)
                return result

            return record_launch

        self.replace(sys.modules["warp"].Tape, "record_launch", make)
        resolved = vars(self.context).get("_ResolvedBlockDim")
        if resolved is not None:  # a tape of Warp 1.19 passes its block_dim on in this class of its own

            def new(cls: Any, value: Any) -> Any:
                result = int.__new__(cls, value)
                if hasattr(value, "asked"):
                    result.asked = value.asked
                return result

            resolved.__new__ = new

    # -- launches: what a CUDA device would run ----------------------------------------------------------------------

    def make_invoke(self, original: Any) -> Any:
        def invoke(kernel: Any, hooks: Any, params: Any, adjoint: Any) -> Any:
            self.note_launch(hooks, params, adjoint)
            return original(kernel, hooks, params, adjoint)

        return invoke

    def known_launches(self, hooks: Any, adjoint: Any) -> tuple[dict[Any, int], dict[str, Any]]:
        """As on a device, where launches that ask for other block_dims run other binaries."""
        block_dim, digest = self.scope() or (self.CUDA_BLOCK_DIM, None)
        known = self.asked_entries.setdefault((hooks, bool(adjoint), block_dim, digest), {})
        return known, {"offline": [digest or "", self.device_name, block_dim]}

    # -- what a CUDA device would hold -------------------------------------------------------------------------------

    def patch_residency(self) -> None:
        def make_load(original: Any) -> Any:
            def load(module: Any, device: Any, block_dim: Any = None, *args: Any, **keywords: Any) -> Any:
                executable = original(module, device, block_dim, *args, **keywords)
                try:
                    ahead = keywords.get("binary_path") or (args and args[0])
                    if executable is not None and str(executable.device) == "cpu" and not ahead:
                        self.loaded(module, executable.module_hash, block_dim)
                except Exception as error:
                    self.note_error("an offline load", error)
                return executable

            return load

        def make_unload(original: Any) -> Any:
            def unload(module: Any, *args: Any, **keywords: Any) -> Any:
                self.resident.pop(module, None)
                return original(module, *args, **keywords)

            return unload

        self.replace(self.context.Module, "load", make_load)
        self.replace(self.context.Module, "unload", make_unload)

    def patch_adjoints(self) -> None:
        """Adjoints are built anew for each compilation: keep what the one for the CPU left in them."""

        def make(original: Any) -> Any:
            def build(adjoint: Any, *args: Any, **keywords: Any) -> Any:
                kept = self.kept_states.get(_thread.get_ident())
                if kept is not None:
                    kept.keep_adjoint(adjoint)
                return original(adjoint, *args, **keywords)

            return build

        self.replace(self.codegen.Adjoint, "build", make)

    def loaded(self, module: Any, state: bytes, block_dim: Any) -> None:
        """A module is resident on the CPU in a state: see that it is on the device, at the block_dim asked for."""
        scope = self.scope()
        held = self.resident.setdefault(module, {})
        if scope is not None:
            wanted = [scope[0]]
        elif block_dim not in (None, 1):
            wanted = [int(block_dim)]
        elif (preloaded := self.preload_block_dim()) is not None:
            wanted = [self.asked(preloaded)]
        else:  # a preload takes the variants that are there, else the module's own block_dim
            own = module.options["block_dim"]
            wanted = list(held) or [self.CUDA_BLOCK_DIM if own == 1 else own]
        for dim in wanted:
            resident = held.get(dim)
            if resident is None or (resident[0] != state and not module.options["strip_hash"]):
                with self.compiling:
                    held[dim] = (state, None)
                    held[dim] = (state, self.compile_for(module, dim))
            if scope is not None:
                scope[1] = held[dim][1]

    def preload_block_dim(self) -> Any:
        """What a force_load asks for; from Warp 1.18 on it loads at 1 on the CPU whatever that is."""
        frame = sys._getframe(1)
        preload = self.preload_frame(frame, self.site(frame))
        return None if preload is None else preload.f_locals.get("block_dim")

    def compile_for(self, module: Any, block_dim: int) -> str | None:
        """Compile the module as it is now; returns the hash that Warp gives it at this block_dim."""
        from gc import disable, enable, isenabled

        collecting = isenabled()
        # A collection in between would free kernels of the program earlier than without us.
        disable()
        kept = KeptState()
        thread = _thread.get_ident()
        attributes = vars(module)
        names = ("options", "hashers", "resolved_options", "failed_builds", "_tid_extent_limits")
        originals = {name: attributes[name] for name in names if name in attributes}
        codegen_options = vars(self.codegen).get("options")
        suffix = vars(self.warp_config).get("cuda_arch_suffix")
        lock = vars(self.codegen).get("_codegen_lock") or _thread.allocate_lock()
        try:
            with lock:
                for name, original in originals.items():
                    attributes[name] = original.copy()
                module.options["block_dim"] = block_dim
                if self.suffix:
                    vars(self.warp_config)["cuda_arch_suffix"] = self.suffix
                for kernel in list(module._get_live_kernels()):
                    for item in (kernel, *kernel.overloads.values()):
                        kept.keep(item)
                        kept.keep_adjoint(item.adj)
                kernel = item = None
                self.kept_states[thread] = kept
                return self.timed_compilation(module, block_dim)
        finally:
            self.kept_states.pop(thread, None)
            kept.restore()
            attributes.update(originals)
            vars(self.warp_config)["cuda_arch_suffix"] = suffix
            vars(self.codegen)["options"] = codegen_options
            if collecting:
                enable()

    def timed_compilation(self, module: Any, block_dim: int) -> str | None:
        """A load of kind `offline`: what `Module.load` does on a CUDA device up to the binary."""
        config = self.warp_config
        has_options = "options" in module._compile.__wrapped__.__code__.co_varnames
        digest = load = error_text = None
        compiled = True
        try:
            digest = module.get_module_hash(block_dim).hex()
            load = self.begin_load("offline", module, digest, self.device_name, block_dim, sys._getframe())
            keywords = {"options": module.resolved_options[block_dim]} if has_options else {}
            output = module.options.get("cuda_output") or vars(config).get("cuda_output")
            folder = None
            if module.options["strip_hash"]:  # the directory has no hash in its name: keep the CPU's own apart
                folder = os.path.join(
                    config.kernel_cache_dir, f"{self.device_name}-{block_dim}", module.get_module_identifier(block_dim)
                )
                os.makedirs(os.path.dirname(folder), exist_ok=True)
            with StderrFile(f"{self.base}.stderr") as stderr:
                try:
                    compiled = module._compile(
                        None, folder, None, self.architecture, output == "ptx" or None, **keywords
                    )
                except Exception as error:
                    self.forget_frames(error)
                    error_text = text_of(error)
            if error_text is not None:
                load.error_text = "\n".join(filter(None, (stderr.first_lines(), error_text)))
            elif stderr.text:
                os.write(2, stderr.text)
        except Exception as error:
            self.forget_frames(error)
            self.note_error("an offline compilation", error)
        if load is not None:
            status = "error" if error_text is not None else "compiled" if compiled else "cached"
            self.end_load(load, status, None)
        return digest

    @staticmethod
    def forget_frames(error: BaseException) -> None:
        """The frames of an error hold kernels."""
        traceback = error.__traceback__
        while traceback is not None:
            try:  # noqa: SIM105 - the recorder imports nothing that the program does not need
                traceback.tb_frame.clear()
            except RuntimeError:
                pass  # it still runs
            traceback = traceback.tb_next
        error.__traceback__ = error.__context__ = error.__cause__ = None


class Finder:
    """Stands first on sys.meta_path until Warp has come, then leaves.

    The modules that the recorder imported before the program are hidden from it until it imports them: it then gets the
    same ones, hooks included.
    """

    def __init__(self, recorder: Recorder, known: set[str]) -> None:
        self.recorder = recorder
        self.hidden = {name: sys.modules.pop(name) for name in set(sys.modules) - known}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the other finders have for Warp or its context module, with a loader that is followed."""
        if name in self.hidden:
            loader: Any = Handover(self.hidden.pop(name))
            return type(sys.__spec__)(name, loader)
        if name not in ("warp", "warp._src.context", "warp.context"):
            return None
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    self.follow(name, spec.loader)
                return spec
        return None

    def leave(self) -> None:
        """Warp has come, with most of what was hidden."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in list(self.hidden):
            sys.modules.setdefault(name, self.hidden.pop(name))

    def follow(self, name: str, loader: Any) -> None:
        """Let the recorder act right after the loader has executed the module."""
        original = loader.exec_module
        recorder = self.recorder

        def exec_module(module: Any) -> None:
            start = time.monotonic_ns()
            recorder.warp_was_followed = True
            del loader.exec_module
            original(module)
            try:
                if name == "warp":
                    self.leave()
                    recorder.warp_imported(module, start)
                elif "ModuleExec" in vars(module) and not hasattr(recorder, "context"):
                    # Warp 1.10 to 1.12 have a warp.context beside the real one.
                    recorder.patch_warp(module)
            except Exception as error:
                recorder.note_error("import of " + name, error)

        loader.exec_module = exec_module


def bootstrap(config: dict[str, Any], known: set[str]) -> None:
    """Begin recording in this process; called by the injected sitecustomize. `known` names the modules before it."""
    recorder = OfflineRecorder(config) if "cuda_arch" in config else Recorder(config)
    recorder.watch_processes()
    sys.meta_path.insert(0, Finder(recorder, known))


# </recorder>

# ---------------------------------------------------------------------------------------------------------------------
# Reading records: from the recorder's files to processes
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdjointText:
    """A function body as Warp hashed it: where it is, its source, and what it refers to, all as text.

    `args` are (name, type, type code), `types` (name, type code) of those constructed in the body; `functions` are the
    digests of those it calls, by key.
    """

    file: str
    line: int
    name: str
    source: str
    args: tuple[tuple[str, str, str], ...]
    constants: dict[str, str]
    types: tuple[tuple[str, str], ...]
    statics: tuple[tuple[str, str], ...]
    functions: dict[str, str]


@dataclass(frozen=True)
class KernelText:
    """A kernel as Warp hashed it; `adjoint` names its body in the catalog."""

    key: str
    module: str
    site: Site
    adjoint: str | None
    options: dict[str, str]
    overload: bool


@dataclass(frozen=True)
class FunctionText:
    """A Warp function as it was hashed: the bodies and native snippets of all its overloads."""

    adjoints: tuple[str, ...]
    snippets: tuple[str, ...]


@dataclass(frozen=True)
class StateText:
    """What went into one module hash: resolved options, digests of the live kernels, keys of the generic ones (with or
    without instances), digests of functions by key."""

    options: dict[str, str]
    kernels: tuple[str, ...]
    generics: tuple[str, ...]
    functions: dict[str, str]


class Catalog:
    """The texts of a run by digest. Digests are those of Warp's hasher, so processes can share one catalog."""

    def __init__(self) -> None:
        self.adjoints: dict[str, AdjointText] = {}
        self.kernels: dict[str, KernelText] = {}
        self.kernels_of_modules: dict[tuple[str, str], KernelText] = {}
        self.functions: dict[str, FunctionText] = {}
        self.states: dict[str, StateText] = {}
        self._bodies: dict[str, str] = {}

    def add(self, kind: str, digest: str, line: dict[str, Any]) -> None:
        """Keep the text of one record line of kind adjoint, kernel, function or state."""
        values = {name: frozen(value) for name, value in line.items()}
        if kind == "adjoint":
            self.adjoints[digest] = AdjointText(**values)
        elif kind == "kernel":
            kernel = KernelText(**{**values, "site": Site(*values["site"])})
            self.kernels[digest] = self.kernels_of_modules[kernel.module, digest] = kernel
        elif kind == "function":
            self.functions[digest] = FunctionText(**values)
        else:
            self.states[digest] = StateText(**values)

    def kernel(self, digest: str, module: str) -> KernelText | None:
        """A kernel of a module; one of equal content where that module's own was not seen."""
        return self.kernels_of_modules.get((module, digest)) or self.kernels.get(digest)

    def merged(self, other: Catalog) -> Catalog:
        """The texts of both."""
        both = Catalog()
        for catalog in (self, other):
            both.adjoints.update(catalog.adjoints)
            both.kernels.update(catalog.kernels)
            both.kernels_of_modules.update(catalog.kernels_of_modules)
            both.functions.update(catalog.functions)
            both.states.update(catalog.states)
        return both

    def content(self, kernel: str | None) -> str:
        """Digest of what a kernel computes: its body without decorator, name and annotations, the concrete types of
        its arguments, and the content of the functions, constants and static values it uses. Empty if unknown."""
        text = self.kernels.get(kernel or "")
        if text is None or text.adjoint not in self.adjoints:
            return ""
        return self._body(text.adjoint)

    def _body(self, digest: str) -> str:
        text = self.adjoints.get(digest)
        if text is None:
            return digest
        if digest not in self._bodies:
            facts = [
                normal_source(text.source),
                [[label, code] for label, _, code in text.args],
                sorted(text.constants.items()),
                [[key, stable_text(value)] for key, value in text.statics],
                sorted(text.types),
                [self._function(function) for function in text.functions.values()],
            ]
            self._bodies[digest] = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        return self._bodies[digest]

    def _function(self, digest: str) -> list[str]:
        text = self.functions.get(digest)
        return [digest] if text is None else [*text.snippets, *(self._body(body) for body in text.adjoints)]


def frozen(value: Any) -> Any:
    """Parsed JSON with tuples for its lists."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def stable_text(text: str) -> str:
    """A repr without memory addresses."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def normal_source(source: str) -> str:
    """A function's source without its name, decorators, annotations, docstring, comments and layout."""
    try:
        (node,) = ast.parse(textwrap.dedent(source)).body
        return definition_text(node)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A snippet of native code, a syntax newer than this Python's, or an expression too deep for it.
        return re.sub(r"^\s*(@.*\n\s*)*def\s+\w+", "def", source)


def definition_text(node: ast.stmt) -> str:
    """The text of a statement; of a definition without its name, decorators, annotations and docstring."""
    if not isinstance(node, ast.FunctionDef):
        return tree_text(node)
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    body = node.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:]
    return tree_text([node.args, *body])


def tree_text(node: Any) -> str:
    """A syntax tree as text that is the same in every Python: fields that are empty come and go between releases."""
    if isinstance(node, ast.AST):
        fields = [f"{name}={tree_text(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(tree_text, node))}]"
    return repr(node)


# Causes: what differs between a build and the closest earlier identity of its module in the same process.


@dataclass(frozen=True)
class Loaded:
    """An earlier load of a module in the process: its hash, and what went into it where that was seen."""

    load: Load
    state: StateText | None


class LoadTables:
    """The loads of a process with what explains them, and the tables that they refer to."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.option_sets: dict[tuple[tuple[str, str], ...], int] = {}
        self.built_kernels: dict[BuiltKernel, int] = {}
        self._kernels_of: dict[tuple[str, str | None], tuple[int, ...]] = {}

    def explain(
        self, loads: Sequence[Load], events: Sequence[CacheEvent], option_sites: dict[int, Site | None]
    ) -> tuple[Load, ...]:
        """`loads` in order of their start, builds with their cause. `option_sites` say by position in `loads` where
        the program last set an option of the module."""
        # The last load of each identity, in order; what is compiled offline is compared with its like.
        earlier_by_kind: dict[bool, dict[object, Loaded]] = {True: {}, False: {}}
        explained = list(loads)
        for position in sorted(range(len(loads)), key=lambda index: loads[index].start_ms or 0.0):
            load = loads[position]
            earlier = earlier_by_kind[load.kind is LoadKind.OFFLINE]
            state = self.catalog.states.get(load.hash or "")
            if state is not None:
                load = dataclasses.replace(load, option_set=self._options(state), kernels=self._kernels(load, state))
            if load.status is Status.COMPILED:
                cause = cause_of(load, state, list(earlier.values()), self.catalog, events)
                load = dataclasses.replace(load, cause=with_option_site(cause, option_sites.get(position)))
            explained[position] = load
            if load.status is not Status.ERROR:
                identity = (load.name, load.hash, load.device, load.block_dim)
                earlier.pop(identity, None)
                earlier[identity] = Loaded(load, state)
        return tuple(explained)

    def _options(self, state: StateText) -> int:
        return self.option_sets.setdefault(tuple(sorted(state.options.items())), len(self.option_sets))

    def _kernels(self, load: Load, state: StateText) -> tuple[int, ...]:
        if (load.name, load.hash) in self._kernels_of:
            return self._kernels_of[load.name, load.hash]
        found = []
        for digest in state.kernels:
            kernel = self.catalog.kernel(digest, load.name)
            if kernel is not None:
                options = {**state.options, **kernel.options}
                built = BuiltKernel(
                    key=kernel.key,
                    site=kernel.site,
                    unique=len(state.kernels) == 1 and bool(re.search(r"_[0-9a-f]{8}$", load.name)),
                    overload=kernel.overload,
                    backward=options.get("enable_backward") == "True",
                    unrolled=unrolled_copies(self.catalog.adjoints.get(kernel.adjoint or ""), options),
                )
                found.append(self.built_kernels.setdefault(built, len(self.built_kernels)))
        self._kernels_of[load.name, load.hash] = tuple(found)
        return tuple(found)


def with_option_site(cause: Cause, site: Site | None) -> Cause:
    """The cause, with the place where the program set the option."""
    changes = tuple(
        dataclasses.replace(change, site=site)
        if change.reason in (CauseReason.OPTION_CHANGED, CauseReason.OPTION_RESTATED)
        else change
        for change in cause.changes
    )
    return dataclasses.replace(cause, changes=changes)


def unrolled_copies(text: AdjointText | None, options: dict[str, str]) -> int:
    """The largest number of copies of a loop body that unrolling constant ranges makes, nested loops multiplied."""
    if text is None:
        return 1
    try:
        limit = int(options.get("max_unroll", "0"))
        tree = ast.parse(textwrap.dedent(text.source))
    except (SyntaxError, ValueError):
        return 1
    return _copies(tree, limit, text.constants)


def _copies(node: ast.AST, limit: int, constants: dict[str, str]) -> int:
    inner = max((_copies(child, limit, constants) for child in ast.iter_child_nodes(node)), default=1)
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return inner
    if not isinstance(node.iter.func, ast.Name) or node.iter.func.id != "range":
        return inner
    try:
        bounds = [ast.literal_eval(constants.get(ast.unparse(word), ast.unparse(word))) for word in node.iter.args]
        count = len(range(*bounds))
    except (ValueError, TypeError, SyntaxError):
        return inner
    return inner * count if 1 < count <= limit else inner


def cause_of(
    load: Load, state: StateText | None, earlier: Sequence[Loaded], catalog: Catalog, events: Sequence[CacheEvent]
) -> Cause:
    """Why a module was built, from the loads of the process before it."""
    of_module = [item for item in earlier if item.load.name == load.name]
    if not of_module:
        return Cause(CauseReason.FIRST_BUILD, (), None)
    on_device = [item for item in of_module if item.load.device == load.device]
    if not on_device:
        return Cause(CauseReason.NEW_DEVICE, (), None)
    alike = [item for item in on_device if item.load.block_dim == load.block_dim]
    if not alike:
        return Cause(CauseReason.NEW_BLOCK_DIM, (), None)
    same = [item for item in alike if item.load.hash == load.hash]
    if same:
        return Cause(CauseReason.SAME_HASH_AGAIN, cache_changes(same[-1].load, load, events), load.hash)
    known = [(item, item.state) for item in alike if item.state is not None]
    if state is None or not known:
        return Cause(CauseReason.NOTHING_OBVIOUS, (), alike[-1].load.hash)
    compared = [(state_changes(before, state, catalog, load), item.load.hash) for item, before in reversed(known)]
    changes, digest = min(compared, key=lambda pair: len(pair[0]))
    if not changes:
        return Cause(CauseReason.NOTHING_OBVIOUS, (), digest)
    reason = min((change.reason for change in changes), key=CAUSE_ORDER.index)
    return Cause(reason, changes, digest)


# Of several differences, the first of these is called the reason: what a program does before what follows from it.
CAUSE_ORDER = (
    CauseReason.KERNEL_ADDED,
    CauseReason.KERNEL_REDEFINED,
    CauseReason.GENERIC_INSTANCE_ADDED,
    CauseReason.FUNCTION_CHANGED,
    CauseReason.STRUCT_CHANGED,
    CauseReason.OPTION_CHANGED,
    CauseReason.OPTION_RESTATED,
    CauseReason.KERNEL_REMOVED,
    CauseReason.SAME_HASH_AGAIN,
)

# What Warp takes where an option is None; stating it moves the hash and nothing else. `optimization_level` apart.
NONE_MEANS = {
    "mode": "'release'",
    "enable_mathdx_gemm": "True",
    "enable_mathdx_solver": "True",
    "enable_mathdx_fft": "True",
    "default_grid_stride": "True",
}


def meaning_of_none(name: str, options: dict[str, str], device: str) -> str | None:
    """The value, as text, that Warp takes where a module option is None; None where it has no such default."""
    if name == "optimization_level":
        # Warp optimises CPU code less from 1.13 on, which also brought `cpu_compiler_flags`.
        return "2" if device == "cpu" and "cpu_compiler_flags" in options else "3"
    return NONE_MEANS.get(name)


def cache_changes(before: Load, after: Load, events: Sequence[CacheEvent]) -> tuple[Change, ...]:
    """What the program did to its cache between two loads of the same hash."""
    since, until = before.end_ms or 0.0, after.start_ms or 0.0
    found = [event for event in events if since <= event.at_ms <= until]
    found += [event for event in events if event.kind is CacheEventKind.CACHING_OFF and event.at_ms < since]
    return tuple(Change(CauseReason.SAME_HASH_AGAIN, event.kind.value, None, event.path, event.site) for event in found)


def state_changes(before: StateText, after: StateText, catalog: Catalog, load: Load) -> tuple[Change, ...]:
    """Every difference between two states of a module, of which `load` loaded the later one."""
    changes = kernel_changes(before, after, catalog, load.name)
    for name in sorted({*before.options, *after.options} - {"block_dim"}):
        old, new = before.options.get(name), after.options.get(name)
        if old != new:
            restated = {old, new} == {"None", meaning_of_none(name, after.options, load.device)}
            reason = CauseReason.OPTION_RESTATED if restated else CauseReason.OPTION_CHANGED
            changes.append(Change(reason, name, old, new, None))
    return tuple(changes)


def kernel_changes(before: StateText, after: StateText, catalog: Catalog, module: str) -> list[Change]:
    """Differences between the live kernels of two states: pairs under one key and argument types are compared."""
    old_kernels, new_kernels = set(before.kernels), set(after.kernels)
    gone = [digest for digest in before.kernels if digest not in new_kernels]
    new = [digest for digest in after.kernels if digest not in old_kernels]
    changes: dict[Change, None] = {}
    for digest in new:
        kernel = catalog.kernel(digest, module)
        if kernel is None:
            continue
        site = kernel.site
        twin = closest_kernel(kernel, [*gone, *before.kernels], catalog)
        if twin is None:
            if kernel.overload and kernel.key in before.generics:
                types = ", ".join(argument_types(kernel, catalog))
                changes[Change(CauseReason.GENERIC_INSTANCE_ADDED, kernel.key, None, types, site)] = None
            else:
                changes[Change(CauseReason.KERNEL_ADDED, kernel.key, None, None, site)] = None
            continue
        if twin in gone:
            gone.remove(twin)
        for change in body_changes(kernel, catalog.kernels[twin], catalog):
            changes[change] = None
    for digest in gone:
        kernel = catalog.kernel(digest, module)
        if kernel is not None:
            changes[Change(CauseReason.KERNEL_REMOVED, kernel.key, None, None, kernel.site)] = None
    return list(changes)


def closest_kernel(kernel: KernelText, candidates: Sequence[str], catalog: Catalog) -> str | None:
    """The earlier kernel of the same key that a new one stands for; for generic instances of the same types too."""
    for other_digest in candidates:
        other = catalog.kernels.get(other_digest)
        if other is None or other.key != kernel.key:
            continue
        if not kernel.overload or argument_types(kernel, catalog) == argument_types(other, catalog):
            return other_digest
    return None


def argument_types(kernel: KernelText, catalog: Catalog) -> tuple[str, ...]:
    """The concrete types of a kernel's arguments, in order."""
    text = catalog.adjoints.get(kernel.adjoint or "")
    return () if text is None else tuple(kind for _, kind, _ in text.args)


def body_changes(kernel: KernelText, earlier: KernelText, catalog: Catalog) -> list[Change]:
    """What differs between two kernels of one key: called functions, structs, else the kernel itself."""
    new, old = catalog.adjoints.get(kernel.adjoint or ""), catalog.adjoints.get(earlier.adjoint or "")
    site = kernel.site
    if new is None or old is None:
        return [Change(CauseReason.KERNEL_REDEFINED, kernel.key, None, None, site)]
    changes = function_changes(old.functions, new.functions, catalog)
    known = used_types(old)
    changes.extend(
        Change(CauseReason.STRUCT_CHANGED, name, known[name], code, site)
        for name, code in used_types(new).items()
        if known.get(name, code) != code
    )
    before, after = named_values(old), named_values(new)
    changes.extend(
        Change(CauseReason.KERNEL_REDEFINED, f"{kernel.key}: {name}", before.get(name), after.get(name), site)
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )
    if kernel.options != earlier.options:
        changes.append(
            Change(CauseReason.KERNEL_REDEFINED, kernel.key, str(earlier.options), str(kernel.options), site)
        )
    if not changes or normal_source(new.source) != normal_source(old.source):
        changes.append(Change(CauseReason.KERNEL_REDEFINED, kernel.key, None, None, site))
    return changes


def function_changes(before: dict[str, str], after: dict[str, str], catalog: Catalog) -> list[Change]:
    """Functions by key whose digest moved, called directly or not. A digest holds those of the functions that it calls:
    the ones whose own body changed are told, unless that can be said of none."""
    moved = [key for key in sorted(before.keys() & after.keys()) if before[key] != after[key]]
    changes = []
    for key in moved:
        old, new = function_bodies(before[key], catalog), function_bodies(after[key], catalog)
        site = function_site(after[key], catalog)
        values = [
            Change(CauseReason.FUNCTION_CHANGED, f"{key}: {name}", was.get(name), now.get(name), site)
            for was, now in zip(map(named_values, old), map(named_values, new), strict=False)
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        ]
        if [(normal_source(text.source), used_types(text)) for text in old] != [
            (normal_source(text.source), used_types(text)) for text in new
        ]:
            values.append(Change(CauseReason.FUNCTION_CHANGED, key, None, None, site))
        changes += values
    return changes or [
        Change(CauseReason.FUNCTION_CHANGED, key, None, None, function_site(after[key], catalog)) for key in moved
    ]


def function_bodies(digest: str, catalog: Catalog) -> list[AdjointText]:
    """The bodies of a function, one an overload, as far as they were seen."""
    function = catalog.functions.get(digest)
    bodies = function.adjoints if function is not None else ()
    return [catalog.adjoints[body] for body in bodies if body in catalog.adjoints]


def used_types(text: AdjointText) -> dict[str, str]:
    """Codes of the types of a body's arguments, and of those it constructs, by name."""
    return {**dict(text.types), **{kind: code for _, kind, code in text.args}}


def named_values(text: AdjointText) -> dict[str, str]:
    """Constants and static values that a body uses, by the name or expression that the source has for them."""
    values = {name: stable_text(value) for name, value in text.constants.items()}
    values.update({f"wp.static({key})": stable_text(value) for key, value in text.statics})
    return values


def function_site(digest: str, catalog: Catalog) -> Site | None:
    """Where a function is defined."""
    function = catalog.functions.get(digest)
    text = catalog.adjoints.get(function.adjoints[0]) if function is not None and function.adjoints else None
    return None if text is None else Site(text.file, text.line, text.name)


MAX_RECORD_LINE_BYTES = 1 << 26
MAX_RECORD_BYTES = 1 << 30
MAX_PACKED_LAUNCHES = 1 << 24  # of one flushed piece, or one graph

# The keys of each kind of line that the recorder writes, with the types of their values; [X] stands for a list of
# objects, a tuple or a dataclass for a list of just these items, alternatives stand in a tuple. The measured program
# could write into the records too, and a kill or a full disk tears them: a line that is not like this is not read, so
# that whatever reads on needs no doubts.
_LAUNCH: dict[str, Any] = {"number": int, "kernel": int | None, "dim": list[int] | None, "adjoint": bool}
RECORD_LINES: dict[str, tuple[dict[str, Any], ...] | dict[str, Any]] = {
    "start": {
        "at": int,
        "pid": int,
        "parent": str | None,
        "how": str,
        "argv": list[str],
        "executable": str,
        "python": str,
    },
    "end": {"at": int, "how": ProcessEnd, "code": int | None, "total_hash_ns": int, "total_hashings": int},
    "revived": {"at": int},
    "birth": {"at": int, "pid": int, "argv": list[str], "injected": bool},
    "error": {"text": str},
    "set": {"name": str, "before": str, "after": str},
    "unset": {"text": str},
    "tape": {},
    "warp": {"start": int, "end": int, "version": str, "missing": list[str]},
    "init": {
        "start": int,
        "end": int,
        "devices": list[tuple[str, str, int | None]],
        "toolkit": str | None,
        "driver": str | None,
        "cuda_archs": list[int],
    },
    "config": {"name": str, "before": str, "after": str, "at": int, "site": Site | None},
    "cache": {"kind": CacheEventKind, "at": int, "path": str | None, "site": Site | None},
    "made": {"paths": list[str]},
    "load": {
        "name": str,
        "hash": str | None,
        "device": str,
        "block_dim": int | None,
        "status": Status,
        "kind": LoadKind,
        "thread": int,
        "start": int,
        "end": int,
        "hash_ns": int,
        "total_hash_ns": int,
        "total_hashings": int,
        "phases": {"codegen": int, "lto": int, "native": int, "install": int, "load": int},
        "header": int | None,
        "source_bytes": int,
        "lto": [{"symbol": str, "bytes": int, "ns": int, "adjoint": bool}],
        "site": Site | None,
        "options_site": Site | None,
        "workers": int | None,
        "in_capture": bool,
        "unreached": list[tuple[str, str, str]],
        "error": str | None,
    },
    "hooks": {
        "number": int,
        "key": str,
        "module": str,
        "hash": str,
        "device": str,
        "block_dim": int,
        "digest": str | None,
        "args": list[str],
        "lost": bool,
    },
    "launch": (
        _LAUNCH,
        {**_LAUNCH, "offline": tuple[str, str, int]},
        {"number": int, "graph": str, "unknown": bool},
        {"number": int, "special": str},
    ),
    "ids": {"thread": int, "sequence": int, "z": str},
    "adjoint": {"digest": str, **typing.get_type_hints(AdjointText)},
    "kernel": {"digest": str, **typing.get_type_hints(KernelText)},
    "function": {"digest": str, **typing.get_type_hints(FunctionText)},
    "state": {"digest": str, **typing.get_type_hints(StateText)},
}


def fits(kind: Any, value: Any) -> bool:
    """Whether parsed JSON has the type that RECORD_LINES names."""
    if isinstance(kind, dict):
        return (
            isinstance(value, dict) and kind.keys() == value.keys() and all(fits(kind[key], value[key]) for key in kind)
        )
    if isinstance(kind, tuple):
        return any(fits(option, value) for option in kind)
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(kind[0], item) for item in value)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return fits(inner, value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(inner[1], item) for item in value.values())
    if origin is list or inner[1:] == (...,):
        return fits([inner[0]], value)
    if dataclasses.is_dataclass(kind):
        inner = tuple(typing.get_type_hints(kind).values())
    if inner:
        return isinstance(value, list) and len(value) == len(inner) and all(map(fits, inner, value))
    if issubclass(kind, enum.Enum):
        return value in [member.value for member in kind]
    return type(value) is kind and (kind is not int or abs(value) < 1 << 63)


def record_line(raw: bytes) -> tuple[str, dict[str, Any]]:
    """The kind and the values of one line of a record. Raises ValueError for what the recorder does not write."""
    try:
        line = json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    kind = line.pop("t", None) if isinstance(line, dict) else None
    if not isinstance(kind, str) or not fits(RECORD_LINES.get(kind, ()), line):
        raise ValueError("not a line of the recorder")
    return kind, line


def open_record(path: str) -> IO[bytes]:
    """Open a file in a directory that the program can write to: no link is followed and no pipe waited for. Raises
    OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


@dataclass(eq=False)
class RecordFile:
    """The lines of one process's record file, sorted by kind; `truncated` if a line could not be read. `parent` is the
    record of the process that started it, once the files are `linked`."""

    name: str
    lines: dict[str, list[dict[str, Any]]]
    truncated: bool
    parent: RecordFile | None = None

    def of(self, kind: str) -> list[dict[str, Any]]:
        return self.lines.get(kind, [])

    @property
    def start(self) -> dict[str, Any]:
        return self.of("start")[0]

    @property
    def birth(self) -> dict[str, Any] | None:
        """The line on its birth in its parent's record: the last one of its pid before it started, since a pid can come
        again. None for a fork by os.fork, and for the first process."""
        start = self.start
        lines = self.parent.of("birth") if self.parent is not None else []
        births = [line for line in lines if line["pid"] == start["pid"] and line["at"] <= start["at"]]
        return max(births, key=operator.itemgetter("at"), default=None)

    @property
    def lineage(self) -> list[RecordFile]:
        """The processes that it was forked from, the first one first, then itself: a fork knows what its parent did."""
        found = [self]
        while found[0].start["how"] == "fork" and found[0].parent is not None:
            found.insert(0, found[0].parent)
        return found


def read_record_file(path: str, catalog: Catalog, private: Sequence[str]) -> RecordFile | None:
    """Read one record file; texts go to the catalog, paths in the private directories become relative to them.

    None if not even the start line can be read.
    """
    prefixes = [json.dumps(folder + os.sep)[1:-1].encode() for folder in private]
    lines: dict[str, list[dict[str, Any]]] = {}
    truncated = False
    try:
        with open_record(path) as file:
            while raw := file.readline(MAX_RECORD_LINE_BYTES):
                if file.tell() > MAX_RECORD_BYTES:
                    truncated = True
                    break
                try:
                    kind, line = record_line(
                        functools.reduce(lambda text, prefix: text.replace(prefix, b""), prefixes, raw)
                    )
                except ValueError:
                    truncated = True
                    continue
                if kind in ("adjoint", "kernel", "function", "state"):
                    catalog.add(kind, line.pop("digest"), line)
                else:
                    lines.setdefault(kind, []).append(line)
    except OSError:
        return None
    if "start" not in lines:
        return None
    return RecordFile(os.path.basename(path)[: -len(".rec")], lines, truncated)


def linked(files: list[RecordFile]) -> list[RecordFile]:
    """The files with their parents, without those of forks that were born to run another program: with a `preexec_fn`,
    subprocess runs Python's fork hooks between the two. What such a fork became is a child of its parent."""
    by_name = {file.name: file for file in files}
    for file in files:
        parent = by_name.get(file.start["parent"])
        # All parents started before their children: a damaged record must not close a circle.
        file.parent = parent if parent is not None and parent.start["at"] < file.start["at"] else None
    momentary = {
        file
        for file in files
        if file.start["how"] == "fork"
        and file.birth is not None
        and not any(file.of(kind) for kind in ("end", "load", "ids", "birth"))
    }
    for file in files:
        while file.parent is not None and file.parent in momentary:
            file.parent = file.parent.parent
    return [file for file in files if file not in momentary]


def process_paths(files: list[RecordFile]) -> dict[str, str]:
    """Name every process by its place in the tree, pids ignored: parent's path and ordinal of birth."""
    children: dict[str, list[tuple[int, str]]] = {}
    for file in files:
        born = (file.birth or file.start)["at"]
        children.setdefault("" if file.parent is None else file.parent.name, []).append((born, file.name))
    paths: dict[str, str] = {}
    open_names = [("", "")]
    while open_names:
        name, prefix = open_names.pop()
        for ordinal, (_, child) in enumerate(sorted(children.get(name, []))):
            paths[child] = f"{prefix}{ordinal}"
            open_names.append((child, f"{paths[child]}."))
    return paths


def unpack(packed: str) -> array[int]:
    """The inverse of the recorder's `pack`. Raises ValueError for what that did not make."""
    decoder = zlib.decompressobj()
    try:
        data = decoder.decompress(base64.b64decode(packed, validate=True), 4 * MAX_PACKED_LAUNCHES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not decoder.eof:
        raise ValueError("cut off, or too long")
    return array("I", data)


class LaunchReader:
    """Turns the launch numbers of a process into counted entries and encoded streams.

    A forked child goes on with the numbers of its parent, whose lines it does not repeat. `budget` is what the order
    may take, in bytes. Once `read`, it is what is left of that, and `missing` says in words what is missing.
    """

    def __init__(self, folder: str, file: RecordFile, catalog: Catalog, budget: int = MAX_ENCODED_LAUNCH_BYTES) -> None:
        self.budget = budget
        self.folder = folder
        self.file = file
        self.catalog = catalog
        self.launch_lines = {line["number"]: line for source in file.lineage for line in source.of("launch")}
        self.hooks_lines = {line["number"]: line for source in file.lineage for line in source.of("hooks")}
        self.kernels: dict[LaunchedKernel, int] = {}
        self.entries: dict[tuple[int, tuple[int, ...], bool], int] = {}
        self.unseen: set[int] = set()  # numbers of graph replays with content that is not known
        self.undescribed: set[int] = set()
        self.missing: list[str] = []

    def read(self) -> Launches:
        """The launches of the process."""
        ids_by_thread = {thread: self._thread_ids(thread) for thread in self._threads()}
        totals = collections.Counter(itertools.chain.from_iterable(ids_by_thread.values()))
        meanings = {number: self._meaning(number) for number in sorted(totals)}
        if self.undescribed:
            count = sum(totals[number] for number in self.undescribed)
            self.missing.append(f"{plural(count, 'launch', 'launches')} whose kernel is not known")
        counts: collections.Counter[int] = collections.Counter()
        for number, total in totals.items():
            for index, times in collections.Counter(meanings[number]).items():
                counts[index] += times * total
        streams = self._streams(ids_by_thread, meanings)
        return Launches(
            count=sum(stream.count for stream in streams),
            graph_replays_unknown=sum(totals[number] for number in self.unseen),
            kernels=tuple(self.kernels),
            entries=tuple(LaunchEntry(*entry, counts[index]) for entry, index in self.entries.items()),
            streams=tuple(streams),
        )

    def _meaning(self, number: int) -> array[int]:
        """The indices of the launches that a number stands for: one, or those of a graph."""
        line = self.launch_lines.get(number, {"special": "unknown"})
        if line.get("special") == "graph" or line.get("unknown"):
            self.unseen.add(number)
        if "graph" not in line:
            return self._single(number, line)
        try:
            content = unpack(line["graph"])
        except ValueError:
            self.unseen.add(number)
            return array("I")
        singles = {inner: self._single(inner, self.launch_lines.get(inner, {})) for inner in set(content)}
        return array("I", itertools.chain.from_iterable(map(singles.__getitem__, content)))

    def _single(self, number: int, line: dict[str, Any]) -> array[int]:
        """The index of one launch of a kernel; none where the kernel is not known."""
        hooks = line.get("kernel") or 0
        if hooks not in self.hooks_lines:
            if line.get("special") != "graph":
                self.undescribed.add(number)
            return array("I")
        if line["dim"] is None:
            text = f"more than {MAX_DISTINCT_LAUNCHES} distinct launches: further dims are not told apart"
            if text not in self.missing:
                self.missing.append(text)
        loaded = self.hooks_lines[hooks]
        digest, device, block_dim = line.get("offline", (loaded["hash"], loaded["device"], loaded["block_dim"]))
        kernel = LaunchedKernel(
            key=loaded["key"],
            module=loaded["module"],
            hash=digest,
            device=device,
            block_dim=block_dim,
            content=self.catalog.content(loaded["digest"]),
            args=tuple(loaded["args"]),
        )
        index = self.kernels.setdefault(kernel, len(self.kernels))
        entry = (index, tuple(line["dim"] or ()), line["adjoint"])
        return array("I", [self.entries.setdefault(entry, len(self.entries))])

    def _threads(self) -> list[int]:
        found = {line["thread"] for line in self.file.of("ids")}
        for name in os.listdir(self.folder):
            buffer = re.fullmatch(rf"{re.escape(self.file.name)}\.([0-9]{{1,9}})\.ids", name)
            if buffer:
                found.add(int(buffer[1]))
        return sorted(found)

    def _thread_ids(self, thread: int) -> array[int]:
        """All numbers of a thread: the flushed pieces, then what is left in the mapped buffer."""
        flushed = 0
        pieces: dict[int, array[int]] = {}
        for line in self.file.of("ids"):
            if line["thread"] == thread:
                flushed = max(flushed, line["sequence"])
                with contextlib.suppress(ValueError):  # then it is one of the lost pieces
                    pieces[line["sequence"]] = unpack(line["z"])
        ids = array("I")
        for sequence in sorted(pieces):
            ids.extend(pieces[sequence])
        tail = array("I")
        with (
            contextlib.suppress(OSError),
            open_record(os.path.join(self.folder, f"{self.file.name}.{thread}.ids")) as file,
        ):
            data = file.read(4 * (MAIN_STREAM_IDS + 1))
            tail.frombytes(data[: len(data) // 4 * 4])
        # A buffer whose sequence number was flushed already was about to be emptied when the process died.
        if tail and tail[0] > flushed:
            flushed = tail[0] - 1
            ids.extend(itertools.takewhile(bool, tail[1:]))
        if flushed > len(pieces):
            self.missing.append(f"{plural(flushed - len(pieces), 'piece')} of the launches of thread {thread} lost")
        return ids

    def _streams(self, ids_by_thread: dict[int, array[int]], meanings: dict[int, array[int]]) -> list[LaunchStream]:
        width = 1 if len(self.entries) <= 1 << 8 else 2 if len(self.entries) <= 1 << 16 else 4
        encoded = {number: encoded_indices(indices, width) for number, indices in meanings.items()}
        # A graph stands for many launches: so many numbers at a time that a piece stays small.
        step = 1 + ENCODED_PIECE_BYTES // max([1, *map(len, encoded.values())])
        streams = []
        for thread, ids in ids_by_thread.items():
            encoder = StreamEncoder(width, self.budget)
            for start in range(0, len(ids), step):
                encoder.add(b"".join(map(encoded.__getitem__, ids[start : start + step])))
            stream = encoder.stream(thread)
            self.budget = encoder.budget
            if stream.count:
                streams.append(stream)
        return streams


def encoded_indices(indices: array[int], width: int) -> bytes:
    """Indices of entries as little-endian integers of `width` bytes; Warp runs on no other machines."""
    return array({1: "B", 2: "H", 4: "I"}[width], indices).tobytes()


class StreamEncoder:
    """Encodes the launches of one thread as they come; memory does not grow with them. `budget` is in bytes."""

    def __init__(self, width: int, budget: int) -> None:
        self.width = width
        self.budget = budget
        self.count = 0
        self.first = bytearray()
        self.packed = bytearray()
        self.digest = hashlib.sha256()
        self.compressor = lzma.LZMACompressor(preset=1)

    def add(self, data: bytes) -> None:
        """Add encoded indices."""
        self.count += len(data) // self.width
        self.first += data[: max(0, FIRST_LAUNCHES_KEPT * self.width - len(self.first))]
        self.digest.update(widened(data, self.width))
        if len(self.packed) <= self.budget or self.count <= FIRST_LAUNCHES_KEPT:
            self.packed += self.compressor.compress(data)

    def stream(self, thread: int) -> LaunchStream:
        """Everything that was added; the budget shrinks by what it takes."""
        packed = self.packed + self.compressor.flush()
        order = Order.EXACT
        if len(packed) > self.budget and self.count > FIRST_LAUNCHES_KEPT:
            order = Order.DIGEST
            packed = bytearray(lzma.compress(self.first, preset=1))
        self.budget = max(0, self.budget - len(packed))
        return LaunchStream(
            thread=thread,
            count=self.count,
            order=order,
            width=self.width,
            data=base64.b64encode(packed).decode("ascii"),
            digest=self.digest.hexdigest(),
        )


def widened(data: bytes, width: int) -> bytes:
    """Little-endian integers of `width` bytes as such of 4 bytes."""
    wide = bytearray(len(data) // width * 4)
    for byte in range(width):
        wide[byte::4] = data[byte::width]
    return bytes(wide)


def site_from(value: list[Any] | None) -> Site | None:
    """A site as the recorder writes it: [file, line, function]."""
    return None if value is None else Site(*value)


def milliseconds(nanoseconds: float) -> float:
    """Nanoseconds as milliseconds, to the microsecond."""
    return round(nanoseconds / 1e6, 3)


def load_from(line: dict[str, Any], origin: int) -> Load:
    """A load as the recorder writes it; `origin` is the start of the run in nanoseconds of the monotonic clock."""
    parts = line["phases"]
    total = line["end"] - line["start"]
    return Load(
        name=line["name"],
        hash=line["hash"],
        device=line["device"],
        block_dim=line["block_dim"],
        status=Status(line["status"]),
        kind=LoadKind(line["kind"]),
        source=Source.HOOK,
        thread=line["thread"],
        start_ms=milliseconds(line["start"] - origin),
        end_ms=milliseconds(line["end"] - origin),
        ms=milliseconds(total),
        hash_ms=milliseconds(line["hash_ns"]),
        phases=Phases(
            codegen_ms=milliseconds(parts["codegen"]),
            lto_ms=milliseconds(parts["lto"]),
            native_ms=milliseconds(parts["native"]),
            header_ms=None if line["header"] is None else milliseconds(min(line["header"], parts["native"])),
            install_ms=milliseconds(parts["install"]),
            load_ms=milliseconds(parts["load"]),
            rest_ms=milliseconds(max(0, total - sum(parts.values()))),
        ),
        generated_source_bytes=line["source_bytes"],
        lto=tuple(
            LtoArtifact(item["symbol"], item["bytes"], milliseconds(item["ns"]), item["adjoint"])
            for item in line["lto"]
        ),
        site=site_from(line["site"]),
        workers=line["workers"],
        in_capture=line["in_capture"],
        option_set=None,
        kernels=(),
        unreached=tuple(UnreachedOption(*item) for item in line["unreached"]),
        cause=None,
        error=line["error"],
    )


def cache_event_from(line: dict[str, Any], origin: int) -> CacheEvent:
    """A cache event as the recorder writes it; `origin` as for `load_from`."""
    path = re.sub(r"^\d+/tmp/", "$TMPDIR/", line["path"]) if line["path"] else None
    at_ms = milliseconds(line["at"] - origin)
    return CacheEvent(CacheEventKind(line["kind"]), at_ms, path, site_from(line["site"]))


def config_event_from(line: dict[str, Any], origin: int) -> ConfigEvent:
    """An assignment to the configuration as the recorder writes it; `origin` as for `load_from`."""
    at_ms = milliseconds(line["at"] - origin)
    return ConfigEvent(line["name"], line["before"], line["after"], at_ms, site_from(line["site"]))


def with_lost_kernels(loads: Sequence[Load], hooks: Sequence[dict[str, Any]]) -> list[Load]:
    """The loads, each last one of an identity whose kernel had no entry point with that as its error."""
    found = list(loads)
    for line in (line for line in hooks if line["lost"]):
        identity = (line["module"], line["hash"], line["device"], line["block_dim"])
        for position, load in reversed(list(enumerate(found))):
            if (load.name, load.hash, load.device, load.block_dim) == identity and load.error is None:
                text = f"kernel {line['key']} was not found in it when it was launched"
                found[position] = dataclasses.replace(load, error=text)
                break
    return found


def explain_across_runs(read: ReadRun, cold: ReadRun) -> ReadRun:
    """A run after the cold one, with a cause for each build of what the cold run had not built: the difference to the
    closest identity that the cold run loaded under that name, hashes in it aside. Unchanged code makes none."""
    catalog = cold.catalog.merged(read.catalog)
    known: dict[tuple[str, str, int | None], list[Loaded]] = {}
    hashes = set()
    for load in (load for process in cold.processes for load in process.loads):
        key = (family(load.name), load.device, load.block_dim)
        known.setdefault(key, []).append(Loaded(load, catalog.states.get(load.hash or "")))
        hashes.add(load.hash)

    def explained(load: Load) -> Load:
        earlier = known.get((family(load.name), load.device, load.block_dim), [])
        first = load.is_build and load.cause is not None and load.cause.reason is CauseReason.FIRST_BUILD
        if not first or load.hash in hashes or not earlier:
            return load
        alike = [Loaded(dataclasses.replace(item.load, name=load.name), item.state) for item in earlier]
        cause = cause_of(load, catalog.states.get(load.hash or ""), alike, catalog, ())
        return dataclasses.replace(load, cause=cause)

    processes = [dataclasses.replace(process, loads=tuple(map(explained, process.loads))) for process in read.processes]
    return dataclasses.replace(read, processes=tuple(processes))


@dataclass(frozen=True)
class ReadRun:
    """What the record files of a run say."""

    processes: tuple[Process, ...]
    gaps: tuple[Gap, ...]
    catalog: Catalog
    versions: tuple[str, ...]
    devices: tuple[Device, ...]
    toolkit: str | None
    driver: str | None
    cuda_archs: tuple[int, ...] | None  # what its Warp can compile for; null where none was initialised
    options_set: bool
    options_refused: tuple[str, ...]


def read_records(folder: str, origin: int, private: Sequence[str]) -> ReadRun:
    """Read all record files of a run. Times become milliseconds since `origin`, paths lose the private directories (the
    inner ones first)."""
    catalog = Catalog()
    files = []
    gaps: list[Gap] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        names = []
        gaps.append(Gap(GapReason.RECORD_TRUNCATED, None, f"the records cannot be read: {error.strerror}"))
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".rec"):
            file = read_record_file(path, catalog, private)
            if file is None:
                gaps.append(Gap(GapReason.RECORD_TRUNCATED, None, f"the record {name} has no readable start line"))
            else:
                files.append(file)
        elif lost := re.fullmatch(r"([0-9]{1,9})-[0-9]+\.lost", name):
            text = "lines of its record could not be written: no space, no descriptor or another root directory"
            gaps.append(Gap(GapReason.RECORD_TRUNCATED, int(lost[1]), text))
        elif failed := re.fullmatch(r"([0-9]{1,9})\.failed", name):
            with contextlib.suppress(OSError), open_record(path) as failure:
                why = failure.read(MAX_TEXT).decode("utf-8", "replace")
                gaps.append(Gap(GapReason.CHILD_NOT_RECORDED, int(failed[1]), f"the recorder could not start: {why}"))
    files = linked(files)
    paths = process_paths(files)
    processes = []
    budget = MAX_ENCODED_LAUNCH_BYTES
    for file in files:
        process, found, budget = read_process(folder, file, paths[file.name], catalog, origin, budget)
        processes.append(process)
        gaps.extend(found)
    gaps.extend(unrecorded_children(files))
    processes.sort(key=lambda process: [int(part) for part in process.path.split(".")])
    inits = [line for file in files for line in file.of("init")]
    warps = [line for file in files for line in file.of("warp")]
    return ReadRun(
        processes=tuple(processes),
        gaps=tuple(gaps),
        catalog=catalog,
        versions=tuple(sorted({line["version"] for line in warps})),
        devices=tuple(Device(alias, name, arch) for alias, name, arch in (inits[0]["devices"] if inits else [])),
        toolkit=inits[0]["toolkit"] if inits else None,
        driver=inits[0]["driver"] if inits else None,
        cuda_archs=tuple(inits[0]["cuda_archs"]) if inits else None,
        options_set=any(file.of("set") for file in files),
        options_refused=tuple(dict.fromkeys(line["text"] for file in files for line in file.of("unset"))),
    )


def read_process(
    folder: str, file: RecordFile, path: str, catalog: Catalog, origin: int, budget: int
) -> tuple[Process, list[Gap], int]:
    """One process from its record file, what may have gone unseen in it, and what is left of `budget`, the bytes that
    the order of its launches may take."""
    start = file.start
    reader = LaunchReader(folder, file, catalog, budget)
    launches = reader.read()
    warp = next((line for source in reversed(file.lineage) for line in reversed(source.of("warp"))), None)
    events = tuple(cache_event_from(line, origin) for line in file.of("cache"))
    tables = LoadTables(catalog)
    loads = tables.explain(
        with_lost_kernels([load_from(line, origin) for line in file.of("load")], file.of("hooks")),
        events,
        {position: site_from(line["options_site"]) for position, line in enumerate(file.of("load"))},
    )
    revived = max((line["at"] for line in file.of("revived")), default=0)
    end = next((line for line in reversed(file.of("end")) if line["at"] > revived), None)
    hashing = end or next(reversed(file.of("load")), None)
    process = Process(
        pid=start["pid"],
        path=path,
        how=start["how"],
        argv=tuple(start["argv"]),
        executable=start["executable"],
        python=start["python"],
        warp=warp["version"] if warp is not None else None,
        start_ms=milliseconds(start["at"] - origin),
        end_ms=None if end is None else milliseconds(end["at"] - origin),
        end=ProcessEnd.UNRECORDED if end is None else ProcessEnd(end["how"]),
        exit_code=None if end is None else end["code"],
        phases=process_phases(file, loads, end, origin),
        hash_ms=0.0 if hashing is None else milliseconds(hashing["total_hash_ns"]),
        hashings=0 if hashing is None else hashing["total_hashings"],
        loads=loads,
        cache_events=events,
        config_events=tuple(config_event_from(line, origin) for line in file.of("config")),
        option_sets=tuple(dict(options) for options in tables.option_sets),
        built_kernels=tuple(tables.built_kernels),
        tapes=len(file.of("tape")),
        launches=launches,
        hook_errors=tuple(line["text"] for line in file.of("error")),
    )
    unhooked = warp["missing"] if warp is not None else []
    return process, process_gaps(file, process, unhooked, reader.missing), reader.budget


def process_gaps(
    file: RecordFile, process: Process, unhooked: Sequence[str], missing_launches: Sequence[str]
) -> list[Gap]:
    """What may have gone unseen in a process: of Warp, `unhooked`, of its launches, or by a failed hook."""
    found = [(GapReason.LAUNCHES_NOT_RECORDED, text) for text in missing_launches]
    if replays := process.launches.graph_replays_unknown:
        text = f"{replays} graph replays whose content was not seen: launches is a lower bound"
        found.append((GapReason.GRAPH_CONTENT_UNSEEN, text))
    if file.truncated:
        found.append((GapReason.RECORD_TRUNCATED, "a line of its record could not be read"))
    found.extend((GapReason.HOOK_FAILED, text) for text in process.hook_errors)
    if unhooked:
        what = " and no ".join(unhooked)
        text = f"no {what} can be recorded in Warp {process.warp}: use Warp {OLDEST_WARP} to {NEWEST_WARP}"
        found.append((GapReason.UNSUPPORTED_WARP, text))
    loads = [load for load in process.loads if load.kind is LoadKind.JIT and load.status is not Status.ERROR]
    launched = any(load.workers is None for load in loads)  # a preload sets it
    if launched and not process.launches.count and is_newer(process.warp or ""):
        text = f"modules were loaded and no launch was recorded, in a Warp newer than {NEWEST_WARP}"
        found.append((GapReason.LAUNCHES_NOT_RECORDED, text))
    return [Gap(reason, process.pid, text) for reason, text in found]


def is_newer(version: str) -> bool:
    """Whether a release of Warp came after those that the recorder was tried with."""
    release = re.match(r"(\d+)\.(\d+)", version)
    newest = tuple(int(part) for part in NEWEST_WARP.split("."))
    return release is not None and tuple(int(part) for part in release.groups()) > newest


def newer_notice(version: str) -> Notice:
    """The warning that such a release is measured with."""
    text = (
        f"Warp {version} is newer than {NEWEST_WARP}, the newest that this probe was tried with: loads are held against"
        " the output and the cache directories as ever; of launches only a complete lack would be noticed"
    )
    return Notice("newer-warp", text)


def process_phases(
    file: RecordFile, loads: tuple[Load, ...], end: dict[str, Any] | None, origin: int
) -> ProcessPhases | None:
    """Where the time of a process went, from its birth to its end line; None without one."""
    if end is None:
        return None
    start = file.start["at"]
    birth = file.birth
    born = birth["at"] if birth is not None else origin if file.parent is None else start
    # What was not seen took no time at the start.
    never = {"start": start, "end": start}
    warp, init = (next(iter(file.of(kind)), never) for kind in ("warp", "init"))
    interpreter = milliseconds(start - born)
    before = milliseconds(warp["start"] - start)
    importing, initialising = (milliseconds(line["end"] - line["start"]) for line in (warp, init))
    loading = union_ms(
        (load.start_ms - load.hash_ms, load.end_ms)
        for load in loads
        if load.start_ms is not None and load.end_ms is not None
    )
    total = milliseconds(end["at"] - born)
    rest = total - interpreter - before - importing - initialising - loading
    return ProcessPhases(interpreter, before, importing, initialising, round(loading, 3), round(max(0.0, rest), 3))


PYTHON_NAME = re.compile(r"^(python|pypy)[0-9.]*t?(\.exe)?$")
SHELL_NAMES = {"sh", "bash", "dash", "zsh", "env", "uv", "uvx", "nohup", "time", "timeout", "xargs", "sudo"}


def is_python(word: str) -> bool:
    """Whether a command's first word names a Python interpreter."""
    return bool(PYTHON_NAME.match(os.path.basename(word)))


def isolating_flag(words: Sequence[str]) -> str | None:
    """The interpreter flag (-I, -E or -S) that keeps the recorder out, in a command line that starts Python."""
    rest = iter(words[1:])
    for word in rest:
        letters = re.match(r"-([^-cmWX]*)([cmWX]?)", word)
        if letters is None or word in ("-", "--"):
            return None
        if flag := re.search("[IES]", letters[1]):
            return f"-{flag[0]}"
        if letters[2] in ("c", "m"):
            return None
        if letters[2] and letters.end() == len(word):  # -W and -X take the next word
            next(rest, None)
    return None


def unrecorded_children(files: list[RecordFile]) -> list[Gap]:
    """Children that a recorded process started and that should have been recorded, but were not."""
    births: dict[int, list[int]] = {}
    for file in files:
        for birth in file.of("birth"):
            births.setdefault(birth["pid"], []).append(birth["at"])
    # A pid can come again: a start belongs to the last birth before it.
    recorded = {
        (start["pid"], max((at for at in births.get(start["pid"], []) if at <= start["at"]), default=0))
        for start in (file.start for file in files)
    }
    gaps = []
    for file in files:
        revived = [line["at"] for line in file.of("revived")]
        for birth in file.of("birth"):
            pid, words = birth["pid"], birth["argv"]
            if pid == file.start["pid"] and any(at >= birth["at"] for at in revived):
                continue  # an exec that failed
            if (pid, birth["at"]) in recorded or not words:
                continue
            shown = " ".join(words[:4])
            python = is_python(words[0])
            if python and isolating_flag(words):
                reason, text = GapReason.ISOLATED_PYTHON, f"{shown}: {isolating_flag(words)} keeps the recorder out"
            elif not birth["injected"] and (python or os.path.basename(words[0]) in SHELL_NAMES):
                reason, text = GapReason.DROPPED_ENVIRONMENT, f"{shown}: its environment lacks the recorder and caches"
            elif python:
                reason, text = GapReason.CHILD_NOT_RECORDED, f"{shown}: no recorder started in it"
            else:
                continue
            gaps.append(Gap(reason, pid, text))
    return gaps


# ---------------------------------------------------------------------------------------------------------------------
# Running and isolation
# ---------------------------------------------------------------------------------------------------------------------

# The variables with a private value, and the folder of a sample that it names.
PRIVATE_VARIABLES = {"WARP_CACHE_PATH": "warp", "WARP_CACHE_ROOT": "root", "CUDA_CACHE_PATH": "cuda", "TMPDIR": "tmp"}
REPORTED_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_HOME",
    "CUDA_PATH",
    "WARP_CACHE_PATH",
    "WARP_CACHE_ROOT",
)
TAIL_BYTES = 32 * 1024
LINGER_SECONDS = 5.0  # how long children may outlive the command before they are ended
GRACE_SECONDS = 2.0  # between TERM and KILL
STALE_SECONDS = 24 * 3600.0  # age from which on a private directory that nobody holds is removed
STREAMS = ("stdout", "stderr")
MAX_LOG_RECORDS = 20_000  # module lines of one stream that are held against the records
DRAIN_SECONDS = 30.0  # for reading what is left in the pipes after the last process has ended

RECORDER_PRELUDE = "from __future__ import annotations; import _thread, atexit, itertools, os, sys, time\n"
SITECUSTOMIZE = """\
# Written by {script!a} for one run; starts its recorder, then makes way for the sitecustomize that it hides. Whatever
# Python reads this, its program must not notice.
def _start():
    import os, sys
    config = {config!a}
    known = set(sys.modules)
    try:
        import marshal
        cached = {code!a} + "-%s-%x" % (sys.implementation.cache_tag, sys.hexversion)
        try:
            with open(cached, "rb") as file:
                code = marshal.loads(file.read())
        except Exception:
            with open({source!a}, encoding="utf-8") as file:
                code = compile(file.read(), {script!a}, "exec", dont_inherit=True, optimize=2)
            try:
                with open(cached + ".%d" % os.getpid(), "wb") as file:
                    file.write(marshal.dumps(code))
                os.replace(cached + ".%d" % os.getpid(), cached)
            except OSError:
                pass
        namespace = {{"__name__": "_warp_compile_probe_recorder", "__file__": {script!a}}}
        exec(code, namespace)
        namespace["bootstrap"](config, known)
    except Exception as error:
        try:
            with open(os.path.join(config["records"], "%d.failed" % os.getpid()), "w") as file:
                file.write("%s: %r" % (sys.executable, error))
        except Exception:
            pass
    while config["inject"] in sys.path:
        sys.path.remove(config["inject"])
    sys.path_importer_cache.pop(config["inject"], None)
    sys.modules.pop("sitecustomize", None)
_start()
# Without another one, the ImportError that Python would have seen goes on to the site module, which expects it.
import sitecustomize
"""


class CommandFailedError(ProbeError):
    """The command ended with another exit code than expected."""

    exit_code = ExitCode.COMMAND_FAILED


class TimedOutError(ProbeError):
    """A run exceeded --timeout."""

    exit_code = ExitCode.TIMEOUT


class UnverifiedError(ProbeError):
    """What was measured cannot be relied upon."""

    exit_code = ExitCode.UNVERIFIED


class NotColdError(UnverifiedError):
    """A cold run used or filled a cache that was not its own."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived."""


class RunTimeout(BaseException):
    """SIGALRM: the run has taken as long as --timeout allows."""


ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalHandler:
    """Raises what a signal means, on the main thread. The first one that ends the measurement is the only one: while
    the probe obeys it or cleans up, `deaf` is true, so that no process and no file is left behind."""

    def __init__(self) -> None:
        self.deaf = False

    def __call__(self, number: int, _frame: object) -> None:
        if self.deaf:
            return
        if number == signal.SIGALRM:
            raise RunTimeout
        self.deaf = True
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    def install(self) -> None:
        """Handle the signals that are not ignored already (by nohup, say)."""
        self.deaf = False
        # Whoever started the probe may ignore this one, and the exit status of every child would be lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, self)
        for number in ENDING_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self)

    @staticmethod
    def ignore() -> None:
        """Once all is done: a signal that meets Python while it shuts down would change the exit code."""
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


SIGNALS = SignalHandler()


def recorder_source() -> str:
    """The recorder's part of this very file, moved to the same line numbers."""
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = lines.index("# <recorder>") + 1
    last = lines.index("# </recorder>")
    return RECORDER_PRELUDE + "\n" * (first - 1) + "\n".join(lines[first:last]) + "\n"


class Workspace:
    """The private directory of one `measure`: mode 0700, unpredictable, removed on every way out."""

    def __init__(self) -> None:
        try:
            # Python's own choice alone would pass over an unusable TMPDIR in silence.
            parent = os.environ.get("TMPDIR") or tempfile.gettempdir()
        except OSError as error:
            raise InputError(f"no private directory can be made: {error.strerror}; set TMPDIR") from None
        self.parent = os.path.abspath(parent)
        self.root = os.path.join(self.parent, f"wcp-{os.urandom(5).hex()}")
        self.source = os.path.join(self.root, "recorder.py")
        self.code = os.path.join(self.root, "code")
        self.cleanups: list[Callable[[], None]] = []
        self.made = False
        self.lock: int | None = None

    def prepare(self) -> None:
        """Make the directory, write the recorder, and compile it for interpreters of this version."""
        try:
            os.mkdir(self.root, 0o700)
            self.made = True
            self.lock = os.open(os.path.join(self.root, "lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(
                f"no private directory can be made under {self.parent} ({error.strerror});"
                " set TMPDIR to a writable directory with free space"
            ) from None
        lock_file(self.lock)
        remove_stale(self.parent)
        source = recorder_source()
        write_file(self.source, source.encode())
        code = compile(source, os.path.abspath(__file__), "exec", dont_inherit=True, optimize=2)
        write_file(f"{self.code}-{sys.implementation.cache_tag}-{sys.hexversion:x}", marshal.dumps(code))

    def remove(self) -> None:
        for cleanup in self.cleanups:
            cleanup()
        if self.made:
            remove_tree(self.root)
        if self.lock is not None:
            os.close(self.lock)


def lock_file(descriptor: int) -> bool:
    """Hold a file until this process ends, however it ends. False where another one holds it, or nothing can be."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_stale(parent: str) -> None:
    """Remove what probes left behind that were killed: private directories of this user, a day old, so that none is
    in the making, whose lock nobody holds any more."""
    for root in Path(parent).glob("wcp-" + 10 * "[0-9a-f]"):
        with contextlib.suppress(OSError):
            found = root.lstat()
            young = time.time() - found.st_mtime < STALE_SECONDS
            if young or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            descriptor = os.open(root / "lock", os.O_RDWR | os.O_NOFOLLOW)
            try:
                if lock_file(descriptor):
                    remove_tree(str(root))
            finally:
                os.close(descriptor)


def remove_tree(root: str) -> None:
    """Remove a private directory, or what stands in its place; folders that the program made read-only or deeper than
    any path too. Links are not followed. Every folder is moved up before it is emptied, so that no path grows."""
    folders = [root]
    names = (f"{os.urandom(5).hex()}-{number}" for number in itertools.count())
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError):
            if os.path.islink(folder) or not os.path.isdir(folder):
                os.unlink(folder)
                continue
            os.chmod(folder, 0o700)
            for entry in list(os.scandir(folder)):
                with contextlib.suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)
                        continue
                    above = os.path.join(root, next(names))
                    os.chmod(entry.path, 0o700)
                    os.rename(entry.path, above)
                    folders.append(above)
            if folder != root:
                os.rmdir(folder)
    with contextlib.suppress(OSError):
        os.rmdir(root)


def write_file(path: str, data: bytes) -> None:
    """Write a private file. Raises InputError on a full or read-only disk."""
    with private_write(path), open(path, "wb") as file:
        file.write(data)


def make_folder(path: str) -> None:
    """Make a private directory. Raises InputError on a full or read-only disk."""
    with private_write(path):
        os.makedirs(path, mode=0o700, exist_ok=True)


@contextlib.contextmanager
def private_write(path: str) -> typing.Iterator[None]:
    """Turn what the disk refuses into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; free some space or set TMPDIR elsewhere") from None


class SampleFolder:
    """The private caches of one sample, shared by its runs, and the directories that the probe made for it."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace = workspace
        self.path = os.path.join(workspace.root, name)
        self.held: list[int] = []
        self.make()

    def make(self) -> None:
        """Make the folders; before each run, since the one before may have removed what it found in its variables."""
        for part in ("", *PRIVATE_VARIABLES.values(), "twins"):
            make_folder(os.path.join(self.path, part))

    def environment(self, base: dict[str, str], inherit_tmpdir: bool) -> dict[str, str]:
        """`base` with the private variables, TMPDIR unless it is inherited."""
        private = {name: os.path.join(self.path, part) for name, part in PRIVATE_VARIABLES.items()}
        if inherit_tmpdir:
            del private["TMPDIR"]
        return {**base, **private}

    def records(self, run: RunKind) -> str:
        """The folder of the records of one run."""
        return os.path.join(self.path, run.value, "records")

    def inject(
        self, run: RunKind, options: dict[str, str], architecture: Architecture | None = None
    ) -> tuple[str, str]:
        """Write the sitecustomize of one run, which sets `options` of Warp. Returns the folder for PYTHONPATH and the
        folder of the records."""
        folder = os.path.join(self.path, run.value, "inject")
        records = self.records(run)
        make_folder(folder)
        make_folder(records)
        script = os.path.abspath(__file__)
        config: dict[str, Any] = {"inject": folder, "records": records, "sample": self.path, "script": script}
        config["set"] = options
        if architecture is not None:
            config["cuda_arch"] = [architecture.number, architecture.suffix]
        text = SITECUSTOMIZE.format(
            script=script, code=self.workspace.code, source=self.workspace.source, config=config
        )
        write_file(os.path.join(folder, "sitecustomize.py"), text.encode("ascii"))
        return folder, records

    def between_runs(self) -> None:
        """Keep the twins honest until the next run: mark those whose directory is gone, and hold the others open so
        that a directory deleted and made anew cannot pass for the old one by getting its inode number."""
        for path in Path(self.path, "twins").glob("*.identity"):
            descriptor = open_twin(str(path))
            if descriptor is None:
                remove_tree(str(path))  # it may be a link of the program's
                if path.with_suffix("").is_dir():
                    write_file(str(path), b"gone")
            else:
                self.held.append(descriptor)

    def close(self) -> None:
        """Remove the sample's caches, and the empty directories that the probe made where the program wanted one."""
        for descriptor in self.held:
            os.close(descriptor)
        for path in sorted(self.made_for_the_program(), key=len, reverse=True):
            # The program put something there or removed it itself; a damaged record may name what no path can be.
            with contextlib.suppress(OSError, ValueError):
                os.rmdir(path)
        remove_tree(self.path)

    def made_for_the_program(self) -> set[str]:
        """The directories that the recorder says to have made, whether or not their run got to its end."""
        found: set[str] = set()
        for path in Path(self.path).glob("*/records/*.rec"):
            with contextlib.suppress(OSError), open_record(str(path)) as file:
                while raw := file.readline(MAX_RECORD_LINE_BYTES):
                    if raw.startswith(b'{"t":"made",'):
                        with contextlib.suppress(ValueError):  # a line that was cut short
                            found.update(record_line(raw)[1]["paths"])
        return found

    def module_directories(self) -> list[str]:
        """Names of the module directories in the private caches, wherever Warp put them."""
        found = []
        folders = [self.path]
        while folders:
            # A folder that cannot be read, or whose path is too long, holds nothing that Warp put there.
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.name in ("inject", "records") or not entry.is_dir(follow_symlinks=False):
                        continue
                    if not entry.name.startswith("wp_") or entry.name.startswith("wp_pch_"):
                        folders.append(entry.path)
                    elif not re.search(r"_p\d+(_t\d+)?$", entry.name):
                        found.append(entry.name)
        return sorted(found)


def env_prefixes(command: Sequence[str]) -> typing.Iterator[range]:
    """The positions of the options and variables of each `env` that a command line begins with."""
    start = 0
    while start < len(command) and os.path.basename(command[start]) == "env":
        end = start + 1
        while end < len(command) and (command[end].startswith("-") or "=" in command[end]):
            end += 2 if command[end] in ("-u", "--unset", "-C", "--chdir") else 1
        yield range(start + 1, min(end, len(command)))
        start = end


def open_twin(note: str) -> int | None:
    """Open the directory that the note beside a twin names; None if it is not the one that the twin was made for."""
    try:
        with open_record(note) as file:
            real, device, inode = os.fsdecode(file.read(1 << 16)).rsplit(" ", 2)
        descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, ValueError):
        return None
    found = os.fstat(descriptor)
    if f"{found.st_dev} {found.st_ino}" == f"{device} {inode}":
        return descriptor
    os.close(descriptor)
    return None


def with_injection(command: Sequence[str], inject: str) -> list[str]:
    """The command, with the recorder's folder put in front where a leading `env` sets PYTHONPATH itself."""
    words = list(command)
    for positions in env_prefixes(command):
        for position in positions:
            name, separator, value = words[position].partition("=")
            if name == "PYTHONPATH" and separator:
                words[position] = f"PYTHONPATH={inject}{os.pathsep if value else ''}{value}"
    return words


# What own_output could act on, so that gigabytes of other output need not be split into lines.
WARP_WORDS = (b"arp", b"Module", b"Compile", b"wp")  # Warp and warp, wp_ and wp.
INDENTED = re.compile(rb"^[ \t]{3}", re.MULTILINE)
TOOK = re.compile(rb"took [0-9.]+ ms")


def may_be_warps(block: bytes) -> bool:
    """Whether own_output could act on a line. Plain searches: a pattern of alternatives takes several times as long."""
    if any(word in block for word in WARP_WORDS):
        return True
    blank = block[:1] in (b" ", b"\t") or b"\n " in block or b"\n\t" in block
    return blank and INDENTED.search(block) is not None


class OutputReader(threading.Thread):
    """Drains one stream of the command: size, last bytes, log records, digest of the lines that are not Warp's."""

    def __init__(self, stream: IO[bytes], private: str, keep: IO[bytes] | None, echo: bool) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.private = os.fsencode(private)
        self.echo = echo
        self.keep = keep
        self.problem: str | None = None  # why `keep` lacks a part of the stream
        self.bug: Exception | None = None
        self.size = 0
        self.tail = b""
        self.parser = LogParser()
        self.records: list[LogRecord] = []  # the first MAX_LOG_RECORDS
        self.record_count = 0
        self.hash = hashlib.sha256()
        self.line = b""
        self.line_hash = hashlib.sha256()
        self.line_digests: list[str] = []
        # A signal that this thread took would not wake the main one, which alone can obey it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def run(self) -> None:
        """Read to the end, whatever becomes of what was read: a command whose pipe is full would never end."""
        with self.stream:
            while chunk := os.read(self.stream.fileno(), 1 << 16):
                self.pass_on(chunk)
                if self.bug is None:
                    try:
                        self.take(chunk)
                    except Exception as error:
                        self.bug = error
        if self.keep is not None:
            self.keep.close()

    def finish(self) -> None:
        """Wait for the end of the stream, and take what its last line held."""
        self.join(DRAIN_SECONDS)
        if self.bug is not None:
            raise self.bug
        self.add_records(self.parser.close())
        self.digest(b"\n" if self.line else b"")
        self.digest_lines(b"\n")

    def take(self, chunk: bytes) -> None:
        """Add a piece of the stream to all that is known of it."""
        self.size += len(chunk)
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]
        self.add_records(self.parser.feed(chunk))
        self.digest(chunk)

    def add_records(self, records: Sequence[LogRecord]) -> None:
        """Keep module lines, as many as memory allows whatever a program prints."""
        self.record_count += len(records)
        self.records.extend(records[: max(0, MAX_LOG_RECORDS - len(self.records))])

    def pass_on(self, chunk: bytes) -> None:
        """Keep and echo a piece of the stream, as long as that is possible."""
        if self.keep is not None:
            try:
                self.keep.write(chunk)
                self.keep.flush()
            except OSError as error:
                self.problem = f"--keep-logs: cannot write {self.keep.name}: {error.strerror}"
                self.keep = None
        try:
            if self.echo:
                sys.stderr.buffer.write(chunk)
                sys.stderr.buffer.flush()
        except OSError:
            # Nobody reads standard error any more.
            self.echo = False
            discard(sys.stderr)

    def digest(self, chunk: bytes) -> None:
        """Add whole lines to the digest, private paths replaced, Warp's own lines left out."""
        head, separator, rest = (self.line + chunk).rpartition(b"\n")
        if len(rest) > TAIL_BYTES:
            head, separator, rest = head + separator + rest, b"", b""
        self.line = rest
        block = (head + separator).replace(self.private, b"")
        if may_be_warps(block):
            lines = [(line, own_output(line)) for line in block.split(b"\n")]
            block = b"\n".join(own for line, own in lines if own or not line)
        block = TOOK.sub(b"took ms", block)
        self.hash.update(block)
        self.digest_lines(block)

    def digest_lines(self, block: bytes) -> None:
        """A short digest for each of the first lines."""
        if len(self.line_digests) >= MAX_LINE_DIGESTS:
            return
        *ended, rest = block.split(b"\n", MAX_LINE_DIGESTS)
        for line in ended[: MAX_LINE_DIGESTS - len(self.line_digests)]:
            self.line_hash.update(line)
            self.line_digests.append(self.line_hash.hexdigest()[:LINE_DIGEST_DIGITS])
            self.line_hash = hashlib.sha256()
        self.line_hash.update(rest)

    def last_lines(self, count: int) -> list[str]:
        return self.tail.decode("utf-8", "replace").splitlines()[-count:]


@dataclass(frozen=True)
class Executed:
    """A finished execution of the command, before its records are read."""

    origin: int
    wall_ms: float
    exit: Exit
    stdout: OutputReader
    stderr: OutputReader
    survivors: dict[int, str]  # what the probe had to end: command lines by pid

    @property
    def records(self) -> list[LogRecord]:
        """The module lines of both streams that are held against what was recorded."""
        return self.stdout.records + self.stderr.records

    @property
    def printed(self) -> int:
        """How many module lines there were on both."""
        return self.stdout.record_count + self.stderr.record_count


def execute(
    command: Sequence[str], environment: dict[str, str], cwd: str, options: MeasureOptions, private: str, name: str
) -> Executed:
    """Run the command to its end, or to --timeout. Raises InputError if it cannot be started."""
    keep = [open_log(options.keep_logs, f"{name}.{stream}") for stream in STREAMS]
    origin = time.monotonic_ns()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        if not os.path.isdir(cwd):
            raise InputError(
                f"cannot start {command[0]}: its working directory {cwd} is gone, did a run delete it?"
            ) from None
        raise InputError(f"cannot start {command[0]}: {error.strerror}; check the command after --") from None
    assert process.stdout is not None
    assert process.stderr is not None
    stdout = OutputReader(process.stdout, private, keep[0], options.echo)
    stderr = OutputReader(process.stderr, private, keep[1], options.echo)
    survivors: dict[int, str] = {}
    try:
        signal.setitimer(signal.ITIMER_REAL, options.timeout_s or 0)
        code = process.wait()
        wall = time.monotonic_ns() - origin
        signal.setitimer(signal.ITIMER_REAL, 0)
        survivors = await_descendants(LINGER_SECONDS)
        ended = Exit(code if code >= 0 else None, signal_name(-code) if code < 0 else None, timed_out=False)
    except RunTimeout:
        wall = time.monotonic_ns() - origin
        ended = Exit(None, None, timed_out=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        end_descendants()
        if process.poll() is None:  # on a system without /proc
            os.killpg(process.pid, signal.SIGKILL)
        for reader in (stdout, stderr):
            reader.finish()
    return Executed(origin, milliseconds(wall), ended, stdout, stderr, survivors)


def open_log(folder: str | None, name: str) -> IO[bytes] | None:
    """The file of --keep-logs for one stream of one run. Raises InputError."""
    if folder is None:
        return None
    try:
        # The names are known beforehand, so that a link under one of them is not what the user asked for.
        return open(
            os.path.join(folder, name),
            "wb",
            opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o666),
        )
    except OSError as error:
        raise InputError(f"--keep-logs {folder}: cannot write {name}: {error.strerror}; give another folder") from None


def signal_name(number: int) -> str:
    """SIGKILL and the like; most real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def become_subreaper() -> None:
    """On Linux, orphans of the command become children of the probe, so that none escapes."""
    if sys.platform == "linux":
        import ctypes

        set_child_subreaper = 36
        ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def descendants() -> dict[int, str]:
    """Living descendants of this process, pid to command line, read from /proc (empty elsewhere)."""
    living: dict[int, tuple[int, str]] = {}  # pid to parent and command line
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                text = file.read().decode("utf-8", "replace")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue  # it has just ended
        state, parent = text.rpartition(")")[2].split()[:2]
        if state not in ("Z", "X"):
            living[pid] = (int(parent), words[:120])
    found: dict[int, str] = {}
    level = {os.getpid(): ""}
    while level:
        level = {pid: words for pid, (parent, words) in living.items() if parent in level and pid not in found}
        found.update(level)
    return found


def reap() -> bool:
    """Collect children that ended; returns whether others still live. As the probe is their subreaper on Linux, no
    child left means no descendant left, which a listing that is read piece by piece could not tell."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def await_descendants(seconds: float) -> dict[int, str]:
    """Wait for what the command left running; returns the command lines of those that are still there, by pid."""
    deadline = time.monotonic() + seconds
    while reap():
        if time.monotonic() > deadline:
            return descendants()
        time.sleep(0.02)
    return {}


def end_descendants() -> None:
    """TERM, a grace period, KILL, until no descendant is left."""
    for signal_number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while reap():
            for pid in descendants():
                if pid not in told or signal_number == signal.SIGKILL:
                    told.add(pid)
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal_number)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)


# -- caches of the user ---------------------------------------------------------------------------------------------


def user_cache_listing(environment: dict[str, str]) -> dict[str, int]:
    """The user's own Warp and CUDA driver caches: path to modification time in ns, two levels deep."""
    home = environment.get("HOME") or os.path.expanduser("~")
    folders = [os.path.join(home, ".cache", "warp"), os.path.join(home, ".nv", "ComputeCache")]
    if environment.get("XDG_CACHE_HOME"):  # a child that has lost this variable too uses the first of them
        folders.append(os.path.join(environment["XDG_CACHE_HOME"], "warp"))
    folders += [environment[name] for name in ("WARP_CACHE_PATH", "CUDA_CACHE_PATH") if environment.get(name)]
    found: dict[str, int] = {}
    pending = [(folder, 2) for folder in folders]
    for folder, levels in pending:
        # What is not there, or not readable: nothing of it can be used either.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                found[entry.path] = entry.stat(follow_symlinks=False).st_mtime_ns
                if levels > 1 and entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, levels - 1))
    return found


# -- cross-checks ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """A run after its cross-checks: what came to light beyond the records."""

    run: Run
    gaps: tuple[Gap, ...]
    notices: tuple[Notice, ...]
    not_cold: tuple[str, ...]


def load_from_log(record: LogRecord) -> Load:
    """A load of which only its log line is known."""
    return Load(
        name=record.name,
        hash=record.hash,
        device=record.device,
        block_dim=record.block_dim,
        status=record.status,
        kind=LoadKind.JIT,
        source=Source.LOG,
        thread=0,
        start_ms=None,
        end_ms=None,
        ms=record.ms,
        hash_ms=0.0,
        phases=None,
        generated_source_bytes=0,
        lto=(),
        site=None,
        workers=None,
        in_capture=False,
        option_set=None,
        kernels=(),
        unreached=(),
        cause=None,
        error=None,
    )


def unrecorded_process(loads: Sequence[Load]) -> Process:
    """Stands for whatever processes produced loads that only the log shows."""
    return Process(
        pid=0,
        path="unrecorded",
        how="unrecorded",
        argv=(),
        executable="",
        python="",
        warp=None,
        start_ms=0.0,
        end_ms=None,
        end=ProcessEnd.UNRECORDED,
        exit_code=None,
        phases=None,
        hash_ms=0.0,
        hashings=0,
        loads=tuple(loads),
        cache_events=(),
        config_events=(),
        option_sets=(),
        built_kernels=(),
        tapes=0,
        launches=Launches(0, 0, (), (), ()),
        hook_errors=(),
    )


class Directories:
    """The module directories `wp_NAME[_HASH7]` that loads explain; names are not always kept letter by letter."""

    def __init__(self, loads: Sequence[Load | LogRecord]) -> None:
        self.names = {f"wp_{load.name}" for load in loads}
        self.digests = {load.hash[:7] for load in loads if load.hash}

    def without(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that no load explains."""
        return [name for name in names if name not in self.names and name.rpartition("_")[2] not in self.digests]


def log_only_loads(
    records: Sequence[LogRecord], loads: Sequence[Load], directories: Sequence[str], gap: bool
) -> list[Load]:
    """Loads that the output shows and no recorder saw. A line that repeats one (a test report, say) is no load, nor is
    one that neither a cache directory nor a gap in the recording can explain: programs print look-alikes."""
    known: dict[tuple[str, str], set[str | None]] = {}
    for load in loads:
        known.setdefault((load.name, load.device), set()).add(load.hash)
    unmatched: dict[LogRecord, None] = {}
    for record in records:
        hashes = known.get((record.name, record.device), set())
        if hashes and (record.hash is None or any(found is None or found.startswith(record.hash) for found in hashes)):
            continue
        if gap or len(Directories([record]).without(directories)) < len(directories):
            unmatched[dataclasses.replace(record, line=0)] = None
    return [load_from_log(record) for record in unmatched]


def foreign_cached_loads(processes: Sequence[Process]) -> list[str]:
    """Loads of a cold run that came from a cache although nothing in the run had built them."""
    every = [load for process in processes for load in process.loads if load.kind is LoadKind.JIT]
    named = [(load.name, (load.hash or "")[:7], load.status is Status.CACHED) for load in every]
    built = {(name, digest) for name, digest, cached in named if not cached}
    return [f"{name} {digest}" for name, digest, cached in named if cached and (name, digest) not in built]


BLINDING_GAPS = frozenset(
    {
        GapReason.NOT_RECORDED,
        GapReason.ISOLATED_PYTHON,
        GapReason.DROPPED_ENVIRONMENT,
        GapReason.CHILD_NOT_RECORDED,
        GapReason.UNSUPPORTED_WARP,
        GapReason.RECORD_TRUNCATED,
    }
)


def check_run(
    kind: RunKind, executed: Executed, read: ReadRun, command: Sequence[str], known: Sequence[str], found: Sequence[str]
) -> Checked:
    """Hold the records of a run against its output and against the private caches.

    `known` and `found` are the module directories before and after the run.
    """
    gaps = list(read.gaps)
    if not read.processes:
        gaps.append(root_gap(command))
    loads = [load for process in read.processes for load in process.loads]
    before = set(known)
    unexplained = Directories(loads).without([name for name in found if name not in before])
    blind = any(gap.reason in BLINDING_GAPS for gap in gaps)
    extra = log_only_loads(executed.records, loads, unexplained, blind)
    processes = read.processes
    if extra:
        processes = (*processes, unrecorded_process(extra))
        text = f"{plural(len(extra), 'load')} known only from lines of the output"
        gaps.append(Gap(GapReason.LOG_ONLY_LOADS, None, text))
        unexplained = Directories(extra).without(unexplained)
    if unexplained:
        count = plural(len(unexplained), "module directory", "module directories")
        text = f"{count} not explained by a recorded load: {', '.join(unexplained[:5])}"
        gaps.append(Gap(GapReason.UNEXPLAINED_CACHE_ENTRY, None, text))
    for process in read.processes:
        if process.pid in executed.survivors and process.warp is not None:
            text = f"process {process.path} had not ended {LINGER_SECONDS:.0f} s after the command; what it does later"
            gaps.append(Gap(GapReason.ENDED_BY_PROBE, process.pid, f"{text} is missing: let the command wait for it"))
    if not any(process.cache_events for process in processes):
        there = {name.rpartition("_")[2] for name in found}.union(found)
        missing = sorted(
            {
                f"{load.name} {load.hash[:7]}"
                for load in loads
                if load.is_build and load.hash and there.isdisjoint({load.hash[:7], f"wp_{load.name}"})
            }
        )
        if missing:
            text = f"{plural(len(missing), 'build')} left no module directory: {', '.join(missing[:5])}"
            gaps.append(Gap(GapReason.MISSING_CACHE_ENTRY, None, text))
    run = Run(
        kind=kind,
        wall_ms=executed.wall_ms,
        exit=executed.exit,
        processes=processes,
        output=Output(
            executed.stdout.size,
            executed.stderr.size,
            executed.stdout.hash.hexdigest(),
            "".join(executed.stdout.line_digests),
        ),
        cross_check=CrossCheck(executed.printed, len(extra), len(found), tuple(unexplained)),
    )
    foreign = foreign_cached_loads(processes) if kind in (RunKind.COLD, RunKind.OFFLINE) else []
    return Checked(run, tuple(gaps), tuple(output_notices(kind, executed)), tuple(foreign))


def output_notices(kind: RunKind, executed: Executed) -> Iterator[Notice]:
    """What has to be said of the output of a run and of the processes that it left behind."""
    kept = len(executed.records)
    if executed.printed > kept:
        text = f"{executed.printed} module lines were printed; only the first {kept} were held against the records"
        yield Notice("log-lines-left-out", f"{kind.value} run: {text}")
    if executed.survivors:
        count = plural(len(executed.survivors), "process", "processes")
        text = f"{count} outlived the command, ended by the probe: {next(iter(executed.survivors.values()))}"
        yield Notice("survivors", f"{kind.value} run: {text}")
    if unreadable := executed.stdout.parser.unreadable + executed.stderr.parser.unreadable:
        text = f"{plural(unreadable, 'module line')} could not be read"
        yield Notice("unreadable-log-lines", f"{kind.value} run: {text}")


def root_gap(command: Sequence[str]) -> Gap:
    """Why no process of the command was recorded."""
    start = 0
    for positions in env_prefixes(command):
        options = " ".join(command[position] for position in positions)
        if re.search(r"(^| )(-|-i|--ignore-environment|(-u ?|--unset[= ])PYTHONPATH)( |$)", options):
            text = f"env {options} drops the recorder's PYTHONPATH"
            return Gap(GapReason.DROPPED_ENVIRONMENT, None, text)
        start = positions.stop
    words = command[start:]
    if words and is_python(words[0]) and isolating_flag(words):
        return Gap(GapReason.ISOLATED_PYTHON, None, f"python {isolating_flag(words)} keeps the recorder out")
    return Gap(GapReason.NOT_RECORDED, None, "no Python process that could be recorded was started")


# ---------------------------------------------------------------------------------------------------------------------
# Experiments: one command in several arms, each a Measurer, their samples interleaved
# ---------------------------------------------------------------------------------------------------------------------

ARM_NAMES = ("baseline", "candidate")


# -- arms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArmOptions:
    """One side of `ab` as it was asked for: a directory or a git revision, variables, and options of Warp."""

    name: str
    directory: str | None
    revision: str | None
    env: dict[str, str]
    set: dict[str, str]


@dataclass(frozen=True)
class Revision:
    """A commit of the repository that `directory` lies in; `inside` is the path of `directory` in its working tree."""

    name: str
    commit: str
    directory: str
    inside: str


# What a hook of git passes on: with these, git would act on that repository and index wherever it runs.
GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


def git(directory: str, *words: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run git in a directory; no hook or monitor of its configuration runs. Raises InputError where there is no git,
    TimeoutExpired where it takes longer."""
    try:
        return subprocess.run(
            ["git", "-C", directory, "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", *words],
            env={name: value for name, value in os.environ.items() if name not in GIT_VARIABLES},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise InputError(f"cannot run git ({error.strerror}): a revision needs it; or give directories") from None


def find_revision(option: str, name: str, directory: str) -> Revision:
    """The commit that a revision names. Raises InputError if there is none."""
    inside = git(directory, "rev-parse", "--show-prefix")
    if inside.returncode:
        reason = " ".join(inside.stderr.split()[:30])
        raise InputError(f"{option} {name}: {directory} is in no working tree that git reads ({reason}); change to one")
    commit = git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if commit.returncode:
        raise InputError(f"{option} {name}: git knows no such revision here; name a commit, branch or tag, or fetch it")
    return Revision(name, commit.stdout.strip(), directory, inside.stdout.strip())


def check_out(revision: Revision, workspace: Workspace, arm: str) -> str:
    """Check a revision out into a temporary working tree, which goes with the workspace. Returns the directory in it
    that stands for the one that the revision was asked for in. The user's own working tree and index stay as they are.
    """
    path = os.path.join(workspace.root, f"tree-{arm}")
    workspace.cleanups.append(functools.partial(forget_tree, revision.directory, path))
    added = git(revision.directory, "worktree", "add", "--quiet", "--detach", path, revision.commit)
    if added.returncode:
        reason = " ".join(added.stderr.split()[-40:])
        raise InputError(f"git cannot check out {revision.name}: {reason}")
    inside = os.path.join(path, revision.inside).rstrip(os.sep)
    if not os.path.isdir(inside):
        raise InputError(f"{revision.name} has no directory {revision.inside}: run this in one that it has")
    return inside


def forget_tree(directory: str, path: str) -> None:
    """Remove a temporary working tree, also one that was left half made, and what git knows of it; no other one."""
    # Forced twice: git locks a tree while it makes it. A tree that is half made can only be removed once it is gone.
    if git(directory, "worktree", "remove", "--force", "--force", path).returncode:
        shutil.rmtree(path, ignore_errors=True)
        git(directory, "worktree", "remove", "--force", "--force", path)


def interleave(arms: Sequence[Measurer], options: MeasureOptions) -> None:
    """Take the samples of all arms in the order A B B A, so that a drift of the machine meets all of them alike; after
    those on the machine, offline ones for each architecture. Raises what ends them early; each arm's measurement then
    holds what was finished."""

    def turns() -> Iterator[tuple[int, Measurer]]:
        for index in range(1, options.samples + 1):
            for arm in arms if index % 2 else reversed(arms):
                yield index, arm

    for index, arm in turns():
        arm.sample(index)
    for arm in arms:
        arm.check_warp()
    for architecture in options.architectures:
        for index, arm in turns():
            arm.offline_sample(index, architecture)


def foreign_sources(report: Report, other: str) -> list[str]:
    """Files under the directory `other` that kernels of a report come from, or that asked for its builds."""
    folder = other.rstrip(os.sep) + os.sep
    sites = [
        site
        for process in first_cold_processes(report)
        for site in (*(kernel.site for kernel in process.built_kernels), *(load.site for load in process.loads))
        if site is not None
    ]
    return sorted({site.file for site in sites if site.file.startswith(folder) and not is_installed(site.file)})


def tree_warnings(baseline: Report, candidate: Report) -> list[Notice]:
    """Warn where an arm ran code of the other arm's tree: an absolute path in the command, or a package installed in
    editable mode."""
    notices = []
    for arm, own, other in (("baseline", baseline, candidate), ("candidate", candidate, baseline)):
        # Sources in the checkout of a revision have relative paths, so only those of a directory can be mistaken.
        within = own.options.revision is None and (own.cwd + os.sep).startswith(other.cwd.rstrip(os.sep) + os.sep)
        files = [] if within else foreign_sources(own, other.cwd)
        if files:
            text = (
                f"the {arm} ran code of the other tree ({_listed(files, 3)}): give the command paths relative to its"
                " directory, and do not install the package in editable mode"
            )
            notices.append(Notice("code-of-the-other-tree", text))
    return notices


# -- ab --null ------------------------------------------------------------------------------------------------------

NULL_EFFECT_PERCENT = 5.0
NULL_SPLITS = 2_000
NULL_TRIALS = 200
NULL_SIZES = (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50)


def null_test(baseline: Report, candidate: Report) -> NullTest:
    """What the samples of one tree, measured as both arms, say about the verdict on this machine."""
    figures = {}
    for metric in (Metric.COLD_MODULE, Metric.COMPILE_ELAPSED, Metric.COLD_WALL):
        arms = _judged_values(baseline, metric), _judged_values(candidate, metric)
        if arms[0] is not None and arms[1] is not None and arms[0].median > 0:
            figures[metric] = null_figure((*arms[0].values, *arms[1].values))
    samples = min(len(complete_runs(baseline)), len(complete_runs(candidate)))
    return NullTest(samples, NULL_EFFECT_PERCENT, figures)


def null_figure(values: Sequence[float]) -> NullFigure:
    """Deal values that nothing tells apart out to two arms of equal size, in every way (at most 2,000 drawn ones)."""
    size = len(values) // 2
    draw = random.Random(0)  # the same answer for the same samples
    indices = range(2 * size)
    if math.comb(2 * size, size) <= NULL_SPLITS:
        chosen = [frozenset(split) for split in itertools.combinations(indices, size)]
    else:
        chosen = [frozenset(draw.sample(indices, size)) for _ in range(NULL_SPLITS)]
    called: collections.Counter[bool] = collections.Counter()
    for split in chosen:
        before, after = [values[i] for i in indices if i in split], [values[i] for i in indices if i not in split]
        weighed = weigh(timed(before), timed(after))
        if weighed.support is Support.SUPPORTED:
            called[weighed.change < 0] += 1
    return NullFigure(
        pooled=timed(values),
        splits=len(chosen),
        improved_percent=100 * called[True] / len(chosen),
        regressed_percent=100 * called[False] / len(chosen),
        needed_samples=samples_for_effect(values, NULL_EFFECT_PERCENT, draw),
    )


def samples_for_effect(values: Sequence[float], percent: float, draw: random.Random) -> int | None:
    """Samples an arm with which an improvement by `percent` would be called so in four of five attempts, if values
    scatter as these do. None if that takes more than 50."""
    for size in NULL_SIZES:
        missed = 0
        for _ in range(NULL_TRIALS):
            before = timed(draw.choices(values, k=size))
            after = timed(value * (1 - percent / 100) for value in draw.choices(values, k=size))
            weighed = weigh(before, after)
            missed += not (weighed.support is Support.SUPPORTED and weighed.change < 0)
            if 5 * missed > NULL_TRIALS:
                break  # no more trials make four of five of it
        else:
            return size
    return None


# -- what-if --------------------------------------------------------------------------------------------------------

LEDGER_SCHEMA = "warp-compile-probe/what-if"


@dataclass(frozen=True)
class Lever:
    """An option of Warp to try, with its value as text."""

    name: str
    value: str

    @property
    def text(self) -> str:
        """As --set takes it."""
        return f"{self.name}={self.value}"


DEFAULT_LEVERS = (
    Lever("enable_backward", "False"),
    Lever("use_precompiled_headers", "False"),
    Lever("max_unroll", "4"),
    Lever("optimization_level", "1"),
    Lever("enable_mathdx_gemm", "False"),
    Lever("enable_mathdx_solver", "False"),
    Lever("enable_mathdx_fft", "False"),
)

# What a lever may cost apart from compile time; levers that are not here have UNKNOWN_RISK.
LEVER_RISKS = {
    "enable_backward": "no gradients from then on: a tape or an adjoint launch needs backward code",
    "use_precompiled_headers": None,
}
UNKNOWN_RISK = "may change numerics or speed: ask first"
MODULE_LEVERS = frozenset(lever.name for lever in DEFAULT_LEVERS) - {"use_precompiled_headers"}


@dataclass(frozen=True)
class LedgerRow:
    """What one lever buys. `skipped` and `failed` say why there is no comparison."""

    lever: Lever
    skipped: str | None
    failed: str | None
    comparison: Comparison | None
    risk: str | None
    take: str
    take_back: str


@dataclass(frozen=True)
class Ledger:
    """The JSON of `what-if`: one baseline, and what every lever does to it."""

    schema: str
    schema_version: int
    probe_version: str
    command: tuple[str, ...]
    cwd: str
    samples: int
    environment: Environment
    rows: tuple[LedgerRow, ...]
    warnings: tuple[Notice, ...]


def parse_levers(texts: Iterable[str]) -> tuple[Lever, ...]:
    """Levers of --levers, several to a text; all the known ones without. Raises InputError."""
    items = [item.strip() for text in texts for item in text.split(",")]
    levers = tuple(Lever(*config_assignment(item, "--levers")) for item in items)
    return tuple(dict.fromkeys(levers)) or DEFAULT_LEVERS


def reason_to_skip(lever: Lever, baseline: Report, known: dict[str, str] | None) -> str | None:
    """Why a lever cannot matter to a program, from a complete sample of its baseline; None if it can. `known` are the
    options that the program's Warp has."""
    if known is not None and lever.name not in known:
        return f"Warp {baseline.environment.warp or 'of the command'} has no such option"
    runs = complete_runs(baseline)
    builds = builds_of(runs[0][0]) if runs else []
    if not builds:
        return "the program builds no module"
    processes = runs[0][0].processes
    resolved = [options_of(process, load) for process in processes for load in process.loads if load.is_build]
    values = [options[lever.name] for options in resolved if lever.name in options]
    if values and len(values) == len(builds) and all(shows_value(value, lever.value) for value in values):
        return f"every module has {lever.value} already"
    rule = SKIP_RULES.get(lever.name)
    return rule(lever, runs[0][0], builds) if rule else None


def _skip_backward(lever: Lever, cold: Run, _builds: Sequence[Load]) -> str | None:
    adjoints = any(entry.adjoint for process in cold.processes for entry in process.launches.entries)
    if lever.value == "False" and (adjoints or any(process.tapes for process in cold.processes)):
        return "the program computes gradients: it records a tape or launches adjoints"
    return None


def _skip_unroll(lever: Lever, cold: Run, builds: Sequence[Load]) -> str | None:
    if not all(load.option_set is not None for load in builds) or not lever.value.isdecimal():
        return None
    most = max((kernel.unrolled for process in cold.processes for kernel in process.built_kernels), default=1)
    return f"no kernel repeats a loop body more than {plural(most, 'time')}" if most <= int(lever.value) else None


def _skip_mathdx(lever: Lever, _cold: Run, builds: Sequence[Load]) -> str | None:
    part = lever.name.rpartition("_")[2]
    parts = {"dot": "gemm", "fft": "fft"}  # by how the symbols of linked code start; all others are of the solver
    used = {parts.get(artifact.symbol[:3], "solver") for load in builds for artifact in load.lto}
    return None if part in used else f"no {part} code is linked (link-time optimisation, on CUDA only)"


SKIP_RULES: dict[str, Callable[[Lever, Run, Sequence[Load]], str | None]] = {
    "enable_backward": _skip_backward,
    "max_unroll": _skip_unroll,
    "enable_mathdx_gemm": _skip_mathdx,
    "enable_mathdx_solver": _skip_mathdx,
    "enable_mathdx_fft": _skip_mathdx,
}


def ledger_row(
    lever: Lever, comparison: Comparison | None = None, skipped: str | None = None, failed: str | None = None
) -> LedgerRow:
    """A row with how to take the lever and how to take it back."""
    is_literal = re.fullmatch(r"True|False|None|-?\d+(\.\d+)?", lever.value)
    literal = lever.value if is_literal else json.dumps(lever.value)
    take = f"warp.config.{lever.name} = {literal} right after `import warp`, before anything defines a kernel"
    if lever.name in MODULE_LEVERS:
        take += f'; for one module only: wp.set_module_options({{"{lever.name}": {literal}}}) in it'
    return LedgerRow(
        lever=lever,
        skipped=skipped,
        failed=failed,
        comparison=comparison,
        risk=LEVER_RISKS.get(lever.name, UNKNOWN_RISK),
        take=take,
        take_back="delete that line: the hashes, and what the cache holds of them, are the old ones again",
    )


def render_ledger(ledger: Ledger, style: TextFormat) -> str:
    """The text of `what-if`: the ledger, what was skipped, and how to take what helps; at most 120 lines."""
    tried = [(row, row.comparison) for row in ledger.rows if row.comparison]
    better = [row.lever.text for row, comparison in tried if comparison.verdict is Verdict.IMPROVED]
    unsure = sum(comparison.verdict is Verdict.INCONCLUSIVE for _, comparison in tried)
    asked = f"{plural(len(ledger.rows), 'lever')}, {len(tried)} measured, {plural(ledger.samples, 'sample')} an arm"
    head = f"{_listed(better, 8)} improved the cold start" if better else "none was shown to improve the cold start"
    more = f"; {unsure} inconclusive: take more samples, or a quieter machine" if unsure else ""
    summary = f"{asked}: {head}{more}."
    program = printable(shlex.join(ledger.command), 200)
    if style is TextFormat.MARKDOWN:
        lines = [f"**{markdown_text(summary)}**", "", f"Program: {markdown_text(program)}"]
    else:
        lines = [summary, f"Program: {program}"]
    tables = [
        Table(
            "Ledger (medians in ms, before and after)",
            ("lever", "cold modules", "elapsed", "warm run", "n", "hashes moved", "launches", "output", "verdict"),
            tuple(_ledger_cells(row.lever, comparison) for row, comparison in tried),
        ),
        Table(
            "Not measured",
            ("lever", "why"),
            tuple(
                (row.lever.text, row.skipped or f"failed: {row.failed}") for row in ledger.rows if not row.comparison
            ),
            cell_limit=200,
        ),
        Table(
            "Verdicts",
            ("lever", "why"),
            tuple((row.lever.text, comparison.why) for row, comparison in tried),
            cell_limit=400,
        ),
        _receipts_table([one for _, comparison in tried for one in comparison.receipts]),
        Table(
            "How to take a lever, and take it back",
            ("lever", "what"),
            tuple(
                (row.lever.text if not index else "", line)
                for row, _ in tried
                for index, line in enumerate(_advice(row))
            ),
            cell_limit=240,
        ),
        _warnings_table(ledger.warnings),
    ]
    return bounded_text([*lines, *_table_lines(tables, style)])


def _ledger_cells(lever: Lever, comparison: Comparison) -> tuple[str, ...]:
    topology = comparison.topology.equal if comparison.topology else None
    moved = "-"
    if found := comparison.identities:
        moved = f"{len(found.moved)} of {len((*found.moved, *found.same, *found.unknown))}"
    return (
        lever.text,
        _before_after(comparison, Metric.COLD_MODULE),
        _before_after(comparison, Metric.COMPILE_ELAPSED, Metric.BUILD_SPAN),
        _before_after(comparison, Metric.WARM_WALL),
        f"{comparison.n.baseline}, {comparison.n.candidate}",
        moved,
        TOPOLOGY_STATES[topology],
        comparison.output.state.value if comparison.output else "-",
        comparison.verdict.value,
    )


def _before_after(comparison: Comparison, *metrics: Metric) -> str:
    """The first of the figures that both reports have."""
    delta = next((comparison.deltas[metric] for metric in metrics if metric in comparison.deltas), None)
    return f"{delta.baseline.median:,.0f} to {delta.candidate.median:,.0f}" if delta else "-"


def _advice(row: LedgerRow) -> list[str]:
    risk = [row.risk] if row.risk else []
    return [*risk, f"take: {row.take}", f"take back: {row.take_back}"]


# ---------------------------------------------------------------------------------------------------------------------
# Commands
# ---------------------------------------------------------------------------------------------------------------------


# -- measure --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasureOptions:
    """The options of `measure` after validation."""

    command: tuple[str, ...]
    samples: int
    json: str | None
    label: str | None
    cwd: str
    timeout_s: float | None
    env: dict[str, str]
    inherit_tmpdir: bool
    expect_exit: int
    keep_logs: str | None
    echo: bool
    demo: bool
    set: dict[str, str]
    architectures: tuple[Architecture, ...] = ()
    revision: str | None = None
    shown_cwd: str | None = None  # what stands for `cwd` in the report, where that is a directory of the probe's own
    varied: tuple[Varied, ...] = ()


@dataclass
class Measurement:
    """What has been measured so far; it survives a failure or an interruption."""

    options: MeasureOptions
    environment: Environment
    created: str
    samples: list[Sample]
    gaps: dict[Gap, None]
    notices: dict[Notice, None]
    offline: dict[str, OfflineMeasurement] = dataclasses.field(default_factory=dict)
    stderr_tail: tuple[str, ...] = ()

    def report_options(self) -> Options:
        """The options that a comparison must know; they have the same names here."""
        return Options(**{field.name: getattr(self.options, field.name) for field in dataclasses.fields(Options)})

    def report(self) -> Report:
        """The report of everything that is there."""
        samples = tuple(self.samples)
        first = next((sample.cold for sample in samples if sample.complete and sample.cold is not None), None)
        return Report(
            schema=REPORT_SCHEMA,
            schema_version=SCHEMA_VERSION,
            probe_version=PROBE_VERSION,
            created=self.created,
            command=self.options.command,
            cwd=self.options.shown_cwd or self.options.cwd,
            label=self.options.label,
            options=self.report_options(),
            environment=dataclasses.replace(self.environment, load_average_end=load_average()),
            coverage=coverage_of(first, tuple(self.gaps)),
            samples=samples,
            summary=summarise(samples),
            identities=identity_records(samples),
            findings=findings(samples, tuple(self.gaps)),
            warnings=(*self.notices, *exact_differences(samples)),
            offline={device: block.block() for device, block in self.offline.items()},
        )


def coverage_of(run: Run | None, gaps: tuple[Gap, ...]) -> Coverage:
    """What the recorder saw in the first complete run, and what it could not see in any."""
    recorded = [process for process in run.processes if process.pid] if run is not None else []
    return Coverage(
        processes=len(recorded),
        used_warp=sum(process.warp is not None for process in recorded),
        ended_cleanly=sum(process.end is not ProcessEnd.UNRECORDED for process in recorded),
        gaps=gaps,
    )


def load_average() -> float | None:
    """The one-minute load average, where the system has one."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def cpu_model() -> str | None:
    """The processor's name, from /proc/cpuinfo or the platform."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.lower().startswith(("model name", "cpu model")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or None


def git_state(cwd: str) -> tuple[str | None, bool | None]:
    """The commit of cwd's working tree and whether it has uncommitted changes; (None, None) outside of one."""

    def ask(*words: str) -> str | None:
        try:
            answer = git(cwd, "--no-optional-locks", *words, timeout_s=10)
        except (InputError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip() if answer.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return None, None
    status = ask("status", "--porcelain", "--untracked-files=no")
    return commit, None if status is None else bool(status)


def usable_cores() -> int | None:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count()


def host_environment(cwd: str) -> Environment:
    """What can be told before the command runs."""
    commit, dirty = git_state(cwd)
    return Environment(
        target_python=None,
        warp=None,
        cuda_toolkit=None,
        cuda_driver=None,
        devices=(),
        cpu_model=cpu_model(),
        cores=usable_cores(),
        os=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        load_average_start=load_average(),
        load_average_end=None,
        git_commit=commit,
        git_dirty=dirty,
        variables={name: os.environ[name] for name in REPORTED_VARIABLES if name in os.environ},
    )


class Progress:
    """One plain line a run on stderr; on a terminal the line of the current run is rewritten in place."""

    def __init__(self, samples: int, arm: str = "") -> None:
        self.samples = samples
        self.arm = f"{arm} " if arm else ""
        self.terminal = sys.stderr.isatty()
        self.estimated = False

    def begin(self, index: int, what: str) -> None:
        if self.terminal:
            self.write(f"\r{self.arm}sample {index}/{self.samples} {what}: running ...\x1b[K")

    def end(self, index: int, run: Run) -> None:
        builds = plural(run.builds, "build")
        text = f"{self.arm}sample {index}/{self.samples} {run.kind.value}: {run.wall_ms / 1000:.1f} s, {builds}"
        if not self.estimated and run.kind is RunKind.COLD and not run.exit.timed_out:
            self.estimated = True
            text += f" (all {self.arm}samples: up to {2 * self.samples * run.wall_ms / 1000:.0f} s)"
        self.write_line(text)

    def end_offline(self, index: int, device: str, run: Run) -> None:
        loads = [load for process in run.processes for load in process.loads if load.kind is LoadKind.OFFLINE]
        counts = collections.Counter(load.status.value for load in loads)
        told = ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing compiled"
        self.write_line(
            f"{self.arm}sample {index}/{self.samples} {run.kind.value} {device}: {run.wall_ms / 1000:.1f} s, {told}"
        )

    def write_line(self, text: str) -> None:
        self.write(f"\r{text}\x1b[K\n" if self.terminal else f"{text}\n")

    @staticmethod
    def write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # That nobody reads the progress does not end the measurement.
            discard(sys.stderr)


# -- offline: what the command would build on a CUDA architecture ------------------------------------------------------

OFFLINE_SINCE = (1, 12)  # the first release of Warp that compiles for CUDA without a driver, officially


@dataclass(frozen=True)
class Architecture:
    """A CUDA architecture: the number, and the suffix of architecture-specific code ("a", "f" or none)."""

    number: int
    suffix: str

    @property
    def device(self) -> str:
        return f"sm_{self.number}{self.suffix}"


def architecture_from(text: str) -> Architecture:
    """An architecture as a user writes it: 90, sm_90, 90a. Raises ArgumentTypeError."""
    found = re.fullmatch(r"(?:sm_?)?(\d{2,3})([af]?)", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no CUDA architecture; write it as 90, 90a or sm_90")
    architecture = Architecture(int(found[1]), found[2])
    least = {"a": 90, "f": 100}.get(architecture.suffix, 0)
    if architecture.number < least:
        raise argparse.ArgumentTypeError(f"{text}: the suffix {architecture.suffix} exists from sm_{least} on")
    return architecture


def check_architectures(architectures: Sequence[Architecture], read: ReadRun) -> None:
    """Whether the Warp of the target can compile for all of them. Raises InputError."""
    options = " ".join(f"--cuda-arch {architecture.device}" for architecture in architectures)
    if read.cuda_archs is None:
        raise InputError(f"{options}: no Warp was initialised in the first run, so there is nothing to compile")
    version = read.versions[0] if read.versions else "?"
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OFFLINE_SINCE:
        raise InputError(
            f"{options}: Warp {version} of the target cannot compile for CUDA without a GPU; use Warp 1.12 or newer"
        )
    if not read.cuda_archs:
        raise InputError(
            f"{options}: Warp {version} of the target was built without CUDA; use a build with CUDA, as on PyPI"
        )
    for architecture in architectures:
        if architecture.number not in read.cuda_archs:
            supported = ", ".join(map(str, read.cuda_archs))
            raise InputError(
                f"--cuda-arch {architecture.device}: Warp {version} of the target does not support it; its CUDA toolkit"
                f" {read.toolkit} compiles for {supported}"
            )


@dataclass
class OfflineMeasurement:
    """What has been measured so far for one architecture; the runs of its samples are views on the device."""

    toolkit: str | None = None
    samples: list[Sample] = dataclasses.field(default_factory=list)
    gaps: dict[Gap, None] = dataclasses.field(default_factory=dict)
    notices: dict[Notice, None] = dataclasses.field(default_factory=dict)

    def block(self) -> OfflineBlock:
        """The block of the report."""
        samples = tuple(self.samples)
        counted = tuple(map(counted_sample, samples))
        first = next((sample.cold for sample in samples if sample.complete), None)
        gaps = tuple(self.gaps)
        return OfflineBlock(
            toolkit=self.toolkit,
            coverage=coverage_of(first, gaps),
            samples=samples,
            summary=summarise(counted),
            identities=identity_records(counted),
            findings=findings(counted, gaps),
            warnings=(*self.notices, *exact_differences(counted)),
        )


def on_device(run: Run) -> Run:
    """An offline run as seen from the device: its offline loads and nothing of the CPU; it lasts as long as they do."""
    processes = []
    for process in run.processes:
        loads = tuple(load for load in process.loads if load.kind is LoadKind.OFFLINE)
        processes.append(
            dataclasses.replace(
                process,
                loads=loads,
                phases=None,
                hash_ms=math.fsum(load.hash_ms for load in loads),
                hashings=sum(load.hash_ms > 0 for load in loads),
            )
        )
    spans = [
        (load.start_ms - load.hash_ms, load.end_ms)
        for process in processes
        for load in process.loads
        if load.start_ms is not None and load.end_ms is not None
    ]
    return dataclasses.replace(run, processes=tuple(processes), wall_ms=union_ms(spans))


def _cpu_identities(run: Run) -> list[Identity]:
    return sorted(
        (Identity(load.name, load.hash, load.device, load.block_dim) for load in builds_of(run)),
        key=lambda identity: str(tuple(identity)),
    )


def _cpu_launches(run: Run) -> collections.Counter[tuple[str, str, tuple[int, ...], bool]]:
    """Launches by module, kernel, dim and adjoint flag; not by device, which an offline run has another one for."""
    found: collections.Counter[tuple[str, str, tuple[int, ...], bool]] = collections.Counter()
    for process in run.processes:
        for entry in process.launches.entries:
            kernel = process.launches.kernels[entry.kernel]
            found[kernel.module, kernel.key, entry.dim, entry.adjoint] += entry.count
    return found


class OfflineEstimate(threading.Thread):
    """Watches the records of an offline run, and says after its first module how long all offline runs may take."""

    def __init__(self, records: str, private: str, loads: int, runs: int) -> None:
        super().__init__(daemon=True)
        self.records = records
        self.private = private
        self.loads = loads
        self.runs = runs
        self.over = threading.Event()

    def __enter__(self) -> None:
        if self.runs:
            self.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.runs:
            self.join()

    def run(self) -> None:
        while not self.over.wait(0.5):
            first = self.first_load()
            if first is not None:
                ms = (first["end"] - first["start"]) / 1e6
                least = duration(max(1, self.loads) * ms * self.runs)
                Progress.write(
                    f"the first module took {duration(ms)} for {first['device']}; with {plural(self.loads, 'build')} on"
                    f" the CPU all offline runs may compile for about {least}, more with several block_dims\n"
                )
                return

    def first_load(self) -> dict[str, Any] | None:
        for name in os.listdir(self.records) if os.path.isdir(self.records) else ():
            if name.endswith(".rec"):
                file = read_record_file(os.path.join(self.records, name), Catalog(), [self.private])
                loads = [line for line in file.of("load") if line["kind"] == "offline"] if file is not None else []
                if loads:
                    return loads[0]
        return None


class Measurer:
    """Runs the samples of one `measure`, or of one `arm` of an experiment, and keeps the measurement up to date."""

    def __init__(
        self, options: MeasureOptions, workspace: Workspace, save: Callable[[Report], None], arm: str = ""
    ) -> None:
        self.options = options
        self.arm = f"{arm}, " if arm else ""
        self.workspace = workspace
        self.save = save
        self.base = {**os.environ, **options.env}
        self.base.pop(PROCESS_VARIABLE, None)
        self.progress = Progress(options.samples, arm)
        self.measurement = Measurement(
            options=options,
            environment=host_environment(options.cwd),
            created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            samples=[],
            gaps={},
            notices={},
        )

    def check_warp(self) -> None:
        """Raises UnverifiedError where a Warp was used that the recorder cannot hook."""
        for gap in self.measurement.gaps:
            if gap.reason is GapReason.UNSUPPORTED_WARP:
                raise UnverifiedError(gap.detail)

    def sample(self, index: int) -> None:
        """Take one sample, counted from 1, and save what there is."""
        folder = SampleFolder(self.workspace, str(index))
        sample = Sample(index=index, complete=False, cold=None, warm=None, settle=None)
        self.measurement.samples.append(sample)
        known: list[str] = []
        try:
            for kind in (RunKind.COLD, RunKind.WARM, RunKind.SETTLE):
                if kind is RunKind.SETTLE and not (sample.warm is not None and sample.warm.builds):
                    continue
                run, known, problem = self.run(index, kind, folder, known)
                done: dict[str, Any] = {kind.value: run}
                sample = dataclasses.replace(sample, **done)
                self.measurement.samples[-1] = sample
                if problem is not None:
                    raise problem
            self.measurement.samples[-1] = dataclasses.replace(sample, complete=True)
        finally:
            folder.close()
        self.save(self.measurement.report())

    def run(
        self, index: int, kind: RunKind, folder: SampleFolder, known: list[str]
    ) -> tuple[Run, list[str], ProbeError | None]:
        """One run and its checks; the error, if any, is returned so that the run itself is kept."""
        self.progress.begin(index, kind.value)
        checked, read, found, problem = self.execute_and_check(index, kind, folder, known)
        self.note(checked, read)
        run = checked.run
        self.progress.end(index, run)
        if problem is None and kind is RunKind.COLD and index == 1 and self.options.architectures:
            check_architectures(self.options.architectures, read)
        return run, found, problem

    def execute_and_check(
        self,
        index: int,
        kind: RunKind,
        folder: SampleFolder,
        known: list[str],
        architecture: Architecture | None = None,
    ) -> tuple[Checked, ReadRun, list[str], ProbeError | None]:
        """Run the command with the recorder, and hold its records against its output and the caches."""
        folder.make()
        inject, records = folder.inject(kind, self.options.set, architecture)
        environment = folder.environment(self.base, self.options.inherit_tmpdir)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [inject, environment.get("PYTHONPATH")]))
        if kind in (RunKind.OFFLINE, RunKind.OFFLINE_WARM):
            environment["CUDA_VISIBLE_DEVICES"] = ""  # a prediction, also where there is a device
        before = user_cache_listing(self.base)
        executed = execute(
            with_injection(self.command(), inject),
            environment,
            self.options.cwd,
            self.options,
            self.workspace.root,
            f"{self.progress.arm.strip()}-{index}-{kind.value}".lstrip("-"),
        )
        after = user_cache_listing(self.base)
        tree = (self.options.cwd,) if self.options.revision is not None else ()
        read = read_records(records, executed.origin, (*tree, self.workspace.root))
        if kind is RunKind.COLD:
            self.cold_read = read
        else:
            read = explain_across_runs(read, self.cold_read)
        folder.between_runs()
        found = folder.module_directories()
        checked = check_run(kind, executed, read, self.options.command, known, found)
        problem = self.refused(read) or self.problem(index, kind, checked, executed, before != after)
        return checked, read, found, problem

    def offline_sample(self, index: int, architecture: Architecture) -> None:
        """One offline run from empty caches and one from those it filled; both are kept as views on the device, and
        saved."""
        device = architecture.device
        block = self.measurement.offline.setdefault(device, OfflineMeasurement())
        folder = SampleFolder(self.workspace, f"{index}-{device}")
        sample = Sample(index=index, complete=False, cold=None, warm=None, settle=None)
        block.samples.append(sample)
        known: list[str] = []
        try:
            for name, kind in (("cold", RunKind.OFFLINE), ("warm", RunKind.OFFLINE_WARM)):
                self.progress.begin(index, f"{kind.value} {device}")
                runs = self.options.samples * len(self.options.architectures) if kind is RunKind.OFFLINE else 0
                with OfflineEstimate(folder.records(kind), self.workspace.root, self.expected_loads(), runs):
                    checked, read, known, problem = self.execute_and_check(index, kind, folder, known, architecture)
                block.toolkit = read.toolkit
                block.gaps.update(dict.fromkeys(checked.gaps))
                run = checked.run
                block.notices.update(dict.fromkeys((*checked.notices, *self.offline_differences(index, run))))
                done: dict[str, Any] = {name: on_device(run)}
                sample = block.samples[-1] = dataclasses.replace(sample, **done)
                self.progress.end_offline(index, device, run)
                if problem is not None:
                    raise problem
            block.samples[-1] = dataclasses.replace(sample, complete=True)
        finally:
            folder.close()
        self.save(self.measurement.report())

    def expected_loads(self) -> int:
        """How many modules the cold run of the first sample built."""
        cold = self.measurement.samples[0].cold
        return cold.builds if cold is not None else 0

    def offline_differences(self, index: int, run: Run) -> list[Notice]:
        """Whether the command did the same on the CPU as in the normal cold run of this sample."""
        normal = self.measurement.samples[index - 1].cold
        if run.kind is not RunKind.OFFLINE or normal is None or run.exit != normal.exit:
            return []
        differs = [
            what
            for what, figure in (("modules built", _cpu_identities), ("launches", _cpu_launches))
            if figure(run) != figure(normal)
        ]
        text = (
            f"sample {index}: the offline run differs from the cold run on the CPU in the {' and the '.join(differs)}"
        )
        return [Notice("offline-run-differs", text)] if differs else []

    def command(self) -> list[str]:
        if not self.options.demo:
            return list(self.options.command)
        path = os.path.join(self.workspace.root, DEMO_NAME)
        write_file(path, DEMO_PROGRAM.encode())
        return [sys.executable, path]

    def note(self, checked: Checked, read: ReadRun) -> None:
        """Add what a run brought to light about coverage, warnings and the environment."""
        self.measurement.gaps.update(dict.fromkeys(checked.gaps))
        self.measurement.notices.update(dict.fromkeys(checked.notices))
        self.note_options(read)
        self.measurement.notices.update(
            dict.fromkeys(newer_notice(version) for version in filter(is_newer, read.versions))
        )
        environment = self.measurement.environment
        if environment.target_python is None and read.processes:
            self.measurement.environment = dataclasses.replace(
                environment,
                target_python=read.processes[0].python,
                warp=", ".join(read.versions) or None,
                cuda_toolkit=read.toolkit,
                cuda_driver=read.driver,
                devices=read.devices,
            )

    def refused(self, read: ReadRun) -> ProbeError | None:
        """Why the values of --set did not reach Warp, if they could not."""
        if not read.options_refused:
            return None
        text = f"{read.options_refused[0]} (Warp {', '.join(read.versions) or 'of the target'})"
        self.measurement.notices[Notice("option-not-set", text)] = None
        return InputError(f"{text}; nothing was measured with it")

    def note_options(self, read: ReadRun) -> None:
        """Warn where a value of --set did not stay, or never came into effect."""
        events = [event for process in read.processes for event in process.config_events]
        for event in events:
            if event.name in self.options.set:
                given = f"--set {event.name}={self.options.set[event.name]}"
                text = f"{given}: the program assigned {_assigned_text(event)}; that wins from there on"
                self.measurement.notices[Notice("set-overridden", text)] = None
        if self.options.set and not read.options_set and not read.options_refused:
            text = "--set had no effect: no recorded process imported a Warp that the recorder can hook"
            self.measurement.notices[Notice("set-without-effect", text)] = None

    def problem(
        self, index: int, kind: RunKind, checked: Checked, executed: Executed, user_caches_changed: bool
    ) -> ProbeError | None:
        """Why the sample cannot go on, if so."""
        where = f"{self.arm}sample {index}, {kind.value} run"
        failure = run_failure(checked.run, self.measurement.report_options())
        if failure is not None:
            self.measurement.stderr_tail = tuple(executed.stderr.last_lines(15))
            if checked.run.exit.timed_out:
                return TimedOutError(f"{where}: the command {failure}")
            hint = "; if the program means it, give --expect-exit" if checked.run.exit.code is not None else ""
            return CommandFailedError(f"{where}: the command {failure}{hint}")
        if lost := executed.stdout.problem or executed.stderr.problem:
            return InputError(f"{where}: {lost}; free some space or give another folder")
        if user_caches_changed:
            return NotColdError(
                f"{where}: the user's own kernel or driver cache changed meanwhile, so the run was not isolated;"
                " see the coverage gaps, or keep other Warp programs from running at the same time"
            )
        if checked.not_cold:
            return NotColdError(
                f"{where}: {checked.not_cold[0]} came from a cache that this run had not filled"
                f" ({len(checked.not_cold)} loads in all), so the run was not cold"
            )
        return None


DEMO_NAME = "warp_compile_probe_demo.py"
DEMO_PROGRAM = '''\
"""A small Warp program with one avoidable rebuild: `late` is defined after the module was first loaded."""

import warp as wp


@wp.kernel
def early(values: wp.array(dtype=float)):
    values[wp.tid()] = 1.0


def main():
    values = wp.zeros(8, dtype=float, device="cpu")
    wp.launch(early, dim=8, inputs=[values], device="cpu")

    @wp.kernel
    def late(values: wp.array(dtype=float)):
        values[wp.tid()] += 1.0

    wp.launch(late, dim=8, inputs=[values], device="cpu")
    print(values.numpy())


main()
'''


def file_target(option: str, path: str | None, render: Callable[[Report], str]) -> Callable[[Report], None]:
    """Check that the file of an option can be written, before anything is measured; returns the function that writes
    what `render` makes of a report."""
    if path is None:
        return lambda _report: None
    folder = os.path.dirname(os.path.abspath(path))
    refuse_planted_link(path)
    if os.path.isdir(path):
        raise InputError(f"{option} {path}: is a directory; give a file name")
    try:
        descriptor, probe = tempfile.mkstemp(prefix=".wcp-", dir=folder)
        os.close(descriptor)
        os.unlink(probe)
    except OSError as error:
        raise InputError(f"{option} {path}: cannot write there: {error.strerror}; give a writable path") from None

    def save(report: Report) -> None:
        write_document(path, render(report))

    return save


def trace_target(path: str | None, saved_to: str | None) -> Callable[[Report], None]:
    """As `file_target`, for --trace; `saved_to` is the file of --json."""
    if path == "-":
        raise InputError("--trace -: give a file name; report FILE --format trace writes a trace to standard output")
    if path is not None and saved_to not in (None, "-") and os.path.realpath(path) == os.path.realpath(saved_to):
        raise InputError(f"--trace {path}: is the file of --json; give another name")
    # The command may change or delete the directory that relative paths start from.
    return file_target("--trace", None if path is None else os.path.abspath(path), render_trace)


def resolve_command(options: MeasureOptions) -> None:
    """Check that the command can be started. Raises InputError."""
    name = options.command[0]
    search = options.env.get("PATH", os.environ.get("PATH"))
    if os.sep in name:
        path = os.path.join(options.cwd, name)
        if not os.path.exists(path):
            raise InputError(f"{name}: no such file; give the command after --, as you would type it in {options.cwd}")
        if os.path.isdir(path) or not os.access(path, os.X_OK):
            raise InputError(f"{name}: is not executable; for a Python program write: -- python {name}")
    elif shutil.which(name, path=search) is None:
        raise InputError(f"{name}: command not found; check its name and PATH")


def assignment(option: str, item: str) -> tuple[str, str]:
    """NAME=VALUE of an option. Raises InputError."""
    name, separator, value = item.partition("=")
    if not separator or not name:
        raise InputError(f"{option} {item}: expected NAME=VALUE")
    return name, value


def variable_assignment(item: str, option: str = "--env") -> tuple[str, str]:
    """NAME=VALUE of --env. Raises InputError."""
    name, value = assignment(option, item)
    if name in PRIVATE_VARIABLES:
        raise InputError(f"{option} {name}: the probe sets this variable itself, to a private path for each sample")
    return name, value


def config_assignment(item: str, option: str = "--set") -> tuple[str, str]:
    """NAME=VALUE of --set. Raises InputError."""
    name, value = assignment(option, item)
    name = name.removeprefix("warp.config.")
    if not name.isidentifier() or name.startswith("_"):
        raise InputError(f"{option} {item}: expected a name of warp.config, for example enable_backward=False")
    if name in ("kernel_cache_dir", "version"):
        raise InputError(f"{option} {name}: the probe measures with a private cache and the Warp that is there")
    return name, value


FIND_WARP = "import importlib.util as u; s = u.find_spec('warp'); print(s.submodule_search_locations[0] if s else '')"


def target_config(options: MeasureOptions) -> dict[str, str] | None:
    """Names in the configuration of the command's Warp, with their annotations as text, from its source; None where
    that cannot be told before the command runs."""
    words = [sys.executable] if options.demo else list(options.command)
    if os.path.basename(words[0]) == "env":
        words = list(itertools.dropwhile(lambda word: "=" in word, words[1:])) or words
    if not is_python(words[0]):
        return None
    try:
        asked = subprocess.run(
            [words[0], "-c", FIND_WARP],
            cwd=options.cwd,
            env={**os.environ, **options.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        folder = asked.stdout.decode("utf-8", "replace").strip()
        for path in (Path(folder) / "config.py", Path(folder) / "_src" / "config.py"):
            if folder and path.is_file():
                found = annotated_names(path.read_text(encoding="utf-8"))
                if "enable_backward" in found:
                    return found
    except (OSError, ValueError, SyntaxError, subprocess.TimeoutExpired):
        pass  # the run itself will tell
    return None


def annotated_names(source: str) -> dict[str, str]:
    """The names that a module's source assigns with an annotation, which is given as text."""
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def check_set(options: MeasureOptions, option: str = "--set") -> None:
    """Check names and values of --set as far as it can be told before the run. Raises InputError."""
    known = target_config(options) if options.set else None
    if known is None:
        return
    for name, text in options.set.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = (
                f"did you mean {close[0]}?" if close else "its names are those of warp.config in Warp's documentation"
            )
            raise InputError(f"{option} {name}: the command's Warp has no such option; {hint}")
        kinds = option_kinds(known[name])
        try:
            if kinds:
                option_value(kinds, {}, text)
        except ValueError as error:
            raise InputError(f"{option} {name}={text}: {error}") from None


def measure_options(arguments: argparse.Namespace) -> MeasureOptions:
    """Validate the options of `measure`. Raises InputError."""
    options = common_options(arguments)
    if not options.demo:
        resolve_command(options)
    check_set(options)
    return options


def common_options(arguments: argparse.Namespace) -> MeasureOptions:
    """Validate what can be told of the options before it is known where the command runs. Raises InputError."""
    command = list(arguments.command)
    if command and command[0] == "--":
        command = command[1:]
    if arguments.demo and command:
        raise InputError("--demo brings its own program: leave out the command, or leave out --demo")
    if arguments.demo and importlib.util.find_spec("warp") is None:
        raise InputError(f"--demo needs Warp in {sys.executable}: pip install warp-lang numpy")
    if not arguments.demo and not command:
        raise InputError("no command: write it after --, for example: measure -- python program.py")
    try:
        cwd = os.path.abspath(arguments.cwd or ".")
    except FileNotFoundError:
        raise InputError("the current directory no longer exists: change to another one") from None
    if not os.path.isdir(cwd):
        raise InputError(f"--cwd {arguments.cwd}: no such directory")
    if arguments.keep_logs:
        try:
            os.makedirs(arguments.keep_logs, exist_ok=True)
        except OSError as error:
            raise InputError(f"--keep-logs {arguments.keep_logs}: {error.strerror}") from None
    architectures = tuple(dict.fromkeys(arguments.cuda_arch))
    if arguments.on is not None and arguments.on not in architectures:
        raise InputError(f"--on {arguments.on.device}: add --cuda-arch {arguments.on.device} to measure it")
    return MeasureOptions(
        command=("python", DEMO_NAME) if arguments.demo else tuple(command),
        samples=arguments.samples,
        # The command may change or delete the directory that relative paths start from.
        json=arguments.json if arguments.json in (None, "-") else os.path.abspath(arguments.json),
        label=arguments.label,
        cwd=cwd,
        timeout_s=arguments.timeout,
        env=dict(map(variable_assignment, arguments.env)),
        inherit_tmpdir=arguments.inherit_tmpdir,
        expect_exit=arguments.expect_exit,
        keep_logs=os.path.abspath(arguments.keep_logs) if arguments.keep_logs else None,
        echo=arguments.echo,
        demo=arguments.demo,
        set=dict(map(config_assignment, arguments.set)),
        architectures=architectures,
    )


def command_measure(arguments: argparse.Namespace) -> ExitCode:
    """Measure, save after each sample, print; whatever ended it early is raised after that."""
    options = measure_options(arguments)
    gates = measure_gates(arguments)
    save = file_target("--json", None if options.json == "-" else options.json, json_document)
    save_trace = trace_target(arguments.trace, options.json)
    measurer = None
    violations: tuple[Violation, ...] = ()
    try:
        with isolated_workspace() as workspace:
            measurer = Measurer(options, workspace, save)
            interleave([measurer], options)
    finally:
        if measurer is not None:
            report = measurer.measurement.report()
            if arguments.on is not None and arguments.on.device in report.offline:
                judged = offline_report(report, arguments.on.device, "the report")
            else:
                judged = report
            violations = gate_violations(judged, gates)
            with contextlib.ExitStack() as written:  # a trace that cannot be written keeps nothing else back
                written.callback(save_trace, report)
                publish(measurer.measurement, report, save, TextFormat(arguments.format), violations)
    return winning_exit_code(gate_codes(violations, undecided_gates(judged, gates)))


@contextlib.contextmanager
def isolated_workspace() -> Iterator[Workspace]:
    """A private directory to measure in. On every way out what was started is ended, and the directory is removed."""
    become_subreaper()
    workspace = Workspace()
    try:
        try:
            workspace.prepare()
            yield workspace
        finally:
            SIGNALS.deaf = True
    finally:
        end_descendants()
        workspace.remove()


def measure_gates(arguments: argparse.Namespace) -> Gates:
    """The limits that were asked for. Raises InputError for a finding that does not exist."""
    asked = {
        Gate.BUILDS: arguments.max_builds,
        Gate.REBUILDS: arguments.max_rebuilds,
        Gate.VARIANTS: arguments.max_variants,
        Gate.WARM_BUILDS: arguments.max_warm_builds,
    }
    limits = {gate: limit for gate, limit in asked.items() if limit is not None}
    return Gates(limits, parse_fail_on(arguments.fail_on))


def gate_codes(violations: Sequence[Violation], undecided: str | None) -> list[ExitCode]:
    """The exit codes that the gates ask for; why is said on stderr."""
    for violation in violations:
        evidence = "".join(f"\n    {printable(line, 300)}" for line in violation.evidence)
        complain(printable(f"{violation.gate}: {violation.found}", 300) + evidence)
    if undecided:
        complain(printable(undecided, 400))
    return [ExitCode.GATE_EXCEEDED] * bool(violations) + [ExitCode.EVIDENCE_MISSING] * bool(undecided)


def publish(
    measurement: Measurement,
    report: Report,
    save: Callable[[Report], None],
    style: TextFormat,
    violations: Sequence[Violation],
) -> None:
    """The result on stdout: text, or the JSON document for `--json -`. A file that cannot be written does not keep the
    text back."""
    saved_to = measurement.options.json
    try:
        save(report)
    finally:
        if saved_to == "-":
            text = json_document(report)
        else:
            text = report_text(report, style, saved_to, violations, measurement.stderr_tail)
        write_stdout(text)


def json_document(result: Report | Comparison | Ledger | LogReport) -> str:
    """A result as JSON."""
    return json.dumps(to_json(result), indent=1, allow_nan=False) + "\n"


def write_result(result: Comparison | Ledger | LogReport, target: str | None, render: Callable[[], str]) -> None:
    """JSON to the file of --json, then the text to stdout; for `--json -` only JSON, and that to stdout."""
    if target not in (None, "-"):
        write_document(target, json_document(result))
    write_stdout(json_document(result) if target == "-" else render())


def report_text(
    report: Report,
    style: TextFormat,
    saved_to: str | None,
    violations: Sequence[Violation] = (),
    stderr_tail: Sequence[str] = (),
) -> str:
    """A report for readers; the arguments are those of the renderers."""
    if style is TextFormat.MARKDOWN:
        return render_markdown(report, violations, stderr_tail)
    if style is TextFormat.GITHUB:
        plain = render_report(report, stderr_tail=stderr_tail, saved_to=saved_to).splitlines()
        return render_annotations(report_annotations(report, violations), plain, current_directory())
    return render_report(report, stderr_tail=stderr_tail, saved_to=saved_to, violations=violations)


def current_directory() -> str:
    """Where the probe runs; nothing where that directory is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def write_stdout(text: str) -> None:
    """Print the result. Raises InputError on a full disk; a reader that has gone (`| head`) is none of our business."""
    try:
        print(text, end="" if text.endswith("\n") else "\n", flush=True)
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        raise InputError(f"cannot write the result to standard output: {error.strerror}; use --json FILE") from None


def discard(stream: typing.TextIO) -> None:
    """Drop what is buffered for a standard stream that takes no more, or Python would try again at exit."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def complain(text: str) -> None:
    """What went wrong, on standard error, if anybody reads it."""
    try:
        print("\n".join(map(printable, f"warp-compile-probe: {text}".split("\n"))), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


# -- parse ----------------------------------------------------------------------------------------------------------

_READ_BYTES = 1 << 20


def command_parse(args: argparse.Namespace) -> ExitCode:
    """`parse LOG... [--json FILE|-]`. Raises InputError for what cannot be read or written."""
    logs: list[str] = args.logs
    target: str | None = args.json
    if logs.count("-") > 1:
        raise InputError("the log '-' came more than once: standard input can be read only once, name it once")
    if target not in (None, "-"):
        refuse_overwriting(target, [name for name in logs if name != "-"])
    report = parse_logs(logs)
    write_result(report, target, lambda: render_log_report(report))
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
    """The bytes of a log, in UTF-8 also where it is UTF-16 with a byte order mark (as PowerShell 5 redirects)."""
    try:
        with _open_log(name) as stream:
            chunk = stream.read(_READ_BYTES)
            wide = chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
            while chunk:
                yield decoder.decode(chunk).encode("utf-8") if wide else chunk
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


# -- report ---------------------------------------------------------------------------------------------------------

MAX_REPORT_BYTES = 1 << 30


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


def command_report(args: argparse.Namespace) -> ExitCode:
    """`report FILE`: a saved report in the form that was asked for. Raises InputError for what cannot be read or
    written."""
    path: str = args.report
    target: str | None = args.output
    if target not in (None, "-"):
        refuse_overwriting(target, (path,), "--output")
    report, style = load_report(path), ReportFormat(args.format)
    written = {
        ReportFormat.JSON: json_document,
        ReportFormat.HTML: render_html,
        ReportFormat.TRACE: render_trace,
    }.get(style)
    text = written(report) if written else report_text(report, TextFormat(style.value), path)
    if target in (None, "-"):
        write_stdout(text)
    else:
        write_document(target, text)
    return ExitCode.OK


def add_report_parser(commands: Any) -> None:
    """Add `report` to the commands; the parsed arguments name `command_report` as `run`."""
    parser = commands.add_parser(
        "report",
        help="show a saved report as text, page or trace",
        description="Write a report that measure saved in another form: text or markdown, json (the document, checked),"
        " html (a page of its own that loads nothing), trace (Chrome trace events for ui.perfetto.dev), github"
        " (annotations of a workflow).",
    )
    parser.add_argument("report", metavar="FILE", help="the JSON file of measure")
    add_format_option(parser, list(ReportFormat))
    parser.add_argument("--output", metavar="FILE", help="write it there instead of to standard output")
    parser.set_defaults(run=command_report)


# -- compare --------------------------------------------------------------------------------------------------------


def add_compare_parser(commands: Any) -> None:
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
    add_verdict_options(parser)
    parser.set_defaults(run=command_compare)


def add_verdict_options(parser: argparse.ArgumentParser) -> None:
    """Add what `compare` and `ab` share: how the verdict is written, and what it must be."""
    add_format_option(parser, list(TextFormat))
    parser.add_argument(
        "--require",
        metavar="VERDICT",
        choices=[verdict.value for verdict in Verdict],
        help="exit with 5 instead of 0 unless the verdict is this one, for example improved",
    )
    text = "compare although this differs: %(choices)s; with host, times are not judged"
    fields = [field.value for field in ComparableField]
    add_list_option(parser, "--allow-different", "FIELD", text, choices=fields)
    parser.add_argument(
        "--on",
        type=architecture_from,
        metavar="ARCH",
        help="judge what --cuda-arch says of this CUDA architecture in both reports, for example sm_90",
    )
    parser.add_argument(
        "--max-regression",
        metavar="PCT",
        type=percentage,
        help="allow a regression of the deciding time up to PCT percent: exit with 0 up to there and with 6 beyond,"
        " instead of 1; with 5 where the samples cannot tell",
    )


def add_list_option(parser: argparse.ArgumentParser, name: str, metavar: str, text: str, **more: Any) -> None:
    """Add an option that may come several times."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=f"{text}; repeatable", **more)


def add_format_option(parser: argparse.ArgumentParser, styles: Sequence[TextFormat | ReportFormat]) -> None:
    """Add --format with these choices."""
    parser.add_argument(
        "--format",
        choices=[style.value for style in styles],
        default=TextFormat.TEXT.value,
        help="how the result is written: %(choices)s (default: %(default)s)",
    )


def command_compare(args: argparse.Namespace) -> ExitCode:
    """Compare two reports, print what was found, and say in the exit code what it means."""
    if args.json not in (None, "-"):
        refuse_overwriting(args.json, (args.baseline, args.candidate))
    baseline, candidate = load_report(args.baseline), load_report(args.candidate)
    if args.on is not None:
        baseline = offline_report(baseline, args.on.device, printable(args.baseline, 200))
        candidate = offline_report(candidate, args.on.device, printable(args.candidate, 200))
    return answer(judge(baseline, candidate, args), args)


def judge(baseline: Report, candidate: Report, args: argparse.Namespace) -> Comparison:
    """The comparison that `compare` and `ab` answer with; with --on both reports are views on that device."""
    allowed = frozenset(ComparableField(field) for field in args.allow_different)
    comparison = compare_reports(baseline, candidate, allowed)
    return dataclasses.replace(comparison, on=args.on.device if args.on is not None else None)


def answer(comparison: Comparison, args: argparse.Namespace) -> ExitCode:
    """Write a comparison as the options say, and say in the exit code what it means."""
    limit: float | None = args.max_regression
    violation = None if limit is None else regression_violation(comparison, limit)
    violations = (violation,) if violation else ()
    style, here = TextFormat(args.format), current_directory()
    write_result(comparison, args.json, lambda: render_comparison(comparison, style, violations, here))
    code = comparison.verdict.exit_code
    if code is ExitCode.REGRESSION and (limit is not None or comparison.null_test):
        code = ExitCode.OK  # the gate decides, or the option asked how often this verdict is wrong
    undecided = None if limit is None else undecided_regression(comparison, limit)
    codes = [code, *gate_codes(violations, undecided)]
    if winning_exit_code(codes) is ExitCode.OK and args.require not in (None, comparison.verdict.value):
        complain(f"--require {args.require} is not met: the verdict is {comparison.verdict.value}")
        codes.append(ExitCode.EVIDENCE_MISSING)
    return winning_exit_code(codes)


def refuse_overwriting(path: str, inputs: Sequence[str], option: str = "--json") -> None:
    """Raises InputError if the file to write is one of those to read."""
    target = Path(path)
    for name in inputs:
        with contextlib.suppress(OSError, ValueError):
            if target.samefile(name):
                raise InputError(f"{option} {printable(path, 200)} would overwrite an input; name another file")


def write_document(path: str, text: str) -> None:
    """Write a file whole or not at all; a pipe or device is written to directly. Raises InputError if it cannot be."""
    refuse_planted_link(path)
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".wcp-{os.urandom(5).hex()}.part")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise InputError(f"{printable(path, 200)}: cannot be written ({cause}); name another file") from None


def refuse_planted_link(path: str) -> None:
    """Raises InputError for a link that another user put where anybody may (a sticky folder such as /tmp). Linux does
    not follow those either, where a file is opened by such a name; here links are resolved first."""
    with contextlib.suppress(OSError, ValueError):
        while os.path.islink(path):
            folder = os.path.dirname(os.path.abspath(path))
            shared, owner = os.stat(folder), os.lstat(path).st_uid
            if shared.st_mode & stat.S_ISVTX and owner not in (os.geteuid(), shared.st_uid):
                raise InputError(
                    f"{printable(path, 200)}: is a link that another user left in a shared folder; name another file"
                )
            path = os.path.join(folder, os.readlink(path))


# -- ab -------------------------------------------------------------------------------------------------------------


def arm_options(arguments: argparse.Namespace) -> tuple[ArmOptions, ArmOptions]:
    """The two arms of `ab`. Raises InputError where they do not differ, or name a directory that is none."""
    arms = []
    for name in ARM_NAMES:
        given = {part: getattr(arguments, f"{name}_{part}") for part in ("tree", "ref", "env", "set")}
        directory, revision = given["tree"], given["ref"]
        if directory is not None and revision is not None:
            raise InputError(f"--{name} and --{name}-ref both came: the {name} is a directory or a revision, not both")
        if directory is not None and not os.path.isdir(directory):
            raise InputError(f"--{name} {directory}: no such directory")
        env = dict(variable_assignment(item, f"--{name}-env") for item in given["env"])
        options = dict(config_assignment(item, f"--{name}-set") for item in given["set"])
        arms.append(ArmOptions(name, None if directory is None else os.path.abspath(directory), revision, env, options))
    baseline, candidate = arms
    told = [arm.name for arm in arms if arm != ArmOptions(arm.name, None, None, {}, {})]
    if arguments.null and told:
        raise InputError(f"--null measures one tree as both arms: leave out the options of the {told[0]}")
    if not arguments.null and dataclasses.replace(baseline, name=candidate.name) == candidate:
        raise InputError(
            "both arms are the same: give --baseline DIR or --baseline-ref REV, or --candidate-set or --candidate-env"
            " NAME=VALUE, or --null to learn how often the verdict would be wrong"
        )
    return baseline, candidate


def what_varies(baseline: ArmOptions, candidate: ArmOptions) -> tuple[Varied, ...]:
    """In what two arms differ."""
    differs = {
        Varied.TREE: (baseline.directory, baseline.revision) != (candidate.directory, candidate.revision),
        Varied.ENV: baseline.env != candidate.env,
        Varied.SET: baseline.set != candidate.set,
    }
    return tuple(varied for varied in differs if differs[varied])


def prepare_arm(
    arm: ArmOptions, shared: MeasureOptions, varied: tuple[Varied, ...], revision: Revision | None, workspace: Workspace
) -> MeasureOptions:
    """The options with which one arm is measured; a revision is checked out for it. Raises InputError."""
    cwd = check_out(revision, workspace, arm.name) if revision else arm.directory or shared.cwd
    options = dataclasses.replace(
        shared,
        json=None,
        label=arm.name,
        cwd=cwd,
        shown_cwd=revision.directory if revision else None,
        revision=revision.name if revision else None,
        env={**shared.env, **arm.env},
        set={**shared.set, **arm.set},
        varied=varied,
    )
    try:
        resolve_command(options)
    except InputError as error:
        raise InputError(f"{arm.name}: {error}") from None
    check_set(options, f"--{arm.name}-set" if arm.set else "--set")
    return options


def json_targets(folder: str | None, names: Sequence[str]) -> list[Callable[[Report], None]]:
    """A function for each arm that writes its report to the folder of --json-dir. Raises InputError."""
    if folder is None:
        return [lambda _report: None for _ in names]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(f"--json-dir {folder}: {error.strerror}; give a writable directory") from None
    return [
        file_target("--json-dir", os.path.join(os.path.abspath(folder), f"{name}.json"), json_document)
        for name in names
    ]


def command_ab(arguments: argparse.Namespace) -> ExitCode:
    """Measure both arms interleaved, then judge them as `compare` does."""
    arms = arm_options(arguments)
    shared = common_options(arguments)
    revisions = [
        find_revision(f"--{arm.name}-ref", arm.revision, shared.cwd) if arm.revision is not None else None
        for arm in arms
    ]
    saves = json_targets(arguments.json_dir, ARM_NAMES)
    varied = what_varies(*arms)
    measurers: list[Measurer] = []
    with isolated_workspace() as workspace, failure_shown(measurers):
        for arm, revision, save in zip(arms, revisions, saves, strict=True):
            options = prepare_arm(arm, shared, varied, revision, workspace)
            measurers.append(Measurer(options, workspace, save, arm.name))
            if revision and os.path.exists(os.path.join(workspace.root, f"tree-{arm.name}", ".gitmodules")):
                text = f"the submodules of {revision.name} were not checked out"
                measurers[-1].measurement.notices[Notice("submodules-left-out", text)] = None
        interleave(measurers, shared)
    baseline, candidate = (measurer.measurement.report() for measurer in measurers)
    if arguments.on is not None:
        baseline, candidate = (
            offline_report(one, arguments.on.device, f"the {one.label}") for one in (baseline, candidate)
        )
    comparison = judge(baseline, candidate, arguments)
    comparison = dataclasses.replace(
        comparison,
        warnings=(*comparison.warnings, *tree_warnings(baseline, candidate)),
        null_test=null_test(baseline, candidate) if arguments.null else None,
    )
    if arguments.json_dir is not None:
        path = os.path.join(os.path.abspath(arguments.json_dir), "comparison.json")
        write_document(path, json_document(comparison))
    return answer(comparison, arguments)


@contextlib.contextmanager
def failure_shown(measurers: Sequence[Measurer]) -> Iterator[None]:
    """Where an arm's command fails, show the last lines of its standard error on ours."""
    try:
        yield
    except ProbeError:
        tail = next((one.measurement.stderr_tail for one in measurers if one.measurement.stderr_tail), ())
        if tail:
            complain(
                "\n".join(["the last lines that the command wrote to stderr:", *(f"  | {line[:300]}" for line in tail)])
            )
        raise


def add_ab_parser(commands: Any) -> None:
    """Add `ab` to the commands; the parsed arguments name `command_ab` as `run`."""
    parser = commands.add_parser(
        "ab",
        help="measure two trees, revisions or options interleaved, and judge",
        description="Run COMMAND in two arms, their samples interleaved A B B A, and judge the candidate against the"
        " baseline as `compare` does. An arm is the current directory unless told otherwise.",
        epilog="example: warp_compile_probe.py ab --baseline-ref main -- python -m my_app --steps 3",
        allow_abbrev=False,
    )
    for name in ARM_NAMES:
        parser.add_argument(f"--{name}", dest=f"{name}_tree", metavar="DIR", help=f"run the {name} in DIR")
        parser.add_argument(f"--{name}-ref", metavar="REV", help=f"run the {name} in a temporary checkout of REV (git)")
        add_list_option(parser, f"--{name}-env", "NAME=VALUE", f"set a variable for the {name} only")
        add_list_option(parser, f"--{name}-set", "NAME=VALUE", f"set warp.config.NAME for the {name} only")
    parser.add_argument(
        "--null",
        action="store_true",
        help="run one tree as both arms: how often the verdict would be wrong, and how many samples 5 %% would need",
    )
    parser.add_argument("--json", metavar="FILE", help="write the comparison as JSON; - for standard output, no text")
    parser.add_argument("--json-dir", metavar="DIR", help="write both reports and the comparison there")
    add_run_options(parser)
    add_architecture_option(parser)
    add_verdict_options(parser)
    parser.set_defaults(run=command_ab, cwd=None, demo=False, label=None)


# -- what-if --------------------------------------------------------------------------------------------------------


def command_what_if(arguments: argparse.Namespace) -> ExitCode:
    """Measure a baseline and an arm for each lever that can matter, interleaved; print the ledger."""
    shared = dataclasses.replace(measure_options(arguments), json=None, varied=(Varied.SET,))
    levers = [lever for lever in parse_levers(arguments.levers) if shared.set.get(lever.name) != lever.value]
    if not levers:
        raise InputError("every lever is set already: leave out --set, or name others with --levers")
    known = target_config(shared)
    (save,) = json_targets(arguments.json_dir, ["baseline"])
    skipped: dict[Lever, str] = {}
    failed: dict[Lever, str] = {}
    arms: dict[Lever, Measurer] = {}
    with isolated_workspace() as workspace:
        baseline = Measurer(dataclasses.replace(shared, label="baseline"), workspace, save, "baseline")
        with failure_shown([baseline]):
            baseline.sample(1)
            baseline.check_warp()
        first = baseline.measurement.report()
        for lever in levers:
            reason = reason_to_skip(lever, first, known)
            if reason is not None:
                skipped[lever] = reason
                continue
            options = dataclasses.replace(shared, label=lever.text, set={**shared.set, lever.name: lever.value})
            (save,) = json_targets(arguments.json_dir, [re.sub(r"[^\w=.-]", "_", lever.text)])
            arms[lever] = Measurer(options, workspace, save, lever.text)
        take_rounds(baseline, arms, failed, shared.samples)
    report = baseline.measurement.report()
    rows = []
    for lever in levers:
        done = lever in arms and lever not in failed
        comparison = compare_reports(report, arms[lever].measurement.report()) if done else None
        rows.append(ledger_row(lever, comparison, skipped.get(lever), failed.get(lever)))
    ledger = Ledger(
        LEDGER_SCHEMA,
        SCHEMA_VERSION,
        PROBE_VERSION,
        report.command,
        report.cwd,
        shared.samples,
        report.environment,
        tuple(rows),
        tuple(_arm_warnings(report, Metric.COLD_MODULE)),
    )
    write_result(ledger, arguments.json, lambda: render_ledger(ledger, TextFormat(arguments.format)))
    return ExitCode.OK


def take_rounds(baseline: Measurer, arms: dict[Lever, Measurer], failed: dict[Lever, str], samples: int) -> None:
    """Take a sample of every arm a round, every other round backwards. The first one of the baseline is there. An arm
    whose command fails is left out from then on; the baseline must not fail."""
    for index in range(1, samples + 1):
        order: list[Lever | None] = [None, *arms]
        for lever in order if index % 2 else reversed(order):
            if lever is None:
                if index > 1:
                    with failure_shown([baseline]):
                        baseline.sample(index)
            elif lever not in failed:
                try:
                    arms[lever].sample(index)
                except ProbeError as error:
                    failed[lever] = str(error)
                    complain(str(error))


def add_what_if_parser(commands: Any) -> None:
    """Add `what-if` to the commands; the parsed arguments name `command_what_if` as `run`."""
    parser = commands.add_parser(
        "what-if",
        help="try options of Warp one by one: a ledger of what each buys",
        description="Run COMMAND as it is and once for each lever, an option of warp.config set from outside, samples"
        " interleaved; say what each lever does to the cold start, the launches and the output. Levers that cannot"
        " matter to the program are skipped.",
        epilog="example: warp_compile_probe.py what-if --levers enable_backward=False -- python -m my_app --steps 3",
        allow_abbrev=False,
    )
    default = ", ".join(lever.text for lever in DEFAULT_LEVERS)
    add_list_option(parser, "--levers", "NAME=VALUE[,...]", f"what to try (default: {default})")
    parser.add_argument("--json", metavar="FILE", help="write the ledger as JSON; - for standard output, no text")
    parser.add_argument("--json-dir", metavar="DIR", help="write the report of every arm there")
    parser.add_argument("--cwd", metavar="DIR", help="run the command in DIR")
    parser.add_argument("--demo", action="store_true", help="measure a small built-in Warp program instead")
    add_run_options(parser)
    add_format_option(parser, [TextFormat.TEXT, TextFormat.MARKDOWN])
    parser.set_defaults(run=command_what_if, label=None, cuda_arch=[], on=None)


# ---------------------------------------------------------------------------------------------------------------------
# Argument parser and main
# ---------------------------------------------------------------------------------------------------------------------


def add_parse_parser(commands: Any) -> None:
    """Add `parse` to the commands; the parsed arguments name `command_parse` as `run`."""
    parser = commands.add_parser(
        "parse",
        help="read Warp's module lines out of a log",
        description="Read Warp's module and compiler lines out of logs: which modules were compiled, what that cost,"
        " and what a log alone can show of avoidable work.",
    )
    parser.add_argument("logs", nargs="+", metavar="LOG", help="a log file, or - for standard input")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - is standard output, without text")
    parser.set_defaults(run=command_parse)


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves errors to `main`, as one sentence without the list of all options."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see {self.prog} --help")


def whole_number(least: int, most: float = math.inf) -> Callable[[str], int]:
    """The type of an option whose value counts something, within limits."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            limits = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
            raise argparse.ArgumentTypeError(f"expected a whole number {limits}, found {text!r}")
        return int(text)

    return parse


def percentage(text: str) -> float:
    """An option value in percent, 0 or more."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a percentage, 0 or more, found {text!r}")
    return value


def positive_seconds(text: str) -> float:
    """An option value in seconds, within what a timer can hold."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 365 * 86400:
        raise argparse.ArgumentTypeError(f"expected seconds, above 0 and below a year, found {text!r}")
    return value


def add_measure_parser(commands: Any) -> None:
    """Add `measure` to the commands; the parsed arguments name `command_measure` as `run`."""
    parser = commands.add_parser(
        "measure",
        help="run a command cold and warm, and report what it built and launched",
        description="Run COMMAND unmodified, each sample with empty private caches and then again with the caches it"
        " filled; report every module build and kernel launch.",
        epilog="example: warp_compile_probe.py measure --json before.json -- python -m my_app --steps 3",
        allow_abbrev=False,
    )
    parser.add_argument("--json", metavar="FILE", help="write the report there, after each sample; - for stdout")
    parser.add_argument("--trace", metavar="FILE", help="write a trace of the first sample for ui.perfetto.dev there")
    parser.add_argument("--label", metavar="TEXT", help="a name for this measurement, kept in the report")
    parser.add_argument("--cwd", metavar="DIR", help="run the command in DIR")
    parser.add_argument("--demo", action="store_true", help="measure a small built-in Warp program instead")
    add_run_options(parser)
    add_architecture_option(parser)
    add_format_option(parser, list(TextFormat))
    add_gate_options(parser)
    parser.add_argument(
        "--on",
        type=architecture_from,
        metavar="ARCH",
        help="hold the limits against what --cuda-arch says of this architecture",
    )
    parser.set_defaults(run=command_measure)


def add_architecture_option(parser: argparse.ArgumentParser) -> None:
    """Add --cuda-arch, which `measure` and `ab` share."""
    text = (
        "also measure what the command would build on this CUDA architecture (90, 90a, sm_90), without a GPU; needs"
        " Warp 1.12 or newer"
    )
    add_list_option(parser, "--cuda-arch", "ARCH", text, type=architecture_from)


def add_gate_options(parser: argparse.ArgumentParser) -> None:
    """Add the limits of `measure`; exceeding one is exit code 6."""
    for gate, (_, nouns) in GATE_NOUNS.items():
        text = f"exit with 6 if a sample has more {nouns}"
        parser.add_argument(gate.value, type=whole_number(0), metavar="N", help=text)
    text = "exit with 6 on these findings: CS-1, rebuild, ..., or redundant or hint for all of a kind"
    add_list_option(parser, "--fail-on", "FINDING[,...]", text)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what `measure`, `ab` and `what-if` share: the command after `--`, and how it is run."""
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program to measure")
    parser.add_argument("--samples", type=whole_number(1), default=3, metavar="N", help="samples to take (default 3)")
    parser.add_argument("--timeout", type=positive_seconds, metavar="SECONDS", help="end a run that takes longer")
    add_list_option(parser, "--env", "NAME=VALUE", "set a variable for the command")
    text = "set warp.config.NAME in the command, before any module is created"
    add_list_option(parser, "--set", "NAME=VALUE", text)
    parser.add_argument("--inherit-tmpdir", action="store_true", help="keep the user's TMPDIR instead of a private one")
    parser.add_argument(
        "--expect-exit", type=whole_number(0, 255), default=0, metavar="N", help="the exit code of success (default 0)"
    )
    parser.add_argument("--keep-logs", metavar="DIR", help="keep stdout and stderr of every run in DIR")
    parser.add_argument("--echo", action="store_true", help="pass the command's output through to stderr")


def build_parser() -> argparse.ArgumentParser:
    """The command line of the probe."""
    description, _, rest = (__doc__ or "").partition("\n\n")
    parser = Parser(
        prog="warp_compile_probe.py",
        description=description,
        epilog=rest[rest.index("Exit codes") :],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"warp-compile-probe {PROBE_VERSION}")
    commands: Any = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_measure_parser(commands)
    add_report_parser(commands)
    add_compare_parser(commands)
    add_ab_parser(commands)
    add_what_if_parser(commands)
    add_parse_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Errors are printed here and nowhere else."""
    SIGNALS.install()
    # A stream that was closed when the probe started is None.
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A command line can hold what the encoding of the terminal, or any encoding, cannot express.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = build_parser().parse_args(argv)
        return int(arguments.run(arguments))
    except ProbeError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        SIGNALS.ignore()
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except Terminated:
        SIGNALS.ignore()
        complain("terminated")
        return ExitCode.TERMINATED
    except Exception:
        # Whatever it is, it must not look like a result.
        complain(f"this is a bug in the probe, please report these lines\n{traceback.format_exc()}")
        return ExitCode.PROBE_BUG


if __name__ == "__main__":
    sys.exit(main())
