"""Metrics derived from other results of the same answer: the overall score of an answer under a per-answer profile,
whose mean is the run's, and the RAGAS score. ``DERIVED_METRICS`` lists them all.

Parts that do not apply to the question or the system are left out and the others renormalised; the weights used are
part of the result. A part that does not apply because of the *answer* (no claims) keeps its weight and adds 0 for an
answerable question. An answer without content gets the lowest score. A failed part makes the answer's score failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from evaluation.core.metric_specs import Bilingual, MetricKind, MetricSpec
from evaluation.core.samples import (
    ANSWER_REASONS,
    JUDGE_ONLY_REASONS,
    NEGATIVE_CATEGORY,
    SAYS_NOTHING,
    Result,
    Status,
    reason_code,
)
from evaluation.core.scales import PERCENT, ReviewForm, Scale
from evaluation.profiles.arithmetic import (
    MAX_FAILED_SHARE,
    MissingReason,
    Overall,
    included_weight,
    label_of,
    lost_share,
    missing_parts,
    on_unit_scale,
    reason_with_names,
    renormalised_weights,
    round_for_comparison,
    withheld_overall,
    worst_value,
)
from evaluation.profiles.spec import (
    OVERALL,
    RAGAS_SCORE,
    EmptyAnswerRule,
    FailureRule,
    OverallUnit,
    ProfilePart,
    ProfileSpec,
)


@dataclass(frozen=True, slots=True)
class PartValue:
    """A metric's result on one answer, with the ends of its scale and the ``reason`` for a missing value.

    :raises ValueError: if value and status do not fit."""

    metric: str
    status: Status
    low: float
    high: float
    value: float | None = None
    reason: str = ""

    @property
    def code(self) -> str:
        """The reason code of a not applicable result, else empty."""
        return reason_code(self.reason) if self.status is Status.NOT_APPLICABLE else ""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status is Status.SCORED):
            raise ValueError(f"{self.metric}: a value belongs to a scored result and to no other")


@dataclass(frozen=True, slots=True)
class AnswerOverall:
    """The score of one answer. ``weights_used`` are the parts' weights after renormalisation, failed parts included;
    ``contributions`` are weight x value on the unit scale of the parts that count. ``zeroed`` are parts that added 0
    because of the answer, ``unconfirmed`` those that are not applicable by the judge's word alone. ``low`` and
    ``high`` are the bounds of a failed answer."""

    status: Status
    value: float | None = None
    reason: str = ""
    weights_used: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    zeroed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    unconfirmed: tuple[str, ...] = ()


def overall_of_answer(
    profile: ProfileSpec, values: Sequence[PartValue], *, category: str = "", answerable: bool = True
) -> AnswerOverall:
    """The score of an answer to a question of ``category``. ``values`` has one entry for each computed metric;
    ``answerable`` is false for questions whose right answer is to abstain.

    :raises ValueError: if a metric is given twice."""
    by_metric = {value.metric: value for value in values}
    if len(by_metric) != len(values):
        raise ValueError("a metric is given twice")
    whole_score = profile.whole_score
    if whole_score is not None and category in whole_score.categories:
        return _whole_score(profile, by_metric.get(whole_score.metric), whole_score.metric)
    if missing_required := [name for name in profile.requires if _does_not_apply(by_metric.get(name))]:
        return AnswerOverall(Status.NOT_APPLICABLE, reason=reason_with_names("no_parts", missing_required))
    if any(value.code == SAYS_NOTHING for value in values):
        by_metric = {name: _at_low_end(value) for name, value in by_metric.items()}
    substituted = [_substitute_part(part, by_metric) for part in profile.parts if part.applies_to(category)]
    present = [part for part in substituted if part.metric in by_metric]
    counted = [part for part in present if _keeps_weight(profile, by_metric[part.metric], answerable=answerable)]
    unconfirmed = tuple(p.metric for p in present if by_metric[p.metric].code in JUDGE_ONLY_REASONS)
    if not counted:
        return AnswerOverall(Status.NOT_APPLICABLE, reason="no_parts", unconfirmed=unconfirmed)
    weights = renormalised_weights(profile, counted)
    failed = tuple(p.metric for p in counted if by_metric[p.metric].status is Status.FAILED)
    zeroed = tuple(p.metric for p in counted if by_metric[p.metric].status is Status.NOT_APPLICABLE)

    def weighted(end: str = "") -> list[float]:
        return [weights[p.metric] * _unit_value(profile, p, by_metric[p.metric], end) for p in counted]

    low, high = (profile.constant + sum(weighted(end)) for end in ("low", "high"))
    if failed and profile.on_failure is FailureRule.EXCLUDE:
        reason = reason_with_names("failed_part", failed)
        return AnswerOverall(Status.FAILED, None, reason, weights, {}, zeroed, failed, low, high, unconfirmed)
    contributions = MappingProxyType(dict(zip((p.metric for p in counted), weighted(), strict=True)))
    return AnswerOverall(
        Status.SCORED,
        profile.constant + sum(contributions.values()),
        weights_used=weights,
        contributions=contributions,
        zeroed=zeroed,
        failed=failed,
        low=low if failed else None,
        high=high if failed else None,
        unconfirmed=unconfirmed,
    )


def count_reweighted(profile: ProfileSpec, answers: Sequence[AnswerOverall]) -> int:
    """The number of answers in which a part weighs more than in the profile, because another did not apply. Answers
    scored by one whole-score metric do not count."""
    weights = {name: part.weight for part in profile.parts for name in (part.metric, part.otherwise)}
    whole_score_metrics = {profile.whole_score.metric} if profile.whole_score else set()
    return sum(
        answer.weights_used.keys() != whole_score_metrics
        and any(
            round_for_comparison(weight - weights.get(name, weight)) > 0 for name, weight in answer.weights_used.items()
        )
        for answer in answers
    )


def overall_from_answers(
    profile: ProfileSpec, answers: Sequence[AnswerOverall], computed: Sequence[str], *, all_parts: bool = False
) -> Overall:
    """The mean of the answers' scores, for a run or a category. ``computed`` names the metrics the run computed;
    ``all_parts``: give no figure unless every part occurs in some answer."""
    applicable = [answer for answer in answers if answer.status is not Status.NOT_APPLICABLE]
    used_metrics = {metric for answer in applicable for metric in answer.weights_used}
    present = [part for part in profile.parts if {part.metric, part.otherwise} & used_metrics]
    missing = missing_parts(profile, present, dict.fromkeys(computed))
    empty = not applicable or (not present and any(part.gap is MissingReason.ABSENT for part in missing))
    if withheld := withheld_overall(profile, missing, all_parts=all_parts, empty=empty):
        return withheld
    failed = tuple(dict.fromkeys(metric for answer in applicable for metric in answer.failed))
    lost_metrics = dict.fromkeys((*failed, *(metric for answer in answers for metric in answer.unconfirmed)))
    incomplete = [metric for metric in lost_metrics if _lost_share_of(answers, metric) > MAX_FAILED_SHARE]
    scores = [answer.value for answer in applicable if answer.value is not None]
    return Overall(
        value=None if incomplete or not scores else sum(scores) / len(scores),
        label=label_of(present, missing),
        reason=reason_with_names("failed_share", incomplete or failed) if incomplete or not scores else "",
        weight=included_weight(profile, present),
        missing=missing,
        failed=failed,
        low=_mean_bound(applicable, "low") if failed else None,
        high=_mean_bound(applicable, "high") if failed else None,
    )


def _does_not_apply(value: PartValue | None) -> bool:
    return value is None or value.status is Status.NOT_APPLICABLE


def _substitute_part(part: ProfilePart, by_metric: Mapping[str, PartValue]) -> ProfilePart:
    """The part with its own metric, or the alternative one if its own does not apply."""
    if part.otherwise in by_metric and _does_not_apply(by_metric.get(part.metric)):
        return part.model_copy(update={"metric": part.otherwise})
    return part


def _keeps_weight(profile: ProfileSpec, value: PartValue, *, answerable: bool) -> bool:
    if value.status is not Status.NOT_APPLICABLE:
        return True
    return value.code in ANSWER_REASONS and answerable and profile.on_empty_answer is EmptyAnswerRule.ZERO


def _at_low_end(value: PartValue) -> PartValue:
    """The value at the low end of its scale; a not applicable one is unchanged."""
    if value.status is Status.NOT_APPLICABLE:
        return value
    return replace(value, status=Status.SCORED, value=value.low, reason="")


def _whole_score(profile: ProfileSpec, value: PartValue | None, metric: str) -> AnswerOverall:
    """The score from the single deciding metric, scaled to 0 to 1."""
    weights = MappingProxyType({metric: 1.0})
    if value is None or value.status is Status.NOT_APPLICABLE:
        return AnswerOverall(Status.NOT_APPLICABLE, reason=reason_with_names("no_parts", [metric]))
    if value.value is None:
        if profile.on_failure is FailureRule.ZERO:
            return AnswerOverall(Status.SCORED, 0.0, weights_used=weights, failed=(metric,), low=0.0, high=1.0)
        reason = reason_with_names("failed_part", [metric])
        return AnswerOverall(Status.FAILED, None, reason, weights, failed=(metric,), low=0.0, high=1.0)
    score = (value.value - value.low) / (value.high - value.low)
    return AnswerOverall(Status.SCORED, score, weights_used=weights, contributions=MappingProxyType({metric: score}))


def _unit_value(profile: ProfileSpec, part: ProfilePart, value: PartValue, end: str = "") -> float:
    """The part's value on the unit scale; a failed one is 0 or at the requested end, one without content is 0."""
    if value.value is not None:
        return on_unit_scale(profile, part, value.value, value.low, value.high)
    if value.status is Status.NOT_APPLICABLE or not end:
        return 0.0
    extreme = value.high if end == "high" else worst_value(profile, value.low)
    return on_unit_scale(profile, part, extreme, value.low, value.high)


