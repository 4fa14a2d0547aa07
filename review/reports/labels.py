"""The experts' blind first ratings as a correction reads them: every answer of the frame with where its review
stands."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.core.samples import Status
from review.evidence.answers import RunAnswer
from review.evidence.experts import agreement_ratings
from review.evidence.judged import Judged
from review.evidence.run_evidence import Said
from review.evidence.sampling import NOWHERE, Place, Samples
from review.statistics.agreement.rating import consensus
from review.statistics.correction.frame import FrameAnswer, ReviewState


@dataclass(frozen=True, slots=True)
class MetricLabels:
    """The blind first ratings of one metric: answer -> mean of the raters, and how the answers were sampled."""

    means: dict[int, float]
    places: dict[int, Place]
    silent: frozenset[int]

    @property
    def any(self) -> bool:
        """Whether anybody rated the metric blind."""
        return bool(self.means)

    def frame_answer(self, answer: RunAnswer, judge: float | None, rating: float | None) -> FrameAnswer:
        """One member of the frame. ``rating`` is the mean, in the units of ``judge``; it is used only where a draw
        with probabilities took the answer. A rating is missing from a sampled answer because nobody was served it
        yet, or because whoever was gave no usable one (skipped, flagged, cannot judge, not blind)."""
        place = self.places.get(answer.answer_id, NOWHERE)
        if not place.sampled:
            state = ReviewState.NOT_SAMPLED
        elif rating is not None:
            state = ReviewState.RATED
        else:
            state = ReviewState.NO_RESPONSE if answer.answer_id in self.silent else ReviewState.NOT_REACHED
        return FrameAnswer(
            key=answer.answer_id,
            judge=judge,
            rating=rating if state is ReviewState.RATED else None,
            state=state,
            probability=place.probability,
            stratum=place.stratum,
            group=answer.group,
            category=answer.category,
        )


def labels_by_metric(said: Said, samples: Samples) -> dict[int, MetricLabels]:
    """The labels of every metric that anybody rated and that has numbers."""
    blind = agreement_ratings(said.ratings)
    found: dict[int, MetricLabels] = {}
    for pk in sorted({row.metric_id for row in said.ratings}):
        scale = said.metrics[pk].read_scale()
        if scale.labels:
            continue
        means: dict[int, float] = {}
        for (answer_id, metric_id), rows in blind.items():
            if metric_id == pk:
                means[answer_id] = float(consensus([v for row in rows if (v := row.value) is not None], scale) or 0.0)
        places = samples.places(pk, said.ratings)
        silent = samples.silent_for(pk) | {row.answer_id for row in said.ratings if row.metric_id == pk}
        found[pk] = MetricLabels(means, _census(said, pk, means, places), frozenset(silent - means.keys()))
    return found


def applies(said: Judged | None) -> bool:
    """Whether an answer belongs to a metric's frame: scored or failed, not inapplicable."""
    return said is not None and said.status is not Status.NOT_APPLICABLE


def _census(said: Said, pk: int, means: dict[int, float], places: dict[int, Place]) -> dict[int, Place]:
    """Where every answer the metric applies to was rated there is nothing to sample: a census, however the answers
    were chosen."""
    frame = [answer for answer in said.answers if applies(said.scored.get((answer, pk)))]
    if frame and all(answer in means for answer in frame):
        return places | {answer: Place(1.0, "all", True) for answer in frame}
    return places
