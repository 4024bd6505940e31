"""What all tests share: where the script and the programs are, and how to measure a program with the script.

The probe runs on the Python of the tests; the program that it measures runs on the target Python, which may be another
one with another Warp: `pytest --target-python PATH`, or WARP_PROBE_TARGET_PYTHON.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "warp_compile_probe.py"
PROGRAMS = ROOT / "tests" / "programs"

sys.path[:0] = [str(SCRIPT.parent), str(ROOT / "evals")]

import warp_compile_probe as probe  # noqa: E402

collect_ignore = ["programs", "corpus"]


def pytest_addoption(parser):
    parser.addoption(
        "--target-python",
        default=os.environ.get("WARP_PROBE_TARGET_PYTHON", sys.executable),
        metavar="PATH",
        help="the Python that runs the measured programs (default: WARP_PROBE_TARGET_PYTHON, else this one)",
    )
    parser.addoption(
        "--corpus",
        default="third",
        metavar="WHICH",
        help="programs of tests/corpus to measure: all, third (another one each day; the default), or a name",
    )


# ---------------------------------------------------------------------------------------------------------------------
# The target Python and its Warp
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The Python that runs the measured programs; `warp` is the release of its Warp, as (1, 19, 0), or None."""

    python: str
    warp: tuple[int, ...] | None


@functools.cache
def distribution_version(python: str, distribution: str) -> tuple[int, ...] | None:
    """The version of a distribution that `python` could import, or None. Starts `python`, imports nothing."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    done = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return tuple(int(number) for number in re.findall(r"\d+", done.stdout)[:3])


@pytest.fixture(scope="session")
def target_python(pytestconfig) -> str:
    return pytestconfig.getoption("--target-python")


@pytest.fixture(scope="session")
def target(target_python) -> Target:
    return Target(target_python, distribution_version(target_python, "warp-lang"))


def _missing_from(item, python: str) -> str | None:
    """Why the target cannot run a test marked `warp`, or None."""
    marker = item.get_closest_marker("warp")
    found = distribution_version(python, "warp-lang")
    if found is None:
        return f"{python} has no Warp: install warp-lang there, or name another Python with --target-python"
    since = marker.kwargs.get("since", "0")
    if found < tuple(int(number) for number in since.split(".")):
        return f"needs Warp {since} or newer; {python} has {'.'.join(map(str, found))}"
    return None


def pytest_runtest_setup(item):
    if item.get_closest_marker("warp") is None:
        return
    python = item.config.getoption("--target-python")
    if (reason := _missing_from(item, python)) is None:
        return
    if os.environ.get("CI") and distribution_version(python, "warp-lang") is None:
        pytest.fail(f"in CI the tests must not be skipped: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def needs_in_target(target_python):
    """A function that skips the test if the target lacks a distribution: `needs_in_target("pytest")`."""

    def check(distribution: str) -> None:
        if distribution_version(target_python, distribution) is None:
            pytest.skip(f"{target_python} has no {distribution}")

    return check


# ---------------------------------------------------------------------------------------------------------------------
# The programs, and what is true of them
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What a probe must find in a cold run of a program, and `warm_builds` in the run after it."""

    builds: int = 0
    rebuilds: int = 0
    variants: int = 0
    cached_loads: int = 0
    launches: int = 0
    warm_builds: int = 0


