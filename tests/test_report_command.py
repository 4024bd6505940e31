"""`report`: a saved report in every form; `measure --trace`: a trace of what is being measured."""

from __future__ import annotations

import json
import os
import sys

import pytest
import warp_compile_probe as probe
from builders import full_report
from conftest import SCRIPT
from test_page import checked_page
from test_trace import checked_trace


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(probe.json_document(full_report()), encoding="utf-8")
    return path


def call(capsys, *arguments):
    """Calls the probe; returns exit code, standard output, standard error."""
    code = probe.main([str(one) for one in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize("style", list(probe.ReportFormat))
def test_every_form_goes_to_standard_output_or_a_file(capsys, tmp_path, saved, style):
    code, text, said = call(capsys, "report", saved, "--format", style.value)
    assert (code, said) == (0, "")
    path = tmp_path / "output"
    assert call(capsys, "report", saved, "--format", style.value, "--output", path) == (0, "", "")
    assert path.read_text(encoding="utf-8") == text
    assert call(capsys, "report", saved, "--format", style.value, "--output", "-") == (0, text, "")


def test_the_forms_are_what_they_say(capsys, saved):
    shown = {style: call(capsys, "report", saved, "--format", style.value)[1] for style in probe.ReportFormat}
    assert shown[probe.ReportFormat.TEXT] == probe.render_report(full_report(), saved_to=str(saved))
    assert shown[probe.ReportFormat.MARKDOWN] == probe.render_markdown(full_report())
    assert shown[probe.ReportFormat.JSON] == saved.read_text(encoding="utf-8")
    assert shown[probe.ReportFormat.GITHUB].startswith("::warning ")
    checked_page(shown[probe.ReportFormat.HTML])
    checked_trace(json.loads(shown[probe.ReportFormat.TRACE]))


def test_text_is_the_form_without_a_word(capsys, saved):
    assert call(capsys, "report", saved) == call(capsys, "report", saved, "--format", "text")


def test_json_that_differs_only_in_its_layout_is_written_as_measure_writes_it(capsys, saved):
    original = saved.read_text(encoding="utf-8")
    saved.write_text(json.dumps(json.loads(original)), encoding="utf-8")
    assert call(capsys, "report", saved, "--format", "json") == (0, original, "")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "the file is empty"),
        ("{", "not JSON"),
        ('{"schema": "other"}', "not a probe report"),
        ('{"schema": "warp-compile-probe/report", "schema_version": 2}', "report of schema version 2"),
        ('{"schema": "warp-compile-probe/report", "schema_version": 1}', "is missing"),
    ],
)
def test_what_is_no_report_is_refused(capsys, saved, content, expected):
    saved.write_text(content, encoding="utf-8")
    code, text, said = call(capsys, "report", saved, "--format", "html")
    assert (code, text) == (2, "")
    assert said.count("\n") == 1
    assert expected in said


def test_a_missing_file_is_refused(capsys, tmp_path):
    code, _, said = call(capsys, "report", tmp_path / "missing.json")
    assert code == 2
    assert "cannot be read" in said


def test_the_report_itself_is_not_overwritten(capsys, saved):
    before = saved.read_bytes()
    code, _, said = call(capsys, "report", saved, "--output", saved)
    assert code == 2
    assert said.startswith("warp-compile-probe: --output ")
    assert saved.read_bytes() == before


def test_an_output_that_cannot_be_written_is_one_sentence(capsys, saved, tmp_path):
    code, _, said = call(capsys, "report", saved, "--output", tmp_path / "missing" / "page.html")
    assert code == 2
    assert "cannot be written" in said


def test_the_script_alone_can_do_it(saved, tmp_path):
    path = tmp_path / "page.html"
    assert (
        os.spawnv(
            os.P_WAIT, str(SCRIPT), [str(SCRIPT), "report", str(saved), "--format", "html", "--output", str(path)]
        )
        == 0
    )
    checked_page(path.read_text(encoding="utf-8"))


# -- measure --trace --------------------------------------------------------------------------------------------------


def test_measure_writes_a_trace(measure, tmp_path):
    path = tmp_path / "trace.json"
    measured = measure("no_warp.py", options=["--samples", "1", "--trace", path])
    events = checked_trace(json.loads(path.read_text(encoding="utf-8")))
    assert path.read_text(encoding="utf-8") == probe.render_trace(measured.report)
    assert [event["args"]["name"].partition(",")[0] for event in events if event["name"] == "process_name"] == [
        "cold run",
        "warm run",
    ]


def test_a_relative_path_is_where_the_probe_was_started(measure, tmp_path):
    measure("no_warp.py", options=["--samples", "1", "--trace", "trace.json"], cwd=tmp_path)
    assert (tmp_path / "trace.json").exists()


def test_a_run_that_fails_leaves_its_trace(measure, tmp_path):
    path = tmp_path / "trace.json"
    measure.command([sys.executable, "-c", "raise SystemExit(3)"], options=["--trace", path], expect=10)
    (name,) = (
        event["args"]["name"]
        for event in checked_trace(json.loads(path.read_text(encoding="utf-8")))
        if event["name"] == "process_name"
    )
    assert name.startswith("cold run, process 0: ")


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("-", "report FILE --format trace"),
        (".", "is a directory"),
        ("missing/trace.json", "cannot write there"),
        ("report.json", "is the file of --json"),
        ("./other/../report.json", "is the file of --json"),
    ],
)
def test_a_trace_that_cannot_be_written_is_refused_before_anything_runs(capsys, tmp_path, monkeypatch, trace, expected):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    code, _, said = call(capsys, "measure", "--json", "report.json", "--trace", trace, "--", "touch", "ran")
    assert code == 2
    assert said.startswith("warp-compile-probe: --trace ")
    assert expected in said
    assert not (tmp_path / "ran").exists()
