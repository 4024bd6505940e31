"""Whole measurements of programs on a stand-in for Warp: cheap, so that many processes, threads and failures fit."""

import dataclasses

import pytest
import support_table
import warp_compile_probe as probe
from recorded import launch_table
from stubbed import cold, gaps


def site(measured, load):
    line = (measured.argv[-1], load.site.line)
    with open(line[0], encoding="utf-8") as file:
        return file.read().splitlines()[line[1] - 1].strip()


def test_the_stand_in_is_measured_like_warp(stub):
    measured = stub(
        """
        def main():
            wp.launch(add, dim=8, inputs=[1.0])
            wp.launch(halve, dim=(2, 3), inputs=[1.0])
            recorded = wp.launch(add, dim=4, inputs=[1.0], record_cmd=True)
            for _ in range(3):
                recorded.launch()
            wp.launch(add, dim=8, inputs=[1.0], adjoint=True)
            wp.launch(add, dim=0, inputs=[1.0])

            @wp.kernel
            def late(x: float):
                pass

            wp.launch(late, dim=1, inputs=[1.0])

        main()
        """
    )
    report = measured.report
    assert (report.summary.builds, report.summary.rebuilds, report.summary.warm_builds) == (2, 1, 0)
    (process,) = cold(measured).processes
    assert sorted(launch_table(process.launches)) == [
        ("add", (4,), False, 3),
        ("add", (8,), False, 1),
        ("add", (8,), True, 1),
        ("halve", (2, 3), False, 1),
        ("main.<locals>.late", (1,), False, 1),
    ]
    assert [site(measured, load) for load in process.loads] == [
        "wp.launch(add, dim=8, inputs=[1.0])",
        "wp.launch(late, dim=1, inputs=[1.0])",
    ]
    assert all(load.phases.native_ms > 0 and load.phases.codegen_ms > 0 for load in process.loads)
    assert all(load.generated_source_bytes > 0 for load in process.loads)
    assert gaps(measured) == []


def test_fifty_threads_that_launch(stub):
    measured = stub(
        """
        start = threading.Barrier(50)

        def work(number):
            start.wait()
            for _ in range(200):
                wp.launch(add if number % 2 else halve, dim=number + 1, inputs=[1.0])

        threads = [threading.Thread(target=work, args=[number]) for number in range(50)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        """
    )
    for run in (cold(measured), measured.report.samples[0].warm):
        (process,) = run.processes
        expected = [("add" if number % 2 else "halve", (number + 1,), False, 200) for number in range(50)]
        assert sorted(launch_table(process.launches)) == sorted(expected)
        assert sorted(stream.count for stream in process.launches.streams) == [200] * 50
        assert len(process.loads) == 1
    assert gaps(measured) == []


def test_two_hundred_children(stub):
    measured = stub(
        """
        wp.launch(add, dim=1, inputs=[1.0])
        for number in range(200):
            if not os.fork():
                wp.launch(add, dim=number + 1, inputs=[1.0])
                wp.launch(halve, dim=number + 1, inputs=[1.0])
                os._exit(number)
            os.wait()
        """
    )
    parent, *children = cold(measured).processes
    assert launch_table(parent.launches) == [("add", (1,), False, 1)]
    assert [child.path for child in children] == [f"0.{number}" for number in range(200)]
    assert [child.exit_code for child in children] == list(range(200))
    for number, child in enumerate(children):
        assert sorted(launch_table(child.launches)) == [
            ("add", (number + 1,), False, 1),
            ("halve", (number + 1,), False, 1),
        ]
    assert measured.report.summary.builds == 1
    assert gaps(measured) == []


def test_children_that_run_at_the_same_time(stub):
    measured = stub(
        """
        import subprocess
        if len(sys.argv) == 1:
            children = [subprocess.Popen([sys.executable, __file__, str(number + 1)]) for number in range(12)]
            sys.exit(any([child.wait() for child in children]))
        wp.launch(add, dim=int(sys.argv[1]), inputs=[1.0])
        """
    )
    parent, *children = cold(measured).processes
    assert parent.launches.count == 0
    # Named in the order of their birth, however they were scheduled.
    assert [launch_table(child.launches)[0][1] for child in children] == [(number,) for number in range(1, 13)]
    assert gaps(measured) == []


