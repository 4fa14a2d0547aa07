"""What evaluators wrote is only ever text too: titles and levels of criteria, names of judges, practice items; and in
files no cell is a formula."""

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
from tests.evaluation.scoring.families import profile_of
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_user
from tests.factories import question_spec as asked
from tests.pages.markup import unsafe
from tests.pages.test_hostile_text import ALL, CORPUS

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
class Reviewed:
    """A run judged by a criterion, and one of its answers in a reviewer's hands."""

    project: Project
    version: CriterionVersion
    run: Run
    queue: ReviewQueue
    held: Assignment
    people: dict[str, User]


ICON = re.compile(r'<img src="/static/admin/[\w./-]+"[^<>]*>')  # Django's own


def inert(world: Reviewed, person: str, path: str, **said: str) -> str:
    """The page's text, once nothing of it could run."""
    client = Client()
    client.force_login(world.people[person])
    response = client.post(path, said, follow=True) if said else client.get(path, follow=True)
    assert response.status_code == 200, path
    page = response.content.decode()
    assert unsafe(ICON.sub("", page)) == [], path
    return page


def texts_of(*hostile: str) -> dict[str, Any]:
    levels = [{"value": n, "text": text[:70]} for n, text in enumerate(hostile[:3], start=1)]
    return {"question": hostile[3], "instruction": "\n".join(hostile), "levels": levels}


def reviewed(hostile: tuple[str, ...]) -> Reviewed:
    """Everything that has a name is called by one of the texts."""
    project = make_project()
    questions = [
        asked(n, text=text, references=(text,), category=text.strip() or "c") for n, text in enumerate(hostile, start=1)
    ]
    answers = make_answer_set(make_question_set(project, questions), system=hostile[0], texts=list(hostile))
    for answer in answers.answers.all():
        Context.objects.create(answer=answer, position=1, chunk_id="c9", text=hostile[1], source=hostile[2])
    texts = texts_of(*(text for text in hostile if text.isprintable()))  # criteria refuse what cannot be seen
    titles = {"title_en": hostile[0][:80], "title_ko": hostile[1][:80]}
    version = in_force(project, **titles, en=texts, ko=texts, offline="relevancy")
    profile = profile_of(answers, reported=[version.criterion.name, "keyword_hit"])
    judge = make_judge(project, hostile[3][:90], model=hostile[0], language="en")
    run = prepare_run(answers, profile, RunSpec(name=hostile[0]), judge=judge)
    start(run)
    drain(run.pk, seconds=30)
    run.refresh_from_db()
    people = {"lead": make_user(Role.LEAD, project), "member": make_user(Role.REVIEWER, project, username="@SUM")}
    people["boss"] = make_user(is_superuser=True, is_staff=True)
    queue = make_queue(run, [people["member"]], metrics=[version.criterion.name], reveal="always")
    held = next_assignment(queue, people["member"])
    assert held is not None
    return Reviewed(project, version, run, queue, held, people)


def test_a_criterion_and_a_judge_stay_text_on_every_page() -> None:
    world = reviewed(CORPUS[:8])
    assert world.run.state == Run.State.COMPLETED
    item = reverse("review-item", args=[world.held.pk])
    assert "onload=alert" in inert(world, "member", item)
    submit(
        world.held, {world.version.criterion.name: RatingInput(value=1, comment=ALL)}, idempotency_key="k",
        by=world.people["member"],
    )  # fmt: skip
    for person, path in {
        "member": item,
        "boss": reverse("admin:evaluation_criterionversion_changelist"),
    }.items():
        inert(world, person, path)
    one = reverse("admin:evaluation_criterionversion_change", args=[world.version.pk])
    assert "onload=alert" in inert(world, "boss", one)
    for name in ("rubricversion", "judgeversion", "run"):
        inert(world, "boss", reverse(f"admin:evaluation_{name}_changelist"))
    for step in ("prompt", "trial"):
        tried = reverse("admin:criterion-try", args=[world.version.pk])
        inert(world, "boss", tried, answers=str(world.run.answer_set_id), judge="", do=step)
    judge = world.run.judges.get().judge_version_id
    for path in (
        reverse("judge-list"), reverse("judge", args=[judge]), reverse("run", args=[world.run.pk]),
        reverse("run-answers", args=[world.run.pk]), reverse("run-agreement", args=[world.run.pk]),
        reverse("run-agreement-intervals", args=[world.run.pk]),
        f"{reverse('run-compare')}?runs={world.run.pk}", f"{reverse('queue-new')}?run={world.run.pk}",
        reverse("queue", args=[world.queue.pk]), reverse("queue-people", args=[world.queue.pk]),
        f"{reverse('answer', args=[world.held.item.answer_id])}?run={world.run.pk}",
    ):  # fmt: skip
        inert(world, "lead", path)
    report = b"".join(export(world.run, "html").chunks).decode()
    assert unsafe(report) == ["<style>"]  # its own
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


def runs(cell: str) -> bool:
    """Whether a spreadsheet would take the text for a formula. A number with its sign is one, and stays one."""
    text = cell.lstrip("\t\r\n \u200b\ufeff")
    try:
        float(text)
    except ValueError:
        return text[:1] in set("=+-@＝＋－＠") and not cell.startswith("'")
    return cell != text and text[:1] in set("+-")


def test_no_cell_of_a_file_is_a_formula_and_json_lines_are_verbatim() -> None:
    assert all(runs(text) for text in FORMULAS if text != "+1")
    world = reviewed(FORMULAS)
    name = world.version.criterion.name
    submit(
        world.held, {name: RatingInput(value=1, comment=FORMULAS[0])}, idempotency_key="k", by=world.people["member"]
    )
    made = {
        form: [
            b"".join(export_items(world.queue, form).chunks),
            b"".join(export_items(world.queue, form, world.people["member"]).chunks),
            b"".join(export(world.run, form).chunks),
        ]
        for form in ("csv", "xlsx", "jsonl")
    }
    for form, cells in (("csv", csv_cells), ("xlsx", xlsx_cells)):
        for data in made[form]:
            texts = list(cells(data))
            assert [text for text in texts if runs(text)] == []
            assert any(text.startswith("'=HYPERLINK") for text in texts)
    for data in made["jsonl"]:
        said = [json.loads(line) for line in data.decode().splitlines()]
        assert {text for one in said for text in one.values() if isinstance(text, str)} & set(FORMULAS)
