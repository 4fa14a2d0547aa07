"""What is asked about a corpus: which questions name which of its chunks, and which chunks nobody asks about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from contrib.corpora.models import Corpus
from evaluation.models import Question, QuestionSet


@dataclass(frozen=True, slots=True)
class AskedBy:
    """The newest version of a question set that names chunks of the corpus: how many of its questions do, and how many
    of the ids that these name the corpus does not have."""

    question_set: QuestionSet
    questions: int
    asking: int
    foreign: int


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """A document, and for each of its chunks, in order, how many questions name it."""

    pk: int
    external_id: str
    title: str
    touched: tuple[int, ...]

    @property
    def covered(self) -> int:
        """How many of its chunks some question names."""
        return sum(count > 0 for count in self.touched)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is asked, by question set and by document."""

    sets: tuple[AskedBy, ...]
    documents: tuple[DocumentCoverage, ...]

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return sum(len(document.touched) for document in self.documents)

    @property
    def covered(self) -> int:
        """How many of them some question names."""
        return sum(document.covered for document in self.documents)


def asked_counts(project_id: int, chunk_ids: Collection[str]) -> Counter[str]:
    """How many questions of the newest versions of the project's sets name each of the chunks."""
    newest = _newest(project_id).values("pk")
    rows = Question.objects.filter(question_set__in=newest).values_list("spec__ground_truth_chunk_ids", flat=True)
    found: Counter[str] = Counter()
    for ids in rows.iterator(chunk_size=2_000):
        found.update({str(one) for one in ids or ()} & set(chunk_ids))
    return found


def _newest(project_id: int) -> QuerySet[QuestionSet]:
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    return QuestionSet.objects.filter(~Exists(newer), project=project_id)


def newest_corpora() -> QuerySet[Corpus]:
    """The newest version of every corpus."""
    newer = Corpus.objects.filter(project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version"))
    return Corpus.objects.filter(~Exists(newer))


def coverage_of(corpus: Corpus) -> Coverage:
    """Count the questions of the newest versions of the project's sets, by the ids of passages that they name."""
    chunks = corpus.chunks.order_by("position").values_list("chunk_id", "document_id")
    document_of: Mapping[str, int] = dict(chunks)
    sets = {one.pk: one for one in _newest(corpus.project_id).order_by("name")}
    questions: Counter[int] = Counter()
    asking: Counter[int] = Counter()
    foreign: Counter[int] = Counter()
    touched: Counter[str] = Counter()
    rows = Question.objects.filter(question_set__in=sets).values_list("question_set_id", "spec__ground_truth_chunk_ids")
    for set_pk, ids in rows.iterator(chunk_size=2_000):
        questions[set_pk] += 1
        named = {str(one) for one in ids or ()}
        ours = named & document_of.keys()
        touched.update(ours)
        if ours:
            asking[set_pk] += 1
            foreign[set_pk] += len(named) - len(ours)
    counts: dict[int, list[int]] = {}
    for chunk_id, document in document_of.items():
        counts.setdefault(document, []).append(touched[chunk_id])
    documents = corpus.documents.order_by("position").values_list("pk", "external_id", "title")
    return Coverage(
        tuple(AskedBy(one, questions[pk], asking[pk], foreign[pk]) for pk, one in sets.items() if asking[pk]),
        tuple(DocumentCoverage(pk, id_, title, tuple(counts.get(pk, ()))) for pk, id_, title in documents),
    )
