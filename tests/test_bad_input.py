"""What a user, a disk or a program can do wrong: one sentence, the right exit code, and what was measured is kept."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import venv

import pytest
import warp_compile_probe as probe
from conftest import PROGRAMS, SCRIPT
from disks import fill, mounted

PROGRESS = re.compile(r"sample \d+/\d+ (cold|warm|settle): ")
MEGABYTE = 1 << 20


def sentence(measured) -> str:
    """The one line of standard error that is no progress. Fails on more, on none, and on a traceback."""
    assert "Traceback" not in measured.stderr, str(measured)
    lines = [line for line in measured.stderr.splitlines() if not PROGRESS.match(line)]
    assert len(lines) == 1, str(measured)
    assert lines[0].startswith("warp-compile-probe: "), str(measured)
    return lines[0]


def sole_run(measured):
    """The cold run of a report whose only sample got no further."""
    (sample,) = measured.report.samples
    assert not sample.complete
    assert sample.warm is None
    return sample.cold


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory) -> str:
    """A Python without Warp."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True, with_pip=False)
    return str(folder / "bin" / "python")


def run_probe(measure, options, command, json_path, **how):
    """`measure` with streams and limits of the caller's choice."""
    how = {"env": measure.environment({}), "stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **how}
    argv = measure.argv(command, options, json_path)
    return subprocess.run(argv, check=False, **how)


# -- refused before anything runs -------------------------------------------------------------------------------------

REFUSED = {
    "no command": ([], [], "no command"),
    "missing command": ([], ["no-such-command-anywhere"], "not found"),
    "missing file": ([], ["./no-such-file"], "no such file"),
    "not executable": ([], [PROGRAMS / "no_warp.py"], "is not executable"),
    "directory": ([], [PROGRAMS], "is not executable"),
    "samples 0": (["--samples", "0"], None, "--samples"),
    "samples negative": (["--samples=-1"], None, "--samples"),
    "samples no number": (["--samples", "many"], None, "--samples"),
    "timeout 0": (["--timeout", "0"], None, "--timeout"),
    "timeout nan": (["--timeout", "nan"], None, "--timeout"),
    "timeout no number": (["--timeout", "soon"], None, "--timeout"),
    "timeout too long for a timer": (["--timeout", "1e300"], None, "--timeout"),
    "exit code too large": (["--expect-exit", "256"], None, "--expect-exit"),
    "exit code no number": (["--expect-exit", "none"], None, "--expect-exit"),
    "unknown option": (["--sample", "1"], None, "--sample"),
    "option without value": (["--samples"], None, "--samples"),
    "env without value": (["--env", "NAME"], None, "NAME=VALUE"),
    "env without name": (["--env", "=value"], None, "NAME=VALUE"),
    "private WARP_CACHE_PATH": (["--env", "WARP_CACHE_PATH=/x"], None, "WARP_CACHE_PATH"),
    "private WARP_CACHE_ROOT": (["--env", "WARP_CACHE_ROOT=/x"], None, "WARP_CACHE_ROOT"),
    "private CUDA_CACHE_PATH": (["--env", "CUDA_CACHE_PATH=/x"], None, "CUDA_CACHE_PATH"),
    "private TMPDIR": (["--env", "TMPDIR=/x"], None, "TMPDIR"),
    "missing cwd": (["--cwd", "/no/such/folder"], None, "no such directory"),
    "demo with a command": (["--demo"], None, "--demo"),
    "json in a missing folder": (["--json", "/no/such/folder/report.json"], None, "--json"),
    "json is a folder": (["--json", "/"], None, "is a directory"),
    "json in no folder": (["--json", f"{SCRIPT}/report.json"], None, "--json"),
    "logs in no folder": (["--keep-logs", f"{SCRIPT}/logs"], None, "--keep-logs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_before_anything_runs(case, measure, tmp_path):
    options, command, expected = REFUSED[case]
    marker = tmp_path / "ran"
    measured = measure.command(["touch", marker] if command is None else command, options=options, expect=2)
    assert expected in sentence(measured)
    assert measured.stdout == ""
    assert not marker.exists()


def test_a_read_only_folder_for_the_report_is_found_before_measuring(measure, tmp_path):
    with mounted(tmp_path / "disk", "ro") as disk:
        measured = measure.command(["touch", tmp_path / "ran"], options=["--json", str(disk / "report.json")], expect=2)
    assert "Read-only" in sentence(measured)
    assert not (tmp_path / "ran").exists()


def test_the_report_goes_where_the_user_asked_although_the_command_changes_that_directory(measure, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    moved = tmp_path / "there"
    done = subprocess.run(
        measure.argv(
            ["sh", "-c", f"[ -e {moved} ] || {{ mv {folder} {moved}; mkdir {folder}; }}"], ["--samples", "1"], "r.json"
        ),
        check=False,
        cwd=folder,
        env=measure.environment({}),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "r.json").read_text())["samples"][0]["complete"]


# -- a command that fails ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failing_run", "where", "complete"),
    [(1, "sample 1, cold run", []), (2, "sample 1, warm run", []), (3, "sample 2, cold run", [1])],
)
def test_a_failing_run_is_named_and_what_came_before_it_kept(failing_run, where, complete, measure, tmp_path):
    measured = measure("fails_warm.py", tmp_path / "counter", str(failing_run), options=["--samples", "3"], expect=10)
    assert f"{where}: the command ended with exit code 7" in sentence(measured)
    assert f"run {failing_run} met something it did not expect" in measured.stdout
    report = measured.report
    assert [sample.index for sample in report.samples if sample.complete] == complete
    assert (report.summary is not None) == bool(complete)
    runs = [run for sample in report.samples for run in (sample.cold, sample.warm) if run is not None]
    assert [run.exit.code for run in runs] == [0] * (failing_run - 1) + [7]


def test_only_the_last_lines_of_a_long_standard_error_are_shown(measure):
    measured = measure("fails_early.py", expect=10)
    assert "exit code 3" in sentence(measured)
    assert "giving up" in measured.stdout
    assert "no device 29" in measured.stdout
    assert "no device 3\n" not in measured.stdout


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (40, "signal 40")])
def test_a_command_that_a_signal_kills(number, name, measure):
    measured = measure.command(["sh", "-c", f"kill -{number} $$"], expect=10)
    assert f"was killed by {name}" in sentence(measured)
    run = sole_run(measured)
    assert (run.exit.code, run.exit.signal, run.exit.timed_out) == (None, name, False)


