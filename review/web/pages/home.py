"""The start page: what needs me now, then the newest runs."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.models import Run
from evaluation.wording import numbers
from review.comparisons.attention import Attention
from review.web.pages.run_rows import RunRows


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queue with answers for me; ``takes`` is about how long, in words."""

    queue_id: int
    name: str
    count: int
    takes: str
    example: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison side by side with pairs for me."""

    pair_set_id: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Disputed:
    """A queue of mine with items in dispute."""

    queue_id: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class RunLink:
    """A run that waits for somebody."""

    pk: int
    name: str


@dataclass(frozen=True, slots=True)
class HomePage:
    """The start page. ``runs`` is ``None`` for people who see no runs; ``empty`` where the projects hold nothing yet,
    ``member`` whether the person has any role at all, ``evaluates`` whether the commands concern them, ``fresh`` where
    there is no project to bring anything into."""

    queues: tuple[Waiting, ...]
    comparisons: tuple[Comparison, ...]
    disputed: tuple[Disputed, ...]
    drafts: tuple[RunLink, ...]
    incomplete: tuple[RunLink, ...]
    runs: RunRows | None
    member: bool
    evaluates: bool
    fresh: bool

    @property
    def empty(self) -> bool:
        """Whether there is neither a run nor anything to do."""
        return not (self.busy or (self.runs and self.runs.rows))

    @property
    def busy(self) -> bool:
        """Whether anything needs the person now."""
        return bool(self.queues or self.comparisons or self.disputed or self.drafts or self.incomplete)


def home_page(found: Attention, runs: RunRows | None, *, member: bool, evaluates: bool, fresh: bool) -> HomePage:
    """The page from what needs attention and the newest runs."""
    return HomePage(
        queues=tuple(
            Waiting(one.queue.pk, one.queue.name, one.waiting, numbers.minutes(one.seconds), one.queue.example)
            for one in found.queues
        ),
        comparisons=tuple(Comparison(one.pk, one.name, left) for one, left in found.pairs),
        disputed=tuple(Disputed(queue.pk, queue.name, count) for queue, count in found.disputed),
        drafts=_links(found.drafts),
        incomplete=_links(found.incomplete),
        runs=runs,
        member=member,
        evaluates=evaluates,
        fresh=fresh,
    )


def _links(runs: tuple[Run, ...]) -> tuple[RunLink, ...]:
    return tuple(RunLink(run.pk, str(run)) for run in runs)
