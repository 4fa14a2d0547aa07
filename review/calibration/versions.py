"""Gold set versions: selects ratings, computes labels and weights, and adds versions to a lineage."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.core.scales import ScaleKind
from evaluation.models import Answer, MetricDefinition, Project, Run, SealedAnswer, User
from evaluation.worker.lifecycle import seal_key
from review.evidence.answers import exposed_answers
from review.evidence.effective import load_evidence, run_samples
from review.evidence.experts import ExpertRating, agreement_ratings
from review.evidence.invalidation import invalidate_project_figures
from review.evidence.sampling import weight_answers
from review.evidence.seals import LabelForm, fixed_label_form, sealed_answers
from review.models import GoldItem, GoldRetirement, GoldSet, Rating
from review.statistics.gold_split import AnswerGroup, Split, split_groups

MAX_NAME_CHARS = 100
UNKNOWN_LABEL = -1.0


@dataclass(frozen=True, slots=True)
class GoldLabel:
    """An answer's label on a metric before it is assigned to a split. ``ratings`` are (key, value) pairs."""

    answer_id: int
    metric: MetricDefinition
    label: float
    ratings: tuple[tuple[int, float], ...]
    weight: float
    group: str
    category: str
    seen: bool


def collect_labels(run: Run, metrics: Collection[str] = ()) -> list[GoldLabel]:
    """Return the labels from blind first ratings of a run's answers, by metric and answer, for numeric metrics.

    Example ratings are left out. Adjudications are, too: disputes chosen because the judge differed would bias the
    label."""
    with fixed_label_form(LabelForm.FULL):
        evidence = load_evidence(run)
    samples = run_samples(run, evidence)
    by_key = agreement_ratings(row for row in evidence.ratings if not row.example)
    labels: list[GoldLabel] = []
    for pk in sorted({metric for _, metric in by_key}, key=lambda pk: evidence.names[pk]):
        metric = evidence.metrics[pk]
        if metric.read_scale().kind is ScaleKind.CLASS or (metrics and metric.name not in metrics):
            continue
        ratings = {answer: by_key[answer, pk] for answer in evidence.answers if (answer, pk) in by_key}
        weighting = weight_answers(ratings, samples.rounds(pk, evidence.ratings))
        seen = _answers_with_judge_seen(ratings)
        for index, answer in enumerate(weighting.answers):
            rating_values = tuple((rating.pk, rating.value) for rating in ratings[answer] if rating.value is not None)
            if not rating_values:
                continue
            answer_info = evidence.answers[answer]
            labels.append(
                GoldLabel(
                    answer_id=answer,
                    metric=metric,
                    label=math.fsum(value for _, value in rating_values) / len(rating_values),
                    ratings=rating_values,
                    weight=1.0 if weighting.weights is None else weighting.weights[index],
                    group=answer_info.group,
                    category=answer_info.category,
                    seen=answer in seen,
                )
            )
    return labels


def _answers_with_judge_seen(ratings: Mapping[int, Sequence[ExpertRating]]) -> set[int]:
    """Return the answers of which a rater has ever seen a judge's value."""
    all_ids = [rating.pk for answer_ratings in ratings.values() for rating in answer_ratings]
    rows = Rating.objects.filter(pk__in=all_ids, reviewer__isnull=False)
    revealed = rows.filter(assignment__revealed_at__isnull=False).values_list("answer_id", flat=True)
    raters = set(rows.values_list("reviewer_id", "answer_id"))
    exposed = exposed_answers({user for user, _ in raters if user}, ratings)
    return {*revealed, *(answer for user, answer in raters if answer in exposed.get(user or 0, ()))}


def ratings_hash(ratings: Iterable[tuple[int, float]]) -> str:
    """Return the SHA-256 of the ratings behind a label, by key and value."""
    return content_hash([[pk, float(value)] for pk, value in sorted(ratings)])


