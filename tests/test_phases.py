"""Where the time of real builds and of a real process goes: the parts add up, and little is left over."""

import statistics

import pytest
import warp_compile_probe as probe

pytestmark = pytest.mark.warp(since="1.10")

LARGE_MS = 100.0  # of smaller builds, Warp's own Python is a larger part
LEFT_OVER = 0.02


@pytest.fixture(scope="module")
def report(measure):
    """Five builds of one module in one process."""
    return measure("late_everything.py", shared=True).report


def test_little_of_a_build_is_left_over(report):
    builds = [load for sample in report.samples for load in probe.builds_of(sample.cold) if load.ms >= LARGE_MS]
    assert len(builds) >= 2
    for load in builds:
        parts = load.phases
        told = parts.codegen_ms + parts.lto_ms + parts.native_ms + parts.install_ms + parts.load_ms
        assert told + parts.rest_ms == pytest.approx(load.ms, abs=0.01)
    # The median: on a busy machine, one of them may have had to wait in between.
    assert statistics.median(load.phases.rest_ms / load.ms for load in builds) <= LEFT_OVER


def test_a_header_is_told_once_a_thread_and_block_dim(report, target):
    builds = probe.builds_of(report.samples[0].cold)
    headers = [load.phases.header_ms for load in builds]
    if target.warp < (1, 13):  # no header is built for the CPU
        assert headers == [None] * len(builds)
        return
    assert len({(load.thread, load.block_dim) for load in builds}) == 1
    assert headers[0] > 0
    assert headers[1:] == [0.0] * (len(builds) - 1)
    assert all(load.phases.header_ms <= load.phases.native_ms for load in builds)


def test_the_time_of_a_process_adds_up(report):
    (process,) = report.samples[0].cold.processes
    phases = process.phases
    parts = (
        phases.interpreter_ms,
        phases.imports_before_warp_ms,
        phases.import_warp_ms,
        phases.init_ms,
        phases.loads_ms,
        phases.rest_ms,
    )
    assert all(part >= 0 for part in parts)
    assert phases.import_warp_ms > 0
    assert phases.init_ms > 0
    assert phases.loads_ms == pytest.approx(sum(load.ms + load.hash_ms for load in process.loads), rel=0.01)
    assert sum(parts) == pytest.approx(process.end_ms, rel=0.01)


def test_the_text_says_where_the_time_went(measure):
    text = measure("late_everything.py", shared=True).stdout
    assert "  left over" in text
    assert "Process 0 in the first cold run: interpreter" in text