def _lost_share_of(answers: Sequence[AnswerOverall], metric: str) -> float:
    """The share of failed and unconfirmed results among the expected ones."""
    failed = sum(metric in answer.failed for answer in answers)
    unconfirmed = sum(metric in answer.unconfirmed for answer in answers)
    expected = sum(metric in answer.weights_used and metric not in answer.unconfirmed for answer in answers)
    return round_for_comparison(lost_share(expected - failed, failed, unconfirmed))


def _mean_bound(answers: Sequence[AnswerOverall], end: str) -> float:
    """The mean with answers that have bounds at the given end; the others count with their value."""
    bounds = [(answer.low if end == "low" else answer.high, answer.value or 0.0) for answer in answers]
    return sum(value if bound is None else bound for bound, value in bounds) / len(answers)


ANSWER_OVERALL = MetricSpec(
    name="answer_overall",
    kind=MetricKind.DERIVED,
    title=Bilingual("Overall score of the answer", "답변 종합 점수"),
    formula=Bilingual(
        "the profile's weights x the parts on a scale from 0 to 1, plus its constant; parts that do not apply to the "
        "question or the system are left out and the others renormalised",
        "프로필의 가중치 x 0~1로 바꾼 항목 값의 합 + 상수. 질문이나 시스템에 해당하지 않는 항목은 빼고 나머지를 다시 "
        "정규화함",
    ),
    source="",
    review_form=ReviewForm.NONE,
)


