"""Approvals of judge prompts: results of accepted hold-out tests by metric, and whether they hold for a run.

An approval belongs to the rubric version that was accepted for the judges of a name. It holds for a run if:

- the version, model and judge settings are unchanged;
- the question set and language are the same;
- it is not older than ``CONCORD_APPROVAL_DAYS``;
- no anchor check found drift (``review/calibration/anchors.py``);
- at most a tenth of the answers are of categories without a label in the gold set.

The state is computed as of the run's creation, so that reports stay reproducible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db.models import Count

from evaluation.judging.catalogue import family_for
from evaluation.models import JudgeVersion, Preflight, Run, RunJudge
from evaluation.worker.lifecycle import run_answers
from review.models import AnchorShift, GoldItem, HoldoutTestResult, PromptApproval

# Largest share of a run's answers in categories without a label.
MAX_UNSEEN_SHARE = 0.1


def record_approvals(result: HoldoutTestResult, hold_out: Mapping[str, Sequence[GoldItem]], model: str) -> None:
    """Store the approvals of an accepted hold-out test, for each metric and question set; ``model`` is the model
    used."""
    gold_set = result.test.gold_set
    rows = gold_set.items.values_list("metric", "answer__question__question_set__name", "category", "answer")
    known_categories: dict[tuple[int, str], set[str]] = {}
    question_sets: dict[int, str] = {}
    for metric, name, category, answer in rows.distinct():
        known_categories.setdefault((metric, name), set()).add(category)
        question_sets[answer] = name
    tested_items: dict[tuple[int, str], list[GoldItem]] = {}
    for items in hold_out.values():
        for item in items:
            tested_items.setdefault((item.metric_id, question_sets[item.answer_id]), []).append(item)
    PromptApproval.objects.bulk_create(
        PromptApproval(
            result=result,
            metric_id=metric,
            question_set=name,
            answers=len(items),
            groups=len({item.group for item in items}),
            seen=sum(item.seen for item in items),
            categories=sorted(known_categories[metric, name]),
            model=model,
        )
        for (metric, name), items in sorted(tested_items.items())
    )


class ApprovalState(StrEnum):
    """State of an approval for a run."""

    APPROVED = "approved"
    STALE = "stale"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ApprovalLapse:
    """Reason why an approval does not hold: a code of ``evaluation/messages/reasons.py`` and its parameters."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunApproval:
    """Approval of a run's judge on a metric.

    Without a passed test (state ``none``) only the names are filled. ``lapses`` lists all reasons of a stale approval.
    ``look`` is the hold-out test, ``answers`` its number of hold-out answers, and ``seen`` those whose raters had seen
    a judge's value."""

    metric: str
    judge: str
    rubric: str
    state: ApprovalState
    lapses: tuple[ApprovalLapse, ...] = ()
    look: str = ""
    approved_at: datetime | None = None
    answers: int = 0
    seen: int = 0
    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "state": str(self.state),
            "approved_at": self.approved_at and self.approved_at.isoformat(),
        }


def run_approvals(run: Run) -> tuple[RunApproval, ...]:
    """Return the approvals of the run's primary judges, by metric. Five queries at most."""
    run_judges = list(run.judges.filter(primary=True).select_related("judge_version", "rubric_version").order_by("pk"))
    names = {run_judge.judge_version.name for run_judge in run_judges}
    rows = PromptApproval.objects.filter(
        result__test__project=run.project_id,
        result__test__judge_version__name__in=names,
        question_set=run.answer_set.question_set.name,
    ).select_related("metric", "result__test__candidate", "result__test__judge_version")
    passed_results: dict[tuple[str, str, str], list[PromptApproval]] = {}
    for row in rows.order_by("pk"):
        test = row.result.test
        passed_results.setdefault((test.judge_version.name, test.candidate.family, row.metric.name), []).append(row)
    context = (
        _RunContext.load(run, [row.result_id for matches in passed_results.values() for row in matches])
        if passed_results
        else None
    )
    approvals = []
    for run_judge in run_judges:
        family = run_judge.rubric_version.family
        for spec in family_for(run_judge.rubric_version.rubric).produced_metrics:
            matches = passed_results.get((run_judge.judge_version.name, family, spec.name), [])
            approvals.append(_run_approval(spec.name, run_judge, matches, context))
    return tuple(approvals)


