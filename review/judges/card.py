"""Judge card for the page, Markdown and JSON: prompts and their approval, agreement, attacks, cost and history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext

from evaluation.core.errors import UnknownName
from evaluation.core.scales import Scale
from evaluation.criteria.rubrics import rubric_scope, version_statuses
from evaluation.judging.catalogue import families
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.messages import numbers
from evaluation.models import JudgeVersion, Preflight, Reply, RubricEvent, RubricVersion, Run, RunJudge
from evaluation.models.runs import UNAPPROVED
from evaluation.runs.progress import CACHED, UNSENT
from review.agreement.run_agreement import Breakdown, cached_agreement, cached_agreements
from review.calibration.anchors import CheckSummary, summarize_checks
from review.comparisons.trend import judge_records
from review.judges.pages import attacks_of
from review.models import AnchorCheck, HoldoutTest, PromptApproval
from review.statistics.agreement.catalogue import headline_statistic
from review.statistics.agreement.variance import VarianceSource


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement on a metric in the newest run that measured it.

    ``value`` is the ``statistic`` with its interval. ``experts``, ``baseline`` and ``constant`` are its values among
    experts, for the offline baseline and for the best constant guess. ``bias`` and ``bias_by_category`` are judge minus
    experts. ``bias_by_length`` is Spearman's correlation of that with answer length, with its interval; above 0 the
    judge favours long answers. ``noise`` is the standard deviation of repeats, ``None`` without repeats."""

    metric: str
    statistic: str
    n: int
    value: float | None
    interval: tuple[float, float] | None
    experts: float | None
    baseline: float | None
    constant: float | None
    bias: float | None
    bias_by_category: dict[str, float | None]
    bias_by_length: dict[str, float] | None
    noise: float | None


@dataclass(frozen=True, slots=True)
class ApprovalSummary:
    """An approval of the active version for a metric and question set: date, number of answers, and model."""

    metric: str
    questions: str
    approved_on: str
    answers: int
    seen: int
    model: str


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """Active version of a prompt family.

    ``thousand`` is the cost of 1,000 answers in US dollars, ``None`` if unknown. ``looks`` are the hold-out tests of
    all versions with their outcomes. ``checks`` show drift since approval."""

    family: str
    version: int
    content_hash: str
    text: str
    thousand: float | None
    approvals: list[ApprovalSummary]
    looks: list[str]
    checks: list[CheckSummary]
    history: list[str]


@dataclass(frozen=True, slots=True)
class JudgeCardFile:
    """Content of the judge card.

    ``response_format`` is from the last preflight, ``answered_by`` the model that replied. ``measured_in`` names the
    run of the agreement, or is empty. ``attacks`` is passed of total, empty if none were run."""

    judge: str
    model: str
    language: str
    parameters: dict[str, Any]
    method: str
    response_format: str
    answered_by: str
    attacks: str
    measured_in: str
    agreement: list[JudgeAgreement]
    prompts: list[JudgePrompt]

    @property
    def metrics(self) -> set[str]:
        shifts = (shift for prompt in self.prompts for check in prompt.checks for shift in check.shifts)
        approvals = (approval for prompt in self.prompts for approval in prompt.approvals)
        return {row.metric for rows in (self.agreement, approvals, shifts) for row in rows}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def load_judge_card(judge: JudgeVersion, *, in_words: bool = False) -> JudgeCardFile:
    """Load the current card. ``in_words`` puts hold-out tests and history in the reader's language."""
    preflight = Preflight.objects.filter(judge_version=judge, outcome="ok").order_by("-id").first()
    attacks = attacks_of(judge)
    run_name, agreement = _agreement(judge)
    return JudgeCardFile(
        judge=str(judge),
        model=judge.model,
        language=judge.language,
        parameters=judge.params,
        method=judge.method,
        response_format=preflight.response_format if preflight else "",
        answered_by=preflight.model_returned if preflight else "",
        attacks=attacks.passed if attacks else "",
        measured_in=run_name,
        agreement=agreement,
        prompts=[] if judge.endpoint_id is None else list(_prompts(judge, in_words)),
    )


def _agreement(judge: JudgeVersion) -> tuple[str, list[JudgeAgreement]]:
    """The measured run and its figures. Empty if an unapproved version judged in it.

    Such a run may predate a locked gold set and hold verdicts on its answers."""
    (record,) = judge_records([judge])
    run = record.measured_run
    if run is None or run.judges.filter(judge_version=judge, standing__in=UNAPPROVED).exists():
        return "", []
    agreement = _agreement_rows(str(judge), cached_agreements([run]).get(run.pk, {}))
    return str(run) if agreement else "", agreement


