"""Agreement with its bootstrap intervals, computed once for the same inputs."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max

from evaluation.canonical import content_hash
from evaluation.runs.models import Run
from evaluation.scores.models import Score
from review.agreement.bootstrap import Resampling
from review.measures import agreement_of
from review.models.draws import FrameMember
from review.models.ratings import Rating

DAY = 24 * 3600
FORM = 1  # rises when the figures or their names change, so that nothing older is shown


def kept_agreement(run: Run, *, resamples: int, seed: int, by_category: bool) -> dict[str, Any]:
    """The agreement of the run as JSON values, with intervals where ``resamples`` is above 0.

    Kept for a day under the hash of everything it depends on; those tables only grow, so that their newest keys and
    counts tell whether anything was added. Three queries where nothing was.
    """
    key = "agreement:" + content_hash([FORM, run.pk, resamples, seed, by_category, *_inputs(run)])
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        resampling = Resampling(resamples, seed) if resamples > 0 else None
        found = agreement_of(run, resampling=resampling, by_category=by_category).to_dict()
        cache.set(key, found, DAY)
    return found


def _inputs(run: Run) -> list[int | None]:
    of_answers = {"answer__answer_set_id": run.answer_set_id}
    rows = (
        Score.objects.filter(run=run),
        Rating.objects.filter(**of_answers),
        FrameMember.objects.filter(**of_answers),
    )
    found: list[int | None] = []
    for table in rows:
        newest = table.aggregate(newest=Max("id"), rows=Count("id"))
        found += [newest["newest"], newest["rows"]]
    return found
