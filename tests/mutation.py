"""Mutation run over the functions that judge: `python tests/mutation.py [--jobs N] [FUNCTION...]`, `nox -s mutation`.

Mutants come from mutmut's operators, applied to the functions named in SECTIONS and to nothing else. The tests are
collected once; each mutant is then tried in a fork of that process, with the tests that call the function (of a
constant: all tests of its files), quick ones first. A mutant that no test tells from the original survives. Survivors
must be explained in mutation_survivors.yml: one that is not, and an explanation without a survivor, make the run fail.
"""

from __future__ import annotations

import argparse
import ast
import collections
import difflib
import inspect
import os
import resource
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import libcst as cst
import pytest
import yaml
from libcst.metadata import MetadataWrapper
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.pragma_handling import IgnoredCode

TESTS = Path(__file__).resolve().parent
SCRIPT = TESTS.parent / "scripts" / "warp_compile_probe.py"
SURVIVORS = TESTS / "mutation_survivors.yml"

# Names of functions and constants of the script, by the files of tests that are to tell their mutants.
SECTIONS = {
    ("test_statistics.py",): (
        *("SIGNIFICANCE", "MIN_JUDGED_SAMPLES", "timed", "noise_band", "rank_sum_p", "_ways_up_to", "needed_samples"),
        *("weigh", "machine_warnings", "sample_warnings", "_drifts", "_orders_up_to"),
    ),
    ("test_gates.py",): (
        *("GATE_NOUNS", "parse_fail_on", "gate_violations", "counted_loads", "undecided_gates"),
        *("regression_violation", "undecided_regression", "gate_codes", "winning_exit_code"),
    ),
    ("test_judging.py", "test_launch_matching.py", "test_compare.py", "test_compare_options.py", "test_ab.py"): (
        *("MAX_JUDGED_SAMPLES", "compare_reports"),
        # by time
        *("rule_on_time", "_deciding_metric", "_weighed_verdict", "_owed_to_warm_run", "_regressed"),
        *("choose_measure", "_warm_loads_differ", "_warm_loads", "_builds", "_judged_values", "sum_up"),
        *("gather_evidence", "_summary", "_delta", "_machine_may_have_moved", "_change_text", "_reason_text"),
        # by what was measured, and whether all of it was seen
        *("field_differences", "meant_to_differ", "_rule_on_fields", "HARMLESS_GAPS", "_rule_on_samples"),
        *("_deciding_gaps", "_rule_on_coverage"),
        # by the launches
        *("judge_topology", "_match_samples", "match_runs", "_unmatched", "_surplus", "_same_as_far_as_kept"),
        *("_shared_differently", "_first_divergence", "_sum_counts", "_generation_and_age", "_numbered_chunks"),
        # by identities
        *("compare_identities", "_common_hash_length", "_hashes_by_place", "_renamed_places"),
    ),
}
FILES = {name: files for files, names in SECTIONS.items() for name in names}
# They build kernels, start the script, or take seconds, and so tell too little about a mutant for their time.
LEFT_OUT = (
    "million or real_fix or option_set_in_time or rate_of_false_alarms or dealing_out or null_reports or interleaved"
    " or revision or two_directories or failing_arm or what_varies or unwritable or usage or exit_codes"
    " or builds_a_module or gaps_leave or failing_command or identical_code or noise_everywhere or find_such"
    " or gain_of_twenty or other_values_of_the_right_type or mutated_reports"
)
MEMORY_BYTES = 8 << 30
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def numbers(node):
    """The neighbours of an integer, and a tenth less and more than a fraction."""
    if isinstance(node, cst.Integer):
        values = [node.evaluated_value + step for step in (-1, 1)]
    else:
        values = [node.evaluated_value * factor for factor in (0.9, 1.1)]
    for value in values:
        yield cst.parse_expression(f"({value!r})" if value < 0 else repr(value))


def strings(node):
    """Another text; not the same one in capitals as well."""
    yield from list(mutators.operator_string(node))[:1]


