"""The overall score three ways, side by side: judge only, reviewed, corrected."""

from __future__ import annotations

import dataclasses

from evaluation.models import Run
from evaluation.profiles.arithmetic import Label
from evaluation.profiles.spec import ProfileSpec
from review.evidence.effective import Source
from review.evidence.experts import agreement_ratings, effective_ratings
from review.evidence.run_evidence import Said
from review.reports.corrected import Correction
from review.reports.figure import Figure, Withheld, withheld
from review.reports.lines import Sides
from review.reports.report import ThreeScores
from review.reports.scores import SideScore
from review.statistics.correction.outcome import Target


def three_scores(
    run: Run, profile: ProfileSpec, sides: Sides, machine: SideScore, reviewed: SideScore, correction: Correction
) -> ThreeScores:
    """The three overall scores, or why each is withheld. A run that is not finished has none; one without all parts
    of the profile has only a figure labelled as partial, never an overall score."""
    values = list(sides.found.values.values())
    human = {value.answer_id for value in values if value.human}
    n = len(sides.machine.answers)
    judge_only = _named(run, machine, n)
    partial = machine.outcome.label in {Label.RULES_ONLY, Label.PARTIAL}
    return ThreeScores(
        label=machine.outcome.label,
        weight=machine.outcome.weight,
        missing=machine.outcome.missing,
        judge_only=judge_only,
        reviewed=_named(run, reviewed, n) if human else withheld(Withheld.NOT_REVIEWED, n),
        corrected=_corrected(run, profile, machine, correction, Target.THIS_RUN),
        corrected_over_questions=_corrected(run, profile, machine, correction, Target.QUESTIONS_LIKE_THESE),
        part_only=machine.figure if partial and run.state in Run.ENDED and not machine.figure.withheld else None,
        answers=n,
        reviewed_answers=len(human),
        overrides=sum(value.source is Source.OVERRIDE for value in values),
        unresolved=sum(value.unresolved for value in values),
        examples=any(row.example for row in correction.said.ratings),
        mean_shift=mean_shift(correction.said),
    )


def _named(run: Run, side: SideScore, n: int) -> Figure:
    """The side's figure where it may be called the overall score."""
    if run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    label = side.outcome.label
    if side.figure.withheld or label is Label.OVERALL_SCORE:
        return side.figure
    return dataclasses.replace(withheld(str(label), n), worst=side.figure.worst, best=side.figure.best)


def _corrected(run: Run, profile: ProfileSpec, machine: SideScore, correction: Correction, target: Target) -> Figure:
    n = len(correction.said.answers)
    if run.state not in Run.ENDED:
        return withheld(Withheld.NOT_FINISHED, n)
    if machine.outcome.label is not Label.OVERALL_SCORE:
        return withheld(machine.outcome.reason or str(machine.outcome.label), n)
    return correction.overall(profile, machine, target)


def mean_shift(said: Said) -> float | None:
    """The mean change from experts' blind first ratings to their last ones, as a share of the scale: it explains why
    reviewed and corrected differ when everything is reviewed. ``None`` without ratings of both kinds."""
    last = effective_ratings(said.ratings)
    changes: list[float] = []
    for key, rows in agreement_ratings(said.ratings).items():
        scale = said.metrics[key[1]].read_scale()
        before = [row.value for row in rows if row.value is not None]
        after = [row.value for row in last.get(key, []) if row.value is not None]
        if before and after and scale.width:
            changes.append((sum(after) / len(after) - sum(before) / len(before)) / scale.width)
    return sum(changes) / len(changes) if changes else None
