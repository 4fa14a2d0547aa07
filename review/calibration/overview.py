"""Summary of a gold set: its labels, shortfall, and hold-out tests. It reveals only the size of the hold-out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from evaluation.core.errors import UnknownName
from evaluation.judging.catalogue import families, family_named
from evaluation.models import Run
from review.calibration.versions import (
    collect_labels,
    find_changes,
    is_retired,
    lineage_versions,
    secret_seed,
    split_labels,
)
from review.evidence.seals import LabelForm, fixed_label_form, readable
from review.models import GoldItem, GoldSet, HoldoutTest, HoldoutTestResult
from review.statistics.acceptance import MIN_ANSWERS, MIN_GROUPS, holdout_shortage, remaining_error
from review.statistics.gold_split import Split


def find_gold_set(project_id: int, name: str) -> GoldSet:
    """Return the newest version of a gold set, or the one of ``NAME@VERSION``.

    :raises UnknownName: if the project has no such version."""
    base_name, _, number = name.rpartition("@")
    versions = lineage_versions(project_id, name)
    if not versions and base_name and number.isascii() and number.isdigit():
        versions = [version for version in lineage_versions(project_id, base_name) if version.version == int(number)]
    if not versions:
        known = GoldSet.objects.filter(project=project_id).order_by("name").values_list("name", flat=True).distinct()
        raise UnknownName("gold set", name, list(known))
    return versions[-1]


def labelled_families(gold_set: GoldSet) -> list[str]:
    """Return the rubric families with a labelled metric."""
    labelled = set(gold_set.items.order_by().values_list("metric__name", flat=True).distinct())
    return [name for name in families() if labelled & {spec.name for spec in family_named(name).produced_metrics}]


def next_step(gold_set: GoldSet, since: int = 1) -> int:
    """Return the number, from 1, of the next hold-out test on groups added since a version.

    Every earlier test that used some of these groups counts, also unfinished ones."""
    earlier = HoldoutTest.objects.filter(
        project=gold_set.project_id, lineage=gold_set.name, gold_set__version__gte=since
    )
    return 1 + earlier.exclude(result__outcome=HoldoutTestResult.Outcome.REFUSED).count()


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """Counts of a metric's labels in one split: answers, groups, and labels whose raters had seen a judge's value."""

    answers: int
    groups: int
    seen: int


@dataclass(frozen=True, slots=True)
class GoldMetric:
    """A metric of a gold set.

    ``lacks_groups`` and ``lacks_answers`` are missing from the hold-out before a test is possible. ``expert_loss`` is
    the mean squared distance of one expert to the mean of the others, over examples and validation: a bound for judges.
    It is ``None`` where no answer has two ratings."""

    metric: str
    parts: dict[str, SplitCounts]
    lacks_groups: int
    lacks_answers: int
    several_raters: int
    expert_loss: float | None

    @property
    def is_testable(self) -> bool:
        """Return whether the hold-out is large enough for a test."""
        return not (self.lacks_groups or self.lacks_answers)

    @property
    def answers(self) -> int:
        return sum(part.answers for part in self.parts.values())

    @property
    def groups(self) -> int:
        return sum(part.groups for part in self.parts.values())

    @property
    def needed_answers(self) -> int:
        """Rated answers needed for a testable hold-out, which gets half of them."""
        return max(2 * MIN_ANSWERS, self.answers + 2 * self.lacks_answers if self.lacks_answers else 0)

    @property
    def needed_groups(self) -> int:
        """Groups needed for a testable hold-out, which gets half of them."""
        return max(2 * MIN_GROUPS, self.groups + 2 * self.lacks_groups if self.lacks_groups else 0)


@dataclass(frozen=True, slots=True)
class GoldOverview:
    """``looks`` counts the tests of the lineage; ``left`` is the unspent part of the 5% error rate.

    ``changed`` lists changes since freezing. ``retired`` lineages allow no test and reveal their results."""

    name: str
    version: int
    content_hash: str
    metrics: tuple[GoldMetric, ...]
    categories: dict[str, int]
    looks: int
    left: float
    changed: tuple[str, ...]
    retired: bool = False


def overview(gold_set: GoldSet) -> GoldOverview:
    items = list(gold_set.items.select_related("metric"))
    with fixed_label_form(LabelForm.OPEN):
        unsealed = set(readable(gold_set.items.exclude(split=Split.HOLD_OUT)).values_list("pk", flat=True))
    step = next_step(gold_set)
    return GoldOverview(
        name=gold_set.name,
        version=gold_set.version,
        content_hash=gold_set.content_hash,
        metrics=_gold_metrics(items, unsealed),
        categories=dict(sorted(Counter(item.category for item in items).items())),
        looks=step - 1,
        left=remaining_error(step),
        changed=tuple(find_changes(gold_set)),
        retired=is_retired(gold_set.project_id, gold_set.name),
    )


def preview(run: Run) -> tuple[GoldMetric, ...]:
    """Summarize the labels that freezing the run's ratings would give, without storing them.

    The split is that of a random seed. If groups differ in size, the hold-out of the stored split may differ a little.
    """
    return _gold_metrics(split_labels(run, collect_labels(run), secret_seed()), frozenset())


def _gold_metrics(items: Sequence[GoldItem], unsealed: Set[int]) -> tuple[GoldMetric, ...]:
    by_metric: dict[str, list[GoldItem]] = {}
    for item in items:
        by_metric.setdefault(item.metric.name, []).append(item)
    return tuple(_gold_metric(name, metric_items, unsealed) for name, metric_items in sorted(by_metric.items()))


def _gold_metric(name: str, items: Sequence[GoldItem], unsealed: Set[int]) -> GoldMetric:
    parts = {str(part): [item for item in items if item.split == part] for part in Split}
    shortfall = holdout_shortage(item.group for item in parts[Split.HOLD_OUT])
    distances = [_expert_loss(item) for item in items if item.raters > 1 and item.pk in unsealed]
    return GoldMetric(
        metric=name,
        parts={
            part: SplitCounts(
                len(split_items), len({item.group for item in split_items}), sum(item.seen for item in split_items)
            )
            for part, split_items in parts.items()
        },
        lacks_groups=shortfall.groups if shortfall else 0,
        lacks_answers=shortfall.answers if shortfall else 0,
        several_raters=len(distances),
        expert_loss=math.fsum(distances) / len(distances) if distances else None,
    )


def _expert_loss(item: GoldItem) -> float:
    """Return the mean squared distance of each rater to the mean of the others."""
    values = [value for _, value in item.ratings]
    total, n = math.fsum(values), len(values)
    return math.fsum((value - (total - value) / (n - 1)) ** 2 for value in values) / n


def readable_labels(gold_set: GoldSet) -> list[dict[str, object]]:
    """Return readable labels with question and answer: examples and validation, and the hold-out once retired.

    Labels of answers that another gold set of the project locks are left out."""
    rows = readable(gold_set.items.select_related("metric", "answer__question"))
    if not is_retired(gold_set.project_id, gold_set.name):
        rows = rows.exclude(split=Split.HOLD_OUT)
    return [
        {
            "split": item.split,
            "question_id": item.answer.question.external_id,
            "question": item.answer.question.text,
            "answer_id": item.answer_id,
            "answer": item.answer.text,
            "category": item.category,
            "group": item.group,
            "metric": item.metric.name,
            "label": item.label,
            "raters": item.raters,
            "weight": item.weight,
            "seen": item.seen,
        }
        for item in rows.order_by("split", "id")
    ]
