"""A measurement that ends early: nothing of the command survives, nothing is left behind, what is complete is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import warp_compile_probe as probe
from conftest import PROGRAMS, is_alive

ENDINGS = {
    "timeout": (None, 124, r"had not finished at the time limit of 6\.00 s"),
    "Ctrl-C": (signal.SIGINT, 130, "interrupted"),
    "SIGTERM": (signal.SIGTERM, 143, "terminated"),
    "hang-up": (signal.SIGHUP, 143, "terminated"),
}
# Runs in which the sleeper can sleep: sample 1 is runs 1 and 2, sample 2 runs 3 and 4.
FIRST_COLD, FIRST_WARM, SECOND_COLD, SECOND_WARM = 1, 2, 3, 4


@dataclass(frozen=True)
class Started:
    """A probe that is measuring a program; `pids` are those of the program's processes."""

    process: subprocess.Popen[str]
    pids: tuple[int, ...]
    report: Path
    temporary: Path

    def finish(self, expect: int) -> tuple[str, str]:
        """Both streams of the probe, once it has ended with exit code `expect` and left nothing behind."""
        stdout, stderr = self.process.communicate()
        assert self.process.returncode == expect, f"{stdout}\n{stderr}"
        assert [pid for pid in self.pids if is_alive(pid)] == []
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in stderr
        return stdout, stderr


@pytest.fixture
def start(measure, tmp_path):
    """A function that starts to measure a program which writes the process ids of what it started to a named pipe."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    probes = []

    def run(program, *arguments, options=(), report=tmp_path / "report.json") -> Started:
        argv = measure.argv(
            [measure.target.python, PROGRAMS / program, ready, *arguments], ["--samples", "2", *options], report
        )
        process = subprocess.Popen(
            argv,
            env=measure.environment({"TMPDIR": str(temporary)}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        probes.append(process)
        pids = tuple(int(word) for word in ready.read_text().split())
        assert all(map(is_alive, pids))
        return Started(process, pids, report, temporary)

    yield run
    for process in probes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate()


@pytest.fixture
def start_sleeper(start, tmp_path):
    def run(sleeping_run, *arguments, **how) -> Started:
        return start("sleeper.py", tmp_path / "counter", str(sleeping_run), *arguments, **how)

    return run


def error_line(stderr: str) -> str:
    (line,) = [line for line in stderr.splitlines() if line.startswith("warp-compile-probe: ")]
    return line


@pytest.mark.parametrize("stubborn", [False, True], ids=["obedient", "stubborn"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_in_sample_2(ending, stubborn, start_sleeper):
    number, exit_code, message = ENDINGS[ending]
    options = ["--timeout", "6"] if number is None else []
    started = start_sleeper(SECOND_COLD, *(["--stubborn"] if stubborn else []), options=options)
    assert len(started.pids) == 3
    if number is not None:
        started.process.send_signal(number)
    stdout, stderr = started.finish(exit_code)
    assert re.search(message, error_line(stderr))
    report = probe.load_report(str(started.report))
    first, second = report.samples
    assert (first.complete, second.complete) == (True, False)
    assert report.summary is not None
    assert len(report.summary.cold_wall_ms.values) == 1
    if number is None:
        assert second.cold.exit == probe.Exit(code=None, signal=None, timed_out=True)
        assert "sample 2, cold run" in error_line(stderr)
    else:
        assert second.cold is None
    assert "cold start" in stdout


@pytest.mark.parametrize("ending", ["timeout", "Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("sleeping_run", [FIRST_COLD, FIRST_WARM])
def test_before_anything_is_complete(sleeping_run, ending, start_sleeper):
    number, exit_code, message = ENDINGS[ending]
    started = start_sleeper(sleeping_run, options=["--timeout", "6"] if number is None else [])
    if number is not None:
        started.process.send_signal(number)
    stdout, stderr = started.finish(exit_code)
    assert re.search(message, error_line(stderr))
    assert "No sample is complete" in stdout
    report = probe.load_report(str(started.report))
    assert report.summary is None
    (sample,) = report.samples
    assert not sample.complete
    assert (sample.cold is None) == (sleeping_run == FIRST_COLD and number is not None)


def test_the_document_on_standard_output(start_sleeper):
    started = start_sleeper(SECOND_WARM, report="-")
    started.process.send_signal(signal.SIGINT)
    stdout, _ = started.finish(130)
    report = probe.Report.from_json(json.loads(stdout))
    assert [sample.complete for sample in report.samples] == [True, False]
    assert report.samples[1].cold is not None


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_while_the_first_one_is_obeyed(second, start, tmp_path):
    told = tmp_path / "told"
    os.mkfifo(told)
    started = start("outlives_term.py", told)
    started.process.send_signal(signal.SIGINT)
    # The program has been told to end, and does not: the probe is in its grace period now.
    assert told.read_text() == "told\n"
    started.process.send_signal(second)
    started.process.send_signal(signal.SIGINT)
    _, stderr = started.finish(130)
    assert error_line(stderr) == "warp-compile-probe: interrupted"
    report = probe.load_report(str(started.report))
    assert report.summary is None


def test_two_signals_at_once(start_sleeper):
    started = start_sleeper(SECOND_COLD)
    # Held up until both are there: the handler of one then finds the other one waiting.
    os.kill(started.process.pid, signal.SIGSTOP)
    os.kill(started.process.pid, signal.SIGTERM)
    os.kill(started.process.pid, signal.SIGINT)
    os.kill(started.process.pid, signal.SIGCONT)
    _, stderr = started.finish(started.process.wait())
    assert started.process.returncode in (130, 143)
    error_line(stderr)
    assert probe.load_report(str(started.report)).summary is not None


def test_hang_ups_that_nohup_ignores(start, tmp_path):
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        started = start("sleeper.py", tmp_path / "counter", str(FIRST_COLD))
    finally:
        signal.signal(signal.SIGHUP, previous)
    started.process.send_signal(signal.SIGHUP)
    started.process.send_signal(signal.SIGTERM)
    _, stderr = started.finish(143)
    assert error_line(stderr) == "warp-compile-probe: terminated"


def test_what_outlives_the_command_is_ended_and_named(measure, tmp_path):
    pid_file = tmp_path / "pid"
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], start_new_session=True)\n"
        f"open({str(pid_file)!r}, 'a').write(f'{{child.pid}} ')\n"
    )
    measured = measure.command([measure.target.python, "-c", program])
    pids = [int(word) for word in pid_file.read_text().split()]
    assert len(pids) == 2
    assert [pid for pid in pids if is_alive(pid)] == []
    survivors = [notice.text for notice in measured.report.warnings if notice.name == "survivors"]
    assert ["cold" in survivors[0], "warm" in survivors[1]] == [True, True]
    assert all("signal.pause()" in text for text in survivors)
