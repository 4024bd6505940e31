"""BENCHMARK.md: rendered from what was measured and from nothing else, and measured once only."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import benchmark
import grade
import pytest
import simulate_verdicts
import warp_compile_probe as probe
from conftest import ROOT
from report_builder import Module, Proc, make_report

EVALS = Path(__file__).resolve().parent / "evals"
SOURCE = {
    "created": "2026-01-02T03:04:05+00:00", "probe": "0.1.0", "warp": "1.19.0", "python": "3.11.7",
    "machine": "A CPU, 8 cores", "load_average": 0.1, "git_commit": "0" * 40, "git_dirty": False,
    "inputs_sha256": "a" * 64,
}  # fmt: skip


def part(data):
    return {"key": {"inputs_sha256": "a" * 64, "settings": {}, "warp": "1.19.0"}, "provenance": SOURCE, "data": data}


def fixture_data(places=("cpu",)):
    late = Proc(modules=(Module("app", "a"), Module("app", "b", ms=900.0)))
    comparison = probe.compare_reports(make_report(late), make_report(Proc(modules=(Module("app", "b"),))))
    figures = benchmark.comparison_figures(comparison)
    toolkit = {place: "13.4" for place in places if place != "cpu"}
    return {
        "toolkit": toolkit, "report_bytes": [9_000, 8_000], "launches": [3, 3], "same_tree": False,
        "arms": dict.fromkeys(places, figures),
    }  # fmt: skip


def null_data():
    figure = {
        "pooled": {"median": 10.0, "mad": 1.0, "values": [9.0, 11.0]}, "splits": 20, "improved_percent": 0.0,
        "regressed_percent": 5.0, "needed_samples": None,
    }  # fmt: skip
    command = ["python", "-m", "app"]
    return {
        "fixture": "f", "command": command, "samples_an_arm": 5, "effect_percent": 5.0,
        "figures": {"cold_module_ms": figure},
    }  # fmt: skip


def small_state():
    """A state with something of every part."""
    recorded = {"what": "launch", "label": "recorded - bare", "unit": "us", "median": 1.0, "mad": 0.1, "n": 9}
    mechanism = {"mechanism": "CS-1", "found": 3, "missing": 1, "too_many": 0}
    return {
        "corpus": part({"warp": "1.19.0", "programs": 4, "mechanisms": [mechanism]}),
        "false-alarms": part([dataclasses.asdict(row) for row in simulate_verdicts.rows(20)]),
        "fixture-one": part(fixture_data()),
        "fixture-two": part(fixture_data(("cpu", "sm_90"))),
        "null": part(null_data()),
        "recorder": part([{**recorded, "share": 0.1}]),
    }


def structure(text):
    """The headings, with figures left out, and the headers of the tables below them."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines):
        if line.startswith("#"):
            found.append(re.sub(r"\d[\d.]*", "N", line))
        if line.startswith("|---"):
            found.append(lines[number - 1])
    return found


def test_the_benchmark_of_the_repository_is_what_the_generator_writes():
    path = ROOT / "BENCHMARK.md"
    if not path.exists():
        pytest.skip("BENCHMARK.md has not been generated")
    text = path.read_text(encoding="utf-8")
    assert structure(text) == structure(benchmark.render(small_state()))
    fixtures = set(grade.read_config(grade.EVALS))
    assert {name for name in fixtures if f"| {name} |" in text} == fixtures


def test_figures_are_those_of_the_comparison():
    text = benchmark.render(small_state())
    assert "| one | 3, 3 | 4,900 ± 49 | 4,000 ± 40 | -18.4 % |" in text
    assert "improved (cold_module_ms) | 1/20 |" in text
    assert "| one | 2 to 1 | 1 to 0 |" in text
    assert "| the same 3 |" in text
    assert "| CS-1 | 4 | 3 | 0 | 100 % | 75 % |" in text
    assert "### sm_90, compiled without a device (CUDA toolkit 13.4)" in text
    assert "| cold_module_ms | 10 ± 1 | 20 | 0.0 % | 5.0 % | more than 50 |" in text
    assert "| launch: recorded - bare | 1.00 us | 0.10 | 9 | 10.0 % |" in text
    assert "| one | 9,000 | 8,000 |" in text


def test_a_verdict_on_one_tree_taken_twice_is_called_so():
    text = benchmark.render({"fixture-same": part({**fixture_data(), "same_tree": True})})
    assert "| improved (cold_module_ms), the same tree twice |" in text


def test_all_rows_of_a_table_have_its_columns():
    columns = 0
    for line in benchmark.render(small_state()).splitlines():
        if line.startswith("|"):
            assert columns in {0, line.count("|")}, line
            columns = line.count("|")
        else:
            columns = 0


def test_what_was_not_measured_is_not_there():
    state = {name: item for name, item in small_state().items() if name in {"null", "fixture-one"}}
    text = benchmark.render(state)
    assert {line for line in structure(text) if line.startswith("#")} == {
        "# Benchmark", "## Fixtures", "### CPU", "### Size of the reports", "## The same tree in both arms",
        "## Measured with",
    }  # fmt: skip
    assert "sm_90" not in text


def test_each_part_is_measured_once(tmp_path, target_python, monkeypatch):
    monkeypatch.setattr(grade, "warp_version", lambda python: "1.19.0")
    source = tmp_path / "source.txt"
    source.write_text("one")
    measured = []

    def take(samples):
        def measure(scratch):
            assert scratch.is_dir()
            measured.append(samples)
            return samples

        wanted = benchmark.Part("part", (source,), {"samples": samples}, measure)
        benchmark.measure_missing([wanted], tmp_path / "state", target_python)

    take(1)
    take(1)
    assert measured == [1]
    take(2)
    assert measured == [1, 2]
    source.write_text("two")
    take(2)
    assert measured == [1, 2, 2]
    assert benchmark.read_state(tmp_path / "state")["part"]["data"] == 2


def test_a_part_that_fails_leaves_the_others(tmp_path, target_python, monkeypatch):
    monkeypatch.setattr(grade, "warp_version", lambda python: "1.19.0")

    def fail(scratch):
        raise grade.GradeError("no")

    parts = [benchmark.Part("good", (), {}, lambda scratch: 1), benchmark.Part("bad", (), {}, fail)]
    with pytest.raises(grade.GradeError):
        benchmark.measure_missing(parts, tmp_path, target_python)
    assert set(benchmark.read_state(tmp_path)) == {"good"}


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_a_state_without_measurements_is_one_sentence(tmp_path, text, capsys):
    if text is not None:
        (tmp_path / "part.json").write_text(text)
    out = tmp_path / "BENCHMARK.md"
    assert benchmark.main(["--render", "--state", str(tmp_path), "--out", str(out)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.warp(since="1.10")
@pytest.mark.timeout(900)
def test_a_fixture_is_measured_and_rendered(tmp_path, target_python):
    out = tmp_path / "BENCHMARK.md"
    words = ["--parts", "fixtures", "--samples", "1", "--state", str(tmp_path / "state"), "--out", str(out)]
    assert benchmark.main([*words, "--python", target_python], EVALS) == 0
    text = out.read_text()
    assert "| t01_tiny | 2 to 1 | 1 to 0 |" in text
    data = json.loads((tmp_path / "state" / "fixture-t01_tiny.json").read_text())["data"]
    assert data["arms"]["cpu"]["same_launches"] is True
    assert data["arms"]["cpu"]["findings_gone"] == ["CS-1"]
