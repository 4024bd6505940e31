"""How launches and graphs are noted, with stand-ins for Warp's functions: on the CPU and, without a GPU, for CUDA.

What is noted is read back as the report has it, so each test shows what a user would see.
"""

import ctypes
import functools
import gc
import itertools
import os
import signal
import sys
import threading
import types
import weakref

import pytest
import warp_compile_probe as probe
from recorded import STUB_WARP, launch_table
from report_builder import decode_stream

NEW_BOUNDS = types.ModuleType("warp._src.types")
exec((STUB_WARP / "warp" / "_src" / "types.py").read_text(encoding="utf-8"), vars(NEW_BOUNDS))


class OldBounds(ctypes.Structure):
    """Launch bounds up to Warp 1.12: four extents, however many count."""

    _fields_ = (("shape", ctypes.c_int32 * 4), ("ndim", ctypes.c_int32), ("size", ctypes.c_size_t))

    def __init__(self, dim):
        super().__init__((*dim, *(1,) * (4 - len(dim))), len(dim), 1)
        for extent in dim:
            self.size *= extent


class Hooks:
    """The entry points of a kernel."""

    def __init__(self, forward, backward):
        self.forward = forward
        self.backward = backward


class Kernel:
    def __init__(self, key="add", ndim=1):
        self.key = key
        self.hash = b"\x12" * 32
        self.module = types.SimpleNamespace(name="app")
        self.adj = types.SimpleNamespace(args=[types.SimpleNamespace(type=float)], kernel_dim=ndim)


class Executable:
    """A loaded module; `device` says for which device."""

    def __init__(self, device):
        self.device = device
        self.module_hash = b"\xab" * 32
        self.block_dim = 64
        self.kernel_hooks = {}

    def get_kernel_hooks(self, kernel, handle=1):
        hooks = Hooks(handle, handle + 1)
        self.kernel_hooks[kernel.key] = hooks
        return hooks


class Graph:
    def __init__(self, device, capture=None, *, from_file=False):
        self.device = device
        self._apic_capture = capture
        self._native_graph = 1 if from_file else None


class Core:
    """The native library: what it launched, on which streams it captures into which graph."""

    def __init__(self, arguments):
        pointer = ctypes.POINTER(ctypes.c_void_p)
        kinds = {"p": ctypes.c_void_p, "n": ctypes.c_size_t, "i": ctypes.c_int, "a": pointer}
        prototype = ctypes.CFUNCTYPE(ctypes.c_size_t, *(kinds[letter] for letter in arguments))
        self.launched = []
        self.capturing = {}
        self.failure = 0
        self.wp_cuda_launch_kernel = prototype(self.launch)
        self.wp_cuda_graph_launch = lambda _executable, _stream: True

    def launch(self, *arguments):
        self.launched.append(arguments[1])
        return self.failure

    def wp_cuda_stream_is_capturing(self, stream):
        return stream in self.capturing

    def wp_cuda_stream_get_capture_id(self, stream):
        return self.capturing[stream]


