"""Overrides: permissions, reasons, the effective value and the answer history."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction

from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import Answer, AnswerSet, AuditEvent, MetricDefinition, Run, User
from review.agreement.answers import EventKind, answer_history
from review.decisions.overrides import find_metric, override, revert
from review.evidence.effective import standing_decision
from review.evidence.rating_input import RatingInput, RatingUpdate
from review.models import Override
from review.ratings.leases import next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import flag, submit
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_scored_run(values=[5], metrics=["correctness"])


@pytest.fixture
def answer(run: Run) -> Answer:
    first_answer = run.answer_set.answers.order_by("pk").first()
    assert first_answer
    return first_answer


@pytest.fixture
def lead(run: Run) -> User:
    return make_user("lead", run.project)


@pytest.fixture
def metric(run: Run) -> MetricDefinition:
    return MetricDefinition.objects.get(name="correctness")


def make_expert(run: Run) -> tuple[User, Answer, Answer]:
    """Create a reviewer with one rated answer and one open assignment."""
    queue = make_queue(run, metrics=["correctness"], reveal="never")
    person = queue.members.get().reviewer
    assignment = next_assignment(queue, person)
    assert assignment
    submit(assignment, {"correctness": RatingInput(2)}, idempotency_key="k", by=person)
    next_item = next_assignment(queue, person)
    assert next_item
    return person, assignment.item.answer, next_item.item.answer


def test_answers_of_an_unfinished_import_take_no_decision(answer: Answer, lead: User) -> None:
    """Else ``purge`` could not delete them."""
    imported = make_answer_set(make_question_set(answer.answer_set.project))
    AnswerSet.all_objects.filter(pk=imported.pk).update(is_unfinished=True)
    pk = imported.answers.values_list("pk", flat=True)[0]
    caller = Caller(lead)
    for action in ("override", "adjudicate"):
        body = {"metric": "correctness", "value": 3, "reason": "because"}
        assert caller.post(f"answers/{pk}/{action}/", body).status_code == 404
    assert not Override.objects.exists()


def test_lead_overrides_any_score_with_a_reason(answer: Answer, metric: MetricDefinition, lead: User) -> None:
    decision = override(answer, metric, value=2, reason="  The second fact is wrong. ", by=lead)
    assert (decision.seq, decision.value, decision.reason, decision.by) == (1, 2, "The second fact is wrong.", lead)
    assert AuditEvent.objects.filter(verb="score_override", actor=lead, object_id=str(answer.pk)).exists()


def test_rule_metrics_can_be_overridden_too(answer: Answer, lead: User) -> None:
    decision = override(
        answer, find_metric(answer, "keyword_coverage"), value=0.5, reason="A synonym was used.", by=lead
    )
    assert (decision.metric.name, decision.value) == ("keyword_coverage", 0.5)


@pytest.mark.parametrize(("text", "code"), [("", "reason_required"), (" \n", "reason_required")])
def test_reason_is_required(answer: Answer, metric: MetricDefinition, lead: User, text: str, code: str) -> None:
    with pytest.raises(DomainError) as error_info:
        override(answer, metric, value=2, reason=text, by=lead)
    assert error_info.value.code == code


def test_reason_of_ten_thousand_characters_is_stored_and_a_longer_one_refused(
    answer: Answer, metric: MetricDefinition, lead: User
) -> None:
    assert len(override(answer, metric, value=2, reason="x" * 10_000, by=lead).reason) == 10_000
    with pytest.raises(DomainError) as error_info:
        override(answer, metric, value=2, reason="x" * 10_001, by=lead)
    assert (error_info.value.code, error_info.value.params) == ("reason_too_long", {"length": 10_001, "limit": 10_000})
    assert Override.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"value": 7}, "off_scale"), ({"label": "good"}, "off_scale"), ({}, "one_value")],
)
def test_value_must_lie_on_the_scale(
    answer: Answer, metric: MetricDefinition, lead: User, changes: dict[str, float | str], code: str
) -> None:
    with pytest.raises(DomainError) as error_info:
        override(answer, metric, reason="why", by=lead, **changes)
    assert error_info.value.code == code


@pytest.mark.parametrize("role", ["viewer", "reviewer", "evaluator"])
def test_other_roles_cannot_override(answer: Answer, metric: MetricDefinition, run: Run, role: str) -> None:
    with pytest.raises(PermissionDenied):
        override(answer, metric, value=2, reason="why", by=make_user(role, run.project))
    assert not Override.objects.exists()


def test_assigned_expert_overrides_only_answers_they_rated(run: Run, metric: MetricDefinition) -> None:
    person, rated_answer, open_answer = make_expert(run)
    assert override(rated_answer, metric, value=3, reason="On reflection.", by=person)
    with pytest.raises(PermissionDenied):
        override(open_answer, metric, value=3, reason="On reflection.", by=person)


def test_only_a_lead_overrides_after_an_adjudication(run: Run, metric: MetricDefinition, lead: User) -> None:
    person, rated_answer, _ = make_expert(run)
    Override.objects.create(
        answer=rated_answer, metric=metric, seq=1, kind="adjudication", value=4, reason="Decided.", by=lead
    )
    with pytest.raises(DomainError) as error_info:
        override(rated_answer, metric, value=3, reason="No.", by=person)
    assert error_info.value.code == "adjudicated"
    with pytest.raises(DomainError):
        revert(rated_answer, metric, reason="No.", by=person)
    assert override(rated_answer, metric, value=3, reason="New evidence.", by=lead).seq == 2


def test_reverting_adds_a_row_and_restores_the_previous_value(
    answer: Answer, metric: MetricDefinition, lead: User
) -> None:
    first = override(answer, metric, value=2, reason="one", by=lead)
    second = override(answer, metric, value=3, reason="two", by=lead)
    rows = Override.objects.order_by("seq")
    assert standing_decision(rows.all()) == second
    revert(answer, metric, reason="two was wrong", by=lead)
    assert standing_decision(rows.all()) == first
    revert(answer, metric, reason="so was one", by=lead)
    assert standing_decision(rows.all()) is None
    with pytest.raises(DomainError) as error_info:
        revert(answer, metric, reason="again", by=lead)
    assert error_info.value.code == "nothing_to_revert"
    assert list(rows.values_list("kind", flat=True)) == ["override", "override", "revert", "revert"]


def test_overrides_are_append_only(answer: Answer, metric: MetricDefinition, lead: User) -> None:
    override(answer, metric, value=2, reason="why", by=lead)
    with pytest.raises(DatabaseError), transaction.atomic():
        Override.objects.update(value=5)


def test_unknown_metric_is_named_in_the_error(answer: Answer) -> None:
    with pytest.raises(UnknownName, match="did you mean correctness"):
        find_metric(answer, "corectness")


def test_history_lists_all_values_and_authors_in_time_order(run: Run, metric: MetricDefinition, lead: User) -> None:
    queue = make_queue(run, metrics=["correctness"], reveal="always")
    person = queue.members.get().reviewer
    assignment = next_assignment(queue, person)
    assert assignment
    submit(assignment, {"correctness": RatingInput(2, comment="half of it")}, idempotency_key="k", by=person)
    reveal(assignment)
    finalise(assignment, {"correctness": RatingUpdate(3, reason_code="policy")}, by=person)
    flag(assignment, "bad_reference", "it is outdated")
    override(assignment.item.answer, metric, value=4, reason="The reference was updated.", by=lead)
    revert(assignment.item.answer, metric, reason="It was not.", by=lead)
    entries = [(e.kind, e.value, e.text, e.code, e.blind) for e in answer_history(assignment.item.answer)]
    assert entries == [
        (EventKind.SCORE, 5, "The judge's reason.", "", None),
        (EventKind.INITIAL, 2, "half of it", "", True),
        (EventKind.FINAL, 3, "", "policy", False),
        (EventKind.FLAG, None, "it is outdated", "bad_reference", None),
        (EventKind.OVERRIDE, 4, "The reference was updated.", "", False),
        (EventKind.REVERT, None, "It was not.", "", False),
    ]
    authors = [e.who for e in answer_history(assignment.item.answer)]
    assert authors == [f"{run.judges.get().judge_version}", *[person.username] * 3, *[lead.username] * 2]


def test_failed_score_is_in_the_history_with_its_reason() -> None:
    run = make_scored_run(values=[None], metrics=["correctness"])
    (event,) = answer_history(run.answer_set.answers.order_by("pk")[0])
    assert (event.status, event.code, event.value, event.text) == ("failed", "timeout", None, "")
