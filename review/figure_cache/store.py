"""Store of cached figures: validity, and rebuilding in the request or by a worker.

A stamp identifies the state of all inputs of a run's figures: the state of the run, and the number of changes to
answers of its question set. Entries with another stamp are stale. Figures of small runs are rebuilt in the request. For
others a worker rebuilds, and the page shows the stale figures with their age."""

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
from evaluation.core.errors import DomainError, NotReady
from evaluation.models import Run, Score
from evaluation.storage.versions import product_version
from evaluation.worker.database import retry_on_db_error, unwritable_reason
from evaluation.worker.dispatch import enqueue_task
from evaluation.worker.gc_pause import paused_gc
from review.evidence.seals import LabelForm, fixed_label_form, label_form
from review.models import CachedFigures, PendingInvalidation, QuestionSetRevision

# Increase when the format of cached content changes.
CACHE_VERSION = 5
# Scores of runs that a page computes itself.
MAX_SMALL_SCORES = 5_000
# A request older than this counts as lost and is repeated.
REQUEST_TIMEOUT = timedelta(minutes=5)
# Seconds to retry a write.
WRITE_SECONDS = 5.0
# Minimum seconds before a program should retry.
MIN_RETRY_SECONDS = 10
# Minimum pause between rebuilds as a multiple of the last build time, so that page views cannot keep a worker busy.
REBUILD_PAUSE_FACTOR = 2.0

