"""The compare command: files in, text or JSON and an exit code out."""

import argparse
import dataclasses
import itertools
import json
import os
import subprocess
import sys

import pytest
import warp_compile_probe as probe
from conftest import SCRIPT
from hypothesis import given, settings
from hypothesis import strategies as st
from report_builder import Launch, Module, Proc, change, make_report

BASELINE = make_report(label="before")
FASTER = make_report(factors=(0.8, 0.81, 0.79), label="after")
REPORT = json.dumps(probe.to_json(BASELINE)).encode()


def many(prefix, count):
    """A report with so much in it that no text could show all."""
    modules = tuple(Module(name=f"{prefix}_{index}", state=f"{prefix} {index}", ms=50.0) for index in range(count))
    launches = tuple(
        Launch(key=f"{prefix}_{index}", does=f"does {index}", dim=(len(prefix),)) for index in range(count)
    )
    findings = tuple(
        probe.Finding(f"CS-{index}", probe.FindingKind.HINT, prefix, "cpu", 1, 5.0, None, (), None, "text", None)
        for index in range(count)
    )
    notices = tuple(probe.Notice(f"{prefix}-{index}", "x" * 400) for index in range(count))
    report = make_report(Proc(modules=modules, threads=(launches,)))
    return change(report, findings=findings, warnings=notices, command=(prefix * 100,), warp=prefix)


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run the command on reports; returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        words = []
        for index, arg in enumerate(args):
            if isinstance(arg, probe.Report):
                path = tmp_path / f"{index}.json"
                path.write_text(json.dumps(probe.to_json(arg)))
                words.append(str(path))
            else:
                words.append(str(arg))
        parser = argparse.ArgumentParser()
        probe.add_compare_parser(parser.add_subparsers())
        options = parser.parse_args(["compare", *words])
        try:
            code = options.run(options)
        except probe.ProbeError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
        return int(code), *capsys.readouterr()

    return run


EXIT_CODES = {
    "identical": ([BASELINE, BASELINE], 0, "UNCHANGED"),
    "faster": ([BASELINE, FASTER], 0, "IMPROVED"),
    "slower": ([FASTER, BASELINE], 1, "REGRESSED"),
    "few samples": ([BASELINE, make_report(factors=(0.5,))], 0, "INCONCLUSIVE"),
    "other launches": ([BASELINE, make_report(Proc(threads=((Launch(),),)))], 3, "TOPOLOGY-CHANGED"),
    "another Warp": ([BASELINE, make_report(warp="1.18.0")], 4, "NOT-COMPARABLE"),
    "another Warp, allowed": ([BASELINE, make_report(warp="1.18.0"), "--allow-different", "warp"], 0, "UNCHANGED"),
    "two allowed": (
        [BASELINE, make_report(warp="1", cores=2), "--allow-different", "warp", "--allow-different", "host"],
        0,
        "UNCHANGED",
    ),
    "failed": ([BASELINE, make_report(factors=(), failed_samples=3)], 4, "INVALID"),
    "a gap": (
        [BASELINE, make_report(coverage=probe.Coverage(1, 1, 1, (probe.Gap(probe.GapReason.HOOK_FAILED, 1, ""),)))],
        4,
        "UNVERIFIED",
    ),
    "required and met": ([BASELINE, FASTER, "--require", "improved"], 0, "IMPROVED"),
    "required and not met": ([BASELINE, BASELINE, "--require", "improved"], 5, "UNCHANGED"),
    "required, but a regression": ([FASTER, BASELINE, "--require", "improved"], 1, "REGRESSED"),
    "a regression is one, even if required": ([FASTER, BASELINE, "--require", "regressed"], 1, "REGRESSED"),
    "required, but other launches": (
        [BASELINE, make_report(Proc(threads=((Launch(),),))), "--require", "improved"],
        3,
        "TOPOLOGY-CHANGED",
    ),
    "required, but not comparable": ([BASELINE, make_report(warp="2"), "--require", "unchanged"], 4, "NOT-COMPARABLE"),
}


