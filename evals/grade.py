"""Grade a candidate of a fixture: is the fault gone, and is everything that must stay still there?

    python evals/grade.py FIXTURE CANDIDATE_DIR [--samples N] [--on cpu] [--json FILE|-] [--keep DIR]
    python evals/grade.py --solutions [FIXTURE...] [--ci] [--samples N] [--on cpu] [--json FILE|-]

The first form measures the fixture and a copy of the candidate with their samples interleaved (`ab`), runs the check of
the fixture in both trees, and prints a line for each point: pass, fail or not checked, the point, and the figures. The
second one grades a no-op, the reference and the wrong solutions of each fixture, and says whether the points tell them
apart. There the fixture is measured once for all of its solutions, so only counts can be trusted, no times.

Both measure on the CPU and hide CUDA devices. What a fixture's points say of a CUDA architecture is compiled for it
without a device; `--on cpu` leaves that out, and those points are `not checked (needs CUDA)`.

Exit codes: 0 everything passed or was not checked, 1 something failed (--solutions: something was not told apart), 2
usage, or an input that cannot be graded.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import enum
import hashlib
import json
import math
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

EVALS = Path(__file__).resolve().parent
ROOT = EVALS.parent
SCRIPT = ROOT / "scripts" / "warp_compile_probe.py"

sys.path.insert(0, str(SCRIPT.parent))

import warp_compile_probe as probe  # noqa: E402

CPU = "cpu"
CUDA = "cuda"
NOT_STAGED = shutil.ignore_patterns(".git", ".venv", "__pycache__", "node_modules")
FACTS = (
    "builds", "generated_source_bytes", "identities", "lto_artifacts", "modules", "rebuilds", "variants", "warm_builds",
)  # fmt: skip
NEEDS_CUDA = "needs CUDA"
# What `measure` and `ab` end with when they have measured, whatever came of it, or when the command failed.
MEASURED = frozenset({0, 1, 3, 4, 5})
COMMAND_FAILED = frozenset({10, 124})


class GradeError(Exception):
    """Something that cannot be graded; one sentence."""


# ---------------------------------------------------------------------------------------------------------------------
# What config.yml says
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A limit of a fact: a number, or that many times the figure of the baseline."""

    value: float
    times_baseline: bool

    def limit(self, baseline: int) -> float:
        return self.value * baseline if self.times_baseline else self.value

    def __str__(self) -> str:
        return f"{self.value:g}" + (" times the baseline" if self.times_baseline else "")


@dataclass(frozen=True)
class FactRule:
    """An exact figure of the summary keeps its limits."""

    fact: str
    at_most: Bound | None
    at_least: Bound | None


@dataclass(frozen=True)
class FindingRule:
    """A finding of the baseline is gone, or, where `mechanism` is None, no redundant finding is there."""

    mechanism: str | None


@dataclass(frozen=True)
class HashRule:
    """Each of these modules is in both arms, and all its hashes are others (or, not `moved`, all of them the same)."""

    modules: tuple[str, ...]
    moved: bool


@dataclass(frozen=True)
class DeviceRule:
    """Something that only a CUDA device can show; said, and left to a reader who has one."""

    text: str


Rule = FactRule | FindingRule | HashRule | DeviceRule


@dataclass(frozen=True)
class PointRule:
    """A point of a fixture: its id, where it is checked (`cpu`, an architecture such as `sm_90`, or `cuda` for a device
    that this grader never uses), and what holds."""

    id: str
    on: str
    rule: Rule


@dataclass(frozen=True)
class Fixture:
    """What config.yml says about a fixture. `solutions` holds the points that must fail, by solution."""

    name: str
    summary: str
    command: tuple[str, ...]
    ci: bool
    offline: tuple[str, ...]
    points: tuple[PointRule, ...]
    solutions: dict[str, tuple[str, ...]]
    samples: int
    timeout_s: float
    rtol: float
    atol: float

    @property
    def devices(self) -> tuple[str, ...]:
        """The architectures as a report names them."""
        return tuple(f"sm_{arch}" for arch in self.offline)


def read_bound(value: Any, where: str) -> Bound | None:
    """A limit out of YAML. Raises GradeError."""
    if value is None:
        return None
    if isinstance(value, dict) and set(value) == {"baseline"} and is_number(value["baseline"]):
        return Bound(float(value["baseline"]), times_baseline=True)
    if is_number(value):
        return Bound(float(value), times_baseline=False)
    raise GradeError(f"{where}: a limit is a number or {{baseline: NUMBER}}, not {value!r}")


