"""What a correction reads: the whole frame of a component with its ratings, and its strata as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np

from review.statistics.agreement.statistic import Array, Flags, Indices

LEAST_LABELS = 20  # fewer of a whole component show no figure
LEAST_STRATUM_LABELS = 2
Key = Hashable


class ReviewState(IntEnum):
    """Where review of an answer stands. Confirmed flags are no state: such an answer leaves the frame."""

    NOT_SAMPLED = 0
    NOT_REACHED = 1  # sampled, not yet served; no non-response, because the order is random
    NO_RESPONSE = 2  # skipped, flagged without confirmation, or "cannot judge"
    RATED = 3


@dataclass(frozen=True)
class Frame:
    """The answers that something is about, as columns in one order. ``key`` is the place of each of them in ``names``,
    which hold each once; parts of one frame have one list of names.

    ``judge`` is the scorer's value or contribution, NaN where it failed; ``rating`` the mean of the blind initial
    ratings, NaN unless rated; ``state`` a :class:`ReviewState`; ``probability`` that of being sampled by any draw
    (above 0), NaN where the answer could not be sampled with a known probability. ``stratum`` and ``group`` are places
    in the names ``strata`` and ``groups``; answers of one group are not independent. ``built``: the judge's prompt was
    worked out on the rating, which then stands for this answer and for no other."""

    key: Indices
    names: Sequence[Key]
    judge: Array
    rating: Array
    state: Indices
    probability: Array
    stratum: Indices
    strata: Sequence[str]
    group: Indices
    groups: Sequence[Hashable]
    built: Flags

    def __post_init__(self) -> None:
        if (np.isnan(self.rating) == (self.state == ReviewState.RATED)).any():
            raise ValueError("an answer has a rating exactly when it is rated")
        known = self.probability[~np.isnan(self.probability)]
        if ((known <= 0.0) | (known > 1.0)).any():
            raise ValueError("a probability of being sampled lies above 0 and not above 1")
        if np.isinf(self.judge).any() or np.isinf(self.rating).any():
            raise ValueError("values are finite")

    def __len__(self) -> int:
        return len(self.key)

    @property
    def keys(self) -> list[Key]:
        """The name of each answer."""
        return [self.names[at] for at in self.key.tolist()]

    @cached_property
    def sampled(self) -> Flags:
        """Which answers a draw with known probabilities took."""
        return np.asarray(~np.isnan(self.probability) & (self.state != ReviewState.NOT_SAMPLED))

    @cached_property
    def labelled(self) -> Flags:
        """Whose rating may be used: rated, and sampled with a known probability."""
        return np.asarray(~np.isnan(self.probability) & (self.state == ReviewState.RATED))

    def filled(self, judge: Array, rating: Array) -> Frame:
        """The same with these values; a rating counts as one where a draw took the answer."""
        rated = (self.state != ReviewState.NOT_SAMPLED) & ~np.isnan(rating)
        state = np.where(rated, ReviewState.RATED, self.state)
        return replace(self, judge=judge, rating=np.where(rated, rating, np.nan), state=state)

    def at(self, places: Indices) -> Frame:
        """The same of the answers at these places."""
        return replace(
            self,
            key=self.key[places],
            judge=self.judge[places],
            rating=self.rating[places],
            state=self.state[places],
            probability=self.probability[places],
            stratum=self.stratum[places],
            group=self.group[places],
            built=self.built[places],
        )


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a score, over its frame.

    ``low`` and ``high`` bound its values. For per-answer profiles the values are the contributions, weight times
    value (0 where the part does not apply), over all answers and ``weight`` is 1; for run-mean profiles the values
    are the metric's own, over the answers it applies to, and ``weight`` is the profile's.

    ``judged``: a judge gives the values, so that without ratings the mean may be anything from ``low`` to ``most``;
    values of rules and embeddings are exact by definition. ``most`` is ``high`` but for contributions of a part that
    does not apply everywhere: there it is the mean of what each answer could get.
    """

    name: str
    frame: Frame
    low: float
    high: float
    weight: float = 1.0
    yes_no: bool = False
    judged: bool = False
    most: float | None = None

    def __post_init__(self) -> None:
        if not len(self.frame):
            raise ValueError("a component needs answers")
        if not self.low < self.high:
            raise ValueError("the upper bound lies above the lower")

    @property
    def width(self) -> float:
        """Upper bound minus lower bound."""
        return self.high - self.low

    @property
    def labels(self) -> int:
        """How many ratings may be used."""
        return int(self.frame.labelled.sum())


@dataclass(frozen=True, slots=True)
class Stratum:
    """``members`` are positions in the frame, ``labelled`` those of the usable ratings among them. ``judge`` is
    aligned with ``members`` (zeros where ``failed``); ``rating``, ``judged`` and ``inclusion`` with ``labelled``:
    the expert's value, the judge's, and probability times response rate. ``reached`` counts the sampled answers that
    reviewers came to, ``silent`` those of them without a rating, and ``silent_share`` is the share of the stratum that
    the latter stand for, by 1 / probability."""

    name: str
    failed: bool
    members: Indices
    labelled: Indices
    judge: Array
    judged: Array
    rating: Array
    inclusion: Array
    reached: int
    silent: int
    silent_share: float

    @property
    def size(self) -> int:
        """How many answers of the frame lie in the stratum."""
        return len(self.members)

    @property
    def labels(self) -> int:
        """How many usable ratings there are."""
        return len(self.labelled)

    @property
    def census(self) -> bool:
        """Whether every answer is rated."""
        return self.labels == self.size

    @property
    def share(self) -> Array:
        """Each label's share of the stratum: 1 / inclusion, normalised to 1 (Hajek)."""
        weight = 1.0 / self.inclusion
        return np.asarray(weight / weight.sum())


