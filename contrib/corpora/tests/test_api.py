"""Corpora by REST: import, versions, documents, chunks, search."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from contrib.corpora.models import Corpus
from tests.evaluation.rest.clients import evaluator, viewer
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_a_corpus_is_imported_read_and_searched() -> None:
    project = make_project()
    caller = evaluator(project)
    file = SimpleUploadedFile("leave.md", b"# Leave\n\nA leave may last 15 days.")
    response = caller.client.post("/api/v1/corpora/", {"file": file, "name": "handbook", "characters": "200"})
    assert response.status_code == 201
    corpus = response.json()["corpus"]
    assert (corpus["version"], corpus["documents"], corpus["chunks"]) == (1, 1, 1)
    assert corpus["splitting"] == {"characters": 200, "overlap": 0}
    file.seek(0)
    second_response = caller.client.post("/api/v1/corpora/", {"file": file, "name": "handbook", "characters": "200"})
    assert (second_response.status_code, second_response.json()["created"]) == (200, False)
    (document,) = caller.get(f"corpora/{corpus['id']}/documents/").json()["results"]
    (chunk,) = caller.get(f"corpora/{corpus['id']}/chunks/").json()["results"]
    assert (document["document_id"], document["title"]) == ("leave.md", "Leave")
    assert document["text"][chunk["start"] : chunk["end"]] == chunk["text"]
    (hit,) = caller.get(f"corpora/{corpus['id']}/search/?q=leave").json()
    assert (hit["chunk"]["chunk_id"], hit["score"] > 0) == (chunk["chunk_id"], True)
    assert caller.get(f"corpora/{corpus['id']}/search/").status_code == 400


def test_unreadable_file_is_400_with_its_problems_and_stores_nothing() -> None:
    project = make_project()
    caller = evaluator(project)
    for name, content in (("a.pdf", b"no pdf"), ("a.docx", b"no zip"), ("a.exe", b"x")):
        response = caller.client.post("/api/v1/corpora/", {"file": SimpleUploadedFile(name, content), "name": "c"})
        assert response.status_code == 400
    assert not Corpus.objects.exists()
    file = SimpleUploadedFile("a.txt", b"Text.")
    assert viewer(project).client.post("/api/v1/corpora/", {"file": file, "name": "c"}).status_code in {400, 403}
