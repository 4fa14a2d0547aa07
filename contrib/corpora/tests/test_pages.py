"""The pages of corpora, and the passages that the core looks up."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from contrib.corpora.coverage import corpus_coverage
from contrib.corpora.coverage_map import coverage_map
from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from evaluation.core.roles import Role
from evaluation.models import Project
from review.comparisons.set_quality import set_quality
from tests.factories import make_project, make_question_set, make_user, question_spec
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db


def _client(project: Project, role: Role = Role.EVALUATOR) -> Client:
    client = Client()
    client.force_login(make_user(role, project))
    return client


def _upload(client: Client, project: Project, *files: tuple[str, bytes], name: str = "handbook") -> object:
    sent = [SimpleUploadedFile(one, content) for one, content in files]
    return client.post(
        reverse("corpus-upload"),
        {"project": project.pk, "name": name, "documents": sent, "characters": 100, "overlap": 0},
        follow=True,
    )


LEAVE = ("leave.md", b"# Leave\n\nA leave may last 15 days.")
HOSTILE = ("x.html", b"<script>alert(1)</script><p>&lt;img src=x onerror=alert(1)&gt; stays a text</p>")


def test_documents_are_uploaded_read_and_searched() -> None:
    project = make_project()
    client = _client(project)
    page = _upload(client, project, LEAVE, HOSTILE).content.decode()  # type: ignore[attr-defined]
    corpus = Corpus.objects.get()
    assert "Imported as handbook v1: 2 document(s) in 2 chunk(s)." in page
    found = client.get(reverse("corpus", args=[corpus.pk]), {"q": "onerror"}).content.decode()
    assert "&lt;img src=x onerror=alert(1)&gt;" in found
    assert "<img src=x" not in found
    assert "No chunk shares a word" in client.get(reverse("corpus", args=[corpus.pk]), {"q": "zebra"}).content.decode()
    next_one = _upload(client, project, LEAVE).content.decode()  # type: ignore[attr-defined]
    assert "What differs from handbook v1" in next_one
    assert "− x.html" in next_one
    assert "handbook" in client.get(reverse("corpus-list")).content.decode()


def test_every_problem_of_every_file_is_shown_and_nothing_is_stored() -> None:
    project = make_project()
    client = _client(project)
    answer = _upload(client, project, LEAVE, ("a.pdf", b"no"), ("b.exe", b"x"))
    page = answer.content.decode()  # type: ignore[attr-defined]
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "a.pdf" in page
    assert "b.exe" in page
    assert not Corpus.objects.exists()
    assert _upload(client, project, LEAVE, name="a\u202eb").status_code == 400  # type: ignore[attr-defined]


def test_coverage_counts_the_newest_questions_that_name_each_chunk() -> None:
    project = make_project()
    documents = [SourceDocument("a", "One. Two.\n\nThree."), SourceDocument("b", "Four.")]
    corpus = import_corpus(project, "c", documents, by=None).corpus
    first = corpus.chunks.get(position=0).chunk_id
    specs = [
        question_spec(n, category="single_hop").model_copy(update={"ground_truth_chunk_ids": ids})
        for n, ids in enumerate(((first,), (first, "elsewhere"), ()), 1)
    ]
    make_question_set(project, specs=specs)
    found = corpus_coverage(corpus)
    assert (found.chunks, found.covered) == (2, 1)
    assert [one.question_counts for one in found.documents] == [(2,), (0,)]
    (asked,) = found.sets
    assert (asked.questions, asked.naming_questions, asked.unknown_ids) == (3, 2, 1)
    page = _client(project, Role.VIEWER).get(reverse("corpus", args=[corpus.pk])).content.decode()
    assert "Questions name 1 of 2 chunks" in page
    document = _client(project).get(reverse("corpus-document", args=[corpus.documents.get(external_id="a").pk]))
    assert "2 questions name it" in document.content.decode()


def test_the_map_joins_chunks_of_long_documents() -> None:
    assert [cell.shade for cell in coverage_map([0, 1, 3, 4]).cells] == [0, 1, 2, 3]
    long = coverage_map([0] * 1200 + [9])
    assert (long.per_cell, len(long.cells), long.cells[-1].shade) == (3, 401, 3)


def _found(world: World, person: str, words: str) -> str:
    return world.client(person).get(reverse("search"), {"q": words}).content.decode()


@pytest.mark.both_databases
def test_passages_of_the_newest_version_of_a_corpus_are_found() -> None:
    world = make_world()
    words = "Leave is asked for a week before."
    old = import_corpus(world.project, "rules", [SourceDocument("old", f"{words} By letter.")], by=None).corpus
    new = import_corpus(world.project, "rules", [SourceDocument("new", f"{words} By mail.")], by=None).corpus
    was, now = (reverse("corpus-document", args=[one.documents.get().pk]) for one in (old, new))
    page = _found(world, "viewer", "LEAVE is asked for")
    assert f'href="{now}#chunk-0"' in page
    assert was not in page
    assert "rules v2" in page
    assert now not in _found(world, "stranger", "Leave is asked for")
    assert "No passage has these words." in _found(world, "viewer", "leave is  never asked for")


def test_a_question_that_repeats_its_passage_is_found_by_the_newest_version_of_a_corpus() -> None:
    project = make_project()
    passage = "Whoever is ill for more than three days hands in a certificate of a physician within the week."
    old = import_corpus(project, "c", [SourceDocument("a", f"{passage} By letter.")], by=None).corpus.chunks.get()
    new = import_corpus(project, "c", [SourceDocument("a", f"{passage} By mail.")], by=None).corpus.chunks.get()
    text = "Is paid who hands in a certificate of a physician within the week?"
    specs = [
        question_spec(n, text=text, category="single_hop").model_copy(update={"ground_truth_chunk_ids": (id_,)})
        for n, id_ in enumerate((old.chunk_id, new.chunk_id, "elsewhere"), 1)
    ]
    assert [spec.id for spec, _ in set_quality(make_question_set(project, specs=specs)).leaks] == ["q2"]
