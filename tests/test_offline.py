"""measure --cuda-arch: what a command would build on a CUDA architecture, compiled through NVRTC without a device."""

import argparse
import collections
import dataclasses
import json
from typing import ClassVar

import pytest
import warp_compile_probe as probe
from builders import launches, offline_block, offline_load, offline_sample, process, report, run, sample
from conftest import PROGRAMS
from disks import mounted
from report_builder import Module, Proc, make_report
from test_reading import load_line

BASELINE = make_report(label="before")

# What a user writes, and what is refused.


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("90", "sm_90"),
        ("sm_90", "sm_90"),
        ("SM90", "sm_90"),
        ("90a", "sm_90a"),
        ("sm_100f", "sm_100f"),
        (" 75", "sm_75"),
    ],
)
def test_architectures_as_users_write_them(text, device):
    assert probe.architecture_from(text).device == device


@pytest.mark.parametrize("text", ["", "hopper", "9", "sm_9000", "90b", "90aa", "-90", "compute_90", "9.0"])
def test_what_is_no_architecture_is_refused_with_what_is_expected(text):
    with pytest.raises(argparse.ArgumentTypeError, match="write it as 90, 90a or sm_90"):
        probe.architecture_from(text)


@pytest.mark.parametrize(("text", "since"), [("86a", "sm_90"), ("90f", "sm_100")])
def test_a_suffix_that_the_architecture_has_not_is_refused(text, since):
    with pytest.raises(argparse.ArgumentTypeError, match=f"from {since} on"):
        probe.architecture_from(text)


def read_run(**changes):
    values = {
        "processes": (),
        "gaps": (),
        "catalog": probe.Catalog(),
        "versions": ("1.19.0",),
        "devices": (),
        "toolkit": "13.4",
        "driver": None,
        "cuda_archs": (75, 80, 90),
        "options_set": False,
        "options_refused": (),
    }
    return probe.ReadRun(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"versions": ("1.10.1",), "cuda_archs": ()},
            "Warp 1.10.1 of the target cannot compile for CUDA without a GPU",
        ),
        ({"versions": ("1.11.0",)}, "use Warp 1.12 or newer"),
        ({"cuda_archs": ()}, "was built without CUDA"),
        ({"cuda_archs": (75, 80)}, "its CUDA toolkit 13.4 compiles for 75, 80"),
        ({"cuda_archs": None, "versions": ()}, "no Warp was initialised"),
    ],
)
def test_what_the_targets_warp_cannot_do_is_said_in_one_sentence(changes, message):
    with pytest.raises(probe.InputError) as caught:
        probe.check_architectures([probe.Architecture(90, "")], read_run(**changes))
    assert message in str(caught.value)
    assert "--cuda-arch sm_90" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_architecture_that_the_targets_warp_has_passes():
    probe.check_architectures([probe.Architecture(90, "a"), probe.Architecture(75, "")], read_run())


# From an offline run to a block.


def mixed_process():
    cuda = [offline_load(start=500.0, hash_ms=5.0), offline_load(seed="b", block_dim=128, start=700.0, ms=300.0)]
    return process([dataclasses.replace(offline_load(), device="cpu", kind=probe.LoadKind.JIT), *cuda])


def test_seen_from_the_device_only_offline_loads_are_there_and_the_run_lasts_as_long_as_they_do():
    seen = probe.on_device(run(mixed_process(), kind=probe.RunKind.OFFLINE, wall=9_000.0))
    assert [load.block_dim for load in seen.processes[0].loads] == [64, 128]
    assert seen.wall_ms == pytest.approx(105.0 + 300.0)
    assert seen.processes[0].hash_ms == 5.0


def variants_block():
    used = launches({("add", "sim", "a", "sm_90", 64): 3, ("move", "sim", "b", "sm_90", 128): 1})
    first = dataclasses.replace(mixed_process(), launches=used)
    return offline_block(offline_sample(first, warm_loads=[offline_load(status=probe.Status.CACHED, ms=1.0)]))


