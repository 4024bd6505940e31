"""From record files to processes: their tree, contents of kernels, launches, loads, and records that are torn."""

import dataclasses
import itertools
import json
import lzma
import random
from array import array

import pytest
import warp_compile_probe as probe
from hypothesis import given
from hypothesis import strategies as st
from recorded import launch_table
from report_builder import decode_stream


def record(pid, at, *, parent=None, how="exec", name=None, **lines):
    """A record file: its start line, and lines of other kinds."""
    start = {
        "t": "start",
        "at": at,
        "pid": pid,
        "parent": parent,
        "how": how,
        "argv": ["python"],
        "executable": "/python",
    }
    start["python"] = "3.11.7"
    return probe.RecordFile(name or f"{pid}-{at}", {"start": [start], **lines}, truncated=False)


def birth(pid, at, *argv, injected=True):
    return {"t": "birth", "at": at, "pid": pid, "argv": list(argv), "injected": injected}


def end(at, how="exit", code=None, total_hash_ns=0, total_hashings=0):
    return {
        "t": "end",
        "at": at,
        "how": how,
        "code": code,
        "total_hash_ns": total_hash_ns,
        "total_hashings": total_hashings,
    }


# ---------------------------------------------------------------------------------------------------------------------
# The tree of processes
# ---------------------------------------------------------------------------------------------------------------------

TREES = {
    "one process": ([record(1, 0)], {"1-0": "0"}),
    "children in order of birth, not of start": (
        [
            record(1, 0, birth=[birth(30, 10), birth(20, 11)]),
            record(20, 50, parent="1-0"),
            record(30, 60, parent="1-0"),
        ],
        {"1-0": "0", "30-60": "0.0", "20-50": "0.1"},
    ),
    "forks have no birth line": (
        [
            record(1, 0, birth=[birth(20, 30)]),
            record(20, 50, parent="1-0"),
            record(30, 40, parent="1-0", how="fork"),
        ],
        {"1-0": "0", "20-50": "0.0", "30-40": "0.1"},
    ),
    "a pid that comes again": (
        [
            record(1, 0, birth=[birth(20, 10), birth(30, 20), birth(20, 30)]),
            record(20, 15, parent="1-0"),
            record(30, 25, parent="1-0"),
            record(20, 35, parent="1-0"),
        ],
        {"1-0": "0", "20-15": "0.0", "30-25": "0.1", "20-35": "0.2"},
    ),
    "an exec keeps the pid and is a child": (
        [record(1, 0, birth=[birth(1, 10)]), record(1, 20, parent="1-0")],
        {"1-0": "0", "1-20": "0.0"},
    ),
    "a parent without a record": ([record(1, 0), record(2, 10, parent="9-9")], {"1-0": "0", "2-10": "1"}),
    "grandchildren": (
        [
            record(1, 0),
            record(2, 10, parent="1-0", how="fork"),
            record(3, 20, parent="2-10", how="fork"),
            record(4, 30, parent="2-10", how="fork"),
            record(5, 15, parent="1-0", how="fork"),
        ],
        {"1-0": "0", "2-10": "0.0", "5-15": "0.1", "3-20": "0.0.0", "4-30": "0.0.1"},
    ),
}


@pytest.mark.parametrize(("files", "paths"), TREES.values(), ids=TREES)
def test_processes_are_named_by_their_place(files, paths):
    assert probe.process_paths(probe.linked(files)) == paths
    assert probe.process_paths(probe.linked(files[::-1])) == paths


def test_more_than_ten_children_stay_in_order(tmp_path):
    files = [record(1, 0), *(record(pid, pid, parent="1-0", how="fork") for pid in range(2, 14))]
    paths = probe.process_paths(probe.linked(files))
    assert [paths[f"{pid}-{pid}"] for pid in range(2, 14)] == [f"0.{ordinal}" for ordinal in range(12)]
    write(tmp_path, *files)
    read = probe.read_records(str(tmp_path), 0, [])
    assert [process.pid for process in read.processes] == list(range(1, 14))


def test_the_fork_between_subprocess_and_a_program_is_no_process():
    """With a preexec_fn, subprocess runs the hooks of a fork; the environment of what it runs names that fork."""
    files = [
        record(1, 0, birth=[birth(20, 10)]),
        record(20, 11, parent="1-0", how="fork"),
        record(20, 30, parent="20-11"),
    ]
    left = probe.linked(files)
    assert [file.name for file in left] == ["1-0", "20-30"]
    assert probe.process_paths(left) == {"1-0": "0", "20-30": "0.0"}
    assert probe.unrecorded_children(left) == []


@pytest.mark.parametrize(
    "lines",
    [{"end": [end(20)]}, {"load": [{}]}, {"ids": [{}]}, {"birth": [birth(3, 12)]}],
    ids=lambda lines: next(iter(lines)),
)
def test_a_fork_that_did_something_is_a_process(lines):
    files = [record(1, 0, birth=[birth(20, 10)]), record(20, 11, parent="1-0", how="fork", **lines)]
    assert probe.linked(files) == files


def test_a_fork_without_a_birth_is_a_process():
    files = [record(1, 0), record(20, 11, parent="1-0", how="fork")]
    assert probe.linked(files) == files


