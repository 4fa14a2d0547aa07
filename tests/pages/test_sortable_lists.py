"""Lists sorted by their column heads."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Project
from tests.factories import (
    make_answer_set,
    make_draft_run,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def names(client: Client, path: str, pattern: str) -> list[str]:
    return re.findall(pattern, compact(client.get(path).content.decode()).partition("<tbody>")[2])


def lead_of(project: Project) -> Client:
    client = Client()
    client.force_login(make_user(Role.LEAD, project))
    return client


def test_runs_are_sorted_by_name_and_state(project: Project) -> None:
    answers = make_answer_set(make_question_set(project))
    for name in ("bb", "aa", "cc"):
        make_draft_run(answers, name=name)
    client, path, pattern = lead_of(project), reverse("run-list"), r">(aa|bb|cc)</a>"
    assert names(client, path, pattern) == ["cc", "aa", "bb"]
    assert names(client, f"{path}?order=name", pattern) == ["aa", "bb", "cc"]
    assert names(client, f"{path}?order=-name", pattern) == ["cc", "bb", "aa"]
    assert names(client, f"{path}?order=-name&q=b", pattern) == ["bb"]
    page = compact(client.get(f"{path}?q=b&order=name").content.decode())
    assert '<th scope="col" aria-sort="ascending"><a href="?q=b&amp;order=-name">Run</a></th>' in page
    assert '<th scope="col"><a href="?q=b&amp;order=state">State</a></th>' in page


def test_home_page_has_plain_heads(project: Project) -> None:
    make_draft_run(make_answer_set(make_question_set(project)))
    assert '<th scope="col">Run</th>' in compact(lead_of(project).get(reverse("home")).content.decode())


def test_queues_are_sorted_by_name_and_progress(project: Project) -> None:
    run = make_scored_run(make_answer_set(make_question_set(project)))
    for name in ("bb", "aa"):
        make_queue(run, name=name)
    client, path, pattern = lead_of(project), reverse("queue-list"), r">(aa|bb)</a>"
    assert names(client, path, pattern) == ["aa", "bb"]
    assert names(client, f"{path}?order=-name", pattern) == ["bb", "aa"]
    assert len(names(client, f"{path}?order=progress", pattern)) == 2
    assert len(names(client, f"{path}?order=-ratings", pattern)) == 2


def test_question_sets_and_questions_are_sorted(project: Project) -> None:
    sets = [make_question_set(project, count, name=name) for name, count in (("bb", 2), ("aa", 60))]
    client, path, pattern = lead_of(project), reverse("question-set-list"), r">(aa|bb)</a>"
    assert names(client, f"{path}?order=name", pattern) == ["aa", "bb"]
    assert names(client, f"{path}?order=questions", pattern) == ["bb", "aa"]
    path, ids = reverse("question-set", args=[sets[1].pk]), r"<code>(q-?\d+)</code>"
    listed = names(client, path, ids)
    assert names(client, f"{path}?order=id", ids) == sorted(q.external_id for q in sets[1].questions.all())[:50]
    assert listed != names(client, f"{path}?order=-id", ids)
    assert 'href="?order=-id&amp;page=2"' in client.get(f"{path}?order=-id").content.decode()


def test_questions_are_filtered_by_category(project: Project) -> None:
    specs = [question_spec(n, category="even" if n % 2 == 0 else "odd") for n in range(1, 8)]
    client, path = lead_of(project), reverse("question-set", args=[make_question_set(project, specs).pk])
    ids = r"<code>(q-?\d+)</code>"
    assert len(names(client, f"{path}?category=even", ids)) == 3
    page = compact(client.get(f"{path}?category=even&order=-id").content.decode())
    assert '<a class="chip long" href="?order=-id" aria-current="true">even 3</a>' in page
    assert '<a class="chip long" href="?order=-id&amp;category=odd">odd 4</a>' in page
    assert ">7 questions</span>" in page
