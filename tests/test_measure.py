"""What a measurement says of a program is what happened, and the program behaves as without the probe."""

from __future__ import annotations

import array
import ast
import base64
import collections
import dataclasses
import functools
import json
import lzma
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import warp_compile_probe as probe
from conftest import PROGRAMS, Truth, read_site, read_truth

# -- the programs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A program with its truth, how to start it, and the markers of the places where its builds are asked for.

    `words` follow the interpreter; `{program}` stands for the program and `{folder}` for a new path. `site_of` is the
    file with the markers, if that is another one. `unordered`: threads may write their lines in any order.
    """

    program: str
    builds: tuple[str, ...] = ("build",)
    words: tuple[str, ...] = ("{program}",)
    site_of: str | None = None
    needs: str | None = None
    unordered: bool = False

    @property
    def file(self) -> Path:
        return PROGRAMS / (self.site_of or self.program)


LATE_BUILDS = ("first-build", "late-kernel", "late-option", "late-float", "late-int")

CASES = {
    "late everything": Case("late_everything.py", LATE_BUILDS),
    "-c": Case("late_everything.py", LATE_BUILDS, ("-c", "import late_everything")),
    "-m": Case("as_module/__init__.py", words=("-m", "as_module"), site_of="as_module/__main__.py"),
    "runpy": Case("runpy_program.py", site_of="simple.py"),
    "pytest": Case(
        "pytest_program/test_kernel.py",
        words=("-m", "pytest", "-q", "-p", "no:cacheprovider", "{program}"),
        needs="pytest",
    ),
    "simple": Case("simple.py"),
    "custom logger": Case("custom_logger.py"),
    "redirected": Case("redirected.py"),
    "binary output": Case("binary_output.py"),
    "os._exit": Case("os_exit.py"),
    "exec chain": Case("exec_chain.py"),
    "fork": Case("forker.py", ("build", "build")),
    "forkserver": Case("forkserver.py"),
    "spawn pool": Case("spawn_pool.py", ("build", "build")),
    "subprocess": Case("subprocess_child.py"),
    "killed child": Case("killed_child.py"),
    "factory": Case("factory.py", ("factory", "factory", "factory")),
    "launch objects": Case("launch_objects.py", ("record",)),
    "second thread": Case("second_thread.py"),
    "CPU graph": Case("cpu_graph.py"),
    "threads in force_load": Case("threads_force_load.py", ("force-load", "force-load"), unordered=True),
    "cache cleared": Case("clears_cache.py"),
    "cache deleted": Case("deletes_cache.py", words=("{program}", "{folder}")),
    "cache fresh": Case("fresh_cache_dir.py"),
    "cache of a child": Case("temporary_cache.py"),
    "cache off": Case("no_cache.py"),
}
SINCE = {"custom logger": "1.14", "CPU graph": "1.13", "threads in force_load": "1.11"}
EVERY_CASE = [pytest.param(name, marks=pytest.mark.warp(since=SINCE.get(name, "1.10"))) for name in CASES]


@dataclass(frozen=True)
class Outcome:
    """What a program wrote and how it ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int


@dataclass(frozen=True)
class Both:
    """A program without the probe, and its cold run under the probe."""

    plain: Outcome
    probed: Outcome
    report: probe.Report

    @property
    def cold(self) -> probe.Run:
        return self.report.samples[0].cold

    @property
    def builds(self) -> list[probe.Load]:
        """The builds of the cold run, by process and start."""
        return [
            load
            for process in self.cold.processes
            for load in sorted(process.loads, key=lambda load: load.start_ms or 0.0)
            if load.is_build
        ]


