"""Which releases of Warp, on which Pythons, are measured in full: the support table of README.md.

    python tests/support_table.py [--releases RELEASE ...] [--pythons VERSION ...] [--venvs DIR] [--quick]
                                  [--check | --write]

For each release and Python a virtual environment with that Warp is made in DIR (and used again, if it is there). In it
the same programs are measured, one sample each, and the reports are held against what is true of the programs: builds,
rebuilds and their causes, loads from the cache, launches, and cross-checks that find nothing. One of them is compiled
for sm_90 too, without a GPU. A release is supported in full, or in part (then the table says what is missing), or not
(then it has the probe's own sentence). The table goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import datetime
import enum
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "warp_compile_probe.py"
PROGRAMS = ROOT / "tests" / "programs"
README = ROOT / "README.md"

sys.path.insert(0, str(SCRIPT.parent))

import warp_compile_probe as probe  # noqa: E402

# With the Pythons that each is measured on: each Python with some release, the newest release with all that it has.
RELEASES = {
    "1.8.1": ("3.9",),
    "1.10.1": ("3.10",),
    "1.11.1": ("3.12",),
    "1.12.1": ("3.9", "3.13"),
    "1.14.0": ("3.13",),
    "1.16.0": ("3.12",),
    "1.17.0": ("3.10",),
    "1.19.0": ("3.10", "3.11", "3.12", "3.13"),
}
OFFLINE_ARCHITECTURE = "90"
MARKER = "<!-- support table -->"
HEADER = ("Warp", "Python", "support", "what is missing")
# Warnings about the machine say nothing about the release; every other one does.
MACHINE_WARNINGS = {"loaded-machine"}


class Level(str, enum.Enum):
    """How much of a release can be measured."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "not supported"


@dataclass(frozen=True)
class Check:
    """A program with what is true of its cold run; `quiet` if it keeps Warp's own lines back.

    With `architecture` the figures are those of the loads for it instead of those on the CPU.
    """

    name: str
    command: tuple[str, ...]
    launches: int
    causes: tuple[str, ...] = ("first-build",)
    cached_loads: int = 0
    quiet: bool = False
    architecture: str | None = None

    def deviation(self, report: probe.Report) -> str | None:
        """The first thing in which a report is not what it must be, or None."""
        if self.architecture is not None:
            report = probe.offline_report(report, f"sm_{self.architecture}", "the report")
        summary, cold = report.summary, report.samples[0].cold
        if summary is None or cold is None:
            return "no sample is complete"
        loads = [load for process in cold.processes for load in process.loads]
        causes = tuple(load.cause.reason.value for load in loads if load.is_build and load.cause is not None)
        figures = [
            ("builds", summary.builds, len(self.causes)),
            ("rebuilds", summary.rebuilds, len(self.causes) - 1),
            ("causes", causes, self.causes),
            ("loads from the cache", summary.cached_loads, self.cached_loads),
            ("warm builds", summary.warm_builds, 0),
            ("errors", summary.error_loads, 0),
            ("launches", summary.launches, self.launches),
            ("gaps", [gap.detail for gap in report.coverage.gaps], []),
            ("warnings", [notice.text for notice in report.warnings if notice.name not in MACHINE_WARNINGS], []),
        ]
        if self.architecture is None:
            figures += [
                ("module directories", cold.cross_check.cache_directories, summary.identities),
                ("module lines", cold.cross_check.log_records, 0 if self.quiet else len(loads)),
            ]
        return next((f"{what}: {found} instead of {true}" for what, found, true in figures if found != true), None)