@pytest.mark.parametrize("case", EXIT_CODES)
def test_exit_codes_and_the_verdict_first(run, case):
    args, expected, verdict = EXIT_CODES[case]
    code, out, err = run(*args)
    assert code == expected
    assert out.startswith(verdict)
    assert ("--require" in err) is (code == 5)
    assert run(*args, "--json", "-")[0] == expected


def test_text_says_verdict_then_why_then_the_tables(run):
    candidate = make_report(
        Proc(modules=(Module(state="fast", ms=2_000.0),), threads=((Launch(key="renamed", does="scale"), Launch()),))
    )
    baseline = make_report(Proc(threads=((Launch(), Launch()),)))
    _, out, _ = run(baseline, candidate)
    lines = out.splitlines()
    assert lines[0] == (
        "IMPROVED (timed): cold_module_ms fell by 50.0 % (4,000.0 to 2,000.0 ms), beyond the noise band of 80.0 ms"
        " (3 against 3 samples, p = 1/20); exact facts: same"
    )
    titles = [line for before, line in itertools.pairwise(lines) if not before]
    assert titles == [
        "Reports",
        "Launches",
        "Kernels renamed or in another module (same content, allowed)",
        "Times (medians, ms)",
        "Exact facts: same",
        "Output",
        "Modules: 1 moved",
    ]
    assert any(
        line.split() == ["moved", "program", "cpu,", "1", *(Module(state=s).hash[:7] for s in ("a", "fast"))]
        for line in lines
    )
    assert any(line.split()[:1] == ["cold_module_ms"] and line.endswith("decides") for line in lines)


def test_an_option_that_never_arrived_has_its_receipt(run):
    _, out, _ = run(BASELINE, make_report(env={"FAST": "1"}), "--allow-different", "options")
    assert "Modules: 1 same; no hash moved, so no option arrived in a module" in out
    assert "--env  none      FAST=1     allowed" in out
    assert out.splitlines()[0].endswith("; allowed to differ: --env")


def test_markdown(run):
    odd = change(BASELINE, label="a|b <img src=x> `c` *d* [e](f) @team", warnings=(probe.Notice("note", "_x_"),))
    code, out, _ = run(odd, FASTER, "--format", "markdown")
    assert code == 0
    assert out.startswith("**IMPROVED** (clock): compile\\_elapsed\\_ms fell by 20.0 %")
    assert "a\\|b &lt;img src=x&gt; \\`c\\` \\*d\\* \\[e\\](f) &#64;team" in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert rows[0] == "|  | samples | label | commit | created | command |"
    assert rows[1] == "| --- | --- | --- | --- | --- | --- |"
    assert all(row.replace("\\|", "").count("|") in {3, 4, 5, 6, 7, 8} for row in rows)
    assert "### Exact facts: same" in out


@pytest.mark.parametrize("style", ["text", "markdown"])
@pytest.mark.parametrize("allow", [[], ["--allow-different", "command", "--allow-different", "warp"]])
def test_text_is_bounded_whatever_the_reports_hold(run, style, allow):
    code, out, _ = run(many("old", 400), many("newer", 400), "--format", style, *allow)
    assert code == (3 if allow else 4)
    assert len(out.splitlines()) <= 120
    assert len(out) <= 10_000
    assert "--json FILE" in out


def test_json_on_standard_output_is_one_document(run):
    code, out, err = run(BASELINE, FASTER, "--json", "-")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema"] == "warp-compile-probe/comparison"
    assert document["verdict"] == "improved"
    assert document["baseline"]["label"] == "before"
    assert document["deltas"]["compile_elapsed_ms"]["outside_band"] is True


def test_json_to_a_file_leaves_the_text_on_standard_output(run, tmp_path):
    code, out, _ = run(BASELINE, FASTER, "--json", tmp_path / "out.json")
    assert code == 0
    assert out.startswith("IMPROVED")
    assert json.loads((tmp_path / "out.json").read_text())["verdict"] == "improved"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json", "1.json", "out.json"]