class Warp:
    """Warp's context module with the functions that the recorder replaces."""

    def __init__(self, recorder, bounds, arguments):
        self.recorder = recorder
        self.arguments = arguments
        self.types = types.SimpleNamespace(launch_bounds_t=bounds, type_repr=lambda kind: kind.__name__)
        self.context = types.ModuleType("warp._src.context")
        core = Core(arguments)
        vars(self.context).update(
            ModuleExec=type("ModuleExec", (Executable,), {"__init__": Executable.__init__}),
            invoke=lambda _kernel, _hooks, _params, _adjoint: "invoked",
            capture_begin=lambda: None,
            capture_launch=lambda _graph: "replayed",
            capture_if=lambda _condition, body: body(),
            capture_while=lambda _condition, body: body(),
            Runtime=type("Runtime", (), {"__init__": self.start}),
        )
        recorder.context, recorder.types, recorder.core = self.context, self.types, core
        recorder.timed_load = lambda original: original
        recorder.warp_was_followed = True
        self.core = core
        self.gpu = types.SimpleNamespace(alias="cuda:0", arch=90, name="fake")
        for step in (recorder.patch_launches, recorder.patch_graphs, recorder.patch_runtime):
            step()
        self.context.runtime = self.context.Runtime()

    def start(self, runtime):
        runtime.llvm = types.SimpleNamespace(wp_load_obj=lambda *_: 0)
        runtime.core = self.core
        runtime.cpu_device = types.SimpleNamespace(alias="cpu", name="fake")
        runtime.cuda_devices = [self.gpu]
        runtime.captures = {}
        runtime._apic_capture = None

    def load(self, kernel, device="cpu", handle=1):
        return self.context.ModuleExec(device).get_kernel_hooks(kernel, handle)

    def invoke(self, kernel, hooks, dim, *, adjoint=False, multiplier=1):
        bounds = self.types.launch_bounds_t(dim)
        if multiplier != 1:
            bounds.coord_mult = multiplier
            bounds.size *= multiplier
        assert self.context.invoke(kernel, hooks, [bounds, 1.0], adjoint) == "invoked"

    def launch_cuda(self, function, dim, stream=0):
        """As Warp calls the native function, with as many integers as the release has."""
        bounds = self.types.launch_bounds_t(dim)
        packed = (ctypes.c_void_p * 1)(ctypes.addressof(bounds))
        values = {"p": [1, function], "n": [bounds.size], "i": [0] * 5, "a": [packed]}
        values["p"] += [stream, None]
        arguments = [values[letter].pop(0) for letter in self.arguments]
        return self.core.wp_cuda_launch_kernel(*arguments)

    def read(self):
        """The launches of this process, and what is missing."""
        self.recorder.finish("exit")
        record = probe.read_record_file(self.recorder.base + ".rec", probe.Catalog(), ["/private"])
        reader = probe.LaunchReader(self.recorder.config["records"], record, probe.Catalog())
        launches = reader.read()
        return launches, [*reader.missing, *(line["text"] for line in record.of("error"))]

    def table(self):
        launches, missing = self.read()
        assert missing == []
        assert launches.graph_replays_unknown == 0
        return launch_table(launches)

    def order(self):
        launches, _ = self.read()
        table = launch_table(launches)
        return [[table[index][:3] for index in decode_stream(stream)] for stream in launches.streams]


RELEASES = {
    "1.12": (OldBounds, "ppniiiap"),
    "1.19": (NEW_BOUNDS.launch_bounds_t, "ppniiiiiapp"),
}


@pytest.fixture
def recorder(monkeypatch, tmp_path):
    monkeypatch.setenv(probe.PROCESS_VARIABLE, "")
    records = tmp_path / "records"
    records.mkdir()
    return probe.Recorder({"records": str(records), "inject": "", "sample": "", "script": probe.__file__, "set": {}})


@pytest.fixture(params=RELEASES)
def warp(request, recorder):
    return Warp(recorder, *RELEASES[request.param])


@pytest.fixture
def new_warp(recorder):
    return Warp(recorder, *RELEASES["1.19"])


# ---------------------------------------------------------------------------------------------------------------------
# On the CPU
# ---------------------------------------------------------------------------------------------------------------------


def test_launches_are_counted_by_kernel_dim_and_direction(warp):
    add, halve = Kernel("add"), Kernel("halve")
    hooks_of_add, hooks_of_halve = warp.load(add), warp.load(halve)
    for _ in range(3):
        warp.invoke(add, hooks_of_add, (8,))
        warp.invoke(halve, hooks_of_halve, (8,))
        warp.invoke(add, hooks_of_add, (4,))
        warp.invoke(add, hooks_of_add, (8,), adjoint=True)
    assert sorted(warp.table()) == [
        ("add", (4,), False, 3),
        ("add", (8,), False, 3),
        ("add", (8,), True, 3),
        ("halve", (8,), False, 3),
    ]


def test_the_order_of_launches_is_kept(warp):
    add, halve = Kernel("add"), Kernel("halve")
    hooks = {"add": warp.load(add), "halve": warp.load(halve)}
    kernels = [add, halve, halve, add, add, halve]
    for kernel in kernels:
        warp.invoke(kernel, hooks[kernel.key], (8,))
    assert warp.order() == [[(kernel.key, (8,), False) for kernel in kernels]]


