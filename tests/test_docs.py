"""README says what the program says."""

from __future__ import annotations

import re

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