@pytest.mark.parametrize(("code", "expected", "exit_code"), [(3, 3, 0), (0, 3, 10), (4, 3, 10)])
def test_a_command_that_means_its_exit_code(code, expected, exit_code, measure):
    options = ["--samples", "1", "--expect-exit", str(expected)]
    measured = measure.command(["sh", "-c", f"exit {code}"], options=options, expect=exit_code)
    if exit_code:
        assert f"exit code {code} instead of {expected}" in sentence(measured)
    else:
        assert measured.report.samples[0].complete


def test_a_probe_whose_parent_ignores_the_end_of_children(measure, tmp_path):
    done = run_probe(
        measure,
        ["--samples", "1"],
        ["sh", "-c", "exit 3"],
        tmp_path / "report.json",
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        stdout=subprocess.DEVNULL,
    )
    assert done.returncode == 10
    assert "exit code 3" in done.stderr


def test_a_file_that_is_no_program(measure, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF and nothing of the kind")
    program.chmod(0o755)
    measured = measure.command([program], expect=2)
    assert f"cannot start {program}" in sentence(measured)


def test_a_python_without_warp(measure, bare_python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import warp\n")
    measured = measure.command([bare_python, program], expect=10)
    assert "exit code 1" in sentence(measured)
    assert "No module named 'warp'" in measured.stdout
    (process,) = sole_run(measured).processes
    assert process.warp is None


def test_the_demo_without_warp(measure, bare_python):
    argv = [bare_python, str(SCRIPT), "measure", "--demo"]
    done = subprocess.run(
        argv, check=False, env=measure.environment({}), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"warp-compile-probe: --demo needs Warp in .*pip install.*\n", done.stderr)


OLD_WARPS = {
    "nothing to hook": "",
    "nothing of what the hooks need": "class ModuleExec: pass\nclass Module:\n    def load(self, device): pass\n",
}


@pytest.mark.parametrize("case", OLD_WARPS)
def test_a_warp_that_is_too_old(case, measure, tmp_path):
    package = tmp_path / "warp"
    package.mkdir()
    (package / "__init__.py").write_text("from . import config, build, codegen, types, utils, context\n")
    for name in ("build", "codegen", "types"):
        (package / f"{name}.py").write_text("")
    (package / "utils.py").write_text(
        "class ScopedTimer:\n    def __enter__(self): pass\n    def __exit__(self, *error): pass\n"
    )
    (package / "config.py").write_text('version = "0.7.1"\n')
    (package / "context.py").write_text(OLD_WARPS[case])
    program = tmp_path / "program.py"
    program.write_text(
        "import warp\nprint(\"Module __main__ 1234567 load on device 'cpu' took 5.00 ms  (compiled)\")\n"
    )
    measured = measure.command([measure.target.python, program], options=["--samples", "2"], expect=4)
    assert "no loads and no launches can be recorded in Warp 0.7.1" in sentence(measured)
    report = measured.report
    assert [sample.complete for sample in report.samples] == [True, True]
    assert report.environment.warp == "0.7.1"
    assert "unsupported-warp" in {gap.reason.value for gap in report.coverage.gaps}
    (known,) = [load for process in report.samples[0].cold.processes for load in process.loads]
    assert (known.source.value, known.hash) == ("log", "1234567")


# -- full and read-only disks -----------------------------------------------------------------------------------------


def test_a_temporary_directory_that_does_not_exist(measure, tmp_path):
    measured = measure.command(["true"], env={"TMPDIR": str(tmp_path / "missing")}, expect=2)
    assert "missing" in sentence(measured)
    assert "set TMPDIR" in measured.stderr


def test_a_read_only_temporary_directory(measure, tmp_path):
    with mounted(tmp_path / "disk", "ro") as disk:
        measured = measure.command(["true"], env={"TMPDIR": str(disk)}, expect=2)
    assert f"under {disk} (Read-only file system)" in sentence(measured)


def test_a_full_temporary_directory(measure, small_disk):
    fill(small_disk)
    measured = measure.command(["true"], env={"TMPDIR": str(small_disk)}, expect=2)
    assert "No space left on device" in sentence(measured)
    assert [path.name for path in small_disk.iterdir()] == ["full"]


def test_no_file_can_be_written(measure):
    """The same as a full disk, for users who may not mount one."""
    done = run_probe(
        measure,
        ["--samples", "1"],
        ["true"],
        "-",
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        env=measure.environment({"COVERAGE_PROCESS_CONFIG": None}),  # coverage could not write its file either
    )
    assert done.returncode == 2
    assert re.fullmatch(r"warp-compile-probe: cannot write .*; free some space or set TMPDIR elsewhere\n", done.stderr)


def test_a_command_that_fills_the_temporary_directory(measure, small_disk):
    measured = measure.command(
        ["sh", "-c", 'cat /dev/zero > "$TMPDIR/x"; exit 0'], env={"TMPDIR": str(small_disk)}, expect=2
    )
    assert "No space left on device" in sentence(measured)
    assert sole_run(measured).exit.code == 0
    assert list(small_disk.iterdir()) == []


def test_a_command_that_fills_the_disk_of_the_report(measure, small_disk):
    report = small_disk / "report.json"
    command = ["sh", "-c", f"cat /dev/zero > {small_disk}/x; exit 0"]
    measured = measure.command(command, options=["--samples", "1", "--json", str(report)], expect=2)
    assert f"{report}: cannot be written (No space left on device)" in sentence(measured)
    assert [path.name for path in small_disk.iterdir()] == ["x"]
    assert "Cold start" in measured.stdout or "cold start" in measured.stdout


def test_a_command_whose_output_fills_the_disk_of_the_logs(measure, small_disk):
    options = ["--samples", "1", "--keep-logs", str(small_disk)]
    measured = measure.command(["head", "-c", str(3 * MEGABYTE), "/dev/zero"], options=options, expect=2)
    assert "--keep-logs: cannot write" in sentence(measured)
    run = sole_run(measured)
    assert (run.exit.code, run.output.stdout_bytes) == (0, 3 * MEGABYTE)


# -- standard streams of the probe ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 10)])
@pytest.mark.parametrize("result", ["text", "json"])
def test_a_reader_that_reads_one_line_only(result, code, expected, measure, tmp_path):
    path = tmp_path / "report.json" if result == "text" else "-"
    # The pipe has no reader at all once the probe writes: the strictest form of `| head -1`.
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_probe(measure, ["--samples", "1"], ["sh", "-c", f"exit {code}"], path, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode == expected
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
    if result == "text":
        assert json.loads(path.read_text())["samples"][0]["complete"] == (code == 0)


def test_head_shows_the_first_line(measure, tmp_path):
    argv = measure.argv(["true"], ["--samples", "1"], tmp_path / "report.json")
    with subprocess.Popen(argv, env=measure.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        head = subprocess.run(["head", "-1"], check=True, stdin=process.stdout, capture_output=True, text=True)
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 0
    assert "cold start" in head.stdout
    assert b"Traceback" not in stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("result", ["text", "json"])
def test_a_full_disk_behind_standard_output(result, measure, tmp_path):
    path = tmp_path / "report.json" if result == "text" else "-"
    with open("/dev/full", "wb") as full:
        done = run_probe(measure, ["--samples", "1"], ["true"], path, stdout=full)
    assert done.returncode == 2
    assert "warp-compile-probe: cannot write the result to standard output" in done.stderr
    assert "Traceback" not in done.stderr
    if result == "text":
        assert json.loads(path.read_text())["samples"][0]["complete"]


def test_echo_into_a_standard_error_that_nobody_reads(measure, tmp_path):
    path = tmp_path / "report.json"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = ["head", "-c", str(MEGABYTE), "/dev/zero"]
        done = run_probe(measure, ["--samples", "1", "--echo"], command, path, stdout=subprocess.DEVNULL, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert json.loads(path.read_text())["samples"][0]["cold"]["output"]["stdout_bytes"] == MEGABYTE


@pytest.mark.parametrize(("command", "expected"), [("true", 0), ("false", 10)])
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_standard_streams_that_are_closed(closed, command, expected, measure, tmp_path):
    path = tmp_path / "report.json"
    argv = measure.argv([command], ["--samples", "1"], path)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *argv],
        check=False,
        env=measure.environment({}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == expected
    assert "Traceback" not in done.stderr
    assert json.loads(path.read_text())["samples"][0]["complete"] == (expected == 0)


def test_a_failure_that_nobody_hears_of(measure, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        path = tmp_path / "report.json"
        done = run_probe(measure, ["--samples", "1"], ["false"], path, stdout=subprocess.DEVNULL, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 10


def test_an_output_encoding_that_cannot_express_the_command(measure):
    argument = os.fsdecode(b"\xff-gr\xc3\xb6\xc3\x9fe")
    measured = measure.command(["true", argument], env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert measured.report.command == ("true", argument)
    assert "Program:" in measured.stdout


# -- commands that misbehave ------------------------------------------------------------------------------------------


def peak_memory(measure, folder, size):
    """What the probe itself holds at most, in bytes, for a command that writes `size` bytes once."""
    path = folder / f"{size}.json"
    argv = measure.argv(
        ["sh", "-c", f"[ -e {folder}/{size} ] || head -c {size} /dev/zero; : > {folder}/{size}"],
        ["--samples", "1"],
        path,
    )
    with subprocess.Popen(
        argv, env=measure.environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, process.stderr.read()
    document = json.loads(path.read_text())
    assert document["samples"][0]["cold"]["output"]["stdout_bytes"] == size
    assert path.stat().st_size < MEGABYTE
    return usage.ru_maxrss * 1024


def test_memory_does_not_grow_with_the_output_of_the_command(measure, tmp_path):
    grown = peak_memory(measure, tmp_path, 300 * MEGABYTE) - peak_memory(measure, tmp_path, MEGABYTE)
    assert grown < 30 * MEGABYTE


def test_lines_without_end_and_bytes_that_are_no_text(measure):
    program = "import os; [os.write(fd, bytes(range(256)) * 4096) for fd in (1, 2)]; raise SystemExit(3)"
    measured = measure.command([measure.target.python, "-c", program], expect=10)
    assert "exit code 3" in sentence(measured)
    output = sole_run(measured).output
    assert (output.stdout_bytes, output.stderr_bytes) == (MEGABYTE, MEGABYTE)
    assert len(measured.stdout) <= 10_000


def test_a_command_that_waits_for_input_gets_its_end(measure):
    measured = measure.command(["sh", "-c", "cat; read line || exit 0; exit 9"])
    assert measured.report.samples[0].complete


def test_a_command_that_closes_all_descriptors_at_its_start(measure, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, subprocess, sys\n"
        "os.closerange(0, 4096)\n"
        "for _ in range(3):\n"
        "    os.open(os.devnull, os.O_RDWR)\n"
        "subprocess.run([sys.executable, '-c', ''])\n"
        "sys.exit(5)\n"
    )
    options = ["--samples", "1", "--expect-exit", "5"]
    measured = measure.command([measure.target.python, program], options=options)
    assert measured.report.coverage.gaps == ()
    assert [(process.path, process.end.value) for process in measured.report.samples[0].cold.processes] == [
        ("0", "exit"),
        ("0.0", "exit"),
    ]


def test_a_command_that_deletes_its_working_directory(measure, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    options = ["--samples", "1", "--cwd", str(folder)]
    measured = measure.command(
        [measure.target.python, "-c", "import os; os.rmdir(os.getcwd())"], options=options, expect=2
    )
    assert f"working directory {folder} is gone" in sentence(measured)
    (process,) = sole_run(measured).processes
    assert process.end.value == "exit"


def test_a_probe_in_a_deleted_directory(measure, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    argv = measure.argv(["true"], ["--samples", "1"], tmp_path / "report.json")
    done = subprocess.run(
        ["sh", "-c", f'rmdir {folder}; exec "$@"', "sh", *argv],
        check=False,
        cwd=folder,
        env=measure.environment({}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "warp-compile-probe: the current directory no longer exists" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["with space", "größe", "a'b\"c$d"])
def test_a_temporary_directory_with_an_unusual_name(name, measure, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    measured = measure("prints_env.py", env={"TMPDIR": str(folder)})
    assert measured.report.coverage.gaps == ()
    assert measured.report.coverage.processes == 2
    assert list(folder.iterdir()) == []


def test_no_home(measure):
    measured = measure("no_warp.py", env={"HOME": None, "XDG_CACHE_HOME": None})
    assert measured.report.coverage.gaps == ()


def test_a_python_of_another_version_is_recorded_too(measure, tmp_path):
    """The recorder's compiled code is for one version of Python; another one compiles its source."""
    program = tmp_path / "program.py"
    program.write_text("import subprocess, sys\nprint(sorted(sys.modules))\n")
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nrm -f "$TMPDIR"/../../code-*\nexec {measure.target.python} "$@"\n')
    other.chmod(0o755)
    measured = measure.command([other, PROGRAMS / "no_warp.py"])
    assert measured.report.coverage.gaps == ()
    assert measured.report.coverage.processes == 1


# -- bugs of the probe ------------------------------------------------------------------------------------------------


def test_a_bug_in_the_probe_is_no_result(monkeypatch, tmp_path, capsys):
    def broken(_arguments):
        raise KeyError("a bug")

    monkeypatch.setattr(probe, "command_parse", broken)
    assert probe.main(["parse", str(tmp_path)]) == 70
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("warp-compile-probe: this is a bug in the probe, please report these lines\n")
    assert printed.err.rstrip().endswith("KeyError: 'a bug'")


def test_a_bug_while_output_is_read_does_not_stop_the_command(monkeypatch):
    """All of the output is drained, and the bug is raised where it ends the measurement."""
    monkeypatch.setattr(probe.OutputReader, "take", lambda _reader, _chunk: 1 / 0)
    with subprocess.Popen(["head", "-c", str(3 * MEGABYTE), "/dev/zero"], stdout=subprocess.PIPE) as command:
        reader = probe.OutputReader(command.stdout, "/private", None, False)
        assert command.wait(60) == 0
        with pytest.raises(ZeroDivisionError):
            reader.finish()
