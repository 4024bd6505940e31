"""What the rules for the mechanisms CS-1 to CS-13 make of recorded builds: built records, of CUDA too, no Warp."""

import dataclasses
import math

import pytest
import warp_compile_probe as probe
from builders import SITE, cached, digest, failed, launches, load, phases, process, run, sample, warm
from hypothesis import given, settings
from hypothesis import strategies as st

CUDA = "cuda:0"
Reason = probe.CauseReason
REDUNDANT, HINT = probe.FindingKind.REDUNDANT, probe.FindingKind.HINT
OPTIONS = {"block_dim": "1", "fast_math": "False", "use_precompiled_headers": "True"}
FORWARD = {"backward": False}


def find(*processes, warm_run=None, gaps=()):
    return probe.findings([sample(run(*processes), warm_run or warm())], gaps)


def names(found):
    return [finding.mechanism for finding in found]


def only(found, mechanism):
    """The one finding of a mechanism."""
    (finding,) = [finding for finding in found if finding.mechanism == mechanism]
    return finding


def cause(reason, *changes):
    made = [probe.Change(reason, name, before, after, site) for name, before, after, site in changes]
    return probe.Cause(reason, tuple(made), digest("a"))


def kernel(key="add", line=1, file="/work/app/sim.py", **changes):
    values = {"unique": False, "overload": False, "backward": True, "unrolled": 1, **changes}
    return probe.BuiltKernel(key, probe.Site(file, line, key), **values)


# CS-1, CS-2, CS-3, CS-6: rebuilds with a known cause

LATE = probe.Site("/work/app/late.py", 7, "late")


@pytest.mark.parametrize(
    ("reason", "mechanism", "words"),
    [
        (Reason.KERNEL_ADDED, "CS-1", "kernels were added to it after it was first loaded"),
        (Reason.KERNEL_REDEFINED, "CS-1", "defined again, with other contents"),
        (Reason.KERNEL_REMOVED, "CS-1", "were dropped"),
        (Reason.FUNCTION_CHANGED, "CS-1", "a function that its kernels call changed"),
        (Reason.STRUCT_CHANGED, "CS-1", "a struct that its kernels use changed"),
        (Reason.GENERIC_INSTANCE_ADDED, "CS-6", "met new argument types"),
        (Reason.OPTION_CHANGED, "CS-3", "an option of it was set after it was first loaded"),
        (Reason.OPTION_RESTATED, "CS-3", "to what it meant anyway"),
        (Reason.SAME_HASH_AGAIN, "CS-2", "nothing in it had changed"),
    ],
)
def test_a_rebuild_by_its_cause(reason, mechanism, words):
    again = load(seed="b", start=500.0, ms=80.0, cause=cause(reason, ("thing", "1", "2", LATE)))
    found = find(process([load(), again]))
    assert names(found) == [mechanism]
    (finding,) = found
    assert (finding.kind, finding.module, finding.block_dim, finding.where) == (REDUNDANT, "sim", 1, LATE)
    assert (finding.cost_ms, finding.avoidable_ms) == (80.0, 80.0)
    assert words in finding.text
    assert "thing" in finding.evidence[0]
    assert finding.evidence[1].startswith(f"hash {digest('b')[:7]}, 80.0 ms, asked for at")


@pytest.mark.parametrize("reason", [Reason.FIRST_BUILD, Reason.NOTHING_OBVIOUS, None])
def test_a_rebuild_without_a_known_cause_is_one_all_the_same(reason):
    again = load(seed="b", start=500.0, cause=cause(reason) if reason else None)
    assert names(find(process([load(), again]))) == ["rebuild"]


def test_causes_of_one_module_are_told_apart_by_mechanism_and_joined_within_it():
    loads = [
        load(),
        load(seed="b", start=200.0, cause=cause(Reason.KERNEL_ADDED, ("k", None, None, LATE))),
        load(seed="c", start=400.0, cause=cause(Reason.OPTION_CHANGED, ("fast_math", "False", "True", None))),
        load(seed="d", start=600.0, cause=cause(Reason.KERNEL_REDEFINED, ("k", None, None, LATE))),
    ]
    found = find(process(loads))
    assert sorted(names(found)) == ["CS-1", "CS-3"]
    assert only(found, "CS-1").text.startswith("sim was built again 2 times on cpu at block_dim 1: kernels were added")
    assert ", and kernels were defined again" in only(found, "CS-1").text
    assert only(found, "CS-3").text.startswith("sim was built again once")
    assert only(found, "CS-3").where == SITE  # nothing better is known than who asked for the load
    assert sum(finding.avoidable_ms for finding in found) == 300.0


