"""Measure the programs of the corpus and hold the findings against what each program says of itself.

`python tests/corpus/run.py [--python PATH] [NAME...]` prints precision and recall for each mechanism; exit code 1 if
any finding is missing or was not expected. A program is a folder of `programs/` with a `program.py`, whose docstring
says, a line each:

    Expect: MECHANISM KIND module=NAME at=MARK   a finding; `module` is a pattern, `self` (the program's own module) or
                                                 `-` (none); `at` is a line that ends with `# here: MARK`, in another
                                                 file of the folder FILE:MARK, or `-` (none)
    Expect (>=1.13): ...                         only with those releases of Warp; also `(<1.18)`
    May: ...                                     a finding that it raises in some runs only
    Needs: 1.13                                  the program needs this release
    Arguments: ...                               its command line
    Run: together                                it may share a process with others; see together.py
    Slow: ...                                    it runs only when it is named

The programs of `cuda/` run with `--cuda-arch 90`: what they say is about the offline block (Warp 1.12 and newer).

Every finding that is not expected counts against precision, every expected one that is missing against recall.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROGRAMS = FOLDER / "programs"
CUDA = FOLDER / "cuda"
SCRIPT = FOLDER.parent.parent / "scripts" / "warp_compile_probe.py"
TOGETHER = FOLDER / "together.py"
PER_PROCESS = 10  # programs that share a process

sys.path.insert(0, str(SCRIPT.parent))

import warp_compile_probe as probe  # noqa: E402

Release = tuple[int, ...]


def release(text: str) -> Release:
    """`1.13` as (1, 13)."""
    return tuple(int(part) for part in text.split("."))


@dataclass(frozen=True)
class Expected:
    """A finding that a program must raise: `file` and `line` are None where it has no place."""

    mechanism: str
    kind: str
    module: str
    file: Path | None
    line: int | None

    def matches(self, finding: probe.Finding, self_module: str) -> bool:
        """Whether the finding is this one."""
        module = self_module if self.module == "self" else self.module
        named = finding.module is None if module == "-" else fnmatch.fnmatch(finding.module or "", module)
        where = finding.where
        place = (None, None) if where is None else (Path(where.file), where.line)
        return (finding.mechanism, finding.kind.value) == (self.mechanism, self.kind) and (
            named and place == (self.file, self.line)
        )

    def __str__(self) -> str:
        place = f"{self.file.name}:{self.line}" if self.file else "no place"
        return f"{self.mechanism} ({self.kind}) of module {self.module} at {place}"


@dataclass(frozen=True)
class Program:
    """A program of the corpus as its docstring describes it, for one release of Warp."""

    name: str
    path: Path
    expected: tuple[Expected, ...]
    needs: Release
    arguments: tuple[str, ...]
    together: bool
    slow: bool = False
    possible: tuple[Expected, ...] = ()

    @property
    def cuda(self) -> bool:
        """Whether it is about a CUDA architecture."""
        return CUDA in self.path.parents


def read_program(path: Path, name: str, warp: Release) -> Program:
    """Read what a program says of itself."""
    text = path.read_text(encoding="utf-8")
    pattern = r"^(Expect|May)(?: \((<|>=)([\d.]+)\))?: (\S+) (redundant|hint) module=(\S+) at=(\S+)$"
    said: dict[str, list[Expected]] = {"Expect": [], "May": []}
    lines = re.findall(pattern, text, re.MULTILINE)
    assert len(lines) == len(re.findall(r"^(?:Expect|May)\b", text, re.MULTILINE)), path
    for word, sign, limit, mechanism, kind, module, mark in lines:
        if not sign or (warp < release(limit)) == (sign == "<"):
            said[word].append(Expected(mechanism, kind, module, *mark_place(path, mark)))
    needs = re.search(r"^Needs: ([\d.]+)$", text, re.MULTILINE)
    arguments = re.search(r"^Arguments: (.+)$", text, re.MULTILINE)
    return Program(
        name=name,
        path=path,
        expected=tuple(said["Expect"]),
        possible=tuple(said["May"]),
        needs=release(needs[1]) if needs else (1, 10),
        arguments=tuple(arguments[1].split()) if arguments else (),
        together=bool(re.search(r"^Run: together$", text, re.MULTILINE)),
        slow=bool(re.search(r"^Slow: ", text, re.MULTILINE)),
    )


def mark_place(program: Path, mark: str) -> tuple[Path | None, int | None]:
    """Where a mark is: `MARK` in the program itself, `FILE:MARK` beside it, `-` nowhere."""
    if mark == "-":
        return None, None
    file, _, name = mark.rpartition(":")
    path = program.parent / file if file else program
    lines = path.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# here: {name}")]
    return path, number


def read_programs(warp: Release, named: Sequence[str] = ()) -> list[Program]:
    """The programs with these names, else all but the slow ones, that this release of Warp can run."""
    paths = [*sorted(PROGRAMS.glob("*/program.py")), *(sorted(CUDA.glob("*/program.py")) if warp >= (1, 12) else [])]
    found = [read_program(path, path.parent.name, warp) for path in paths]
    wanted = [program for program in found if (program.name in named if named else not program.slow)]
    return [program for program in wanted if program.needs <= warp]


@dataclass(frozen=True)
class Batch:
    """Programs that are measured by one command, and what belongs to no single one of them."""

    programs: tuple[Program, ...]
    command: tuple[str, ...]
    rest: Program

    @property
    def cuda(self) -> bool:
        """Whether its programs are about a CUDA architecture."""
        return self.programs[0].cuda

    @property
    def name(self) -> str:
        return self.programs[0].name if len(self.programs) == 1 else f"together-{self.programs[0].name}"


def batches(programs: Sequence[Program], python: str, warp: Release) -> list[Batch]:
    """Programs that may share a process do so, ten a process, unless one is left alone."""
    chunks = []
    for cuda in (False, True):
        shared = [program for program in programs if program.together and program.cuda == cuda]
        chunks += [shared[start : start + PER_PROCESS] for start in range(0, len(shared), PER_PROCESS)]
    rest = read_program(TOGETHER, "together", warp)
    nothing = Program("nothing", TOGETHER, (), (), (), together=False)
    return [
        *(Batch(tuple(chunk), (python, str(TOGETHER), *(program.name for program in chunk)), rest) for chunk in chunks),
        *(
            Batch((program,), (python, str(program.path), *program.arguments), nothing)
            for program in programs
            if not program.together
        ),
    ]


@dataclass(frozen=True)
class Outcome:
    """What a program was expected to raise and raised: pairs that agree, what is missing, what is too much."""

    program: str
    found: tuple[str, ...]
    missing: tuple[Expected, ...]
    surplus: tuple[probe.Finding, ...]

    @property
    def wrong(self) -> list[str]:
        """What is not as expected, a sentence each."""
        surplus = (f"not expected: {item.mechanism} ({item.kind.value}): {item.text}" for item in self.surplus)
        return [*(f"missing: {item}" for item in self.missing), *surplus]


def judge(program: Program, findings: Iterable[probe.Finding], self_module: str) -> Outcome:
    """Pair the findings with the expected ones."""
    missing = list(program.expected)
    surplus = []
    agreed = []
    for finding in findings:
        known = (one for one in (*missing, *program.possible) if one.matches(finding, self_module))
        match = next(known, None)
        if match is None:
            surplus.append(finding)
        else:
            agreed.append(finding.mechanism)
        if match in missing:
            missing.remove(match)
    return Outcome(program.name, tuple(agreed), tuple(missing), tuple(surplus))


def judge_batch(batch: Batch, findings: Sequence[probe.Finding]) -> list[Outcome]:
    """Outcomes of the programs of a batch: a finding belongs to the program whose module or file it names."""
    if len(batch.programs) == 1 and batch.rest.name == "nothing":
        return [judge(batch.programs[0], findings, "__main__")]
    by_program: dict[str, list[probe.Finding]] = collections.defaultdict(list)
    for finding in findings:
        folder = Path(finding.where.file).parent if finding.where else None
        owners = [
            program.name
            for program in batch.programs
            if (finding.module or "").startswith(program.name) or folder == program.path.parent
        ]
        by_program[owners[0] if owners else batch.rest.name].append(finding)
    found = [judge(program, by_program[program.name], program.name) for program in batch.programs]
    return [*found, judge(batch.rest, by_program[batch.rest.name], "-")]


def measure(batch: Batch, report: Path, echo: bool) -> probe.Report:
    """Measure the command of a batch once, cold and warm, with a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        own = ("WARP_", "CUDA_", "PYTEST_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        environment.update(HOME=home, XDG_CACHE_HOME=home, PYTHONDONTWRITEBYTECODE="1")
        offline = ["--cuda-arch", "90"] if batch.cuda else []
        command = [sys.executable, str(SCRIPT), "measure", "--samples", "1", *offline, "--json", str(report), "--"]
        done = subprocess.run(
            [*command, *batch.command], check=False, env=environment, capture_output=True, text=True, errors="replace"
        )
    if echo:
        print(done.stdout)
    if done.returncode != 0:
        raise SystemExit(f"{batch.name}: measure ended with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return probe.load_report(str(report))


def judged_report(batch: Batch, report: probe.Report) -> probe.Report:
    """The report that the programs of a batch are about: itself, or its offline block as one."""
    return probe.offline_report(report, "sm_90", batch.name) if batch.cuda else report


def warp_release(python: str) -> Release:
    """The release of Warp that a Python has."""
    code = "import importlib.metadata as m; print(m.version('warp-lang'))"
    return release(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip())


def scores(outcomes: Sequence[Outcome]) -> list[tuple[str, int, int, int]]:
    """(mechanism, found as expected, missing, too many), by mechanism."""
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for outcome in outcomes:
        for mechanism in outcome.found:
            counts[mechanism][0] += 1
        for item in outcome.missing:
            counts[item.mechanism][1] += 1
        for finding in outcome.surplus:
            counts[finding.mechanism][2] += 1
    return [(mechanism, *count) for mechanism, count in sorted(counts.items())]


def share(part: int, other: int) -> str:
    """`part` of both as a percentage."""
    return f"{100 * part / (part + other):.0f} %" if part + other else "-"


def main() -> int:
    """Run the corpus and print what came of it."""
    parser = argparse.ArgumentParser(description="Precision and recall of the findings over the corpus.")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the Python with the Warp to measure")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the reports there, and judge those it has")
    parser.add_argument("--echo", action="store_true", help="show the text of each report")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to run (default: all)")
    options = parser.parse_args()
    warp = warp_release(options.python)
    programs = read_programs(warp, options.names)
    outcomes = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for batch in batches(programs, options.python, warp):
            path = folder / f"{batch.name}.json"
            if options.keep and path.exists():
                report = probe.load_report(str(path))
            else:
                report = measure(batch, path, options.echo)
            report = judged_report(batch, report)
            judged = judge_batch(batch, probe.findings(report.samples, report.coverage.gaps))
            for outcome in judged:
                print(f"{outcome.program}: {'' if outcome.wrong else 'ok'}", *outcome.wrong, sep="\n    ", flush=True)
            outcomes += judged
    print(f"\nWarp {'.'.join(map(str, warp))}, {len(programs)} programs")
    print(f"{'mechanism':24}{'expected':>10}{'found':>8}{'too many':>10}{'precision':>11}{'recall':>8}")
    rows = scores(outcomes)
    total = ("all", *(sum(row[column] for row in rows) for column in (1, 2, 3)))
    for mechanism, found, missing, surplus in [*rows, total]:
        precision, recall = share(found, surplus), share(found, missing)
        print(f"{mechanism:24}{found + missing:>10}{found:>8}{surplus:>10}{precision:>11}{recall:>8}")
    if options.json:
        names = ("mechanism", "found", "missing", "too_many")
        figures = [dict(zip(names, row, strict=True)) for row in [*rows, total]]
        document = {"warp": ".".join(map(str, warp)), "programs": len(programs), "mechanisms": figures}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return int(any(outcome.missing or outcome.surplus for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
