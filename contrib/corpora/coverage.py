"""Coverage of a corpus by questions: which chunks questions name, and which no question names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet

from contrib.corpora.models import Corpus
from evaluation.models import Question, QuestionSet


@dataclass(frozen=True, slots=True)
class QuestionSetCoverage:
    """The newest version of a question set that names chunks of the corpus.

    ``naming_questions`` name at least one chunk; ``unknown_ids`` counts the ids in them that the corpus does not
    contain."""

    question_set: QuestionSet
    questions: int
    naming_questions: int
    unknown_ids: int


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """A document with the number of questions that name each of its chunks, in order."""

    pk: int
    external_id: str
    title: str
    question_counts: tuple[int, ...]

    @property
    def covered(self) -> int:
        """Number of chunks that some question names."""
        return sum(count > 0 for count in self.question_counts)


@dataclass(frozen=True, slots=True)
class CorpusCoverage:
    """Coverage of a corpus by question set and by document."""

    sets: tuple[QuestionSetCoverage, ...]
    documents: tuple[DocumentCoverage, ...]

    @property
    def chunks(self) -> int:
        return sum(len(document.question_counts) for document in self.documents)

    @property
    def covered(self) -> int:
        """Number of chunks that some question names."""
        return sum(document.covered for document in self.documents)


def count_questions_by_chunk(project_id: int, chunk_ids: Collection[str]) -> Counter[str]:
    """Count the questions that name each chunk, in the newest versions of the project's sets."""
    newest = _newest_sets(project_id).values("pk")
    rows = Question.objects.filter(question_set__in=newest).values_list("spec__ground_truth_chunk_ids", flat=True)
    counts: Counter[str] = Counter()
    for ids in rows.iterator(chunk_size=2_000):
        counts.update({str(chunk_id) for chunk_id in ids or ()} & set(chunk_ids))
    return counts


def _newest_sets(project_id: int) -> QuerySet[QuestionSet]:
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    return QuestionSet.objects.filter(~Exists(newer), project=project_id)


def newest_corpora() -> QuerySet[Corpus]:
    """Return the newest version of every corpus."""
    newer = Corpus.objects.filter(project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version"))
    return Corpus.objects.filter(~Exists(newer))


def corpus_coverage(corpus: Corpus) -> CorpusCoverage:
    """Compute the coverage by the newest versions of the project's question sets."""
    chunks = corpus.chunks.order_by("position").values_list("chunk_id", "document_id")
    document_of: Mapping[str, int] = dict(chunks)
    sets = {question_set.pk: question_set for question_set in _newest_sets(corpus.project_id).order_by("name")}
    questions: Counter[int] = Counter()
    naming: Counter[int] = Counter()
    unknown: Counter[int] = Counter()
    question_counts: Counter[str] = Counter()
    rows = Question.objects.filter(question_set__in=sets).values_list("question_set_id", "spec__ground_truth_chunk_ids")
    for set_pk, ids in rows.iterator(chunk_size=2_000):
        questions[set_pk] += 1
        named_ids = {str(named_id) for named_id in ids or ()}
        own_ids = named_ids & document_of.keys()
        question_counts.update(own_ids)
        if own_ids:
            naming[set_pk] += 1
            unknown[set_pk] += len(named_ids) - len(own_ids)
    counts: dict[int, list[int]] = {}
    for chunk_id, document in document_of.items():
        counts.setdefault(document, []).append(question_counts[chunk_id])
    documents = corpus.documents.order_by("position").values_list("pk", "external_id", "title")
    return CorpusCoverage(
        tuple(
            QuestionSetCoverage(question_set, questions[pk], naming[pk], unknown[pk])
            for pk, question_set in sets.items()
            if naming[pk]
        ),
        tuple(DocumentCoverage(pk, id_, title, tuple(counts.get(pk, ()))) for pk, id_, title in documents),
    )