def test_the_dearest_build_of_a_module_is_never_avoidable():
    added = cause(Reason.KERNEL_ADDED, ("k", None, None, LATE))
    dear = load(seed="b", start=200.0, ms=900.0, cause=added)
    assert only(find(process([load(ms=100.0), dear])), "CS-1").avoidable_ms == 100.0


# CS-2


def cleared(at=150.0):
    return probe.CacheEvent(probe.CacheEventKind.CLEAR_KERNEL_CACHE, at, "/cache", SITE)


def again_after_clear():
    clear = probe.Change(Reason.SAME_HASH_AGAIN, "clear-kernel-cache", None, "/cache", SITE)
    return load(start=200.0, cause=probe.Cause(Reason.SAME_HASH_AGAIN, (clear,), digest("a")))


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("python", "sim.py"), REDUNDANT),
        (("python", "sim.py", "--rebuild-kernels"), HINT),
        (("python", "sim.py", "clean"), HINT),
        (("python", "sim.py", "--cleanup_level=2"), REDUNDANT),
        (("python", "-m", "clean_sim"), REDUNDANT),
        (("python", "clean.py"), REDUNDANT),
        (("python", "sim.py", "--case", "cleaner"), REDUNDANT),
    ],
)
def test_a_maintenance_path_that_clears_is_only_reported(argv, kind):
    once = process([load(), again_after_clear()], cache_events=(cleared(),), argv=argv)
    second = warm(process([load()], cache_events=(cleared(),), argv=argv))
    found = find(once, warm_run=second)
    assert names(found) == ["CS-2", "CS-2"]
    assert [finding.kind for finding in found] == [kind, kind]
    assert all(("as the command asks for with" in finding.text) is (kind is HINT) for finding in found)


@pytest.mark.parametrize("kind", [probe.CacheEventKind.CACHING_OFF, probe.CacheEventKind.CLEAR_LTO_CACHE])
def test_a_maintenance_word_excuses_nothing_but_a_cleared_kernel_cache(kind):
    event = probe.CacheEvent(kind, 1.0, None, SITE)
    second = warm(process([load()], cache_events=(event,), argv=("python", "sim.py", "--clean")))
    assert only(find(process([load()]), warm_run=second), "CS-2").kind is REDUNDANT


def test_the_driver_cache_matters_for_cuda_only():
    off = probe.CacheEvent(probe.CacheEventKind.DRIVER_CACHE_OFF, 1.0, None, SITE)
    assert find(process([load()], cache_events=(off,))) == ()
    on_cuda = load(device=CUDA, block_dim=256, phases=phases(60.0, load_ms=40.0))
    finding = only(find(process([on_cuda], cache_events=(off,))), "CS-2")
    assert (finding.kind, finding.cost_ms, finding.where) == (HINT, 40.0, SITE)


def test_identities_that_differ_between_runs_say_what_differs():
    change = cause(Reason.KERNEL_REDEFINED, ("scale: wp.static(stamp)", "1.0", "2.0", LATE))
    second = warm(process([load(seed="b", ms=70.0, cause=change)]))
    finding = only(find(process([load()]), warm_run=second), "identity-unstable")
    assert (finding.cost_ms, finding.where) == (70.0, LATE)
    assert finding.evidence[1].startswith("kernel scale was defined again, wp.static(stamp): before 1.0, now 2.0")


# CS-4 and CS-9