LATE = ("kernel-added", "option-changed", "generic-instance-added", "generic-instance-added")
CHECKS = (
    Check("simple.py", (str(PROGRAMS / "simple.py"),), launches=3),
    Check(
        "late_everything.py",
        (str(PROGRAMS / "late_everything.py"),),
        launches=5,
        causes=("first-build", *LATE),
        quiet=True,
    ),
    Check(
        "factory.py",
        (str(PROGRAMS / "factory.py"),),
        launches=3,
        causes=("first-build", "kernel-redefined", "kernel-redefined"),
    ),
    Check("launch_objects.py", (str(PROGRAMS / "launch_objects.py"),), launches=6),
    Check("subprocess_child.py", (str(PROGRAMS / "subprocess_child.py"),), launches=2, cached_loads=1),
    Check(
        "warp.examples.core.example_wave",
        (
            *("-m", "warp.examples.core.example_wave", "--device", "cpu"),
            *("--stage-path", "None", "--num-frames", "2"),
            *(
                "--stage_path",
                "None",
                "--num_frames",
                "2",
            ),  # as Warp 1.11 and older spells them
        ),
        launches=66,  # a frame has 16 substeps of two kernels, and one more kernel
    ),
    Check(
        f"CUDA without a GPU (sm_{OFFLINE_ARCHITECTURE})",
        (str(PROGRAMS / "simple.py"),),
        launches=3,
        architecture=OFFLINE_ARCHITECTURE,
    ),
)


@dataclass(frozen=True)
class Row:
    """What a release on some Pythons gave."""

    release: str
    pythons: tuple[str, ...]
    level: Level
    missing: str

    def cells(self) -> tuple[str, ...]:
        return self.release, ", ".join(self.pythons), self.level.value, self.missing


# ---------------------------------------------------------------------------------------------------------------------
# Pythons and virtual environments
# ---------------------------------------------------------------------------------------------------------------------


@functools.cache
def find_python(version: str) -> str | None:
    """An interpreter of this version ("3.12"): of the search path, pyenv or uv, or this one; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), sys.executable]
    if uv := shutil.which("uv"):
        found = subprocess.run([uv, "python", "find", version], check=False, capture_output=True, text=True)
        candidates += found.stdout.split()
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in candidates:
        if (path := shutil.which(candidate)) is None:
            continue
        done = subprocess.run([path, "-c", code], check=False, capture_output=True, text=True)
        if done.stdout.strip() == version:  # a shim of pyenv may be there and start nothing
            return path
    return None


def target_python(folder: Path, release: str, version: str) -> str:
    """The Python of a virtual environment with that Warp; made if it is not there. Raises CalledProcessError."""
    venv = folder / f"warp-{release}-python-{version}"
    python, done = str(venv / "bin" / "python"), venv / ".done"
    if not done.exists():
        interpreter = find_python(version)
        assert interpreter is not None
        subprocess.run([interpreter, "-m", "venv", "--clear", str(venv)], check=True, stdout=sys.stderr)
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"warp-lang=={release}",
            "numpy",
        ]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        done.touch()
    return python


def pairs(releases: Sequence[str], pythons: Sequence[str] | None, *, quick: bool) -> list[tuple[str, str]]:
    """The releases and Pythons to measure, as far as this machine has them; `quick`: one Python for each release,
    the probe's own only where there is no other."""
    own = platform.python_version().rpartition(".")[0]
    chosen = []
    for release in releases:
        wanted = [version for version in RELEASES[release] if pythons is None or version in pythons]
        there = [version for version in wanted if find_python(version)]
        for version in sorted(set(wanted) - set(there)):
            print(f"no Python {version} on this machine", file=sys.stderr)
        if quick:
            there = sorted(there, key=lambda version: version == own)[:1] or [own]
        chosen += [(release, version) for version in there]
    return chosen


# ---------------------------------------------------------------------------------------------------------------------
# Measuring and judging
# ---------------------------------------------------------------------------------------------------------------------