@pytest.fixture(scope="module")
def both(measure, tmp_path_factory):
    """A function that runs a command with and without the probe, at the same time, with options and environment."""

    def run(command, options=(), env=None, cwd=PROGRAMS) -> Both:
        folder = tmp_path_factory.mktemp("both")
        logs = folder / "logs"
        (folder / "tmp").mkdir()
        words = [str(word).replace("{folder}", str(folder / "plain")) for word in command]
        private = {"WARP_CACHE_PATH": str(folder / "warp"), "TMPDIR": str(folder / "tmp")}
        with subprocess.Popen(
            words,
            cwd=cwd,
            env={**measure.environment(env or {}), **private},
            stdin=subprocess.DEVNULL,
            stdout=(folder / "stdout").open("wb"),
            stderr=(folder / "stderr").open("wb"),
        ) as plain:
            words = [str(word).replace("{folder}", str(folder / "probed")) for word in command]
            options = ["--samples", "1", "--keep-logs", str(logs), *options]
            measured = measure.command(words, options=options, env=env, cwd=cwd)
        code = measured.report.samples[0].cold.exit.code
        return Both(
            Outcome((folder / "stdout").read_bytes(), (folder / "stderr").read_bytes(), plain.returncode),
            Outcome((logs / "1-cold.stdout").read_bytes(), (logs / "1-cold.stderr").read_bytes(), code),
            measured.report,
        )

    return run


@pytest.fixture(scope="module")
def outcome(both, target):
    """A function that runs a case once in the session, with and without the probe."""

    @functools.cache
    def run(name: str) -> Both:
        case = CASES[name]
        return both([target.python, *(word.format(program=case.program, folder="{folder}") for word in case.words)])

    return run


@pytest.fixture
def skip_what_the_target_lacks(needs_in_target):
    def check(name: str) -> None:
        if CASES[name].needs is not None:
            needs_in_target(CASES[name].needs)

    return check


def normalised(data: bytes) -> bytes:
    """Output without the path of Warp's cache, the numbers of its timers, and the duration that pytest prints."""
    data = re.sub(rb"took [\d.]+ ms", b"took N ms", data)
    data = re.sub(rb"(Kernel cache:\n +)[^\n]+", rb"\1PATH", data)
    return re.sub(rb"(passed in )[\d.]+s", rb"\1N s", data)