def singles(count, *, unique=False, lines=None, files=None, options=None, ms=100.0, owner="0"):
    """A process of modules of one kernel each; the first build also made the header."""
    lines = lines or range(1, count + 1)
    files = files or ["/work/app/sim.py"] * count
    kernels = tuple(
        kernel(f"k{n}", line, file, unique=unique, **FORWARD)
        for n, (line, file) in enumerate(zip(lines, files, strict=True))
    )
    sets = options or [OPTIONS] * count
    loads = [
        load(
            f"m{n}",
            str(n),
            start=n * 1000.0,
            ms=ms + (500.0 if n == 0 else 0.0),
            phases=phases(ms, header_ms=500.0 if n == 0 else 0.0),
            option_set=n,
            kernels=(n,),
        )
        for n in range(count)
    ]
    return process(loads, owner, option_sets=tuple(sets), built_kernels=kernels)


@pytest.mark.parametrize(("unique", "mechanism"), [(False, "CS-4"), (True, "CS-9")])
def test_stable_modules_of_one_kernel_each(unique, mechanism):
    finding = only(find(singles(4, unique=unique)), mechanism)
    assert (finding.kind, finding.module, finding.cost_ms) == (REDUNDANT, None, 900.0)
    assert finding.avoidable_ms == 300.0  # three times the smallest, the header aside
    assert finding.where == probe.Site("/work/app/sim.py", 1, "k0")
    assert finding.evidence[0] == "the smallest of 4 builds took 100 ms without the header: each pays as much"
    assert "4 kernels of /work/app/sim.py" in finding.text


@pytest.mark.parametrize(
    "case",
    [
        singles(2),
        singles(3, files=["/work/app/sim.py", "/lib/a.py", "/lib/b.py"], lines=[1, 1, 1]),
        singles(3, options=[OPTIONS, OPTIONS, {**OPTIONS, "fast_math": "True"}]),
    ],
    ids=["two", "in other folders", "with other options"],
)
def test_few_or_unlike_modules_of_one_kernel_are_none(case):
    assert find(case) == ()


def test_block_dim_is_no_option_that_tells_modules_apart():
    sets = [{**OPTIONS, "block_dim": str(n)} for n in (1, 256, 64)]
    assert names(find(singles(3, options=sets))) == ["CS-4"]


def test_files_of_one_folder_may_belong_together():
    files = [f"/work/app/{name}.py" for name in ("move", "drag", "bounce")]
    finding = only(find(singles(3, files=files)), "CS-4")
    assert (finding.kind, finding.avoidable_ms) == (HINT, None)
    assert "3 kernels of /work/app are built in a module each" in finding.text
    cells = only(find(singles(3, files=[f"<ipython-input-{number}>" for number in range(3)])), "CS-4")
    assert "3 kernels of 3 files are built in a module each" in cells.text


def test_a_file_of_many_does_not_wait_for_the_rest_of_its_folder():
    files = ["/work/app/sim.py"] * 3 + [f"/work/app/{n}.py" for n in range(3)]
    found = find(singles(6, files=files))
    assert [(finding.mechanism, finding.kind) for finding in found] == [("CS-4", REDUNDANT), ("CS-4", HINT)]
    assert [finding.cost_ms for finding in found] == [800.0, 300.0]


@pytest.mark.parametrize(("package", "told"), [("/venv/lib/python3.12/site-packages/sim", True), ("/work/sim", False)])
def test_who_can_change_kernels_of_an_installed_package_is_said(package, told):
    finding = only(find(singles(3, files=[f"{package}/solve.py"] * 3)), "CS-4")
    assert ("the change is for its authors" in finding.text) is told


@pytest.mark.parametrize("unique", [False, True])
def test_kernels_that_one_definition_makes_are_a_hint(unique):
    finding = only(find(singles(5, unique=unique, lines=[9] * 5)), "CS-9" if unique else "CS-4")
    assert finding.kind is HINT
    assert finding.avoidable_ms is None
    assert finding.text.startswith("One kernel, in several specialisations, of /work/app/sim.py is built in ")
    assert "run-time data, or change apart, leave them apart" in finding.text


