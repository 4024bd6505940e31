"""Why a module was built, from what its hasher met, and what the findings make of it: built records, no Warp."""

import dataclasses
import itertools

import pytest
import warp_compile_probe as probe
from builders import SITE, cached, digest, failed, load, process

Reason = probe.CauseReason
CUDA = "cuda:0"
OPTIONS = {
    "block_dim": "1",
    "mode": "'release'",
    "fast_math": "False",
    "optimization_level": "None",
    "cpu_compiler_flags": "None",
    "enable_backward": "True",
    "max_unroll": "16",
    "use_precompiled_headers": "True",
}
FACTORY = "def scale(x):\n    x[0] = x[0] * factor\n"


class Story:
    """A catalog, and states of modules in it, as a recorder would have written them."""

    def __init__(self):
        self.catalog = probe.Catalog()
        self.numbers = itertools.count(1)

    def name(self, kind):
        return f"{kind}-{next(self.numbers)}"

    def body(self, source="def k(x):\n    x[0] = 1.0\n", **changes):
        found = self.name("adjoint")
        line = {
            "file": "/work/app/sim.py",
            "line": 10,
            "source": source,
            "name": "k",
            "args": [["x", "array(float32)", "af4"]],
            "constants": {},
            "types": [],
            "statics": [],
            "functions": {},
        }
        self.catalog.add("adjoint", found, {**line, **changes})
        return found

    def kernel(self, key="scale", *, line=10, module="sim", options=None, overload=False, **body):
        found = self.name("kernel")
        site = ["/work/app/sim.py", line, key]
        fields = {"key": key, "module": module, "site": site, "options": options or {}, "overload": overload}
        self.catalog.add("kernel", found, {**fields, "adjoint": self.body(**body)})
        return found

    def function(self, key="law", *bodies, **body):
        found = self.name("function")
        adjoints = list(bodies) or [self.body(**{"file": "/work/app/laws.py", "line": 3, "name": key, **body})]
        self.catalog.add("function", found, {"adjoints": adjoints, "snippets": []})
        return found

    def state(self, seed, *kernels, generics=(), **options):
        line = {
            "options": {**OPTIONS, **options},
            "kernels": list(kernels),
            "generics": list(generics),
            "functions": {},
        }
        self.catalog.add("state", digest(seed), line)

    def cause(self, *loads, events=()):
        """The cause of the last load."""
        return self.explain(*loads, events=events)[-1].cause

    def explain(self, *loads, events=(), sites=None):
        placed = [dataclasses.replace(one, start_ms=200.0 * n, end_ms=200.0 * n + 100.0) for n, one in enumerate(loads)]
        return probe.LoadTables(self.catalog).explain(placed, events, sites or {})


def changes(cause):
    return [(change.reason, change.name, change.before, change.after) for change in cause.changes]


# Which identity a build is compared with


def test_the_first_build_of_a_module_has_no_earlier_identity():
    story = Story()
    assert story.cause(load()) == probe.Cause(Reason.FIRST_BUILD, (), None)
    assert story.cause(load("other"), load()).reason is Reason.FIRST_BUILD
    assert story.cause(failed(), load()).reason is Reason.FIRST_BUILD


@pytest.mark.parametrize(
    ("earlier", "reason"),
    [
        ({"device": CUDA}, Reason.NEW_DEVICE),
        ({"block_dim": 256}, Reason.NEW_BLOCK_DIM),
        ({}, Reason.NOTHING_OBVIOUS),
    ],
)
def test_another_device_or_block_dim(earlier, reason):
    assert Story().cause(load(seed="p", **earlier), load()).reason is reason


def test_a_cached_load_is_an_earlier_identity_too():
    story = Story()
    first, second = story.kernel("first"), story.kernel("second", line=30)
    story.state("a", first)
    story.state("b", first, second)
    cause = story.cause(cached(seed="a"), load(seed="b"))
    assert (cause.reason, cause.compared_with) == (Reason.KERNEL_ADDED, digest("a"))


def test_the_closest_earlier_identity_is_compared_not_the_last():
    story = Story()
    kernels = [story.kernel(f"k{n}", line=n) for n in range(4)]
    story.state("near", *kernels[:2])
    story.state("far", *kernels[2:], fast_math="True")
    story.state("new", *kernels[:3])
    cause = story.cause(load(seed="near"), load(seed="far"), load(seed="new"))
    assert cause.compared_with == digest("near")
    assert changes(cause) == [(Reason.KERNEL_ADDED, "k2", None, None)]
    assert cause.changes[0].site == probe.Site("/work/app/sim.py", 2, "k2")


