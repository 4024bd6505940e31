"""The command `parse`: its JSON, its text, what a log supports of the flags, and input that cannot be used."""

from __future__ import annotations

import argparse
import json
import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import warp_compile_probe as probe

DEBUG_LOG = """\
Warp 1.19.0 initialized:
   Devices:
     "cpu"      : "x86_64"
Module sim 1111111 load on device 'cpu' (block_dim=1) ...
    Compile x86 ...
    Compile x86 took 3000.50 ms
Module sim 1111111 load on device 'cpu' (block_dim=1) took 3100.25 ms  (compiled)
[Module.load] Module hash changed, recompiling: sim (11111111 -> 22222222)
Module sim 2222222 load on device 'cpu' (block_dim=1) took 400.50 ms  (compiled)
    Compile x86 took 350.00 ms
Module sim 3333333 load on device 'cpu' (block_dim=256) took 410.00 ms  (compiled)
Module sim 1111111 load on device 'cpu' (block_dim=1) took 150.00 ms  (cached)
Module bad 4444444 load on device 'cpu' (block_dim=1) took 24000.00 ms  (error)
Module bad 4444444 load on device 'cpu' (block_dim=1) took 0.50 ms  (cached)
Module sim 2222222 load on device 'cpu' (block_dim=1) took 390.00 ms  (compiled)
Module old load on device 'cpu' took 5.00 ms
Module torn 5555555 load on device 'cp
"""


def parse(*arguments: str) -> probe.ExitCode:
    parser = argparse.ArgumentParser()
    probe.add_parse_parser(parser.add_subparsers())
    args = parser.parse_args(["parse", *arguments])
    result = args.run(args)
    assert isinstance(result, probe.ExitCode)
    return result


def module(name: str, hash: str = "0af1b2c", ms: float = 10.0, status: str = "compiled", device: str = "cuda:0") -> str:
    return f"Module {name} {hash} load on device '{device}' took {ms:.2f} ms  ({status})\n"


@pytest.fixture
def log(tmp_path: Path) -> Any:
    def write(content: str | bytes, name: str = "run.log") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def document(capsys: pytest.CaptureFixture[str], *logs: str) -> Any:
    assert parse(*logs, "--json", "-") == probe.ExitCode.OK
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def text(capsys: pytest.CaptureFixture[str], *logs: str) -> str:
    assert parse(*logs) == probe.ExitCode.OK
    return capsys.readouterr().out


def notes(report: Any) -> set[str]:
    return {note["name"] for note in report["notes"]}


