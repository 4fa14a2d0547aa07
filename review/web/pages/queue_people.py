"""The people of a queue for its lead: how far and how fast each is, how far they agree, and what can be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import get_language

from evaluation.models import User
from evaluation.wording import numbers
from review.models import ReviewQueue
from review.queues.progress import Pace, QueueProgress, ReviewerProgress
from review.results.consistency import Consistency
from review.statistics.agreement.pair import PairAgreement


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A reviewer: what they did, how fast, and how many of their decisions took under three seconds."""

    pk: int
    name: str
    rated: int
    open: int
    skipped: int
    flagged: int
    week: int
    median: str
    quick: int
    measured: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """A reviewer on a criterion: with the others (``peers`` answers, exact and within one level, ``leniency`` in
    levels) and with themselves (``repeats``). Empty texts where nothing can be compared."""

    name: str
    metric: str
    peers: int
    exact: str
    within_one: str
    kappa: str
    leniency: str
    repeats: int
    self_exact: str
    self_kappa: str


@dataclass(frozen=True, slots=True)
class QueuePeoplePage:
    """The page. ``newcomers`` may be added; ``deadline`` is as the browser's field wants it."""

    pk: int
    name: str
    open: bool
    deadline: datetime | None
    deadline_field: str
    people: tuple[PersonRow, ...]
    agreement: tuple[AgreementRow, ...]
    newcomers: tuple[tuple[int, str], ...]
    error: str


def queue_people_page(
    queue: ReviewQueue,
    progress: QueueProgress,
    paces: Mapping[int, Pace],
    consistencies: Sequence[Consistency],
    newcomers: Iterable[User],
    *,
    deadline_field: str,
    error: str = "",
) -> QueuePeoplePage:
    """The page of a queue's people, in the order of their names and never by a figure."""
    names = {one.reviewer.pk: one.reviewer.known_as for one in progress.reviewers}
    return QueuePeoplePage(
        pk=queue.pk,
        name=queue.name,
        open=queue.state == ReviewQueue.State.OPEN,
        deadline=queue.deadline,
        deadline_field=deadline_field,
        people=tuple(_person(one, paces.get(one.reviewer.pk)) for one in progress.reviewers),
        agreement=tuple(_agreement(one, names.get(one.reviewer_id, "–")) for one in consistencies),
        newcomers=tuple((one.pk, one.known_as) for one in newcomers),
        error=error,
    )


def _person(one: ReviewerProgress, pace: Pace | None) -> PersonRow:
    median = pace.median_seconds if pace else None
    return PersonRow(
        pk=one.reviewer.pk,
        name=one.reviewer.known_as,
        rated=one.rated,
        open=one.open,
        skipped=one.skipped,
        flagged=one.flagged,
        week=pace.week if pace else 0,
        median="" if median is None else numbers.about(median),
        quick=pace.quick if pace else 0,
        measured=pace.measured if pace else 0,
        last=pace.last if pace else None,
    )


def _agreement(one: Consistency, name: str) -> AgreementRow:
    metric = one.metric
    return AgreementRow(
        name=name,
        metric=metric.title.get(get_language() or "en") or metric.name,
        peers=one.peers.n if one.peers else 0,
        exact=_share(one.peers, "exact"),
        within_one=_share(one.peers, "within_one"),
        kappa=_figure(one.peers, "cohen_kappa_quadratic"),
        leniency=_figure(one.peers, "bias", signed=True),
        repeats=one.oneself.n if one.oneself else 0,
        self_exact=_share(one.oneself, "exact"),
        self_kappa=_figure(one.oneself, "cohen_kappa_quadratic"),
    )


def _share(found: PairAgreement | None, name: str) -> str:
    value = found.statistics[name].value if found else None
    return "" if value is None else numbers.share(value)


def _figure(found: PairAgreement | None, name: str, *, signed: bool = False) -> str:
    value = found.statistics[name].value if found else None
    return "" if value is None else (numbers.signed(value) if signed else numbers.plain(value))
