"""Runs a Python process with the recorder in it, without the rest of `measure`, and reads what it recorded."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import warp_compile_probe as probe

STUB_WARP = Path(__file__).resolve().parent / "stub_warp"


@dataclass(frozen=True)
class Recorded:
    """A finished process: what it printed, and the processes and gaps in the records."""

    exit_code: int
    stdout: str
    stderr: str
    read: probe.ReadRun
    folder: Path

    @property
    def processes(self) -> tuple[probe.Process, ...]:
        return self.read.processes

    @property
    def ends(self) -> dict[str, tuple[str, str, int | None]]:
        """How each process came to be and how it ended, by its path."""
        return {process.path: (process.how, process.end.value, process.exit_code) for process in self.processes}

    @property
    def gaps(self) -> list[tuple[str, str]]:
        return [(gap.reason.value, gap.detail) for gap in self.read.gaps]

    def launched(self, path: str) -> list[tuple[str, tuple[int, ...], bool, int]]:
        """The table of launches of a process: kernel, dim, adjoint, count."""
        (process,) = [process for process in self.processes if process.path == path]
        return launch_table(process.launches)


def launch_table(launches: probe.Launches) -> list[tuple[str, tuple[int, ...], bool, int]]:
    return [(launches.kernels[item.kernel].key, item.dim, item.adjoint, item.count) for item in launches.entries]


class Recording:
    """A private directory for one run; `inject` goes into PYTHONPATH."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.setattr(probe.tempfile, "tempdir", None)
        self.workspace = probe.Workspace()
        self.workspace.prepare()
        self.sample = probe.SampleFolder(self.workspace, "1")
        self.inject, self.records = self.sample.inject(probe.RunKind.COLD, {})

    def environment(self, *paths: str | Path, **changes: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARP_"))}
        search = os.pathsep.join([self.inject, *map(str, paths)])
        private = {"WARP_CACHE_PATH": os.path.join(self.sample.path, "warp"), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**inherited, **private, "PYTHONPATH": search, **changes}

    def run(self, argv, *paths: str | Path, cwd: Path | None = None, **changes: str) -> Recorded:
        origin = time.monotonic_ns()
        done = subprocess.run(
            list(map(str, argv)),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environment(*paths, **changes),
            cwd=cwd,
        )
        read = probe.read_records(self.records, origin, [self.workspace.root])
        return Recorded(done.returncode, done.stdout, done.stderr, read, Path(self.records))

    def python(self, code: str, *paths: str | Path, **changes: str) -> Recorded:
        """Run `python -c CODE` with the stub of Warp within reach."""
        return self.run([sys.executable, "-c", code], *(paths or (STUB_WARP,)), **changes)


def measure_options(**changes) -> probe.MeasureOptions:
    """The options of a measurement, as a command line without any would give them."""
    parsed = probe.build_parser().parse_args(["measure", "--", "true"])
    return replace(probe.measure_options(parsed), **changes)
