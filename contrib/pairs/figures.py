"""What people and judges prefer over a set of pairs, how far a judge agrees with the people, and the preferences as a
file, of which ``import_pairs`` reads JSON Lines."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import get_language

from contrib.pairs.making import card_of
from contrib.pairs.models import PairSet, Preference
from evaluation.core.errors import Refused
from evaluation.core.scales import Scale
from evaluation.formats.export import Cell, ExportFile, Exports, csv_chunks, json_lines, xlsx_bytes
from evaluation.judging.lexical import retold
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, User
from review.reports.exporting import in_language
from review.reports.item_export import chunk_ids_cell, contexts_of, passages_cell
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating
from review.statistics.paired_tests.paired import PairedDifference, paired_difference

SCALE = Scale.parse("-2..2")
REAL = Scale.parse("-2..2:real")


class Preferred(NamedTuple):
    """The preferences of one source over the pairs it has values for. ``mean`` is from -2 (A) to 2 (B) with its
    interval for questions like these; ``a``, ``b`` and ``ties`` count pairs by the sign of their mean value."""

    n: int
    mean: float | None
    low: float | None
    high: float | None
    a: int
    b: int
    ties: int
    failed: int


class PairFigures(NamedTuple):
    """One metric of a set. ``experts`` joins the people's means; ``judges`` by name, with the share of pairs on which
    its two orders named different sides (``None`` where orders are unknown) and its agreement with the people."""

    metric: str
    experts: Preferred
    raters: tuple[str, ...]
    among_experts: Mapping[str, Any]
    judges: Mapping[str, Preferred]
    disagreeing_orders: Mapping[str, float | None]
    agreement: Mapping[str, Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "experts": self.experts._asdict() | {"raters": list(self.raters), "agreement": dict(self.among_experts)},
            "judges": {
                name: self.judges[name]._asdict()
                | {"orders_disagree": self.disagreeing_orders[name], "agreement": dict(self.agreement[name])}
                for name in self.judges
            },
        }


def pair_figures(found: PairSet, *, resampling: Resampling | None = None) -> dict[str, PairFigures]:
    """The figures of every metric of the set, by name. Intervals of agreement only with ``resampling``."""
    groups: dict[Hashable, Hashable] = dict(found.pairs.values_list("pk", "question_text"))  # not independent within
    by_metric: dict[str, list[Preference]] = {}
    for row in counting(found):
        by_metric.setdefault(row.metric, []).append(row)
    return {metric: _figures(metric, rows, groups, resampling) for metric, rows in sorted(by_metric.items())}


def figures_for(found: PairSet, reader: User, *, resampling: Resampling | None = None) -> dict[str, PairFigures]:
    """The figures for a lead.

    :raises Refused: what :func:`refuse_early` refuses.
    """
    refuse_early(found, reader)
    return pair_figures(found, resampling=resampling)


def refuse_early(found: PairSet, reader: User) -> None:
    """Nobody reads what others said before having said everything.

    :raises Refused: ``pairs_left``, while the reader rates in the comparison too and has pairs left.
    """
    rates = found.closed_at is None and found.members.filter(reviewer=reader).exists()
    if rates and card_of(found, reader) is not None:
        raise Refused("pairs_left")


def counting(found: PairSet) -> QuerySet[Preference]:
    """The preferences that count, each of its origin's newest round, in the order of the pairs."""
    newer = Preference.objects.filter(origin=OuterRef("origin"), round__gt=OuterRef("round"))
    rows = Preference.objects.filter(~Exists(newer), pair__pair_set=found)
    return rows.select_related("rater").order_by("pair__position", "id")


def _figures(
    metric: str, rows: Sequence[Preference], groups: Mapping[Hashable, Hashable], resampling: Resampling | None
) -> PairFigures:
    people = [(row, row.value) for row in rows if not row.by_judge and row.value is not None]
    given: dict[int, list[float]] = {}
    for row, value in people:
        given.setdefault(row.pair_id, []).append(value)
    means = {pair: math.fsum(values) / len(values) for pair, values in given.items()}
    judges: dict[str, list[Preference]] = {}
    for row in rows:
        if row.by_judge:
            judges.setdefault(row.author, []).append(row)
    ratings = [Rating(row.pair_id, who(row), value) for row, value in people]
    among = compare_experts(ratings, SCALE, groups=groups, resampling=resampling).to_dict() if ratings else {}
    return PairFigures(
        metric=metric,
        experts=_preferred(means, groups, sum(1 for row in rows if not row.by_judge and row.value is None)),
        raters=tuple(sorted({who(row) for row, _ in people})),
        among_experts=among,
        judges={name: _judged(said, groups) for name, said in sorted(judges.items())},
        disagreeing_orders={name: _disagreeing(said) for name, said in judges.items()},
        agreement={name: _agreement(said, means, groups, resampling) for name, said in judges.items()},
    )


def who(row: Preference) -> str:
    """The user name of a person, else the author's label."""
    return row.rater.username if row.rater else row.author


