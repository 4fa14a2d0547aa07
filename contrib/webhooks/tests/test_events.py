"""Each event of a project queues one message for the webhooks that want it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from contrib.webhooks.events import RETENTION, delete_old_deliveries, queue_new_events
from contrib.webhooks.models import Delivery, Event, Webhook
from evaluation.core.roles import Role
from evaluation.models import Project, Run
from review.comparisons.gates import run_gate
from review.evidence.seals import LabelForm, fixed_label_form
from review.models import ReviewItem, ReviewQueue
from review.reports.gate import GateRequest
from tests.factories import make_project, make_queue, make_user
from tests.review.builders import answers_to, rate_each, run_over
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


def webhook_for(project: Project, *events: Event) -> Webhook:
    lead = make_user(Role.LEAD, project)
    webhook = Webhook.objects.create(
        project=project, created_by=lead, url="https://chat.example/", events=[str(event) for event in events]
    )
    # Objects of the test are older than the webhook.
    Webhook.objects.update(created_at=timezone.now() - timedelta(hours=1))
    return webhook


def messages(event: Event) -> list[dict[str, object]]:
    """Bodies of the event's messages after two searches, of which the second finds nothing new."""
    queue_new_events()
    queue_new_events()
    return [json.loads(body) for body in Delivery.objects.filter(event=event).values_list("body", flat=True)]


@pytest.fixture
def run() -> Run:
    run = fill(run_over(answers_to(["a"] * 10)), [5, 3] * 5)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now(), name="nightly")
    run.refresh_from_db()
    return run


def test_finished_run(run: Run, settings: object) -> None:
    settings.CONCORD_SITE_URL = "https://concord.example"  # type: ignore[attr-defined]
    webhook_for(run.project, Event.RUN_FINISHED)
    webhook_for(make_project(), Event.RUN_FINISHED)
    webhook_for(run.project, Event.QUEUE_FINISHED)
    [message] = messages(Event.RUN_FINISHED)
    assert message["text"] == f"Run nightly is complete. https://concord.example/runs/{run.pk}/"
    assert message["data"] == {
        "project": run.project.name,
        "url": f"https://concord.example/runs/{run.pk}/",
        "run": run.pk,
        "state": "completed",
        "reason": "",
    }


def test_run_that_finished_before_the_webhook_existed(run: Run) -> None:
    webhook_for(run.project, Event.RUN_FINISHED)
    Run.objects.update(finished_at=timezone.now() - timedelta(hours=2))
    assert messages(Event.RUN_FINISHED) == []


def test_gate_that_is_not_passed_is_announced_once(run: Run) -> None:
    webhook_for(run.project, Event.GATE_FAILED)
    run_gate(run, GateRequest(fail_under=0.1))
    assert messages(Event.GATE_FAILED) == []
    for _evaluation in range(2):
        run_gate(run, GateRequest(fail_under=0.99))
    [message] = messages(Event.GATE_FAILED)
    assert "gate on the judge-only score: failed" in str(message["text"])
    run_gate(run, GateRequest(fail_under=0.98))
    assert len(messages(Event.GATE_FAILED)) == 2


def test_gate_with_sealed_labels_is_not_announced(run: Run) -> None:
    webhook_for(run.project, Event.GATE_FAILED)
    with fixed_label_form(LabelForm.FULL):
        run_gate(run, GateRequest(fail_under=0.99))
    assert messages(Event.GATE_FAILED) == []
    run_gate(run, GateRequest(fail_under=0.99))
    assert len(messages(Event.GATE_FAILED)) == 1


def test_finished_and_overdue_queue(run: Run) -> None:
    webhook_for(run.project, Event.QUEUE_FINISHED, Event.REVIEW_OVERDUE)
    queue = make_queue(run, 1)
    ReviewQueue.objects.update(deadline=timezone.now() - timedelta(minutes=1))
    assert messages(Event.QUEUE_FINISHED) == []
    [overdue] = messages(Event.REVIEW_OVERDUE)
    assert "is overdue: 0 of" in str(overdue["text"])
    metric = queue.metrics.get(position=0).metric
    reviewer = queue.members.get().reviewer
    answers = [item.answer for item in queue.items.all()]
    rate_each(queue, [metric], answers, {reviewer: [3] * len(answers)})
    ReviewItem.objects.update(state=ReviewItem.State.DONE)
    [finished] = messages(Event.QUEUE_FINISHED)
    assert finished["text"] == f"The review queue {queue} is finished."


def test_old_messages_are_deleted_except_waiting_ones(run: Run) -> None:
    webhook = webhook_for(run.project, Event.RUN_FINISHED)
    for state in Delivery.State:
        Delivery.objects.create(webhook=webhook, event="test", subject=state, state=state, next_at=timezone.now())
    Delivery.objects.update(created_at=timezone.now() - RETENTION)
    delete_old_deliveries()
    assert Delivery.objects.get().state == Delivery.State.WAITING
