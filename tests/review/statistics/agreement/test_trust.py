"""Trust in a judge: by the interval of its agreement; leniency and skewed ratings go first."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.experts import ExpertAgreement, compare_experts
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.statistic import Rating, Statistic
from review.statistics.agreement.trust import JudgeTrust, Trust, decisive_statistics, judge_trust

LEVELS, YES_NO = Scale.parse("levels 1..5"), Scale.parse("yes_no")
ALONE = compare_experts([Rating("a", "one", 3.0)], LEVELS)


def levels(*values: int, n: int) -> list[float]:
    return [float(value) for value in islice(cycle(values), n)]


def trusted(judge: list[float], experts: list[float], scale: Scale = LEVELS, built_on: int = 0) -> JudgeTrust:
    pair = compare(judge, experts, scale, resampling=Resampling(500), only=decisive_statistics(scale))
    return judge_trust(pair, ALONE, scale, built_on=built_on)


def agreeing(value: float | None, low: float | None, high: float | None, n: int, **more: float) -> PairAgreement:
    """A comparison with a made-up kappa; levels 1 to 5 evenly used, no bias, a correlation of .9."""
    pair = compare(levels(1, 2, 3, 4, 5, n=n), levels(1, 2, 3, 4, 5, n=n), LEVELS)
    figures = {"cohen_kappa_quadratic": value, "pearson": 0.9, "bias": 0.0} | more
    statistics = {
        **pair.statistics,
        **{name: Statistic(one, "" if one is not None else "one_value_only") for name, one in figures.items()},
    }
    intervals = {} if low is None or high is None else {"cohen_kappa_quadratic": (low, high)}
    intervals["pearson"] = (statistics["pearson"].value or 0.0, statistics["pearson"].value or 0.0)
    fields = {name: getattr(pair, name) for name in PairAgreement.__slots__}
    return PairAgreement(**fields | {"statistics": statistics, "intervals": intervals})


@pytest.mark.parametrize(
    ("value", "low", "high", "n", "trust", "more"),
    [
        (0.60, 0.41, 0.75, 50, Trust.YES, 0),
        (0.60, 0.40, 0.75, 50, Trust.CANNOT_TELL, 1),  # the lower limit is not above .4
        (0.90, 0.80, 0.97, 20, Trust.YES, 0),
        (0.90, 0.80, 0.97, 19, Trust.CANNOT_TELL, 1),
        (0.39, 0.20, 0.59, 50, Trust.NO, 0),
        (0.39, 0.20, 0.60, 50, Trust.CANNOT_TELL, 1),
        (0.50, 0.42, 0.58, 90, Trust.CARE, 0),
        (0.50, 0.30, 0.58, 90, Trust.CARE, 0),  # it cannot be good
        (0.50, 0.42, 0.70, 90, Trust.CARE, 0),  # it cannot be poor
        # 40 x (.25 / .10)^2 = 250, or 40 x (.20 / .10)^2 = 160 by the upper end: 121 more
        (0.50, 0.25, 0.70, 40, Trust.CANNOT_TELL, 121),
        (0.70, 0.30, 0.90, 30, Trust.CANNOT_TELL, 24),  # 30 x (.40 / .30)^2 = 53.3
        (0.30, 0.00, 0.65, 30, Trust.CANNOT_TELL, 11),  # 30 x (.35 / .30)^2 = 40.8
        (0.50, 0.10, 0.90, 10, Trust.CANNOT_TELL, 10),  # twenty first
        (0.90, 0.70, 0.99, 12, Trust.CANNOT_TELL, 8),
    ],
)
def test_the_interval_decides(value: float, low: float, high: float, n: int, trust: Trust, more: int) -> None:
    found = judge_trust(agreeing(value, low, high, n), ALONE, LEVELS)
    assert (found.trust, found.more) == (trust, more)


def test_many_answers_need_no_interval() -> None:
    for value, trust in ((0.61, Trust.YES), (0.55, Trust.CARE), (0.39, Trust.NO)):
        assert judge_trust(agreeing(value, None, None, 3000), ALONE, LEVELS).trust is trust


def test_a_statistic_that_is_not_defined_tells_nothing_and_says_why() -> None:
    found = judge_trust(agreeing(None, None, None, 60), ALONE, LEVELS)
    assert (found.trust, found.reason, found.more) == (Trust.CANNOT_TELL, "one_value_only", 0)


def test_no_ratings_and_only_ratings_that_built_the_prompt() -> None:
    assert trusted([], []).trust is Trust.UNRATED
    assert trusted([], [], built_on=320).trust is Trust.BUILT_ON


@pytest.mark.parametrize("n", [20, 40, 100])
def test_at_95_percent_agreement_on_one_level_it_is_never_no(n: int) -> None:
    """A twentieth of the answers is a no, and the judge takes another twentieth for one: exact .9, kappa below 0."""
    odd = n // 20
    experts = [0.0] * odd + [1.0] * (n - odd)
    judge = [1.0] * odd + [0.0] * odd + [1.0] * (n - 2 * odd)
    found = trusted(judge, experts, YES_NO)
    assert (found.trust, found.statistic, found.commonest) == (Trust.CARE, "gwet_ac1", 1)
    assert (found.exact, found.share) == (pytest.approx(0.9), pytest.approx(0.95))
    # AC1: (.9 - e) / (1 - e) with e = 2 x .95 x .05 = .095
    assert found.value == pytest.approx((0.9 - 0.095) / 0.905)


def test_ratings_that_are_all_the_same_leave_open_whether_it_finds_others() -> None:
    found = trusted([5.0] * 30, [5.0] * 30)
    assert (found.trust, found.exact, found.share) == (Trust.CARE, 1.0, 1.0)


def test_a_judge_that_finds_the_few_others_can_be_trusted() -> None:
    experts = [5.0] * 180 + [1.0] * 20
    assert trusted(experts, experts).trust is Trust.YES


def test_a_judge_that_misses_the_common_level_cannot_be_trusted() -> None:
    # nothing equals, the correlation is 0: AC1 is below 0 and no bias excuses it
    found = trusted(levels(2, 4, n=60), [3.0] * 60)
    assert (found.trust, found.bias) == (Trust.NO, None)


@pytest.mark.parametrize(("by", "lenient"), [(1, True), (-1, False)])
def test_a_shifted_judge_is_to_be_used_with_care(by: int, lenient: bool) -> None:
    experts = levels(2, 3, 4, n=60)
    found = trusted([one + by for one in experts], experts)
    assert (found.trust, found.bias, found.lenient) == (Trust.CARE, by, lenient)


def test_low_values_of_some_metrics_are_the_good_ones() -> None:
    experts = levels(2, 3, 4, n=60)
    pair = compare([one + 1 for one in experts], experts, LEVELS)
    assert judge_trust(pair, ALONE, LEVELS, lower_better=True).lenient is False


@pytest.mark.parametrize(("bias", "trust"), [(0.5, Trust.YES), (0.51, Trust.CARE), (-0.51, Trust.CARE)])
def test_half_a_level_is_the_limit(bias: float, trust: Trust) -> None:
    found = judge_trust(agreeing(0.8, 0.7, 0.9, 60, bias=bias), ALONE, LEVELS)
    assert found.trust is trust


def test_a_judge_that_neither_levels_nor_ranks_is_still_no() -> None:
    """The experts give 5 5 4 5 5 whatever the judge gives: bias 3 - 4.8, correlation 0."""
    found = trusted(levels(1, 2, 3, 4, 5, n=60), levels(5, 5, 4, 5, 5, n=60))
    assert (found.trust, found.bias) == (Trust.NO, pytest.approx(-1.8))


def rated_twice(first: list[float], second: list[float]) -> ExpertAgreement:
    rows = [Rating(at, who, values[at]) for who, values in (("a", first), ("b", second)) for at in range(len(values))]
    return compare_experts(rows, LEVELS)


def test_experts_who_disagree_are_no_standard() -> None:
    experts = levels(1, 2, 3, 4, 5, n=60)
    pair = compare(experts, experts, LEVELS, resampling=Resampling(200))
    torn = rated_twice(levels(1, 2, 3, 4, 5, n=60), levels(3, 5, 1, 2, 4, n=60))
    assert judge_trust(pair, torn, LEVELS).trust is Trust.EXPERTS_DISAGREE


def test_experts_who_give_nearly_always_the_same_do_not_disagree() -> None:
    """Each of two experts sees one other flaw: kappa of the two is below 0, AC1 about .94."""
    first, second = [1.0] + [5.0] * 39, [5.0] * 39 + [1.0]
    pair = compare([5.0] * 40, [(a + b) / 2 for a, b in zip(first, second, strict=True)], LEVELS)
    found = judge_trust(pair, rated_twice(first, second), LEVELS)
    assert (found.trust, found.commonest) == (Trust.CARE, 5)
    assert found.experts == pytest.approx(0.94, abs=0.01)


def test_dictionaries_read_back_as_written() -> None:
    found = trusted(levels(1, 2, 3, 4, 5, n=60), levels(1, 2, 3, 4, 4, n=60))
    assert JudgeTrust.from_dict(found.to_dict()) == found
