"""How often `compare` would call noise a change, and how often it finds one: the statistics alone, simulated.

`python tests/simulate_verdicts.py [--trials 20000] [--json FILE]` prints the table of references/measurement.md. A
trial draws the cold times of two arms of n samples and judges them as `compare` does where launches and exact facts are
equal. Noise is normal, or skewed: now and then much slower, as on a shared machine. Seeded: the same everywhere.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import warp_compile_probe as probe

TRIALS = 20_000
SAMPLES = (3, 5, 10)
GAINS = (0.05, 0.10, 0.20)
NOISES = ((0.01, False), (0.02, False), (0.05, False), (0.05, True))
HEADER = (
    "noise",
    "n",
    "identical code called improved / regressed",
    "band alone",
    f"a gain of {' / '.join(f'{gain:.0%}'.removesuffix('%') for gain in GAINS)} % found",
)


@dataclass(frozen=True)
class Row:
    """Shares of trials, for one kind of noise and number of samples an arm.

    `improved` and `regressed` are called where the code is the same; `band` is the share of those trials whose medians
    differ by more than the noise band, without the rank test; `found` is improved at each of GAINS.
    """

    sigma: float
    skewed: bool
    n: int
    trials: int
    improved: float
    regressed: float
    band: float
    found: tuple[float, ...]

    def cells(self) -> tuple[str, ...]:
        """The row as HEADER names its columns."""
        return (
            f"{'skewed' if self.skewed else 'normal'}, {self.sigma:.0%}",
            str(self.n),
            f"{self.improved:.1%} / {self.regressed:.1%}",
            f"{self.band:.0%}",
            " / ".join(f"{share:.0%}" for share in self.found),
        )


def arms(generator: random.Random, sigma: float, *, skewed: bool, n: int, gain: float) -> tuple[probe.Timed, ...]:
    """The times of two arms, of which the second takes `gain` less."""

    def noise() -> float:
        return generator.expovariate(1.0) - 1 if skewed else generator.gauss(0, 1)

    return tuple(probe.timed(1_000 * (1 - less) * (1 + sigma * noise()) for _ in range(n)) for less in (0.0, gain))


def share_of_verdicts(*, sigma: float, skewed: bool, n: int, trials: int, gain: float = 0.0) -> tuple[float, float]:
    """Shares of trials that are called improved and regressed."""
    generator = random.Random(f"{sigma} {skewed} {n} {gain}")
    improved = regressed = 0
    for _ in range(trials):
        evidence = probe.weigh(*arms(generator, sigma, skewed=skewed, n=n, gain=gain))
        improved += evidence.support is probe.Support.SUPPORTED and evidence.change < 0
        regressed += evidence.support is probe.Support.SUPPORTED and evidence.change > 0
    return improved / trials, regressed / trials


def share_beyond_band(*, sigma: float, skewed: bool, n: int, trials: int) -> float:
    """Share of trials of identical code whose medians differ by more than the noise band."""
    generator = random.Random(f"{sigma} {skewed} {n} band")
    beyond = 0
    for _ in range(trials):
        before, after = arms(generator, sigma, skewed=skewed, n=n, gain=0.0)
        beyond += abs(after.median - before.median) > probe.noise_band(before)
    return beyond / trials


def simulate(*, sigma: float, skewed: bool, n: int, trials: int) -> Row:
    """One row."""
    drawn = {"sigma": sigma, "skewed": skewed, "n": n, "trials": trials}
    improved, regressed = share_of_verdicts(**drawn)
    found = tuple(share_of_verdicts(**drawn, gain=gain)[0] for gain in GAINS)
    return Row(**drawn, improved=improved, regressed=regressed, band=share_beyond_band(**drawn), found=found)


def rows(trials: int) -> list[Row]:
    """All rows of the table."""
    return [simulate(sigma=sigma, skewed=skewed, n=n, trials=trials) for sigma, skewed in NOISES for n in SAMPLES]


def main() -> None:
    """Print the table, and write the rows if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=TRIALS, metavar="N", help=f"for each figure (default {TRIALS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    options = parser.parse_args()
    found = rows(options.trials)
    for cells in (HEADER, ["---"] * len(HEADER), *(row.cells() for row in found)):
        print(f"| {' | '.join(cells)} |")
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
