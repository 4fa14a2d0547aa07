"""Everything the figures of a run are made of, read once: what was said, both sides, their scores, the labels."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.models import Run
from evaluation.profiles.spec import ProfileSpec
from review.evidence.effective import values_from
from review.evidence.run_evidence import Said, said_of, samples_behind
from review.evidence.sampling import Samples
from review.reports.corrected import Correction, labels_by_metric
from review.reports.lines import Sides
from review.reports.provenance import with_relations
from review.reports.scores import SideScore, score_side
from review.reports.values import machine_side, reviewed_side


@dataclass(frozen=True, slots=True)
class Gathered:
    """The basis of a run's report and of its comparison with others. ``machine`` and ``reviewed`` are the overall
    scores of the two sides."""

    run: Run
    profile: ProfileSpec
    said: Said
    samples: Samples
    sides: Sides
    machine: SideScore
    reviewed: SideScore
    correction: Correction


def gather(run: Run) -> Gathered:
    """Read what the figures need, in ten queries, and put it together."""
    run = with_relations(run)
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    said = said_of(run)
    samples = samples_behind(run, said)
    found = values_from(said)
    answers = list(said.answers.values())
    sides = Sides(machine_side(answers, found), reviewed_side(answers, found), found)
    return Gathered(
        run=run,
        profile=profile,
        said=said,
        samples=samples,
        sides=sides,
        machine=score_side(profile, sides.machine),
        reviewed=score_side(profile, sides.reviewed),
        correction=Correction(said, labels_by_metric(said, samples)),
    )
