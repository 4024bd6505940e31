"""The programs of the corpus raise the findings that they say, and no others. Real builds: a third of them by default,
another third each day; `--corpus all` for all, `--corpus NAME` for one."""

import datetime
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "corpus"))

import run as corpus

sys.path.pop(0)

pytestmark = pytest.mark.warp(since="1.10")


def chosen(batches, which, day):
    """The batches to measure on a day."""
    if which == "all":
        return batches
    if which == "third":
        return batches[day.toordinal() % 3 :: 3]
    return [batch for batch in batches if which in [program.name for program in batch.programs]]


def pytest_generate_tests(metafunc):
    if "batch" not in metafunc.fixturenames:
        return
    python = metafunc.config.getoption("--target-python")
    try:
        release = corpus.warp_release(python)
    except (OSError, ValueError, corpus.subprocess.CalledProcessError):
        release = (1, 19)  # a test that is skipped, for want of Warp
    batches = corpus.batches(corpus.read_programs(release), python, release)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    found = chosen(batches, metafunc.config.getoption("--corpus"), today)
    metafunc.parametrize("batch", found, ids=[batch.name for batch in found])


def test_findings_are_those_that_the_programs_expect(batch, tmp_path):
    report = corpus.measure(batch, tmp_path / "report.json", echo=False)
    assert report.coverage.gaps == ()
    outcomes = corpus.judge_batch(batch, corpus.judged_report(batch, report).findings)
    assert {outcome.program: outcome.wrong for outcome in outcomes if outcome.wrong} == {}


def test_what_a_program_may_raise_is_neither_missing_nor_too_much(tmp_path):
    path = tmp_path / "program.py"
    lines = ["Expect: CS-1 hint", "May: CS-2 hint", "May (<1.18): CS-3 hint"]
    path.write_text("".join(f"{line} module=- at=-\n" for line in lines), encoding="utf-8")
    program = corpus.read_program(path, "program", (1, 19))

    def outcome(*mechanisms):
        kind = corpus.probe.FindingKind.HINT
        found = [corpus.probe.Finding(one, kind, None, None, None, 1.0, None, (), None, "", None) for one in mechanisms]
        judged = corpus.judge(program, found, "__main__")
        return judged.found, [item.mechanism for item in judged.missing], [item.mechanism for item in judged.surplus]

    assert outcome("CS-1") == (("CS-1",), [], [])
    assert outcome("CS-2", "CS-1", "CS-2") == (("CS-2", "CS-1", "CS-2"), [], [])
    assert outcome("CS-2", "CS-3") == (("CS-2",), ["CS-1"], ["CS-3"])
    assert outcome("CS-1", "CS-1") == (("CS-1",), [], ["CS-1"])


def test_three_days_measure_everything():
    batches = corpus.batches(corpus.read_programs((1, 19)), "python", (1, 19))
    days = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
    measured = [batch.name for day in days for batch in chosen(batches, "third", day)]
    assert sorted(measured) == sorted(batch.name for batch in batches)
    assert [batch.name for batch in chosen(batches, "caching_off", days[0])] == ["caching_off"]
    assert chosen(batches, "all", days[0]) == batches


@pytest.mark.parametrize("release", [(1, 12, 1), (1, 16, 0), (1, 19, 0)], ids=str)
def test_the_corpus_is_large_enough(release):
    programs = corpus.read_programs(release)
    redundant = [program for program in programs if any(item.kind == "redundant" for item in program.expected)]
    assert len(programs) >= 50
    assert len(programs) - len(redundant) >= 10
    shapes = {}
    for program in programs:
        for mechanism in {item.mechanism for item in program.expected}:
            shapes[mechanism] = shapes.get(mechanism, 0) + 1
    once = {"builds-overlapped", "built-per-process", "cpu-parallel-load", "build-error", "CS-13"}
    assert all(count >= 2 for mechanism, count in shapes.items() if mechanism not in once)
    everywhere = {"CS-1", "CS-2", "CS-3", "CS-4", "CS-6", "CS-8", "CS-9", "CS-10", "CS-11", "identity-unstable"}
    assert everywhere <= set(shapes)
    assert release < (1, 18) or {"CS-5", "CS-12", "load-in-capture", "variant-never-launched"} <= set(shapes)
