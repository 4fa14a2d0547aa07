"""The strata an estimate runs over, as arrays: design strata, with the answers the judge failed on set apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array, Indices
from review.statistics.correction.frame import FrameAnswer, ReviewState


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
    draw did not set them apart)."""
    members: dict[tuple[str, bool], list[int]] = {}
    for position, answer in enumerate(answers):
        members.setdefault((answer.stratum, answer.judge is None), []).append(position)
    return [_stratum(name, failed, positions, answers) for (name, failed), positions in sorted(members.items())]


def collapsed(answers: Sequence[FrameAnswer]) -> list[Stratum]:
    """All answers with a judge's value as one stratum, the others as a second; for parts of a frame in which the
    design's strata are too thin. The ratings keep their own probabilities and response rates."""
    fine = [one for one in strata(answers) if one.labels]
    inclusion = {int(at): float(p) for one in fine for at, p in zip(one.labelled, one.inclusion, strict=True)}
    found = []
    for failed in (False, True):
        positions = [at for at, answer in enumerate(answers) if (answer.judge is None) is failed]
        if positions:
            found.append(_stratum("", failed, positions, answers, inclusion))
    return found


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