def test_shapes_of_one_size_are_told_apart(warp):
    kernel = Kernel(ndim=2)
    hooks = warp.load(kernel)
    for _ in range(2):
        for dim in ((4, 8), (8, 4), (32, 1)):
            warp.invoke(kernel, hooks, dim)
    assert warp.table() == [("add", (4, 8), False, 2), ("add", (8, 4), False, 2), ("add", (32, 1), False, 2)]


def test_old_bounds_tell_the_number_of_dimensions_apart(recorder):
    warp = Warp(recorder, *RELEASES["1.12"])
    kernel = Kernel()
    hooks = warp.load(kernel)
    for _ in range(2):
        for dim in ((32,), (4, 8), (32, 1, 1)):
            warp.invoke(kernel, hooks, dim)
    assert warp.table() == [("add", (32,), False, 2), ("add", (4, 8), False, 2), ("add", (32, 1, 1), False, 2)]


def test_new_bounds_fold_what_the_kernel_does_not_ask_for(new_warp):
    kernel = Kernel()
    hooks = new_warp.load(kernel)
    for _ in range(2):
        new_warp.invoke(kernel, hooks, (32,))
        new_warp.invoke(kernel, hooks, (4,), multiplier=8)
    assert new_warp.table() == [("add", (32,), False, 2), ("add", (4, 8), False, 2)]


def test_a_launch_says_what_was_loaded(new_warp):
    kernel = Kernel()
    new_warp.invoke(kernel, new_warp.load(kernel), (8,))
    launches, _ = new_warp.read()
    (found,) = launches.kernels
    assert (found.key, found.module, found.device, found.block_dim) == ("add", "app", "cpu", 64)
    assert found.hash == "ab" * 32
    assert found.args == ("float32",)


def test_a_kernel_that_was_loaded_again_is_another_one(new_warp):
    kernel = Kernel()
    first, second = new_warp.load(kernel), new_warp.load(kernel)
    for hooks in (first, second, first):
        new_warp.invoke(kernel, hooks, (8,))
    assert new_warp.table() == [("add", (8,), False, 3)]


def test_an_executable_without_block_dim_has_that_of_its_load(recorder):
    """Up to Warp 1.14."""
    warp = Warp(recorder, *RELEASES["1.12"])

    class Plain(Executable):
        def __init__(self, device):
            super().__init__(device)
            del self.block_dim

    warp.context.ModuleExec = type("ModuleExec", (Plain,), {"__init__": Plain.__init__})
    recorder.patch_launches()

    def load(active_block_dim):
        return warp.context.ModuleExec("cpu")

    kernel = Kernel()
    warp.invoke(kernel, load(32).get_kernel_hooks(kernel), (8,))
    launches, _ = warp.read()
    assert launches.kernels[0].block_dim == 32


def test_a_launch_of_unknown_entry_points_runs_and_is_missing(warp):
    assert warp.context.invoke(Kernel(), Hooks(1, 2), [warp.types.launch_bounds_t((8,))], False) == "invoked"
    launches, missing = warp.read()
    assert launches.count == 0
    assert missing == ["1 launch whose kernel is not known"]


def test_a_launch_with_bounds_of_an_unknown_kind_runs_and_is_missing(warp):
    hooks = warp.load(Kernel())
    assert warp.context.invoke(Kernel(), hooks, ["nonsense"], False) == "invoked"
    launches, missing = warp.read()
    assert launches.count == 0
    assert missing[0] == "1 launch whose kernel is not known"
    assert "a launch: TypeError" in missing[1]


def test_an_error_of_the_kernel_is_the_programs(new_warp, recorder):
    def fails(*_):
        raise ZeroDivisionError

    new_warp.context.invoke = recorder.make_invoke(fails)
    kernel = Kernel()
    with pytest.raises(ZeroDivisionError):
        new_warp.context.invoke(kernel, new_warp.load(kernel), [new_warp.types.launch_bounds_t((8,))], False)


