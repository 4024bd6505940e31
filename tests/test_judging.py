"""The steps of a comparison one by one, each at the limit where its answer changes."""

import dataclasses
from fractions import Fraction

import pytest
import warp_compile_probe as probe
from report_builder import Module, Proc, change, make_report
from warp_compile_probe import DecidedBy, Exact, Fact, Metric, Support, Verdict, VerdictReason

BASELINE = make_report()
OVERLAPPING = Proc(modules=(Module(), Module(name="solver", state="s")), overlapping=True)
UNMOVED = probe.IdentityChanges((), (), (), (), ())
MOVED = dataclasses.replace(UNMOVED, moved=(probe.ModuleHashes("program", "cpu", 1, ("a",), ("b",), None),))
STEADY = (1_000.0, 1_010.0, 990.0)


def times(*values):
    return probe.timed(values)


def scaled(factor):
    return tuple(factor * value for value in STEADY)


def evidence(decided_by=DecidedBy.CLOCK, exact=Exact.SAME, identities=UNMOVED, **pairs):
    """What was found in two reports; a pair is given by the values of both arms."""
    return probe.Evidence(
        topology=probe.Topology(True, None, 0, 0, None, ()),
        renames=(),
        identities=identities,
        facts=(),
        exact=exact,
        pairs={Metric(name): (probe.timed(before), probe.timed(after)) for name, (before, after) in pairs.items()},
        decided_by=decided_by,
        output=probe.OutputChange(probe.OutputState.SAME, None, None),
    )


FASTER, SLOWER = (STEADY, scaled(0.8)), (STEADY, scaled(1.2))
SHORT = scaled(0.001)  # of which a fifth is less than a millisecond


@pytest.mark.parametrize(
    ("decided_by", "present", "metric"),
    [
        (DecidedBy.CLOCK, ("compile_elapsed_ms", "build_span_ms", "cold_module_ms"), "compile_elapsed_ms"),
        (DecidedBy.CLOCK, ("build_span_ms", "cold_module_ms", "warm_module_ms"), "build_span_ms"),
        (DecidedBy.TIMED, ("compile_elapsed_ms", "cold_module_ms", "warm_module_ms"), "cold_module_ms"),
        (DecidedBy.WARM, ("compile_elapsed_ms", "cold_module_ms", "warm_module_ms"), "warm_module_ms"),
    ],
)
def test_the_deciding_figure_follows_from_what_decides(decided_by, present, metric):
    found = evidence(decided_by, **dict.fromkeys(present, FASTER))
    assert probe._deciding_metric(found) is Metric(metric)
    del found.pairs[Metric(metric)]
    lacking = "build_span_ms" if metric == "compile_elapsed_ms" else metric
    found.pairs.pop(Metric.BUILD_SPAN, None)
    with pytest.raises(probe.InputError) as refused:
        probe._deciding_metric(found)
    assert str(refused.value) == f"damaged report: {lacking} does not have a value for every complete sample"


def weighed(support, change):
    return probe.TimeEvidence(change, 20.0, Support(support), None, None)


@pytest.mark.parametrize(
    ("found", "support", "moved", "verdict", "reason"),
    [
        (evidence(), "inside", 5.0, "unchanged", "inside-band"),
        (evidence(exact=Exact.FEWER), "inside", 5.0, "inconclusive", "inside-band-facts-differ"),
        (evidence(), "too-few", 50.0, "inconclusive", "too-few-samples"),
        (evidence(), "overlap", 50.0, "inconclusive", "samples-overlap"),
        (evidence(), "supported", 50.0, "regressed", "time-supported"),
        (evidence(), "supported", -50.0, "improved", "time-supported"),
        (evidence(), "supported", 0.5, "regressed", "time-supported"),
        (evidence(), "supported", -0.5, "improved", "time-supported"),
        (evidence(DecidedBy.WARM, cold_module_ms=SLOWER), "supported", -50.0, "inconclusive", "cold-time-regressed"),
        (evidence(DecidedBy.WARM, cold_module_ms=SLOWER), "supported", 50.0, "regressed", "time-supported"),
        (evidence(DecidedBy.WARM, cold_module_ms=FASTER), "supported", -50.0, "improved", "time-supported"),
        (evidence(DecidedBy.TIMED, cold_module_ms=SLOWER), "supported", -50.0, "improved", "time-supported"),
    ],
)
def test_a_verdict_follows_from_the_support_and_the_way_of_a_change(found, support, moved, verdict, reason):
    answer = probe._weighed_verdict(found, Metric.BUILD_SPAN, weighed(support, moved))
    assert answer == (Verdict(verdict), VerdictReason(reason))


