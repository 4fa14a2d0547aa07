"""Bulk overrides: permissions, number of changes, and reverting single answers."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.judges.shipped import definitions
from evaluation.models import AuditEvent, MetricDefinition, Run, User
from review.agreement.answers import AnswerFilter, answer_history, select_answers
from review.decisions.overrides import override, override_many, preview_overrides, revert
from review.evidence.effective import effective_values
from review.models import Assignment, Exposure, Override
from review.ratings.leases import next_assignment
from tests.factories import make_queue, make_scored_run, make_user
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_scored_run(metrics=["correctness"])  # six answers that the judge gave 1, 2, 3, 4, 5 and 1


@pytest.fixture
def metric(run: Run) -> MetricDefinition:
    return definitions(["correctness"])["correctness"]


@pytest.fixture
def lead(run: Run) -> User:
    return make_user("lead", run.project)


def ids(run: Run) -> list[int]:
    return list(run.answer_set.answers.order_by("pk").values_list("pk", flat=True))


def value_of(run: Run, answer: int, metric: MetricDefinition) -> float | None:
    return effective_values(run, [answer]).values[metric.pk][answer].value


def test_lead_overrides_many_answers_with_one_reason_and_own_histories(
    run: Run, metric: MetricDefinition, lead: User
) -> None:
    answers = ids(run)
    result = override_many(run, metric, answers[:4], value=2, reason=" All lack a source. ", by=lead)
    assert (result.answers, result.same) == (tuple(answers[:4]), 0)
    assert [value_of(run, answer, metric) for answer in answers] == [2, 2, 2, 2, 5, 1]
    rows = Override.objects.order_by("answer")
    assert {(row.reason, row.by, row.kind) for row in rows} == {("All lack a source.", lead, "override")}
    event = AuditEvent.objects.get(verb="scores_overridden")
    assert (event.actor, event.detail["count"]) == (lead, 4)
    last = answer_history(run.answer_set.answers.order_by("pk")[0])[-1]
    assert (last.kind, last.who, last.value) == ("override", lead.username, 2)


def test_each_bulk_override_is_reverted_separately(run: Run, metric: MetricDefinition, lead: User) -> None:
    first, second, *_ = ids(run)
    override_many(run, metric, [first, second], value=2, reason="x", by=lead)
    revert(run.answer_set.answers.get(pk=first), metric, reason="not this one", by=lead)
    assert [value_of(run, answer, metric) for answer in (first, second)] == [1, 2]
    assert Override.objects.filter(answer=first).count() == 2


def test_answers_with_an_equal_override_get_no_second_row(run: Run, metric: MetricDefinition, lead: User) -> None:
    answers = ids(run)
    override(run.answer_set.answers.get(pk=answers[0]), metric, value=2, reason="x", by=lead)
    override(run.answer_set.answers.get(pk=answers[1]), metric, value=4, reason="x", by=lead)
    preview = preview_overrides(run, metric, answers, value=2, by=lead)
    assert (len(preview.answers), preview.same) == (5, 1)
    override_many(run, metric, answers, value=2, reason="y", by=lead)
    assert Override.objects.filter(answer=answers[0]).count() == 1
    assert Override.objects.get(answer=answers[1], seq=2).value == 2


def test_assigned_expert_overrides_only_rated_and_unadjudicated_answers(
    run: Run, metric: MetricDefinition, lead: User
) -> None:
    expert = make_user("reviewer", run.project)
    queue = make_queue(run, [expert], metrics=["correctness"])
    rated_ids = []
    for _ in range(2):
        assignment = next_assignment(queue, expert)
        assert assignment
        Assignment.objects.filter(pk=assignment.pk).update(state="finished", submitted_at=timezone.now())
        rated_ids.append(assignment.item.answer_id)
    Override.objects.create(
        answer_id=rated_ids[0], metric=metric, seq=1, kind="adjudication", value=3, reason="settled", by=lead
    )
    result = override_many(run, metric, ids(run), value=5, reason="seen", by=expert)
    assert (result.answers, result.adjudicated, result.forbidden) == ((rated_ids[1],), 1, 4)


@pytest.mark.parametrize("role", ["viewer", "evaluator", "reviewer"])
def test_other_roles_cannot_override(run: Run, metric: MetricDefinition, role: str) -> None:
    with pytest.raises(PermissionDenied):
        override_many(run, metric, ids(run), value=5, reason="x", by=make_user(role, run.project))
    assert not Override.objects.exists()


def test_answers_of_other_runs_are_not_changed(run: Run, metric: MetricDefinition, lead: User) -> None:
    other_run = make_scored_run(metrics=["correctness"])
    with pytest.raises(DomainError) as error_info:
        override_many(run, metric, ids(other_run), value=5, reason="x", by=lead)
    assert error_info.value.code == "no_answers_chosen"


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"value": 9}, "off_scale"), ({}, "one_value"), ({"value": 3, "reason": " "}, "reason_required")],
)
def test_invalid_override_changes_nothing(
    run: Run, metric: MetricDefinition, lead: User, changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(DomainError) as error_info:
        override_many(run, metric, ids(run), by=lead, **({"reason": "x"} | changes))
    assert error_info.value.code == code
    assert not Override.objects.exists()


def test_answers_are_filtered_by_value_source_category_and_text(run: Run) -> None:
    def question_ids(**filters: Any) -> list[str]:
        return [
            row.answer.question_id for row in select_answers(run, AnswerFilter(metric="correctness", **filters)).rows
        ]

    assert question_ids() == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert question_ids(high=2) == ["q1", "q2", "q6"]
    assert question_ids(low=2, high=3) == ["q2", "q3"]
    assert question_ids(category="negative") == ["q2", "q5"]
    assert question_ids(words="COUNTRY 4") == ["q4"]
    assert question_ids(source="override") == []


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_page_shows_the_number_of_changes_before_confirmation(run: Run, metric: MetricDefinition, lead: User) -> None:
    client, address = client_of(lead), reverse("run-override", args=[run.pk])
    form = {"metric": "correctness", "high": "2", "value:correctness": "3", "reason": "too strict"}
    page = client.post(address, form)
    assert '<span class="big">3</span>' in page.content.decode()
    assert not Override.objects.exists()
    mark = page.content.decode().partition('name="mark" value="')[2].partition('"')[0]
    response = client.post(address, form | {"mark": mark, "confirm": "1"}, follow=True)
    assert "Your value now counts for 3 answers." in response.content.decode()
    assert Override.objects.count() == 3


def test_changed_selection_needs_another_confirmation(run: Run, metric: MetricDefinition, lead: User) -> None:
    client, address = client_of(lead), reverse("run-override", args=[run.pk])
    form = {"metric": "correctness", "high": "2", "value:correctness": "3", "reason": "too strict"}
    mark = client.post(address, form).content.decode().partition('name="mark" value="')[2].partition('"')[0]
    override(run.answer_set.answers.order_by("pk")[0], metric, value=5, reason="meanwhile", by=lead)
    response = client.post(address, form | {"mark": mark, "confirm": "1"})
    assert response.status_code == 409
    assert "have changed in the meantime" in response.content.decode()
    assert Override.objects.count() == 1


def test_only_ticked_answers_are_overridden(run: Run, lead: User) -> None:
    client, address = client_of(lead), reverse("run-override", args=[run.pk])
    form = {"metric": "correctness", "value:correctness": "3", "reason": "x", "answers": [str(ids(run)[0])]}
    page = client.post(address, form).content.decode()
    mark = page.partition('name="mark" value="')[2].partition('"')[0]
    client.post(address, form | {"mark": mark, "confirm": "1"})
    assert list(Override.objects.values_list("answer", flat=True)) == [ids(run)[0]]


def test_viewing_the_list_is_recorded_as_exposure_of_pending_reviewers(run: Run, lead: User) -> None:
    make_queue(run, [lead], metrics=["correctness"])
    page = client_of(lead).get(reverse("run-answers", args=[run.pk]), {"metric": "correctness", "high": "2"})
    assert "3 answers match" in page.content.decode()
    assert Exposure.objects.filter(user=lead).count() == 3


def test_rest_overrides_many_answers_after_a_dry_run(run: Run, lead: User) -> None:
    caller, path = Caller(lead), f"runs/{run.pk}/override/"
    body = {"metric": "correctness", "answers": ids(run), "value": 3, "reason": "x"}
    assert len(caller.post(path, body | {"dry_run": True}).json()["answers"]) == 6
    assert not Override.objects.exists()
    assert caller.post(path, body).status_code == 201
    assert Override.objects.count() == 6
