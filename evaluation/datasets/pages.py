"""Page objects of question sets and uploads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.forms import ColumnsForm, EncodingForm, UploadForm, columns_form, encoding_form
from evaluation.datasets.uploads import QUESTIONS, Preview
from evaluation.messages.explanations import explain
from evaluation.models import ImportBatch, ImportWork, QuestionSet
from evaluation.runs.large_uploads import WORKING, process_upload
from evaluation.templatetags.sorting import ListOrder

SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class SetListPage:
    """Newest versions of the user's question sets with their number of questions; ``can_import``: the user may add
    one."""

    rows: Sequence[tuple[QuestionSet, int]]
    order: ListOrder[str]
    several_projects: bool
    can_import: bool


@dataclass(frozen=True, slots=True)
class CategoryChip:
    """Category with its number of questions. ``url`` shows only these, or all again if they are shown already."""

    name: str
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class SetPage:
    """Version of a set with a page of its questions, of one ``category`` unless it is empty.

    ``previous_url`` and ``next_url`` are query strings. ``can_open_repair``: the labels come from a repair that the
    user may open."""

    question_set: QuestionSet
    versions: Sequence[QuestionSet]
    categories: Sequence[CategoryChip]
    category: str
    rows: Sequence[QuestionSpec]
    order: ListOrder[str]
    previous_url: str
    next_url: str
    can_import: bool
    can_open_repair: bool

    @property
    def count(self) -> int:
        """Number of all questions."""
        return sum(chip.count for chip in self.categories)


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """Preview of an upload. The columns and the encoding of a ``large`` one cannot be changed."""

    batch: ImportBatch
    preview: Preview
    large: bool = False

    @property
    def columns(self) -> ColumnsForm | None:
        return None if self.large else columns_form(self.batch.kind, self.preview)

    @property
    def encoding(self) -> EncodingForm | None:
        return None if self.large else encoding_form(self.batch, self.preview.encoding)


@dataclass(frozen=True, slots=True)
class LargeUpload:
    """A large upload and its background work. ``work`` is ``None`` until the file is complete."""

    batch: ImportBatch
    work: ImportWork | None

    @classmethod
    def of(cls, batch: ImportBatch) -> LargeUpload:
        work = ImportWork.objects.annotate(waits_for=process_upload.problem("batch"))
        return cls(batch, work.filter(batch=batch).first())

    @property
    def is_questions(self) -> bool:
        return self.batch.kind == QUESTIONS

    @property
    def is_live(self) -> bool:
        """Return whether work on the upload continues."""
        return self.batch.state in WORKING

    @property
    def is_checking(self) -> bool:
        """Return whether the file is being checked; otherwise its rows are being stored."""
        return self.batch.state == ImportBatch.State.CHECKING

    @property
    def lines(self) -> list[str]:
        """The explained problems, as many as one page shows."""
        return [explain(Problem(**problem)) for problem in self.work.problems] if self.work else []

    @property
    def more(self) -> int:
        """The number of problems not shown."""
        return max(0, self.work.total - len(self.work.problems)) if self.work and self.work.problems else 0


class FileProblems:
    """Problems of an uploaded file."""

    problems: Sequence[Problem]

    @property
    def lines(self) -> list[str]:
        """Messages of the first problems."""
        return [explain(problem) for problem in self.problems[:SHOWN_PROBLEMS]]

    @property
    def more(self) -> int:
        """Number of problems that are not listed."""
        return max(0, len(self.problems) - SHOWN_PROBLEMS)


@dataclass(frozen=True)
class UploadPage(FileProblems):
    """Upload form with the problems of the uploaded file."""

    form: UploadForm
    file: str = ""
    problems: Sequence[Problem] = ()
