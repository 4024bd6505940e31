"""README says what the program says."""

from __future__ import annotations

import re

import support_table
import warp_compile_probe as probe
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def exit_codes(text: str, pattern: str) -> dict[int, str]:
    return {int(code): meaning.strip() for code, meaning in re.findall(pattern, text, re.MULTILINE)}


def test_exit_codes_are_the_same_everywhere():
    in_docstring = exit_codes(probe.__doc__, r"^    (\d+) +(.+)$")
    assert in_docstring == exit_codes(README, r"^\| (\d+) \| (.+) \|$")
    assert in_docstring == exit_codes(probe.build_parser().format_help(), r"^    (\d+) +(.+)$")
    assert set(in_docstring) == {int(code) for code in probe.ExitCode}


def test_every_option_that_readme_names_exists():
    helps = probe.build_parser().format_help() + "".join(
        parser.format_help()
        for action in probe.build_parser()._actions
        if hasattr(action, "choices") and isinstance(action.choices, dict)
        for parser in action.choices.values()
    )
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert named
    assert {option for option in named if not re.search(rf"{option}(?![\w-])", helps)} == set()


def test_every_verdict_is_named():
    assert {verdict.value for verdict in probe.Verdict} <= set(re.findall(r"`([a-z-]+)`", README))


def test_the_support_table_is_one_that_its_command_prints():
    caption, table = support_table.readme_parts(README)[:2]
    rows = support_table.parse(table)
    assert support_table.render(rows).strip() == table
    assert re.search(r"`python tests/support_table.py` printed this .*20\d\d-\d\d-\d\d", caption)
    measured = [(row.release, python) for row in rows for python in row.pythons]
    every = [(release, python) for release, pythons in support_table.RELEASES.items() for python in pythons]
    assert sorted(measured) == sorted(every)
    assert all(bool(row.missing) is (row.level is not support_table.Level.FULL) for row in rows)


def test_a_deviation_from_the_support_table_is_told():
    full, partial = support_table.Level.FULL, support_table.Level.PARTIAL
    rows = [support_table.Row("1.1.0", ("3.9", "3.10"), full, ""), support_table.Row("1.1.0", ("3.13",), partial, "x")]

    def unexpected(python, level, missing):
        return support_table.unexpected(support_table.Row("1.1.0", (python,), level, missing), rows)

    assert unexpected("3.10", full, "") is None
    assert unexpected("3.13", partial, "x") is None
    assert unexpected("3.12", full, "") is None, "a Python without a row of its own"
    assert unexpected("3.10", partial, "x") == "Warp 1.1.0, Python 3.10: found: partial x. README says: full"
    assert unexpected("3.13", partial, "y") == "Warp 1.1.0, Python 3.13: found: partial y. README says: partial x"
    assert support_table.unexpected(support_table.Row("1.2.0", ("3.10",), full, ""), rows)


def test_rows_of_one_outcome_are_one():
    full, none = support_table.Level.FULL, support_table.Level.NONE
    rows = [
        support_table.Row("1.1.0", ("3.9",), full, ""),
        support_table.Row("1.1.0", ("3.10",), none, "a sentence"),
        support_table.Row("1.1.0", ("3.11",), full, ""),
    ]
    assert support_table.parse(support_table.render(rows)) == [
        support_table.Row("1.1.0", ("3.9", "3.11"), full, ""),
        support_table.Row("1.1.0", ("3.10",), none, "a sentence"),
    ]
