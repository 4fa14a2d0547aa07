"""The page that takes a file, and comes back with its problems."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.web.forms.upload import UploadForm
from evaluation.web.pages.question_sets import ProblemList


@dataclass(frozen=True, slots=True)
class UploadPage:
    """The form, and what is wrong with the file that was sent."""

    form: UploadForm
    problems: ProblemList | None
