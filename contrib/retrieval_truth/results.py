"""Results of a repair: corrected figures by system and by pair of systems, and exports."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from contrib.retrieval_truth.models import PassageRating, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.rating import CANNOT_JUDGE, latest_ratings, next_card
from evaluation.core.errors import DomainError
from evaluation.formats.export import CellValue, ExportFile, Exports, csv_chunks
from evaluation.models import User
from review.statistics.agreement.statistic import Array
from review.statistics.retrieval_truth.draw import PassageDraw
from review.statistics.retrieval_truth.estimates import CorrectedFigure, estimate, first_relevant_figures
from review.statistics.retrieval_truth.pool import Pool, RetrievalMetric, pool_figures


@dataclass(frozen=True, slots=True)
class RepairedFigure:
    """A corrected figure of ``system``, or of its difference from ``minus``.

    ``before`` is the figure by labels only, which counts unlabelled passages as not relevant, as in a run. Without a
    value, ``withheld`` is the reason."""

    metric: str
    system: str
    minus: str
    before: float
    value: float | None
    low: float | None
    high: float | None
    method: str
    withheld: str


@dataclass(frozen=True, slots=True)
class FirstFigure:
    """Hit and MRR at k of a system; ``None`` while the first relevant passage of ``undecided`` questions is unknown."""

    system: str
    hit_at_k: float | None
    reciprocal_rank: float | None
    undecided: int


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Results of a repair.

    ``target``: intervals refer to this pool of these questions. ``cannot`` counts passages with only *cannot judge*
    ratings. ``better`` and ``worse`` name two systems whose nDCG differs significantly, at 5% over all differences;
    empty without such a pair."""

    repair: int
    name: str
    k: int
    partly_counts: bool
    target: str
    recall_relative_to: str
    pooled: int
    unlabelled: int
    drawn: int
    rated: int
    cannot: int
    questions: int
    with_relevant: int
    better: str
    worse: str
    figures: list[RepairedFigure]
    first: list[FirstFigure]


def results_for(repair: RetrievalRepair, reader: User) -> RepairResult:
    """Return the results for a lead.

    :raises DomainError: see :func:`refuse_unfinished_rater`."""
    refuse_unfinished_rater(repair, reader)
    return compute_results(repair)


def refuse_unfinished_rater(repair: RetrievalRepair, reader: User) -> None:
    """Refuse a reader who still has passages to rate, so that others' ratings do not influence them.

    :raises DomainError: ``passages_left``."""
    # Closed or not: whoever closes a repair may reopen it and go on rating.
    is_rater = repair.members.filter(reviewer=reader).exists()
    if is_rater and next_card(repair, reader) is not None:
        raise DomainError("passages_left")


def relevance(repair: RetrievalRepair) -> tuple[dict[int, float], set[int]]:
    """Return the mean relevance of each rated passage by id, and the passages with only *cannot judge* ratings."""
    grade_values = {
        PassageRating.Grade.RELEVANT: 1.0,
        PassageRating.Grade.PARTLY: float(repair.partly_counts),
        PassageRating.Grade.NOT: 0.0,
    }
    grades: dict[int, list[float]] = defaultdict(list)
    rated_passages = set()
    for (passage, _), row in latest_ratings(repair).items():
        rated_passages.add(passage)
        if row.grade != CANNOT_JUDGE:
            grades[passage].append(grade_values[PassageRating.Grade(row.grade)])
    return {passage: math.fsum(values) / len(values) for passage, values in grades.items()}, rated_passages - set(
        grades
    )


def compute_results(repair: RetrievalRepair) -> RepairResult:
    """Compute the current figures."""
    rows = list(repair.passages.order_by("pk").defer("text"))
    pool = load_pool(repair, rows)
    draw = load_draw(rows)
    relevances, unjudged = relevance(repair)
    cannot = len(unjudged)
    rated = np.array([relevances.get(row.pk, math.nan) for row in rows])
    estimates = estimate(pool, draw, rated, unjudgeable=cannot)
    names = list(repair.systems.order_by("position").values_list("name", flat=True))
    better, worse = _leading_pair(pool, draw, rated, cannot, names)
    return RepairResult(
        repair=repair.pk,
        name=repair.name,
        k=repair.k,
        partly_counts=repair.partly_counts,
        target="this_run",
        recall_relative_to="pool",
        pooled=len(rows),
        unlabelled=estimates.unlabelled,
        drawn=estimates.drawn,
        rated=estimates.rated,
        cannot=cannot,
        questions=estimates.questions,
        with_relevant=estimates.with_relevant,
        better=better,
        worse=worse,
        figures=_figures(estimates.figures, _label_figures(pool), names),
        first=[
            FirstFigure(names[figure.system], figure.hit, figure.reciprocal_rank, figure.undecided)
            for figure in first_relevant_figures(pool, rated)
        ],
    )


