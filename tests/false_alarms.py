"""How often the verdict on times is wrong, by simulation: prints shares; asserts nothing.

    python tests/false_alarms.py [--trials N] [--json FILE]

Two arms of n samples are drawn and judged as `compare` judges them. Without a gain, `improved` and `regressed` are both
wrong. Noise is normal, or skewed: now and then much slower, as on a shared machine. Seeded: the same everywhere.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import warp_compile_probe as probe

SIGMAS = (0.01, 0.02, 0.05)
SAMPLES = (3, 5, 10)
GAINS = (0.0, 0.05, 0.2)


def noise(generator, sigma, *, skewed):
    """A factor with this relative scatter: normal, or now and then much slower as on a shared machine."""
    if not skewed:
        return 1 + generator.gauss(0, sigma)
    return 1 + sigma * (generator.expovariate(1.0) - 1)


def share_of_verdicts(*, sigma, skewed, n, gain=0.0, trials):
    generator = random.Random(f"{sigma} {skewed} {n} {gain}")
    improved = regressed = 0
    for _ in range(trials):
        before, after = (
            probe.timed(1_000 * (1 - less) * noise(generator, sigma, skewed=skewed) for _ in range(n))
            for less in (0.0, gain)
        )
        evidence = probe.weigh(before, after)
        improved += evidence.support is probe.Support.SUPPORTED and evidence.change < 0
        regressed += evidence.support is probe.Support.SUPPORTED and evidence.change > 0
    return improved / trials, regressed / trials


def rows(trials: int) -> list[dict[str, float | bool | int]]:
    """The shares for every kind of noise, number of samples and gain."""
    found = []
    for gain in GAINS:
        for skewed in (False, True):
            for sigma in SIGMAS:
                for n in SAMPLES:
                    shares = share_of_verdicts(sigma=sigma, skewed=skewed, n=n, gain=gain, trials=trials)
                    row = {"gain": gain, "skewed": skewed, "sigma": sigma, "n": n, "trials": trials}
                    found.append({**row, "improved": shares[0], "regressed": shares[1]})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000, metavar="N", help="trials for each row (default 10000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    options = parser.parse_args()
    found = rows(options.trials)
    print("gain   noise    sigma   n   improved  regressed")
    for row in found:
        noise_kind = "skewed" if row["skewed"] else "normal"
        print(
            f"{row['gain']:4.0%}   {noise_kind}   {row['sigma']:4.0%} {row['n']:4}"
            f"  {row['improved']:9.2%}  {row['regressed']:9.2%}"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
