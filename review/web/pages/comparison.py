"""The page that compares runs: what differs in their versions, each beside the first, all in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evaluation.models import Run
from review.comparisons.choosing import Side
from review.comparisons.versions import differing_versions
from review.comparisons.whole import Comparison
from review.web.pages.comparison_order import OrderCard, order_card
from review.web.pages.comparison_pair import KINDS, PairCard, pair_card
from review.web.pages.comparison_systems import SystemsCard, systems_card


@dataclass(frozen=True, slots=True)
class Flag:
    """A kind of version in which the runs differ, with each run's."""

    kind: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A run that can be compared; ``chosen`` where it is."""

    run_id: int
    name: str
    about: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything that ``review/compare.html`` shows; without a second run only the choice."""

    title: str
    choices: tuple[Choice, ...]
    flags: tuple[Flag, ...]
    names: tuple[tuple[int, str], ...]
    pairs: tuple[PairCard, ...]
    order: OrderCard | None
    systems: SystemsCard


def compare_page(found: Comparison, others: Sequence[Run]) -> ComparePage:
    """The page of a comparison; ``others`` are the runs that could be compared."""
    chosen = {side.run_id for side in found.sides}
    names = _names(found.sides)
    differing = differing_versions([side.report for side in found.sides])
    return ComparePage(
        title=" · ".join(name for _pk, name in names),
        choices=_choices(others, chosen),
        flags=tuple(Flag(str(KINDS[kind]), tuple(versions)) for kind, versions in differing.items()),
        names=names,
        pairs=tuple(pair_card(one, dict(names)) for one in found.differences),
        order=order_card(found.order, dict(names)) if found.order else None,
        systems=systems_card([side.report for side in found.sides], dict(names)),
    )


def _names(compared: Sequence[Side]) -> tuple[tuple[int, str], ...]:
    """The runs as lists call them; with their numbers where several were given one name."""
    names = [side.report.header.name for side in compared]
    return tuple(
        (side.run_id, f"{name} (#{side.run_id})" if names.count(name) > 1 else name)
        for side, name in zip(compared, names, strict=True)
    )


def _choices(others: Sequence[Run], chosen: Collection[int]) -> tuple[Choice, ...]:
    return tuple(
        Choice(run.pk, str(run), f"{run.answer_set.question_set} · {run.answer_set.system_version}", run.pk in chosen)
        for run in others
    )
