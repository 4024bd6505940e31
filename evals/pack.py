"""Pack the skill as users install it.

    python evals/pack.py OUT_DIR

Makes OUT_DIR/warp-compile-time-optimizer with SKILL.md, LICENSE, BENCHMARK.md (where there is one), scripts,
references, evals/evals.json and evals/files: without tests, checks, solutions and grader. Prints the folder.
Exit codes: 0 packed, 2 something is missing or in the way.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKILL_NAME = "warp-compile-time-optimizer"
PARTS = ("SKILL.md", "LICENSE", "BENCHMARK.md", "scripts", "references", "evals/evals.json", "evals/files")
OPTIONAL = ("BENCHMARK.md",)  # generated from measurements
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


class PackError(Exception):
    """Something that stops the packing; one sentence."""


def pack(root: Path, out: Path, parts: Collection[str] = PARTS) -> Path:
    """Copy these parts of a repository into a new folder of `out` that is named as the skill; returns it.

    Raises PackError.
    """
    target = out / SKILL_NAME
    if target.exists():
        raise PackError(f"{target}: is there already; name another folder, or remove it")
    present = [part for part in parts if (root / part).exists()]
    for part in parts:
        if part not in present and part not in OPTIONAL:
            raise PackError(f"{root / part}: is not there, and the skill is not complete without it")
    for part in present:
        source, copy = root / part, target / part
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=LEFT_OUT)
        else:
            shutil.copy2(source, copy)
    return target


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT_DIR", help="where to make the folder of the skill")
    try:
        print(pack(ROOT, parser.parse_args(argv).out))
    except (PackError, OSError) as error:
        print(f"pack.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
