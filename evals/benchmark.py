"""Measure what BENCHMARK.md says, and write it.

    python evals/benchmark.py [--out FILE] [--fixtures NAME ...] [--samples N] [--parts PART ...] [--state DIR]
    python evals/benchmark.py --render [--out FILE] [--state DIR]

Parts: fixtures (each one against its reference solution, by `ab`, on the CPU and compiled for its CUDA architectures),
null (`ab --null` on a fixture), corpus (precision and recall of the findings), false-alarms (the verdict by simulation)
and recorder (what recording costs). Each part that is measured is kept in the state folder; a later run measures only
what is missing, or what was measured from other files, with other samples or another Warp. --render measures nothing.

Times mean something on a quiet machine only. Exit codes: 0 written, 2 usage, or a part that could not be measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grade
import warp_compile_probe as probe  # found through grade
from grade import Fixture, GradeError, Grader

TESTS = grade.ROOT / "tests"
sys.path.insert(0, str(TESTS))

import simulate_verdicts  # noqa: E402

PARTS = ("fixtures", "null", "corpus", "false-alarms", "recorder")
TIMED = ("cold_module_ms", "compile_elapsed_ms", "warm_module_ms")
State = dict[str, dict[str, Any]]

# ---------------------------------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Something to measure: its name in the state, the files it depends on, what else it depends on, and how."""

    name: str
    inputs: tuple[Path, ...]
    settings: dict[str, Any]
    measure: Callable[[Path], Any]


def fixture_part(fixture: Fixture, evals: Path, python: str, samples: int) -> Part:
    """A fixture against its reference solution."""

    def measure(scratch: Path) -> Any:
        grader = Grader(evals, python, scratch, samples)
        files = grader.files(fixture)
        trees = [grader.stage(files, "tree-a"), grader.stage(files, "tree-b", grader.solution(fixture, "reference"))]
        same_tree = grade.digests(trees[0]) == grade.digests(trees[1])  # before anything runs in them
        seen = grader.measure_pair(fixture, trees, scratch / "reports")
        for arm, (_, failure) in zip(probe.ARM_NAMES, seen, strict=True):
            if failure:
                raise GradeError(f"{fixture.name}: {arm}: {failure}")
        reports = [report for report, _ in seen if report is not None]
        return {
            "toolkit": {name: block.toolkit for name, block in reports[0].offline.items()},
            "same_tree": same_tree,
            "report_bytes": [(scratch / "reports" / f"{arm}.json").stat().st_size for arm in probe.ARM_NAMES],
            "launches": [report.summary.launches for report in reports if report.summary],
            "arms": {
                place: comparison_figures(
                    probe.compare_reports(grade.at(reports[0], place), grade.at(reports[1], place))
                )
                for place in (grade.CPU, *fixture.devices)
            },
        }

    return Part(
        f"fixture-{fixture.name}", tuple(grade.fixture_inputs(evals, fixture.name)), {"samples": samples}, measure
    )


def comparison_figures(comparison: probe.Comparison) -> dict[str, Any]:
    """What BENCHMARK.md shows of a comparison."""
    document = probe.to_json(comparison)
    arms = ("baseline", "candidate")
    return {
        "n": [document["n"][arm] for arm in arms],
        "verdict": document["verdict"],
        "reason": document["reason"],
        "metric": document["metric"],
        "p": document["p_exact"],
        "facts": {fact["fact"]: [fact[arm] for arm in arms] for fact in document["facts"]},
        "times": {
            name: [[delta[arm]["median"], delta[arm]["mad"]] for arm in arms]
            for name, delta in document["deltas"].items()
            if name in TIMED
        },
        "same_launches": bool(document["topology"] and document["topology"]["equal"]),
        "findings_gone": sorted({finding["mechanism"] for finding in document["findings"]["gone"]}),
        "findings_new": sorted({finding["mechanism"] for finding in document["findings"]["new"]}),
    }


def null_part(fixture: Fixture, evals: Path, python: str, samples: int) -> Part:
    """A fixture against itself."""

    def measure(scratch: Path) -> Any:
        grader = Grader(evals, python, scratch, samples, offline=False)
        comparison = grader.measure_null(fixture, grader.stage(grader.files(fixture), "tree"), scratch / "reports")
        return {"fixture": fixture.name, "command": list(fixture.command), **comparison["null_test"]}

    return Part("null", (evals / "files" / fixture.name, grade.SCRIPT), {"samples": samples}, measure)


