"""Corpus pages, and passages in the search of the core."""

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
    uploads = [SimpleUploadedFile(file_name, content) for file_name, content in files]
    return client.post(
        reverse("corpus-upload"),
        {"project": project.pk, "name": name, "documents": uploads, "characters": 100, "overlap": 0},
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
    search_page = client.get(reverse("corpus", args=[corpus.pk]), {"q": "onerror"}).content.decode()
    assert "&lt;img src=x onerror=alert(1)&gt;" in search_page
    assert "<img src=x" not in search_page
    assert (
        "No chunk contains any of these words"
        in client.get(reverse("corpus", args=[corpus.pk]), {"q": "zebra"}).content.decode()
    )
    second_page = _upload(client, project, LEAVE).content.decode()  # type: ignore[attr-defined]
    assert "Changes since handbook v1" in second_page
    assert "− x.html" in second_page
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


def test_coverage_counts_the_newest_questions_of_each_chunk() -> None:
    project = make_project()
    documents = [SourceDocument("a", "One. Two.\n\nThree."), SourceDocument("b", "Four.")]
    corpus = import_corpus(project, "c", documents, by=None).corpus
    first = corpus.chunks.get(position=0).chunk_id
    specs = [
        question_spec(n, category="single_hop").model_copy(update={"ground_truth_chunk_ids": ids})
        for n, ids in enumerate(((first,), (first, "elsewhere"), ()), 1)
    ]
    make_question_set(project, specs=specs)
    coverage = corpus_coverage(corpus)
    assert (coverage.chunks, coverage.covered) == (2, 1)
    assert [document_row.question_counts for document_row in coverage.documents] == [(2,), (0,)]
    (set_coverage,) = coverage.sets
    assert (set_coverage.questions, set_coverage.naming_questions, set_coverage.unknown_ids) == (3, 2, 1)
    page = _client(project, Role.VIEWER).get(reverse("corpus", args=[corpus.pk])).content.decode()
    assert "Questions refer to 1 of 2 chunks" in page
    document = _client(project).get(reverse("corpus-document", args=[corpus.documents.get(external_id="a").pk]))
    assert "2 questions refer to it" in document.content.decode()


def test_map_joins_chunks_of_long_documents() -> None:
    assert [cell.shade for cell in coverage_map([0, 1, 3, 4]).cells] == [0, 1, 2, 3]
    long_map = coverage_map([0] * 1200 + [9])
    assert (long_map.per_cell, len(long_map.cells), long_map.cells[-1].shade) == (3, 401, 3)


def _search_page(world: World, role: str, query: str) -> str:
    return world.client(role).get(reverse("search"), {"q": query}).content.decode()


@pytest.mark.both_databases
def test_search_finds_passages_of_the_newest_corpus_version() -> None:
    world = make_world()
    passage = "Leave is asked for a week before."
    old_corpus = import_corpus(world.project, "rules", [SourceDocument("old", f"{passage} By letter.")], by=None).corpus
    new_corpus = import_corpus(world.project, "rules", [SourceDocument("new", f"{passage} By mail.")], by=None).corpus
    old_path, new_path = (
        reverse("corpus-document", args=[corpus.documents.get().pk]) for corpus in (old_corpus, new_corpus)
    )
    page = _search_page(world, "viewer", "LEAVE is asked for")
    assert f'href="{new_path}#chunk-0"' in page
    assert old_path not in page
    assert "rules v2" in page
    assert new_path not in _search_page(world, "stranger", "Leave is asked for")
    assert "No passage contains these words." in _search_page(world, "viewer", "leave is  never asked for")


def test_leak_check_uses_the_newest_corpus_version() -> None:
    project = make_project()
    passage = "Whoever is ill for more than three days hands in a certificate of a physician within the week."
    old_chunk = import_corpus(project, "c", [SourceDocument("a", f"{passage} By letter.")], by=None).corpus.chunks.get()
    new_chunk = import_corpus(project, "c", [SourceDocument("a", f"{passage} By mail.")], by=None).corpus.chunks.get()
    text = "Is paid who hands in a certificate of a physician within the week?"
    specs = [
        question_spec(n, text=text, category="single_hop").model_copy(update={"ground_truth_chunk_ids": (id_,)})
        for n, id_ in enumerate((old_chunk.chunk_id, new_chunk.chunk_id, "elsewhere"), 1)
    ]
    assert [spec.id for spec, _ in set_quality(make_question_set(project, specs=specs)).leaks] == ["q2"]
