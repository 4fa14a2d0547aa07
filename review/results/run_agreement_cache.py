"""Agreement with its bootstrap intervals, computed once for the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.models import Run, Score
from evaluation.work.database import retry_on_db_error
from review.models import EventRuling, FrameMember, KeptFigures, Rating
from review.results.run_agreement import By, agreement_of
from review.statistics.agreement.bootstrap import Resampling

KEPT = timedelta(days=30)
FORM = 5  # rises when the figures or their names change, so that nothing older is shown
RESAMPLES = 2000
_NOTHING: tuple[int | None, int] = (None, 0)
_ASKED_FOR = ((RESAMPLES, By.CATEGORY), (RESAMPLES, By.NOTHING), (0, By.NOTHING))  # by pages, commands and trends


def kept_agreement(run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: By = By.NOTHING) -> dict[str, Any]:
    """The agreement of the run as JSON values, with intervals where ``resamples`` is above 0.

    Kept under the hash of everything it depends on. Four queries where nothing has changed; else it is computed, which
    takes seconds for large runs.
    """
    key = _key(run, resamples, seed, by)
    found = _kept(key)
    if found is None:
        resampling = Resampling(resamples, seed) if resamples > 0 else None
        found = agreement_of(run, resampling=resampling, by=by).to_dict()
        _keep(key, found)
    return found


def agreement_if_kept(
    run: Run, *, resamples: int = RESAMPLES, seed: int = 0, by: By = By.NOTHING
) -> dict[str, Any] | None:
    """The same where it is at hand, without computing anything. Four queries."""
    return _kept(_key(run, resamples, seed, by))


def kept_of(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """What is at hand of several runs, by run: figures with intervals before those without. Nothing is computed.
    Four queries however many runs there are."""
    inputs = _inputs_of(runs)
    keys = {
        _hashed(run, resamples, 0, by, inputs[run.pk]): (run.pk, place)
        for run in runs
        for place, (resamples, by) in enumerate(_ASKED_FOR)
    }
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for key, content in KeptFigures.objects.filter(key__in=keys).values_list("key", "content"):
        pk, place = keys[key]
        if pk not in found or place < found[pk][0]:
            found[pk] = place, content
    return {pk: content for pk, (_, content) in found.items()}


def _kept(key: str) -> dict[str, Any] | None:
    content: dict[str, Any] | None = KeptFigures.objects.filter(key=key).values_list("content", flat=True).first()
    return content


def _keep(key: str, content: dict[str, Any]) -> None:
    """Two who compute the same at the same time keep the same; what nobody asked for in a month goes."""

    def write() -> None:
        with transaction.atomic():
            KeptFigures.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
            KeptFigures.objects.bulk_create([KeptFigures(key=key, content=content)], ignore_conflicts=True)

    retry_on_db_error(write)


def _key(run: Run, resamples: int, seed: int, by: By) -> str:
    return _hashed(run, resamples, seed, by, _inputs_of([run])[run.pk])


def _hashed(run: Run, resamples: int, seed: int, by: By, inputs: list[int | None]) -> str:
    return content_hash(["agreement", FORM, run.pk, resamples, seed, str(by), *inputs])


def _inputs_of(runs: Sequence[Run]) -> dict[int, list[int | None]]:
    """What the figures of each run depend on: those tables only grow, so that their newest keys and counts tell whether
    anything was added. Four queries."""
    sets = {run.pk: run.answer_set_id for run in runs}
    of_answers = "answer__answer_set_id"
    scores = _newest(Score.objects.filter(run__in=sets), "run_id")
    ratings = _newest(Rating.objects.filter(**{f"{of_answers}__in": sets.values()}), of_answers)
    members = _newest(FrameMember.objects.filter(**{f"{of_answers}__in": sets.values()}), of_answers)
    of_items = "event__assignment__item__answer__answer_set_id"
    rulings = _newest(EventRuling.objects.filter(**{f"{of_items}__in": sets.values()}), of_items)
    tables = (ratings, members, rulings)
    return {
        pk: [*scores.get(pk, _NOTHING), *(cell for table in tables for cell in table.get(answers, _NOTHING))]
        for pk, answers in sets.items()
    }


def _newest(rows: QuerySet[Any], by: str) -> dict[int, tuple[int | None, int]]:
    """Newest key and number of rows in each group."""
    grouped = rows.order_by().values(by).annotate(newest=Max("id"), rows=Count("id"))
    return {row[by]: (row["newest"], row["rows"]) for row in grouped}