@pytest.mark.parametrize(("metric", "verdict"), [("compile_elapsed_ms", "inconclusive"), ("build_span_ms", "improved")])
def test_only_cold_minus_warm_can_move_by_the_warm_run(metric, verdict):
    found = evidence(warm_wall_ms=((0.0,), (60.0,)), build_span_ms=((500.0,), (500.0,)))
    assert probe._weighed_verdict(found, Metric(metric), weighed("supported", -100.0))[0] is Verdict(verdict)


@pytest.mark.parametrize(
    ("warm_after", "span_after", "change", "owed"),
    [
        (250.0, 500.0, -100.0, False),  # half of it
        (251.0, 500.0, -100.0, True),
        (251.0, 450.0, -100.0, False),  # half of it was seen in the builds
        (251.0, 451.0, -100.0, True),
        (251.0, 400.0, -100.0, False),
        (149.0, 500.0, 100.0, True),
        (150.0, 500.0, 100.0, False),
        (149.0, 549.0, 100.0, True),
        (149.0, 550.0, 100.0, False),
        (300.0, 500.0, 100.0, False),
    ],
)
def test_a_change_is_owed_to_the_warm_run_by_more_than_half(warm_after, span_after, change, owed):
    found = evidence(warm_wall_ms=((200.0,), (warm_after,)), build_span_ms=((500.0,), (span_after,)))
    assert probe._owed_to_warm_run(found, change) is owed


@pytest.mark.parametrize("present", ["warm_wall_ms", "build_span_ms"])
def test_nothing_is_owed_to_a_warm_run_that_is_not_known(present):
    assert probe._owed_to_warm_run(evidence(**{present: ((200.0,), (600.0,))}), -100.0) is False


@pytest.mark.parametrize(
    ("pairs", "regressed"),
    [
        ({}, False),
        ({"cold_module_ms": SLOWER}, True),
        ({"cold_module_ms": FASTER}, False),
        ({"cold_module_ms": (SHORT, scaled(0.0012))}, True),
        ({"cold_module_ms": (SHORT, scaled(0.0008))}, False),
        ({"cold_module_ms": (STEADY, STEADY)}, False),
        ({"cold_module_ms": (STEADY, scaled(1.2)[:2])}, False),
        ({"cold_wall_ms": SLOWER}, False),
    ],
)
def test_only_a_supported_rise_is_a_regression(pairs, regressed):
    assert probe._regressed(evidence(**pairs), Metric.COLD_MODULE) is regressed


def facts(**changes):
    """All facts, equal but for those given as (baseline, candidate)."""
    return [probe.FactDelta(fact, *changes.get(fact.value, (3, 3))) for fact in Fact]


@pytest.mark.parametrize(
    ("changes", "exact"),
    [
        ({}, Exact.SAME),
        ({"builds": (3, 2)}, Exact.FEWER),
        ({"warm_builds": (0, 1)}, Exact.MORE),
        ({"builds": (3, 2), "variants": (1, 2)}, Exact.MIXED),
    ],
)
def test_facts_are_summed_up(changes, exact):
    assert probe.sum_up(facts(**changes)) is exact


SLOW_LOADS = {Metric.WARM_MODULE: (times(10.0), times(400.0)), Metric.COLD_WALL: (times(5_000.0), times(5_000.0))}


