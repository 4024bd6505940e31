"""From recorded runs to figures, identities and findings: every expected number is worked out by hand."""

import dataclasses
import json

import pytest
import warp_compile_probe as probe
from builders import (
    SITE,
    cached,
    digest,
    failed,
    launches,
    load,
    log_line,
    phases,
    process,
    run,
    sample,
    settle,
    timed,
    warm,
)
from hypothesis import given, settings
from hypothesis import strategies as st

CUDA = "cuda:0"
AOT = {"kind": probe.LoadKind.AOT}


def summary_of(*processes, warm_run=None, **changes):
    return probe.summarise([sample(run(*processes, **changes), warm_run)])


def found_in(samples, gaps=()):
    return {finding.mechanism: finding for finding in probe.findings(samples, gaps)}


# What counts as what


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        pytest.param([process()], {"builds": 0, "rebuilds": 0, "modules": 0, "identities": 0}, id="nothing"),
        pytest.param(
            [process([load(), load(seed="b"), load(seed="c")])],
            {"builds": 3, "rebuilds": 2, "variants": 0, "modules": 1, "identities": 3},
            id="a module that changed twice",
        ),
        pytest.param(
            [process([load(), load(start=200.0)])],
            {"builds": 2, "rebuilds": 1, "modules": 1, "identities": 1},
            id="the same hash again",
        ),
        pytest.param(
            [process([failed(), load(start=200.0)])],
            {"builds": 1, "rebuilds": 0, "error_loads": 1, "identities": 1},
            id="an error before a build",
        ),
        pytest.param(
            [process([cached(), load(seed="b", start=200.0)])],
            {"builds": 1, "rebuilds": 0, "cached_loads": 1, "identities": 2},
            id="a cached load before a build",
        ),
        pytest.param(
            [process([load()]), process([load()], "0.0"), process([load(seed="b")], "0.1", how="fork")],
            {"builds": 3, "rebuilds": 0, "modules": 1, "identities": 2},
            id="the same module in a parent, a child and a fork",
        ),
        pytest.param(
            [process([load(), load(seed="b")]), process([load(), load(seed="b"), load(seed="c")], "0.0", how="fork")],
            {"builds": 5, "rebuilds": 3, "identities": 3},
            id="rebuilds in two processes add up",
        ),
        pytest.param(
            [process([load(), load(seed="b", block_dim=256), load(seed="c", block_dim=64)])],
            {"builds": 3, "rebuilds": 0, "variants": 2, "identities": 3},
            id="three block_dims",
        ),
        pytest.param(
            [process([load(), load(seed="b", block_dim=256), load(seed="c"), load(seed="d", block_dim=256)])],
            {"builds": 4, "rebuilds": 2, "variants": 1},
            id="two block_dims, each rebuilt",
        ),
        pytest.param(
            [process([load()]), process([load(seed="b", block_dim=256)], "0.0")],
            {"builds": 2, "variants": 0},
            id="two block_dims in two processes",
        ),
        pytest.param(
            [process([load(), load(seed="b", device=CUDA, block_dim=256)])],
            {"builds": 2, "rebuilds": 0, "variants": 0, "identities": 2},
            id="two devices",
        ),
        pytest.param(
            [process([cached(block_dim=256), load()])],
            {"builds": 1, "variants": 0, "cached_loads": 1},
            id="only loaded, not built, at the other block_dim",
        ),
        pytest.param(
            [process([log_line(), log_line(seed="b")])],
            {"builds": 2, "rebuilds": 0, "variants": 0, "modules": 1, "identities": 2},
            id="several hashes on the output prove no rebuild",
        ),
        pytest.param(
            [process([log_line(), log_line()])],
            {"builds": 2, "rebuilds": 1, "identities": 1},
            id="one hash twice on the output does",
        ),
        pytest.param(
            [process([log_line(hash=None), log_line(hash=None)], option_sets=({"mode": "'release'"},))],
            {"builds": 2, "rebuilds": 0, "identities": 1},
            id="nothing but a name on the output does not",
        ),
        pytest.param(
            [process([log_line(block_dim=1), log_line(seed="b", block_dim=1), log_line(seed="c", block_dim=256)])],
            {"builds": 3, "rebuilds": 1, "variants": 1},
            id="the output with block_dims does",
        ),
        pytest.param(
            [process([load()]), process([log_line()], "0.0")],
            {"builds": 2, "rebuilds": 0, "identities": 1},
            id="seven digits are the identity that a recorder knows in full",
        ),
        pytest.param(
            [process([load(device=CUDA)]), process([log_line(), log_line("other")], "0.0")],
            {"builds": 3, "modules": 2, "identities": 3},
            id="but not on another device, nor of another module",
        ),
        pytest.param(
            [process([load(), log_line(block_dim=256)])],
            {"builds": 2, "rebuilds": 0, "variants": 1, "identities": 2},
            id="nor at another block_dim, where the output shows it",
        ),
        pytest.param(
            [process([load(**AOT), load(**AOT), cached(start=9.0, **AOT)])],
            {"builds": 0, "rebuilds": 0, "cached_loads": 0, "aot_loads": 3, "modules": 1},
            id="ahead of time",
        ),
        pytest.param(
            [process([load(kind=probe.LoadKind.OFFLINE, device="sm_90")])],
            {"builds": 0, "modules": 0, "identities": 0},
            id="offline is never mixed in",
        ),
        pytest.param(
            [process([log_line(status=probe.Status.UNKNOWN)])],
            {"builds": 0, "cached_loads": 0, "error_loads": 0, "modules": 1, "identities": 1},
            id="a line without a status",
        ),
    ],
)
def test_counts(processes, expected):
    made = summary_of(*processes)
    assert {name: getattr(made, name) for name in expected} == expected


