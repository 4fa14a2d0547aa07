"""Trust in a judge: decided by the agreement interval; leniency and skewed ratings are checked first."""

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


def repeat_levels(*values: int, n: int) -> list[float]:
    return [float(value) for value in islice(cycle(values), n)]


def trust_from_values(judge: list[float], experts: list[float], scale: Scale = LEVELS, built_on: int = 0) -> JudgeTrust:
    pair = compare(judge, experts, scale, resampling=Resampling(500), only=decisive_statistics(scale))
    return judge_trust(pair, ALONE, scale, built_on=built_on)


def agreement_with_kappa(
    value: float | None, low: float | None, high: float | None, n: int, **overrides: float
) -> PairAgreement:
    """A comparison with a given kappa; levels 1 to 5 evenly used, no bias, a correlation of .9."""
    pair = compare(repeat_levels(1, 2, 3, 4, 5, n=n), repeat_levels(1, 2, 3, 4, 5, n=n), LEVELS)
    figures = {"cohen_kappa_quadratic": value, "pearson": 0.9, "bias": 0.0} | overrides
    statistics = {
        **pair.statistics,
        **{name: Statistic(figure, "" if figure is not None else "one_value_only") for name, figure in figures.items()},
    }
    intervals = {} if low is None or high is None else {"cohen_kappa_quadratic": (low, high)}
    intervals["pearson"] = (statistics["pearson"].value or 0.0, statistics["pearson"].value or 0.0)
    fields = {name: getattr(pair, name) for name in PairAgreement.__slots__}
    return PairAgreement(**fields | {"statistics": statistics, "intervals": intervals})


