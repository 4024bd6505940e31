"""Measures programs on a stand-in for Warp."""

import shutil
import sys
import textwrap

from recorded import STUB_WARP

HEADER = """
import os
import sys
import threading
import warp as wp

@wp.kernel
def add(x: float):
    pass

@wp.kernel
def halve(x: float):
    pass
"""


class Stub:
    """Measures programs on a stand-in for Warp, or on one with a few words replaced."""

    def __init__(self, measure, folder):
        self.measure = measure
        self.folder = folder
        self.warp = STUB_WARP

    def change(self, file, *replacements):
        if self.warp is STUB_WARP:
            self.warp = self.folder / "warp"
            shutil.copytree(STUB_WARP, self.warp, ignore=shutil.ignore_patterns("__pycache__"))
        path = self.warp / "warp" / file
        text = path.read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def command(self, body):
        """The command line that runs a program with HEADER in front of `body`."""
        program = self.folder / "program.py"
        program.write_text(HEADER + textwrap.dedent(body), encoding="utf-8")
        return [sys.executable, program]

    def __call__(self, body, *, env=None, **how):
        return self.measure.command(self.command(body), env={"PYTHONPATH": str(self.warp), **(env or {})}, **how)


def cold(measured):
    return measured.report.samples[0].cold


def gaps(measured):
    return [(gap.reason.value, gap.detail) for gap in measured.report.coverage.gaps]