def test_a_block_counts_its_loads_as_builds_and_finds_variants():
    block = variants_block()
    assert (block.summary.builds, block.summary.variants, block.summary.warm_builds) == (2, 1, 0)
    assert block.summary.cold_module_ms.median == pytest.approx(400.0)
    assert [(record.device, record.block_dim, record.launches) for record in block.identities] == [
        ("sm_90", 64, 3),
        ("sm_90", 128, 1),
    ]
    (variants,) = [finding for finding in block.findings if finding.mechanism == "CS-5"]
    assert (variants.kind, variants.device, variants.cost_ms) == (probe.FindingKind.REDUNDANT, "sm_90", 300.0)
    assert {load.kind for one in block.samples for load in one.cold.processes[0].loads} == {probe.LoadKind.OFFLINE}


def test_serial_builds_for_an_architecture_get_their_ceiling():
    loads = [offline_load(f"part{index}", start=index * 200.0, ms=200.0 - 100.0 * (index > 0)) for index in range(3)]
    (finding,) = [one for one in offline_block(offline_sample(process(loads))).findings if one.mechanism == "CS-13"]
    assert finding.evidence[0] == "ceiling 2.00: 400 ms in all, 200 ms the largest"


def test_builds_that_workers_would_overlap_on_a_device_are_not_called_serial():
    loads = [offline_load(f"part{index}", start=index * 200.0, ms=200.0, workers=4) for index in range(3)]
    assert "CS-13" not in {one.mechanism for one in offline_block(offline_sample(process(loads))).findings}


def test_loads_for_an_architecture_stay_out_of_the_report_itself():
    one = sample(run(mixed_process()))
    assert probe.summarise([one]).builds == 1
    assert probe.identity_records([one])[0].device == "cpu"


def test_links_for_backward_code_are_named_as_a_part_of_unused_backward_code():
    kernel = probe.BuiltKernel("gemm", offline_load().site, False, False, True, 1)
    links = (probe.LtoArtifact("dot_1", 99, 20.0), probe.LtoArtifact("dot_2", 99, 30.0, adjoint=True))
    built = process([offline_load(kernels=(0,), lto=links)], built_kernels=(kernel,))
    (finding,) = [one for one in offline_block(offline_sample(built)).findings if one.mechanism == "CS-10"]
    assert "1 LTO artifact of it for backward code, 30.0 ms" in finding.evidence[0]
    text = probe.render_report(
        report(sample(run(process([]))), offline={"sm_90": offline_block(offline_sample(built))})
    )
    assert "sim at block_dim 64 1 forward and 1 adjoint in 50.0 ms" in " ".join(text.split())


def test_the_text_names_the_architecture_its_cost_and_what_only_a_device_adds():
    text = " ".join(probe.render_report(report(sample(run(process([]))), offline={"sm_90": variants_block()})).split())
    assert "OFFLINE sm_90 compiled with CUDA toolkit 13.4" in text
    assert "2 builds of 1 module in 400 ms (n=1)" in text
    assert "sum over largest 1.3" in text
    assert "code that asks device.is_cuda" in text
    assert "CS-5 (redundant)" in text


def test_what_only_cuda_shows_is_an_open_question_where_nothing_was_compiled_for_it():
    one = sample(run(process([])))
    assert "what only CUDA shows" in probe.render_report(report(one))
    block = offline_block(offline_sample(process([offline_load()])))
    assert "what only CUDA shows" not in probe.render_report(report(one, offline={"sm_90": block}))


def test_a_block_without_a_complete_sample_says_so():
    empty = offline_block(sample(None, complete=False))
    assert empty.summary is None
    assert "No offline sample is complete." in probe.render_report(
        report(sample(run(process([]))), offline={"sm_90": empty})
    )


def unseen_offline():
    gap = probe.Gap(probe.GapReason.RECORD_TRUNCATED, 7, "a line of its record could not be read")
    block = offline_block(offline_sample(process([offline_load()])))
    block = dataclasses.replace(block, coverage=dataclasses.replace(block.coverage, gaps=(gap,)))
    return report(sample(run(process([]))), offline={"sm_90": block})


