"""Whom items are for: in turn, by load, by field, by name; some rated twice, some again by the same person."""

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


def people(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def big_run(count: int = 20) -> object:
    return make_scored_run(make_answer_set(make_question_set(specs=count)))


def shared(distribution: str, count: int = 20, reviewers: object = 3, **fields: object) -> ReviewQueue:
    return make_queue(big_run(count), reviewers, distribution=distribution, **fields)


def rate(held: Assignment, value: float = 3) -> Assignment:
    values = {name: RatingInput(value=value) for name in RATING}
    return submit(held, values, idempotency_key=f"k{held.pk}-{held.fence}", by=held.reviewer).assignment


def walk(queue: ReviewQueue, user: User, most: int = 500) -> list[Assignment]:
    """Rate everything the queue has for the person, in its order."""
    held = []
    while (one := next_assignment(queue, user)) and len(held) < most:
        held.append(one)
        rate(one)
    return held


def test_in_turn_everybody_gets_the_same_number_and_nobody_else_gets_theirs() -> None:
    queue = shared("round_robin", 20, 3)
    # 20 items of one reviewer each among three: 7, 7 and 6
    assert sorted(Counter(Reservation.objects.values_list("reviewer", flat=True)).values()) == [6, 7, 7]
    walked = {user.pk: {one.item_id for one in walk(queue, user)} for user in people(queue)}
    assert sorted(map(len, walked.values())) == [6, 7, 7]
    assert len(set().union(*walked.values())) == 20
    for pk, items in walked.items():
        assert items == set(Reservation.objects.filter(reviewer=pk).values_list("item", flat=True))


def test_load_balancing_counts_what_people_have_in_other_open_queues() -> None:
    run = big_run(10)
    busy, idle = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    make_queue(run, [busy], distribution="round_robin")
    assert open_loads([busy.pk, idle.pk]) == {busy.pk: 10}
    make_queue(run, [busy, idle], distribution="balanced", metrics=["completeness"])
    # busy has 10 already, so the first ten of the new ones go to idle and no tie is ever broken for busy
    assert open_loads([busy.pk, idle.pk]) == {busy.pk: 10, idle.pk: 10}


def test_load_balancing_forgets_what_is_rated() -> None:
    run = big_run(4)
    user = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, [user], distribution="round_robin", reviews_needed=1)
    rate(next_assignment(queue, user))
    assert open_loads([user.pk]) == {user.pk: 3}


def test_by_tag_an_item_goes_to_who_has_its_tag_or_category_and_the_rest_to_anybody() -> None:
    specs = [
        question_spec(n, category="tax" if n <= 4 else "law", tags=("urgent",) if n == 5 else ()) for n in range(9)
    ]
    run = make_scored_run(make_answer_set(make_question_set(specs=specs)))
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    queue = make_queue(
        run, [kim, lee], distribution="by_tag", named_reviewers=NamedReviewers(by_tag={"tax": [kim], "urgent": [lee]})
    )
    of = {one.item.answer.question.external_id: one.reviewer for one in Reservation.objects.select_related()}
    assert {of[f"q{n}"] for n in range(5)} == {kim}
    assert of["q5"] == lee
    # q6, q7, q8 have no such tag: to whoever has less, and lee has 1 against 5
    assert {of[f"q{n}"] for n in (6, 7, 8)} == {lee}
    assert queue.items.filter(reserved=False).count() == 0


def test_by_tag_is_refused_where_a_tag_has_too_few_people() -> None:
    run = big_run(6)
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    with pytest.raises(DomainError) as refused:
        make_queue(
            run,
            [kim, lee],
            reviews_needed=2,
            distribution="by_tag",
            named_reviewers=NamedReviewers(by_tag={"negative": [kim]}),
        )
    assert refused.value.code == "too_few_for_tag"
    assert not ReviewQueue.objects.exists()


def test_named_answers_go_to_who_was_named_and_the_others_wait_for_a_lead() -> None:
    run = big_run(3)
    kim, lee = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    first, second, _ = run.answer_set.answers.order_by("pk")
    queue = make_queue(
        run,
        [kim, lee],
        distribution="per_item",
        named_reviewers=NamedReviewers(by_answer={first.pk: [kim, lee], second.pk: [lee]}),
    )
    assert [one.item.answer_id for one in walk(queue, kim)] == [first.pk]
    assert {one.item.answer_id for one in walk(queue, lee)} == {first.pk, second.pk}
    assert queue.items.get(answer=first).reviews_needed == 2


