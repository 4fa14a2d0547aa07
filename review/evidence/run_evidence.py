"""Everything that was said about a run's answers, read once: scores, ratings, decisions, samples."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from evaluation.models import MetricDefinition, Run
from review.evidence.answers import RunAnswer, removed_answers, run_answers
from review.evidence.decisions import Decision, standing_decisions
from review.evidence.experts import ExpertRating, ratings_of, read
from review.evidence.judged import Judged, Key
from review.evidence.sampling import Samples, samples_of
from review.evidence.scorers import Scorer, scorers_of, values_of_run


@dataclass(frozen=True, slots=True)
class Said:
    """What was said about the answers of a run. ``metrics`` holds every metric that anybody gave a value for, by
    primary key; ``scored`` are the values of the rules and primary judges, ``computed`` the metrics they belong to.
    ``removed`` are answers that a lead took out of all means."""

    answers: dict[int, RunAnswer]
    scorers: list[Scorer]
    scored: dict[Key, Judged]
    ratings: list[ExpertRating]
    decisions: dict[Key, Decision]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]
    removed: tuple[RunAnswer, ...] = ()

    @property
    def names(self) -> dict[int, str]:
        """Metric -> its name, with the version where two versions of a metric were used."""
        of_name = [metric.name for metric in self.metrics.values()]
        return {
            pk: metric.name if of_name.count(metric.name) == 1 else f"{metric.name}@{metric.version}"
            for pk, metric in self.metrics.items()
        }


def said_of(run: Run, answer_ids: Collection[int] | None = None) -> Said:
    """Read everything about the run's answers, or some of them, in seven queries. Over a whole run the answers that a
    lead took out are left out, and named in ``removed``."""
    asked = run_answers(run, answer_ids)
    out = removed_answers(run.answer_set_id)
    removed = tuple(one for one in asked if one.answer_id in out)
    kept = asked if answer_ids is not None else [one for one in asked if one.answer_id not in out]
    answers = {answer.answer_id: answer for answer in kept}
    scorers = scorers_of(run, answer_ids)
    rows = read(ratings_of(run.answer_set_id, answer_ids))
    ratings = [row for row in rows if row.answer_id in answers]
    decisions = {k: d for k, d in standing_decisions(run.answer_set_id, answer_ids).items() if k[0] in answers}
    scored = {key: one for key, one in values_of_run(scorers).items() if key[0] in answers}
    keys = [*(key for one in scorers for key in one.said), *(row.key for row in ratings), *decisions]
    metrics = MetricDefinition.objects.in_bulk({metric for _, metric in keys})
    computed = frozenset(metric for _, metric in scored)
    return Said(answers, scorers, scored, ratings, decisions, metrics, computed, removed)


def samples_behind(run: Run, said: Said) -> Samples:
    """The draws and imported samples behind the ratings. Three queries."""
    return samples_of(run.answer_set_id, list(said.answers))