def test_what_went_unseen_in_an_offline_run_is_said_before_its_figures():
    lines = probe.render_report(unseen_offline()).splitlines()
    (title,) = [number for number, line in enumerate(lines) if line.startswith("OFFLINE sm_90")]
    assert lines[title + 1].startswith("NOT EVERYTHING WAS SEEN (1 gap)")
    assert lines[title + 2] == "  - record-truncated (pid 7): a line of its record could not be read"
    assert lines[title + 3].startswith("  Cold: ")


def test_a_job_summary_and_annotations_show_an_offline_block_too():
    made = dataclasses.replace(unseen_offline(), offline={"sm_90": variants_block()})
    findings = made.offline["sm_90"].findings
    assert [finding.mechanism for finding in findings] == ["CS-5"]
    text = probe.render_markdown(made)
    assert "Offline for sm\\_90: Findings: 1 redundant" in text
    assert "| CS-5 | redundant |" in text
    assert "Offline for sm\\_90: Modules" in text
    assert text.count("| cold wall |") == 1, "an offline run has no wall time that a device would have"
    assert [one.title for one in probe.report_annotations(made, ())] == ["CS-5"]
    assert "Offline for sm\\_90: Not everything was seen" in probe.render_markdown(unseen_offline())


def test_an_offline_run_that_did_something_else_on_the_cpu_is_named():
    options = probe.MeasureOptions((), 1, None, None, ".", None, {}, False, 0, None, False, False, {})
    measurer = probe.Measurer(options, None, lambda _: None)
    same = run(mixed_process())
    measurer.measurement.samples.append(sample(same))
    offline = dataclasses.replace(same, kind=probe.RunKind.OFFLINE)
    assert measurer.offline_differences(1, offline) == []
    more = run(
        process([dataclasses.replace(same.processes[0].loads[0], name="other")]),
        kind=probe.RunKind.OFFLINE,
    )
    (notice,) = measurer.offline_differences(1, more)
    assert notice.name == "offline-run-differs"
    assert "modules built" in notice.text
    other = run(dataclasses.replace(mixed_process(), launches=launches({("add", "sim", "a", "sm_90", 64): 3})))
    (notice,) = measurer.offline_differences(1, dataclasses.replace(other, kind=probe.RunKind.OFFLINE))
    assert "launches" in notice.text


def test_the_estimate_waits_for_the_first_offline_load(tmp_path, capsys):
    start = {
        "t": "start",
        "at": 0,
        "pid": 1,
        "parent": None,
        "how": "exec",
        "argv": [],
        "executable": "",
        "python": "",
    }
    loads = [
        load_line(kind="jit", device="cpu", start=0, end=5_000_000_000),
        load_line(kind="offline", device="sm_90", start=0, end=3_000_000_000),
    ]
    path = tmp_path / "1-0.rec"
    path.write_text("".join(json.dumps(line) + "\n" for line in [start, loads[0]]), encoding="utf-8")
    estimate = probe.OfflineEstimate(str(tmp_path), str(tmp_path), loads=4, runs=3)
    assert estimate.first_load() is None
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(loads[1]) + "\n")
    estimate.run()
    assert (
        "3.00 s for sm_90; with 4 builds on the CPU all offline runs may compile for about 36.0 s"
        in capsys.readouterr().err
    )


# compare --on.


def write(path, made):
    path.write_text(json.dumps(probe.to_json(made)), encoding="utf-8")
    return str(path)


def with_block(made, times, blocks=(64,)):
    loads = [
        [offline_load(block_dim=dim, seed=f"a{dim}", start=1000.0 * index, ms=ms) for index, dim in enumerate(blocks)]
        for ms in times
    ]
    samples = [offline_sample(process(one), index=index) for index, one in enumerate(loads, 1)]
    return dataclasses.replace(made, offline={"sm_90": offline_block(*samples)})


