"""The answer page (question and answer, what every scorer said with reasons, what counts, the whole history), and the
rows of a run's answers."""

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
from evaluation.criteria.services import rubric_of
from evaluation.judges.shipping import BASELINE
from evaluation.judging.rubric import shipped_rubric
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, Finding, MetricDefinition, Run, Score
from review.agreement.answers import Event, EventKind, Selected
from review.charts.path import Drawing, drawn
from review.evidence.answers import RunAnswer
from review.evidence.carried import Origin
from review.evidence.effective import RunValues, Source
from review.evidence.rating_input import FlagKind, OverrideReason
from review.ratings.card import CardMetric, Passage, card_metric
from review.ratings.forms import Decided
from review.ratings.pages.card import FLAGS
from review.ratings.pages.item import MetricField, Piece, Span, judge_reason, metric_field, pieces, said, value_text
from review.ratings.pages.reveal import REASONS

STATUS = {"failed": _("failed"), "not_applicable": _("not applicable")}
MARKS = {Source.OVERRIDE: "expert", Source.REVIEW: "expert", Source.JUDGE: "judge", Source.RULE: "rule"}
SOURCES = {
    Source.JUDGE: _("judge"),
    Source.RULE: _("rule"),
    Source.REVIEW: _("experts"),
    Source.OVERRIDE: _("decided by a lead or assigned expert"),
    Source.NONE: _("no value"),
}
EVENTS: Mapping[EventKind, tuple[str, str | Promise]] = {
    EventKind.SCORE: ("judge", _("score")),
    EventKind.INITIAL: ("expert", _("first rating")),
    EventKind.FINAL: ("expert", _("rating after the judge was shown")),
    EventKind.OVERRIDE: ("expert", _("override")),
    EventKind.ADJUDICATION: ("expert", _("adjudication")),
    EventKind.REVERT: ("expert", _("decision taken back")),
    EventKind.FLAG: ("", _("flag")),
    EventKind.ESCALATE: ("", _("handed to a lead")),
    EventKind.SKIP: ("", _("skipped")),
    EventKind.UNDO: ("", _("taken back")),
}


class ScoreView(NamedTuple):
    """What one scorer said of one metric; ``note`` says how the value came about where the scorer did not say it."""

    score: Score
    by: str
    value: str
    note: str
    reason: str


class MetricView(NamedTuple):
    """A metric of the answer: the value that counts (with the mark of who gave it), whose it is or why there is none,
    and what was said; ``origin`` is the equal answer to which it was given. ``field`` asks for an override;
    ``overridden`` tells that a decision stands, which can be taken back. ``idle``: it does not apply to the answer."""

    metric: MetricDefinition
    mark: str
    value: str
    told: str
    unresolved: bool
    scores: tuple[ScoreView, ...]
    field: MetricField
    overridden: bool
    origin: Origin | None
    idle: bool


class Line(NamedTuple):
    """One event of the history. ``mark`` is the shape of who said it; ``run`` is told where there are several."""

    event: Event
    mark: str
    what: str
    run: str
    who: str
    value: str
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """An answer as seen from a run. ``marked`` is the raw text with what rules found in it; ``contexts`` is ``None``
    where the system does not retrieve; ``may_view``: the reader may open the run. ``refused`` is what an override held
    that was refused, for the reason in ``error``. ``graph`` is what the system said of its way through a graph."""

    answer: Answer
    run: Run
    other_runs: Sequence[Run]
    question: QuestionSpec
    marked: tuple[Piece, ...]
    contexts: tuple[Passage, ...] | None
    metrics: tuple[MetricView, ...]
    history: tuple[Line, ...]
    may_override: bool
    may_view: bool
    refused: Decided | None
    error: str
    graph: Graph | None = None

    @property
    def in_use(self) -> list[MetricView]:
        """The metrics that say something of the answer, or have yet to."""
        return [one for one in self.metrics if not one.idle]

    @property
    def idle(self) -> list[MetricView]:
        """Those that do not apply to it."""
        return [one for one in self.metrics if one.idle]

    @property
    def paths(self) -> list[tuple[Drawing, tuple[Relation, ...]]]:
        """The paths that the system told, as pictures and as relations."""
        return [(drawn(path), path) for path in self.graph.paths[:MOST_PATHS]] if self.graph else []


MOST_PATHS = 5