@pytest.mark.parametrize(
    ("value", "low", "high", "n", "trust", "more_ratings"),
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
def test_trust_is_decided_by_the_interval(
    value: float, low: float, high: float, n: int, trust: Trust, more_ratings: int
) -> None:
    verdict = judge_trust(agreement_with_kappa(value, low, high, n), ALONE, LEVELS)
    assert (verdict.trust, verdict.more) == (trust, more_ratings)


def test_many_answers_need_no_interval() -> None:
    for value, trust in ((0.61, Trust.YES), (0.55, Trust.CARE), (0.39, Trust.NO)):
        assert judge_trust(agreement_with_kappa(value, None, None, 3000), ALONE, LEVELS).trust is trust


def test_undefined_statistic_cannot_tell_and_states_the_reason() -> None:
    verdict = judge_trust(agreement_with_kappa(None, None, None, 60), ALONE, LEVELS)
    assert (verdict.trust, verdict.reason, verdict.more) == (Trust.CANNOT_TELL, "one_value_only", 0)


def test_no_ratings_and_prompt_ratings_only_have_their_own_verdicts() -> None:
    assert trust_from_values([], []).trust is Trust.UNRATED
    assert trust_from_values([], [], built_on=320).trust is Trust.BUILT_ON


@pytest.mark.parametrize("n", [20, 40, 100])
def test_95_percent_one_level_never_gives_no_trust(n: int) -> None:
    """A twentieth of the answers is a no, and the judge mistakes another twentieth for one: exact .9, kappa below 0."""
    minority = n // 20
    experts = [0.0] * minority + [1.0] * (n - minority)
    judge = [1.0] * minority + [0.0] * minority + [1.0] * (n - 2 * minority)
    verdict = trust_from_values(judge, experts, YES_NO)
    assert (verdict.trust, verdict.statistic, verdict.commonest) == (Trust.CARE, "gwet_ac1", 1)
    assert (verdict.exact, verdict.share) == (pytest.approx(0.9), pytest.approx(0.95))
    # AC1: (.9 - e) / (1 - e) with e = 2 x .95 x .05 = .095
    assert verdict.value == pytest.approx((0.9 - 0.095) / 0.905)


def test_constant_ratings_give_trust_with_care() -> None:
    verdict = trust_from_values([5.0] * 30, [5.0] * 30)
    assert (verdict.trust, verdict.exact, verdict.share) == (Trust.CARE, 1.0, 1.0)


def test_judge_that_finds_rare_levels_is_trusted() -> None:
    experts = [5.0] * 180 + [1.0] * 20
    assert trust_from_values(experts, experts).trust is Trust.YES


def test_judge_that_misses_the_common_level_is_not_trusted() -> None:
    # nothing equals, the correlation is 0: AC1 is below 0 and no bias excuses it
    verdict = trust_from_values(repeat_levels(2, 4, n=60), [3.0] * 60)
    assert (verdict.trust, verdict.bias) == (Trust.NO, None)


@pytest.mark.parametrize(("shift", "lenient"), [(1, True), (-1, False)])
def test_shifted_judge_is_used_with_care(shift: int, lenient: bool) -> None:
    experts = repeat_levels(2, 3, 4, n=60)
    verdict = trust_from_values([value + shift for value in experts], experts)
    assert (verdict.trust, verdict.bias, verdict.lenient) == (Trust.CARE, shift, lenient)


def test_leniency_is_reversed_where_lower_is_better() -> None:
    experts = repeat_levels(2, 3, 4, n=60)
    pair = compare([value + 1 for value in experts], experts, LEVELS)
    assert judge_trust(pair, ALONE, LEVELS, lower_better=True).lenient is False


@pytest.mark.parametrize(("bias", "trust"), [(0.5, Trust.YES), (0.51, Trust.CARE), (-0.51, Trust.CARE)])
def test_half_a_level_of_bias_is_the_limit(bias: float, trust: Trust) -> None:
    verdict = judge_trust(agreement_with_kappa(0.8, 0.7, 0.9, 60, bias=bias), ALONE, LEVELS)
    assert verdict.trust is trust


def test_judge_without_level_or_rank_agreement_is_not_trusted() -> None:
    """The experts give 5 5 4 5 5 whatever the judge gives: bias 3 - 4.8, correlation 0."""
    verdict = trust_from_values(repeat_levels(1, 2, 3, 4, 5, n=60), repeat_levels(5, 5, 4, 5, 5, n=60))
    assert (verdict.trust, verdict.bias) == (Trust.NO, pytest.approx(-1.8))


def agreement_of_two(first: list[float], second: list[float]) -> ExpertAgreement:
    rows = [Rating(i, rater, values[i]) for rater, values in (("a", first), ("b", second)) for i in range(len(values))]
    return compare_experts(rows, LEVELS)


def test_disagreeing_experts_are_no_standard() -> None:
    experts = repeat_levels(1, 2, 3, 4, 5, n=60)
    pair = compare(experts, experts, LEVELS, resampling=Resampling(200))
    disagreement = agreement_of_two(repeat_levels(1, 2, 3, 4, 5, n=60), repeat_levels(3, 5, 1, 2, 4, n=60))
    assert judge_trust(pair, disagreement, LEVELS).trust is Trust.EXPERTS_DISAGREE


def test_experts_with_nearly_constant_ratings_do_not_disagree() -> None:
    """Each of two experts finds one different flaw: their kappa is below 0, AC1 about .94."""
    first, second = [1.0] + [5.0] * 39, [5.0] * 39 + [1.0]
    pair = compare([5.0] * 40, [(a + b) / 2 for a, b in zip(first, second, strict=True)], LEVELS)
    verdict = judge_trust(pair, agreement_of_two(first, second), LEVELS)
    assert (verdict.trust, verdict.commonest) == (Trust.CARE, 5)
    assert verdict.experts == pytest.approx(0.94, abs=0.01)


def test_trust_round_trips_through_a_dict() -> None:
    verdict = trust_from_values(repeat_levels(1, 2, 3, 4, 5, n=60), repeat_levels(1, 2, 3, 4, 4, n=60))
    assert JudgeTrust.from_dict(verdict.to_dict()) == verdict