@pytest.mark.parametrize(
    ("candidate", "changes", "pairs", "decided_by"),
    [
        (BASELINE, {}, {}, DecidedBy.CLOCK),
        (BASELINE, {}, SLOW_LOADS, DecidedBy.WARM),
        (BASELINE, {"warm_builds": (1, 0)}, {}, DecidedBy.WARM),
        (BASELINE, {"warm_builds": (1, 0), "builds": (3, 2)}, {}, DecidedBy.CLOCK),
        (BASELINE, {"builds": (3, 2)}, SLOW_LOADS, DecidedBy.CLOCK),
        (BASELINE, {"generated_source_bytes": (2_000, 1_000)}, {}, DecidedBy.TIMED),
        (make_report(Proc(modules=(Module(state="b"),))), {}, {}, DecidedBy.TIMED),
        (make_report(Proc(modules=(Module(state="b"),))), {}, SLOW_LOADS, DecidedBy.TIMED),
        (make_report(Proc(modules=(Module(times=2),))), {"builds": (1, 2)}, {}, DecidedBy.TIMED),
        (make_report(OVERLAPPING), {"builds": (1, 2)}, {}, DecidedBy.CLOCK),
    ],
)
def test_what_decides(candidate, changes, pairs, decided_by):
    assert probe.choose_measure(BASELINE, candidate, facts(**changes), pairs) is decided_by


@pytest.mark.parametrize(
    ("overlap", "decided_by"), [((1.15,), DecidedBy.TIMED), ((1.16,), DecidedBy.CLOCK), (None, DecidedBy.TIMED)]
)
def test_the_clock_decides_where_builds_of_either_arm_overlap(overlap, decided_by):
    arm = change(make_report(Proc(modules=(Module(state="b"),))), overlap_factor=overlap)
    assert probe.choose_measure(BASELINE, arm, facts(), {}) is decided_by
    assert probe.choose_measure(arm, BASELINE, facts(), {}) is decided_by


def test_builds_are_the_same_by_the_digits_that_both_reports_have():
    """A line of the output holds seven digits of a hash, a hook all of them."""
    short = change(BASELINE, identities=[record(digits=BASELINE.identities[0].hash[:7])])
    for arms in ((BASELINE, short), (short, BASELINE)):
        assert probe.choose_measure(*arms, facts(), {}) is DecidedBy.CLOCK
        assert probe.choose_measure(*arms, facts(), SLOW_LOADS) is DecidedBy.WARM


FEWER_LOADS, MORE_LOADS = (make_report(Proc(modules=(Module(warm_times=count),))) for count in (1, 5))


@pytest.mark.parametrize(
    ("candidate", "before", "after", "differ"),
    [
        (FEWER_LOADS, 100.0, 200.0, False),  # twice as long
        (FEWER_LOADS, 100.0, 201.0, True),
        (FEWER_LOADS, 201.0, 100.0, True),
        (FEWER_LOADS, 100.0, 160.0, False),
        (MORE_LOADS, 100.0, 160.0, True),
        (MORE_LOADS, 100.0, 150.0, False),  # 1 % of the cold run of the baseline
        (MORE_LOADS, 100.0, 150.5, True),
        (FEWER_LOADS, 1.0, 51.0, False),
        (FEWER_LOADS, 1.0, 51.5, True),
    ],
)
def test_warm_loads_differ_by_their_number_or_by_half_and_only_if_it_matters(candidate, before, after, differ):
    pairs = {Metric.WARM_MODULE: (times(before), times(after)), Metric.COLD_WALL: (times(5_000.0), times(10.0))}
    assert probe._warm_loads_differ(FEWER_LOADS, candidate, pairs) is differ
    for lacking in pairs:
        present = {metric: pair for metric, pair in pairs.items() if metric is not lacking}
        assert probe._warm_loads_differ(FEWER_LOADS, candidate, present) is False


def test_warm_loads_are_summed_by_status_over_the_modules():
    program, solver, mesh = (
        dataclasses.replace(BASELINE.identities[0], name=name, warm=warm)
        for name, warm in (("program", {"cached": 2}), ("solver", {"cached": 3, "compiled": 1}), ("mesh", {"error": 0}))
    )
    assert probe._warm_loads(change(BASELINE, identities=(program, solver, mesh))) == {"cached": 5, "compiled": 1}


