"""The overall score of run-mean profiles, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.profiles.arithmetic import FigureLabel, MissingReason, PartMean, overall_from_means
from evaluation.profiles.spec import FailureRule, Normalisation, ProfileSpec, shipped_profiles

GRAPHRAG = next(p for p in shipped_profiles() if p.name == "graphrag")
ENDS = {"correctness": (1, 5), "faithfulness": (1, 5), "completeness": (1, 5)}


def _part(metric: str, mean: float | None, scored: int = 50, failed: int = 0, not_applicable: int = 0) -> PartMean:
    low, high = ENDS.get(metric, (0, 1))
    return PartMean(metric, mean, scored if mean is not None else 0, failed, not_applicable, low, high)


RULES = (_part("keyword_hit", 0.78), _part("keyword_coverage", 0.62), _part("negative_detection", 0.80, scored=5))
JUDGED = (_part("correctness", 3.8), _part("faithfulness", 4.2), _part("completeness", 3.5))


def test_worked_example_of_the_graphrag_profile() -> None:
    # 0.78*0.15 + 0.62*0.10 + 0.80*0.15 + 3.8/5*0.25 + 4.2/5*0.20 + 3.5/5*0.15
    # = 0.117 + 0.062 + 0.12 + 0.19 + 0.168 + 0.105 = 0.762
    overall = overall_from_means(GRAPHRAG, [*RULES, *JUDGED])
    assert overall.value == pytest.approx(0.762, abs=1e-12)
    assert (overall.label, overall.weight, overall.missing) == (FigureLabel.OVERALL_SCORE, pytest.approx(1), ())
    assert (overall.low, overall.high) == (None, None)


def test_min_max_lets_the_scale_start_at_zero() -> None:
    # 0.299 + (3.8-1)/4*0.25 + (4.2-1)/4*0.20 + (3.5-1)/4*0.15 = 0.299 + 0.175 + 0.16 + 0.09375 = 0.72775
    profile = GRAPHRAG.model_copy(update={"normalise": Normalisation.MIN_MAX})
    assert overall_from_means(profile, [*RULES, *JUDGED]).value == pytest.approx(0.72775, abs=1e-12)


def test_score_without_a_judge_is_rules_only_with_weight_0_40() -> None:
    # (0.117 + 0.062 + 0.12) / 0.40 = 0.299 / 0.40 = 0.7475
    overall = overall_from_means(GRAPHRAG, RULES)
    assert overall.value == pytest.approx(0.7475, abs=1e-12)
    assert (overall.label, overall.weight) == (FigureLabel.RULES_ONLY, pytest.approx(0.40))
    assert {(m.metric, m.gap) for m in overall.missing} == {(m, MissingReason.ABSENT) for m in ENDS}
    # 0.15/0.40, 0.10/0.40, 0.15/0.40
    assert dict(overall.weights_used) == pytest.approx(
        {"keyword_hit": 0.375, "keyword_coverage": 0.25, "negative_detection": 0.375}
    )


def test_missing_judge_metric_makes_the_score_partial() -> None:
    overall = overall_from_means(GRAPHRAG, [*RULES, *JUDGED[:2]])
    assert (overall.label, overall.weight) == (FigureLabel.PARTIAL, pytest.approx(0.85))


def test_inapplicable_part_is_renormalised_and_listed() -> None:
    # without negative questions: (0.762 - 0.12) / 0.85 = 0.642 / 0.85 = 0.7552941...
    negative = _part("negative_detection", None, not_applicable=50)
    overall = overall_from_means(GRAPHRAG, [*RULES[:2], negative, *JUDGED])
    assert overall.value == pytest.approx(0.642 / 0.85, abs=1e-12)
    assert overall.label is FigureLabel.OVERALL_SCORE
    assert [(m.metric, m.weight, m.gap) for m in overall.missing] == [
        ("negative_detection", 0.15, MissingReason.NOT_APPLICABLE)
    ]
    assert sum(overall.weights_used.values()) == pytest.approx(1)


def test_up_to_a_tenth_of_failures_gives_the_score_with_bounds() -> None:
    # correctness: 45 scored with mean 4, 5 failed of 50 = 10%: (180 + 5)/50 = 3.7 to (180 + 25)/50 = 4.1
    # others add 0.117 + 0.062 + 0.12 + 0.168 + 0.105 = 0.572; 0.572 + 4/5*0.25 = 0.772
    # low 0.572 + 3.7/5*0.25 = 0.757; high 0.572 + 4.1/5*0.25 = 0.777
    overall = overall_from_means(GRAPHRAG, [*RULES, _part("correctness", 4.0, 45, 5), *JUDGED[1:]])
    assert (overall.value, overall.low, overall.high) == pytest.approx((0.772, 0.757, 0.777), abs=1e-12)
    assert (overall.failed, overall.reason) == (("correctness",), "")


def test_more_than_a_tenth_of_failures_leaves_only_bounds() -> None:
    # 44 scored with mean 4, 6 failed: (176 + 6)/50 = 3.64 to (176 + 30)/50 = 4.12
    # low 0.572 + 3.64/5*0.25 = 0.754; high 0.572 + 4.12/5*0.25 = 0.778
    overall = overall_from_means(GRAPHRAG, [*RULES, _part("correctness", 4.0, 44, 6), *JUDGED[1:]])
    assert (overall.value, overall.reason) == (None, "failed_share: correctness")
    assert (overall.low, overall.high) == pytest.approx((0.754, 0.778), abs=1e-12)


def test_fully_failed_part_has_the_whole_scale_as_bounds() -> None:
    # 0.572 + 1/5*0.25 = 0.622 to 0.572 + 0.25 = 0.822
    overall = overall_from_means(GRAPHRAG, [*RULES, _part("correctness", None, failed=50), *JUDGED[1:]])
    assert overall.value is None
    assert (overall.low, overall.high) == pytest.approx((0.622, 0.822), abs=1e-12)


def test_a_profile_may_count_failures_as_zero() -> None:
    # correctness (45*4 + 5*0)/50 = 3.6: 0.572 + 3.6/5*0.25 = 0.752, and nothing worse is possible
    profile = GRAPHRAG.model_copy(update={"on_failure": FailureRule.ZERO})
    overall = overall_from_means(profile, [*RULES, _part("correctness", 4.0, 45, 5), *JUDGED[1:]])
    assert (overall.value, overall.low) == pytest.approx((0.752, 0.752), abs=1e-12)


def test_category_has_a_score_only_with_all_parts() -> None:
    overall = overall_from_means(GRAPHRAG, RULES, all_parts=True)
    assert (overall.value, overall.label) == (None, FigureLabel.NONE)
    assert overall.reason == "missing_parts: correctness, faithfulness, completeness"


def test_missing_results_and_missing_parts_have_distinct_reasons() -> None:
    assert overall_from_means(GRAPHRAG, []).reason == "no_parts"
    assert overall_from_means(GRAPHRAG.model_copy(update={"parts": ()}), RULES).reason == "no_overall"


def test_constant_is_not_renormalised() -> None:
    # .2 a + .3 b + .4 c + .1; without c the parts share 0.9 by 2:3: 0.36 * 0.5 + 0.54 * 1 + 0.1 = 0.82
    profile = ProfileSpec.model_validate(
        {
            "name": "p",
            "title": {"en": "T", "ko": "T"},
            "constant": 0.1,
            "parts": [{"metric": "a", "weight": 0.2}, {"metric": "b", "weight": 0.3}, {"metric": "c", "weight": 0.4}],
        }
    )
    overall = overall_from_means(profile, [_part("a", 0.5), _part("b", 1.0), _part("c", None, not_applicable=3)])
    assert overall.value == pytest.approx(0.82, abs=1e-12)


@pytest.mark.parametrize("mean", [None, 0.5, float("nan"), 7.0])
def test_invalid_part_mean_is_refused(mean: float | None) -> None:
    with pytest.raises(ValueError, match="correctness"):
        PartMean("correctness", mean, 3, 0, 0, 1, 5)


def test_duplicate_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        overall_from_means(GRAPHRAG, [*RULES, RULES[0]])


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 60), st.integers(0, 6)), min_size=6, max_size=6),
)
def test_score_is_within_its_bounds_and_between_0_and_1(draws: list[tuple[float, int, int]]) -> None:
    parts = []
    for part, (share, scored, failed) in zip(GRAPHRAG.parts, draws, strict=True):
        low, high = ENDS.get(part.metric, (0, 1))
        parts.append(_part(part.metric, low + share * (high - low), scored, failed))
    overall = overall_from_means(GRAPHRAG, parts)
    if overall.value is not None:
        assert 0 <= overall.value <= 1 + 1e-9
    if overall.low is not None and overall.high is not None:
        middle = overall.low if overall.value is None else overall.value
        assert overall.low - 1e-9 <= middle <= overall.high + 1e-9
