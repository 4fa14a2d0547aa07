"""Events of projects with webhooks.

Runs, queues and judges are read from their tables once a minute, so no event is lost by a crash, and projects without
webhooks cost nothing. Gates are not stored; a signal announces them when they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from contrib.webhooks.models import Delivery, Event, Webhook
from contrib.webhooks.services import in_language, queue_message
from evaluation.messages.explanations import explain_reason
from evaluation.models import Run
from review.models import AnchorShift, ReviewItem, ReviewQueue
from review.queues.progress import active_queues
from review.reports.gate import Gate, gate_line

# Older events are not sent to a webhook that was off.
WINDOW = timedelta(days=7)
# Longer than the window, so that no event is queued twice.
RETENTION = timedelta(days=30)


class SiteEvent(NamedTuple):
    """An event: identity and text, path of the page about it, and the ``data`` of the message."""

    subject: str
    text: str
    path: str
    data: dict[str, Any]


def queue_new_events() -> None:
    """Queue messages about events that no message covers yet."""
    for webhook in Webhook.objects.filter(is_active=True).select_related("project", "created_by"):
        since = max(webhook.created_at, timezone.now() - WINDOW)
        with in_language(webhook):
            for event in filter(SOURCES.__contains__, map(Event, webhook.events)):
                known = set(webhook.deliveries.filter(event=event).values_list("subject", flat=True))
                for subject, text, path, data in SOURCES[event](webhook.project_id, since):
                    if subject not in known:
                        queue_message(webhook, event, subject, text, path, data)


def queue_failed_gate(*, run: Run, gate: Gate, **_sent: object) -> None:
    """Queue messages about a gate that is not passed, once per run and rules."""
    if not gate.exit_code:
        return
    rules = ", ".join(f"{check.rule} {check.limit:g}" for check in gate.checks)
    subject = f"{run.pk}: {gate.on}, {rules}, {gate.baseline_id}"[:200]
    webhooks = Webhook.objects.filter(is_active=True, project=run.project_id)
    for webhook in webhooks.select_related("project", "created_by"):
        if Event.GATE_FAILED in webhook.events:
            with in_language(webhook):
                text = f"{run}: {gate_line(gate, run.pk)}"
            data = {"run": run.pk, "gate": gate.to_dict()}
            queue_message(webhook, Event.GATE_FAILED, subject, text, reverse("run", args=[run.pk]), data)


def delete_old_deliveries() -> int:
    """Delete messages that were delivered or failed a month ago; returns how many."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - RETENTION)
    return old.exclude(state=Delivery.State.WAITING).delete()[0]


def _finished_runs(project_id: int, since: datetime) -> Iterator[SiteEvent]:
    for run in Run.objects.filter(project=project_id, state__in=Run.ENDED, finished_at__gte=since):
        if run.state == Run.State.COMPLETED:
            text = gettext("Run %(name)s is complete.") % {"name": run}
        else:
            text = gettext("Run %(name)s is incomplete.") % {"name": run} + " " + explain_reason(run.reason)
        data = {"run": run.pk, "state": run.state, "reason": run.reason}
        yield SiteEvent(str(run.pk), text, reverse("run", args=[run.pk]), data)


def _finished_queues(project_id: int, since: datetime) -> Iterator[SiteEvent]:
    items = ReviewItem.objects.filter(queue=OuterRef("pk"))
    rated = items.filter(assignments__submitted_at__gte=since)
    queues = ReviewQueue.objects.filter(
        Exists(rated), ~Exists(items.filter(state=ReviewItem.State.OPEN)), project=project_id
    )
    for queue in queues:
        text = gettext("The review queue %(name)s is finished.") % {"name": queue}
        yield SiteEvent(str(queue.pk), text, reverse("queue", args=[queue.pk]), {"queue": queue.pk})


def _overdue_reviews(project_id: int, since: datetime) -> Iterator[SiteEvent]:
    late = ReviewQueue.objects.filter(project=project_id, deadline__gte=since, deadline__lt=timezone.now())
    for queue, given, needed in ((row.queue, row.given, row.needed) for row in active_queues(late)):
        text = gettext("The review queue %(name)s is overdue: %(given)d of %(needed)d ratings are given.")
        counts = {"given": given, "needed": needed}
        deadline = queue.deadline.isoformat() if queue.deadline else ""
        data = {"queue": queue.pk, "deadline": deadline, **counts}
        # A later deadline may pass too.
        subject = f"{queue.pk}: {deadline}"
        yield SiteEvent(subject, text % {"name": queue, **counts}, reverse("queue", args=[queue.pk]), data)


def _drifted_judges(project_id: int, since: datetime) -> Iterator[SiteEvent]:
    shifts = AnchorShift.objects.filter(
        moved=True, created_at__gte=since, check_of__result__test__project=project_id
    ).select_related("metric", "check_of__result__test__judge_version")
    for shift in shifts:
        judge = shift.check_of.result.test.judge_version
        facts = {"judge": judge, "metric": shift.metric.name, "change": f"{shift.change:+.3f}"}
        text = gettext("The judge %(judge)s has drifted on %(metric)s by %(change)s. Its approval is stale.") % facts
        data = {"judge": str(judge), "metric": shift.metric.name, "change": shift.change}
        yield SiteEvent(str(shift.pk), text, reverse("judge", args=[judge.pk]), data)


SOURCES: dict[Event, Callable[[int, datetime], Iterator[SiteEvent]]] = {
    Event.RUN_FINISHED: _finished_runs,
    Event.QUEUE_FINISHED: _finished_queues,
    Event.REVIEW_OVERDUE: _overdue_reviews,
    Event.JUDGE_DRIFTED: _drifted_judges,
}