def test_a_kernel_that_is_the_same_in_each_module_is_no_specialisation():
    case = singles(4, lines=[9] * 4)
    same = tuple(dataclasses.replace(one, hash=digest("same")) for one in case.loads)
    finding = only(find(dataclasses.replace(case, loads=same)), "CS-4")
    assert (finding.kind, finding.avoidable_ms) == (HINT, None)
    assert finding.text.startswith("One kernel, each time with the same contents, of /work/app/sim.py is built in ")
    assert "under one module name it would be built once" in finding.text


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "make__locals__k"},
        {"overload": True},
        {"site": probe.Site("/work/app/sim.py", 1, "integrate_kernel_fn")},
    ],
)
def test_kernels_that_functions_make_may_be_specialised(changes):
    case = singles(4, unique=True)
    built = [
        dataclasses.replace(one, **{"site": dataclasses.replace(one.site, line=n, function="k"), **changes})
        for n, one in enumerate(case.built_kernels)
    ]
    finding = only(find(dataclasses.replace(case, built_kernels=tuple(built))), "CS-9")
    assert finding.kind is HINT


def test_specialised_kernels_count_once_among_stable_ones():
    finding = only(find(singles(6, lines=[1, 2, 3, 9, 9, 9])), "CS-4")
    assert (finding.kind, finding.avoidable_ms) == (REDUNDANT, 300.0)


def test_modules_of_several_processes_are_not_added_up():
    both = [singles(2, owner="0"), singles(2, owner="0.0")]
    assert names(find(*both)) == ["built-per-process"]


def test_a_module_that_grows_later_is_no_module_of_one_kernel():
    case = singles(3)
    added = cause(Reason.KERNEL_ADDED, ("k9", None, None, LATE))
    grown = load("m0", "more", start=9000.0, option_set=0, kernels=(0, 1), cause=added)
    assert names(find(dataclasses.replace(case, loads=(*case.loads, grown)))) == ["CS-1"]


# CS-5 and variants that nothing launched, on CUDA


def test_cuda_variants_with_their_launches():
    loads = [load(seed=str(dim), device=CUDA, block_dim=dim, start=dim * 10.0) for dim in (64, 128)]
    used = launches({("near", "sim", "64", CUDA, 64): 5, ("far", "sim", "128", CUDA, 128): 6})
    finding = only(find(process(loads, launches=used)), "CS-5")
    assert (finding.kind, finding.device) == (REDUNDANT, CUDA)
    assert [line.partition(": ")[0] for line in finding.evidence] == ["block_dim 64", "block_dim 128"]
    assert finding.evidence[0].endswith("5 launches of near")


# Modules loaded ahead in vain


def ahead(name, **changes):
    return load(name, name, **{"site": LATE, "workers": 1, "ms": 200.0, **changes})


def test_modules_that_were_built_ahead_and_never_launched():
    used = launches({("add", "sim", "sim", "cpu", 1): 5})
    builds = [ahead("utils", phases=phases(200.0, header_ms=150.0)), ahead("math", start=300.0)]
    builds += [ahead("sim", start=600.0), load("fem", "fem", start=900.0)]
    finding = only(find(process(builds, launches=used)), "module-never-launched")
    assert (finding.kind, finding.module, finding.device, finding.where) == (REDUNDANT, None, "cpu", LATE)
    assert (finding.cost_ms, finding.avoidable_ms) == (400.0, 250.0)  # another build would make the header
    assert finding.text.startswith("math, utils were built ahead on cpu, and nothing of them was launched in this run.")


def test_what_a_fork_launches_was_not_built_in_vain():
    used = launches({("add", "sim", "sim", "cpu", 1): 5})
    late = launches({("mul", "utils", "utils", "cpu", 1): 1})
    parent = process([ahead("utils"), ahead("sim", start=300.0)], launches=used)
    assert find(parent, process((), "0.0", how="fork", launches=late)) == ()
    assert names(find(parent)) == ["module-never-launched"]


@pytest.mark.parametrize(
    ("used", "gaps"),
    [
        ({}, []),
        ({("add", "sim", "sim", "cpu", 1): 5}, [probe.Gap(probe.GapReason.LAUNCHES_NOT_RECORDED, None, "JAX")]),
    ],
    ids=["nothing was launched: a cache is filled for others", "launches may be hidden"],
)
def test_no_proof_that_a_module_was_built_in_vain(used, gaps):
    case = process([ahead("utils"), ahead("sim", start=300.0)], launches=launches(used))
    assert find(case, gaps=gaps) == ()


# CS-7, on CUDA


