"""Verdicts: what two reports say about each other."""

import base64
import collections
import copy
import dataclasses
import json
import random
import time
import tracemalloc

import pytest
import warp_compile_probe as probe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_builder import Launch, Module, Proc, change, decode_stream, encode_ids, make_report, make_stream

SCALE, ADD, SUB = Launch(), Launch(key="add"), Launch(key="sub")
SLOW, FAST = (1.0, 1.01, 0.99), (0.8, 0.81, 0.79)
BASELINE = make_report()


def launching(*launches, **changes):
    return make_report(Proc(threads=(launches,)), **changes)


def building(*modules, **changes):
    return make_report(Proc(modules=modules), **changes)


def pool(*workers, **changes):
    """A main process and its workers; each worker is given by the launches of its threads."""
    children = [Proc(path=f"0.{index}", modules=(), threads=threads) for index, threads in enumerate(workers)]
    return make_report(Proc(), *children, **changes)


def judge(baseline, candidate, *allowed):
    return probe.compare_reports(baseline, candidate, frozenset(probe.ComparableField(field) for field in allowed))


THREE = Module(ms=4_000.0), Module(name="solver", state="s", ms=3_000.0), Module(name="mesh", state="m", ms=2_000.0)
CHURN = Module(times=3)
LEAKY = dataclasses.replace(THREE[0], warm=probe.Status.COMPILED), *THREE[1:]
OVERLAPPING = Proc(modules=THREE, overlapping=True)

# baseline, candidate, verdict, reason, decided by, exact
TIME_CASES = {
    "identical": (BASELINE, BASELINE, "unchanged", "inside-band", "clock", "same"),
    "noise": (BASELINE, make_report(factors=(1.02, 0.985, 1.0)), "unchanged", "inside-band", "clock", "same"),
    "faster, the same builds": (BASELINE, make_report(factors=FAST), "improved", "time-supported", "clock", "same"),
    "slower, the same builds": (make_report(factors=FAST), BASELINE, "regressed", "time-supported", "clock", "same"),
    "two samples that touch": (
        BASELINE,
        make_report(factors=(0.9, 0.95, 0.995)),
        "inconclusive",
        "samples-overlap",
        "clock",
        "same",
    ),
    "one sample each": (
        make_report(factors=(1.0,)),
        make_report(factors=(0.5,)),
        "inconclusive",
        "too-few-samples",
        "clock",
        "same",
    ),
    "one sample each, equal": (
        make_report(factors=(1.0,)),
        make_report(factors=(1.0,)),
        "unchanged",
        "inside-band",
        "clock",
        "same",
    ),
    "two samples": (BASELINE, make_report(factors=(0.5, 0.51)), "inconclusive", "too-few-samples", "clock", "same"),
    "two samples in the baseline": (
        make_report(factors=(1.0, 1.01)),
        make_report(factors=(0.5, 0.51, 0.52)),
        "inconclusive",
        "too-few-samples",
        "clock",
        "same",
    ),
    "three of five samples failed": (
        BASELINE,
        make_report(factors=(0.5, 0.51), failed_samples=3),
        "inconclusive",
        "too-few-samples",
        "clock",
        "same",
    ),
    "two of five samples failed": (
        BASELINE,
        make_report(factors=FAST, failed_samples=2),
        "improved",
        "time-supported",
        "clock",
        "same",
    ),
    "a rebuild less": (building(CHURN), building(Module(times=2)), "improved", "time-supported", "timed", "fewer"),
    "a rebuild more": (building(Module(times=2)), building(CHURN), "regressed", "time-supported", "timed", "more"),
    "a small module less, inside the band": (
        building(*THREE, Module(name="tiny", state="t", ms=20.0)),
        building(*THREE),
        "inconclusive",
        "inside-band-facts-differ",
        "timed",
        "fewer",
    ),
    "an option that arrived and helped": (
        BASELINE,
        building(Module(state="fast", ms=2_000.0)),
        "improved",
        "time-supported",
        "timed",
        "same",
    ),
    "an option that arrived and changed nothing": (
        BASELINE,
        building(Module(state="fast")),
        "unchanged",
        "inside-band",
        "timed",
        "same",
    ),
    "fewer builds but more source": (
        building(*THREE),
        building(Module(state="all", source_bytes=9_000, ms=9_000.0)),
        "inconclusive",
        "inside-band-facts-differ",
        "timed",
        "mixed",
    ),
    "less to link": (
        building(Module(lto_bytes=9_000, ms=9_000.0)),
        building(Module(state="no tiles")),
        "improved",
        "time-supported",
        "timed",
        "fewer",
    ),
    "a cache fix": (building(*LEAKY), building(*THREE), "improved", "time-supported", "warm", "fewer"),
    "a broken cache": (building(*THREE), building(*LEAKY), "regressed", "time-supported", "warm", "more"),
    "a cache fix in two samples": (
        building(*LEAKY),
        building(*THREE, factors=(1.0, 1.01)),
        "inconclusive",
        "too-few-samples",
        "warm",
        "fewer",
    ),
    "a thousand cached loads less": (
        building(Module(warm_times=1_000)),
        building(Module()),
        "improved",
        "time-supported",
        "warm",
        "same",
    ),
    "half of the cached loads, at the same time each": (
        building(Module(warm_times=1_000)),
        building(Module(warm_times=600)),
        "improved",
        "time-supported",
        "warm",
        "same",
    ),
    "one cached load more is nothing next to compiling": (
        BASELINE,
        building(Module(warm_times=2), factors=FAST),
        "improved",
        "time-supported",
        "clock",
        "same",
    ),
    "an option that helped, with other warm loads": (
        BASELINE,
        building(Module(state="fast", ms=2_000.0, warm_times=1_000)),
        "improved",
        "time-supported",
        "timed",
        "same",
    ),
    "cached loads that take far longer": (
        building(Module()),
        building(Module(warm_ms=400.0)),
        "regressed",
        "time-supported",
        "warm",
        "same",
    ),
    "builds overlap in the candidate only": (
        building(*THREE),
        make_report(OVERLAPPING),
        "improved",
        "time-supported",
        "clock",
        "same",
    ),
    "builds overlap in the baseline only, and others are built": (
        make_report(OVERLAPPING),
        building(dataclasses.replace(THREE[0], state="b"), *THREE[1:]),
        "regressed",
        "time-supported",
        "clock",
        "same",
    ),
    "the same builds, warm runs that compile": (
        building(*LEAKY),
        building(*LEAKY, factors=FAST),
        "improved",
        "time-supported",
        "clock",
        "same",
    ),
}


