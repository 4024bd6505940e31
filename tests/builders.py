"""Small builders for what a recorder writes down: every argument that a test does not care about has a default."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

import warp_compile_probe as probe

SITE = probe.Site("/work/app/sim.py", 42, "main")
NO_LAUNCHES = probe.Launches(0, 0, (), (), ())


def digest(seed: str) -> str:
    """A module hash of 64 hex digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


def phases(ms=0.0, **parts):
    nothing = dict.fromkeys(("codegen_ms", "lto_ms", "install_ms", "load_ms", "rest_ms"), 0.0)
    return probe.Phases(**{**nothing, "native_ms": ms, "header_ms": None, **parts})


def load(name="sim", seed: str | None = "a", *, start: float | None = 0.0, ms=100.0, **changes):
    """A build on the CPU at block_dim 1, recorded by a hook; `seed` makes its hash, `start` is its timer."""
    values = {
        "hash": None if seed is None else digest(seed),
        "device": "cpu",
        "block_dim": 1,
        "status": probe.Status.COMPILED,
        "kind": probe.LoadKind.JIT,
        "source": probe.Source.HOOK,
        "thread": 1,
        "start_ms": start,
        "end_ms": None if start is None else start + ms,
        "hash_ms": 0.0,
        "phases": phases(ms),
        "generated_source_bytes": 0,
        "lto": (),
        "site": SITE,
        "workers": None,
        "in_capture": False,
        "option_set": None,
        "kernels": (),
        "unreached": (),
        "cause": None,
        "error": None,
    }
    return probe.Load(name=name, ms=ms, **{**values, **changes})


def cached(name="sim", seed="a", *, start=0.0, ms=1.0, **changes):
    return load(name, seed, start=start, ms=ms, status=probe.Status.CACHED, **changes)


def failed(name="sim", seed="a", *, start=0.0, ms=50.0, error="boom", **changes):
    return load(name, seed, start=start, ms=ms, status=probe.Status.ERROR, error=error, **changes)


def log_line(name="sim", seed="a", *, ms=100.0, **changes):
    """A build that only a line of the output tells of: 7 digits, no block_dim, no times."""
    values = {"hash": digest(seed)[:7], "block_dim": None, "source": probe.Source.LOG, "phases": None, "site": None}
    return load(name, seed, start=None, ms=ms, **{**values, **changes})


def launches(counts: Mapping[tuple, int], unknown=0):
    """Launches from {(kernel key, module, seed of its hash, device, block_dim): count}."""
    kernels = tuple(
        probe.LaunchedKernel(key, module, digest(seed), device, block_dim, digest(key), ("float32",))
        for key, module, seed, device, block_dim in counts
    )
    entries = tuple(probe.LaunchEntry(index, (64,), False, count) for index, count in enumerate(counts.values()))
    total = sum(counts.values())
    stream = probe.LaunchStream(1, total, probe.Order.EXACT, 1, "", digest("stream"))
    return probe.Launches(total, unknown, kernels, entries, (stream,))


def process(loads: Sequence[probe.Load] = (), path="0", **changes):
    values = {
        "pid": 100 + int(path.replace(".", "") or 0),
        "how": "exec",
        "argv": ("python", "sim.py"),
        "executable": "/usr/bin/python3",
        "python": "3.11.7",
        "warp": "1.19.0",
        "start_ms": 0.0,
        "end_ms": 900.0,
        "end": probe.ProcessEnd.EXIT,
        "exit_code": 0,
        "phases": None,
        "hash_ms": 0.0,
        "hashings": 0,
        "cache_events": (),
        "config_events": (),
        "option_sets": (),
        "built_kernels": (),
        "tapes": 0,
        "launches": NO_LAUNCHES,
        "hook_errors": (),
    }
    return probe.Process(path=path, loads=tuple(loads), **{**values, **changes})


def run(*processes, kind=probe.RunKind.COLD, wall=1000.0, code: int | None = 0, signal=None, timed_out=False):
    return probe.Run(
        kind=kind,
        wall_ms=wall,
        exit=probe.Exit(code, signal, timed_out),
        processes=processes,
        output=probe.Output(10, 0, digest("output")),
        cross_check=probe.CrossCheck(0, 0, 0, ()),
    )


def warm(*processes, wall=200.0, **changes):
    return run(*processes, kind=probe.RunKind.WARM, wall=wall, **changes)


def settle(*processes, wall=200.0, **changes):
    return run(*processes, kind=probe.RunKind.SETTLE, wall=wall, **changes)


def sample(cold: probe.Run | None, warm_run: probe.Run | None = None, settle_run=None, *, index=0, complete=True):
    """A complete sample unless told otherwise; its warm run does nothing unless given."""
    if complete and warm_run is None:
        warm_run = warm()
    return probe.Sample(index, complete, cold, warm_run, settle_run)


def timed(*values):
    return probe.timed(values)