def has_answer_overall(profile: ProfileSpec) -> bool:
    """Return whether the profile scores single answers."""
    return profile.unit is OverallUnit.PER_ANSWER and bool(profile.parts)


def answer_overall(
    profile: ProfileSpec, results: Mapping[str, Result], scales: Mapping[str, Scale], category: str
) -> Result:
    """The score of an answer to a question of ``category``, with the weights used in its detail."""
    profile_metrics = profile.metrics
    values = [
        PartValue(
            name,
            result.status,
            scales[name].low,
            scales[name].high,
            result.value,
            "" if result.status is Status.SCORED else result.reason,
        )
        for name, result in results.items()
        if name in profile_metrics and not scales[name].labels
    ]
    return _as_result(overall_of_answer(profile, values, category=category, answerable=category != NEGATIVE_CATEGORY))


def _as_result(overall: AnswerOverall) -> Result:
    detail = {"weights": dict(overall.weights_used), "contributions": dict(overall.contributions)}
    if overall.zeroed:
        detail["zeroed"] = dict.fromkeys(overall.zeroed, 0.0)
    if overall.low is not None and overall.high is not None:
        detail["bounds"] = {"low": overall.low, "high": overall.high}
    if overall.status is Status.SCORED and overall.value is not None:
        return Result.scored(overall.value, detail=detail)
    if overall.status is Status.FAILED:
        return Result.failed(overall.reason, detail=detail)
    return Result.not_applicable(overall.reason)


