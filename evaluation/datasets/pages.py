"""Page objects of question sets and uploads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.forms import ColumnsForm, EncodingForm, UploadForm, columns_form, encoding_form
from evaluation.datasets.uploads import Preview
from evaluation.messages.sentences import explain
from evaluation.models import ImportBatch, QuestionSet

SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class SetListPage:
    """The newest versions of the sets of the person's projects, each with its number of questions; ``imports`` tells
    whether they may add one."""

    rows: Sequence[tuple[QuestionSet, int]]
    several_projects: bool
    imports: bool


@dataclass(frozen=True, slots=True)
class SetPage:
    """A version of a set with one page of its questions and the number of them in each category. ``back`` and ``on``
    are query strings; ``leads``: its labels come from a repair, whose page the person may see."""

    found: QuestionSet
    versions: Sequence[QuestionSet]
    categories: Sequence[tuple[str, int]]
    rows: Sequence[QuestionSpec]
    back: str
    on: str
    imports: bool
    leads: bool

    @property
    def count(self) -> int:
        """The number of all its questions."""
        return sum(count for _, count in self.categories)


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What confirming an upload would do."""

    batch: ImportBatch
    found: Preview

    @property
    def columns(self) -> ColumnsForm | None:
        """The choice of what each column is."""
        return columns_form(self.batch.kind, self.found)

    @property
    def encoding(self) -> EncodingForm | None:
        """The choice of an encoding."""
        return encoding_form(self.batch, self.found.encoding)


class FileProblems:
    """What is wrong with a file that was sent, for its page."""

    problems: Sequence[Problem]

    @property
    def lines(self) -> list[str]:
        """The problems in words, as far as one page can hold them."""
        return [explain(problem) for problem in self.problems[:SHOWN_PROBLEMS]]

    @property
    def more(self) -> int:
        """How many others there are."""
        return max(0, len(self.problems) - SHOWN_PROBLEMS)


@dataclass(frozen=True)
class UploadPage(FileProblems):
    """The form, and what is wrong with the file that was sent."""

    form: UploadForm
    file: str = ""
    problems: Sequence[Problem] = ()
