"""Fill a fresh database with reviewers and queues and print them: ``-m tests.review.crowd PEOPLE ITEMS``.

``ITEMS`` is JSON: the number of items of a queue, by the number of reviewers that each item needs."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import transaction
from django.utils import timezone

from evaluation.models import ApiToken, RoleGrant, User
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run


@transaction.atomic
def main(reviewer_count: int, items: dict[int, int]) -> None:
    """One project, a judged run, reviewers with tokens, and the queues."""
    run = make_scored_run(make_answer_set(make_question_set(specs=max(items.values()))))
    reviewers = []
    for number in range(reviewer_count):
        user = User(username=f"reviewer-{number}")
        user.set_unusable_password()
        user.save()
        RoleGrant.objects.create(user=user, project=run.project, role="reviewer")
        ApiToken.objects.create(
            user=user,
            made_by=user,
            project=run.project,
            name="crowd",
            scope="write",
            sha256=hashlib.sha256(f"token-{number}".encode()).hexdigest(),
            expires_at=timezone.now() + timedelta(hours=1),
        )
        reviewers.append(user)
    queues = [
        make_queue(run, reviewers=reviewers, reviews_needed=overlap, strategy="uniform", size=size, seed=overlap).pk
        for overlap, size in items.items()
    ]
    print(json.dumps({"queues": queues, "reviewers": {user.pk: f"token-{n}" for n, user in enumerate(reviewers)}}))


if __name__ == "__main__":
    main(int(sys.argv[1]), {int(overlap): size for overlap, size in json.loads(sys.argv[2]).items()})