class Alarm:
    """Handlers of a signal, as programs have them, that raise an error."""

    def __init__(self, error):
        self.error = error

    def method(self, _number, _frame):
        raise self.error

    __call__ = method


@pytest.mark.parametrize("error", [TimeoutError, KeyError, AttributeError, RuntimeError])
@pytest.mark.parametrize("kind", ["function", "method", "object", "partial"])
def test_what_a_signals_handler_raises_in_a_hook_reaches_the_program(error, kind, new_warp, recorder, monkeypatch):
    def function(*_):
        raise error

    alarm, partial = Alarm(error), functools.partial(function, 0)
    handlers = {"function": function, "method": alarm.method, "object": alarm, "partial": partial}
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if frame.f_code.co_filename != probe.__file__:
            return None
        if event == "line":
            lines -= 1
            if lines == 0:
                signal.raise_signal(signal.SIGUSR1)
        return trace

    executed = []
    monkeypatch.setattr(probe, "MAIN_STREAM_IDS", 7)
    new_warp.context.invoke = recorder.make_invoke(lambda *_: executed.append(1))
    bounds = new_warp.types.launch_bounds_t((8,))
    interrupted, before, tracing = 0, signal.signal(signal.SIGUSR1, handlers[kind]), sys.gettrace()
    try:
        for lines_before in itertools.count(1):
            kernel = Kernel()
            hooks = new_warp.load(kernel)
            lines = lines_before
            sys.settrace(trace)
            try:
                for _ in range(3):
                    new_warp.context.invoke(kernel, hooks, [bounds], False)
            except error:
                interrupted += 1
            finally:
                sys.settrace(tracing)
            if lines > 0:
                break
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert interrupted == lines_before - 1 > 50
    launches, _ = new_warp.read()
    assert len(executed) <= launches.count <= len(executed) + interrupted


def test_buffers_are_flushed_when_they_are_full(new_warp, monkeypatch):
    monkeypatch.setattr(probe, "MAIN_STREAM_IDS", 10)
    kernel = Kernel()
    hooks = new_warp.load(kernel)
    for count in range(105):
        new_warp.invoke(kernel, hooks, (count % 3 + 1,))
    assert new_warp.order() == [[("add", (count % 3 + 1,), False) for count in range(105)]]


def test_beyond_a_limit_dims_are_no_longer_told_apart(new_warp, monkeypatch):
    monkeypatch.setattr(probe, "MAX_DISTINCT_LAUNCHES", 2)
    kernel = Kernel()
    hooks = new_warp.load(kernel)
    for dim in (1, 2, 3, 4, 1):
        new_warp.invoke(kernel, hooks, (dim,))
    launches, missing = new_warp.read()
    assert launch_table(launches) == [("add", (1,), False, 2), ("add", (2,), False, 1), ("add", (), False, 2)]
    assert missing == ["more than 2 distinct launches: further dims are not told apart"]


def test_threads_have_streams_of_their_own(new_warp):
    add, halve = Kernel("add"), Kernel("halve")
    hooks = {"add": new_warp.load(add), "halve": new_warp.load(halve)}
    start = threading.Barrier(2)

    def work(kernel, count):
        start.wait()
        for _ in range(count):
            new_warp.invoke(kernel, hooks[kernel.key], (8,))

    threads = [threading.Thread(target=work, args=each) for each in ((add, 300), (halve, 200))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new_warp.order()) == [[("add", (8,), False)] * 300, [("halve", (8,), False)] * 200]


def test_a_forked_child_goes_on_with_the_numbers_of_its_parent(new_warp, recorder):
    add, halve, late = Kernel("add"), Kernel("halve"), Kernel("late")
    hooks = new_warp.load(add)
    new_warp.invoke(add, hooks, (8,))
    child = os.fork()
    if child == 0:
        try:
            recorder.begin("fork")  # what os.register_at_fork would do
            new_warp.invoke(add, hooks, (8,))
            new_warp.invoke(late, new_warp.load(late), (3,))
            recorder.finish("os._exit", 0)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    new_warp.invoke(halve, new_warp.load(halve), (5,))
    recorder.finish("exit")
    read = probe.read_records(recorder.config["records"], 0, ["/private"])
    assert {process.path: launch_table(process.launches) for process in read.processes} == {
        "0": [("add", (8,), False, 1), ("halve", (5,), False, 1)],
        "0.0": [("add", (8,), False, 1), ("late", (3,), False, 1)],
    }
    assert read.gaps == ()


