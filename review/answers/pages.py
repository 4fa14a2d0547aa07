"""Answer page with scores, reasons, effective values and history, and rows of a run's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import UnknownName
from evaluation.core.graph import Graph, Relation, read_graph
from evaluation.core.samples import QuestionSpec, Status
from evaluation.criteria.services import rubric_for_metric
from evaluation.judges.shipped import BASELINE
from evaluation.judging.rubric import shipped_rubric
from evaluation.messages import numbers
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, Finding, MetricDefinition, Run, Score
from review.agreement.answers import EventKind, HistoryEvent, SelectedAnswer
from review.charts.graph_path import Drawing, draw_path
from review.evidence.answers import RunAnswer
from review.evidence.carried import RatingOrigin
from review.evidence.effective import RunValues, ValueSource
from review.evidence.rating_input import FlagKind, OverrideReason
from review.ratings.card import CardMetric, Passage, card_metric
from review.ratings.forms import DecisionInput
from review.ratings.pages.card import FLAGS
from review.ratings.pages.item import (
    MetricField,
    TextPiece,
    TextSpan,
    judge_reason,
    metric_field,
    split_at_spans,
    value_or_label,
    value_text,
)
from review.ratings.pages.reveal import REASONS

STATUS = {"failed": _("failed"), "not_applicable": _("not applicable")}
MARKS = {
    ValueSource.OVERRIDE: "expert",
    ValueSource.REVIEW: "expert",
    ValueSource.JUDGE: "judge",
    ValueSource.RULE: "rule",
}
SOURCES = {
    ValueSource.JUDGE: _("judge"),
    ValueSource.RULE: _("rule"),
    ValueSource.REVIEW: _("experts"),
    ValueSource.OVERRIDE: _("decided by a lead or assigned expert"),
    ValueSource.NONE: _("no value"),
}
EVENTS: Mapping[EventKind, tuple[str, str | Promise]] = {
    EventKind.SCORE: ("judge", _("score")),
    EventKind.INITIAL: ("expert", _("first rating")),
    EventKind.FINAL: ("expert", _("rating after seeing the judge")),
    EventKind.OVERRIDE: ("expert", _("override")),
    EventKind.ADJUDICATION: ("expert", _("adjudication")),
    EventKind.REVERT: ("expert", _("decision reverted")),
    EventKind.FLAG: ("", _("flag")),
    EventKind.ESCALATE: ("", _("sent to a lead")),
    EventKind.SKIP: ("", _("skipped")),
    EventKind.UNDO: ("", _("undone")),
}


class ScoreView(NamedTuple):
    """A scorer's value of a metric. ``note`` explains a value that the judge did not state itself."""

    score: Score
    by: str
    value: str
    note: str
    reason: str


class MetricView(NamedTuple):
    """A metric of the answer: its effective value, where that comes from or why it is missing, and all scores.

    ``mark`` is the shape of the value's author. ``origin`` is the equal answer that was rated. ``field`` is the
    override form field. ``overridden``: a decision can be taken back. ``idle``: the metric does not apply."""

    metric: MetricDefinition
    mark: str
    value: str
    provenance: str
    unresolved: bool
    scores: tuple[ScoreView, ...]
    field: MetricField
    overridden: bool
    origin: RatingOrigin | None
    idle: bool


class HistoryLine(NamedTuple):
    """An event of the history. ``mark`` is the shape of its author. ``run`` is set if there are several runs."""

    event: HistoryEvent
    mark: str
    title: str
    run: str
    author: str
    value: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """An answer as seen from a run.

    ``marked`` is the raw text with the findings of rules. ``contexts`` is ``None`` if the system does not retrieve.
    ``may_view``: the reader may open the run. ``refused_decision`` is a rejected override, for the reason in ``error``.
    ``graph`` is the system's path through a graph."""

    answer: Answer
    run: Run
    other_runs: Sequence[Run]
    question: QuestionSpec
    marked: tuple[TextPiece, ...]
    contexts: tuple[Passage, ...] | None
    metrics: tuple[MetricView, ...]
    history: tuple[HistoryLine, ...]
    may_override: bool
    may_view: bool
    refused_decision: DecisionInput | None
    error: str
    graph: Graph | None = None

    @property
    def in_use(self) -> list[MetricView]:
        """Metrics that apply to the answer or are pending."""
        return [metric for metric in self.metrics if not metric.idle]

    @property
    def idle(self) -> list[MetricView]:
        return [metric for metric in self.metrics if metric.idle]

    @property
    def paths(self) -> list[tuple[Drawing, tuple[Relation, ...]]]:
        """Paths that the system reported, as drawings and as relations."""
        return [(draw_path(path), path) for path in self.graph.paths[:MAX_PATHS]] if self.graph else []


MAX_PATHS = 5