def report(*samples, gaps=(), warnings=(), **changes):
    """The report that `measure` makes of the samples."""
    options = probe.Options(len(samples), None, {}, False, 0, False)
    cold = next((one.cold for one in samples if one.complete), None)
    processes = cold.processes if cold else ()
    values = {
        "created": "2026-11-29T15:00:00+00:00",
        "command": ("python", "sim.py"),
        "cwd": "/work/app",
        "label": None,
        "options": options,
        "environment": probe.Environment(
            target_python="3.11.7",
            warp="1.19.0",
            cuda_toolkit="13.4",
            cuda_driver=None,
            devices=(probe.Device("cpu", "x86_64", None),),
            cpu_model="A fine CPU",
            cores=2,
            os="Linux",
            architecture="x86_64",
            load_average_start=0.1,
            load_average_end=0.2,
            git_commit=None,
            git_dirty=None,
            variables={},
        ),
        "coverage": probe.Coverage(
            processes=len(processes),
            used_warp=sum(one.warp is not None for one in processes),
            ended_cleanly=sum(one.end is not probe.ProcessEnd.UNRECORDED for one in processes),
            gaps=tuple(gaps),
        ),
        "summary": probe.summarise(samples),
        "identities": probe.identity_records(samples),
        "findings": probe.findings(samples, gaps),
        "warnings": (*probe.exact_differences(samples), *warnings),
        "offline": {},
    }
    return probe.Report(
        schema=probe.REPORT_SCHEMA,
        schema_version=probe.SCHEMA_VERSION,
        probe_version=probe.PROBE_VERSION,
        samples=samples,
        **{**values, **changes},
    )


def offline_load(name="sim", seed="a", *, block_dim=64, **changes):
    """A load for sm_90, compiled without a device."""
    values = {"device": "sm_90", "kind": probe.LoadKind.OFFLINE, "block_dim": block_dim}
    return load(name, seed, **{**values, **changes})


def offline_sample(*processes, index=1, warm_loads=()):
    """A complete sample of an offline block; its warm run loads `warm_loads`, or nothing."""
    cold = probe.on_device(run(*processes, kind=probe.RunKind.OFFLINE))
    return sample(cold, probe.on_device(run(process(warm_loads), kind=probe.RunKind.OFFLINE_WARM)), index=index)


def offline_block(*samples, gaps=(), toolkit="13.4"):
    """The block that `measure --cuda-arch` makes of the samples."""
    return probe.OfflineMeasurement(toolkit, list(samples), dict.fromkeys(gaps)).block()


def full_report():
    """A report in which nothing is null and no list is empty, as far as one report can be so."""
    cause = probe.Cause(
        probe.CauseReason.OPTION_CHANGED,
        (probe.Change(probe.CauseReason.OPTION_CHANGED, "fast_math", "False", "True", SITE),),
        digest("a"),
    )
    built = load(
        phases=phases(60.0, codegen_ms=10.0, lto_ms=20.0, header_ms=40.0, install_ms=1.0, load_ms=2.0, rest_ms=7.0),
        generated_source_bytes=1234,
        lto=(probe.LtoArtifact("dot_1", 99, 20.0, adjoint=True),),
        workers=2,
        in_capture=True,
        option_set=0,
        kernels=(0,),
        unreached=(probe.UnreachedOption("enable_backward", "True", "False"),),
        cause=cause,
    )
    events = (probe.CacheEvent(probe.CacheEventKind.DIRECTORY_SET, 3.0, "/tmp/cache", SITE),)
    used = launches({("add", "sim", "a", "cpu", 1): 3})
    first = process(
        [built, failed(start=200.0)],
        phases=probe.ProcessPhases(20.0, 30.0, 40.0, 50.0, 160.0, 600.0),
        cache_events=events,
        config_events=(probe.ConfigEvent("enable_backward", "True", "False", 1.0, SITE),),
        option_sets=({"mode": "'release'"},),
        built_kernels=(probe.BuiltKernel("scale", probe.Site("a.py", 1, "scale"), False, False, True, 1),),
        tapes=1,
        launches=used,
        hook_errors=("launch: TypeError",),
    )
    environment = probe.Environment(
        target_python="3.11.7",
        warp="1.19.0",
        cuda_toolkit="13.4",
        cuda_driver="13.4",
        devices=(probe.Device("cuda:0", "H200", 90),),
        cpu_model="A fine CPU",
        cores=2,
        os="Linux",
        architecture="x86_64",
        load_average_start=0.1,
        load_average_end=0.2,
        git_commit="0123abc",
        git_dirty=True,
        variables={"WARP_CACHE_PATH": "/cache"},
    )
    stopped = dataclasses.replace(
        run(first, code=None, signal="SIGKILL"), cross_check=probe.CrossCheck(1, 1, 2, ("x",))
    )
    samples = (
        sample(run(first), warm(process([built])), settle(process([built]))),
        sample(stopped, warm(first), settle(first), index=1, complete=False),
    )
    made = report(
        *samples,
        gaps=(probe.Gap(probe.GapReason.HOOK_FAILED, 100, "launch"),),
        warnings=(probe.Notice("loaded-machine", "the load average is 9"),),
        label="before",
        environment=environment,
        options=probe.Options(
            2, 60.0, {"A": "1"}, True, 3, True, {"max_unroll": "4"}, "main", (probe.Varied.TREE, probe.Varied.SET)
        ),
        offline={"sm_90": offline_block(offline_sample(process([offline_load()])))},
    )
    elapsed = dataclasses.replace(made.summary, compile_elapsed_ms=timed(1.0, 2.0))
    where = dataclasses.replace(made.findings[0], module="sim", device="cpu", block_dim=1, avoidable_ms=1.0, see="x.md")
    return dataclasses.replace(made, summary=elapsed, findings=(where, *made.findings[1:]))
