"""A report as text: the right things first, every line short, nothing hidden without being counted."""

import dataclasses
import re

import pytest
import warp_compile_probe as probe
from builders import (
    SITE,
    cached,
    digest,
    failed,
    full_report,
    launches,
    load,
    log_line,
    phases,
    process,
    report,
    run,
    sample,
    settle,
    timed,
    warm,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_diagnosis import SAMPLES


def lines_of(made, **given_values):
    text = probe.render_report(made, **given_values)
    assert text.endswith("\n")
    assert len(text) <= 10_000
    lines = text.splitlines()
    assert len(lines) <= 120
    assert all(len(line) <= 116 and line == line.rstrip() for line in lines)
    return lines


def line_with(made, part, **given_values):
    (line,) = (line for line in lines_of(made, **given_values) if part in line)
    return line


def samples(*loads, walls=(1000.0, 1100.0, 1500.0), warm_wall=200.0, **changes):
    return [
        sample(run(process(loads, **changes), wall=wall), warm(process(), wall=warm_wall), index=index)
        for index, wall in enumerate(walls)
    ]


# Figures


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0.0, "0 ms"),
        (0.004, "0.00 ms"),
        (0.53, "0.53 ms"),
        (9.994, "9.99 ms"),
        (9.996, "10.0 ms"),
        (53.14, "53.1 ms"),
        (531.4, "531 ms"),
        (999.4, "999 ms"),
        (999.6, "1.00 s"),
        (12_345.0, "12.3 s"),
        (99_960.0, "100 s"),
        (-80.0, "-80.0 ms"),
        (-8000.0, "-8.00 s"),
    ],
)
def test_duration(ms, expected):
    assert probe.duration(ms) == expected


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (probe.Timed(12_400.0, 200.0, (1.0, 2.0, 3.0)), "12.4 s (MAD 0.20 s, n=3)"),
        (probe.Timed(80.0, 2.0, (1.0, 2.0)), "80.0 ms (MAD 2.00 ms, n=2)"),
        (probe.Timed(80.0, 0.0, (80.0,)), "80.0 ms (n=1)"),
    ],
)
def test_a_median_comes_with_its_deviation_and_n(figure, expected):
    assert probe.with_mad(figure) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sim.py größer 图", "sim.py größer 图"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd\x00e\x7f", "a\\nb\\tc\\rd\\x00e\\x7f"),
        ("right\u202eto left\u200b", "right\\u202eto left\\u200b"),
        ("\x9b2J", "\\x9b2J"),
        ("lost \udc80 byte", "lost \\udc80 byte"),
    ],
)
def test_what_steers_a_terminal_is_escaped(text, expected):
    assert probe.printable(text) == expected


def test_tables_are_aligned_and_their_first_column_gives_way():
    assert probe.grid(["NAME", "n"], [["a", "1"], ["long_name\x07", "1,000"]]) == [
        "  NAME               n",
        "  a                  1",
        "  long_name\\x07  1,000",
    ]
    (_, row) = probe.grid(["NAME", "x"], [["head_" + "a" * 200 + "_tail", "9" * 40]], 116)
    assert len(row) <= 116
    assert row.startswith("  head_aaa")
    assert "..." in row
    assert "a_tail  " + "9" * 40 in row


# First what one waits for


def test_the_first_line_says_what_you_wait_for():
    lines = lines_of(report(*samples(load(ms=550.0))))
    assert lines[0] == (
        "Cold start 1.10 s (MAD 0.10 s, n=3), 50% of it compiling and loading modules: 550 ms (MAD 0 ms, n=3)."
    )
    assert lines[1] == "Warm start 200 ms (MAD 0 ms, n=3); cold minus warm 900 ms (MAD 100 ms, n=3)."


def test_a_small_share_says_that_compilation_is_not_what_you_wait_for():
    lines = lines_of(report(*samples(load(ms=44.0), walls=(1000.0,))))
    assert lines[0] == "Compilation is not what you wait for: 4.4% of a cold start of 1.00 s (n=1), 44.0 ms (n=1)."