@pytest.mark.parametrize(("lto_ms", "expected"), [(600.0, ["CS-7"]), (400.0, [])])
def test_links_that_take_most_of_a_build(lto_ms, expected):
    artifact = probe.LtoArtifact("dot_64_64", 9000, lto_ms)
    tile = load(device=CUDA, block_dim=64, ms=1000.0, phases=phases(300.0, lto_ms=lto_ms), lto=(artifact,))
    found = find(process([tile]))
    assert names(found) == expected
    assert all("enable_mathdx_gemm" in finding.text for finding in found)


# CS-8


def test_cpu_loads_that_overlap_whoever_started_their_threads():
    loads = [load("a", thread=1), load("b", start=50.0, thread=2)]
    found = find(process(loads))
    assert names(found) == ["CS-8", "builds-overlapped"]
    finding = only(found, "CS-8")
    assert (finding.kind, finding.device, finding.where) == (HINT, "cpu", SITE)
    assert "2 CPU loads ran at the same time on several threads" in finding.text


def test_workers_for_the_cpu_without_an_overlap_yet():
    finding = only(find(process([load(workers=4)])), "cpu-parallel-load")
    assert "1 CPU load ran with up to 4 workers" in finding.text


@pytest.mark.parametrize(
    "loads",
    [
        [load(workers=1), load("b", start=200.0, workers=1)],
        [load(device=CUDA, workers=4, block_dim=256, thread=1)],
        [load("a", thread=1), load("b", start=100.0, thread=2)],
        [load("a"), load("b", start=10.0)],
    ],
    ids=["one worker", "CUDA only", "one after the other on two threads", "one within the other on one thread"],
)
def test_cpu_loads_that_are_no_parallel_ones(loads):
    assert {"CS-8", "cpu-parallel-load"}.isdisjoint(names(find(process(loads))))


def test_a_lost_kernel_is_shown():
    lost = load(error="kernel add was not found in it when it was launched")
    finding = only(find(process([lost])), "CS-8")
    assert "1 of them lost a kernel" in finding.text
    assert finding.evidence[0].endswith("; kernel add was not found in it when it was launched")
    assert names(find(process([failed()]))) == ["build-error"]


# CS-10