def test_json(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(DEBUG_LOG)
    report = document(capsys, path)
    assert (report["schema"], report["schema_version"]) == ("warp-compile-probe/log", 1)
    assert (report["logs"], report["warp_versions"]) == ([path], ["1.19.0"])
    assert report["summary"] == {
        "records": 8,
        "identities": 5,
        "compiled": 4,
        "cached": 2,
        "error": 1,
        "no_status": 1,
        "cold_module_ms": 4300.75,
        "cached_ms": 150.5,
        "error_ms": 24000.0,
        "no_status_ms": 5.0,
        "native_compile_ms": 3350.5,
        "unreadable": 1,
        "starts": 1,
    }
    assert not report["builds_aggregated"]
    assert [(one["name"], one["hash"], one["block_dim"], one["ms"], one["status"]) for one in report["builds"]] == [
        ("sim", "1111111", 1, 3100.25, "compiled"),
        ("sim", "2222222", 1, 400.5, "compiled"),
        ("sim", "3333333", 256, 410.0, "compiled"),
        ("sim", "1111111", 1, 150.0, "cached"),
        ("bad", "4444444", 1, 24000.0, "error"),
        ("bad", "4444444", 1, 0.5, "cached"),
        ("sim", "2222222", 1, 390.0, "compiled"),
        ("old", None, None, 5.0, "unknown"),
    ]
    assert report["builds"][1] == {
        "name": "sim",
        "hash": "2222222",
        "device": "cpu",
        "block_dim": 1,
        "ms": 400.5,
        "status": "compiled",
        "count": 1,
        "slowest_ms": 400.5,
        "log": 0,
        "line": 9,
    }


def test_flags(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    report = document(capsys, log(DEBUG_LOG))
    flags = report["flags"]
    assert flags["several_hashes"] == [
        {"name": "sim", "device": "cpu", "block_dim": 1, "hashes": 2, "compiled": 3, "compiled_ms": 3890.75}
    ]
    assert [(one["hash"], one["count"], one["ms"], one["slowest_ms"]) for one in flags["compiled_again"]] == [
        ("2222222", 2, 790.5, 400.5)
    ]
    assert [(one["name"], one["count"], one["ms"]) for one in flags["errors"]] == [("bad", 1, 24000.0)]
    assert flags["cached_loads"] == [{"name": "sim", "device": "cpu", "loads": 1, "ms": 150.0, "slowest_ms": 150.0}]
    assert notes(report) == {"compiled-again"}


def test_text(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(DEBUG_LOG)
    lines = text(capsys, path).splitlines()
    assert lines[0].endswith("run.log: 8 records of 5 module identities, Warp 1.19.0")
    assert [line.split() for line in lines[1:7]] == [
        ["compiled", "4", "4.30", "s"],
        ["cached", "2", "150", "ms"],
        ["error", "1", "24.0", "s"],
        ["no", "status", "1", "5.00", "ms", "(Warp", "before", "1.3,", "or", "a", "torn", "line)"],
        ["unreadable", "1", "torn", "lines", "that", "looked", "like", "records"],
        ["native", "compiler", "3.35", "s", "in", "lines", "of", "its", "own"],
    ]
    for title in ("SEVERAL HASHES", "COMPILED AGAIN", "ERRORS", "CACHED LOADS", "note (compiled-again)"):
        assert any(line.startswith(title) for line in lines), title
    table = [line.split() for line in lines[-5:]]
    assert table == [
        ["24,000.5", "0", "1", "1", "4444444", "cpu,", "1", "bad"],
        ["3,250.2", "1", "1", "0", "1111111", "cpu,", "1", "sim"],
        ["790.5", "2", "0", "0", "2222222", "cpu,", "1", "sim"],
        ["410.0", "1", "0", "0", "3333333", "cpu,", "256", "sim"],
        ["5.0", "0", "0", "0", "-", "cpu", "old"],
    ]


def test_the_shortest_text_has_no_flags(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lines = text(capsys, log(module("sim"))).splitlines()
    assert lines[0].endswith(": 1 record of 1 module identity")
    assert lines[4:6] == ["native compiler      not shown: Warp prints it in debug output only", ""]
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("content", "noted"),
    [
        (module("sim", "1111111") + module("sim", "2222222"), {"block-dim-not-shown"}),
        ("Warp 1.4.2 initialized:\n" + module("sim", "1111111") + module("sim", "2222222"), set()),
        (
            "Warp 1.4.2 initialized:\nWarp 1.12.0 initialized:\n" + module("sim", "1111111") + module("sim", "2222222"),
            {"block-dim-not-shown"},
        ),
        (module("sim", "1111111", device="cpu") + module("sim", "2222222"), set()),
        (module("sim") + module("sim", ms=11.0), {"compiled-again"}),
        (module("sim") + module("sim", status="error") + module("sim", status="cached"), set()),
        (module("sim", ms=812.25) * 2, {"compiled-again", "repeated-lines"}),
    ],
)
def test_notes_say_what_a_log_cannot(
    log: Any, capsys: pytest.CaptureFixture[str], content: str, noted: set[str]
) -> None:
    path = log(content)
    assert notes(document(capsys, path)) == noted
    shown = text(capsys, path)
    assert all(f"note ({name})" in shown for name in noted)


def test_hashes_are_no_churn_across_devices_and_without_a_hash(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stripped = "Module sim load on device 'cuda:0' took 1.00 ms  (cached)\n"
    report = document(capsys, log(module("sim") + module("sim", device="cpu") + stripped))
    assert report["flags"]["several_hashes"] == []
    assert report["summary"]["identities"] == 3
    assert report["summary"]["native_compile_ms"] is None


@pytest.mark.parametrize(("loads", "ms", "flagged"), [(1, 99.0, 0), (1, 100.0, 1), (99, 0.3, 0), (100, 0.3, 1)])
def test_slow_or_many_cached_loads(
    log: Any, capsys: pytest.CaptureFixture[str], loads: int, ms: float, flagged: int
) -> None:
    content = "".join(module("factory", f"{index:07x}", ms, "cached") for index in range(loads))
    found = document(capsys, log(content))["flags"]["cached_loads"]
    assert len(found) == flagged
    assert [one["loads"] for one in found] == [loads] * flagged


def test_several_logs_are_one_result_but_no_torn_record_joins_the_next(
    log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = module("sim").rstrip("\n")
    first, second, third = log(whole[:42], "1.log"), log(whole[42:], "2.log"), log("\n\n" + whole, "3.log")
    report = document(capsys, first, second, third)
    assert report["logs"] == [first, second, third]
    assert [(one["log"], one["line"]) for one in report["builds"]] == [(2, 3)]
    assert report["summary"]["unreadable"] == 1


def test_standard_input(log: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with open(log(DEBUG_LOG)) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        report = document(capsys, "-")
    assert report["logs"] == ["-"]
    assert report["summary"]["records"] == 8


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_logs_that_powershell_wrote(log: Any, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    report = document(capsys, log(module("übung").replace("\n", "\r\n").encode(encoding)))
    assert [(one["name"], one["line"]) for one in report["builds"]] == [("übung", 1)]


def test_a_log_without_module_lines(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no module line of Warp" in text(capsys, log(""))
    assert "unreadable" not in text(capsys, log("k0 took 7536.13 ms\n"))
    assert "unreadable        1" in text(capsys, log(module("sim")[:50]))


def test_text_is_bounded(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    content = "".join(
        module(f"package_{index}.{'long_' * 60}{index}", f"{index * 7 + part:07x}", 200.0 + part, status)
        for index in range(300)
        for part, status in enumerate(["compiled", "compiled", "cached", "error"])
    )
    for data in (content, content * 2, "Warp 1.12.0 initialized:\n" * 3 + content):
        shown = text(capsys, log(data))
        assert len(shown) <= 10_000
        assert len(shown.splitlines()) <= 120
        assert "more" in shown.splitlines()[-1]
        assert all(len(line) < 500 for line in shown.splitlines())


def test_many_short_rows_are_bounded_by_lines() -> None:
    lines = probe.bounded_text([f"row {index}" for index in range(500)]).splitlines()
    assert len(lines) == 120
    assert lines[-1] == "... 381 more lines: --json FILE has all of it"
    assert probe.bounded_text(["row"] * 120).splitlines() == ["row"] * 120
    assert len(probe.bounded_text(["x" * 9_999])) == 10_000
    assert len(probe.bounded_text(["x" * 9_000, "y" * 1_000])) < 10_000


def test_unique_modules_and_many_hashes_are_one_row(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    content = "".join(module(f"make_kernel_{index:08x}", f"{index:07x}") for index in range(50))
    content += "".join(module("sim", f"{index:07x}") for index in range(40))
    content += "".join(module("failing", f"{index:07x}", status="error") for index in range(30))
    content += module("alone_0123abcd")
    lines = text(capsys, log(content)).splitlines()
    assert [line.split() for line in lines[-4:]] == [
        ["500.0", "50", "0", "0", "x50", "cuda:0", "make_kernel_*"],
        ["400.0", "40", "0", "0", "x40", "cuda:0", "sim"],
        ["300.0", "0", "0", "30", "x30", "cuda:0", "failing"],
        ["10.0", "1", "0", "0", "0af1b2c", "cuda:0", "alone_0123abcd"],
    ]
    assert ["300", "ms", "30", "errors", "cuda:0", "failing"] in [line.split() for line in lines]


@pytest.mark.parametrize("name", ["a\u009bb", "a\u202eb", "a\x1b]0;title\x07b", "a\x1b[31mb", "a\u2028b"])
def test_control_characters_never_reach_the_terminal(log: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = log(module(name) + module("sim"), name=f"{name}.log")
    shown = text(capsys, path)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "sim" in shown
    with pytest.raises(probe.InputError) as caught:
        parse(f"{path}.missing")
    assert str(caught.value).isprintable()


def test_detail_is_bounded_and_sums_stay_exact(
    log: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "LOG_DETAIL_LIMIT", 10)
    few = log(
        "".join(module(f"m{index % 3}", status=status) for index in range(60) for status in ("compiled", "cached"))
    )
    report = document(capsys, few)
    assert report["builds_aggregated"]
    assert [(one["name"], one["status"], one["count"], one["ms"]) for one in report["builds"]][:2] == [
        ("m0", "compiled", 20, 200.0),
        ("m0", "cached", 20, 200.0),
    ]
    assert (report["summary"]["records"], report["summary"]["identities"]) == (120, 3)
    assert notes(report) == {"compiled-again"}
    many = log("".join(module(f"m{index}") for index in range(60)))
    report = document(capsys, many)
    assert (report["summary"]["records"], report["summary"]["identities"]) == (60, 10)
    assert report["summary"]["cold_module_ms"] == 600.0
    assert len(report["builds"]) == 10
    assert notes(report) == {"identities-left-out"}


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with open(path, "wb") as stream:
        stream.truncate(100_000_000)
        stream.seek(50_000_000)
        stream.write(module("sim").encode())
    tracemalloc.start()
    try:
        report = probe.parse_logs([str(path)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.summary.records == 1
    assert peak < 10_000_000


def test_json_file_and_text(log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = log(DEBUG_LOG), tmp_path / "out.json"
    target.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    assert parse(path, "--json", str(link)) == probe.ExitCode.OK
    assert capsys.readouterr().out.startswith(path)
    assert json.loads(target.read_text()) == document(capsys, path)
    assert link.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.json", "out.json", "run.log"]


def test_json_into_a_pipe(log: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    parse(log(DEBUG_LOG), "--json", str(pipe))
    reader.join()
    assert json.loads(received[0])["summary"]["records"] == 8
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{dir}/missing.log"], "no log '{dir}/missing.log': expected the path"),
        (["{dir}"], "'{dir}' is a directory"),
        (["/proc/self/mem"], "cannot read the log '/proc/self/mem'"),
        (["a\0b"], "cannot read the log"),
        (["-", "-"], "'-' came more than once"),
        (["{log}", "--json", "{dir}/missing/out.json"], "{dir}/missing/out.json: cannot be written"),
        (["{log}", "--json", "{dir}"], "{dir}: cannot be written"),
        (["{log}", "--json", "{dir}/../{name}/run.log"], "would overwrite an input"),
    ],
)
def test_input_that_cannot_be_used(log: Any, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    path = log(DEBUG_LOG)
    names = {"dir": str(tmp_path), "log": path, "name": tmp_path.name}
    with pytest.raises(probe.InputError) as caught:
        parse(*(argument.format(**names) for argument in arguments))
    assert sentence.format(**names) in str(caught.value)
    assert caught.value.exit_code == 2
    assert Path(path).read_text() == DEBUG_LOG
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.log"]


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(probe.InputError, match="standard input is closed"):
        parse("-")


def test_no_log_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse()
    assert caught.value.code == 2
    assert "LOG" in capsys.readouterr().err