def test_loads_after_the_commands_end_are_no_part_of_what_you_wait_for():
    outlived = report(*samples(load(start=900.0, ms=400.0), walls=(1000.0,)))
    assert lines_of(outlived)[0] == "Cold start 1.00 s (n=1), 10% of it compiling and loading modules: 100 ms (n=1)."
    assert "Processes that outlived the command loaded modules after its end, for 300 ms (n=1)." in lines_of(outlived)
    later = report(*samples(load(start=1000.0, ms=400.0), walls=(1000.0,)))
    assert (
        lines_of(later)[0] == "Compilation is not what you wait for: 0.0% of a cold start of 1.00 s (n=1), 0 ms (n=1)."
    )


def test_a_warm_run_that_builds_is_said_at_once():
    made = report(sample(run(process([load()])), warm(process([load(), load("other")]))))
    assert lines_of(made)[1] == "Warm start 200 ms (n=1), still with 2 builds."
    mixed = report(sample(run(process([load()])), warm(process([load()]))), *samples(load())[1:])
    assert lines_of(mixed)[1].startswith("Warm start 200 ms (MAD 0 ms, n=3), still with 1 build; cold minus warm")


def test_gaps_are_loud_and_come_before_findings():
    gaps = [
        probe.Gap(probe.GapReason.ISOLATED_PYTHON, 77, "python -I started by process 0"),
        probe.Gap(probe.GapReason.LOG_ONLY_LOADS, None, "3 loads"),
    ]
    lines = lines_of(report(*samples(load()), gaps=gaps))
    assert lines[2:5] == [
        "NOT EVERYTHING WAS SEEN (2 gaps): counts and times may be too low.",
        "  - isolated-python (pid 77): python -I started by process 0",
        "  - log-only-loads: 3 loads",
    ]
    assert (
        "  No redundant builds were found in what was seen."
        " Not ruled out: what the gaps above hide; what only CUDA shows" in lines
    )


def test_full_coverage_is_said_too():
    made = report(
        sample(run(process(), process((), "0.0", warp=None), process((), "0.1", end=probe.ProcessEnd.UNRECORDED)))
    )
    line = "Nothing went unseen: 3 processes, 2 of them used Warp; 1 ended without saying how."
    assert line_with(made, "Nothing went unseen") == line
    assert line_with(report(*samples()), "unseen") == "Nothing went unseen: 1 process, Warp was used."
    assert line_with(report(*samples(warp=None)), "unseen") == "Nothing went unseen: 1 process, none used Warp."


def test_the_subject_is_named():
    made = report(*samples(load()), label="before", command=("python", "my sim.py", "--n=1"))
    assert line_with(made, "Label:") == "Label:    before"
    assert line_with(made, "Program:") == "Program:  python 'my sim.py' --n=1"
    measured = "Measured: Warp 1.19.0, CUDA toolkit 13.4, Python 3.11.7, cpu, A fine CPU, 2 cores"
    assert line_with(made, "Measured:") == measured


# Runs that failed


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"code": 3}, "ended with exit code 3"),
        ({"code": None, "signal": "SIGKILL"}, "was killed by SIGKILL"),
        ({"code": None, "signal": "SIGKILL", "timed_out": True}, "had not finished at the time limit"),
        ({"code": None}, "did not finish"),
    ],
)
def test_a_failed_run_is_named_with_how_it_ended(changes, expected):
    made = report(sample(run(process([load()]), wall=312.0, **changes), complete=False))
    lines = lines_of(made, stderr_tail=["Traceback:", "  ValueError: \x1b[31mno"])
    assert lines[0] == "No sample is complete, so nothing can be said about a cold start yet."
    assert lines[1:5] == [
        f"FAILED: the cold run of sample 1 {expected}, after 312 ms and 1 build.",
        "  The last lines of its standard error:",
        "  | Traceback:",
        "  |   ValueError: \\x1b[31mno",
    ]
    assert not any("FINDINGS" in line or "TIMES" in line or "unseen" in line for line in lines)


def test_a_later_failure_keeps_what_was_measured():
    second = sample(
        run(process([load()])), warm(process([failed(error="KeyError: 1")]), code=1), index=1, complete=False
    )
    lines = lines_of(report(*samples(load(), walls=(1000.0,)), second))
    assert lines[0].startswith("Cold start 1.00 s (n=1)")
    assert lines[2] == "Only 1 of 2 samples complete."
    assert lines[3] == "FAILED: the warm run of sample 2 ended with exit code 1, after 200 ms and 0 builds."
    assert lines[4].startswith("  module load failed: sim on cpu at block_dim 1: hash ca97811, 50.0 ms")
    assert lines[4].endswith("; KeyError: 1")


