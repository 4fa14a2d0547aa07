"""What a reviewer sees of an item. Page and endpoint show this and nothing else, so what is hidden is hidden once.

Before the rating is in, a card holds no verdict, judged span, stratum, probability, strategy or retrieval score, and,
unless a lead switched that off, no system. In assisted mode the judge is part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluation.judges.models import RubricVersion
from evaluation.judging.rubric import Rubric, shipped_rubrics
from evaluation.runs.models import Answer
from evaluation.scales import Scale
from review.given import Given
from review.models.queues import Assignment, Draft, QueueMetric, ReviewItem, ReviewQueue
from review.queues.settling import RATED
from review.ratings import given_in, metrics_of
from review.reveals import JudgeSaid, judge_said


@dataclass(frozen=True, slots=True)
class LevelText:
    """A level of the scale with the text that anchors it."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class CardMetric:
    """A metric as it is asked for. ``question`` and ``levels`` come from the rubric, in ``language``; metrics without
    one have a scale only. ``labels`` are the classes of a class scale."""

    name: str
    title: str
    review_form: str
    kind: str
    low: float
    high: float
    labels: tuple[str, ...]
    question: str
    levels: tuple[LevelText, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage, numbered from 1 in the order the system used it; never with its score."""

    number: int
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """An item in its reviewer's hands. ``contexts`` is ``None`` where the system does not retrieve. ``stale``: the item
    was withdrawn meanwhile. ``system`` is empty while hidden; ``judge`` is ``None`` while hidden."""

    id: int
    state: str
    lease_until: datetime
    queue_id: int
    queue_name: str
    guideline: str
    mode: str
    question_id: str
    category: str
    history: tuple[str, ...]
    question: str
    references: tuple[str, ...]
    answer: str
    contexts: tuple[Passage, ...] | None
    metrics: tuple[CardMetric, ...]
    draft: Mapping[str, Any]
    given: Mapping[str, Given]
    final: Mapping[str, Given]
    stale: bool
    system: str
    judge: tuple[JudgeSaid, ...] | None


def card(assignment: Assignment, language: str) -> Card:
    """The card of an item, with level texts in the given language where the rubric has them."""
    queue, answer = assignment.item.queue, assignment.item.answer
    question = answer.question.read()
    rated = assignment.state in RATED
    draft = None if rated else Draft.objects.filter(assignment=assignment).first()
    return Card(
        id=assignment.pk,
        state=assignment.state,
        lease_until=assignment.lease_until,
        queue_id=queue.pk,
        queue_name=queue.name,
        guideline=queue.guideline,
        mode=queue.mode,
        question_id=question.id,
        category=question.category,
        history=question.history,
        question=question.text,
        references=question.references,
        answer=answer.text,
        contexts=_passages(answer) if answer.retrieves else None,
        metrics=card_metrics(metrics_of(queue), language),
        draft=draft.payload if draft else {},
        given=given_in(assignment) if rated else {},
        final=given_in(assignment, "final") if rated else {},
        stale=assignment.item.state == ReviewItem.State.WITHDRAWN,
        system="" if queue.hide_system else str(answer.answer_set.system_version),
        judge=tuple(judge_said(assignment)) if shows_judge(assignment) else None,
    )


def shows_judge(assignment: Assignment) -> bool:
    """Whether the reviewer may see the judge of this item: after the reveal, or in assisted mode."""
    assisted = assignment.item.queue.mode == ReviewQueue.Mode.ASSISTED
    return assisted or assignment.revealed_at is not None


def card_metrics(rows: Sequence[QueueMetric], language: str) -> tuple[CardMetric, ...]:
    """The queue's metrics with question and level texts."""
    wanted = "ko" if language.startswith("ko") else "en"
    foreign = [r.rubric_version for r in rows if r.rubric_version and r.rubric_version.language != wanted]
    translated = (
        {
            (rubric.family, rubric.version): rubric
            for rubric in RubricVersion.objects.filter(
                family__in=[r.family for r in foreign], version__in=[r.version for r in foreign], language=wanted
            )
        }
        if foreign
        else {}
    )
    return tuple(_metric(row, translated, wanted) for row in rows)


def _metric(row: QueueMetric, translated: Mapping[tuple[str, int], RubricVersion], language: str) -> CardMetric:
    scale: Scale = row.metric.read_scale()
    pinned = row.rubric_version
    shown = _in_language(pinned, translated, language) if pinned else None
    asked = next((m for m in shown.metrics if m.name == row.metric.name), None) if shown else None
    return CardMetric(
        name=row.metric.name,
        title=row.metric.title.get(language) or row.metric.name,
        review_form=row.metric.review_form,
        kind=scale.kind.value,
        low=scale.low,
        high=scale.high,
        labels=scale.labels,
        question=asked.question.strip() if asked else "",
        levels=tuple(LevelText(level.value, level.text) for level in asked.levels) if asked else (),
        language=shown.language if shown else language,
    )


def _in_language(pinned: RubricVersion, translated: Mapping[tuple[str, int], RubricVersion], language: str) -> Rubric:
    """The rubric in the reader's language: a stored translation, else the shipped one of the same version, else as it
    is pinned."""
    stored = translated.get((pinned.family, pinned.version))
    if stored is None and pinned.language != language:
        for shipped in shipped_rubrics():
            if (shipped.family, shipped.version, shipped.language) == (pinned.family, pinned.version, language):
                return shipped
    return Rubric.model_validate((stored or pinned).spec)


def _passages(answer: Answer) -> tuple[Passage, ...]:
    rows = answer.contexts.order_by("position").values_list("source", "text")
    return tuple(Passage(number, source, text) for number, (source, text) in enumerate(rows, start=1))
