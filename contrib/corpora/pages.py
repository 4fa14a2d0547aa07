"""Page data of corpora: documents, coverage by questions, and the difference from the previous version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from contrib.corpora.coverage import CorpusCoverage, DocumentCoverage, QuestionSetCoverage
from contrib.corpora.coverage_map import CoverageMap, coverage_map
from contrib.corpora.importing import CorpusDifference
from contrib.corpora.models import Chunk, Corpus, Document
from evaluation.core.errors import Problem
from evaluation.messages import numbers
from evaluation.messages.explanations import explain
from review.agreement.plots import PlotTable

# Documents on the map of one page.
DOCUMENTS_PER_PAGE = 50
MAX_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class CorpusList:
    """The newest versions of the user's corpora, with the numbers of documents and chunks."""

    rows: Sequence[tuple[Corpus, int, int]]
    several_projects: bool
    may_import: bool


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document with its coverage map."""

    document: DocumentCoverage
    map: CoverageMap


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """A version with one page of its documents.

    ``words`` is the search text, ``hits`` the chunks with their scores; ``previous_url`` and ``next_url`` are query
    strings of the previous and next page."""

    corpus: Corpus
    versions: Sequence[Corpus]
    difference: CorpusDifference | None
    coverage: CorpusCoverage
    documents: Sequence[DocumentRow]
    words: str
    hits: Sequence[tuple[Chunk, float]]
    previous_url: str
    next_url: str
    may_import: bool

    @property
    def reference(self) -> str:
        """Name of the corpus in the settings of the reference system."""
        return f"{self.corpus.name}@{self.corpus.version}"

    @property
    def sets(self) -> Sequence[QuestionSetCoverage]:
        return self.coverage.sets

    @property
    def untouched(self) -> int:
        """Number of chunks that no question names."""
        return self.coverage.chunks - self.coverage.covered

    @property
    def share(self) -> str:
        """Share of the chunks that some question names."""
        return numbers.format_share(self.coverage.covered / self.coverage.chunks) if self.coverage.chunks else ""

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """Meaning of the map's shades."""
        return (
            (0, gettext("no questions")),
            (1, gettext("one question")),
            (2, gettext("two or three questions")),
            (3, gettext("four or more questions")),
        )

    @property
    def table(self) -> PlotTable:
        """The map as a table."""
        header = (gettext("Chunks"), gettext("With questions"), gettext("Without questions"))
        rows = tuple(
            (row.document.title or row.document.external_id, _count_cells(row.document)) for row in self.documents
        )
        return PlotTable(gettext("Chunks with questions, by document"), gettext("Document"), header, rows)


def _count_cells(document: DocumentCoverage) -> tuple[str, ...]:
    total = len(document.question_counts)
    return str(total), str(document.covered), str(total - document.covered)


def document_rows(coverage: CorpusCoverage, first: int) -> list[DocumentRow]:
    """Return the documents of one page with their maps."""
    return [
        DocumentRow(document, coverage_map(document.question_counts))
        for document in coverage.documents[first : first + DOCUMENTS_PER_PAGE]
    ]


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A document with its chunks and the number of questions that name each."""

    document: Document
    chunks: Sequence[tuple[Chunk, int]]


@dataclass(frozen=True, slots=True)
class CorpusUploadPage:
    """The upload form and the problems of the uploaded files."""

    form: object
    problems: Sequence[Problem] = ()

    @property
    def lines(self) -> list[str]:
        """Problems as sentences, limited to what fits on a page."""
        return [explain(problem) for problem in self.problems[:MAX_PROBLEMS]]