def test_an_exit_code_that_is_meant_is_no_failure():
    options = probe.Options(1, 60.0, {}, False, 3, False)
    assert probe.run_failure(run(code=3), options) is None
    assert probe.run_failure(run(code=0), options) == "ended with exit code 0 instead of 3"
    assert probe.run_failure(run(code=None, timed_out=True), options) == "had not finished at the time limit of 60.0 s"
    made = report(sample(run(process([load()]), code=3), warm(code=3)), options=options)
    assert not any("FAILED" in line for line in lines_of(made))


def test_a_sample_that_was_not_reached_is_not_called_failed():
    lines = lines_of(report(*samples(load(), walls=(1000.0,)), sample(run(process()), complete=False, index=1)))
    assert "Only 1 of 2 samples complete." in lines
    assert not any("FAILED" in line for line in lines)


# Findings, figures, tables


def test_findings_with_cost_place_and_evidence():
    loads = [load(ms=500.0), load(seed="b", start=600.0, ms=300.0, site=probe.Site("/work/app/sim.py", 77, "step"))]
    lines = lines_of(report(*samples(*loads, walls=(1000.0,))))
    start = lines.index("FINDINGS  1 redundant, 0 hints; 300 ms of the module time is avoidable")
    assert lines[start + 1] == "  1. rebuild (redundant): cost 300 ms, avoidable 300 ms"
    assert lines[start + 2].startswith(
        "     sim was built 2 times on cpu at block_dim 1 in 1 process, with 2 different hashes"
    )
    assert "     at sim.py:77 in step" in lines[start:]
    assert f"     - build 2 of 2: hash {digest('b')[:7]}, 300 ms, asked for at sim.py:77 in step" in lines[start:]
    assert "  Why, and how to fix: references/mechanisms.md#rebuild" in lines[start:]


def test_findings_of_several_kinds_point_to_a_section_each():
    lines = lines_of(report(*samples(*(load(str(n), thread=n) for n in range(3)))))
    assert "  Why, and how to fix: references/mechanisms.md#cs-8, #builds-overlapped" in lines


def test_findings_without_room_are_named():
    made = report(*samples(load(ms=550.0)))
    one = probe.Finding("CS-1", probe.FindingKind.REDUNDANT, None, None, None, 1.0, 1.0, (), None, "It is.", None)
    found = tuple(dataclasses.replace(one, module=f"module{number:02}") for number in range(60))
    text = " ".join(" ".join(lines_of(dataclasses.replace(made, findings=found))).split())
    assert (shown := text.count("It is.")) < 60
    assert f"... and {60 - shown} more findings: CS-1 of module{shown:02}, CS-1 of module{shown + 1:02}, " in text


def test_no_finding_is_said_in_words():
    lines = lines_of(report(*samples(load())))
    start = lines.index("FINDINGS  0 redundant, 0 hints")
    assert lines[start + 1].startswith(
        "  No redundant builds were found. Not ruled out: what only CUDA shows (CS-5 and"
    )
    assert "whether every module and option is needed." in lines[start + 2]


def test_on_cuda_nothing_of_cuda_is_left_out():
    lines = lines_of(report(*samples(load(device="cuda:0", block_dim=256))))
    assert (
        "  No redundant builds were found. Not ruled out: paths that this command did not take; whether every"
        in "\n".join(lines)
    )


def test_a_hint_does_not_count_as_redundant_work():
    loads = [load(str(n), thread=n, device="cuda:0") for n in range(3)]
    lines = lines_of(report(*samples(*loads)))
    assert "FINDINGS  0 redundant, 1 hint" in lines
    assert any(line.startswith("  No redundant builds") for line in lines)
    assert any(line.startswith("  1. builds-overlapped (hint): cost") for line in lines)


