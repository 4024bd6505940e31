"""--set and what-if: options of Warp set from outside, and the ledger of what each buys."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest
import warp_compile_probe as probe
from builders import SITE, launches, load, phases, process, report, run, sample
from conftest import PROGRAMS, SCRIPT
from report_builder import change, make_report

# -- values ---------------------------------------------------------------------------------------------------------

VALUES = [
    ("bool", "True", True),
    ("bool", "False", False),
    ("int", "-3", -3),
    ("float", "0.5", 0.5),
    ("int | None", "None", None),
    ("int | None", "2", 2),
    ("Optional[int]", "None", None),
    ("str", "debug", "debug"),
    ("str", "7", "7"),
    ("str | None", "None", None),
    ("str | None", "ptx", "ptx"),
    ("bool | None", "True", True),
    (bool, "True", True),
    (None, "3", 3),
]


@pytest.mark.parametrize(("annotation", "text", "value"), VALUES)
def test_values_take_the_type_of_the_option(annotation, text, value):
    kinds = probe.option_kinds(annotation) or {"int"}
    found = probe.option_value(kinds, {}, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        ("bool", "1", "True or False"),
        ("bool", "true", "True or False"),
        ("bool", "None", "True or False"),
        ("int", "True", "an integer"),
        ("int", "x", "an integer"),
        ("int | None", "2.5", "an integer"),
    ],
)
def test_a_value_of_another_type_is_refused(annotation, text, expected):
    with pytest.raises(ValueError, match=f"expected {expected}.*, found {text}"):
        probe.option_value(probe.option_kinds(annotation), {}, text)


def test_members_of_an_enum_go_by_name():
    assert probe.option_value({"Mode"}, {"FAST": 7}, "FAST") == 7
    with pytest.raises(ValueError, match="expected FAST, found SLOW"):
        probe.option_value({"Mode"}, {"FAST": 7}, "SLOW")


# -- measure --set ---------------------------------------------------------------------------------------------------

FAKE_CONFIG = """
version: str = "9.9"
enable_backward: bool = True
max_unroll: int = 16
mode: str = "release"
"""


@pytest.fixture
def fake_warp(tmp_path):
    """A folder with a package `warp` that has a configuration and nothing else."""
    (tmp_path / "warp").mkdir()
    (tmp_path / "warp" / "__init__.py").write_text("")
    (tmp_path / "warp" / "config.py").write_text(FAKE_CONFIG)
    return tmp_path


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("enable_backwards=False", "did you mean enable_backward?"),
        ("nothing_like_it=1", "no such option"),
        ("max_unroll=few", "expected an integer, found few"),
        ("enable_backward=0", "expected True or False, found 0"),
        ("enable_backward", "expected NAME=VALUE"),
        ("_private=1", "a name of warp.config"),
        ("kernel_cache_dir=/tmp/x", "private cache"),
    ],
)
def test_what_cannot_be_set_is_told_before_anything_runs(measure, fake_warp, item, words):
    options = ("--samples", "1", "--set", item)
    measured = measure.command([sys.executable, "-c", "print(1)"], options=options, cwd=fake_warp, expect=2)
    assert words in measured.stderr
    assert len(measured.stderr.strip().splitlines()) == 1
    assert measured.document is None


def test_the_name_may_be_written_in_full():
    assert probe.config_assignment("warp.config.max_unroll=4") == ("max_unroll", "4")


def test_a_program_without_warp_has_nothing_to_set(measure):
    options = ("--samples", "1", "--set", "max_unroll=4")
    measured = measure.command(["env", sys.executable, "-c", "print(1)"], options=options)
    assert measured.report.options.set == {"max_unroll": "4"}
    assert [notice.name for notice in measured.report.warnings] == ["set-without-effect"]


@pytest.mark.warp(since="1.10")
def test_an_option_that_only_the_run_can_refuse_makes_it_invalid(measure):
    # The shell hides from the probe which Python, and so which Warp, it starts.
    command = ["sh", "-c", f"exec {measure.target.python} -c 'import warp'"]
    options = ("--samples", "1", "--set", "no_such_option=1")
    measured = measure.command(command, options=options, expect=2)
    assert "no such name" in measured.stderr
    assert [one.complete for one in measured.report.samples] == [False]
    assert "option-not-set" in [notice.name for notice in measured.report.warnings]
    verdict = probe.compare_reports(measured.report, measured.report)
    assert verdict.verdict is probe.Verdict.INVALID


@pytest.mark.warp(since="1.10")
def test_a_later_assignment_of_the_program_wins_and_is_told(measure, target_python):
    code = "import warp as wp; wp.config.max_unroll = 8; print(wp.config.max_unroll, wp.config.mode)"
    options = ("--samples", "1", "--set", "max_unroll=4", "--set", "mode=debug", "--echo")
    measured = measure.command([target_python, "-c", code], options=options)
    assert "8 debug" in measured.stderr
    (notice,) = [notice for notice in measured.report.warnings if notice.name == "set-overridden"]
    assert notice.text.startswith("--set max_unroll=4: the program assigned 8 later")
    (event,) = [e for e in measured.report.samples[0].cold.processes[0].config_events if e.name == "max_unroll"]
    assert (event.before, event.after) == ("4", "8")


# -- receipts ----------------------------------------------------------------------------------------------------------


def with_options(options, seed="a", name="sim", assigned=None, **given):
    """A report of one module that was built with these resolved options."""
    events = () if assigned is None else (probe.ConfigEvent("max_unroll", "4", assigned, 1.0, SITE),)
    one = process([load(name, seed, option_set=0)], option_sets=(options,), config_events=events)
    made = report(sample(run(one)))
    return change(made, varied=(probe.Varied.SET,), **given)


RECEIPTS = {
    "moved": ({"max_unroll": "4"}, "b", None, "moved", ""),
    "that value before": ({"max_unroll": "16"}, "a", None, "had-that-value", "it was 16 before"),
    "an option of the module": ({"max_unroll": "2"}, "a", None, "module-option", "says 2"),
    "assigned later": ({"max_unroll": "8"}, "b", "8", "assigned-later", "/work/app/sim.py:42"),
    "not hashed": ({"mode": "release"}, "a", None, "not-in-hash", "does not hash"),
    "hashed, to no effect": ({"max_unroll": "4"}, "a", None, "unknown", "the option arrived, and the hash is the same"),
    "not seen": ({}, "a", None, "unknown", "the options of this module were not seen"),
}


@pytest.mark.parametrize("case", RECEIPTS)
def test_the_receipt_says_why_a_hash_did_not_move(case):
    options, seed, assigned, outcome, words = RECEIPTS[case]
    value = "16" if outcome == "had-that-value" else "4"
    baseline = with_options({"max_unroll": "16"})
    candidate = with_options(options, seed, assigned=assigned, set={"max_unroll": value})
    comparison = probe.compare_reports(baseline, candidate)
    (receipt,) = comparison.receipts
    assert (receipt.option, receipt.value, receipt.module) == ("max_unroll", value, "sim")
    assert receipt.outcome.value == outcome
    assert words in receipt.detail
    text = probe.render_comparison(comparison, probe.TextFormat.TEXT)
    assert f"max_unroll={value}" in text
    assert outcome in text


@pytest.mark.parametrize(
    ("shown", "text", "same"),
    [
        ("False", "False", True),
        ("'debug'", "debug", True),
        ("<DeterministicMode.RUN_TO_RUN: 1>", "RUN_TO_RUN", True),
        ("<DeterministicMode.RUN_TO_RUN: 1>", "RUN", False),
        ("16", "1", False),
    ],
)
def test_values_are_recognised_by_their_repr(shown, text, same):
    assert probe.shows_value(shown, text) is same


# -- levers ------------------------------------------------------------------------------------------------------------


def program(*, unrolled=1, tapes=0, adjoint=False, symbols=(), options=None, builds=True):
    """The report of a program of one module, or of none."""
    lto = tuple(probe.LtoArtifact(symbol, 10, 5.0) for symbol in symbols)
    built = load("sim", option_set=0, kernels=(0,), lto=lto, phases=phases(100.0))
    kernel = probe.BuiltKernel("k", SITE, False, False, True, unrolled)
    ran = launches({("k", "sim", "a", "cpu", 1): 1})
    ran = dataclasses.replace(ran, entries=tuple(dataclasses.replace(entry, adjoint=adjoint) for entry in ran.entries))
    default = {
        "enable_backward": "True",
        "max_unroll": "16",
        "optimization_level": "None",
        "enable_mathdx_gemm": "True",
    }
    one = process(
        [built] if builds else [],
        option_sets=({**default, **(options or {})},),
        built_kernels=(kernel,),
        tapes=tapes,
        launches=ran,
    )
    return report(sample(run(one)))


SKIPPED = {
    "nothing is built": ("max_unroll=4", program(unrolled=9, builds=False), "builds no module"),
    "the value already": ("enable_backward=False", program(options={"enable_backward": "False"}), "False already"),
    "a tape": ("enable_backward=False", program(tapes=1), "computes gradients"),
    "an adjoint launch": ("enable_backward=False", program(adjoint=True), "computes gradients"),
    "no gradients": ("enable_backward=False", program(), None),
    "no loops": ("max_unroll=4", program(), "no kernel repeats"),
    "short loops": ("max_unroll=4", program(unrolled=4), "more than 4 times"),
    "long loops": ("max_unroll=4", program(unrolled=5), None),
    "no link-time optimisation": ("enable_mathdx_gemm=False", program(), "no gemm code"),
    "gemm": ("enable_mathdx_gemm=False", program(symbols=["dot_8_8_8"]), None),
    "only fft": ("enable_mathdx_gemm=False", program(symbols=["fft_8"]), "no gemm code"),
    "fft": ("enable_mathdx_fft=False", program(symbols=["fft_8"]), None),
    "a solver": ("enable_mathdx_solver=False", program(symbols=["potrf_8"]), None),
    "no solver": ("enable_mathdx_solver=False", program(symbols=["dot_8", "fft_8"]), "no solver code"),
    "a level": ("optimization_level=1", program(), None),
    "an unknown one": ("use_magic=True", program(), "has no such option"),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_levers_that_cannot_matter_are_skipped(case):
    item, made, words = SKIPPED[case]
    (lever,) = probe.parse_levers([item])
    known = {one.name: "bool" for one in probe.DEFAULT_LEVERS}
    reason = probe.reason_to_skip(lever, made, known)
    assert (reason is None) if words is None else (words in reason)


def test_levers_are_named_in_one_or_several_options():
    assert probe.parse_levers([]) == probe.DEFAULT_LEVERS
    levers = probe.parse_levers(["max_unroll=2,mode=debug", "max_unroll=2"])
    assert [lever.text for lever in levers] == ["max_unroll=2", "mode=debug"]
    with pytest.raises(probe.InputError, match="NAME=VALUE"):
        probe.parse_levers(["max_unroll"])


@pytest.mark.parametrize("lever", probe.DEFAULT_LEVERS, ids=lambda lever: lever.name)
def test_every_lever_says_what_it_risks(lever):
    row = probe.ledger_row(lever)
    assert f"warp.config.{lever.name} = {lever.value}" in row.take
    assert row.take_back
    asks = {"max_unroll", "optimization_level", "enable_mathdx_gemm", "enable_mathdx_solver", "enable_mathdx_fft"}
    assert (row.risk == "may change numerics or speed: ask first") is (lever.name in asks)


def test_a_lever_that_nobody_knows_is_asked_for_first_and_written_as_python():
    row = probe.ledger_row(probe.Lever("mode", "debug"))
    assert row.risk == "may change numerics or speed: ask first"
    assert 'warp.config.mode = "debug" ' in row.take


# -- the ledger --------------------------------------------------------------------------------------------------------


def ledger(*rows):
    made = make_report()
    return probe.Ledger(
        probe.LEDGER_SCHEMA, 1, "0", made.command, made.cwd, 3, made.environment, rows, (probe.Notice("quiet", "fine"),)
    )


def tried(name, factors):
    varied = (probe.Varied.SET,)
    after = make_report(factors=factors, set={name: "1"}, varied=varied)
    return probe.ledger_row(probe.Lever(name, "1"), probe.compare_reports(make_report(varied=varied), after))


@pytest.mark.parametrize("style", [probe.TextFormat.TEXT, probe.TextFormat.MARKDOWN])
def test_the_ledger_says_before_after_and_verdict(style):
    rows = [
        tried("max_unroll", (0.5, 0.51, 0.49)),
        tried("mode", (1.0, 1.01, 0.99)),
        probe.ledger_row(probe.Lever("a_lever", "1"), skipped="it cannot matter"),
        probe.ledger_row(probe.Lever("b_lever", "1"), failed="the command ended with exit code 1"),
    ]
    text = probe.render_ledger(ledger(*rows), style).replace("\\", "")
    for words in (
        "4 levers, 2 measured, 3 samples an arm: max_unroll=1 improved the cold start.",
        "4,000 to 2,000",
        "1,002 to 1,002",
        "3, 3",
        "0 of 1",
        "it cannot matter",
        "failed: the command ended with exit code 1",
        "may change numerics or speed: ask first",
        "take: warp.config.max_unroll = 1",
        "take back: delete that line",
    ):
        assert words in text
    assert ("| lever |" in text) is (style is probe.TextFormat.MARKDOWN)


def test_the_ledger_is_bounded():
    rows = [tried(f"lever_{index}", (1.0, 1.01, 0.99)) for index in range(60)]
    text = probe.render_ledger(ledger(*rows), probe.TextFormat.TEXT)
    assert len(text) <= probe.TEXT_CHARACTERS
    assert len(text.splitlines()) <= probe.TEXT_LINES
    assert "... and 48 more in --json FILE" in text


def what_if(measure, tmp_path, options, command, cwd=None, expect=0):
    argv = [sys.executable, str(SCRIPT), "what-if", "--json", str(tmp_path / "ledger.json"), *options, "--", *command]
    done = subprocess.run(
        argv, check=False, cwd=cwd or tmp_path, env=measure.environment({}), capture_output=True, text=True
    )
    assert done.returncode == expect, f"{done.stdout}\n{done.stderr}"
    return done


def test_a_program_that_builds_nothing_needs_one_sample(measure, tmp_path):
    done = what_if(measure, tmp_path, ["--samples", "1"], [sys.executable, "-c", "print(1)"])
    document = json.loads((tmp_path / "ledger.json").read_text())
    assert document["schema"] == "warp-compile-probe/what-if"
    assert {row["skipped"] for row in document["rows"]} == {"the program builds no module"}
    assert len(document["rows"]) == len(probe.DEFAULT_LEVERS)
    assert "none was shown to improve" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--levers", "max_unroll"], "NAME=VALUE"),
        (["--levers", "max_unroll=4", "--set", "max_unroll=4"], "every lever is set already"),
        (["--format", "github"], "github"),
    ],
)
def test_usage(measure, tmp_path, options, words):
    command = ["env", sys.executable, "-c", "print(1)"]
    assert words in what_if(measure, tmp_path, options, command, expect=2).stderr


def test_a_baseline_that_fails_ends_it(measure, tmp_path):
    done = what_if(measure, tmp_path, [], [sys.executable, "-c", "raise SystemExit('no such scene')"], expect=10)
    assert "baseline, sample 1, cold run" in done.stderr
    assert "  | no such scene" in done.stderr


class Arm:
    """A measurer that takes nothing, notes in which order it was asked, and may fail once."""

    def __init__(self, name, asked, fails_at=0):
        self.name = name
        self.asked = asked
        self.fails_at = fails_at

    def sample(self, index):
        self.asked.append(f"{self.name}{index}")
        if index == self.fails_at:
            raise probe.InputError(f"sample {index} failed")


def test_rounds_go_to_and_fro_and_a_lever_that_fails_is_left_out_of_the_rest(capsys):
    asked = []
    one, other = probe.Lever("max_unroll", "4"), probe.Lever("fast_math", "True")
    failed = {}
    arms = {one: Arm("one ", asked, fails_at=2), other: Arm("other ", asked)}
    probe.take_rounds(Arm("baseline ", asked), arms, failed, 3)
    assert asked == ["one 1", "other 1", "other 2", "one 2", "baseline 2", "baseline 3", "other 3"]
    assert failed == {one: "sample 2 failed"}
    assert capsys.readouterr().err == "warp-compile-probe: sample 2 failed\n"


@pytest.mark.warp(since="1.13")
def test_the_ledger_of_a_real_program(measure, tmp_path, target_python):
    options = ["--samples", "1", "--levers", "enable_backward=False,max_unroll=4", "--json-dir", "arms"]
    done = what_if(measure, tmp_path, options, [target_python, PROGRAMS / "simple.py"])
    taken, skipped = json.loads((tmp_path / "ledger.json").read_text())["rows"]
    assert taken["comparison"]["verdict"] == "inconclusive"
    assert [item["outcome"] for item in taken["comparison"]["receipts"]] == ["moved"]
    assert taken["comparison"]["output"]["state"] == "same"
    assert "no kernel repeats" in skipped["skipped"]
    assert "1 of 1" in done.stdout
    assert sorted(path.name for path in (tmp_path / "arms").iterdir()) == [
        "baseline.json",
        "enable_backward=False.json",
    ]