def set_hash(previous_hash: str, items: Iterable[GoldItem]) -> str:
    """Return the SHA-256 of a version: the previous version's hash and every item with its ratings."""
    rows = [
        [
            item.answer_id,
            item.metric_id,
            item.label,
            item.ratings_hash,
            item.weight,
            item.split,
            item.group,
            item.category,
            item.since,
            item.seen,
        ]
        for item in sorted(items, key=lambda item: (item.answer_id, item.metric_id))
    ]
    return content_hash([previous_hash, rows])


def lineage_versions(project_id: int, name: str) -> list[GoldSet]:
    """Return all versions of a gold set, oldest first."""
    return list(GoldSet.objects.filter(project=project_id, name=name).order_by("version"))


def is_retired(project_id: int, name: str) -> bool:
    return GoldRetirement.objects.filter(project=project_id, lineage=name).exists()


def secret_seed() -> int:
    """Return a random seed for a split. It is secret because equal labels are ordered by it."""
    return secrets.randbelow(2**31)


@transaction.atomic
def freeze(run: Run, name: str, *, by: User | None, metrics: Collection[str] = (), seed: int = 0) -> GoldSet:
    """Create the first version of a gold set from the labels of a run's answers.

    :raises DomainError: ``gold_exists`` for a used name, ``gold_name`` for an empty or too long one, ``gold_no_labels``
        without usable ratings."""
    lock_project(run.project_id)
    if not name.strip() or len(name) > MAX_NAME_CHARS:
        raise DomainError("gold_name", limit=MAX_NAME_CHARS)
    if lineage_versions(run.project_id, name):
        raise DomainError("gold_exists", name=name)
    return _store_version(run, name, [], collect_labels(run, metrics), by, seed)


@transaction.atomic
def grow(run: Run, name: str, *, by: User | None) -> GoldSet:
    """Create the next version of a gold set with additional labels of a run's answers.

    Existing items keep their label and split. New groups are distributed over all three splits.

    :raises DomainError: ``gold_unknown``, ``gold_retired``, ``gold_no_labels`` without new labels."""
    lock_project(run.project_id)
    versions = lineage_versions(run.project_id, name)
    if not versions:
        raise DomainError("gold_unknown", name=name)
    if is_retired(run.project_id, name):
        raise DomainError("gold_retired", gold=name)
    existing_items = list(versions[-1].items.select_related("metric"))
    existing_keys = {(item.answer_id, item.metric_id) for item in existing_items}
    metrics = {item.metric.name for item in existing_items}
    new = [label for label in collect_labels(run, metrics) if (label.answer_id, label.metric.pk) not in existing_keys]
    return _store_version(run, name, versions, new, by, versions[-1].seed, existing_items)


def _store_version(
    run: Run,
    name: str,
    versions: Sequence[GoldSet],
    new_labels: Sequence[GoldLabel],
    by: User | None,
    seed: int,
    existing_items: Sequence[GoldItem] = (),
) -> GoldSet:
    if not new_labels:
        raise DomainError("gold_no_labels")
    project, number = run.project, len(versions) + 1
    items = split_labels(run, new_labels, seed, number, existing_items)
    previous_hash = versions[-1].content_hash if versions else ""
    digest = set_hash(previous_hash, items)
    gold_set = GoldSet.objects.create(
        project=project, name=name, version=number, seed=seed, content_hash=digest, created_by=by
    )
    for item in items:
        item.gold_set = gold_set
    GoldItem.objects.bulk_create(items, batch_size=500)
    invalidate_project_figures(project)
    _seal(project, {item.answer_id for item in items if item.split == Split.HOLD_OUT})
    audit.record(by, "gold.frozen", gold_set, hash=digest, version=number)
    return gold_set


def split_labels(
    run: Run, new_labels: Sequence[GoldLabel], seed: int, number: int = 1, existing_items: Sequence[GoldItem] = ()
) -> list[GoldItem]:
    """Return the unsaved items of version ``number``: copies of the existing ones, and the new labels with their
    split."""
    parts = {item.group: (item.split, item.since) for item in existing_items}
    with fixed_label_form(LabelForm.OPEN):
        sealed = sealed_answers(run.project_id, run.answer_set_id)
    new_splits = split_groups(_groups((item for item in new_labels if item.group not in parts), sealed), seed + number)
    parts |= {group: (part, number) for group, part in new_splits.items()}
    return [_copy_item(item) for item in existing_items] + [_gold_item(item, *parts[item.group]) for item in new_labels]