def test_counts_and_times():
    loads = [
        load(ms=100.0, hash_ms=4.0, generated_source_bytes=1234, phases=phases(70.0, codegen_ms=30.0)),
        failed("bad", start=300.0, ms=20.0),
    ]
    used = launches({("add", "sim", "a", "cpu", 1): 1234567})
    lines = lines_of(report(*samples(*loads, launches=used)))
    counts = " ".join(lines[lines.index("TIMES") - 3 : lines.index("TIMES")])
    for part in ["1 build,", "0 rebuilds", "2 modules", "1 error", "1,234 bytes of source", "1,234,567 launches"]:
        assert part in counts
    table = lines[lines.index("TIMES") + 1 :]
    assert table[0].split() == ["median", "ms", "MAD", "n"]
    assert table[1].split() == ["cold", "wall", "1,100.0", "100.0", "3"]
    for row in [
        "with a module load in progress 124.0 0.0 3",
        "builds, sum of Warp's timers 100.0 0.0 3",
        "code generation 30.0 0.0 3",
        "native compile 70.0 0.0 3",
        "hashing before builds 4.0 0.0 3",
        "loads that failed 20.0 0.0 3",
    ]:
        assert row in [" ".join(line.split()) for line in table]
    assert not any("link-time" in line or "not known" in line for line in lines)


def test_launches_are_a_lower_bound_where_graphs_were_not_seen():
    used = launches({("add", "sim", "a", "cpu", 1): 5}, unknown=1)
    assert "at least 5 launches" in " ".join(lines_of(report(*samples(load(), launches=used))))


def test_parts_that_were_not_measured_are_not_shown_as_measured():
    made = report(*samples(load(), log_line("other"), walls=(1000.0,)))
    line = "  The parts of 1 of 2 builds are not known and not in the rows below the sum."
    assert line in lines_of(made)
    alone = report(*samples(load(seed="b", phases=None), walls=(1000.0,)))
    assert not any("native compile" in line for line in lines_of(alone))


def test_one_sample_has_no_deviation():
    row = line_with(report(*samples(load(), walls=(1000.0,))), "cold wall  ")
    assert row.split() == ["cold", "wall", "1,000.0", "-", "1"]


def test_where_the_time_of_the_process_went():
    spent = probe.ProcessPhases(20.0, 310.0, 420.0, 130.0, 9800.0, 1200.0)
    lines = lines_of(report(*samples(load(), phases=spent)))
    start = next(number for number, line in enumerate(lines) if line.startswith("  Process 0 in the first cold run:"))
    assert "import warp 420 ms" in lines[start]
    assert lines[start + 1].endswith("loads 9.80 s, everything else 1.20 s.")


def module_rows(made):
    lines = lines_of(made)
    start = next(number for number, line in enumerate(lines) if line.startswith("  MODULE"))
    return [line.split() for line in lines[start + 1 : lines.index("", start)]]


def test_a_row_an_identity_dearest_module_first():
    loads = [
        load("small", ms=10.0),
        load("sim", ms=100.0, generated_source_bytes=2048),
        load("sim", "b", start=200.0, ms=300.0, block_dim=256),
        load("plain", None, start=600.0, ms=1.0, block_dim=None),
    ]
    cold = process(loads, launches=launches({("add", "sim", "a", "cpu", 1): 1500}))
    made = report(sample(run(cold), warm(process([cached("sim"), cached("sim", start=5.0), failed("sim", start=9.0)]))))
    assert module_rows(made) == [
        [
            "sim",
            digest("a")[:7],
            "cpu",
            "1",
            "compiled",
            "2",
            "cached,",
            "1",
            "error",
            "100.0",
            "-",
            "1",
            "2,048",
            "1,500",
        ],
        ["sim", digest("b")[:7], "cpu", "256", "compiled", "-", "300.0", "-", "1", "0", "0"],
        ["small", digest("a")[:7], "cpu", "1", "compiled", "-", "10.0", "-", "1", "0", "0"],
        ["plain", "-", "cpu", "-", "compiled", "-", "1.0", "-", "1", "0", "0"],
    ]


def test_kernels_of_a_factory_share_a_row_with_their_time_a_sample():
    def one(index, factor):
        loads = [
            load(f"scale_{digest(str(n))[:8]}", str(n), start=300.0 * n, ms=factor * (100.0 + n)) for n in range(4)
        ]
        return sample(run(process([*loads, load("pair_0123abcd"), load("pair_89abcdef", "b")])), index=index)

    rows = module_rows(report(one(0, 1.0), one(1, 2.0), one(2, 3.0)))
    assert rows[0] == [
        "scale_*",
        "(4",
        "modules)",
        "4",
        "hashes",
        "cpu",
        "1",
        "4",
        "compiled",
        "-",
        "812.0",
        "406.0",
        "3",
        "0",
        "0",
    ]
    assert [row[0] for row in rows[1:]] == ["pair_0123abcd", "pair_89abcdef"]


