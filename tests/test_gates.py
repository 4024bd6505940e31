"""Gates: limits on what a report holds, or on how far a comparison may fall back; exit code 6 with evidence."""

from __future__ import annotations

import argparse
import dataclasses
import sys

import pytest
import warp_compile_probe as probe
from builders import SITE, digest, load, process, report, run, sample, warm
from conftest import PROGRAMS
from report_builder import make_report


def two_builds(**changes):
    """One module built twice on one block_dim, and at a further one; the warm run builds one of them again."""
    loads = [load("sim", "a"), load("sim", "b", start=200.0), load("sim", "c", start=400.0, block_dim=64)]
    return sample(run(process(loads)), warm(process([load("sim", "a")])), **changes)


REPORT = report(two_builds())
COUNTS = {probe.Gate.BUILDS: 3, probe.Gate.REBUILDS: 1, probe.Gate.VARIANTS: 1, probe.Gate.WARM_BUILDS: 1}


@pytest.mark.parametrize("gate", COUNTS)
def test_each_limit_is_kept_at_the_count_and_exceeded_below(gate):
    count = COUNTS[gate]
    assert probe.gate_violations(REPORT, probe.Gates({gate: count})) == ()
    (violation,) = probe.gate_violations(REPORT, probe.Gates({gate: count - 1}))
    assert violation.gate == f"{gate.value} {count - 1}"
    assert violation.found.startswith(f"{count} {probe.GATE_NOUNS[gate][count != 1]}")
    assert len(violation.evidence) == count
    assert all("sim on cpu" in line for line in violation.evidence)


def test_gates_count_what_the_summary_counts():
    counted = probe.counted_loads(probe.complete_samples(REPORT.samples)[0])
    fields = (REPORT.summary.builds, REPORT.summary.rebuilds, REPORT.summary.variants, REPORT.summary.warm_builds)
    assert tuple(len(counted[gate]) for gate in COUNTS) == fields == tuple(COUNTS.values())


def test_builds_of_one_variant_are_shown_by_the_first():
    dims = (("a", 1), ("b", 64), ("c", 64))
    loads = [load("sim", seed, start=200.0 * at, block_dim=dim) for at, (seed, dim) in enumerate(dims)]
    (violation,) = probe.gate_violations(report(sample(run(process(loads)))), probe.Gates({probe.Gate.VARIANTS: 0}))
    (line,) = violation.evidence
    assert f"at block_dim 64: hash {digest('b')[:7]}" in line


def test_the_worst_sample_counts():
    quiet = sample(run(process([load("sim", "z")])))
    both = report(quiet, two_builds(index=1))
    assert both.summary.builds == 1
    (violation,) = probe.gate_violations(both, probe.Gates({probe.Gate.BUILDS: 2}))
    assert violation.found == "3 builds, at most 2 allowed"


def test_evidence_is_bounded():
    loads = [load(f"m{index}", str(index), start=200.0 * index) for index in range(40)]
    (violation,) = probe.gate_violations(report(sample(run(process(loads)))), probe.Gates({probe.Gate.BUILDS: 0}))
    assert violation.evidence[-1] == f"and {40 - probe.MAX_EVIDENCE} more"


@pytest.mark.parametrize("name", ["rebuild", "redundant", "CS-2", "REDUNDANT", "cs-2"])
def test_fail_on_a_finding_by_mechanism_or_kind(name):
    gates = probe.Gates({}, probe.parse_fail_on([name]))
    violations = probe.gate_violations(REPORT, gates)
    assert violations
    assert all(violation.evidence and name.lower() in violation.gate.lower() for violation in violations)
    assert probe.gate_violations(report(sample(run(process([load()])))), gates) == ()


