"""How the launches of two runs are held against each other, step by step."""

import dataclasses

import pytest
import warp_compile_probe as probe
from report_builder import Launch, Proc, change, make_report
from warp_compile_probe import LaunchOrder, Order, RunKind

ONE, TWO, THREE, FOUR = (Launch(key=f"k{index}") for index in range(4))


def digested(*threads, **settings):
    return Proc(threads=threads, order=Order.DIGEST, **settings)


def whole(*threads, **settings):
    return Proc(threads=threads, **settings)


def workers(*threads_of_each, paths=None):
    """A main process that launches nothing, and its workers."""
    paths = paths or [f"0.{index}" for index in range(len(threads_of_each))]
    made = [Proc(path=path, modules=(), threads=threads) for path, threads in zip(paths, threads_of_each, strict=True)]
    return (Proc(threads=()), *made)


def match(before, after):
    reader = probe.LaunchNumbering()
    runs = [make_report(*processes, factors=(1.0,)).samples[0].cold for processes in (before, after)]
    return probe.match_runs(reader, *map(reader.read, runs))


def view(launch):
    """The launch as a comparison shows it."""
    return probe.launch_view(make_report(whole((launch,))).samples[0].cold.processes[0].launches, 0)


def diverging(process, thread, index, before, after, kind=RunKind.COLD):
    views = [launch and view(launch) for launch in (before, after)]
    return probe.Divergence(kind, process, thread, index, *views)


def counted(launch, before, after):
    return probe.CountDelta(view(launch), before, after)


@pytest.mark.parametrize(
    ("before", "after", "divergence", "counts"),
    [
        (
            (whole((ONE, TWO, THREE)),),
            (whole((ONE, THREE, THREE)),),
            diverging("0", 0, 1, TWO, THREE),
            (counted(TWO, 1, 0), counted(THREE, 1, 2)),
        ),
        ((whole((ONE, TWO)),), (whole((TWO, ONE)),), diverging("0", 0, 0, ONE, TWO), ()),
        ((whole((ONE, TWO)),), (whole((ONE,)),), diverging("0", 0, 1, TWO, None), (counted(TWO, 1, 0),)),
        ((whole((ONE,)),), (whole((ONE, TWO)),), diverging("0", 0, 1, None, TWO), (counted(TWO, 0, 1),)),
        (
            (whole((ONE,), (TWO,)),),
            (whole((ONE,), (TWO,), (THREE,)),),
            diverging("0", 2, 0, None, THREE),
            (counted(THREE, 0, 1),),
        ),
        (
            (whole((ONE,), (TWO,), (THREE,)),),
            (whole((ONE,), (TWO,)),),
            diverging("0", 2, 0, THREE, None),
            (counted(THREE, 1, 0),),
        ),
        (
            workers([(ONE, TWO)], [(THREE,)]),
            workers([(ONE, TWO)], [(FOUR,)]),
            diverging("0.1", 0, 0, THREE, FOUR),
            (counted(THREE, 1, 0), counted(FOUR, 0, 1)),
        ),
        (  # what a worker lacks is no surprise where its parent differs
            (whole((ONE,)), whole((TWO,), path="0.0", modules=())),
            (whole((THREE,)), whole((FOUR,), path="0.0", modules=())),
            diverging("0", 0, 0, ONE, THREE),
            (counted(ONE, 1, 0), counted(THREE, 0, 1)),
        ),
        (  # the third worker comes before the eleventh
            workers([(ONE,)], [(TWO,)], paths=("0.10", "0.2")),
            workers([(ONE, ONE)], [(TWO, TWO)], paths=("0.10", "0.2")),
            diverging("0.2", 0, 1, None, TWO),
            (counted(ONE, 1, 2), counted(TWO, 1, 2)),
        ),
        (  # the hundred-and-first worker comes before what the first one started
            workers([(ONE,)], [(TWO,)], paths=("0.100", "0.0.0")),
            workers([(ONE, ONE)], [(TWO, TWO)], paths=("0.100", "0.0.0")),
            diverging("0.100", 0, 1, None, ONE),
            (counted(ONE, 1, 2),),
        ),
        (  # the first of several threads
            (whole((ONE,), (TWO,), (THREE,)),),
            (whole((ONE,), (TWO, TWO), (THREE, THREE)),),
            diverging("0", 1, 1, None, TWO),
            (counted(TWO, 1, 2), counted(THREE, 1, 2)),
        ),
    ],
)
def test_the_first_difference_and_what_happens_another_number_of_times(before, after, divergence, counts):
    found = match(before, after)
    assert found.order is LaunchOrder.EXACT
    assert found.divergence == divergence
    assert sorted(found.counts, key=str) == sorted(counts, key=str)


