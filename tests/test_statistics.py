"""Statistics: exact where they can be, and honest about noise."""

import dataclasses
import itertools
import math
import random
from fractions import Fraction

import pytest
import warp_compile_probe as probe
from hypothesis import given, settings
from hypothesis import strategies as st
from report_builder import make_environment
from simulate_verdicts import share_of_verdicts

samples = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("values", "median", "mad"),
    [((4.0,), 4.0, 0.0), ((3.0, 1.0), 2.0, 1.0), ((1.0, 9.0, 2.0), 2.0, 1.0), ((1.0, 2.0, 4.0, 9.0), 3.0, 1.5)],
)
def test_timed_holds_median_unscaled_mad_and_the_values_in_order(values, median, mad):
    assert probe.timed(iter(values)) == probe.Timed(median, mad, values)


@pytest.mark.parametrize(
    ("values", "band"),
    [((100.0, 100.0, 100.0), 1.0), ((100.0, 90.0, 120.0), 20.0), ((-100.0,), 1.0), ((0.0, 0.0), 0.0)],
)
def test_band_is_one_percent_or_two_mads(values, band):
    assert probe.noise_band(probe.timed(values)) == band


def by_enumeration(lower, higher):
    """The p of the rank test, by dealing the values out in every possible way."""
    pooled = [*lower, *higher]
    ranks = {value: sum(other < value for other in pooled) + (pooled.count(value) + 1) / 2 for value in pooled}
    observed = sum(ranks[value] for value in lower)
    deals = [sum(ranks[pooled[i]] for i in deal) for deal in itertools.combinations(range(len(pooled)), len(lower))]
    return Fraction(sum(total <= observed for total in deals), len(deals))


@given(samples, samples)
def test_rank_sum_p_equals_full_enumeration_with_and_without_ties(lower, higher):
    assert probe.rank_sum_p(lower, higher) == by_enumeration(lower, higher)


@pytest.mark.parametrize(
    ("lower", "higher", "p"),
    [
        ((1, 2, 3), (4, 5, 6), Fraction(1, 20)),
        ((1, 2, 4), (3, 5, 6), Fraction(1, 10)),
        ((4, 5, 6), (1, 2, 3), Fraction(1)),
        ((7, 7, 7), (7, 7, 7), Fraction(1)),
        ((1, 2), (3, 4), Fraction(1, 6)),
        ((1,), (2,), Fraction(1, 2)),
        (range(10), range(10, 20), Fraction(1, math.comb(20, 10))),
    ],
)
def test_rank_sum_p_by_hand(lower, higher, p):
    assert probe.rank_sum_p(tuple(lower), tuple(higher)) == p


def test_complete_separation_of_three_is_exactly_significant():
    assert probe.rank_sum_p((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)) <= probe.SIGNIFICANCE


def test_rank_sum_p_of_the_largest_arms_is_exact():
    count = probe.MAX_JUDGED_SAMPLES
    p = probe.rank_sum_p(tuple(range(count)), tuple(range(count, 2 * count)))
    assert p == Fraction(1, math.comb(2 * count, count))
    assert probe.rank_sum_p((7.0,) * count, (7.0,) * count) == 1


def test_ways_to_choose_ranks_are_counted_by_their_sum():
    assert probe._ways_up_to((1, 2, 3), 2) == (0, 0, 0, 1, 2, 3, 3)


@pytest.mark.parametrize(
    ("lower", "higher", "needed"),
    [
        ((1.0,), (2.0,), 3),  # separated, but too few
        ((1.0, 2.0), (3.0, 4.0), 3),
        ((1.0, 2.0, 4.0), (3.0, 5.0, 6.0), 7),  # eight of nine pairs lean that way
        ((1.0, 3.0, 5.0), (2.0, 4.0, 6.0), 38),  # six of nine
        ((1.0, 4.0, 5.0), (2.0, 3.0, 6.0), None),  # five of nine: more than 50
        ((3.0, 4.0), (1.0, 2.0), None),  # the other way round
        ((1.0, 2.0), (1.0, 2.0), None),  # no way at all
        ((0.1, 0.2, 0.3, 7.5, 10.0), tuple(range(1, 10)), 50),  # 29 of 45: as many as are judged at most
        ((1.0, 3.0, 4.0, 2.0, 6.0, 4.0, 7.0), (8.0, 8.0, 0.0, 5.0, 7.0, 1.0, 6.0), None),  # 31.5 of 49: one more
        ((2.0, 2.0, 3.0), (2.0, 4.0, 5.0), 14),  # 7 of 9, with two ties that count half
    ],
)
def test_needed_samples(lower, higher, needed):
    assert probe.needed_samples(lower, higher) == needed


