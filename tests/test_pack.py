"""The skill as it is packed: what is in it, that it works alone, and that its pages and tasks lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import grade
import pack
import pytest
from conftest import ROOT, distribution_version

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
TASKS = json.loads((ROOT / "evals" / "evals.json").read_text(encoding="utf-8"))
FIXTURES = grade.read_config(grade.EVALS)
FIELDS = {
    "id", "prompt", "expected_output", "expected_skill", "expected_script", "should_trigger", "files", "assertions",
}  # fmt: skip


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return pack.pack(ROOT, tmp_path_factory.mktemp("packed"))


def test_only_what_users_need_is_packed(packed):
    assert packed.name == pack.SKILL_NAME
    top = {path.name for path in packed.iterdir()} - {"BENCHMARK.md"}
    assert top == {"SKILL.md", "LICENSE", "scripts", "references", "evals"}
    assert {path.name for path in (packed / "evals").iterdir()} == {"evals.json", "files"}
    assert [path.name for path in (packed / "scripts").iterdir()] == ["warp_compile_probe.py"]
    names = {path.name for path in packed.rglob("*")}
    assert not names & {"solutions", "checks", "tests", "grade.py", "config.yml", "__pycache__"}
    assert not any(name.startswith(".") for name in names)


@pytest.mark.parametrize("missing", ["SKILL.md", "LICENSE", "scripts"])
def test_an_incomplete_skill_is_not_packed(tmp_path, missing):
    with pytest.raises(pack.PackError, match=f"{missing}: is not there"):
        pack.pack(tmp_path, tmp_path / "out", [missing])
    assert not (tmp_path / "out").exists()


def test_packing_twice_into_one_folder_is_refused(packed, capsys):
    assert pack.main([str(packed.parent)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_the_packed_copy_works_alone(packed, tmp_path):
    script = packed / "scripts" / "warp_compile_probe.py"

    def run(*words):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-I", script, *words]
        return subprocess.run(command, check=False, cwd=tmp_path, env=env, capture_output=True, text=True)

    assert "measure" in run("--help").stdout
    done = run("measure", "--samples", "1", "--json", "report.json", "--", sys.executable, "-c", "print(1)")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"]["builds"] == 0
    assert report["coverage"]["gaps"] == []


# -- pages ------------------------------------------------------------------------------------------------------------


def pages(root):
    return [root / "SKILL.md", *sorted((root / "references").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Links of a page to files or headings that are not there."""
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else page.parent / path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def test_links_of_the_packed_pages_resolve(packed):
    assert {page.name: broken_links(page) for page in pages(packed) if broken_links(page)} == {}


def test_links_of_the_readme_resolve():
    assert broken_links(ROOT / "README.md") == []


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading: one\n\n[a](page.md#a-heading-one) [b](gone.md) [c](#two) [d](https://example.org/x)\n"
    )
    assert broken_links(page) == ["gone.md", "#two"]


def test_references_are_one_level_deep(packed):
    assert [path.name for path in (packed / "references").iterdir() if path.is_dir()] == []
    linked = {link.partition("#")[0] for link in LINK.findall((packed / "SKILL.md").read_text(encoding="utf-8"))}
    assert {f"references/{page.name}" for page in pages(packed)[1:]} <= linked


# -- tasks and fixtures -----------------------------------------------------------------------------------------------


def test_there_are_tasks_for_the_skill_and_near_misses():
    assert set(TASKS) == {"skill_name", "evals"}
    assert TASKS["skill_name"] == pack.SKILL_NAME
    hits = [task for task in TASKS["evals"] if task["should_trigger"]]
    assert len(hits) >= 11
    assert len(TASKS["evals"]) - len(hits) >= 14
    assert len({task["id"] for task in TASKS["evals"]}) == len(TASKS["evals"])


@pytest.mark.parametrize("task", TASKS["evals"], ids=[task["id"] for task in TASKS["evals"]])
def test_a_task_is_complete(packed, task):
    assert set(task) == FIELDS
    assert all(text.strip() for text in (task["prompt"], task["expected_output"]))
    assert task["assertions"]
    assert all(isinstance(assertion, str) and assertion.strip() for assertion in task["assertions"])
    assert [file for file in task["files"] if not (packed / file).exists()] == []
    assert task["expected_skill"] == (pack.SKILL_NAME if task["should_trigger"] else None)
    assert task["expected_script"] is None or (packed / task["expected_script"]).is_file()


def test_every_fixture_is_a_task():
    used = {Path(file).name for task in TASKS["evals"] if task["should_trigger"] for file in task["files"]}
    assert used == set(FIXTURES)


@pytest.mark.parametrize("fixture", FIXTURES.values(), ids=FIXTURES)
def test_a_fixture_is_complete(fixture):
    files = grade.EVALS / "files" / fixture.name
    assert {"pyproject.toml", "README.md", "src"} <= {path.name for path in files.iterdir()}
    assert (files / "src" / fixture.command[-1] / "__main__.py").is_file()
    assert (grade.EVALS / "checks" / f"{fixture.name}.py").is_file()
    assert {"reference", "noop"} <= set(fixture.solutions)
    wrong = set(fixture.solutions) - {"reference", "noop"}
    assert len(wrong) >= 2
    assert all(fixture.solutions[name] for name in wrong)
    folders = {path.name for path in (grade.EVALS / "solutions" / fixture.name).iterdir()}
    assert folders | {"noop"} == set(fixture.solutions)
    for name in wrong:
        overlay = grade.digests(grade.EVALS / "solutions" / fixture.name / name)
        assert overlay.items() - grade.digests(files).items(), f"{name} changes nothing"


def test_ci_grades_fixtures_that_need_no_gpu_compiler():
    chosen = [fixture for fixture in FIXTURES.values() if fixture.ci]
    assert len(chosen) == 4
    assert [fixture.name for fixture in chosen if fixture.offline] == []


def test_the_readme_of_a_fixture_does_not_name_its_points():
    for fixture in FIXTURES.values():
        text = (grade.EVALS / "files" / fixture.name / "README.md").read_text(encoding="utf-8")
        assert not re.search(r"\bCS-\d|rebuild(s|ing) of the module|redundant", text), fixture.name


# -- validators -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(distribution_version(sys.executable, "skills-ref") is None, reason="skills-ref needs Python 3.11")
def test_the_skill_is_valid_by_the_specification(packed):
    from skills_ref import validate

    assert validate(packed) == []
