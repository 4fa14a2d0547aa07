"""Retrieval figures of runs whose question set does not know every relevant passage: corrected by a repair that a lead
accepted. A feature corrects them; this module has the types of its results and their wording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import get_language, gettext, ngettext

from evaluation.core.metric_specs import Bilingual
from evaluation.extensions import Feature, features
from evaluation.messages.sentences import explain_reason
from evaluation.metrics.catalogue import is_rule_metric, rule_metric_named
from evaluation.models import Run
from review.reports.figure import Figure, withheld
from review.statistics.correction.outcome import Deviation, Target

NO_SUM, NOT_BOTH, UNRATED = "no_sum", "other_repair", "unrated_passages"


@dataclass(frozen=True, slots=True)
class RetrievalFigure:
    """A retrieval metric of a run: by the labels of its question set alone, where a passage nobody rated counts as a
    miss, and corrected, with a 95% interval; without a value ``withheld`` says why."""

    metric: str
    labels_alone: float
    value: float | None
    low: float | None
    high: float | None
    withheld: str


@dataclass(frozen=True, slots=True)
class CorrectedRetrieval:
    """Retrieval at ``k`` of a run by a repair with ``unrated`` passages left, over those ``questions`` of its pool that
    the run answered. ``outside`` counts retrieved passages that are not in the pool; ``older`` says that the run's
    version of the question set does not have the labels that were accepted."""

    repair: int
    name: str
    k: int
    questions: int
    unrated: int
    outside: int
    figures: tuple[RetrievalFigure, ...]
    older: bool = False


@dataclass(frozen=True, slots=True)
class Repaired:
    """A corrected figure with its deviation for questions like these, ``None`` where nothing varies; without a value
    ``withheld`` says why."""

    value: float | None
    deviation: Deviation | None
    withheld: str

    def figure(self, confidence: float, least: float, n: int) -> Figure:
        """With its interval, over ``n`` questions, within ``least`` and 1."""
        if self.value is None:
            return withheld(self.withheld, n)
        target, half = Target.QUESTIONS_LIKE_THESE.value, self.deviation.half_width(confidence) if self.deviation else 0
        value, low, high = (min(max(self.value + way * half, least), 1.0) for way in (0, -1, 1))
        if not half:
            return Figure(value, target=target, n=n, no_interval="no_variation")
        return Figure(value, low, high, target, n)


@dataclass(frozen=True, slots=True)
class RepairedRetrieval:
    """Retrieval metrics by name of a run (from ``least`` 0), or of a run minus another (from -1), corrected for
    ``questions`` like those of the repair's pool that were answered; ``unrated`` passages of it are left."""

    repair: int
    name: str
    questions: int
    unrated: int
    least: float
    figures: Mapping[str, Repaired]

    def of(self, metric: str, confidence: float) -> Figure:
        """A metric that reads the labels; hit, MRR and MAP are no sums over passages and have no estimate."""
        found = self.figures.get(metric)
        return found.figure(confidence, self.least, self.questions) if found else withheld(NO_SUM, self.questions)

    def settled(self) -> RepairedRetrieval:
        """The same without what intervals would be made of at another level."""
        return replace(self, figures={})


@dataclass(frozen=True, slots=True)
class ReviewFeature(Feature):
    """Extensions of reports and comparisons: ``retrieval`` corrects a run's retrieval
    figures, ``repaired`` those of one run, or of the first minus the second, for questions like these."""

    retrieval: Callable[[Run], CorrectedRetrieval | None] | None = None
    repaired: Callable[[Sequence[Run]], RepairedRetrieval | None] | None = None


def corrected_retrieval(run: Run) -> CorrectedRetrieval | None:
    """The run's retrieval figures as a feature corrects them; ``None`` where its labels are all there is."""
    hooks = (feature.retrieval for feature in features() if isinstance(feature, ReviewFeature) and feature.retrieval)
    return next((found for hook in hooks if (found := hook(run))), None)


def repaired_difference(ours: Run, baseline: Run, either: CorrectedRetrieval | None) -> RepairedRetrieval | None:
    """Of the first minus the second; ``either`` is what corrects one of them. Withheld where no repair covers both
    (``other_repair``)."""
    if either is None:
        return None
    if found := repaired_retrieval(ours, baseline):
        return found
    nothing = {one.metric: Repaired(None, None, NOT_BOTH) for one in either.figures}
    return RepairedRetrieval(either.repair, either.name, 0, either.unrated, -1.0, nothing)


def repaired_retrieval(*runs: Run) -> RepairedRetrieval | None:
    """The same for questions like these, of one run or of the first minus the second."""
    hooks = (feature.repaired for feature in features() if isinstance(feature, ReviewFeature) and feature.repaired)
    return next((found for hook in hooks if (found := hook(runs))), None)


def reads_labels(metric: str) -> bool:
    """Whether the metric compares what was retrieved with the labels of the question set."""
    return is_rule_metric(metric) and "ground_truth_chunk_ids" in rule_metric_named(metric).spec.inputs


def retrieval_in_words(found: CorrectedRetrieval | None) -> str:
    """How many passages count as misses because nobody rated them, and the figures without that."""
    if found is None:
        return ""
    language, said = get_language() or "en", []
    for title, one in titled(found):
        figure = Figure(one.value, one.low, one.high, withheld=one.withheld)
        text = explain_reason(one.withheld) if one.withheld else figure.text(3, "–")
        said.append(f"{title.in_language(language)} {one.labels_alone:.3f} → {text}")
    return f"{unrated_in_words(found)} k = {found.k}: {'; '.join(said)}"


def titled(found: CorrectedRetrieval) -> tuple[tuple[Bilingual, RetrievalFigure], ...]:
    """Its figures with the titles of their metrics."""
    return tuple((rule_metric_named(one.metric).spec.title, one) for one in found.figures)


def unrated_in_words(found: CorrectedRetrieval) -> str:
    """What its retrieval metrics leave out."""
    said = []
    if found.older:
        text = gettext(
            "A later version of the question set has the labels of “%(name)s”; here what experts found relevant then "
            "counts as a miss in the retrieval metrics."
        )
        said.append(text % {"name": found.name})
    if not found.unrated and not found.older:
        text = gettext("The pool of “%(name)s” is rated as a whole, but this version has the labels of before.")
        said.append(text % {"name": found.name})
    if found.unrated:
        text = ngettext(
            "%(count)d passage of the pool of “%(name)s” is unrated and counts as a miss in the retrieval metrics.",
            "%(count)d passages of the pool of “%(name)s” are unrated and count as misses in the retrieval metrics.",
            found.unrated,
        )
        said.append(text % {"count": found.unrated, "name": found.name})
    return " ".join(said)