def test_many_hashes_of_one_module_share_a_row():
    loads = [load(seed=str(n), start=200.0 * n) for n in range(7)]
    rows = module_rows(report(*samples(*loads, walls=(5000.0,))))
    assert rows == [["sim", "7", "hashes", "cpu", "1", "7", "compiled", "-", "700.0", "-", "1", "0", "0"]]
    assert len(module_rows(report(*samples(*loads[:6], walls=(5000.0,))))) == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step_0123abcd", "step_*"),
        ("warp.fem.integrate_0123abcdef.cell", "warp.fem.integrate_*.cell"),
        ("sim", "sim"),
        ("kernel_1234567", "kernel_1234567"),
        ("grid0123abcd", "grid0123abcd"),
        ("x_" + "a" * 65, "x_" + "a" * 65),
    ],
)
def test_family(name, expected):
    assert probe.family(name) == expected


def test_processes_are_listed_where_there_are_several():
    first = process([load()], launches=launches({("add", "sim", "a", "cpu", 1): 3}))
    others = [
        process([cached()], "0.0", how="fork", end=probe.ProcessEnd.OS_EXIT, exit_code=4),
        process((), "0.1", warp=None, end=probe.ProcessEnd.UNRECORDED, exit_code=None, argv=("python", "bad\x1b.py")),
    ]
    lines = lines_of(report(sample(run(first, *others))))
    start = next(number for number, line in enumerate(lines) if line.startswith("  PROCESS"))
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["python", "sim.py", "0", "exec", "exit", "0", "1.19.0", "1", "1", "100.0", "3"],
        ["python", "sim.py", "0.0", "fork", "os._exit", "4", "1.19.0", "1", "0", "1.0", "0"],
        ["python", "bad\\x1b.py", "0.1", "exec", "not", "recorded", "-", "0", "0", "0.0", "0"],
    ]
    assert not any(line.startswith("  PROCESS") for line in lines_of(report(sample(run(first)))))


def test_cache_events_are_grouped():
    clear = probe.CacheEvent(probe.CacheEventKind.CLEAR_KERNEL_CACHE, 5.0, None, SITE)
    moved = probe.CacheEvent(probe.CacheEventKind.DIRECTORY_SET, 1.0, "/tmp/x", None)
    made = report(sample(run(process(cache_events=(moved, clear, clear))), warm(process(cache_events=(clear,)))))
    lines = lines_of(made)
    start = lines.index("WHAT THE PROGRAM DID TO ITS CACHES")
    assert lines[start + 1 : start + 4] == [
        "  - cold run: directory-set of /tmp/x",
        "  - cold run: clear-kernel-cache at sim.py:42 in main, 2 times",
        "  - warm run: clear-kernel-cache at sim.py:42 in main",
    ]


def test_warnings_and_where_the_rest_is():
    made = report(*samples(load()), warnings=[probe.Notice("loaded-machine", "load average 9 on 2 cores")])
    assert "  - loaded-machine: load average 9 on 2 cores" in lines_of(made)
    assert lines_of(made)[-1] == "Everything else: --json FILE."
    assert lines_of(made, saved_to="out.json")[-1] == "Everything else is in out.json."


# Bounds


def crowded():
    """More of everything than fits."""
    loads = []
    for number in range(120):
        name = f"package.module_{number}_" + "x" * 80
        loads += [load(name, start=10.0 * number), load(name, "b", start=10.0 * number + 5)]
    events = tuple(
        probe.CacheEvent(probe.CacheEventKind.DIRECTORY_SET, 1.0, f"/tmp/{number}/" + "y" * 200, SITE)
        for number in range(90)
    )
    processes = [process(loads, f"0.{number}", cache_events=events, argv=("python", "z" * 300)) for number in range(45)]
    gaps = [probe.Gap(probe.GapReason.CHILD_NOT_RECORDED, number, "detail " * 60) for number in range(1, 80)]
    warnings = [probe.Notice(f"warning-{number}", "text " * 90) for number in range(70)]
    broken = sample(
        run(process([failed(f"m{number}", error="e" * 500) for number in range(50)]), code=1), complete=False
    )
    return report(sample(run(*processes)), broken, gaps=gaps, warnings=warnings)


