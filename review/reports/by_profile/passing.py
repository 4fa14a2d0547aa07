"""How many answers of a run pass, and why the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.registry import Bilingual
from evaluation.core.samples import Status
from evaluation.metrics.hallucination_flags import AVOIDANCE, FORBIDDEN_NAME, UNKNOWN_PHONE
from evaluation.models import Run
from evaluation.profiles.arithmetic import Passing, PassOrFail, has_passing, pass_or_fail
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import FLAGS, OVERALL, ProfileSpec
from evaluation.scoring.writing import counting
from review.reports.values import Side
from review.statistics.agreement.clopper_pearson import clopper_pearson

Flags = Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class PassRate:
    """Passed / (passed + failed), with the exact 95% interval; ``None`` where nothing is decided. ``below`` counts
    answers under each threshold, by the source's names, ``flags`` answers with each automatic failure; one answer
    may have several."""

    passed: int
    failed: int
    unknown: int
    not_applicable: int
    rate: float | None
    low: float | None
    high: float | None
    below: Mapping[str, int]
    flags: Mapping[str, int]
    flag_titles: Mapping[str, Bilingual]


def flags_of(run: Run, profile: ProfileSpec) -> Flags:
    """The flags of every answer of the run that has any. One query; none for profiles without automatic failures."""
    if not profile.automatic_failures:
        return {}
    rows = counting(run).filter(metric__name=FLAGS, status=Status.SCORED).values_list("answer_id", "detail")
    kinds = (UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE)
    return {pk: frozenset(kind for kind in kinds if detail.get(kind)) for pk, detail in rows}


def each_answer(
    profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags
) -> list[PassOrFail | None]:
    """Whether each answer of a side passes, in their order; ``None`` for one without an overall score to have."""
    found: list[PassOrFail | None] = []
    for at, (answer, one) in enumerate(zip(side.answers, overall, strict=True)):
        if one.status is Status.NOT_APPLICABLE:
            found.append(None)
            continue
        values: dict[str, float | None] = {OVERALL: one.value}
        for name, metric in side.metrics.items():
            value = metric.values[at]
            if name in profile.thresholds and value.status in {Status.SCORED, Status.FAILED}:
                values[name] = value.value
        flagged = side.metrics.get(FLAGS)
        lost = flagged is not None and flagged.values[at].status is Status.FAILED
        found.append(pass_or_fail(profile, values, flags.get(answer.answer_id, frozenset()), lost=lost))
    return found


def pass_rate(profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags) -> PassRate | None:
    """The pass rate of a side; ``None`` for profiles without a rule, or without a score of single answers."""
    if not has_passing(profile) or not overall:
        return None
    each = each_answer(profile, side, overall, flags)
    verdicts = Counter(one.verdict for one in each if one is not None)
    passed, failed = verdicts[Passing.PASSED], verdicts[Passing.FAILED]
    decided = passed + failed
    low, high = clopper_pearson(passed / decided, decided) if decided else (None, None)
    return PassRate(
        passed=passed,
        failed=failed,
        unknown=verdicts[Passing.UNKNOWN],
        not_applicable=each.count(None),
        rate=passed / decided if decided else None,
        low=low,
        high=high,
        below={
            profile.report_name(name): sum(one is not None and name in one.below for one in each)
            for name in profile.thresholds
        },
        flags={
            failure.flag: sum(one is not None and failure.flag in one.flags for one in each)
            for failure in profile.automatic_failures
        },
        flag_titles={failure.flag: failure.title.bilingual for failure in profile.automatic_failures},
    )
