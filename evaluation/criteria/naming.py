"""Which names a profile may give to metrics: what the code declares, and the criteria of its project."""

from __future__ import annotations

from collections.abc import Iterable

from evaluation.core.errors import UnknownName
from evaluation.judges.definitions import declared
from evaluation.models import Criterion


def check_metric_names(project_id: int, names: Iterable[str]) -> None:
    """Every name is a metric's or a criterion's; a criterion need not be in force yet. One query.

    :raises UnknownName: for the first name that is neither.
    """
    criteria = Criterion.objects.filter(project_id=project_id).values_list("name", flat=True)
    known = [*declared(), *criteria]
    for name in names:
        if name not in known:
            raise UnknownName("metric", name, known)
