"""Programs that other people wrote, measured cold and warm: do the statements of the probe hold for them?

    python tests/public_subjects.py [--python PATH] [--reports DIR] [--timeout SECONDS] [NAME ...]

PATH is a Python with Warp; NAMEs of `newton` and `mujoco-warp` need those distributions in it as well. One sample each.
Prints a Markdown table: wall times (what this machine did at the time, no more), builds against the module directories
that the cold run left, launches, findings, gaps and warnings. There may be fewer directories than builds where one
identity is built more than once, or where the program clears its cache. The reports stay in DIR, to be read against the
sources.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "warp_compile_probe.py"

sys.path.insert(0, str(SCRIPT.parent))

import warp_compile_probe as probe  # noqa: E402

HEADER = ("program", "cold s", "warm s", "builds", "module directories", "launches", "findings", "gaps", "warnings")
ON_CPU = ("--device", "cpu")
SUBJECTS = {
    "warp example_wave": ("warp.examples.core.example_wave", *ON_CPU, "--stage-path", "None", "--num-frames", "2"),
    "warp example_dem": ("warp.examples.core.example_dem", *ON_CPU, "--stage-path", "None", "--num-frames", "2"),
    "warp example_fluid": ("warp.examples.core.example_fluid", *ON_CPU, "--headless", "--num-frames", "2"),
    "warp test_unique_module": ("unittest", "warp.tests.test_unique_module"),
    "warp test_reload": ("unittest", "warp.tests.test_reload"),
    "warp test_module_parallel_load": ("unittest", "warp.tests.test_module_parallel_load"),
    "warp test_module_aot": ("unittest", "warp.tests.aot.test_module_aot"),
    "warp test_static": ("unittest", "warp.tests.test_static"),
    "warp benchmark_launches": ("warp.examples.benchmarks.benchmark_launches",),
    "warp example_diffusion": ("warp.examples.fem.example_diffusion", *ON_CPU, "--headless", "--resolution", "10"),
    "newton basic_pendulum": ("newton.examples", "basic_pendulum", "--viewer", "null", *ON_CPU, "--num-frames", "3"),
    "newton basic_joints": ("newton.examples", "basic_joints", "--viewer", "null", *ON_CPU, "--num-frames", "3"),
    "mujoco-warp math_test": ("unittest", "mujoco_warp._src.math_test"),
    "mujoco-warp smooth_test": ("unittest", "mujoco_warp._src.smooth_test.SmoothTest.test_mocap_kinematics"),
}


def measure(python: str, name: str, folder: Path, timeout_s: int) -> tuple[probe.Report | None, str]:
    """The report of a subject, and what the probe said at the end; no report where none was written."""
    path = folder / f"{name.replace(' ', '-')}.json"
    options = ["--samples", "1", "--timeout", str(timeout_s), "--json", str(path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "measure", *options, "--", python, "-m", *SUBJECTS[name]],
        check=False,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    path.with_suffix(".txt").write_text(done.stdout, encoding="utf-8")
    path.with_suffix(".log").write_text(done.stderr, encoding="utf-8")
    said = "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]
    if not path.exists():
        return None, said
    return probe.load_report(str(path)), said


def row(name: str, report: probe.Report | None, said: str) -> tuple[str, ...]:
    """The cells of a subject."""
    summary = report.summary if report is not None else None
    cold = report.samples[0].cold if report is not None and report.samples else None
    if report is None or summary is None or cold is None:
        return (name, *("-",) * (len(HEADER) - 2), said)
    findings = collections.Counter(f"{finding.mechanism} ({finding.kind.value})" for finding in report.findings)
    unexplained = len(cold.cross_check.unexplained_directories)
    return (
        name,
        f"{summary.cold_wall_ms.median / 1e3:.1f}",
        f"{summary.warm_wall_ms.median / 1e3:.1f}",
        f"{summary.builds} of {summary.identities} identities, {summary.rebuilds} rebuilds",
        f"{cold.cross_check.cache_directories}, {unexplained} unexplained",
        f"{summary.launches:,}",
        ", ".join(f"{count} {finding}" for finding, count in findings.items()) or "none",
        ", ".join(sorted({gap.reason.value for gap in report.coverage.gaps})) or "none",
        "; ".join([*sorted({notice.name for notice in report.warnings}), *([said] if said else [])]) or "none",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="a Python with Warp (default: this)")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="where the reports are kept (default: nowhere)")
    parser.add_argument("--timeout", type=int, default=1800, metavar="SECONDS", help="of each run (default: 1800)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(SUBJECTS)} (default: all)")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(SUBJECTS)):
        parser.error(f"no subject {unknown[0]!r}; there are {', '.join(SUBJECTS)}")
    with tempfile.TemporaryDirectory(prefix="subjects-") as scratch:
        folder = (arguments.reports or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for cells in (HEADER, ("---",) * len(HEADER)):
            print(f"| {' | '.join(cells)} |")
        for name in arguments.names or SUBJECTS:
            report, said = measure(arguments.python, name, folder, arguments.timeout)
            print(f"| {' | '.join(row(name, report, said))} |", flush=True)


if __name__ == "__main__":
    main()