def test_needed_samples_find_such_a_difference_in_four_of_five_attempts():
    # 20 of 25 pairs lean this way, as for normal distributions that lie 1.19 deviations apart.
    needed = probe.needed_samples((0.0, 2.0, 4.0, 5.5, 6.5), (3.0, 5.0, 7.0, 8.0, 9.0))
    generator = random.Random(7)
    found = 0
    for _ in range(2_000):
        arms = [[generator.gauss(middle, 1.0) for _ in range(needed)] for middle in (0.0, 1.19)]
        found += probe.rank_sum_p(*arms) <= probe.SIGNIFICANCE
    assert 0.75 < found / 2_000 < 0.9


def test_needed_samples_is_more_than_there_are():
    assert probe.needed_samples(tuple(range(20)), tuple(x + 11.5 for x in range(20))) == 21


@pytest.mark.parametrize(
    ("baseline", "candidate", "support", "p"),
    [
        ((100.0, 101.0, 99.0), (100.5, 99.5, 101.5), "inside", None),
        ((100.0, 101.0, 99.0), (80.0, 81.0, 79.0), "supported", Fraction(1, 20)),
        ((100.0, 101.0, 99.0), (120.0, 121.0, 119.0), "supported", Fraction(1, 20)),
        ((100.0, 101.0, 99.0), (103.0, 104.0, 100.5), "overlap", Fraction(1, 10)),
        ((100.0, 101.0), (50.0, 51.0), "too-few", Fraction(1, 6)),
        ((100.0, 101.0, 99.0), (50.0, 51.0), "too-few", Fraction(1, 10)),
        ((100.0,), (50.0,), "too-few", Fraction(1, 2)),
        ((0.0, 0.0, 0.0, 0.0, 4.0), (1.0, 2.0, 2.0, 3.0, 5.0), "overlap", Fraction(13, 252)),  # just above 1/20
        ((100.0, 100.0, 100.0), (101.0, 101.0, 101.0), "inside", None),  # exactly one percent is noise
        ((100.0, 100.0, 100.0), (101.1, 101.1, 101.1), "supported", Fraction(1, 20)),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), "inside", None),
        ((0.1, 0.1, 0.1), (0.5, 0.5, 0.5), "supported", Fraction(1, 20)),
        ((0.5, 0.5, 0.5), (0.1, 0.1, 0.1), "supported", Fraction(1, 20)),
        ((0.0, 0.0, 0.0), (5.0, 5.0, 5.0), "supported", Fraction(1, 20)),
    ],
)
def test_weigh(baseline, candidate, support, p):
    evidence = probe.weigh(probe.timed(baseline), probe.timed(candidate))
    assert (evidence.support, evidence.p) == (probe.Support(support), p)


