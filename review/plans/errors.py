"""How far judge and experts are apart: what ratings say of it, or a stated guess."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.registry import JUDGED
from evaluation.profiles.arithmetic import Label
from review.reports.gathering import Gathered
from review.statistics.correction.component import Fitted, fitted
from review.statistics.correction.frame import Component

GUESS = 0.25  # without ratings: the judge is a quarter of the scale off, one level of five
FLOOR = 0.02  # no stratum is given up because the pilot saw no difference in it
LEAST_PILOT = 10


@dataclass(frozen=True, slots=True)
class Errors:
    """How far the experts are from the judge, in units of the overall score. ``by_answer``: expert minus b times judge
    of the rated answers, over the parts named; ``deviation`` its standard deviation, a guess without enough ratings;
    ``floor`` the least deviation of any stratum. ``waiting``: answers that were drawn and not yet served."""

    parts: tuple[str, ...]
    by_answer: Mapping[int, float]
    deviation: float
    floor: float
    guessed: bool
    waiting: frozenset[int] = frozenset()


def errors_of(basis: Gathered, names: Collection[str] | None = None, guess: float = GUESS) -> Errors | None:
    """How far judge and experts are apart on the parts named, else on those rated or judged. ``None`` where the run has
    no overall score or none of them is a part of it. ``guess``: by how much of the scale the judge is taken to be off
    until 10 answers have been rated."""
    if basis.machine.outcome.label is not Label.OVERALL_SCORE:
        return None
    components = basis.correction.components(basis.profile, basis.machine)
    wanted = set(names) if names is not None else _usual(basis, components)
    chosen = [one for one in components if one.name in wanted]
    if not chosen:
        return None
    by_answer = _residuals(chosen)
    guessed = len(by_answer) < LEAST_PILOT
    width = sum(abs(one.weight) * one.width for one in chosen)
    deviation = guess * width if guessed else max(_deviation(list(by_answer.values())), FLOOR * width)
    return Errors(
        tuple(one.name for one in chosen), by_answer, deviation, FLOOR * width, guessed, _waiting(basis, chosen)
    )


def _usual(basis: Gathered, components: Sequence[Component]) -> set[str]:
    """The parts that were rated; before that, those a judge scored."""
    rated = {one.name for one in components if one.labels}
    return rated or {metric.name for metric in basis.said.metrics.values() if metric.kind in JUDGED}


def _residuals(components: Sequence[Component]) -> dict[int, float]:
    """Answer -> what it adds to the error of the score, were the score a plain mean over all answers: a part over
    ``N_j`` of N answers counts N / N_j times. Of the answers that have all of their labels."""
    frame = {answer.key for one in components for answer in one.answers}
    total: dict[int, float] = {}
    missing = set()
    for one in components:
        fit = fitted(one)
        slope = fit.influence.slope if isinstance(fit, Fitted) else None
        scale = one.weight * len(frame) / len(one.answers)
        for answer in one.answers:
            if not answer.labelled or answer.judge is None or answer.rating is None:
                missing.add(answer.key)
                continue
            error = answer.rating - (1.0 if slope is None else slope) * answer.judge
            total[int(str(answer.key))] = total.get(int(str(answer.key)), 0.0) + scale * error
    return {key: error for key, error in total.items() if key not in missing}


def _waiting(basis: Gathered, components: Sequence[Component]) -> frozenset[int]:
    """Drawn answers that nobody was served yet, for any of the parts, by whatever draw."""
    of_name = {metric.name: pk for pk, metric in basis.said.metrics.items()}
    waiting: set[int] = set()
    for one in components:
        if one.name in of_name:
            frame = {int(str(answer.key)) for answer in one.answers}
            waiting |= frame & basis.samples.waiting_for(of_name[one.name], basis.said.ratings)
    return frozenset(waiting)


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
