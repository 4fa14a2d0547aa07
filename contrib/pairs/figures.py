"""Figures of preferences: those of people and judges, their agreement, and exports, of which ``import_pairs`` reads
JSON Lines."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import get_language

from contrib.pairs.models import PairSet, Preference
from contrib.pairs.services import pair_card
from evaluation.core.errors import DomainError
from evaluation.core.scales import Scale
from evaluation.formats.export import CellValue, ExportFile, Exports, csv_chunks, json_lines, xlsx_bytes
from evaluation.judging.lexical import translate_reason
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, User
from review.reports.exports import in_language
from review.reports.item_export import chunk_ids_cell, context_records, passages_cell
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating
from review.statistics.paired_tests.paired import PairedDifference, paired_difference

SCALE = Scale.parse("-2..2")
REAL = Scale.parse("-2..2:real")


class PreferenceSummary(NamedTuple):
    """Preferences of one source over the pairs with a value. ``mean`` runs from -2 (A) to 2 (B), with its interval for
    questions like these; ``a``, ``b`` and ``ties`` count pairs by the sign of their mean value."""

    n: int
    mean: float | None
    low: float | None
    high: float | None
    a: int
    b: int
    ties: int
    failed: int


class PairFigures(NamedTuple):
    """Figures of one metric. ``experts`` joins the people's means. By judge: its preferences, the share of pairs on
    which its two orders disagree (``None`` if unknown), and its agreement with the people."""

    metric: str
    experts: PreferenceSummary
    raters: tuple[str, ...]
    among_experts: Mapping[str, Any]
    judges: Mapping[str, PreferenceSummary]
    disagreeing_orders: Mapping[str, float | None]
    agreement: Mapping[str, Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "experts": self.experts._asdict() | {"raters": list(self.raters), "agreement": dict(self.among_experts)},
            "judges": {
                name: self.judges[name]._asdict()
                | {"orders_disagree": self.disagreeing_orders[name], "agreement": dict(self.agreement[name])}
                for name in self.judges
            },
        }


def pair_figures(pair_set: PairSet, *, resampling: Resampling | None = None) -> dict[str, PairFigures]:
    """Figures of every metric of the set, by name. Intervals of agreement need ``resampling``."""
    # Pairs of one question are not independent.
    groups: dict[Hashable, Hashable] = dict(pair_set.pairs.values_list("pk", "question_text"))
    by_metric: dict[str, list[Preference]] = {}
    for row in counting_preferences(pair_set):
        by_metric.setdefault(row.metric, []).append(row)
    return {metric: _metric_figures(metric, rows, groups, resampling) for metric, rows in sorted(by_metric.items())}


def figures_for(pair_set: PairSet, reader: User, *, resampling: Resampling | None = None) -> dict[str, PairFigures]:
    """Figures of the set for a lead.

    :raises DomainError: as :func:`require_all_rated`."""
    require_all_rated(pair_set, reader)
    return pair_figures(pair_set, resampling=resampling)


def require_all_rated(pair_set: PairSet, reader: User) -> None:
    """Check that the reader has rated all pairs before reading preferences of others.

    :raises DomainError: ``pairs_left`` if the reader rates in the comparison and has pairs left."""
    # Closed or not: whoever closes a comparison may reopen it and go on rating.
    is_rater = pair_set.members.filter(reviewer=reader).exists()
    if is_rater and pair_card(pair_set, reader) is not None:
        raise DomainError("pairs_left")


def counting_preferences(pair_set: PairSet) -> QuerySet[Preference]:
    """Preferences of each origin's newest round, in the order of the pairs."""
    newer_rounds = Preference.objects.filter(origin=OuterRef("origin"), round__gt=OuterRef("round"))
    rows = Preference.objects.filter(~Exists(newer_rounds), pair__pair_set=pair_set)
    return rows.select_related("rater").order_by("pair__position", "id")


def _metric_figures(
    metric: str, rows: Sequence[Preference], groups: Mapping[Hashable, Hashable], resampling: Resampling | None
) -> PairFigures:
    expert_values = [(row, row.value) for row in rows if not row.by_judge and row.value is not None]
    values_by_pair: dict[int, list[float]] = {}
    for row, value in expert_values:
        values_by_pair.setdefault(row.pair_id, []).append(value)
    means = {pair: math.fsum(values) / len(values) for pair, values in values_by_pair.items()}
    rows_by_judge: dict[str, list[Preference]] = {}
    for row in rows:
        if row.by_judge:
            rows_by_judge.setdefault(row.author, []).append(row)
    ratings = [Rating(row.pair_id, rater_name(row), value) for row, value in expert_values]
    expert_agreement = (
        compare_experts(ratings, SCALE, groups=groups, resampling=resampling).to_dict() if ratings else {}
    )
    return PairFigures(
        metric=metric,
        experts=_summarize(means, groups, sum(1 for row in rows if not row.by_judge and row.value is None)),
        raters=tuple(sorted({rater_name(row) for row, _ in expert_values})),
        among_experts=expert_agreement,
        judges={name: _judge_summary(judge_rows, groups) for name, judge_rows in sorted(rows_by_judge.items())},
        disagreeing_orders={name: _disagreement_share(judge_rows) for name, judge_rows in rows_by_judge.items()},
        agreement={
            name: _agreement(judge_rows, means, groups, resampling) for name, judge_rows in rows_by_judge.items()
        },
    )