def test_of_equally_close_identities_the_last_is_compared():
    story = Story()
    kernel = story.kernel()
    for seed, value in [("a", "0"), ("b", "1"), ("c", "3")]:
        story.state(seed, kernel, max_unroll=value)
    assert story.cause(load(seed="a"), load(seed="b"), load(seed="c")).compared_with == digest("b")


def test_another_process_or_module_is_never_compared():
    story = Story()
    story.state("a", story.kernel())
    story.state("b", story.kernel("other"))
    assert story.cause(load("first", "a"), load("second", "b")).reason is Reason.FIRST_BUILD


# Kernels


def one_change(before, after, **options):
    """Changes between two modules of one kernel each; both get (story) and give the digests of their kernels."""
    story = Story()
    story.state("a", *before(story))
    story.state("b", *after(story), **options)
    return story.cause(load(seed="a"), load(seed="b"))


def test_a_kernel_that_is_gone():
    story = Story()
    kept, dropped = story.kernel("kept"), story.kernel("dropped", line=44)
    story.state("a", kept, dropped)
    story.state("b", kept)
    cause = story.cause(load(seed="a"), load(seed="b"))
    assert changes(cause) == [(Reason.KERNEL_REMOVED, "dropped", None, None)]
    assert (cause.reason, cause.changes[0].site.line) == (Reason.KERNEL_REMOVED, 44)


def test_what_a_program_adds_is_the_reason_before_what_it_drops():
    story = Story()
    story.state("a", story.kernel("old"))
    story.state("b", story.kernel("new"))
    cause = story.cause(load(seed="a"), load(seed="b"))
    assert cause.reason is Reason.KERNEL_ADDED
    assert {change.reason for change in cause.changes} == {Reason.KERNEL_ADDED, Reason.KERNEL_REMOVED}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"constants": {"factor": "2.0"}},
            {"constants": {"factor": "5.0"}},
            [("scale: factor", "2.0", "5.0")],
        ),
        (
            {"statics": [["float(power)", "3.0"]]},
            {"statics": [["float(power)", "4.0"]]},
            [("scale: wp.static(float(power))", "3.0", "4.0")],
        ),
        (
            {"constants": {"f": "<function at 0x7f01>"}, "source": "def k(x):\n    pass\n"},
            {"constants": {"f": "<function at 0x7f02>"}, "source": "def k(x):\n    return\n"},
            [("scale", None, None)],
        ),
        (
            {"source": "def k(x):\n    x[0] = 1.0\n", "constants": {"g": "1"}},
            {"source": "def k(x):\n    x[0] = 2.0\n", "constants": {"g": "2"}},
            [("scale: g", "1", "2"), ("scale", None, None)],
        ),
        ({"options": {}}, {"options": {"enable_backward": "False"}}, [("scale", "{}", "{'enable_backward': 'False'}")]),
    ],
    ids=["constant", "static", "body, addresses aside", "body and constant", "kernel option"],
)
def test_a_kernel_redefined_under_one_key(before, after, expected):
    cause = one_change(lambda story: [story.kernel(**before)], lambda story: [story.kernel(**after)])
    assert cause.reason is Reason.KERNEL_REDEFINED
    assert changes(cause) == [(Reason.KERNEL_REDEFINED, *each) for each in expected]


def test_a_kernel_redefined_while_the_old_one_lives_is_no_added_one():
    story = Story()
    old = story.kernel(constants={"factor": "2.0"})
    story.state("a", old)
    story.state("b", old, story.kernel(constants={"factor": "3.0"}))
    cause = story.cause(load(seed="a"), load(seed="b"))
    assert changes(cause) == [(Reason.KERNEL_REDEFINED, "scale: factor", "2.0", "3.0")]


def test_equal_kernels_of_two_modules_keep_their_own_places():
    story = Story()
    kernel = story.kernel("first", module="one", line=5)
    line = {"key": "first", "site": ["/work/app/two.py", 7, "first"], "options": {}, "overload": False}
    story.catalog.add("kernel", kernel, {**line, "module": "two", "adjoint": story.catalog.kernels[kernel].adjoint})
    story.state("a", kernel)
    loads = story.explain(load("one", "a"), load("two", "a"), load("far", "a"))
    tables = probe.LoadTables(story.catalog)
    tables.explain(loads, (), {})
    assert [kernel.site.line for kernel in tables.built_kernels] == [5, 7]


