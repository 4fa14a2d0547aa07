"""Sampling design of a review: expected errors of the judge by stratum, and the interval a sample is expected to
give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.models import MetricDefinition, Run
from evaluation.profiles.arithmetic import FigureLabel
from review.models.queue_spec import QueueSpec
from review.queues.draws import earlier_answers, sampling_frame, steering_metrics
from review.queues.sampling import split_size
from review.reports.figure import Figure
from review.reports.inputs import ReportInputs, load_inputs
from review.statistics.correction.corrected import ComponentFit, fit_component
from review.statistics.correction.frame import AnswerKey, Component
from review.statistics.correction.outcome import Target
from review.statistics.correction.rounds import UNPLANNED_WEIGHT
from review.statistics.precision import PlannedStratum, expected_half_width, pilot_deviations, standard_deviation
from review.statistics.sampling.draw import CERTAIN, STANDING
from review.statistics.sampling.member import DrawnAnswer, DrawParams, Member, stratify
from review.statistics.sampling.rotation import MIN_ASKED

# Assumed error of the judge without ratings, as a share of the scale: one level of five.
DEFAULT_GUESS = 0.25
# Smallest deviation of a stratum, so that a pilot without differences does not exclude it from sampling.
DEVIATION_FLOOR = 0.02
MIN_PILOT_ANSWERS = 10


@dataclass(frozen=True, slots=True)
class JudgeErrors:
    """Differences between experts and judge, in units of the overall score, over the metrics ``parts``.

    ``by_answer``: expert minus b times judge, by rated answer. ``deviation``: standard deviation of these, or a guess
    (``guessed``) with too few ratings. ``floor``: smallest deviation of any stratum. ``waiting_answers``: drawn answers
    that nobody has been served yet."""

    parts: tuple[str, ...]
    by_answer: Mapping[int, float]
    deviation: float
    floor: float
    guessed: bool
    waiting_answers: frozenset[int] = frozenset()


def judge_errors(
    basis: ReportInputs, metric_names: Collection[str] | None = None, guessed_error: float = DEFAULT_GUESS
) -> JudgeErrors | None:
    """Estimate the judge's errors over the named metrics, by default those rated or judged.

    ``guessed_error`` is the assumed error as a share of the scale until 10 answers are rated. ``None`` if the run has
    no overall score or none of the metrics is part of it."""
    if basis.machine.outcome.label is not FigureLabel.OVERALL_SCORE:
        return None
    components = basis.correction.components(basis.profile, basis.machine)
    selected_names = set(metric_names) if metric_names is not None else _default_names(basis, components)
    selected_components = [component for component in components if component.name in selected_names]
    if not selected_components:
        return None
    by_answer = _residuals(selected_components)
    guessed = len(by_answer) < MIN_PILOT_ANSWERS
    width = sum(abs(component.weight) * component.width for component in selected_components)
    error_deviation = (
        guessed_error * width if guessed else max(standard_deviation(list(by_answer.values())), DEVIATION_FLOOR * width)
    )
    parts = tuple(component.name for component in selected_components)
    return JudgeErrors(
        parts,
        by_answer,
        error_deviation,
        DEVIATION_FLOOR * width,
        guessed,
        _waiting_answers(basis, selected_components),
    )


def unrated_range(basis: ReportInputs, figure: Figure) -> float:
    """Contribution of the unrated parts of a corrected score to its interval on either side: half of the range of their
    values, or the accepted limit of the judge's bias in them."""
    errors = judge_errors(basis, figure.partly_corrected) if figure.partly_corrected else None
    bias = (figure.extra.get("assumption") or {}).get("bias", 0.5)
    return errors.floor / DEVIATION_FLOOR * float(bias) if errors else 0.0


def corrected_half_width(basis: ReportInputs) -> float | None:
    """Half-width of the corrected overall score for this run without its unrated parts; ``None`` if it is withheld."""
    figure = basis.correction.overall(basis.profile, basis.machine, Target.THIS_RUN)
    if figure.low is None or figure.high is None:
        return None
    return max(0.0, (figure.high - figure.low) / 2.0 - unrated_range(basis, figure))


def combined_half_width(last: float, earlier: float | None) -> float:
    """Half-width of the composite of an unplanned round, of half-width ``last``, with the rounds before it."""
    return last if earlier is None or last <= 0 else UNPLANNED_WEIGHT * math.hypot(last, earlier)