def rater_name(row: Preference) -> str:
    """User name of a person, else the author's label."""
    return row.rater.username if row.rater else row.author


def _judge_summary(judge_rows: Sequence[Preference], groups: Mapping[Hashable, Hashable]) -> PreferenceSummary:
    values = {row.pair_id: row.value for row in judge_rows if row.value is not None}
    return _summarize(values, groups, sum(row.value is None for row in judge_rows))


def _summarize(values: Mapping[int, float], groups: Mapping[Hashable, Hashable], failed: int) -> PreferenceSummary:
    difference: PairedDifference | None = paired_difference(
        values, dict.fromkeys(values, 0.0), {pair: groups[pair] for pair in values}, limit=2.0
    )
    if difference is None:
        return PreferenceSummary(0, None, None, None, 0, 0, 0, failed)
    return PreferenceSummary(
        difference.n,
        difference.value,
        difference.low,
        difference.high,
        difference.losses,
        difference.wins,
        difference.ties,
        failed,
    )


def _disagreement_share(judge_rows: Sequence[Preference]) -> float | None:
    flags = [
        row.detail["orders_disagree"] for row in judge_rows if "orders_disagree" in row.detail and row.value is not None
    ]
    return sum(flags) / len(flags) if flags else None


def _agreement(
    judge_rows: Sequence[Preference],
    means: Mapping[int, float],
    groups: Mapping[Hashable, Hashable],
    resampling: Resampling | None,
) -> dict[str, Any]:
    """Agreement of the judge with the people's means; without level statistics if the judge gives values between
    levels."""
    values = {row.pair_id: row.value for row in judge_rows}
    keys = list(means)
    scale = SCALE if all(value is None or value == round(value) for value in values.values()) else REAL
    by_group = replace(resampling, groups=[groups[key] for key in keys]) if resampling else None
    comparison = compare([values.get(key) for key in keys], [means[key] for key in keys], scale, resampling=by_group)
    return comparison.to_dict()


HEADER = (
    "pair_id", "question", "reference_answer",
    "system_a", "answer_a", "contexts_a", "chunk_ids_a", "system_b", "answer_b", "contexts_b", "chunk_ids_b",
    "metric", "rater", "author", "value", "reason", "created",
)  # fmt: skip


def export_pairs(pair_set: PairSet, format_name: str) -> ExportFile:
    """Export the preferences in a format.

    :raises UnknownName: for a format outside :data:`PAIR_EXPORTS`."""
    export_file = PAIR_EXPORTS.write(format_name, f"pairs-{pair_set.pk}", pair_set)
    return replace(export_file, chunks=in_language(export_file.chunks, get_language()))


def _export_rows(pair_set: PairSet) -> Iterator[dict[str, Any]]:
    rows = counting_preferences(pair_set).select_related("pair__answer_a", "pair__answer_b")
    passages = ("pair__answer_a__contexts", "pair__answer_b__contexts")
    for row in rows.prefetch_related(*passages).iterator(chunk_size=500):
        pair = row.pair
        yield {
            "pair_id": pair.external_id,
            "question": pair.question_text,
            "reference_answer": pair.reference,
            "answer_a": _answer_json(pair.system_a, pair.text_a, pair.answer_a),
            "answer_b": _answer_json(pair.system_b, pair.text_b, pair.answer_b),
            "metric": row.metric,
            "rater": "judge" if row.by_judge else "human",
            "author": rater_name(row),
            "value": row.value,
            "reason": row.failure if row.value is None else row.reason,
            "created": row.created_at.isoformat(),
        }


def _answer_json(system: str, text: str, answer: Answer | None) -> dict[str, Any]:
    """The answer as compared, with the passages of a run's answer; imported pairs have none."""
    contexts = context_records(answer, with_scores=True) if answer else None
    return {"system": system, "answer": text} | ({} if contexts is None else {"contexts": contexts})


def _table(pair_set: PairSet) -> tuple[tuple[str, ...], Iterator[list[CellValue]]]:
    return HEADER, (_cells(row) for row in _export_rows(pair_set))


def _cells(row: dict[str, Any]) -> list[CellValue]:
    sides: dict[str, CellValue] = {}
    for side in ("a", "b"):
        answer = row[f"answer_{side}"]
        contexts = answer.get("contexts")
        sides |= {f"system_{side}": answer["system"], f"answer_{side}": answer["answer"]}
        sides |= {f"contexts_{side}": passages_cell(contexts), f"chunk_ids_{side}": chunk_ids_cell(contexts)}
    flat = row | sides
    return [flat[name] for name in HEADER]


def _csv(pair_set: PairSet) -> Iterator[bytes]:
    return csv_chunks(*_table(pair_set))


def _xlsx(pair_set: PairSet) -> Iterator[bytes]:
    """Export for people: reasons of the baseline and reason codes are translated. Files for programs keep them."""
    rows = (_cells(row | {"reason": _readable_reason(row)}) for row in _export_rows(pair_set))
    yield xlsx_bytes({"pairs": (HEADER, rows)})


def _readable_reason(row: Mapping[str, Any]) -> str:
    reason = str(row["reason"])
    if row["rater"] == "human":
        return reason
    return explain_reason(reason) if row["value"] is None else translate_reason(reason, get_language() or "en")


def _jsonl(pair_set: PairSet) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(_export_rows(pair_set)))


PAIR_EXPORTS = Exports("an export", {"csv": _csv, "xlsx": _xlsx, "jsonl": _jsonl})