def test_sizes_and_launches_are_summed_over_processes():
    lto = (probe.LtoArtifact("dot", 300, 20.0), probe.LtoArtifact("cholesky", 50, 5.0))
    made = summary_of(
        process(
            [load(generated_source_bytes=1000, lto=lto), load(seed="b", generated_source_bytes=200)],
            launches=launches({("add", "sim", "a", "cpu", 1): 7}, unknown=2),
        ),
        process(
            [failed(generated_source_bytes=4000, lto=lto[:1])],
            "0.0",
            launches=launches({("add", "sim", "a", "cpu", 1): 5}),
        ),
    )
    assert made.generated_source_bytes == 1200
    assert (made.lto_artifacts, made.lto_bytes) == (3, 650)
    assert (made.launches, made.graph_replays_unknown) == (12, 2)


# Times

#   process 0:    A hashes 90..100, builds 100..300; B builds 200..400; an error 700..750
#   process 0.0:  C hashes 300..350, builds 350..600
OVERLAPPING = (
    process(
        [
            load("a", start=100.0, ms=200.0, hash_ms=10.0, phases=phases(150.0, codegen_ms=30.0, load_ms=5.0)),
            load("b", start=200.0, ms=200.0, thread=2, phases=phases(100.0, lto_ms=60.0)),
            failed("e", start=700.0, ms=50.0),
        ]
    ),
    process([load("c", start=350.0, ms=250.0, hash_ms=50.0)], "0.0"),
)


def test_times_of_overlapping_builds_in_two_processes():
    made = summary_of(*OVERLAPPING)
    assert made.cold_module_ms == timed(650.0)
    assert made.error_ms == timed(50.0)
    assert made.hash_ms == timed(60.0)
    assert (made.native_compile_ms, made.codegen_ms) == (timed(500.0), timed(30.0))
    assert (made.lto_ms, made.load_ms) == (timed(60.0), timed(5.0))
    assert made.build_span_ms == timed(560.0)  # 90..600 and 700..750
    assert made.compile_share == timed(0.56)
    assert made.overlap_factor == timed(650.0 / 550.0)  # 300 in process 0, 250 in 0.0


def test_loads_without_a_start_stand_alone_within_the_run():
    loads = [load(start=100.0, ms=100.0), log_line("x", ms=150.0), log_line("y", ms=30.0, status=probe.Status.CACHED)]
    made = summary_of(process(loads))
    assert made.cold_module_ms == timed(250.0)
    assert made.build_span_ms == timed(280.0)
    assert made.overlap_factor == timed(1.0)
    assert summary_of(process(loads), wall=240.0).build_span_ms == timed(240.0)


def test_loads_after_the_commands_end_are_no_share_of_its_time():
    """A process that it left behind loads on; an offline run as the device sees it lasts as long as its loads."""
    loads = [load(start=900.0, ms=200.0, hash_ms=50.0), load("b", start=1200.0, ms=100.0)]
    made = summary_of(process(loads))
    assert made.build_span_ms == timed(350.0)
    assert made.compile_share == timed(0.15)
    offline = probe.summarise([sample(run(process(loads), kind=probe.RunKind.OFFLINE, wall=350.0))])
    assert offline.compile_share == timed(1.0)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0.0),
        ([(1.0, 3.0)], 2.0),
        ([(5.0, 6.0), (1.0, 3.0)], 3.0),
        ([(1.0, 10.0), (2.0, 3.0), (9.0, 12.0)], 11.0),
        ([(1.0, 3.0), (3.0, 4.0)], 3.0),
        ([(3.0, 1.0)], 0.0),
        ([(-5.0, -1.0), (-2.0, 2.0)], 7.0),
    ],
)
def test_union(intervals, expected):
    assert probe.union_ms(intervals) == expected