@dataclass(frozen=True, slots=True)
class DerivedMetric:
    """A specification whose ``inputs`` are names of metrics, and the function that computes it from their results."""

    spec: MetricSpec
    compute: Callable[[Mapping[str, Result]], Result]


RAGAS_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"claim_support": 0.30, "context_precision": 0.20, "context_recall": 0.20, "answer_relevance": 0.30}
)
_TO_PERCENT: Mapping[str, float] = MappingProxyType({"claim_support": 100.0})


def ragas_score(results: Mapping[str, Result]) -> Result:
    """The RAGAS score of an answer, 0 to 100, from the results of its parts; uncomputed ones are missing. An answer
    without content gets 0. A failed part makes it failed (``failed_part: NAME, ...``); without any part it is not
    applicable (``no_parts``)."""
    if any(reason_code(results[name].reason) == SAYS_NOTHING for name in RAGAS_WEIGHTS if name in results):
        return Result.scored(0.0, detail={"weights": {}, "missing": []})
    computed = {name: results[name] for name in RAGAS_WEIGHTS if name in results}
    if failed_metrics := [name for name, result in computed.items() if result.status is Status.FAILED]:
        return Result.failed(f"failed_part: {', '.join(failed_metrics)}")
    values = {
        name: result.value * _TO_PERCENT.get(name, 1.0)
        for name, result in computed.items()
        if result.status is Status.SCORED and result.value is not None
    }
    if not values:
        return Result.not_applicable("no_parts")
    total = sum(RAGAS_WEIGHTS[name] for name in values)
    weights_used = {name: RAGAS_WEIGHTS[name] / total for name in values}
    detail = {"weights": weights_used, "missing": [name for name in RAGAS_WEIGHTS if name not in values]}
    return Result.scored(sum(weights_used[name] * value for name, value in values.items()), detail=detail)


_RAGAS_SCORE = MetricSpec(
    name=RAGAS_SCORE,
    kind=MetricKind.DERIVED,
    scale=PERCENT,
    title=Bilingual("RAGAS score", "RAGAS 종합 점수"),
    formula=Bilingual(
        "0.3 x faithfulness (claim_support x 100) + 0.2 x context_precision + 0.2 x context_recall + 0.3 x "
        "answer_relevance, with the profile's weights if it has them; metrics that do not apply are left out and the "
        "sum is divided by the remaining weights; 0 for an answer without content",
        "0.3 x 충실도(claim_support x 100) + 0.2 x context_precision + 0.2 x context_recall + 0.3 x answer_relevance. "
        "프로필이 이 네 지표의 가중치를 정하면 그 가중치를 씀. 해당하지 않는 것은 빼고 나머지 가중치의 합으로 나눔. "
        "아무 내용도 없는 답변은 0",
    ),
    source="ragas",
    inputs=tuple(RAGAS_WEIGHTS),
    review_form=ReviewForm.NONE,
)
DERIVED_METRICS = (DerivedMetric(_RAGAS_SCORE, ragas_score),)


def derived_results(
    profile: ProfileSpec, results: Mapping[str, Result], scales: Mapping[str, Scale], category: str
) -> dict[str, Result]:
    """The profile's derived metrics for one answer, and its overall score under a per-answer profile. Where both are
    the same score, ``ragas_score`` is the overall score times 100."""
    derived = {m.spec.name: m.compute(results) for m in DERIVED_METRICS if m.spec.name in profile.metrics}
    if not has_answer_overall(profile):
        return derived
    is_overall = RAGAS_SCORE in derived and _is_ragas_profile(profile)
    inputs = results if is_overall else {**results, **derived}
    input_scales = {**scales, **{m.spec.name: m.spec.scale for m in DERIVED_METRICS}}
    overall = answer_overall(profile, inputs, input_scales, category)
    if is_overall:
        missing = [part.metric for part in profile.parts if part.metric not in overall.detail.get("weights", ())]
        value = None if overall.value is None else overall.value * PERCENT.high
        derived[RAGAS_SCORE] = replace(overall, value=value, detail={**overall.detail, "missing": missing})
    return {**derived, ANSWER_OVERALL.name: overall}


def _is_ragas_profile(profile: ProfileSpec) -> bool:
    """Return whether the profile's overall score is the RAGAS score: it has that name, or weighs the same
    four metrics."""
    return (
        profile.report_name(OVERALL) == RAGAS_SCORE or {part.metric for part in profile.parts} == RAGAS_WEIGHTS.keys()
    )
