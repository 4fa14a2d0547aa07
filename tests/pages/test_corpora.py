"""The pages of corpora, and a run's retrieval by depth."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.corpora.coverage import coverage_of
from evaluation.corpora.importing import SourceDocument, import_corpus
from evaluation.models import Answer, Corpus, Project
from review.agreement.retrieval import retrieval_by_depth
from review.charts.coverage import coverage_map
from review.charts.curves import HEIGHT, WIDTH, curve_chart
from tests.factories import (
    make_answer_set,
    make_project,
    make_question_set,
    make_scored_run,
    make_user,
    question_spec,
)

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
    found = coverage_of(corpus)
    assert (found.chunks, found.covered) == (2, 1)
    assert [one.touched for one in found.documents] == [(2,), (0,)]
    (asked,) = found.sets
    assert (asked.questions, asked.asking, asked.foreign) == (3, 2, 1)
    page = _client(project, Role.VIEWER).get(reverse("corpus", args=[corpus.pk])).content.decode()
    assert "Questions name 1 of 2 chunks" in page
    document = _client(project).get(reverse("corpus-document", args=[corpus.documents.get(external_id="a").pk]))
    assert "2 questions name it" in document.content.decode()


def test_the_map_joins_chunks_of_long_documents() -> None:
    assert [cell.shade for cell in coverage_map([0, 1, 3, 4]).cells] == [0, 1, 2, 3]
    long = coverage_map([0] * 1200 + [9])
    assert (long.per_cell, len(long.cells), long.cells[-1].shade) == (3, 401, 3)


def test_curves_go_from_the_left_to_the_right_edge() -> None:
    chart = curve_chart([("all", (0.0, 0.5, 1.0)), ("some", (1.0, 1.0, 1.0))])
    assert chart.curves[0].points == f"0.0,{HEIGHT} {WIDTH / 2},{HEIGHT / 2} {WIDTH},0.0"
    assert [tick.text for tick in chart.across] == ["1", "2", "3"]
    assert curve_chart([("one", (0.25,))]).curves[0].points == f"{WIDTH / 2},{HEIGHT * 0.75}"


def test_a_runs_retrieval_by_depth_category_and_hops() -> None:
    specs = [
        question_spec(n, category=category, hops=hops).model_copy(update={"ground_truth_chunk_ids": ids})
        for n, category, hops, ids in (
            (1, "single_hop", 1, ("a",)),
            (2, "multi_hop_2", 2, ("a", "b")),
            (3, "multi_hop_2", 2, ()),
            (4, "single_hop", 1, ("c",)),
        )
    ]
    run = make_scored_run(make_answer_set(make_question_set(specs=specs)))
    # An append-only table: what the answers retrieved is set when they are made.
    from evaluation.storage import append_only

    with append_only.suspended():
        for external, ids in (("q1", ["x", "a"]), ("q2", ["a", "b"]), ("q3", ["a"])):
            Answer.objects.filter(question__external_id=external).update(retrieved_ids=ids, retrieves=True)
        Answer.objects.filter(question__external_id="q4").update(retrieved_ids=None, retrieves=False)
    found = retrieval_by_depth(run)
    assert found.overall is not None
    assert (found.depth, found.overall.count, found.unlabelled, found.missing) == (5, 2, 1, 1)
    assert found.overall.values["recall_at_k"][:2] == (0.25, 1.0)  # at 1: 0 and 1/2; at 2: 1 and 1
    assert found.overall.values["reciprocal_rank"][:2] == (0.5, 0.75)
    assert [(one.name, one.count) for one in found.by_category] == [("single_hop", 1), ("multi_hop_2", 1)]
    assert [(one.hops, one.values["hit_at_k"][0]) for one in found.by_hops] == [(1, 0.0), (2, 1.0)]
    client = _client(run.project, Role.VIEWER)
    page = client.get(reverse("run-retrieval", args=[run.pk])).content.decode()
    assert "1 question names no relevant passage" in page
    assert page.count("<polyline") == 6 * 3
    assert "2 facts (n=1)" in client.get(reverse("run-retrieval", args=[run.pk]), {"by": "hops"}).content.decode()
