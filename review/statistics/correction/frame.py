"""What a correction reads: the whole frame of a component with its ratings, and its strata as arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from review.statistics.agreement.statistic import Array, Indices

LEAST_LABELS = 20  # fewer of a whole component show no figure
LEAST_STRATUM_LABELS = 2
Key = Hashable


class ReviewState(StrEnum):
    """Where review of an answer stands. Confirmed flags are no state: such an answer leaves the frame."""

    NOT_SAMPLED = "not_sampled"
    NOT_REACHED = "not_reached"  # sampled, not yet served; no non-response, because the order is random
    NO_RESPONSE = "no_response"  # skipped, flagged without confirmation, or "cannot judge"
    RATED = "rated"


@dataclass(frozen=True, slots=True)
class FrameAnswer:
    """One answer of the frame. ``judge`` is the scorer's value or contribution, ``None`` where it failed; ``rating``
    the mean of the blind initial ratings, present exactly when rated; ``probability`` that of being sampled by any
    draw (above 0), ``None`` where the answer could not be sampled with a known probability. ``built``: the judge's
    prompt was worked out on its rating, which then stands for this answer and for no other."""

    key: Key
    judge: float | None
    rating: float | None = None
    state: ReviewState = ReviewState.NOT_SAMPLED
    probability: float | None = None
    stratum: str = ""
    group: Hashable = None
    category: str = ""
    built: bool = False

    def __post_init__(self) -> None:
        if (self.rating is not None) != (self.state is ReviewState.RATED):
            raise ValueError("an answer has a rating exactly when it is rated")
        if self.probability is not None and not 0.0 < self.probability <= 1.0:
            raise ValueError(f"not a probability of being sampled: {self.probability}")
        if any(value is not None and not math.isfinite(value) for value in (self.judge, self.rating)):
            raise ValueError("values are finite")

    @property
    def sampled(self) -> bool:
        """Whether a draw with known probabilities took the answer."""
        return self.probability is not None and self.state is not ReviewState.NOT_SAMPLED

    @property
    def labelled(self) -> bool:
        """Whether its rating may be used: rated, and sampled with a known probability."""
        return self.probability is not None and self.state is ReviewState.RATED


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
    answers: Sequence[FrameAnswer]
    low: float
    high: float
    weight: float = 1.0
    yes_no: bool = False
    judged: bool = False
    most: float | None = None

    def __post_init__(self) -> None:
        if not self.answers:
            raise ValueError("a component needs answers")
        if not self.low < self.high:
            raise ValueError("the upper bound lies above the lower")
        if len({answer.key for answer in self.answers}) != len(self.answers):
            raise ValueError("a frame holds every answer once")

    @property
    def width(self) -> float:
        """Upper bound minus lower bound."""
        return self.high - self.low

    @property
    def labels(self) -> int:
        """How many ratings may be used."""
        return sum(answer.labelled for answer in self.answers)


@dataclass(frozen=True, slots=True)
class Stratum:
    """``members`` are positions in the frame, ``labelled`` those of the usable ratings among them. ``judge`` is
    aligned with ``members`` (zeros where ``failed``); ``rating``, ``judged`` and ``inclusion`` with ``labelled``:
    the expert's value, the judge's, and probability times response rate."""

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


def strata(answers: Sequence[FrameAnswer]) -> list[Stratum]:
    """The strata of a frame, in order of name; the judge's failures are strata of their own (post-strata where the
    draw did not set them apart), and so are the ratings that the judge's prompt was worked out on (certainty strata).
    """
    members: dict[tuple[str, bool], list[int]] = {}
    for position, answer in enumerate(answers):
        members.setdefault((answer.stratum, answer.judge is None), []).append(position)
    found = (_stratum(name, failed, positions, answers) for (name, failed), positions in sorted(members.items()))
    return [one for whole in found for one in _set_apart(whole, answers)]


def _set_apart(whole: Stratum, answers: Sequence[FrameAnswer]) -> list[Stratum]:
    """The built ratings of a stratum as one of their own, and the rest of it.

    An answer of the rest was rated by chance, and by chance not built on: with p the inclusion in the whole and s the
    share of its ratings that are not built on, its inclusion is ``p s / (1 - p (1 - s))``. For a simple draw of n of N
    answers of which k were built on that is ``(n - k) / (N - k)``.
    """
    built = [at for at in whole.labelled.tolist() if answers[at].built]
    if not built or whole.census:
        return [whole]
    share = 1.0 - len(built) / whole.labels
    inclusion = {
        at: p * share / (1.0 - p * (1.0 - share))
        for at, p in zip(whole.labelled.tolist(), whole.inclusion.tolist(), strict=True)
    }
    rest = sorted(set(whole.members.tolist()) - set(built))
    return [
        _stratum(whole.name, whole.failed, built, answers, dict.fromkeys(built, 1.0)),
        _stratum(whole.name, whole.failed, rest, answers, inclusion),
    ]


def collapsed(answers: Sequence[FrameAnswer]) -> list[Stratum]:
    """All answers with a judge's value as one stratum, the others as a second, and what its prompt was worked out on
    apart; for parts of a frame in which the design's strata are too thin. The ratings keep their own probabilities and
    response rates."""
    fine = [one for one in strata(answers) if one.labels]
    inclusion = {int(at): float(p) for one in fine for at, p in zip(one.labelled, one.inclusion, strict=True)}
    members: dict[tuple[bool, bool], list[int]] = {}
    for at, answer in enumerate(answers):
        members.setdefault((answer.judge is None, answer.built and answer.labelled), []).append(at)
    return [_stratum("", failed, at, answers, inclusion) for (failed, _), at in sorted(members.items())]


def _stratum(
    name: str,
    failed: bool,
    positions: list[int],
    answers: Sequence[FrameAnswer],
    inclusion: dict[int, float] | None = None,
) -> Stratum:
    drawn = [at for at in positions if answers[at].sampled]
    labelled = [at for at in drawn if answers[at].labelled]
    response = len(labelled) / len(drawn) if drawn else 0.0
    silent = sum(answers[at].state is ReviewState.NO_RESPONSE for at in drawn)
    return Stratum(
        name=name,
        failed=failed,
        members=np.array(positions, dtype=np.int64),
        labelled=np.array(labelled, dtype=np.int64),
        judge=np.array([answers[at].judge or 0.0 for at in positions]),
        judged=np.array([answers[at].judge or 0.0 for at in labelled]),
        rating=np.array([answers[at].rating for at in labelled], dtype=np.float64),
        inclusion=np.array(
            [inclusion[at] if inclusion else (answers[at].probability or 0.0) * response for at in labelled]
        ),
        reached=len(labelled) + silent,
        silent=silent,
    )
