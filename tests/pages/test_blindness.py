"""Before the rating is stored, no page reveals the judge, its verdicts, the answering system, the time, or the reason
why the answer was sampled."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.timezone import localtime

from evaluation.core.roles import Role
from evaluation.models import Run, User
from review.models import Assignment, FrameMember, ReviewQueue
from review.ratings.leases import next_assignment
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_scored_run
from tests.factories import make_user as user_of

pytestmark = pytest.mark.django_db
SECRETS = {
    "reason": "The judge thinks of zebras here",
    "judge": "sharp-eyed-judge",
    "model": "gpt-unseen-9",
    "run": "Nightly run of Tuesday",
    "system": "hidden-retriever",
}


@pytest.fixture
def blind_review() -> tuple[User, ReviewQueue, Assignment, Run]:
    """A reviewer who holds an item of a stratified queue."""
    project = make_project()
    answers = make_answer_set(make_question_set(project, 12), system=SECRETS["system"])
    judge = make_judge(project, SECRETS["judge"], model=SECRETS["model"])
    run = make_scored_run(answers, judge=judge, reason=SECRETS["reason"], name=SECRETS["run"])
    reviewer = user_of(Role.REVIEWER, project)
    queue = make_queue(run, [reviewer], strategy="stratified", size=8, name="Spring review", reveal="always")
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    return reviewer, queue, assignment, run


def pages(client: Client, queue: ReviewQueue, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Every page and fragment that a reviewer can reach before submitting."""
    item = reverse("review-item", args=[assignment.pk])
    for name, url in {
        "home": reverse("home"),
        "queues": reverse("queue-list"),
        "queue": reverse("queue", args=[queue.pk]),
        "item": item,
    }.items():
        yield name, client.get(url).content.decode()
    yield "next card", client.get(reverse("review-prefetch", args=[assignment.pk])).content.decode()
    yield "my ratings", client.get(reverse("my-ratings")).content.decode()
    yield "keys", client.get(reverse("review-keys")).content.decode()
    again = client.get(reverse("review-rerate", args=[assignment.pk]), follow=True)
    yield "rate again too early", again.content.decode()
    yield "disputes", client.get(reverse("adjudication")).content.decode()
    yield "a case", client.get(reverse("adjudication-case", args=[assignment.item_id])).content.decode()
    yield "report", client.get(f"/api/v1/runs/{assignment.item.run_id}/report/").content.decode()
    yield "export of answers", client.get(f"/api/v1/runs/{assignment.item.run_id}/answers/").content.decode()
    yield "adjudication by REST", client.get("/api/v1/adjudication/").content.decode()
    yield "not found", client.get("/items/999999/").content.decode()
    yield "refused form", client.post(f"{item}submit/", {"form_key": "k"}).content.decode()
    yield (
        "reveal asked for too early",
        client.post(f"{item}finalise/", {"decision": "keep"}, follow=True).content.decode(),
    )
    for url in (reverse("run", args=[assignment.item.run_id]), reverse("answer", args=[assignment.item.answer_id])):
        yield url, client.get(url).content.decode()


def test_pages_before_the_rating_reveal_nothing_of_the_judge(
    blind_review: tuple[User, ReviewQueue, Assignment, Run], client: Client
) -> None:
    reviewer, queue, assignment, run = blind_review
    client.force_login(reviewer)
    strata = set(FrameMember.objects.values_list("stratum", flat=True))
    run_date = str(localtime(run.created_at).date())
    for name, page in pages(client, queue, assignment):
        for kind, secret in SECRETS.items():
            assert secret not in page, (name, kind)
        for term in ("stratif", "stratum", "probab", run_date, *strata):
            assert term not in page.lower(), (name, term)


def test_item_shows_no_retrieval_score(blind_review: tuple[User, ReviewQueue, Assignment, Run], client: Client) -> None:
    reviewer, _, assignment, _ = blind_review
    client.force_login(reviewer)
    page = client.get(reverse("review-item", args=[assignment.pk])).content.decode()
    assert assignment.item.answer.contexts.get(position=0).score == 0.9
    assert "0.9" not in page


def test_item_layout_is_independent_of_the_judge(
    blind_review: tuple[User, ReviewQueue, Assignment, Run], client: Client
) -> None:
    reviewer, queue, assignment, _ = blind_review
    client.force_login(reviewer)
    shapes = set()
    for _ in range(4):
        page = client.get(reverse("review-item", args=[assignment.pk])).content.decode()
        client.post(reverse("review-skip", args=[assignment.pk]))
        shapes.add(page_structure(page))
        next_held = next_assignment(queue, reviewer)
        assert next_held is not None
        assignment = next_held
    assert len(shapes) == 1


def test_judge_is_shown_after_the_rating(
    blind_review: tuple[User, ReviewQueue, Assignment, Run], client: Client
) -> None:
    reviewer, _, assignment, _ = blind_review
    client.force_login(reviewer)
    score = assignment.item.answer.scores.get(metric__name="correctness")
    distant_value = 5 if (score.value or 0) <= 3 else 1
    data = {"value:correctness": distant_value, "value:faithfulness": distant_value, "form_key": "k"}
    page = client.post(reverse("review-submit", args=[assignment.pk]), data, follow=True).content.decode()
    assert SECRETS["reason"] in page


def page_structure(page: str) -> str:
    """Return the tags and classes of the page's main part, without its text."""
    body = page.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.findall(r'<\w+|class="[^"]*"', body))
