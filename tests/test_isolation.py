"""The private directory of a measurement, and the processes of a command, at their edges."""

import os
import signal
import stat
import subprocess
import sys

import pytest
import warp_compile_probe as probe
from recorded import measure_options


def as_a_user(action):
    """Run `action` in a child that is not root, for whom a read-only folder is one; returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def open_folder():
    """A folder that any user may write to, all the way down."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield folder


def test_folders_that_the_program_made_read_only_are_removed(open_folder):
    root = os.path.join(open_folder, "wcp")

    def action():
        os.makedirs(os.path.join(root, "a", "b", "c"))
        open(os.path.join(root, "a", "b", "file"), "w").close()
        os.symlink("/", os.path.join(root, "a", "link"))
        os.chmod(os.path.join(root, "a", "b", "c"), 0)
        os.chmod(os.path.join(root, "a", "b"), 0o500)
        os.chmod(os.path.join(root, "a"), 0o555)
        probe.remove_tree(root)

    before = stat.S_IMODE(os.stat("/").st_mode)
    assert as_a_user(action) == 0
    assert os.listdir(open_folder) == []
    assert stat.S_IMODE(os.stat("/").st_mode) == before


def test_what_is_not_there_need_not_be_removed(tmp_path):
    probe.remove_tree(str(tmp_path / "gone"))
    assert list(tmp_path.iterdir()) == []


def test_the_private_directory_is_private(recording):
    assert stat.S_IMODE(os.stat(recording.workspace.root).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(recording.sample.path).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(recording.records).st_mode) == 0o700


@pytest.fixture
def alarm():
    """SIGALRM as the probe handles it."""

    def handle(_number, _frame):
        raise probe.RunTimeout

    before = signal.signal(signal.SIGALRM, handle)
    yield
    signal.signal(signal.SIGALRM, before)


def test_a_command_ends_where_processes_cannot_be_listed(monkeypatch, tmp_path, alarm):
    """As on a system without /proc: its process group is ended."""
    monkeypatch.setattr(probe, "descendants", dict)
    monkeypatch.setattr(probe, "GRACE_SECONDS", 0.1)
    options = measure_options(timeout_s=0.5)
    command = ["sh", "-c", "sleep 1000; true"]
    executed = probe.execute(command, dict(os.environ), str(tmp_path), options, "/private", "x")
    assert executed.exit.timed_out


def test_modules_of_builds_in_progress_are_no_modules(recording):
    for name in ("wp_app_1234567", "wp_app_1234567_p12", "wp_app_1234567_p12_t34", "wp_pch_abc", "other", "wp_plain"):
        os.makedirs(os.path.join(recording.sample.path, "warp", "1.19.0", name))
    os.makedirs(os.path.join(recording.sample.path, "warp", "1.19.0", "wp_plain", "wp_inner_1234567"))
    assert recording.sample.module_directories() == ["wp_app_1234567", "wp_plain"]


@pytest.mark.parametrize(
    ("command", "injected"),
    [
        ("python x.py", "python x.py"),
        ("env python x.py", "env python x.py"),
        ("env PYTHONPATH=/a python x.py", "env PYTHONPATH=/inject:/a python x.py"),
        ("/usr/bin/env A=1 PYTHONPATH=/a:/b python", "/usr/bin/env A=1 PYTHONPATH=/inject:/a:/b python"),
        ("env PYTHONPATH= python", "env PYTHONPATH=/inject python"),
        ("env -u PYTHONPATH PYTHONPATH=/a python", "env -u PYTHONPATH PYTHONPATH=/inject:/a python"),
        ("env -i PYTHONPATH=/a python", "env -i PYTHONPATH=/inject:/a python"),
        ("env A=1 env PYTHONPATH=/a python", "env A=1 env PYTHONPATH=/inject:/a python"),
        ("env python PYTHONPATH=/a", "env python PYTHONPATH=/a"),
        ("python PYTHONPATH=/a", "python PYTHONPATH=/a"),
    ],
)
def test_a_search_path_that_the_command_sets_itself(command, injected):
    assert probe.with_injection(command.split(), "/inject") == injected.split()


GRANDCHILD = """
import subprocess, time
print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
time.sleep(1000)
"""


def test_descendants_are_found():
    process = subprocess.Popen([sys.executable, "-c", GRANDCHILD], stdout=subprocess.PIPE, text=True)
    with process:
        grandchild = int(process.stdout.readline())
        found = probe.descendants()
        process.kill()
        os.kill(grandchild, signal.SIGKILL)
    assert {process.pid, grandchild} <= set(found)
    assert found[grandchild] == "sleep 1000"