def _judged(said: Sequence[Preference], groups: Mapping[Hashable, Hashable]) -> Preferred:
    values = {row.pair_id: row.value for row in said if row.value is not None}
    return _preferred(values, groups, sum(row.value is None for row in said))


def _preferred(values: Mapping[int, float], groups: Mapping[Hashable, Hashable], failed: int) -> Preferred:
    found: PairedDifference | None = paired_difference(
        values, dict.fromkeys(values, 0.0), {pair: groups[pair] for pair in values}, limit=2.0
    )
    if found is None:
        return Preferred(0, None, None, None, 0, 0, 0, failed)
    return Preferred(found.n, found.value, found.low, found.high, found.losses, found.wins, found.ties, failed)


def _disagreeing(said: Sequence[Preference]) -> float | None:
    told = [row.detail["orders_disagree"] for row in said if "orders_disagree" in row.detail and row.value is not None]
    return sum(told) / len(told) if told else None


def _agreement(
    said: Sequence[Preference],
    means: Mapping[int, float],
    groups: Mapping[Hashable, Hashable],
    resampling: Resampling | None,
) -> dict[str, Any]:
    """Of the judge with the people's means; a judge that gives numbers between the levels has no level statistics."""
    values = {row.pair_id: row.value for row in said}
    keys = list(means)
    scale = SCALE if all(value is None or value == round(value) for value in values.values()) else REAL
    by_group = replace(resampling, groups=[groups[key] for key in keys]) if resampling else None
    found = compare([values.get(key) for key in keys], [means[key] for key in keys], scale, resampling=by_group)
    return found.to_dict()


HEADER = (
    "pair_id", "question", "reference_answer",
    "system_a", "answer_a", "contexts_a", "chunk_ids_a", "system_b", "answer_b", "contexts_b", "chunk_ids_b",
    "metric", "rater", "author", "value", "reason", "created",
)  # fmt: skip


def export_pairs(found: PairSet, format_name: str) -> ExportFile:
    """The preferences in a format.

    :raises UnknownName: for a format that is not among :data:`PAIR_EXPORTS`.
    """
    made = PAIR_EXPORTS.write(format_name, f"pairs-{found.pk}", found)
    return replace(made, chunks=in_language(made.chunks, get_language()))


def _rows(found: PairSet) -> Iterator[dict[str, Any]]:
    rows = counting(found).select_related("pair__answer_a", "pair__answer_b")
    passages = ("pair__answer_a__contexts", "pair__answer_b__contexts")
    for row in rows.prefetch_related(*passages).iterator(chunk_size=500):
        pair = row.pair
        yield {
            "pair_id": pair.external_id,
            "question": pair.question_text,
            "reference_answer": pair.reference,
            "answer_a": _side(pair.system_a, pair.text_a, pair.answer_a),
            "answer_b": _side(pair.system_b, pair.text_b, pair.answer_b),
            "metric": row.metric,
            "rater": "judge" if row.by_judge else "human",
            "author": who(row),
            "value": row.value,
            "reason": row.failure if row.value is None else row.reason,
            "created": row.created_at.isoformat(),
        }


def _side(system: str, text: str, answer: Answer | None) -> dict[str, Any]:
    """The answer as it was compared, with the passages where it is a run's; imported pairs have none."""
    contexts = contexts_of(answer, with_scores=True) if answer else None
    return {"system": system, "answer": text} | ({} if contexts is None else {"contexts": contexts})


def _table(found: PairSet) -> tuple[tuple[str, ...], Iterator[list[Cell]]]:
    return HEADER, (_cells(row) for row in _rows(found))


def _cells(row: dict[str, Any]) -> list[Cell]:
    sides: dict[str, Cell] = {}
    for side in ("a", "b"):
        answer = row[f"answer_{side}"]
        contexts = answer.get("contexts")
        sides |= {f"system_{side}": answer["system"], f"answer_{side}": answer["answer"]}
        sides |= {f"contexts_{side}": passages_cell(contexts), f"chunk_ids_{side}": chunk_ids_cell(contexts)}
    flat = row | sides
    return [flat[name] for name in HEADER]


def _csv(found: PairSet) -> Iterator[bytes]:
    return csv_chunks(*_table(found))


def _xlsx(found: PairSet) -> Iterator[bytes]:
    """For people, so the offline baseline's reasons and codes are in their language; files for programs keep them."""
    rows = (_cells(row | {"reason": _readable(row)}) for row in _rows(found))
    yield xlsx_bytes({"pairs": (HEADER, rows)})


def _readable(row: Mapping[str, Any]) -> str:
    said = str(row["reason"])
    if row["rater"] == "human":
        return said
    return explain_reason(said) if row["value"] is None else retold(said, get_language() or "en")


def _jsonl(found: PairSet) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(_rows(found)))


PAIR_EXPORTS = Exports("an export", {"csv": _csv, "xlsx": _xlsx, "jsonl": _jsonl})
