"""Input of a correction: the sampling frame of a component with its ratings, and its strata as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np

from review.statistics.agreement.statistic import Array, Flags, Indices
from review.statistics.sampling.draw import STANDING

# A component with fewer labels shows no figure.
MIN_LABELS = 20
MIN_STRATUM_LABELS = 2
AnswerKey = Hashable


class ReviewState(IntEnum):
    """Review state of an answer. An answer with a confirmed flag leaves the frame and has no state."""

    NOT_SAMPLED = 0
    # Sampled but not served yet. This is no non-response, because the order is random.
    NOT_REACHED = 1
    # Skipped, flagged without confirmation, or "cannot judge".
    NO_RESPONSE = 2
    RATED = 3


@dataclass(frozen=True)
class SamplingFrame:
    """Answers of a sampling frame as columns in one order.

    ``key`` is the position of each answer in ``names``, which are unique; subsets of one frame share the list.
    ``judge`` is the scorer's value or contribution, NaN if it failed. ``rating`` is the mean of the blind initial
    ratings, NaN unless rated. ``state`` is a :class:`ReviewState`. ``probability`` is the chance of being sampled by
    any draw (above 0), NaN if unknown. ``stratum`` and ``group`` are positions in the names ``strata`` and ``groups``;
    answers of one group are not independent. ``in_prompt``: the judge's prompt was developed on this rating, which
    therefore represents no other answer."""

    key: Indices
    names: Sequence[AnswerKey]
    judge: Array
    rating: Array
    state: Indices
    probability: Array
    stratum: Indices
    strata: Sequence[str]
    group: Indices
    groups: Sequence[Hashable]
    in_prompt: Flags

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
    def keys(self) -> list[AnswerKey]:
        return [self.names[position] for position in self.key.tolist()]

    @cached_property
    def sampled(self) -> Flags:
        """Flags of the answers sampled by a draw with known probabilities."""
        return np.asarray(~np.isnan(self.probability) & (self.state != ReviewState.NOT_SAMPLED))

    @cached_property
    def labelled(self) -> Flags:
        """Flags of the usable ratings: rated, and sampled with a known probability."""
        return np.asarray(~np.isnan(self.probability) & (self.state == ReviewState.RATED))

    @cached_property
    def standing(self) -> Flags:
        """Flags of the answers that were rated before any draw, as equal answers of earlier answer sets."""
        places = [place for place, name in enumerate(self.strata) if name == STANDING]
        return np.asarray(np.isin(self.stratum, places))

    def with_values(self, judge: Array, rating: Array) -> SamplingFrame:
        """Copy of the frame with these values. A rating counts only for a sampled answer."""
        rated = (self.state != ReviewState.NOT_SAMPLED) & ~np.isnan(rating)
        state = np.where(rated, ReviewState.RATED, self.state)
        return replace(self, judge=judge, rating=np.where(rated, rating, np.nan), state=state)

    def take(self, positions: Indices) -> SamplingFrame:
        """Subset of the answers at these positions."""
        return replace(
            self,
            key=self.key[positions],
            judge=self.judge[positions],
            rating=self.rating[positions],
            state=self.state[positions],
            probability=self.probability[positions],
            stratum=self.stratum[positions],
            group=self.group[positions],
            in_prompt=self.in_prompt[positions],
        )


@dataclass(frozen=True, slots=True)
class EarlierRound:
    """Earlier round of a review: the frame it was drawn from, with the answers of the rounds before it as certain.

    ``planned``: its size was fixed before the ratings of earlier rounds were read, as that of a first round is."""

    frame: SamplingFrame
    planned: bool = True


@dataclass(frozen=True, slots=True)
class Component:
    """Component of a score, over its frame.

    ``low`` and ``high`` bound its values. In per-answer profiles the values are contributions, weight times value (0 if
    the component does not apply), over all answers, and ``weight`` is 1. In run-mean profiles they are the metric's own
    values, over the answers it applies to, and ``weight`` is that of the profile.

    ``judged``: a judge gives the values, so that without ratings the mean may lie anywhere from ``low`` to ``most``.
    Values of rules and embeddings are exact. ``most`` equals ``high``, except for contributions of a component that
    does not apply everywhere: it is then the mean of the largest contribution of each answer.

    With several rounds of review, ``frame`` and ``planned`` are those of the last one, and ``earlier`` holds the others
    in order, over the same answers. ``looks`` (at least 1) is the planned number of looks at the score, one after each
    round; verdicts share their error over them.

    ``slope``: slope of expert on judge that is known from earlier ratings, so that the estimate needs none of its
    own."""

    name: str
    frame: SamplingFrame
    low: float
    high: float
    weight: float = 1.0
    yes_no: bool = False
    judged: bool = False
    most: float | None = None
    earlier: tuple[EarlierRound, ...] = ()
    planned: bool = True
    looks: int = 1
    slope: float | None = None

    def __post_init__(self) -> None:
        if not len(self.frame):
            raise ValueError("a component needs answers")
        if any(len(earlier.frame) != len(self.frame) for earlier in self.earlier):
            raise ValueError("all rounds have the same answers")
        if not self.low < self.high:
            raise ValueError("the upper bound lies above the lower")

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def labels(self) -> int:
        """Number of usable ratings."""
        return int(self.frame.labelled.sum())


@dataclass(frozen=True, slots=True)
class Stratum:
    """Stratum of a frame.

    ``members`` are positions in the frame, ``labelled`` those of its usable ratings. ``judge`` is aligned with
    ``members`` (zeros if ``judge_failed``). ``rating``, ``judged`` and ``inclusion`` are aligned with ``labelled``: the
    expert's value, the judge's value, and probability times response rate.

    ``reached`` counts the sampled answers that reviewers came to, ``unanswered`` those of them without a rating.
    ``unanswered_share`` is the share of the stratum that these represent, by 1 / probability."""

    name: str
    judge_failed: bool
    members: Indices
    labelled: Indices
    judge: Array
    judged: Array
    rating: Array
    inclusion: Array
    reached: int
    unanswered: int
    unanswered_share: float

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def labels(self) -> int:
        return len(self.labelled)

    @property
    def census(self) -> bool:
        """Return whether every answer is rated."""
        return self.labels == self.size

    @property
    def share(self) -> Array:
        """Share of each label in the stratum: 1 / inclusion, normalised to 1 (Hajek)."""
        weight = 1.0 / self.inclusion
        return np.asarray(weight / weight.sum())


def frame_strata(frame: SamplingFrame) -> list[Stratum]:
    """Strata of a frame, sorted by name.

    The judge's failures are strata of their own (post-strata if the draw did not separate them). So are the ratings
    that the judge's prompt was developed on (certainty strata)."""
    return [part for stratum in _named_strata(frame) for part in _split_prompt_labels(stratum, frame)]