def imported_card(run: Run, author: str) -> JudgeCardFile:
    """Card of an imported judge: its agreement with the experts of a run.

    :raises UnknownName: if no such judge has scores that experts also rated."""
    figures = cached_agreement(run, by=Breakdown.CATEGORY)
    if not (agreement := _agreement_rows(author, figures)):
        known = [
            name
            for name, by_metric in figures["judges"].items()
            if any(metric["imported"] for metric in by_metric.values())
        ]
        raise UnknownName("imported judge", author, known)
    blank_fields = dict.fromkeys(("model", "language", "method", "response_format", "answered_by", "attacks"), "")
    return JudgeCardFile(
        judge=author, parameters={}, measured_in=str(run), agreement=agreement, prompts=[], **blank_fields
    )


def _agreement_rows(author: str, figures: dict[str, Any]) -> list[JudgeAgreement]:
    judges, experts = figures.get("judges", {}), figures.get("experts", {})
    rows = []
    for metric, metric_figures in judges.get(author, {}).items():
        name = _statistic(metric_figures)
        baselines = [
            by_metric[metric].get(name)
            for author, by_metric in judges.items()
            if metric in by_metric and by_metric[metric]["baseline"]
        ]
        interval = metric_figures.get("intervals", {}).get(name)
        rows.append(
            JudgeAgreement(
                metric=metric,
                statistic=name,
                n=metric_figures["n"],
                value=metric_figures.get(name),
                interval=None if interval is None else (interval[0], interval[1]),
                experts=experts.get(metric, {}).get(name),
                baseline=baselines[0] if baselines else None,
                constant=(metric_figures["constant_guess"] or {}).get(name),
                bias=metric_figures.get("bias"),
                bias_by_category={
                    part: part_figures.get("bias")
                    for part, part_figures in metric_figures.get(f"by_{Breakdown.CATEGORY}", {}).items()
                },
                bias_by_length=metric_figures.get("bias_by_length"),
                noise=_noise(figures.get("variance", {}).get(metric, {}), author),
            )
        )
    return rows


def _noise(figures: dict[str, Any], author: str) -> float | None:
    variance = figures.get("variance", {}).get(str(VarianceSource.NOISE)) if figures.get("judge") == author else None
    return None if variance is None else math.sqrt(max(0.0, variance))


def _statistic(figures: dict[str, Any]) -> str:
    return headline_statistic(Scale.parse(figures["scale"]))


def _prompts(judge: JudgeVersion, in_words: bool) -> Iterator[JudgePrompt]:
    """Active version of every family that was activated, tested or used for judging."""
    used = set(RunJudge.objects.filter(judge_version=judge).values_list("rubric_version__family", flat=True))
    looks = HoldoutTest.objects.filter(project=judge.project_id, judge_version__name=judge.name).order_by("pk")
    tests = list(looks.select_related("candidate", "active", "result"))
    for family in families():
        if family not in used | {test.candidate.family for test in tests}:
            continue
        slot = rubric_scope(judge, family)
        active = version_statuses(slot).active
        events = RubricEvent.objects.filter(**slot.columns).select_related("version").order_by("seq")
        yield JudgePrompt(
            family=family,
            version=active.version,
            content_hash=active.content_hash,
            text=rubric_yaml(active.rubric),
            thousand=_cost_of_thousand(judge, active),
            approvals=_approval_summaries(judge, active),
            looks=[_holdout_line(test, in_words) for test in tests if test.candidate.family == family],
            checks=summarize_checks(
                AnchorCheck.objects.filter(
                    result__test__project=judge.project_id,
                    result__test__judge_version__name=judge.name,
                    result__test__candidate=active,
                )
            ),
            history=[_event_line(event, in_words) for event in events],
        )


def _event_line(event: RubricEvent, in_words: bool) -> str:
    words = (event.get_verb_display(), event.get_ground_display()) if in_words else (event.verb, event.ground)
    parts = (event.created_at.date().isoformat(), str(event.version), *words, event.reason)
    return (" · " if in_words else " ").join(filter(None, parts))


def _holdout_line(test: HoldoutTest, in_words: bool) -> str:
    result = test.result if hasattr(test, "result") else None
    if not in_words:
        return f"{test}: {test.candidate} against {test.active}: {result.outcome if result else 'under way'}"
    word = result.get_outcome_display() if result else gettext("in progress")
    names = {"look": test, "candidate": test.candidate, "active": test.active, "word": word}
    return gettext("%(look)s: %(candidate)s against %(active)s: %(word)s") % names


