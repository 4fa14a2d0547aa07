"""Exposure records: everybody who saw the judge, once per answer or run."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evaluation.models import RoleGrant
from review.evidence.answers import exposed_answers, record_answer_exposure, record_exposure, was_exposed
from review.evidence.rating_input import RatingInput
from review.models import Exposure, Rating
from review.queues.creation import close_queue, reopen_queue
from review.ratings.leases import next_assignment, prefetch_assignment
from review.ratings.submitting import submit
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def test_member_is_recorded_once_with_the_first_view() -> None:
    queue = make_queue()
    person, answer = queue.members.get().reviewer, queue.items.first().answer
    record_exposure(person, answer, "answer page")
    record_exposure(person, answer, "report")
    assert list(Exposure.objects.values_list("user", "scope", "object_id", "via")) == [
        (person.pk, "answer", answer.pk, "answer page")
    ]
    assert was_exposed(person, answer.pk)


@pytest.mark.parametrize("role", ["viewer", "evaluator", "lead"])
def test_rating_after_a_view_before_the_queue_existed_is_not_blind(role: str, client: Client) -> None:
    run = make_scored_run(metrics=["correctness"])
    person = make_user(role, run.project)
    client.force_login(person)
    for answer in run.answer_set.answers.all():
        assert client.get(reverse("answer", args=[answer.pk])).status_code == 200
    RoleGrant.objects.get_or_create(user=person, project=run.project, role="reviewer")
    assignment = next_assignment(make_queue(run, [person], metrics=["correctness"]), person)
    assert assignment
    submit(assignment, {"correctness": RatingInput(2)}, idempotency_key="k", by=person)
    assert not Rating.objects.get().blind


def test_anonymous_and_service_users_are_not_recorded() -> None:
    run = make_scored_run()
    service_user = make_user("evaluator", run.project)
    service_user.is_service = True
    for user in (AnonymousUser(), service_user):
        record_exposure(user, run, "report")
        record_answer_exposure(user, [run.answer_set.answers.earliest("pk").pk], "run page")
    assert not Exposure.objects.exists()


def test_only_new_exposures_are_written(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    answer_ids = list(make_scored_run().answer_set.answers.values_list("pk", flat=True))
    person = make_user()
    record_answer_exposure(person, answer_ids[:1], "run page")
    record_answer_exposure(person, answer_ids, "run page")
    assert Exposure.objects.count() == len(answer_ids) > 1
    with django_assert_num_queries(1):
        record_answer_exposure(person, answer_ids, "run page")


def test_rating_after_a_view_while_the_queue_was_closed_is_not_blind() -> None:
    queue = make_queue(metrics=["correctness"])
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    close_queue(queue, by=None)
    record_exposure(assignment.reviewer, assignment.item.answer, "answer page")
    reopen_queue(queue, by=None)
    submit(assignment, {"correctness": RatingInput(2)}, idempotency_key="k", by=assignment.reviewer)
    assert not Rating.objects.get().blind


def test_export_exposes_every_answer_of_the_run_with_one_row() -> None:
    queue = make_queue()
    person = queue.members.get().reviewer
    run = queue.items.first().run
    record_exposure(person, run, "export")
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("run", run.pk)]
    assert all(was_exposed(person, answer.pk) for answer in run.answer_set.answers.all())


def test_assisted_queue_exposes_the_assigned_item() -> None:
    queue = make_queue(mode="assisted")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    assert was_exposed(assignment.reviewer, assignment.item.answer_id)


def test_assisted_queue_exposes_the_prefetched_item() -> None:
    queue = make_queue(mode="assisted")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    prefetched = prefetch_assignment(queue, assignment.reviewer, assignment)
    assert prefetched
    assert was_exposed(assignment.reviewer, prefetched.item.answer_id)


@pytest.mark.parametrize("scope", ["answer", "run"])
def test_equal_answer_of_another_set_is_exposed(scope: str) -> None:
    """Its judge's value would be the same, and pages show expert ratings of equal texts."""
    questions = make_question_set(specs=2)
    earlier_run = make_scored_run(make_answer_set(questions, texts=["same", "old"]))
    person = make_user()
    if scope == "run":
        record_exposure(person, earlier_run, "report")
    else:
        answer_ids = list(earlier_run.answer_set.answers.values_list("pk", flat=True))
        record_answer_exposure(person, answer_ids, "run page")
    later_answers = make_answer_set(questions, texts=["same", "new"]).answers.order_by("question__position")
    assert [was_exposed(person, answer.pk) for answer in later_answers] == [True, False]


def test_answers_without_text_are_not_equal() -> None:
    """Answers that only retrieved have no text to read."""
    questions = make_question_set(specs=1)
    shown, other = (make_answer_set(questions, texts=[""]).answers.get() for _ in range(2))
    person = make_user()
    record_exposure(person, shown, "answer page")
    assert (was_exposed(person, shown.pk), was_exposed(person, other.pk)) == (True, False)


@pytest.mark.parametrize("scope", ["answer", "run"])
def test_exposed_answers_of_several_users(scope: str, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    questions = make_question_set(specs=3)
    earlier = make_scored_run(make_answer_set(questions, texts=["same", "old", ""]))
    later = list(make_answer_set(questions, texts=["same", "new", ""]).answers.order_by("question__position"))
    reader, other = make_user(), make_user()
    if scope == "run":
        record_exposure(reader, earlier, "report")
    else:
        record_answer_exposure(reader, earlier.answer_set.answers.values_list("pk", flat=True), "run page")
    record_exposure(other, later[1], "answer page")
    with django_assert_num_queries(3):
        exposed = exposed_answers([reader.pk, other.pk], [answer.pk for answer in later])
    assert exposed == {reader.pk: {later[0].pk}, other.pk: {later[1].pk}}
    assert exposed_answers([make_user().pk], [answer.pk for answer in later]) == {}