def _default_names(basis: ReportInputs, components: Sequence[Component]) -> set[str]:
    """Names of the rated components, or, before any rating, of those a judge scored."""
    rated_names = {component.name for component in components if component.labels}
    return rated_names or {metric.name for metric in basis.evidence.metrics.values() if metric.kind in JUDGED_KINDS}


def _residuals(components: Sequence[Component]) -> dict[int, float]:
    """Map each fully labelled answer to its contribution to the error of the score, treated as a mean over all answers:
    a component over ``N_j`` of N answers is weighted by N / N_j."""
    frame_keys = {key for component in components for key in component.frame.keys}
    totals: dict[AnswerKey, float] = {}
    missing: set[AnswerKey] = set()
    for component in components:
        fit = fit_component(component)
        slope = fit.influence.slope if isinstance(fit, ComponentFit) else None
        scale = component.weight * len(frame_keys) / len(component.frame)
        errors = scale * (component.frame.rating - (1.0 if slope is None else slope) * component.frame.judge)
        usable = component.frame.labelled & ~np.isnan(component.frame.judge)
        for key, is_usable, error in zip(component.frame.keys, usable.tolist(), errors.tolist(), strict=True):
            if is_usable:
                totals[key] = totals.get(key, 0.0) + error
            else:
                missing.add(key)
    return {int(str(key)): error for key, error in totals.items() if key not in missing}


def _waiting_answers(basis: ReportInputs, components: Sequence[Component]) -> frozenset[int]:
    """Drawn answers that nobody has been served yet, over all draws and components."""
    metric_ids = {metric.name: pk for pk, metric in basis.evidence.metrics.items()}
    waiting: set[int] = set()
    for component in components:
        if component.name in metric_ids:
            pk = metric_ids[component.name]
            waiting_keys = basis.samples.unserved_answers(pk, basis.evidence.ratings_by_metric.get(pk, ()))
            waiting |= waiting_keys.intersection(component.frame.keys)
    return frozenset(waiting)


@dataclass(frozen=True, slots=True)
class StratumPlan:
    """A stratum of a sample: size, sample size, and expected standard deviation."""

    name: str
    size: int
    sample_size: int
    deviation: float


@dataclass(frozen=True, slots=True)
class ExpectedInterval:
    """Expected half-width of the corrected overall score, with its strata."""

    half_width: float
    guessed: bool
    strata: tuple[StratumPlan, ...]


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """Parameters of a draw, the known errors of the judge, the answers to draw from, and the run's evidence."""

    params: DrawParams
    errors: JudgeErrors | None
    members: tuple[Member, ...]
    basis: ReportInputs

    @property
    def earlier_half_width(self) -> float | None:
        """Half-width of the corrected score that a further round combines with; ``None`` if there is none."""
        return corrected_half_width(self.basis) if self.params.certain else None

    @property
    def uses_neyman(self) -> bool:
        """True if earlier ratings determine the sample size of each stratum (Neyman allocation)."""
        return bool(self.params.pilot_sd)