@pytest.mark.parametrize("case", TIME_CASES)
def test_verdict_by_time(case):
    baseline, candidate, *expected = TIME_CASES[case]
    comparison = judge(baseline, candidate)
    assert [
        comparison.verdict.value,
        comparison.reason.value,
        comparison.decided_by.value,
        comparison.exact.value,
    ] == expected
    assert comparison.verdict.exit_code == (1 if expected[0] == "regressed" else 0)
    assert comparison.topology.equal
    assert comparison.metric in comparison.deltas


def test_span_of_builds_decides_where_warm_runs_compile():
    comparison = judge(building(*LEAKY), building(*LEAKY, factors=FAST))
    assert comparison.metric is probe.Metric.BUILD_SPAN


def test_three_against_three_is_exactly_one_twentieth():
    comparison = judge(BASELINE, make_report(factors=FAST))
    assert (comparison.p, comparison.p_exact, comparison.needed_samples) == (0.05, "1/20", None)
    assert comparison.bands[probe.Metric.COLD_MODULE] == pytest.approx(80.0)
    assert comparison.deltas[probe.Metric.COLD_MODULE].change == pytest.approx(-800.0)
    assert comparison.deltas[probe.Metric.COLD_MODULE].percent == pytest.approx(-20.0)


def test_overlapping_samples_say_how_many_would_settle_it():
    comparison = judge(BASELINE, make_report(factors=(0.9, 0.95, 0.995)))
    assert comparison.p_exact == "1/10"
    assert comparison.needed_samples == 7
    assert "7 samples" in comparison.why


def test_a_slower_warm_run_is_no_faster_compile():
    """Cold wall minus warm wall shrinks when only the warm run takes longer."""
    walls = tuple(value + 600.0 for value in BASELINE.summary.warm_wall_ms.values)
    elapsed = tuple(value - 600.0 for value in BASELINE.summary.compile_elapsed_ms.values)
    comparison = judge(BASELINE, change(BASELINE, warm_wall_ms=walls, compile_elapsed_ms=elapsed))
    assert (comparison.verdict.value, comparison.reason.value) == ("inconclusive", "warm-run-moved")


def test_code_that_is_slower_everywhere_does_not_hide_a_faster_compile():
    candidate = make_report(factors=FAST)
    slower = {
        name: tuple(value + 2_000.0 for value in getattr(candidate.summary, name).values)
        for name in ("cold_wall_ms", "warm_wall_ms")
    }
    assert judge(BASELINE, change(candidate, **slower)).verdict.value == "improved"


def test_a_cache_fix_that_makes_cold_builds_slower_is_not_called_an_improvement():
    slower = tuple(dataclasses.replace(module, ms=1.5 * module.ms) for module in THREE)
    comparison = judge(building(*LEAKY), building(*slower))
    assert (comparison.verdict.value, comparison.reason.value) == ("inconclusive", "cold-time-regressed")


def test_identical_programs_with_noise_everywhere_are_hardly_ever_called_changed():
    generator = random.Random(11)

    def measured():
        noisy = {
            name: tuple(value * (1 + generator.gauss(0, 0.05)) for value in getattr(BASELINE.summary, name).values)
            for name in ("cold_module_ms", "warm_module_ms", "build_span_ms", "cold_wall_ms", "warm_wall_ms")
        }
        pairs = zip(noisy["cold_wall_ms"], noisy["warm_wall_ms"], strict=True)
        return change(BASELINE, compile_elapsed_ms=tuple(cold - warm for cold, warm in pairs), **noisy)

    verdicts = [judge(measured(), measured()).verdict.value for _ in range(600)]
    assert verdicts.count("improved") <= 0.05 * len(verdicts)
    assert verdicts.count("regressed") <= 0.05 * len(verdicts)


CONTENT = "what the kernel computes"
# launches of the candidate against SCALE, ADD, SCALE; reason; words in the sentence
CHANGED_LAUNCHES = {
    "dropped": ((SCALE, ADD), "launches-differ", "candidate has no more launches"),
    "none left": ((), "launches-differ", "candidate has no more launches"),
    "added": ((SCALE, ADD, SCALE, ADD), "launches-differ", "baseline has no more launches"),
    "reordered": ((ADD, SCALE, SCALE), "launch-order-differs", f"(different: {CONTENT})"),
    "a swapped kernel of the same shape": ((SCALE, SUB, SCALE), "launches-differ", f"(different: {CONTENT})"),
    "another content under the same name": (
        (SCALE, dataclasses.replace(ADD, does="sub"), SCALE),
        "launches-differ",
        f"(different: {CONTENT})",
    ),
    "another dim": ((SCALE, dataclasses.replace(ADD, dim=(65,)), SCALE), "launches-differ", "(different: dim)"),
    "another shape": ((SCALE, dataclasses.replace(ADD, dim=(8, 8)), SCALE), "launches-differ", "(different: dim)"),
    "another dtype": (
        (SCALE, dataclasses.replace(ADD, args=("array(ndim=1, dtype=float64)",)), SCALE),
        "launches-differ",
        "(different: argument types)",
    ),
    "another block_dim": (
        (SCALE, dataclasses.replace(ADD, block_dim=64), SCALE),
        "launches-differ",
        "(different: block_dim)",
    ),
    "another device": (
        (SCALE, dataclasses.replace(ADD, device="cuda:0"), SCALE),
        "launches-differ",
        "(different: device)",
    ),
    "adjoint": ((SCALE, dataclasses.replace(ADD, adjoint=True), SCALE), "launches-differ", "(different: adjoint flag)"),
}