def test_counts_are_listed_in_the_order_of_the_first_launch():
    found = match((whole((ONE, TWO, THREE, ONE)),), (whole((FOUR, THREE, TWO)),))
    assert found.counts == (counted(ONE, 2, 0), counted(FOUR, 0, 1))


@pytest.mark.parametrize(
    ("after", "divergence"),
    [
        ((ONE,) * 6 + (TWO,) + (ONE,) * 3, diverging("0", 0, 6, ONE, TWO)),
        ((ONE,) * 9, diverging("0", 0, 9, ONE, None)),
        ((ONE,) * 8, diverging("0", 0, 8, ONE, None)),
        ((ONE,) * 11, diverging("0", 0, 10, None, ONE)),
        ((ONE,) * 13, diverging("0", 0, 10, None, ONE)),
    ],
)
def test_a_difference_is_found_in_a_later_piece_of_a_stream(after, divergence, monkeypatch):
    monkeypatch.setattr(probe, "CHUNK_LAUNCHES", 4)
    found = match((whole((ONE,) * 10, shuffled_table=True),), (whole(after),))
    assert found.divergence == divergence


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ((whole((ONE, TWO)),), (whole((ONE, TWO)),), "exact"),
        ((whole((ONE, TWO), (THREE,)),), (whole((THREE,), (ONE, TWO)),), "exact"),
        ((whole((ONE, TWO)),), (whole((ONE, TWO), shuffled_table=True),), "exact"),
        ((digested((ONE, TWO)),), (digested((ONE, TWO)),), "exact"),
        ((digested((ONE, TWO)),), (whole((ONE, TWO)),), "exact"),
        ((digested((ONE, TWO)),), (digested((ONE, TWO), shuffled_table=True),), "prefix"),
        ((digested((ONE, TWO)),), (whole((ONE, TWO), shuffled_table=True),), "prefix"),
        ((digested((ONE, TWO, THREE)),), (digested((ONE, TWO), (THREE,)),), "unordered"),
        ((digested((ONE, TWO), (THREE,)),), (digested((ONE, TWO, THREE)),), "unordered"),
        ((whole((ONE, TWO), (THREE,)),), (whole((ONE,), (TWO, THREE)),), "unordered"),
        (
            (digested((ONE, TWO)), whole((ONE,), path="0.0", modules=())),
            (digested((ONE, TWO), shuffled_table=True), whole((ONE,), path="0.0", modules=())),
            "prefix",
        ),
    ],
)
def test_how_far_the_order_was_compared(before, after, order):
    for one, other in ((before, after), (after, before)):
        assert match(one, other) == probe.RunMatch(LaunchOrder(order))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (digested((ONE, TWO)), digested((TWO, ONE))),
        (digested((ONE, TWO)), digested((TWO, ONE), shuffled_table=True)),
        (digested((ONE, TWO)), whole((TWO, ONE))),
        (digested((ONE, TWO)), digested((ONE, TWO, TWO))),
        (whole((ONE, TWO), (THREE, FOUR)), whole((TWO, ONE), (FOUR, THREE))),
    ],
)
def test_another_order_is_a_difference(before, after):
    assert match((before,), (after,)).divergence is not None
    assert match((after,), (before,)).divergence is not None


def threads_of(reader, process):
    return reader.read(make_report(process, factors=(1.0,)).samples[0].cold).threads["0"]


def test_threads_are_paired_as_often_as_both_sides_have_them():
    reader = probe.LaunchNumbering()
    before = threads_of(reader, whole((ONE,), (ONE,), (ONE,), (TWO,)))
    after = threads_of(reader, whole((THREE,), (ONE,), (FOUR,)))
    left_before, left_after, only_prefix = probe._unmatched(reader, before, after)
    assert [thread.position for thread in left_before] == [0, 1, 3]
    assert [thread.position for thread in left_after] == [0, 2]
    assert only_prefix is False
    assert probe._unmatched(reader, after, before) == (left_after, left_before, False)


def test_threads_of_which_a_digest_is_kept_are_paired_one_to_one():
    reader = probe.LaunchNumbering()
    before = threads_of(reader, digested((ONE, TWO), (ONE, TWO), (THREE,)))
    after = threads_of(reader, digested((ONE, TWO), (THREE, ONE), shuffled_table=True))
    left_before, left_after, only_prefix = probe._unmatched(reader, before, after)
    assert [thread.position for thread in left_before] == [1, 2]
    assert [thread.position for thread in left_after] == [1]
    assert only_prefix is True
    assert probe._unmatched(reader, left_before, left_after) == (left_before, left_after, False)


def mixed(*processes, warm=None):
    """A report whose samples launch what each process says."""
    reports = [make_report(process, warm_processes=warm and (warm,)) for process in processes]
    samples = [dataclasses.replace(report.samples[0], index=index) for index, report in enumerate(reports)]
    return change(reports[0], samples=tuple(samples))


PLAIN = whole((ONE, TWO))


