"""What a reviewer sees of an item. Page and endpoint show this and nothing else, so what is hidden is hidden once.

Before the rating is in, a card holds no verdict, judged span, stratum, probability, strategy or retrieval score, and,
unless a lead switched that off, no system. In assisted mode the judge is part of it.

Keys of the review screen are named by their place on the keyboard (``KeyboardEvent.code``), so that a Korean layout or
input method changes nothing. Digits, Enter, Escape and the question mark have fixed meanings and are not on the
list."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from evaluation.core.errors import Refused, UnknownName
from evaluation.core.scales import Scale
from evaluation.judging.catalogue import judge_metric
from evaluation.judging.rubric import Rubric, RubricMetric, Slot, shipped_rubrics
from evaluation.models import Answer, Finding, MetricDefinition, RubricVersion
from review.evidence.rating_input import (
    Given,
    OfferedPart,
    is_by_parts,
    judged_parts,
    may_add,
    offered_parts,
    verdicts_of,
)
from review.models import Assignment, QueueMetric, ReviewItem, ReviewQueue
from review.models.statements import EXPOSED, PASSAGES, SCORED_BY
from review.ratings.reveals import JudgeSaid, judge_said
from review.ratings.settling import RATED
from review.ratings.submitting import asked_of, given_in, suggestion_of

CLAIM_METRIC = "claim_support"


@dataclass(frozen=True, slots=True)
class JudgeOnClaim:
    """What the judge said of a claim: its verdict and reason, the passage it rests on (its number, from 1) and the
    supporting words there with their place. ``approximate``: the words are not found word for word in the passage."""

    verdict: str
    reason: str
    passage: int | None
    quote: str
    quote_start: int | None
    quote_end: int | None
    approximate: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with its number and its place in the answer; ``approximate`` where that was found by likeness.
    ``judge`` is ``None`` while hidden."""

    number: int
    text: str
    start: int | None
    end: int | None
    approximate: bool
    judge: JudgeOnClaim | None


def claims_on_card(item: ReviewItem, *, judged: bool) -> tuple[Claim, ...]:
    """The claims the judge found in the answer, in the order of their place; none where none were looked for."""
    if (row := SCORED_BY.first(name=CLAIM_METRIC, run=item.run_id, answer=item.answer_id)) is None:
        return ()
    metric = row[0]
    said = {one.text: one for one in judged_parts(item, metric)} if judged else {}
    return tuple(
        Claim(part.number, part.text, part.start, part.end, part.approximate, _judge(said.get(part.text)))
        for part in offered_parts(item, metric)
    )


def _judge(found: Finding | None) -> JudgeOnClaim | None:
    if found is None:
        return None
    return JudgeOnClaim(
        verdict=found.verdict,
        reason=found.reason,
        passage=None if found.context is None else found.context + 1,
        quote=found.quote,
        quote_start=found.quote_start,
        quote_end=found.quote_end,
        approximate=bool(found.quote) and found.quote_start is None,
    )


LINKS = ("url", "link", "href", "source_url", "document_url")  # where systems put the address of a passage's document
LONGEST_LINK = 2000


