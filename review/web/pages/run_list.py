"""The list of runs with its filters and pages."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.models import Run
from review.web.forms.run_filter import Option
from review.web.pages.run_rows import RunRows


@dataclass(frozen=True, slots=True)
class RunListPage:
    """Runs that match the filters, newest first. ``older`` and ``newer`` are query strings of the neighbouring pages,
    empty where there are none."""

    runs: RunRows
    states: tuple[Option, ...]
    question_sets: tuple[Option, ...]
    words: str
    filtered: bool
    older: str
    newer: str


def state_options(chosen: str) -> tuple[Option, ...]:
    """The states a run can have."""
    return tuple(Option(state.value, str(state.label), state.value == chosen) for state in Run.State)
