"""For the fault tests: add a webhook with a waiting message to a fresh database, or work on due jobs as a worker does.

``python -m contrib.webhooks.tests.prepare_faults URL``, ``… work``."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from contrib.webhooks.models import Event
from contrib.webhooks.services import create_webhook, send_test
from evaluation.models import Project, User
from evaluation.worker.jobs import due, work_on


def main(url: str) -> None:
    """Create the webhook in the only project."""
    lead = User.objects.create_user("lead")
    webhook, _secret = create_webhook(Project.objects.get(), url, [Event.RUN_FINISHED], by=lead)
    send_test(webhook)


def work() -> None:
    """Work on the due jobs."""
    for pk in list(due().values_list("pk", flat=True)):
        work_on(pk)


if __name__ == "__main__":
    work() if sys.argv[1] == "work" else main(sys.argv[1])