def design_sample(
    basis: ReportInputs, metrics: Sequence[MetricDefinition], size: int, guessed_error: float = DEFAULT_GUESS
) -> SampleDesign:
    """Design a stratified draw for these metrics.

    Answers of earlier draws, and those with standing ratings of these metrics, are certain. With enough ratings, the
    other answers are allocated to strata by the deviations between judge and experts (Neyman)."""
    run = basis.run
    steering = steering_metrics(run, [metric.pk for metric in metrics])
    members = sampling_frame(run, steering).members
    standing = basis.evidence.standing.keys()
    standing_keys = {key for key, _ in standing if all((key, metric.pk) in standing for metric in metrics)}
    certain_keys = (earlier_answers(run, steering) | standing_keys) & {member.key for member in members}
    errors = judge_errors(basis, [metric.name for metric in metrics], guessed_error)
    params = DrawParams(certain=frozenset(certain_keys))
    open_members = [member for member in members if member.key not in certain_keys]
    if errors is None or errors.guessed or not open_members:
        return SampleDesign(params, errors, members, basis)
    strata = stratify(open_members, params.merge_below, max_strata=max(1, size // params.per_stratum))
    return SampleDesign(
        replace(params, pilot_sd=_stratum_deviations(errors, members, strata, Counter(strata.values()))),
        errors,
        members,
        basis,
    )


def expected_interval(
    design: SampleDesign, sample: Sequence[DrawnAnswer], share: float = 1.0
) -> ExpectedInterval | None:
    """Expected half-width from this sample together with the answers drawn earlier.

    ``share`` is the share of drawn answers on which each criterion is rated; the errors of the criteria are taken as
    fully correlated, which is the worst case. ``None`` for samples without probabilities, and for metrics outside the
    overall score."""
    errors = design.errors
    if errors is None:
        return None
    sizes = Counter(drawn_answer.stratum for drawn_answer in sample)
    standing_count = sizes.pop(STANDING, 0)
    counts = Counter(drawn_answer.stratum for drawn_answer in sample if drawn_answer.sampled)
    if not sizes or len(counts) < len(sizes) or any(drawn_answer.probability is None for drawn_answer in sample):
        return None
    new_strata = {
        drawn_answer.key: drawn_answer.stratum
        for drawn_answer in sample
        if drawn_answer.stratum not in {CERTAIN, STANDING}
    }
    deviations = _stratum_deviations(errors, design.members, new_strata, sizes)
    strata = [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())]
    stratum_plans = tuple(
        StratumPlan(stratum.name, stratum.size, counts[stratum.name], stratum.deviation) for stratum in strata
    )
    rated_counts = {
        name: count if share >= 1 else max(MIN_ASKED, round(count * share)) for name, count in counts.items()
    }
    half_width = expected_half_width(strata, rated_counts, certain=standing_count)
    return ExpectedInterval(half_width, errors.guessed, stratum_plans)


def remaining_strata(design: SampleDesign) -> tuple[list[PlannedStratum], int]:
    """Return the strata left to draw from with their expected deviations, and the number of answers that earlier draws
    took. No strata if nothing is known of the errors."""
    certain_keys = design.params.certain
    open_members = [member for member in design.members if member.key not in certain_keys]
    if design.errors is None or not open_members:
        return [], len(certain_keys)
    strata = stratify(open_members, design.params.merge_below)
    sizes = Counter(strata.values())
    deviations = _stratum_deviations(design.errors, design.members, strata, sizes)
    return [PlannedStratum(name, size, deviations[name]) for name, size in sorted(sizes.items())], len(certain_keys)


def _stratum_deviations(
    errors: JudgeErrors, members: Sequence[Member], strata: Mapping[int, str], sizes: Mapping[str, int]
) -> dict[str, float]:
    """Deviation of each stratum. A rated answer of an earlier draw counts in the stratum of answers with the same
    category and judge score, else of the same score."""
    if errors.guessed:
        return dict.fromkeys(sizes, errors.deviation)
    strata_by_category_and_score = {
        (frame_member.category, frame_member.judge_score): strata[frame_member.key]
        for frame_member in members
        if frame_member.key in strata
    }
    strata_by_score = {
        frame_member.judge_score: strata[frame_member.key] for frame_member in members if frame_member.key in strata
    }
    errors_by_stratum: dict[str, list[float]] = {}
    for member in members:
        if member.key in errors.by_answer:
            stratum = strata.get(member.key) or strata_by_category_and_score.get((member.category, member.judge_score))
            errors_by_stratum.setdefault(stratum or strata_by_score.get(member.judge_score, ""), []).append(
                errors.by_answer[member.key]
            )
    return pilot_deviations(errors_by_stratum, sizes, errors.floor)


def design_samples(
    runs: Sequence[Run], metrics: Sequence[MetricDefinition], size: int, guessed_error: float
) -> dict[int, SampleDesign]:
    """Design a draw for each run, with its share of the size and its own earlier ratings."""
    run_sizes = zip(runs, split_size(runs, size), strict=True)
    return {
        run.pk: design_sample(load_inputs(run), metrics, size_of_run, guessed_error) for run, size_of_run in run_sizes
    }


def draw_params_by_run(
    designs: Mapping[int, SampleDesign], spec: QueueSpec, picked_keys: Mapping[int, frozenset[int]] | None = None
) -> dict[int, DrawParams]:
    """Draw parameters by run; ``picked_keys`` are hand-picked answers by run."""
    keys_by_run = picked_keys or {}
    return {
        run_id: replace(
            design.params, fail_below=spec.fail_below, share=spec.share, keys=keys_by_run.get(run_id, frozenset())
        )
        for run_id, design in designs.items()
    }