def swapped_names(node):
    """The other extreme, or the other quantifier."""
    if node.value in SWAPPED:
        yield node.with_changes(value=SWAPPED[node.value])


def negated(node):
    """The opposite condition."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(whitespace_after=cst.SimpleWhitespace(" ")), test))


REPLACED = {mutators.operator_number, mutators.operator_string}
OPERATORS = [
    *(
        pair
        for pair in mutators.mutation_operators
        if pair[1] not in {mutators.operator_number, mutators.operator_string}
    ),
    (cst.Integer, numbers),
    (cst.Float, numbers),
    (cst.SimpleString, strings),
    (cst.Name, swapped_names),
    (cst.If, negated),
    (cst.IfExp, negated),
]


@dataclass(frozen=True)
class Mutant:
    """A changed function or constant; `was` and `now` are the lines that differ."""

    name: str
    text: str
    was: str
    now: str


def sources() -> dict[str, str]:
    """The text of every function and constant to mutate, without decorators."""
    text = SCRIPT.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    found = {}
    for node in ast.parse(text).body:
        name = node.targets[0].id if isinstance(node, ast.Assign) else getattr(node, "name", None)
        if name in FILES:
            found[name] = "".join(lines[node.lineno - 1 : node.end_lineno])
    missing = [name for name in FILES if name not in found]
    if missing:
        raise SystemExit(f"not in {SCRIPT.name} any more: {', '.join(missing)}")
    return found


def mutants_of(name: str, source: str) -> list[Mutant]:
    """Every different mutant of a function that compiles."""
    visitor = MutationVisitor(OPERATORS, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(cst.parse_module(source)).visit(visitor)
    found = {}
    for mutation in visitor.mutations:
        text = deep_replace(module, mutation.original_node, mutation.mutated_node).code
        changes = [line for line in difflib.ndiff(source.splitlines(), text.splitlines()) if line[0] in "+-"]
        was, now = (" ".join(line[2:].strip() for line in changes if line[0] == sign) for sign in "-+")
        try:
            if was != now and ast.dump(ast.parse(text)) != ast.dump(ast.parse(source)):
                compile(text, str(SCRIPT), "exec")
                found.setdefault(text, Mutant(name, text, was, now))
        except SyntaxError:
            continue
    return list(found.values())


def install(mutant: Mutant) -> None:
    """Make the loaded script behave as if it had been written so."""
    probe = sys.modules["warp_compile_probe"]
    code = compile(mutant.text, str(SCRIPT), "exec", flags=annotations.compiler_flag)
    original = getattr(probe, mutant.name)
    scope = dict(vars(probe))
    exec(code, scope)
    if callable(original):
        function = inspect.unwrap(original)
        function.__code__ = scope[mutant.name].__code__
        function.__defaults__ = scope[mutant.name].__defaults__
    else:
        setattr(probe, mutant.name, scope[mutant.name])
    for value in vars(probe).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


class MutationRun:
    """In place of pytest's loop over the tests: once over all of them, then over the mutants."""

    def __init__(self, names: list[str], jobs: int) -> None:
        self.names = names
        self.jobs = jobs
        self.failed = False
        self.mutants: list[Mutant] = []
        self.survivors: list[Mutant] = []
        self.untested: list[str] = []

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session):
        mutants_by_name = {name: mutants_of(name, text) for name, text in sources().items() if name in self.names}
        tests, seconds = self._tests_by_function(session)
        running: dict[int, Mutant] = {}
        self._start(Mutant("weigh", sources()["weigh"], "", ""), list(seconds), 600, running)
        for name in self.names:
            chosen = sorted((item for item in tests[name] if item.path.name in FILES[name]), key=seconds.__getitem__)
            if not chosen:
                self.untested.append(name)
                continue
            limit = 20 + int(10 * sum(map(seconds.__getitem__, chosen)))
            mutants = mutants_by_name[name]
            self.mutants += mutants
            for mutant in mutants:
                self._start(mutant, chosen, limit, running)
            print(f"{name}: {len(mutants)} mutants, {len(chosen)} tests", file=sys.__stdout__, flush=True)
        while running:
            self._reap(running)
        return True

    def _tests_by_function(self, session):
        """Which tests call a function; and how long each test takes.

        What reads a constant cannot be seen, so each of its tests may be the one that tells.
        """
        probe = sys.modules["warp_compile_probe"]
        functions = {name: inspect.unwrap(getattr(probe, name)) for name in FILES}
        codes = {function.__code__: name for name, function in functions.items() if callable(function)}
        tests = collections.defaultdict(list)
        seconds = {}
        called = set()

        def note(frame, event, _argument):
            if event == "call" and frame.f_code in codes:
                called.add(frame.f_code)

        for item in session.items:
            called.clear()
            began = time.perf_counter()
            sys.setprofile(note)
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            finally:
                sys.setprofile(None)
            seconds[item] = time.perf_counter() - began
            if self.failed:
                raise SystemExit(f"{item.nodeid} fails without a mutant")
            for code in called:
                tests[codes[code]].append(item)
        return {name: tests[name] if callable(functions[name]) else list(seconds) for name in FILES}, seconds

    def _start(self, mutant, tests, limit, running):
        """Try a mutant in a fork, which exits with 0 if every test passes."""
        while len(running) >= self.jobs:
            self._reap(running)
        pid = os.fork()
        if pid:
            running[pid] = mutant
            return
        status = 1
        try:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1)
            os.dup2(devnull, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            tests[0].config.pluginmanager.unregister(name="terminalreporter")
            install(mutant)
            for item in tests:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if self.failed:
                    break
            else:
                status = 0
        finally:
            os._exit(status)

    def _reap(self, running):
        pid, status = os.wait()
        mutant = running.pop(pid)
        if mutant.was == mutant.now:
            # The original: if it does not survive, the death of a mutant says nothing.
            if status != 0:
                raise SystemExit("the tests fail in a fork without a mutant")
        elif status == 0:
            self.survivors.append(mutant)
            print(f"survived: {mutant.name}: {mutant.was!r} -> {mutant.now!r}", file=sys.__stdout__, flush=True)


def main() -> int:
    """Run, print the survivors, and say with the exit status whether the list of explanations is exact."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants tried at a time (default: 1)")
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="what to mutate (default: all)")
    options = parser.parse_args()
    names = options.functions or list(FILES)
    unknown = [name for name in names if name not in FILES]
    if unknown:
        parser.error(f"not a function of the mutation run: {', '.join(unknown)}")
    warnings.simplefilter("ignore", SyntaxWarning)
    # The same examples for every mutant: what a test does must not depend on when it runs.
    hypothesis.settings.register_profile("mutation", derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("mutation")
    run = MutationRun(names, options.jobs)
    arguments = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-k", f"not ({LEFT_OUT})"]
    files = dict.fromkeys(file for name in names for file in FILES[name])
    status = pytest.main([*arguments, *(str(TESTS / file) for file in files)], plugins=[run])
    if status != pytest.ExitCode.OK:
        return int(status)
    table = yaml.safe_load(SURVIVORS.read_text(encoding="utf-8")) or {}
    explained = {(name, row["was"], row["now"]): row["why"] for name in names for row in table.get(name, ())}
    survivors = {(mutant.name, mutant.was, mutant.now) for mutant in run.survivors}
    for name, was, now in sorted(survivors - set(explained), key=lambda key: names.index(key[0])):
        print(f"\nsurvived, not explained: {name}\n  - was: {was!r}\n    now: {now!r}")
    for name, was, now in explained:
        if (name, was, now) not in survivors:
            print(f"\nexplained, but no survivor: {name}\n  - was: {was!r}\n    now: {now!r}")
    for name in run.untested:
        print(f"\nno test calls {name}")
    killed = len(run.mutants) - len(run.survivors)
    print(f"\n{len(run.mutants)} mutants of {len(names)} names: {killed} killed, {len(run.survivors)} survived")
    return int(survivors != set(explained) or bool(run.untested))


if __name__ == "__main__":
    raise SystemExit(main())