def backward_builds(source_bytes, *, tapes=0, adjoint=False, backward=True, launched="ab"):
    used = launches({("add", name, name, "cpu", 1): 3 for name in launched})
    if adjoint:
        used = dataclasses.replace(
            used, entries=(dataclasses.replace(used.entries[0], adjoint=True), *used.entries[1:])
        )
    loads = [
        load(name, name, start=n * 500.0, generated_source_bytes=source_bytes // 2, kernels=(0, 1))
        for n, name in enumerate("ab")
    ]
    kernels = (kernel("add", backward=backward), kernel("mul", 9, backward=False))
    return process(loads, built_kernels=kernels, tapes=tapes, launches=used)


def test_backward_code_that_this_run_did_not_use():
    finding = only(find(backward_builds(probe.BACKWARD_SOURCE_BYTES)), "CS-10")
    assert (finding.kind, finding.avoidable_ms, finding.cost_ms) == (HINT, None, 200.0)
    assert "not used in this run" in finding.text
    assert "1 of 2 kernels with backward code, 20,000 bytes of source" in finding.evidence[0]


@pytest.mark.parametrize(
    "case",
    [
        backward_builds(90_000, tapes=1),
        backward_builds(90_000, adjoint=True),
        backward_builds(90_000, backward=False),
        backward_builds(probe.BACKWARD_SOURCE_BYTES - 2),
        backward_builds(probe.BACKWARD_SOURCE_BYTES, launched="a"),
    ],
    ids=["a tape", "an adjoint launch", "no backward code", "too little to matter", "half of it of a module not used"],
)
def test_backward_code_that_is_used_absent_or_small(case):
    assert find(case) == ()


# CS-11


@pytest.mark.parametrize(
    ("unrolled", "source_bytes", "expected"),
    [(512, 200_000, ["CS-11"]), (512, 20_000, []), (7, 200_000, []), (1, 200_000, [])],
)
def test_unrolled_loops_that_make_large_source(unrolled, source_bytes, expected):
    built = load(generated_source_bytes=source_bytes, kernels=(0,))
    found = find(process([built], built_kernels=(kernel(unrolled=unrolled, **FORWARD),)))
    assert names(found) == expected
    assert all("add repeats a loop body 512 times" in finding.evidence[0] for finding in found)


def test_unrolled_loops_are_shown_at_the_kernel_with_the_most_copies():
    few, many = kernel(unrolled=8, **FORWARD), kernel("most", line=77, unrolled=512, **FORWARD)
    built = load(generated_source_bytes=200_000, kernels=(0, 1))
    finding = only(find(process([built], built_kernels=(few, many))), "CS-11")
    assert finding.where == many.site
    assert "most repeats a loop body 512 times, add repeats a loop body 8 times" in finding.evidence[0]


def test_unrolled_loops_of_a_module_that_nothing_launched_are_no_lever():
    built = load(generated_source_bytes=200_000, kernels=(0,))
    other = launches({("add", "another", "b", "cpu", 1): 1})
    found = find(process([built], launches=other, built_kernels=(kernel(unrolled=512, **FORWARD),)))
    assert "CS-11" not in names(found)


# CS-12


def builds_with_header(count, *, device="cpu", options=None, header=800.0, threads=1):
    loads = [
        load(
            f"m{n}",
            str(n),
            start=n * 2000.0,
            ms=900.0 if n < threads else 100.0,
            device=device,
            block_dim=1 if device == "cpu" else 256,
            thread=n % threads,
            phases=phases(850.0 if n < threads else 90.0, header_ms=header if n < threads else 0.0),
            option_set=0,
        )
        for n in range(count)
    ]
    return process(loads, option_sets=(options or OPTIONS,))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (builds_with_header(1), ["CS-12"]),
        (builds_with_header(2), []),
        (builds_with_header(2, threads=2), ["CS-12"]),
        (builds_with_header(5, device=CUDA), ["CS-12"]),
        (builds_with_header(6, device=CUDA), []),
        (builds_with_header(1, header=400.0), []),
    ],
    ids=["one", "two", "two on a thread each", "five for CUDA", "six for CUDA", "a large one"],
)
def test_a_header_that_serves_too_few_builds(case, expected):
    found = [name for name in names(find(case)) if name == "CS-12"]
    assert found == expected


def test_a_header_that_another_run_had_built_costs_nothing():
    assert find(builds_with_header(1, header=0.0)) == ()


OFF = {**OPTIONS, "use_precompiled_headers": "False"}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (builds_with_header(2, options=OFF), 1),
        (builds_with_header(1, options=OFF), 0),
        (builds_with_header(5, device=CUDA, options=OFF), 0),
        (builds_with_header(6, device=CUDA, options=OFF), 1),
    ],
)
def test_a_header_that_is_off_where_it_would_pay(case, expected):
    event = probe.ConfigEvent("use_precompiled_headers", "True", "False", 1.0, LATE)
    found = find(dataclasses.replace(case, config_events=(event,)))
    found = [finding for finding in found if finding.mechanism == "CS-12"]
    assert len(found) == expected
    assert all(finding.where == LATE and "is off" in finding.text for finding in found)


# CS-13, on CUDA only


def serial(*times, device=CUDA, names_=None, overlap=False):
    loads = [
        load(
            names_[n] if names_ else f"m{n}",
            str(n),
            start=0.0 if overlap else n * 2000.0,
            ms=ms,
            device=device,
            block_dim=1 if device == "cpu" else 256,
            thread=n if overlap else 0,
        )
        for n, ms in enumerate(times)
    ]
    return process(loads)


def test_independent_cuda_modules_built_one_at_a_time():
    finding = only(find(serial(500.0, 400.0, 300.0)), "CS-13")
    assert (finding.kind, finding.device, finding.cost_ms) == (HINT, CUDA, 700.0)
    assert finding.evidence[0] == "ceiling 2.40: 1.20 s in all, 500 ms the largest"


@pytest.mark.parametrize(
    "case",
    [
        serial(500.0, 400.0, 300.0, device="cpu"),
        serial(500.0, 400.0, 300.0, overlap=True),
        serial(900.0, 10.0, 10.0),
        serial(500.0),
        serial(500.0, 400.0, names_=["sim", "sim"]),
    ],
    ids=["CPU", "at the same time already", "one dominates", "one", "one of them built twice"],
)
def test_builds_that_parallel_loading_would_not_help(case):
    assert "CS-13" not in names(find(case))


