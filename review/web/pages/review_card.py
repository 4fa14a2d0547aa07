"""The review screen (a card, the fields to rate it by, the person's own progress and keys, nothing about the judge),
and the pages between items: nothing to rate now, an item that is finished, an item that was passed on."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import content_hash
from evaluation.core.registry import Scale, ScaleKind
from evaluation.models import User
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of, render
from review.evidence.rating_input import FlagKind, Given
from review.models import Assignment, ReviewQueue
from review.queues.progress import OwnProgress
from review.ratings.card import CLAIM_METRIC, CODES, DEFAULTS, ON_REVEAL, Card, CardMetric, Claim, KeyAction, keys_from
from review.web.forms.rating import entered, entered_parts, entered_why
from review.web.pages.item import (
    MetricField,
    PassageView,
    Piece,
    metric_field,
    numbered_html,
    passages,
    raw_pieces,
    said,
    value_text,
    with_passages,
)

TITLES = {
    KeyAction.NEXT: _("next criterion"),
    KeyAction.PREVIOUS: _("previous criterion"),
    KeyAction.CANNOT_JUDGE: _("cannot judge"),
    KeyAction.SKIP: _("skip: somebody else gets the item"),
    KeyAction.FLAG: _("flag: something is wrong with the item itself"),
    KeyAction.ESCALATE: _("escalate: hand the item to a lead"),
    KeyAction.COMMENT: _("comment"),
    KeyAction.SUGGEST: _("suggest a correct answer"),
    KeyAction.RUBRIC: _("show or hide the rubric"),
    KeyAction.REFERENCE: _("show or hide the expected answer"),
    KeyAction.RAW: _("answer as raw text"),
    KeyAction.PASSAGE_BEFORE: _("previous passage"),
    KeyAction.PASSAGE_AFTER: _("next passage"),
    KeyAction.UNDO: _("undo: take the last item back"),
    KeyAction.CHANGE: _("change my rating, when the judge is shown"),
}


@dataclass(frozen=True, slots=True)
class Keys:
    """The person's keys: ``labels`` by action as printed on the key, ``card`` and ``reveal`` as JSON for the scripts
    of the two screens (place on the keyboard -> action). ``off``: single keys are switched off."""

    labels: Mapping[str, str]
    lines: tuple[tuple[str, str], ...]
    card: str
    reveal: str
    off: bool


@dataclass(frozen=True, slots=True)
class KeysPage:
    """The page of keys: actions with their titles and the places chosen for them, and the labels of all places on the
    keyboard."""

    rows: tuple[tuple[KeyAction, str | Promise, str], ...]
    codes: Mapping[str, str]
    off: bool
    error: str


def keys_of(user: User) -> Keys:
    """The person's keys, for a page of theirs."""
    return _keys(tuple(keys_from(user.keymap).items()), user.keys_off, get_language())


@lru_cache(maxsize=256)
def _keys(of: tuple[tuple[KeyAction, str], ...], off: bool, _language: str | None) -> Keys:
    chosen = dict(of)
    return Keys(
        labels={str(action): CODES[code] for action, code in chosen.items()},
        lines=tuple((CODES[code], str(TITLES[action])) for action, code in chosen.items() if action not in ON_REVEAL),
        card=_as_json({code: str(action) for action, code in chosen.items() if action not in ON_REVEAL}),
        reveal=_as_json({code: str(action) for action, code in chosen.items() if action in ON_REVEAL}),
        off=off,
    )


def keys_page(user: User, *, entered: Mapping[str, str] | None = None, error: str = "") -> KeysPage:
    """The page with the person's keys, or with what a refused form held."""
    chosen = {str(action): code for action, code in keys_from(user.keymap).items()} | dict(entered or {})
    return KeysPage(
        rows=tuple((action, TITLES[action], chosen[str(action)]) for action in DEFAULTS),
        codes=CODES,
        off=user.keys_off,
        error=error,
    )


def _as_json(keys: Mapping[str, str]) -> str:
    return json.dumps(keys, sort_keys=True)