def test_builds_are_counted_by_hash_and_by_name_without_one():
    record = dataclasses.replace(BASELINE.identities[0], hash="abcdef", cold={"compiled": 2, "cached": 7})
    records = [
        record,
        dataclasses.replace(record, name="copy", hash="abcxyz", cold={"compiled": 1}),
        dataclasses.replace(record, hash=None),
        dataclasses.replace(record, hash="loaded", cold={"cached": 1}),
        dataclasses.replace(record, device="cuda:0", block_dim=64),
    ]
    assert dict(probe._builds(records, 3)) == {
        ("abc", "cpu", 1): 3,
        ("program", "cpu", 1): 2,
        ("abc", "cuda:0", 64): 2,
    }


def test_times_are_judged_by_the_first_fifty_samples():
    long = make_report(factors=(1.0,) * 50 + (2.0,) * 3)
    values = probe._judged_values(long, Metric.COLD_MODULE).values
    assert values == (4_000.0,) * 50
    assert len(probe._judged_values(BASELINE, Metric.COLD_MODULE).values) == 3


def test_times_that_belong_to_no_complete_sample_are_not_judged():
    longer = change(BASELINE, cold_module_ms=(1.0, 2.0, 3.0, 9.0))
    assert probe._judged_values(longer, Metric.COLD_MODULE) == times(1.0, 2.0, 3.0)
    assert probe._judged_values(change(BASELINE, cold_module_ms=(1.0, 2.0)), Metric.COLD_MODULE) is None
    assert probe._judged_values(change(BASELINE, compile_elapsed_ms=None), Metric.COMPILE_ELAPSED) is None


def test_a_missing_summary_is_refused():
    with pytest.raises(probe.InputError) as refused:
        probe._summary(change(BASELINE, summary=None))
    assert str(refused.value) == "damaged report: it has complete samples, but no summary"


@pytest.mark.parametrize(
    ("before", "after", "moved", "percent", "outside_band"),
    [
        ((990.0, 1_000.0, 1_010.0), 1_020.0, 20.0, 2.0, False),  # twice the deviation
        ((990.0, 1_000.0, 1_010.0), 1_021.0, 21.0, 2.1, True),
        ((990.0, 1_000.0, 1_010.0), 979.0, -21.0, -2.1, True),
        ((-100.0,), -150.0, -50.0, -50.0, True),  # cold minus warm, where the warm run took longer
        ((1.0,), 1.5, 0.5, 50.0, True),
        ((0.0,), 5.0, 5.0, None, True),
        ((1e-6,), 1e-6, 0.0, None, False),  # a millionth of a millisecond
        ((1.05e-6,), 1.05e-6, 0.0, 0.0, False),
    ],
)
def test_a_change_in_numbers(before, after, moved, percent, outside_band):
    delta = probe._delta(times(*before), times(after))
    assert delta == probe.Delta(times(*before), times(after), moved, percent, outside_band)


MACHINE = evidence(compile_elapsed_ms=FASTER, warm_wall_ms=FASTER)


@pytest.mark.parametrize(
    ("found", "verdict", "suspected"),
    [
        (MACHINE, Verdict.IMPROVED, True),
        (MACHINE, Verdict.REGRESSED, False),
        (MACHINE, Verdict.INCONCLUSIVE, False),
        (MACHINE, Verdict.UNCHANGED, False),
        (evidence(warm_wall_ms=SLOWER), Verdict.REGRESSED, True),
        (evidence(warm_wall_ms=SLOWER), Verdict.IMPROVED, False),
        (evidence(warm_wall_ms=(STEADY, STEADY)), Verdict.REGRESSED, False),
        (evidence(warm_wall_ms=(STEADY, (1_020.0,))), Verdict.REGRESSED, False),  # twice the deviation
        (evidence(warm_wall_ms=(STEADY, (980.0,))), Verdict.IMPROVED, False),
        (evidence(warm_wall_ms=(SHORT, scaled(0.0012))), Verdict.REGRESSED, True),
        (evidence(warm_wall_ms=(SHORT, scaled(0.0012))), Verdict.IMPROVED, False),
        (evidence(warm_wall_ms=(SHORT, scaled(0.0008))), Verdict.IMPROVED, True),
        (evidence(warm_wall_ms=(SHORT, scaled(0.0008))), Verdict.REGRESSED, False),
        (evidence(), Verdict.IMPROVED, False),
        (dataclasses.replace(MACHINE, decided_by=DecidedBy.TIMED), Verdict.IMPROVED, False),
        (dataclasses.replace(MACHINE, exact=Exact.FEWER), Verdict.IMPROVED, False),
        (dataclasses.replace(MACHINE, identities=MOVED), Verdict.IMPROVED, False),
    ],
)
def test_the_machine_is_suspected_where_warm_runs_moved_the_same_way_and_nothing_else_did(found, verdict, suspected):
    ruling = probe.Ruling(verdict, VerdictReason.TIME_SUPPORTED, "it moved")
    assert probe._machine_may_have_moved(found, ruling) is suspected