@pytest.mark.parametrize("path", ["missing/out.json", "."])
def test_json_that_cannot_be_written(run, path):
    code, out, err = run(BASELINE, FASTER, "--json", path)
    assert (code, out) == (2, "")
    assert "cannot be written" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "expected"), [(["--max-regression", "5"], 6), (["--max-regression", "50", "--require", "improved"], 5)]
)
def test_that_nobody_reads_stderr_does_not_change_the_exit_code(tmp_path, words, expected):
    for name, made in (("before", FASTER), ("after", BASELINE)):
        (tmp_path / name).write_text(json.dumps(probe.to_json(made)), encoding="utf-8")
    source, sink = os.pipe()
    os.close(source)
    command = [sys.executable, SCRIPT, "compare", tmp_path / "before", tmp_path / "after", *words]
    with os.fdopen(sink, "wb") as stderr:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=False)
    assert done.returncode == expected
    assert done.stdout.startswith(b"REGRESSED")


def test_json_to_a_device(run):
    assert run(BASELINE, FASTER, "--json", os.devnull)[0] == 0


def test_json_never_overwrites_a_report(run, tmp_path):
    code, _, err = run(BASELINE, FASTER, "--json", "0.json")
    assert code == 2
    assert "would overwrite" in err
    assert json.loads((tmp_path / "0.json").read_text())["schema"] == probe.REPORT_SCHEMA


def edited(**changes):
    return json.dumps({**json.loads(REPORT), **changes}).encode()


