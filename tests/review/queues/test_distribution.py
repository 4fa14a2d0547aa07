"""Distribution of items: in turn, by load, by tag, by name; repeated items and items with several reviewers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import User
from review.evidence.effective import effective_values
from review.evidence.experts import agreement_ratings, effective_ratings, ratings_of, read_ratings
from review.evidence.rating_input import RatingInput
from review.models import Assignment, Reservation, ReviewItem, ReviewQueue
from review.queues.distribution import NamedReviewers, open_loads, repeat_window, reviews_per_item
from review.queues.progress import own_progress, queue_progress, rating_counts
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.submitting import skip, submit, undo
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user, question_spec

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
RATING = {"correctness": RatingInput(value=3), "faithfulness": RatingInput(value=3)}


def reviewers_of(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def big_run(count: int = 20) -> object:
    return make_scored_run(make_answer_set(make_question_set(specs=count)))


def distributed_queue(distribution: str, count: int = 20, reviewers: object = 3, **fields: object) -> ReviewQueue:
    return make_queue(big_run(count), reviewers, distribution=distribution, **fields)


def rate(assignment: Assignment, value: float = 3) -> Assignment:
    values = {name: RatingInput(value=value) for name in RATING}
    return submit(
        assignment, values, idempotency_key=f"k{assignment.pk}-{assignment.fence}", by=assignment.reviewer
    ).assignment


def rate_all(queue: ReviewQueue, user: User, limit: int = 500) -> list[Assignment]:
    """Rate the person's items in order and return the assignments."""
    assignments = []
    while (assignment := next_assignment(queue, user)) and len(assignments) < limit:
        assignments.append(assignment)
        rate(assignment)
    return assignments


def test_round_robin_gives_each_reviewer_an_equal_share() -> None:
    queue = distributed_queue("round_robin", 20, 3)
    # 20 items of one reviewer each among three: 7, 7 and 6
    assert sorted(Counter(Reservation.objects.values_list("reviewer", flat=True)).values()) == [6, 7, 7]
    rated_items = {
        user.pk: {assignment.item_id for assignment in rate_all(queue, user)} for user in reviewers_of(queue)
    }
    assert sorted(map(len, rated_items.values())) == [6, 7, 7]
    assert len(set().union(*rated_items.values())) == 20
    for pk, items in rated_items.items():
        assert items == set(Reservation.objects.filter(reviewer=pk).values_list("item", flat=True))


def test_load_balancing_counts_items_in_other_open_queues() -> None:
    run = big_run(10)
    busy, idle = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    make_queue(run, [busy], distribution="round_robin")
    assert open_loads([busy.pk, idle.pk]) == {busy.pk: 10}
    make_queue(run, [busy, idle], distribution="balanced", metrics=["completeness"])
    # busy has 10 already, so the first ten of the new ones go to idle and no tie is ever broken for busy
    assert open_loads([busy.pk, idle.pk]) == {busy.pk: 10, idle.pk: 10}


def test_load_balancing_ignores_rated_items() -> None:
    run = big_run(4)
    user = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, [user], distribution="round_robin", reviews_needed=1)
    rate(next_assignment(queue, user))
    assert open_loads([user.pk]) == {user.pk: 3}


def test_by_tag_prefers_reviewers_of_the_tag() -> None:
    specs = [
        question_spec(n, category="tax" if n <= 4 else "law", tags=("urgent",) if n == 5 else ()) for n in range(9)
    ]
    run = make_scored_run(make_answer_set(make_question_set(specs=specs)))
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    queue = make_queue(
        run, [kim, lee], distribution="by_tag", named_reviewers=NamedReviewers(by_tag={"tax": [kim], "urgent": [lee]})
    )
    reviewer_by_question = {
        reservation.item.answer.question.external_id: reservation.reviewer
        for reservation in Reservation.objects.select_related()
    }
    assert {reviewer_by_question[f"q{n}"] for n in range(5)} == {kim}
    assert reviewer_by_question["q5"] == lee
    # q6, q7, q8 have no such tag: to whoever has less, and lee has 1 against 5
    assert {reviewer_by_question[f"q{n}"] for n in (6, 7, 8)} == {lee}
    assert queue.items.filter(reserved=False).count() == 0


