"""Loads for the CPU on several threads: the program that shows the race runs, and the probe names what it does.

Whether kernels are lost depends on the release of Warp and on luck, so no test asks for it."""

import subprocess

import pytest
import warp_compile_probe as probe
from conftest import PROGRAMS

RACE = PROGRAMS / "cpu_load_race.py"


@pytest.mark.warp(since="1.11")
def test_loads_on_several_threads_are_a_finding(measure, target):
    measured = measure("cpu_load_race.py", expect=None)
    if target.warp >= (1, 19):
        assert measured.exit_code == probe.ExitCode.OK, measured
    assert measured.report.coverage.gaps == ()
    found = {finding.mechanism for finding in measured.report.findings}
    assert found & {"CS-8", "cpu-parallel-load"}


@pytest.mark.warp(since="1.10")
def test_tries_are_counted(target, measure):
    done = subprocess.run(
        [target.python, RACE, "--tries", "2", "--aligned"],
        check=True,
        capture_output=True,
        text=True,
        env=measure.environment({}),
    )
    assert done.stdout.splitlines()[-1].startswith("2 tries: ")