def test_a_ruling_on_time_holds_what_decided_and_the_numbers():
    found = evidence(DecidedBy.TIMED, Exact.FEWER, cold_module_ms=(STEADY, (980.0, 985.0, 991.0)))
    ruling = probe.rule_on_time(found, ())
    assert ruling == probe.Ruling(
        verdict=Verdict.INCONCLUSIVE,
        reason=VerdictReason.INSIDE_BAND_FACTS_DIFFER,
        why="cold_module_ms fell by 1.5 % (1,000.0 to 985.0 ms), inside the noise band of 20.0 ms, though the exact"
        " facts differ; exact facts: fewer",
        decided_by=DecidedBy.TIMED,
        metric=Metric.COLD_MODULE,
        p=None,
        needed_samples=None,
    )
    overlap = probe.rule_on_time(evidence(build_span_ms=(STEADY, (1_030.0, 1_040.0, 1_005.0))), ())
    assert (overlap.verdict, overlap.p, overlap.needed_samples) == (Verdict.INCONCLUSIVE, Fraction(1, 10), 7)
    assert overlap.why == (
        "build_span_ms rose by 3.0 % (1,000.0 to 1,030.0 ms), beyond the noise band of 20.0 ms, but the samples overlap"
        " (3 against 3 samples, p = 1/10); about 7 samples an arm may settle it; exact facts: same"
    )


HOST = probe.FieldDifference(probe.ComparableField.HOST, "usable cores", "8", "4", True)
WARP = probe.FieldDifference(probe.ComparableField.WARP, "Warp", "1.19.0", "1.18.0", True)


@pytest.mark.parametrize(("exact", "verdict"), [("same", Verdict.UNCHANGED), ("fewer", Verdict.INCONCLUSIVE)])
def test_times_of_other_hosts_are_not_judged(exact, verdict):
    ruling = probe.rule_on_time(evidence(exact=Exact(exact)), (WARP, HOST))
    why = f"the hosts differ, so times were not judged; launches: the same; exact facts: {exact}"
    assert ruling == probe.Ruling(verdict, VerdictReason.TIME_NOT_JUDGED, why)
    judged = probe.rule_on_time(evidence(build_span_ms=FASTER), (WARP,))
    assert judged.verdict is Verdict.IMPROVED


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (2_000.0, 1_000.0, "build_span_ms fell by 50.0 % (2,000.0 to 1,000.0 ms)"),
        (1_000.0, 13_000.0, "build_span_ms rose by 1,200.0 % (1,000.0 to 13,000.0 ms)"),
        (0.0, 1_500.0, "build_span_ms rose by 1,500.0 ms (0.0 to 1,500.0 ms)"),
        (7.0, 7.0, "build_span_ms did not move (7.0 to 7.0 ms)"),
        (7.0, 7.7, "build_span_ms rose by 10.0 % (7.0 to 7.7 ms)"),
        (7.0, 6.3, "build_span_ms fell by 10.0 % (7.0 to 6.3 ms)"),
    ],
)
def test_a_change_in_words(before, after, text):
    assert probe._change_text(Metric.BUILD_SPAN, times(before), times(after)) == text


