"""The digest of a program's output: the same whatever Warp prints between, however the output is cut into chunks."""

from __future__ import annotations

import os
import signal

import pytest
import warp_compile_probe as probe

PROGRAM_LINES = [b"[1. 2. 3.]", b"", b"   indented by the program", b"step 7 took long", b"done"]
BANNER = [
    b"Warp 1.19.0 initialized:",
    b"   CUDA Toolkit 13.4, CUDA driver not available (NVRTC compilation available)",
    b"   Devices:",
    b'     "cpu"      : "x86_64"',
    b"   Kernel cache:",
    b"     PRIVATE/1/warp/1.19.0",
]
BUILD = b"Module app 8d1bb17 load on device 'cpu' took 3310.25 ms  (compiled)"


def read(data: bytes, private: str, chunk: int | None = None) -> probe.OutputReader:
    source, sink = os.pipe()
    with os.fdopen(source, "rb", buffering=0) as stream:
        reader = probe.OutputReader(stream, private, None, False)
        step = chunk or max(1, len(data))
        for start in range(0, len(data), step):
            os.write(sink, data[start : start + step])
        os.close(sink)
        reader.finish()
    return reader


def text(lines: list[bytes], private: str = "/tmp/wcp-a") -> bytes:
    return b"".join(line.replace(b"PRIVATE", private.encode()) + b"\n" for line in lines)


def digest(lines: list[bytes], private: str = "/tmp/wcp-a", chunk: int | None = None) -> str:
    return read(text(lines, private), private, chunk).hash.hexdigest()


@pytest.mark.parametrize(
    "lines",
    [
        [*BANNER, *PROGRAM_LINES],
        [PROGRAM_LINES[0], BUILD, *PROGRAM_LINES[1:]],
        [*BANNER, BUILD, PROGRAM_LINES[0], BUILD, BUILD, *PROGRAM_LINES[1:], BUILD],
    ],
)
def test_lines_of_warp_do_not_count(lines):
    assert digest(lines) == digest(PROGRAM_LINES)


def test_every_line_of_the_program_counts():
    for index in range(len(PROGRAM_LINES)):
        assert digest(PROGRAM_LINES[:index] + PROGRAM_LINES[index + 1 :]) != digest(PROGRAM_LINES)


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_where_the_output_is_cut_does_not_count(chunk):
    lines = [*BANNER, BUILD, *PROGRAM_LINES]
    assert digest(lines, chunk=chunk) == digest(lines)


def test_the_private_directory_and_timings_do_not_count():
    told = [b"cache in PRIVATE/1/warp", b"scene took 12.5 ms"]
    again = [b"cache in PRIVATE/1/warp", b"scene took 99.75 ms"]
    assert digest(told, private="/tmp/wcp-a") == digest(again, private="/tmp/wcp-b")


def test_a_line_without_an_end_counts_and_memory_stays_bounded():
    private = "/tmp/wcp-a"
    one, other = (read(b"\0" * (1 << 20) + last, private) for last in (b"a", b"b"))
    assert one.hash.hexdigest() != other.hash.hexdigest()
    assert len(one.line) <= probe.TAIL_BYTES
    assert len(one.tail) <= probe.TAIL_BYTES
    assert one.size == (1 << 20) + 1


def test_signals_are_left_to_the_main_thread():
    source, sink = os.pipe()
    with os.fdopen(source, "rb", buffering=0) as stream:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        reader = probe.OutputReader(stream, "/tmp/wcp-a", None, False)
        with open(f"/proc/self/task/{reader.native_id}/status", encoding="ascii") as file:
            (blocked,) = [int(line.split()[1], 16) for line in file if line.startswith("SigBlk")]
        os.close(sink)
        reader.finish()
    assert all(blocked >> (number - 1) & 1 for number in (*probe.ENDING_SIGNALS, signal.SIGALRM))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