def answer_page(
    answer: Answer,
    run: Run,
    other_runs: Sequence[Run],
    values: RunValues,
    scores: Sequence[Score],
    events: Sequence[HistoryEvent],
    *,
    may_override: bool,
    may_view: bool,
    refused_decision: DecisionInput | None = None,
    error: str = "",
) -> AnswerPage:
    language = get_language() or "en"
    findings = [finding for score in scores for finding in score.findings.all()]
    runs = {listed_run.pk: str(listed_run) for listed_run in (run, *other_runs)} if other_runs else {}
    metrics = []
    for pk, metric in values.metrics.items():
        if (effective := values.values[pk].get(answer.pk)) is None:
            continue
        entered = refused_decision.entered if refused_decision and refused_decision.metric == metric else ""
        provenance = "" if effective.source is ValueSource.NONE else str(SOURCES[effective.source])
        metrics.append(
            MetricView(
                metric=metric,
                mark=MARKS.get(effective.source, ""),
                value=value_text(effective, metric.read_scale()),
                provenance=provenance
                + (explain_reason(effective.reason) if value_or_label(effective) is None and effective.reason else ""),
                unresolved=effective.unresolved,
                scores=tuple(_score(row, metric) for row in scores if row.metric_id == metric.pk),
                field=metric_field(with_rubric_texts(metric, language), entered),
                overridden=effective.source is ValueSource.OVERRIDE,
                origin=effective.carried,
                idle=effective.status is Status.NOT_APPLICABLE
                and not (refused_decision and refused_decision.metric == metric),
            )
        )
    return AnswerPage(
        answer=answer,
        run=run,
        other_runs=other_runs,
        question=answer.question.read(),
        marked=split_at_spans(answer.text, _spans(findings)) if any(f.start is not None for f in findings) else (),
        contexts=_contexts(answer) if answer.retrieves else None,
        metrics=tuple(metrics),
        history=tuple(_history_line(event, runs.get(event.run_id or 0, "")) for event in reversed(events)),
        may_override=may_override,
        may_view=may_view,
        refused_decision=refused_decision,
        error=error,
        graph=read_graph(answer.metadata.get("graph")),
    )


def _score(row: Score, metric: MetricDefinition) -> ScoreView:
    judge = row.judge_version
    by = gettext("rule") if judge is None else str(judge)
    if judge is not None and judge.is_baseline:
        by = gettext("offline baseline")
    return ScoreView(
        score=row,
        by=row.author or by,
        value=str(STATUS[row.status]) if value_or_label(row) is None else value_text(row, metric.read_scale()),
        note=_note(row, metric),
        reason=judge_reason(row.reason) if row.status == "scored" else explain_reason(row.reason),
    )


def _note(row: Score, metric: MetricDefinition) -> str:
    if row.detail.get("method") != "expected":
        return ""
    params = {
        "said": numbers.on_scale(row.detail["said"], metric.read_scale()),
        "mass": numbers.format_share(row.detail["mass"]),
    }
    return gettext("expected value over token probabilities (%(mass)s covered). Stated by the judge: %(said)s") % params


def with_rubric_texts(metric: MetricDefinition, language: str) -> CardMetric:
    """The metric with question and level texts of its custom or shipped rubric, if it has one."""
    stored = rubric_for_metric(metric, language)
    if stored is not None:
        rubric = stored.rubric
        return card_metric(metric, rubric.metric(metric.name), language, rubric.language)
    try:
        metric_texts = (
            shipped_rubric(metric.rubric_family, language).metric(metric.name) if metric.rubric_family else None
        )
    except UnknownName:
        metric_texts = None
    return card_metric(metric, metric_texts, language, language)


def _spans(findings: Iterable[Finding]) -> list[TextSpan]:
    return [
        TextSpan(f.start, f.end, f"{f.kind}: {f.verdict or f.text}")
        for f in findings
        if f.start is not None and f.end is not None
    ]


def _contexts(answer: Answer) -> tuple[Passage, ...]:
    rows = answer.contexts.all()
    return tuple(Passage(row.position + 1, row.source or row.chunk_id, row.text, "") for row in rows)


def _history_line(event: HistoryEvent, run: str) -> HistoryLine:
    mark, title = EVENTS[event.kind]
    if event.kind is EventKind.SCORE and not event.who:
        mark = "rule"
    text = judge_reason(event.text) if event.kind is EventKind.SCORE else event.text
    return HistoryLine(event, mark, str(title), run, _author_name(event), _value_text(event), _reason_text(event), text)


def _value_text(event: HistoryEvent) -> str:
    if event.status == "cannot_judge":
        return gettext("cannot judge")
    if value_or_label(event) is None:
        return ""
    return value_text(event, event.metric.read_scale()) if event.metric else str(value_or_label(event))


def _reason_text(event: HistoryEvent) -> str:
    if event.code in set(OverrideReason):
        return str(REASONS[OverrideReason(event.code)])
    if event.code in set(FlagKind):
        return str(FLAGS[FlagKind(event.code)])
    return explain_reason(event.code) if event.code else ""


def _author_name(event: HistoryEvent) -> str:
    if event.kind is EventKind.SCORE and event.who.partition("@")[0] == BASELINE:
        return str(_("offline baseline"))
    return event.who or str(_("rule"))


class AnswerRow(NamedTuple):
    """An answer with its effective value and the value's source."""

    answer: RunAnswer
    value: str
    mark: str
    source: str


def answer_row(selected: SelectedAnswer, metric: MetricDefinition | None) -> AnswerRow:
    effective = selected.effective
    source = effective.source if effective else ValueSource.NONE
    if metric is None or value_or_label(effective) is None:
        value = explain_reason(effective.reason) if effective and effective.reason else gettext("no value")
    else:
        value = value_text(effective, metric.read_scale())
    provenance = (
        gettext("experts, for an identical answer") if effective and effective.carried else str(SOURCES[source])
    )
    return AnswerRow(selected.answer, value, MARKS.get(source, ""), provenance)


def decision_choices(metric: MetricDefinition) -> list[tuple[str, str]]:
    """Values that a decision can choose, with titles. Empty if the scale takes any number."""
    scale = metric.read_scale()
    if scale.labels:
        return [(label, label) for label in scale.labels]
    return [(f"{level:g}", numbers.on_scale(float(level), scale)) for level in scale.levels]
