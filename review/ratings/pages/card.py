"""The review screen: a card, the fields to rate it by, the person's own progress and keys, nothing about the judge."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import content_hash
from evaluation.messages.markdown import render
from evaluation.models import User
from review.evidence.rating_input import FlagKind, Given
from review.queues.progress import OwnProgress
from review.ratings.card import CLAIM_METRIC, CODES, DEFAULTS, ON_REVEAL, Card, CardMetric, Claim, KeyAction, keys_from
from review.ratings.forms import entered, entered_parts, entered_why
from review.ratings.pages.item import (
    MetricField,
    Piece,
    judge_reason,
    judge_text,
    metric_field,
    numbered_html,
    raw_pieces,
    said,
    scale_of,
    value_text,
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


class Keys(NamedTuple):
    """The person's keys: ``labels`` by action as printed on the key, ``card`` and ``reveal`` as JSON for the scripts
    of the two screens (place on the keyboard -> action). ``off``: single keys are switched off."""

    labels: Mapping[str, str]
    lines: tuple[tuple[str, str], ...]
    card: str
    reveal: str
    off: bool


def keys_of(user: User) -> Keys:
    """The person's keys, for a page of theirs."""
    return _keys(tuple(keys_from(user.keymap).items()), user.keys_off, get_language())


@lru_cache(maxsize=256)
def _keys(of: tuple[tuple[KeyAction, str], ...], off: bool, _language: str | None) -> Keys:
    on_card = [(action, code) for action, code in of if action not in ON_REVEAL]
    return Keys(
        labels={str(action): CODES[code] for action, code in of},
        lines=tuple((CODES[code], str(TITLES[action])) for action, code in on_card),
        card=_as_json(on_card),
        reveal=_as_json((action, code) for action, code in of if action in ON_REVEAL),
        off=off,
    )


def _as_json(keys: Iterable[tuple[KeyAction, str]]) -> str:
    return json.dumps({code: str(action) for action, code in keys}, sort_keys=True)


def chosen_keys(user: User, entered: Mapping[str, str]) -> list[tuple[KeyAction, str | Promise, str]]:
    """Actions with their titles and the places chosen for them, or with what a refused form held."""
    chosen = {str(action): code for action, code in keys_from(user.keymap).items()} | dict(entered)
    return [(action, TITLES[action], chosen[str(action)]) for action in DEFAULTS]


FLAGS = {
    FlagKind.BAD_QUESTION: _("The question is bad"),
    FlagKind.BAD_REFERENCE: _("The expected answer is wrong or outdated"),
    FlagKind.UNREADABLE: _("The answer is unreadable"),
    FlagKind.UNSAFE: _("The answer is unsafe"),
    FlagKind.CONFLICT_OF_INTEREST: _("I have a conflict of interest"),
}


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Everything on the review screen. ``judge`` is what it said in assisted mode: title of a metric, value, reason.
    ``form_key`` makes two submits of one form one decision; ``undo`` is the assignment that can be taken back, ``None``
    where there is none. ``draft_store`` names the browser's own copy of the draft: item and rubric. ``form`` is the
    hash of what is asked for, the same on all cards of a queue, so that what depends on nothing else is rendered once
    in a while. ``lease_seconds`` is how long the item stays reserved. The guideline is open on the person's first item
    of the queue, the expected answer where any criterion is held against it. ``contexts_in_parts``: the passages are
    read where they are decided, and not listed once more."""

    card: Card
    own: OwnProgress
    guideline: SafeString
    guideline_open: bool
    answer: SafeString
    raw: tuple[Piece, ...]
    references_open: bool
    contexts_in_parts: bool
    claims: tuple[Claim, ...]
    judge: tuple[tuple[str, str, str], ...]
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
    fields = [
        metric_field(
            metric,
            values.get(metric.name, ""),
            missing=metric.name in missing,
            why=why.get(metric.name, ""),
            decided=parts.get(metric.name, ()),
        )
        for metric in card.metrics
    ]
    in_parts = next((at for at, field in enumerate(fields) if any(part.passage for part in field.parts)), None)
    if in_parts is not None:  # each passage is shown where it is decided
        shown = {one.number: one for one in card.contexts or ()}
        field = fields[in_parts]
        placed = tuple(part._replace(shown=shown.get(part.passage or 0)) for part in field.parts)
        fields[in_parts] = field._replace(parts=placed)
    asks_for_claims = any(metric.name == CLAIM_METRIC and metric.verdicts for metric in card.metrics)
    return ReviewPage(
        card=card,
        own=own,
        guideline=_guideline(card.guideline),
        guideline_open=not (ahead or own.rated or own.passed_on),
        answer=numbered_html(card.answer, card.claims, card.contexts),
        raw=raw_pieces(card.answer, card.claims),
        references_open=any(metric.by_reference for metric in card.metrics),
        contexts_in_parts=in_parts is not None,
        claims=card.claims if card.judge is not None or not asks_for_claims else (),
        judge=_judge_lines(card),
        fields=tuple(fields),
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


def own_ratings(card: Card) -> list[tuple[str, str, str]]:
    """The person's ratings of a finished item: title, first and, where there is one, final value of each metric."""
    given, final = card.given, card.final
    return [(one.title, _value(given.get(one.name), one), _value(final.get(one.name), one)) for one in card.metrics]


def _judge_lines(card: Card) -> tuple[tuple[str, str, str], ...]:
    """None while the judge is hidden."""
    titles = {metric.name: metric.title for metric in card.metrics}
    return tuple(
        (
            titles[one.metric.name],
            judge_text(one.said, one.metric.read_scale()),
            judge_reason(one.said.reason) if one.said and said(one.said) is not None else "",
        )
        for one in card.judge or ()
    )


def _value(given: Given | None, metric: CardMetric) -> str:
    if given is None:
        return ""
    return gettext("cannot judge") if given.cannot_judge else value_text(given, scale_of(metric))


_guideline = lru_cache(maxsize=64)(render)


@lru_cache(maxsize=256)
def _hash_of(metrics: tuple[CardMetric, ...]) -> str:
    return content_hash([asdict(metric) for metric in metrics])
