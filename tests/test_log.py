"""The log parser: every shape of Warp's lines, torn and interleaved ones, look-alikes, Warp's own output."""

from __future__ import annotations

import itertools
import re

import pytest
import warp_compile_probe as probe
from hypothesis import given, settings
from hypothesis import strategies as st
from warp_compile_probe import LogParser, LogRecord, Status

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

COMPILED, CACHED, ERROR, UNKNOWN = Status.COMPILED, Status.CACHED, Status.ERROR, Status.UNKNOWN


def parse(data: bytes, *cuts: int) -> tuple[list[LogRecord], LogParser]:
    parser = LogParser()
    records = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        records += parser.feed(data[start:end])
    return records + parser.close(), parser


def is_warp_line(line: bytes) -> bool:
    """Whether a line is one of Warp's own and holds nothing of the program's."""
    return bool(line) and not probe.own_output(line)


def record(
    name: str = "sim.solver",
    hash: str | None = "0af1b2c",
    device: str = "cuda:0",
    block_dim: int | None = None,
    ms: float = 812.25,
    status: Status = COMPILED,
    line: int = 1,
) -> LogRecord:
    return LogRecord(name, hash, device, block_dim, ms, status, line)


WHOLE = b"Module sim.solver 0af1b2c load on device 'cuda:0' took 812.25 ms  (compiled)"