# ---------------------------------------------------------------------------------------------------------------------
# Children that are not recorded
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("python x.py", None),
        ("python -I x.py", "-I"),
        ("python -E x.py", "-E"),
        ("python -S x.py", "-S"),
        ("python -uBI x.py", "-I"),
        ("python -u -B -s -E x.py", "-E"),
        ("python -m pytest -I", None),
        ("python -c pass -S", None),
        ("python -uc pass -S", None),
        ("python -mpytest -I", None),
        ("python -W ignore -I x.py", "-I"),
        ("python -Wignore -I x.py", "-I"),
        ("python -X importtime -S x.py", "-S"),
        ("python -Ximporttime x.py -S", None),
        ("python -WI x.py", None),
        ("python --check-hash-based-pycs=always -I x.py", "-I"),
        ("python - -I", None),
        ("python -- -I", None),
        ("python x.py -I", None),
        ("python", None),
        ("python -", None),
    ],
)
def test_flags_that_keep_the_recorder_out(words, flag):
    assert probe.isolating_flag(words.split()) == flag


@pytest.mark.parametrize(
    ("word", "python"),
    [
        ("python", True),
        ("/usr/bin/python3", True),
        ("python3.11", True),
        ("/opt/x/bin/python3.13t", True),
        ("pypy3.10", True),
        ("python.exe", True),
        ("python-config", False),
        ("ipython", False),
        ("bash", False),
        ("", False),
    ],
)
def test_names_of_python(word, python):
    assert probe.is_python(word) is python


GAPS = {
    "a recorded child": ([record(1, 0, birth=[birth(2, 10, "python")]), record(2, 20)], []),
    "a child that is not recorded": (
        [record(1, 0, birth=[birth(2, 10, "python", "x.py")])],
        [("child-not-recorded", 2)],
    ),
    "another program": ([record(1, 0, birth=[birth(2, 10, "ffmpeg")])], []),
    "a shell that keeps the environment": ([record(1, 0, birth=[birth(2, 10, "sh", "-c", "x")])], []),
    "a shell that drops it": (
        [record(1, 0, birth=[birth(2, 10, "sh", "-c", "x", injected=False)])],
        [("dropped-environment", 2)],
    ),
    "another program that drops it": ([record(1, 0, birth=[birth(2, 10, "ls", injected=False)])], []),
    "an isolated child": ([record(1, 0, birth=[birth(2, 10, "/usr/bin/python3", "-I")])], [("isolated-python", 2)]),
    "a child that started before, with the pid that another has now": (
        [record(1, 0, birth=[birth(2, 10, "python", "-I"), birth(2, 30, "python")]), record(2, 40)],
        [("isolated-python", 2)],
    ),
    "a child with the pid that another had": (
        [record(1, 0, birth=[birth(2, 10, "python"), birth(2, 30, "python", "-I")]), record(2, 20)],
        [("isolated-python", 2)],
    ),
    "an exec that failed": ([record(1, 0, birth=[birth(1, 10, "python")], revived=[{"at": 11}])], []),
    "an exec that lost the recorder": (
        [record(1, 0, birth=[birth(1, 10, "python", injected=False)])],
        [("dropped-environment", 1)],
    ),
    "an exec after one that failed": (
        [record(1, 0, birth=[birth(1, 10, "python"), birth(1, 20, "python", "-S")], revived=[{"at": 11}])],
        [("isolated-python", 1)],
    ),
    "no words at all": ([record(1, 0, birth=[birth(2, 10, injected=False)])], []),
}


@pytest.mark.parametrize(("files", "gaps"), GAPS.values(), ids=GAPS)
def test_children_that_are_not_recorded(files, gaps):
    assert [(gap.reason.value, gap.pid) for gap in probe.unrecorded_children(files)] == gaps


# ---------------------------------------------------------------------------------------------------------------------
# What a kernel computes
# ---------------------------------------------------------------------------------------------------------------------

PLAIN_SOURCE = """
@wp.kernel
def add(x: wp.array(dtype=float), y: float):
    i = wp.tid()
    x[i] = x[i] + y
"""

SAME = {
    "another name": "def sum_up(x: wp.array(dtype=float), y: float):\n    i = wp.tid()\n    x[i] = x[i] + y\n",
    "another decorator": PLAIN_SOURCE.replace("@wp.kernel", "@wp.kernel(enable_backward=False, module='unique')"),
    "a decorator over several lines": PLAIN_SOURCE.replace(
        "@wp.kernel", "@wp.kernel(\n    module=(\n        'unique'\n    )\n)"
    ),
    "comments": PLAIN_SOURCE.replace("i = wp.tid()", "# which one\n    i = wp.tid()  # this one"),
    "a docstring": PLAIN_SOURCE.replace("    i =", '    """Adds."""\n    i ='),
    "other annotations": PLAIN_SOURCE.replace("wp.array(dtype=float)", "wp.array[float]").replace("y: float", "y"),
    "a return annotation": PLAIN_SOURCE.replace("):", ") -> None:"),
    "an indent": "".join(f"        {line}\n" for line in PLAIN_SOURCE.splitlines()),
    "layout": PLAIN_SOURCE.replace("x[i] + y", "(\n        x[i]\n        + y\n    )"),
}

