"""Give tasks of evals.json to an agent, and grade what it leaves.

    python evals/run.py --agent 'CMD with {prompt_file} and {workdir}' [--with-skill|--without-skill]
                        [--tasks ID ...] [--repeat N] [--timeout S] [--samples N] [--on cpu] [--out DIR]

Each task is staged in a scratch folder of its own: the files of the task, and with the skill a packed copy of it under
skills/ (without evals/, which holds the answers) that the prompt points to. Solutions, checks and grader are not in it.
The agent is any command; it runs there without a shell, {prompt_file} and {workdir} in its words replaced.
`--agent reference` lays the reference solution over the files instead, `--agent noop` does nothing.

What is graded, by program:
  a task with a fixture       the points of the fixture, as evals/grade.py grades them
  another one for the skill   script-run: the skill's script was started (only with the skill, where it is expected)
  a near miss                 script-not-run: it was not (only with the skill); files-unchanged: the files given are
                              byte for byte as they were
The staged copy of the script notes each start in a file beside the folder; it is otherwise the script. What the agent
printed is kept, and the assertions of evals.json are for a reader to hold against it.

DIR/results.json is written after each task; DIR/TASK-N/ keeps prompt, output and the folder as the agent left it.
Exit codes: 0 all graded points passed or were not checked, 1 some failed, 2 usage, or something that cannot be run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grade
import pack
import warp_compile_probe as probe  # found through grade
from grade import Fixture, GradeError, Grader, Point

RESULTS_SCHEMA = f"{pack.SKILL_NAME}/results"
BUILT_IN = ("reference", "noop")
SKILL_PARTS = ("SKILL.md", "LICENSE", "scripts", "references")
TAIL_CHARACTERS = 4_000
POINTER = (
    "Skills are installed in the folder skills/: each has a SKILL.md, whose description says when to use it. Read the"
    " whole SKILL.md of a skill that fits the task before you start, and follow it.\n\n"
)
MAIN_GUARD = 'if __name__ == "__main__":\n'


@dataclass(frozen=True)
class Task:
    """A task of evals.json; `files` are paths in the skill."""

    id: str
    prompt: str
    expected_output: str
    expected_skill: str | None
    expected_script: str | None
    should_trigger: bool
    files: tuple[str, ...]
    assertions: tuple[str, ...]

    def fixture(self, fixtures: Mapping[str, Fixture]) -> Fixture | None:
        """The fixture that the task is graded by, if it is one that should use the skill."""
        names = [Path(file).name for file in self.files]
        found = [fixtures[name] for name in names if name in fixtures]
        return found[0] if found and self.should_trigger else None


def read_tasks(evals: Path) -> dict[str, Task]:
    """The tasks of evals.json, by id. Raises GradeError."""
    path = evals / "evals.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        tasks = [
            Task(**{**item, "files": tuple(item["files"]), "assertions": tuple(item["assertions"])})
            for item in document["evals"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GradeError(f"{path}: not a list of tasks ({error!r})") from None
    found = {task.id: task for task in tasks}
    if len(found) != len(tasks):
        raise GradeError(f"{path}: two tasks have the same id")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Staging
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Staged:
    """A task that is ready for an agent: the folder it works in, the prompt, the files as they were given, and where
    the skill's script notes its starts (None without the skill)."""

    workdir: Path
    prompt_file: Path
    given: dict[str, str]
    starts: Path | None

    @property
    def script_starts(self) -> int:
        """How often the skill's script was started."""
        return len(self.starts.read_text().splitlines()) if self.starts and self.starts.exists() else 0


def stage(task: Task, root: Path, folder: Path, *, with_skill: bool) -> Staged:
    """Make a folder for an agent. Raises GradeError."""
    workdir = folder / "work"
    workdir.mkdir(parents=True)
    for file in task.files:
        source = grade.existing(root / file, f"a file of the task {task.id}")
        if source.is_dir():
            shutil.copytree(source, workdir, ignore=grade.NOT_STAGED, dirs_exist_ok=True)
        else:
            shutil.copy2(source, workdir)
    given = grade.digests(workdir)
    starts = None
    if with_skill:
        starts = folder / "starts"
        try:
            skill = pack.pack(root, workdir / "skills", SKILL_PARTS)
        except pack.PackError as error:
            raise GradeError(str(error)) from None
        note_starts(skill / "scripts" / grade.SCRIPT.name, starts)
    prompt_file = folder / "prompt.md"
    prompt_file.write_text(f"{POINTER if with_skill else ''}{task.prompt}\n", encoding="utf-8")
    return Staged(workdir, prompt_file, given, starts)