def _named_strata(frame: SamplingFrame) -> Iterator[Stratum]:
    failed = np.isnan(frame.judge)
    named = sorted((frame.strata[place], place) for place in np.unique(frame.stratum).tolist())
    for name, place in named:
        for judge_failed in (False, True):
            if len(members := np.flatnonzero((frame.stratum == place) & (failed == judge_failed))):
                yield _make_stratum(name, judge_failed, members, frame)


def _split_prompt_labels(stratum: Stratum, frame: SamplingFrame) -> list[Stratum]:
    """Split a stratum into the ratings used for the judge's prompt and the remaining answers.

    A remaining answer was rated by chance, and by chance not used. With p the inclusion in the whole stratum and s the
    share of its ratings that were not used, its inclusion is ``p s / (1 - p (1 - s))``. For a simple draw of n of N
    answers of which k were used, that is ``(n - k) / (N - k)``."""
    prompt_labels = stratum.labelled[frame.in_prompt[stratum.labelled]]
    if not len(prompt_labels) or stratum.census:
        return [stratum]
    share, inclusion = 1.0 - len(prompt_labels) / stratum.labels, np.ones(len(frame))
    inclusion[stratum.labelled] = stratum.inclusion * share / (1.0 - stratum.inclusion * (1.0 - share))
    remaining = np.setdiff1d(stratum.members, prompt_labels)
    return [
        _make_stratum(stratum.name, stratum.judge_failed, prompt_labels, frame, np.ones(len(frame))),
        _make_stratum(stratum.name, stratum.judge_failed, remaining, frame, inclusion),
    ]