FLAGS = {
    FlagKind.BAD_QUESTION: _("The question is bad"),
    FlagKind.BAD_REFERENCE: _("The expected answer is wrong or outdated"),
    FlagKind.UNREADABLE: _("The answer is unreadable"),
    FlagKind.UNSAFE: _("The answer is unsafe"),
    FlagKind.CONFLICT_OF_INTEREST: _("I have a conflict of interest"),
}


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text with the language it is in; ``html`` is its safe rendering as Markdown."""

    raw: str
    html: SafeString
    language: str


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """What the judge said of a metric, in assisted mode."""

    title: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Everything on the review screen. ``form_key`` makes two submits of one form one decision; ``undo`` is the
    assignment that can be taken back, ``None`` where there is none. ``draft_store`` names the browser's own copy of
    the draft: item and rubric. ``form`` is the hash of what is asked for, the same on all cards of a queue, so that
    what depends on nothing else is rendered once in a while. ``lease_seconds`` is how long the item stays reserved.
    The guideline is open on the person's first item of the queue, the expected answer where any criterion is held
    against it. ``contexts_in_parts``: the passages are read where they are decided, and not listed once more."""

    card: Card
    own: OwnProgress
    guideline: Text
    guideline_open: bool
    answer: SafeString
    raw: tuple[Piece, ...]
    references_open: bool
    contexts: tuple[PassageView, ...] | None
    contexts_in_parts: bool
    claims: tuple[Claim, ...]
    judge: tuple[JudgeLine, ...]
    fields: tuple[MetricField, ...]
    comment: str
    suggestion: str
    form_key: str
    undo: int | None
    error: str
    flags: tuple[tuple[FlagKind, str | Promise], ...]
    keys: Keys
    draft_store: str
    form: str
    lease_seconds: int


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """Nothing to rate in the queue now. ``reason`` is a refusal, such as a closed queue; then the person's own part is
    not known."""

    queue: ReviewQueue
    own: OwnProgress | None = None
    undo: int | None = None
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether the person has been through all of it."""
        return self.own is not None and self.own.rated + self.own.passed_on >= self.own.items


@dataclass(frozen=True, slots=True)
class FinishedPage:
    """An item the person has rated, to be looked back at: title, first and, where there is one, final value of each
    metric."""

    card: Card
    ratings: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class PassedOnPage:
    """An item the person has skipped, which can be taken back, or flagged."""

    assignment: Assignment


def review_page(
    card: Card,
    own: OwnProgress,
    *,
    draft: Mapping[str, Any],
    keys: Keys,
    undo: int | None = None,
    error: str = "",
    form_key: str = "",
    missing: Collection[str] = (),
    ahead: bool = False,
) -> ReviewPage:
    """The screen with what was entered so far; after a refused submit with the error and the same ``form_key``. With
    ``ahead`` it is the one that follows the item in hand."""
    values, parts, why = entered(draft), entered_parts(draft), entered_why(draft)
    contexts = passages(card.contexts, card.claims)
    fields = tuple(
        metric_field(
            metric,
            values.get(metric.name, ""),
            missing=metric.name in missing,
            why_not=why.get(metric.name, ""),
            decided=parts.get(metric.name, ()),
        )
        for metric in card.metrics
    )
    in_parts = next((field.name for field in fields if any(part.passage for part in field.parts)), "")
    return ReviewPage(
        card=card,
        own=own,
        guideline=_guideline(card.guideline),
        guideline_open=not (ahead or own.rated or own.passed_on),
        answer=numbered_html(card.answer, card.claims),
        raw=raw_pieces(card.answer, card.claims),
        references_open=any(metric.by_reference for metric in card.metrics),
        contexts=contexts,
        contexts_in_parts=bool(in_parts),
        claims=card.claims if card.judge is not None or not _asks_for_claims(card) else (),
        judge=_judge_lines(card),
        fields=tuple(with_passages(field, contexts or ()) if field.name == in_parts else field for field in fields),
        comment=str(draft.get("comment", "")),
        suggestion=str(draft.get("suggestion", "")),
        form_key=form_key or uuid.uuid4().hex,
        undo=undo,
        error=error,
        flags=tuple(FLAGS.items()),
        keys=keys,
        draft_store=f"concord.draft.{card.id}.{_hash_of(card.metrics)[:12]}",
        form=_hash_of(tuple(replace(metric, parts=()) for metric in card.metrics)),
        lease_seconds=max(0, int((card.lease_until - timezone.now()).total_seconds())),
    )


def finished_page(card: Card) -> FinishedPage:
    """The person's own ratings of a finished item."""
    return FinishedPage(
        card,
        tuple(
            (metric.title, _value(card.given.get(metric.name), metric), _value(card.final.get(metric.name), metric))
            for metric in card.metrics
        ),
    )


def text(raw: str) -> Text:
    """A text with its rendering and language."""
    return Text(raw, render(raw), language_of(raw))


def _asks_for_claims(card: Card) -> bool:
    """Whether the claims stand among the criteria already."""
    return any(metric.name == CLAIM_METRIC and metric.verdicts for metric in card.metrics)


def _judge_lines(card: Card) -> tuple[JudgeLine, ...]:
    """What the judge said of each metric; none while it is hidden."""
    titles = {metric.name: metric.title for metric in card.metrics}
    found = []
    for one in card.judge or ():
        value = said(one.said)
        shown = gettext("no value") if value is None else numbers.on_scale(value, one.metric.read_scale())
        why = one.said.reason if one.said and value is not None else ""
        found.append(JudgeLine(titles[one.metric.name], shown, why))
    return tuple(found)


def _value(given: Given | None, metric: CardMetric) -> str:
    if given is None:
        return ""
    if given.cannot_judge:
        return gettext("cannot judge")
    return value_text(given, Scale(ScaleKind(metric.kind), metric.low, metric.high, metric.labels))


@lru_cache(maxsize=64)
def _guideline(raw: str) -> Text:
    return text(raw)


@lru_cache(maxsize=256)
def _hash_of(metrics: tuple[CardMetric, ...]) -> str:
    return content_hash([asdict(metric) for metric in metrics])
