"""Every hook of the recorder, made to fail: the program does not notice, and the report says so.

A fault is put into the recorder at the beginning, or at the end, of each `try` that guards a hook.
"""

import ast
import copy
import re
import sys

import pytest
import warp_compile_probe as probe
from recorded import STUB_WARP, Recording
from stubbed import HEADER

PROGRAM = """
import subprocess

@wp.func
def inner(x: float):
    return x

@wp.kernel
def outer(x: float):
    inner(x)

wp.config.verbose = True
wp.init()
wp.config.kernel_cache_dir = os.environ["THEIR_CACHE"]
os.makedirs(os.environ["THEIR_CACHE"], exist_ok=True)
wp.launch(add, dim=8, inputs=[1.0])
wp.launch(outer, dim=8, inputs=[1.0], block_dim=64)
with wp.Tape():
    wp.launch(add, dim=8, inputs=[1.0], adjoint=True)
command = wp.launch(halve, dim=(2, 3), inputs=[1.0], record_cmd=True)
command.launch()
wp.capture_begin()
wp.launch(add, dim=8, inputs=[1.0])
graph = wp.capture_end()
wp.capture_launch(graph)
wp._src.build.clear_kernel_cache()
wp.force_load(block_dim=32)
pid = os.fork()
if pid == 0:
    wp.launch(halve, dim=1, inputs=[1.0], block_dim=128)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
print(subprocess.run([sys.executable, "-c", "print('child')"]).returncode)
try:
    wp.config.log_level = "high"
except ValueError as error:
    print(error)
print("end")
"""


# What the stand-in for Warp has not: ahead-of-time compilation, MathDx, CUDA, deterministic mode, launches of a tape.
NOT_REACHED = {
    "start of an ahead-of-time compilation", "hash of an ahead-of-time module", "link-time artifact", "a CUDA launch",
    "a deterministic launch", "a launch on a tape", "an offline load", "an offline compilation",
}  # fmt: skip


def note_of(guard):
    """The call that writes a failure down, or None for a `try` that guards no hook."""
    nodes = [node for handler in guard.handlers for node in ast.walk(handler) if isinstance(node, ast.Call)]
    return next((node for node in nodes if getattr(node.func, "attr", "") == "note_error"), None)


def guards(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Try) and note_of(node)]


TREE = ast.parse(probe.recorder_source())
HOOKS = [ast.unparse(note_of(guard).args[0]).strip("'") for guard in guards(TREE)]


def faulty(number, place):
    """The source of a recorder in which one guarded hook fails, before it has done anything or after it has."""
    tree = copy.deepcopy(TREE)
    guard = guards(tree)[number]
    fault = ast.parse("raise ZeroDivisionError('put in')").body
    last = guard.body[-1]
    if place == "first":
        guard.body = fault + guard.body
    elif isinstance(last, ast.Return):
        guard.body[-1:] = [*([ast.Expr(last.value)] if last.value else []), *fault]
    else:
        guard.body += fault
    return ast.unparse(ast.fix_missing_locations(tree))


def record(monkeypatch, folder):
    program = folder / "program.py"
    program.write_text(HEADER + PROGRAM, encoding="utf-8")
    return Recording(monkeypatch, folder).run([sys.executable, program], STUB_WARP, THEIR_CACHE=str(folder / "theirs"))


def printed(recorded):
    return re.sub(r"took [0-9.]+ ms", "took some ms", recorded.stdout)


@pytest.fixture(scope="module")
def faultless(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        recorded = record(monkeypatch, tmp_path_factory.mktemp("faultless"))
    assert (recorded.exit_code, recorded.stderr, recorded.gaps) == (0, "", [])
    return recorded


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("number", range(len(HOOKS)), ids=HOOKS)
def test_a_hook_that_fails_is_a_gap_and_nothing_to_the_program(number, place, faultless, monkeypatch, tmp_path):
    source = faulty(number, place)
    monkeypatch.setattr(probe, "recorder_source", lambda: source)
    recorded = record(monkeypatch, tmp_path)
    assert (recorded.exit_code, recorded.stderr, printed(recorded)) == (0, "", printed(faultless))
    told = [detail for reason, detail in recorded.gaps if reason == "hook-failed"]
    assert all(detail.endswith("ZeroDivisionError('put in')") for detail in told)
    assert bool(told) is (HOOKS[number] not in NOT_REACHED)


def test_what_is_not_reached_is_there():
    assert set(HOOKS) >= NOT_REACHED