def test_a_process_that_is_killed_keeps_its_launches(stub):
    measured = stub(
        """
        import signal
        if not os.fork():
            for number in range(70_000):
                wp.launch(add, dim=1, inputs=[1.0])
            os.kill(os.getpid(), signal.SIGKILL)
        os.wait()
        """
    )
    parent, child = cold(measured).processes
    assert (child.end.value, child.launches.count) == ("unrecorded", 70_000)
    assert (parent.end.value, parent.launches.count) == ("exit", 0)
    assert gaps(measured) == []


def test_graphs(stub):
    measured = stub(
        """
        wp.capture_begin()
        wp.launch(add, dim=8, inputs=[1.0])
        wp.launch(halve, dim=8, inputs=[1.0])
        graph = wp.capture_end()
        for _ in range(3):
            wp.capture_launch(graph)
        wp.launch(add, dim=8, inputs=[1.0])
        """
    )
    (process,) = cold(measured).processes
    assert launch_table(process.launches) == [("add", (8,), False, 4), ("halve", (8,), False, 3)]
    assert process.launches.count == 7


def test_preloading_with_threads(stub):
    measured = stub(
        """
        def preload():
            wp.force_load(max_workers=2)

        preload()
        wp.launch(add, dim=8, inputs=[1.0])
        """
    )
    preloaded, launched = cold(measured).processes[0].loads
    assert site(measured, preloaded) == "wp.force_load(max_workers=2)"
    assert (preloaded.site.function, preloaded.workers, preloaded.block_dim) == ("preload", 2, 256)
    assert (launched.workers, launched.block_dim) == (None, 1)
    assert measured.report.summary.variants == 1


def test_a_build_that_fails(stub):
    measured = stub(
        """
        @wp.kernel
        def bad(x: float):
            '#error'

        try:
            wp.launch(bad, dim=8, inputs=[1.0])
        except RuntimeError as error:
            print(error)
        """
    )
    (load,) = cold(measured).processes[0].loads
    assert (load.status.value, load.error) == ("error", "RuntimeError('CPU kernel build failed')")
    assert measured.report.summary.error_loads == 1


# ---------------------------------------------------------------------------------------------------------------------
# Caches
# ---------------------------------------------------------------------------------------------------------------------

CACHES = {
    "a directory that is kept": ("wp.config.kernel_cache_dir = CACHE", 0, ["directory-set"]),
    "a directory that is set after the start": (
        "wp.init()\nwp.config.kernel_cache_dir = CACHE\nos.makedirs(CACHE, exist_ok=True)",
        0,
        ["directory-set"],
    ),
    "a path object": ("import pathlib\nwp.config.kernel_cache_dir = pathlib.Path(CACHE)", 0, ["directory-set"]),
    "a directory that is deleted at the end": (
        "import atexit, shutil\nwp.config.kernel_cache_dir = CACHE\natexit.register(shutil.rmtree, CACHE)",
        1,
        ["directory-set"],
    ),
    "a cache that is cleared": ("wp.init()\nwp._src.build.clear_kernel_cache()", 1, ["clear-kernel-cache"]),
    "a cache of its own that is cleared": (
        "wp.config.kernel_cache_dir = CACHE\nwp.init()\nwp._src.build.clear_kernel_cache()",
        1,
        ["directory-set", "clear-kernel-cache"],
    ),
    "no cache": ("wp.config.cache_kernels = False", 1, ["caching-off"]),
    "another variable": ("os.environ['WARP_CACHE_PATH'] = CACHE", 0, ["directory-set"]),
    "no variable": ("del os.environ['WARP_CACHE_PATH']", 0, []),
    "another directory for Warp itself": ("wp.init()\nwp._src.build.init_kernel_cache(CACHE)", 0, ["directory-set"]),
}