# Generic kernels

FLOATS = [["x", "array(float32)", "af4"]]
INTS = [["x", "array(int32)", "ai4"]]


def test_a_new_instance_of_a_generic_kernel():
    story = Story()
    floats = story.kernel("twice", overload=True, args=FLOATS)
    story.state("a", floats, generics=["twice"])
    story.state("b", floats, story.kernel("twice", overload=True, args=INTS), generics=["twice"])
    cause = story.cause(load(seed="a"), load(seed="b"))
    assert changes(cause) == [(Reason.GENERIC_INSTANCE_ADDED, "twice", None, "array(int32)")]
    assert cause.reason is Reason.GENERIC_INSTANCE_ADDED


def test_the_first_instance_of_a_generic_kernel_that_was_there_already():
    story = Story()
    story.state("a", generics=["twice"])
    story.state("b", story.kernel("twice", overload=True, args=FLOATS), generics=["twice"])
    assert story.cause(load(seed="a"), load(seed="b")).reason is Reason.GENERIC_INSTANCE_ADDED


def test_a_generic_kernel_that_was_defined_late_is_an_added_kernel():
    story = Story()
    story.state("a", story.kernel("first"))
    story.state("b", story.kernel("twice", overload=True, args=FLOATS), generics=["twice"])
    assert story.cause(load(seed="a"), load(seed="b")).reason is Reason.KERNEL_ADDED


def test_an_instance_of_the_same_types_with_another_body_is_redefined():
    cause = one_change(
        lambda story: [story.kernel("twice", overload=True, args=FLOATS, constants={"c": "1"})],
        lambda story: [story.kernel("twice", overload=True, args=FLOATS, constants={"c": "2"})],
    )
    assert changes(cause) == [(Reason.KERNEL_REDEFINED, "twice: c", "1", "2")]


# Functions and structs


def test_a_function_of_another_module_changed():
    def kernels(source):
        return lambda story: [story.kernel(functions={"law": story.function("law", source=source)})]

    cause = one_change(kernels("def law(v):\n    return v\n"), kernels("def law(v):\n    return v * 2.0\n"))
    assert changes(cause) == [(Reason.FUNCTION_CHANGED, "law", None, None)]
    assert cause.changes[0].site == probe.Site("/work/app/laws.py", 3, "law")


def test_a_constant_of_a_function_is_named_and_its_callers_are_not_blamed():
    def kernels(gravity):
        def make(story):
            inner = story.function("inner", constants={"G": gravity})
            outer = story.function("outer", functions={"inner": inner})
            return [story.kernel(functions={"outer": outer, "inner": inner})]

        return make

    cause = one_change(kernels("9.8"), kernels("1.6"))
    assert changes(cause) == [(Reason.FUNCTION_CHANGED, "inner: G", "9.8", "1.6")]


def test_a_function_whose_digest_moved_for_an_unseen_reason_is_still_named():
    def kernels(story):
        return [story.kernel(functions={"law": story.function("law")})]

    assert changes(one_change(kernels, kernels)) == [(Reason.FUNCTION_CHANGED, "law", None, None)]


def test_a_function_that_two_kernels_call_is_named_once():
    def kernels(source):
        def make(story):
            law = story.function("law", source=source)
            return [story.kernel(key, functions={"law": law}) for key in ("one", "two")]

        return make

    assert len(one_change(kernels("def f():\n    pass\n"), kernels("def f():\n    return\n")).changes) == 1


@pytest.mark.parametrize("part", ["args", "types"])
def test_a_struct_with_other_members(part):
    def kernels(code):
        value = [["s", "State", code]] if part == "args" else [["State", code]]
        return lambda story: [story.kernel(**{part: value})]

    cause = one_change(kernels("State_1234"), kernels("State_9876"))
    assert changes(cause) == [(Reason.STRUCT_CHANGED, "State", "State_1234", "State_9876")]
    assert cause.reason is Reason.STRUCT_CHANGED


# Options