def three_samples():
    """Cold walls 1000, 1100, 1500; warm walls 200, 300, 260; the module takes 100, 140, 110."""
    return [
        sample(run(process([load(ms=ms)]), wall=wall), warm(process([cached(ms=2.0)]), wall=warm_wall), index=index)
        for index, (wall, warm_wall, ms) in enumerate(
            [(1000.0, 200.0, 100.0), (1100.0, 300.0, 140.0), (1500.0, 260.0, 110.0)]
        )
    ]


def test_times_are_medians_over_the_complete_samples_with_an_unscaled_deviation():
    made = probe.summarise(three_samples())
    assert made.cold_wall_ms == probe.Timed(1100.0, 100.0, (1000.0, 1100.0, 1500.0))
    assert made.warm_wall_ms == probe.Timed(260.0, 40.0, (200.0, 300.0, 260.0))
    assert made.compile_elapsed_ms == probe.Timed(800.0, 0.0, (800.0, 800.0, 1240.0))
    assert made.cold_module_ms == probe.Timed(110.0, 10.0, (100.0, 140.0, 110.0))
    assert made.warm_module_ms == probe.Timed(2.0, 0.0, (2.0, 2.0, 2.0))


def test_warm_figures_come_from_the_concluding_warm_run():
    second = warm(process([load(seed="b", ms=70.0)]), wall=500.0)
    third = settle(process([cached(ms=3.0), failed("bad", ms=4.0)]), wall=150.0)
    made = probe.summarise([sample(run(process([load()])), second, third)])
    assert made.warm_builds == 0
    assert made.warm_module_ms == timed(7.0)
    assert made.warm_wall_ms == timed(150.0)
    assert made.compile_elapsed_ms == timed(850.0)


def test_compile_elapsed_leaves_out_samples_whose_warm_run_compiled():
    clean, _, last = three_samples()
    compiling = sample(run(process([load()])), warm(process([load()])), settle(process([load()])), index=1)
    assert probe.summarise([clean, compiling, last]).compile_elapsed_ms == timed(800.0, 1240.0)
    assert probe.summarise([compiling]).compile_elapsed_ms is None
    assert probe.summarise([compiling]).warm_builds == 1


def test_only_complete_samples_count():
    first, second, _ = three_samples()
    broken = dataclasses.replace(first, complete=False)
    lying = dataclasses.replace(first, warm=None)
    made = probe.summarise([broken, lying, second])
    assert made.cold_wall_ms == timed(1100.0)
    assert probe.summarise([broken]) is None
    assert probe.summarise([]) is None
    assert probe.identity_records([broken]) == ()
    assert probe.findings([broken], ()) == ()
    assert probe.exact_differences([broken]) == []


def test_without_builds_there_is_no_overlap_factor():
    made = summary_of(process([cached()]))
    assert made.overlap_factor is None
    assert made.cold_module_ms == timed(0.0)
    assert probe.to_json(made)["cold_module_ms"]["median"] == 0.0
    assert "0.0" in json.dumps(probe.to_json(made.cold_module_ms))


# Identities


def test_an_identity_over_processes_and_samples():
    def one(index, ms):
        first = process(
            [
                load(ms=ms, generated_source_bytes=10, phases=phases(ms - 10.0, codegen_ms=10.0)),
                cached(start=500.0, ms=2.0, site=None),
            ],
            launches=launches({("add", "sim", "a", "cpu", 1): 3, ("mul", "sim", "a", "cpu", 1): 4}),
        )
        forked = process(
            [load(ms=50.0, site=probe.Site("w.py", 1, "work"), phases=None)],
            "0.0",
            launches=launches({("add", "sim", "a", "cpu", 1): 1, ("add", "sim", "b", "cpu", 1): 9}),
        )
        return sample(run(first, forked), warm(process([cached(), cached()])), index=index)

    (record,) = probe.identity_records([one(0, 100.0), one(1, 130.0), one(2, 90.0)])
    assert (record.name, record.hash, record.device, record.block_dim) == ("sim", digest("a"), "cpu", 1)
    assert record.cold == {"compiled": 2, "cached": 1}
    assert record.warm == {"cached": 2}
    assert record.ms == timed(152.0, 182.0, 142.0)
    assert record.samples_seen == 3
    assert record.phases.codegen_ms == 10.0
    assert record.phases.native_ms == 92.0  # 90 + 2 of the two loads, between 120 + 2 and 80 + 2
    assert record.phases.header_ms is None
    assert record.generated_source_bytes == 10
    assert record.sites == (SITE, probe.Site("w.py", 1, "work"))
    assert record.launches == 8


def test_identities_that_not_every_run_loads():
    first = sample(run(process([load("a")])), warm(process([load("late", ms=7.0)])))
    second = sample(run(process([load("a"), load("odd", ms=9.0)])), warm(process([cached("late")])), index=1)
    records = {record.name: record for record in probe.identity_records([first, second])}
    assert list(records) == ["a", "odd", "late"]
    assert (records["odd"].cold, records["odd"].ms, records["odd"].samples_seen) == ({}, timed(9.0), 1)
    assert (records["late"].cold, records["late"].warm) == ({}, {"compiled": 1})
    assert records["late"].ms == timed(7.0, 1.0)
    assert records["late"].samples_seen == 2