def read_truth(program: Path, warp: tuple[int, ...]) -> Truth:
    """The `Truth:` line in the docstring of a program, or its `Truth before RELEASE:` line for an older Warp."""
    text = program.read_text(encoding="utf-8")
    figures: str | None = None
    for before, line in re.findall(r"^Truth(?: before ([\d.]+))?: (.+)$", text, re.MULTILINE):
        if not before or warp < tuple(int(number) for number in before.split(".")):
            figures = line
    assert figures is not None, f"{program} says no truth"
    return Truth(**{name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", figures)})


def read_site(program: Path, name: str) -> int:
    """The line of a program that ends with the comment `# site: NAME`."""
    lines = program.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# site: {name}")]
    return number


def is_alive(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that nobody has waited for. Linux only."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


# ---------------------------------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What one call of the script gave; `document` is the JSON it wrote, if any."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    document: Any

    @property
    def report(self) -> probe.Report:
        assert self.document is not None, f"no report was written\n{self}"
        return probe.Report.from_json(self.document)

    def __str__(self) -> str:
        return (
            f"exit code {self.exit_code} of {' '.join(self.argv)}\n"
            f"--- standard output\n{self.stdout}\n--- standard error\n{self.stderr}"
        )


@dataclass(frozen=True)
class Measure:
    """Calls `measure` of the script on a program, with a home and caches that are not the user's.

    `measure("simple.py", "argument")` measures a program of tests/programs with the target Python, once, cold and warm.
    `measure.command(["python", "-m", "x"])` measures any command. Both fail the test, showing both streams, if the exit
    code is not `expect` (None: any). `shared=True` gives what an equal call of the session gave.
    """

    target: Target
    home: Path
    folder: Path
    shared_results: dict[Any, Measured] = dataclasses.field(default_factory=dict)

    def __call__(self, program: str, *arguments: str | Path, **how: Any) -> Measured:
        path = PROGRAMS / program
        assert path.exists(), f"no such program: {path}"
        return self.command([self.target.python, path, *arguments], **how)

    def command(
        self,
        command: Sequence[str | Path],
        *,
        options: Sequence[str] = ("--samples", "1"),
        env: Mapping[str, str | None] | None = None,
        cwd: Path = PROGRAMS,
        expect: int | None = 0,
        shared: bool = False,
    ) -> Measured:
        """`env` adds variables to the probe's environment, or with None takes them out."""
        key = (tuple(map(str, command)), tuple(options), tuple(sorted((env or {}).items())), cwd)
        measured = self.shared_results.get(key) if shared else None
        if measured is None:
            measured = self._run(command, options, env or {}, cwd)
        if shared:
            self.shared_results[key] = measured
        if expect is not None and measured.exit_code != expect:
            pytest.fail(f"expected exit code {expect}\n{measured}")
        return measured

    def argv(self, command: Sequence[str | Path], options: Sequence[str], json_path: Path) -> list[str]:
        """The command line that measures `command`, for tests that start the probe themselves."""
        return [sys.executable, str(SCRIPT), "measure", "--json", str(json_path), *options, "--", *map(str, command)]

    def environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """The environment of the probe: the tests' own, but for what names the user's caches, then `changes`."""
        merged: dict[str, str | None] = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("WARP_", "CUDA_", "PYTEST_"))},
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **changes,
        }
        return {name: value for name, value in merged.items() if value is not None}

    def _run(
        self, command: Sequence[str | Path], options: Sequence[str], env: Mapping[str, str | None], cwd: Path
    ) -> Measured:
        json_path = self.folder / "report.json"
        json_path.unlink(missing_ok=True)
        argv = self.argv(command, options, json_path)
        done = subprocess.run(
            argv, check=False, cwd=cwd, env=self.environment(env), stdin=subprocess.DEVNULL, capture_output=True
        )
        document = json.loads(json_path.read_text(encoding="utf-8")) if json_path.exists() else None
        stdout, stderr = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
        return Measured(tuple(argv), done.returncode, stdout, stderr, document)


@pytest.fixture(scope="session")
def measure(target, tmp_path_factory) -> Measure:
    home = tmp_path_factory.mktemp("home")
    return Measure(target, home, tmp_path_factory.mktemp("reports"))


@pytest.fixture
def recording(monkeypatch, tmp_path):
    """A process with the recorder in it, without the rest of `measure`: see `recorded.Recording`."""
    from recorded import Recording

    return Recording(monkeypatch, tmp_path)


@pytest.fixture
def stub(measure, tmp_path):
    """Measures programs on a stand-in for Warp: see `stubbed.Stub`."""
    from stubbed import Stub

    return Stub(measure, tmp_path)


@pytest.fixture
def small_disk(tmp_path):
    from disks import mounted

    with mounted(tmp_path / "disk") as folder:
        yield folder


# ---------------------------------------------------------------------------------------------------------------------
# A browser
# ---------------------------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    """Chromium, driven by Playwright, whose event loop must not outlive the tests that need it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
