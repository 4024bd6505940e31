"""Checks in environments of their own: `nox` runs them all with the newest Warp, `nox -s "tests(1.12.1-3.9)"` with an
older one on another Python, `nox -s support` the support table for every release.

The tests run on the Python that the probe is installed for; the measured programs run on a target Python that has the
Warp in question. What follows `--` goes to pytest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

import support_table

UNSUPPORTED = {"1.8.1"}  # its launches cannot be recorded; `support` checks that the probe says so
SUPPORTED = {warp: pythons for warp, pythons in support_table.RELEASES.items() if warp not in UNSUPPORTED}
TARGETS = [(warp, python) for warp, pythons in SUPPORTED.items() for python in pythons]
IDS = [f"{warp}-{python}" for warp, python in TARGETS]
NEWEST = [name for name, (_, python) in zip(IDS, TARGETS, strict=True) if support_table.find_python(python)][-1]

nox.options.sessions = ["lint", "types", f"tests({NEWEST})"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
@nox.parametrize("warp,python_version", TARGETS, ids=IDS)
def tests(session: nox.Session, warp: str, python_version: str) -> None:
    """Run the tests with one release of Warp in the target Python."""
    if support_table.find_python(python_version) is None:
        session.skip(f"there is no Python {python_version} on this machine")
    session.install("-e", ".[test]")
    target = support_table.target_python(Path(session.virtualenv.location) / "targets", warp, python_version)
    session.run(target, "-m", "pip", "install", "--quiet", "pytest", external=True)
    session.run("python", "-m", "pytest", "--target-python", target, *session.posargs)


@nox.session
def support(session: nox.Session) -> None:
    """Measure the programs of the support table with every release; fail where README's table says something else."""
    session.install("-e", ".")
    venvs = Path(session.virtualenv.location) / "targets"
    session.run("python", "tests/support_table.py", "--check", "--venvs", str(venvs), *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".[test]")
    session.run("mypy", "--strict", "scripts/warp_compile_probe.py")


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests with coverage of the script, in the probe, its children and the measured programs."""
    session.install("-e", ".[test]")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def mutation(session: nox.Session) -> None:
    """Mutate the functions that judge, and check that the tests tell every mutant that is not explained."""
    session.install("-e", ".[test]", "mutmut==3.8.1")
    session.run("python", "tests/mutation.py", *session.posargs)
