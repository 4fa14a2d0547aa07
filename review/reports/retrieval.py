"""Types and wording of retrieval figures corrected for missing relevance labels.

An installed feature computes the correction from an accepted repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import get_language, gettext, ngettext

from evaluation.core.metric_specs import Bilingual
from evaluation.extensions import Feature, features
from evaluation.messages.explanations import explain_reason
from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.models import Run
from review.reports.figure import Figure, withheld
from review.statistics.correction.outcome import Deviation, Target

NO_ESTIMATE, OTHER_REPAIR, UNRATED = "no_sum", "other_repair", "unrated_passages"


@dataclass(frozen=True, slots=True)
class RetrievalFigure:
    """A retrieval metric of a run by existing labels alone, and corrected with a 95% interval.

    By labels alone an unrated passage is a miss. ``withheld`` is the reason for a missing value."""

    metric: str
    labels_alone: float
    value: float | None
    low: float | None
    high: float | None
    withheld: str


@dataclass(frozen=True, slots=True)
class CorrectedRetrieval:
    """Retrieval at ``k`` corrected by a repair, over the answered ``questions`` of its pool.

    ``unrated`` passages of the pool are left. ``outside`` counts retrieved passages outside the pool. ``older``: the
    run's question set version lacks the accepted labels."""

    repair: int
    name: str
    k: int
    questions: int
    unrated: int
    outside: int
    figures: tuple[RetrievalFigure, ...]
    older: bool = False


@dataclass(frozen=True, slots=True)
class RepairedFigure:
    """A corrected figure with its deviation for questions like these, ``None`` without variation. ``withheld`` is the
    reason for a missing value."""

    value: float | None
    deviation: Deviation | None
    withheld: str

    def figure(self, confidence: float, least: float, n: int) -> Figure:
        """The figure over ``n`` questions with its interval, cut to ``least`` and 1."""
        if self.value is None:
            return withheld(self.withheld, n)
        target, half = Target.QUESTIONS_LIKE_THESE.value, self.deviation.half_width(confidence) if self.deviation else 0
        value, low, high = (min(max(self.value + sign * half, least), 1.0) for sign in (0, -1, 1))
        if not half:
            return Figure(value, target=target, n=n, no_interval="no_variation")
        return Figure(value, low, high, target, n)


@dataclass(frozen=True, slots=True)
class RepairedRetrieval:
    """Corrected retrieval metrics of a run (``least`` is 0), or of a difference of two runs (-1).

    They refer to ``questions`` like those answered in the repair's pool. ``unrated`` passages are left."""

    repair: int
    name: str
    questions: int
    unrated: int
    least: float
    figures: Mapping[str, RepairedFigure]

    def figure(self, metric: str, confidence: float) -> Figure:
        """Figure of a metric. Hit, MRR and MAP are no sums over passages and have no estimate."""
        repaired = self.figures.get(metric)
        return (
            repaired.figure(confidence, self.least, self.questions)
            if repaired
            else withheld(NO_ESTIMATE, self.questions)
        )

    def without_intervals(self) -> RepairedRetrieval:
        """Drop the data for intervals at other confidence levels."""
        return replace(self, figures={})


@dataclass(frozen=True, slots=True)
class ReviewFeature(Feature):
    """Extensions of reports and comparisons.

    ``corrected_retrieval`` corrects a run's figures. ``repaired_retrieval`` corrects those of one run, or of the first
    minus the second, for questions like these."""

    corrected_retrieval: Callable[[Run], CorrectedRetrieval | None] | None = None
    repaired_retrieval: Callable[[Sequence[Run]], RepairedRetrieval | None] | None = None


def corrected_retrieval(run: Run) -> CorrectedRetrieval | None:
    """Corrected retrieval figures of the run, or ``None`` if no feature corrects them."""
    hooks = (
        feature.corrected_retrieval
        for feature in features()
        if isinstance(feature, ReviewFeature) and feature.corrected_retrieval
    )
    return next((corrected for hook in hooks if (corrected := hook(run))), None)


def repaired_difference(run: Run, baseline: Run, corrected: CorrectedRetrieval | None) -> RepairedRetrieval | None:
    """Corrected difference of two runs. ``corrected`` is the correction of either.

    Withheld (``other_repair``) if no repair covers both runs."""
    if corrected is None:
        return None
    if repaired := repaired_retrieval(run, baseline):
        return repaired
    figures = {figure.metric: RepairedFigure(None, None, OTHER_REPAIR) for figure in corrected.figures}
    return RepairedRetrieval(corrected.repair, corrected.name, 0, corrected.unrated, -1.0, figures)


def repaired_retrieval(*runs: Run) -> RepairedRetrieval | None:
    """Corrected figures for questions like these, of one run or of the first minus the second."""
    hooks = (
        feature.repaired_retrieval
        for feature in features()
        if isinstance(feature, ReviewFeature) and feature.repaired_retrieval
    )
    return next((repaired for hook in hooks if (repaired := hook(runs))), None)


def reads_labels(metric: str) -> bool:
    """Return whether the metric compares retrieved passages with the question set's labels."""
    return is_rule_metric(metric) and "ground_truth_chunk_ids" in rule_metric_named(metric).spec.inputs


def retrieval_in_words(corrected: CorrectedRetrieval | None) -> str:
    """Number of unrated passages that count as misses, and the corrected figures."""
    if corrected is None:
        return ""
    language, parts = get_language() or "en", []
    for title, retrieval_figure in titled_figures(corrected):
        figure = Figure(
            retrieval_figure.value, retrieval_figure.low, retrieval_figure.high, withheld=retrieval_figure.withheld
        )
        text = explain_reason(retrieval_figure.withheld) if retrieval_figure.withheld else figure.text(3, "–")
        parts.append(f"{title.in_language(language)} {retrieval_figure.labels_alone:.3f} → {text}")
    return f"{unrated_in_words(corrected)} k = {corrected.k}: {'; '.join(parts)}"


def titled_figures(corrected: CorrectedRetrieval) -> tuple[tuple[Bilingual, RetrievalFigure], ...]:
    return tuple((rule_metric_named(figure.metric).spec.title, figure) for figure in corrected.figures)


def unrated_in_words(corrected: CorrectedRetrieval) -> str:
    """Explain which labels the retrieval metrics lack."""
    sentences = []
    if corrected.older:
        text = gettext(
            "The labels of “%(name)s” are in a later version of the question set. Here, passages that "
            "experts found relevant for it count as misses in the retrieval metrics."
        )
        sentences.append(text % {"name": corrected.name})
    if not corrected.unrated and not corrected.older:
        text = gettext("The pool of “%(name)s” is fully rated, but this version has the earlier labels.")
        sentences.append(text % {"name": corrected.name})
    if corrected.unrated:
        text = ngettext(
            "%(count)d passage of the pool of “%(name)s” is unrated and counts as a miss in the retrieval metrics.",
            "%(count)d passages of the pool of “%(name)s” are unrated and count as misses in the retrieval metrics.",
            corrected.unrated,
        )
        sentences.append(text % {"count": corrected.unrated, "name": corrected.name})
    return " ".join(sentences)