@dataclass(frozen=True, slots=True)
class _RunContext:
    """Facts about a run that approvals depend on: creation time, served model by judge, and answers by category.

    ``moved`` holds drift found before the run was created, by hold-out test (key of the result) and metric."""

    made_at: datetime
    served: Mapping[int, str]
    categories: Mapping[str, int]
    moved: Mapping[tuple[int, int], AnchorShift]

    @classmethod
    def load(cls, run: Run, passed_results: Sequence[int]) -> _RunContext:
        served_models = Preflight.objects.filter(run=run, outcome="ok").values_list(
            "judge_version_id", "model_returned"
        )
        category_counts = run_answers(run).order_by().values_list("question__category").annotate(count=Count("pk"))
        shifts = AnchorShift.objects.filter(
            check_of__result__in=passed_results, moved=True, check_of__ended_at__lte=run.created_at
        ).select_related("check_of")
        moved = {(shift.check_of.result_id, shift.metric_id): shift for shift in shifts.order_by("-pk")}
        return cls(run.created_at, dict(served_models), dict(category_counts), moved)


def _run_approval(
    metric: str, run_judge: RunJudge, passed_results: Sequence[PromptApproval], context: _RunContext | None
) -> RunApproval:
    """Return the approval with the fewest lapses, preferring the newest."""
    judge, rubric = str(run_judge.judge_version), str(run_judge.rubric_version)
    if context is None or not passed_results:
        return RunApproval(metric, judge, rubric, ApprovalState.NONE)
    lapses = {row.pk: tuple(_lapses(row, run_judge, context)) for row in passed_results}
    best = min(reversed(passed_results), key=lambda row: len(lapses[row.pk]))
    state = ApprovalState.STALE if lapses[best.pk] else ApprovalState.APPROVED
    return RunApproval(
        metric,
        judge,
        rubric,
        state,
        lapses[best.pk],
        look=str(best.result.test),
        approved_at=best.result.created_at,
        answers=best.answers,
        seen=best.seen,
        model=best.model,
    )


def _lapses(passed_result: PromptApproval, run_judge: RunJudge, context: _RunContext) -> Iterator[ApprovalLapse]:
    test = passed_result.result.test
    if test.candidate.language != run_judge.rubric_version.language:
        yield ApprovalLapse("approval_language", {"language": test.candidate.language})
    elif test.candidate_id != run_judge.rubric_version_id:
        yield ApprovalLapse("approval_rubric", {"rubric": str(test.candidate)})
    served = context.served.get(run_judge.judge_version_id, "")
    if _judge_settings(test.judge_version) != _judge_settings(run_judge.judge_version):
        yield ApprovalLapse("approval_judge", {"judge": str(test.judge_version)})
    elif served and passed_result.model and served != passed_result.model:
        yield ApprovalLapse("approval_model", {"before": passed_result.model, "now": served})
    days = (context.made_at - passed_result.result.created_at).days
    if days > settings.CONCORD_APPROVAL_DAYS:
        yield ApprovalLapse("approval_old", {"days": days, "limit": settings.CONCORD_APPROVAL_DAYS})
    if (shift := context.moved.get((passed_result.result_id, passed_result.metric_id))) and shift.check_of.ended_at:
        day = shift.check_of.ended_at.date().isoformat()
        yield ApprovalLapse("approval_drift", {"change": f"{shift.change:+.2f}", "day": day})
    answers = sum(context.categories.values())
    unseen = {name: count for name, count in context.categories.items() if name not in passed_result.categories}
    if answers and sum(unseen.values()) > MAX_UNSEEN_SHARE * answers:
        share = round(100 * sum(unseen.values()) / answers)
        yield ApprovalLapse("approval_categories", {"share": share, "names": ", ".join(sorted(unseen))})


def _judge_settings(judge: JudgeVersion) -> tuple[Any, ...]:
    """Return the settings that must be equal for an approval to cover another judge version."""
    return judge.endpoint_id, judge.model, judge.params, judge.method