def note_starts(script: Path, starts: Path) -> None:
    """Let a copy of the script write a line to a file whenever it is started as a program."""
    text = script.read_text(encoding="utf-8")
    before, guard, after = text.rpartition(MAIN_GUARD)
    note = f'    with open({str(starts)!r}, "a") as file:\n        file.write("started\\n")\n'
    script.write_text(f"{before}{guard}{note}{after}", encoding="utf-8")


def split_command(command: str) -> list[str]:
    """The words of an agent's command. Raises GradeError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise GradeError(f"--agent {command!r}: {error}") from None
    if not any("{prompt_file}" in word for word in words):
        raise GradeError(f"--agent {command!r}: without {{prompt_file}} the agent would not know its task")
    if shutil.which(words[0]) is None:
        raise GradeError(f"--agent: no command {words[0]!r}")
    return words


def fill_in(words: Sequence[str], staged: Staged) -> list[str]:
    """The command line of an agent for a staged task."""
    places = {"{prompt_file}": str(staged.prompt_file), "{workdir}": str(staged.workdir)}
    filled = []
    for word in words:
        for name, path in places.items():
            word = word.replace(name, path)  # noqa: PLW2901 - one word after the other
        filled.append(word)
    return filled


# ---------------------------------------------------------------------------------------------------------------------
# Running and grading
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runner:
    """What is common to all tasks. `agent` is the words of the command, or the name of a built-in one."""

    root: Path
    evals: Path
    fixtures: dict[str, Fixture]
    agent: tuple[str, ...]
    with_skill: bool
    timeout_s: float
    python: str
    samples: int | None
    offline: bool

    def run(self, task: Task, repeat: int, out: Path) -> dict[str, Any]:
        """Stage a task, let the agent work on it, grade, keep what it left in `out`. Raises GradeError."""
        with tempfile.TemporaryDirectory(prefix="eval-") as scratch:
            staged = stage(task, self.root, Path(scratch), with_skill=self.with_skill)
            start = time.monotonic()
            done = self._let_work(task, staged, out)
            wall_s = time.monotonic() - start
            points = self._points(task, staged, Path(scratch) / "grading")
            shutil.copytree(staged.workdir, out / "work", symlinks=True, ignore=grade.NOT_STAGED)
            shutil.copy2(staged.prompt_file, out)
            starts = staged.script_starts
        failing = [point.id for point in points if point.status is grade.Status.FAIL]
        return {
            "task": task.id,
            "repeat": repeat,
            "should_trigger": task.should_trigger,
            "exit_code": done.code,
            "timed_out": done.timed_out,
            "wall_s": round(wall_s, 1),
            "script_starts": starts,
            "passed": not failing,
            "failing": failing,
            "points": [{**dataclasses.asdict(point), "status": point.status.value} for point in points],
            "assertions": list(task.assertions),
            "output_tail": (done.stdout or done.stderr)[-TAIL_CHARACTERS:],
        }

    def _let_work(self, task: Task, staged: Staged, out: Path) -> grade.Done:
        """Let the agent work in the folder of a task; its output goes to `out`."""
        if self.agent == ("reference",):
            fixture = task.fixture(self.fixtures)
            if fixture is not None:
                overlay = grade.existing(self.evals / "solutions" / fixture.name / "reference", "no reference solution")
                shutil.copytree(overlay, staged.workdir, ignore=grade.NOT_STAGED, dirs_exist_ok=True)
        if self.agent[0] in BUILT_IN:
            out.mkdir(parents=True)
            return grade.Done(0, "", "", timed_out=False)
        # Nothing in the environment leads to the repository.
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OLDPWD")}
        env["PWD"] = str(staged.workdir)
        argv = fill_in(self.agent, staged)
        return grade.run_bounded(argv, cwd=staged.workdir, env=env, timeout_s=self.timeout_s, into=out)

    def _points(self, task: Task, staged: Staged, scratch: Path) -> tuple[Point, ...]:
        """The points of what an agent left. Raises GradeError."""
        fixture = task.fixture(self.fixtures)
        if fixture is not None:
            scratch.mkdir()
            grader = Grader(self.evals, self.python, scratch, self.samples, offline=self.offline)
            return grade.grade(grader, fixture, staged.workdir).points
        return grade_without_fixture(task, staged, by_agent=self.agent[0] not in BUILT_IN)


def grade_without_fixture(task: Task, staged: Staged, *, by_agent: bool) -> tuple[Point, ...]:
    """Whether the skill's script was started where it should be, and files were left alone where they should be."""
    points = []
    started = staged.script_starts
    if staged.starts is not None and by_agent and (task.expected_script or not task.should_trigger):
        id_ = "script-run" if task.should_trigger else "script-not-run"
        points.append(
            grade.decided(
                bool(started) == task.should_trigger, id_, grade.CPU, f"started {probe.plural(started, 'time')}"
            )
        )
    if not task.should_trigger and staged.given:
        now = grade.digests(staged.workdir)
        touched = [path for path, digest in staged.given.items() if now.get(path) != digest]
        evidence = ", ".join(touched) or f"{probe.plural(len(staged.given), 'file')} as given"
        points.append(grade.decided(not touched, "files-unchanged", grade.CPU, evidence))
    return tuple(points)


