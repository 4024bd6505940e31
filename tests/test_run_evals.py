"""The runner of tasks: what an agent is given, that it cannot reach the answers, and what is graded afterwards."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path

import grade
import pack
import pytest
from conftest import ROOT

EVALS = Path(__file__).resolve().parent / "evals"

# The programs of tests/corpus have a module `run` too.
spec = importlib.util.spec_from_file_location("run_evals", ROOT / "evals" / "run.py")
runner = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = runner
spec.loader.exec_module(runner)


def task(id_, *, files=(), triggers=True, script="scripts/warp_compile_probe.py"):
    return {
        "id": id_,
        "prompt": f"Please look at {id_}.",
        "expected_output": "something",
        "expected_skill": pack.SKILL_NAME if triggers else None,
        "expected_script": script if triggers else None,
        "should_trigger": triggers,
        "files": list(files),
        "assertions": ["it is good"],
    }


@pytest.fixture
def root(tmp_path):
    """A skill with tasks around the small fixture of the tests."""
    root = tmp_path / "skill"
    for part in ("scripts", "references", "LICENSE"):
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).symlink_to(ROOT / part)
    (root / "SKILL.md").write_text("---\nname: warp-compile-time-optimizer\n---\n")
    (root / "evals").mkdir()
    for part in EVALS.iterdir():
        (root / "evals" / part.name).symlink_to(part)
    (root / "evals" / "service.py").write_text("print('not Warp')\n")
    tasks = [
        task("tiny", files=["evals/files/t01_tiny"]),
        task("log"),
        task("question", script=None),
        task("miss", triggers=False),
        task("service", files=["evals/service.py"], triggers=False),
    ]
    (root / "evals" / "evals.json").write_text(json.dumps({"skill_name": pack.SKILL_NAME, "evals": tasks}))
    return root


@pytest.fixture
def run(root, tmp_path, target_python, capsys):
    """Call the runner; gives the exit code, results.json by task, and what it printed."""

    def call(agent, *words, out="out"):
        argv = ["--agent", agent, "--out", str(tmp_path / out), "--python", target_python, "--samples", "1", *words]
        code = runner.main(argv, root, root / "evals")
        path = tmp_path / out / "results.json"
        document = json.loads(path.read_text()) if path.exists() else {"results": []}
        return code, document, capsys.readouterr()

    return call


def agent(tmp_path, code):
    """The command of an agent that runs Python code with the prompt file and the folder as arguments."""
    script = tmp_path / "agent.py"
    script.write_text(code)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{prompt_file}} {{workdir}}"


def points(result):
    return {point["id"]: point["status"] for point in result["points"]}


LOOKS_AROUND = """
import json, os, pathlib, sys
work = pathlib.Path(sys.argv[2])
found = sorted(str(path.relative_to(work)) for path in work.rglob("*") if path.is_file())
beside = sorted(path.name for path in work.parent.iterdir())
prompt = open(sys.argv[1]).read()
print(json.dumps({"cwd": os.getcwd() == str(work), "found": found, "beside": beside, "prompt": prompt}))
"""


def test_an_agent_gets_files_skill_and_prompt_and_no_answers(run, tmp_path):
    code, document, _ = run(agent(tmp_path, LOOKS_AROUND), "--tasks", "service")
    (result,) = document["results"]
    seen = json.loads(result["output_tail"])
    skill = f"skills/{pack.SKILL_NAME}"
    assert seen["cwd"]
    assert {"service.py", f"{skill}/SKILL.md", f"{skill}/scripts/warp_compile_probe.py"} <= set(seen["found"])
    assert not [name for name in seen["found"] if "evals" in name or "solutions" in name or "checks" in name]
    assert seen["beside"] == ["prompt.md", "work"]
    assert seen["prompt"].endswith("Please look at service.\n")
    assert "skills/" in seen["prompt"]
    assert (code, points(result)) == (0, {"script-not-run": "pass", "files-unchanged": "pass"})


def test_without_the_skill_nothing_speaks_of_it(run, tmp_path):
    _, document, _ = run(agent(tmp_path, LOOKS_AROUND), "--without-skill", "--tasks", "service")
    (result,) = document["results"]
    seen = json.loads(result["output_tail"])
    assert (seen["found"], seen["prompt"]) == (["service.py"], "Please look at service.\n")
    assert points(result) == {"files-unchanged": "pass"}
    assert document["with_skill"] is False


RUNS_THE_SCRIPT = """
import pathlib, subprocess, sys
(script,) = pathlib.Path(sys.argv[2]).glob("skills/*/scripts/*.py")
print(subprocess.run([sys.executable, script, "--version"], check=True, capture_output=True, text=True).stdout)
for path in pathlib.Path(sys.argv[2]).glob("*.py"):
    path.write_text("changed")
