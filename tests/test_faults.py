"""Programs and machines on a bad day: what dies, hangs, fills up or meddles, and what the report then says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import warp_compile_probe as probe
from conftest import PROGRAMS, SCRIPT, is_alive, read_truth
from recorded import launch_table
from stubbed import cold, gaps

MEGABYTE = 1 << 20


def launched(process):
    return sorted((key, dim, count) for key, dim, _, count in launch_table(process.launches))


# ---------------------------------------------------------------------------------------------------------------------
# A process that dies
# ---------------------------------------------------------------------------------------------------------------------

# One module is built and launched twice, then the process dies in the middle of the next build.
DIES = """
import ctypes, resource, signal, time

def die(*_args, **_keywords):
    {death}

def work():
    for _ in range(2):
        wp.launch(add, dim=8, inputs=[1.0])
    wp._src.build.build_cpu = die

    @wp.kernel
    def late(x: float):
        pass

    wp.launch(late, dim=8, inputs=[1.0])
"""
DEATHS = {
    "SIGSEGV": ("ctypes.string_at(0)", None, "SIGSEGV", "unrecorded"),
    "abort": ("os.abort()", None, "SIGABRT", "unrecorded"),
    "the kernel's out-of-memory killer": ("os.kill(os.getpid(), signal.SIGKILL)", None, "SIGKILL", "unrecorded"),
    "out of memory": (
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); bytearray(1 << 31)",
        1,
        None,
        "exit",
    ),
    "os._exit": ("os._exit(7)", 7, None, "os._exit"),
}


@pytest.mark.parametrize("case", DEATHS)
def test_the_program_dies_in_the_middle_of_a_build(case, stub):
    death, code, signal_name, end = DEATHS[case]
    measured = stub(DIES.format(death=death) + "work()\n", expect=10)
    assert f"sample 1, cold run: the command {'was killed by' if signal_name else 'ended with'}" in measured.stderr
    assert "Traceback" not in measured.stderr.replace("  | Traceback", "")
    run = cold(measured)
    assert (run.exit.code, run.exit.signal) == (code, signal_name)
    (process,) = run.processes
    assert process.end.value == end
    assert launched(process) == [("add", (8,), 2)]
    # What Python can still tell of the build that failed, it does; a process that is gone cannot.
    assert [load.status.value for load in process.loads] == ["compiled"] + (
        ["error"] if case == "out of memory" else []
    )
    assert gaps(measured) == []
    assert measured.report.summary is None


@pytest.mark.parametrize("case", DEATHS)
def test_a_child_dies_in_the_middle_of_a_build(case, stub):
    death, _, _, end = DEATHS[case]
    body = DIES.format(death=death) + textwrap.dedent(
        """
        if not os.fork():
            work()
            os._exit(0)
        os.wait()
        wp.launch(halve, dim=3, inputs=[1.0])
        """
    )
    measured = stub(body)
    parent, child = cold(measured).processes
    assert (parent.end.value, launched(parent)) == ("exit", [("halve", (3,), 1)])
    assert (child.end.value, launched(child)) == (end, [("add", (8,), 2)])
    coverage = measured.report.coverage
    assert (coverage.processes, coverage.ended_cleanly) == (2, 2 - (end == "unrecorded"))
    assert gaps(measured) == []


def test_a_native_compile_that_hangs_ends_at_the_timeout(stub):
    body = DIES.format(death="time.sleep(1000)") + "work()\n"
    measured = stub(body, options=["--samples", "1", "--timeout", "6"], expect=124)
    assert "sample 1, cold run: the command had not finished at the time limit of 6.00 s" in measured.stderr
    run = cold(measured)
    assert run.exit == probe.Exit(code=None, signal=None, timed_out=True)
    (process,) = run.processes
    assert ([load.status.value for load in process.loads], launched(process)) == (["compiled"], [("add", (8,), 2)])


def test_a_child_that_outlives_its_parent_for_a_moment(stub):
    measured = stub(
        """
        import time
        parent = os.getpid()
        wp.launch(add, dim=8, inputs=[1.0])
        if not os.fork():
            while os.getppid() == parent:
                time.sleep(0.01)
            wp.launch(halve, dim=5, inputs=[1.0])
        """
    )
    parent, child = cold(measured).processes
    assert (parent.end.value, launched(parent)) == ("exit", [("add", (8,), 1)])
    assert (child.path, child.end.value, launched(child)) == ("0.0", "exit", [("halve", (5,), 1)])
    assert gaps(measured) == []
    assert measured.report.warnings == ()


def test_what_a_process_would_still_do_that_the_probe_has_to_end_is_a_gap(stub, monkeypatch):
    monkeypatch.setattr(probe, "LINGER_SECONDS", 0.2)
    measured = stub(
        """
        import time
        wp.launch(add, dim=8, inputs=[1.0])
        if not os.fork():
            time.sleep(60)
            wp.launch(halve, dim=5, inputs=[1.0])
        """
    )
    (reason, detail), *_ = gaps(measured)
    assert (reason, len(gaps(measured))) == ("ended-by-probe", 2)
    assert detail.startswith("process 0.0 had not ended")
    assert measured.report.coverage.gaps[0].pid == cold(measured).processes[1].pid


def test_a_chain_of_execs(stub):
    measured = stub(
        """
        number = int(sys.argv[1]) if len(sys.argv) > 1 else 1
        wp.launch(add, dim=number, inputs=[1.0])
        if number < 6:
            os.execv(sys.executable, [sys.executable, __file__, str(number + 1)])
        """
    )
    processes = cold(measured).processes
    assert [process.path for process in processes] == [".".join("0" * depth) for depth in range(1, 7)]
    assert [launched(process) for process in processes] == [[("add", (number,), 1)] for number in range(1, 7)]
    assert [process.end.value for process in processes] == ["exec"] * 5 + ["exit"]
    assert len({process.pid for process in processes}) == 1
    assert measured.report.summary.builds == 1
    assert gaps(measured) == []


# ---------------------------------------------------------------------------------------------------------------------
# Disks and directories
# ---------------------------------------------------------------------------------------------------------------------

FILLS = """
wp.launch(add, dim=8, inputs=[1.0])
full = os.path.join(os.environ["TMPDIR"], "full")
with open(full, "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
for dim in range(1, 60):
    wp.launch(add, dim=dim, inputs=[1.0])

@wp.kernel
def late(x: float):
    pass

try:
    wp.launch(late, dim=8, inputs=[1.0])
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("freed", [True, False], ids=["until it is freed", "for good"])
def test_the_disk_of_records_and_caches_is_full(freed, stub, small_disk):
    """Warp cannot build, the recorder cannot write: the report says that lines are lost, whether or not the last one
    could be written."""
    body = FILLS + ("os.unlink(full)\n" if freed else "import atexit\n")
    measured = stub(body, env={"TMPDIR": str(small_disk)}, options=["--samples", "1"], expect=0 if freed else 2)
    if not freed:
        # The warm run finds no room for its recorder.
        assert "No space left on device" in measured.stderr
    process = cold(measured).processes[0]
    assert next(load.status.value for load in process.loads) == "compiled"
    reasons = {reason for reason, _ in gaps(measured)}
    assert "record-truncated" in reasons
    assert list(small_disk.iterdir()) == []


LONG = {
    "1,000 characters": (["x" * 200] * 5, 0),
    "as long as a path can be": (["x" * 200] * 20, 2),
}


@pytest.mark.parametrize("case", LONG)
def test_a_very_long_temporary_directory(case, stub, tmp_path):
    names, expected = LONG[case]
    folder = tmp_path.joinpath(*names)
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        for name in names:
            os.mkdir(name)
            os.chdir(name)
    finally:
        os.chdir(before)
    measured = stub("wp.launch(add, dim=8, inputs=[1.0])", env={"TMPDIR": str(folder)}, expect=expected)
    if expected:
        assert "File name too long" in measured.stderr
        assert "set TMPDIR" in measured.stderr
    else:
        assert (measured.report.summary.builds, gaps(measured)) == (1, [])
        assert list(folder.iterdir()) == []


def test_a_program_that_leaves_folders_deeper_than_any_path(stub, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    measured = stub(
        """
        wp.launch(add, dim=8, inputs=[1.0])
        os.chdir(os.environ["TMPDIR"])
        for _ in range(1200):
            os.makedirs("deeper", exist_ok=True)
            os.chdir("deeper")
        """,
        env={"TMPDIR": str(temporary)},
    )
    assert (measured.report.summary.builds, gaps(measured)) == (1, [])
    assert list(temporary.iterdir()) == []


def test_a_program_that_removes_the_folder_above_its_cache(stub):
    """The records are in there too: nothing is known of that run, and it is said; the next run has its folders."""
    measured = stub(
        """
        import shutil
        wp.launch(add, dim=8, inputs=[1.0])
        assert os.path.isdir(os.environ["TMPDIR"])
        shutil.rmtree(os.path.dirname(os.environ["WARP_CACHE_PATH"]))
        """
    )
    assert [reason for reason, _ in gaps(measured)] == ["record-truncated", "not-recorded", "log-only-loads"]
    assert "NOT EVERYTHING WAS SEEN" in measured.stdout


# ---------------------------------------------------------------------------------------------------------------------
# Ctrl-C at any moment, and two probes at once
# ---------------------------------------------------------------------------------------------------------------------

# Sends itself Ctrl-C at the N-th call of a Python function in its main thread, which is no matter of time.
INTERRUPTER = """
import os, signal, sys
folder, at, counted, *arguments = sys.argv[1:]
sys.path.insert(0, folder)
import warp_compile_probe as probe
calls = 0

def profile(_frame, event, _argument):
    global calls
    if event == "call":
        calls += 1
        if calls == int(at):
            os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(profile)
code = probe.main(arguments)
sys.setprofile(None)
with open(counted, "w") as file:
    file.write(str(calls))
sys.exit(code)
"""


def test_ctrl_c_at_ten_random_moments(stub, measure, tmp_path):
    temporary, counted, report = tmp_path / "tmp", tmp_path / "counted", tmp_path / "reports" / "report.json"
    temporary.mkdir()
    report.parent.mkdir()
    command = stub.command("wp.launch(add, dim=8, inputs=[1.0])")
    arguments = measure.argv(command, ["--samples", "1"], report)[2:]
    env = measure.environment({"PYTHONPATH": str(stub.warp), "TMPDIR": str(temporary)})

    def interrupt(at):
        argv = [sys.executable, "-c", INTERRUPTER, str(SCRIPT.parent), str(at), str(counted), *arguments]
        report.unlink(missing_ok=True)
        done = subprocess.run(argv, check=False, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        assert list(temporary.iterdir()) == [], at
        assert [path.name for path in report.parent.iterdir()] in ([], ["report.json"]), at
        if report.exists():
            probe.load_report(str(report))
        return done

    assert interrupt(0).returncode == 0
    moments = random.Random(20261129).sample(range(1, int(counted.read_text())), 10)
    endings = [interrupt(at) for at in moments]
    for at, done in zip(moments, endings, strict=True):
        # Once everything is measured and nothing is left to clean up, a Ctrl-C changes nothing.
        assert done.returncode in (130, 0), (at, done.stderr)
        if done.returncode == 130:
            assert done.stderr.endswith("warp-compile-probe: interrupted\n"), at
    assert {done.returncode for done in endings} >= {130}


def test_two_probes_at_once_on_one_project(stub, measure, tmp_path):
    """One program, one directory, one report file: both measure all of it, and the file is one whole report."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = stub.command(
        """
        import time
        wp.launch(add, dim=8, inputs=[1.0])
        # Each waits until the other one runs too.
        name = "ready-" + os.environ["WHO"]
        open(name, "a").close()
        while len([1 for name in os.listdir() if name.startswith("ready-")]) < 2:
            time.sleep(0.01)
        wp.launch(halve, dim=8, inputs=[1.0])
        """
    )
    shared = tmp_path / "report.json"
    changes = {"PYTHONPATH": str(stub.warp), "TMPDIR": str(temporary)}
    processes = [
        subprocess.Popen(
            measure.argv(
                command, ["--samples", "1", "--cwd", str(tmp_path), "--keep-logs", str(tmp_path / who)], shared
            ),
            env=measure.environment({**changes, "WHO": who}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who in ("one", "two")
    ]
    for process in processes:
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        assert "COUNTS 1 build, 0 rebuilds" in stdout
        assert "2 launches" in stdout
        assert "Nothing went unseen" in stdout
    assert probe.load_report(str(shared)).summary.builds == 1
    assert list(temporary.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------------
# Output without end
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["yes some line of a program", "cat /dev/zero"])
def test_two_gigabytes_of_output(producer, measure, tmp_path):
    """Counted to the last byte, memory bounded. Printed in the cold run only."""
    size = 2 << 30
    path = tmp_path / "report.json"
    script = f"[ -e {tmp_path}/done ] || {producer} | head -c {size}; : > {tmp_path}/done"
    with subprocess.Popen(
        measure.argv(["sh", "-c", script], ["--samples", "1"], path),
        env=measure.environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert json.loads(path.read_text())["samples"][0]["cold"]["output"]["stdout_bytes"] == size
    assert path.stat().st_size < MEGABYTE
    assert usage.ru_maxrss * 1024 < 200 * MEGABYTE


def test_more_module_lines_than_are_kept(stub, measure):
    """Memory is bounded: the first ones are held against the records, and the report says how many there were."""
    limit = probe.MAX_LOG_RECORDS
    line = "Module app 0123abc load on device 'cpu' took 1.00 ms  (cached)\n"
    measured = measure.command([sys.executable, "-c", f"print({line!r} * {limit + 500}, end='')"])
    (cold_text, _) = [notice.text for notice in measured.report.warnings if notice.name == "log-lines-left-out"]
    assert cold_text.startswith(f"cold run: {limit + 500} module lines were printed; only the first {limit} were held")
    assert cold(measured).cross_check.log_records == limit + 500


# ---------------------------------------------------------------------------------------------------------------------
# A program that meddles
# ---------------------------------------------------------------------------------------------------------------------

MEDDLING = {
    "its environment": "os.environ.clear()",
    "sys.path": "sys.path[:] = []",
    "sys.meta_path": "sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]",
    "the import function": "import builtins\noriginal = builtins.__import__\n"
    "builtins.__import__ = lambda *args, **keywords: original(*args, **keywords)",
    "sitecustomize": "sys.modules.pop('sitecustomize', None)",
    "the profiler": "sys.setprofile(lambda *_: None)",
    "wp.launch": "import functools\nwp.launch = functools.partial(wp.launch)",
    "Warp's invoke": "original_invoke = wp._src.context.invoke\n"
    "wp._src.context.invoke = lambda *args, **keywords: original_invoke(*args, **keywords)",
    "Warp's timer": "timer = wp.ScopedTimer\nwp.ScopedTimer = type('Timer', (timer,), {})",
}


@pytest.mark.parametrize("what", MEDDLING)
def test_a_program_that_changes_what_it_runs_in(what, stub):
    """In the middle, with builds and launches before and after it."""
    middle = MEDDLING[what]
    measured = stub(
        f"""
wp.launch(add, dim=8, inputs=[1.0])
{middle}

@wp.kernel
def late(x: float):
    pass

for _ in range(3):
    wp.launch(late, dim=2, inputs=[1.0])
"""
    )
    (process,) = cold(measured).processes
    assert launched(process) == [("add", (8,), 1), ("late", (2,), 3)]
    assert [load.status.value for load in process.loads] == ["compiled", "compiled"]
    assert gaps(measured) == []


def test_a_child_without_the_environment_is_a_named_gap(stub):
    measured = stub(
        """
        import subprocess
        wp.launch(add, dim=8, inputs=[1.0])
        os.environ.clear()
        subprocess.run([sys.executable, "-c", ""], check=True)
        """
    )
    assert {reason for reason, _ in gaps(measured)} == {"dropped-environment"}
    assert cold(measured).builds == 1


def test_finders_replaced_before_warp_comes(stub):
    """The recorder's finder goes with them: what Warp then does is a gap, not nothing."""
    program = stub.folder / "early.py"
    program.write_text(
        "import sys\n"
        "sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]\n"
        "import runpy\n"
        "runpy.run_path(sys.argv[1])\n"
    )
    command = stub.command("wp.launch(add, dim=8, inputs=[1.0])")
    measured = stub.measure.command([sys.executable, program, command[1]], env={"PYTHONPATH": str(stub.warp)})
    text = """import of Warp: LookupError("the recorder's finder was not asked for it")"""
    assert ("hook-failed", text) in gaps(measured)
    assert measured.report.summary.builds == 1, "known from its log line"
    assert "NOT EVERYTHING WAS SEEN" in measured.stdout


def test_launches_while_the_interpreter_ends(stub):
    measured = stub(
        """
        import atexit

        def late(count):
            threading.main_thread().join()
            for _ in range(count):
                wp.launch(add, dim=count, inputs=[1.0])

        atexit.register(lambda: wp.launch(halve, dim=7, inputs=[1.0]))
        for count in (100, 200):
            threading.Thread(target=late, args=[count]).start()
        wp.launch(add, dim=1, inputs=[1.0])
        """
    )
    (process,) = cold(measured).processes
    assert launched(process) == [
        ("add", (1,), 1),
        ("add", (100,), 100),
        ("add", (200,), 200),
        ("halve", (7,), 1),
    ]
    assert process.end.value == "exit"
    assert gaps(measured) == []


def test_modules_that_are_reloaded(stub):
    """The program's module makes its kernels anew, with the same hash; so does Warp's package around them."""
    (stub.folder / "kernels.py").write_text(
        "import warp as wp\n\n@wp.kernel\ndef scale(x: float):\n    pass\n", encoding="utf-8"
    )
    measured = stub(
        """
        import importlib
        import kernels
        wp.launch(kernels.scale, dim=4, inputs=[1.0])
        importlib.reload(kernels)
        wp.launch(kernels.scale, dim=4, inputs=[1.0])
        importlib.reload(wp)
        wp.launch(kernels.scale, dim=4, inputs=[1.0])
        """
    )
    (process,) = cold(measured).processes
    assert launched(process) == [("scale", (4,), 3)]
    assert {load.name for load in process.loads} == {"kernels"}
    assert gaps(measured) == []


# ---------------------------------------------------------------------------------------------------------------------
# What a killed probe leaves
# ---------------------------------------------------------------------------------------------------------------------


def test_what_a_killed_probe_left_is_removed_a_day_later(stub, measure, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    command = stub.command(f"open({str(ready)!r}, 'w').write(str(os.getpid()))\nthreading.Event().wait()")
    env = measure.environment({"PYTHONPATH": str(stub.warp), "TMPDIR": str(temporary)})
    with subprocess.Popen(
        measure.argv(command, ["--samples", "1"], tmp_path / "report.json"),
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        orphan = int(ready.read_text())
        (root,) = temporary.iterdir()

        def age_and_measure():
            a_day_ago = root.stat().st_mtime - probe.STALE_SECONDS - 60
            os.utime(root, (a_day_ago, a_day_ago))
            measure.command(["true"], env={"TMPDIR": str(temporary)})

        age_and_measure()
        assert root.exists(), "its probe is alive"
        process.kill()
    os.kill(orphan, signal.SIGKILL)
    while is_alive(orphan):
        time.sleep(0.01)
    measure.command(["true"], env={"TMPDIR": str(temporary)})
    assert not root.exists()


def test_a_young_or_foreign_folder_is_left_alone(measure, tmp_path):
    young, unlocked, linked = (tmp_path / f"wcp-{digit * 10}" for digit in "012")
    elsewhere = tmp_path / "elsewhere"
    for folder in (young, unlocked, elsewhere):
        folder.mkdir()
    for folder in (young, elsewhere):
        (folder / "lock").touch()
    linked.symlink_to(elsewhere)
    for folder in (unlocked, elsewhere):
        os.utime(folder, (1, 1))
    measure.command(["true"], env={"TMPDIR": str(tmp_path)})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in (young, unlocked, linked, elsewhere)
    )
    assert (elsewhere / "lock").exists()


# ---------------------------------------------------------------------------------------------------------------------
# Other frameworks that call kernels
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.warp(since="1.12")
def test_memory_of_torch(measure, needs_in_target, target):
    needs_in_target("torch")
    measured = measure("torch_interop.py")
    truth = read_truth(PROGRAMS / "torch_interop.py", target.warp)
    assert gaps(measured) == []
    assert (measured.report.summary.builds, measured.report.summary.launches) == (truth.builds, truth.launches)


@pytest.mark.warp(since="1.19")
def test_callbacks_of_jax(measure, needs_in_target, target):
    """JAX calls Warp from native code, without `wp.launch`."""
    needs_in_target("jax")
    measured = measure("jax_kernel.py")
    truth = read_truth(PROGRAMS / "jax_kernel.py", target.warp)
    assert gaps(measured) == []
    assert (measured.report.summary.builds, measured.report.summary.launches) == (truth.builds, truth.launches)
