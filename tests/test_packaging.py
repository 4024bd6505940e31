"""The script as something to install, to copy and to read."""

from __future__ import annotations

import ast
import collections
import hashlib
import os
import subprocess
import sys
import venv

import pytest
import warp_compile_probe as probe
from conftest import ROOT, SCRIPT

# The text of the licence up to the appendix that says how to apply it.
APACHE_2_TERMS = "09ae9bf1886f530f7338889ef805f37b288ec6adedd1e1e32058921acf05a782"


def imported_modules(tree: ast.AST) -> set[str]:
    """Top-level names of all modules that are imported anywhere in a tree."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a single file has nothing to import relatively"
            names.add(str(node.module).split(".")[0])
    return names


def test_needs_only_the_standard_library():
    # The recorder meets Warp in the target through sys.modules, so it needs no import of it either.
    assert imported_modules(ast.parse(SCRIPT.read_text(encoding="utf-8"))) <= sys.stdlib_module_names


def test_compiles_with_the_grammar_of_the_oldest_python():
    assert ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 10)).body


def test_runs_as_a_copied_file(tmp_path):
    copied = tmp_path / "copied.py"
    copied.write_bytes(SCRIPT.read_bytes())
    done = subprocess.run([sys.executable, "-I", copied, "--version"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[-1:], done.stderr) == (0, [probe.PROBE_VERSION], "")


def test_licence_is_apache_2():
    terms, end, _ = (ROOT / "LICENSE").read_text(encoding="utf-8").partition("END OF TERMS AND CONDITIONS")
    assert end
    assert hashlib.sha256(" ".join(terms.split()).encode()).hexdigest() == APACHE_2_TERMS
    assert "SPDX-License-Identifier: Apache-2.0" in SCRIPT.read_text(encoding="utf-8").splitlines()[1]


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    return folder


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_installs_a_working_command(hook, empty_environment, tmp_path):
    # The two hooks that pip calls, without the isolated build environment, which would have to be downloaded.
    built = subprocess.run(
        [sys.executable, "-c", f"import hatchling.build as b, sys; print(b.{hook}(sys.argv[1]))", tmp_path],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    wheel = tmp_path / built.stdout.split()[-1]
    assert wheel.name.startswith(f"warp_compile_probe-{probe.PROBE_VERSION}-")
    bin_folder = empty_environment / ("Scripts" if os.name == "nt" else "bin")
    install = [bin_folder / "python", "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-index", "--no-deps"]
    subprocess.run([*install, wheel], check=True, capture_output=True)
    for command in ([bin_folder / "warp-compile-probe"], [bin_folder / "python", "-m", "warp_compile_probe"]):
        done = subprocess.run([*command, "--version"], check=False, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()[-1:], done.stderr) == (0, [probe.PROBE_VERSION], "")


def test_no_name_of_the_script_is_defined_twice():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = collections.Counter(name for node in tree.body for name in _defined_names(node))
    assert [name for name, count in names.items() if count > 1] == []


def _defined_names(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