def test_nothing_of_warps_is_kept_alive(new_warp):
    kernel = Kernel()
    executable = new_warp.context.ModuleExec("cpu")
    hooks = executable.get_kernel_hooks(kernel)
    new_warp.invoke(kernel, hooks, (8,))
    watched = [weakref.ref(kernel), weakref.ref(executable)]
    del kernel, executable
    gc.collect()
    assert [reference() for reference in watched] == [None, None]


# ---------------------------------------------------------------------------------------------------------------------
# CUDA
# ---------------------------------------------------------------------------------------------------------------------


def test_cuda_launches_are_known_by_their_function(warp):
    kernel = Kernel(ndim=2)
    warp.load(kernel, "cuda:0", handle=0x7000)
    for _ in range(2):
        warp.launch_cuda(0x7000, (4, 8))
        warp.launch_cuda(0x7000, (8, 4))
        warp.launch_cuda(0x7001, (4, 8))
    assert warp.core.launched == [0x7000, 0x7000, 0x7001] * 2
    assert sorted(warp.table()) == [
        ("add", (4, 8), False, 2),
        ("add", (4, 8), True, 2),
        ("add", (8, 4), False, 2),
    ]


def test_a_cuda_launch_that_fails_is_none(warp):
    warp.load(Kernel(), "cuda:0", handle=0x7000)
    warp.core.failure = 700
    assert warp.launch_cuda(0x7000, (8,)) == 700
    assert warp.table() == []


def test_a_cuda_function_that_is_not_known_is_missing(warp):
    assert warp.launch_cuda(0x7000, (8,)) == 0
    launches, missing = warp.read()
    assert launches.count == 0
    assert missing == ["1 launch whose kernel is not known", "a CUDA launch: KeyError(28672)"]


def test_a_function_handle_that_comes_again_is_the_new_kernel(new_warp):
    new_warp.load(Kernel("add"), "cuda:0", handle=0x7000)
    new_warp.launch_cuda(0x7000, (8,))
    new_warp.load(Kernel("halve"), "cuda:0", handle=0x7000)
    new_warp.launch_cuda(0x7000, (8,))
    assert new_warp.table() == [("add", (8,), False, 1), ("halve", (8,), False, 1)]


def test_native_functions_keep_their_signature(recorder):
    warp = Warp(recorder, *RELEASES["1.19"])
    function = warp.core.wp_cuda_launch_kernel
    original = function.__wrapped__
    assert original.restype is ctypes.c_size_t
    assert function.restype is ctypes.c_size_t
    assert list(function.argtypes) == list(original.argtypes)
    assert len(function.argtypes) == 11
    assert function.__name__ == "wp_cuda_launch_kernel"


def test_captured_cuda_launches_count_when_the_graph_is_replayed(warp):
    warp.load(Kernel(), "cuda:0", handle=0x7000)
    graph = Graph("cuda:0")
    warp.core.capturing[5] = "capture"
    warp.context.runtime.captures["capture"] = graph
    warp.launch_cuda(0x7000, (8,), stream=5)
    warp.launch_cuda(0x7000, (4,), stream=5)
    warp.launch_cuda(0x7000, (2,), stream=6)
    del warp.core.capturing[5]
    warp.context.runtime.captures.clear()
    for _ in range(3):
        assert warp.context.capture_launch(graph) == "replayed"
    assert warp.order() == [[("add", (2,), False)] + [("add", (8,), False), ("add", (4,), False)] * 3]


def test_a_capture_that_warp_does_not_know_is_counted_as_unseen(warp):
    """PyTorch captures a stream that Warp launches into."""
    warp.load(Kernel(), "cuda:0", handle=0x7000)
    warp.core.capturing[5] = "not Warp's"
    warp.launch_cuda(0x7000, (8,), stream=5)
    launches, missing = warp.read()
    assert (launches.count, launches.graph_replays_unknown, missing) == (0, 1, [])