@pytest.mark.parametrize(
    ("name", "before", "after", "reason"),
    [
        ("fast_math", "False", "True", Reason.OPTION_CHANGED),
        ("optimization_level", "None", "3", Reason.OPTION_CHANGED),
        ("optimization_level", "None", "2", Reason.OPTION_RESTATED),
        ("optimization_level", "2", "None", Reason.OPTION_RESTATED),
        ("mode", "None", "'release'", Reason.OPTION_RESTATED),
        ("mode", "None", "'debug'", Reason.OPTION_CHANGED),
        ("enable_mathdx_gemm", "None", "True", Reason.OPTION_RESTATED),
        ("enable_mathdx_gemm", "True", "False", Reason.OPTION_CHANGED),
        ("extra", None, "1", Reason.OPTION_CHANGED),
    ],
)
def test_an_option_before_and_after(name, before, after, reason):
    story = Story()
    kernel = story.kernel()
    story.state("a", kernel)
    story.state("b", kernel)
    for seed, value in (("a", before), ("b", after)):
        options = story.catalog.states[digest(seed)].options
        options.pop(name, None)
        options.update({} if value is None else {name: value})
    cause = story.cause(load(seed="a"), load(seed="b"))
    assert (cause.reason, changes(cause)) == (reason, [(reason, name, before, after)])


@pytest.mark.parametrize(
    ("device", "flags", "default"), [("cpu", {"cpu_compiler_flags": "None"}, "2"), ("cpu", {}, "3"), (CUDA, {}, "3")]
)
def test_what_no_optimisation_level_means(device, flags, default):
    assert probe.meaning_of_none("optimization_level", flags, device) == default


def test_the_place_where_the_program_set_the_option_is_kept():
    story = Story()
    kernel = story.kernel()
    story.state("a", kernel)
    story.state("b", kernel, fast_math="True")
    setter = probe.Site("/work/app/sim.py", 77, "tune")
    built = story.explain(load(seed="a"), load(seed="b"), sites={1: setter})
    assert built[1].cause.changes[0].site == setter


# The same hash again


def event(kind, at, path=None):
    return probe.CacheEvent(kind, at, path, SITE)


def test_the_same_hash_again_with_what_happened_between():
    story = Story()
    events = (
        event(probe.CacheEventKind.CLEAR_LTO_CACHE, 50.0),
        event(probe.CacheEventKind.CLEAR_KERNEL_CACHE, 150.0, "/cache"),
        event(probe.CacheEventKind.DIRECTORY_DELETED, 999.0),
    )
    cause = story.cause(load(), load(), events=events)
    assert (cause.reason, cause.compared_with) == (Reason.SAME_HASH_AGAIN, digest("a"))
    assert changes(cause) == [(Reason.SAME_HASH_AGAIN, "clear-kernel-cache", None, "/cache")]


def test_the_same_hash_again_with_caching_off_since_the_start():
    off = event(probe.CacheEventKind.CACHING_OFF, 0.0)
    cause = Story().cause(load("other"), load(), load(), events=(off,))
    assert changes(cause) == [(Reason.SAME_HASH_AGAIN, "caching-off", None, None)]


def test_the_same_hash_again_after_an_unload_has_no_event():
    assert Story().cause(load(), load()) == probe.Cause(Reason.SAME_HASH_AGAIN, (), digest("a"))


def test_nothing_obvious_is_said_where_nothing_differs_or_nothing_was_seen():
    story = Story()
    kernel = story.kernel()
    story.state("a", kernel)
    story.state("b", kernel)
    assert story.cause(load(seed="a"), load(seed="b")) == probe.Cause(Reason.NOTHING_OBVIOUS, (), digest("a"))
    assert story.cause(load(seed="a"), load(seed="unseen")).reason is Reason.NOTHING_OBVIOUS
    assert story.cause(load(seed="unseen"), load(seed="a")).reason is Reason.NOTHING_OBVIOUS


def test_every_reason_has_words():
    described = {
        reason: probe.change_text(probe.Change(reason, "name", "1", "2", SITE)) for reason in probe.CAUSE_ORDER
    }
    assert all("name" in text and text.endswith("(at /work/app/sim.py:42 in main)") for text in described.values())
    without_change = {Reason.FIRST_BUILD, Reason.NEW_DEVICE, Reason.NEW_BLOCK_DIM, Reason.NOTHING_OBVIOUS}
    assert set(described) | without_change == set(Reason)
    assert set(probe.REBUILD_CAUSES) == set(described)


# What the loads of a process point to