@pytest.mark.parametrize("case", CHANGED_LAUNCHES)
def test_changed_launches(case):
    launches, reason, words = CHANGED_LAUNCHES[case]
    comparison = judge(BASELINE, launching(*launches, factors=FAST))
    assert (comparison.verdict.value, comparison.reason.value) == ("topology-changed", reason)
    assert comparison.verdict.exit_code == 3
    assert comparison.topology.equal is False
    assert comparison.decided_by is None
    assert words in comparison.why


def test_first_divergence_shows_both_launches_and_the_counts_that_differ():
    wide = dataclasses.replace(ADD, key="make__locals__add", dim=(65,))
    comparison = judge(BASELINE, launching(SCALE, wide, SCALE))
    place = comparison.topology.first_divergence
    assert (place.run, place.process, place.thread, place.index) == (probe.RunKind.COLD, "0", 0, 1)
    assert (place.baseline.kernel, place.baseline.dim) == ("add", (64,))
    assert (place.candidate.kernel, place.candidate.dim) == ("make__locals__add", (65,))
    counts = {(item.launch.dim, item.baseline, item.candidate) for item in comparison.topology.counts}
    assert counts == {((64,), 1, 0), ((65,), 0, 1)}
    assert "launch 2 differs" in comparison.why
    assert "different: dim" in comparison.why


def test_a_run_that_ends_early_has_no_launch_there():
    place = judge(BASELINE, launching(SCALE, ADD)).topology.first_divergence
    assert (place.index, place.baseline.kernel, place.candidate) == (2, "scale", None)


RENAMED = {
    "closure to module scope": ("make_scale__locals__scale", "program", "scale", "kernels"),
    "another name": ("scale", "program", "multiply", "program"),
    "another module": ("scale", "program", "scale", "kernels"),
}


@pytest.mark.parametrize("case", RENAMED)
def test_a_renamed_kernel_is_listed_and_allowed(case):
    key, module, new_key, new_module = RENAMED[case]
    old = Launch(key=key, module=module, does="x * s")
    new = Launch(key=new_key, module=new_module, does="x * s")
    comparison = judge(launching(old, ADD, old), launching(new, ADD, new))
    assert comparison.verdict.value == "unchanged"
    assert [
        (item.baseline_kernel, item.baseline_module, item.candidate_kernel, item.candidate_module)
        for item in comparison.renames
    ] == [RENAMED[case]]


@pytest.mark.parametrize(("old", "new"), [("a", "ab"), ("ab", "a"), ("ab", "cd"), ("ab", "bc")])
def test_copies_of_a_kernel_may_be_merged_split_or_renamed(old, new):
    arms = [[Launch(key=key, does="x * s") for key in keys * 2][:2] for keys in (old, new)]
    comparison = judge(launching(*arms[0]), launching(*arms[1]))
    assert comparison.verdict.value == "unchanged"
    named = {item.baseline_kernel for item in comparison.renames} | {
        item.candidate_kernel for item in comparison.renames
    }
    assert set(old) ^ set(new) <= named


def test_identical_reports_list_no_rename():
    assert judge(BASELINE, BASELINE).renames == ()


@pytest.mark.parametrize(
    ("key", "name"), [("scale", "scale"), ("f__locals__scale", "scale"), ("f__locals__g__locals___k", "_k")]
)
def test_kernel_name_is_what_follows_the_last_locals(key, name):
    assert probe.kernel_name(key) == name


ONE, TWO, THREE_, FOUR = (Launch(key=f"k{index}") for index in range(4))
# baseline, candidate, verdict, order
SHARED_WORK = {
    "workers share the work differently": (
        pool([(ONE, TWO)], [(THREE_, FOUR)]),
        pool([(ONE,)], [(TWO, THREE_, FOUR)]),
        "unchanged",
        "unordered",
    ),
    "workers swap their work": (
        pool([(ONE, TWO)], [(THREE_, FOUR)]),
        pool([(THREE_, FOUR)], [(ONE, TWO)]),
        "unchanged",
        "unordered",
    ),
    "one worker less does the same": (
        pool([(ONE, TWO)], [(THREE_, FOUR)]),
        pool([(ONE, TWO, THREE_, FOUR)]),
        "unchanged",
        "unordered",
    ),
    "a helper process without launches comes first": (
        pool([(ONE, TWO)]),
        pool([], [(ONE, TWO)]),
        "unchanged",
        "unordered",
    ),
    "threads share the work differently": (
        pool([(ONE, TWO), (THREE_, FOUR)]),
        pool([(ONE,), (TWO, THREE_, FOUR)]),
        "unchanged",
        "unordered",
    ),
    "threads in another order": (
        pool([(ONE, TWO), (THREE_, FOUR)]),
        pool([(THREE_, FOUR), (ONE, TWO)]),
        "unchanged",
        "exact",
    ),
    "the order within one worker": (
        pool([(ONE, TWO)], [(THREE_, FOUR)]),
        pool([(TWO, ONE)], [(THREE_, FOUR)]),
        "topology-changed",
        None,
    ),
    "the order within one thread": (
        pool([(ONE, TWO), (THREE_, FOUR)]),
        pool([(TWO, ONE), (THREE_, FOUR)]),
        "topology-changed",
        None,
    ),
    "a worker drops a launch": (
        pool([(ONE, TWO)], [(THREE_, FOUR)]),
        pool([(ONE,)], [(THREE_, FOUR)]),
        "topology-changed",
        None,
    ),
    "a worker more that launches": (
        pool([(ONE, TWO)]),
        pool([(ONE, TWO)], [(ONE,)]),
        "topology-changed",
        None,
    ),
    "work moves from the main process to a worker": (
        pool([(ONE,)]),
        make_report(Proc(threads=((SCALE, ADD),)), Proc(path="0.0", modules=(), threads=((ONE, SCALE),))),
        "topology-changed",
        None,
    ),
}


