"""The recorder in real processes: how it starts and makes way, and what it writes of births and ends."""

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
import warp_compile_probe as probe

STATE = """
import json, sys
print(json.dumps({
    "path": sys.path,
    "modules": sorted(sys.modules),
    "meta_path": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
    "importers": sorted(sys.path_importer_cache),
    "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
    "mark": getattr(sys, "mark", None),
}))
"""


def state(done):
    assert done.stderr == ""
    return json.loads(done.stdout)


def bare(recording, folder, python=sys.executable):
    """The same process without the recorder."""
    environment = {**recording.environment(), "PYTHONPATH": str(folder)}
    done = probe.subprocess.run(
        [python, "-c", STATE],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        stdin=probe.subprocess.DEVNULL,
    )
    return state(done)


def check_that_it_made_way(recorded, expected):
    assert recorded["meta_path"] == ["Finder", *expected["meta_path"]]
    assert {**recorded, "meta_path": []} == {**expected, "meta_path": []}


def test_the_recorder_makes_way(recording, tmp_path):
    (tmp_path / "lib").mkdir()
    found = recording.python(STATE, tmp_path / "lib")
    check_that_it_made_way(state(found), bare(recording, tmp_path / "lib"))
    assert found.ends == {"0": ("exec", "exit", None)}