@pytest.mark.parametrize(
    ("reason", "p", "needed", "text"),
    [
        ("inside-band", None, None, "inside the noise band of 1,020.0 ms in 3 against 2 samples"),
        (
            "inside-band-facts-differ",
            None,
            None,
            "inside the noise band of 1,020.0 ms, though the exact facts differ",
        ),
        (
            "too-few-samples",
            Fraction(1, 10),
            3,
            "beyond the noise band of 1,020.0 ms, but 3 against 2 samples are too few to tell; about 3 samples an arm"
            " may settle it",
        ),
        (
            "samples-overlap",
            Fraction(13, 1_000),
            None,
            "beyond the noise band of 1,020.0 ms, but the samples overlap (3 against 2 samples, p = 13/1000); more than"
            " 50 samples an arm would be needed",
        ),
        (
            "time-supported",
            Fraction(1, 1_001),
            None,
            "beyond the noise band of 1,020.0 ms (3 against 2 samples, p = 0.001)",
        ),
        ("warm-run-moved", None, None, "but that is owed to the wall time of the warm run, not to compiling"),
        ("cold-time-regressed", None, None, "but the cold run takes longer now"),
    ],
)
def test_a_reason_in_words(reason, p, needed, text):
    seen = probe.TimeEvidence(-5_000.0, 1_020.0, Support.OVERLAP, p, needed)
    assert probe._reason_text(VerdictReason(reason), times(*STEADY), times(1.0, 2.0), seen) == text


def difference(name, before="a", after="b", *, allowed=False, field=probe.ComparableField.HOST):
    return probe.FieldDifference(field, name, before, after, allowed)


def test_differences_that_are_not_allowed_are_all_named_and_the_first_is_shown():
    toolkit = probe.ComparableField.TOOLKIT
    found = (
        difference("command", allowed=True, field=probe.ComparableField.COMMAND),
        difference("CUDA toolkit", None, "13.4", field=toolkit),
        difference("CUDA driver", field=toolkit),
        difference("usable cores"),
    )
    why = (
        "the reports differ in CUDA toolkit, CUDA driver, usable cores (CUDA toolkit: unknown against 13.4); if that is"
        " meant, add --allow-different toolkit --allow-different host"
    )
    assert probe._rule_on_fields(found) == probe.Ruling(Verdict.NOT_COMPARABLE, VerdictReason.FIELD_DIFFERS, why)
    assert probe._rule_on_fields(found[:1]) is None
    long = probe._rule_on_fields((difference("command", "x" * 200, "y" * 200),)).why
    shown = long.partition("command: ")[2].partition(")")[0]
    assert (shown.count("x"), shown.count("y")) == (77, 77)  # and a sign that the rest was left out


@pytest.mark.parametrize(
    ("known", "told"),
    [((BASELINE, True), True), ((make_report(factors=(), failed_samples=1), False), False)],
)
def test_what_only_a_complete_sample_can_tell_is_no_difference_without_one(known, told):
    report, complete = known
    other = change(report, warp=None)
    found = probe.field_differences(BASELINE, other, frozenset())
    assert [item.name for item in found] == (["Warp"] if told else [])
    assert [item.name for item in probe.field_differences(other, BASELINE, frozenset())] == ["Warp"] * complete


def test_a_difference_holds_both_values_and_whether_it_is_allowed():
    other = change(BASELINE, warp="1.18.0", cores=4)
    assert probe.field_differences(BASELINE, other, frozenset({probe.ComparableField.HOST})) == (
        probe.FieldDifference(probe.ComparableField.WARP, "Warp", "1.19.0", "1.18.0", False),
        probe.FieldDifference(probe.ComparableField.HOST, "usable cores", "8", "4", True),
    )


def test_only_what_both_reports_vary_is_meant_to_differ():
    varied = [probe.Varied.ENV], [probe.Varied.ENV, probe.Varied.SET]
    one, other = (
        change(BASELINE, varied=list(names), env={"A": str(index)}, set={"fast_math": str(index)})
        for index, names in enumerate(varied)
    )
    assert probe.meant_to_differ(one, other) == {"--env"}
    assert [(item.name, item.allowed) for item in probe.field_differences(one, other, frozenset())] == [
        ("--env", True),
        ("--set", False),
    ]


def test_only_what_was_allowed_to_differ_is_named_in_the_verdict():
    varied = [change(BASELINE, varied=[probe.Varied.ENV], env={"A": value}) for value in "12"]
    allowed = frozenset({probe.ComparableField.WARP, probe.ComparableField.HOST})
    found = probe.compare_reports(varied[0], change(varied[1], warp="1.18.0", cores=4), allowed)
    assert "; allowed to differ: Warp, usable cores; varied on purpose: " in found.why
    assert "allowed to differ" not in probe.compare_reports(*varied, allowed).why


