"""Uploads in two requests: a preview, then one confirmation, or none within a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unicodedata import normalize

import pytest
import time_machine
from django.db import IntegrityError
from django.utils import timezone

from evaluation.core.errors import DomainError, InvalidFile
from evaluation.datasets import importing
from evaluation.datasets.importing import import_question_set
from evaluation.datasets.uploads import QUESTIONS, confirm_upload, expire_uploads, preview, store_upload
from evaluation.messages.explanations import explain
from evaluation.models import ImportBatch, QuestionSet
from tests.evaluation.datasets.sources import as_json, question, question_file
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def upload(content: bytes, file_name: str = "capitals.json", name: str = "", **options: Any) -> ImportBatch:
    project = options.pop("project", None) or make_project()
    return store_upload(project, QUESTIONS, name, file_name, content, options, make_user())


def test_an_upload_stores_the_file_and_no_question() -> None:
    batch = upload(as_json([question(1), question(2)]))
    assert (batch.state, batch.rows, batch.name) == (ImportBatch.State.PARSED, 2, "capitals")
    assert not QuestionSet.objects.exists()


def test_a_file_with_problems_is_not_stored() -> None:
    with pytest.raises(InvalidFile) as refused:
        upload(as_json([question(1), {"id": "q1"}]))
    assert {(p.line, p.field) for p in refused.value.problems}
    assert not ImportBatch.objects.exists()


def test_the_preview_of_a_new_set_counts_and_remarks() -> None:
    rows = [question(1), question(2, category="rivers", source="atlas"), question(3)]
    shown = preview(upload(as_json(rows)))
    assert (shown.questions, shown.categories) == (3, (("capitals", 2), ("rivers", 1)))
    assert (shown.metadata_keys, shown.newest, shown.selects, shown.difference) == (("source",), None, None, None)
    assert [q.id for q in shown.first] == ["q1", "q2", "q3"]
    assert [remark.code for remark in shown.remarks] == ["metadata_kept"]


def test_the_preview_of_a_changed_set_shows_the_difference_to_the_newest_version() -> None:
    project = make_project()
    import_question_set(project, "capitals", question_file(question(1), question(2)), by=None)
    shown = preview(upload(as_json([question(2, difficulty="hard"), question(3)]), project=project))
    assert shown.difference is not None
    assert (shown.difference.added, shown.difference.removed) == (("q3",), ("q1",))
    assert [(c.id, [f.field for f in c.fields]) for c in shown.difference.changed] == [("q2", ["difficulty"])]


def test_the_preview_of_known_content_names_the_version_it_selects() -> None:
    project = make_project()
    made = import_question_set(project, "capitals", question_file(question(1, source="a")), by=None).question_set
    shown = preview(upload(as_json([question(1, source="b")]), project=project))
    assert (shown.selects, shown.difference, shown.metadata_not_taken_over) == (made, None, ("source",))


def test_a_file_from_korean_excel_is_previewed_in_hangul_and_says_so() -> None:
    content = "id,category,question,expected_answer\nq1,학칙,휴학은 몇 학기까지 됩니까?,네 학기\n".encode("cp949")
    shown = preview(upload(content, "휴학.csv"))
    assert shown.encoding == "cp949"
    assert shown.first[0].text == "휴학은 몇 학기까지 됩니까?"
    assert "encoding_cp949" in {remark.code for remark in shown.remarks}


def test_a_confirmation_imports_once_and_a_second_one_gets_the_same_version() -> None:
    batch = upload(as_json([question(1)]))
    twin = ImportBatch.objects.get(pk=batch.pk)
    first = confirm_upload(batch, None)
    second = confirm_upload(twin, None)
    assert first.created
    assert (second.created, second.question_set) == (False, first.question_set)
    assert "confirmed before" in explain(second.note)
    assert (batch.state, batch.result_id) == (ImportBatch.State.CONFIRMED, first.question_set.pk)
    assert QuestionSet.objects.count() == 1


def test_a_confirmation_may_give_another_name() -> None:
    assert confirm_upload(upload(as_json([question(1)])), None, name="rivers").question_set.name == "rivers"


def test_an_upload_expires_after_a_day_and_its_file_is_dropped() -> None:
    batch = upload(as_json([question(1)]))
    with time_machine.travel(timezone.now() - timedelta(hours=25)):
        old = upload(as_json([question(1)]))
    with pytest.raises(DomainError, match="upload_expired"):
        confirm_upload(old, None)
    assert expire_uploads() == 1
    old.refresh_from_db()
    assert (old.state, bytes(old.content)) == (ImportBatch.State.EXPIRED, b"")
    with pytest.raises(DomainError, match="upload_expired"):
        preview(old)
    assert confirm_upload(batch, None).created


def test_an_upload_killed_between_reading_and_commit_leaves_no_row_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U19."""
    batch = upload(as_json([question(1)]))

    def killed(*args: Any, **kwargs: Any) -> None:
        raise IntegrityError("the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr(importing, "insert_values", killed)
        with pytest.raises(IntegrityError):
            confirm_upload(batch, None)
    batch.refresh_from_db()
    assert (batch.state, QuestionSet.objects.count()) == (ImportBatch.State.PARSED, 0)
    assert confirm_upload(batch, None).created


@pytest.mark.parametrize(
    ("file_name", "shown"),
    [
        ("../../etc/passwd.json", "passwd.json"),
        ("a\u202enosj.json", "aU+202Enosj.json"),
        ("한" * 300 + ".json", "한" * 79 + "…" + "한" * 15 + ".json"),
        (normalize("NFD", "학칙.json"), "학칙.json"),
    ],
    ids=["path", "direction", "long", "decomposed"],
)
def test_a_file_name_is_a_text_to_show_and_never_a_path(file_name: str, shown: str) -> None:
    """U14. The last name is decomposed where it comes from and composed where it is kept."""
    batch = upload(as_json([question(1)]), file_name, name="capitals")
    assert batch.file_name == shown
    assert len(str(batch.uuid)) == 36


def test_other_kinds_of_files_are_refused() -> None:
    with pytest.raises(DomainError, match="unknown_upload_kind"):
        store_upload(make_project(), "photographs", "", "a.json", b"[]", {}, None)