def load_pool(repair: RetrievalRepair, rows: Sequence[PooledPassage]) -> Pool:
    """Convert the stored pool to arrays."""
    numbers = {question: index for index, question in enumerate(dict.fromkeys(row.question_id for row in rows))}
    return Pool(
        question=np.array([numbers[row.question_id] for row in rows], dtype=np.intp),
        ranks=np.array([row.ranks for row in rows], dtype=np.intp).T,
        known=np.array([math.nan if row.label is None else row.label for row in rows]),
        judge=np.array([math.nan if row.judge is None else row.judge for row in rows]),
        k=repair.k,
    )


def load_draw(rows: Sequence[PooledPassage]) -> PassageDraw:
    """Convert the stored draw to arrays, aligned with the pool."""
    return PassageDraw(
        guess=np.array([row.guess for row in rows]),
        probability=np.array([row.probability for row in rows]),
        sampled=np.array([row.sampled for row in rows], dtype=bool),
    )


def _label_figures(pool: Pool) -> Array:
    return figures_from_labels(pool, np.nan_to_num(pool.known))


def figures_from_labels(pool: Pool, relevances: Array) -> Array:
    """Compute figures from complete relevances, by metric, then by system and difference."""
    relevant = pool.sums(relevances)
    return pool_figures(pool, relevances, np.maximum(relevant, 1.0), np.asarray(relevant > 0)).value.ravel()


def _figures(corrected: Sequence[CorrectedFigure], label_figures: Array, names: Sequence[str]) -> list[RepairedFigure]:
    return [
        RepairedFigure(
            metric=figure.metric.value,
            system=names[figure.system],
            minus="" if figure.other is None else names[figure.other],
            before=float(label_value),
            value=figure.value,
            low=figure.low,
            high=figure.high,
            method=figure.method.value if figure.method else "",
            withheld=figure.withheld.value if figure.withheld else "",
        )
        for figure, label_value in zip(corrected, label_figures, strict=True)
    ]


def _leading_pair(pool: Pool, draw: PassageDraw, rated: Array, cannot: int, names: Sequence[str]) -> tuple[str, str]:
    """Return the systems with the largest significant difference in nDCG, the better one first; empty strings without
    one.

    Intervals hold 5% over all differences (Bonferroni)."""
    differences = pool.systems * (pool.systems - 1) // 2
    corrected = estimate(pool, draw, rated, 1.0 - 0.05 / max(1, differences), unjudgeable=cannot).figures
    leads = []
    for difference in corrected:
        if (
            difference.metric is RetrievalMetric.NDCG
            and difference.other is not None
            and difference.low is not None
            and difference.high is not None
        ):
            if difference.low > 0:
                leads.append((difference.value or 0.0, names[difference.system], names[difference.other]))
            elif difference.high < 0:
                leads.append((-(difference.value or 0.0), names[difference.other], names[difference.system]))
    return max(leads)[1:] if leads else ("", "")


HEADER = (
    "question_id", "question", "chunk_id", "passage", "ranks", "label", "judge", "guess", "stratum", "probability",
    "drawn", "relevance", "ratings",
)  # fmt: skip


def export_repair(repair: RetrievalRepair, format_name: str) -> ExportFile:
    """Export the figures (``json``) or the pool with probabilities and ratings (``csv``).

    :raises UnknownName: for a format that is not among :data:`REPAIR_EXPORTS`."""
    return REPAIR_EXPORTS.write(format_name, f"retrieval-repair-{repair.pk}", repair)


def _csv(repair: RetrievalRepair) -> Iterator[bytes]:
    return csv_chunks(HEADER, _rows(repair))


def _rows(repair: RetrievalRepair) -> Iterator[list[CellValue]]:
    relevances, _ = relevance(repair)
    ratings_by_passage: dict[int, list[str]] = defaultdict(list)
    for rating in latest_ratings(repair).values():
        ratings_by_passage[rating.passage_id].append(f"{rating.rater.get_username()}: {rating.grade}")
    for row in repair.passages.order_by("pk").select_related("question").iterator(chunk_size=500):
        ranks = " ".join(map(str, row.ranks))
        yield [
            row.question.external_id, row.question.text, row.chunk_id, row.text, ranks, row.label, row.judge, row.guess,
            row.stratum, row.probability, row.sampled, relevances.get(row.pk),
            "; ".join(sorted(ratings_by_passage[row.pk])),
        ]  # fmt: skip


def _json(repair: RetrievalRepair) -> Iterator[bytes]:
    yield json.dumps(asdict(compute_results(repair)), ensure_ascii=False, indent=1).encode()


REPAIR_EXPORTS = Exports("an export", {"json": _json, "csv": _csv})