def test_a_graph_that_is_launched_past_warp_is_counted_as_unseen(warp):
    """As Warp's FFI for JAX does."""
    assert warp.core.wp_cuda_graph_launch(1, 2) is True
    launches, missing = warp.read()
    assert (launches.count, launches.graph_replays_unknown, missing) == (0, 1, [])


def test_a_replay_through_warp_is_no_second_one(warp):
    warp.context.capture_launch = lambda graph: warp.core.wp_cuda_graph_launch(graph, 0)
    warp.recorder.patch_graphs()
    warp.context.capture_launch(Graph("cuda:0"))
    assert warp.table() == []


@pytest.fixture
def deterministic(monkeypatch, new_warp):
    """Warp's deterministic mode, which counts in a first pass and runs in a second."""
    module = types.ModuleType("warp._src.deterministic")

    def launch_deterministic(kernel, hooks, user_params, bounds, device, stream, *, adjoint=False):
        for _ in range(2):
            new_warp.launch_cuda(hooks.backward if adjoint else hooks.forward, (8,), stream.cuda_stream)

    module.launch_deterministic = launch_deterministic
    for name in ("warp", "warp._src"):
        package = types.ModuleType(name)
        package.__path__ = []
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, "warp._src.deterministic", module)
    new_warp.recorder.patch_deterministic()
    stream = types.SimpleNamespace(cuda_stream=5)

    def launch(hooks, **how):
        bounds = new_warp.types.launch_bounds_t((8,))
        module.launch_deterministic(None, hooks, [], bounds, "cuda:0", stream, **how)

    return launch


def test_a_deterministic_launch_is_one(new_warp, deterministic):
    hooks = new_warp.load(Kernel(), "cuda:0", handle=0x7000)
    deterministic(hooks)
    deterministic(hooks, adjoint=True)
    new_warp.launch_cuda(0x7000, (8,))
    assert new_warp.core.launched == [0x7000, 0x7000, 0x7001, 0x7001, 0x7000]
    assert new_warp.table() == [("add", (8,), False, 2), ("add", (8,), True, 1)]


def test_a_deterministic_launch_can_be_captured(new_warp, deterministic):
    hooks = new_warp.load(Kernel(), "cuda:0", handle=0x7000)
    graph = Graph("cuda:0")
    new_warp.core.capturing[5] = "capture"
    new_warp.context.runtime.captures["capture"] = graph
    deterministic(hooks)
    new_warp.core.capturing.clear()
    assert new_warp.context.capture_launch(graph) == "replayed"
    assert new_warp.table() == [("add", (8,), False, 1)]


# ---------------------------------------------------------------------------------------------------------------------
# Graphs on the CPU
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def capture(monkeypatch, new_warp):
    """The module of Warp that records a capture on the CPU. It is there once the first capture has begun."""
    module = types.ModuleType("warp._src.apic.capture")

    class APICapture:
        def build_launch_info(self, kernel, module_exec, hooks, params, fwd_args, adjoint, adj_args=None):
            return "info"

    module.APICapture = APICapture
    monkeypatch.setitem(sys.modules, "warp._src.apic.capture", module)
    new_warp.context.capture_begin()
    capture = APICapture()
    new_warp.context.runtime._apic_capture = capture
    return capture


class CpuCapture:
    """Captures launches of one kernel."""

    def __init__(self, warp, capture, device="cpu"):
        self.warp = warp
        self.capture = capture
        self.kernel = Kernel()
        self.executable = warp.context.ModuleExec(device)
        self.hooks = self.executable.get_kernel_hooks(self.kernel)

    def launch(self, *dim, adjoint=False, by_name=False):
        params = [self.warp.types.launch_bounds_t(dim)]
        fixed = (self.kernel, self.executable, self.hooks, params)
        if by_name:
            assert self.capture.build_launch_info(*fixed, fwd_args=(), adjoint=adjoint) == "info"
        else:
            assert self.capture.build_launch_info(*fixed, (), adjoint) == "info"