"""


def test_starts_of_the_script_and_touched_files_are_seen(run, tmp_path):
    code, document, said = run(agent(tmp_path, RUNS_THE_SCRIPT), "--tasks", "log", "question", "miss", "service")
    found = {result["task"]: points(result) for result in document["results"]}
    assert found == {
        "log": {"script-run": "pass"},
        "question": {},
        "miss": {"script-not-run": "fail"},
        "service": {"script-not-run": "fail", "files-unchanged": "fail"},
    }
    assert code == 1
    assert {result["script_starts"] for result in document["results"]} == {1}
    assert "question 1: nothing to grade by program" in said.out


def test_the_staged_script_is_otherwise_the_script(root, tmp_path):
    tasks = runner.read_tasks(root / "evals")
    staged = runner.stage(tasks["log"], root, tmp_path / "stage", with_skill=True)
    copy = staged.workdir / "skills" / pack.SKILL_NAME / "scripts" / grade.SCRIPT.name
    original, staged_lines = (path.read_text().splitlines() for path in (grade.SCRIPT, copy))
    added = [number for number, line in enumerate(staged_lines) if line not in original]
    assert len(staged_lines) - len(original) == 2
    assert min(added) >= len(original) - 2
    command = [sys.executable, copy, "measure", "--samples", "1", "--", sys.executable, "-c", "print(1)"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, staged.script_starts) == (0, 1), done.stderr


def test_an_agent_that_does_not_end_is_ended(run, tmp_path):
    slow = agent(tmp_path, "import time; print('thinking', flush=True); time.sleep(60)")
    _, document, _ = run(slow, "--timeout", "2", "--tasks", "miss", "--repeat", "2")
    assert [(result["repeat"], result["timed_out"]) for result in document["results"]] == [(1, True), (2, True)]
    assert document["results"][0]["output_tail"] == "thinking\n"


def test_what_an_agent_left_is_kept(run, tmp_path):
    _, document, _ = run(agent(tmp_path, "open('answer.md', 'w').write('42'); print('done')"), "--tasks", "miss")
    folder = tmp_path / "out" / "miss-1"
    assert (folder / "work" / "answer.md").read_text() == "42"
    assert (folder / "stdout.txt").read_text() == "done\n"
    assert (folder / "prompt.md").exists()
    assert {"warp", "python", "probe", "git_commit", "created", "inputs_sha256"} <= set(document["provenance"])
    assert document["agent"].endswith("{prompt_file} {workdir}")


@pytest.mark.warp(since="1.10")
@pytest.mark.timeout(900)
def test_reference_passes_and_noop_fails(run):
    code, document, _ = run("reference", "--on", "cpu", out="reference")
    assert (code, [result["failing"] for result in document["results"]]) == (0, [[], [], [], [], []])
    assert points(document["results"][0])["no-rebuild"] == "pass"
    assert points(document["results"][4]) == {"files-unchanged": "pass"}
    code, document, _ = run("noop", "--tasks", "tiny", out="noop")
    assert (code, document["results"][0]["failing"]) == (1, ["no-rebuild", "late-kernel-gone"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "echo {workdir}"], "would not know its task"),
        (["--agent", "no-such-agent {prompt_file}"], "no command 'no-such-agent'"),
        (["--agent", "cat '{prompt_file}"], "No closing quotation"),
        (["--agent", "noop", "--tasks", "nope"], "no task 'nope'"),
        (["--agent", "noop", "--out", "."], "not empty"),
    ],
)
def test_bad_input_is_one_sentence(root, words, message, capsys, monkeypatch):
    monkeypatch.chdir(root)
    assert runner.main(words, root, root / "evals") == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
