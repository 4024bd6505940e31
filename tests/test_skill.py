"""SKILL.md is valid, complete against the script, and its commands run."""

import os
import re
import shutil
import subprocess

import pytest
import warp_compile_probe as probe
import yaml
from conftest import ROOT, SCRIPT

SKILL = (ROOT / "SKILL.md").read_text(encoding="utf-8")
MEASUREMENT = (ROOT / "references" / "measurement.md").read_text(encoding="utf-8")
MECHANISMS = (ROOT / "references" / "mechanisms.md").read_text(encoding="utf-8")
OPTIONS_OF_PROGRAMS = {
    *("--rebuild", "--rebuild-kernels", "--show", "--trials"),
    *("--tries", "--aligned", "--cold", "--threads"),  # tests/programs/cpu_load_race.py
}

APP = """\
import warp as wp

wp.config.use_precompiled_headers = False  # one module: quicker without


@wp.kernel
def fill(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float)
wp.launch(fill, dim=4, inputs=[x])
print(x.numpy().tolist())
"""

LOG = """\
Module my_app 8d1bb17 load on device 'cpu' took 2901.10 ms  (compiled)
Module my_app b2416aa load on device 'cpu' took 242.10 ms  (compiled)
"""


def commands(text):
    """The lines of all fenced shell blocks."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block.strip() for block in blocks]


def test_frontmatter():
    _, frontmatter, body = SKILL.split("---\n", 2)
    fields = yaml.safe_load(frontmatter)
    assert set(fields) == {"name", "description", "license", "compatibility", "metadata"}
    assert fields["name"] == "warp-compile-time-optimizer"
    assert len(fields["description"]) <= 1_024
    assert not re.search("[<>]", fields["description"])
    assert fields["license"] == "Apache-2.0"
    assert len(fields["compatibility"]) <= 500
    assert all(isinstance(value, str) for item in fields["metadata"].items() for value in item)
    headings = re.findall(r"^## (.+)$", body, re.MULTILINE)
    assert {"Instructions", "Examples"} <= set(headings)


def test_it_is_short_enough_to_be_read():
    assert len(SKILL.splitlines()) <= 300
    assert len(SKILL) <= 15_200  # below 4,000 tokens in each of three tokenizers, at 3.8 characters a token and more


def test_it_starts_with_a_command_that_runs():
    first = commands(SKILL)[0]
    arguments = re.search(r'run_script\("scripts/warp_compile_probe.py", args=\[(.*?)\]\)', SKILL)[1]
    assert first.split() == ["python", "scripts/warp_compile_probe.py", *re.findall('"(.*?)"', arguments)]


def sections_of_the_table():
    """The table of findings: a section's name, and the findings of other names that it is about."""
    table = SKILL[SKILL.index("| section ") : SKILL.index("Order: build-error")]
    rows = re.findall(r"^\| ([\w-]+)(?: \(([\w, -]+)\))? \| .+ \|$", table, re.MULTILINE)
    return {section: others.split(", ") if others else [] for section, others in rows[1:]}


def test_the_table_has_every_finding_and_its_section():
    links = {mechanism.value: probe.section_of(mechanism) for mechanism in probe.Mechanism}
    named = [(name, section) for section, others in sections_of_the_table().items() for name in (section, *others)]
    assert {name: f"references/mechanisms.md#{section.lower()}" for name, section in named if name in links} == links
    assert {name for name, _ in named} - set(links) == {"never-launched", "warm-costs"}


def test_the_command_that_prints_a_section_prints_each():
    (command,) = re.findall(r"`(sed -n .+? references/mechanisms\.md)`", SKILL)
    for section in sections_of_the_table():
        printed = subprocess.run(
            ["bash", "-c", command.replace("CS-5", section)], check=True, cwd=ROOT, capture_output=True, text=True
        ).stdout
        assert printed.startswith(f"## {section}\n")
        assert len(re.findall("^## ", printed, re.MULTILINE)) == 2


def test_the_exit_codes_are_all_there():
    rows = re.findall(r"^\| ([\d, ]+) \| .+ \| .+ \|$", SKILL, re.MULTILINE)
    assert {int(code) for codes in rows for code in codes.split(", ")} == {int(code) for code in probe.ExitCode}


@pytest.mark.parametrize("text", [SKILL, MEASUREMENT, MECHANISMS], ids=["SKILL", "measurement", "mechanisms"])
def test_every_option_exists(text):
    parsers = probe.build_parser()._subparsers._group_actions[0].choices.values()
    known = {option for parser in parsers for action in parser._actions for option in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert named
    assert named - known - OPTIONS_OF_PROGRAMS == set()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project under git with a program my_app, a log, and a copy of the project beside it."""
    folder = tmp_path_factory.mktemp("work") / "project"
    folder.mkdir()
    (folder / "my_app.py").write_text(APP, encoding="utf-8")
    (folder / "run.log").write_text(LOG, encoding="utf-8")
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com"]
    for arguments in (["init", "-q"], ["add", "my_app.py"], ["commit", "-q", "-m", "The program"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    shutil.copytree(folder, folder.parent / "my_app.orig")
    return folder


def run_command(command, project, target):
    """Run a shell command of a page in the project, with one sample where it does not say how many."""
    quick = re.sub(
        r"(warp_compile_probe\.py|\"\$PROBE\") (measure|ab|what-if)(?!.*--samples)", r"\1 \2 --samples 1", command
    )
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("WARP_", "CUDA_"))},
        "PATH": f"{os.path.dirname(target.python)}{os.pathsep}{os.environ['PATH']}",
        "PROBE": str(SCRIPT),
    }
    cwd = ROOT if command.startswith("python scripts/") else project
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", quick], check=False, cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{quick}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.warp(since="1.12")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", ["SKILL", "measurement"])
def test_the_commands_run(page, project, target):
    text = {"SKILL": SKILL, "measurement": MEASUREMENT}[page]
    outputs = {command: run_command(command, project, target) for command in commands(text)}
    assert all(outputs.values())
    assert any("sm_90" in output for command, output in outputs.items() if "--cuda-arch" in command)