def strata(frame: Frame) -> list[Stratum]:
    """The strata of a frame, in order of name; the judge's failures are strata of their own (post-strata where the
    draw did not set them apart), and so are the ratings that the judge's prompt was worked out on (certainty strata).
    """
    return [one for whole in _by_name(frame) for one in _set_apart(whole, frame)]


def _by_name(frame: Frame) -> Iterator[Stratum]:
    failed = np.isnan(frame.judge)
    named = sorted((frame.strata[place], place) for place in np.unique(frame.stratum).tolist())
    for name, place in named:
        for wanted in (False, True):
            if len(members := np.flatnonzero((frame.stratum == place) & (failed == wanted))):
                yield _stratum(name, wanted, members, frame)


def _set_apart(whole: Stratum, frame: Frame) -> list[Stratum]:
    """The built ratings of a stratum as one of their own, and the rest of it.

    An answer of the rest was rated by chance, and by chance not built on: with p the inclusion in the whole and s the
    share of its ratings that are not built on, its inclusion is ``p s / (1 - p (1 - s))``. For a simple draw of n of N
    answers of which k were built on that is ``(n - k) / (N - k)``.
    """
    built = whole.labelled[frame.built[whole.labelled]]
    if not len(built) or whole.census:
        return [whole]
    share, p = 1.0 - len(built) / whole.labels, np.ones(len(frame))
    p[whole.labelled] = whole.inclusion * share / (1.0 - whole.inclusion * (1.0 - share))
    rest = np.setdiff1d(whole.members, built)
    return [
        _stratum(whole.name, whole.failed, built, frame, np.ones(len(frame))),
        _stratum(whole.name, whole.failed, rest, frame, p),
    ]


def collapsed(frame: Frame) -> list[Stratum]:
    """All answers with a judge's value as one stratum, the others as a second, and what its prompt was worked out on
    apart; for parts of a frame in which the design's strata are too thin. The ratings keep their own probabilities and
    response rates."""
    inclusion = np.zeros(len(frame))
    for one in strata(frame):
        inclusion[one.labelled] = one.inclusion
    kinds = 2 * np.isnan(frame.judge) + (frame.built & frame.labelled)
    return [
        _stratum("", kind >= 2, np.flatnonzero(kinds == kind), frame, inclusion) for kind in np.unique(kinds).tolist()
    ]


def _stratum(name: str, failed: bool, members: Indices, frame: Frame, inclusion: Array | None = None) -> Stratum:
    """The members as a stratum; ``inclusion`` of every answer of the frame, else by their response."""
    drawn = members[frame.sampled[members]]
    labelled = drawn[frame.labelled[drawn]]
    silent = drawn[frame.state[drawn] == ReviewState.NO_RESPONSE]
    without, rated = (float((1.0 / frame.probability[of]).sum()) for of in (silent, labelled))
    chance = frame.probability[labelled] * (len(labelled) / len(drawn) if len(drawn) else 0.0)
    return Stratum(
        name=name,
        failed=failed,
        members=members,
        labelled=labelled,
        judge=np.nan_to_num(frame.judge[members]),
        judged=np.nan_to_num(frame.judge[labelled]),
        rating=frame.rating[labelled],
        inclusion=chance if inclusion is None else inclusion[labelled],
        reached=len(labelled) + len(silent),
        silent=len(silent),
        silent_share=without / (without + rated) if len(silent) else 0.0,
    )


@dataclass(frozen=True, slots=True)
class United:
    """All answers of any frame: their groups, whether any frame has a label of them, and at which places those of each
    frame stand."""

    group: Indices
    groups: Sequence[Hashable]
    labelled: Flags
    places: Sequence[Indices]


def united(frames: Sequence[Frame]) -> United:
    """The answers of several frames, each once."""
    keys, _ = _together([(frame.key, frame.names) for frame in frames])
    of_frames, groups = _together([(frame.group, frame.groups) for frame in frames])
    answers = np.unique(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    places = [np.searchsorted(answers, key) for key in keys]
    group, labelled = np.zeros(len(answers), dtype=np.int64), np.zeros(len(answers), dtype=np.bool_)
    for frame, at, of_frame in zip(frames, places, of_frames, strict=True):
        group[at] = of_frame
        labelled[at] |= frame.labelled
    return United(group, groups, labelled, places)


def _together(columns: Sequence[tuple[Indices, Sequence[Hashable]]]) -> tuple[list[Indices], Sequence[Hashable]]:
    """Columns of places in lists of names as places in one list of all names."""
    lists = {id(names): names for _, names in columns}
    if len(lists) == 1:
        return [column for column, _ in columns], columns[0][1]
    place: dict[Hashable, int] = {}
    numbers = {
        at: np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
        for at, names in lists.items()
    }
    return [numbers[id(names)][column] for column, names in columns], list(place)
