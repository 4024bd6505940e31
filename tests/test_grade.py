"""The grader: points out of reports and checks, config.yml, and one small fixture graded for real."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import sys
import time
from pathlib import Path

import grade
import pytest
import warp_compile_probe as probe
from conftest import is_alive
from report_builder import Launch, Module, Proc, change, make_report

EVALS = Path(__file__).resolve().parent / "evals"
FIGURES = {"values": (1.0, -2.0)}
CHECK = grade.Check(FIGURES, {"loss": (0.5,)}, {"isolated": True})
FILES = {"README.md": "a", "src/app/__init__.py": "b"}
LATE = Proc(modules=(Module("app", "a"), Module("app", "b", ms=900.0), Module("lib", "x")))
FIXED = Proc(modules=(Module("app", "b"), Module("lib", "x")))


def config(**fields):
    plain = {"summary": "s", "command": ["python", "-m", "app"]}
    return grade.read_fixture("f", {**plain, **fields}, {"samples": 1, "timeout_s": 9, "rtol": 1e-5, "atol": 1e-6})


def point(**rule):
    return {"id": "p", "on": "cpu", **rule}


def seen(report, check=CHECK, files=FILES, failure=None):
    return grade.Seen(report, failure, check, files)


def points_of(fixture, baseline, candidate, *, offline=True):
    return grade.make_grade(fixture, "candidate", baseline, candidate, offline=offline).points


def statuses(fixture, baseline, candidate, *, offline=True):
    return {item.id: item.status.value for item in points_of(fixture, baseline, candidate, offline=offline)}


def rule_holds(rule, baseline, candidate):
    fixture = config(points=[point(**rule)])
    (graded,) = [item for item in points_of(fixture, seen(baseline), seen(candidate), offline=True) if item.id == "p"]
    return graded.status is grade.Status.PASS, graded.evidence


# -- points -----------------------------------------------------------------------------------------------------------


def test_an_unchanged_candidate_passes_what_every_fixture_asks_for():
    ids = [
        "command-succeeds", "topology", "kernel-names", "check-runs", "numeric", "gradients", "trap:isolated",
        "outside-src",
    ]  # fmt: skip
    points = points_of(config(), seen(make_report(LATE)), seen(make_report(LATE)))
    assert [(item.id, item.status.value) for item in points] == [(id_, "pass") for id_ in ids]
    assert "3 launches on cpu" in points[1].evidence


@pytest.mark.parametrize(
    ("rule", "holds", "words"),
    [
        ({"fact": "rebuilds", "at_most": 0}, True, "rebuilds 1 before, 0 after; at most 0"),
        ({"fact": "builds", "at_most": {"baseline": 0.7}}, True, "at most 0.7 times the baseline"),
        ({"fact": "builds", "at_most": {"baseline": 0.5}}, False, "builds 3 before, 2 after"),
        ({"fact": "builds", "at_least": 3}, False, "at least 3"),
        ({"fact": "builds", "at_least": 1, "at_most": 2}, True, "at most 2 and at least 1"),
        ({"hashes_moved": ["lib"]}, False, "lib"),
        ({"hashes_kept": ["lib"]}, True, "lib"),
        ({"hashes_kept": ["app"]}, False, "app"),
        ({"hashes_moved": ["app"]}, False, "must have moved"),  # one of its hashes is still there
        ({"hashes_kept": ["gone"]}, False, "gone not there before, not there after"),
        ({"hashes_moved": ["gone"]}, False, "not there"),
    ],
)
def test_rules(rule, holds, words):
    found, evidence = rule_holds(rule, make_report(LATE), make_report(FIXED))
    assert (found, words in evidence) == (holds, True), evidence


def test_moved_hashes_are_all_others():
    moved = make_report(Proc(modules=(Module("app", "c"), Module("lib", "x"))))
    assert rule_holds({"hashes_moved": ["app"]}, make_report(LATE), moved)[0]
    assert not rule_holds({"hashes_moved": ["app", "lib"]}, make_report(LATE), moved)[0]


def finding(mechanism, kind):
    return probe.Finding(mechanism, kind, "app", "cpu", 1, 9.0, 9.0, (), None, "text", None)


def test_a_finding_must_have_been_there_and_be_gone():
    late = finding("CS-3", probe.FindingKind.REDUNDANT)
    hint = finding("CS-6", probe.FindingKind.HINT)
    with_late, with_hint = (change(make_report(), findings=found) for found in ((late, hint), (hint,)))
    gone, none = {"finding_gone": "CS-3"}, {"findings": "none"}
    assert rule_holds(gone, with_late, with_hint) == (True, "CS-3: CS-3 of app before, none after")
    assert not rule_holds(gone, with_late, with_late)[0]
    assert not rule_holds(gone, with_hint, with_hint)[0]
    assert rule_holds(none, with_late, with_hint)[0]  # a hint is no redundant work
    assert rule_holds(none, with_hint, with_hint)[0]
    assert not rule_holds(none, with_hint, with_late)[0]


def test_another_launch_changes_the_topology():
    dropped = Proc(threads=((Launch(), Launch()),))
    found = statuses(config(), seen(make_report()), seen(make_report(dropped)))
    assert (found["topology"], found["kernel-names"], found["numeric"]) == ("fail", "pass", "pass")


def test_launches_that_were_not_all_seen_are_no_pass():
    blind = make_report(Proc(graph_replays_unknown=1))
    assert statuses(config(), seen(make_report()), seen(blind))["topology"] == "fail"


@pytest.mark.parametrize(
    ("key", "module", "status"),
    [
        ("scale", "other", "pass"),
        ("setup__locals__scale", "program", "pass"),
        ("scale_2", "program", "fail"),
        ("scale__locals__other", "program", "fail"),
    ],
)
def test_a_kernel_keeps_its_name_but_not_its_module(key, module, status):
    moved = Proc(
        threads=((Launch(key, does="scale", module=module), Launch("add"), Launch(key, does="scale", module=module)),)
    )
    found = statuses(config(), seen(make_report()), seen(make_report(moved)))
    assert (found["topology"], found["kernel-names"]) == ("pass", status)


def test_files_outside_src_stay():
    for files, status in (
        ({**FILES, "src/app/__init__.py": "changed", "src/app/new.py": "c", "notes.txt": "d"}, "pass"),
        ({**FILES, "README.md": "changed"}, "fail"),
        ({"src/app/__init__.py": "b"}, "fail"),
    ):
        assert statuses(config(), seen(make_report()), seen(make_report(), files=files))["outside-src"] == status


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"numeric": {"values": (1.000_001, -2.0)}}, set()),
        ({"numeric": {"values": (1.001, -2.0)}}, {"numeric"}),
        ({"numeric": {"values": (1.0,)}}, {"numeric"}),
        ({"numeric": {"values": (math.nan, -2.0)}}, {"numeric"}),
        ({"numeric": {"values": (math.inf, -2.0)}}, {"numeric"}),
        ({"numeric": {}}, {"numeric"}),
        ({"numeric": {**FIGURES, "more": (1.0,)}}, {"numeric"}),
        ({"gradients": {"loss": (0.0,)}}, {"gradients"}),
        ({"gradients": {}}, {"gradients"}),
        ({"traps": {"isolated": False}}, {"trap:isolated"}),
        ({"traps": {}}, {"trap:isolated"}),
        ({"error": "it raised"}, {"check-runs"}),
    ],
)
def test_what_the_check_says(changes, failing):
    candidate = seen(make_report(), check=dataclasses.replace(CHECK, **changes))
    found = statuses(config(), seen(make_report()), candidate)
    assert {id_ for id_, status in found.items() if status == "fail"} == failing


def test_nan_and_infinity_equal_themselves():
    figures = {"values": (math.nan, math.inf)}
    assert grade.compare_figures(figures, figures, 0.0, 0.0)[0]
    assert not grade.compare_figures({"values": (math.inf,)}, {"values": (1.0,)}, 1e-5, 1e-6)[0]


def test_what_a_failed_command_leaves_open_is_not_checked():
    fixture = config(points=[point(fact="rebuilds", at_most=0)])
    found = statuses(fixture, seen(make_report()), seen(None, failure="exit code 1"))
    assert found["command-succeeds"] == "fail"
    assert {found[id_] for id_ in ("topology", "kernel-names", "p")} == {"not checked"}
    assert found["numeric"] == "pass"


@pytest.mark.parametrize(
    "baseline",
    [
        seen(None, failure="exit code 1"),
        seen(make_report(), check=grade.Check(error="no")),
        seen(make_report(), check=grade.Check()),
        seen(make_report(), check=dataclasses.replace(CHECK, traps={"isolated": False})),
    ],
)
def test_a_broken_fixture_is_no_grade(baseline):
    with pytest.raises(grade.GradeError, match=r"^f: "):
        points_of(config(), baseline, seen(make_report()))


# -- points on a CUDA architecture ------------------------------------------------------------------------------------


def with_offline(process, block_dim):
    """A report whose offline block is the report of a process that launches at a block_dim."""
    launches = tuple(dataclasses.replace(launch, device="sm_90", block_dim=block_dim) for launch in process.threads[0])
    modules = tuple(dataclasses.replace(module, device="sm_90", block_dim=block_dim) for module in process.modules)
    block = make_report(dataclasses.replace(process, modules=modules, threads=(launches,)))
    offline = probe.OfflineBlock(
        "13.4", block.coverage, block.samples, block.summary, block.identities, block.findings, block.warnings
    )
    return change(make_report(process), offline={"sm_90": offline})


def test_what_holds_on_the_cpu_may_fail_on_an_architecture():
    fixture = config(offline=["90"], points=[{"id": "p", "on": "sm_90", "fact": "builds", "at_most": 2}])
    baseline, candidate = seen(with_offline(LATE, 128)), seen(with_offline(FIXED, 64))
    found = statuses(fixture, baseline, candidate)
    assert (found["topology"], found["p"]) == ("fail", "pass")
    found = statuses(fixture, baseline, candidate, offline=False)
    assert (found["topology"], found["p"]) == ("pass", "not checked")
    unchecked = [item for item in points_of(fixture, baseline, candidate, offline=False) if item.id == "p"]
    assert [item.line for item in unchecked] == ["not checked (needs CUDA)  p"]


def test_what_only_a_device_can_show_is_said_and_not_checked():
    fixture = config(points=[{"id": "p", "on": "cuda", "text": "The loads overlap."}])
    points = points_of(fixture, seen(make_report()), seen(make_report()))
    assert [item.line for item in points if item.id == "p"] == ["not checked (needs CUDA)  p: The loads overlap."]


# -- solutions --------------------------------------------------------------------------------------------------------


def graded(*failing, unchecked=(), unseen=()):
    points = [grade.decided(False, id_, "cpu", "") for id_ in failing]
    points += [grade.Point(id_, "sm_90", grade.Status.NOT_CHECKED, grade.NEEDS_CUDA) for id_ in unchecked]
    return grade.Grade("f", "s", (*points, grade.decided(True, "numeric", "cpu", "")), {}, unseen)


@pytest.mark.parametrize(
    ("found", "expected", "apart"),
    [
        (graded(), (), True),
        (graded("a"), ("a",), True),
        (graded(), ("a",), False),
        (graded("a", "b"), ("a",), False),
        (graded("a"), (), False),
        (graded("a", unchecked=["b"]), ("a", "b"), True),
        (graded("a", unseen=("sm_90",)), ("a", "topology"), True),
        (graded("a"), ("a", "topology"), False),
    ],
)
def test_a_solution_is_told_apart_by_exactly_the_points_that_must_fail(found, expected, apart):
    told = grade.tell_apart(found, expected)
    assert told.apart is apart
    assert ("NOT told apart" in told.line) is not apart


# -- config.yml and checks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"points": [{"id": "p", True: "cpu", "fact": "builds", "at_most": 1}]}, "in quotes"),
        ({"points": [{"id": "p", "on": "sm_90", "fact": "builds", "at_most": 1}]}, "on is cpu"),
        ({"points": [point(fact="speed", at_most=1)]}, "no fact 'speed'"),
        ({"points": [point(fact="builds")]}, "expected fact with at_most"),
        ({"points": [point(fact="builds", at_most="1")]}, "a limit is a number"),
        ({"points": [point(fact="builds", at_most=True)]}, "a limit is a number"),
        ({"points": [point(findings="some")]}, "expected fact"),
        ({"points": [point(hashes_moved=[])]}, "expected fact"),
        ({"points": [point(findings="none"), point(findings="none")]}, "the same id"),
        ({"points": ["p"]}, "a map with an id"),
        ({"solutions": {"wrong": ["numbers"]}}, "no point 'numbers'"),
        ({"speed": 1}, "unknown"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(fields, words):
    with pytest.raises(grade.GradeError, match=words):
        config(**fields)


@pytest.mark.parametrize("text", ["", "[1]", "fixtures: 3", "{", None])
def test_a_configuration_that_cannot_be_read(tmp_path, text):
    if text is not None:
        (tmp_path / "config.yml").write_text(text)
    with pytest.raises(grade.GradeError, match=r"config\.yml"):
        grade.read_config(tmp_path)


def test_the_last_line_of_a_check_counts():
    check = grade.read_check('Warp 1.19\n{"numeric": {"a": [1, 2.5]}, "trap": {"t": true, "u": 1}}\n\n')
    assert check == grade.Check({"a": (1.0, 2.5)}, {}, {"t": True, "u": False})


@pytest.mark.parametrize(
    "text", ["", "done", "[1]", '{"numeric": {"a": ["x"]}}', '{"numeric": 3}', '{"numeric": {"a": 1}}']
)
def test_a_check_that_says_nothing_is_an_error(text):
    assert "not the JSON object" in (grade.read_check(text).error or "")


# -- running ----------------------------------------------------------------------------------------------------------


def test_what_runs_too_long_ends_with_its_children(tmp_path):
    child = "import time; time.sleep(60)"
    code = (
        f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid, flush=True); {child}"
    )
    start = time.monotonic()
    done = grade.run_bounded(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ, timeout_s=3, into=tmp_path / "out"
    )
    assert (done.timed_out, done.code) == (True, -signal.SIGTERM)
    assert time.monotonic() - start < 30
    deadline = time.monotonic() + 10
    while is_alive(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(done.stdout))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["nope", "."], "no fixture 'nope'; there are t01_tiny"),
        (["t01_tiny", "/nowhere/at/all"], "no such directory"),
        (["t01_tiny"], "expected FIXTURE CANDIDATE_DIR"),
        (["--solutions", "nope"], "no fixture 'nope'"),
        (["t01_tiny", ".", "--python", "/nowhere/python"], "has no Warp"),
    ],
)
def test_bad_input_is_one_sentence(argv, words, target_python, capsys):
    assert grade.main(["--python", target_python, *argv], EVALS) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


@pytest.mark.warp(since="1.10")
@pytest.mark.timeout(900)
def test_the_solutions_of_a_fixture_are_told_apart(target_python, tmp_path, capsys):
    path = tmp_path / "told.json"
    code = grade.main(["--solutions", "--ci", "--python", target_python, "--json", str(path)], EVALS)
    said = capsys.readouterr()
    assert code == 0, f"{said.out}\n{said.err}"
    assert "4 of 4 solutions told apart" in said.out
    document = json.loads(path.read_text())
    failing = {
        item["candidate"]: [point["id"] for point in item["points"] if point["status"] == "fail"]
        for item in document["solutions"]
    }
    assert failing == {
        "noop": ["no-rebuild", "late-kernel-gone"],
        "reference": [],
        "dropped_launch": ["topology", "numeric"],
        "crash": ["command-succeeds", "check-runs"],
    }
    assert len(document["provenance"]["inputs_sha256"]) == 64


@pytest.mark.warp(since="1.10")
@pytest.mark.timeout(900)
def test_a_candidate_is_measured_interleaved_with_its_fixture(target_python, tmp_path, capsys):
    candidate = tmp_path / "candidate"
    grader = grade.Grader(EVALS, target_python, tmp_path)
    fixture = grade.read_config(EVALS)["t01_tiny"]
    grader.stage(grader.files(fixture), "candidate", grader.solution(fixture, "dropped_launch"))
    (candidate / "README.md").write_text("changed")
    kept = tmp_path / "kept"
    argv = ["t01_tiny", str(candidate), "--python", target_python, "--keep", str(kept)]
    assert grade.main(argv, EVALS) == 1
    lines = capsys.readouterr().out.splitlines()
    failing = [line.split(":")[0] for line in lines if line.startswith("fail")]
    assert failing == ["fail  topology", "fail  numeric", "fail  outside-src"]
    arms = [probe.load_report(str(kept / "t01_tiny" / "reports" / f"{arm}.json")) for arm in probe.ARM_NAMES]
    assert [report.options.varied for report in arms] == [(probe.Varied.TREE,)] * 2
    assert [report.summary.rebuilds for report in arms] == [1, 0]
