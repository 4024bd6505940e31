"""ab: two arms of one command, their samples interleaved; trees, revisions, variables and options."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import warp_compile_probe as probe
from builders import process, report, run, sample
from conftest import PROGRAMS, SCRIPT, Measure
from report_builder import change, make_report

ONCE = ("--samples", "1")


@dataclass(frozen=True)
class Done:
    """What one call of the script gave; `comparison` is the JSON it wrote to --json-dir, if any."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def comparison(self):
        return json.loads((self.folder / "comparison.json").read_text())

    def arm(self, name) -> probe.Report:
        return probe.load_report(str(self.folder / f"{name}.json"))


@dataclass(frozen=True)
class Ab:
    """Calls `ab` of the script in a directory: `ab(options, command)`."""

    measure: Measure
    folder: Path

    def argv(self, options, command):
        where = ["--json-dir", str(self.folder / "reports")]
        return [sys.executable, str(SCRIPT), "ab", *where, *options, "--", *map(str, command)]

    def __call__(self, options, command, *, cwd, expect=0, env=None) -> Done:
        done = subprocess.run(
            self.argv(options, command),
            check=False,
            cwd=cwd,
            env=self.measure.environment(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Done(done.returncode, done.stdout, done.stderr, self.folder / "reports")


@pytest.fixture
def ab(measure, tmp_path):
    return Ab(measure, tmp_path)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# -- order, options, what is written ---------------------------------------------------------------------------------

APPEND = "import os; open(os.environ['TRACE'], 'a').write(os.environ['ARM'])"


def test_samples_are_interleaved(ab, tmp_path):
    trace = tmp_path / "trace"
    options = ["--samples", "3", "--env", f"TRACE={trace}", "--baseline-env", "ARM=A", "--candidate-env", "ARM=B"]
    ab(options, [sys.executable, "-c", APPEND], cwd=tmp_path)
    assert trace.read_text() == "AA BB BB AA AA BB".replace(" ", "")


def test_what_varies_is_recorded_allowed_and_named(ab, tmp_path, capsys):
    options = [*ONCE, "--env", "COMMON=1", "--candidate-env", "MODE=fast"]
    done = ab(options, [sys.executable, "-c", "print(1)"], cwd=tmp_path)
    baseline, candidate = done.arm("baseline"), done.arm("candidate")
    assert (baseline.options.env, candidate.options.env) == ({"COMMON": "1"}, {"COMMON": "1", "MODE": "fast"})
    assert baseline.options.varied == candidate.options.varied == (probe.Varied.ENV,)
    assert done.comparison["varied"] == ["--candidate-env MODE=fast"]
    assert "varied on purpose: --candidate-env MODE=fast" in done.out
    assert "allowed to differ" not in done.out
    # The saved reports give the same answer without being told what may differ.
    code = probe.main(["compare", str(done.folder / "baseline.json"), str(done.folder / "candidate.json")])
    assert (code, capsys.readouterr().out) == (0, done.out)


def test_a_report_of_no_experiment_may_not_have_other_options():
    with_set = make_report(set={"max_unroll": "4"})
    assert probe.compare_reports(make_report(), with_set).verdict is probe.Verdict.NOT_COMPARABLE
    varied = (probe.Varied.SET,)
    both = make_report(varied=varied), make_report(set={"max_unroll": "4"}, varied=varied)
    comparison = probe.compare_reports(*both)
    assert comparison.verdict is probe.Verdict.UNCHANGED
    assert comparison.varied == ("--candidate-set max_unroll=4",)
    one_sided = probe.compare_reports(both[0], dataclasses.replace(both[1], options=with_set.options))
    assert one_sided.verdict is probe.Verdict.NOT_COMPARABLE


USAGE = {
    "nothing varies": ([], "both arms are the same"),
    "null and an option": (["--null", "--candidate-env", "A=1"], "--null"),
    "directory and revision": (["--baseline", ".", "--baseline-ref", "HEAD"], "not both"),
    "no directory": (["--baseline", "missing"], "no such directory"),
    "no assignment": (["--candidate-env", "A"], "NAME=VALUE"),
    "a private variable": (["--candidate-env", "TMPDIR=/x"], "sets this variable itself"),
    "no option": (["--candidate-set", "no such=1"], "warp.config"),
    "no repository": (["--baseline-ref", "HEAD"], "in no working tree that git reads"),
    "an unknown option": (["--candidat", "."], "unrecognized"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage(ab, tmp_path, case):
    options, words = USAGE[case]
    done = ab(options, [sys.executable, "-c", ""], cwd=tmp_path, expect=2)
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""


def test_two_directories(ab, tmp_path):
    for name in ("old", "new"):
        write(tmp_path / name / "program.py", f"print('same')\nprint('{name}')\n")
    options = [*ONCE, "--baseline", "old", "--candidate", tmp_path / "new"]
    done = ab(map(str, options), [sys.executable, "program.py"], cwd=tmp_path)
    assert done.comparison["varied"] == [f"tree {tmp_path / 'old'} against {tmp_path / 'new'}"]
    assert done.comparison["output"] == {"state": "differs", "run": "cold", "line": 2}
    assert "from line 2 of the cold run on" in done.out


def test_a_failing_arm_is_named_and_the_rest_is_kept(ab, tmp_path):
    failing = "import os, sys; sys.exit('broken: ' + os.environ['BREAK']) if 'BREAK' in os.environ else print(1)"
    done = ab(["--candidate-env", "BREAK=now"], [sys.executable, "-c", failing], cwd=tmp_path, expect=10)
    assert "candidate, sample 1, cold run: the command ended with exit code 1" in done.err
    assert "  | broken: now" in done.err
    assert [one.complete for one in done.arm("baseline").samples] == [True]


def test_an_unwritable_folder_for_reports_is_told_before_anything_runs(ab, tmp_path):
    write(tmp_path / "reports", "a file")
    done = ab(["--candidate-env", "A=1"], [sys.executable, "-c", ""], cwd=tmp_path, expect=2)
    assert "--json-dir" in done.err
    assert "sample" not in done.err


# -- revisions of git ------------------------------------------------------------------------------------------------

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def git(folder, *words):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    """Two commits, something staged, something changed, and a hook that would tell of a checkout."""
    folder = tmp_path / "repository"
    write(folder / "sub" / "program.py", "print('first')\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    write(folder / "sub" / "program.py", "print('second')\n")
    write(folder / "new" / "program.py", "")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "second")
    write(folder / "staged.txt", "staged")
    git(folder, "add", "staged.txt")
    write(folder / "sub" / "program.py", "print('third')\n")
    write(folder / ".git" / "hooks" / "post-checkout", f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n").chmod(0o755)
    return folder


def state(folder: Path):
    """Everything of a repository that must stay as it is."""
    git_folder = folder / ".git"
    return (
        git(folder, "status", "--porcelain"),
        git(folder, "worktree", "list", "--porcelain"),
        (git_folder / "index").read_bytes(),
        (git_folder / "HEAD").read_text(),
        list((git_folder / "worktrees").iterdir()) if (git_folder / "worktrees").exists() else [],
        sorted((path.name, path.read_bytes()) for path in folder.rglob("*.py")),
    )


@needs_git
def test_a_revision_against_the_working_tree(ab, repository, tmp_path):
    before = state(repository)
    tmpdir = tmp_path / "tmp"
    tmpdir.mkdir()
    code = "import os, runpy; runpy.run_path('program.py'); print(os.path.exists('../staged.txt'))"
    options = [*ONCE, "--baseline-ref", "HEAD~1"]
    logs = ["--keep-logs", str(tmp_path / "logs")]
    env = {"TMPDIR": str(tmpdir)}
    done = ab([*options, *logs], [sys.executable, "-c", code], cwd=repository / "sub", env=env)
    assert (tmp_path / "logs" / "baseline-1-cold.stdout").read_text() == "first\nFalse\n"
    assert (tmp_path / "logs" / "candidate-1-cold.stdout").read_text() == "third\nTrue\n"
    baseline = done.arm("baseline")
    assert baseline.options.revision == "HEAD~1"
    assert baseline.cwd == str(repository / "sub")
    assert baseline.environment.git_commit == git(repository, "rev-parse", "HEAD~1").strip()
    assert done.comparison["varied"] == [f"tree HEAD~1 against {repository / 'sub'}"]
    assert state(repository) == before
    assert list(tmpdir.iterdir()) == []
    assert not (tmp_path / "hook-ran").exists()
    assert str(tmpdir) not in (done.folder / "baseline.json").read_text()


BAD_REVISIONS = {
    "unknown": (["--baseline-ref", "no-such-branch"], "sub", "knows no such revision"),
    "an option": (["--baseline-ref", "--help"], "sub", ""),
    "a file": (["--candidate-ref", "HEAD:sub"], "sub", "knows no such revision"),
    "no directory there": (["--baseline-ref", "HEAD~1"], "new", "has no directory new"),
}


@needs_git
@pytest.mark.parametrize("case", BAD_REVISIONS)
def test_revisions_that_cannot_be_measured(ab, repository, case):
    options, inside, words = BAD_REVISIONS[case]
    before = state(repository)
    done = ab(options, [sys.executable, "program.py"], cwd=repository / inside, expect=2)
    assert words in done.err
    assert state(repository) == before


@needs_git
def test_a_revision_without_git_or_with_a_damaged_repository_is_one_sentence(ab, repository, tmp_path):
    options = ["--baseline-ref", "HEAD~1"]
    done = ab(options, [sys.executable, "program.py"], cwd=repository / "sub", env={"PATH": str(tmp_path)}, expect=2)
    assert "cannot run git" in done.err
    blob = git(repository, "rev-parse", "HEAD~1:sub/program.py").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    done = ab(options, [sys.executable, "program.py"], cwd=repository / "sub", expect=2)
    assert done.err.startswith("warp-compile-probe: git cannot check out HEAD~1: ")
    assert len(done.err.splitlines()) == 1
    assert git(repository, "worktree", "list").count("\n") == 1


@needs_git
def test_submodules_of_a_revision_are_not_there_and_that_is_said(ab, repository):
    write(repository / ".gitmodules", "")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "third")
    done = ab([*ONCE, "--baseline-ref", "HEAD"], [sys.executable, "program.py"], cwd=repository / "sub")
    assert [notice.name for notice in done.arm("baseline").warnings] == ["submodules-left-out"]
    assert "the submodules of HEAD were not checked out" in done.out


@needs_git
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_revision_leaves_nothing(ab, repository, tmp_path, number, code):
    before = state(repository)
    tmpdir, started = tmp_path / "tmp", tmp_path / "started"
    tmpdir.mkdir()
    sleeper = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
    argv = ab.argv(["--baseline-ref", "HEAD~1"], [sys.executable, "-c", sleeper])
    environment = ab.measure.environment({"TMPDIR": str(tmpdir)})
    running = subprocess.Popen(
        argv, cwd=repository / "sub", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not started.exists():
        assert running.poll() is None
        time.sleep(0.02)
    assert list(tmpdir.iterdir())
    running.send_signal(number)
    running.communicate(timeout=60)
    assert running.returncode == code
    assert list(tmpdir.iterdir()) == []
    assert state(repository) == before


@needs_git
@pytest.mark.parametrize("left", ["all of it", "a tree that git cannot read", "nothing but what git knows"])
def test_only_the_temporary_tree_is_forgotten(repository, tmp_path, left):
    stale, path = tmp_path / "stale", tmp_path / "tree-baseline"
    git(repository, "worktree", "add", "--quiet", "--detach", stale)
    shutil.rmtree(stale)  # on a disk that is not mounted just now, say
    before = state(repository)
    git(repository, "worktree", "add", "--quiet", "--detach", "--lock", path)
    if left == "a tree that git cannot read":
        (path / ".git").unlink()
    elif left == "nothing but what git knows":
        shutil.rmtree(path)
    probe.forget_tree(str(repository), str(path))
    assert not path.exists()
    assert state(repository) == before


@needs_git
def test_the_index_of_a_hook_that_runs_the_probe_stays_as_it_is(repository, monkeypatch):
    before = state(repository)
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    workspace = probe.Workspace()
    revision = probe.find_revision("--baseline-ref", "HEAD~1", str(repository / "sub"))
    inside = probe.check_out(revision, workspace, "baseline")
    assert (Path(inside) / "program.py").read_text() == "print('first')\n"
    assert probe.git_state(workspace.root) == (None, None), "the commit of the hook's repository, not of the program's"
    workspace.remove()
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert state(repository) == before


def test_an_arm_that_runs_code_of_the_other_tree_is_told():
    site = probe.Site("/work/old/package/kernels.py", 3, "scale")
    kernel = probe.BuiltKernel("scale", site, False, False, True, 1)
    own = report(sample(run(process(built_kernels=(kernel,)))))
    old, new = dataclasses.replace(own, cwd="/work/old"), dataclasses.replace(own, cwd="/work/new")
    (notice,) = probe.tree_warnings(old, new)
    assert notice.name == "code-of-the-other-tree"
    assert notice.text.startswith("the candidate ran code of the other tree (/work/old/package/kernels.py)")
    assert probe.tree_warnings(old, old) == []
    revision = change(old, revision="main")
    assert len(probe.tree_warnings(revision, old)) == 1


# -- the program's output ----------------------------------------------------------------------------------------------


def printing(*lines, behind=""):
    """An output with these lines; `behind` stands for what lies behind the digests of lines."""
    digests = "".join(f"{line:0>8}" for line in lines)
    return probe.Output(9, 0, f"{digests}{behind}", digests)


def with_output(made, *pairs):
    samples = tuple(
        dataclasses.replace(
            one, cold=dataclasses.replace(one.cold, output=cold), warm=dataclasses.replace(one.warm, output=warm)
        )
        for one, (cold, warm) in zip(made.samples, pairs, strict=True)
    )
    return dataclasses.replace(made, samples=samples)


SAME, OTHER, LONGER = printing("1", "2"), printing("1", "3"), printing("1", "2", "4")
OUTPUTS = {
    "same": ([(SAME, SAME)], [(SAME, SAME)], ("same", None, None)),
    "a line": ([(SAME, SAME)], [(OTHER, OTHER)], ("differs", "cold", 2)),
    "one line more": ([(SAME, SAME)], [(LONGER, LONGER)], ("differs", "cold", 3)),
    "only warm": ([(SAME, SAME)], [(SAME, OTHER)], ("differs", "warm", 2)),
    "far behind": ([(SAME, SAME)], [(printing("1", "2", behind="x"), SAME)], ("differs", "cold", None)),
    "not even alike": ([(SAME, SAME), (SAME, OTHER)], [(SAME, SAME), (SAME, SAME)], ("varies", "warm", 2)),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_are_compared_line_by_line(case):
    before, after, expected = OUTPUTS[case]
    arms = [with_output(make_report(factors=(1.0,) * len(pairs)), *pairs) for pairs in (before, after)]
    comparison = probe.compare_reports(*arms)
    assert comparison.output == probe.OutputChange(probe.OutputState(expected[0]), *expected[1:])
    notices = [notice for notice in comparison.warnings if notice.name == "output-differs"]
    assert len(notices) == (expected[0] == "differs")
    assert "no proof" in probe.render_comparison(comparison, probe.TextFormat.TEXT)


# -- --null ----------------------------------------------------------------------------------------------------


def test_dealing_out_every_way_counts_what_the_verdict_calls():
    figure = probe.null_figure([100.0, 101.0, 102.0, 110.0, 111.0, 112.0])
    assert figure.splits == 20
    assert (figure.improved_percent, figure.regressed_percent) == (5.0, 5.0)
    still = probe.null_figure([100.0] * 6)
    assert (still.improved_percent, still.regressed_percent, still.needed_samples) == (0.0, 0.0, 3)


def test_the_rate_of_false_alarms_is_bounded():
    draw = random.Random(7)
    figure = probe.null_figure([draw.gauss(1000, 50) for _ in range(20)])
    assert figure.splits == probe.NULL_SPLITS
    assert figure.improved_percent <= 5
    assert figure.regressed_percent <= 5


def test_noisier_samples_need_more_of_them():
    draw = random.Random(3)
    needed = [
        probe.samples_for_effect([draw.gauss(1000, noise) for _ in range(20)], 5.0, random.Random(1))
        for noise in (5, 25, 400)
    ]
    assert needed[0] == 3
    assert 3 <= needed[1] <= 50
    assert needed[2] is None


def test_null_reports_the_rate_and_is_no_regression(ab, tmp_path):
    done = ab(["--null", "--samples", "3"], [sys.executable, "-c", "print(1)"], cwd=tmp_path)
    test = done.comparison["null_test"]
    assert test["samples_an_arm"] == 3
    assert test["figures"]["cold_wall_ms"]["splits"] == 20
    assert "samples for 5 %" in done.out
    slower = dataclasses.replace(
        probe.compare_reports(make_report(), make_report(factors=(1.5, 1.51, 1.52))),
        null_test=probe.NullTest(3, 5.0, {}),
    )
    arguments = probe.build_parser().parse_args(["ab", "--null", "--", "x"])
    assert slower.verdict is probe.Verdict.REGRESSED
    assert probe.answer(slower, arguments) == 0


# -- with Warp ---------------------------------------------------------------------------------------------------------

REBUILT = """
import warp as wp

# Every build is as dear as the first one then.
if "use_precompiled_headers" in vars(wp.config):
    wp.config.use_precompiled_headers = False

@wp.kernel
def early(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

{first}
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(early, dim=4, inputs=[x], device="cpu")
{second}
wp.launch(late, dim=4, inputs=[x], device="cpu")
print(x.numpy().tolist())
"""
LATE = """
@wp.kernel
def late(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0
"""


@pytest.mark.warp(since="1.10")
def test_a_real_fix_is_improved(ab, target_python, tmp_path):
    write(tmp_path / "old" / "program.py", REBUILT.format(first="", second=LATE))
    write(tmp_path / "new" / "program.py", REBUILT.format(first=LATE, second=""))
    options = ["--baseline", "old", "--candidate", "new", "--max-regression", "0"]
    done = ab(options, [target_python, "program.py"], cwd=tmp_path)
    times = [done.arm(name).summary.cold_module_ms for name in ("baseline", "candidate")]
    # A machine that is busy with something else can scatter as much as half of the builds cost.
    apart = min(times[0].values) > max(times[1].values) and times[0].median - times[1].median > 2 * times[0].mad
    verdict = "improved" if apart else "inconclusive"
    assert done.out.startswith(f"{verdict.upper()} (timed)")
    assert done.comparison["n"] == {"baseline": 3, "candidate": 3}
    assert (done.comparison["p_exact"] == "1/20") is apart
    assert done.comparison["exact"] == "fewer"
    assert [fact["baseline"] - fact["candidate"] for fact in done.comparison["facts"] if fact["fact"] == "builds"] == [
        1
    ]
    assert done.comparison["output"]["state"] == "same"


@pytest.mark.warp(since="1.10")
def test_an_option_set_in_time_and_one_set_too_late(ab, target_python):
    options = [*ONCE, "--baseline-env", "LATE=1", "--candidate-set", "enable_backward=False"]
    folder = PROGRAMS / "late_option"
    done = ab(options, [target_python, "program.py"], cwd=folder)
    baseline, candidate = done.arm("baseline"), done.arm("candidate")
    assert [one.mechanism for one in baseline.findings if one.mechanism == "option-never-arrived"]
    assert not [one.mechanism for one in candidate.findings if one.mechanism == "option-never-arrived"]
    assert candidate.options.set == {"enable_backward": "False"}
    assert [item["name"] for item in done.comparison["identities"]["moved"]] == ["library"]
    (receipt,) = done.comparison["receipts"]
    assert (receipt["option"], receipt["module"], receipt["outcome"]) == ("enable_backward", "library", "moved")
    assert done.comparison["output"]["state"] == "same"
    assert candidate.summary.generated_source_bytes < baseline.summary.generated_source_bytes


def test_the_current_directory_may_be_gone(monkeypatch, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert probe.current_directory() == ""
    monkeypatch.chdir(tmp_path)
    assert probe.current_directory() == str(tmp_path)
