"""The card: all that a reviewer sees of an item. Page and endpoint show nothing else, so hidden data is filtered here
only.

Before the rating, a card holds no verdict, judged span, stratum, probability, strategy or retrieval score, and no
system unless a lead allowed it. In assisted mode it includes the judge.

Keys of the review screen are stored by their position on the keyboard (``KeyboardEvent.code``), independent of Korean
layouts and input methods. Digits, Enter, Escape and the question mark have fixed meanings and are not configurable."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.scales import Scale
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import PromptSlot, Rubric, RubricMetric, shipped_rubrics
from evaluation.models import Answer, Finding, MetricDefinition, RubricVersion
from review.evidence.rating_input import (
    OfferedPart,
    RatingInput,
    allowed_verdicts,
    can_add_parts,
    is_rated_by_parts,
    judged_parts,
    offered_parts,
)
from review.models import Assignment, QueueMetric, ReviewItem, ReviewQueue
from review.models.statements import EXPOSED, PASSAGES, SCORED_BY
from review.ratings.item_state import RATED
from review.ratings.reveals import JudgeComparison, judge_comparisons
from review.ratings.submitting import item_metrics, last_suggestion, stored_inputs

CLAIM_METRIC = "claim_support"


@dataclass(frozen=True, slots=True)
class JudgeOnClaim:
    """The judge's verdict on a claim and its reason, the number of the supporting passage (from 1) and the quote with
    its position. ``approximate``: the passage does not contain the quote word for word."""

    verdict: str
    reason: str
    passage: int | None
    quote: str
    quote_start: int | None
    quote_end: int | None
    approximate: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its number and position in the answer; ``approximate`` if the position was found by similarity.
    ``judge`` is ``None`` while hidden."""

    number: int
    text: str
    start: int | None
    end: int | None
    approximate: bool
    judge: JudgeOnClaim | None


def card_claims(item: ReviewItem, *, with_judge: bool) -> tuple[Claim, ...]:
    """Claims that the judge found in the answer, in order; empty if the run did not look for claims."""
    if (row := SCORED_BY.first(name=CLAIM_METRIC, run=item.run_id, answer=item.answer_id)) is None:
        return ()
    metric = row[0]
    findings = {finding.text: finding for finding in judged_parts(item, metric)} if with_judge else {}
    return tuple(
        Claim(part.number, part.text, part.start, part.end, part.approximate, _judge_on_claim(findings.get(part.text)))
        for part in offered_parts(item, metric)
    )


def _judge_on_claim(finding: Finding | None) -> JudgeOnClaim | None:
    if finding is None:
        return None
    return JudgeOnClaim(
        verdict=finding.verdict,
        reason=finding.reason,
        passage=None if finding.context is None else finding.context + 1,
        quote=finding.quote,
        quote_start=finding.quote_start,
        quote_end=finding.quote_end,
        approximate=bool(finding.quote) and finding.quote_start is None,
    )


# Metadata keys under which systems store the address of a passage's document.
LINK_KEYS = ("url", "link", "href", "source_url", "document_url")
MAX_LINK_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class LevelText:
    """A level of the scale with its anchor text."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A possible verdict on a part and its definition, empty if the rubric has none."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CardMetric:
    """A metric to rate.

    ``question`` and ``levels`` come from the rubric, in ``language``; metrics without a rubric have only a scale.
    ``labels`` are the classes of a class scale, ``label_texts`` their definitions. A metric rated by parts has
    ``verdicts`` to choose from and ``parts`` to judge; ``adds`` allows missed parts to be added. ``by_reference``: the
    rating needs the expected answer."""

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
    label_texts: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    parts: tuple[OfferedPart, ...] = ()
    adds: bool = False
    by_reference: bool = True


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved passage, numbered from 1 in the order the system used it, without its score. ``link`` is the address
    of its document, if the system gave one."""

    number: int
    source: str
    text: str
    link: str


@dataclass(frozen=True, slots=True)
class Card:
    """An item for its reviewer.

    ``contexts`` is ``None`` if the system does not retrieve. ``stale``: the item was withdrawn meanwhile. ``exposed``:
    the reviewer saw the judge of this answer elsewhere, so the rating will not count as blind. ``system`` is empty and
    ``judge`` is ``None`` while hidden."""

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
    given: Mapping[str, RatingInput]
    final: Mapping[str, RatingInput]
    stale: bool
    exposed: bool
    system: str
    judge: tuple[JudgeComparison, ...] | None
    claims: tuple[Claim, ...]
    suggestion: str