@pytest.mark.parametrize("case", SHARED_WORK)
def test_only_another_assignment_of_work_is_no_change(case):
    baseline, candidate, verdict, order = SHARED_WORK[case]
    comparison = judge(baseline, candidate)
    assert comparison.verdict.value == verdict
    assert comparison.topology.order == (order and probe.LaunchOrder(order))


def test_work_that_only_the_warm_run_leaves_out_is_a_change():
    candidate = make_report(warm_processes=(Proc(threads=((SCALE, ADD),)),))
    comparison = judge(BASELINE, candidate)
    assert comparison.verdict.value == "topology-changed"
    assert comparison.topology.first_divergence.run is probe.RunKind.WARM


def test_the_settling_run_is_the_warm_run_that_counts():
    other = make_report(warm_processes=(Proc(threads=((SCALE, ADD),)),))
    settled = tuple(
        dataclasses.replace(sample, warm=other.samples[0].warm, settle=sample.warm) for sample in BASELINE.samples
    )
    assert judge(BASELINE, change(BASELINE, samples=settled)).verdict.value == "unchanged"


def test_samples_that_disagree_are_unverified():
    samples = (*BASELINE.samples[:2], dataclasses.replace(launching(SCALE, SUB, SCALE).samples[0], index=2))
    for baseline, candidate, name in (
        (change(BASELINE, samples=samples), BASELINE, "baseline"),
        (BASELINE, change(BASELINE, samples=samples), "candidate"),
    ):
        comparison = judge(baseline, candidate)
        assert (comparison.verdict.value, comparison.reason.value) == ("unverified", "samples-disagree")
        assert comparison.verdict.exit_code == 4
        assert comparison.topology.equal is None
        assert f"samples of the {name}" in comparison.why
        assert "sample 3" in comparison.why


def test_samples_that_share_work_differently_agree():
    one, other = pool([(ONE, TWO)], [(THREE_, FOUR)]), pool([(ONE,)], [(TWO, THREE_, FOUR)])
    mixed = change(one, samples=(one.samples[0], dataclasses.replace(other.samples[0], index=1), one.samples[2]))
    comparison = judge(mixed, one)
    assert comparison.verdict.value == "unchanged"
    assert comparison.topology.order is probe.LaunchOrder.UNORDERED


LONG = [SCALE, ADD] * 60_000
LATE_SWAP = [*LONG[:110_000], ADD, SCALE, *LONG[110_002:]]
EARLY_SWAP = [ADD, SCALE, *LONG[2:]]


def digested(launches, **settings_):
    proc = Proc(threads=(tuple(launches),), order=probe.Order.DIGEST, **settings_)
    return make_report(proc, factors=(1.0,))


@pytest.mark.parametrize(
    ("candidate", "verdict", "order"),
    [
        (digested(LONG), "unchanged", "exact"),
        (digested(LONG, shuffled_table=True), "unchanged", "prefix"),
        (launching(*LONG, factors=(1.0,)), "unchanged", "exact"),
        (digested(EARLY_SWAP), "topology-changed", None),
        (digested(EARLY_SWAP, shuffled_table=True), "topology-changed", None),
        (digested(LATE_SWAP), "topology-changed", None),
        (digested([*LONG, ADD]), "topology-changed", None),
        (digested([*LONG[:-1], SCALE], shuffled_table=True), "topology-changed", None),  # counts differ, not the start
    ],
)
def test_streams_of_which_only_a_digest_is_kept(candidate, verdict, order):
    for one, other in ((digested(LONG), candidate), (candidate, digested(LONG))):
        comparison = judge(one, other)
        assert comparison.verdict.value == verdict
        assert comparison.topology.order == (order and probe.LaunchOrder(order))
        warned = "order-not-compared" in {notice.name for notice in comparison.warnings}
        assert warned is (order == "prefix")


def test_a_whole_stream_is_held_against_the_kept_start_of_another():
    shuffled = digested(LONG, shuffled_table=True)
    same, other = launching(*LONG, factors=(1.0,)), launching(*EARLY_SWAP, factors=(1.0,))
    assert judge(same, shuffled).topology.order is probe.LaunchOrder.PREFIX
    assert judge(shuffled, same).topology.order is probe.LaunchOrder.PREFIX
    assert judge(shuffled, other).verdict.value == "topology-changed"


def test_threads_of_which_only_a_digest_is_kept():
    def report(*threads):
        return make_report(Proc(threads=threads, order=probe.Order.DIGEST), factors=(1.0,))

    one, other = report((ONE, TWO), (THREE_, FOUR)), report((ONE,), (TWO, THREE_, FOUR))
    assert judge(one, other).topology.order is probe.LaunchOrder.UNORDERED
    assert judge(one, report((ONE, TWO), (THREE_,))).verdict.value == "topology-changed"