@pytest.mark.parametrize(
    ("times", "verdict", "code"),
    [
        ((200.0, 201.0, 202.0), "regressed", 1),
        ((50.0, 51.0, 52.0), "improved", 0),
        ((100.0, 101.0, 102.0), "unchanged", 0),
    ],
)
def test_blocks_of_one_architecture_are_judged_and_the_rest_is_not(tmp_path, capsys, times, verdict, code):
    before = write(tmp_path / "before.json", with_block(BASELINE, (100.0, 101.0, 102.0)))
    after = write(tmp_path / "after.json", with_block(BASELINE, times))
    assert probe.main(["compare", "--on", "sm_90", "--json", "-", before, after]) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["on"]) == (verdict, "sm_90")
    assert found["deltas"]["cold_module_ms"]["baseline"]["median"] == 101.0
    assert probe.main(["compare", "--on", "90", before, after]) == code
    text = capsys.readouterr().out
    assert " on sm_90, offline: " in text
    assert "cold_module_ms" in text
    assert "cold_wall_ms" not in text  # the builds of a view on a device take all of its wall time
    assert probe.main(["compare", before, after]) == 0


def test_a_build_that_gets_worse_only_offline_is_seen_only_there(tmp_path, capsys):
    worse = make_report(Proc(modules=(Module(ms=9_000.0),)))
    before = write(tmp_path / "before.json", with_block(BASELINE, (100.0, 101.0, 102.0)))
    after = write(tmp_path / "after.json", with_block(worse, (100.0, 101.0, 102.0)))
    assert probe.main(["compare", before, after]) == 1
    assert probe.main(["compare", "--on", "sm_90", before, after]) == 0
    assert "UNCHANGED" in capsys.readouterr().out


def test_a_toolkit_of_another_release_is_not_comparable(tmp_path):
    block = offline_block(
        *[offline_sample(process([offline_load()]), index=index) for index in (1, 2, 3)], toolkit="12.9"
    )
    before = write(tmp_path / "before.json", with_block(BASELINE, (100.0, 101.0, 102.0)))
    after = write(tmp_path / "after.json", dataclasses.replace(BASELINE, offline={"sm_90": block}))
    assert probe.main(["compare", "--on", "sm_90", before, after]) == 4


def test_an_architecture_that_a_report_has_not_is_named_with_what_to_do(tmp_path, capsys):
    before = write(tmp_path / "before.json", with_block(BASELINE, (100.0,)))
    after = write(tmp_path / "after.json", BASELINE)
    assert probe.main(["compare", "--on", "sm_90", before, after]) == 2
    message = capsys.readouterr().err
    assert "after.json holds no offline block for sm_90 (there: none); measure it with --cuda-arch 90" in message


# Limits of measure.


class Measured(probe.Measurer):
    """Has measured already: nothing is run."""

    turns: ClassVar[list[tuple[str, int, str]]] = []

    def sample(self, index):
        self.turns.append((self.measurement.options.label, index, "cpu"))
        self.measurement.samples.append(sample(run(process([])), index=index))

    def offline_sample(self, index, architecture):
        self.turns.append((self.measurement.options.label, index, architecture.device))
        block = self.measurement.offline.setdefault(architecture.device, probe.OfflineMeasurement("13.4"))
        block.samples.append(offline_sample(mixed_process(), index=index))


@pytest.mark.parametrize(("on", "code"), [((), 0), (("--on", "sm_90"), 6)])
def test_limits_hold_for_the_report_or_for_the_architecture(monkeypatch, capsys, on, code):
    monkeypatch.setattr(probe, "Measurer", Measured)
    assert probe.main(["measure", "--cuda-arch", "90", *on, "--max-variants", "0", "--", "true"]) == code
    assert "OFFLINE sm_90" in capsys.readouterr().out


