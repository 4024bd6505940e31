"""--format: Markdown and annotations of reports and comparisons."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import warp_compile_probe as probe
from builders import full_report, load, process, report, run, sample
from conftest import ROOT, SCRIPT
from report_builder import Module, Proc, change, make_report

HOSTILE = "a|b `c` <script> [x](y) @team\n::error::owned\r\n100% 50,5: \x1b[31mred"


def finding(**changes):
    values = {
        "mechanism": "CS-1",
        "kind": probe.FindingKind.REDUNDANT,
        "module": "sim",
        "device": "cpu",
        "block_dim": 1,
        "cost_ms": 1234.0,
        "avoidable_ms": 1000.0,
        "evidence": ("build 2 of 2",),
        "where": probe.Site("/work/app/src/sim.py", 42, "main"),
        "text": "sim was built twice.",
        "see": None,
    }
    return probe.Finding(**{**values, **changes})


def with_findings(*found):
    return dataclasses.replace(report(sample(run(process([load()])))), findings=found)


def commands(text):
    """The workflow commands in a text: (level, properties, message), decoded as the runner does."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        if match:
            level, properties, message = match.groups()
            pairs = dict(pair.split("=", 1) for pair in properties.split(",") if pair)
            decoded = {name: decode(value, {"%3A": ":", "%2C": ","}) for name, value in pairs.items()}
            found.append((level, decoded, decode(message, {})))
    return found