def script_part(name: str, script: Path, inputs: Iterable[Path], words: Sequence[str]) -> Part:
    """Figures that a script of the tests writes with --json."""

    def measure(scratch: Path) -> Any:
        path = scratch / "figures.json"
        print(f"  {script.relative_to(grade.ROOT)} {' '.join(words)}", file=sys.stderr)
        done = subprocess.run([sys.executable, script, *words, "--json", path], check=False, stdout=sys.stderr)
        # The corpus exits with 1 where findings are missing or too many: that is a figure.
        if done.returncode not in {0, 1} or not path.exists():
            raise GradeError(f"{script.name} ended with exit code {done.returncode}; its output is above")
        return json.loads(path.read_text(encoding="utf-8"))

    return Part(name, (script, *inputs), {"words": list(words)}, measure)


def make_parts(fixtures: Sequence[Fixture], evals: Path, python: str, samples: int) -> dict[str, list[Part]]:
    """All that can be measured, by part."""
    corpus = [TESTS / "corpus" / name for name in ("programs", "cuda", "together.py")]
    quiet = next((fixture for fixture in fixtures if fixture.ci), fixtures[0])
    return {
        "fixtures": [fixture_part(fixture, evals, python, samples) for fixture in fixtures],
        "null": [null_part(quiet, evals, python, max(5, samples))],
        "corpus": [script_part("corpus", TESTS / "corpus" / "run.py", [*corpus, grade.SCRIPT], ["--python", python])],
        "false-alarms": [script_part("false-alarms", TESTS / "simulate_verdicts.py", [grade.SCRIPT], [])],
        "recorder": [script_part("recorder", TESTS / "bench_recorder.py", [grade.SCRIPT], ["--target-python", python])],
    }


def measure_missing(parts: Sequence[Part], state: Path, python: str) -> None:
    """Measure the parts that the state does not hold as they would be measured now. Raises GradeError."""
    warp = grade.warp_version(python)
    for part in parts:
        path = state / f"{part.name}.json"
        key = {"inputs_sha256": grade.inputs_digest(part.inputs), "settings": part.settings, "warp": warp}
        if path.exists() and read_part(path).get("key") == key:
            print(f"{part.name}: measured before", file=sys.stderr)
            continue
        print(f"{part.name}: measuring", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
            data = part.measure(Path(scratch))
        document = {"key": key, "provenance": grade.provenance(python, part.inputs), "data": data}
        grade.write_json(str(path), document)


def read_part(path: Path) -> dict[str, Any]:
    """A part out of the state. Raises GradeError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GradeError(f"{path}: not a part of a benchmark ({error}); remove it") from None
    if not isinstance(document, dict) or not {"key", "provenance", "data"} <= set(document):
        raise GradeError(f"{path}: not a part of a benchmark; remove it")
    return document


def read_state(state: Path) -> State:
    """All parts that were measured, by name. Raises GradeError."""
    return {path.stem: read_part(path) for path in sorted(state.glob("*.json"))}


# ---------------------------------------------------------------------------------------------------------------------
# Rendering
# ---------------------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table in Markdown; the first column is text, the others are figures."""
    lines = [f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}"]
    return [*lines, *(f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows), ""]


def figure(pair: Sequence[float]) -> str:
    """A median and its MAD in ms."""
    return f"{pair[0]:,.0f} ± {pair[1]:,.0f}"


def change_of(values: Sequence[Sequence[float]]) -> str:
    """The change of a median in percent."""
    before, after = values[0][0], values[1][0]
    return f"{100 * (after - before) / before:+.1f} %" if before > 0 else "-"


def percent(share: float, digits: int) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f} %"


def both(pair: Sequence[int] | None) -> str:
    """A count before and after."""
    return f"{pair[0]:,} to {pair[1]:,}" if pair else "-"


FIXTURE_HEADER = (
    "fixture", "n", "cold modules, ms", "with the reference", "change", "elapsed, ms", "with the reference",
    "warm modules, ms", "with the reference", "verdict", "p",
)  # fmt: skip
FACTS = ("builds", "rebuilds", "variants", "identities", "generated_source_bytes", "lto_artifacts", "warm_builds")
FACT_HEADER = ("fixture", *(fact.replace("_", " ") for fact in FACTS), "launches", "findings gone", "findings new")


