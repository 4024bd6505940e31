"""The programs of references/mechanisms.md, and what the probe says of each pair.

`python tests/reference_examples.py [--python PATH] [--show] [NAME...]` measures the pairs and prints the rows of their
tables as the page holds them; `--show` adds the report of the program before the fix. A pair is two fenced programs
after the lines `<!-- before: NAME -->` and `<!-- after: NAME -->`; with `<!-- before: NAME on sm_90 -->` the figures
are those of a compilation for that architecture.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "references" / "mechanisms.md"
SCRIPT = ROOT / "scripts" / "warp_compile_probe.py"
PROGRAM = re.compile(
    r"^<!-- (before|after): ([\w-]+)(?: on (\w+))? -->\n+```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
COUNTS = (
    "builds",
    "rebuilds",
    "variants",
    "warm_builds",
    "modules",
    "identities",
    "generated_source_bytes",
    "lto_artifacts",
)

sys.path.insert(0, str(SCRIPT.parent))

import warp_compile_probe as probe  # noqa: E402


@dataclass(frozen=True)
class Pair:
    """A program before and after a fix; `architecture` is what its figures are for, None for the CPU."""

    name: str
    architecture: str | None
    before: str
    after: str

    @property
    def mechanism(self) -> str:
        """What the probe calls the finding."""
        return self.name.upper() if self.name.startswith("cs-") else self.name


def read_pairs(text: str) -> list[Pair]:
    """The pairs of the page, in its order."""
    found: dict[str, dict[str, str]] = {}
    architectures: dict[str, str | None] = {}
    for which, name, architecture, program in PROGRAM.findall(text):
        found.setdefault(name, {})[which] = program
        architectures[name] = architectures.get(name) or architecture or None
    return [Pair(name, architectures[name], **programs) for name, programs in found.items()]


@dataclass(frozen=True)
class Outcome:
    """What measuring one program gave: `counts` in the order of COUNTS, and the last line that the program printed."""

    report: probe.Report
    counts: tuple[int, ...]
    findings: frozenset[str]
    last_line: str
    text: str

    def row(self, which: str, mechanism: str) -> str:
        """The row of the page's table."""
        found = mechanism if mechanism in self.findings else "-"
        return f"| {which} | {' | '.join(f'{count:,}' for count in self.counts)} | {found} |"


COLUMNS = [name.replace("generated_", "").replace("lto", "LTO").replace("_", " ") for name in COUNTS]
HEADING = f"| | {' | '.join(COLUMNS)} | finding |"


def measure(program: str, architecture: str | None, python: str, folder: Path) -> Outcome:
    """Measure a program once, cold and warm, in `folder`, which must be empty."""
    tree = folder / "tree"
    tree.mkdir()
    (tree / "program.py").write_text(program, encoding="utf-8")
    arch = ["--cuda-arch", architecture] if architecture else []
    options = ["--samples", "1", "--json", folder / "report.json", "--keep-logs", folder / "logs", "--cwd", tree, *arch]
    argv = [sys.executable, SCRIPT, "measure", *options, "--", python, "program.py"]
    done = subprocess.run(list(map(str, argv)), check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    report = probe.load_report(str(folder / "report.json"))
    judged = probe.offline_report(report, architecture, "the report") if architecture else report
    outputs = sorted((folder / "logs").glob("*cold*out*"))
    lines = outputs[0].read_text(encoding="utf-8").strip().splitlines() if outputs else []
    return Outcome(
        report,
        tuple(getattr(judged.summary, name) for name in COUNTS),
        frozenset(finding.mechanism for finding in judged.findings),
        lines[-1] if lines else "",
        done.stdout,
    )


def same_launches(before: Outcome, after: Outcome) -> bool:
    """Whether `compare` finds the same launches in both."""
    return probe.compare_reports(before.report, after.report).verdict is not probe.Verdict.TOPOLOGY_CHANGED


def main() -> int:
    """Measure the pairs that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    for pair in read_pairs(PAGE.read_text(encoding="utf-8")):
        if arguments.names and pair.name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcomes = []
            for which, program in (("before", pair.before), ("after", pair.after)):
                (Path(folder) / which).mkdir()
                outcomes.append(measure(program, pair.architecture, arguments.python, Path(folder) / which))
        before, after = outcomes
        print(f"{pair.name}: {'the same' if same_launches(before, after) else 'OTHER'} launches; {before.last_line}")
        print(HEADING, before.row("before", pair.mechanism), after.row("after", pair.mechanism), sep="\n")
        if arguments.show:
            print(before.text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
