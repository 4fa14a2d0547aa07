"""What a gold set holds, what it still lacks, and what its looks have spent. Of the hold-out nothing but its size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from evaluation.core.errors import UnknownName
from evaluation.judging.catalogue import families, family_named
from review.calibration.freezing import changed_in, is_retired, lineage_of
from review.evidence.seals import Form, in_form, readable
from review.models import GoldItem, GoldSet, Look, LookResult
from review.statistics.acceptance import left_before, too_small
from review.statistics.gold_split import Split


def gold_set_named(project_id: int, name: str) -> GoldSet:
    """The newest version of a gold set, or ``NAME@VERSION``.

    :raises UnknownName: where the project has none.
    """
    plain, _, number = name.rpartition("@")
    versions = lineage_of(project_id, name)
    if not versions and plain and number.isascii() and number.isdigit():
        versions = [one for one in lineage_of(project_id, plain) if one.version == int(number)]
    if not versions:
        known = GoldSet.objects.filter(project=project_id).order_by("name").values_list("name", flat=True).distinct()
        raise UnknownName("gold set", name, list(known))
    return versions[-1]


def families_in(gold_set: GoldSet) -> list[str]:
    """The rubric families of which a metric is labelled."""
    labelled = set(gold_set.items.order_by().values_list("metric__name", flat=True).distinct())
    return [name for name in families() if labelled & {spec.name for spec in family_named(name).given}]


def step_of(gold_set: GoldSet, since: int = 1) -> int:
    """The how-manieth test of the lineage, counted from 1, a look would be now at answers of groups added since a
    version: every earlier look that took part of the same groups counts, also those that have not ended."""
    earlier = Look.objects.filter(project=gold_set.project_id, lineage=gold_set.name, gold_set__version__gte=since)
    return 1 + earlier.exclude(result__outcome=LookResult.Outcome.REFUSED).count()


@dataclass(frozen=True, slots=True)
class PartOfMetric:
    """Labels of a metric in one part: answers, groups, and those seen. ``None`` where nothing is told."""

    answers: int
    groups: int
    seen: int


@dataclass(frozen=True, slots=True)
class MetricInGold:
    """A metric of a gold set. ``lacks_groups`` and ``lacks_answers`` are what its hold-out lacks before a look may be
    taken. ``expert_loss`` is the mean squared distance of one expert to the mean of the others of the same answer: what
    bounds how near a judge can come, over examples and validation; ``None`` where no answer has two."""

    metric: str
    parts: dict[str, PartOfMetric]
    lacks_groups: int
    lacks_answers: int
    several_raters: int
    expert_loss: float | None


@dataclass(frozen=True, slots=True)
class GoldOverview:
    """``looks`` counts the tests of the lineage for ever; ``left`` is what of the 5% is there to spend yet; ``changed``
    names what is not as it was frozen. ``retired``: nobody looks at it any more, and what looks saw may be told."""

    name: str
    version: int
    content_hash: str
    metrics: tuple[MetricInGold, ...]
    categories: dict[str, int]
    looks: int
    left: float
    changed: tuple[str, ...]
    retired: bool = False


def overview(gold_set: GoldSet) -> GoldOverview:
    """All that is told of a gold set."""
    items = list(gold_set.items.select_related("metric"))
    with in_form(Form.OPEN):
        unsealed = set(readable(gold_set.items.exclude(split=Split.HOLD_OUT)).values_list("pk", flat=True))
    by_metric: dict[str, list[GoldItem]] = {}
    for one in items:
        by_metric.setdefault(one.metric.name, []).append(one)
    step = step_of(gold_set)
    return GoldOverview(
        name=gold_set.name,
        version=gold_set.version,
        content_hash=gold_set.content_hash,
        metrics=tuple(_metric(name, ones, unsealed) for name, ones in sorted(by_metric.items())),
        categories=dict(sorted(Counter(one.category for one in items).items())),
        looks=step - 1,
        left=left_before(step),
        changed=tuple(changed_in(gold_set)),
        retired=is_retired(gold_set.project_id, gold_set.name),
    )


def _metric(name: str, items: Sequence[GoldItem], unsealed: Set[int]) -> MetricInGold:
    parts = {str(part): [one for one in items if one.split == part] for part in Split}
    lacks = too_small(one.group for one in parts[Split.HOLD_OUT])
    distances = [_apart(one) for one in items if one.raters > 1 and one.pk in unsealed]
    return MetricInGold(
        metric=name,
        parts={
            part: PartOfMetric(len(ones), len({one.group for one in ones}), sum(one.seen for one in ones))
            for part, ones in parts.items()
        },
        lacks_groups=lacks.groups if lacks else 0,
        lacks_answers=lacks.answers if lacks else 0,
        several_raters=len(distances),
        expert_loss=math.fsum(distances) / len(distances) if distances else None,
    )


def _apart(item: GoldItem) -> float:
    """The mean squared distance of each rater to the mean of the others."""
    values = [value for _, value in item.ratings]
    total, n = math.fsum(values), len(values)
    return math.fsum((value - (total - value) / (n - 1)) ** 2 for value in values) / n


def shown_items(gold_set: GoldSet) -> list[dict[str, object]]:
    """The labels that may be looked at, with question and answer, as rows: those of examples and validation; once the
    lineage is retired all. Labels of answers that another gold set of the project locks are left out."""
    rows = readable(gold_set.items.select_related("metric", "answer__question"))
    if not is_retired(gold_set.project_id, gold_set.name):
        rows = rows.exclude(split=Split.HOLD_OUT)
    return [
        {
            "split": one.split,
            "question_id": one.answer.question.external_id,
            "question": one.answer.question.text,
            "answer_id": one.answer_id,
            "answer": one.answer.text,
            "category": one.category,
            "group": one.group,
            "metric": one.metric.name,
            "label": one.label,
            "raters": one.raters,
            "weight": one.weight,
            "seen": one.seen,
        }
        for one in rows.order_by("split", "id")
    ]
