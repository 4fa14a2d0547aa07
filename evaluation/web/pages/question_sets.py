"""Question sets: the list, one version with its questions, and the upload of a file with its preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.models import ImportBatch, QuestionSet
from evaluation.questions.uploads import Preview
from evaluation.web.forms.upload import UploadForm
from evaluation.wording.messages import explain

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
    are query strings."""

    found: QuestionSet
    versions: Sequence[QuestionSet]
    categories: Sequence[tuple[str, int]]
    rows: Sequence[QuestionSpec]
    back: str
    on: str
    imports: bool

    @property
    def count(self) -> int:
        """The number of all its questions."""
        return sum(count for _, count in self.categories)


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What confirming an upload would do."""

    batch: ImportBatch
    found: Preview


@dataclass(frozen=True, slots=True)
class ProblemList:
    """The problems of a refused file, the first ones in words; ``more`` counts the others."""

    file: str
    lines: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True)
class UploadPage:
    """The form, and what is wrong with the file that was sent."""

    form: UploadForm
    problems: ProblemList | None


def problem_list(file_name: str, problems: Sequence[Problem]) -> ProblemList:
    """Every problem of a file in words, as far as one page can hold them."""
    lines = tuple(explain(problem) for problem in problems[:SHOWN_PROBLEMS])
    return ProblemList(file_name, lines, len(problems) - len(lines))
