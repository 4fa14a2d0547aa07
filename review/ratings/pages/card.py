"""The review screen: a card, the fields to rate it, own progress and keys."""

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
from review.evidence.rating_input import FlagKind, RatingInput
from review.queues.progress import OwnProgress
from review.ratings.card import (
    CLAIM_METRIC,
    DEFAULT_KEYS,
    KEY_LABELS,
    REVEAL_ACTIONS,
    Card,
    CardMetric,
    Claim,
    KeyAction,
    keys_from,
)
from review.ratings.forms import draft_parts, draft_reason_codes, draft_texts
from review.ratings.pages.item import (
    MetricField,
    TextPiece,
    answer_html,
    judge_reason,
    judge_text,
    metric_field,
    raw_pieces,
    scale_of,
    value_or_label,
    value_text,
)

TITLES = {
    KeyAction.NEXT: _("next criterion"),
    KeyAction.PREVIOUS: _("previous criterion"),
    KeyAction.CANNOT_JUDGE: _("cannot judge"),
    KeyAction.SKIP: _("skip: pass the item to someone else"),
    KeyAction.FLAG: _("flag: report a problem with the item"),
    KeyAction.ESCALATE: _("ask a lead: let a lead decide the item"),
    KeyAction.COMMENT: _("comment"),
    KeyAction.SUGGEST: _("suggest a correct answer"),
    KeyAction.RUBRIC: _("show or hide the rubric"),
    KeyAction.REFERENCE: _("show or hide the expected answer"),
    KeyAction.RAW: _("show the answer as raw text"),
    KeyAction.PASSAGE_BEFORE: _("previous passage"),
    KeyAction.PASSAGE_AFTER: _("next passage"),
    KeyAction.UNDO: _("undo: return to the last item"),
    KeyAction.CHANGE: _("change my rating after seeing the judge"),
}


class Keys(NamedTuple):
    """A person's keys: ``labels`` by action, ``card`` and ``reveal`` as JSON for the scripts of both screens (key code
    -> action). ``off``: single keys are switched off."""

    labels: Mapping[str, str]
    lines: tuple[tuple[str, str], ...]
    card: str
    reveal: str
    off: bool


def user_keys(user: User) -> Keys:
    return _build_keys(tuple(keys_from(user.keymap).items()), user.keys_off, get_language())


@lru_cache(maxsize=256)
def _build_keys(keymap: tuple[tuple[KeyAction, str], ...], off: bool, _language: str | None) -> Keys:
    on_card = [(action, code) for action, code in keymap if action not in REVEAL_ACTIONS]
    return Keys(
        labels={str(action): KEY_LABELS[code] for action, code in keymap},
        lines=tuple((KEY_LABELS[code], str(TITLES[action])) for action, code in on_card),
        card=_keys_json(on_card),
        reveal=_keys_json((action, code) for action, code in keymap if action in REVEAL_ACTIONS),
        off=off,
    )


def _keys_json(keys: Iterable[tuple[KeyAction, str]]) -> str:
    return json.dumps({code: str(action) for action, code in keys}, sort_keys=True)


def chosen_keys(user: User, entered: Mapping[str, str]) -> list[tuple[KeyAction, str | Promise, str]]:
    """Actions with titles and selected key codes, or with those of a refused form."""
    codes = {str(action): code for action, code in keys_from(user.keymap).items()} | dict(entered)
    return [(action, TITLES[action], codes[str(action)]) for action in DEFAULT_KEYS]


FLAGS = {
    FlagKind.BAD_QUESTION: _("The question is bad"),
    FlagKind.BAD_REFERENCE: _("The expected answer is wrong or outdated"),
    FlagKind.UNREADABLE: _("The answer is unreadable"),
    FlagKind.UNSAFE: _("The answer is unsafe"),
    FlagKind.CONFLICT_OF_INTEREST: _("I have a conflict of interest"),
}


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """The review screen.

    ``judge`` holds title, value and reason by metric in assisted mode. ``form_key`` makes repeated submits of a form
    one decision. ``undo_id`` is the assignment that can be undone, or ``None``. ``draft_store`` names the browser's
    copy of the draft by item and rubric. ``form_hash`` is equal on all cards of a queue, so that templates can cache
    what depends on nothing else. ``lease_seconds`` is the remaining time of the lease. ``contexts_in_parts``: passages
    are shown where they are judged, and not listed again."""

    card: Card
    progress: OwnProgress
    guideline: SafeString
    guideline_open: bool
    answer: SafeString
    raw_pieces: tuple[TextPiece, ...]
    references_open: bool
    contexts_in_parts: bool
    claims: tuple[Claim, ...]
    judge: tuple[tuple[str, str, str], ...]
    fields: tuple[MetricField, ...]
    comment: str
    suggestion: str
    form_key: str
    undo_id: int | None
    error: str
    flags: tuple[tuple[FlagKind, str | Promise], ...]
    keys: Keys
    draft_store: str
    form_hash: str
    lease_seconds: int