def test_the_sitecustomize_that_is_hidden_runs(recording, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.mark = __file__\n", encoding="ascii")
    found = recording.python(STATE, tmp_path)
    check_that_it_made_way(state(found), bare(recording, tmp_path))
    assert state(found)["mark"] == state(found)["sitecustomize"] == str(tmp_path / "sitecustomize.py")


def test_an_error_in_the_other_sitecustomize_looks_as_it_always_does(recording, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('theirs')\n", encoding="ascii")
    found = recording.python("print('on')", tmp_path)
    assert found.stdout == "on\n"
    assert "ValueError: theirs" in found.stderr
    assert "probe" not in found.stderr


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    """A Python of its own with two .pth files: one runs code, one imports what the recorder hooks."""
    import venv

    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "a.pth").write_text("import sys; sys.mark = 'pth'\n", encoding="ascii")
    (packages / "b.pth").write_text("import subprocess, multiprocessing.util\n", encoding="ascii")
    return str(folder / "bin" / "python")


def test_pth_files_run_as_always(recording, venv, tmp_path):
    (tmp_path / "lib").mkdir()
    found = recording.run([venv, "-c", STATE], tmp_path / "lib")
    check_that_it_made_way(state(found), bare(recording, tmp_path / "lib", venv))
    assert state(found)["mark"] == "pth"


def test_births_are_seen_although_a_pth_file_has_imported_subprocess(recording, venv):
    found = recording.run([venv, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', '0'], env={})"])
    assert [reason for reason, _ in found.gaps] == ["dropped-environment"]


def test_modules_that_the_recorder_imported_are_the_ones_that_the_program_gets(recording):
    found = recording.python("import _posixsubprocess as p; print(p.fork_exec.__wrapped__.__module__)")
    assert found.stdout == "_posixsubprocess\n"


BROKEN = {
    "a syntax that this Python does not know": "this is no Python",
    "an error at the start": "raise RuntimeError('boom')",
    "an error in the recorder": "def bootstrap(config, known):\n    raise RuntimeError('boom')",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_recorder_that_cannot_start_is_a_gap_and_nothing_else(recording, source, tmp_path):
    (tmp_path / "lib").mkdir()
    for path in Path(recording.workspace.root).glob("code-*"):
        path.unlink()
    Path(recording.workspace.source).write_text(source, encoding="ascii")
    found = recording.python(STATE, tmp_path / "lib")
    assert state(found) == bare(recording, tmp_path / "lib")
    ((reason, detail),) = found.gaps
    assert reason == "child-not-recorded"
    assert detail.startswith(f"the recorder could not start: {sys.executable}: ")


def test_code_for_another_release_of_python_is_compiled_once(recording):
    (code,) = Path(recording.workspace.root).glob("code-*")
    code.unlink()
    recording.python("")
    assert code.exists()
    code.write_bytes(b"torn")
    assert recording.python("").ends == {"0": ("exec", "exit", None), "1": ("exec", "exit", None)}


def test_records_that_cannot_be_written_change_nothing(recording):
    os.rmdir(recording.records)
    done = probe.subprocess.run(
        [sys.executable, "-c", "import os; print('on', flush=True); os._exit(3)"],
        check=False,
        capture_output=True,
        text=True,
        env=recording.environment(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "on\n", "")


def test_a_folder_with_spaces_and_letters_of_all_kinds(monkeypatch, tmp_path):
    from recorded import Recording

    folder = tmp_path / "with space é\N{SNOWMAN}'\""
    folder.mkdir()
    found = Recording(monkeypatch, folder).python("print('on')")
    assert (found.stdout, found.stderr) == ("on\n", "")
    assert found.ends == {"0": ("exec", "exit", None)}


# ---------------------------------------------------------------------------------------------------------------------
# Births and ends
# ---------------------------------------------------------------------------------------------------------------------

ENDS = {
    "the end of the program": ("", {"0": ("exec", "exit", None)}, 0),
    "sys.exit": ("import sys; sys.exit(3)", {"0": ("exec", "exit", None)}, 3),
    "os._exit": ("os._exit(3)", {"0": ("exec", "os._exit", 3)}, 3),
    "os._exit by keyword": ("os._exit(status=3)", {"0": ("exec", "os._exit", 3)}, 3),
    "os._exit of nonsense": (
        "\ntry: os._exit('x')\nexcept TypeError: print('refused')",
        {"0": ("exec", "os._exit", None)},
        0,
    ),
    "SIGKILL": ("os.kill(os.getpid(), 9)", {"0": ("exec", "unrecorded", None)}, -9),
    "abort": ("os.abort()", {"0": ("exec", "unrecorded", None)}, -6),
    "exec": (
        "os.execv(sys.executable, [sys.executable, '-c', '0'])",
        {"0": ("exec", "exec", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "exec by path and environment": (
        "os.execvpe(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(4)'], os.environ)",
        {"0": ("exec", "exec", None), "0.0": ("exec", "exit", None)},
        4,
    ),
    "an exec that fails": (
        "\ntry: os.execv('/nonexistent', ['x'])\nexcept FileNotFoundError: pass\nos._exit(5)",
        {"0": ("exec", "os._exit", 5)},
        5,
    ),
    "fork": (
        "\nif not os.fork(): os._exit(2)\nos.wait()",
        {"0": ("exec", "exit", None), "0.0": ("fork", "os._exit", 2)},
        0,
    ),
    "a fork that runs on to the end": (
        "\nif os.fork(): os.wait()",
        {"0": ("exec", "exit", None), "0.0": ("fork", "exit", None)},
        0,
    ),
    "a child": (
        "subprocess.run([sys.executable, '-c', '0'])",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "a child with a preexec_fn": (
        "subprocess.run([sys.executable, '-c', '0'], preexec_fn=os.getpid)",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "a child through a shell": (
        "subprocess.run(f'true; {sys.executable} -c 0; true', shell=True)",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "posix_spawn": (
        "os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', '0'], os.environ), 0)",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "spawnv": (
        "os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-c', '0'])",
        {"0": ("exec", "exit", None), "0.0": ("fork", "exec", None), "0.0.0": ("exec", "exit", None)},
        0,
    ),
    "os.system": (
        "os.system(sys.executable + ' -c 0')",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None)},
        0,
    ),
    "grandchildren": (
        "subprocess.run([sys.executable, '-c', 'import os\\nif not os.fork(): os._exit(1)\\nos.wait()'])",
        {"0": ("exec", "exit", None), "0.0": ("exec", "exit", None), "0.0.0": ("fork", "os._exit", 1)},
        0,
    ),
}


@pytest.mark.parametrize(("code", "ends", "exit_code"), ENDS.values(), ids=ENDS)
def test_processes_and_their_ends(recording, code, ends, exit_code):
    found = recording.python("import os, subprocess, sys\n" + code.lstrip("\n"))
    assert found.exit_code == exit_code, found.stderr
    assert found.ends == ends
    assert found.gaps == []


GAPS = {
    "an isolated child": ("subprocess.run([sys.executable, '-I', '-c', '0'])", ["isolated-python"]),
    "a child without site": ("subprocess.run([sys.executable, '-S', '-c', '0'])", ["isolated-python"]),
    "a child with an empty environment": (
        "subprocess.run([sys.executable, '-c', '0'], env={})",
        ["dropped-environment"],
    ),
    "a child with a search path of its own": (
        "subprocess.run([sys.executable, '-c', '0'], env={**os.environ, 'PYTHONPATH': '/x'})",
        ["dropped-environment"],
    ),
    "a child that adds to the search path": (
        "\nos.environ['PYTHONPATH'] = '/x:' + os.environ['PYTHONPATH']"
        "\nsubprocess.run([sys.executable, '-c', '0'], env=dict(os.environ))",
        [],
    ),
    "a shell with an empty environment": ("subprocess.run(['/bin/sh', '-c', 'true'], env={})", ["dropped-environment"]),
    "another program with an empty environment": ("subprocess.run(['/bin/true'], env={})", []),
    "bytes everywhere": (
        "subprocess.run([os.fsencode(sys.executable), b'-c', b'0'], env={b'PYTHONPATH': os.environb[b'PYTHONPATH']})",
        [],
    ),
    "an exec without the environment": (
        "os.execve(sys.executable, [sys.executable, '-c', '0'], {'A': 'B'})",
        ["dropped-environment"],
    ),
    "an exec that fails": ("\ntry: os.execv('/nonexistent/python', ['python', '-I'])\nexcept OSError: pass", []),
    "a child by a relative path": (
        "\nfolder, name = os.path.split(sys.executable)\nsubprocess.run(['./' + name, '-I', '-c', '0'], cwd=folder)",
        ["isolated-python"],
    ),
    "a child that does not exist": ("\ntry: subprocess.run(['/nonexistent/python'])\nexcept OSError: pass", []),
}


@pytest.mark.parametrize(("code", "reasons"), GAPS.values(), ids=GAPS)
def test_children_that_are_not_recorded(recording, code, reasons):
    found = recording.python("import os, subprocess, sys\n" + code.lstrip("\n"))
    assert found.exit_code == 0, found.stderr
    assert [reason for reason, _ in found.gaps] == reasons


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_pools_of_processes(recording, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
            import multiprocessing

            def double(x):
                return 2 * x

            if __name__ == "__main__":
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(double, range(4)))
                    pool.close()
                    pool.join()
        """),
        encoding="ascii",
    )
    found = recording.run([sys.executable, program])
    assert (found.stdout, found.stderr) == ("[0, 2, 4, 6]\n", "")
    assert found.gaps == []
    workers = [process for process in found.processes if process.path != "0"]
    assert len(workers) >= 2
    assert probe.ProcessEnd.UNRECORDED not in {process.end for process in workers}


def test_functions_that_are_hooked_can_be_pickled(recording):
    code = (
        "import os, pickle; print(*[pickle.loads(pickle.dumps(f)) is f for f in (os._exit, os.execv, os.posix_spawn)])"
    )
    assert recording.python(code).stdout == "True True True\n"


def test_a_forked_child_has_a_record_of_its_own(recording):
    found = recording.python(
        "import os\nprint(os.getpid(), flush=True)\npid = os.fork()\nif pid: print(pid)\nif pid: os.wait()"
    )
    parent, child = map(int, found.stdout.split())
    assert [process.pid for process in found.processes] == [parent, child]


def test_threads_may_fork_while_others_run(recording):
    code = """
import os, threading
def child():
    for _ in range(5):
        if not os.fork():
            os._exit(0)
        os.wait()
threads = [threading.Thread(target=child) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    found = recording.python(code)
    assert found.exit_code == 0, found.stderr
    assert len(found.processes) == 21
    assert {process.end for process in found.processes[1:]} == {probe.ProcessEnd.OS_EXIT}


# ---------------------------------------------------------------------------------------------------------------------
# Finding Warp
# ---------------------------------------------------------------------------------------------------------------------

FINDERS = "[getattr(finder, '__name__', type(finder).__name__) for finder in sys.meta_path]"


def test_the_finder_leaves_when_warp_has_come(recording):
    found = recording.python(f"import sys, warp; print('Finder' in {FINDERS}, '_posixsubprocess' in sys.modules)")
    assert (found.stdout, found.stderr) == ("False True\n", "")
    (process,) = found.processes
    assert process.warp == "1.19.0"
    assert process.phases.import_warp_ms > 0


def test_the_finder_stays_while_warp_has_not_come(recording):
    assert recording.python(f"import sys, json; print('Finder' in {FINDERS})").stdout == "True\n"


def test_a_warp_that_cannot_be_imported(recording, tmp_path):
    (tmp_path / "warp.py").write_text("raise ImportError('no such library')", encoding="ascii")
    code = f"""
import sys
for _ in range(2):
    try:
        import warp
    except ImportError as error:
        print(error, 'Finder' in {FINDERS})
"""
    found = recording.python(code, tmp_path)
    assert found.stdout == "no such library True\n" * 2
    assert found.processes[0].warp is None


def test_a_module_named_warp_that_is_another_one(recording, tmp_path):
    (tmp_path / "warp.py").write_text("version = 'none of yours'", encoding="ascii")
    found = recording.python("import warp; print(warp.version)", tmp_path)
    assert (found.stdout, found.stderr) == ("none of yours\n", "")
    assert [reason for reason, _ in found.gaps] == ["unsupported-warp"]


def test_finders_of_the_program_are_asked(recording):
    code = """
import importlib.abc, importlib.machinery, sys
class Loader(importlib.abc.Loader):
    def exec_module(self, module):
        module.__version__ = "9.9"
class Theirs:
    def find_spec(name, path=None, target=None):
        if name == "warp":
            return importlib.machinery.ModuleSpec("warp", Loader())
sys.meta_path.insert(0, Theirs)
import warp
print(warp.__version__, type(warp.__loader__).__name__)
"""
    assert recording.python(code).stdout == "9.9 Loader\n"
    behind = code.replace("insert(0, Theirs)", "insert(1, Theirs)")
    found = recording.python(behind)
    assert (found.stdout, found.stderr) == ("9.9 Loader\n", "")
    assert found.processes[1].warp == "9.9"


def test_a_loader_is_left_as_it_was(recording):
    found = recording.python("import warp; print('exec_module' in vars(warp.__loader__))")
    assert found.stdout == "False\n"
