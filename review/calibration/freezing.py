"""Freezing labels: which ratings enter, what an answer's label and weight are, and the next version of a lineage."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.scales import ScaleKind
from evaluation.models import Answer, MetricDefinition, Project, Run, SealedAnswer, User
from evaluation.worker.lifecycle import seal_of
from review.evidence.changes import touch_project
from review.evidence.effective import said_of, samples_behind
from review.evidence.experts import ExpertRating, agreement_ratings
from review.evidence.sampling import weigh
from review.evidence.seals import Form, in_form, sealed_answers
from review.models import Exposure, GoldItem, GoldRetirement, GoldSet, Rating
from review.statistics.gold_split import Group, Split, split_groups

LONGEST_NAME = 100
UNKNOWN = -1.0


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer's label on a metric, before it has a part. ``ratings`` are (key, value) of the ratings behind it."""

    answer_id: int
    metric: MetricDefinition
    label: float
    ratings: tuple[tuple[int, float], ...]
    weight: float
    group: str
    category: str
    seen: bool


def labels_in(run: Run, metrics: Collection[str] = ()) -> list[Labelled]:
    """The labels that the ratings of a run's answers give, by metric and answer: of metrics with numbers, from the
    first ratings that were given blind and not for show. Adjudications do not enter: a dispute that was chosen because
    the judge differed would draw the label to or from the judge."""
    with in_form(Form.FULL):
        said = said_of(run)
    samples = samples_behind(run, said)
    by_key = agreement_ratings(row for row in said.ratings if not row.example)
    found: list[Labelled] = []
    for pk in sorted({metric for _, metric in by_key}, key=lambda pk: said.names[pk]):
        metric = said.metrics[pk]
        if metric.read_scale().kind is ScaleKind.CLASS or (metrics and metric.name not in metrics):
            continue
        ratings = {answer: by_key[answer, pk] for answer in said.answers if (answer, pk) in by_key}
        weighting = weigh(ratings, samples.places(pk, said.ratings))
        seen = _seen_by_raters(run, ratings)
        for at, answer in enumerate(weighting.answers):
            given = tuple((one.pk, one.value) for one in ratings[answer] if one.value is not None)
            if not given:
                continue
            about = said.answers[answer]
            found.append(
                Labelled(
                    answer_id=answer,
                    metric=metric,
                    label=math.fsum(value for _, value in given) / len(given),
                    ratings=given,
                    weight=1.0 if weighting.weights is None else weighting.weights[at],
                    group=about.group,
                    category=about.category,
                    seen=answer in seen,
                )
            )
    return found


def _seen_by_raters(run: Run, ratings: Mapping[int, Sequence[ExpertRating]]) -> set[int]:
    """Answers of which one of the raters was shown a judge's value, whenever that was. Two queries."""
    of_answer = {answer: [one.pk for one in several] for answer, several in ratings.items()}
    everybody = [pk for several in of_answer.values() for pk in several]
    rows = Rating.objects.filter(pk__in=everybody, reviewer__isnull=False)
    revealed = set(rows.filter(assignment__revealed_at__isnull=False).values_list("answer_id", flat=True))
    of_set = Run.objects.filter(answer_set=run.answer_set_id).values("pk")
    shown = Q(scope="answer", object_id__in=list(of_answer)) | Q(scope="run", object_id__in=of_set)
    exposed: dict[int, set[tuple[str, int]]] = {}
    for user, scope, about in Exposure.objects.filter(shown).values_list("user_id", "scope", "object_id"):
        exposed.setdefault(user, set()).add((scope, about))
    for answer, user in rows.values_list("answer_id", "reviewer_id"):
        of_user = exposed.get(user or 0, set())
        if ("answer", answer) in of_user or any(scope == "run" for scope, _ in of_user):
            revealed.add(answer)
    return revealed


def ratings_hash(ratings: Iterable[tuple[int, float]]) -> str:
    """SHA-256 of the ratings behind a label, by key and value."""
    return content_hash([[pk, float(value)] for pk, value in sorted(ratings)])


def set_hash(before: str, items: Iterable[GoldItem]) -> str:
    """SHA-256 of a version: of the one before it and of every item with the ratings behind it."""
    rows = [
        [
            one.answer_id,
            one.metric_id,
            one.label,
            one.ratings_hash,
            one.weight,
            one.split,
            one.group,
            one.category,
            one.since,
            one.seen,
        ]
        for one in sorted(items, key=lambda one: (one.answer_id, one.metric_id))
    ]
    return content_hash([before, rows])


def lineage_of(project_id: int, name: str) -> list[GoldSet]:
    """The versions of a name, oldest first."""
    return list(GoldSet.objects.filter(project=project_id, name=name).order_by("version"))


def is_retired(project_id: int, name: str) -> bool:
    """Whether nobody may look at the hold-out of the lineage any more."""
    return GoldRetirement.objects.filter(project=project_id, lineage=name).exists()


def secret_seed() -> int:
    """A random seed for a split. Equal labels are split in its order, so whoever knows it could narrow down labels."""
    return secrets.randbelow(2**31)


@transaction.atomic
def freeze(run: Run, name: str, *, by: User | None, metrics: Collection[str] = (), seed: int = 0) -> GoldSet:
    """The first version of a gold set, of the labels of a run's answers.

    :raises Refused: ``gold_exists`` for a name that is taken, ``gold_name`` for one that is empty or too long,
        ``gold_no_labels`` where no rating may enter.
    """
    lock_project(run.project_id)
    if not name.strip() or len(name) > LONGEST_NAME:
        raise Refused("gold_name", limit=LONGEST_NAME)
    if lineage_of(run.project_id, name):
        raise Refused("gold_exists", name=name)
    return _store(run, name, [], labels_in(run, metrics), by, seed)