def review_page(
    card: Card,
    progress: OwnProgress,
    *,
    draft: Mapping[str, Any],
    keys: Keys,
    undo_id: int | None = None,
    error: str = "",
    form_key: str = "",
    missing: Collection[str] = (),
    prefetched: bool = False,
) -> ReviewPage:
    """Build the screen with the draft; after a refused submit with the error and an unchanged ``form_key``.
    ``prefetched``: the card follows the current item."""
    values, parts, reason_codes = draft_texts(draft), draft_parts(draft), draft_reason_codes(draft)
    fields = [
        metric_field(
            metric,
            values.get(metric.name, ""),
            missing=metric.name in missing,
            reason_code=reason_codes.get(metric.name, ""),
            verdicts=parts.get(metric.name, ()),
        )
        for metric in card.metrics
    ]
    passages_index = next(
        (index for index, field in enumerate(fields) if any(part.passage for part in field.parts)), None
    )
    # Each passage is shown where it is judged.
    if passages_index is not None:
        passages = {passage.number: passage for passage in card.contexts or ()}
        field = fields[passages_index]
        parts_with_passages = tuple(
            part._replace(shown_passage=passages.get(part.passage or 0)) for part in field.parts
        )
        fields[passages_index] = field._replace(parts=parts_with_passages)
    asks_for_claims = any(metric.name == CLAIM_METRIC and metric.verdicts for metric in card.metrics)
    return ReviewPage(
        card=card,
        progress=progress,
        guideline=_guideline(card.guideline),
        guideline_open=not (prefetched or progress.rated or progress.passed_count),
        answer=answer_html(card.answer, card.claims, card.contexts),
        raw_pieces=raw_pieces(card.answer, card.claims),
        references_open=any(metric.by_reference for metric in card.metrics),
        contexts_in_parts=passages_index is not None,
        claims=card.claims if card.judge is not None or not asks_for_claims else (),
        judge=_judge_lines(card),
        fields=tuple(fields),
        comment=str(draft.get("comment", "")),
        suggestion=str(draft.get("suggestion", "")),
        form_key=form_key or uuid.uuid4().hex,
        undo_id=undo_id,
        error=error,
        flags=tuple(FLAGS.items()),
        keys=keys,
        draft_store=f"concord.draft.{card.id}.{_metrics_hash(card.metrics)[:12]}",
        form_hash=_metrics_hash(tuple(replace(metric, parts=()) for metric in card.metrics)),
        lease_seconds=max(0, int((card.lease_until - timezone.now()).total_seconds())),
    )


def own_ratings(card: Card) -> list[tuple[str, str, str]]:
    """Own ratings of a finished item: title, first and final value of each metric."""
    initial, final = card.given, card.final
    return [
        (metric.title, _rating_text(initial.get(metric.name), metric), _rating_text(final.get(metric.name), metric))
        for metric in card.metrics
    ]


def _judge_lines(card: Card) -> tuple[tuple[str, str, str], ...]:
    """Title, value and reason by metric; empty while the judge is hidden."""
    titles = {metric.name: metric.title for metric in card.metrics}
    return tuple(
        (
            titles[comparison.metric.name],
            judge_text(comparison.judge_value, comparison.metric.read_scale()),
            judge_reason(comparison.judge_value.reason)
            if comparison.judge_value and value_or_label(comparison.judge_value) is not None
            else "",
        )
        for comparison in card.judge or ()
    )


def _rating_text(rating: RatingInput | None, metric: CardMetric) -> str:
    if rating is None:
        return ""
    return gettext("cannot judge") if rating.cannot_judge else value_text(rating, scale_of(metric))


_guideline = lru_cache(maxsize=64)(render)


@lru_cache(maxsize=256)
def _metrics_hash(metrics: tuple[CardMetric, ...]) -> str:
    return content_hash([asdict(metric) for metric in metrics])