@pytest.mark.parametrize(("body", "warm_builds", "events"), CACHES.values(), ids=CACHES)
def test_caches_stay_private_whatever_the_program_sets(stub, body, warm_builds, events):
    theirs = stub.folder / "cache"
    known = theirs / "1.19.0" / "wp_program_0000000"
    known.mkdir(parents=True)
    (known / "module.o").write_bytes(b"theirs")
    deleted = "deleted" in body or "rmtree" in body
    measured = stub(f"CACHE = {str(theirs)!r}\n{body}\nwp.launch(add, dim=8, inputs=[1.0])")
    assert [event.kind.value for event in cold(measured).processes[0].cache_events] == events
    assert measured.report.summary.builds == 1
    assert measured.report.summary.warm_builds == warm_builds
    assert theirs.exists() is not deleted
    if not deleted:
        assert [str(path.relative_to(theirs)) for path in sorted(theirs.rglob("*"))] == [
            "1.19.0",
            "1.19.0/wp_program_0000000",
            "1.19.0/wp_program_0000000/module.o",
        ]
    assert gaps(measured) == []


def test_a_module_directory_that_disappears_is_a_gap(stub):
    """Not through Warp, and not the whole directory: nothing else would tell."""
    measured = stub(
        """
        import pathlib, shutil
        wp.launch(add, dim=8, inputs=[1.0])
        for folder in pathlib.Path(wp.config.kernel_cache_dir).glob("wp_*"):
            shutil.rmtree(folder)
        """
    )
    (load,) = cold(measured).processes[0].loads
    text = f"1 build left no module directory: {load.name} {load.hash[:7]}"
    assert gaps(measured) == [("missing-cache-entry", text)]


def test_what_the_program_assigns_to_the_configuration(stub):
    measured = stub(
        """
        wp.config.log_level = 30
        wp.config.log_level = 30
        setattr(wp.config, "enable_backward", False)
        try:
            wp.config.log_level = "high"
        except ValueError as error:
            print(error)
        wp.launch(add, dim=8, inputs=[1.0])
        """
    )
    (process,) = cold(measured).processes
    assert [(event.name, event.before, event.after) for event in process.config_events] == [
        ("log_level", "20", "30"),
        ("enable_backward", "True", "False"),
    ]
    assert {event.site.function for event in process.config_events} == {"<module>"}


# ---------------------------------------------------------------------------------------------------------------------
# A Warp that is not understood
# ---------------------------------------------------------------------------------------------------------------------