def test_fail_on_takes_several_names_in_one():
    assert probe.parse_fail_on(["CS-1, CS-2", "hint", "CS-1"]) == ("CS-1", "CS-2", "hint")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("CS-99", "CS-9"), ("rebuilds", "rebuild"), ("xyzzy", "known are"), ("", "no finding has this name")],
)
def test_a_finding_that_does_not_exist_is_refused(name, hint):
    with pytest.raises(probe.InputError, match=hint):
        probe.parse_fail_on([name])


def test_a_violation_names_what_exceeds_the_limit_and_where():
    (violation,) = probe.gate_violations(REPORT, probe.Gates({probe.Gate.WARM_BUILDS: 0}))
    assert violation == probe.Violation(
        "--max-warm-builds 0",
        "1 warm build, at most 0 allowed",
        (f"sim on cpu at block_dim 1: hash {digest('a')[:7]}, 100 ms, asked for at {probe.place(SITE)}",),
        SITE,
    )
    nowhere = report(sample(run(process([load(site=None), load("other", start=300.0)]))))
    (violation,) = probe.gate_violations(nowhere, probe.Gates({probe.Gate.BUILDS: 1}))
    assert violation.where == SITE
    (violation,) = probe.gate_violations(
        report(sample(run(process([load(site=None)])))), probe.Gates({probe.Gate.BUILDS: 0})
    )
    assert violation.where is None
    assert probe.gate_violations(report(), probe.Gates({probe.Gate.BUILDS: 0})) == ()


def test_a_violation_by_a_finding_repeats_it():
    (finding, *_) = REPORT.findings
    (violation, *_) = probe.gate_violations(REPORT, probe.Gates({}, (finding.mechanism,)))
    assert violation == probe.Violation(
        f"--fail-on {finding.mechanism}", f"{finding.mechanism}: {finding.text}", finding.evidence, finding.where
    )


def test_each_gate_has_its_words():
    assert {gate.value: nouns for gate, nouns in probe.GATE_NOUNS.items()} == {
        "--max-builds": ("build", "builds"),
        "--max-rebuilds": ("rebuild", "rebuilds"),
        "--max-variants": ("variant", "variants"),
        "--max-warm-builds": ("warm build", "warm builds"),
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CS-99", "--fail-on 'CS-99': no finding has this name; did you mean CS-9?"),
        ("Rebuilds", "--fail-on 'Rebuilds': no finding has this name; did you mean rebuild?"),
        ("xyzzy", "--fail-on 'xyzzy': no finding has this name; known are redundant, hint"),
    ],
)
def test_an_unknown_finding_is_refused_with_the_nearest_name(name, text):
    with pytest.raises(probe.InputError) as refused:
        probe.parse_fail_on(["CS-1", name])
    assert str(refused.value).startswith(text)


def test_what_went_unseen_cannot_be_vouched_for():
    gap = probe.Gap(probe.GapReason.CHILD_NOT_RECORDED, 7, "python worker.py: no recorder started in it")
    unseen = report(two_builds(), gaps=[gap])
    gates = probe.Gates({probe.Gate.BUILDS: 10})
    why = "the gates cannot be vouched for: child-not-recorded (python worker.py: no recorder started in it)"
    assert probe.undecided_gates(unseen, gates) == why
    assert probe.undecided_gates(unseen, probe.Gates({}, ("CS-1",))) == why
    several = report(two_builds(), gaps=[gap, probe.Gap(probe.GapReason.HOOK_FAILED, 7, "launch")])
    assert probe.undecided_gates(several, gates) == why
    long = report(two_builds(), gaps=[dataclasses.replace(gap, detail="x" * 400)])
    assert (
        len(probe.undecided_gates(long, gates)) == len("the gates cannot be vouched for: child-not-recorded ()") + 160
    )
    assert probe.undecided_gates(unseen, probe.Gates({})) is None
    assert probe.undecided_gates(REPORT, gates) is None
    harmless = report(two_builds(), gaps=[dataclasses.replace(gap, reason=probe.GapReason.MISSING_CACHE_ENTRY)])
    assert probe.undecided_gates(harmless, gates) is None