def test_both_arms_of_an_experiment_are_measured_offline_in_turns_and_judged_there(monkeypatch, capsys):
    monkeypatch.setattr(probe, "Measurer", Measured)
    monkeypatch.setattr(Measured, "turns", [])
    options = ["--samples", "2", "--cuda-arch", "90", "--candidate-env", "A=1"]
    assert probe.main(["ab", *options, "--on", "sm_90", "--json", "-", "--", "true"]) == 0
    order = [("baseline", 1), ("candidate", 1), ("candidate", 2), ("baseline", 2)]
    assert Measured.turns == [(*turn, device) for device in ("cpu", "sm_90") for turn in order]
    found = json.loads(capsys.readouterr().out)
    variants = next(fact for fact in found["facts"] if fact["fact"] == "variants")
    assert (found["on"], variants["baseline"], variants["candidate"]) == ("sm_90", 1, 1)


@pytest.mark.parametrize("command", [["measure"], ["ab", "--candidate-env", "A=1"]])
def test_an_architecture_to_judge_must_be_measured(capsys, command):
    assert probe.main([*command, "--on", "sm_90", "--", "true"]) == 2
    assert "--on sm_90: add --cuda-arch sm_90 to measure it" in capsys.readouterr().err


def test_a_header_serves_the_builds_at_its_block_dim():
    def built(count, block_dim, first):
        own = [probe.Phases(0.0, 0.0, 100.0, 100.0 if index == 0 else 0.0, 0.0, 0.0, 0.0) for index in range(count)]
        return [
            offline_load(f"m{first + index}", block_dim=block_dim, start=200.0 * (first + index), phases=one)
            for index, one in enumerate(own)
        ]

    block = offline_block(offline_sample(process([*built(7, 256, 0), *built(2, 64, 7)])))
    (finding,) = [one for one in block.findings if one.mechanism == "CS-12"]
    assert finding.text.startswith("1 precompiled header took 100 ms and served 2 builds")


# With a real Warp. A cold build for sm_90 costs 2 to 4 s: few, small programs here, the rest under `offline_slow`.

ARCHITECTURE = ("--samples", "1", "--cuda-arch", "90")


def kernels_launched(seen):
    """Launches by kernel, module, dim and adjoint flag."""
    counts = collections.Counter()
    for one in seen.processes:
        for entry in one.launches.entries:
            kernel = one.launches.kernels[entry.kernel]
            counts[kernel.key, kernel.block_dim, entry.adjoint] += entry.count
    return counts


@pytest.mark.warp(since="1.12")
def test_block_dims_as_asked_for_and_a_kernel_that_only_the_cuda_compiler_refuses(measure, target):
    measured = measure("offline_dims.py", options=ARCHITECTURE)
    (block,) = measured.report.offline.values()
    assert block.warnings == ()
    assert block.coverage.gaps == ()
    built = {record.block_dim: record for record in block.identities if record.name == "__main__"}
    hashes = measure.command(
        [target.python, PROGRAMS / "offline_dims.py", "hashes"],
        options=("--samples", "1", "--keep-logs", str(measure.folder / "hashes")),
    )
    assert hashes.exit_code == 0
    printed = (measure.folder / "hashes" / "1-cold.stdout").read_text(encoding="utf-8")
    assert {dim: record.hash for dim, record in built.items()} == {
        int(line.split()[0]): line.split()[1] for line in printed.splitlines() if line[:2] in ("64", "25")
    }
    (failed,) = [record for record in block.identities if record.name != "__main__"]
    assert (failed.block_dim, failed.cold, failed.launches) == (256, {"error": 1}, 1)
    (load,) = [load for load in block.samples[0].cold.processes[0].loads if load.error]
    assert "error: " in load.error
    assert "this is not C++" in load.error
    assert kernels_launched(block.samples[0].cold) == {
        ("scale", 64, False): 2,
        ("scale", 64, True): 1,
        ("scale", 256, False): 1,
        ("shift", 64, False): 3,
        ("broken", 256, False): 1,
    }
    assert [finding.mechanism for finding in block.findings if finding.kind is probe.FindingKind.REDUNDANT] == [
        "CS-5",
        "build-error",
    ]
    assert {record.name: record.warm for record in block.identities if record.name == "__main__"} == {
        "__main__": {"cached": 1}
    }
    assert "may compile for about" in measured.stderr


