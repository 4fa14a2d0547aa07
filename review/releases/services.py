"""Creation of a queue of pairs: both answers of drawn changed questions, mixed, each pair for the same reviewers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.models import AnswerSet, MetricDefinition, Run, User
from review.evidence.answers import exposed_answers, new_seed, shuffle_keys
from review.evidence.invalidation import invalidate_figures
from review.models import Draw, FrameMember, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import Distribution, QueueSpec, Reveal
from review.queues.creation import add_members, add_metrics, check_people, neutral_name
from review.releases.changes import AnsweredQuestion
from review.releases.selectors import Releases, fully_rated_questions, pair_releases
from review.reports.inputs import load_inputs
from review.statistics.sampling.draw import CERTAIN, CHANGED
from review.statistics.sampling.member import Inclusion

# Questions between the two answers of a pair, for each reviewer.
BLOCK = 8


@transaction.atomic
def make_pair_queue(
    current: Run,
    baseline: Run,
    size: int,
    reviewers: Sequence[User],
    *,
    reviews_needed: int = 1,
    looks: int = 1,
    seed: int | None = None,
    by: User | None = None,
) -> ReviewQueue:
    """Create a queue with both answers of ``size`` randomly drawn questions whose answers changed.

    It asks every judged criterion of the overall score, hides the system, and never shows the judge. The same people
    rate both answers of a question, not in succession; those who have not seen a judge's value of them come first.
    Questions that the same reviewers rated in both runs are certain: they count without being drawn again. The first
    queue of two runs plans the number of ``looks`` at their difference.

    :raises DomainError: ``unpaired_runs``, ``not_comparable``, ``no_metrics``, ``pairs_waiting``,
    ``all_pairs_rated``, ``size_below_one``, ``no_reviewers``, ``not_in_project`` or ``too_few_reviewers``."""
    people = list(dict.fromkeys(reviewers))
    check_people(people, current.project_id)
    if reviews_needed > len(people):
        raise DomainError("too_few_reviewers", needed=reviews_needed, people=len(people))
    if size < 1:
        raise DomainError("size_below_one", size=size)
    # Locked, so that a second request waits and finds the queue of the first.
    AnswerSet.objects.select_for_update(no_key=True).get(pk=current.answer_set_id)
    releases, metrics = _load_releases(current, baseline)
    seed = new_seed() if seed is None else seed
    random = Random(f"pairs {seed}")
    inclusions = _draw_questions(releases, size, random)
    drawn = [question for question in releases.changed if _is_drawn(inclusions[question.question_id])]
    spec = QueueSpec(
        reviews_needed=reviews_needed, distribution=Distribution.ROUND_ROBIN, reveal=Reveal.NEVER, looks=1, seed=seed
    )
    columns = spec.columns | {"name": neutral_name("", [current, baseline], hide_system=True)}
    queue = ReviewQueue.objects.create(project_id=current.project_id, created_by=by, **columns)
    add_metrics(queue, current, metrics)
    add_members(queue, people)
    # Everybody starts with the first block, so that pairs are completed early. The order itself is random.
    queue.members.update(offset=0)
    _store_draw(queue, current, baseline, releases.changed, inclusions, {"size": size, "looks": looks}, by)
    _add_items(queue, current, baseline, drawn, [person.pk for person in people], random)
    audit.record(by, "queue_made", queue, runs=[current.pk, baseline.pk], pairs=len(drawn))
    return queue


def _load_releases(current: Run, baseline: Run) -> tuple[Releases, list[MetricDefinition]]:
    """Pair the runs by standing ratings, and return the judged metrics of the score, by descending weight."""
    releases = pair_releases(load_inputs(current), load_inputs(baseline), standing=True)
    if releases is None:
        raise DomainError("unpaired_runs")
    if releases.reason:
        raise DomainError("not_comparable")
    if releases.draw and ReviewQueue.objects.filter(pk=releases.draw.queue_id, state=ReviewQueue.State.OPEN).exists():
        raise DomainError("pairs_waiting")
    parts = [part for part in releases.parts if part.component.judged]
    if not parts and releases.changed:
        raise DomainError("no_metrics")
    weight = {part.component.name: part.component.weight * part.component.high for part in parts}
    metrics = (metric for metric in releases.metrics if metric.name in weight)
    return releases, sorted(metrics, key=lambda metric: -weight[metric.name])


def _draw_questions(releases: Releases, size: int, random: Random) -> dict[str, Inclusion]:
    """Draw among the changed questions that are not certain."""
    certain = fully_rated_questions(releases)
    open_ids = [question.question_id for question in releases.changed if question.question_id not in certain]
    if not open_ids:
        raise DomainError("all_pairs_rated")
    count = min(size, len(open_ids))
    drawn = set(random.sample(open_ids, count))
    share = count / len(open_ids)
    return dict.fromkeys(certain, Inclusion(1.0, CERTAIN, True)) | {
        question_id: Inclusion(share, CHANGED, question_id in drawn) for question_id in open_ids
    }


def _is_drawn(inclusion: Inclusion) -> bool:
    return inclusion.sampled and inclusion.stratum == CHANGED


def _store_draw(
    queue: ReviewQueue,
    current: Run,
    baseline: Run,
    changed: Sequence[AnsweredQuestion],
    inclusions: Mapping[str, Inclusion],
    params: Mapping[str, int],
    by: User | None,
) -> None:
    rows = [(answer.answer_id, inclusions[question.question_id]) for question in changed for answer in question.answers]
    draw = Draw.objects.create(
        queue=queue,
        run=current,
        baseline=baseline,
        strategy=CHANGED,
        seed=queue.seed,
        params=dict(params),
        frame_size=len(rows),
        planned_after_looking=any(inclusion.stratum == CERTAIN for inclusion in inclusions.values()),
        created_by=by,
    )
    FrameMember.objects.bulk_create(
        (
            FrameMember(
                draw=draw,
                answer_id=answer_id,
                stratum=inclusion.stratum,
                probability=inclusion.probability,
                sampled=inclusion.sampled,
            )
            for answer_id, inclusion in rows
        ),
        batch_size=2_000,
    )
    invalidate_figures([answer_id for answer_id, _inclusion in rows[:1]])


def _add_items(
    queue: ReviewQueue,
    current: Run,
    baseline: Run,
    drawn: Sequence[AnsweredQuestion],
    reviewer_ids: Sequence[int],
    random: Random,
) -> None:
    run_of = {
        answer.answer_id: run
        for question in drawn
        for run, answers in ((current, question.new), (baseline, question.old))
        for answer in answers
        if not answer.failed
    }
    pairs = [[answer.answer_id for answer in question.answers] for question in drawn]
    order = pair_order(pairs, BLOCK * len(reviewer_ids), random)
    items = [
        ReviewItem(
            queue=queue,
            answer_id=answer_id,
            run=run_of[answer_id],
            shuffle_key=key,
            reviews_needed=queue.reviews_needed,
            reserved=True,
        )
        for answer_id, key in zip(order, sorted(shuffle_keys(queue.seed, len(order))), strict=True)
    ]
    ReviewItem.objects.bulk_create(items, batch_size=2_000)
    assigned = _assign_reviewers(pairs, reviewer_ids, queue.reviews_needed, random)
    Reservation.objects.bulk_create(
        (Reservation(item=item, reviewer_id=reviewer_id) for item in items for reviewer_id in assigned[item.answer_id]),
        batch_size=2_000,
    )


def pair_order(pairs: Sequence[Sequence[int]], block: int, random: Random) -> list[int]:
    """Random order of the answers of all pairs, in which the answers of a question are far apart.

    The questions are shuffled and cut into blocks of about ``block``. A block has one answer of each of its questions,
    then the other in the same order; chance decides which comes first. Hence every reviewer's part of the order keeps
    them apart too, and pairs are completed block by block."""
    shuffled = [random.sample(pair, len(pair)) for pair in random.sample(pairs, len(pairs))]
    blocks = max(1, len(shuffled) // block)
    order = []
    for number in range(blocks):
        questions = shuffled[number * len(shuffled) // blocks : (number + 1) * len(shuffled) // blocks]
        for turn in range(max(map(len, questions), default=0)):
            order += [answers[turn] for answers in questions if turn < len(answers)]
    return order


def _assign_reviewers(
    pairs: Sequence[Sequence[int]], reviewer_ids: Sequence[int], needed: int, random: Random
) -> dict[int, tuple[int, ...]]:
    """Reviewers of each answer: for both answers of a pair the same, preferably without knowledge of the judge, and
    with the fewest pairs so far."""
    answers = [answer for pair in pairs for answer in pair]
    exposed = exposed_answers(reviewer_ids, answers)
    loads = dict.fromkeys(random.sample(reviewer_ids, len(reviewer_ids)), 0)
    assigned: dict[int, tuple[int, ...]] = {}
    for pair in random.sample(pairs, len(pairs)):
        ranked = sorted(loads, key=lambda pk: (not exposed.get(pk, set()).isdisjoint(pair), loads[pk]))
        chosen = tuple(ranked[:needed])
        for pk in chosen:
            loads[pk] += 1
        assigned |= dict.fromkeys(pair, chosen)
    return assigned