def test_options_and_kernels_of_loads_are_kept_once():
    story = Story()
    kernel = story.kernel("first", source="def first(x):\n    for i in range(4):\n        x[i] = 1.0\n")
    quiet = story.kernel("second", line=20, options={"enable_backward": "False"})
    story.state("a", kernel)
    story.state("b", kernel, quiet)
    tables = probe.LoadTables(story.catalog)
    first, second = tables.explain([load(seed="a"), load(seed="b", start=500.0)], (), {})
    assert (first.option_set, second.option_set, len(tables.option_sets)) == (0, 0, 1)
    assert (first.kernels, second.kernels) == ((0,), (0, 1))
    built = list(tables.built_kernels)
    assert [(each.key, each.backward, each.unrolled) for each in built] == [("first", True, 4), ("second", False, 1)]


@pytest.mark.parametrize(
    ("loop", "constants", "limit", "copies"),
    [
        ("range(8)", {}, 16, 8),
        ("range(2, 8, 2)", {}, 16, 3),
        ("range(SIZE)", {"SIZE": "12"}, 16, 12),
        ("range(wp.SIZE)", {"wp.SIZE": "12"}, 16, 12),
        ("range(17)", {}, 16, 1),
        ("range(8)", {}, 1, 1),
        ("range(n)", {}, 16, 1),
        ("items", {}, 16, 1),
    ],
)
def test_copies_of_a_loop_body(loop, constants, limit, copies):
    story = Story()
    source = f"def k(x, n):\n    for i in {loop}:\n        x[i] = 1.0\n"
    text = story.catalog.adjoints[story.body(source=source, constants=constants)]
    assert probe.unrolled_copies(text, {"max_unroll": str(limit)}) == copies


def test_nested_loops_multiply_and_neighbours_do_not():
    source = """
        def k(x):
            for i in range(4):
                for j in range(5):
                    x[i] = x[j]
            for i in range(16):
                x[i] = 1.0
        """
    story = Story()
    assert probe.unrolled_copies(story.catalog.adjoints[story.body(source=source)], {"max_unroll": "16"}) == 20
    assert probe.unrolled_copies(None, {}) == 1


# Across runs


def read(catalog, *loads):
    return probe.ReadRun((process(loads),), (), catalog, (), (), None, None, None, False, ())


def test_a_build_that_only_the_warm_run_made_is_compared_with_the_cold_run():
    cold_story, warm_story = Story(), Story()
    warm_story.numbers = itertools.count(100)
    cold_story.state("a", cold_story.kernel(statics=[["stamp", "1.0"]]))
    warm_story.state("b", warm_story.kernel(statics=[["stamp", "2.0"]]))
    cold = read(cold_story.catalog, *cold_story.explain(load(seed="a")))
    second = read(warm_story.catalog, *warm_story.explain(load(seed="b")))
    (explained,) = probe.explain_across_runs(second, cold).processes[0].loads
    assert changes(explained.cause) == [(Reason.KERNEL_REDEFINED, "scale: wp.static(stamp)", "1.0", "2.0")]
    assert explained.cause.compared_with == digest("a")


def test_a_module_with_a_random_name_is_compared_with_its_like():
    story = Story()
    story.state("a", story.kernel())
    cold = read(story.catalog, *story.explain(load("session_0123abcd", "z")))
    second = read(story.catalog, *story.explain(load("session_fedc4321", "a"), load("new", "x")))
    similar, new = probe.explain_across_runs(second, cold).processes[0].loads
    assert (similar.cause.reason, similar.cause.compared_with) == (Reason.NOTHING_OBVIOUS, digest("z"))
    assert new.cause.reason is Reason.FIRST_BUILD


def test_what_the_cold_run_had_built_keeps_its_cause():
    story = Story()
    cold = read(story.catalog, *story.explain(load()))
    second = read(story.catalog, *story.explain(load(), cached("other")))
    assert probe.explain_across_runs(second, cold) == second


# Lost kernels


def test_a_kernel_without_an_entry_point_is_the_error_of_its_load():
    loads = [load(), load(seed="b"), load()]
    line = {"lost": True, "module": "sim", "hash": digest("a"), "device": "cpu", "block_dim": 1, "key": "add"}
    found = probe.with_lost_kernels(loads, [line, {**line, "lost": False, "hash": digest("b")}])
    assert [one.error for one in found] == [None, None, "kernel add was not found in it when it was launched"]