LAUNCH = 'wp.launch(add, dim=8, inputs=[1.0])\nprint("done")'
CONTEXT, BUILD, TYPES = "_src/context.py", "_src/build.py", "_src/types.py"
CHANGES = {
    "a load with other names": (
        [(CONTEXT, "active_block_dim", "wanted_block_dim")],
        "unsupported-warp: no loads can be recorded in Warp 1.19.0: use Warp 1.10 to 1.19",
    ),
    "a load without a hash": (
        [(CONTEXT, "module_hash", "content_hash")],
        "hook-failed: start of a load: KeyError('module_hash')",
    ),
    "an executable without a hash": (
        [
            (CONTEXT, "self.module_hash = module_hash", "self.hash = module_hash"),
            (CONTEXT, ".module_hash ==", ".hash =="),
        ],
        "hook-failed: executable module: AttributeError",
    ),
    "launches that end elsewhere": (
        [(CONTEXT, "invoke(", "dispatch(")],
        "unsupported-warp: no launches can be recorded in Warp 1.19.0: use Warp 1.10 to 1.19",
    ),
    "no hasher": ([(CONTEXT, "ModuleHasher", "ContentHasher")], "hook-failed: patch_hasher: AttributeError"),
    "a hasher without hash_function": (
        [(CONTEXT, "hash_function", "digest_function")],
        "hook-failed: hook of ModuleHasher.hash_function: LookupError('there is none')",
    ),
    "a hasher that keeps its hash elsewhere": (
        [
            (CONTEXT, "self.hash = digest.digest()", "self.value = digest.digest()"),
            (CONTEXT, "dim].hash", "dim].value"),
        ],
        "hook-failed: hash of a module: AttributeError",
    ),
    "entry points without the kernel": (
        [
            (CONTEXT, "def get_kernel_hooks(self, kernel):", "def get_kernel_hooks(self, wanted):"),
            (CONTEXT, "kernel_hooks.get(kernel.hash)", "kernel_hooks.get(wanted.hash)"),
            (CONTEXT, "function = kernel.func", "function = wanted.func"),
            (CONTEXT, "self.kernel_hooks[kernel.hash]", "self.kernel_hooks[wanted.hash]"),
        ],
        "hook-failed: entry points of a kernel: KeyError('kernel')",
    ),
    "a compiler of another name": (
        [(BUILD, "build_cpu", "build_host"), (CONTEXT, "build_cpu", "build_host")],
        "hook-failed: hook of warp._src.build.build_cpu: LookupError('there is none')",
    ),
    "bounds of another kind": (
        [(TYPES, '"coord_mult"', '"times"'), (TYPES, ".coord_mult", ".times"), (CONTEXT, ".coord_mult", ".times")],
        "hook-failed: a launch: AttributeError",
    ),
    "a status that is not known": (
        [(CONTEXT, '" (compiled)"', '" (restored)"')],
        "hook-failed: status of a load: ValueError('restored')",
    ),
}


@pytest.mark.parametrize(("changes", "gap"), CHANGES.values(), ids=CHANGES)
def test_a_warp_that_is_built_otherwise_is_a_loud_gap(stub, changes, gap):
    for file, old, new in changes:
        stub.change(file, (old, new))
    logs = stub.folder / "logs"
    measured = stub(LAUNCH, expect=None, options=["--samples", "1", "--keep-logs", str(logs)])
    assert (logs / "1-cold.stdout").read_text(encoding="utf-8").endswith("done\n")
    assert (logs / "1-cold.stderr").read_text(encoding="utf-8") == ""
    found = [f"{reason}: {detail}" for reason, detail in gaps(measured)]
    assert [text for text in found if text.startswith(gap)], found


def test_a_warp_of_the_future_with_other_modules(stub):
    stub.change("config.py", ("1.19.0", "2.0.0"))
    stub.change("__init__.py", ("_src.context", "_src.engine"))
    (stub.warp / "warp" / "_src" / "context.py").rename(stub.warp / "warp" / "_src" / "engine.py")
    stub.change("_src/codegen.py", ("_src.context", "_src.engine"))
    measured = stub(LAUNCH, expect=4)
    assert "no loads and no launches can be recorded in Warp 2.0.0: use Warp 1.10 to 1.19" in measured.stderr
    assert {reason for reason, _ in gaps(measured)} == {"unsupported-warp", "log-only-loads"}
    assert measured.report.summary.builds == 1, "known from its log line"
    assert "NOT EVERYTHING WAS SEEN" in measured.stdout


def test_the_support_table_tells_what_a_report_has_wrong(stub):
    report = stub(LAUNCH).report

    def deviation(**truth):
        return support_table.Check("x", (), **{"launches": 1, **truth}).deviation(report)

    assert deviation() is None
    assert deviation(launches=2) == "launches: 1 instead of 2"
    assert deviation(causes=("first-build", "kernel-added")) == "builds: 1 instead of 2"
    assert deviation(causes=("kernel-added",)) == "causes: ('first-build',) instead of ('kernel-added',)"
    assert deviation(cached_loads=1) == "loads from the cache: 0 instead of 1"
    assert deviation(quiet=True) == "module lines: 1 instead of 0"
    gap = probe.Gap(probe.GapReason.HOOK_FAILED, 1, "a hook")
    report = dataclasses.replace(report, coverage=dataclasses.replace(report.coverage, gaps=(gap,)))
    assert deviation() == "gaps: ['a hook'] instead of []"


