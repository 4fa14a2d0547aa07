"""Fills a fresh database with reviewers and queues and prints them: ``-m tests.review.crowd PEOPLE ONCE TWICE``."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.utils import timezone  # noqa: E402 -- after the setup

from evaluation.accounts.models import ApiToken, RoleGrant, User  # noqa: E402
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run  # noqa: E402


def main(people: int, once: int, twice: int) -> None:
    """One project, a judged run, reviewers with tokens, a queue of ``once`` items that need one of them each, and one
    of ``twice`` items that need two."""
    run = make_scored_run(make_answer_set(make_question_set(specs=max(once, twice))))
    reviewers = []
    for number in range(people):
        user = User(username=f"reviewer-{number}")
        user.set_unusable_password()
        user.save()
        RoleGrant.objects.create(user=user, project=run.project, role="reviewer")
        ApiToken.objects.create(
            user=user,
            project=run.project,
            name="crowd",
            scope="write",
            sha256=hashlib.sha256(f"token-{number}".encode()).hexdigest(),
            expires_at=timezone.now() + timedelta(hours=1),
        )
        reviewers.append(user)
    queues = [
        make_queue(run, reviewers=reviewers, reviews_needed=overlap, strategy="uniform", size=size, seed=overlap).pk
        for overlap, size in ((1, once), (2, twice))
    ]
    print(json.dumps({"queues": queues, "reviewers": {user.pk: f"token-{n}" for n, user in enumerate(reviewers)}}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
