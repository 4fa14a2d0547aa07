"""Standing score of each release of a system over a question set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np

from evaluation.core.metric_specs import Bilingual
from evaluation.models import Run
from evaluation.worker.lifecycle import RunConfig
from review.evidence.effective import consensus_value
from review.evidence.scorers import Scorer, metric_title
from review.reports.estimates import corrected_score
from review.reports.figure import Figure, plain
from review.reports.inputs import ReportInputs, load_inputs
from review.standing.tuning import ReleaseStep, release_step, score_despite_tuning
from review.statistics.agreement.statistic import factorize
from review.statistics.correction.outcome import Target
from review.statistics.standing import Drift, TuningTest, earlier_slope, recheck_drift, recheck_size, tuning_test

# The newest releases; more are unreadable in one chart.
MAX_RELEASES = 12


@dataclass(frozen=True, slots=True)
class Release:
    """A release: the newest run over one answer set of the system.

    ``score`` is the standing score for this run, ``similar_questions`` that for questions like these, from never-rated
    questions only where the system was tuned. ``rated`` answers got a rating in this release; ``standing`` ones have
    one of an identical answer in an earlier release. ``changed`` answers of the release before are no longer given.
    ``tuning`` tests the changes up to this release. Both are ``None`` in the first one. ``rechecked`` standing answers
    were rated again, of ``recheck_due``."""

    run_id: int
    name: str
    system: str
    at: datetime
    answers: int
    rated: int
    standing: int
    changed: int | None
    score: Figure
    similar_questions: Figure
    tuning: TuningTest | None
    rechecked: int
    recheck_due: int


@dataclass(frozen=True, slots=True)
class MetricDrift:
    """Change of the experts' ratings of one metric since the carried ones, on its scale, pooled over releases."""

    title: Bilingual
    drift: Drift


@dataclass(frozen=True, slots=True)
class StandingHistory:
    """Releases of a system over a question set, oldest first, and the drift of the experts by metric name."""

    releases: tuple[Release, ...]
    drift: Mapping[str, MetricDrift] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, with the outcomes of the tests."""
        document: dict[str, Any] = plain(self)
        for release, entry in zip(self.releases, document["releases"], strict=True):
            if release.tuning:
                entry["tuning"]["fired"] = release.tuning.fired
        for name, change in self.drift.items():
            document["drift"][name] = {**document["drift"][name]["drift"], "shown": change.drift.shown}
        return document


def release_runs(run: Run, *, until: bool = False) -> list[Run]:
    """Runs of the releases over this run's system, question set version and questions, under its profile; oldest
    first.

    One completed run of each answer set: this one, else the newest with the same judges, else the newest. ``until``:
    no release after this run's."""
    rows = Run.objects.filter(
        project=run.project_id,
        state=Run.State.COMPLETED,
        profile_version=run.profile_version_id,
        answer_set__question_set=run.answer_set.question_set_id,
        answer_set__system_version__system=run.answer_set.system_version.system_id,
    )
    if until:
        rows = rows.filter(answer_set__lte=run.answer_set_id)
    questions, judges = RunConfig.model_validate(run.config).question_ids, _judges(run)
    chosen: dict[int, tuple[tuple[bool, bool, int], Run]] = {}
    for candidate in rows.select_related(Run.NAME_RELATION, "answer_set").prefetch_related("judges"):
        if RunConfig.model_validate(candidate.config).question_ids == questions:
            rank = (candidate.pk == run.pk, _judges(candidate) == judges, candidate.pk)
            if candidate.answer_set_id not in chosen or chosen[candidate.answer_set_id][0] < rank:
                chosen[candidate.answer_set_id] = rank, candidate
    return [candidate for _, (_, candidate) in sorted(chosen.items())][-MAX_RELEASES:]


def _judges(run: Run) -> set[tuple[int, int]]:
    return {(judge.judge_version_id, judge.rubric_version_id) for judge in run.judges.all() if judge.primary}


def standing_history(runs: Sequence[Run]) -> StandingHistory:
    """Compute the standing score of each release, and the tests over them. ``runs`` as :func:`release_runs`."""
    inputs = [load_inputs(run) for run in runs]
    steps: list[ReleaseStep] = []
    releases = []
    for position, basis in enumerate(inputs):
        earlier = inputs[:position]
        step = release_step(earlier[-1], basis) if earlier else None
        steps += [step] if step else []
        tuning = _tuning(steps) if steps else None
        releases.append(_release(basis, earlier, step, tuning))
    return StandingHistory(tuple(releases), rating_drift(inputs))


@dataclass(frozen=True, slots=True)
class ReleaseFindings:
    """Findings on earlier releases that bear on the score of the newest one.

    ``drifted`` are the metrics on which experts rate differently today, if ratings were carried to this release.
    ``despite_tuning`` is the score for questions like these from never-rated questions, ``None`` without tuning."""

    drifted: tuple[str, ...] = ()
    despite_tuning: Figure | None = None