@pytest.mark.warp(since="1.12")
def test_preloads_are_built_at_the_block_dim_that_they_ask_for(measure):
    (block,) = measure("offline_preloads.py", options=ARCHITECTURE).report.offline.values()
    assert block.coverage.gaps == ()
    assert sorted((record.name, record.block_dim, record.launches) for record in block.identities) == [
        ("first", 64, 1),
        ("fourth", 256, 0),
        ("second", 128, 0),
        ("third", 128, 0),
    ]


@pytest.mark.warp(since="1.12")
def test_kernels_that_are_dropped_stay_dropped_and_the_program_prints_the_same(measure):
    measured = measure("factory.py", options=ARCHITECTURE)
    (block,) = measured.report.offline.values()
    assert block.warnings == ()
    assert block.coverage.gaps == ()
    assert (block.summary.builds, block.summary.rebuilds, block.summary.warm_builds) == (3, 2, 0)
    assert block.samples[0].cold.output.stdout_digest == measured.report.samples[0].cold.output.stdout_digest
    assert [finding.mechanism for finding in block.findings][:1] == ["CS-1"]


@pytest.mark.warp(since="1.12")
def test_an_architecture_that_the_toolkit_does_not_support_ends_with_those_it_does(measure):
    measured = measure("offline_dims.py", "hashes", options=("--samples", "1", "--cuda-arch", "20"), expect=2)
    assert "does not support it" in measured.stderr
    assert ", 90, " in measured.stderr


@pytest.mark.warp(since="1.12")
def test_a_disk_that_is_full_in_an_offline_run_costs_what_came_after_and_is_said(measure, tmp_path):
    with mounted(tmp_path / "disk", "size=400m") as disk:
        measured = measure("offline_full_disk.py", options=ARCHITECTURE, env={"TMPDIR": str(disk)})
        left = list(disk.iterdir())
    assert left == []
    assert (measured.report.coverage.gaps, measured.report.summary.builds, measured.report.summary.launches) == (
        (),
        1,
        2,
    )
    (block,) = measured.report.offline.values()
    loads = block.samples[0].cold.processes[0].loads
    assert [(load.block_dim, load.status.value) for load in loads] == [(64, "compiled"), (128, "error")]
    assert "No space left on device" in loads[1].error
    assert [finding.mechanism for finding in block.findings] == ["build-error"]


@pytest.mark.offline_slow
@pytest.mark.warp(since="1.12")
@pytest.mark.timeout(900)
def test_everything_that_changes_a_module_late_is_built_for_cuda_as_on_the_cpu(measure):
    measured = measure("offline_mix.py", options=ARCHITECTURE)
    (block,) = measured.report.offline.values()
    assert block.warnings == ()
    assert block.coverage.gaps == ()
    cold = measured.report.samples[0].cold
    assert block.samples[0].cold.output.stdout_digest == cold.output.stdout_digest
    dims = [load.block_dim for load in block.samples[0].cold.processes[0].loads]
    assert dims == [64, 256, 32, 256, 256, 256, 256, 128]
    assert kernels_launched(block.samples[0].cold)["double", 64, True] == 1


@pytest.mark.offline_slow
@pytest.mark.warp(since="1.12")
@pytest.mark.timeout(900)
def test_tile_products_link_one_artifact_forward_and_two_for_the_adjoint(measure):
    found = {}
    for mode in ("as-is", "module-option"):
        (block,) = measure("offline_gemm.py", mode, options=ARCHITECTURE).report.offline.values()
        (load,) = block.samples[0].cold.processes[0].loads
        found[mode] = sorted(artifact.adjoint for artifact in load.lto)
        assert load.phases.lto_ms > load.phases.native_ms
        assert "CS-7" in {finding.mechanism for finding in block.findings}
    assert found == {"as-is": [False, True, True], "module-option": [False]}