def test_identities_without_a_hash_or_known_from_the_output():
    used = launches({("add", "plain", "x", "cpu", 1): 6})
    recorded = process([load("plain", None), load("sim")], launches=used)
    unrecorded = process([log_line("sim", ms=40.0), log_line("far", ms=5.0)], "0.0")
    records = {record.name: record for record in probe.identity_records([sample(run(recorded, unrecorded))])}
    assert (records["plain"].hash, records["plain"].launches) == (None, 6)
    assert (records["sim"].hash, records["sim"].ms) == (digest("a"), timed(140.0))
    assert (records["far"].hash, records["far"].block_dim, records["far"].phases) == (digest("a")[:7], None, None)


def test_causes_of_an_identity_are_kept_once():
    cause = probe.Cause(probe.CauseReason.KERNEL_ADDED, (), digest("z"))
    (record,) = probe.identity_records([sample(run(process([load(cause=cause), load(cause=cause, start=200.0)])))])
    assert record.causes == (cause,)


# Warnings


def test_exact_facts_that_differ_are_warned_of_by_name():
    samples = three_samples()
    assert probe.exact_differences(samples) == []
    more = run(process([load(), load(seed="b", start=300.0)], launches=launches({("add", "sim", "a", "cpu", 1): 4})))
    samples[2] = dataclasses.replace(samples[2], cold=more)
    notices = {notice.name: notice.text for notice in probe.exact_differences(samples)}
    assert list(notices) == [
        "builds-differ-between-samples",
        "rebuilds-differ-between-samples",
        "identities-differ-between-samples",
        "launches-differ-between-samples",
        "built-identities-differ-between-samples",
    ]
    assert "(1, 1, 2)" in notices["builds-differ-between-samples"]
    assert "(0, 0, 4)" in notices["launches-differ-between-samples"]


def test_other_hashes_in_equal_numbers_are_warned_of():
    samples = [sample(run(process([load("sim", seed), load("same")])), index=index) for index, seed in enumerate("aab")]
    (notice,) = probe.exact_differences(samples)
    assert notice.name == "built-identities-differ-between-samples"
    assert "of sim" in notice.text
    assert "same" not in notice.text


def test_times_that_differ_are_no_difference():
    assert probe.exact_differences(three_samples()) == []


# Findings


def test_a_clean_program_has_no_finding():
    used = launches({("add", "sim", "a", "cpu", 1): 4})
    loads = [load("sim"), load("fem", start=200.0), load("sim", "g", device=CUDA, block_dim=256, start=400.0)]
    assert probe.findings([sample(run(process(loads, launches=used)), warm(process([cached()])))], ()) == ()


def test_rebuilds_are_one_finding_a_module_and_the_dearest_build_is_not_avoidable():
    late, later = probe.Site("sim.py", 50, "step"), probe.Site("sim.py", 60, "step")
    loads = [
        load(seed="c", start=900.0, ms=300.0, site=later),
        load(seed="a", start=0.0, ms=200.0),
        load(seed="b", start=500.0, ms=250.0, site=late),
        load("other", start=1500.0),
    ]
    (finding,) = probe.findings([sample(run(process(loads)))], ())
    assert (finding.mechanism, finding.kind) == ("rebuild", probe.FindingKind.REDUNDANT)
    assert (finding.module, finding.device, finding.block_dim) == ("sim", "cpu", 1)
    assert finding.cost_ms == 550.0
    assert finding.avoidable_ms == 450.0  # one build of all it ended up with costs no less than the dearest
    assert finding.where == late
    assert "3 times" in finding.text
    assert "3 different hashes" in finding.text
    assert [line.split(",")[0] for line in finding.evidence] == [
        f"build {number} of 3: hash {digest(seed)[:7]}" for number, seed in enumerate("abc", 1)
    ]
    assert "sim.py:60 in step" in finding.evidence[2]


def test_a_dear_first_build_leaves_all_rebuilds_avoidable():
    loads = [load(ms=5000.0), load(seed="b", start=6000.0, ms=300.0)]
    assert found_in([sample(run(process(loads)))])["rebuild"].avoidable_ms == 300.0


def test_the_same_hash_again_is_said_to_be_so():
    finding = found_in([sample(run(process([load(), load(start=200.0)])))])["rebuild"]
    assert "with the same hash" in finding.text
    assert "unloaded" in finding.text


def test_rebuilds_without_hashes():
    finding = found_in([sample(run(process([load(seed=None), load(seed=None, start=200.0)])))])["rebuild"]
    assert "its hashes are not known" in finding.text


