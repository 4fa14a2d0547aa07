"""What came of a repair: corrected figures by system and by two systems, and the ratings behind them as files."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from contrib.retrieval_truth.models import PassageRating, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.rating import CANNOT, card_of, newest_ratings
from evaluation.core.errors import Refused
from evaluation.formats.export import Cell, ExportFile, Exports, csv_chunks
from evaluation.models import User
from review.statistics.agreement.statistic import Array
from review.statistics.retrieval_truth.drawing import PassageDraw
from review.statistics.retrieval_truth.estimating import Corrected, estimate, first_relevant
from review.statistics.retrieval_truth.pool import Metric, Pool, figures


@dataclass(frozen=True, slots=True)
class RepairedFigure:
    """A corrected figure of ``system``, or of it minus ``minus``. ``before`` is the figure while passages without a
    label count as not relevant, as a run shows it. Without a value ``withheld`` says why."""

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
    """Hit and MRR at k of a system; left out (``None``) while the first relevant passage of ``undecided`` questions is
    not known."""

    system: str
    hit_at_k: float | None
    reciprocal_rank: float | None
    undecided: int


@dataclass(frozen=True, slots=True)
class RepairResult:
    """Everything that is told of a repair. ``target``: intervals are about this pool of these questions. ``cannot``
    counts passages that only *cannot judge* was said of. ``better`` and ``worse`` name the two systems of which nDCG
    tells one ahead, with the 5% held over all differences; empty where it cannot tell."""

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


def results_for(found: RetrievalRepair, reader: User) -> RepairResult:
    """The results for a lead.

    :raises Refused: what :func:`refuse_early` refuses.
    """
    refuse_early(found, reader)
    return results(found)


def refuse_early(found: RetrievalRepair, reader: User) -> None:
    """Nobody reads what others said before having said everything.

    :raises Refused: ``passages_left``, while the reader rates in the repair too and passages are left for them.
    """
    rates = found.closed_at is None and found.members.filter(reviewer=reader).exists()
    if rates and card_of(found, reader) is not None:
        raise Refused("passages_left")


def relevance(found: RetrievalRepair) -> tuple[dict[int, float], set[int]]:
    """The relevance of each rated passage by key, the mean over its raters, and the passages of which only *cannot
    judge* was said."""
    worth = {
        PassageRating.Grade.RELEVANT: 1.0,
        PassageRating.Grade.PARTLY: float(found.partly_counts),
        PassageRating.Grade.NOT: 0.0,
    }
    given: dict[int, list[float]] = defaultdict(list)
    touched = set()
    for (passage, _), row in newest_ratings(found).items():
        touched.add(passage)
        if row.grade != CANNOT:
            given[passage].append(worth[PassageRating.Grade(row.grade)])
    return {passage: math.fsum(all_of) / len(all_of) for passage, all_of in given.items()}, touched - set(given)


def results(found: RetrievalRepair) -> RepairResult:
    """The figures as they stand now."""
    rows = list(found.passages.order_by("pk").defer("text"))
    pool = pool_of(found, rows)
    drawn = draw_of(rows)
    known, unjudged = relevance(found)
    cannot = len(unjudged)
    rated = np.array([known.get(row.pk, math.nan) for row in rows])
    repaired = estimate(pool, drawn, rated, cannot=cannot)
    names = list(found.systems.order_by("position").values_list("name", flat=True))
    better, worse = _ahead(pool, drawn, rated, cannot, names)
    return RepairResult(
        repair=found.pk,
        name=found.name,
        k=found.k,
        partly_counts=found.partly_counts,
        target="this_run",
        recall_relative_to="pool",
        pooled=len(rows),
        unlabelled=repaired.unlabelled,
        drawn=repaired.drawn,
        rated=repaired.rated,
        cannot=cannot,
        questions=repaired.questions,
        with_relevant=repaired.with_relevant,
        better=better,
        worse=worse,
        figures=_figures(repaired.figures, _before(pool), names),
        first=[
            FirstFigure(names[one.system], one.hit, one.reciprocal_rank, one.undecided)
            for one in first_relevant(pool, rated)
        ],
    )


def pool_of(found: RetrievalRepair, rows: Sequence[PooledPassage]) -> Pool:
    """The stored pool for the statistics."""
    numbers = {question: at for at, question in enumerate(dict.fromkeys(row.question_id for row in rows))}
    return Pool(
        question=np.array([numbers[row.question_id] for row in rows], dtype=np.intp),
        ranks=np.array([row.ranks for row in rows], dtype=np.intp).T,
        known=np.array([math.nan if row.label is None else row.label for row in rows]),
        judge=np.array([math.nan if row.judge is None else row.judge for row in rows]),
        k=found.k,
    )


def draw_of(rows: Sequence[PooledPassage]) -> PassageDraw:
    """What is stored of the draw, aligned with the pool."""
    return PassageDraw(
        guess=np.array([row.guess for row in rows]),
        probability=np.array([row.probability for row in rows]),
        sampled=np.array([row.sampled for row in rows], dtype=bool),
    )


def _before(pool: Pool) -> Array:
    return by_labels(pool, np.nan_to_num(pool.known))


def by_labels(pool: Pool, known: Array) -> Array:
    """The figures by relevances that are taken for all there is, by metric, then by system and difference."""
    relevant = pool.sums(known)
    return figures(pool, known, np.maximum(relevant, 1.0), np.asarray(relevant > 0)).value.ravel()


def _figures(corrected: Sequence[Corrected], before: Array, names: Sequence[str]) -> list[RepairedFigure]:
    return [
        RepairedFigure(
            metric=one.metric.value,
            system=names[one.system],
            minus="" if one.other is None else names[one.other],
            before=float(was),
            value=one.value,
            low=one.low,
            high=one.high,
            method=one.method.value if one.method else "",
            withheld=one.withheld.value if one.withheld else "",
        )
        for one, was in zip(corrected, before, strict=True)
    ]


def _ahead(pool: Pool, drawn: PassageDraw, rated: Array, cannot: int, names: Sequence[str]) -> tuple[str, str]:
    """The system with the highest nDCG and the one it is farthest ahead of, where their interval, at 5% over all
    differences (Bonferroni), holds no 0."""
    differences = pool.systems * (pool.systems - 1) // 2
    told = estimate(pool, drawn, rated, 1.0 - 0.05 / max(1, differences), cannot=cannot).figures
    sure = []
    for one in told:
        if one.metric is Metric.NDCG and one.other is not None and one.low is not None and one.high is not None:
            if one.low > 0:
                sure.append((one.value or 0.0, names[one.system], names[one.other]))
            elif one.high < 0:
                sure.append((-(one.value or 0.0), names[one.other], names[one.system]))
    return max(sure)[1:] if sure else ("", "")


HEADER = (
    "question_id", "question", "chunk_id", "passage", "ranks", "label", "judge", "guess", "stratum", "probability",
    "drawn", "relevance", "ratings",
)  # fmt: skip


def export_repair(found: RetrievalRepair, format_name: str) -> ExportFile:
    """The figures (``json``) or the pool with its probabilities and ratings (``csv``).

    :raises UnknownName: for a format that is not among :data:`REPAIR_EXPORTS`.
    """
    return REPAIR_EXPORTS.write(format_name, f"retrieval-repair-{found.pk}", found)


def _csv(found: RetrievalRepair) -> Iterator[bytes]:
    return csv_chunks(HEADER, _rows(found))


def _rows(found: RetrievalRepair) -> Iterator[list[Cell]]:
    known, _ = relevance(found)
    said: dict[int, list[str]] = defaultdict(list)
    for rating in newest_ratings(found).values():
        said[rating.passage_id].append(f"{rating.rater.get_username()}: {rating.grade}")
    for row in found.passages.order_by("pk").select_related("question").iterator(chunk_size=500):
        ranks = " ".join(map(str, row.ranks))
        yield [
            row.question.external_id, row.question.text, row.chunk_id, row.text, ranks, row.label, row.judge, row.guess,
            row.stratum, row.probability, row.sampled, known.get(row.pk), "; ".join(sorted(said[row.pk])),
        ]  # fmt: skip


def _json(found: RetrievalRepair) -> Iterator[bytes]:
    yield json.dumps(asdict(results(found)), ensure_ascii=False, indent=1).encode()


REPAIR_EXPORTS = Exports("an export", {"json": _json, "csv": _csv})