def test_a_difference_behind_what_is_kept_has_no_place():
    comparison = judge(digested(LONG), digested(LATE_SWAP))
    assert comparison.topology.first_divergence.index is None
    assert "behind the first 100,000" in comparison.why


FIELDS = {
    "command": ("command", {"command": ("python", "other.py")}),
    "Warp": ("warp", {"warp": "1.18.0"}),
    "toolkit": ("toolkit", {"cuda_toolkit": "12.9"}),
    "driver": ("toolkit", {"cuda_driver": "13.1"}),
    "devices": ("devices", {"devices": (probe.Device("cpu", "x86_64", None), probe.Device("cuda:0", "H200", 90))}),
    "target Python": ("python", {"target_python": "3.12.1"}),
    "unknown Python": ("python", {"target_python": None}),
    "env": ("options", {"env": {"MODE": "fast"}}),
    "inherited TMPDIR": ("options", {"inherit_tmpdir": True}),
    "expected exit": ("options", {"expect_exit": 3}),
    "CPU": ("host", {"cpu_model": "Another CPU"}),
    "cores": ("host", {"cores": 4}),
    "OS": ("host", {"os": "Linux 6.8"}),
    "architecture": ("host", {"architecture": "aarch64"}),
}


@pytest.mark.parametrize("case", FIELDS)
def test_another_set_up_is_not_comparable_unless_allowed(case):
    field, changes = FIELDS[case]
    candidate = make_report(factors=FAST, **changes)
    refused = judge(BASELINE, candidate)
    assert (refused.verdict.value, refused.reason.value) == ("not-comparable", "field-differs")
    assert refused.verdict.exit_code == 4
    assert refused.deltas == {}
    assert refused.topology is None
    assert f"--allow-different {field}" in refused.why
    allowed = judge(BASELINE, candidate, field)
    assert allowed.verdict.value == ("unchanged" if field == "host" else "improved")
    assert [(item.field.value, item.allowed) for item in allowed.differences] == [(field, True)]


def test_every_difference_is_named_and_must_be_allowed():
    candidate = make_report(warp="1.18.0", cores=4)
    comparison = judge(BASELINE, candidate, "warp")
    assert comparison.verdict.value == "not-comparable"
    assert [(item.field.value, item.allowed) for item in comparison.differences] == [("warp", True), ("host", False)]


@pytest.mark.parametrize(
    "changes",
    [
        {"label": "after"},
        {"cwd": "/elsewhere"},
        {"timeout_s": 60.0},
        {"options": dataclasses.replace(BASELINE.options, samples=9)},
    ],
)
def test_what_names_or_bounds_a_measurement_may_differ(changes):
    assert judge(BASELINE, change(BASELINE, **changes)).verdict.value == "unchanged"


def test_on_another_host_only_topology_and_exact_facts_are_judged():
    same = judge(BASELINE, make_report(factors=FAST, cores=4), "host")
    assert (same.verdict.value, same.reason.value) == ("unchanged", "time-not-judged")
    assert same.deltas == {}
    assert same.decided_by is None
    fewer = judge(building(CHURN), building(Module(), cores=4), "host")
    assert (fewer.verdict.value, fewer.exact.value) == ("inconclusive", "fewer")
    assert judge(BASELINE, launching(SCALE, cores=4), "host").verdict.value == "topology-changed"


@pytest.mark.parametrize("reason", list(probe.GapReason))
def test_a_gap_that_may_hide_something_is_unverified(reason):
    gap = probe.Gap(reason, 101, "python -I child.py")
    covered = probe.Coverage(1, 1, 1, (gap,))
    for baseline, candidate in (
        (change(BASELINE, coverage=covered), BASELINE),
        (BASELINE, make_report(factors=FAST, coverage=covered)),
    ):
        comparison = judge(baseline, candidate)
        if reason is probe.GapReason.MISSING_CACHE_ENTRY:
            assert comparison.verdict.value in {"unchanged", "improved"}
        else:
            assert (comparison.verdict.value, comparison.reason.value) == ("unverified", "coverage-gap")
            assert comparison.topology.equal is None
            assert reason.value in comparison.why


def test_a_difference_that_was_seen_in_spite_of_a_gap_is_shown():
    gap = probe.Coverage(1, 1, 1, (probe.Gap(probe.GapReason.HOOK_FAILED, None, ""),))
    comparison = judge(change(BASELINE, coverage=gap), launching(SCALE))
    assert comparison.verdict.value == "unverified"
    assert comparison.topology.equal is False


def test_unknown_graph_replays_are_unverified():
    comparison = judge(make_report(Proc(graph_replays_unknown=2)), make_report(Proc(graph_replays_unknown=2)))
    assert (comparison.verdict.value, comparison.reason.value) == ("unverified", "graph-replays-unknown")


def test_a_kernel_without_content_is_unverified():
    def without(value):
        return json.loads(
            json.dumps(value).replace(BASELINE.samples[0].cold.processes[0].launches.kernels[0].content, "")
        )

    blind = probe.Report.from_json(without(probe.to_json(BASELINE)))
    comparison = judge(blind, blind)
    assert (comparison.verdict.value, comparison.reason.value) == ("unverified", "kernel-content-unknown")


def test_no_complete_sample_is_invalid():
    failed = make_report(factors=(), failed_samples=3)
    for baseline, candidate, name in ((BASELINE, failed, "candidate"), (failed, BASELINE, "baseline")):
        comparison = judge(baseline, candidate)
        assert (comparison.verdict.value, comparison.reason.value) == ("invalid", "no-complete-sample")
        assert comparison.verdict.exit_code == 4
        assert name in comparison.why
        assert comparison.n == probe.SampleCounts(3 * (name != "baseline"), 3 * (name != "candidate"))


