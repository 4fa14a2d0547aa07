"""Imports whose processes are killed midway leave nothing that counts; begun again they are whole."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.faults.site import Site

pytestmark = [pytest.mark.faults]
ANSWERS = 1_000  # 3 MB, so that the file is read row by row
COUNTING = "SELECT COUNT(*) FROM evaluation_answerset WHERE is_unfinished = (1 = 0)"
FINISHED_COUNT_QUERY = (
    "SELECT COUNT(*), COUNT(DISTINCT a.question_id) FROM evaluation_answer a "
    "JOIN evaluation_answerset s ON s.id = a.answer_set_id WHERE s.is_unfinished = (1 = 0)"
)
#: Ends the process as the kernel does when memory is short: behind the first batch that was stored, or in the check.
DIES = """
import os, signal
from evaluation.runs.answer_files import CheckedAnswers

def store(self, answers, real=CheckedAnswers.store):
    for stored in real(self, answers):
        os.kill(os.getpid(), signal.SIGKILL)
        yield stored

def count(self, found, real=CheckedAnswers._count):
    real(self, found)
    if self.rows == 600:
        os.kill(os.getpid(), signal.SIGKILL)

CheckedAnswers.{method} = {function}
"""
IMPORT = """
from django.core.management import call_command
call_command("import_answers", {path!r}, "--questions", "places", "--system", "rag")
"""
KEEP = """
from evaluation.models import QuestionSet
from evaluation.runs.large_uploads import store_large_file
data = open({path!r}, "rb").read()
pieces = (data[at : at + 524288] for at in range(0, len(data), 524288))
store_large_file(QuestionSet.objects.get(), "rag", "answers.jsonl", pieces, None, map_text="")
"""
CONFIRM = """
from evaluation.models import ImportBatch
from evaluation.runs.large_uploads import confirm_large_file
assert confirm_large_file(ImportBatch.objects.get(), None)
"""
WORK = """
from evaluation.models import ImportBatch
from evaluation.runs.large_uploads import process_upload
from evaluation.worker.jobs import work_on
work_on(process_upload.jobs.get(object_id=ImportBatch.objects.get().pk).pk)
"""


@pytest.fixture
def path(site: Site) -> str:
    """A file of answers to questions that are imported already."""
    questions_path, answers_path = site.folder / "questions.jsonl", site.folder / "answers.jsonl"
    questions_path.write_text(
        "".join(json.dumps({"id": f"q{n}", "question": f"Where is {n}?"}) + "\n" for n in range(ANSWERS))
    )
    passage = "The river rises in the north and reaches the sea. " * 60
    rows = ({"question_id": f"q{n}", "answer": f"At {n}.", "contexts": [passage]} for n in range(ANSWERS))
    answers_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    site.manage("import_questions", str(questions_path), "--name", "places")
    return str(Path(answers_path))


def run_import(site: Site, code: str, dying: str = "") -> None:
    """Run code in a process of its own; ``dying`` names the method of ``Checked`` in which that is killed."""
    patch = DIES.format(method=dying, function=dying.removeprefix("_")) if dying else ""
    site.manage("shell", "--no-imports", "-c", patch + code, check=not dying)


def stored_answer_count(site: Site) -> int:
    """Return the number of stored answers, committed or not."""
    return int(site.rows("SELECT COUNT(*) FROM evaluation_answer")[0][0])


@pytest.mark.survives(
    "An import command killed half-way",
    happens="Nothing of the file counts.",
    see="Repeating the command imports all of it.",
)
def test_killed_command_leaves_no_counted_answers(site: Site, path: str) -> None:
    run_import(site, IMPORT.format(path=path), dying="store")
    assert stored_answer_count(site) == 250
    assert site.rows(COUNTING) == [(0,)]
    assert site.rows("SELECT COUNT(*) FROM evaluation_run") == [(0,)]
    run_import(site, IMPORT.format(path=path))
    assert site.rows(FINISHED_COUNT_QUERY) == [(ANSWERS, ANSWERS)]
    assert site.rows("SELECT state, COUNT(*) FROM evaluation_run GROUP BY state") == [("completed", 1)]


@pytest.mark.survives(
    "A worker killed while it stores an upload",
    happens="The next worker completes it.",
    see="The upload's page ends with its rows.",
)
def test_next_worker_completes_import_of_killed_worker(site: Site, path: str) -> None:
    run_import(site, KEEP.format(path=path))
    state = "SELECT state FROM evaluation_importbatch"
    run_import(site, WORK, dying="_count")
    assert site.rows(state) == [("checking",)]
    time.sleep(5)  # until the lease of the dead one is over
    run_import(site, WORK)
    assert site.rows(state) == [("parsed",)]
    assert stored_answer_count(site) == 0
    run_import(site, CONFIRM)
    run_import(site, WORK, dying="store")
    assert (stored_answer_count(site), site.rows(COUNTING)) == (250, [(0,)])
    time.sleep(5)
    run_import(site, WORK)
    assert site.rows(state) == [("confirmed",)]
    assert site.rows(FINISHED_COUNT_QUERY) == [(ANSWERS, ANSWERS)]
    assert site.rows("SELECT COUNT(*) FROM evaluation_importchunk") == [(0,)]
    assert site.rows("SELECT state, attempts FROM evaluation_job") == [("done", 0)]
    assert site.rows("SELECT state, COUNT(*) FROM evaluation_run GROUP BY state") == [("running", 1)]


@pytest.mark.survives(
    "Two workers at one upload",
    happens="One of them stores it.",
    see="One run.",
)
def test_only_one_of_two_concurrent_workers_stores_answers(site: Site, path: str) -> None:
    run_import(site, KEEP.format(path=path))
    for confirmation in ("", CONFIRM):
        run_import(site, confirmation)
        workers = [site.start("manage.py", "shell", "--no-imports", "-c", WORK) for _ in range(2)]
        assert [worker.wait(120) for worker in workers] == [0, 0]
    assert site.rows(FINISHED_COUNT_QUERY) == [(ANSWERS, ANSWERS)]
    assert site.rows("SELECT state, attempts, problem FROM evaluation_job") == [("done", 0, "")]
    assert site.rows("SELECT COUNT(*) FROM evaluation_run") == [(1,)]


OTHERS_WRITE = """
from django.db import connections
from evaluation.worker import lifecycle, units
lifecycle.UNIT_BATCH = units.UNIT_BATCH = 100
other = connections.create_connection("default")