def test_weigh_gives_change_band_and_how_many_samples_would_do():
    baseline = probe.timed((100.0, 101.0, 99.0))
    inside = probe.weigh(baseline, probe.timed((101.0, 100.0, 102.0)))
    assert inside == probe.TimeEvidence(1.0, 2.0, probe.Support.INSIDE, None, None)
    few = probe.weigh(baseline, probe.timed((50.0, 51.0)))
    assert few == probe.TimeEvidence(-49.5, 2.0, probe.Support.TOO_FEW, Fraction(1, 10), 3)
    overlap = probe.weigh(baseline, probe.timed((103.0, 104.0, 100.5)))
    assert overlap == probe.TimeEvidence(3.0, 2.0, probe.Support.OVERLAP, Fraction(1, 10), 7)
    supported = probe.weigh(baseline, probe.timed((80.0, 81.0, 79.0)))
    assert supported == probe.TimeEvidence(-20.0, 2.0, probe.Support.SUPPORTED, Fraction(1, 20), None)


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("sigma", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("skewed", [False, True])
def test_identical_code_is_hardly_ever_called_a_change(sigma, skewed, n):
    shares = share_of_verdicts(sigma=sigma, skewed=skewed, n=n, trials=10_000)
    assert max(shares) <= (0.06 if skewed else 0.05)


def test_a_gain_of_twenty_percent_is_found_with_three_samples():
    improved, regressed = share_of_verdicts(sigma=0.02, skewed=False, n=3, gain=0.2, trials=2_000)
    assert improved >= 0.95
    assert regressed == 0


@pytest.mark.parametrize(
    ("start", "end", "cores", "warned"),
    [
        (0.5, 7.9, 8, False),
        (8.0, 8.0, 8, False),
        (9.0, 1.0, 8, True),
        (1.0, 8.5, 8, True),
        (None, 8.5, 8, True),
        (8.5, None, 8, True),
        (None, None, 8, False),
        (9.0, 9.0, None, False),
    ],
)
def test_a_loaded_machine_is_a_warning(start, end, cores, warned):
    environment = dataclasses.replace(make_environment(), load_average_start=start, load_average_end=end, cores=cores)
    notices = probe.machine_warnings(environment)
    assert [notice.name for notice in notices] == ["loaded-machine"] * warned
    for notice in notices:
        assert f"the load average was {max(start or 0.0, end or 0.0):.1f} on 8 cores: times" in notice.text
        assert notice.text.endswith("; measure again on a quiet machine")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ((100.0, 101.0, 99.0), []),
        ((100.0, 101.0), []),
        ((150.0, 101.0, 99.0), ["first-sample-outlier"]),
        ((50.0, 101.0, 99.0, 100.0), ["first-sample-outlier"]),
        ((100.0, 103.0, 106.0, 109.0, 112.0), ["drift"]),
        ((112.0, 109.0, 106.0, 103.0, 100.0), ["drift"]),
        ((100.0, 103.0, 106.0, 109.0), []),  # four in a row happen by chance
        ((100.0, 100.1, 100.2, 100.3, 100.4), []),  # too small to matter
        ((100.0, 109.0, 103.0, 112.0, 106.0), []),
        ((100.0, 100.0, 100.0, 100.0, 110.0), []),  # ties show no drift
        ((110.0, 100.0, 100.0), []),  # a tenth above the others
        ((110.5, 100.0, 100.0), ["first-sample-outlier"]),
        ((-110.0, -100.0, -100.0), []),
        ((-110.5, -100.0, -100.0), ["first-sample-outlier"]),
        ((150.0, 100.0), []),  # two cannot tell which is unlike the other
        ((150.0, 90.0, 100.0, 110.0), []),  # five deviations above them
        ((150.5, 90.0, 100.0, 110.0), ["first-sample-outlier"]),
        ((99.5, 100.5, 101.0, 101.5, 102.5), []),  # by exactly 2 %
        ((99.5, 100.5, 101.0, 101.6, 102.6), ["drift"]),
        ((-102.5, -101.5, -101.0, -100.5, -99.5), []),
        ((-102.5, -102.0, -101.0, -100.0, -99.5), ["drift"]),
        ((100.0, 102.0, 104.0, 108.0, 106.0), []),  # one pair of ten falls: p = 1/12
        ((100.0, 102.0, 104.0, 106.0, 110.0, 108.0), ["drift"]),  # one pair of 15: p = 1/60
        ((100.0, 104.0, 102.0, 106.0, 110.0, 108.0), []),  # two: p = 1/18
        ((110.0, 106.0, 108.0, 104.0, 100.0, 102.0), []),
        ((100.0, 102.0, 104.0, 106.0, 108.0, 108.0), ["drift"]),  # a tie counts like a pair that falls
        ((108.0, 108.0, 106.0, 104.0, 102.0, 100.0), ["drift"]),
        ((100.0, 102.0, 102.0, 106.0, 108.0, 108.0), []),
        ((100.0, 106.0, 104.0, 102.0, 108.0, 110.0, 112.0), ["drift"]),  # three pairs of 21: p = 19/630
        ((100.0, 108.0, 104.0, 102.0, 106.0, 110.0, 112.0), []),  # four
        ((109.0, 106.0, 103.0, 100.0, 115.0, 112.0, 121.0, 118.0, 124.0), ["drift"]),  # eight of 36: p = 0.045
        ((109.0, 106.0, 103.0, 100.0, 115.0, 112.0, 121.0, 124.0, 118.0), []),  # nine
    ],
)
def test_warnings_about_samples(values, names):
    assert [notice.name for notice in probe.sample_warnings(values, "cold_module_ms")] == names


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            (1_650.4, 101.0, 99.0),
            "the first sample lies 1,550 ms above the others (cold_module_ms): something was not ",
        ),
        ((0.5, 0.1, 0.1), "the first sample lies 0 ms above the others (cold_module_ms): "),
        ((0.1, 0.5, 0.5), "the first sample lies 0 ms below the others (cold_module_ms): "),
        ((49.0, 90.0, 100.0, 110.0), "the first sample lies 51 ms below the others (cold_module_ms): "),
        ((100.0, 103.0, 106.0, 109.0, 112.0), "cold_module_ms drifts from sample to sample: "),
    ],
)
def test_a_warning_about_samples_says_what_is_odd_about_which_figure(values, text):
    (notice,) = probe.sample_warnings(values, "cold_module_ms")
    assert notice.text.startswith(text)


def falling_pairs(order):
    return sum(before > after for before, after in itertools.combinations(order, 2))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_orders_are_counted_by_their_falling_pairs(size):
    counts = [falling_pairs(order) for order in itertools.permutations(range(size))]
    expected = tuple(sum(count <= most for count in counts) for most in range(math.comb(size, 2) + 1))
    assert probe._orders_up_to(size) == expected


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12))
def test_sample_warnings_take_any_values(values):
    for notice in probe.sample_warnings(values, "cold_module_ms"):
        assert "\n" not in notice.text
