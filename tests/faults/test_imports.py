"""Imports that are killed midway leave nothing that counts; begun again they are whole."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.faults.site import Site, kill
from tests.faults.test_kills import cluster_processes

pytestmark = [pytest.mark.faults]
ANSWERS = 3_000
STORED = "SELECT COUNT(*) FROM evaluation_answer"
COUNTING = "SELECT COUNT(*) FROM evaluation_answerset WHERE content_hash IS NOT NULL OR is_unfinished = (1 = 0)"
FINISHED = (
    "SELECT COUNT(*), COUNT(DISTINCT a.question_id) FROM evaluation_answer a "
    "JOIN evaluation_answerset s ON s.id = a.answer_set_id WHERE s.is_unfinished = (1 = 0)"
)


@pytest.fixture
def files(site: Site) -> tuple[Path, Path]:
    """Questions that are imported already, and answers to them."""
    asked, said = site.folder / "questions.jsonl", site.folder / "answers.jsonl"
    asked.write_text("".join(json.dumps({"id": f"q{n}", "question": f"Where is {n}?"}) + "\n" for n in range(ANSWERS)))
    passage = "The river rises in the north and reaches the sea. " * 20
    rows = ({"question_id": f"q{n}", "answer": f"At {n}.", "contexts": [passage]} for n in range(ANSWERS))
    said.write_text("".join(json.dumps(row) + "\n" for row in rows))
    site.manage("import_questions", str(asked), "--name", "places")
    return asked, said


def wait_until(site: Site, sql: str, least: int, seconds: float = 120) -> None:
    """Until the query counts so many.

    :raises AssertionError: where it does not in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if site.rows(sql)[0][0] >= least:
            return
        time.sleep(0.05)
    log = site.folder / "log"
    raise AssertionError(f"{sql} never came to {least}\n{log.read_text()[-3000:] if log.exists() else ''}")


def test_a_command_killed_in_mid_import_leaves_nothing_that_counts(site: Site, files: tuple[Path, Path]) -> None:
    given = ("import_answers", str(files[1]), "--questions", "places", "--system", "rag")
    process = site.start("manage.py", *given)
    wait_until(site, STORED, 250)
    kill(process.pid)
    process.wait()
    if site.rows(COUNTING) != [(0,)]:
        pytest.skip("the import was quicker than the kill")
    assert 0 < site.rows(STORED)[0][0] <= ANSWERS
    assert site.rows("SELECT COUNT(*) FROM evaluation_run") == [(0,)]
    site.manage(*given)
    assert site.rows(FINISHED) == [(ANSWERS, ANSWERS)]
    assert site.rows("SELECT state, COUNT(*) FROM evaluation_run GROUP BY state") == [("completed", 1)]


KEEP = """
import sys
from evaluation.models import QuestionSet
from evaluation.runs.large_uploads import keep_large
data = open({path!r}, "rb").read()
pieces = (data[at : at + 524288] for at in range(0, len(data), 524288))
keep_large(QuestionSet.objects.get(), "rag", "answers.jsonl", pieces, None, map_text="")
"""
CONFIRM = """
from evaluation.models import ImportBatch
from evaluation.runs.large_uploads import confirm_large
assert confirm_large(ImportBatch.objects.get(), None)
"""
RING = "from evaluation.runs.large_uploads import ring_waiting; ring_waiting()"


def shell(site: Site, code: str) -> None:
    """Run code in the site's shell."""
    site.manage("shell", "--no-imports", "-c", code)


def is_in(*states: str) -> str:
    """Counts the upload where it is in one of the states."""
    return f"SELECT COUNT(*) FROM evaluation_importbatch WHERE state IN ({', '.join(repr(one) for one in states)})"


def test_workers_killed_while_they_check_and_store_are_followed_by_others(site: Site, files: tuple[Path, Path]) -> None:
    parent = site.serve()
    shell(site, KEEP.format(path=str(files[1])))
    for pid in cluster_processes(parent.pid)[1:]:
        kill(pid)
    time.sleep(5)  # until the lease of whoever had it is over
    shell(site, RING)
    wait_until(site, is_in("parsed"), 1)
    assert site.rows(STORED) == [(0,)]
    shell(site, CONFIRM)
    wait_until(site, STORED, 250)
    for pid in cluster_processes(parent.pid)[1:]:
        kill(pid)
    time.sleep(5)
    shell(site, RING)
    wait_until(site, is_in("confirmed"), 1)
    assert site.rows(FINISHED) == [(ANSWERS, ANSWERS)]
    assert site.rows("SELECT COUNT(*) FROM evaluation_importchunk") == [(0,)]
    run = site.rows("SELECT id FROM evaluation_run")
    assert len(run) == 1
    site.wait_for(run[0][0], "completed", seconds=240)