OTHER = {
    "another operator": PLAIN_SOURCE.replace("x[i] + y", "x[i] - y"),
    "another literal": PLAIN_SOURCE.replace("x[i] + y", "x[i] + 2.0"),
    "another default": PLAIN_SOURCE.replace("y: float", "y: float = 1.0"),
    "another argument": PLAIN_SOURCE.replace("y: float", "y: float, z: float"),
    "another statement": PLAIN_SOURCE + "    x[i] = 0.0\n",
    "a text that is no docstring": PLAIN_SOURCE.replace("i = wp.tid()", "i = wp.tid()\n    'text'"),
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_sources_that_mean_the_same(source):
    assert probe.normal_source(source) == probe.normal_source(PLAIN_SOURCE)


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER)
def test_sources_that_mean_something_else(source):
    assert probe.normal_source(source) != probe.normal_source(PLAIN_SOURCE)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("@wp.func\ndef f(x): \n  this is no Python", "def g(x): \n  this is no Python", True),
        ("def f(x): \n  this is no Python", "def f(x): \n  neither is that", False),
        ("twice = wp.func(lambda x: 2 * x)", "twice = wp.func(lambda x: 2 * x)  # twice", True),
        ("twice = wp.func(lambda x: 2 * x)", "twice = wp.func(lambda x: 3 * x)", False),
        ("a = 1\nb = 2", "a = 1\nb = 3", False),
        ("", " ", False),
        ("def f(x):\0", "def g(x):\0", True),
    ],
)
def test_sources_that_are_no_single_function(one, other, same):
    assert (probe.normal_source(one) == probe.normal_source(other)) is same


def test_a_syntax_tree_is_the_same_text_in_every_python():
    """`ast.dump` writes empty fields or leaves them out, by the release."""
    source = "def f(x, *y, z=1, **k):\n    return [g(x)[1:], lambda: -x]\n"
    assert probe.normal_source(source) == (
        "[arguments(args=[arg(arg='x')],vararg=arg(arg='y'),kwonlyargs=[arg(arg='z')],kw_defaults=[Constant(value=1)],"
        "kwarg=arg(arg='k')),Return(value=List(elts=[Subscript(value=Call(func=Name(id='g',ctx=Load()),args=[Name(id='x',"
        "ctx=Load())]),slice=Slice(lower=Constant(value=1)),ctx=Load()),Lambda(args=arguments(),body=UnaryOp(op=USub(),"
        "operand=Name(id='x',ctx=Load())))],ctx=Load()))]"
    )


@dataclasses.dataclass(frozen=True)
class Body:
    """A function body as Warp's hasher meets it."""

    source: str = PLAIN_SOURCE
    args: tuple = (("x", "array(float32)", "a1f4"), ("y", "float32", "f4"))
    constants: tuple = (("K", "2.0"),)
    types: tuple = ()
    statics: tuple = ()
    calls: tuple = ()  # functions

    def add_to(self, catalog, digest):
        for function in self.calls:
            function.add_to(catalog)
        line = {
            "file": "app.py",
            "line": 3,
            "name": "add",
            "source": self.source,
            "args": list(map(list, self.args)),
            "constants": dict(self.constants),
            "types": list(map(list, self.types)),
            "statics": list(map(list, self.statics)),
            "functions": {function.key: function.digest for function in self.calls},
        }
        catalog.add("adjoint", digest, line)


@dataclasses.dataclass(frozen=True)
class Function:
    key: str
    bodies: tuple = (Body("@wp.func\ndef f(x: float):\n    return x"),)
    snippets: tuple = ()

    @property
    def digest(self):
        return f"function of {hash(self)}"

    def add_to(self, catalog):
        digests = [f"{self.digest} {number}" for number in range(len(self.bodies))]
        for body, digest in zip(self.bodies, digests, strict=True):
            body.add_to(catalog, digest)
        line = {"adjoints": digests, "snippets": list(self.snippets)}
        catalog.add("function", self.digest, line)


def content_of(body, key="add", **options):
    catalog = probe.Catalog()
    body.add_to(catalog, "body")
    line = {"key": key, "module": "app", "site": ["app.py", 3, key], "adjoint": "body", "options": options}
    catalog.add("kernel", "kernel", {**line, "overload": False})
    return catalog.content("kernel")


DEEP = Function("outer", (Body(calls=(Function("inner"),)),))
CONTENTS = {
    "the same": (Body(), True),
    "another source that means the same": (Body(SAME["comments"]), True),
    "another source": (Body(OTHER["another operator"]), False),
    "a constant": (Body(constants=(("K", "3.0"),)), False),
    "no constant": (Body(constants=()), False),
    "an argument type": (Body(args=(("x", "array(float64)", "a1f8"), ("y", "float32", "f4"))), False),
    "a structure with other members": (Body(args=(("x", "app.S", "S_12345678"), ("y", "float32", "f4"))), False),
    "a structure made in the body": (Body(types=(("S", "S_12345678"),)), False),
    "a static value": (Body(statics=(("N", "4"),)), False),
    "a static function": (Body(statics=(("f", "<Function object at 0x7f00>"),)), False),
    "a function": (Body(calls=(Function("f"),)), False),
}


@pytest.mark.parametrize(("body", "same"), CONTENTS.values(), ids=CONTENTS)
def test_contents_of_kernels(body, same):
    assert (content_of(body) == content_of(Body())) is same


FUNCTIONS = {
    "another body": Function("f", (Body("@wp.func\ndef f(x: float):\n    return -x"),)),
    "another constant": Function("f", (Body("@wp.func\ndef f(x: float):\n    return x", constants=(("K", "9"),)),)),
    "one more overload": Function("f", (*Function("f").bodies, Body())),
    "a native snippet": Function("f", snippets=("return x;",)),
    "a function that calls another": DEEP,
    "one that calls another that changed": dataclasses.replace(
        DEEP, bodies=(Body(calls=(Function("inner", snippets=("return x;",)),)),)
    ),
}