def release_findings(basis: ReportInputs, confidence: float = 0.95) -> ReleaseFindings:
    """Test the releases up to the given one."""
    runs = [run for run in release_runs(basis.run, until=True) if run.answer_set_id != basis.run.answer_set_id]
    if not runs:
        return ReleaseFindings()
    earlier = [load_inputs(run) for run in runs]
    inputs = [*earlier, basis]
    carried = any(labels.carried for labels in basis.correction.labels.values())
    drifted = [name for name, change in rating_drift(inputs).items() if change.drift.shown] if carried else []
    if not _tuning([release_step(*pair) for pair in pairwise(inputs)]).fired:
        return ReleaseFindings(tuple(drifted))
    with_slopes = replace(basis, correction=replace(basis.correction, slopes=_slopes(basis, earlier)))
    return ReleaseFindings(tuple(drifted), score_despite_tuning(with_slopes, earlier, confidence))


def _tuning(steps: Sequence[ReleaseStep]) -> TuningTest:
    """Test all changes so far, each within the levels of its own step."""
    levels = factorize([(number, level) for number, step in enumerate(steps) for level in step.levels])
    changed = np.array([flag for step in steps for flag in step.changed], dtype=np.bool_)
    rated = np.array([flag for step in steps for flag in step.rated], dtype=np.bool_)
    return tuning_test(changed, rated, levels)


def _release(
    basis: ReportInputs, earlier: Sequence[ReportInputs], step: ReleaseStep | None, tuning: TuningTest | None
) -> Release:
    slopes = _slopes(basis, earlier)
    basis = replace(basis, correction=replace(basis.correction, slopes=slopes))
    similar_questions = corrected_score(basis, Target.QUESTIONS_LIKE_THESE)
    if tuning and tuning.fired and not similar_questions.withheld:
        similar_questions = score_despite_tuning(basis, earlier)
    standing = {answer for answer, _ in basis.evidence.standing}
    rated = {answer for answer, _ in basis.evidence.blind} | {row.answer_id for row in basis.evidence.withheld}
    return Release(
        run_id=basis.run.pk,
        name=str(basis.run),
        system=str(basis.run.answer_set.system_version),
        at=basis.run.answer_set.created_at,
        answers=len(basis.evidence.answers),
        rated=len(rated),
        standing=len(standing),
        changed=step.changed_answers if step else None,
        score=corrected_score(basis, Target.THIS_RUN),
        similar_questions=similar_questions,
        tuning=tuning,
        rechecked=len(rated & standing),
        recheck_due=recheck_size(len(standing)),
    )


def _slopes(basis: ReportInputs, earlier: Sequence[ReportInputs]) -> dict[int, float]:
    """Slope of each metric from ratings given in earlier releases, of which the current judge scored the answers."""
    slopes = {}
    for pk in basis.correction.labels:
        scorer = next((row for row in basis.evidence.scorers if row.primary and pk in row.values), None)
        pairs = [pair for previous in earlier for pair in _judged_ratings(previous, scorer, pk)] if scorer else []
        judge, rating = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        if (slope := earlier_slope(judge, rating)) is not None:
            slopes[pk] = slope
    return slopes


def _judged_ratings(basis: ReportInputs, scorer: Scorer, metric_id: int) -> list[tuple[float, float]]:
    """Values of this judge and of the experts, for answers rated in this release."""
    labels = basis.correction.labels.get(metric_id)
    values = next(
        (
            row.values[metric_id]
            for row in basis.evidence.scorers
            if _identity(row) == _identity(scorer) and metric_id in row.values
        ),
        {},
    )
    if labels is None:
        return []
    return [
        (judged.value, rating)
        for answer, rating in labels.means.items()
        if answer not in labels.carried and (judged := values.get(answer)) is not None and judged.value is not None
    ]


def _identity(scorer: Scorer) -> tuple[str, str, str]:
    return scorer.author, scorer.rubric, scorer.method


def rating_drift(inputs: Sequence[ReportInputs]) -> dict[str, MetricDrift]:
    """Change from carried to repeated blind ratings by metric name, where standing answers were rated again.

    The intervals hold together at 95%: each of m metrics has one at 1 - 0.05 / m."""
    differences: dict[int, list[tuple[float, int]]] = {}
    metrics = {pk: metric for basis in inputs for pk, metric in basis.evidence.metrics.items()}
    for basis in inputs:
        for key, carried in basis.evidence.standing.items():
            repeated = basis.evidence.blind.get(key)
            if not carried.blind or not repeated:
                continue
            (before, _), (now, _) = (consensus_value(metrics[key[1]], rows) for rows in (carried.blind, repeated))
            if before is not None and now is not None:
                question = basis.evidence.answers[key[0]].question_pk
                differences.setdefault(key[1], []).append((now - before, question))
    drift = {}
    for pk, pairs in sorted(differences.items()):
        values, questions = zip(*pairs, strict=True)
        width, confidence = metrics[pk].read_scale().width, 1.0 - 0.05 / len(differences)
        if (change := recheck_drift(values, factorize(list(questions)), width, confidence)) is not None:
            drift[metrics[pk].name] = MetricDrift(metric_title(metrics[pk]), change)
    return drift