def test_each_arm_without_a_complete_sample_is_named():
    failed = make_report(factors=(), failed_samples=1)
    tail = " no complete cold and warm sample: the command failed or was interrupted"
    for baseline, candidate, names in (
        (failed, failed, "the baseline and the candidate have"),
        (failed, BASELINE, "the baseline has"),
        (BASELINE, failed, "the candidate has"),
    ):
        ruling = probe._rule_on_samples(baseline, candidate)
        assert ruling == probe.Ruling(Verdict.INVALID, VerdictReason.NO_COMPLETE_SAMPLE, names + tail)
    assert probe._rule_on_samples(BASELINE, BASELINE) is None


HARMLESS = probe.Gap(probe.GapReason.MISSING_CACHE_ENTRY, 101, "kept elsewhere")
HARMFUL = probe.Gap(probe.GapReason.HOOK_FAILED, 101, "y" * 300)
ALSO_HARMFUL = probe.Gap(probe.GapReason.ISOLATED_PYTHON, 102, "python -I")


@pytest.mark.parametrize(
    ("gaps", "more"),
    [
        ((HARMFUL,), ""),
        ((HARMLESS, HARMFUL), ""),
        ((HARMFUL, ALSO_HARMFUL), " and 1 more"),
        ((HARMFUL, HARMFUL, ALSO_HARMFUL), " and 2 more"),
    ],
)
def test_the_first_gap_is_shown_with_the_number_of_others(gaps, more):
    blind = change(BASELINE, coverage=probe.Coverage(1, 1, 1, gaps))
    ruling = probe._rule_on_coverage(BASELINE, blind)
    assert (ruling.verdict, ruling.reason) == (Verdict.UNVERIFIED, VerdictReason.COVERAGE_GAP)
    head, _, tail = ruling.why.partition(" (")
    assert head == "the recorder could not see everything in the candidate: hook-failed"
    assert tail.partition(")")[0].count("y") == 157  # and a sign that some was left out
    assert tail.endswith(f"){more}; loads or launches may be missing")
    assert probe._rule_on_coverage(blind, BASELINE).why.startswith(head.replace("candidate", "baseline"))
    assert probe._rule_on_coverage(change(BASELINE, coverage=probe.Coverage(1, 1, 1, (HARMLESS,))), BASELINE) is None


def test_graph_replays_of_all_runs_are_counted():
    replaying = make_report(Proc(graph_replays_unknown=2), factors=(1.0, 1.0))
    ruling = probe._rule_on_coverage(BASELINE, replaying)
    why = "the candidate replayed graphs 8 times whose content is unknown: its launches are a lower bound"
    assert ruling == probe.Ruling(Verdict.UNVERIFIED, VerdictReason.GRAPH_REPLAYS_UNKNOWN, why)


def without_content(report):
    """A report in which what two kernels of the last sample's warm run compute could not be read."""
    *samples, last = report.samples
    process = last.warm.processes[0]
    names = zip(process.launches.kernels, ("k" * 100, "other"), strict=True)
    kernels = tuple(dataclasses.replace(kernel, key=name, content="") for kernel, name in names)
    process = dataclasses.replace(process, launches=dataclasses.replace(process.launches, kernels=kernels))
    warm = dataclasses.replace(last.warm, processes=(process,))
    return change(report, samples=(*samples, dataclasses.replace(last, warm=warm)))


def test_the_first_kernel_that_could_not_be_read_is_named():
    ruling = probe._rule_on_coverage(BASELINE, without_content(BASELINE))
    assert (ruling.verdict, ruling.reason) == (Verdict.UNVERIFIED, VerdictReason.KERNEL_CONTENT_UNKNOWN)
    assert ruling.why.startswith("what kernel kk")
    assert ruling.why.count("k") == 1 + 77  # and a sign that some was left out
    assert ruling.why.endswith(" of the candidate computes could not be read")


def record(name="program", digits="aaaaaaaaaa", device="cpu", block_dim=1):
    return dataclasses.replace(BASELINE.identities[0], name=name, hash=digits, device=device, block_dim=block_dim)