def test_a_crowded_report_stays_within_its_bounds_and_counts_what_it_hides():
    text = "\n".join(lines_of(crowded(), stderr_tail=["t" * 400] * 100))
    for hidden in ["gaps", "findings", "rows", "processes", "kinds of cache event", "warnings", "failed loads"]:
        assert f" more {hidden}" in text, hidden
    assert "NOT EVERYTHING WAS SEEN (79 gaps)" in text
    rows = text.split("  MODULE")[1].split("\n\n")[0].splitlines()[1:]
    shown, more = rows[:-1], rows[-1]
    assert more == f"  ... and {240 - len(shown)} more rows"


def test_the_fewest_rows_fit_whatever_there_is(monkeypatch):
    monkeypatch.setattr(probe, "ROW_LIMITS", probe.ROW_LIMITS[-1:])
    made = dataclasses.replace(crowded(), label="l" * 300, command=("c" * 300,))
    findings = [dataclasses.replace(finding, text="f" * 900, evidence=("e" * 300,) * 9) for finding in made.findings]
    spent = probe.ProcessPhases(*[1e99] * 6)
    parts = timed(*[1e99] * 3)
    times = {field.name: parts for field in dataclasses.fields(made.summary) if "Timed" in field.type}
    first = made.samples[0].cold.processes[0]
    cold = dataclasses.replace(made.samples[0].cold, processes=(dataclasses.replace(first, phases=spent),) * 3)
    lines = lines_of(
        dataclasses.replace(
            made,
            findings=tuple(findings),
            summary=dataclasses.replace(made.summary, **times),
            samples=(dataclasses.replace(made.samples[0], cold=cold), made.samples[1]),
        ),
        stderr_tail=["t" * 400] * 100,
        saved_to="s" * 300,
    )
    assert any(" more findings" in line for line in lines)


def test_a_small_report_hides_nothing():
    assert not any(re.search(r"and [\d,]+ more", line) for line in lines_of(full_report(), stderr_tail=["boom"]))


def test_rows_give_way_one_by_one():
    def rows_of(count):
        loads = [load(f"module_{number}", str(number), start=200.0 * number) for number in range(count)]
        return len(module_rows(report(*samples(*loads, walls=(90_000.0,)))))

    assert rows_of(30) == 30
    assert rows_of(200) == 41  # forty and the line that counts the others


ODD = st.text(max_size=200) | st.text(alphabet="\x1b\n\r\x00\u202e[2Jm", max_size=50)


@settings(max_examples=50, deadline=None)
@given(SAMPLES, ODD, st.lists(ODD, max_size=30), st.integers(0, 60))
def test_any_report_is_bounded_and_harmless(samples_of, odd, tail, many):
    gaps = [probe.Gap(probe.GapReason.HOOK_FAILED, 1, odd)] * many
    made = report(
        *samples_of,
        gaps=gaps,
        warnings=[probe.Notice("odd", odd)] * many,
        command=("python", odd),
        label=odd,
        cwd=odd,
    )
    lines = lines_of(made, stderr_tail=tail, saved_to=odd or None)
    assert all(line.isprintable() for line in lines)


def test_a_summary_without_its_samples_can_be_shown():
    made = dataclasses.replace(full_report(), samples=())
    made = dataclasses.replace(made, summary=dataclasses.replace(made.summary, cold_wall_ms=timed(1.0)))
    assert lines_of(made)[0].startswith("Cold start 1.00 ms (n=1)")


def test_a_third_run_is_what_the_warm_figures_show():
    made = report(sample(run(process([load()])), warm(process([load(seed="b")])), settle(process(), wall=150.0)))
    assert lines_of(made)[1] == "Warm start 150 ms (n=1); cold minus warm 850 ms (n=1)."
    assert any("second-run-build (hint)" in line for line in lines_of(made))


def test_paths_are_short_where_they_can_be():
    package = probe.Site("/opt/v/lib/python3.11/site-packages/solver/core.py", 7, "step")
    made = report(*samples(load(), load(seed="b", start=300.0, site=package)))
    text = "\n".join(lines_of(made))
    assert "at solver/core.py:7 in step" in text
    assert "site-packages" not in text
    assert made.findings[0].where == package