def test_a_program_that_failed_before_warp_is_invalid_and_not_another_set_up():
    nothing_known = {"warp": None, "cuda_toolkit": None, "devices": (), "target_python": None}
    failed = make_report(factors=(), failed_samples=1, **nothing_known)
    assert judge(BASELINE, failed).verdict.value == "invalid"
    assert judge(BASELINE, change(failed, command=("python",))).verdict.value == "not-comparable"


def test_hashes_that_moved_are_told_from_those_that_did_not():
    stripped = Module(name="quiet", state=None)
    before = building(*THREE, stripped, Module(name="gone", state="g"))
    late = building(dataclasses.replace(THREE[0], state="fast"), *THREE[1:], stripped, Module(name="new", state="n"))
    changes = judge(before, late).identities
    names = {
        field.name: [item.name for item in getattr(changes, field.name)]
        for field in dataclasses.fields(probe.IdentityChanges)
    }
    assert names == {
        "added": ["new"],
        "removed": ["gone"],
        "moved": ["program"],
        "same": ["solver", "mesh"],
        "unknown": ["quiet"],
    }


def test_a_hash_that_only_one_report_has_shows_nothing():
    known, stripped = building(Module()), building(Module(state=None))
    for changes in (judge(known, stripped).identities, judge(stripped, known).identities):
        assert [item.name for item in changes.unknown] == ["program"]
        assert changes.moved == ()


def test_one_more_state_of_a_module_moves_its_hashes():
    changes = judge(BASELINE, building(Module(), Module(state="b"))).identities
    (moved,) = changes.moved
    assert moved.candidate == (Module().hash, Module(state="b").hash)


def test_a_module_under_another_name_is_paired_by_hash_and_by_content():
    before = make_report(
        Proc(modules=(Module(name="k_1", state="k"), Module(name="old", state="o")), threads=((Launch(module="old"),),))
    )
    after = make_report(
        Proc(modules=(Module(name="k_2", state="k"), Module(name="new", state="n")), threads=((Launch(module="new"),),))
    )
    changes = judge(before, after).identities
    assert [(item.name, item.renamed_to) for item in changes.same] == [("k_1", "k_2")]
    assert [(item.name, item.renamed_to) for item in changes.moved] == [("old", "new")]
    assert changes.added == changes.removed == ()


def test_hashes_from_log_lines_are_compared_by_what_they_have():
    short = tuple(dataclasses.replace(record, hash=record.hash[:7]) for record in BASELINE.identities)
    comparison = judge(BASELINE, change(BASELINE, identities=short))
    assert [item.baseline for item in comparison.identities.same] == [(Module().hash[:7],)]
    assert comparison.decided_by is probe.DecidedBy.CLOCK


def finding(mechanism, module="program"):
    return probe.Finding(
        mechanism, probe.FindingKind.REDUNDANT, module, "cpu", 1, 9.0, 9.0, ("seen",), None, "It was seen.", None
    )


def test_findings_gone_and_new():
    before = change(BASELINE, findings=(finding("CS-1"), finding("CS-2")))
    after = change(BASELINE, findings=(finding("CS-2"), finding("CS-1", "solver")))
    changes = judge(before, after).findings
    assert [(item.mechanism, item.module) for item in changes.gone] == [("CS-1", "program")]
    assert [(item.mechanism, item.module) for item in changes.new] == [("CS-1", "solver")]


@pytest.mark.parametrize(
    ("before", "after", "gone"),
    [
        ((None, None, None), ("solver", None, None), False),
        (("solver", "cpu", 1), (None, "cpu", None), False),
        (("solver", "cpu", None), ("solver", "cuda:0", None), True),
        ((None, "cpu", None), (None, "cuda:0", None), True),
        (("solver", "cpu", 64), ("solver", "cpu", 128), True),
    ],
)
def test_a_finding_on_any_module_is_that_on_one_of_them(before, after, gone):
    def with_hint(subject):
        module, device, block_dim = subject
        hint = dataclasses.replace(finding("CS-10"), module=module, device=device, block_dim=block_dim)
        return change(BASELINE, findings=(finding("CS-1"), hint))

    changes = judge(with_hint(before), with_hint(after)).findings
    assert [item.mechanism for item in changes.gone] == ["CS-10"] * gone
    assert [item.mechanism for item in changes.new] == ["CS-10"] * gone


def warned(baseline, candidate):
    return {notice.name: notice.text for notice in judge(baseline, candidate).warnings}


def test_warnings_of_either_report_are_passed_on():
    notice = probe.Notice("cache-redirected", "a directory was mapped")
    assert warned(BASELINE, change(BASELINE, warnings=(notice,))) == {
        "cache-redirected": "candidate: a directory was mapped"
    }


@pytest.mark.parametrize(
    ("name", "baseline", "candidate"),
    [
        ("partial-report", make_report(failed_samples=2), BASELINE),
        ("few-samples", BASELINE, make_report(factors=(1.0, 1.0))),
        ("many-samples", make_report(factors=(1.0,) * 51), BASELINE),
        ("loaded-machine", BASELINE, make_report(load_average_end=30.0)),
        ("first-sample-outlier", BASELINE, make_report(factors=(1.5, 1.01, 0.99))),
        ("drift", BASELINE, make_report(factors=(1.0, 1.03, 1.06, 1.09, 1.12))),
        ("noisy-samples", make_report(factors=(1.0, 1.3, 0.7)), BASELINE),
        ("end-not-recorded", BASELINE, make_report(Proc(end=probe.ProcessEnd.UNRECORDED))),
        ("environment-differs", BASELINE, make_report(variables={"CUDA_VISIBLE_DEVICES": "0"})),
        ("probe-differs", BASELINE, make_report(probe_version="9.9")),
        ("error-loads-differ", BASELINE, make_report(error_loads=1)),
        ("warm-builds-more", building(*THREE), building(*LEAKY)),
    ],
)
def test_warnings(name, baseline, candidate):
    assert warned(BASELINE, BASELINE) == {}
    assert name in warned(baseline, candidate)