def test_rebuilds_in_several_processes_are_one_finding():
    workers = [process([load(ms=200.0), load(seed="b", start=300.0)], f"0.{number}") for number in range(3)]
    finding = found_in([sample(run(process(), *workers))])["rebuild"]
    assert (finding.cost_ms, finding.avoidable_ms) == (300.0, 300.0)
    assert "6 times" in finding.text
    assert "3 processes" in finding.text


def test_evidence_is_bounded_and_counted():
    loads = [load(seed=str(number), start=200.0 * number) for number in range(40)]
    finding = found_in([sample(run(process(loads)))])["rebuild"]
    assert len(finding.evidence) == 13
    assert finding.evidence[-1] == "and 28 more"


def test_hashes_on_the_output_are_a_hint_only():
    found = found_in([sample(run(process([log_line(), log_line(seed="b", ms=60.0), log_line("x")])))])
    assert list(found) == ["unproven-rebuild"]
    finding = found["unproven-rebuild"]
    assert (finding.kind, finding.module, finding.avoidable_ms) == (probe.FindingKind.HINT, "sim", None)
    assert finding.cost_ms == 60.0


PRELOAD = probe.Site("/work/app/main.py", 9, "preload")
BOTH_DIMS = [
    load(seed="p", block_dim=256, ms=400.0, site=PRELOAD, workers=2),
    load(seed="a", start=500.0, ms=150.0),
]
AT_ONE = launches({("add", "sim", "a", "cpu", 1): 4, ("fill", "fem", "a", "cpu", 256): 1})


def test_a_variant_that_nothing_launched():
    found = found_in([sample(run(process(BOTH_DIMS, launches=AT_ONE)))])
    assert list(found) == ["variant-never-launched", "cpu-parallel-load"]
    finding = found["variant-never-launched"]
    assert (finding.kind, finding.block_dim, finding.where) == (probe.FindingKind.REDUNDANT, 256, PRELOAD)
    assert (finding.cost_ms, finding.avoidable_ms) == (400.0, 400.0)
    assert "with 2 workers" in finding.evidence[0]
    assert finding.evidence[-1] == "launched on cpu at block_dim 1 only"


@pytest.mark.parametrize(
    ("changes", "gaps"),
    [
        ({"launches": launches({("add", "sim", "a", "cpu", 1): 4}, unknown=1)}, []),
        ({"end": probe.ProcessEnd.UNRECORDED}, []),
        ({}, [probe.Gap(probe.GapReason.LAUNCHES_NOT_RECORDED, 100, "JAX")]),
        ({}, [probe.Gap(probe.GapReason.GRAPH_CONTENT_UNSEEN, None, "graph")]),
    ],
    ids=["unknown replays", "killed", "a gap of this process", "a gap of some process"],
)
def test_never_launched_is_not_said_where_launches_may_be_hidden(changes, gaps):
    found = found_in([sample(run(process(BOTH_DIMS, **{"launches": AT_ONE, **changes})))], gaps)
    assert list(found) == ["cpu-parallel-load", "CS-5"]
    assert found["CS-5"].kind is probe.FindingKind.HINT


def test_a_gap_of_another_process_or_kind_hides_no_launch():
    gaps = [
        probe.Gap(probe.GapReason.LAUNCHES_NOT_RECORDED, 999, "JAX"),
        probe.Gap(probe.GapReason.UNEXPLAINED_CACHE_ENTRY, None, "wp_x"),
    ]
    assert "variant-never-launched" in found_in([sample(run(process(BOTH_DIMS, launches=AT_ONE)))], gaps)


def test_a_fork_may_launch_what_its_parent_built():
    at_256 = launches({("add", "sim", "p", "cpu", 256): 1})
    parent = process(BOTH_DIMS, launches=AT_ONE)
    forked = [process((), "0.0", how="fork", launches=at_256)]
    fresh = [process((), "0.0", how="exec", launches=at_256)]
    assert list(found_in([sample(run(parent, *forked))])) == ["cpu-parallel-load", "CS-5"]
    assert list(found_in([sample(run(parent, *fresh))])) == ["variant-never-launched", "cpu-parallel-load"]


def test_a_preload_that_launches_nothing_at_all_is_no_proof():
    assert list(found_in([sample(run(process(BOTH_DIMS)))])) == ["cpu-parallel-load", "CS-5"]


def with_header(seed, header_ms, **changes):
    return load(seed=seed, phases=phases(changes["ms"], header_ms=header_ms), **changes)


def test_a_header_that_another_build_would_pay_instead_is_not_avoidable():
    unused = with_header("p", 300.0, block_dim=256, ms=400.0)
    used = load(seed="a", start=500.0)
    elsewhere = load("fem", start=700.0, block_dim=256)
    cpu = process([unused, used], launches=AT_ONE)
    shared = process([unused, used, elsewhere], launches=AT_ONE)
    on_cuda = [dataclasses.replace(each, device=CUDA) for each in (unused, used)]
    cuda = process(on_cuda, launches=launches({("add", "sim", "a", CUDA, 1): 4}))
    for case, avoidable in [(cpu, 400.0), (shared, 100.0), (cuda, 100.0)]:
        assert found_in([sample(run(case))])["variant-never-launched"].avoidable_ms == avoidable


