"""The answer page: question and answer, what every scorer said with reasons, what counts, and the whole history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import UnknownName
from evaluation.core.samples import QuestionSpec
from evaluation.criteria.active_criteria import rubric_of
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import Answer, Finding, MetricDefinition, Run, Score
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.evidence.effective import Effective, RunValues, Source
from review.ratings.card import CardMetric, card_metric
from review.results.history import Event
from review.web.pages import finding_names
from review.web.pages.choices import MetricField, metric_field
from review.web.pages.history import Line, history_lines
from review.web.pages.marked import Piece, Span, pieces
from review.web.pages.passages import PassageView
from review.web.pages.review_card import Text, text

STATUS = {"failed": _("failed"), "not_applicable": _("not applicable")}
MARKS = {Source.OVERRIDE: "expert", Source.REVIEW: "expert", Source.JUDGE: "judge", Source.RULE: "rule"}


@dataclass(frozen=True, slots=True)
class FindingView:
    """A part of a score: a keyword, claim or flag, with its verdict."""

    kind: str
    text: str
    verdict: str
    context: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ScoreView:
    """What one scorer said of one metric; ``note`` says how the value came about where the scorer did not say it."""

    by: str
    value: str
    note: str
    rubric: str
    reason: str
    findings: tuple[FindingView, ...]


@dataclass(frozen=True, slots=True)
class MetricView:
    """A metric of the answer: the value that counts (with the mark of who gave it) and what was said. ``field`` asks
    for an override; ``overridden`` tells that a decision stands, which can be taken back."""

    metric_id: int
    title: str
    mark: str
    value: str
    why_none: str
    source: str
    unresolved: bool
    scores: tuple[ScoreView, ...]
    field: MetricField
    overridden: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused override, so that the form comes back with what was typed."""

    metric_id: int
    message: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """An answer as seen from a run. ``marked`` is the raw text with what rules found in it; ``contexts`` is ``None``
    where the system does not retrieve; ``failed`` says why there is no answer."""

    answer_id: int
    run_id: int
    run_name: str
    system: str
    question_id: str
    category: str
    question: Text
    answer: Text
    failed: str
    marked: tuple[Piece, ...]
    references: tuple[Text, ...]
    keywords: tuple[str, ...]
    contexts: tuple[PassageView, ...] | None
    metrics: tuple[MetricView, ...]
    history: tuple[Line, ...]
    may_override: bool
    may_view: bool
    other_runs: tuple[tuple[int, str], ...]
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """Everything read from the database for the page."""

    answer: Answer
    run: Run
    values: RunValues
    scores: Sequence[Score]
    events: Sequence[Event]
    other_runs: Sequence[Run]


def answer_page(
    facts: AnswerFacts, *, may_override: bool, may_view: bool = True, refusal: Refusal | None = None
) -> AnswerPage:
    """The page of an answer; ``may_view``: the reader may open its run."""
    answer, run = facts.answer, facts.run
    question = answer.question.read()
    language = get_language() or "en"
    findings = [finding for score in facts.scores for finding in score.findings.all()]
    runs = {one.pk: str(one) for one in (run, *facts.other_runs)} if facts.other_runs else {}
    return AnswerPage(
        answer_id=answer.pk,
        run_id=run.pk,
        run_name=str(run),
        system=str(answer.answer_set.system_version),
        question_id=question.id,
        category=category_name(question.category),
        question=text(question.text),
        answer=text(answer.text),
        failed=explain_reason(answer.reason) if answer.status == "failed" else "",
        marked=pieces(answer.text, _spans(findings)) if any(f.start is not None for f in findings) else (),
        references=tuple(text(reference) for reference in question.references),
        keywords=_keywords(question),
        contexts=_contexts(answer) if answer.retrieves else None,
        metrics=tuple(_metric(one, facts, language, refusal) for one in facts.values.values.values()),
        history=history_lines(facts.events, runs, language),
        may_override=may_override,
        may_view=may_view,
        other_runs=tuple((one.pk, str(one)) for one in facts.other_runs),
        refusal=refusal,
    )


def _metric(one: Effective, facts: AnswerFacts, language: str, refusal: Refusal | None) -> MetricView:
    metric = facts.values.metrics[one.metric_id]
    scale = metric.read_scale()
    said = one.label if one.value is None else one.value
    held = refusal.value if refusal and refusal.metric_id == metric.pk else ""
    return MetricView(
        metric_id=metric.pk,
        title=metric.title.get(language) or metric.name,
        mark=MARKS.get(one.source, ""),
        value="" if said is None else numbers.on_scale(said, scale),
        why_none=explain_reason(one.reason) if said is None and one.reason else "",
        source=_source(one),
        unresolved=one.unresolved,
        scores=tuple(_score(row, metric) for row in facts.scores if row.metric_id == metric.pk),
        field=metric_field(as_asked(metric, language), held),
        overridden=one.source is Source.OVERRIDE,
    )


def _source(one: Effective) -> str:
    return {
        Source.OVERRIDE: gettext("decided by a lead or assigned expert"),
        Source.REVIEW: gettext("experts"),
        Source.JUDGE: gettext("judge"),
        Source.RULE: gettext("rule"),
        Source.NONE: "",
    }[one.source]


def _score(row: Score, metric: MetricDefinition) -> ScoreView:
    said = row.label if row.value is None else row.value
    judge = row.judge_version
    by = gettext("rule") if judge is None else str(judge)
    if judge is not None and judge.is_baseline:
        by = gettext("offline baseline")
    rubric = row.rubric_version
    return ScoreView(
        by=row.author or by,
        value=numbers.on_scale(said, metric.read_scale()) if said is not None else str(STATUS[row.status]),
        note=_note(row, metric),
        rubric=str(rubric) if rubric else "",
        reason=row.reason if row.status == "scored" else explain_reason(row.reason),
        findings=tuple(
            FindingView(
                finding_names.kind_title(f.kind),
                f.text,
                finding_names.verdict_title(f.verdict),
                None if f.context is None else f.context + 1,
                finding_names.reason_text(f.reason),
            )
            for f in row.findings.all()
        ),
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


def _keywords(question: QuestionSpec) -> tuple[str, ...]:
    return tuple(" / ".join(alternatives) for alternatives in question.keywords)


def _contexts(answer: Answer) -> tuple[PassageView, ...]:
    return tuple(
        PassageView(row.position + 1, row.source or row.chunk_id, row.text, language_of(row.text), "", ())
        for row in answer.contexts.all()
    )
