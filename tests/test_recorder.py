"""The recorder by itself: its source, its text, its buffers, and what it does inside a process without Warp."""

import ast
import builtins
import contextlib
import dis
import enum
import json
import os
import subprocess
import sys
import tempfile
import threading
import types
from array import array
from pathlib import Path

import pytest
import warp_compile_probe as probe
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = Path(probe.__file__)

# ---------------------------------------------------------------------------------------------------------------------
# The source that is injected
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source():
    return probe.recorder_source()


def test_lines_of_the_recorder_keep_their_numbers(source):
    script = SCRIPT.read_text(encoding="utf-8").split("\n")
    first, last = script.index("# <recorder>"), script.index("# </recorder>")
    lines = source.split("\n")
    assert lines[first + 1 : last] == script[first + 1 : last]
    assert not any(lines[1 : first + 1])
    assert len(lines) <= last + 1


def test_the_recorder_is_python_3_8(source):
    ast.parse(source, feature_version=(3, 8))
    newer = {"removeprefix", "removesuffix", "bit_count", "cache", "pairwise", "file_digest"}
    used = {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}
    assert not used & newer


def test_annotations_are_not_evaluated_in_the_target(source):
    assert source.startswith("from __future__ import annotations")


def all_code(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_code(constant)


def test_the_recorder_knows_every_global_that_it_uses(source):
    code = compile(source, "recorder", "exec", dont_inherit=True)
    instructions = [step for part in all_code(code) for step in dis.get_instructions(part)]
    used = {step.argval for step in instructions if step.opname == "LOAD_GLOBAL"}
    module = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    assert used - module - set(dir(builtins)) == set()


def test_the_recorder_imports_at_start_only_what_every_interpreter_has_loaded(source):
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(node.lineno == 1 for node in imports), "further imports belong into functions"
    names = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    code = f"import sys; print([n for n in {names} if n not in sys.modules and n not in sys.builtin_module_names])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------------------------------

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_encoded_values_are_what_json_makes_of_them(value):
    assert probe.encode(value) == json.dumps(value, separators=(",", ":"))


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize("value", [(1, "two"), Colour.RED, "\ud800", {"a": (True, None)}])
def test_encoded_values_that_are_not_quite_plain(value):
    assert probe.encode(value) == json.dumps(value, separators=(",", ":"))


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


def test_text_of_a_value_never_raises():
    assert probe.text_of(Unprintable()) == "<Unprintable: repr failed with RuntimeError>"


def test_long_texts_are_bounded_and_still_differ():
    one, other = ("x" * 10_000 + end for end in "ab")
    assert probe.text_of(one) != probe.text_of(other)
    assert len(probe.text_of(one)) < 500
    assert probe.text_of("\ud800" * 1000).startswith("'\\ud800")


# ---------------------------------------------------------------------------------------------------------------------
# Phases of a load
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Time as the recorder sees it: a function that lets it pass."""
    now = [0]
    fake = types.SimpleNamespace(monotonic_ns=lambda: now[0], time_ns=lambda: now[0])
    monkeypatch.setattr(probe, "time", fake)

    def wait(nanoseconds):
        now[0] += nanoseconds

    return wait


def test_phases_of_a_load_exclude_each_other(clock):
    load = probe.LoadRecord({})
    load.enter("codegen")
    clock(5)
    load.enter("lto")
    clock(7)
    load.enter("install")  # the rename of an artifact
    clock(11)
    load.leave()
    load.leave()
    clock(13)
    load.leave()
    clock(17)
    load.enter("native")
    clock(19)
    load.leave()
    assert load.phases == {"codegen": 18, "lto": 18, "native": 19, "install": 0, "load": 0}


# ---------------------------------------------------------------------------------------------------------------------
# The buffer of launch numbers
# ---------------------------------------------------------------------------------------------------------------------


class KilledError(Exception):
    """Stands for SIGKILL."""


class Countdown:
    """Kills the process before its n-th step."""

    def __init__(self, steps):
        self.left = steps

    def step(self):
        if self.left == 0:
            raise KilledError
        self.left -= 1


class Slots:
    """The slots of a buffer, where every single store is a step."""

    def __init__(self, slots, countdown):
        self.slots = slots
        self.countdown = countdown

    def __len__(self):
        return len(self.slots)

    def __getitem__(self, key):
        return self.slots[key]

    def __setitem__(self, key, value):
        if isinstance(key, slice):
            for index, item in zip(range(*key.indices(len(self.slots))), value, strict=True):
                self[index] = item
        else:
            self.countdown.step()
            self.slots[key] = value


class Books:
    """The part of a recorder that a stream needs."""

    def __init__(self, folder, countdown=None):
        self.base = os.path.join(folder, "1-1")
        self.lines = []
        self.errors = []
        self.countdown = countdown

    def emit(self, kind, /, **line):
        if self.countdown is not None:
            self.countdown.step()
        self.lines.append(line)
        if self.countdown is not None:
            self.countdown.step()

    def note_error(self, what, error):
        self.errors.append((what, error))

    def read_back(self):
        """What a reader finds in the record and in the file of the buffer, and what it misses."""
        lines = {"start": [{"how": "exec"}], "ids": self.lines}
        record = probe.RecordFile("1-1", lines, truncated=False)
        reader = probe.LaunchReader(os.path.dirname(self.base), record, probe.Catalog())
        return [int(number) for thread in reader._threads() for number in reader._thread_ids(thread)], reader.missing


NUMBERS = st.lists(st.integers(1, 2**32 - 1), max_size=30)


@given(size=st.integers(1, 6), numbers=NUMBERS, steps=st.integers(0, 150))
def test_a_kill_at_any_point_loses_and_doubles_no_launch(size, numbers, steps):
    countdown = Countdown(steps)
    with tempfile.TemporaryDirectory() as folder:
        books = Books(folder, countdown)
        stream = probe.Stream(books, 0, size)
        stream.slots = Slots(stream.slots, countdown)
        done = []
        with contextlib.suppress(KilledError):
            for number in numbers:
                stream.append(number)
                done.append(number)
        found, missing = books.read_back()
    assert found in (done, [*done, *numbers[len(done) :][:1]])
    assert not missing


def interrupt_flush(after):
    """A trace function that raises KeyboardInterrupt in `Stream.flush`, as a signal's handler may, once, after so many
    instructions."""
    left = after

    def trace(frame, event, _argument):
        nonlocal left
        if frame.f_code is not probe.Stream.flush.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    return trace


def test_a_signal_in_the_midst_of_a_flush_loses_and_doubles_no_launch():
    instructions = interrupted = 0
    while interrupted == instructions:
        done = []
        with tempfile.TemporaryDirectory() as folder:
            books = Books(folder)
            stream = probe.Stream(books, 0, 3)
            before = sys.gettrace()
            sys.settrace(interrupt_flush(instructions))
            try:
                for number in range(1, 12):
                    try:
                        stream.append(number)
                        done.append(number)
                    except KeyboardInterrupt:
                        interrupted += 1
            finally:
                sys.settrace(before)
            assert books.read_back() == (done, [])
        instructions += 1
    assert interrupted > 30


@given(size=st.integers(1, 6), numbers=NUMBERS)
def test_a_buffer_in_memory_holds_everything_once_it_is_flushed(size, numbers):
    with tempfile.TemporaryDirectory() as folder:
        books = Books(os.path.join(folder, "gone"))
        stream = probe.Stream(books, 0, size)
        assert not stream.mapped
        ((what, _),) = books.errors
        assert what == f"launch buffer in memory only, a kill loses up to {size} launches"
        for number in numbers:
            stream.append(number)
        stream.flush()
        os.mkdir(os.path.join(folder, "gone"))
        assert books.read_back() == (numbers, [])


def test_a_full_disk_leaves_no_half_made_buffer(tmp_path, monkeypatch):
    books = Books(tmp_path)
    monkeypatch.setattr(os, "write", lambda _descriptor, data: len(data) // 2)
    stream = probe.Stream(books, 0, 100)
    assert not stream.mapped
    assert books.errors
    assert list(tmp_path.iterdir()) == []


def test_a_buffer_is_made_of_real_blocks(tmp_path):
    probe.Stream(Books(tmp_path), 0, 10_000)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_blocks * 512 >= 40_000


# ---------------------------------------------------------------------------------------------------------------------
# A recorder in this process, not hooked into anything
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorder(monkeypatch, tmp_path):
    """A recorder in a process without Warp, whatever other tests have imported into this one."""
    for name in ("warp._src.context", "warp.context"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv(probe.PROCESS_VARIABLE, "7-7")
    sample = tmp_path / "sample"
    records = sample / "cold" / "records"
    records.mkdir(parents=True)
    (sample / "twins").mkdir()
    config = {"records": str(records), "inject": "/inject", "sample": str(sample), "script": str(SCRIPT), "set": {}}
    recorder = probe.Recorder(config)
    recorder.warp_folder = "/nowhere/warp/"
    recorder.machinery = set()
    return recorder


def lines_of(recorder, kind=None):
    with open(recorder.base + ".rec", encoding="ascii") as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if kind in (None, line["t"])]


def test_the_first_line_says_who_it_is(recorder):
    (line,) = lines_of(recorder)
    assert line["t"] == "start"
    assert (line["pid"], line["parent"], line["how"]) == (os.getpid(), "7-7", "exec")
    assert line["executable"] == sys.executable
    assert line["argv"][0] == Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    assert os.environ[probe.PROCESS_VARIABLE] == os.path.basename(recorder.base)


def test_a_process_ends_once(recorder):
    recorder.finish("os._exit", 3)
    recorder.finish("exit")
    (end,) = lines_of(recorder, "end")
    assert (end["how"], end["code"]) == ("os._exit", 3)


def test_a_failed_exec_opens_the_books_again(recorder):
    recorder.finish("exec")
    recorder.revive()
    recorder.finish("exit")
    assert [line["t"] for line in lines_of(recorder)] == ["start", "end", "revived", "end"]


def test_lines_that_could_not_be_written_are_counted(recorder, tmp_path):
    records = Path(recorder.config["records"])
    records.rename(tmp_path / "elsewhere")
    recorder.emit("lost")
    recorder.emit("lost")
    (tmp_path / "elsewhere").rename(records)
    recorder.finish("exit")
    assert [line["text"] for line in lines_of(recorder, "error")] == ["2 lines of the record could not be written"]


def test_errors_are_bounded_and_survive_an_error_that_cannot_be_printed(recorder):
    class OddError(Exception):
        def __repr__(self):
            raise KeyError

    for _ in range(100):
        recorder.note_error("a hook", OddError())
    errors = lines_of(recorder, "error")
    assert len(errors) == 20
    assert errors[0]["text"] == "a hook: <OddError: repr failed with KeyError>"


def test_a_hook_without_anything_to_hook_is_an_error_unless_it_is_optional(recorder):
    owner = types.ModuleType("warp.owner")
    recorder.replace(owner, "gone", lambda original: original, optional=True)
    assert not lines_of(recorder, "error")
    recorder.replace(owner, "gone", lambda original: original)
    assert [line["text"] for line in lines_of(recorder, "error")] == [
        "hook of warp.owner.gone: LookupError('there is none')"
    ]


def test_a_replaced_function_looks_like_the_original(recorder):
    owner = types.ModuleType("warp.owner")

    def add(x: int, y: int = 2) -> int:
        """Add."""
        return x + y

    owner.add = add
    recorder.replace(owner, "add", lambda original: lambda *args: original(*args) + 1)
    assert owner.add(1, 1) == 3
    assert (owner.add.__name__, owner.add.__qualname__, owner.add.__doc__) == ("add", "add", "Add.")
    assert owner.add.__module__ == "warp.owner"
    assert owner.add.__wrapped__ is add


def test_a_launch_in_a_signal_handler_during_the_first_launch(recorder, monkeypatch):
    class Interrupted(probe.Stream):
        def __init__(self, recorder, thread, size):
            monkeypatch.setattr(probe, "Stream", Interrupted.__base__)
            recorder.append(2)
            super().__init__(recorder, thread, size)

    number = recorder.describe(special="unknown")
    monkeypatch.setattr(probe, "Stream", Interrupted)
    thread = threading.Thread(target=recorder.append, args=[number], daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    record = probe.read_record_file(recorder.base + ".rec", probe.Catalog(), [])
    reader = probe.LaunchReader(recorder.config["records"], record, probe.Catalog())
    assert sorted(reader._thread_ids(0)) == [1, 2]


def test_what_other_threads_were_in_ends_with_a_fork(recorder):
    """A thread of the child may get the number of one that only the parent has."""
    thread = threading.get_ident()
    states = (recorder.conditional_threads, recorder.replaying_threads, recorder.deterministic_threads)
    for state in states:
        state.add(thread)
    recorder.hash_frames[thread] = []
    recorder.after_fork()
    assert not recorder.conditional_threads | recorder.replaying_threads | recorder.deterministic_threads
    assert not recorder.hash_frames


def test_streams_of_many_threads_at_once(recorder):
    start = threading.Barrier(30)

    def work(number):
        start.wait()
        for _ in range(500):
            recorder.append(number)

    recorder.describe(special="unknown")
    threads = [threading.Thread(target=work, args=[number]) for number in range(1, 31)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record = probe.read_record_file(recorder.base + ".rec", probe.Catalog(), ["/private"])
    reader = probe.LaunchReader(recorder.config["records"], record, probe.Catalog())
    found = sorted(list(reader._thread_ids(thread)) for thread in reader._threads())
    assert found == [[number] * 500 for number in range(1, 31)]
    assert not lines_of(recorder, "error")


def test_numbers_are_packed_and_unpacked():
    numbers = array("I", [1, 2, 2**32 - 1])
    assert probe.unpack(probe.pack(numbers)) == numbers


# -- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("/site/warp/_src/context.py", True),
        ("/site/warp/fem/field.py", True),
        ("/site/warp/examples/core/example_dem.py", False),
        ("/site/warp/tests/test_static.py", False),
        ("/site/warp_app/main.py", False),
        (str(SCRIPT), True),
        ("<frozen importlib._bootstrap>", True),
        ("/lib/threading.py", True),
        ("<string>", False),
    ],
)
def test_frames_that_are_not_the_program(recorder, name, internal):
    recorder.warp_folder = "/site/warp/"
    recorder.machinery = {"/lib/threading.py"}
    assert recorder.is_internal(name) is internal


def test_a_site_is_the_innermost_frame_of_the_program(recorder):
    namespace = {"recorder": recorder, "sys": sys}
    exec(
        compile("def inner():\n    return recorder.site(sys._getframe())", "/nowhere/warp/_src/x.py", "exec"), namespace
    )
    exec(compile("def outer():\n    return inner()", "app.py", "exec"), namespace)
    assert namespace["outer"]() == ["app.py", 2, "outer"]


# ---------------------------------------------------------------------------------------------------------------------
# Private cache directories
# ---------------------------------------------------------------------------------------------------------------------


class Caches:
    """A program that sets a cache directory and a Warp that makes it, in a run of a sample."""

    def __init__(self, recorder, folder):
        self.recorder = recorder
        self.folder = folder
        self.real = folder / "home" / "cache"
        recorder.warp_config = types.SimpleNamespace(kernel_cache_dir=None)

    def set(self, real, version="1.19.0"):
        """The program sets the directory, Warp makes what it is told, with its version below it."""
        private = Path(self.recorder.private_directory(str(real)))
        resolved = private / version
        resolved.mkdir(parents=True, exist_ok=True)
        self.recorder.warp_config.kernel_cache_dir = str(resolved)
        self.recorder.check_twins()
        return resolved

    def next_run(self):
        """The probe between two runs, then a new process."""
        sample = probe.SampleFolder.__new__(probe.SampleFolder)
        sample.path, sample.held = str(self.folder / "sample"), []
        sample.between_runs()
        recorder = probe.Recorder(self.recorder.config)
        recorder.warp_folder, recorder.machinery = "/nowhere/warp/", set()
        return Caches(recorder, self.folder), sample

    @property
    def events(self):
        return [(line["kind"], line["path"]) for line in lines_of(self.recorder, "cache")]


@pytest.fixture
def caches(recorder, tmp_path):
    return Caches(recorder, tmp_path)


def test_a_cache_directory_is_mapped_and_made_where_warp_would_have_made_it(caches):
    resolved = caches.set(caches.real)
    assert str(resolved).startswith(str(caches.folder / "sample" / "twins"))
    assert (caches.real / "1.19.0").is_dir()
    assert list((caches.real / "1.19.0").iterdir()) == []
    (made,) = lines_of(caches.recorder, "made")
    assert set(made["paths"]) == {str(caches.real / "1.19.0"), str(caches.real), str(caches.real.parent)}


@pytest.mark.parametrize("path", [None, 3])
def test_what_is_no_path_stays_as_it_is(caches, path):
    assert caches.recorder.private_directory(path) is path


def test_a_directory_inside_the_sample_stays_as_it_is(caches):
    inside = str(caches.folder / "sample" / "tmp" / "x")
    assert caches.recorder.private_directory(inside) == inside


def test_a_directory_and_a_link_to_it_share_a_twin(caches):
    caches.real.mkdir(parents=True)
    link = caches.folder / "link"
    link.symlink_to(caches.real)
    twin = caches.recorder.private_directory(str(caches.real))
    assert caches.recorder.private_directory(str(link)) == twin
    assert caches.recorder.private_directory(os.fsencode(link)) == twin
    assert caches.recorder.private_directory(link) == twin
    assert caches.recorder.private_directory(str(caches.real) + "2") != twin


def test_a_kept_directory_keeps_its_twin_for_the_next_run(caches):
    caches.real.mkdir(parents=True)
    (caches.set(caches.real) / "wp_m_1234567").mkdir()
    warm, _ = caches.next_run()
    assert (warm.set(caches.real) / "wp_m_1234567").is_dir()
    assert warm.events == []


def test_another_process_that_makes_the_directory_at_the_same_time_keeps_its_twin(caches, monkeypatch):
    resolved = caches.set(caches.real)
    (resolved / "wp_m_1234567").mkdir()
    other = Caches(probe.Recorder(caches.recorder.config), caches.folder)
    with monkeypatch.context() as patch:
        late = iter([False] * 3)  # it looked before the first one made the directory, with its two parents
        patch.setattr(os.path, "isdir", lambda path: next(late, True) and os.path.exists(path))
        other.set(caches.real)
    assert (resolved / "wp_m_1234567").is_dir()
    assert lines_of(other.recorder, "made") == lines_of(other.recorder, "error") == []


def test_a_directory_that_was_deleted_empties_its_twin(caches):
    (caches.set(caches.real) / "wp_m_1234567").mkdir()
    probe.shutil.rmtree(caches.real)
    warm, _ = caches.next_run()
    assert list(warm.set(caches.real).iterdir()) == []
    assert (caches.real / "1.19.0").is_dir()


def test_a_directory_that_was_deleted_and_made_anew_empties_its_twin(caches):
    (caches.set(caches.real) / "wp_m_1234567").mkdir()
    probe.shutil.rmtree(caches.real)
    (caches.real / "1.19.0").mkdir(parents=True)  # on many file systems with the same inode number, were it free
    warm, _ = caches.next_run()
    assert list(warm.set(caches.real).iterdir()) == []


def test_a_directory_that_is_deleted_between_two_loads_empties_its_twin(caches):
    resolved = caches.set(caches.real)
    (resolved / "wp_m_1234567").mkdir()
    caches.recorder.check_twins()
    assert (resolved / "wp_m_1234567").is_dir()
    probe.shutil.rmtree(caches.real)
    caches.recorder.check_twins()
    assert list(resolved.iterdir()) == []
    assert caches.events == [("directory-deleted", str(caches.real))]


def test_an_inode_number_that_comes_again_is_told_by_the_open_descriptor(caches, monkeypatch):
    """As on ext4, where the next directory gets the number of the one just deleted."""
    resolved = caches.set(caches.real)
    (resolved / "wp_m_1234567").mkdir()
    (twin,) = caches.recorder.twins
    probe.shutil.rmtree(caches.real)
    (caches.real / "1.19.0").mkdir(parents=True)
    numbers = types.SimpleNamespace(st_dev=twin.identity[0], st_ino=twin.identity[1], st_nlink=2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda _path, **_how: numbers)
        assert twin.gone()


def test_a_program_that_closes_every_descriptor_is_no_deletion(caches):
    resolved = caches.set(caches.real)
    (resolved / "wp_m_1234567").mkdir()
    (twin,) = caches.recorder.twins
    os.close(twin.descriptor)
    caches.recorder.check_twins()
    assert (resolved / "wp_m_1234567").is_dir()
    assert caches.events == []


def test_a_descriptor_that_the_program_uses_again_is_not_closed(caches, tmp_path):
    caches.set(caches.real)
    (twin,) = caches.recorder.twins
    number = twin.descriptor
    (tmp_path / "theirs").touch()
    theirs = os.open(tmp_path / "theirs", os.O_RDONLY)
    os.dup2(theirs, number)
    os.close(theirs)
    probe.shutil.rmtree(caches.real)
    caches.recorder.check_twins()
    assert os.path.samestat(os.fstat(number), (tmp_path / "theirs").stat())
    os.close(number)


def test_directories_that_the_probe_made_go_only_when_they_are_empty(caches):
    caches.set(caches.real)
    (caches.real / "notes").touch()
    _, sample = caches.next_run()
    sample.close()
    assert sorted(path.name for path in caches.real.iterdir()) == ["notes"]
    (caches.real / "notes").unlink()


def test_directories_of_the_program_stay_even_when_they_are_empty(caches):
    (caches.real / "1.19.0").mkdir(parents=True)
    caches.set(caches.real)
    assert not lines_of(caches.recorder, "made")
    _, sample = caches.next_run()
    sample.close()
    assert (caches.real / "1.19.0").is_dir()


def test_everything_that_the_probe_made_goes(caches):
    caches.set(caches.real)
    _, sample = caches.next_run()
    sample.close()
    assert not caches.real.parent.exists()


def test_a_path_that_is_no_text_is_kept_byte_for_byte(caches):
    real = os.path.join(os.fsencode(caches.folder), b"caf\xe9")
    caches.set(os.fsdecode(real))
    assert os.path.isdir(real)
    warm, _ = caches.next_run()
    (warm.set(os.fsdecode(real)) / "wp_m_1234567").mkdir()
