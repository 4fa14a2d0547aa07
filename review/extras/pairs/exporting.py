"""What was preferred in a comparison as a file: one row for each preference that counts, with its reason. JSON Lines is
the form that ``import_pairs`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluation.files.export import Cell, csv_chunks, json_lines, xlsx_bytes
from evaluation.files.formats import ExportFile, Exports
from evaluation.models import Answer
from review.extras.pairs.figures import counting, who
from review.models import PairSet, Preference
from review.reports.item_export import chunk_ids_cell, passages_cell
from review.reports.item_records import contexts_of

HEADER = (
    "pair_id", "question", "reference_answer",
    "system_a", "answer_a", "contexts_a", "chunk_ids_a", "system_b", "answer_b", "contexts_b", "chunk_ids_b",
    "metric", "rater", "author", "value", "reason", "created",
)  # fmt: skip


def export_pairs(found: PairSet, format_name: str) -> ExportFile:
    """The preferences in a format.

    :raises UnknownName: for a format that is not among :data:`PAIR_EXPORTS`.
    """
    return PAIR_EXPORTS.write(format_name, f"pairs-{found.pk}", found)


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
            "reason": _why(row),
            "created": row.created_at.isoformat(),
        }


def _side(system: str, text: str, answer: Answer | None) -> dict[str, Any]:
    """The answer as it was compared, with the passages where it is a run's; imported pairs have none."""
    contexts = contexts_of(answer, with_scores=True) if answer else None
    return {"system": system, "answer": text} | ({} if contexts is None else {"contexts": contexts})


def _why(row: Preference) -> str:
    return row.reason if row.value is not None else row.failure


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
    yield xlsx_bytes({"pairs": _table(found)})


def _jsonl(found: PairSet) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(_rows(found)))


PAIR_EXPORTS = Exports("an export", {"csv": _csv, "xlsx": _xlsx, "jsonl": _jsonl})