def function_at(file: Path, line: int) -> str:
    """The name of the innermost function around a line."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    around = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno
    ]
    return max(around, key=lambda node: node.lineno).name if around else "<module>"


def launched(stream: probe.LaunchStream) -> list[int]:
    """The entries of a stream in the order in which they were launched."""
    code = {1: "B", 2: "H", 4: "I"}[stream.width]
    return array.array(code, lzma.decompress(base64.b64decode(stream.data))).tolist()


# -- every program ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_CASE)
def test_the_counts_are_the_truth(name, outcome, target, skip_what_the_target_lacks):
    skip_what_the_target_lacks(name)
    report = outcome(name).report
    assert [sample.complete for sample in report.samples] == [True]
    found = {field.name: getattr(report.summary, field.name) for field in dataclasses.fields(Truth)}
    assert Truth(**found) == read_truth(PROGRAMS / CASES[name].program, target.warp)


@pytest.mark.parametrize("name", EVERY_CASE)
def test_every_build_is_described(name, outcome, target, skip_what_the_target_lacks):
    skip_what_the_target_lacks(name)
    case = CASES[name]
    run = outcome(name)
    expected = [(str(case.file), read_site(case.file, marker), 1) for marker in case.builds]
    if name == "threads in force_load" and target.warp < (1, 18):
        # Loading ahead built for the default block_dim, and the launches built again.
        expected = [(file, line, 256) for file, line, _ in expected]
        expected += [(str(case.file), read_site(case.file, marker), 1) for marker in ("add", "double")]
    sites = [(str(PROGRAMS / load.site.file), load.site.line, load.block_dim) for load in run.builds]
    assert sites == expected
    for load in run.builds:
        assert load.site.function == function_at(case.file, load.site.line)
        assert re.fullmatch("[0-9a-f]{64}", load.hash)
        assert load.device == "cpu"
        assert load.source is probe.Source.HOOK
        assert load.phases.native_ms > 0
        assert load.ms >= load.phases.native_ms
        assert load.generated_source_bytes > 0
        assert load.error is None


@pytest.mark.parametrize("name", EVERY_CASE)
def test_nothing_goes_unseen(name, outcome, skip_what_the_target_lacks):
    skip_what_the_target_lacks(name)
    report = outcome(name).report
    assert report.coverage.gaps == ()
    for run in (report.samples[0].cold, report.samples[0].warm, report.samples[0].settle):
        if run is not None:
            assert run.cross_check.unexplained_directories == ()
            assert run.cross_check.log_only == 0
            assert [process.hook_errors for process in run.processes if process.hook_errors] == []
    assert {notice.name for notice in report.warnings} == set()


@pytest.mark.parametrize("name", EVERY_CASE)
def test_the_program_does_what_it_does_without_the_probe(name, outcome, skip_what_the_target_lacks):
    skip_what_the_target_lacks(name)
    run = outcome(name)
    arrange = sorted if CASES[name].unordered else list
    for plain, probed in ((run.plain.stdout, run.probed.stdout), (run.plain.stderr, run.probed.stderr)):
        assert arrange(normalised(probed).splitlines()) == arrange(normalised(plain).splitlines())
    assert run.probed.exit_code == run.plain.exit_code == 0


# -- processes, launches and caches -----------------------------------------------------------------------------------

EXEC, FORK = "exec", "fork"
ENDS = {
    "os._exit": {"0": (EXEC, "os._exit")},
    "exec chain": {"0": (EXEC, "exec"), "0.0": (EXEC, "exit")},
    "fork": {"0": (EXEC, "exit"), "0.0": (FORK, "exit")},
    "subprocess": {"0": (EXEC, "exit"), "0.0": (EXEC, "exit")},
    "killed child": {"0": (EXEC, "exit"), "0.0": (EXEC, "unrecorded")},
}


@pytest.mark.warp
@pytest.mark.parametrize("name", ENDS)
def test_processes_and_how_they_ended(name, outcome):
    run = outcome(name)
    processes = {process.path: process for process in run.cold.processes}
    assert {path: (process.how, process.end.value) for path, process in processes.items()} == ENDS[name]
    assert run.report.coverage.processes == len(processes)
    unrecorded = sum(process.end is probe.ProcessEnd.UNRECORDED for process in processes.values())
    assert run.report.coverage.ended_cleanly == len(processes) - unrecorded


@pytest.mark.warp
def test_pool_workers_are_children_of_the_program(outcome):
    processes = outcome("spawn pool").cold.processes
    workers = [process for process in processes if process.launches.count]
    assert len(workers) == 2
    assert {process.path.rpartition(".")[0] for process in workers} == {"0"}


@pytest.mark.warp
def test_a_kernel_factory_has_the_hashes_that_it_prints(outcome):
    run = outcome("factory")
    printed = re.findall(rb"^\d ([0-9a-f]{64})$", run.plain.stdout, re.MULTILINE)
    assert [load.hash.encode() for load in run.builds] == printed
    assert len(set(printed)) == 3


@pytest.mark.warp
def test_launches_that_objects_tapes_and_tiles_make(outcome):
    (process,) = outcome("launch objects").cold.processes
    counts = collections.Counter()
    for entry in process.launches.entries:
        counts[process.launches.kernels[entry.kernel].key, entry.adjoint] += entry.count
    assert counts == {("scale", False): 4, ("scale", True): 1, ("fill", False): 1}
    assert process.launches.graph_replays_unknown == 0


@pytest.mark.warp(since="1.13")
def test_replays_of_a_graph_are_launches_in_order(outcome):
    (process,) = outcome("CPU graph").cold.processes
    (stream,) = process.launches.streams
    keys = [process.launches.kernels[process.launches.entries[index].kernel].key for index in launched(stream)]
    assert keys == ["add", "double"] * 3


@pytest.mark.warp
def test_launches_of_each_thread_are_in_order(outcome):
    (process,) = outcome("second thread").cold.processes
    dims = [[process.launches.entries[index].dim for index in launched(stream)] for stream in process.launches.streams]
    assert dims == [[(8,)] * 5, [(8,) if step % 3 == 0 else (4,) for step in range(300)]]
    assert {stream.order for stream in process.launches.streams} == {probe.Order.EXACT}


CACHE_EVENTS = {
    "cache cleared": ("clear-kernel-cache", "clear"),
    "cache deleted": ("directory-set", "directory-set"),
    "cache fresh": ("directory-set", "directory-set"),
    "cache off": ("caching-off", "caching-off"),
}


@pytest.mark.warp
@pytest.mark.parametrize("name", CACHE_EVENTS)
def test_what_a_program_does_to_its_cache_is_said_with_its_place(name, outcome):
    kind, marker = CACHE_EVENTS[name]
    (event,) = outcome(name).cold.processes[0].cache_events
    file = CASES[name].file
    assert (event.kind.value, str(PROGRAMS / event.site.file), event.site.line) == (
        kind,
        str(file),
        read_site(file, marker),
    )


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: content and time of change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.warp
@pytest.mark.parametrize("how", [(), ("--after-init",)], ids=["before init", "after init"])
def test_a_cache_of_the_programs_own_is_left_alone(how, both, target, measure, tmp_path):
    cache = tmp_path / "own"
    command = [target.python, "own_cache_dir.py", cache, *how]
    subprocess.run(command, check=True, cwd=PROGRAMS, env=measure.environment({}), stdout=subprocess.DEVNULL)
    before = content(cache)
    assert any(name.endswith(".o") for name in before)
    run = both(command)
    assert content(cache) == before
    # Without the probe the kernel comes from that cache; a cold run must build it, and a warm one finds what it built.
    assert b"(cached)" in run.plain.stdout
    assert run.report.summary.builds == 1
    assert run.report.summary.warm_builds == 0
    warm = [load.status for process in run.report.samples[0].warm.processes for load in process.loads]
    assert warm == [probe.Status.CACHED]
    (event,) = run.cold.processes[0].cache_events
    assert event.kind is probe.CacheEventKind.DIRECTORY_SET
    assert event.path.startswith(str(cache))
    assert event.site.line == read_site(PROGRAMS / "own_cache_dir.py", "directory-set")
    assert run.report.coverage.gaps == ()


@pytest.mark.warp
def test_nothing_is_left_where_a_program_wanted_its_cache(measure, tmp_path):
    cache = tmp_path / "some" / "where"
    (tmp_path / "tmp").mkdir()
    measured = measure("own_cache_dir.py", cache, options=["--samples", "2"], env={"TMPDIR": str(tmp_path / "tmp")})
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]
    report = measured.report
    assert [sample.cold.builds for sample in report.samples] == [1, 1]
    assert [sample.warm.builds for sample in report.samples] == [0, 0]
    assert len(report.summary.cold_module_ms.values) == 2


# -- other ways to start ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_python(target, tmp_path_factory) -> str:
    """An interpreter that is not the one of the probe, with the Warp of the target."""
    folder = tmp_path_factory.mktemp("other")
    subprocess.run([target.python, "-m", "venv", "--without-pip", folder], check=True)
    python = str(folder / "bin" / "python")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, ours = (subprocess.check_output([one, "-c", ask], text=True).strip() for one in (target.python, python))
    (Path(ours) / "target.pth").write_text(theirs + "\n")
    return python


@pytest.mark.warp
def test_another_interpreter_behind_env_with_a_sitecustomize(both, other_python, target, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('customized')\n")
    run = both(["env", f"PYTHONPATH={tmp_path}", "NAME=value", other_python, "late_everything.py"])
    assert run.probed.stdout.startswith(b"customized\n")
    assert run.probed == run.plain
    summary = run.report.summary
    truth = read_truth(PROGRAMS / "late_everything.py", target.warp)
    assert (summary.builds, summary.rebuilds, summary.launches) == (truth.builds, truth.rebuilds, truth.launches)
    assert run.report.coverage.gaps == ()
    assert run.cold.processes[0].executable == other_python
    assert run.report.environment.warp == ".".join(map(str, target.warp))


@pytest.mark.parametrize("customized", [False, True])
@pytest.mark.parametrize("through_env", [False, True])
def test_the_interpreter_looks_as_without_the_probe(through_env, customized, both, target, tmp_path):
    (tmp_path / "helper.py").write_text("")
    if customized:
        (tmp_path / "sitecustomize.py").write_text("import helper\n")
    command = [target.python, "prints_start.py", "argument"]
    if through_env:
        run = both(["env", f"PYTHONPATH={tmp_path}:/x", *command])
    else:
        run = both(command, env={"PYTHONPATH": f"{tmp_path}:/x"})
    plain, probed = json.loads(run.plain.stdout), json.loads(run.probed.stdout)
    assert probed == plain
    assert (plain["sitecustomize"] == str(tmp_path / "sitecustomize.py")) == customized
    assert run.report.coverage.gaps == ()
    assert run.report.coverage.processes == 1


def test_a_sitecustomize_that_fails(both, target, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('no customs here')\n")
    run = both([target.python, "no_warp.py"], env={"PYTHONPATH": str(tmp_path)})
    assert b"no customs here" in run.plain.stderr
    assert run.probed.stdout == run.plain.stdout
    assert run.probed.stderr == run.plain.stderr
    assert run.report.coverage.processes == 1


def test_no_pythonpath_at_all(both, target):
    run = both([target.python, "prints_start.py"], env={"PYTHONPATH": None})
    assert json.loads(run.probed.stdout) == json.loads(run.plain.stdout)


def test_the_program_has_no_terminal_and_no_input(measure, target):
    code = "import os, sys; assert sys.stdin.read() == ''; sys.exit(any(map(os.isatty, range(3))))"
    measured = measure.command([target.python, "-c", code])
    assert measured.report.coverage.gaps == ()


@pytest.mark.parametrize("inherit", [False, True])
def test_private_variables_as_a_child_sees_them(inherit, measure, tmp_path):
    system = tmp_path / "tmp"
    system.mkdir()
    options = ["--samples", "2", "--keep-logs", str(tmp_path), *(["--inherit-tmpdir"] if inherit else [])]
    measured = measure("prints_env.py", options=options, env={"TMPDIR": str(system)})
    assert measured.report.coverage.gaps == ()
    seen = {
        name: json.loads((tmp_path / f"{name}.stdout").read_text()) for name in ("1-cold", "1-warm", "2-cold", "2-warm")
    }
    for run in seen.values():
        assert run["own"] == run["child"]
        private = dict(run["own"])
        if inherit:
            assert private.pop("TMPDIR") == str(system)
        assert len(set(private.values())) == len(private)
        for path in private.values():
            assert path.startswith(f"{system}/")
            assert not os.path.exists(path)
    assert seen["1-cold"] == seen["1-warm"]
    assert seen["2-cold"] == seen["2-warm"]
    assert seen["1-cold"]["own"]["WARP_CACHE_PATH"] != seen["2-cold"]["own"]["WARP_CACHE_PATH"]
    assert list(system.iterdir()) == []


def test_private_folders_are_the_users_alone(measure, target, tmp_path):
    program = (
        "import os; path = os.environ['WARP_CACHE_PATH']; root = os.path.dirname(os.path.dirname(path));"
        "print([oct(os.stat(p).st_mode & 0o777) for p in (root, path, os.environ['TMPDIR'])],"
        " len(os.listdir(path)), len(os.listdir(os.environ['TMPDIR'])))"
    )
    options = ["--samples", "1", "--keep-logs", str(tmp_path)]
    measure.command([target.python, "-c", program], options=options)
    assert (tmp_path / "1-cold.stdout").read_text() == "['0o700', '0o700', '0o700'] 0 0\n"


# -- where the recorder cannot look -----------------------------------------------------------------------------------

UNRECORDED = {
    "-I": (["{python}", "-I", "no_warp.py"], "isolated-python"),
    "-E": (["{python}", "-E", "no_warp.py"], "isolated-python"),
    "-S": (["{python}", "-S", "no_warp.py"], "isolated-python"),
    "joined flags": (["{python}", "-uIB", "no_warp.py"], "isolated-python"),
    "env -i": (["env", "-i", "{python}", "no_warp.py"], "dropped-environment"),
    "env -u": (["env", "-u", "PYTHONPATH", "{python}", "no_warp.py"], "dropped-environment"),
    "no Python": (["true"], "not-recorded"),
    "a shell that starts it": (["sh", "-c", "{python} -I no_warp.py"], "not-recorded"),
}


@pytest.mark.parametrize("case", UNRECORDED)
def test_a_command_that_keeps_the_recorder_out(case, both, target):
    words, reason = UNRECORDED[case]
    run = both([word.format(python=target.python) for word in words])
    assert {gap.reason.value for gap in run.report.coverage.gaps} == {reason}
    assert run.report.coverage.processes == 0
    assert run.probed == run.plain


RECORDED = {
    "a shell": ["sh", "-c", "{python} no_warp.py"],
    "options of env": ["env", "-u", "SOMETHING", "PYTHONPATH=/x", "{python}", "no_warp.py"],
    "env in env": ["env", "A=1", "env", "PYTHONPATH=/x", "{python}", "no_warp.py"],
    "options of Python": ["{python}", "-W", "ignore", "-X", "utf8", "-B", "-u", "no_warp.py"],
    "env by its path": ["/usr/bin/env", "PYTHONPATH=/x", "{python}", "no_warp.py"],
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_command_that_the_recorder_reaches(case, both, target):
    run = both([word.format(python=target.python) for word in RECORDED[case]])
    assert run.report.coverage.gaps == ()
    assert run.report.coverage.processes == 1
    assert run.probed == run.plain


@pytest.mark.warp
def test_a_child_under_isolation_is_known_from_the_output(both, target):
    run = both([target.python, "child_isolated.py", "isolated"])
    truth = read_truth(PROGRAMS / "child_isolated.py", target.warp)
    assert run.report.summary.builds == truth.builds
    (load,) = run.builds
    assert load.source is probe.Source.LOG
    assert (load.device, load.site, load.phases) == ("cpu", None, None)
    assert re.fullmatch("[0-9a-f]{7}", load.hash)
    assert load.ms > 0
    reasons = {gap.reason for gap in run.report.coverage.gaps}
    assert reasons == {probe.GapReason.ISOLATED_PYTHON, probe.GapReason.LOG_ONLY_LOADS}
    (isolated, *_) = [gap for gap in run.report.coverage.gaps if gap.reason is probe.GapReason.ISOLATED_PYTHON]
    assert isolated.pid is not None
    assert "-I" in isolated.detail
    assert run.cold.cross_check.unexplained_directories == ()
    warm = [load for process in run.report.samples[0].warm.processes for load in process.loads]
    assert [load.status for load in warm] == [probe.Status.CACHED]
    assert normalised(run.probed.stdout) == normalised(run.plain.stdout)


@pytest.mark.warp
def test_a_dropped_environment_makes_a_run_that_is_not_cold(measure, tmp_path):
    """The first time the child fills the user's own cache, the second time it is served from there."""
    env = {"HOME": str(tmp_path)}
    for expected in ("own kernel or driver cache changed", "came from a cache that this run had not filled"):
        measured = measure("child_isolated.py", "emptied", env=env, expect=4)
        line = measured.stderr.splitlines()[-1]
        assert line.startswith("warp-compile-probe: sample 1, cold run: ")
        assert expected in line
        report = measured.report
        assert report.summary is None
        assert not report.samples[0].complete
        assert "dropped-environment" in {gap.reason.value for gap in report.coverage.gaps}