def test_contents_follow_the_functions_that_are_called():
    contents = [content_of(Body(calls=(function,))) for function in [Function("f"), *FUNCTIONS.values()]]
    assert len(set(contents)) == len(contents)


def test_contents_do_not_depend_on_names_and_options_of_a_kernel():
    assert content_of(Body(), key="main.<locals>.add", enable_backward="False") == content_of(Body())


def test_contents_do_not_depend_on_addresses():
    statics = [Body(statics=(("f", f"<Function object at 0x{address:x}>"),)) for address in (0x7F00, 0x7FFF)]
    assert content_of(statics[0]) == content_of(statics[1])


def test_contents_of_what_was_not_seen():
    catalog = probe.Catalog()
    assert catalog.content(None) == ""
    assert catalog.content("kernel") == ""
    line = {"key": "add", "module": "app", "site": ["app.py", 3, "add"], "adjoint": "gone", "options": {}}
    catalog.add("kernel", "kernel", {**line, "overload": False})
    assert catalog.content("kernel") == ""


def test_contents_do_not_depend_on_what_was_hashed_before(monkeypatch, tmp_path):
    """Warp's hasher knows a function from its second caller on, and does not go through it again."""
    monkeypatch.setenv(probe.PROCESS_VARIABLE, "")
    contents = []
    for position, keys in enumerate((["one", "two"], ["two", "one"])):
        records = tmp_path / str(position)
        records.mkdir()
        recorder = probe.Recorder({"records": str(records), "inject": "", "sample": "", "script": "", "set": {}})
        recorder.warp_was_followed = True
        hash_kernels(recorder, keys)
        recorder.finish("exit")
        catalog = probe.Catalog()
        for path in records.glob("*.rec"):
            assert not probe.read_record_file(str(path), catalog, []).of("error")
        contents.append({kernel.key: catalog.content(digest) for digest, kernel in catalog.kernels.items()})
    assert contents[0] == contents[1]
    assert len(set(contents[0].values())) == 2


def hash_kernels(recorder, keys):
    """Hash kernels in that order; "one" calls the function "outer", which calls "inner", and "two" calls both."""
    from types import ModuleType, SimpleNamespace

    class Adjoint:
        def __init__(self, name, calls):
            self.source = f"def {name}():\n    return {name!r}\n"
            self.filename, self.fun_lineno, self.fun_name = "app.py", 1, name
            self.arg_types = {}
            self.resolved_static_expressions, self.deferred_static_expressions = {}, []
            self.calls = calls

        def get_references(self):
            return {}, {}, dict.fromkeys(self.calls)

    class ModuleHasher:
        def __init__(self, kernels, options):
            self.known = {}
            self.unique_kernels = {self.hash_kernel(kernel): kernel for kernel in kernels}
            self.hash = b"\1" * 32

        def hash_kernel(self, kernel):
            return b"kernel " + kernel.key.encode() + self.hash_adjoint(kernel.adj)

        def hash_function(self, function):
            if function.key not in self.known:
                self.known[function.key] = b"function " + function.key.encode() + self.hash_adjoint(function.adj)
            return self.known[function.key]

        def hash_adjoint(self, adjoint):
            _, _, functions = adjoint.get_references()
            return b"adjoint " + adjoint.fun_name.encode() + b"".join(map(self.hash_function, functions))

    class Item(SimpleNamespace):
        __hash__ = object.__hash__

    def function(key, *calls):
        item = Item(key=key, module=Item(name="app"), adj=Adjoint(key, calls), generic_parent=None)
        item.user_overloads, item.user_templates = {"": item}, {}
        return item

    inner = function("inner")
    outer = function("outer", inner)
    bodies = {"one": Adjoint("one", [outer]), "two": Adjoint("two", [outer, inner])}
    context = ModuleType("warp._src.context")
    context.ModuleHasher = ModuleHasher
    recorder.context = context
    recorder.codegen = ModuleType("warp._src.codegen")
    recorder.codegen.Adjoint = Adjoint
    recorder.types = Item(type_repr=str, get_type_code=str)
    recorder.patch_hasher()
    kernels = [Item(key=key, adj=bodies[key], module=Item(name="app"), options={}, is_generic=False) for key in keys]
    ModuleHasher(kernels, {})


# ---------------------------------------------------------------------------------------------------------------------
# Launches
# ---------------------------------------------------------------------------------------------------------------------


def hooks(number, key="add", **changes):
    line = {
        "t": "hooks",
        "number": number,
        "key": key,
        "module": "app",
        "hash": "ab" * 32,
        "device": "cpu",
        "block_dim": 1,
        "digest": None,
        "args": ["float32"],
        "lost": False,
    }
    return {**line, **changes}


def launch(number, kernel=1, dim=(8,), *, adjoint=False):
    return {
        "t": "launch",
        "number": number,
        "kernel": kernel,
        "dim": None if dim is None else list(dim),
        "adjoint": adjoint,
    }


def graph(number, *contents, unknown=False):
    return {"t": "launch", "number": number, "graph": probe.pack(array("I", contents)), "unknown": unknown}


def ids(sequence, *numbers, thread=0):
    return {"t": "ids", "thread": thread, "sequence": sequence, "z": probe.pack(array("I", numbers))}


def buffer(folder, name, sequence, *numbers, thread=0, size=16):
    path = folder / f"{name}.{thread}.ids"
    path.write_bytes(array("I", [sequence, *numbers, *(0,) * (size - len(numbers))]).tobytes())