def variants(launched):
    loads = [
        load(seed=str(dim), device=CUDA, block_dim=dim, start=start, ms=ms)
        for dim, start, ms in [(64, 0.0, 100.0), (128, 200.0, 120.0), (256, 400.0, 130.0)]
    ]
    return sample(run(process(loads, launches=launches(launched))))


def test_variants_of_which_each_launches_other_kernels_are_redundant():
    found = found_in([variants({(f"k{dim}", "sim", str(dim), CUDA, dim): dim for dim in (64, 128, 256)})])
    assert list(found) == ["CS-5"]
    finding = found["CS-5"]
    assert (finding.kind, finding.avoidable_ms, finding.cost_ms) == (probe.FindingKind.REDUNDANT, None, 250.0)
    assert (finding.module, finding.block_dim) == ("sim", None)
    assert "64, 128, 256" in finding.text
    assert finding.evidence[1].startswith("block_dim 128:")
    assert finding.evidence[1].endswith("128 launches of k128")


def test_variants_that_all_launch_the_same_kernels_are_a_hint():
    found = found_in([variants({("add", "sim", str(dim), CUDA, dim): 1 for dim in (64, 128, 256)})])
    assert found["CS-5"].kind is probe.FindingKind.HINT


def test_warm_builds_with_what_cleared_the_cache():
    event = probe.CacheEvent(probe.CacheEventKind.CLEAR_KERNEL_CACHE, 5.0, None, probe.Site("sim.py", 3, "<module>"))
    second = process([load(ms=80.0), load("new", ms=20.0)], cache_events=(event, event))
    found = found_in([sample(run(process([load()])), warm(second))])
    assert list(found) == ["CS-2", "identity-unstable"]
    finding = found["CS-2"]
    assert (finding.kind, finding.cost_ms, finding.avoidable_ms) == (probe.FindingKind.REDUNDANT, 80.0, None)
    assert finding.where == event.site
    assert finding.evidence[0] == "clear-kernel-cache at sim.py:3 in <module>"
    assert finding.evidence[1].startswith(f"sim on cpu at block_dim 1: hash {digest('a')[:7]}")
    assert len(finding.evidence) == 2
    other = found["identity-unstable"]
    assert (other.kind, other.cost_ms, other.avoidable_ms) == (probe.FindingKind.REDUNDANT, 20.0, None)
    assert other.evidence[0].startswith("new on cpu")


def test_a_module_built_twice_in_the_warm_run_is_one_module():
    twice = [load(seed="a"), load(seed="b")]
    again = found_in([sample(run(process(twice)), warm(process(twice)))])
    assert "the program still built 1 module in 2 builds with the hash" in again["CS-2"].text
    other = found_in([sample(run(process([load(seed="c")])), warm(process([*twice, load("new")])))])
    assert "the program still built 2 modules in 3 builds with a name" in other["identity-unstable"].text
    late = sample(run(process([load(seed="c")])), warm(process(twice)), settle(process([cached()])))
    assert "The second run still built 1 module in 2 builds, " in found_in([late])["second-run-build"].text


def test_builds_that_only_the_second_run_makes_are_a_hint():
    cold = run(process([load()]))
    late = warm(process([load(seed="b", ms=70.0)]))
    found = found_in([sample(cold, late, settle(process([cached()])))])
    assert list(found) == ["second-run-build"]
    assert (found["second-run-build"].kind, found["second-run-build"].cost_ms) == (probe.FindingKind.HINT, 70.0)
    assert list(found_in([sample(cold, late, settle(process([load(seed="c")])))])) == ["identity-unstable"]


def test_thousands_of_cached_loads_are_redundant():
    loads = [cached(f"step_{digest(str(n % 4))[:8]}", str(n % 4), start=n * 2.0, ms=0.25) for n in range(1000)]
    found = found_in([sample(run(process([load()])), warm(process(loads), wall=9000.0))])
    assert list(found) == ["cached-load-cost"]
    finding = found["cached-load-cost"]
    assert (finding.kind, finding.cost_ms, finding.where) == (probe.FindingKind.REDUNDANT, 250.0, SITE)
    assert finding.evidence == ("step_* on cpu: 1,000 loads, 250 ms",)
    assert "cached-load-cost" not in found_in([sample(run(), warm(process(loads[:999]), wall=9000.0))])