def test_by_tag_is_refused_when_a_tag_has_too_few_reviewers() -> None:
    run = big_run(6)
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    with pytest.raises(DomainError) as error:
        make_queue(
            run,
            [kim, lee],
            reviews_needed=2,
            distribution="by_tag",
            named_reviewers=NamedReviewers(by_tag={"negative": [kim]}),
        )
    assert error.value.code == "too_few_for_tag"
    assert not ReviewQueue.objects.exists()


def test_named_answers_go_to_their_reviewers_and_others_wait_for_a_lead() -> None:
    run = big_run(3)
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    first, second, _ = run.answer_set.answers.order_by("pk")
    queue = make_queue(
        run,
        [kim, lee],
        distribution="per_item",
        named_reviewers=NamedReviewers(by_answer={first.pk: [kim, lee], second.pk: [lee]}),
    )
    assert [assignment.item.answer_id for assignment in rate_all(queue, kim)] == [first.pk]
    assert {assignment.item.answer_id for assignment in rate_all(queue, lee)} == {first.pk, second.pk}
    assert queue.items.get(answer=first).reviews_needed == 2


def test_outsiders_of_the_queue_cannot_be_named() -> None:
    run = big_run(3)
    kim, outsider = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    with pytest.raises(DomainError) as error:
        make_queue(run, [kim], distribution="by_tag", named_reviewers=NamedReviewers(by_tag={"negative": [outsider]}))
    assert error.value.code == "not_a_reviewer"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"overlap_share": 1.2}, "setting_range"),
        ({"repeat_share": 0.6}, "setting_range"),
        ({"distribution": "by_tag"}, "no_fields"),
        ({"repeat_share": 0.1}, "too_few_for_repeats"),
    ],
)
def test_impossible_distribution_is_refused(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(DomainError) as error:
        make_queue(big_run(7), **settings)
    assert error.value.code == code


def test_skipped_item_without_another_reviewer_goes_to_a_lead() -> None:
    queue = distributed_queue("round_robin", 4, 2)
    user = reviewers_of(queue)[0]
    assignment = next_assignment(queue, user)
    skip(assignment)
    assert ReviewItem.objects.get(pk=assignment.item_id).state == ReviewItem.State.DISPUTED


def test_overlap_share_gives_some_items_two_reviewers() -> None:
    queue = distributed_queue("pool", 20, 3, reviews_needed=2, overlap_share=0.25)
    # a quarter of 20 is 5: 5 x 2 + 15 x 1 = 25 ratings
    assert Counter(queue.items.values_list("reviews_needed", flat=True)) == {1: 15, 2: 5}
    assert queue_progress(queue).ratings_needed == 25
    assert rating_counts([queue]) == {queue.pk: (0, 25)}
    for user in reviewers_of(queue):
        rate_all(queue, user)
    assert Counter(Counter(Assignment.objects.values_list("item", flat=True)).values()) == {1: 15, 2: 5}
    assert rating_counts([queue]) == {queue.pk: (25, 25)}


def test_items_rated_twice_are_drawn_by_the_seed() -> None:
    assert reviews_per_item(100, 2, 0.2, 1) == reviews_per_item(100, 2, 0.2, 1) != reviews_per_item(100, 2, 0.2, 2)
    assert sum(reviews_per_item(100, 3, 0.2, 1)) == 20 * 3 + 80
    assert reviews_per_item(3, 2, 0.0, 1) == [1, 1, 1]
    assert sum(reviews_per_item(10, 2, 0.3, 1)) == 13  # 10 x 0.3 is 3, not 4: no rounding error is rounded up


def test_repeat_gap_is_twenty_or_half_of_a_reviewers_items() -> None:
    assert repeat_window(0.1, 100, 1) == (20, 80)
    assert repeat_window(0.1, 60, 2) == (15, 15)
    assert repeat_window(0.0, 2, 1) == (0, 0)


def test_repeats_reach_the_same_reviewer_after_the_gap() -> None:
    queue = distributed_queue("pool", 60, 1, repeat_share=0.2)
    (user,) = reviewers_of(queue)
    assignments = rate_all(queue, user)
    order = [assignment.item.answer_id for assignment in assignments]
    repeats = [position for position, answer in enumerate(order) if answer in order[:position]]
    assert len(repeats) == queue.items.filter(occasion=2).count()
    assert 3 <= len(repeats) <= 24  # 12 expected of 60
    assert all(position - order.index(order[position]) > queue.repeat_gap for position in repeats)
    assert {assignment.reviewer_id for assignment in assignments} == {user.pk}


def test_repeats_count_only_in_the_reviewers_own_figure() -> None:
    queue = distributed_queue("pool", 40, 1, repeat_share=0.3)
    (user,) = reviewers_of(queue)
    before = own_progress(queue, user).items
    rate_all(queue, user)
    assert before == own_progress(queue, user).items == 40 + 12  # 40 and the 0.3 x 40 expected repeats
    repeats = queue.items.filter(occasion=2).count()
    assert repeats > 0
    progress = queue_progress(queue)
    assert (progress.items, progress.ratings, progress.ratings_needed) == (40, 40, 40)
    rows = read_ratings(ratings_of(queue.items.first().answer.answer_set_id))
    assert len(rows) == 2 * (40 + repeats)
    assert sum(map(len, effective_ratings(rows).values())) == sum(map(len, agreement_ratings(rows).values())) == 80


def test_differing_repeat_changes_no_value() -> None:
    queue = distributed_queue("pool", 40, 1, repeat_share=0.3)
    (user,) = reviewers_of(queue)
    while row := next_assignment(queue, user):
        rate(row, 3 if row.item.occasion == 1 else 5)
    values = effective_values(queue.items.first().run).values.values()
    assert {row.value for of_answers in values for row in of_answers.values()} == {3}


def test_the_judge_is_shown_at_neither_occasion_of_a_repeated_item() -> None:
    queue = distributed_queue("pool", 40, 1, repeat_share=0.3, reveal="always")
    (user,) = reviewers_of(queue)
    states: dict[int, set[str]] = {}
    while assignment := next_assignment(queue, user):
        states.setdefault(assignment.item.answer_id, set()).add(rate(assignment).state)
        Assignment.objects.filter(pk=assignment.pk, state="submitted").update(state="revealed", revealed_at=Now())
    repeated = set(queue.items.filter(occasion=2).values_list("answer", flat=True))
    assert repeated
    for answer, answer_states in states.items():
        assert answer_states == ({"finished"} if answer in repeated else {"submitted"})


def test_undoing_a_rating_creates_no_second_repeat() -> None:
    queue = distributed_queue("pool", 40, 1, repeat_share=0.5)
    (user,) = reviewers_of(queue)
    while not queue.items.filter(occasion=2).exists():
        assignment = next_assignment(queue, user)
        rate(assignment)
    reopened = undo(load_assignment(assignment.pk), by=user)
    rate(reopened)
    assert queue.items.filter(occasion__gt=1).count() == 1


@pytest.mark.slow
def test_repeats_of_two_reviewers_have_separate_occasions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("review.ratings.item_state.is_sampled", lambda *_about: True)
    queue = distributed_queue("pool", 40, 2, reviews_needed=2, repeat_share=0.5)
    queue.repeat_until = 40  # else repeats are chosen among the first in each person's order, who may share none
    queue.save()
    for user in reviewers_of(queue):
        rate_all(queue, user)
    for item in queue.items.filter(occasion__gt=1):
        assert item.reservations.count() == 1
        assert item.assignments.count() <= 1
    assert queue.items.filter(occasion=3).exists()


def test_database_refuses_shared_repeats_and_double_reservations() -> None:
    queue = distributed_queue("round_robin", 3, 1)
    item = queue.items.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        ReviewItem.objects.create(
            queue=queue, answer=item.answer, run=item.run, occasion=2, shuffle_key=1, reviews_needed=2, reserved=True
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Reservation.objects.create(item=item, reviewer=reviewers_of(queue)[0])