def build_card(assignment: Assignment, language: str) -> Card:
    """Build the card of an item, with level texts in ``language`` if the rubric has them."""
    queue, answer = assignment.item.queue, assignment.item.answer
    question = answer.question.read()
    is_rated = assignment.state in RATED
    draft = None if is_rated else getattr(assignment, "draft", None)
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
        contexts=answer_passages(answer) if answer.retrieves else None,
        metrics=card_metrics(item_metrics(assignment.item), language, assignment.item),
        draft=draft.payload if draft else {},
        given=stored_inputs(assignment) if is_rated else {},
        final=stored_inputs(assignment, "final") if is_rated else {},
        stale=assignment.item.state == ReviewItem.State.WITHDRAWN,
        exposed=not is_rated and queue.mode == ReviewQueue.Mode.BLIND and _is_exposed(assignment),
        system="" if queue.hide_system else str(answer.answer_set.system_version),
        judge=tuple(judge_comparisons(assignment)) if shows_judge(assignment) else None,
        claims=card_claims(assignment.item, with_judge=shows_judge(assignment)),
        suggestion=last_suggestion(assignment) if is_rated else "",
    )


def _is_exposed(assignment: Assignment) -> bool:
    return EXPOSED.first(user=assignment.reviewer_id, answer=assignment.item.answer_id) is not None


def shows_judge(assignment: Assignment) -> bool:
    """Return whether the reviewer may see the judge of this item: after the reveal, or in assisted mode."""
    assisted = assignment.item.queue.mode == ReviewQueue.Mode.ASSISTED
    return assisted or assignment.revealed_at is not None


def card_metrics(rows: Sequence[QueueMetric], language: str, item: ReviewItem) -> tuple[CardMetric, ...]:
    """Metrics of the card with question and level texts, and with the item's parts for metrics rated by parts."""
    rubric_language = "ko" if language.startswith("ko") else "en"
    foreign_rubrics = [
        r.rubric_version for r in rows if r.rubric_version and r.rubric_version.language != rubric_language
    ]
    translated: dict[tuple[str, int], RubricVersion] = {}
    if foreign_rubrics:
        filters = {
            "family__in": [r.family for r in foreign_rubrics],
            "version__in": [r.version for r in foreign_rubrics],
        }
        stored_rubrics = RubricVersion.objects.filter(**filters, language=rubric_language)
        translated = {(rubric.family, rubric.version): rubric for rubric in stored_rubrics}
    return tuple(_queue_card_metric(row, translated, rubric_language, item) for row in rows)


def _queue_card_metric(
    row: QueueMetric, translated: Mapping[tuple[str, int], RubricVersion], language: str, item: ReviewItem
) -> CardMetric:
    pinned_rubric = row.rubric_version
    rubric = _in_language(pinned_rubric, translated, language) if pinned_rubric else None
    rubric_metric = next((m for m in rubric.metrics if m.name == row.metric.name), None) if rubric else None
    base_metric = card_metric(row.metric, rubric_metric, language, rubric.language if rubric else language)
    extra_fields: dict[str, Any] = {"by_reference": _by_reference(row.metric, rubric)}
    if is_rated_by_parts(row.metric):
        texts = _anchor_texts(rubric_metric)
        extra_fields["verdicts"] = tuple(Verdict(name, texts.get(name, "")) for name in allowed_verdicts(row.metric))
        extra_fields |= {"parts": offered_parts(item, row.metric), "adds": can_add_parts(row.metric)}
    return replace(base_metric, **extra_fields)


def _by_reference(metric: MetricDefinition, rubric: Rubric | None) -> bool:
    """Return whether rating the metric needs the expected answer; true for metrics that do not declare their inputs."""
    if rubric and rubric.criterion:
        return PromptSlot.REFERENCE in (*rubric.criterion.needs, *rubric.criterion.sees)
    try:
        spec = judge_metric(metric.name)
    except UnknownName:
        return True
    return "reference" in (*spec.inputs, *spec.optional_inputs)


def card_metric(
    metric: MetricDefinition, rubric_metric: RubricMetric | None, language: str, rubric_language: str
) -> CardMetric:
    """A metric with its title in ``language``, and with question and levels of a rubric in ``rubric_language``."""
    scale: Scale = metric.read_scale()
    anchors = _anchor_texts(rubric_metric)
    return CardMetric(
        name=metric.name,
        title=metric.title.get(language) or metric.name,
        review_form=metric.review_form,
        kind=scale.kind.value,
        low=scale.low,
        high=scale.high,
        labels=scale.labels,
        question=rubric_metric.question.strip() if rubric_metric else "",
        levels=tuple(LevelText(float(level.value), level.text) for level in rubric_metric.levels)
        if rubric_metric
        else (),
        language=rubric_language,
        label_texts=tuple(anchors.get(label, "") for label in scale.labels),
    )


def _anchor_texts(rubric_metric: RubricMetric | None) -> dict[str, str]:
    """Definitions of labels and verdicts in the rubric."""
    return {label.label: label.text for label in rubric_metric.labels} if rubric_metric else {}


