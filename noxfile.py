"""Checks in environments of their own: `nox` runs them all with the newest Warp, `nox -s "tests(1.12.1)"` an older one.

The tests run on the Python that the probe is installed for; the measured programs run on a target Python that has the
Warp in question. What follows `--` goes to pytest.
"""

from __future__ import annotations

from pathlib import Path

import nox

RELEASES = ("1.19.0", "1.16.0", "1.12.1", "1.10.1")

nox.options.sessions = ["lint", "types", f"tests({RELEASES[0]})"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
@nox.parametrize("warp", RELEASES, ids=RELEASES)
def tests(session: nox.Session, warp: str) -> None:
    """Run the tests with one release of Warp in the target Python."""
    session.install("-e", ".[test]")
    target = Path(session.virtualenv.location) / "target"
    python = str(target / "bin" / "python")
    if not Path(python).exists():
        session.run("python", "-m", "venv", str(target))
    session.run(python, "-m", "pip", "install", "--quiet", f"warp-lang=={warp}", "numpy", "pytest", external=True)
    session.run("python", "-m", "pytest", "--target-python", python, *session.posargs)


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
