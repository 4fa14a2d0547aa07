"""The pages of corpora: what is in one, what is asked about it, what differs from the version before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from contrib.corpora.coverage import AskedBy, Coverage, DocumentCoverage
from contrib.corpora.coverage_map import CoverageMap, coverage_map
from contrib.corpora.importing import CorpusDifference
from contrib.corpora.models import Chunk, Corpus, Document
from evaluation.core.errors import Problem
from evaluation.messages import numbers
from evaluation.messages.sentences import explain
from review.agreement.plots import Twin

DRAWN = 50  # documents on the map of one page
SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class CorpusList:
    """The newest versions of the corpora of the person's projects, with the numbers of documents and chunks."""

    rows: Sequence[tuple[Corpus, int, int]]
    several_projects: bool
    imports: bool


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document with its part of the map."""

    document: DocumentCoverage
    map: CoverageMap


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """A version with one page of its documents. ``words`` is what was searched for, ``hits`` the chunks with their
    scores; ``back`` and ``on`` are query strings."""

    corpus: Corpus
    versions: Sequence[Corpus]
    difference: CorpusDifference | None
    coverage: Coverage
    documents: Sequence[DocumentRow]
    words: str
    hits: Sequence[tuple[Chunk, float]]
    back: str
    on: str
    imports: bool

    @property
    def reference(self) -> str:
        """How the reference system names it."""
        return f"{self.corpus.name}@{self.corpus.version}"

    @property
    def sets(self) -> Sequence[AskedBy]:
        """The question sets that ask about it."""
        return self.coverage.sets

    @property
    def untouched(self) -> int:
        """How many chunks no question names."""
        return self.coverage.chunks - self.coverage.covered

    @property
    def share(self) -> str:
        """The part of the chunks that some question names."""
        return numbers.share(self.coverage.covered / self.coverage.chunks) if self.coverage.chunks else ""

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """What the shades of the map mean."""
        return (
            (0, gettext("nobody asks about it")),
            (1, gettext("one question")),
            (2, gettext("two or three questions")),
            (3, gettext("four questions or more")),
        )

    @property
    def twin(self) -> Twin:
        """The map in numbers."""
        header = (gettext("Chunks"), gettext("asked about"), gettext("nobody asks about"))
        rows = tuple((row.document.title or row.document.external_id, _counts(row.document)) for row in self.documents)
        return Twin(gettext("Chunks that questions name, by document"), gettext("Document"), header, rows)


def _counts(document: DocumentCoverage) -> tuple[str, ...]:
    total = len(document.touched)
    return str(total), str(document.covered), str(total - document.covered)


def document_rows(coverage: Coverage, first: int) -> list[DocumentRow]:
    """The documents of one page, with their maps."""
    return [DocumentRow(one, coverage_map(one.touched)) for one in coverage.documents[first : first + DRAWN]]


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A document with its chunks, each with the number of questions that name it."""

    document: Document
    chunks: Sequence[tuple[Chunk, int]]


@dataclass(frozen=True, slots=True)
class CorpusUploadPage:
    """The form, and what is wrong with the files that were sent."""

    form: object
    problems: Sequence[Problem] = ()

    @property
    def lines(self) -> list[str]:
        """The problems in words, as far as one page can hold them."""
        return [explain(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