def test_a_machine_that_changed_is_suspected_where_nothing_else_did():
    candidate = make_report(factors=FAST)
    walls = tuple(value * 0.8 for value in candidate.summary.warm_wall_ms.values)
    assert "machine-moved" in warned(BASELINE, change(candidate, warm_wall_ms=walls))
    assert "machine-moved" not in warned(BASELINE, candidate)


def test_an_improvement_that_costs_more_than_it_saves_is_pointed_out():
    before, after = building(CHURN), building(Module(times=2))
    walls = tuple(value * 1.5 for value in before.summary.cold_wall_ms.values)
    assert "cold-wall-regressed" in warned(before, change(after, cold_wall_ms=walls))


def test_another_output_of_the_program_is_pointed_out():
    def printing(report, digests):
        samples = []
        for sample, digest in zip(report.samples, digests, strict=True):
            output = dataclasses.replace(sample.cold.output, stdout_digest=digest)
            samples.append(dataclasses.replace(sample, cold=dataclasses.replace(sample.cold, output=output)))
        return change(report, samples=tuple(samples))

    assert "output-differs" in warned(BASELINE, printing(BASELINE, "bbb"))
    assert "output-differs" not in warned(BASELINE, printing(BASELINE, "abc"))  # it differs from run to run


@pytest.mark.parametrize("width", [1, 2, 4])
def test_streams_are_decoded_at_every_width(width):
    ids = [index % 200 for index in range(150_000)]
    stream = probe.LaunchStream(1, len(ids), probe.Order.EXACT, width, encode_ids(ids, width), "")
    assert list(decode_stream(stream)) == ids


def test_more_different_launches_than_a_byte_can_tell():
    many = [Launch(key=f"k{index}") for index in range(300)]
    assert judge(launching(*many, factors=(1.0,)), launching(*many, factors=(1.0,))).verdict.value == "unchanged"
    swapped = [*many[:-2], many[-1], many[-2]]
    comparison = judge(launching(*many, factors=(1.0,)), launching(*swapped, factors=(1.0,)))
    assert comparison.topology.first_divergence.index == len(many) - 2


def test_the_width_of_a_stream_does_not_matter():
    wide = with_launches(dataclasses.replace(GOOD, streams=(make_stream(0, [0, 1, 0], probe.Order.EXACT, width=4),)))
    assert judge(BASELINE, wide).topology.order is probe.LaunchOrder.EXACT


GOOD = BASELINE.samples[0].cold.processes[0].launches
(STREAM,) = GOOD.streams
DAMAGED_STREAMS = {
    "not base64": ({"data": "?" * 8}, "cannot be unpacked"),
    "not xz": ({"data": "AAAA"}, "cut off"),
    "other bytes": ({"data": base64.b64encode(b"something that is not xz").decode()}, "cannot be unpacked"),
    "cut off": ({"data": base64.b64encode(base64.b64decode(STREAM.data)[:-9]).decode()}, "cut off"),
    "followed by more": (
        {"data": base64.b64encode(base64.b64decode(STREAM.data) + b"more").decode()},
        "something follows",
    ),
    "fewer launches than it says": ({"data": encode_ids([0, 1], 1)}, "does not hold the 3"),
    "more launches than it says": ({"data": encode_ids([0, 1, 0, 0], 1)}, "does not hold the 3"),
    "an index that is in no table": ({"data": encode_ids([0, 1, 2], 1)}, "not in the table of launches"),
    "an unknown width": ({"width": 3}, "launches of 3 bytes"),
    "half a launch": ({"data": encode_ids([0, 1, 0], 1), "width": 2}, "ends within a launch"),
    "a bomb": ({"data": encode_ids([0] * 5_000_000, 1)}, "does not hold the 3"),
}


def with_launches(launches):
    process = dataclasses.replace(BASELINE.samples[0].cold.processes[0], launches=launches)
    cold = dataclasses.replace(BASELINE.samples[0].cold, processes=(process,))
    return change(BASELINE, samples=tuple(dataclasses.replace(sample, cold=cold) for sample in BASELINE.samples))


@pytest.mark.parametrize("case", DAMAGED_STREAMS)
def test_damaged_launches_are_refused_also_where_both_reports_have_the_damage(case):
    changes, words = DAMAGED_STREAMS[case]
    broken = with_launches(dataclasses.replace(GOOD, streams=(dataclasses.replace(STREAM, **changes),)))
    for baseline, candidate, name in ((broken, broken, "baseline"), (BASELINE, broken, "candidate")):
        with pytest.raises(probe.InputError, match=f"^{name}: damaged report: .*{words}"):
            judge(baseline, candidate)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 4},
        {"entries": GOOD.entries[:1]},
        {"kernels": GOOD.kernels[:1]},
        {"entries": (GOOD.entries[0], dataclasses.replace(GOOD.entries[1], kernel=-1))},
    ],
)
def test_launches_that_contradict_themselves_are_refused(changes):
    broken = with_launches(dataclasses.replace(GOOD, **changes))
    with pytest.raises(probe.InputError, match="damaged report"):
        judge(broken, broken)


def test_two_processes_of_one_name_are_refused():
    with pytest.raises(probe.InputError, match="two processes are called 0"):
        judge(make_report(Proc(), Proc()), BASELINE)