SHAPES = [
    ("no hash, no status: up to 1.1", b"Module __main__ load on device 'cpu' took 12.00 ms",
     [record("__main__", None, "cpu", None, 12.0, UNKNOWN)]),
    ("no status: 1.2", b"\tModule __main__ 11aa22b load on device 'cpu' took 3.50 ms\n",
     [record("__main__", "11aa22b", "cpu", None, 3.5, UNKNOWN)]),
    ("two spaces before the status", WHOLE, [record()]),
    ("one space before the status", WHOLE.replace(b"  (", b" ("), [record()]),
    ("four spaces of indent", b"    " + WHOLE, [record()]),
    ("tab indent", b"\t\t" + WHOLE, [record()]),
    ("cached", WHOLE.replace(b"compiled", b"cached"), [record(status=CACHED)]),
    ("error", WHOLE.replace(b"compiled", b"error"), [record(status=ERROR)]),
    ("no marker after a codegen error: up to 1.8", b"Module bad_0123abcd 37ed00e load on device 'cpu' took 0.22 ms \n",
     [record("bad_0123abcd", "37ed00e", "cpu", None, 0.22, UNKNOWN)]),
    ("strip_hash", b"Module sim.solver load on device 'cpu' took 1.25 ms  (cached)",
     [record(hash=None, device="cpu", ms=1.25, status=CACHED)]),
    ("block_dim in debug output",
     b"Module sim.solver 0af1b2c load on device 'cpu' (block_dim=256) took 9.00 ms  (cached)",
     [record(device="cpu", block_dim=256, ms=9.0, status=CACHED)]),
    ("begin lines are no records",
     b"Module sim.solver 0af1b2c load on device 'cpu' (block_dim=1) ...\n    Compile x86 ...\n"
     b"Module m load on device 'cpu' ...\n", []),
    ("CRLF", WHOLE + b"\r\n" + WHOLE + b"\r\n", [record(), record(line=2)]),
    ("progress bar with carriage returns", b"\r 10%|#   | 1/10\r 20%|##  | 2/10" + WHOLE + b"\r 30%|", [record()]),
    ("a dot in front", b"..s." + WHOLE, [record()]),
    ("a test in front", b"test_step (sim.Tests.test_step) ... " + WHOLE, [record()]),
    ("a word in front", b"step" + WHOLE, [record()]),
    ("two records in one line", WHOLE + WHOLE.replace(b"0af1b2c", b"1af1b2c"), [record(), record(hash="1af1b2c")]),
    ("the first torn in its name",
     b"Module sim.soModule sim.contact 77aa88b load on device 'cpu' took 5.00 ms  (cached)",
     [record("sim.contact", "77aa88b", "cpu", None, 5.0, CACHED)]),
    ("torn in its status", WHOLE[:-5], [record(status=UNKNOWN)]),
    ("nothing after the time", WHOLE[: WHOLE.index(b" ms") + 3], [record(status=UNKNOWN)]),
    ("NUL bytes around", b"\0" * 4096 + WHOLE + b"\0" * 4096, [record()]),
    ("bytes that are no text", bytes(range(128, 256)) + WHOLE + b"\xff\xfe\x80", [record()]),
    ("colour", b"\x1b[1;32mModule\x1b[0m sim.solver \x1b[33m0af1b2c\x1b[0m load on device \x1b[32m'cuda:0'\x1b[m took "
     b"\x1b[1m812.25\x1b[0m ms  (\x1b[38;2;1;2;3mcompiled\x1b(B\x1b[m)", [record()]),
    ("grep --color", b"\x1b[01;31m\x1b[KModule\x1b[m\x1b[K sim.solver 0af1b2c lo\x1b[01;31m\x1b[Kad on\x1b[m\x1b[K"
     b" device 'cuda:0' took 812.25 ms  (compiled)", [record()]),
    ("logging prefix", b"2031-02-03 04:05:06,789 - warp - INFO - " + WHOLE, [record()]),
    ("ray prefix", b"\x1b[36m(Worker pid=4711, ip=10.0.0.9)\x1b[0m " + WHOLE, [record()]),
    ("pytest prefix", b"tests/test_sim.py::test_step " + WHOLE + b"\nPASSED", [record()]),
    ("MPI prefix", b"[1,3]<stdout>:" + WHOLE, [record()]),
    ("notebook line", b'      "' + WHOLE + b'\\n",\n', [record()]),
    ("lines of a notebook in one string", b'"text": "' + WHOLE + b"\\n" + WHOLE + b'\\n"', [record(), record()]),
    ("quotes escaped in JSON", WHOLE.replace(b"'", b"\\u0027"), [record()]),
    ("quotes escaped in a shell", WHOLE.replace(b"'", b"\\'"), [record()]),
    ("quotes escaped in HTML", WHOLE.replace(b"'", b"&#39;"), [record()]),
    ("typographic quotes", "Module m load on device \u2018cpu\u2019 took 1.00 ms (cached)".encode(),
     [record("m", None, "cpu", None, 1.0, CACHED)]),
    ("Markdown fence and comment", b"```\n" + WHOLE + b"   # the slow one\n```", [record(line=2)]),
    ("Markdown list", b"- `" + WHOLE + b"`, see above", [record()]),
    ("a quote behind", WHOLE + b"'", [record()]),
    ("a name from runpy", b"Module <run_path> 0af1b2c load on device 'cpu' took 1.00 ms  (cached)",
     [record("<run_path>", device="cpu", ms=1.0, status=CACHED)]),
    ("a name that is not ASCII", "Module übung.λ 0af1b2c load on device 'cpu' took 1.00 ms  (cached)".encode(),
     [record("übung.λ", device="cpu", ms=1.0, status=CACHED)]),
    ("a name that is not UTF-8", b"Module \xfcbung 0af1b2c load on device 'cpu' took 1.00 ms  (cached)",
     [record("\\xfcbung", device="cpu", ms=1.0, status=CACHED)]),
    ("a name that ends in Module", b"Module pkg.Module 0af1b2c load on device 'cpu' took 1.00 ms  (cached)",
     [record("pkg.Module", device="cpu", ms=1.0, status=CACHED)]),
    ("a long name", b"Module " + b"k" * 400 + b" 0af1b2c load on device 'cpu' took 1.00 ms  (cached)",
     [record("k" * 400, device="cpu", ms=1.0, status=CACHED)]),
    ("line numbers", b"a\n\nb\r\n" + WHOLE + b"\n\n" + WHOLE, [record(line=4), record(line=6)]),
    ("error, then compiled", WHOLE.replace(b"compiled", b"error") + b"\n" + WHOLE,
     [record(status=ERROR), record(line=2)]),
    ("one hash on two devices", WHOLE + b"\n" + WHOLE.replace(b"cuda:0", b"cpu"),
     [record(), record(device="cpu", line=2)]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [pytest.param(*case[1:], id=case[0]) for case in SHAPES])
def test_shapes(data: bytes, expected: list[LogRecord]) -> None:
    records, parser = parse(data)
    assert records == expected
    assert parser.unreadable == 0


@pytest.mark.parametrize(
    "data",
    [
        b"Model sim: loaded on device 'cuda:0' in 812.25 ms (compiled)",
        b"k0 took 7536.13 ms",
        b"    Module training took 12.00 ms",
        b"loading Module sim.solver on device 'cpu'",
        rb"""re.compile(r"Module (\S+) (\S+) load on device '(\S+)' took ([\d.]+) ms\s+\((compiled|cached)\)")""",
        b"""print(f"Module {name} {digest} load on device '{device}' took {ms:.2f} ms  (compiled)")""",
        b"\"Module %s %s load on device '%s' took %.2f ms\"",
        b"Module <name> <hash> load on device '<device>' took <ms> ms  (compiled|cached|error)",
        b"every module has to load on device memory",
        b"[Module.load] Module hash changed, recompiling: sim.solver (0af1b2c3 -> 1af1b2c3)",
        b"Compile x86 ...",
        b"Compile took 3.00 ms",
        b"Compile CUDA kernels took 3.00 ms",
    ],
)
def test_look_alikes_are_neither_records_nor_unreadable(data: bytes) -> None:
    records, parser = parse(data + b"\n")
    assert records == []
    assert (parser.unreadable, parser.native_compiles) == (0, 0)


@pytest.mark.parametrize(
    ("data", "records", "unreadable"),
    [
        (b"Module a 0af1b2c load on device 'cuda:0", 0, 1),
        (b"Module a 0af1b2c load on dev\n", 0, 0),
        (b"Module a 0af1b2c load on device", 0, 1),
        (b"Module a 0af1b2c load on device 'cpu' took 0.6" + WHOLE, 1, 1),
        (b"Module a 0af1b2c load on device 'cu" + WHOLE, 1, 1),
        (b"solver 0af1b2c load on device 'cpu' took 5.00 ms  (cached)\n", 0, 1),
        (b"Module a notahex load on device 'cpu' took 5.00 ms  (cached)\n", 0, 1),
        (b"Module a 0af1b2c load on device 'cpu' took 1234567890123.00 ms  (cached)\n", 0, 1),
        (b"Module " + b"k" * 600 + b" 0af1b2c load on device 'cpu' took 5.00 ms  (cached)\n", 0, 1),
        (b"Module a 0af1b2c load on device 'cpu'\n took 5.00 ms  (cached)\n", 0, 1),
    ],
)
def test_torn_records_are_counted_not_guessed(data: bytes, records: int, unreadable: int) -> None:
    found, parser = parse(data)
    assert (len(found), parser.unreadable) == (records, unreadable)


def test_native_compiler_lines_are_summed() -> None:
    data = (
        b"\tCompile x86 took 10.25 ms\n    Compile CUDA took 20.50 ms\n"
        b"    Compile CUDA (arch=90a, mode=release, block_dim=256) took 30.00 ms\n"
        b".Compile x86 took 1.00 ms Compile x86 ...\n"
    )
    records, parser = parse(data)
    assert records == []
    assert (parser.native_compile_ms, parser.native_compiles) == (61.75, 4)


def test_banners_name_versions_and_count_starts() -> None:
    data = b"..Warp 1.9.0.dev3+ab initialized:\n  x\n" + b"Warp 1.19.0 initialized:\n" * 2 + b"model initialized:\n"
    _, parser = parse(data)
    assert (parser.starts, parser.versions) == (3, ["1.9.0.dev3+ab", "1.19.0"])


def test_memory_is_bounded_without_newlines() -> None:
    parser = LogParser()
    found = []
    for _ in range(200):
        found += parser.feed(b"x" * 50_000 + WHOLE + b"\0" * 50_000)
        assert len(parser._buffer) <= probe.LOG_LOOK_BACK + probe.LOG_LOOK_AHEAD
    found += parser.close()
    assert len(found) == 200
    assert {one.line for one in found} == {1}


NAMES = st.from_regex(rb"[a-zA-Z_.]{1,20}(?:_[0-9a-f]{8})?", fullmatch=True)
LINES = st.builds(
    lambda indent, name, digits, device, block_dim, ms, status: (
        indent
        + b"Module "
        + name
        + (b" " + digits if digits else b"")
        + b" load on device '"
        + device
        + b"'"
        + (b" (block_dim=%d)" % block_dim if block_dim else b"")
        + b" took %.2f ms" % ms
        + status
        + b"\n"
    ),
    st.sampled_from([b"", b"    ", b"\t", b"."]),
    NAMES,
    st.none() | st.from_regex(rb"[0-9a-f]{7}", fullmatch=True),
    st.sampled_from([b"cpu", b"cuda:0", b"cuda:11"]),
    st.sampled_from([None, 1, 256]),
    st.floats(0, 1e6),
    st.sampled_from([b"", b" ", b" (compiled)", b"  (cached)", b"  (error)"]),
)
NOISE = st.sampled_from(
    [
        b"Module sim.solver 0af1b2c load on device 'cpu' (block_dim=1) ...\n",
        b"    Compile x86 took 12.50 ms\n",
        b"Warp 1.19.0 initialized:\n",
        b"step 1\r\n",
        b"\r50%|###",
        b"\x1b[32mgreen\x1b[0m ",
        b"\0\0\0\xff\n",
        b"load on device ",
        b"Module ",
        b"\n",
    ]
)
LOGS = st.lists(LINES | NOISE, max_size=8).map(b"".join)
# A torn colour sequence swallows what follows it, as on a terminal; a long run without newline outgrows the buffer.
ROUGH = st.lists(LINES | NOISE | st.sampled_from([b"\x1b[", b"\x1b", b"x" * 700]), max_size=8).map(b"".join)


def outcome(data: bytes, *cuts: int) -> tuple[object, ...]:
    records, parser = parse(data, *cuts)
    return records, parser.unreadable, parser.native_compile_ms, parser.native_compiles, parser.starts, parser.versions


def says(line: bytes, one: LogRecord) -> bool:
    """Whether the text of a line holds the record; pieces of two numbers may have met in one like 0.1250."""
    digits = f" {one.hash}" if one.hash else ""
    block_dim = rb" \(block_dim=0*%d\)" % one.block_dim if one.block_dim is not None else b""
    head = re.escape(f"Module {one.name}{digits} load on device '{one.device}'".encode()) + block_dim
    status = rb"(?! *\((?:compiled|cached|error)\))" if one.status is UNKNOWN else rf" *\({one.status.value}\)".encode()
    return any(float(ms) == one.ms for ms in re.findall(head + rb" took ([0-9.]+) ms" + status, line))


def assert_not_invented(data: bytes, records: list[LogRecord]) -> None:
    lines = re.sub(rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\([0-~])", b"", data).split(b"\n")
    for one in records:
        assert says(lines[one.line - 1], one)


@given(LOGS)
def test_whole_logs_give_every_record(data: bytes) -> None:
    records, _ = parse(data)
    assert len(records) == data.count(b" took ") - data.count(b"Compile x86 took")
    assert_not_invented(data, records)


@given(ROUGH, st.lists(st.integers(0, 4000), max_size=6))
def test_chunk_boundaries_do_not_matter(data: bytes, cuts: list[int]) -> None:
    assert outcome(data, *(min(cut, len(data)) for cut in cuts)) == outcome(data)


@settings(max_examples=30)
@given(ROUGH)
def test_byte_by_byte(data: bytes) -> None:
    assert outcome(data, *range(1, len(data))) == outcome(data)


@given(st.lists(st.tuples(ROUGH, st.lists(st.integers(0, 800), max_size=4)), min_size=1, max_size=3), st.randoms())
def test_interleaved_pieces_never_invent_a_record(logs: list[tuple[bytes, list[int]]], random: object) -> None:
    """Writers that share a pipe: the pieces of each log stay in order, pieces of the others come between them."""
    queues = []
    for data, cuts in logs:
        edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        queues.append([data[start:end] for start, end in itertools.pairwise(edges)])
    mixed = b""
    while any(queues):
        queue = random.choice([queue for queue in queues if queue])  # type: ignore[attr-defined]
        mixed += queue.pop(0)
    records, parser = parse(mixed)
    assert_not_invented(mixed, records)
    assert parser.unreadable <= mixed.count(b"load on device")


@given(st.binary(max_size=3000), st.lists(st.integers(0, 3000), max_size=5))
def test_any_bytes(data: bytes, cuts: list[int]) -> None:
    assert outcome(data, *(min(cut, len(data)) for cut in cuts)) == outcome(data)


@pytest.mark.parametrize("size", [0, 1, 300, 1500])
def test_a_record_in_an_endless_line_is_found_at_any_cut(size: int) -> None:
    data = b"Module " * 50 + b"x" * size + WHOLE + b"y" * size + WHOLE[:40]
    expected = outcome(data)
    assert expected[0] == [record()]
    for cut in range(len(data)):
        assert outcome(data, cut) == expected


OWN_LINES = [
    b"Warp 1.19.0 initialized:\n",
    b"   Git commit: 0123456789abcdef\n",
    b"   CUDA Toolkit 13.4, CUDA driver not available (NVRTC compilation available)\n",
    b"   CUDA not enabled in this build\n",
    b"   CUDA driver not found or failed to initialize\n",
    b"   CUDA devices not available\n",
    b"   Devices:\n",
    b'     "cpu"      : "x86_64"\n',
    b'     "cuda:0"   : "NVIDIA L4" (22 GiB, sm_89, mempool enabled)\n',
    b'     "cuda:1"   : Non-primary context on device "cuda:0"\n',
    b"   CUDA peer access:\n",
    b"     Supported fully (all-directional)\n",
    b"     Supported partially (see access matrix)\n",
    b'     "cuda:0"   : [1, 0]\n',
    b"     Not supported\n",
    b"   Kernel cache:\n",
    b"     /home/me/.cache/warp/1.19.0\n",
    b"     C:\\Users\\me\\AppData\\Local\\NVIDIA\\warp\\Cache\\1.8.0\r\n",
    WHOLE + b"\n",
    WHOLE,
    b"    " + WHOLE + b"\r\n",
    b"\tModule m 0af1b2c load on device 'cpu' took 3.50 ms\n",
    b"Module m 0af1b2c load on device 'cpu' took 3.50 ms \n",
    b"Module m 0af1b2c load on device 'cpu' (block_dim=1) ...\n",
    b"    Compile x86 ...\n",
    b"        Compile x86 took 3491.93 ms\n",
    b"    Compile CUDA (arch=80, mode=release, block_dim=256) took 20.50 ms\n",
    b"[Module.load] Module hash changed, recompiling: m (0af1b2c3 -> 1af1b2c3)\n",
    b"[ModuleHasher] Generic kernel hash changed: k (0af1b2c3 -> 1af1b2c3)\n",
    b"[Module.get_kernel_hooks] Looking up kernel: k (hash: 0af1b2c3)\n",
    b"[wp.kernel] Created new unique module: c_bc74f80c\n",
    b"Warp: Generating precompiled header: /tmp/wp_pch_ref2_68y/builtin_bd1_tis.pch\n",
    b"Warp: Precompiled header generated successfully\n",
    b"Warp: Compilation with PCH failed, retrying without precompiled headers\n",
    b'"wp_m_0af1b2c.cu": creating precompiled header file "/tmp/wp_m_0af1b2c.pch"\n',
    b"\x1b[32m" + WHOLE + b"\x1b[0m\n",
    b"2031-02-03 04:05:06 INFO warp: " + WHOLE + b"\n",
]


@pytest.mark.parametrize("line", OWN_LINES)
def test_warps_own_lines(line: bytes) -> None:
    assert is_warp_line(line)
    assert probe.own_output(line) == b""


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"   \n",
        b"result 42\n",
        b"user took 12.00 ms\n",
        b"     0.25 0.50\n",
        b'     "loss" 3\n',
        b"   Dice:\n",
        b"Module training started\n",
        b"Warp speed initialized: yes\n",
        b"Warp: engaged\n",
        b"Warp UserWarning: this concerns the program\n",
        b"[Module.load]\n",
        b"kernel: k dim: (4,) inputs: [] outputs: [] device: cpu\n",
        b"\x1b[32mgreen\x1b[0m\n",
        WHOLE + b" and the program goes on\n",
        b"\xff\0\xfe",
    ],
)
def test_the_programs_own_lines(line: bytes) -> None:
    assert not is_warp_line(line)
    assert probe.own_output(line) == line


@pytest.mark.parametrize(
    ("line", "own"),
    [
        (b"..F." + WHOLE + b"\n", b"..F."),
        (b"step 3: " + WHOLE + b"\r\n", b"step 3: "),
        (b"\r50%|## |" + WHOLE + b"\n", b"\r50%|## |"),
        (b"ready Warp 1.19.0 initialized:\n", b"ready "),
        (b"loading\tModule m 0af1b2c load on device 'cpu' ...\n", b"loading\t"),
        (b"Module a 0af1b2c load on de" + WHOLE + b"\n", b"Module a 0af1b2c load on de"),
    ],
)
def test_text_in_front_of_warps_is_the_programs(line: bytes, own: bytes) -> None:
    assert probe.own_output(line) == own
    assert not is_warp_line(line)