@dataclass(frozen=True, slots=True)
class LevelText:
    """A level of the scale with the text that anchors it."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on a part, and when it is right; the text is empty where no rubric says it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CardMetric:
    """A metric as it is asked for. ``question`` and ``levels`` come from the rubric, in ``language``; metrics without
    one have a scale only. ``labels`` are the classes of a class scale, ``label_texts`` what the rubric says of each. A
    metric rated by its parts has ``verdicts`` to choose from and the ``parts`` to decide, and ``adds`` tells whether
    missed ones may be added. ``by_reference`` tells whether an answer is held against the expected one."""

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
    """A retrieved passage, numbered from 1 in the order the system used it; never with its score. ``link`` leads to
    its document where the system named an address."""

    number: int
    source: str
    text: str
    link: str


@dataclass(frozen=True, slots=True)
class Card:
    """An item in its reviewer's hands. ``contexts`` is ``None`` where the system does not retrieve. ``stale``: the item
    was withdrawn meanwhile. ``exposed``: the reviewer has seen the judge of this answer elsewhere, so that the rating
    will not count as blind. ``system`` is empty while hidden; ``judge`` is ``None`` while hidden."""

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
    exposed: bool
    system: str
    judge: tuple[JudgeSaid, ...] | None
    claims: tuple[Claim, ...]
    suggestion: str


def card(assignment: Assignment, language: str) -> Card:
    """The card of an item, with level texts in the given language where the rubric has them."""
    queue, answer = assignment.item.queue, assignment.item.answer
    question = answer.question.read()
    rated = assignment.state in RATED
    draft = None if rated else getattr(assignment, "draft", None)
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
        contexts=passages_of(answer) if answer.retrieves else None,
        metrics=card_metrics(asked_of(assignment.item), language, assignment.item),
        draft=draft.payload if draft else {},
        given=given_in(assignment) if rated else {},
        final=given_in(assignment, "final") if rated else {},
        stale=assignment.item.state == ReviewItem.State.WITHDRAWN,
        exposed=not rated and queue.mode == ReviewQueue.Mode.BLIND and _exposed(assignment),
        system="" if queue.hide_system else str(answer.answer_set.system_version),
        judge=tuple(judge_said(assignment)) if shows_judge(assignment) else None,
        claims=claims_on_card(assignment.item, judged=shows_judge(assignment)),
        suggestion=suggestion_of(assignment) if rated else "",
    )


def _exposed(assignment: Assignment) -> bool:
    return EXPOSED.first(user=assignment.reviewer_id, answer=assignment.item.answer_id) is not None


def shows_judge(assignment: Assignment) -> bool:
    """Whether the reviewer may see the judge of this item: after the reveal, or in assisted mode."""
    assisted = assignment.item.queue.mode == ReviewQueue.Mode.ASSISTED
    return assisted or assignment.revealed_at is not None


def card_metrics(rows: Sequence[QueueMetric], language: str, item: ReviewItem) -> tuple[CardMetric, ...]:
    """The queue's metrics with question and level texts, and the item's parts where a metric is rated by them."""
    wanted = "ko" if language.startswith("ko") else "en"
    foreign = [r.rubric_version for r in rows if r.rubric_version and r.rubric_version.language != wanted]
    translated: dict[tuple[str, int], RubricVersion] = {}
    if foreign:
        named = {"family__in": [r.family for r in foreign], "version__in": [r.version for r in foreign]}
        stored = RubricVersion.objects.filter(**named, language=wanted)
        translated = {(rubric.family, rubric.version): rubric for rubric in stored}
    return tuple(_metric(row, translated, wanted, item) for row in rows)


def _metric(
    row: QueueMetric, translated: Mapping[tuple[str, int], RubricVersion], language: str, item: ReviewItem
) -> CardMetric:
    pinned = row.rubric_version
    shown = _in_language(pinned, translated, language) if pinned else None
    asked = next((m for m in shown.metrics if m.name == row.metric.name), None) if shown else None
    found = card_metric(row.metric, asked, language, shown.language if shown else language)
    more: dict[str, Any] = {"by_reference": _by_reference(row.metric, shown)}
    if is_by_parts(row.metric):
        texts = _anchors(asked)
        more["verdicts"] = tuple(Verdict(name, texts.get(name, "")) for name in verdicts_of(row.metric))
        more |= {"parts": offered_parts(item, row.metric), "adds": may_add(row.metric)}
    return replace(found, **more)


def _by_reference(metric: MetricDefinition, rubric: Rubric | None) -> bool:
    """Whether rating the metric needs the expected answer; so for whatever does not say what it needs."""
    if rubric and rubric.criterion:
        return Slot.REFERENCE in (*rubric.criterion.needs, *rubric.criterion.sees)
    try:
        spec = judge_metric(metric.name)
    except UnknownName:
        return True
    return "reference" in (*spec.inputs, *spec.optional_inputs)


def card_metric(metric: MetricDefinition, asked: RubricMetric | None, language: str, written_in: str) -> CardMetric:
    """A metric titled in ``language``, with question and levels where a rubric in the language ``written_in`` has
    them."""
    scale: Scale = metric.read_scale()
    anchors = _anchors(asked)
    return CardMetric(
        name=metric.name,
        title=metric.title.get(language) or metric.name,
        review_form=metric.review_form,
        kind=scale.kind.value,
        low=scale.low,
        high=scale.high,
        labels=scale.labels,
        question=asked.question.strip() if asked else "",
        levels=tuple(LevelText(float(level.value), level.text) for level in asked.levels) if asked else (),
        language=written_in,
        label_texts=tuple(anchors.get(label, "") for label in scale.labels),
    )


def _anchors(asked: RubricMetric | None) -> dict[str, str]:
    """The rubric's words for labels and verdicts."""
    return {label.label: label.text for label in asked.labels} if asked else {}


