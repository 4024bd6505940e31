"""How often `compare` would call noise a change, and how often it finds one: the statistics alone, simulated.

`python tests/simulate_verdicts.py [--trials 20000]` prints the table of references/measurement.md. A trial draws the
cold times of two arms and judges them as `compare` does where launches and exact facts are equal.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import warp_compile_probe as probe
from false_alarms import noise, share_of_verdicts

TRIALS = 20_000
SAMPLES = (3, 5, 10)
GAINS = (0.05, 0.10, 0.20)
NOISES = ((0.01, False), (0.02, False), (0.05, False), (0.05, True))


def share_beyond_band(*, sigma: float, skewed: bool, n: int, trials: int) -> float:
    """Share of trials of identical code whose medians differ by more than the noise band: the band without the test."""
    generator = random.Random(f"{sigma} {skewed} {n} band")
    beyond = 0
    for _ in range(trials):
        before, after = (
            probe.timed(1_000 * noise(generator, sigma, skewed=skewed) for _ in range(n)) for _ in range(2)
        )
        beyond += abs(after.median - before.median) > probe.noise_band(before)
    return beyond / trials


def row(*, sigma: float, skewed: bool, n: int, trials: int) -> str:
    """A row of the table, in Markdown."""
    improved, regressed = share_of_verdicts(sigma=sigma, skewed=skewed, n=n, trials=trials)
    band = share_beyond_band(sigma=sigma, skewed=skewed, n=n, trials=trials)
    found = [share_of_verdicts(sigma=sigma, skewed=skewed, n=n, gain=gain, trials=trials)[0] for gain in GAINS]
    return (
        f"| {'skewed' if skewed else 'normal'}, {sigma:.0%} | {n} | {improved:.1%} / {regressed:.1%} | {band:.0%} |"
        f" {' / '.join(f'{share:.0%}' for share in found)} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=TRIALS)
    trials = parser.parse_args().trials
    print("| noise | n | identical code called improved / regressed | band alone | a gain of 5 / 10 / 20 % found |")
    print("|---|---|---|---|---|")
    for sigma, skewed in NOISES:
        for n in SAMPLES:
            print(row(sigma=sigma, skewed=skewed, n=n, trials=trials))


if __name__ == "__main__":
    main()