def test_what_a_gate_says_is_bounded_line_by_line(capsys):
    said, gate = "x" * 500, "--max-builds 0"
    violation = probe.Violation(gate, said, (said, "short"), None)
    codes = probe.gate_codes((violation,), said)
    assert codes == [probe.ExitCode.GATE_EXCEEDED, probe.ExitCode.EVIDENCE_MISSING]
    head = "warp-compile-probe: "
    assert capsys.readouterr().err.splitlines() == [
        f"{head}{gate}: {'x' * (297 - len(gate) - 2)}...",
        f"    {'x' * 297}...",
        "    short",
        f"{head}{'x' * 397}...",
    ]


# -- the command line ------------------------------------------------------------------------------------------------

IDLE = [sys.executable, "-c", "print('idle')"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max-builds", "0", "--max-rebuilds", "0", "--max-variants", "0", "--max-warm-builds", "0"], 0),
        (["--fail-on", "redundant,CS-5"], 0),
        (["--fail-on", "CS-99"], 2),
        (["--max-builds", "-1"], 2),
        (["--max-builds", "many"], 2),
        (["--max-bilds", "1"], 2),
    ],
)
def test_exit_codes_of_measure(measure, options, code):
    measured = measure.command(IDLE, options=("--samples", "1", *options), expect=code)
    if code == 2:
        assert len(measured.stderr.strip().splitlines()) == 1


def test_gaps_leave_the_evidence_missing(measure):
    isolated = [sys.executable, "-I", "-c", "print('idle')"]
    measured = measure.command(isolated, options=("--samples", "1", "--max-builds", "5"), expect=5)
    assert "isolated-python" in measured.stderr


def test_a_failing_command_comes_before_its_gates(measure):
    failing = [sys.executable, "-c", "raise SystemExit(3)"]
    measure.command(failing, options=("--samples", "1", "--max-builds", "0"), expect=10)


