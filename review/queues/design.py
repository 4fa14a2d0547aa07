"""How to draw a sample for review, by how far judge and experts are apart, and what it will give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluation.core.metric_specs import JUDGED
from evaluation.models import MetricDefinition, Run
from evaluation.profiles.arithmetic import Label
from review.models.queue_spec import QueueSpec
from review.queues.draws import earlier_answers, frame_of, steering_metrics
from review.queues.making import shares
from review.reports.gathering import Gathered, gather
from review.statistics.correction.corrected import Fitted, fitted
from review.statistics.correction.frame import Component, Key
from review.statistics.precision import PlannedStratum, deviation, expected_half_width, pilot_deviations
from review.statistics.sampling.draw import CERTAIN
from review.statistics.sampling.member import Drawn, DrawParams, Member, stratify
from review.statistics.sampling.turns import LEAST_ASKED

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
    apart = guess * width if guessed else max(deviation(list(by_answer.values())), FLOOR * width)
    parts = tuple(one.name for one in chosen)
    return Errors(parts, by_answer, apart, FLOOR * width, guessed, _waiting(basis, chosen))


def _usual(basis: Gathered, components: Sequence[Component]) -> set[str]:
    """The parts that were rated; before that, those a judge scored."""
    rated = {one.name for one in components if one.labels}
    return rated or {metric.name for metric in basis.said.metrics.values() if metric.kind in JUDGED}


def _residuals(components: Sequence[Component]) -> dict[int, float]:
    """Answer -> what it adds to the error of the score, were the score a plain mean over all answers: a part over
    ``N_j`` of N answers counts N / N_j times. Of the answers that have all of their labels."""
    frame = {key for one in components for key in one.frame.keys}
    total: dict[Key, float] = {}
    missing: set[Key] = set()
    for one in components:
        fit = fitted(one)
        slope = fit.influence.slope if isinstance(fit, Fitted) else None
        scale = one.weight * len(frame) / len(one.frame)
        errors = scale * (one.frame.rating - (1.0 if slope is None else slope) * one.frame.judge)
        usable = one.frame.labelled & ~np.isnan(one.frame.judge)
        for key, known, error in zip(one.frame.keys, usable.tolist(), errors.tolist(), strict=True):
            if known:
                total[key] = total.get(key, 0.0) + error
            else:
                missing.add(key)
    return {int(str(key)): error for key, error in total.items() if key not in missing}


def _waiting(basis: Gathered, components: Sequence[Component]) -> frozenset[int]:
    """Drawn answers that nobody was served yet, for any of the parts, by whatever draw."""
    of_name = {metric.name: pk for pk, metric in basis.said.metrics.items()}
    waiting: set[int] = set()
    for one in components:
        if one.name in of_name:
            pk = of_name[one.name]
            drawn = basis.samples.waiting_for(pk, basis.said.ratings_by_metric.get(pk, ()))
            waiting |= drawn.intersection(one.frame.keys)
    return frozenset(waiting)


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
    return Design(
        replace(params, pilot_sd=_by_stratum(errors, members, strata, Counter(strata.values()))), errors, members
    )


def expected_interval(found: Design, drawn: Sequence[Drawn], share: float = 1.0) -> Expected | None:
    """What a draw is expected to give together with the answers drawn earlier; ``None`` for a draw without
    probabilities, and for metrics that are no part of the overall score. ``share``: of the answers drawn that each
    criterion is asked of, the errors of all of them taken to go together, which is the worst case."""
    errors = found.errors
    if errors is None:
        return None
    sizes = Counter(one.stratum for one in drawn)
    counts = Counter(one.stratum for one in drawn if one.sampled)
    if not sizes or len(counts) < len(sizes) or any(one.probability is None for one in drawn):
        return None
    new = {one.key: one.stratum for one in drawn if one.stratum != CERTAIN}
    deviations = _by_stratum(errors, found.members, new, sizes)
    strata = [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())]
    parts = tuple(PlannedPart(one.name, one.size, counts[one.name], one.deviation) for one in strata)
    rated = {name: count if share >= 1 else max(LEAST_ASKED, round(count * share)) for name, count in counts.items()}
    return Expected(expected_half_width(strata, rated), errors.guessed, parts)


def strata_ahead(found: Design) -> tuple[list[PlannedStratum], int]:
    """The strata a stratified draw could take from, with the deviations expected in them, and how many answers are
    certain because earlier draws took them. Without anything known of the errors there are none."""
    certain = found.params.certain
    rest = [member for member in found.members if member.key not in certain]
    if found.errors is None or not rest:
        return [], len(certain)
    strata = stratify(rest, found.params.merge_below)
    sizes = Counter(strata.values())
    deviations = _by_stratum(found.errors, found.members, strata, sizes)
    return [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())], len(certain)


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


def designs(runs: Sequence[Run], metrics: Sequence[MetricDefinition], size: int, guess: float) -> dict[int, Design]:
    """Run -> how to draw from it, each with its share of the size and its own earlier ratings."""
    wanted = zip(runs, shares(runs, size), strict=True)
    return {run.pk: design(gather(run), metrics, share, guess) for run, share in wanted}


def told(
    planned: Mapping[int, Design], spec: QueueSpec, keys: Mapping[int, frozenset[int]] | None = None
) -> dict[int, DrawParams]:
    """Run -> everything its draw is told; ``keys`` are hand-picked answers by run."""
    picked = keys or {}
    return {
        run: replace(one.params, fail_below=spec.fail_below, share=spec.share, keys=picked.get(run, frozenset()))
        for run, one in planned.items()
    }