def test_captured_launches_count_when_the_graph_is_replayed(new_warp, capture):
    captured = CpuCapture(new_warp, capture)
    captured.launch(8)
    captured.launch(4, adjoint=True)
    captured.launch(2, adjoint=True, by_name=True)
    graph = Graph("cpu", capture)
    new_warp.context.capture_launch(graph)
    new_warp.invoke(captured.kernel, captured.hooks, (3,))
    new_warp.context.capture_launch(graph)
    contents = [("add", (8,), False), ("add", (4,), True), ("add", (2,), True)]
    assert new_warp.order() == [[*contents, ("add", (3,), False), *contents]]
    assert [entry[3] for entry in launch_table(new_warp.read()[0])] == [2, 2, 2, 1]


def test_a_graph_that_is_never_replayed_has_launched_nothing(new_warp, capture):
    CpuCapture(new_warp, capture).launch(8)
    assert new_warp.table() == []


def test_many_replays_of_a_large_graph_take_one_number_each(new_warp, capture, recorder):
    captured = CpuCapture(new_warp, capture)
    for _ in range(1000):
        captured.launch(8)
        captured.launch(4)
    graph = Graph("cpu", capture)
    for _ in range(500):
        new_warp.context.capture_launch(graph)
    assert recorder.streams[threading.get_ident()].position == 501
    launches, missing = new_warp.read()
    assert missing == []
    assert launch_table(launches) == [("add", (8,), False, 500_000), ("add", (4,), False, 500_000)]
    (stream,) = launches.streams
    assert (stream.count, stream.order) == (1_000_000, probe.Order.EXACT)
    assert list(decode_stream(stream)[:4]) == [0, 1, 0, 1]


def test_the_body_of_a_condition_runs_an_unknown_number_of_times(new_warp, capture):
    captured = CpuCapture(new_warp, capture)
    captured.launch(8)

    def body():
        captured.launch(4)
        new_warp.context.capture_while(None, lambda: captured.launch(2))
        captured.launch(3)

    new_warp.context.capture_if(None, body)
    captured.launch(5)
    graph = Graph("cpu", capture)
    for _ in range(3):
        new_warp.context.capture_launch(graph)
    launches, missing = new_warp.read()
    assert launch_table(launches) == [("add", (8,), False, 3), ("add", (5,), False, 3)]
    assert (launches.graph_replays_unknown, missing) == (3, [])


def test_a_condition_outside_of_a_capture_is_plain_python(new_warp):
    kernel = Kernel()
    hooks = new_warp.load(kernel)
    new_warp.context.capture_if(None, lambda: new_warp.invoke(kernel, hooks, (8,)))
    assert new_warp.table() == [("add", (8,), False, 1)]


def test_a_graph_from_a_file_is_counted_as_unseen(new_warp):
    graph = Graph("cpu", from_file=True)
    for _ in range(2):
        new_warp.context.capture_launch(graph)
    launches, missing = new_warp.read()
    assert (launches.count, launches.graph_replays_unknown, missing) == (0, 2, [])


def test_a_graph_without_launches_launches_nothing(new_warp, capture):
    new_warp.context.capture_launch(Graph("cpu", capture))
    assert new_warp.table() == []


def test_a_failed_replay_is_none(new_warp, capture, recorder):
    captured = CpuCapture(new_warp, capture)
    captured.launch(8)

    def fails(graph):
        raise RuntimeError("replay failed")

    new_warp.context.capture_launch = fails
    recorder.patch_graphs()
    with pytest.raises(RuntimeError, match="replay failed"):
        new_warp.context.capture_launch(Graph("cpu", capture))
    assert new_warp.table() == []
    assert recorder.replaying_threads == set()


def test_captures_and_graphs_are_not_kept_alive(new_warp, capture):
    captured = CpuCapture(new_warp, capture)
    captured.launch(8)
    graph = Graph("cpu", captured.capture)
    new_warp.context.capture_launch(graph)
    reference = weakref.ref(graph)
    del graph
    gc.collect()
    assert reference() is None