T = TypeVar("T")
Build = Callable[[Sequence[Run]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A cache entry. ``content`` is ``None`` until it is built once. ``stale``: a rebuild is requested."""

    content: bytes | None
    built_at: datetime | None
    stale: bool


@dataclass(frozen=True, slots=True)
class Built(Generic[T]):
    """A value with the time it was built."""

    value: T
    built_at: datetime | None


# Prefix of kinds in the full form.
FULL = "full "


def kind_in_form(kind: str, runs: Iterable[Run]) -> str:
    """Cache kind for the current reader: the full form only if it applies to all projects of the runs."""
    projects = {run.project_id for run in runs}
    return FULL + kind if projects and all(label_form(pk) is LabelForm.FULL for pk in projects) else kind


def subject_of(runs: Sequence[Run]) -> str:
    """Cache key of the runs, in this order."""
    return ",".join(str(run.pk) for run in runs)


def count_invalidations() -> None:
    """Count pending invalidations as changes of their question sets.

    Call it before computing: commits up to then are in the data read, and later ones count as another change."""
    if not (rows := list(PendingInvalidation.objects.values_list("pk", "answer__answer_set__question_set_id"))):
        return

    def write() -> None:
        with transaction.atomic():
            if not PendingInvalidation.objects.filter(pk__in=[pk for pk, _ in rows]).delete()[0]:
                # Another process counted them.
                return
            QuestionSetRevision.objects.bulk_create(
                [QuestionSetRevision(question_set_id=pk) for pk in sets], ignore_conflicts=True
            )
            for pk in sets:
                QuestionSetRevision.objects.filter(pk=pk).update(number=F("number") + 1)

    sets = sorted(Counter(question_set for _, question_set in rows))
    _if_writable(write)


def _if_writable(write: Callable[[], None]) -> None:
    """Write unless the database is read-only, because the built figures can be shown anyway."""
    with suppress(DomainError):
        retry_on_db_error(write, seconds=WRITE_SECONDS)


def stamps_of(runs: Iterable[Run]) -> dict[int, str]:
    """Stamp of each run. Empty while the run has not ended or invalidations are pending. Three queries."""
    keys = [run.pk for run in runs]
    rows = Run.objects.filter(pk__in=keys)
    facts = list(rows.values_list("pk", "state", "finished_at", "answer_set__question_set_id"))
    numbers = dict(QuestionSetRevision.objects.filter(pk__in={row[3] for row in facts}).values_list("pk", "number"))
    invalidated_sets = set(PendingInvalidation.objects.values_list("answer__answer_set__question_set_id", flat=True))
    return {
        pk: ""
        if state not in Run.ENDED or question_set in invalidated_sets
        else content_hash([CACHE_VERSION, product_version(), pk, state, str(finished), numbers.get(question_set, 0)])
        for pk, state, finished, question_set in facts
    }


def stamp_of(runs: Sequence[Run], stamps: Mapping[int, str]) -> str:
    """Stamp of several runs, empty while that of any is."""
    run_stamps = [stamps.get(run.pk, "") for run in runs]
    return content_hash(run_stamps) if all(run_stamps) else ""


def get_or_build(
    kind: str, build: Build, subjects: Sequence[Sequence[Run]], *, requested_kind: str = ""
) -> list[CacheEntry]:
    """Return the cache entry of each subject. Rebuilds stale entries of small runs and requests ``requested_kind``
    (default ``kind``) for others.

    Four queries if all entries are current."""
    names = [subject_of(runs) for runs in subjects]
    kinds = [kind_in_form(kind, runs) for runs in subjects]
    cached_rows = CachedFigures.objects.filter(kind__in=set(kinds), subject__in=names)
    rows = {(row.kind, row.subject): row for row in cached_rows}
    stamps = stamps_of(run for runs in subjects for run in runs)
    return [
        _current_entry(rows.get((form_kind, name)), kind, build, runs, stamp_of(runs, stamps), requested_kind or kind)
        for name, form_kind, runs in zip(names, kinds, subjects, strict=True)
    ]


def _current_entry(
    row: CachedFigures | None, kind: str, build: Build, runs: Sequence[Run], stamp: str, requested_kind: str
) -> CacheEntry:
    if row is not None and stamp and row.stamp == stamp:
        return CacheEntry(bytes(row.content), row.built_at, stale=False)
    if is_small(runs):
        return CacheEntry(build_and_store(build, runs)[kind], timezone.now(), stale=False)
    request_rebuild(requested_kind, runs)
    # A local worker may have built it meanwhile.
    row = CachedFigures.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs)).first()
    if row is None or row.built_at is None:
        return CacheEntry(None, None, stale=True)
    return CacheEntry(bytes(row.content), row.built_at, stale=stamp_of(runs, stamps_of(runs)) != row.stamp)


def require_current(kind: str, build: Build, runs: Sequence[Run]) -> Built[bytes]:
    """Return current content for programs and files. Builds small runs at once and requests others.

    Content built very recently is returned although stale. Five queries if it is current.

    :raises Later: ``figures_in_making`` while a worker builds."""
    rows = CachedFigures.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs))
    if not is_current(kind, runs):
        if is_small(runs):
            return Built(build_and_store(build, runs)[kind], timezone.now())
        request_rebuild(kind, runs)
        # No row exists if the database is read-only.
        row = rows.first()
        # A local worker may have built it meanwhile.
        if row is None or not (_recently_built(row) or is_current(kind, runs)):
            raise NotReady("figures_in_making", max(MIN_RETRY_SECONDS, math.ceil(row.seconds if row else 0)))
    row = rows.get()
    return Built(bytes(row.content), row.built_at)


def is_current(kind: str, runs: Sequence[Run]) -> bool:
    """Return whether the entry of the runs is current. Four queries."""
    stamp = stamp_of(runs, stamps_of(runs))
    rows = CachedFigures.objects.filter(kind=kind_in_form(kind, runs), subject=subject_of(runs), stamp=stamp)
    return bool(stamp) and rows.exists()


def is_small(runs: Sequence[Run]) -> bool:
    """Return whether the runs are small enough to build within a request."""
    return (
        len(Score.objects.filter(run__in=runs).order_by()[: MAX_SMALL_SCORES + 1].values_list("pk")) <= MAX_SMALL_SCORES
    )


def build_and_store(build: Build, runs: Sequence[Run]) -> Mapping[str, bytes]:
    """Build all entries of the runs in the current reader's form and store them."""
    form = LabelForm.FULL if kind_in_form("", runs) else LabelForm.OPEN
    count_invalidations()
    stamp, began = stamp_of(runs, stamps_of(runs)), time.monotonic()
    with paused_gc(), fixed_label_form(form):
        contents = build(runs)
        kinds = {kind: kind_in_form(kind, runs) for kind in contents}
    fields = {"stamp": stamp, "built_at": timezone.now(), "seconds": time.monotonic() - began}
    rows = [
        CachedFigures(kind=kinds[kind], subject=subject_of(runs), content=content, **fields)
        for kind, content in contents.items()
    ]

    def write() -> None:
        CachedFigures.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["kind", "subject"],
            update_fields=["stamp", "content", "built_at", "seconds", "rebuild_requested_at"],
        )

    _if_writable(write)
    return contents


def _recently_built(row: CachedFigures) -> bool:
    """Return whether the entry was built too recently to rebuild."""
    return (
        row.built_at is not None
        and (timezone.now() - row.built_at).total_seconds() < REBUILD_PAUSE_FACTOR * row.seconds
    )


def request_rebuild(kind: str, runs: Sequence[Run]) -> None:
    """Have a worker rebuild the entry, unless that was requested or done just now, or the database is read-only."""
    try:
        _request_rebuild(kind, runs)
    except DatabaseError as error:
        if not unwritable_reason(error):
            raise


def _request_rebuild(kind: str, runs: Sequence[Run]) -> None:
    row, _created = CachedFigures.objects.get_or_create(kind=kind_in_form(kind, runs), subject=subject_of(runs))
    now = timezone.now()
    if row.rebuild_requested_at and now - row.rebuild_requested_at < REQUEST_TIMEOUT:
        return
    if _recently_built(row):
        return
    with transaction.atomic():
        if CachedFigures.objects.filter(pk=row.pk, rebuild_requested_at=row.rebuild_requested_at).update(
            rebuild_requested_at=now
        ):
            enqueue_task("review.figure_cache.builders.rebuild", row.pk)