def fixture_rows(fixtures: Mapping[str, Any], place: str) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of the table of times and of the table of counts, for the CPU or an architecture."""
    times, counts = [], []
    for name, data in fixtures.items():
        arm = data["arms"].get(place)
        if arm is None:
            continue
        cells = [[figure(value) for value in arm["times"].get(metric, ())] or ["-", "-"] for metric in TIMED]
        change = change_of(arm["times"]["cold_module_ms"]) if "cold_module_ms" in arm["times"] else "-"
        verdict = arm["verdict"] + (f" ({arm['metric']})" if arm["metric"] else "")
        verdict += ", the same tree twice" if data["same_tree"] else ""
        times.append([
            name, f"{arm['n'][0]}, {arm['n'][1]}", *cells[0], change, *cells[1], *cells[2], verdict, arm["p"] or "-",
        ])  # fmt: skip
        found = [", ".join(arm[key]) or "-" for key in ("findings_gone", "findings_new")]
        launches = f"the same {data['launches'][0]:,}" if arm["same_launches"] else "other ones"
        counts.append([name, *(both(arm["facts"].get(fact)) for fact in FACTS), launches, *found])
    return times, counts


def render_fixtures(fixtures: Mapping[str, Any]) -> list[str]:
    """Baseline against reference, for the CPU and each architecture."""
    lines = [
        "## Fixtures",
        "",
        (
            "Each fixture of `evals/files` against its reference solution, samples interleaved by `ab`. Times are"
            " medians ± MAD in milliseconds: the sum of Warp's own timers over cold builds, the cold wall time minus"
            " the warm one, and the loads of the warm run. Counts are those before and with the reference. `verdict`"
            " is that of `compare`, with the time that decided; p is its exact one-sided p. Where the right answer is"
            " to change nothing, the verdict is of the same tree twice, and `improved` or `regressed` a false alarm."
        ),
        "",
    ]
    places = dict.fromkeys(place for data in fixtures.values() for place in data["arms"])
    for place in places:
        toolkits = sorted({data["toolkit"][place] for data in fixtures.values() if data["toolkit"].get(place)})
        offline = "" if place == grade.CPU else f", compiled without a device (CUDA toolkit {', '.join(toolkits)})"
        times, counts = fixture_rows(fixtures, place)
        lines += [f"### {'CPU' if place == grade.CPU else place}{offline}", ""]
        lines += [*table(FIXTURE_HEADER, times), *table(FACT_HEADER, counts)]
    sizes = [[name, *(f"{size:,}" for size in data["report_bytes"])] for name, data in fixtures.items()]
    lines += ["### Size of the reports", "", *table(("fixture", "baseline, bytes", "reference, bytes"), sizes)]
    return lines


def render_null(data: Any) -> list[str]:
    """One tree as both arms."""
    lines = [
        "## The same tree in both arms",
        "",
        (
            f"`ab --null -- {' '.join(data['command'])}` in `evals/files/{data['fixture']}`, {data['samples_an_arm']}"
            " samples an arm: its samples dealt out anew. Every `improved` and `regressed` is wrong. The last column"
            f" is how many samples an arm a change of {data['effect_percent']:g} % would need."
        ),
        "",
    ]
    rows = [
        [
            metric,
            figure([item["pooled"]["median"], item["pooled"]["mad"]]),
            f"{item['splits']:,}",
            f"{item['improved_percent']:.1f} %",
            f"{item['regressed_percent']:.1f} %",
            item["needed_samples"] or "more than 50",
        ]
        for metric, item in data["figures"].items()
    ]
    return lines + table(("figure", "ms", "splits", "improved", "regressed", "samples needed"), rows)


def render_false_alarms(data: Any) -> list[str]:
    """The simulation."""
    found = [simulate_verdicts.Row(**{**row, "found": tuple(row["found"])}) for row in data]
    lines = [
        "## False alarms and found gains, by simulation",
        "",
        (
            f"`python tests/simulate_verdicts.py`: arms drawn at random and judged as `compare` judges them,"
            f" {found[0].trials:,} trials a figure. The band alone is how often a judgement without the rank test would"
            " call identical code changed."
        ),
        "",
    ]
    return lines + table(simulate_verdicts.HEADER, [row.cells() for row in found])


def render_corpus(data: Any) -> list[str]:
    """Precision and recall."""

    def share(part: int, other: int) -> str:
        return percent(part / (part + other), 0) if part + other else "-"

    lines = [
        "## Findings",
        "",
        (
            f"`python tests/corpus/run.py`: {data['programs']} programs with Warp {data['warp']}, each of which says"
            " what it must raise, and nothing else. Precision is the share of raised findings that were expected,"
            " recall the share of expected ones that were raised. The rules were written with these programs at hand:"
            " this is a test of the rules, not an estimate for other programs."
        ),
        "",
    ]
    rows = [
        [
            row["mechanism"],
            row["found"] + row["missing"],
            row["found"],
            row["too_many"],
            share(row["found"], row["too_many"]),
            share(row["found"], row["missing"]),
        ]
        for row in data["mechanisms"]
    ]
    return lines + table(("mechanism", "expected", "found", "too many", "precision", "recall"), rows)


def render_recorder(data: Any) -> list[str]:
    """What recording costs."""
    lines = [
        "## What recording costs",
        "",
        (
            "`python tests/bench_recorder.py`, whose first lines say what each figure is: a process with the recorder"
            " against one without. `share` is what the median adds to the bare one."
        ),
        "",
    ]
    rows = [
        [
            f"{row['what']}: {row['label']}",
            f"{row['median']:,.2f} {row['unit']}",
            "-" if row["mad"] is None else f"{row['mad']:,.2f}",
            row["n"],
            "-" if row["share"] is None else percent(row["share"], 1),
        ]
        for row in data
    ]
    return lines + table(("figure", "median", "MAD", "n", "share"), rows)


def render_setup(state: State) -> list[str]:
    """Versions, machine, dates and inputs."""
    rows = []
    for name, part in state.items():
        source = part["provenance"]
        commit = (source["git_commit"] or "none")[:12] + (" and changes" if source["git_dirty"] else "")
        date, digest = source["created"][:10], f"`{part['key']['inputs_sha256'][:12]}`"
        rows.append([name, date, source["warp"], source["python"], source["probe"], source["machine"], commit, digest])
    header = ("part", "date", "Warp", "Python", "probe", "machine", "git commit", "inputs, SHA-256")
    return ["## Measured with", "", *table(header, rows)]


def render(state: State) -> str:
    """BENCHMARK.md out of what was measured; a part that was not is not in it."""
    fixtures = {
        name.removeprefix("fixture-"): part["data"] for name, part in state.items() if name.startswith("fixture-")
    }
    renderers = {
        "null": render_null,
        "false-alarms": render_false_alarms,
        "corpus": render_corpus,
        "recorder": render_recorder,
    }
    lines = [
        "# Benchmark",
        "",
        (
            "Written by `python evals/benchmark.py` out of what it measured; not edited by hand. Counts are exact and"
            " carry over to other machines with the same Warp. Milliseconds are those of the machine below."
        ),
        "",
        *(render_fixtures(fixtures) if fixtures else []),
    ]
    for name, renderer in renderers.items():
        if name in state:
            lines += renderer(state[name]["data"])
    lines += render_setup(state)
    return "\n".join(lines).rstrip("\n") + "\n"


def main(argv: Sequence[str] | None = None, evals: Path = grade.EVALS) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=grade.ROOT / "BENCHMARK.md", metavar="FILE", help="where to write")
    parser.add_argument("--fixtures", nargs="+", default=[], metavar="NAME", help="fixtures to measure (default: all)")
    parser.add_argument("--samples", type=grade.positive, default=3, metavar="N", help="samples an arm (default 3)")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, metavar="PART", help="default: all")
    parser.add_argument("--state", type=Path, default=Path("benchmark-state"), metavar="DIR", help="what was measured")
    parser.add_argument("--render", action="store_true", help="measure nothing, write what the state holds")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python with the Warp to measure")
    arguments = parser.parse_args(argv)
    try:
        if not arguments.render:
            fixtures = grade.chosen_fixtures(grade.read_config(evals), arguments.fixtures, ci=False)
            parts = make_parts(fixtures, evals, arguments.python, arguments.samples)
            wanted = [part for name in PARTS if name in arguments.parts for part in parts[name]]
            measure_missing(wanted, arguments.state, arguments.python)
        state = read_state(arguments.state)
        if not state:
            raise GradeError(f"--state {arguments.state}: holds nothing that was measured")
        arguments.out.write_text(render(state), encoding="utf-8")
    except (GradeError, probe.ProbeError, OSError) as error:
        print(f"benchmark.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