def _approval_summaries(judge: JudgeVersion, active: RubricVersion) -> list[ApprovalSummary]:
    rows = PromptApproval.objects.filter(
        result__test__project=judge.project_id, result__test__judge_version=judge, result__test__candidate=active
    ).select_related("metric", "result")
    return [
        ApprovalSummary(
            metric=row.metric.name,
            questions=row.question_set,
            approved_on=row.result.created_at.date().isoformat(),
            answers=row.answers,
            seen=row.seen,
            model=row.model,
        )
        for row in rows.order_by("pk")
    ]


def _cost_of_thousand(judge: JudgeVersion, active: RubricVersion) -> float | None:
    """Cost of 1,000 answers. Cached replies count at their original cost.

    ``None`` without calls, or if the cost of a call is unknown."""
    unit = "attempt__unit"
    rows = Reply.objects.filter(
        **{f"{unit}__run_judge__judge_version": judge, f"{unit}__run_judge__rubric_version": active}
    )
    totals = rows.aggregate(
        units=Count(unit, distinct=True),
        paid=Sum("cost"),
        saved_cost=Sum("saved"),
        unknown=Count("id", filter=~Q(outcome__in=UNSENT) & Q(cost=None) | Q(outcome=CACHED, saved=None)),
    )
    if not totals["units"] or totals["unknown"]:
        return None
    full_cost = float((totals["paid"] or 0) + (totals["saved_cost"] or 0))
    return full_cost * 1000 / int(totals["units"])


def as_markdown(card: JudgeCardFile) -> str:
    """Render the card as Markdown. Texts by people or models are fenced."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: JudgeCardFile) -> Iterator[str]:
    yield from (f"# {card.judge}", "")
    facts = {
        "model": card.model,
        "language": card.language,
        "scoring method": card.method,
        "response format": card.response_format,
        "answered by": card.answered_by,
        "parameters": ", ".join(f"{name} {value}" for name, value in sorted(card.parameters.items())),
        "attacks passed": card.attacks,
    }
    yield from (f"- {name}: `{value}`" for name, value in facts.items() if value)
    if card.agreement:
        yield from ("", f"## Agreement with experts in {card.measured_in}", "")
        yield "| metric | statistic | n | value | 95% | experts | baseline | constant guess | bias |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for row in card.agreement:
            cells = [_number(value) for value in (row.experts, row.baseline, row.constant, row.bias)]
            interval = numbers.format_interval(*row.interval) if row.interval else "–"
            columns = [row.metric, row.statistic, str(row.n), _number(row.value), interval]
            yield f"| {' | '.join([*columns, *cells])} |"
            parts = ", ".join(f"{name or '–'} {_number(value)}" for name, value in row.bias_by_category.items())
            if len(row.bias_by_category) > 1:
                yield from ("", f"Bias of {row.metric} by category: {parts}", "")
        for row in card.agreement:
            if length_bias := row.bias_by_length:
                interval = numbers.format_interval(length_bias["low"], length_bias["high"])
                yield from (
                    "",
                    f"Bias of {row.metric} with the length of answers: {length_bias['rho']:+.3f} ({interval})",
                )
            if row.noise is not None:
                yield from ("", f"Noise of {row.metric}, the standard deviation of repeats: {row.noise:.3f}")
    for prompt in card.prompts:
        cost = "unknown" if prompt.thousand is None else f"${prompt.thousand:.2f}"
        yield from ("", f"## {prompt.family}@{prompt.version}", "")
        yield f"- hash: `{prompt.content_hash[:12]}`, 1,000 answers cost {cost}"
        for approval in prompt.approvals:
            yield (
                f"- approval: {approval.metric} for {approval.questions}, "
                f"on {approval.approved_on} with {approval.answers} answers ({approval.seen} seen), "
                f"answered by {approval.model or 'unknown'}"
            )
        yield from (f"- hold-out test {line}" for line in prompt.looks)
        yield from (f"- {_check_line(check)}" for check in prompt.checks)
        yield from (f"- {line}" for line in prompt.history)
        yield from ("", "````yaml", prompt.text.rstrip().replace("````", "'''"), "````")


def _check_line(check: CheckSummary) -> str:
    if not check.at:
        return f"check {check.number}: {check.waits_for or 'under way'}"
    moved = ", ".join(
        f"{shift.metric} {shift.change:+.3f}{' (moved)' if shift.moved else ''}" for shift in check.shifts
    )
    text = "reference" if check.number == 0 else moved or "too few verdicts"
    return f"check {check.number} of {check.at} on {check.anchors} anchors: {text}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
