"""Page objects of question sets and uploads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.forms import ColumnsForm, EncodingForm, UploadForm, columns_form, encoding_form
from evaluation.datasets.uploads import Preview
from evaluation.messages.explanations import explain
from evaluation.models import ImportBatch, QuestionSet

SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class SetListPage:
    """Newest versions of the user's question sets with their number of questions; ``can_import``: the user may add
    one."""

    rows: Sequence[tuple[QuestionSet, int]]
    several_projects: bool
    can_import: bool


@dataclass(frozen=True, slots=True)
class SetPage:
    """Version of a set with a page of its questions and the number of questions by category.

    ``previous_url`` and ``next_url`` are query strings. ``can_open_repair``: the labels come from a repair that the
    user may open."""

    question_set: QuestionSet
    versions: Sequence[QuestionSet]
    categories: Sequence[tuple[str, int]]
    rows: Sequence[QuestionSpec]
    previous_url: str
    next_url: str
    can_import: bool
    can_open_repair: bool

    @property
    def count(self) -> int:
        """Number of all questions."""
        return sum(count for _, count in self.categories)


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """Preview of an upload."""

    batch: ImportBatch
    found: Preview

    @property
    def columns(self) -> ColumnsForm | None:
        return columns_form(self.batch.kind, self.found)

    @property
    def encoding(self) -> EncodingForm | None:
        return encoding_form(self.batch, self.found.encoding)


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