def insert(*rows, real=units.insert_values, **how):
    if rows[0].__name__ == "WorkUnit":
        with other.cursor() as cursor:
            cursor.execute("UPDATE evaluation_project SET name = name")
    real(*rows, **how)

units.insert_values = insert
"""


def test_a_run_starts_while_others_write(site: Site, path: str) -> None:
    """SQLite immediately refuses a transaction that reads during another write and then writes."""
    run_import(site, OTHERS_WRITE + IMPORT.format(path=path))
    assert site.rows("SELECT state, COUNT(*) FROM evaluation_run GROUP BY state") == [("completed", 1)]


QUESTION_SETS = "SELECT COUNT(*) FROM evaluation_questionset WHERE is_unfinished = (1 = 0) AND name = 'many'"
STORED_QUESTIONS = (
    "SELECT COUNT(*), COUNT(DISTINCT q.external_id), COUNT(DISTINCT q.question_set_id) FROM evaluation_question q "
    "JOIN evaluation_questionset s ON s.id = q.question_set_id WHERE s.name = 'many'"
)
#: Ends the process behind the first batch of questions that was stored.
QUESTIONS_DIE = """
import os, signal
from evaluation.datasets import importing
from evaluation.runs import large_uploads

def store_questions(question_set, file, real=importing.store_questions):
    for stored in real(question_set, file):
        os.kill(os.getpid(), signal.SIGKILL)
        yield stored

importing.store_questions = large_uploads.store_questions = store_questions
"""
IMPORT_QUESTIONS = """
from django.core.management import call_command
call_command("import_questions", {path!r}, "--name", "many")
"""
STORE_QUESTIONS = """
from evaluation.models import Project
from evaluation.runs.large_uploads import store_large_questions
options = {{"group_by": "", "map": "", "qrels": "", "encoding": ""}}
pieces = [open({path!r}, "rb").read()]
store_large_questions(Project.objects.get(), "many", "q.jsonl", pieces, None, options=options, confirmed=True)
"""


def write_questions(site: Site) -> str:
    path = site.folder / "many.jsonl"
    path.write_text("".join(json.dumps({"id": f"q{n}", "question": f"Where is {n}?"}) + "\n" for n in range(ANSWERS)))
    return str(path)


def test_killed_command_leaves_no_visible_questions(site: Site) -> None:
    code = IMPORT_QUESTIONS.format(path=write_questions(site))
    site.manage("shell", "--no-imports", "-c", QUESTIONS_DIE + code, check=False)
    assert site.rows(STORED_QUESTIONS) == [(500, 500, 1)]
    assert site.rows(QUESTION_SETS) == [(0,)]
    run_import(site, code)
    assert site.rows(QUESTION_SETS) == [(1,)]
    run_import(site, "from datetime import timedelta\nfrom django.utils import timezone\n"
               "from evaluation.accounts.erasure import purge_unfinished\n"
               "assert purge_unfinished(timezone.now() + timedelta(seconds=1), by=None) == 500")  # fmt: skip
    assert site.rows(STORED_QUESTIONS) == [(ANSWERS, ANSWERS, 1)]


def test_next_worker_completes_question_set_of_killed_worker(site: Site) -> None:
    run_import(site, STORE_QUESTIONS.format(path=write_questions(site)))
    run_import(site, WORK)
    assert site.rows("SELECT state FROM evaluation_importbatch") == [("importing",)]
    site.manage("shell", "--no-imports", "-c", QUESTIONS_DIE + WORK, check=False)
    assert site.rows(STORED_QUESTIONS) == [(500, 500, 1)]
    assert site.rows(QUESTION_SETS) == [(0,)]
    time.sleep(5)  # until the lease of the dead one is over
    run_import(site, WORK)
    assert site.rows(QUESTION_SETS) == [(1,)]
    assert site.rows(STORED_QUESTIONS) == [(ANSWERS, ANSWERS, 1)]
    assert site.rows("SELECT state FROM evaluation_importbatch") == [("confirmed",)]
    assert site.rows("SELECT COUNT(*) FROM evaluation_importchunk") == [(0,)]
