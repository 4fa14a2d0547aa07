"""Text of others is only ever text: in questions, answers, passages, reasons, comments, names and files."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.messages.markdown import render
from evaluation.models import Context, User
from review.decisions.overrides import override
from review.ratings.leases import next_assignment
from tests.factories import (
    make_answer_set,
    make_judge,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
    question_spec,
)
from tests.pages.markup import unsafe_markup

pytestmark = pytest.mark.slow

CORPUS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](//evil.example/x)",
    "[click](/admin/logout/)",
    "![pixel](https://evil.example/track.png)",
    "<a href='java&#115;cript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "| a |\n|--:|\n| <b onclick=alert(1)>b</b> |",
    "{{ 7|add:7 }}{% debug %}",
    "</textarea><script>alert(1)</script>",
    "<!--<script>alert(1)//-->",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "\u202e<script>alert(1)</script>",
)
ALL_HOSTILE_TEXT = "\n\n".join(CORPUS)


def test_unsafe_markup_is_detected() -> None:
    for markup in (
        CORPUS[0],
        CORPUS[1],
        '<p style="x">',
        '<a href="javascript:x">',
        '<i hx-trigger="click[x]">',
        "<base>",
    ):
        assert unsafe_markup(markup), markup


@pytest.mark.parametrize("text", CORPUS)
def test_markdown_of_hostile_text_is_inert(text: str) -> None:
    assert unsafe_markup(render(text)) == []


def test_markdown_keeps_usual_formatting() -> None:
    html = render("# Title\n\n**bold** and [a source](https://a.example/b)\n\n- one\n- two\n\n| x |\n|---|\n| 1 |\n")
    assert "<h3>Title</h3>" in html
    assert '<a href="https://a.example/b" rel="noopener noreferrer nofollow">a source</a>' in html
    assert html.count("<li>") == 2
    assert "<td>1</td>" in html
    assert '<div class="scroll" tabindex="0"><table>' in html  # a wide one scrolls by itself, by keyboard too
    assert "</table></div>" in html


@pytest.mark.django_db
def test_pages_run_no_hostile_text() -> None:
    project = make_project()
    name = CORPUS[0][:150]
    specs = [
        question_spec(
            1, text=ALL_HOSTILE_TEXT, references=(ALL_HOSTILE_TEXT,), category=CORPUS[1], keywords=((CORPUS[2],),)
        )
    ]
    questions = make_question_set(project, specs, name=name)
    answers = make_answer_set(questions, system=CORPUS[3], texts=[ALL_HOSTILE_TEXT])
    answer = answers.answers.get()
    Context.objects.create(answer=answer, position=1, chunk_id="c2", text=ALL_HOSTILE_TEXT, source=CORPUS[1])
    judge = make_judge(project, CORPUS[4][:90], model=CORPUS[0])
    run = make_scored_run(answers, judge=judge, reason=ALL_HOSTILE_TEXT, name=CORPUS[3])
    lead = make_user(Role.LEAD, project, first_name="<script>alert(1)</script>")
    reviewer = make_user(Role.REVIEWER, project, first_name="<b onclick=alert(1)>")
    queue = make_queue(run, [reviewer, lead], guideline=ALL_HOSTILE_TEXT, reveal="always", name="Q")
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    client, chief = _lead_client(reviewer), _lead_client(lead)
    pages = [
        client.get(reverse("review-item", args=[assignment.pk])),
        client.post(
            reverse("review-submit", args=[assignment.pk]), {"comment": ALL_HOSTILE_TEXT, "form_key": CORPUS[3]}
        ),
        client.post(reverse("review-draft", args=[assignment.pk]), {"comment": ALL_HOSTILE_TEXT}),
        client.get(reverse("review-item", args=[assignment.pk])),
        client.post(
            reverse("review-submit", args=[assignment.pk]),
            {"value:correctness": 1, "value:faithfulness": 1, "comment": ALL_HOSTILE_TEXT, "form_key": "k"},
            follow=True,
        ),
        client.post(
            reverse("review-finalise", args=[assignment.pk]),
            {
                "decision": "change",
                "value:correctness": 5,
                "value:faithfulness": ALL_HOSTILE_TEXT,
                "comment:correctness": ALL_HOSTILE_TEXT,
            },
        ),
    ]
    override(answer, run.scores.first().metric, value=3, reason=ALL_HOSTILE_TEXT, by=lead)
    for url in (
        reverse("home"), reverse("run-list"), reverse("run", args=[run.pk]), reverse("run-agreement", args=[run.pk]),
        f"{reverse('answer', args=[answer.pk])}?run={run.pk}", reverse("queue-list"),
        reverse("queue", args=[queue.pk]), f"{reverse('queue-new')}?run={run.pk}", reverse("question-set-list"),
        reverse("question-set", args=[questions.pk]),
        f"{reverse('run-list')}?q={ALL_HOSTILE_TEXT}&state={ALL_HOSTILE_TEXT}",
    ):  # fmt: skip
        pages.append(chief.get(url))
    pages.append(chief.post(reverse("answer-override", args=[answer.pk]), {
        "metric": run.scores.first().metric_id, "value:correctness": ALL_HOSTILE_TEXT,
        "value:faithfulness": ALL_HOSTILE_TEXT, "reason": ALL_HOSTILE_TEXT,
    }))  # fmt: skip
    for page in pages:
        assert unsafe_markup(page.content.decode()) == [], page.request["PATH_INFO"]
        assert page.status_code < 500


@pytest.mark.django_db
def test_uploaded_file_and_its_name_stay_text() -> None:
    project = make_project()
    client = _lead_client(make_user(Role.EVALUATOR, project))
    rows = [f'{{"id": "q{i}", "category": "c", "question": {json.dumps(text)}, "expected_answer": {json.dumps(text)}}}'
            for i, text in enumerate(CORPUS)]  # fmt: skip
    file = SimpleUploadedFile("<img src=x onerror=alert(1)>.json", f"[{','.join(rows)}]".encode())
    data = {"project": project.pk, "file": file, "name": "<script>alert(1)</script>"}
    page = client.post(reverse("question-set-upload"), data, follow=True)
    assert page.status_code == 200
    assert "onerror" in page.content.decode()  # shown
    assert unsafe_markup(page.content.decode()) == []
    broken = SimpleUploadedFile("<script>alert(1)</script>.json", b'[{"id": "<script>alert(1)</script>"}]')
    response = client.post(reverse("question-set-upload"), {"project": project.pk, "file": broken})
    assert response.status_code == 400
    assert unsafe_markup(response.content.decode()) == []


def _lead_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
