"""Uploads: a preview, then one confirmation within a day."""

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


def test_upload_stores_the_file_and_no_questions() -> None:
    batch = upload(as_json([question(1), question(2)]))
    assert (batch.state, batch.rows, batch.name) == (ImportBatch.State.PARSED, 2, "capitals")
    assert not QuestionSet.objects.exists()


def test_file_with_problems_is_not_stored() -> None:
    with pytest.raises(InvalidFile) as error:
        upload(as_json([question(1), {"id": "q1"}]))
    assert {(p.line, p.field) for p in error.value.problems}
    assert not ImportBatch.objects.exists()


def test_preview_of_a_new_set_shows_counts_and_remarks() -> None:
    rows = [question(1), question(2, category="rivers", source="atlas"), question(3)]
    summary = preview(upload(as_json(rows)))
    assert (summary.questions, summary.categories) == (3, (("capitals", 2), ("rivers", 1)))
    assert (summary.metadata_keys, summary.newest, summary.selects, summary.difference) == (
        ("source",),
        None,
        None,
        None,
    )
    assert [q.id for q in summary.first] == ["q1", "q2", "q3"]
    assert [remark.code for remark in summary.remarks] == ["metadata_kept"]


def test_preview_of_a_changed_set_shows_the_difference_to_the_newest() -> None:
    project = make_project()
    import_question_set(project, "capitals", question_file(question(1), question(2)), by=None)
    summary = preview(upload(as_json([question(2, difficulty="hard"), question(3)]), project=project))
    assert summary.difference is not None
    assert (summary.difference.added, summary.difference.removed) == (("q3",), ("q1",))
    assert [(c.id, [f.field for f in c.fields]) for c in summary.difference.changed] == [("q2", ["difficulty"])]


def test_preview_of_known_content_names_the_version_it_selects() -> None:
    project = make_project()
    question_set = import_question_set(
        project, "capitals", question_file(question(1, source="a")), by=None
    ).question_set
    summary = preview(upload(as_json([question(1, source="b")]), project=project))
    assert (summary.selects, summary.difference, summary.metadata_not_taken_over) == (question_set, None, ("source",))


def test_preview_decodes_korean_excel_and_remarks_it() -> None:
    content = "id,category,question,expected_answer\nq1,학칙,휴학은 몇 학기까지 됩니까?,네 학기\n".encode("cp949")
    summary = preview(upload(content, "휴학.csv"))
    assert summary.encoding == "cp949"
    assert summary.first[0].text == "휴학은 몇 학기까지 됩니까?"
    assert "encoding_cp949" in {remark.code for remark in summary.remarks}


def test_second_confirmation_returns_the_same_version() -> None:
    batch = upload(as_json([question(1)]))
    same_batch = ImportBatch.objects.get(pk=batch.pk)
    first = confirm_upload(batch, None)
    second = confirm_upload(same_batch, None)
    assert first.created
    assert (second.created, second.question_set) == (False, first.question_set)
    assert "already confirmed" in explain(second.note)
    assert (batch.state, batch.result_id) == (ImportBatch.State.CONFIRMED, first.question_set.pk)
    assert QuestionSet.objects.count() == 1


def test_confirmation_can_rename_the_set() -> None:
    assert confirm_upload(upload(as_json([question(1)])), None, name="rivers").question_set.name == "rivers"


def test_upload_expires_after_a_day_and_drops_its_file() -> None:
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


def test_interrupted_upload_leaves_no_rows_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_file_name_is_display_text_and_never_a_path(file_name: str, shown: str) -> None:
    """The decomposed name is stored composed."""
    batch = upload(as_json([question(1)]), file_name, name="capitals")
    assert batch.file_name == shown
    assert len(str(batch.uuid)) == 36


def test_unknown_upload_kinds_are_refused() -> None:
    with pytest.raises(DomainError, match="unknown_upload_kind"):
        store_upload(make_project(), "photographs", "", "a.json", b"[]", {}, None)
