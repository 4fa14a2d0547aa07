"""Whether what is kept of runs is still true, and who makes it anew.

A stamp names the state of everything that figures of a run rest on: the run's own state and how often something was
said, drawn or decided about answers to its questions. What stands under another stamp is old. Of small runs it is made
anew before the page is shown; of others a worker is asked to, and the page shows what stands with its age."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Later, Refused
from evaluation.models import Run, Score
from evaluation.worker.collector import held_back
from evaluation.worker.database import retry_on_db_error, unwritable
from evaluation.worker.dispatch import ring_for
from review.evidence.seals import Form, form_of, in_form
from review.models import Kept, Revision, Touched
from review.reports.provenance import product_version

FORM = 5  # rises when what is kept changes its form, so that nothing older is read
SMALL = 5_000  # scores that a page may wait for
LOST = timedelta(minutes=5)  # after which a worker that was asked will not come any more
WAITS = 5.0  # seconds for a database that takes no writing just now
LEAST_WAIT = 10  # seconds after which a program is to ask again
RESTS = 2.0  # times what making takes, before it is made again: looking does not keep a worker busy for good

T = TypeVar("T")
Make = Callable[[Sequence[Run]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Stands:
    """What is kept: nothing (``content`` is ``None``) before it was made once. ``old``: it is being made anew."""

    content: bytes | None
    made_at: datetime | None
    old: bool


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """What was made, and when."""

    value: T
    made_at: datetime | None


FULL = "full "  # begins the kinds of what is kept in the full form


def kind_in_form(kind: str, runs: Iterable[Run]) -> str:
    """The kind under which the current reader finds what is kept of the runs: in the full form only where it is that of
    every one of them."""
    projects = {run.project_id for run in runs}
    return FULL + kind if projects and all(form_of(pk) is Form.FULL for pk in projects) else kind


def subject_of(runs: Sequence[Run]) -> str:
    """What is kept of runs is found by their keys, in this order."""
    return ",".join(str(run.pk) for run in runs)


def count_touched() -> None:
    """Count what was touched as changes of its question sets. Whoever computes does so first: what was committed by
    then is in what they read, and what comes later is another change."""
    if not (rows := list(Touched.objects.values_list("pk", "answer__answer_set__question_set_id"))):
        return

    def write() -> None:
        with transaction.atomic():
            if not Touched.objects.filter(pk__in=[pk for pk, _ in rows]).delete()[0]:
                return  # somebody else counted them
            Revision.objects.bulk_create([Revision(question_set_id=pk) for pk in sets], ignore_conflicts=True)
            for pk in sets:
                Revision.objects.filter(pk=pk).update(number=F("number") + 1)

    sets = sorted(Counter(question_set for _, question_set in rows))
    _if_writable(write)


def _if_writable(write: Callable[[], None]) -> None:
    """Write what is to be kept, but where the database takes no writing: what was made is shown all the same."""
    with suppress(Refused):
        retry_on_db_error(write, seconds=WAITS)


def stamps_of(runs: Iterable[Run]) -> dict[int, str]:
    """The stamp of each run, empty while it is true of none: the run has not ended, or something was touched and is not
    counted yet. Three queries."""
    keys = [run.pk for run in runs]
    rows = Run.objects.filter(pk__in=keys)
    facts = list(rows.values_list("pk", "state", "finished_at", "answer_set__question_set_id"))
    numbers = dict(Revision.objects.filter(pk__in={row[3] for row in facts}).values_list("pk", "number"))
    touched = set(Touched.objects.values_list("answer__answer_set__question_set_id", flat=True))
    return {
        pk: ""
        if state not in Run.ENDED or question_set in touched
        else content_hash([FORM, product_version(), pk, state, str(finished), numbers.get(question_set, 0)])
        for pk, state, finished, question_set in facts
    }


def stamp_of(runs: Sequence[Run], stamps: Mapping[int, str]) -> str:
    """The stamp of several runs together, empty while that of one is."""
    each = [stamps.get(run.pk, "") for run in runs]
    return content_hash(each) if all(each) else ""


def look(kind: str, make: Make, subjects: Sequence[Sequence[Run]], *, asked: str = "") -> list[Stands]:
    """What is kept of each subject. Small ones that are old are made; for others a worker is asked, by the name
    ``asked`` (``kind`` without one). Four queries where nothing is old."""
    names = [subject_of(runs) for runs in subjects]
    kinds = [kind_in_form(kind, runs) for runs in subjects]
    found = Kept.objects.filter(kind__in=set(kinds), subject__in=names)
    rows = {(row.kind, row.subject): row for row in found}
    stamps = stamps_of(run for runs in subjects for run in runs)
    return [
        _stands(rows.get((of, name)), kind, make, runs, stamp_of(runs, stamps), asked or kind)
        for name, of, runs in zip(names, kinds, subjects, strict=True)
    ]


def _stands(row: Kept | None, kind: str, make: Make, runs: Sequence[Run], stamp: str, asked: str) -> Stands:
    if row is not None and stamp and row.stamp == stamp:
        return Stands(bytes(row.content), row.made_at, old=False)
    if is_small(runs):
        return Stands(keep(make, runs)[kind], timezone.now(), old=False)
    ask(asked, runs)
    # A local worker may have made it meanwhile.
    row = Kept.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs)).first()
    if row is None or row.made_at is None:
        return Stands(None, None, old=True)
    return Stands(bytes(row.content), row.made_at, old=stamp_of(runs, stamps_of(runs)) != row.stamp)


def now(kind: str, make: Make, runs: Sequence[Run]) -> Made[bytes]:
    """What is kept of the runs where it holds, for programs and files. Of small runs it is made at once else; of others
    a worker is asked, and what one made is handed out for as long as none makes it anew. Five queries where it holds.

    :raises Later: ``figures_in_making``.
    """
    rows = Kept.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs))
    if not is_true(kind, runs):
        if is_small(runs):
            return Made(keep(make, runs)[kind], timezone.now())
        ask(kind, runs)
        row = rows.first()  # none where no writing is taken
        if row is None or not (_rests(row) or is_true(kind, runs)):  # a local worker has done it meanwhile
            raise Later("figures_in_making", max(LEAST_WAIT, math.ceil(row.seconds if row else 0)))
    row = rows.get()
    return Made(bytes(row.content), row.made_at)


def is_true(kind: str, runs: Sequence[Run]) -> bool:
    """Whether what is kept of the runs holds. Four queries."""
    stamp = stamp_of(runs, stamps_of(runs))
    rows = Kept.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs), stamp=stamp)
    return bool(stamp) and rows.exists()


def is_small(runs: Sequence[Run]) -> bool:
    """Whether a page may wait for what is made of the runs."""
    return len(Score.objects.filter(run__in=runs).order_by()[: SMALL + 1].values_list("pk")) <= SMALL


def keep(make: Make, runs: Sequence[Run]) -> Mapping[str, bytes]:
    """Make everything of the runs that ``make`` makes in the current reader's form, and keep it."""
    form = Form.FULL if kind_in_form("", runs) else Form.OPEN
    count_touched()
    stamp, began = stamp_of(runs, stamps_of(runs)), time.monotonic()
    with held_back(), in_form(form):
        made = make(runs)
        kinds = {kind: kind_in_form(kind, runs) for kind in made}
    told = {"stamp": stamp, "made_at": timezone.now(), "seconds": time.monotonic() - began}
    rows = [Kept(kind=kinds[kind], subject=subject_of(runs), content=content, **told) for kind, content in made.items()]

    def write() -> None:
        Kept.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["kind", "subject"],
            update_fields=["stamp", "content", "made_at", "seconds", "asked_at"],
        )

    _if_writable(write)
    return made


def _rests(row: Kept) -> bool:
    """Whether it was made so lately that no worker makes it anew."""
    return row.made_at is not None and (timezone.now() - row.made_at).total_seconds() < RESTS * row.seconds


def ask(kind: str, runs: Sequence[Run]) -> None:
    """Have a worker make what is old, unless one was asked already or has done so just now; nobody is asked where the
    database takes no writing."""
    try:
        _ask(kind, runs)
    except DatabaseError as error:
        if not unwritable(error):
            raise


def _ask(kind: str, runs: Sequence[Run]) -> None:
    row, _made = Kept.objects.get_or_create(kind=kind_in_form(kind, runs), subject=subject_of(runs))
    now = timezone.now()
    if row.asked_at and now - row.asked_at < LOST:
        return
    if _rests(row):
        return
    with transaction.atomic():
        if Kept.objects.filter(pk=row.pk, asked_at=row.asked_at).update(asked_at=now):
            ring_for("review.figure_cache.making.remake", row.pk)
