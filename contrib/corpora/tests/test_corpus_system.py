"""Reference system: retrieves from a corpus of the site, then quotes or calls a chat model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from contrib.corpora import corpus_search
from contrib.corpora.connector import quote_sentences
from contrib.corpora.corpus_search import embed_corpus
from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from evaluation.connectors.catalogue import InvalidSettings
from evaluation.connectors.protocol import RETRIEVAL_ONLY, SystemCall
from evaluation.core.errors import DomainError
from evaluation.core.samples import ContextSpec, QuestionSpec
from evaluation.judging.embedding.similarity import EmbeddingChoice, EmbeddingResult
from evaluation.models import Answer, CachedEmbedding, Project, Run, Score, SystemVersion
from evaluation.network.outcomes import Outcome
from evaluation.systems.preview import preview_question
from evaluation.systems.services import save_system
from examples.rag_service import RagService
from review.management.tables import results_sheets
from tests.evaluation.systems.conftest import rag_service, service
from tests.factories import make_project
from tests.review.builders import make_report

__all__ = ["rag_service", "service"]
pytestmark = pytest.mark.django_db

TEXTS = ("A leave may last 15 days. It is paid.", "The library opens at nine.", "급여는 매월 25일에 지급한다.")


def _corpus(project: Project) -> Corpus:
    return import_corpus(project, "handbook", [SourceDocument(f"d{n}", t) for n, t in enumerate(TEXTS)], by=None).corpus


def _system(project: Project, **settings: Any) -> SystemVersion:
    return save_system(project, "reference", "corpus", {"corpus": "handbook@1", **settings}, None)


def _call(text: str, **options: Any) -> SystemCall:
    return SystemCall(QuestionSpec(id="q", category="c", text=text), **{"k": 2, **options})


@pytest.mark.slow
def test_retrieval_and_quotes_without_an_endpoint() -> None:
    project = make_project()
    corpus = _corpus(project)
    question = "How many days may a leave last?"
    preview = preview_question(_system(project), _call(question))
    expected_request = {"corpus": "handbook@1", "retriever": "words", "k": 2, "question": question, "model": None}
    assert preview.request == expected_request
    content = preview.reply.content
    assert content is not None
    assert content.answer.text == "A leave may last 15 days. [1]" + " It is paid. [1]"
    first = corpus.chunks.get(position=0)
    assert content.answer.retrieved_ids == (first.chunk_id,)
    assert content.answer.contexts is not None
    assert (content.answer.contexts[0].text, content.answer.contexts[0].source) == (TEXTS[0], "d0")
    korean = preview_question(_system(project), _call("급여를 언제 지급합니까?")).reply.content
    assert korean is not None
    assert korean.answer.text == "급여는 매월 25일에 지급한다. [1]"


@pytest.mark.slow
def test_missing_content_is_stated_in_the_language_of_the_question() -> None:
    project = make_project()
    _corpus(project)
    korean = "문서에서 관련 내용을 찾을 수 없습니다."
    for text, expected_text in (("Zebra?", "The documents hold nothing about this."), ("얼룩말?", korean)):
        content = preview_question(_system(project), _call(text)).reply.content
        assert content is not None
        assert (content.answer.text, content.answer.contexts) == (expected_text, ())


def test_retrieval_only_gives_no_answer() -> None:
    project = make_project()
    _corpus(project)
    content = preview_question(_system(project), _call("library", evaluation_type=RETRIEVAL_ONLY)).reply.content
    assert content is not None
    assert content.answer.text == ""
    assert content.answer.contexts is not None
    assert len(content.answer.contexts) == 1


def test_chat_model_answers_from_the_numbered_passages(rag_service: RagService) -> None:
    project = make_project()
    _corpus(project)
    version = _system(project, base_url=f"{rag_service.origin}/v1", model="toy", parameters={"temperature": 0})
    content = preview_question(version, _call("Is a leave of days paid?")).reply.content
    assert content is not None
    assert content.answer.text
    assert content.answer.contexts is not None
    assert content.model == "toy"
    messages = rag_service.bodies[0]["messages"]
    assert messages[0]["content"].startswith("Answer the question from the numbered passages alone")
    assert messages[1]["content"] == f"[1] {TEXTS[0]}\n\nQuestion: Is a leave of days paid?"
    rag_service.fault_of = lambda *_: "error"
    assert preview_question(version, _call("Is a leave of days paid?")).reply.reason.startswith("server_error")


def test_quotes_follow_the_order_of_the_passages() -> None:
    passages = [ContextSpec("One cat. Two dogs."), ContextSpec("The red cat and dogs.")]
    assert quote_sentences("red cat dogs", passages) == "One cat. [1] The red cat and dogs. [2]"


@pytest.mark.parametrize(
    ("invalid_settings", "field", "code"),
    [
        ({"corpus": "handbook"}, "corpus", "string_pattern_mismatch"),
        ({"retriever": "magic"}, "retriever", "literal_error"),
        ({"model": "m"}, "", "endpoint_missing"),
        ({"base_url": "no address", "model": "m"}, "base_url", "address_invalid"),
    ],
)
def test_invalid_settings_are_named(invalid_settings: dict[str, Any], field: str, code: str) -> None:
    project = make_project()
    _corpus(project)
    with pytest.raises(InvalidSettings) as error:
        _system(project, **invalid_settings)
    assert [(problem.field, problem.code) for problem in error.value.problems] == [(field, code)]


def test_corpus_of_another_project_is_unknown() -> None:
    _corpus(make_project())
    with pytest.raises(DomainError) as error:
        _system(make_project())
    assert error.value.code == "corpus_unknown"


class _CountingEmbedder:
    """Embedder of two dimensions: the counts of leaves and libraries."""

    space, provenance = "test", {"kind": "local", "model": "counting"}
    fails = False

    def refuses(self, text: str) -> str:
        return ""

    def embed(self, texts: list[str]) -> EmbeddingResult:
        if self.fails:
            return EmbeddingResult(Outcome.BAD_REQUEST)
        vectors = [np.array([t.count("leave"), t.count("library") + 0.1], np.float32) for t in texts]
        return EmbeddingResult(Outcome.OK, vectors=tuple(vectors))

    def __enter__(self) -> _CountingEmbedder:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def test_vectors_are_computed_once_and_required_before_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    project, embedder = make_project(), _CountingEmbedder()
    corpus = _corpus(project)
    choice = EmbeddingChoice(model="counting", sha256="0")
    monkeypatch.setattr(corpus_search, "choose_embedding", lambda judge, name: choice)
    monkeypatch.setattr(corpus_search, "embedder_of", lambda chosen: embedder)
    version = _system(project, retriever="vectors")
    with pytest.raises(DomainError, match="vectors_missing"):
        preview_question(version, _call("library"))
    embedder.fails = True
    with pytest.raises(DomainError, match="embedding_failed"):
        embed_corpus(corpus, choice)
    embedder.fails = False
    assert (embed_corpus(corpus, choice), embed_corpus(corpus, choice), CachedEmbedding.objects.count()) == (3, 0, 3)
    content = preview_question(version, _call("library", k=1)).reply.content
    assert content is not None
    assert content.answer.contexts is not None
    assert content.answer.contexts[0].text == TEXTS[1]
    hybrid_content = preview_question(_system(project, retriever="both"), _call("library", k=3)).reply.content
    assert hybrid_content is not None
    assert hybrid_content.answer.contexts is not None
    assert hybrid_content.answer.contexts[0].text == TEXTS[1]
    embedder.fails = True
    assert preview_question(version, _call("library")).reply.reason.startswith("bad_request")


def test_corpus_is_imported_indexed_and_evaluated_by_command(tmp_path: Path) -> None:
    project = make_project()
    folder = tmp_path / "handbook"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "leave.md").write_text("# Leave\n\nA leave may last 15 days.")
    (folder / "library.html").write_text("<p>The library opens at nine.</p>")
    (folder / "logo.png").write_bytes(b"x")
    (folder / ".hidden.txt").write_text("secret")
    output, messages = io.StringIO(), io.StringIO()
    call_command("import_corpus", str(folder), "--format", "json", stdout=output, stderr=messages)
    summary = json.loads(output.getvalue())
    assert (summary["name"], summary["version"], summary["documents"], summary["chunks"]) == ("handbook", 1, 2, 2)
    assert "logo.png" in messages.getvalue()
    corpus = Corpus.objects.get()
    ids = dict(corpus.chunks.values_list("document__external_id", "chunk_id"))
    questions = tmp_path / "q.json"
    rows = [("How long may a leave last?", "rules/leave.md"), ("When does the library open?", "library.html")]
    questions.write_text(
        json.dumps(
            [
                {"question": q, "category": "a", "expected_answer": "x", "ground_truth_chunk_ids": [ids[d]]}
                for q, d in rows
            ]
        )
    )
    call_command("import_questions", str(questions), "--name", "q", stdout=io.StringIO(), stderr=io.StringIO())
    settings = tmp_path / "s.json"
    settings.write_text(json.dumps({"corpus": "handbook@1"}))
    call_command("add_system", "reference", "--connector", "corpus", "-f", str(settings), stdout=io.StringIO())
    evaluate = ["evaluate", "--questions", "q", "--system", "reference", "--no-judge", "--type", "retrieval_only"]
    evaluate += ["--profile", "generation"]
    call_command(*evaluate, "--k", "2", "--format", "json", stdout=io.StringIO(), stderr=io.StringIO())
    run = Run.objects.get()
    assert (run.state, Answer.objects.filter(answer_set=run.answer_set, status="ok").count()) == (
        Run.State.COMPLETED,
        2,
    )
    ranks = Score.objects.filter(metric__name="reciprocal_rank").values_list("value", flat=True)
    assert list(ranks) == [1.0, 1.0]
    assert project.corpora.count() == 1
    with translation.override("en"):
        sheets = {sheet.title: sheet for sheet in results_sheets(make_report(run))}
    assert not {"Overall score", "Passing answers", "Answers and abstentions"} & set(sheets)
    metric_names = {row[0] for row in sheets["Metrics"].rows}
    assert "mrr" in metric_names, metric_names
    assert "overall" not in sheets["Categories"].header
    assert not {"keyword_coverage", "correctness", "faithfulness"} & {*metric_names, *sheets["Categories"].header}


def test_folder_is_imported_entirely_or_not_at_all(tmp_path: Path) -> None:
    make_project()
    (tmp_path / "a.txt").write_text("Fine.")
    (tmp_path / "b.pdf").write_bytes(b"broken")
    errors = io.StringIO()
    with pytest.raises(CommandError, match="1 problem"):
        call_command("import_corpus", str(tmp_path), stdout=io.StringIO(), stderr=errors)
    assert errors.getvalue().startswith("b.pdf")
    assert not Corpus.objects.exists()
    with pytest.raises(CommandError):
        call_command("import_corpus", str(tmp_path), "--characters", "5", stdout=io.StringIO())