def shortfall(check: Check, python: str, folder: Path) -> str | None:
    """What the probe does not get right of a program, in one sentence, or None."""
    report_path = folder / "report.json"
    report_path.unlink(missing_ok=True)
    options = ["--samples", "1", "--timeout", "600", "--json", str(report_path)]
    if check.architecture is not None:
        options += ["--cuda-arch", check.architecture]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("WARP_", "CUDA_"))}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "measure", *options, "--", python, *check.command],
        check=False,
        cwd=folder,
        env={**env, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        return last.removeprefix("warp-compile-probe: ") or f"exit code {done.returncode}"
    return check.deviation(probe.load_report(str(report_path)))


def judge(release: str, version: str, shortfalls: Sequence[tuple[Check, str | None]]) -> Row:
    """The row of one release on one Python."""
    wrong = [(check, text) for check, text in shortfalls if text is not None]
    if not wrong:
        return Row(release, (version,), Level.FULL, "")
    if all(text is not None for check, text in shortfalls if check.architecture is None):
        return Row(release, (version,), Level.NONE, wrong[0][1])
    return Row(release, (version,), Level.PARTIAL, "; ".join(f"{check.name}: {text}" for check, text in wrong))


def merged(rows: Iterable[Row]) -> list[Row]:
    """One row for the Pythons on which a release gave the same."""
    found: dict[tuple[str, Level, str], list[str]] = {}
    for row in rows:
        found.setdefault((row.release, row.level, row.missing), []).extend(row.pythons)
    return [Row(release, tuple(pythons), level, missing) for (release, level, missing), pythons in found.items()]


# ---------------------------------------------------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------------------------------------------------


def render(rows: Iterable[Row]) -> str:
    """The table as Markdown."""
    lines = [HEADER, ("---",) * len(HEADER), *(row.cells() for row in merged(rows))]
    return "".join("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|\n" for cells in lines)


def parse(text: str) -> list[Row]:
    """The rows of a table that `render` made. Raises ValueError where it did not."""
    header, rule, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()]
    if tuple(header) != HEADER or set(rule) != {"---"}:
        raise ValueError(f"not a support table: {header}")
    return [
        Row(release, tuple(pythons.split(", ")), Level(level), missing) for release, pythons, level, missing in lines
    ]


def readme_parts(text: str) -> tuple[str, str, str]:
    """README up to the table's caption, the table, and the rest. The markers stand before the caption and behind."""
    before, inside, after = text.split(MARKER)
    caption, table = inside.strip("\n").split("\n\n")
    return before + MARKER + "\n" + caption, table, MARKER + after


def caption() -> str:
    today = datetime.datetime.now(datetime.timezone.utc).date()
    probe_python = platform.python_version()
    return f"`python tests/support_table.py` printed this (the probe on Python {probe_python}, Linux x86-64, {today}):"


def unexpected(row: Row, expected: Sequence[Row]) -> str | None:
    """What differs from the rows that README has, of this release and, if it has it, of this Python; or None."""
    of_release = [other for other in expected if other.release == row.release]
    of_python = [other for other in of_release if row.pythons[0] in other.pythons] or of_release
    if any((other.level, other.missing) == (row.level, row.missing) for other in of_python):
        return None
    said = "; ".join(f"{other.level.value} {other.missing}".strip() for other in of_python) or "nothing"
    found = f"{row.level.value} {row.missing}".strip()
    return f"Warp {row.release}, Python {row.pythons[0]}: found: {found}. README says: {said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs="+", default=list(RELEASES), choices=list(RELEASES), metavar="RELEASE")
    parser.add_argument("--pythons", nargs="+", metavar="VERSION", help="only these, as 3.12")
    parser.add_argument("--venvs", type=Path, metavar="DIR", help="where the environments are kept (default: nowhere)")
    parser.add_argument("--quick", action="store_true", help="one Python for each release")
    parser.add_argument("--check", action="store_true", help="exit code 1 if README's table says something else")
    parser.add_argument("--write", action="store_true", help="put the rows measured into README's table")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="support-") as scratch:
        for release, version in pairs(arguments.releases, arguments.pythons, quick=arguments.quick):
            python = target_python((arguments.venvs or Path(scratch)).resolve(), release, version)
            shortfalls = []
            for check in CHECKS:
                text = shortfall(check, python, Path(scratch))
                print(f"Warp {release}, Python {version}, {check.name}: {text or 'right'}", file=sys.stderr)
                shortfalls.append((check, text))
            rows.append(judge(release, version, shortfalls))
    print(render(rows), end="")
    text = README.read_text(encoding="utf-8")
    before, table, after = readme_parts(text)
    if arguments.write:
        measured = {row.release for row in rows}
        rows_there = [*rows, *(row for row in parse(table) if row.release not in measured)]
        every = render(sorted(rows_there, key=lambda row: list(RELEASES).index(row.release)))
        start = before.rpartition("\n")[0]
        README.write_text(f"{start}\n{caption()}\n\n{every}{after}", encoding="utf-8")
    differences = [text for row in rows if (text := unexpected(row, parse(table)))] if arguments.check else []
    for difference in differences:
        print(difference, file=sys.stderr)
    return 1 if differences or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
