"""Question sets become versions; equal content reuses the existing version."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

import pytest
from django.db import IntegrityError, connection

from evaluation.core.errors import DomainError
from evaluation.datasets import importing
from evaluation.datasets.importing import import_question_set, set_name
from evaluation.messages.explanations import explain
from evaluation.models import AuditEvent, Question, QuestionSet
from tests.evaluation.datasets.sources import question, question_file
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_new_set_is_version_1_with_all_fields_of_the_file() -> None:
    project, person = make_project(), make_user()
    rows = [question(1, difficulty="easy", group="g", source="atlas", tags=["t"]), question(2)]
    imported = import_question_set(project, "capitals", question_file(*rows), by=person)
    question_set = imported.question_set
    assert imported.created
    assert (question_set.name, question_set.version, question_set.predecessor, question_set.created_by) == (
        "capitals",
        1,
        None,
        person,
    )
    first = question_set.questions.get(external_id="q1")
    assert (first.position, first.category, first.difficulty, first.group) == (0, "capitals", "easy", "g")
    assert first.metadata == {"source": "atlas"}
    spec = first.read()
    assert (spec.references, spec.keywords, spec.tags) == (("The capital is city 1.",), (("city 1",),), ("t",))
    event = AuditEvent.objects.get(verb="question_set.imported")
    assert (event.actor, event.detail["hash"]) == (person, question_set.content_hash)


def test_changed_content_becomes_the_next_version_with_its_predecessor() -> None:
    project = make_project()
    first = import_question_set(project, "capitals", question_file(question(1)), by=None).question_set
    imported = import_question_set(project, "capitals", question_file(question(1), question(2)), by=None)
    second = imported.question_set
    assert (second.version, second.predecessor) == (2, first)
    assert first.questions.count() == 1
    assert explain(imported.note) == "Imported as capitals v2 with 2 question(s). Previous version: capitals v1."


def test_equal_content_creates_nothing() -> None:
    project = make_project()
    first = import_question_set(project, "capitals", question_file(question(1), question(2)), by=None)
    second = import_question_set(project, "capitals", question_file(question(2), question(1)), by=None)
    assert (second.created, second.question_set, second.note.code) == (False, first.question_set, "set_unchanged")
    assert (QuestionSet.objects.count(), Question.objects.count()) == (1, 2)


def test_content_of_an_earlier_version_selects_that_version() -> None:
    project = make_project()
    first = import_question_set(project, "capitals", question_file(question(1)), by=None).question_set
    import_question_set(project, "capitals", question_file(question(2)), by=None)
    selected = import_question_set(project, "capitals", question_file(question(1)), by=None)
    assert (selected.question_set, selected.note.code) == (first, "set_selected")
    assert "capitals v1" in explain(selected.note)
    assert "capitals v2" in explain(selected.note)


def test_differing_metadata_is_listed_and_not_adopted() -> None:
    project = make_project()
    import_question_set(project, "capitals", question_file(question(1, source="atlas", page=3)), by=None)
    repeated = import_question_set(project, "capitals", question_file(question(1, source="globe", page=3)), by=None)
    assert (repeated.created, repeated.metadata_not_taken_over) == (False, ("source",))
    assert Question.objects.get().metadata == {"source": "atlas", "page": 3}


def test_another_name_or_project_is_another_set() -> None:
    project = make_project()
    file = question_file(question(1))
    imports = [
        import_question_set(*target, file, by=None)
        for target in [(project, "a"), (project, "b"), (make_project(), "a")]
    ]
    assert [(i.created, i.question_set.version) for i in imports] == [(True, 1)] * 3
    assert len({i.question_set.content_hash for i in imports}) == 1


def test_name_in_another_unicode_composition_is_the_same_name() -> None:
    project = make_project()
    import_question_set(project, "학칙", question_file(question(1)), by=None)
    second = import_question_set(project, normalize("NFD", "학칙"), question_file(question(2)), by=None)
    assert (second.question_set.name, second.question_set.version) == ("학칙", 2)


def test_failure_while_storing_leaves_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise IntegrityError("the disk is full")

    monkeypatch.setattr(importing, "insert_values", fail)
    with pytest.raises(IntegrityError):
        import_question_set(make_project(), "capitals", question_file(question(1)), by=None)
    assert not QuestionSet.objects.exists()


def test_query_count_is_independent_of_the_number_of_questions(django_assert_num_queries: Any) -> None:
    project = make_project()
    file = question_file(*[question(n) for n in range(90)])
    # Same content, set, number of questions, questions in a savepoint; then savepoint and release, turn, newest, same
    # content, set, and four or five for the audit event.
    with django_assert_num_queries(17 if connection.vendor == "postgresql" else 16):
        import_question_set(project, "capitals", file, by=None)


@pytest.mark.parametrize(
    ("given", "inside", "file_name", "expected"),
    [
        ("given", "inside", "file.json", "given"),
        ("", "inside", "file.json", "inside"),
        ("", 7, "file.json", "file"),
        ("", None, "../../etc/capitals.v2.yaml", "capitals.v2"),
    ],
)
def test_set_name_comes_from_the_argument_the_file_or_its_name(
    given: str, inside: Any, file_name: str, expected: str
) -> None:
    file = question_file(question(1))
    object.__setattr__(file, "set_metadata", {"name": inside})
    assert set_name(given, file, file_name) == expected


@pytest.mark.parametrize("name", [" ", "x" * 201, "a\nb", "a\u202eb", "a\x00b"])
def test_empty_long_or_invisible_names_are_refused(name: str) -> None:
    with pytest.raises(DomainError, match="bad_name"):
        import_question_set(make_project(), name, question_file(question(1)), by=None)