# Options that never arrived


def unreached(name="enable_backward", **changes):
    option = probe.UnreachedOption(name, "True", "False")
    return load(**{"unreached": (option,), "start": 100.0, **changes})


def assignments():
    return (
        probe.ConfigEvent("enable_backward", "True", "False", 50.0, LATE),
        probe.ConfigEvent("enable_backward", "False", "True", 900.0, SITE),
        probe.ConfigEvent("max_unroll", "16", "4", 20.0, SITE),
    )


def test_an_option_that_never_arrived():
    loads = [unreached(ms=90.0), unreached("fem", start=300.0, unreached=unreached().unreached, ms=10.0)]
    loads[1] = dataclasses.replace(loads[1], name="fem")
    finding = only(find(process(loads, config_events=assignments())), "option-never-arrived")
    assert (finding.kind, finding.module, finding.cost_ms) == (REDUNDANT, None, 100.0)
    assert finding.where == LATE
    assert finding.evidence == (
        "warp.config.enable_backward = False, before True, at /work/app/late.py:7 in late",
        "sim, fem: kept True, warp.config has False",
    )


def test_an_option_that_every_kernel_sets_itself_was_not_missed():
    built = (kernel(**FORWARD),)
    assert find(process([unreached(kernels=(0,))], built_kernels=built)) == ()
    assert names(find(process([unreached(kernels=(0,))], built_kernels=(kernel(),)))) == ["option-never-arrived"]
    assert names(
        find(
            process(
                [unreached("lineinfo", kernels=(0,), unreached=(probe.UnreachedOption("lineinfo", "False", "True"),))],
                built_kernels=built,
            )
        )
    ) == ["option-never-arrived"]


# Loads in a capture


def test_a_load_in_a_graph_capture():
    finding = only(
        find(process([load(in_capture=True)]), warm_run=warm(process([cached(in_capture=True)]))), "load-in-capture"
    )
    assert (finding.kind, finding.cost_ms, finding.where) == (HINT, 100.0, SITE)
    assert len(finding.evidence) == 2
    assert "drivers from 12.3 on can do that" in finding.text, "it is no fault there"


# What holds for all

CAUSES = st.one_of(
    st.none(),
    st.sampled_from(Reason).map(lambda reason: cause(reason, ("thing", "1", "2", LATE))),
)
LOADS = st.builds(
    lambda name, seed, start, ms, device, block_dim, why, kernels, workers, thread, header: load(
        name,
        seed,
        start=start,
        ms=ms,
        device=device,
        block_dim=block_dim,
        cause=why,
        kernels=kernels,
        option_set=0,
        workers=workers,
        thread=thread,
        phases=phases(ms, header_ms=header),
        generated_source_bytes=50_000,
    ),
    st.sampled_from(["sim", "fem", "a", "b", "c"]),
    st.sampled_from("abcd"),
    st.floats(0, 5000),
    st.floats(1, 1000),
    st.sampled_from(["cpu", CUDA]),
    st.sampled_from([1, 64]),
    CAUSES,
    st.sampled_from([(0,), (1,), (2,), (0, 1)]),
    st.sampled_from([None, 1, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([None, 0.0, 0.5]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LOADS, max_size=9), st.lists(LOADS, max_size=3))
def test_every_build_is_credited_once_and_no_finding_lacks_evidence(cold, second):
    kernels = tuple(kernel(f"k{n}", n + 1, unique=n == 2, unrolled=n * 100 + 1) for n in range(3))
    about = {"option_sets": (OPTIONS,), "built_kernels": kernels}
    found = find(process(cold, **about), warm_run=warm(process(second, **about)))
    total = math.fsum(one.ms for one in cold)
    assert math.fsum(finding.avoidable_ms or 0.0 for finding in found) <= total + 1e-6
    for finding in found:
        assert finding.evidence
        assert finding.text.endswith(probe.CONFIRM[probe.Mechanism(finding.mechanism)])
        assert finding.mechanism != "CS-13" or finding.device != "cpu"
    assert set(probe.CONFIRM) == set(probe.Mechanism)
