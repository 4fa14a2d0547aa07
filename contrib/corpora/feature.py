"""Register URLs, the reference system, the lookup of passages, and the corpus of the demo."""

from __future__ import annotations

from pathlib import Path

from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext

from contrib.corpora.connector import CORPUS
from contrib.corpora.coverage import newest_corpora
from contrib.corpora.documents import read_documents
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Chunk
from contrib.corpora.selectors import passage_texts
from evaluation.accounts import access
from evaluation.extensions import Feature, SearchHit, SearchHits
from evaluation.models import Run, User
from review.management import demo

DEMO_DIR = Path(demo.__file__).parent


def find_passages(user: User, words: str, most: int) -> SearchHits:
    """Find passages with the words in the newest versions of corpora."""
    rows = access.visible(Chunk.objects.filter(corpus__in=newest_corpora()), user, path="corpus__project")
    rows = rows.filter(text__icontains=words).select_related("document__corpus").order_by("-pk")[:most]
    return SearchHits(
        gettext("Corpus passages"), [_hit(chunk) for chunk in rows], gettext("No passage contains these words.")
    )


def _hit(chunk: Chunk) -> SearchHit:
    note = f"{Truncator(str(chunk.document)).chars(60)} · {chunk.document.corpus}"
    return SearchHit(chunk.text, note, f"{reverse('corpus-document', args=[chunk.document_id])}#chunk-{chunk.position}")


def import_demo_corpus(run_a: Run, run_b: Run, reviewers: list[User], lead: User) -> None:
    """Import the documents that the demo systems searched, under the name of the question set."""
    questions = run_a.answer_set.question_set
    file = DEMO_DIR / questions.metadata["language"] / "corpus.jsonl"
    import_corpus(run_a.project, questions.name, read_documents(file.read_bytes(), file.name), by=lead)


FEATURE = Feature(
    name="corpora",
    urls="contrib.corpora.views",
    api_urls="contrib.corpora.api",
    connectors=(CORPUS,),
    search=find_passages,
    passages=passage_texts,
    demo=import_demo_corpus,
)