NEWER = ("config.py", ("1.19.0", "1.99.0"))


def compared_with_itself(measured):
    return probe.compare_reports(measured.report, measured.report).verdict


def test_a_newer_warp_is_measured_with_a_warning(stub):
    known = stub(LAUNCH)
    assert [notice.name for notice in known.report.warnings if notice.name == "newer-warp"] == []
    stub.change(*NEWER)
    measured = stub(LAUNCH)
    (warning,) = [notice for notice in measured.report.warnings if notice.name == "newer-warp"]
    assert warning.text.startswith("Warp 1.99.0 is newer than 1.19,")
    assert "Warp 1.99.0 is newer than 1.19" in " ".join(measured.stdout.split())
    assert gaps(measured) == []
    assert measured.report.summary.builds == known.report.summary.builds == 1
    assert compared_with_itself(measured) is not probe.Verdict.UNVERIFIED


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = f"Module {', 'name = f"Loading {', "unexplained-cache-entry"),
        ("with warp.ScopedTimer(name) as timer:", "for timer in [threading.local()]:", "unexplained-cache-entry"),
        ("        invoke(kernel, hooks, params, adjoint)", "        kernel.func(*params[1:])", "launches-not-recorded"),
    ],
    ids=["loads with another line", "loads without a timer", "launches another way"],
)
def test_what_a_newer_warp_does_otherwise_is_noticed(stub, old, new, reason):
    stub.change(*NEWER)
    stub.change(CONTEXT, (old, new))
    measured = stub(LAUNCH)
    assert {found for found, _ in gaps(measured)} == {reason}
    assert "newer-warp" in {notice.name for notice in measured.report.warnings}
    assert compared_with_itself(measured) is probe.Verdict.UNVERIFIED


def test_hooks_of_the_program_and_of_the_recorder_live_together(stub):
    """`mock.patch` on what is hooked, before and after, and a reload of the module of the timer."""
    measured = stub(
        """
        import importlib
        from unittest import mock
        from warp._src import context, utils

        with mock.patch.object(context, "invoke", wraps=context.invoke) as invoke:
            wp.launch(add, dim=8, inputs=[1.0])
        assert invoke.call_count == 1
        with mock.patch.object(wp.ScopedTimer, "__exit__", autospec=True, return_value=None):
            wp.launch(add, dim=4, inputs=[1.0])
        importlib.reload(utils)
        wp.launch(halve, dim=2, inputs=[1.0])
        """
    )
    (process,) = cold(measured).processes
    assert sorted(launch_table(process.launches)) == [
        ("add", (4,), False, 1),
        ("add", (8,), False, 1),
        ("halve", (2,), False, 1),
    ]
    assert measured.report.summary.builds == 1


def test_the_shutil_that_warp_knows_can_be_patched_as_ever(stub):
    """Also the one function of it that is timed, in the midst of a load and outside; nothing of a patch remains."""
    measured = stub(
        """
        import shutil
        from unittest import mock
        from warp._src import context

        documented, originals = shutil.__doc__, (shutil.copy2, shutil.rmtree)
        calls = []
        for name, block_dim in (("copy2", 32), ("rmtree", 64)):
            with mock.patch.object(context.shutil, name) as patched:
                assert getattr(shutil, name) is getattr(context.shutil, name) is patched
                wp.launch(add, dim=8, inputs=[1.0], block_dim=block_dim)
                calls.append(patched.call_count)
            assert (shutil.copy2, shutil.rmtree) == originals
        assert calls in ([0, 1], [0, 0])  # the second run builds nothing
        context.shutil.of_the_program = 1
        assert shutil.of_the_program == vars(context.shutil)["of_the_program"] == 1
        del context.shutil.of_the_program
        assert not hasattr(shutil, "of_the_program")
        assert shutil.__doc__ is documented
        """
    )
    assert measured.report.samples[0].complete
    assert gaps(measured) == []
