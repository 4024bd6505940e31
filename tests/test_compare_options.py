"""Options that arrived in the modules of a candidate, and options that did not: built reports, no Warp."""

import dataclasses
import json

import pytest
import warp_compile_probe as probe
from builders import load, process, report, run, sample
from report_builder import make_report

QUIET = {"fast_math": "False", "enable_backward": "True"}
FAST = {"fast_math": "True", "enable_backward": "True"}
MISSED = probe.UnreachedOption("enable_backward", "True", "False")


def made(*loads, sets=(QUIET,)):
    return report(sample(run(process(loads, option_sets=tuple(sets)))))


def changes(baseline, candidate):
    return probe.option_changes(baseline, candidate)


def test_an_option_that_arrived_with_the_receipt():
    found = changes(made(load(option_set=0)), made(load(seed="b", option_set=0), sets=(FAST,)))
    assert found.arrived == (probe.OptionChange("fast_math", "sim", "cpu", 1, ("False",), ("True",), hash_moved=True),)
    assert found.missed == ()


def test_an_option_that_differs_while_the_hash_stays_is_told():
    (item,) = changes(made(load(option_set=0)), made(load(option_set=0), sets=(FAST,))).arrived
    assert item.hash_moved is False


def test_all_values_that_a_module_had_are_listed():
    late = made(load(option_set=0), load(seed="b", start=500.0, option_set=1), sets=(QUIET, FAST))
    early = made(load(seed="b", option_set=0), sets=(FAST,))
    (item,) = changes(late, early).arrived
    assert (item.baseline, item.candidate) == (("False", "True"), ("True",))


@pytest.mark.parametrize(
    "candidate",
    [
        made(load(option_set=0)),
        made(load("other", option_set=0), sets=(FAST,)),
        made(load(block_dim=64, option_set=0), sets=(FAST,)),
        made(load()),
        made(load(option_set=7)),
        report(),
    ],
    ids=[
        "the same",
        "another module",
        "another block_dim",
        "options unknown",
        "options not in the report",
        "no sample",
    ],
)
def test_nothing_arrived(candidate):
    assert changes(made(load(option_set=0)), candidate).arrived == ()


def test_an_option_that_is_new_in_the_candidate():
    (item,) = changes(made(load(option_set=0)), made(load(option_set=0), sets=({**QUIET, "lineinfo": "True"},))).arrived
    assert (item.option, item.baseline, item.candidate) == ("lineinfo", (), ("True",))


def test_an_option_that_the_candidate_assigned_in_vain():
    candidate = made(load(option_set=0, unreached=(MISSED,)), load(seed="b", start=500.0, unreached=(MISSED,)))
    found = changes(made(load(option_set=0)), candidate)
    assert found.missed == (probe.MissedOption("enable_backward", "sim", "cpu", 1, "True", "False"),)
    assert changes(candidate, made(load(option_set=0))).missed == ()


def test_both_are_in_the_document_and_in_the_text():
    baseline = made(load(option_set=0))
    candidate = made(load(seed="b", option_set=0, unreached=(MISSED,)), sets=(FAST,))
    comparison = probe.compare_reports(baseline, candidate)
    document = json.loads(json.dumps(probe.to_json(comparison)))["options"]
    assert document["arrived"][0]["hash_moved"] is True
    assert document["missed"][0]["assigned"] == "False"
    for style in (probe.TextFormat.TEXT, probe.TextFormat.MARKDOWN):
        text = probe.render_comparison(comparison, style)
        assert "Options that arrived" in text
        assert "Options that never arrived" in text
        lines = [line.replace("|", " ").replace("\\_", "_").split() for line in text.splitlines()]
        assert ["fast_math", "sim", "cpu,", "1", "False", "True", "moved"] in lines
        assert ["enable_backward", "sim", "cpu,", "1", "True", "False"] in lines
    plain = probe.render_comparison(probe.compare_reports(baseline, baseline), probe.TextFormat.TEXT)
    assert "Options that" not in plain


def test_an_option_set_that_a_damaged_report_lacks_ends_in_no_traceback():
    def damaged(report):
        def mend(run):
            loads = [dataclasses.replace(load, option_set=7) for load in run.processes[0].loads]
            process = dataclasses.replace(run.processes[0], loads=tuple(loads), option_sets=())
            return dataclasses.replace(run, processes=(process, *run.processes[1:]))

        samples = [dataclasses.replace(sample, cold=mend(sample.cold)) for sample in report.samples]
        return dataclasses.replace(report, samples=tuple(samples))

    candidate = make_report()
    options = dataclasses.replace(candidate.options, set={"enable_backward": "False"})
    candidate = damaged(dataclasses.replace(candidate, options=options))
    comparison = probe.compare_reports(damaged(make_report()), candidate, frozenset(probe.ComparableField))
    assert {receipt.option for receipt in comparison.receipts} == {"enable_backward"}