def is_number(value: Any) -> bool:
    """Whether YAML or JSON gave a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_rule(rest: dict[str, Any], where: str) -> Rule:
    """What a point asks for. Raises GradeError."""
    kinds = set(rest)
    if "fact" in kinds and kinds <= {"fact", "at_most", "at_least"} and len(kinds) > 1:
        if rest["fact"] not in FACTS:
            raise GradeError(f"{where}: no fact {rest['fact']!r}; there are {', '.join(FACTS)}")
        bounds = (read_bound(rest.get(name), f"{where}: {name}") for name in ("at_most", "at_least"))
        return FactRule(rest["fact"], *bounds)
    if kinds == {"finding_gone"} and isinstance(rest["finding_gone"], str):
        return FindingRule(rest["finding_gone"])
    if kinds == {"findings"} and rest["findings"] == "none":
        return FindingRule(None)
    for name in ("hashes_moved", "hashes_kept"):
        if kinds == {name} and isinstance(rest[name], list) and rest[name]:
            return HashRule(tuple(map(str, rest[name])), moved=name == "hashes_moved")
    raise GradeError(
        f"{where}: expected fact with at_most or at_least, finding_gone, findings: none, hashes_moved or hashes_kept,"
        f" not {', '.join(sorted(map(str, kinds))) or 'nothing'}"
    )


def read_point(value: Any, offline: Sequence[str], where: str) -> PointRule:
    """A point out of YAML. Raises GradeError."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise GradeError(f"{where}: a point is a map with an id, not {value!r}")
    where = f"{where}, point {value['id']}"
    if True in value:
        raise GradeError(f'{where}: write "on" in quotes; YAML reads the bare word as true')
    on = value.get("on")
    if on == CUDA and isinstance(value.get("text"), str):
        return PointRule(value["id"], CUDA, DeviceRule(value["text"]))
    if on not in (CPU, *(f"sm_{arch}" for arch in offline)):
        raise GradeError(f"{where}: on is cpu, sm_ARCH with ARCH among offline, or cuda with a text, not {on!r}")
    return PointRule(value["id"], on, read_rule({key: value[key] for key in value if key not in ("id", "on")}, where))


def read_fixture(name: str, value: Any, defaults: dict[str, Any]) -> Fixture:
    """A fixture out of YAML. Raises GradeError."""
    where = f"config.yml, {name}"
    merged = {"ci": False, "offline": [], "points": [], "solutions": {}, **defaults, **value}
    unknown = set(merged) - {field.name for field in dataclasses.fields(Fixture)}
    if unknown or not {"summary", "command"} <= set(merged):
        raise GradeError(f"{where}: unknown {sorted(unknown)}" if unknown else f"{where}: needs summary and command")
    offline = tuple(str(arch) for arch in merged["offline"])
    points = tuple(read_point(point, offline, where) for point in merged["points"])
    solutions = {
        "noop": (),
        **{solution: tuple(failing or ()) for solution, failing in (merged["solutions"] or {}).items()},
    }
    known = {*IMPLICIT_POINTS, *(point.id for point in points)}
    if len(known) != len(IMPLICIT_POINTS) + len(points):
        raise GradeError(f"{where}: two points have the same id")
    for solution, failing in solutions.items():
        for point in failing:
            if point not in known and not point.startswith("trap:"):
                raise GradeError(f"{where}, solution {solution}: no point {point!r}")
    return Fixture(
        name=name,
        summary=str(merged["summary"]),
        command=tuple(map(str, merged["command"])),
        ci=bool(merged["ci"]),
        offline=offline,
        points=points,
        solutions=solutions,
        samples=int(merged["samples"]),
        timeout_s=float(merged["timeout_s"]),
        rtol=float(merged["rtol"]),
        atol=float(merged["atol"]),
    )


def read_config(evals: Path) -> dict[str, Fixture]:
    """The fixtures of config.yml, by name. Raises GradeError."""
    path = evals / "config.yml"
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise GradeError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    if not isinstance(document, dict) or not isinstance(document.get("fixtures"), dict):
        raise GradeError(f"{path}: expected a map with fixtures")
    defaults = {"samples": 3, "timeout_s": 900, "rtol": 1e-5, "atol": 1e-6, **(document.get("defaults") or {})}
    return {name: read_fixture(name, value, defaults) for name, value in document["fixtures"].items()}


# ---------------------------------------------------------------------------------------------------------------------
# What was seen of a tree
# ---------------------------------------------------------------------------------------------------------------------