def _in_language(
    pinned_rubric: RubricVersion, translated: Mapping[tuple[str, int], RubricVersion], language: str
) -> Rubric:
    """Rubric in the reader's language: a stored translation, else the shipped one of this version, else the pinned
    one."""
    stored_rubric = translated.get((pinned_rubric.family, pinned_rubric.version))
    if stored_rubric is None and pinned_rubric.language != language:
        for shipped_rubric in shipped_rubrics():
            if (shipped_rubric.family, shipped_rubric.version, shipped_rubric.language) == (
                pinned_rubric.family,
                pinned_rubric.version,
                language,
            ):
                return shipped_rubric
    return (stored_rubric or pinned_rubric).rubric


def answer_passages(answer: Answer) -> tuple[Passage, ...]:
    rows = PASSAGES.rows(answer=answer.pk)
    return tuple(
        Passage(number, source, text, _link(metadata)) for number, (source, text, metadata) in enumerate(rows, start=1)
    )


def _link(metadata: object) -> str:
    """Absolute web address of the passage's document; empty for anything else, so that no other value becomes a
    link."""
    candidates = [metadata.get(key) for key in LINK_KEYS] if isinstance(metadata, Mapping) else []
    link = next(
        (
            candidate
            for candidate in candidates
            if isinstance(candidate, str) and candidate.lower().startswith(("http://", "https://"))
        ),
        "",
    )
    return link if len(link) <= MAX_LINK_LENGTH else ""


class KeyAction(StrEnum):
    """Action of a single key, with its default key. ``change`` belongs to the reveal, all others to the card."""

    usual: str

    def __new__(cls, name: str, usual: str) -> Self:
        action = str.__new__(cls, name)
        action._value_, action.usual = name, usual
        return action

    NEXT = "next", "KeyJ"
    PREVIOUS = "previous", "KeyK"
    CANNOT_JUDGE = "cannot_judge", "KeyX"
    SKIP = "skip", "KeyS"
    FLAG = "flag", "KeyF"
    ESCALATE = "escalate", "KeyE"
    COMMENT = "comment", "KeyC"
    SUGGEST = "suggest", "KeyG"
    RUBRIC = "rubric", "KeyR"
    REFERENCE = "reference", "KeyA"
    RAW = "raw", "KeyM"
    PASSAGE_BEFORE = "passage_before", "BracketLeft"
    PASSAGE_AFTER = "passage_after", "BracketRight"
    UNDO = "undo", "KeyZ"
    CHANGE = "change", "KeyE"


#: Configurable keys with their labels.
KEY_LABELS: dict[str, str] = {f"Key{letter}": letter.lower() for letter in string.ascii_uppercase} | {
    "BracketLeft": "[",
    "BracketRight": "]",
    "Semicolon": ";",
    "Quote": "'",
    "Comma": ",",
    "Period": ".",
    "Minus": "-",
    "Equal": "=",
    "Backquote": "`",
    "Backslash": "\\",
}

DEFAULT_KEYS = {action: action.usual for action in KeyAction}
REVEAL_ACTIONS = frozenset({KeyAction.CHANGE})


def keys_from(stored: object) -> dict[KeyAction, str]:
    """Key of each action: the defaults with the person's stored changes. Values outside the list are ignored, so that
    only listed keys reach a page."""
    stored_keys = stored if isinstance(stored, Mapping) else {}
    chosen_codes = {action: stored_keys.get(action) for action in DEFAULT_KEYS}
    valid_codes = {
        action: code for action, code in chosen_codes.items() if isinstance(code, str) and code in KEY_LABELS
    }
    return DEFAULT_KEYS | valid_codes


def checked_keys(keymap: Mapping[str, str]) -> dict[str, str]:
    """Return the keys to store: those that differ from the defaults.

    :raises DomainError: ``unknown_key_action`` or ``unknown_key`` for values outside the lists, ``key_used_twice``."""
    if unknown_names := sorted(set(keymap) - set(KeyAction)):
        raise DomainError("unknown_key_action", actions=unknown_names)
    if unknown_names := sorted(set(keymap.values()) - set(KEY_LABELS)):
        raise DomainError("unknown_key", keys=[code[:20] for code in unknown_names], known=list(KEY_LABELS.values()))
    codes = {action: keymap.get(action, code) for action, code in DEFAULT_KEYS.items()}
    code_counts = Counter(code for action, code in codes.items() if action not in REVEAL_ACTIONS)
    if duplicates := [KEY_LABELS[code] for code, times in code_counts.items() if times > 1]:
        raise DomainError("key_used_twice", keys=duplicates)
    return {str(action): code for action, code in codes.items() if code != DEFAULT_KEYS[action]}