@pytest.mark.parametrize(
    ("ms", "wall", "expected"), [(260.0, 2000.0, True), (260.0, 9000.0, False), (150.0, 200.0, False)]
)
def test_slow_cached_loads_are_a_hint_where_they_matter(ms, wall, expected):
    found = found_in([sample(run(), warm(process([cached(ms=ms - 20.0, hash_ms=20.0)]), wall=wall))])
    assert ("cached-load-cost" in found) is expected
    assert not expected or found["cached-load-cost"].kind is probe.FindingKind.HINT


def test_hashing_without_loads():
    busy = process([cached(hash_ms=100.0)], hash_ms=900.0, hashings=400)
    found = found_in([sample(run(), warm(busy, wall=3000.0))])
    assert list(found) == ["hashing-cost"]
    assert found["hashing-cost"].cost_ms == 800.0
    assert found["hashing-cost"].evidence == ("400 hashings, 1 load in the warm run",)
    assert found_in([sample(run(), warm(busy, wall=9000.0))]) == {}


def test_overlapping_builds():
    workers = [load(str(n), start=100.0 + n, ms=200.0, thread=n, workers=4) for n in range(4)]
    found = found_in([sample(run(process(workers)))])
    assert list(found) == ["CS-8", "builds-overlapped"]
    finding = found["builds-overlapped"]
    assert finding.kind is probe.FindingKind.HINT
    assert finding.cost_ms == pytest.approx(800.0 - 203.0)
    assert "BUILDS OVERLAPPED" in finding.text
    assert "factor 3.94" in finding.evidence[0]
    assert finding.evidence[1] == "builds ran on 4 threads"


def test_processes_that_build_at_the_same_time_do_not_overlap():
    assert found_in([sample(run(process([load("a")]), process([load("b")], "0.0")))]) == {}


@pytest.mark.parametrize(("second_start", "expected"), [(80.0, False), (70.0, True)])
def test_builds_that_hardly_overlap_are_not_flagged(second_start, expected):
    # 200 ms of timers over 180 is 1.11, over 170 it is 1.18
    loads = [load("a"), load("b", start=second_start, thread=2)]
    assert ("builds-overlapped" in found_in([sample(run(process(loads)))])) is expected


def test_link_dominated_builds():
    lto = (probe.LtoArtifact("dot_1", 4096, 300.0), probe.LtoArtifact("dot_2", 100, 250.0))
    slow = load("tiles", ms=800.0, phases=phases(200.0, lto_ms=550.0), lto=lto)
    fine = load("other", start=900.0, phases=phases(60.0, lto_ms=40.0))
    found = found_in([sample(run(process([slow, fine])))])
    assert list(found) == ["CS-7"]
    finding = found["CS-7"]
    assert (finding.kind, finding.module, finding.cost_ms) == (probe.FindingKind.HINT, "tiles", 550.0)
    assert finding.evidence[0].endswith("; 550 ms of it linking")
    assert finding.evidence[1:] == ("dot_1: 300 ms, 4,096 bytes", "dot_2: 250 ms, 100 bytes")


def test_errors_are_found_with_their_time_and_whether_they_come_back():
    cold = run(process([failed("bad", ms=70.0, error="\n  NameError: x\nmore"), failed("bad", start=90.0)]))
    found = found_in([sample(cold, warm(process([failed("bad")])))])
    assert list(found) == ["build-error"]
    finding = found["build-error"]
    assert (finding.kind, finding.cost_ms, finding.avoidable_ms) == (probe.FindingKind.REDUNDANT, 120.0, None)
    assert finding.evidence[0].endswith("; NameError: x")
    assert finding.evidence[-1] == "the warm run failed at it too"
    assert found_in([sample(cold)])["build-error"].evidence[-1] == "not in the warm run"
    only_warm = found_in([sample(run(), warm(process([failed(error=None)])))])["build-error"]
    assert "warm run" in only_warm.text
    assert only_warm.evidence[0].endswith("; no message")


def test_the_same_identity_in_several_processes_is_a_hint():
    workers = [process([load(ms=100.0 + n), load("own" + str(n))], f"0.{n}") for n in range(3)]
    found = found_in([sample(run(*workers))])
    finding = found["built-per-process"]
    assert (finding.kind, finding.cost_ms, finding.avoidable_ms) == (probe.FindingKind.HINT, 201.0, None)
    assert finding.evidence == (f"sim {digest('a')[:7]} on cpu: built by 3 processes, 201 ms beyond the first",)