def test_a_report_without_the_deciding_time_is_refused():
    with pytest.raises(probe.InputError, match="build_span_ms does not have a value"):
        judge(BASELINE, change(BASELINE, compile_elapsed_ms=None, build_span_ms=(1.0,)))


def test_a_report_with_samples_and_no_summary_is_refused():
    with pytest.raises(probe.InputError, match="no summary"):
        judge(BASELINE, change(BASELINE, summary=None))


def test_times_that_some_samples_lack_are_left_out():
    sparse = change(BASELINE, warm_module_ms=(1.0,), warm_wall_ms=(1.0,), hash_ms=(1.0, 1.0))
    comparison = judge(sparse, make_report(factors=FAST))
    assert comparison.verdict.value == "improved"
    assert probe.Metric.COLD_WALL in comparison.deltas
    assert not {probe.Metric.WARM_MODULE, probe.Metric.WARM_WALL, probe.Metric.HASH} & set(comparison.deltas)


def test_every_case_can_be_written_as_json():
    comparison = judge(building(CHURN), building(Module(times=2)))
    document = json.loads(json.dumps(probe.to_json(comparison), allow_nan=False))
    assert document["schema"] == "warp-compile-probe/comparison"
    assert document["schema_version"] == 1
    assert document["verdict"] == "improved"
    assert document["exact"] == "fewer"
    assert document["n"] == {"baseline": 3, "candidate": 3}
    assert set(document["deltas"]) == set(document["bands"])
    assert {"decided_by", "reason", "p", "renames", "topology", "identities", "findings", "warnings"} <= set(document)
    assert document["topology"]["equal"] is True


PLAIN = json.dumps(probe.to_json(pool([(ONE, TWO), (THREE_,)], [(FOUR,)])))
ODD_VALUES = [None, True, -1, 0, 2**40, 1.5, -1e9, 1e-300, "", "cpu", "\x1b[31m", "\ud800", [], {}, [1], "0.0", "exact"]


def places(value, path=()):
    """Every place in parsed JSON, the containers too."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


PLACES = [path for path in places(json.loads(PLAIN)) if path]


def follow(document, path):
    """The container of a place and its key; None where an earlier mutation took the place away."""
    try:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]]
    except (LookupError, TypeError):
        return None
    return document, path[-1]


def mutate(document, path, value):
    """Replace what is at a place; `value` None deletes or repeats it."""
    found = follow(document, path)
    if found is None:
        return
    container, key = found
    if value is not None:
        container[key] = value
    elif isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    else:
        del container[key]


def judge_mutated(document):
    """Comparisons of a mutated report with the original and with itself; none where it is refused."""
    original = probe.Report.from_json(json.loads(PLAIN))
    try:
        mutated = probe.Report.from_json(document)
        return [judge(original, mutated), judge(mutated, original), judge(mutated, mutated)]
    except probe.InputError:
        return []


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD_VALUES)), min_size=1, max_size=3))
def test_mutated_reports_are_judged_or_refused_but_never_crash(mutations):
    document = json.loads(PLAIN)
    for path, value in mutations:
        mutate(document, path, value)
    for comparison in judge_mutated(document):
        assert_fit_to_print(comparison)


def assert_fit_to_print(comparison):
    json.dumps(probe.to_json(comparison), allow_nan=False)
    for style in probe.TextFormat:
        text = probe.render_comparison(comparison, style)
        assert all(character.isprintable() or character == "\n" for character in text)
        assert len(text) <= 10_000
        assert len(text.splitlines()) <= 120


SAME_TYPE = [path for path in PLACES if isinstance(path[-1], str) and path[-1] not in {"schema", "schema_version"}]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_reports_with_other_values_of_the_right_type_never_crash(data):
    """Most random mutations are refused at once; these get further."""
    document = json.loads(PLAIN)
    for path in data.draw(st.lists(st.sampled_from(SAME_TYPE), min_size=1, max_size=4)):
        found = follow(document, path)
        if found is None:
            continue
        container, key = found
        container[key] = data.draw(other_value(container[key]))
    for comparison in judge_mutated(document):
        assert_fit_to_print(comparison)


def other_value(old):
    """Values of the type of another."""
    if isinstance(old, bool):
        return st.booleans()
    if isinstance(old, int):
        return st.integers(-3, 300)
    if isinstance(old, float):
        return st.floats(-1e15, 1e15)
    if isinstance(old, str):
        return st.sampled_from(["", "0", "0.0", "cpu", "scale", old[:-1], old])
    if isinstance(old, list):
        return st.sampled_from([[], old[:1], old + old, old[::-1]])
    return st.sampled_from([old, 1, "x"])


def test_a_million_launches_in_bounded_memory(capsys):
    generator = random.Random(5)
    kinds = tuple(Launch(key=f"k{index}") for index in range(50))
    few = launching(*kinds).samples[0].cold.processes[0].launches
    ids = generator.choices(range(50), k=1_000_000)

    def report(ids):
        counts = collections.Counter(ids)
        entries = tuple(dataclasses.replace(entry, count=counts[index]) for index, entry in enumerate(few.entries))
        streams = (make_stream(0, ids, probe.Order.EXACT),)
        return with_launches(dataclasses.replace(few, count=len(ids), entries=entries, streams=streams))

    baseline, candidate = report(ids), report([*ids[:900_000], *reversed(ids[900_000:])])
    started = time.process_time()
    judge(baseline, candidate)
    seconds = time.process_time() - started
    tracemalloc.start()
    try:
        comparison = judge(baseline, candidate)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert comparison.reason.value == "launch-order-differs"
    assert comparison.topology.first_divergence.index >= 900_000
    assert peak < 10_000_000
    with capsys.disabled():
        print(f" [two reports of a million launches: {seconds:.2f} s, {peak / 1e6:.1f} MB]", end="")