def chosen_tasks(tasks: Mapping[str, Task], names: Sequence[str]) -> list[Task]:
    """The tasks with these ids, else all. Raises GradeError."""
    for name in names:
        if name not in tasks:
            raise GradeError(f"no task {name!r}; there are {', '.join(tasks)}")
    return [task for task in tasks.values() if task.id in names or not names]


def run_all(runner: Runner, tasks: Sequence[Task], repeats: int, out: Path, agent: str) -> bool:
    """Run the tasks and write the results after each; whether all passed. Raises GradeError."""
    inputs = [runner.evals / "evals.json", runner.evals / "config.yml", grade.SCRIPT]
    inputs += [runner.root / file for task in tasks for file in task.files]
    if runner.with_skill:
        inputs += [runner.root / part for part in SKILL_PARTS]
    results: list[dict[str, Any]] = []
    document = {
        "schema": RESULTS_SCHEMA,
        "agent": agent,
        "with_skill": runner.with_skill,
        "timeout_s": runner.timeout_s,
        "provenance": grade.provenance(runner.python, set(inputs)),
        "results": results,
    }
    for task in tasks:
        for repeat in range(1, repeats + 1):
            result = runner.run(task, repeat, out / f"{task.id}-{repeat}")
            results.append(result)
            grade.write_json(str(out / "results.json"), document)
            answer = f"failed: {', '.join(result['failing'])}" if result["failing"] else "passed"
            print(f"{task.id} {repeat}: {answer if result['points'] else 'nothing to grade by program'}", flush=True)
    return all(result["passed"] for result in results)


def main(argv: Sequence[str] | None = None, root: Path = grade.ROOT, evals: Path = grade.EVALS) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, metavar="CMD", help="a command line, or reference, or noop")
    skill = parser.add_mutually_exclusive_group()
    skill.add_argument("--with-skill", action="store_true", dest="with_skill", default=True, help="the default")
    skill.add_argument("--without-skill", action="store_false", dest="with_skill", help="leave the skill away")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="ID", help="the tasks to run (default: all)")
    parser.add_argument("--repeat", type=grade.positive, default=1, metavar="N", help="runs of each task (default 1)")
    parser.add_argument("--timeout", type=float, default=1800.0, metavar="S", help="end an agent then (default 1800)")
    parser.add_argument("--samples", type=grade.positive, metavar="N", help="samples for grading")
    parser.add_argument("--on", choices=[grade.CPU], help="grade without what is compiled for CUDA")
    parser.add_argument("--out", type=Path, default=Path("eval-results"), metavar="DIR", help="default: eval-results")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python with the Warp to measure")
    arguments = parser.parse_args(argv)
    try:
        agent = (arguments.agent,) if arguments.agent in BUILT_IN else tuple(split_command(arguments.agent))
        tasks = chosen_tasks(read_tasks(evals), arguments.tasks)
        out = arguments.out.resolve()
        if out.exists() and any(out.iterdir()):
            raise GradeError(f"--out {arguments.out}: not empty; name a new folder")
        runner = Runner(
            root=root,
            evals=evals,
            fixtures=grade.read_config(evals),
            agent=agent,
            with_skill=arguments.with_skill and arguments.agent not in BUILT_IN,
            timeout_s=arguments.timeout,
            python=arguments.python,
            samples=arguments.samples,
            offline=arguments.on != grade.CPU,
        )
        return int(not run_all(runner, tasks, arguments.repeat, out, arguments.agent))
    except (GradeError, probe.ProbeError, OSError, subprocess.SubprocessError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
