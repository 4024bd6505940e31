"""The pages beside the skill: links and anchors resolve, and the programs do what the page says of them."""

import re

import pytest
import warp_compile_probe as probe
from conftest import ROOT
from reference_examples import HEADING, PAGE, measure, read_pairs, same_launches
from simulate_verdicts import NOISES, SAMPLES, TRIALS, simulate

PAGES = [ROOT / "SKILL.md", ROOT / "README.md", *sorted((ROOT / "references").glob("*.md"))]
PAIRS = read_pairs(PAGE.read_text(encoding="utf-8"))
MEASURED_WITH = (1, 19, 0)  # the release of the page's tables
STAYS = {"cs-13"}  # what a compilation without a device cannot show to be gone


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("mechanism", probe.Mechanism, ids=lambda mechanism: mechanism.value)
def test_every_finding_points_to_a_section_that_names_it(mechanism):
    path, _, anchor = probe.section_of(mechanism).partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert anchor in anchors(text)
    (section,) = re.findall(
        rf"^## {anchor}$.*?(?=^##? |\Z)", without_code(text), re.MULTILINE | re.DOTALL | re.IGNORECASE
    )
    assert anchor == mechanism.value.lower() or f"`{mechanism.value}`" in section


def test_the_table_of_verdicts_is_what_the_simulation_prints():
    text = (ROOT / "references" / "measurement.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| (normal|skewed), ", line)]
    assert len(rows) == len(NOISES) * len(SAMPLES)
    cells = simulate(sigma=0.02, skewed=False, n=3, trials=TRIALS).cells()
    assert f"| {' | '.join(cells)} |" in rows


def test_every_mechanism_has_a_pair():
    assert {f"cs-{number}" for number in range(1, 14)} <= {pair.name for pair in PAIRS}


def normalised(report):
    """A report, or a part of one, without line breaks and times, and with no names that differ from run to run.

    The linker's artifacts, of some megabytes, differ by a few bytes.
    """
    text = re.sub(r"worker_\d+ on cpu at block_dim 1: hash \w+", "worker_PID", " ".join(report.split()))
    return re.sub(r"\b[\d.,]+ m?s\b|\b\d+\.\d+\b|\b\d+,\d{3},\d{3} bytes", "N", text)


def quoted_report(name):
    """The pieces of the report that the section of a mechanism quotes: what happened, then each line of evidence, which
    may come in another order, and less its last words if it is cut."""
    text = PAGE.read_text(encoding="utf-8")
    before = text[: text.index(f"<!-- before: {name}")]
    quoted = before[before.rindex("```text\n") + len("```text\n") : before.rindex("```\n")]
    pieces = [normalised(piece) for piece in quoted.split("\n  - ")]
    return [piece[:-12] if piece.endswith("...") else piece for piece in pieces]


@pytest.mark.timeout(1200)  # a link for CUDA takes a minute and more on a busy machine
@pytest.mark.warp(since="1.18")
@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, id=pair.name, marks=[pytest.mark.offline_slow] if pair.architecture else []) for pair in PAIRS],
)
def test_the_fix_does_what_the_page_says(pair, target, tmp_path):
    outcomes = []
    for which in ("before", "after"):
        folder = tmp_path / which
        folder.mkdir()
        outcomes.append(measure(getattr(pair, which), pair.architecture, target.python, folder))
    before, after = outcomes
    assert pair.mechanism in before.findings
    assert pair.name in STAYS or pair.mechanism not in after.findings
    assert same_launches(before, after)
    assert before.last_line == after.last_line != ""
    if target.warp == MEASURED_WITH:
        table = f"{before.row('before', pair.mechanism)}\n{after.row('after', pair.mechanism)}\n"
        assert table in PAGE.read_text(encoding="utf-8")
        report = normalised(before.text)
        assert [piece for piece in quoted_report(pair.name) if piece not in report] == []


def test_the_tables_have_the_columns_that_the_measurement_prints():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert lines.count(HEADING) == len(PAIRS)