def read_launches(folder, file, *ancestors):
    probe.linked([file, *ancestors])
    reader = probe.LaunchReader(str(folder), file, probe.Catalog(), probe.MAX_ENCODED_LAUNCH_BYTES)
    return reader.read(), reader.missing


def decoded(launches):
    """The launches of each thread in order: kernel, dim."""
    table = [(launches.kernels[item.kernel].key, *item.dim) for item in launches.entries]
    return {stream.thread: [table[index] for index in decode_stream(stream)] for stream in launches.streams}


def test_flushed_pieces_and_the_rest_of_the_buffer(tmp_path):
    file = record(1, 0, hooks=[hooks(1)], launch=[launch(1), launch(2, dim=(4,))], ids=[ids(2, 2, 2), ids(1, 1, 2)])
    buffer(tmp_path, file.name, 3, 1, 1)
    launches, missing = read_launches(tmp_path, file)
    assert decoded(launches) == {0: [("add", number) for number in (8, 4, 4, 4, 8, 8)]}
    assert launch_table(launches) == [("add", (8,), False, 3), ("add", (4,), False, 3)]
    assert missing == []


BUFFERS = {
    "flushed and not yet emptied": ((2, 1, 1), [8, 4], []),
    "flushed and half emptied": ((2, 0, 1), [8, 4], []),
    "empty": ((3,), [8, 4], []),
    "full": ((3, *[2] * 16), [8, 4, *[4] * 16], []),
    "made and not yet begun": ((0,), [8, 4], []),
    "two flushes ahead of the record": ((5, 1), [8, 4, 8], ["2 pieces of the launches of thread 0 lost"]),
}


@pytest.mark.parametrize(("slots", "dims", "missing"), BUFFERS.values(), ids=BUFFERS)
def test_what_a_kill_leaves(tmp_path, slots, dims, missing):
    file = record(1, 0, hooks=[hooks(1)], launch=[launch(1), launch(2, dim=(4,))], ids=[ids(1, 1), ids(2, 2)])
    buffer(tmp_path, file.name, *slots)
    launches, found = read_launches(tmp_path, file)
    assert decoded(launches) == {0: [("add", dim) for dim in dims]}
    assert found == missing


def test_a_piece_that_is_missing_in_the_middle(tmp_path):
    file = record(1, 0, hooks=[hooks(1)], launch=[launch(1)], ids=[ids(1, 1), ids(3, 1)])
    launches, missing = read_launches(tmp_path, file)
    assert launches.count == 2
    assert missing == ["1 piece of the launches of thread 0 lost"]


def test_threads_are_apart(tmp_path):
    file = record(
        1,
        0,
        hooks=[hooks(1)],
        launch=[launch(1), launch(2, dim=(4,))],
        ids=[ids(1, 1, 2, thread=3), ids(1, 2, thread=12)],
    )
    buffer(tmp_path, file.name, 1, 1, thread=5)
    buffer(tmp_path, file.name, 1, thread=6)
    buffer(tmp_path, "1-01", 1, 1, thread=7)  # of another process
    launches, _ = read_launches(tmp_path, file)
    assert decoded(launches) == {3: [("add", 8), ("add", 4)], 5: [("add", 8)], 12: [("add", 4)]}


def test_a_forked_child_reads_the_lines_of_its_ancestors(tmp_path):
    first = record(1, 0, hooks=[hooks(1)], launch=[launch(1)])
    # Both went on counting after the fork: number 2 is not the same in them.
    parent = record(2, 10, parent="1-0", how="fork", hooks=[hooks(2, "of the parent")], launch=[launch(2, kernel=2)])
    child = record(
        3,
        20,
        parent="2-10",
        how="fork",
        hooks=[hooks(2, "of the child")],
        launch=[launch(2, kernel=2, dim=(3,))],
        ids=[ids(1, 1, 2)],
    )
    launches, missing = read_launches(tmp_path, child, first, parent)
    assert decoded(launches) == {0: [("add", 8), ("of the child", 3)]}
    assert missing == []


def test_launches_without_a_description(tmp_path):
    special = {"t": "launch", "number": 3, "special": "unknown"}
    file = record(1, 0, hooks=[hooks(1)], launch=[launch(1), launch(2, kernel=9), special], ids=[ids(1, 1, 2, 3, 4, 4)])
    launches, missing = read_launches(tmp_path, file)
    assert decoded(launches) == {0: [("add", 8)]}
    assert missing == ["4 launches whose kernel is not known"]


def test_dims_beyond_what_was_told_apart(tmp_path):
    file = record(1, 0, hooks=[hooks(1)], launch=[launch(1), launch(2, dim=None)], ids=[ids(1, 1, 2, 2)])
    launches, missing = read_launches(tmp_path, file)
    assert launch_table(launches) == [("add", (8,), False, 1), ("add", (), False, 2)]
    assert missing == ["more than 100000 distinct launches: further dims are not told apart"]


def test_graphs_are_replaced_by_their_launches(tmp_path):
    lines = [launch(1), launch(2, dim=(4,)), graph(3, 1, 2, 1), graph(4), graph(5, 2, unknown=True)]
    seen = {"t": "launch", "number": 6, "special": "graph"}
    file = record(1, 0, hooks=[hooks(1)], launch=[*lines, seen], ids=[ids(1, 3, 2, 4, 3, 5, 6, 5)])
    launches, missing = read_launches(tmp_path, file)
    assert [dim for _, dim in decoded(launches)[0]] == [8, 4, 8, 4, 8, 4, 8, 4, 4]
    assert sorted(launch_table(launches)) == [("add", (4,), False, 5), ("add", (8,), False, 4)]
    assert launches.graph_replays_unknown == 3
    assert missing == []