def test_people_who_are_not_reviewers_of_the_queue_cannot_be_given_items() -> None:
    run = big_run(3)
    kim, other = make_user(Role.REVIEWER, run.project), make_user(Role.REVIEWER, run.project)
    with pytest.raises(DomainError) as refused:
        make_queue(run, [kim], distribution="by_tag", named_reviewers=NamedReviewers(by_tag={"negative": [other]}))
    assert refused.value.code == "not_a_reviewer"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"overlap_share": 1.2}, "setting_range"),
        ({"repeat_share": 0.6}, "setting_range"),
        ({"distribution": "by_tag"}, "no_fields"),
        ({"repeat_share": 0.1}, "too_few_for_repeats"),
    ],
)
def test_impossible_sharing_is_refused(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(DomainError) as refused:
        make_queue(big_run(7), **settings)
    assert refused.value.code == code


def test_an_item_somebody_skips_that_is_for_nobody_else_becomes_a_leads_matter() -> None:
    queue = shared("round_robin", 4, 2)
    user = people(queue)[0]
    held = next_assignment(queue, user)
    skip(held)
    assert ReviewItem.objects.get(pk=held.item_id).state == ReviewItem.State.DISPUTED


def test_a_share_of_the_items_is_rated_by_two_the_others_by_one() -> None:
    queue = shared("pool", 20, 3, reviews_needed=2, overlap_share=0.25)
    # a quarter of 20 is 5: 5 x 2 + 15 x 1 = 25 ratings
    assert Counter(queue.items.values_list("reviews_needed", flat=True)) == {1: 15, 2: 5}
    assert queue_progress(queue).ratings_needed == 25
    assert rating_counts([queue]) == {queue.pk: (0, 25)}
    for user in people(queue):
        walk(queue, user)
    assert Counter(Counter(Assignment.objects.values_list("item", flat=True)).values()) == {1: 15, 2: 5}
    assert rating_counts([queue]) == {queue.pk: (25, 25)}


def test_which_items_are_rated_twice_is_chance_from_the_seed() -> None:
    assert reviews_per_item(100, 2, 0.2, 1) == reviews_per_item(100, 2, 0.2, 1) != reviews_per_item(100, 2, 0.2, 2)
    assert sum(reviews_per_item(100, 3, 0.2, 1)) == 20 * 3 + 80
    assert reviews_per_item(3, 2, 0.0, 1) == [1, 1, 1]
    assert sum(reviews_per_item(10, 2, 0.3, 1)) == 13  # 10 x 0.3 is 3, not 4: no rounding error is rounded up


def test_the_gap_before_a_repeat_is_twenty_or_half_of_what_a_person_gets() -> None:
    assert repeat_window(0.1, 100, 1) == (20, 80)
    assert repeat_window(0.1, 60, 2) == (15, 15)
    assert repeat_window(0.0, 2, 1) == (0, 0)


def test_repeats_come_to_the_same_person_after_the_gap_and_look_like_any_item() -> None:
    queue = shared("pool", 60, 1, repeat_share=0.2)
    (user,) = people(queue)
    held = walk(queue, user)
    order = [one.item.answer_id for one in held]
    again = [place for place, answer in enumerate(order) if answer in order[:place]]
    assert len(again) == queue.items.filter(occasion=2).count()
    assert 3 <= len(again) <= 24  # 12 expected of 60
    assert all(place - order.index(order[place]) > queue.repeat_gap for place in again)
    assert {one.reviewer_id for one in held} == {user.pk}


def test_repeats_count_in_nothing_but_a_reviewers_own_number() -> None:
    queue = shared("pool", 40, 1, repeat_share=0.3)
    (user,) = people(queue)
    before = own_progress(queue, user).items
    walk(queue, user)
    assert before == own_progress(queue, user).items == 40 + 12  # 40 and the 0.3 x 40 expected repeats
    repeats = queue.items.filter(occasion=2).count()
    assert repeats > 0
    progress = queue_progress(queue)
    assert (progress.items, progress.ratings, progress.ratings_needed) == (40, 40, 40)
    rows = read_ratings(ratings_of(queue.items.first().answer.answer_set_id))
    assert len(rows) == 2 * (40 + repeats)
    assert sum(map(len, effective_ratings(rows).values())) == sum(map(len, agreement_ratings(rows).values())) == 80


def test_a_repeat_that_says_something_else_changes_no_value() -> None:
    queue = shared("pool", 40, 1, repeat_share=0.3)
    (user,) = people(queue)
    while one := next_assignment(queue, user):
        rate(one, 3 if one.item.occasion == 1 else 5)
    values = effective_values(queue.items.first().run).values.values()
    assert {one.value for of_answers in values for one in of_answers.values()} == {3}


def test_the_judge_is_shown_at_neither_occasion_of_a_repeated_item() -> None:
    queue = shared("pool", 40, 1, repeat_share=0.3, reveal="always")
    (user,) = people(queue)
    states: dict[int, set[str]] = {}
    while one := next_assignment(queue, user):
        states.setdefault(one.item.answer_id, set()).add(rate(one).state)
        Assignment.objects.filter(pk=one.pk, state="submitted").update(state="revealed", revealed_at=Now())
    repeated = set(queue.items.filter(occasion=2).values_list("answer", flat=True))
    assert repeated
    for answer, seen in states.items():
        assert seen == ({"finished"} if answer in repeated else {"submitted"})


def test_taking_a_rating_back_makes_no_second_repeat() -> None:
    queue = shared("pool", 40, 1, repeat_share=0.5)
    (user,) = people(queue)
    while not queue.items.filter(occasion=2).exists():
        held = next_assignment(queue, user)
        rate(held)
    again = undo(load_assignment(held.pk), by=user)
    rate(again)
    assert queue.items.filter(occasion__gt=1).count() == 1


def test_two_people_repeat_the_same_answer_on_occasions_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("review.ratings.item_state.is_sampled", lambda *_about: True)
    queue = shared("pool", 40, 2, reviews_needed=2, repeat_share=0.5)
    queue.repeat_until = 40  # else repeats are chosen among the first in each person's order, who may share none
    queue.save()
    for user in people(queue):
        walk(queue, user)
    for item in queue.items.filter(occasion__gt=1):
        assert item.reservations.count() == 1
        assert item.assignments.count() <= 1
    assert queue.items.filter(occasion=3).exists()


def test_the_database_refuses_a_repeat_for_two_and_a_second_reservation_of_one_person() -> None:
    queue = shared("round_robin", 3, 1)
    item = queue.items.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        ReviewItem.objects.create(
            queue=queue, answer=item.answer, run=item.run, occasion=2, shuffle_key=1, reviews_needed=2, reserved=True
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Reservation.objects.create(item=item, reviewer=people(queue)[0])
