"""Addresses and pages of traces, for the tests of the core that walk all of them."""

from __future__ import annotations

import json

from django.urls import reverse

from contrib.traces.importing import Sampling, store_upload
from evaluation.core.roles import Role
from evaluation.models import ImportBatch, Project, Run, User
from tests.access_rules import EVALUATES, EVALUATES_SOMEWHERE, LOGGED_IN

RULES = {
    ("GET", "traces-new"): EVALUATES_SOMEWHERE,
    ("POST", "traces-new"): EVALUATES_SOMEWHERE,
    ("GET", "traces-preview"): EVALUATES,
    ("POST", "traces-confirm"): EVALUATES,
    # Who may import into no project is refused by a sentence that says so.
    ("POST", "api-otlp-traces"): LOGGED_IN,
    ("GET", "api-trace-list"): LOGGED_IN,
    ("POST", "api-trace-list"): LOGGED_IN,
}


def trace_batch(project: Project) -> ImportBatch:
    """Return a file of traces that waits for its confirmation."""
    values = {"input.value": "How long may a leave be?", "output.value": "15 days."}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    span = {"traceId": "1" * 32, "attributes": attributes}
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    by = User.objects.filter(grants__project=project, grants__role=Role.EVALUATOR).first()
    return store_upload(project, "uploaded", data, "t.json", Sampling(), name="", by=by)


SUBJECTS = dict.fromkeys(("traces-preview", "traces-confirm"), lambda world: trace_batch(world.project).uuid)
PAGES = {
    "traces": ("lead", lambda w: reverse("traces-new"), 5),
    "traces, previewed": ("lead", lambda w: reverse("traces-preview", args=[trace_batch(w.project).uuid]), 7),
}


def lead_pages(_vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    return [reverse("traces-new"), reverse("traces-preview", args=[trace_batch(run.project).uuid])]