def _groups(labels: Iterable[GoldLabel], sealed: Collection[int]) -> dict[str, AnswerGroup]:
    """Return the groups to split.

    Labels sealed by another gold set count as unknown: otherwise the splits of many sets would reveal them."""
    by_group: dict[str, list[GoldLabel]] = {}
    for label in labels:
        by_group.setdefault(label.group, []).append(label)
    return {
        group: AnswerGroup(
            answers=len({label.answer_id for label in group_labels}),
            category=Counter(label.category for label in group_labels).most_common(1)[0][0],
            label=_mean_label([_on_unit_scale(label) for label in group_labels if label.answer_id not in sealed]),
        )
        for group, group_labels in by_group.items()
    }


def _mean_label(values: Sequence[float]) -> float:
    """Return the mean of labels on the unit scale; ``UNKNOWN_LABEL`` without any."""
    return math.fsum(values) / len(values) if values else UNKNOWN_LABEL


def _on_unit_scale(label: GoldLabel) -> float:
    scale = label.metric.read_scale()
    return (label.label - scale.low) / (scale.high - scale.low)


def _gold_item(label: GoldLabel, split: str, since: int) -> GoldItem:
    return GoldItem(
        answer_id=label.answer_id,
        metric=label.metric,
        label=label.label,
        raters=len(label.ratings),
        ratings=[list(rating) for rating in label.ratings],
        ratings_hash=ratings_hash(label.ratings),
        weight=label.weight,
        split=split,
        group=label.group,
        category=label.category,
        since=since,
        seen=label.seen,
    )


def _copy_item(item: GoldItem) -> GoldItem:
    """Copy an item for the next version."""
    fields = {column.attname: getattr(item, column.attname) for column in GoldItem._meta.concrete_fields}
    for name in ("id", "gold_set_id", "created_at"):
        del fields[name]
    return GoldItem(**fields)


def _seal(project: Project, answer_ids: Collection[int]) -> None:
    """Bar drafts and candidates from judging hold-out answers and copies of them."""
    answers = Answer.objects.filter(pk__in=answer_ids).select_related("question")
    SealedAnswer.objects.bulk_create(
        [
            SealedAnswer(project=project, question_hash=question, text_hash=text)
            for question, text in sorted({seal_key(answer) for answer in answers})
        ],
        ignore_conflicts=True,
    )


def find_changes(gold_set: GoldSet) -> list[str]:
    """Return codes of changes since the version was frozen.

    ``set``: the items do not match the version's hash. ``rating ANSWER METRIC``: a rating behind the label was removed
    or changed. ``label ANSWER METRIC``: the label is not the mean of its ratings."""
    items = list(gold_set.items.select_related("metric"))
    earlier_versions = [
        version
        for version in lineage_versions(gold_set.project_id, gold_set.name)
        if version.version < gold_set.version
    ]
    changes = (
        []
        if set_hash(earlier_versions[-1].content_hash if earlier_versions else "", items) == gold_set.content_hash
        else ["set"]
    )
    keys = [pk for item in items for pk, _ in item.ratings]
    current_values = dict(Rating.objects.filter(pk__in=keys).values_list("pk", "value"))
    for item in items:
        rating_values = [(pk, value) for pk, _ in item.ratings if (value := current_values.get(pk)) is not None]
        if len(rating_values) != item.raters or ratings_hash(rating_values) != item.ratings_hash:
            changes.append(f"rating {item.answer_id} {item.metric.name}")
        elif abs(math.fsum(value for _, value in rating_values) / len(rating_values) - item.label) > 1e-9:
            changes.append(f"label {item.answer_id} {item.metric.name}")
    return changes
