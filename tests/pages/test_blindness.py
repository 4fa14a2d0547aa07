"""Before the rating is in, no page tells a reviewer what the judge said, who judged, which system answered, when, or
why the answer was chosen."""

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
def held() -> tuple[User, ReviewQueue, Assignment, Run]:
    """A reviewer with an item of a stratified queue in hand."""
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
    yield "next card", client.get(f"{item}ahead/").content.decode()
    yield "my ratings", client.get(reverse("my-ratings")).content.decode()
    yield "keys", client.get(reverse("review-keys")).content.decode()
    yield "rate again too early", client.get(f"{item}again/", follow=True).content.decode()
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


def test_no_page_before_the_rating_holds_a_word_about_the_judge(
    held: tuple[User, ReviewQueue, Assignment, Run], client: Client
) -> None:
    reviewer, queue, assignment, run = held
    client.force_login(reviewer)
    strata = set(FrameMember.objects.values_list("stratum", flat=True))
    moment = str(localtime(run.created_at).date())
    for name, page in pages(client, queue, assignment):
        for what, secret in SECRETS.items():
            assert secret not in page, (name, what)
        for told in ("stratif", "stratum", "probab", moment, *strata):
            assert told not in page.lower(), (name, told)


def test_the_item_holds_no_retrieval_score(held: tuple[User, ReviewQueue, Assignment, Run], client: Client) -> None:
    reviewer, _, assignment, _ = held
    client.force_login(reviewer)
    page = client.get(reverse("review-item", args=[assignment.pk])).content.decode()
    assert assignment.item.answer.contexts.get(position=0).score == 0.9
    assert "0.9" not in page


def test_items_look_alike_whatever_the_judge_said(
    held: tuple[User, ReviewQueue, Assignment, Run], client: Client
) -> None:
    reviewer, queue, assignment, _ = held
    client.force_login(reviewer)
    shapes = set()
    for _ in range(4):
        page = client.get(reverse("review-item", args=[assignment.pk])).content.decode()
        client.post(reverse("review-skip", args=[assignment.pk]))
        shapes.add(shape_of(page))
        following = next_assignment(queue, reviewer)
        assert following is not None
        assignment = following
    assert len(shapes) == 1


def test_after_the_rating_the_judge_is_shown(held: tuple[User, ReviewQueue, Assignment, Run], client: Client) -> None:
    reviewer, _, assignment, _ = held
    client.force_login(reviewer)
    score = assignment.item.answer.scores.get(metric__name="correctness")
    far = 5 if (score.value or 0) <= 3 else 1
    data = {"value:correctness": far, "value:faithfulness": far, "form_key": "k"}
    page = client.post(reverse("review-submit", args=[assignment.pk]), data, follow=True).content.decode()
    assert SECRETS["reason"] in page


def shape_of(page: str) -> str:
    """The tags and classes of the page's main part, without what it says."""
    body = page.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.findall(r'<\w+|class="[^"]*"', body))