def test_a_process_whose_only_launches_are_unknown(tmp_path):
    file = record(1, 0, launch=[{"t": "launch", "number": 1, "special": "graph"}], ids=[ids(1, 1, 1)])
    launches, missing = read_launches(tmp_path, file)
    assert launches == probe.Launches(0, 2, (), (), ())
    assert missing == []


def test_equal_launches_with_several_numbers_are_one_entry(tmp_path):
    """Two threads can describe the same launch at the same time, and a module can be loaded again."""
    file = record(
        1, 0, hooks=[hooks(1), hooks(2)], launch=[launch(1), launch(2), launch(3, kernel=2)], ids=[ids(1, 1, 2, 3)]
    )
    launches, _ = read_launches(tmp_path, file)
    assert launch_table(launches) == [("add", (8,), False, 3)]


@pytest.mark.parametrize(("distinct", "width"), [(256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_indices_are_as_narrow_as_they_can_be(tmp_path, distinct, width):
    lines = [launch(number, dim=(number,)) for number in range(1, distinct + 1)]
    file = record(1, 0, hooks=[hooks(1)], launch=lines, ids=[ids(1, *range(1, distinct + 1))])
    launches, _ = read_launches(tmp_path, file)
    (stream,) = launches.streams
    assert stream.width == width
    assert list(decode_stream(stream)) == list(range(distinct))


def noise(count, kinds):
    generator = random.Random(0)
    return array("I", generator.choices(range(1, kinds + 1), k=count))


def streams_of(tmp_path, *threads, kinds):
    lines = [launch(number, dim=(number,)) for number in range(1, kinds + 1)]
    pieces = [
        {"t": "ids", "thread": thread, "sequence": 1, "z": probe.pack(numbers)}
        for thread, numbers in enumerate(threads)
    ]
    launches, missing = read_launches(tmp_path, record(1, 0, hooks=[hooks(1)], launch=lines, ids=pieces))
    assert missing == []
    assert launches.count == sum(map(len, threads))
    return launches.streams


def test_an_order_that_is_too_long_is_kept_as_a_digest_and_the_first_launches(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "MAX_ENCODED_LAUNCH_BYTES", 100_000)
    numbers = noise(150_000, 256)
    (stream,) = streams_of(tmp_path, numbers, kinds=256)
    assert (stream.order, stream.count) == (probe.Order.DIGEST, 150_000)
    order = {number: index for index, number in enumerate(sorted(set(numbers)))}
    indices = array("I", (order[number] for number in numbers))
    assert decode_stream(stream) == indices[:100_000]
    assert stream.digest == probe.hashlib.sha256(indices.tobytes()).hexdigest()


def test_a_million_aperiodic_launches_stay_below_the_limit(tmp_path):
    (stream,) = streams_of(tmp_path, noise(1_000_000, 50), kinds=50)
    assert stream.order is probe.Order.EXACT
    assert len(stream.data) < 1 << 20


def test_a_stream_of_few_launches_is_exact_even_when_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "MAX_ENCODED_LAUNCH_BYTES", 10)
    first, second = streams_of(tmp_path, noise(1000, 200), noise(100_000, 200), kinds=200)
    assert (first.order, second.order) == (probe.Order.EXACT, probe.Order.EXACT)
    assert len(decode_stream(second)) == 100_000


def test_threads_share_the_room_for_the_order(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "MAX_ENCODED_LAUNCH_BYTES", 200_000)
    monkeypatch.setattr(probe, "FIRST_LAUNCHES_KEPT", 1000)
    streams = streams_of(tmp_path, *[noise(100_000, 200)] * 4, kinds=200)
    assert [stream.order.value for stream in streams] == ["exact", "exact", "digest", "digest"]


@given(
    st.sampled_from([1, 2, 4]).flatmap(
        lambda width: st.tuples(
            st.just(width), st.lists(st.lists(st.integers(0, (1 << 8 * width) - 1), max_size=20), max_size=8)
        )
    )
)
def test_a_stream_decodes_to_what_was_encoded(case):
    width, pieces = case
    encoder = probe.StreamEncoder(width, 1000)
    for piece in pieces:
        encoder.add(probe.encoded_indices(array("I", piece), width))
    stream = encoder.stream(7)
    every = array("I", itertools.chain.from_iterable(pieces))
    assert (stream.thread, stream.count, stream.order) == (7, len(every), probe.Order.EXACT)
    assert decode_stream(stream) == every
    assert stream.digest == probe.hashlib.sha256(every.tobytes()).hexdigest()
    assert lzma.decompress(probe.base64.b64decode(stream.data)) == probe.encoded_indices(every, width)


# ---------------------------------------------------------------------------------------------------------------------
# Loads, and whole folders
# ---------------------------------------------------------------------------------------------------------------------


def load_line(**changes):
    line = {
        "t": "load",
        "name": "app",
        "hash": "ab" * 32,
        "device": "cpu",
        "block_dim": 1,
        "kind": "jit",
        "site": ["app.py", 7, "main"],
        "workers": None,
        "hash_ns": 500_000,
        "in_capture": False,
        "unreached": [["mode", "'release'", "'debug'"]],
        "options_site": None,
        "status": "compiled",
        "start": 1_002_000_000,
        "end": 1_012_000_000,
        "thread": 2,
        "phases": {"codegen": 1_000_000, "lto": 2_000_000, "native": 4_000_000, "install": 500_000, "load": 250_000},
        "header": 3_000_000,
        "source_bytes": 1234,
        "lto": [{"symbol": "dot", "bytes": 99, "ns": 2_000_000, "adjoint": True}],
        "error": None,
        "total_hash_ns": 700_000,
        "total_hashings": 3,
    }
    return {**line, **changes}


def test_a_load_line_becomes_a_load():
    load = probe.load_from(load_line(), 1_000_000_000)
    assert (load.start_ms, load.end_ms, load.ms, load.hash_ms, load.thread) == (2.0, 12.0, 10.0, 0.5, 2)
    assert load.phases == probe.Phases(1.0, 2.0, 4.0, 3.0, 0.5, 0.25, 2.25)
    assert load.site == probe.Site("app.py", 7, "main")
    assert load.lto == (probe.LtoArtifact("dot", 99, 2.0, adjoint=True),)
    assert load.unreached == (probe.UnreachedOption("mode", "'release'", "'debug'"),)
    assert (load.status, load.kind, load.source) == (probe.Status.COMPILED, probe.LoadKind.JIT, probe.Source.HOOK)


def test_parts_of_a_load_stay_within_it():
    phases = {"codegen": 9_000_000, "lto": 0, "native": 2_000_000, "install": 0, "load": 0}
    load = probe.load_from(load_line(phases=phases, header=3_000_000), 0)
    assert load.phases.rest_ms == 0.0
    assert load.phases.header_ms == 2.0
    assert probe.load_from(load_line(header=None), 0).phases.header_ms is None


def write(folder, *files):
    for file in files:
        lines = itertools.chain.from_iterable(file.lines.values())
        text = "".join(json.dumps({"t": kind, **line}) + "\n" for kind, line in zip(kinds(file), lines, strict=True))
        (folder / f"{file.name}.rec").write_text(text, encoding="ascii")


def kinds(file):
    return [kind for kind, lines in file.lines.items() for _ in lines]


def one_process(**lines):
    return record(1, 1_000_000_000, **{"end": [end(1_050_000_000, total_hash_ns=2_000_000, total_hashings=4)], **lines})


def test_a_process_with_everything(tmp_path):
    warp = {"start": 1_000_500_000, "end": 1_001_500_000, "version": "1.19.0", "missing": []}
    init = {"start": 1_001_500_000, "end": 1_001_600_000, "toolkit": "13.4", "driver": None, "cuda_archs": [75, 90]}
    devices = [["cpu", "x86", None], ["cuda:0", "H200", 90]]
    cache = {
        "kind": "directory-set",
        "at": 1_003_000_000,
        "path": "/private/1/tmp/cache",
        "site": ["app.py", 2, "main"],
    }
    made = {"paths": ["/home/u/cache"]}
    write(
        tmp_path,
        one_process(
            warp=[warp], init=[{**init, "devices": devices}], load=[load_line()], cache=[cache], made=[made], tape=[{}]
        ),
    )
    read = probe.read_records(str(tmp_path), 1_000_000_000, ["/private"])
    (process,) = read.processes
    assert (process.path, process.how, process.warp, process.end.value) == ("0", "exec", "1.19.0", "exit")
    assert (process.start_ms, process.end_ms, process.hash_ms, process.hashings) == (0.0, 50.0, 2.0, 4)
    assert process.phases == probe.ProcessPhases(0.0, 0.5, 1.0, 0.1, 10.5, 37.9)
    assert [event.path for event in process.cache_events] == ["$TMPDIR/cache"]
    assert process.tapes == 1
    assert [load.name for load in process.loads] == ["app"]
    assert (read.versions, read.toolkit, read.driver, read.cuda_archs) == (("1.19.0",), "13.4", None, (75, 90))
    assert read.devices == (probe.Device("cpu", "x86", None), probe.Device("cuda:0", "H200", 90))
    assert read.gaps == ()


def test_a_process_that_was_killed_keeps_what_it_wrote(tmp_path):
    write(tmp_path, one_process(end=[], load=[load_line()]))
    (process,) = probe.read_records(str(tmp_path), 0, []).processes
    assert (process.end, process.end_ms, process.exit_code, process.phases) == (
        probe.ProcessEnd.UNRECORDED,
        None,
        None,
        None,
    )
    assert (process.hash_ms, process.hashings) == (0.7, 3)
    assert len(process.loads) == 1


ENDS = {
    "exit": ([end(20)], [], "exit"),
    "a failed exec, then the end": ([end(20, "exec"), end(40)], [{"at": 21}], "exit"),
    "a failed exec, then a kill": ([end(20, "exec")], [{"at": 21}], "unrecorded"),
    "a failed exec, then one that worked": ([end(20, "exec"), end(40, "exec")], [{"at": 21}], "exec"),
    "os._exit": ([end(20, "os._exit", 3)], [], "os._exit"),
}


@pytest.mark.parametrize(("ends", "revived", "how"), ENDS.values(), ids=ENDS)
def test_how_a_process_ended(tmp_path, ends, revived, how):
    write(tmp_path, record(1, 0, end=ends, revived=revived))
    (process,) = probe.read_records(str(tmp_path), 0, []).processes
    assert process.end.value == how


def test_processes_share_the_room_for_the_order(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "MAX_ENCODED_LAUNCH_BYTES", 200_000)
    monkeypatch.setattr(probe, "FIRST_LAUNCHES_KEPT", 1000)
    lines = [launch(number, dim=(number,)) for number in range(1, 201)]
    pieces = [{"thread": 0, "sequence": 1, "z": probe.pack(noise(100_000, 200))}]
    write(tmp_path, *(record(pid, 0, hooks=[hooks(1)], launch=lines, ids=pieces) for pid in range(1, 5)))
    processes = probe.read_records(str(tmp_path), 0, []).processes
    streams = [stream for process in processes for stream in process.launches.streams]
    assert [stream.order.value for stream in streams] == ["exact", "exact", "digest", "digest"]
    assert {stream.count for stream in streams} == {100_000}


def test_the_interpreter_starts_at_the_birth(tmp_path):
    parent = record(1, 1_000_000, birth=[birth(2, 3_000_000, "python")], end=[end(9_000_000)])
    write(tmp_path, parent, record(2, 5_000_000, parent="1-1000000", end=[end(8_000_000)]))
    first, second = probe.read_records(str(tmp_path), 0, []).processes
    assert (first.phases.interpreter_ms, second.phases.interpreter_ms) == (1.0, 2.0)


def test_a_forked_child_has_the_warp_of_its_parent(tmp_path):
    warp = {"start": 1, "end": 2, "version": "1.19.0", "missing": ["launches"]}
    write(tmp_path, record(1, 0, warp=[warp]), record(2, 10, parent="1-0", how="fork"), record(3, 20, parent="1-0"))
    read = probe.read_records(str(tmp_path), 0, [])
    assert [process.warp for process in read.processes] == ["1.19.0", "1.19.0", None]
    assert [gap.reason.value for gap in read.gaps] == ["unsupported-warp"] * 2


def test_hook_errors_and_missing_launches_are_gaps(tmp_path):
    write(tmp_path, one_process(error=[{"text": "a launch: no"}], ids=[ids(1, 5)]))
    read = probe.read_records(str(tmp_path), 0, [])
    assert [(gap.reason.value, gap.pid, gap.detail) for gap in read.gaps] == [
        ("launches-not-recorded", 1, "1 launch whose kernel is not known"),
        ("hook-failed", 1, "a launch: no"),
    ]


# -- torn and foreign files -----------------------------------------------------------------------------------------


def test_torn_lines_are_a_gap_and_the_others_count(tmp_path):
    write(tmp_path, one_process(load=[load_line(), load_line(name="other")]))
    (path,) = tmp_path.iterdir()
    start, ended, first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        start + first[:40] + second + b"\xff\0\n" + b"[1]\n" + b"7\n" + b'{"no": "kind"}\n' + first + ended
    )
    read = probe.read_records(str(tmp_path), 0, [])
    assert [load.name for load in read.processes[0].loads] == ["app"]
    assert [gap.reason.value for gap in read.gaps] == ["record-truncated"]


@given(st.integers(0, 2000))
def test_a_record_that_ends_anywhere_can_be_read(cut):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), one_process(load=[load_line()], hooks=[hooks(1)], launch=[launch(1)], ids=[ids(1, 1)]))
        (path,) = Path(folder).iterdir()
        path.write_bytes(path.read_bytes()[:cut])
        read = probe.read_records(folder, 0, [])
    assert len(read.processes) <= 1
    if not read.processes:
        assert [gap.reason.value for gap in read.gaps] == ["record-truncated"]