def decode(text, more):
    for code, character in {**more, "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        text = text.replace(code, character)
    return text


def annotate(made, violations=(), here=""):
    return probe.render_annotations(probe.report_annotations(made, violations), [], here)


def test_a_finding_is_annotated_at_its_file_and_line():
    hint = finding(mechanism="CS-10", kind=probe.FindingKind.HINT, where=None, avoidable_ms=None, text="unused")
    redundant, other = commands(annotate(with_findings(finding(), hint)))
    assert redundant == (
        "warning",
        {"file": "src/sim.py", "line": "42", "title": "CS-1"},
        "sim was built twice. (cost 1.23 s, 1.00 s avoidable)",
    )
    assert other == ("notice", {"title": "CS-10"}, "unused (cost 1.23 s)")


@pytest.mark.parametrize(
    ("file", "here", "expected"),
    [
        ("/work/app/src/sim.py", "/work", "app/src/sim.py"),
        ("/work/app/src/sim.py", "/other", "src/sim.py"),
        ("/usr/lib/sim.py", "/other", None),
        ("/work/application/sim.py", "", None),
        ("src/sim.py", "/other", "src/sim.py"),
    ],
)
def test_files_are_relative(file, here, expected):
    made = with_findings(finding(where=probe.Site(file, 7, "main")))
    ((_, properties, _),) = commands(annotate(made, here=here))
    assert properties.get("file") == expected
    assert ("line" in properties) is (expected is not None)


def test_what_a_program_names_cannot_forge_a_command():
    made = with_findings(finding(text=HOSTILE, where=probe.Site(f"/work/app/{HOSTILE}", 1, "f")))
    lines = annotate(made).splitlines()
    assert len(lines) == 1
    ((level, properties, message),) = commands(lines[0])
    assert level == "warning"
    assert message.startswith(HOSTILE.replace("\x1b", "\\x1b"))
    assert properties["file"] == HOSTILE.replace("\x1b", "\\x1b")
    plain = probe.render_annotations([], ["::error::owned", "fine"], "")
    assert commands(plain) == []


def test_violations_are_errors_and_are_not_said_twice():
    made = with_findings(finding())
    violations = probe.gate_violations(made, probe.Gates({probe.Gate.BUILDS: 0}, ("CS-1",)))
    found = commands(annotate(made, violations))
    assert [level for level, _, _ in found] == ["error", "error"]
    assert found[0][1]["title"] == "gate exceeded: --max-builds 0"
    assert found[0][2].startswith("1 build, at most 0 allowed\nsim on cpu")
    assert found[1][1] == {"file": "src/sim.py", "line": "42", "title": "gate exceeded: --fail-on CS-1"}


def test_annotations_are_bounded_and_the_hidden_ones_counted():
    made = with_findings(*(finding(text=f"number {index}") for index in range(100)))
    found = commands(annotate(made))
    assert len(found) == probe.MAX_ANNOTATIONS + 1
    assert f"and {100 - probe.MAX_ANNOTATIONS} more" in found[-1][2]


def test_a_comparison_annotates_its_verdict_and_new_findings():
    baseline = make_report()
    candidate = change(make_report(factors=(1.2, 1.21, 1.19)), findings=(finding(),), cwd="/work/app")
    comparison = probe.compare_reports(baseline, candidate)
    found = commands(probe.render_comparison(comparison, probe.TextFormat.GITHUB))
    assert found[0][:2] == ("error", {"title": "Warp compile time: regressed"})
    assert found[1][1] == {"file": "src/sim.py", "line": "42", "title": "CS-1"}
    gone = probe.compare_reports(candidate, baseline)
    found = commands(probe.render_comparison(gone, probe.TextFormat.GITHUB))
    assert [(level, properties["title"]) for level, properties, _ in found] == [
        ("notice", "Warp compile time: improved")
    ]


def many_modules(count):
    return make_report(Proc(modules=tuple(Module(f"m{index}", str(index), ms=50.0) for index in range(count))))


@pytest.mark.parametrize("made", [full_report(), many_modules(200), report(), with_findings(finding())])
def test_markdown_is_bounded(made):
    text = probe.render_markdown(made)
    assert len(text.splitlines()) <= probe.TEXT_LINES
    assert len(text) <= probe.TEXT_CHARACTERS


def test_markdown_counts_hidden_rows():
    assert f"... and {200 - probe.MAX_TABLE_ROWS} more in --json FILE" in probe.render_markdown(many_modules(200))


def test_markdown_shows_a_program_s_words_as_they_are():
    text = probe.render_markdown(with_findings(finding(text=HOSTILE)))
    (row,) = [line for line in text.splitlines() if "CS-1" in line]
    assert "<script>" not in text
    assert re.search(r"(?<!\\)`c", text) is None
    assert "@team" not in text
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == 8


def test_markdown_shows_paths_from_the_program_s_directory_whatever_its_name():
    made = dataclasses.replace(
        with_findings(finding(where=probe.Site("/work/my_app/sim.py", 42, "main"))), cwd="/work/my_app"
    )
    assert "| sim.py:42 in main |" in probe.render_markdown(made)


def test_markdown_says_what_the_text_says():
    made = with_findings(finding())
    text = probe.render_markdown(made, probe.gate_violations(made, probe.Gates({probe.Gate.BUILDS: 0})))
    for words in ("Cold start", "GATE EXCEEDED", "--max-builds 0", "Findings: 1 redundant, 0 hints", "| builds |"):
        assert words in text
    assert "src/sim.py:42" in text
    assert "/work/app" not in text


IDLE = [sys.executable, "-c", "print('idle')"]


@pytest.mark.parametrize("style", [style.value for style in probe.TextFormat])
def test_measure_writes_every_format(measure, style):
    measured = measure.command(IDLE, options=("--samples", "1", "--format", style))
    assert measured.stdout.strip()
    assert measured.stdout.startswith("**") is (style == "markdown")
    assert measured.document["samples"]


def test_an_unknown_format_is_refused(measure):
    measured = measure.command(IDLE, options=("--format", "html"), expect=2)
    assert "html" in measured.stderr


def test_json_is_the_same_in_every_format(tmp_path, capsys):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(probe.to_json(make_report())))
    documents = []
    for style in probe.TextFormat:
        assert probe.main(["compare", str(path), str(path), "--format", style.value, "--json", "-"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["verdict"] == "unchanged"
    assert all(document == documents[0] for document in documents)


# -- the workflow of README --------------------------------------------------------------------------------------------


def workflow():
    """The lines of the workflow in README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^<!-- workflow -->\n```yaml\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    return block.splitlines()


@pytest.fixture
def scratch(tmp_path):
    """A clone of a repository with a program, a test, the script in tools/, and a commit that origin does not have."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"

    def git(folder, *words):
        identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)

    (origin / "tools").mkdir(parents=True)
    shutil.copy(SCRIPT, origin / "tools")
    (origin / "my_program.py").write_text("print('old')\n")
    (origin / "test_it.py").write_text("def test_it():\n    assert True\n")
    git(origin, "init", "--quiet", "--initial-branch", "main")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "first")
    git(tmp_path, "clone", "--quiet", origin, clone)
    (clone / "my_program.py").write_text("print('new')\n")
    git(clone, "commit", "--quiet", "--all", "-m", "second")
    return clone


@pytest.mark.skipif(shutil.which("git") is None or shutil.which("bash") is None, reason="no git or no bash")
def test_the_workflow_of_readme_runs(measure, scratch, tmp_path):
    lines = workflow()
    assert len(lines) == 10
    steps = [line.partition("- run: ")[2] for line in lines if "- run: " in line]
    assert steps[0].startswith("pip install")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    summary = tmp_path / "summary.md"
    path = os.pathsep.join((str(python.parent), os.environ["PATH"]))
    environment = measure.environment({"GITHUB_STEP_SUMMARY": str(summary), "PATH": path})
    codes, outputs = [], []
    for step in steps[1:]:
        done = subprocess.run(
            ["bash", "-e", "-c", step], check=False, cwd=scratch, env=environment, capture_output=True, text=True
        )
        codes.append(done.returncode)
        outputs.append(done.stdout)
    # By chance a few runs without any build in a hundred differ enough to be called a regression (6), or to leave open
    # whether it is one (5).
    assert codes[0] == 0
    assert codes[1] in (0, 5, 6)
    assert "Nothing went unseen" in outputs[0]
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("**")
    assert "tree origin/main against" in text.replace("\\", "")
    assert "differs between the reports, from line 1 of the cold run on" in text