Figures = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Check:
    """What the check of a fixture printed about a tree, or why it did not."""

    numeric: dict[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    gradients: dict[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    traps: dict[str, bool] = dataclasses.field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Seen:
    """A tree as it was measured: the report, why the command failed if it did, the check, and digests of files."""

    report: probe.Report | None
    failure: str | None
    check: Check
    files: dict[str, str]


def read_check(stdout: str) -> Check:
    """The JSON object on the last line of a check's output, or an error in its place."""
    lines = stdout.strip().splitlines()
    try:
        document = json.loads(lines[-1])
        numeric, gradients = (
            {str(name): tuple(map(float, values)) for name, values in (document.get(part) or {}).items()}
            for part in ("numeric", "gradients")
        )
        traps = {str(name): value is True for name, value in (document.get("trap") or {}).items()}
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        return Check(error=f"its last line is not the JSON object of a check ({error})")
    return Check(numeric, gradients, traps)


def digests(tree: Path) -> dict[str, str]:
    """SHA-256 of every file under a folder, by relative path; what is not a plain file counts by what it is."""
    found = {}
    for folder, folders, files in os.walk(tree):
        ignored = NOT_STAGED(folder, folders)
        folders[:] = sorted(name for name in folders if name not in ignored)
        for name in sorted(files):
            path = Path(folder) / name
            content = f"link to {path.readlink()}".encode() if path.is_symlink() else path.read_bytes()
            found[path.relative_to(tree).as_posix()] = hashlib.sha256(content).hexdigest()
    return found


def outside_src(files: Mapping[str, str]) -> dict[str, str]:
    """The files that are not under src/."""
    return {path: digest for path, digest in files.items() if not path.startswith("src/")}


# ---------------------------------------------------------------------------------------------------------------------
# Points
# ---------------------------------------------------------------------------------------------------------------------


class Status(str, enum.Enum):
    """What came of a point."""

    PASS = "pass"
    FAIL = "fail"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Point:
    """A point that was graded; `evidence` says with which figures, or why it was not checked."""

    id: str
    on: str
    status: Status
    evidence: str

    @property
    def line(self) -> str:
        """The point as one line of text."""
        if self.status is Status.NOT_CHECKED:
            reason, colon, text = self.evidence.partition(":")
            return f"{self.status.value} ({reason})  {self.id}{colon}{text}"
        return f"{self.status.value}  {self.id}: {self.evidence}"


COMMAND_SUCCEEDS = "command-succeeds"
IMPLICIT_POINTS = (
    COMMAND_SUCCEEDS, "topology", "kernel-names", "check-runs", "numeric", "gradients", "outside-src",
)  # fmt: skip


def decided(holds: object, id_: str, on: str, evidence: str) -> Point:
    """A point that was checked."""
    return Point(id_, on, Status.PASS if holds else Status.FAIL, evidence)


def check_baseline(fixture: Fixture, baseline: Seen) -> probe.Report:
    """The report of a fixture. Raises GradeError where the fixture itself cannot be graded."""
    if baseline.failure or baseline.report is None:
        raise GradeError(f"{fixture.name}: the fixture itself fails: {baseline.failure}")
    if baseline.check.error:
        raise GradeError(f"{fixture.name}: its check fails in the fixture itself: {baseline.check.error}")
    if not baseline.check.numeric:
        raise GradeError(f"{fixture.name}: its check has no figures to compare")
    if sprung := [name for name, held in baseline.check.traps.items() if not held]:
        raise GradeError(f"{fixture.name}: its check finds {sprung[0]} broken in the fixture itself")
    return baseline.report


def measured_points(
    fixture: Fixture, arms: dict[str, tuple[probe.Report, probe.Report]], comparisons: dict[str, probe.Comparison]
) -> Iterator[Point]:
    """The points that two reports decide, on every place that was measured; none was if the candidate failed."""
    if not arms:
        for id_, on in (("topology", CPU), ("kernel-names", CPU), *((rule.id, rule.on) for rule in fixture.points)):
            yield Point(id_, on, Status.NOT_CHECKED, "the command failed")
        return
    yield topology_point(comparisons)
    yield kernel_names_point(comparisons)
    for rule in fixture.points:
        if isinstance(rule.rule, DeviceRule):
            yield Point(rule.id, rule.on, Status.NOT_CHECKED, f"{NEEDS_CUDA}: {rule.rule.text}")
        elif rule.on not in arms:
            yield Point(rule.id, rule.on, Status.NOT_CHECKED, NEEDS_CUDA)
        else:
            holds, evidence = judge_rule(rule.rule, *arms[rule.on])
            yield decided(holds, rule.id, rule.on, evidence)


def at(report: probe.Report, place: str) -> probe.Report:
    """What a report says of the CPU, or of a CUDA architecture."""
    return report if place == CPU else probe.offline_report(report, place, "the report")


def topology_point(comparisons: Mapping[str, probe.Comparison]) -> Point:
    """The launches are the same everywhere."""
    for place, comparison in comparisons.items():
        topology = comparison.topology
        if topology is None or topology.equal is not True:
            return decided(False, "topology", place, f"on {place}: {comparison.why}")
    launches = (
        f"the same {comparison.topology.candidate_launches if comparison.topology else 0} launches on {place}"
        for place, comparison in comparisons.items()
    )
    return decided(True, "topology", CPU, ", ".join(launches))


def kernel_names_point(comparisons: Mapping[str, probe.Comparison]) -> Point:
    """No launched kernel has another name; another module or enclosing function is no other name."""

    def name(key: str) -> str:
        return key.rpartition("__locals__")[2]

    renames = {
        f"{rename.baseline_kernel} is now {rename.candidate_kernel}": None
        for comparison in comparisons.values()
        for rename in comparison.renames
        if name(rename.baseline_kernel) != name(rename.candidate_kernel)
    }
    return decided(not renames, "kernel-names", CPU, ", ".join(renames) or "every launched kernel kept its name")


def judge_rule(
    rule: FactRule | FindingRule | HashRule, baseline: probe.Report, candidate: probe.Report
) -> tuple[bool, str]:
    """Whether a rule holds, and with which figures."""
    if isinstance(rule, FactRule):
        return judge_fact(rule, baseline, candidate)
    if isinstance(rule, FindingRule):
        return judge_finding(rule, baseline, candidate)
    return judge_hashes(rule, baseline, candidate)


def judge_fact(rule: FactRule, baseline: probe.Report, candidate: probe.Report) -> tuple[bool, str]:
    """Whether a figure keeps its limits."""
    before, after = (getattr(report.summary, rule.fact) for report in (baseline, candidate))
    holds = (rule.at_most is None or after <= rule.at_most.limit(before)) and (
        rule.at_least is None or after >= rule.at_least.limit(before)
    )
    limits = [f"at most {rule.at_most}"] * (rule.at_most is not None)
    limits += [f"at least {rule.at_least}"] * (rule.at_least is not None)
    return holds, f"{rule.fact} {before} before, {after} after; {' and '.join(limits)}"


def judge_finding(rule: FindingRule, baseline: probe.Report, candidate: probe.Report) -> tuple[bool, str]:
    """Whether a finding is gone."""

    def listed(report: probe.Report) -> list[str]:
        if rule.mechanism is None:
            found = [finding for finding in report.findings if finding.kind is probe.FindingKind.REDUNDANT]
        else:
            found = [finding for finding in report.findings if finding.mechanism == rule.mechanism]
        return [f"{finding.mechanism} of {finding.module or 'the program'}" for finding in found]

    before, after = listed(baseline), listed(candidate)
    holds = not after and (rule.mechanism is None or bool(before))
    what = rule.mechanism or "redundant work"
    return holds, f"{what}: {', '.join(before) or 'none'} before, {', '.join(after) or 'none'} after"


def judge_hashes(rule: HashRule, baseline: probe.Report, candidate: probe.Report) -> tuple[bool, str]:
    """Whether the hashes of modules moved, all of them, or none did."""
    evidence = []
    holds = True
    for module in rule.modules:
        before, after = (
            {identity.hash for identity in report.identities if identity.name == module and identity.hash}
            for report in (baseline, candidate)
        )
        held = bool(before and after) and (before.isdisjoint(after) if rule.moved else before == after)
        holds = holds and held
        evidence.append(f"{module} {short_hashes(before)} before, {short_hashes(after)} after")
    wanted = "must have moved" if rule.moved else "must be the same"
    return holds, f"{'; '.join(evidence)}; hashes {wanted}"


def short_hashes(hashes: Iterable[str]) -> str:
    """Hashes as a reader sees them elsewhere."""
    return " ".join(sorted(hash_[:7] for hash_ in hashes)) or "not there"


def check_points(fixture: Fixture, baseline: Check, candidate: Check) -> list[Point]:
    """What the check of the fixture says: figures and gradients are the same, and no trap is sprung."""
    points = [decided(not candidate.error, "check-runs", CPU, candidate.error or "the check ran to its end")]
    parts = [("numeric", baseline.numeric, candidate.numeric)]
    if baseline.gradients:
        parts.append(("gradients", baseline.gradients, candidate.gradients))
    if candidate.error:
        ids = [*(name for name, _, _ in parts), *(f"trap:{name}" for name in baseline.traps)]
        return points + [Point(id_, CPU, Status.NOT_CHECKED, "the check failed") for id_ in ids]
    for name, before, after in parts:
        holds, evidence = compare_figures(before, after, fixture.rtol, fixture.atol)
        points.append(decided(holds, name, CPU, evidence))
    for name in baseline.traps:
        said = candidate.traps.get(name)
        evidence = {True: "still holds", False: "no longer holds", None: "the check no longer says"}[said]
        points.append(decided(said, f"trap:{name}", CPU, evidence))
    return points


def compare_figures(baseline: Figures, candidate: Figures, rtol: float, atol: float) -> tuple[bool, str]:
    """Whether all figures agree within atol + rtol * |baseline|, and how closely."""
    if set(baseline) != set(candidate):
        return False, f"figures {', '.join(sorted(set(baseline) ^ set(candidate)))} are on one side only"
    largest = 0.0
    for name, before in baseline.items():
        after = candidate[name]
        if len(before) != len(after):
            return False, f"{name} has {len(after)} figures instead of {len(before)}"
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if old == new or (math.isnan(old) and math.isnan(new)):
                continue
            deviation = abs(new - old)
            if not deviation <= atol + rtol * abs(old) or math.isinf(old):
                return False, f"{name}[{index}] is {new:.9g} instead of {old:.9g}"
            largest = max(largest, deviation)
    count = sum(map(len, baseline.values()))
    return True, f"{count} figures, largest deviation {largest:.3g} (rtol {rtol:g}, atol {atol:g})"


def outside_src_point(baseline: Seen, candidate: Seen) -> Point:
    """Every file of the fixture outside src/ is byte for byte as it was."""
    before = outside_src(baseline.files)
    touched = [
        f"{path} {'is gone' if path not in candidate.files else 'differs'}"
        for path, digest in before.items()
        if candidate.files.get(path) != digest
    ]
    return decided(
        not touched, "outside-src", CPU, ", ".join(touched) or f"{probe.plural(len(before), 'file')} as they were"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """A process that ended, or was ended after its time; `code` is what it exited with."""

    code: int
    stdout: str
    stderr: str
    timed_out: bool


def run_bounded(
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout_s: float | None, into: Path
) -> Done:
    """Run a command to its end, in a process group that ends with it; its output goes through files in `into`."""
    into.mkdir(parents=True, exist_ok=True)
    paths = [into / "stdout.txt", into / "stderr.txt"]
    with paths[0].open("wb") as out, paths[1].open("wb") as err:
        process = subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            # What the command left behind in its group ends with it; the probe needs a moment to remove its folders.
            end_group(process)
    stdout, stderr = (path.read_bytes().decode("utf-8", "backslashreplace") for path in paths)
    return Done(process.returncode, stdout, stderr, timed_out)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: ask, wait, insist."""
    for number, grace_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            if number is signal.SIGKILL or not group_exists(process.pid):
                return


def group_exists(group: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


Measured = tuple["probe.Report | None", "str | None"]  # the report of a tree, and why its command failed


@dataclass(frozen=True)
class Grader:
    """What is common to all trees that are graded: where the evals are, the Python with the Warp to measure, a scratch
    folder, and how much is measured. `samples` None is what the fixture says."""

    evals: Path
    python: str
    scratch: Path
    samples: int | None = None
    offline: bool = True

    def environment(self, private: Path) -> dict[str, str]:
        """The user's environment without caches, CUDA devices and a home of theirs."""
        own = ("WARP_", "CUDA_", "PYTHON", "XDG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        home = private / "home"
        home.mkdir(parents=True, exist_ok=True)
        python = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUSERBASE": site.getuserbase()}  # packages may be under HOME
        return {**kept, **python, "HOME": str(home), "CUDA_VISIBLE_DEVICES": ""}

    def stage(self, tree: Path, name: str, overlay: Path | None = None) -> Path:
        """A copy of a tree, with the files of a solution laid over it."""
        target = self.scratch / name
        shutil.copytree(tree, target, symlinks=True, ignore=NOT_STAGED)
        if overlay is not None:
            shutil.copytree(overlay, target, symlinks=True, ignore=NOT_STAGED, dirs_exist_ok=True)
        return target

    def files(self, fixture: Fixture) -> Path:
        """Where the files of a fixture are. Raises GradeError."""
        return existing(self.evals / "files" / fixture.name, f"{fixture.name} has no files")

    def solution(self, fixture: Fixture, name: str) -> Path | None:
        """The files that make a solution out of a fixture; None for `noop`. Raises GradeError."""
        if name == "noop":
            return None
        return existing(self.evals / "solutions" / fixture.name / name, f"{fixture.name} has no solution {name}")

    def _common_options(self, fixture: Fixture) -> list[str]:
        options = ["--samples", str(self.samples or fixture.samples), "--timeout", f"{fixture.timeout_s:g}"]
        for arch in fixture.offline if self.offline else ():
            options += ["--cuda-arch", arch]
        return [*options, "--env", "PYTHONPATH=src"]

    def _command(self, fixture: Fixture) -> list[str]:
        first, *rest = fixture.command
        return [self.python if first in ("python", "python3") else first, *rest]

    def _probe(self, words: Sequence[str], fixture: Fixture, private: Path, cwd: Path | None = None) -> Done:
        argv = [sys.executable, str(SCRIPT), *words, *self._common_options(fixture), "--", *self._command(fixture)]
        done = run_bounded(argv, cwd=cwd or self.scratch, env=self.environment(private), timeout_s=None, into=private)
        if done.code not in MEASURED | COMMAND_FAILED:
            raise GradeError(f"{fixture.name}: {words[0]} ended with exit code {done.code}: {last_line(done.stderr)}")
        return done

    def measure_pair(self, fixture: Fixture, trees: Sequence[Path], folder: Path) -> list[Measured]:
        """Report, and why the command failed, of the baseline and the candidate, measured by `ab`."""
        words = ["ab", "--json-dir", str(folder), "--baseline", str(trees[0]), "--candidate", str(trees[1])]
        done = self._probe(words, fixture, folder)
        return [self._report(folder / f"{arm}.json", fixture, done) for arm in probe.ARM_NAMES]

    def measure_one(self, fixture: Fixture, tree: Path, folder: Path) -> Measured:
        """Report, and why the command failed, of one tree, measured by `measure`."""
        path = folder / "report.json"
        done = self._probe(["measure", "--json", str(path), "--cwd", str(tree)], fixture, folder)
        return self._report(path, fixture, done)

    def measure_null(self, fixture: Fixture, tree: Path, folder: Path) -> dict[str, Any]:
        """The comparison of a tree with itself, as `ab --null` writes it. Raises GradeError."""
        path = folder / "comparison.json"
        done = self._probe(["ab", "--null", "--json", str(path)], fixture, folder, cwd=tree)
        if done.code in COMMAND_FAILED:
            raise GradeError(f"{fixture.name}: the fixture itself fails: {last_line(done.stderr)}")
        comparison: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return comparison

    def _report(self, path: Path, fixture: Fixture, done: Done) -> Measured:
        """A report, and what is wrong with it: fewer complete samples than were asked for."""
        report = probe.load_report(str(path)) if path.exists() else None
        wanted = self.samples or fixture.samples
        complete = len(probe.complete_runs(report)) if report else 0
        failure = failure_text(report)
        # Where the other arm failed, this one was not measured to the end.
        enough = complete == wanted or (complete and done.code in COMMAND_FAILED)
        if report is not None and enough and failure is None:
            return report, None
        return report, failure or last_line(done.stderr)

    def check(self, fixture: Fixture, tree: Path, folder: Path) -> Check:
        """Run the check of a fixture in a tree."""
        script = existing(self.evals / "checks" / f"{fixture.name}.py", f"{fixture.name} has no check")
        env = {**self.environment(folder), "PYTHONPATH": str(tree / "src")}
        for name in ("TMPDIR", "WARP_CACHE_PATH", "WARP_CACHE_ROOT", "CUDA_CACHE_PATH"):
            env[name] = str(folder / name.lower())
        (folder / "tmpdir").mkdir(parents=True, exist_ok=True)
        done = run_bounded([self.python, script], cwd=tree, env=env, timeout_s=fixture.timeout_s, into=folder)
        if done.timed_out:
            return Check(error=f"the check took longer than {fixture.timeout_s:g} s")
        if done.code != 0:
            return Check(error=f"the check ended with exit code {done.code}: {last_line(done.stderr)}")
        return read_check(done.stdout)


def failure_text(report: probe.Report | None) -> str | None:
    """How the first run that failed ended."""
    for sample in report.samples if report else ():
        for run in (sample.cold, sample.warm, sample.settle):
            if run is not None and (run.exit.code != 0 or run.exit.timed_out):
                how = "took too long" if run.exit.timed_out else f"ended with exit code {run.exit.code}"
                return f"the {run.kind.value} run {how}"
    return None


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:500] if lines else "it said nothing"


def existing(path: Path, otherwise: str) -> Path:
    """A path that exists. Raises GradeError."""
    if not path.exists():
        raise GradeError(f"{otherwise}: {path} is not there")
    return path


# ---------------------------------------------------------------------------------------------------------------------
# Grading
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grade:
    """A graded candidate: its points, what `compare` says of the times, for the reader only, and the architectures that
    were left out."""

    fixture: str
    candidate: str
    points: tuple[Point, ...]
    comparisons: dict[str, str]
    unseen: tuple[str, ...] = ()

    @property
    def failing(self) -> tuple[str, ...]:
        """Ids of the points that failed."""
        return tuple(point.id for point in self.points if point.status is Status.FAIL)

    def to_json(self) -> dict[str, Any]:
        """The grade as JSON."""
        points = [{**dataclasses.asdict(point), "status": point.status.value} for point in self.points]
        return {
            "fixture": self.fixture,
            "candidate": self.candidate,
            "passed": not self.failing,
            "points": points,
            "comparisons": self.comparisons,
        }


def make_grade(fixture: Fixture, name: str, baseline: Seen, candidate: Seen, *, offline: bool) -> Grade:
    """Judge a candidate that was measured. `offline`: whether the reports hold what the fixture says of CUDA.

    Raises GradeError where the fixture itself cannot be graded.
    """
    before = check_baseline(fixture, baseline)
    after = None if candidate.failure else candidate.report
    places = (CPU, *fixture.devices) if offline else (CPU,)
    arms = {place: (at(before, place), at(after, place)) for place in places} if after else {}
    comparisons = {place: probe.compare_reports(*pair) for place, pair in arms.items()}
    runs = probe.plural(len(probe.complete_runs(before)), "cold run")
    points = (
        decided(
            not candidate.failure, COMMAND_SUCCEEDS, CPU, candidate.failure or f"{runs} and the warm ones after them"
        ),
        *measured_points(fixture, arms, comparisons),
        *check_points(fixture, baseline.check, candidate.check),
        outside_src_point(baseline, candidate),
    )
    verdicts = {place: f"{found.verdict.value}: {found.why}" for place, found in comparisons.items()}
    return Grade(fixture.name, name, points, verdicts, () if offline else fixture.devices)


def grade(grader: Grader, fixture: Fixture, candidate: Path) -> Grade:
    """Measure a fixture and a candidate interleaved, and judge. Raises GradeError."""
    name = fixture.name
    # Paths of one length: generated source holds the paths of kernels, and its bytes are counted.
    trees = [grader.stage(grader.files(fixture), f"{name}/tree-a"), grader.stage(candidate, f"{name}/tree-b")]
    files = [digests(tree) for tree in trees]  # before the command or the check can leave anything
    measured = grader.measure_pair(fixture, trees, grader.scratch / name / "reports")
    checks = [grader.check(fixture, tree, tree.with_name(f"check-{tree.name}")) for tree in trees]
    seen = [Seen(*pair, check, found) for pair, check, found in zip(measured, checks, files, strict=True)]
    return make_grade(fixture, str(candidate), *seen, offline=grader.offline)


def grade_solutions(grader: Grader, fixture: Fixture) -> Iterator[Grade]:
    """Grade all solutions of a fixture against one measurement of it. Raises GradeError."""

    def look(number: int, name: str, overlay: Path | None) -> Seen:
        tree = grader.stage(grader.files(fixture), f"{fixture.name}/tree-{number:02d}", overlay)  # as in `grade`
        folder = grader.scratch / fixture.name / name
        files = digests(tree)  # before the command or the check can leave anything
        report, failure = grader.measure_one(fixture, tree, folder / "reports")
        return Seen(report, failure, grader.check(fixture, tree, folder / "check"), files)

    baseline = look(0, "baseline", None)
    for number, name in enumerate(fixture.solutions, 1):
        candidate = look(number, name, grader.solution(fixture, name))
        yield make_grade(fixture, name, baseline, candidate, offline=grader.offline)


@dataclass(frozen=True)
class Told:
    """Whether the points tell a solution from a right one as config.yml says, and what is not as it says."""

    grade: Grade
    missing: tuple[str, ...]
    surplus: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def apart(self) -> bool:
        return not self.missing and not self.surplus

    @property
    def line(self) -> str:
        """The row of the table."""
        parts = [
            f"{label} {', '.join(ids)}"
            for label, ids in (
                ("fails", self.grade.failing),
                ("did not fail", self.missing),
                ("must not fail", self.surplus),
                ("not checked", self.unchecked),
            )
            if ids
        ]
        answer = "told apart" if self.apart else "NOT told apart"
        return f"{self.grade.fixture:28}{self.grade.candidate:28}{answer:16}{'; '.join(parts) or 'nothing fails'}"


def tell_apart(graded: Grade, expected: Sequence[str]) -> Told:
    """Hold the points that fail against those that must: all of these that were checked, and no others."""
    unchecked = {point.id for point in graded.points if point.status is Status.NOT_CHECKED}
    if graded.unseen:
        unchecked |= {"topology", "kernel-names"}  # a launch may differ on an architecture only
    failing = graded.failing
    return Told(
        grade=graded,
        missing=tuple(id_ for id_ in expected if id_ not in failing and id_ not in unchecked),
        surplus=tuple(id_ for id_ in failing if id_ not in expected),
        unchecked=tuple(id_ for id_ in expected if id_ in unchecked),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Provenance, and the command
# ---------------------------------------------------------------------------------------------------------------------


def inputs_digest(paths: Iterable[Path]) -> str:
    """SHA-256 over files and folders, by their names in the repository and their contents."""
    total = hashlib.sha256()
    for path in sorted(paths):
        found = digests(path) if path.is_dir() else {"": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, digest in found.items():
            total.update(f"{path.name}/{name} {digest}\n".encode())
    return total.hexdigest()


def fixture_inputs(evals: Path, fixture: str) -> list[Path]:
    """What a grade of a fixture depends on, besides the candidate."""
    parts = [evals / "config.yml", evals / "files" / fixture, evals / "checks" / f"{fixture}.py", SCRIPT]
    return [path for path in (*parts, evals / "solutions" / fixture) if path.exists()]


def python_says(python: str, code: str) -> str:
    """What a Python prints. Raises GradeError."""
    try:
        done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise GradeError(f"{python} has no Warp; name a Python that has one with --python") from None
    return done.stdout.strip()


def warp_version(python: str) -> str:
    """The Warp of a Python. Raises GradeError."""
    return python_says(python, "import importlib.metadata as m; print(m.version('warp-lang'))")


def python_version(python: str) -> str:
    """The release of a Python. Raises GradeError."""
    return python_says(python, "import platform; print(platform.python_version())")


def provenance(python: str, inputs: Iterable[Path]) -> dict[str, Any]:
    """What results come from: versions, date, machine, git commit, and a digest of the files that they depend on."""
    host = probe.host_environment(str(ROOT))
    cores = probe.plural(host.cores, "core") if host.cores else None
    return {
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "probe": probe.PROBE_VERSION,
        "warp": warp_version(python),
        "python": python_version(python),
        "machine": ", ".join(part for part in (host.cpu_model, cores, host.os, host.architecture) if part),
        "load_average": host.load_average_start,
        "git_commit": host.git_commit,
        "git_dirty": host.git_dirty,
        "inputs_sha256": inputs_digest(inputs),
    }


def write_json(path: str, document: Any) -> None:
    """Write a document to a file, or with `-` to standard output."""
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GradeError(f"{path}: cannot be written ({error.strerror}); name another file") from None


def chosen_fixtures(fixtures: Mapping[str, Fixture], names: Sequence[str], *, ci: bool) -> list[Fixture]:
    """The fixtures with these names, else all, or all that are graded in CI. Raises GradeError."""
    for name in names:
        if name not in fixtures:
            raise GradeError(f"no fixture {name!r}; there are {', '.join(fixtures) or 'none'}")
    found = [fixture for fixture in fixtures.values() if fixture.name in names or not names]
    return [fixture for fixture in found if fixture.ci or not ci]


def command_grade(arguments: argparse.Namespace, grader: Grader, fixtures: Mapping[str, Fixture]) -> int:
    """Grade one candidate."""
    if len(arguments.words) != 2:
        raise GradeError("expected FIXTURE CANDIDATE_DIR, or --solutions [FIXTURE...]")
    name, folder = arguments.words
    (fixture,) = chosen_fixtures(fixtures, [name], ci=False)
    candidate = Path(folder)
    if not candidate.is_dir():
        raise GradeError(f"{folder}: no such directory; name the folder of the candidate")
    graded = grade(grader, fixture, candidate)
    if arguments.json != "-":
        print(*(point.line for point in graded.points), sep="\n")
        print(*(f"for information, compare on {place}: {text}" for place, text in graded.comparisons.items()), sep="\n")
    if arguments.json:
        inputs = [*fixture_inputs(grader.evals, name), candidate]
        write_json(arguments.json, {**graded.to_json(), "provenance": provenance(grader.python, inputs)})
    return int(bool(graded.failing))


def command_solutions(arguments: argparse.Namespace, grader: Grader, fixtures: Mapping[str, Fixture]) -> int:
    """Grade all solutions and print the table."""
    wanted = chosen_fixtures(fixtures, arguments.words, ci=arguments.ci)
    if not wanted:
        raise GradeError("no fixture to grade")
    told: dict[str, list[Told]] = {fixture.name: [] for fixture in wanted}
    printing = threading.Lock()

    def grade_one(fixture: Fixture) -> None:
        for graded in grade_solutions(grader, fixture):
            row = tell_apart(graded, fixture.solutions[graded.candidate])
            told[fixture.name].append(row)
            with printing:
                print(row.line, file=sys.stderr if arguments.json == "-" else sys.stdout, flush=True)
                if not row.apart:
                    print(*(f"    {point.line}" for point in graded.points), sep="\n", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(2 if arguments.ci else 1) as pool:
        list(pool.map(grade_one, wanted))
    rows = [row for group in told.values() for row in group]
    apart = sum(row.apart for row in rows)
    print(f"{apart} of {len(rows)} solutions told apart", file=sys.stderr if arguments.json == "-" else sys.stdout)
    if arguments.json:
        inputs = {path: None for fixture in wanted for path in fixture_inputs(grader.evals, fixture.name)}
        solutions = [{**row.grade.to_json(), "told_apart": row.apart} for row in rows]
        write_json(arguments.json, {"solutions": solutions, "provenance": provenance(grader.python, inputs)})
    return int(apart != len(rows))


def positive(text: str) -> int:
    """A number of samples, as argparse reads it."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


def main(argv: Sequence[str] | None = None, evals: Path = EVALS) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="FIXTURE [CANDIDATE_DIR]", help="what to grade")
    parser.add_argument("--solutions", action="store_true", help="grade the solutions of the fixtures (default: all)")
    parser.add_argument("--ci", action="store_true", help="with --solutions: those for CI, one sample, two at a time")
    parser.add_argument("--samples", type=positive, metavar="N", help="samples to take (default: as config.yml says)")
    parser.add_argument("--on", choices=[CPU], help="leave out what is compiled for CUDA")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - for standard output, no text")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep staged trees and reports there")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python with the Warp to measure")
    arguments = parser.parse_args(argv)
    samples = arguments.samples or (1 if arguments.ci else None)
    try:
        fixtures = read_config(evals)
        warp_version(arguments.python)
        with tempfile.TemporaryDirectory(prefix="grade-") as temporary:
            scratch = arguments.keep.resolve() if arguments.keep else Path(temporary)
            if scratch.exists() and arguments.keep and any(scratch.iterdir()):
                raise GradeError(f"--keep {arguments.keep}: not empty; name a new folder")
            scratch.mkdir(parents=True, exist_ok=True)
            grader = Grader(evals, arguments.python, scratch, samples, offline=arguments.on != CPU)
            command = command_solutions if arguments.solutions else command_grade
            return command(arguments, grader, fixtures)
    except (GradeError, probe.ProbeError) as error:
        print(f"grade.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