def _in_language(pinned: RubricVersion, translated: Mapping[tuple[str, int], RubricVersion], language: str) -> Rubric:
    """The rubric in the reader's language: a stored translation, else the shipped one of the same version, else as it
    is pinned."""
    stored = translated.get((pinned.family, pinned.version))
    if stored is None and pinned.language != language:
        for shipped in shipped_rubrics():
            if (shipped.family, shipped.version, shipped.language) == (pinned.family, pinned.version, language):
                return shipped
    return (stored or pinned).rubric


def passages_of(answer: Answer) -> tuple[Passage, ...]:
    """The passages of an answer in the order the system used them."""
    rows = PASSAGES.rows(answer=answer.pk)
    return tuple(
        Passage(number, source, text, _link(metadata)) for number, (source, text, metadata) in enumerate(rows, start=1)
    )


def _link(metadata: object) -> str:
    """The address of the passage's document, if the system named a whole one; nothing else may become a link."""
    named = [metadata.get(key) for key in LINKS] if isinstance(metadata, Mapping) else []
    found = next((one for one in named if isinstance(one, str) and one.lower().startswith(("http://", "https://"))), "")
    return found if len(found) <= LONGEST_LINK else ""


class KeyAction(StrEnum):
    """What a single key does, with the key that usually does it. ``change`` belongs to the reveal, all others to the
    card."""

    usual: str

    def __new__(cls, name: str, usual: str) -> Self:
        """An action by its name."""
        made = str.__new__(cls, name)
        made._value_, made.usual = name, usual
        return made

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


#: Every key that may be chosen, with what is printed on it.
CODES: dict[str, str] = {f"Key{letter}": letter.lower() for letter in string.ascii_uppercase} | {
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

DEFAULTS = {action: action.usual for action in KeyAction}
ON_REVEAL = frozenset({KeyAction.CHANGE})


def keys_from(stored: object) -> dict[KeyAction, str]:
    """The keys in use: the usual ones, changed as a person stored it. What is not on the list is passed over, so that
    nothing but a key of the list ever reaches a page."""
    own = stored if isinstance(stored, Mapping) else {}
    wanted = {action: own.get(action) for action in DEFAULTS}
    known = {action: code for action, code in wanted.items() if isinstance(code, str) and code in CODES}
    return DEFAULTS | known


def checked_keys(wanted: Mapping[str, str]) -> dict[str, str]:
    """What to store of a person's choice: the keys that differ from the usual ones.

    :raises Refused: ``unknown_key_action``, ``unknown_key`` for what is not on the closed lists, ``key_used_twice``.
    """
    if unknown := sorted(set(wanted) - set(KeyAction)):
        raise Refused("unknown_key_action", actions=unknown)
    if unknown := sorted(set(wanted.values()) - set(CODES)):
        raise Refused("unknown_key", keys=[code[:20] for code in unknown], known=list(CODES.values()))
    chosen = {action: wanted.get(action, code) for action, code in DEFAULTS.items()}
    used = Counter(code for action, code in chosen.items() if action not in ON_REVEAL)
    if twice := [CODES[code] for code, times in used.items() if times > 1]:
        raise Refused("key_used_twice", keys=twice)
    return {str(action): code for action, code in chosen.items() if code != DEFAULTS[action]}