def test_the_same_launches_are_counted_and_equal():
    topology, ruling = probe.judge_topology(make_report(PLAIN), make_report(whole((ONE, TWO), shuffled_table=True)))
    assert topology == probe.Topology(True, LaunchOrder.EXACT, 2, 2, None, ())
    assert ruling is None


def test_other_launches_change_the_topology():
    topology, ruling = probe.judge_topology(make_report(PLAIN), make_report(whole((ONE, TWO, TWO))))
    place, counts = diverging("0", 0, 2, None, TWO), (counted(TWO, 1, 2),)
    assert topology == probe.Topology(False, None, 2, 3, place, counts)
    assert (ruling.verdict, ruling.reason) == (probe.Verdict.TOPOLOGY_CHANGED, probe.VerdictReason.LAUNCHES_DIFFER)
    assert ruling.why == (
        "launch 3 differs (process 0, cold run): baseline has no more launches, candidate k1 dim 64 on cpu block_dim 1"
    )
    _, ruling = probe.judge_topology(make_report(PLAIN), make_report(whole((TWO, ONE))))
    assert ruling.reason is probe.VerdictReason.LAUNCH_ORDER_DIFFERS


@pytest.mark.parametrize(
    ("baseline", "candidate", "name", "number"),
    [
        (mixed(PLAIN, whole((ONE, TWO, TWO))), make_report(PLAIN), "baseline", 2),
        (make_report(PLAIN), mixed(PLAIN, PLAIN, whole((ONE, TWO, TWO))), "candidate", 3),
    ],
)
def test_samples_of_one_report_that_disagree(baseline, candidate, name, number):
    topology, ruling = probe.judge_topology(baseline, candidate)
    place, counts = diverging("0", 0, 2, None, TWO), (counted(TWO, 1, 2),)
    assert topology == probe.Topology(None, None, 2, 2, place, counts)
    assert (ruling.verdict, ruling.reason) == (probe.Verdict.UNVERIFIED, probe.VerdictReason.SAMPLES_DISAGREE)
    assert ruling.why == (
        f"the samples of the {name} do not launch the same, sample {number} against the first: launch 3 differs"
        f" (process 0, cold run): first has no more launches, sample {number} k1 dim 64 on cpu block_dim 1"
    )


SHARED, MOVED = whole((ONE, TWO), (THREE,)), whole((ONE,), (TWO, THREE))
KEPT = digested((ONE, TWO), (THREE,))
SHUFFLED = digested((ONE, TWO), (THREE,), shuffled_table=True)


@pytest.mark.parametrize(
    ("baseline", "candidate", "order"),
    [
        (mixed(SHARED, SHARED), mixed(SHARED, SHARED), "exact"),
        (mixed(SHARED, MOVED), mixed(SHARED, SHARED), "unordered"),
        (mixed(SHARED, SHARED), mixed(SHARED, MOVED), "unordered"),
        (mixed(SHARED, SHARED), mixed(MOVED, MOVED), "unordered"),
        (mixed(KEPT, SHUFFLED), mixed(KEPT, KEPT), "prefix"),
        (mixed(KEPT, KEPT, warm=KEPT), mixed(KEPT, KEPT, warm=SHUFFLED), "prefix"),
        (mixed(KEPT, KEPT, warm=KEPT), mixed(SHUFFLED, SHUFFLED, warm=KEPT), "prefix"),
        (mixed(SHARED, SHARED, warm=KEPT), mixed(MOVED, MOVED, warm=SHUFFLED), "unordered"),
    ],
)
def test_the_order_counts_as_compared_as_far_as_in_every_sample_and_run(baseline, candidate, order):
    topology, ruling = probe.judge_topology(baseline, candidate)
    assert (topology.equal, topology.order, ruling) == (True, LaunchOrder(order), None)


def test_the_first_samples_stand_for_their_reports():
    """MOVED shares the work out otherwise than either, but these two share it alike, in another order."""
    swapped = whole((TWO, ONE), (THREE,))
    for baseline, candidate in (
        (mixed(SHARED, MOVED), mixed(swapped)),
        (mixed(SHARED), mixed(swapped, MOVED)),
    ):
        topology, ruling = probe.judge_topology(baseline, candidate)
        assert topology.first_divergence == diverging("0", 0, 0, ONE, TWO)
        assert ruling.reason is probe.VerdictReason.LAUNCH_ORDER_DIFFERS


def test_warm_runs_are_held_against_warm_runs():
    topology, _ = probe.judge_topology(make_report(PLAIN), make_report(PLAIN, warm_processes=(whole((ONE,)),)))
    assert topology.first_divergence == diverging("0", 0, 1, TWO, None, RunKind.WARM)
    same = make_report(PLAIN, warm_processes=(whole((ONE,)),))
    assert probe.judge_topology(same, same)[1] is None