def collapsed_strata(frame: SamplingFrame) -> list[Stratum]:
    """Collapse the strata of a subset of a frame in which the design's strata have too few labels.

    The strata are: answers with a judge's value, answers without, and each of these with ratings used for the judge's
    prompt. Ratings keep their own probabilities and response rates."""
    inclusion = np.zeros(len(frame))
    for stratum in frame_strata(frame):
        inclusion[stratum.labelled] = stratum.inclusion
    kind_of_answer = 2 * np.isnan(frame.judge) + (frame.in_prompt & frame.labelled)
    return [
        _make_stratum("", kind >= 2, np.flatnonzero(kind_of_answer == kind), frame, inclusion)
        for kind in np.unique(kind_of_answer).tolist()
    ]


def _make_stratum(
    name: str, judge_failed: bool, members: Indices, frame: SamplingFrame, inclusion: Array | None = None
) -> Stratum:
    """Build a stratum of the members. ``inclusion`` covers every answer of the frame; by default it follows from
    response."""
    sampled = members[frame.sampled[members]]
    labelled = sampled[frame.labelled[sampled]]
    unanswered = sampled[frame.state[sampled] == ReviewState.NO_RESPONSE]
    unanswered_total, rated_total = (
        float((1.0 / frame.probability[positions]).sum()) for positions in (unanswered, labelled)
    )
    response_inclusion = frame.probability[labelled] * (len(labelled) / len(sampled) if len(sampled) else 0.0)
    return Stratum(
        name=name,
        judge_failed=judge_failed,
        members=members,
        labelled=labelled,
        judge=np.nan_to_num(frame.judge[members]),
        judged=np.nan_to_num(frame.judge[labelled]),
        rating=frame.rating[labelled],
        inclusion=response_inclusion if inclusion is None else inclusion[labelled],
        reached=len(labelled) + len(unanswered),
        unanswered=len(unanswered),
        unanswered_share=unanswered_total / (unanswered_total + rated_total) if len(unanswered) else 0.0,
    )


@dataclass(frozen=True, slots=True)
class UnitedFrame:
    """All answers of several frames: groups, whether any frame has a label, and the positions of each frame's
    answers."""

    group: Indices
    groups: Sequence[Hashable]
    labelled: Flags
    places: Sequence[Indices]


def unite_frames(frames: Sequence[SamplingFrame]) -> UnitedFrame:
    """Unite the answers of several frames, each answer once."""
    keys, _ = _merge_columns([(frame.key, frame.names) for frame in frames])
    frame_groups, groups = _merge_columns([(frame.group, frame.groups) for frame in frames])
    answers = np.unique(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    places = [np.searchsorted(answers, key) for key in keys]
    group, labelled = np.zeros(len(answers), dtype=np.int64), np.zeros(len(answers), dtype=np.bool_)
    for frame, positions, frame_group in zip(frames, places, frame_groups, strict=True):
        group[positions] = frame_group
        labelled[positions] |= frame.labelled
    return UnitedFrame(group, groups, labelled, places)


def _merge_columns(columns: Sequence[tuple[Indices, Sequence[Hashable]]]) -> tuple[list[Indices], Sequence[Hashable]]:
    """Convert columns of positions in separate lists of names to positions in one list of all names."""
    lists_by_id = {id(names): names for _, names in columns}
    if len(lists_by_id) == 1:
        return [column for column, _ in columns], columns[0][1]
    position_by_name: dict[Hashable, int] = {}
    numbers = {
        list_id: np.array([position_by_name.setdefault(name, len(position_by_name)) for name in names], dtype=np.int64)
        for list_id, names in lists_by_id.items()
    }
    return [numbers[id(names)][column] for column, names in columns], list(position_by_name)