@pytest.mark.warp(since="1.10")
def test_a_test_run_that_builds_a_module_twice(measure, needs_in_target):
    needs_in_target("pytest")
    folder = PROGRAMS / "pytest_program"
    command = [measure.target.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
    options = ("--samples", "1", "--max-rebuilds", "0", "--max-builds", "0")
    measured = measure.command(command, options=options, expect=None)
    rebuilds, builds = measured.report.summary.rebuilds, measured.report.summary.builds
    assert measured.exit_code == 6
    assert builds > 0
    for stream in (measured.stdout, measured.stderr):
        assert "--max-builds 0" in stream
        assert ("--max-rebuilds 0" in stream) is (rebuilds > 0)
    assert "GATE EXCEEDED" in measured.stdout


# -- compare and ab --------------------------------------------------------------------------------------------------

BASELINE = make_report()
SLOWER = make_report(factors=(1.2, 1.21, 1.19))


def arguments(limit, require=None):
    return argparse.Namespace(json=None, format="text", require=require, max_regression=limit)


@pytest.mark.parametrize(
    ("candidate", "limit", "code"),
    [
        (SLOWER, None, 1),
        (SLOWER, 5.0, 6),
        (SLOWER, 0.0, 6),
        (SLOWER, 25.0, 0),
        (BASELINE, 0.0, 0),
        (make_report(factors=(0.8, 0.81, 0.79)), 0.0, 0),
        (make_report(factors=(1.3,)), 5.0, 5),
        (make_report(factors=(1.3,)), 50.0, 0),
        (make_report(warp="1.18.0"), 5.0, 4),
    ],
    ids=lambda value: None if isinstance(value, probe.Report) else str(value),
)
def test_a_regression_is_allowed_up_to_the_limit(candidate, limit, code, capsys):
    comparison = probe.compare_reports(BASELINE, candidate)
    assert probe.answer(comparison, arguments(limit)) == code
    out, err = capsys.readouterr()
    assert ("GATE EXCEEDED" in out) is (code == 6)
    assert ("--max-regression" in err) is (code in (5, 6))
    if code == 6:
        assert "cold_module_ms" in err or "compile_elapsed_ms" in err


def test_a_regression_beyond_the_limit_is_told_with_every_sample():
    slower = probe.compare_reports(BASELINE, SLOWER)
    violation = probe.regression_violation(slower, 5.0)
    metric = slower.metric.value
    assert violation.gate == "--max-regression 5"
    assert violation.found == f"{metric} +20.0 %"
    assert violation.where is None
    values, why = violation.evidence
    assert values == (f"{metric}: baseline 3,998.0, 4,038.0, 3,958.0 ms; candidate 4,797.6, 4,837.6, 4,757.6 ms")
    assert why == slower.why


def in_two_times(comparison, percent, change=200.0):
    """A comparison with another change of its deciding time."""
    delta = dataclasses.replace(comparison.deltas[comparison.metric], percent=percent, change=change)
    return dataclasses.replace(comparison, deltas={comparison.metric: delta})


def test_the_limit_itself_is_no_violation():
    slower = probe.compare_reports(BASELINE, SLOWER)
    assert probe.regression_violation(in_two_times(slower, 5.0), 5.0) is None
    assert probe.regression_violation(in_two_times(slower, 5.1), 5.0).found == f"{slower.metric.value} +5.1 %"
    assert probe.regression_violation(in_two_times(slower, None, 1_234.5), 5.0).found.endswith(" +1,234.5 ms")
    faster = probe.compare_reports(BASELINE, make_report(factors=(0.8, 0.81, 0.79)))
    assert probe.regression_violation(in_two_times(faster, 5.1), 5.0) is None


def test_at_most_twelve_samples_of_an_arm_are_listed():
    many = make_report(factors=(1.2,) * 14)
    values, _ = probe.regression_violation(probe.compare_reports(BASELINE, many), 0.0).evidence
    assert values.rpartition("candidate ")[2].count(", ") == 11


def test_too_few_samples_leave_the_limit_undecided():
    slower = probe.compare_reports(BASELINE, make_report(factors=(1.3,)))
    assert probe.undecided_regression(slower, 5.0) == f"--max-regression 5 cannot be decided: {slower.why}"
    assert probe.undecided_regression(in_two_times(slower, 5.1), 5.0) is not None
    assert probe.undecided_regression(in_two_times(slower, 5.0), 5.0) is None
    assert probe.undecided_regression(in_two_times(slower, None), 5.0) is None
    inside = dataclasses.replace(slower.deltas[slower.metric], outside_band=False)
    assert probe.undecided_regression(dataclasses.replace(slower, deltas={slower.metric: inside}), 5.0) is None
    assert probe.undecided_regression(dataclasses.replace(slower, metric=None), 5.0) is None
    supported = probe.compare_reports(BASELINE, SLOWER)
    assert probe.undecided_regression(supported, 5.0) is None


def test_the_first_exit_code_in_the_order_wins():
    order = [int(code) for code in probe.ExitCode]
    assert order == [130, 143, 124, 70, 2, 10, 4, 3, 1, 6, 5, 0]
    documented = [line.split()[0] for line in probe.__doc__.partition("Exit codes")[2].splitlines()[1:] if line.strip()]
    assert [int(word) for word in documented] == order
    assert probe.winning_exit_code([probe.ExitCode.OK, probe.ExitCode.EVIDENCE_MISSING, probe.ExitCode.REGRESSION]) == 1
    assert probe.winning_exit_code([]) == 0


def test_a_missing_baseline_is_one_sentence(tmp_path, capsys):
    assert probe.main(["compare", str(tmp_path / "none.json"), str(tmp_path / "none.json")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["-1", "x", "nan", "inf"])
def test_a_limit_that_is_no_percentage_is_refused(text, capsys):
    assert probe.main(["compare", "a.json", "b.json", f"--max-regression={text}"]) == 2
    assert "percentage" in capsys.readouterr().err