def test_findings_are_ordered_and_every_build_is_credited_once():
    loads = [
        load("small"),
        load("small", "b", start=200.0, ms=110.0),
        load("big", start=400.0, ms=900.0),
        load("big", "b", start=1400.0, ms=800.0),
        load("big", "c", start=2400.0, ms=500.0, block_dim=256),
        load("big", "d", start=3000.0, ms=100.0, block_dim=256),
        failed("bad", start=4000.0, ms=5000.0),
        load("x", start=9000.0, thread=2),
        load("y", start=9000.0, ms=700.0, phases=phases(1.0, lto_ms=600.0)),
    ]
    used = launches({("add", "big", "a", "cpu", 1): 4})
    second = warm(process([load("big", ms=950.0)]))
    made = probe.findings([sample(run(process(loads, launches=used), wall=20000.0), second)], ())
    assert [(finding.mechanism, finding.module, finding.avoidable_ms) for finding in made] == [
        ("rebuild", "big", 800.0),
        ("variant-never-launched", "big", 500.0),
        ("rebuild", "small", 100.0),
        ("rebuild", "big", 100.0),
        ("build-error", "bad", None),
        ("CS-2", None, None),
        ("CS-8", None, None),
        ("CS-7", "y", None),
    ]
    redundant = [finding.kind is probe.FindingKind.REDUNDANT for finding in made]
    assert redundant == sorted(redundant, reverse=True)


def test_costs_are_those_of_the_middle_sample_among_the_like_ones():
    def rebuilt(index, ms, seeds="ab"):
        loads = [load(seed=seed, start=500.0 * n, ms=ms) for n, seed in enumerate(seeds)]
        return sample(run(process(loads)), index=index)

    assert found_in([rebuilt(0, 300.0), rebuilt(1, 100.0), rebuilt(2, 200.0)])["rebuild"].cost_ms == 200.0
    assert found_in([rebuilt(0, 300.0), rebuilt(1, 100.0, "abc"), rebuilt(2, 200.0, "abc")])["rebuild"].cost_ms == 300.0


# What holds for all runs

LOADS = st.builds(
    load,
    name=st.sampled_from(["sim", "fem", "step_0123abcd"]),
    seed=st.sampled_from(["a", "b", "c", None]),
    start=st.one_of(st.none(), st.floats(0, 5000)),
    ms=st.floats(0, 1000),
    device=st.sampled_from(["cpu", CUDA]),
    block_dim=st.sampled_from([1, 64, 256, None]),
    status=st.sampled_from(probe.Status),
    kind=st.sampled_from(probe.LoadKind),
    hash_ms=st.floats(0, 50),
    thread=st.sampled_from([1, 2]),
    phases=st.one_of(
        st.none(), st.builds(phases, st.floats(0, 100), header_ms=st.floats(0, 50), lto_ms=st.floats(0, 90))
    ),
)
LAUNCHED = st.dictionaries(
    st.tuples(
        st.sampled_from(["add", "mul"]),
        st.sampled_from(["sim", "fem"]),
        st.sampled_from("abc"),
        st.sampled_from(["cpu", CUDA]),
        st.sampled_from([1, 64, 256]),
    ),
    st.integers(1, 1000),
    max_size=3,
)
PROCESSES = st.builds(
    process,
    st.lists(LOADS, max_size=6),
    st.sampled_from(["0", "0.0", "0.1"]),
    how=st.sampled_from(["exec", "fork"]),
    launches=LAUNCHED.map(launches),
    end=st.sampled_from(probe.ProcessEnd),
    option_sets=st.just(({"mode": "'release'"},)),
)
RUNS = st.lists(PROCESSES, max_size=2)
SAMPLES = st.lists(
    st.tuples(RUNS, RUNS).map(lambda pair: sample(run(*pair[0], wall=6000.0), warm(*pair[1], wall=6000.0))), max_size=3
)


@settings(max_examples=100, deadline=None)
@given(SAMPLES)
def test_what_can_be_avoided_stays_within_what_was_spent(samples):
    made = probe.findings(samples, ())
    summary = probe.summarise(samples)
    like = [one for one in samples if probe.exact_facts(probe.summarise([one])) == probe.exact_facts(summary)]
    avoidable = sum(finding.avoidable_ms or 0.0 for finding in made)
    assert avoidable <= (probe.summarise(like).cold_module_ms.median if like else 0.0) + 1e-6
    assert all(finding.mechanism in {mechanism.value for mechanism in probe.Mechanism} for finding in made)
    assert all(finding.evidence and (finding.avoidable_ms or 0.0) <= finding.cost_ms + 1e-9 for finding in made)


@settings(max_examples=100, deadline=None)
@given(SAMPLES)
def test_figures_hold_together(samples):
    summary = probe.summarise(samples)
    if summary is None:
        assert not samples
        return
    cold = probe.complete_samples(samples)[0].cold
    statuses = [status for record in probe.identity_records(samples) for status in record.cold.items()]
    assert sum(count for _, count in statuses) == len(probe.loads_of(cold))
    assert summary.builds == cold.builds
    assert summary.rebuilds + summary.variants <= max(0, summary.builds - 1)
    assert summary.identities >= summary.modules
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in summary.compile_share.values)
    assert summary.overlap_factor is None or all(factor >= 1.0 - 1e-9 for factor in summary.overlap_factor.values)