def hashes(name, before, after, renamed_to=None, device="cpu", block_dim=1):
    return probe.ModuleHashes(name, device, block_dim, before, after, renamed_to)


def test_identities_are_held_against_each_other_place_by_place():
    found = probe.compare_identities(
        [
            record("same"),
            record("same", "bbbbbbbbbb"),
            record("moved"),
            record("moved", device="cuda:0"),
            record("gone", "eeeeeeeeee"),
            record("stripped"),
            record("blind", None),
            record("copy", "cccccccccc"),
            record("old", "dddddddddd"),
        ],
        [
            record("same", "bbbbbbbbbb"),
            record("same"),
            record("moved", "ffffffffff"),
            record("moved", device="cuda:0", block_dim=64),
            record("stripped", None),
            record("blind"),
            record("copy_2", "cccccccccc"),
            record("new", "9999999999"),
            record("fresh", "8888888888"),
        ],
        [probe.Rename("content", "k", "old", "k", "new")],
    )
    a, b, c, d, e, f = (digit * 10 for digit in "abcdef")
    assert found == probe.IdentityChanges(
        added=(
            hashes("moved", (), (a,), device="cuda:0", block_dim=64),
            hashes("fresh", (), ("8888888888",)),
        ),
        removed=(hashes("moved", (a,), (), device="cuda:0"), hashes("gone", (e,), ())),
        moved=(hashes("moved", (a,), (f,)), hashes("old", (d,), ("9999999999",), "new")),
        same=(hashes("same", (a, b), (b, a)), hashes("copy", (c,), (c,), "copy_2")),
        unknown=(hashes("stripped", (a,), ()), hashes("blind", (), (a,))),
    )


def test_hashes_are_compared_by_the_digits_that_all_have():
    assert probe._common_hash_length([record(), record(digits="abc"), record(digits=None)]) == 3
    assert probe._common_hash_length([record(digits=None)]) == 0
    assert probe._hashes_by_place([record(digits="abcd"), record(digits="abce"), record(digits="xyz")], 3) == {
        ("program", "cpu", 1): ("abc", "xyz")
    }


@pytest.mark.parametrize("digits", [("aaaaaaaaaa", "aaa"), ("aaa", "aaaaaaaaaa")])
def test_either_report_may_have_the_shorter_hashes(digits):
    before, after = (record(digits=known) for known in digits)
    found = probe.compare_identities([before], [after], [])
    assert found == dataclasses.replace(UNMOVED, same=(hashes("program", ("aaa",), ("aaa",)),))


def place(name, block_dim=1):
    return (name, "cpu", block_dim)


def test_a_module_under_another_name_is_found_by_its_hashes_before_a_renamed_kernel():
    renames = [probe.Rename("content", "k", "old", "k", name) for name in ("other", "twin", "new")]
    before = {place("old"): ("a", "b"), place("second"): ("c",), place("kept"): ("k",)}
    after = {place("kept"): ("k",), place("new"): ("b", "a"), place("other"): ("x",), place("new", 64): ("a", "b")}
    assert probe._renamed_places(before, after, renames) == {place("old"): place("new")}
    del after[place("new")]
    assert probe._renamed_places(before, after, renames) == {place("old"): place("other")}
    del after[place("other")]
    assert probe._renamed_places(before, after, renames) == {}


def test_a_module_is_the_partner_of_only_one():
    before = {place("one"): ("a",), place("two"): ("a",), place("three"): ()}
    assert probe._renamed_places(before, {place("new"): ("a",)}, []) == {place("one"): place("new")}
    copies = {place("new"): ("a",), place("newer"): ("a",), place("newest"): ("a",)}
    assert probe._renamed_places(before, copies, []) == {
        place("one"): place("new"),
        place("two"): place("newer"),
    }
    renames = [probe.Rename("content", "k", name, "k", "new") for name in ("one", "two")]
    assert probe._renamed_places(before, {place("new"): ("z",)}, renames) == {place("one"): place("new")}
    assert probe._renamed_places({place("three"): ()}, {place("new"): ()}, []) == {}
    assert probe._renamed_places({place("one"): ("a",)}, {place("one"): ("b",), place("new"): ("a",)}, []) == {}
