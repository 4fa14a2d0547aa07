"""Text of evaluators is never executed: titles and levels of criteria, names of judges, practice items; and no cell of
an export is a formula."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Context, CriterionVersion, Project, Run, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from review.evidence.rating_input import RatingInput
from review.models import Assignment, ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from review.reports.exports import export
from review.reports.item_export import export_items
from tests.evaluation.criteria.written import in_force
from tests.evaluation.scoring.families import make_profile_version
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_user
from tests.factories import question_spec as asked
from tests.pages.markup import unsafe_markup
from tests.pages.test_hostile_text import ALL_HOSTILE_TEXT, CORPUS

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FORMULAS = (
    '=HYPERLINK("http://x")',
    "＝1+1",
    "\t=1",
    "+1",
    "-1+2",
    "@SUM(A1)",
    "\r\n=1",
    " =1",
    "\u200b=cmd|' /C calc'!A0",
)


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


@dataclass(frozen=True)
class ReviewedRun:
    """A run judged by a criterion, and one of its answers in a reviewer's hands."""

    project: Project
    version: CriterionVersion
    run: Run
    queue: ReviewQueue
    assignment: Assignment
    users: dict[str, User]


ICON = re.compile(r'<img src="/static/admin/[\w./-]+"[^<>]*>')  # Django's own


def inert_page(world: ReviewedRun, username: str, path: str, **form_data: str) -> str:
    """Return the page's text after checking that nothing in it could run."""
    client = Client()
    client.force_login(world.users[username])
    response = client.post(path, form_data, follow=True) if form_data else client.get(path, follow=True)
    assert response.status_code == 200, path
    page = response.content.decode()
    assert unsafe_markup(ICON.sub("", page)) == [], path
    return page


def criterion_texts(*hostile: str) -> dict[str, Any]:
    levels = [{"value": n, "text": text[:70]} for n, text in enumerate(hostile[:3], start=1)]
    return {"question": hostile[3], "instruction": "\n".join(hostile), "levels": levels}


def reviewed_run(hostile: tuple[str, ...]) -> ReviewedRun:
    """Build a run in which everything that has a name is called by one of the texts."""
    project = make_project()
    questions = [
        asked(n, text=text, references=(text,), category=text.strip() or "c") for n, text in enumerate(hostile, start=1)
    ]
    answers = make_answer_set(make_question_set(project, questions), system=hostile[0], texts=list(hostile))
    for answer in answers.answers.all():
        Context.objects.create(answer=answer, position=1, chunk_id="c9", text=hostile[1], source=hostile[2])
    texts = criterion_texts(*(text for text in hostile if text.isprintable()))  # criteria refuse what cannot be seen
    titles = {"title_en": hostile[0][:80], "title_ko": hostile[1][:80]}
    version = in_force(project, **titles, en=texts, ko=texts, offline="relevancy")
    profile = make_profile_version(answers, reported=[version.criterion.name, "keyword_hit"])
    judge = make_judge(project, hostile[3][:90], model=hostile[0], language="en")
    run = prepare_run(answers, profile, RunSpec(name=hostile[0]), judge=judge)
    start(run)
    drain(run.pk, seconds=30)
    run.refresh_from_db()
    users = {"lead": make_user(Role.LEAD, project), "member": make_user(Role.REVIEWER, project, username="@SUM")}
    users["boss"] = make_user(is_superuser=True, is_staff=True)
    queue = make_queue(run, [users["member"]], metrics=[version.criterion.name], reveal="always")
    assignment = next_assignment(queue, users["member"])
    assert assignment is not None
    return ReviewedRun(project, version, run, queue, assignment, users)


def test_criterion_and_judge_stay_text_on_every_page() -> None:
    world = reviewed_run(CORPUS[:8])
    assert world.run.state == Run.State.COMPLETED
    item = reverse("review-item", args=[world.assignment.pk])
    assert "onload=alert" in inert_page(world, "member", item)
    submit(
        world.assignment, {world.version.criterion.name: RatingInput(value=1, comment=ALL_HOSTILE_TEXT)},
        idempotency_key="k",
        by=world.users["member"],
    )  # fmt: skip
    for username, path in {
        "member": item,
        "boss": reverse("admin:evaluation_criterionversion_changelist"),
    }.items():
        inert_page(world, username, path)
    version_address = reverse("admin:evaluation_criterionversion_change", args=[world.version.pk])
    assert "onload=alert" in inert_page(world, "boss", version_address)
    for name in ("rubricversion", "judgeversion", "run"):
        inert_page(world, "boss", reverse(f"admin:evaluation_{name}_changelist"))
    for step in ("prompt", "trial"):
        trial_address = reverse("admin:criterion-try", args=[world.version.pk])
        inert_page(world, "boss", trial_address, answers=str(world.run.answer_set_id), judge="", do=step)
    judge = world.run.judges.get().judge_version_id
    for path in (
        reverse("judge-list"), reverse("judge", args=[judge]), reverse("run", args=[world.run.pk]),
        reverse("run-answers", args=[world.run.pk]), reverse("run-agreement", args=[world.run.pk]),
        reverse("run-agreement-intervals", args=[world.run.pk]),
        f"{reverse('run-compare')}?runs={world.run.pk}", f"{reverse('queue-new')}?run={world.run.pk}",
        reverse("queue", args=[world.queue.pk]), reverse("queue-people", args=[world.queue.pk]),
        f"{reverse('answer', args=[world.assignment.item.answer_id])}?run={world.run.pk}",
    ):  # fmt: skip
        inert_page(world, "lead", path)
    report = b"".join(export(world.run, "html").chunks).decode()
    assert unsafe_markup(report) == ["<style>"]  # its own
    assert "&lt;script&gt;" in report


def csv_cells(data: bytes) -> Iterator[str]:
    for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        yield from row


def xlsx_cells(data: bytes) -> Iterator[str]:
    for sheet in openpyxl.load_workbook(io.BytesIO(data), data_only=False):
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "f", cell.value
                if isinstance(cell.value, str):
                    yield cell.value


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet takes the text for a formula. A signed number is a number."""
    text = cell.lstrip("\t\r\n \u200b\ufeff")
    try:
        float(text)
    except ValueError:
        return text[:1] in set("=+-@＝＋－＠") and not cell.startswith("'")
    return cell != text and text[:1] in set("+-")


def test_exports_hold_no_formula_and_json_lines_are_verbatim() -> None:
    assert all(is_formula(text) for text in FORMULAS if text != "+1")
    world = reviewed_run(FORMULAS)
    name = world.version.criterion.name
    submit(
        world.assignment,
        {name: RatingInput(value=1, comment=FORMULAS[0])},
        idempotency_key="k",
        by=world.users["member"],
    )
    exports = {
        file_format: [
            b"".join(export_items(world.queue, file_format).chunks),
            b"".join(export_items(world.queue, file_format, world.users["member"]).chunks),
            b"".join(export(world.run, file_format).chunks),
        ]
        for file_format in ("csv", "xlsx", "jsonl")
    }
    for file_format, read_cells in (("csv", csv_cells), ("xlsx", xlsx_cells)):
        for data in exports[file_format]:
            texts = list(read_cells(data))
            assert [text for text in texts if is_formula(text)] == []
            assert any(text.startswith("'=HYPERLINK") for text in texts)
    for data in exports["jsonl"]:
        rows = [json.loads(line) for line in data.decode().splitlines()]
        assert {text for row in rows for text in row.values() if isinstance(text, str)} & set(FORMULAS)