def answer_page(
    answer: Answer,
    run: Run,
    other_runs: Sequence[Run],
    values: RunValues,
    scores: Sequence[Score],
    events: Sequence[Event],
    *,
    may_override: bool,
    may_view: bool,
    refused: Decided | None = None,
    error: str = "",
) -> AnswerPage:
    """The page of an answer, from what the run made of it."""
    language = get_language() or "en"
    findings = [finding for score in scores for finding in score.findings.all()]
    runs = {one.pk: str(one) for one in (run, *other_runs)} if other_runs else {}
    metrics = []
    for pk, metric in values.metrics.items():
        if (one := values.values[pk].get(answer.pk)) is None:
            continue
        entered = refused.entered if refused and refused.metric == metric else ""
        told = "" if one.source is Source.NONE else str(SOURCES[one.source])
        metrics.append(
            MetricView(
                metric=metric,
                mark=MARKS.get(one.source, ""),
                value=value_text(one, metric.read_scale()),
                told=told + (explain_reason(one.reason) if said(one) is None and one.reason else ""),
                unresolved=one.unresolved,
                scores=tuple(_score(row, metric) for row in scores if row.metric_id == metric.pk),
                field=metric_field(as_asked(metric, language), entered),
                overridden=one.source is Source.OVERRIDE,
                origin=one.carried,
                idle=one.status is Status.NOT_APPLICABLE and not (refused and refused.metric == metric),
            )
        )
    return AnswerPage(
        answer=answer,
        run=run,
        other_runs=other_runs,
        question=answer.question.read(),
        marked=pieces(answer.text, _spans(findings)) if any(f.start is not None for f in findings) else (),
        contexts=_contexts(answer) if answer.retrieves else None,
        metrics=tuple(metrics),
        history=tuple(_line(event, runs.get(event.run_id or 0, "")) for event in reversed(events)),
        may_override=may_override,
        may_view=may_view,
        refused=refused,
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
        value=str(STATUS[row.status]) if said(row) is None else value_text(row, metric.read_scale()),
        note=_note(row, metric),
        reason=judge_reason(row.reason) if row.status == "scored" else explain_reason(row.reason),
    )


def _note(row: Score, metric: MetricDefinition) -> str:
    if row.detail.get("method") != "expected":
        return ""
    told = {
        "said": numbers.on_scale(row.detail["said"], metric.read_scale()),
        "mass": numbers.share(row.detail["mass"]),
    }
    return gettext("expected over token probabilities (%(mass)s of them covered); the judge said %(said)s") % told


def as_asked(metric: MetricDefinition, language: str) -> CardMetric:
    """The metric with question and level texts of the criterion's or the shipped rubric, where it has one."""
    stored = rubric_of(metric, language)
    if stored is not None:
        rubric = stored.rubric
        return card_metric(metric, rubric.metric(metric.name), language, rubric.language)
    try:
        asked = shipped_rubric(metric.rubric_family, language).metric(metric.name) if metric.rubric_family else None
    except UnknownName:
        asked = None
    return card_metric(metric, asked, language, language)


def _spans(findings: Iterable[Finding]) -> list[Span]:
    return [
        Span(f.start, f.end, f"{f.kind}: {f.verdict or f.text}")
        for f in findings
        if f.start is not None and f.end is not None
    ]


def _contexts(answer: Answer) -> tuple[Passage, ...]:
    rows = answer.contexts.all()
    return tuple(Passage(row.position + 1, row.source or row.chunk_id, row.text, "") for row in rows)


def _line(event: Event, run: str) -> Line:
    mark, what = EVENTS[event.kind]
    if event.kind is EventKind.SCORE and not event.who:
        mark = "rule"
    text = judge_reason(event.text) if event.kind is EventKind.SCORE else event.text
    return Line(event, mark, str(what), run, _who(event), _value(event), _why(event), text)


def _value(event: Event) -> str:
    if event.status == "cannot_judge":
        return gettext("cannot judge")
    if said(event) is None:
        return ""
    return value_text(event, event.metric.read_scale()) if event.metric else str(said(event))


def _why(event: Event) -> str:
    if event.code in set(OverrideReason):
        return str(REASONS[OverrideReason(event.code)])
    if event.code in set(FlagKind):
        return str(FLAGS[FlagKind(event.code)])
    return explain_reason(event.code) if event.code else ""


def _who(event: Event) -> str:
    if event.kind is EventKind.SCORE and event.who.partition("@")[0] == BASELINE:
        return str(_("offline baseline"))
    return event.who or str(_("rule"))


class AnswerRow(NamedTuple):
    """An answer with the value that counts and whose it is."""

    answer: RunAnswer
    value: str
    mark: str
    source: str


def answer_row(one: Selected, metric: MetricDefinition | None) -> AnswerRow:
    """An answer as a row."""
    effective = one.effective
    source = effective.source if effective else Source.NONE
    if metric is None or said(effective) is None:
        value = explain_reason(effective.reason) if effective and effective.reason else gettext("no value")
    else:
        value = value_text(effective, metric.read_scale())
    told = gettext("experts, of an equal answer") if effective and effective.carried else str(SOURCES[source])
    return AnswerRow(one.answer, value, MARKS.get(source, ""), told)


def choices_of(metric: MetricDefinition) -> list[tuple[str, str]]:
    """The values a decision can give, with their titles; none where a number of the scale is asked for."""
    scale = metric.read_scale()
    if scale.labels:
        return [(label, label) for label in scale.labels]
    return [(f"{level:g}", numbers.on_scale(float(level), scale)) for level in scale.levels]