@transaction.atomic
def grow(run: Run, name: str, *, by: User | None) -> GoldSet:
    """The next version of a gold set: all that the newest one holds, unchanged and in its part, and the labels of the
    run's answers that it does not hold, of the metrics it is about. Groups that are new go to all three parts.

    :raises Refused: ``gold_unknown``, ``gold_retired``, ``gold_no_labels`` where there is nothing new.
    """
    lock_project(run.project_id)
    versions = lineage_of(run.project_id, name)
    if not versions:
        raise Refused("gold_unknown", name=name)
    if is_retired(run.project_id, name):
        raise Refused("gold_retired", gold=name)
    held = list(versions[-1].items.select_related("metric"))
    there = {(one.answer_id, one.metric_id) for one in held}
    metrics = {one.metric.name for one in held}
    new = [one for one in labels_in(run, metrics) if (one.answer_id, one.metric.pk) not in there]
    return _store(run, name, versions, new, by, versions[-1].seed, held)


def _store(
    run: Run,
    name: str,
    versions: Sequence[GoldSet],
    new: Sequence[Labelled],
    by: User | None,
    seed: int,
    held: Sequence[GoldItem] = (),
) -> GoldSet:
    if not new:
        raise Refused("gold_no_labels")
    project, number = run.project, len(versions) + 1
    parts = {one.group: (one.split, one.since) for one in held}
    with in_form(Form.OPEN):
        sealed = sealed_answers(run.project_id, run.answer_set_id)
    added = split_groups(_groups((one for one in new if one.group not in parts), sealed), seed + number)
    parts |= {group: (part, number) for group, part in added.items()}
    items = [_again(one) for one in held] + [_item(one, *parts[one.group]) for one in new]
    before = versions[-1].content_hash if versions else ""
    digest = set_hash(before, items)
    made = GoldSet.objects.create(
        project=project, name=name, version=number, seed=seed, content_hash=digest, created_by=by
    )
    for one in items:
        one.gold_set = made
    GoldItem.objects.bulk_create(items, batch_size=500)
    touch_project(project)
    _seal(project, {one.answer_id for one in items if one.split == Split.HOLD_OUT})
    audit.record(by, "gold.frozen", made, hash=digest, version=number)
    return made


def _groups(labels: Iterable[Labelled], sealed: Collection[int]) -> dict[str, Group]:
    """The groups to split. Labels that another gold set seals count as unknown: which part an answer goes to must not
    depend on them, else the parts of many sets would tell them."""
    several: dict[str, list[Labelled]] = {}
    for one in labels:
        several.setdefault(one.group, []).append(one)
    return {
        group: Group(
            answers=len({one.answer_id for one in ones}),
            category=Counter(one.category for one in ones).most_common(1)[0][0],
            label=_mean([_on_unit_scale(one) for one in ones if one.answer_id not in sealed]),
        )
        for group, ones in several.items()
    }


def _mean(values: Sequence[float]) -> float:
    """The mean of labels on the unit scale; without any a value off the scale."""
    return math.fsum(values) / len(values) if values else UNKNOWN


def _on_unit_scale(one: Labelled) -> float:
    scale = one.metric.read_scale()
    return (one.label - scale.low) / (scale.high - scale.low)


def _item(one: Labelled, split: str, since: int) -> GoldItem:
    return GoldItem(
        answer_id=one.answer_id,
        metric=one.metric,
        label=one.label,
        raters=len(one.ratings),
        ratings=[list(rating) for rating in one.ratings],
        ratings_hash=ratings_hash(one.ratings),
        weight=one.weight,
        split=split,
        group=one.group,
        category=one.category,
        since=since,
        seen=one.seen,
    )


def _again(held: GoldItem) -> GoldItem:
    """The item as a row of the next version."""
    same = {field.attname: getattr(held, field.attname) for field in GoldItem._meta.concrete_fields}
    for name in ("id", "gold_set_id", "created_at"):
        del same[name]
    return GoldItem(**same)


def _seal(project: Project, answer_ids: Collection[int]) -> None:
    """Keep drafts and candidates from judging the hold-out, and every copy of it."""
    answers = Answer.objects.filter(pk__in=answer_ids).select_related("question")
    SealedAnswer.objects.bulk_create(
        [
            SealedAnswer(project=project, question_hash=question, text_hash=text)
            for question, text in sorted({seal_of(answer) for answer in answers})
        ],
        ignore_conflicts=True,
    )


def changed_in(gold_set: GoldSet) -> list[str]:
    """What is not as it was frozen: codes ``set`` (the items do not give the version's hash), ``rating ANSWER METRIC``
    (a rating behind the label is gone or says something else), ``label ANSWER METRIC`` (it is not their mean)."""
    items = list(gold_set.items.select_related("metric"))
    before = [one for one in lineage_of(gold_set.project_id, gold_set.name) if one.version < gold_set.version]
    found = [] if set_hash(before[-1].content_hash if before else "", items) == gold_set.content_hash else ["set"]
    keys = [pk for one in items for pk, _ in one.ratings]
    now = dict(Rating.objects.filter(pk__in=keys).values_list("pk", "value"))
    for one in items:
        said = [(pk, value) for pk, _ in one.ratings if (value := now.get(pk)) is not None]
        if len(said) != one.raters or ratings_hash(said) != one.ratings_hash:
            found.append(f"rating {one.answer_id} {one.metric.name}")
        elif abs(math.fsum(value for _, value in said) / len(said) - one.label) > 1e-9:
            found.append(f"label {one.answer_id} {one.metric.name}")
    return found
