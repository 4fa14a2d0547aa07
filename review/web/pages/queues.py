"""Queues: the list, the page of one (for leads everybody's progress, for reviewers their own alone), for leads its
people, items and questions in doubt, and what a new queue would come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.models import Run, User
from evaluation.wording import numbers
from review.models import QueueMetric, ReviewItem, ReviewQueue
from review.plans.ahead import ExpectedCard, GoalRow
from review.queues.making import QueuePreview
from review.queues.progress import DoubtfulQuestion, OwnProgress, Pace, QueueProgress, ReviewerProgress
from review.results.variation import Consistency
from review.web.forms.queue import QueueForm
from review.web.pages.adjudication import CaseRow


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue in the list. ``own`` is the person's part, ``None`` for who only leads it; ``ratings`` are those given
    and needed in the whole queue, ``None`` for who does not lead it."""

    queue: ReviewQueue
    own: OwnProgress | None
    ratings: tuple[int, int] | None

    @property
    def share(self) -> int:
        """Ratings given of those needed, 0 to 100."""
        given, needed = self.ratings or (0, 0)
        return min(100, round(100 * given / needed)) if needed else 0


@dataclass(frozen=True, slots=True)
class QueueListPage:
    """The queues a person leads or is a member of."""

    rows: tuple[QueueRow, ...]
    leads: bool


@dataclass(frozen=True, slots=True)
class LeadView:
    """What only leads see of a queue. ``disputes`` wait for a decision; nothing in them tells who said what. ``runs``
    are key and name of what the answers were drawn from, ``draws`` say how."""

    progress: QueueProgress
    disputes: tuple[CaseRow, ...]
    runs: tuple[tuple[int, str], ...]
    draws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A queue. ``own`` is the person's part, ``None`` for who only leads it; ``lead`` is ``None`` for reviewers."""

    queue: ReviewQueue
    metrics: Sequence[QueueMetric]
    own: OwnProgress | None
    lead: LeadView | None


@dataclass(frozen=True, slots=True)
class QueuePeoplePage:
    """The people of a queue in the order of their names and never by a figure: how far and how fast each is (no pace
    for who has rated nothing), and by name how far they agree. ``newcomers`` may be added."""

    queue: ReviewQueue
    people: tuple[tuple[ReviewerProgress, Pace | None], ...]
    agreement: tuple[tuple[str, Consistency], ...]
    newcomers: Sequence[User]
    error: str


@dataclass(frozen=True, slots=True)
class QueueItemsPage:
    """One page of a queue's items, with those who may be named for them; ``waiting``: only those that are for nobody
    yet. ``back`` and ``on`` are addresses of the pages beside, empty at the ends."""

    queue: ReviewQueue
    rows: Sequence[ReviewItem]
    people: Sequence[User]
    waiting: bool
    back: str
    on: str
    error: str


@dataclass(frozen=True, slots=True)
class QueueQuestionsPage:
    """The questions of a queue that may be at fault themselves."""

    queue: ReviewQueue
    rows: Sequence[DoubtfulQuestion]


@dataclass(frozen=True, slots=True)
class NewQueuePage:
    """The form of a new queue on a run; ``error`` says why it could not be made."""

    run: Run
    form: QueueForm
    error: str = ""


@dataclass(frozen=True, slots=True)
class PreviewCard:
    """What the queue would be, in words; ``problem`` instead where it cannot be made like this. ``expected`` is for a
    single run; ``by_run`` has the half-width for each of several, empty where it cannot be told."""

    problem: str = ""
    found: QueuePreview | None = None
    takes: str = ""
    expected: ExpectedCard | None = None
    by_run: tuple[tuple[str, str], ...] = ()
    goals: tuple[GoalRow, ...] = ()


def preview_card(
    found: QueuePreview, expected: Sequence[tuple[str, ExpectedCard | None]] = (), goals: tuple[GoalRow, ...] = ()
) -> PreviewCard:
    """The preview in words, with the interval to be expected of each run and what others would take."""
    several = len(expected) > 1
    return PreviewCard(
        found=found,
        takes=numbers.about(max(found.seconds_each, 60.0)),
        expected=expected[0][1] if len(expected) == 1 else None,
        by_run=tuple((name, card.half_width if card else "") for name, card in expected) if several else (),
        goals=goals,
    )