BAD_FILES = {
    "missing": (None, "cannot be read"),
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "binary": (bytes(range(256)), "not JSON"),
    "not text": (b'{"a": "\xff\xfe"}', "not JSON"),
    "cut off": (REPORT[: len(REPORT) // 2], "cut off"),
    "a log": (b"Module program 0123456 load on device 'cpu' took 1.00 ms  (compiled)\n", "not JSON"),
    "a list": (b"[1, 2]", "not a probe report"),
    "a number": (b"17", "not a probe report"),
    "another program's": (b'{"schema": "perf/1"}', "not a probe report"),
    "a comparison": (
        json.dumps(probe.to_json(probe.compare_reports(BASELINE, FASTER))).encode(),
        "not a probe report",
    ),
    "newer": (edited(schema_version=2), "version 2"),
    "an unknown key": (edited(extra=1), "unknown key 'extra'"),
    "a missing key": (json.dumps({k: v for k, v in json.loads(REPORT).items() if k != "cwd"}).encode(), "'cwd'"),
    "a wrong type": (edited(command="python"), "report.command"),
    "no summary": (edited(summary=None), "no summary"),
    "not a number": (REPORT.replace(b'"wall_ms": ', b'"wall_ms": NaN, "x": ', 1), "NaN"),
    "an endless number": (REPORT.replace(b'"wall_ms": ', b'"wall_ms": 1e999, "x": ', 1), "out of range"),
    "a huge number": (REPORT.replace(b'"pid": ', b'"pid": 1' + b"0" * 5_000 + b', "x": ', 1), "out of range"),
    "deep nesting": (b"[" * 200_000, "not JSON"),
    "deep nesting where anything goes": (
        REPORT.replace(b'"offline": {}', b'"offline": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        "not JSON",
    ),
    "damaged launches": (
        REPORT.replace(BASELINE.samples[0].cold.processes[0].launches.streams[0].data.encode(), b"AAAA"),
        "damaged report",
    ),
    "control characters": (b'{"schema": "\x1b[31m', "not JSON"),
    "an escape sequence as a key": (edited(**{"\x1b[31m\n": 1}), "unknown key"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_report_gets_one_sentence(run, tmp_path, case):
    content, words = BAD_FILES[case]
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    for args in ((path, BASELINE), (BASELINE, path)):
        code, out, err = run(*args)
        assert (code, out) == (2, "")
        assert words in err
        assert err.endswith("\n")
        assert err[:-1].isprintable()
        assert len(err) < 700
        if case != "damaged launches":
            assert "bad.json" in err


def test_a_directory_is_no_report(run, tmp_path):
    code, _, err = run(tmp_path, BASELINE)
    assert code == 2
    assert "cannot be read" in err


def test_a_file_without_permission(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(probe.Path, "open", refuse)
    with pytest.raises(probe.InputError, match="Permission denied"):
        probe.load_report(str(tmp_path / "0.json"))


def test_a_file_that_is_too_large_is_not_read(run, tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(probe.MAX_REPORT_BYTES + 1)  # takes no space on the disk
    code, _, err = run(path, BASELINE)
    assert code == 2
    assert "larger than 1 GB" in err


def test_a_pipe_that_never_ends_is_bounded(run, monkeypatch):
    monkeypatch.setattr(probe, "MAX_REPORT_BYTES", 1_000)
    code, _, err = run("/dev/zero", BASELINE)
    assert code == 2
    assert "larger than" in err


def test_a_report_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(b"\xef\xbb\xbf" + REPORT)
    assert probe.load_report(str(path)) == BASELINE


@pytest.mark.parametrize(
    "args", [["--require", "faster"], ["--allow-different", "weather"], ["--format", "html"], ["one more"]]
)
def test_usage_errors(run, args):
    with pytest.raises(SystemExit) as error:
        run(BASELINE, FASTER, *args)
    assert error.value.code == 2


def test_a_partial_report_is_judged_by_what_it_has(run):
    code, out, _ = run(BASELINE, make_report(factors=(0.8, 0.81, 0.79), failed_samples=2))
    assert code == 0
    assert out.startswith("IMPROVED")
    assert "partial-report" in out
    assert "3 of 5" in out


NASTY = "\x1b]0;title\x07\x1b[2J\r\n\u202e\ud800\x9b31m| <b>"


def test_control_characters_of_a_report_never_reach_the_terminal(run):
    kernel = Launch(key=NASTY, module=NASTY, device=NASTY, does="scale")
    report = make_report(
        Proc(modules=(Module(name=NASTY, device=NASTY),), threads=((kernel,),)),
        label=NASTY,
        created=NASTY,
        command=(NASTY,),
        warp=NASTY,
        git_commit=NASTY,
        variables={NASTY: NASTY},
        warnings=(probe.Notice(NASTY, NASTY),),
        findings=(probe.Finding(NASTY, probe.FindingKind.HINT, NASTY, None, None, 1.0, None, (), None, NASTY, None),),
    )
    allow = ["--allow-different", "command", "--allow-different", "warp"]
    for style in ("text", "markdown"):
        for args in ([report, BASELINE], [report, BASELINE, *allow], [report, report], [BASELINE, report, *allow]):
            _, out, err = run(*args, "--format", style)
            assert out.replace("\n", "").isprintable()
            assert err == ""
            if style == "markdown":
                assert "<b>" not in out


def test_text_on_a_terminal_that_knows_only_ascii(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(probe.to_json(make_report(label="gr\u00f6\u00dfer"))), encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, SCRIPT, "compare", path, path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "gr\\xf6\\xdfer" in finished.stdout


@settings(max_examples=200)
@given(st.text(max_size=80), st.integers(4, 60))
def test_printable_text_is_printable_and_short(text, limit):
    shown = probe.printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit
    if text.isprintable() and len(text) <= limit:
        assert shown == text


@settings(max_examples=100)
@given(st.integers(0, 2_000), st.sampled_from([b"", b"x", b"\x00", b'"', b"}", b"1e400"]))
def test_cut_and_spliced_files_are_refused_or_read(tmp_path_factory, place, splice):
    cut = place * len(REPORT) // 2_000
    path = tmp_path_factory.getbasetemp() / "spliced.json"
    path.write_bytes(REPORT[:cut] + splice + REPORT[cut + (place % 7) :])
    try:
        probe.compare_reports(probe.load_report(str(path)), BASELINE)
    except probe.InputError as error:
        message = str(error)
    else:
        message = ""
    assert message.isprintable()


def test_a_report_survives_being_written_and_read():
    block = probe.OfflineBlock(
        "13.4", BASELINE.coverage, BASELINE.samples, BASELINE.summary, BASELINE.identities, BASELINE.findings, ()
    )
    report = change(BASELINE, offline={"sm_90": block})
    assert probe.Report.from_json(json.loads(json.dumps(probe.to_json(report)))) == report
    assert dataclasses.is_dataclass(report)
