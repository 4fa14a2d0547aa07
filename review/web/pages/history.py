"""The history of an answer in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evaluation.judges.shipping import BASELINE
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.evidence.rating_input import FlagKind, OverrideReason
from review.results.history import Event, EventKind
from review.web.pages.reveal import REASONS
from review.web.pages.review_card import FLAGS

KINDS: Mapping[EventKind, tuple[str, str | Promise]] = {
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


@dataclass(frozen=True, slots=True)
class Line:
    """One event. ``mark`` is the shape of who said it; ``run`` is told where there are several; ``blind`` is ``None``
    where it means nothing."""

    at: datetime
    mark: str
    what: str
    run: str
    who: str
    metric: str
    value: str
    blind: bool | None
    why: str
    text: str


def history_lines(events: Iterable[Event], runs: Mapping[int, str], language: str) -> tuple[Line, ...]:
    """The events in words, newest first; ``runs`` are the names of those whose scores have to be told apart."""
    return tuple(reversed([_line(event, runs.get(event.run_id or 0, ""), language) for event in events]))


def _line(event: Event, run: str, language: str) -> Line:
    metric = event.metric
    mark, what = KINDS[event.kind]
    said = event.label if event.value is None else event.value
    value = ""
    if event.status == "cannot_judge":
        value = str(_("cannot judge"))
    elif said is not None:
        value = numbers.on_scale(said, metric.read_scale()) if metric else str(said)
    title = (metric.title.get(language) or metric.name) if metric else ""
    if event.kind is EventKind.SCORE and not event.who:
        mark = "rule"
    return Line(event.at, mark, str(what), run, _who(event), title, value, event.blind, _why(event), event.text)


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
