"""Which runs are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.models import Run
from evaluation.runs.making import project_named, question_set_named
from review.reports.gathering import Gathered, gather
from review.reports.report import Report, report_of

MOST = 50  # runs shown side by side


@dataclass(frozen=True, slots=True)
class Side:
    """A run in a comparison: its report, and what the report is made of."""

    basis: Gathered
    report: Report

    @property
    def run_id(self) -> int:
        """The run's primary key."""
        return self.report.header.run_id


def sides(runs: Sequence[Run]) -> list[Side]:
    """The runs, ready to be compared; about twenty queries each."""
    return [Side(basis, report_of(basis)) for basis in map(gather, runs)]


def compared_runs(project_name: str, questions: str) -> list[Run]:
    """The newest runs of a project, oldest first; of one version of a question set where it is named.

    :raises UnknownName: for a project or set that does not exist.
    :raises Refused: when several projects exist and none is named.
    """
    project = project_named(project_name)
    runs = Run.objects.filter(project=project).exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED])
    if questions:
        runs = runs.filter(answer_set__question_set=question_set_named(project, questions))
    return list(runs.order_by("-id")[:MOST])[::-1]
