"""How to draw a sample for review: which answers are certain, how the others are shared, and what it will give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.models import MetricDefinition
from review.plans.errors import GUESS, Errors, errors_of
from review.queues.draws import earlier_answers, frame_of, steering_metrics
from review.reports.gathering import Gathered
from review.statistics.precision.width import PlannedStratum, expected_half_width, pilot_deviations
from review.statistics.sampling.draw import CERTAIN
from review.statistics.sampling.member import Drawn, DrawParams, Member
from review.statistics.sampling.stratify import stratify


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A stratum of a draw: its size, how many are drawn, and the deviation that is expected in it."""

    name: str
    size: int
    drawn: int
    deviation: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What a draw is expected to give: the half-width of the corrected overall score, by strata."""

    half_width: float
    guessed: bool
    strata: tuple[PlannedPart, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """How to draw: what the draw is told, what is known of the errors, and the answers it can take."""

    params: DrawParams
    errors: Errors | None
    members: tuple[Member, ...]

    @property
    def neyman(self) -> bool:
        """Whether earlier ratings decide how many answers each stratum gives."""
        return bool(self.params.pilot_sd)


def design(basis: Gathered, metrics: Sequence[MetricDefinition], size: int, guess: float = GUESS) -> Design:
    """What a stratified draw for these metrics should be told: which answers earlier draws took, and how far judge and
    experts are apart in each stratum of the others (Neyman), where there are ratings enough."""
    run = basis.run
    steering = steering_metrics(run, [metric.pk for metric in metrics])
    members = frame_of(run, steering).members
    certain = earlier_answers(run, steering) & {member.key for member in members}
    errors = errors_of(basis, [metric.name for metric in metrics], guess)
    params = DrawParams(certain=frozenset(certain))
    rest = [member for member in members if member.key not in certain]
    if errors is None or errors.guessed or not rest:
        return Design(params, errors, members)
    strata = stratify(rest, params.merge_below, most=max(1, size // params.per_stratum))
    return Design(replace(params, pilot_sd=_by_stratum(errors, members, strata, sizes_of(strata))), errors, members)


def expected_interval(found: Design, drawn: Sequence[Drawn]) -> Expected | None:
    """What a draw is expected to give together with the answers drawn earlier; ``None`` for a draw without
    probabilities, and for metrics that are no part of the overall score."""
    errors = found.errors
    if errors is None:
        return None
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    for one in drawn:
        if one.probability is None:
            return None
        sizes[one.stratum] = sizes.get(one.stratum, 0) + 1
        counts[one.stratum] = counts.get(one.stratum, 0) + one.sampled
    if not sizes or any(count == 0 for count in counts.values()):
        return None
    new = {one.key: one.stratum for one in drawn if one.stratum != CERTAIN}
    deviations = _by_stratum(errors, found.members, new, sizes)
    strata = [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())]
    parts = tuple(PlannedPart(one.name, one.size, counts[one.name], one.deviation) for one in strata)
    return Expected(expected_half_width(strata, counts), errors.guessed, parts)


def strata_ahead(found: Design) -> tuple[list[PlannedStratum], int]:
    """The strata a stratified draw could take from, with the deviations expected in them, and how many answers are
    certain because earlier draws took them. Without anything known of the errors there are none."""
    certain = found.params.certain
    rest = [member for member in found.members if member.key not in certain]
    if found.errors is None or not rest:
        return [], len(certain)
    strata = stratify(rest, found.params.merge_below)
    sizes = sizes_of(strata)
    deviations = _by_stratum(found.errors, found.members, strata, sizes)
    return [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())], len(certain)


def sizes_of(strata: Mapping[int, str]) -> dict[str, int]:
    """How many answers each stratum has."""
    sizes: dict[str, int] = {}
    for name in strata.values():
        sizes[name] = sizes.get(name, 0) + 1
    return sizes


def _by_stratum(
    errors: Errors, members: Sequence[Member], strata: Mapping[int, str], sizes: Mapping[str, int]
) -> dict[str, float]:
    """The deviation of each stratum. A rated answer that is in none, because an earlier draw took it, belongs to the
    stratum of answers like it: of the same category and judge's score, else of the score alone."""
    if errors.guessed:
        return dict.fromkeys(sizes, errors.deviation)
    exact = {(m.category, m.judge_score): strata[m.key] for m in members if m.key in strata}
    near = {m.judge_score: strata[m.key] for m in members if m.key in strata}
    found: dict[str, list[float]] = {}
    for member in members:
        if member.key in errors.by_answer:
            own = strata.get(member.key) or exact.get((member.category, member.judge_score))
            found.setdefault(own or near.get(member.judge_score, ""), []).append(errors.by_answer[member.key])
    return pilot_deviations(found, sizes, errors.floor)