def test_texts_that_lack_a_field_are_a_gap(tmp_path):
    write(tmp_path, one_process(kernel=[{"digest": "k", "key": "add"}]))
    read = probe.read_records(str(tmp_path), 0, [])
    assert read.catalog.kernels == {}
    assert [gap.reason.value for gap in read.gaps] == ["record-truncated"]


def test_a_record_without_its_start(tmp_path):
    (tmp_path / "1-0.rec").write_bytes(b'{"t":"sta')
    (tmp_path / "2-0.rec").write_bytes(b"")
    read = probe.read_records(str(tmp_path), 0, [])
    assert read.processes == ()
    assert [(gap.reason.value, gap.detail) for gap in read.gaps] == [
        ("record-truncated", "the record 1-0.rec has no readable start line"),
        ("record-truncated", "the record 2-0.rec has no readable start line"),
    ]


def test_a_recorder_that_did_not_start(tmp_path):
    (tmp_path / "77.failed").write_text("/python: SyntaxError('x')", encoding="ascii")
    read = probe.read_records(str(tmp_path), 0, [])
    assert [(gap.reason.value, gap.pid, gap.detail) for gap in read.gaps] == [
        ("child-not-recorded", 77, "the recorder could not start: /python: SyntaxError('x')")
    ]


def test_other_files_are_left_alone(tmp_path):
    write(tmp_path, one_process())
    (tmp_path / "core").write_bytes(b"\0")
    assert len(probe.read_records(str(tmp_path), 0, []).processes) == 1


def test_paths_lose_the_private_directory(tmp_path):
    private = '/tmp/with "quotes" é/wcp-1'
    site = [f"{private}/1/tmp/x.py", 1, "main"]
    write(tmp_path, one_process(load=[load_line(site=site)]))
    (process,) = probe.read_records(str(tmp_path), 0, [private]).processes
    assert process.loads[0].site.file == "1/tmp/x.py"
