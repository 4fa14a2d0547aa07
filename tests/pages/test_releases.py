"""From a second answer file of a system to the verdict on what changed, page by page, in both languages."""

from __future__ import annotations

import json
from contextlib import suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Answer, Project, Run, User
from review.management.demo.loader import DATA_DIR
from review.models import Assignment, ReviewQueue
from tests.factories import make_project, make_user
from tests.pages.markup import compact
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
CHANGED, QUESTIONS = 24, 40


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Run, Run]:
    """Two releases of the demo's system: the second changed its answers to the first 24 of 40 questions."""
    make_project()
    call_command("import_questions", DATA_DIR / "en" / "questions.yaml", name="demo", stdout=StringIO())
    rows = [
        json.loads(line) for line in (DATA_DIR / "en" / "answers_graph.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    files = {"first": rows, "second": [row | {"answer": row["answer"] + " Yes."} for row in rows[:CHANGED]]}
    files["second"] += rows[CHANGED:]
    for name, answers in files.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, answers)), encoding="utf-8")
        call_command("import_answers", path, questions="demo", system="acmerag", stdout=StringIO())
        call_command(
            "evaluate", questions="demo", system="acmerag", profile="graphrag", stdout=StringIO(), stderr=StringIO()
        )
    first, second = Run.objects.filter(judges__isnull=False).order_by("pk").distinct()
    return first, second


def client_of(role: Role, project: Project, language: str) -> tuple[Client, User]:
    user, client = make_user(role, project, language=language), Client()
    client.force_login(user)
    return client, user


def rate_all_pairs(client: Client, queue: ReviewQueue) -> list[int]:
    """Rate every item as the pages offer it: new answers 4, old ones 3. Return the questions in their order."""
    questions = []
    while assignment := _served(client, queue):
        answer = assignment.item.answer
        value = 4 if answer.text.endswith(" Yes.") else 3
        names = queue.metrics.values_list("metric__name", flat=True)
        data = {f"value:{name}": value for name in names} | {"form_key": f"k{assignment.pk}"}
        response = client.post(reverse("review-submit", args=[assignment.pk]), data)
        assert response.status_code == 302, response.content
        questions.append(answer.question_id)
    return questions


def _served(client: Client, queue: ReviewQueue) -> Assignment | None:
    page = client.get(reverse("review-next", args=[queue.pk]))
    assert page.status_code == 200
    # Neither run nor system nor release is named.
    assert "acmerag" not in page.content.decode()
    held = Assignment.objects.filter(queue=queue, state=Assignment.State.LEASED)
    return held.select_related("item__answer").order_by("pk").first()


TEXTS = {
    "en": (
        f"{CHANGED} of {QUESTIONS} answers changed since run #",
        f"The answers to {CHANGED} of {QUESTIONS} questions changed.",
        f"Not rated: {CHANGED}.",
        "By ratings of the changed answers: ",
        "on these questions.",
    ),
    "ko": (
        f"답변 {QUESTIONS}개 중 {CHANGED}개가 바뀌었습니다",
        f"질문 {QUESTIONS}개 중 {CHANGED}개의 답변이 바뀌었습니다.",
        f"평가 없음: {CHANGED}개.",
        "바뀐 답변의 평가 기준: ",
        "이 질문들에서",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "ko"])
def test_second_answer_file_leads_to_a_verdict(runs: tuple[Run, Run], language: str) -> None:
    first, second = runs
    on_run_page, changed, known, verdict, target = TEXTS[language]
    lead, _ = client_of(Role.LEAD, second.project, language)
    expert, reviewer = client_of(Role.REVIEWER, second.project, language)
    comparison = f"{reverse('run-compare')}?runs={first.pk},{second.pk}"
    run_page = compact(lead.get(reverse("run", args=[second.pk])).content.decode())
    assert on_run_page in run_page
    assert comparison.replace("&", "&amp;") in run_page
    page = compact(lead.get(comparison).content.decode())
    assert changed in page
    assert known in page

    form = {"questions": 22, "reviews_needed": 1, "looks": 1, "reviewers": [reviewer.pk]}
    created = lead.post(reverse("pair-queue-new", args=[second.pk, first.pk]), form, follow=True)
    assert created.status_code == 200
    queue = ReviewQueue.objects.get()
    assert created.request["PATH_INFO"] == reverse("queue", args=[queue.pk])
    # A second queue of pairs is refused while this one is open.
    refused = lead.post(reverse("pair-queue-new", args=[second.pk, first.pk]), form, follow=True)
    assert refused.request["PATH_INFO"] == reverse("run-compare")
    assert ReviewQueue.objects.count() == 1

    questions = rate_all_pairs(expert, queue)
    assert len(questions) == 44
    assert all(before != after for before, after in pairwise(questions))
    page = compact(lead.get(comparison).content.decode())
    assert verdict in page
    assert target in page


def gate_of(run: Run, baseline: Run, *options: str) -> dict[str, object]:
    output = StringIO()
    arguments = ["--baseline", str(baseline.pk), "--max-drop", "0.05", *options]
    with suppress(SystemExit):
        call_command("results", str(run.pk), *arguments, format="json", stdout=output, stderr=StringIO())
    return dict(json.loads(output.getvalue())["gate"])


@pytest.mark.slow
def test_gate_between_releases_is_about_these_questions(runs: tuple[Run, Run]) -> None:
    first, second = runs
    gate = gate_of(second, first)
    assert (gate["on"], gate["target"]) == ("judge_only", "questions_like_these")
    lead, lead_user = client_of(Role.LEAD, second.project, "en")
    expert, reviewer = client_of(Role.REVIEWER, second.project, "en")
    form = {"questions": CHANGED, "reviews_needed": 1, "looks": 1, "reviewers": [reviewer.pk]}
    lead.post(reverse("pair-queue-new", args=[second.pk, first.pk]), form)
    rate_all_pairs(expert, ReviewQueue.objects.get())
    gate = gate_of(second, first)
    assert (gate["on"], gate["target"], gate["verdict"]) == ("corrected", "this_run", "pass")
    (difference,) = Caller(lead_user).get(f"runs/compare/?runs={first.pk},{second.pk}").json()["differences"]
    assert difference["release"]["rated"] == {"both": CHANGED, "one": 0, "none": 0}
    assert difference["verdict"]["corrected"]["verdict"] == "better"
    assert difference["verdict"]["corrected"]["target"] == "this_run"
    backwards = gate_of(first, second)
    assert (backwards["target"], backwards["verdict"]) == ("this_run", "fail")
    assert Answer.objects.filter(text__endswith=" Yes.").count() == CHANGED


def test_only_leads_see_the_form_of_pairs(runs: tuple[Run, Run]) -> None:
    first, second = runs
    viewer, _ = client_of(Role.VIEWER, second.project, "en")
    page = viewer.get(f"{reverse('run-compare')}?runs={first.pk},{second.pk}").content.decode()
    assert "Changed answers" in page
    assert reverse("pair-queue-new", args=[second.pk, first.pk]) not in page
    lead, _ = client_of(Role.LEAD, second.project, "en")
    response = lead.post(reverse("pair-queue-new", args=[second.pk, first.pk]), {"questions": 0}, follow=True)
    assert "Changed questions to rate: " in response.content.decode()