@pytest.mark.warp
def test_what_sigkill_leaves(measure, target):
    measured = measure("self_kill.py", expect=10)
    assert "sample 1, cold run: the command was killed by SIGKILL" in measured.stderr
    (sample,) = measured.report.samples
    (process,) = sample.cold.processes
    truth = read_truth(PROGRAMS / "self_kill.py", target.warp)
    assert (sample.cold.exit.code, sample.cold.exit.signal) == (None, "SIGKILL")
    assert process.end is probe.ProcessEnd.UNRECORDED
    assert sample.cold.builds == truth.builds
    assert process.launches.count == truth.launches


def test_a_program_without_warp(both, target):
    run = both([target.python, "no_warp.py"])
    assert run.probed == run.plain
    assert run.report.coverage == probe.Coverage(processes=1, used_warp=0, ended_cleanly=1, gaps=())
    assert run.report.summary.builds == 0


def test_the_exit_code_of_a_program(both, target):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    run = both([target.python, "-c", code], options=["--expect-exit", "3"])
    assert run.probed == run.plain == Outcome(b"out\n", b"err\n", 3)


def test_a_traceback_is_the_programs_own(both, target):
    run = both([target.python, "-c", "import os\nos._exit('no number')"], options=["--expect-exit", "1"])
    assert run.probed.exit_code == run.plain.exit_code == 1
    assert run.probed.stderr.splitlines()[-1] == run.plain.stderr.splitlines()[-1]
