"""Export of a queue's items: one row per item (CSV, XLSX), JSON Lines, or Label Studio tasks and interface.

Reviewers get only their own rated items and ratings, without judge and effective values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.utils.translation import get_language

from evaluation.formats.export import (
    CellValue,
    ExportFile,
    Exports,
    csv_chunks,
    json_lines,
    write_atomically,
    xlsx_bytes,
)
from evaluation.formats.label_studio import Control, build_task, labelling_config
from evaluation.messages.explanations import explain_reason
from evaluation.models import Answer, Run, User
from review.evidence.effective import EffectiveValue, effective_values
from review.evidence.experts import is_standing
from review.evidence.scorers import AnswerMetricKey
from review.evidence.seals import readable
from review.models import Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.card import card_metrics
from review.ratings.item_state import RATED
from review.ratings.submitting import queue_metrics
from review.reports.exports import in_language
from review.reports.figure import plain

BATCH = 200


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item for export: facts, effective values by metric (empty for reviewers), and counting ratings.

    Each reviewer's newest rating of a phase counts. ``answer_id``, ``run`` and ``system`` are empty for reviewers if
    the queue hides the system: consecutive ids tell which answers share one."""

    answer_id: int
    facts: dict[str, Any]
    effective: Mapping[str, EffectiveValue]
    ratings: Sequence[dict[str, Any]]


def metric_names(queue: ReviewQueue) -> list[str]:
    return list(queue.metrics.order_by("position", "pk").values_list("metric__name", flat=True))


def reviewer_names(queue: ReviewQueue, reviewer: User | None = None) -> list[str]:
    """User names of everybody who may rate or has rated in the queue, or only the given reviewer."""
    if reviewer is not None:
        return [reviewer.get_username()]
    members = set(queue.members.values_list("reviewer__username", flat=True))
    rated = Rating.objects.filter(assignment__item__queue=queue).values_list("reviewer__username", flat=True)
    return sorted(members | set(rated.distinct()))


def item_records(queue: ReviewQueue, reviewer: User | None = None) -> Iterator[ItemRecord]:
    """Yield items on their first occasion, by question, in constant memory. ``reviewer`` limits them to that user's
    view.

    Answers to one question come in random order: that of their ids would tell which of two systems answered first."""
    rows = queue.items.filter(occasion=FIRST_OCCASION)
    if reviewer is not None:
        rows = rows.filter(assignments__reviewer=reviewer, assignments__state__in=RATED)
    ids = list(rows.order_by("answer__question__position", "pk").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        yield from _batch(queue, ids[start : start + BATCH], reviewer)


def _batch(queue: ReviewQueue, ids: Sequence[int], reviewer: User | None) -> Iterator[ItemRecord]:
    related = ("answer__question", "answer__answer_set__system_version__system", "run")
    rows = ReviewItem.objects.filter(pk__in=ids).select_related(*related).prefetch_related("answer__contexts")
    items = {item.pk: item for item in rows}
    values = {} if reviewer is not None else _values(items.values())
    ratings = _ratings(queue, [item.answer_id for item in items.values()], reviewer)
    for pk in ids:
        if (item := items.get(pk)) is not None:
            run, answer = item.run_id, item.answer_id
            effective = {
                name: value for (run_id, key), (name, value) in values.items() if run_id == run and key[0] == answer
            }
            yield ItemRecord(answer, _facts(item, queue, reviewer), effective, ratings.get(answer, []))


def _facts(item: ReviewItem, queue: ReviewQueue, reviewer: User | None) -> dict[str, Any]:
    answer, question = item.answer, item.answer.question.read()
    hidden = reviewer is not None and queue.hide_system
    return {
        "item": item.pk,
        "state": item.state,
        "answer_id": None if hidden else answer.pk,
        "run": None if hidden else item.run_id,
        "system": "" if hidden else str(answer.answer_set.system_version),
        "question_id": question.id,
        "sample": answer.sample,
        "category": question.category,
        "difficulty": question.difficulty,
        "tags": list(question.tags),
        "question": question.text,
        "references": list(question.references),
        "answer": answer.text,
        "contexts": context_records(answer, with_scores=reviewer is None),
    }


def _values(items: Any) -> dict[tuple[int, AnswerMetricKey], tuple[str, EffectiveValue]]:
    """Map run and key to metric name and effective value."""
    by_run: dict[Run, set[int]] = {}
    for item in items:
        by_run.setdefault(item.run, set()).add(item.answer_id)
    effective_by_key = {}
    for run, answers in by_run.items():
        values = effective_values(run, answers)
        for metric, by_answer in values.values.items():
            for answer, effective in by_answer.items():
                effective_by_key[run.pk, (answer, metric)] = (values.metrics[metric].name, effective)
    return effective_by_key


def _ratings(queue: ReviewQueue, answers: Sequence[int], reviewer: User | None) -> dict[int, list[dict[str, Any]]]:
    """Ratings in this queue by answer: the newest per reviewer, metric, phase and occasion."""
    rows = Rating.objects.filter(is_standing(), assignment__item__queue=queue, answer__in=answers)
    rows = readable(rows) if reviewer is None else rows.filter(reviewer=reviewer)
    newest: dict[tuple[int, int, str], Rating] = {}
    related = ("metric", "reviewer", "assignment__item")
    for row in rows.select_related(*related).prefetch_related("rated_parts").order_by("seq", "pk"):
        newest[row.assignment_id or 0, row.metric_id, row.phase] = row
    ratings: dict[int, list[dict[str, Any]]] = {}
    for row in newest.values():
        ratings.setdefault(row.answer_id, []).append(_rating_json(row))
    return ratings


def _rating_json(row: Rating) -> dict[str, Any]:
    """A rating as JSON. ``repeat`` marks a hidden repeat."""
    assignment, part_fields = row.assignment, ("kind", "text", "verdict", "context", "added")
    parts = [{name: getattr(part, name) for name in part_fields} for part in row.rated_parts.all()]
    return {
        "metric": row.metric.name,
        "reviewer": row.reviewer.get_username() if row.reviewer else row.author,
        "phase": row.phase,
        "repeat": assignment is not None and assignment.item.occasion > FIRST_OCCASION,
        **{name: getattr(row, name) for name in ("value", "label", "cannot_judge", "blind", "reason_code", "comment")},
        "parts": row.parts or parts or None,
        "at": row.created_at.isoformat(),
    }


def context_records(answer: Answer, *, with_scores: bool) -> tuple[Mapping[str, Any], ...] | None:
    """Passages of an answer in the system's order, or ``None`` if the system does not retrieve."""
    if not answer.retrieves:
        return None
    rows = sorted(answer.contexts.all(), key=lambda row: row.position)
    return tuple(
        {"chunk_id": row.chunk_id, "source": row.source, "text": row.text}
        | ({"score": row.score} if with_scores else {})
        for row in rows
    )


IDS = ("item", "state", "answer_id", "run", "system", "question_id", "sample", "category", "difficulty")
TEXTS = ("question", "references", "answer", "contexts", "chunk_ids")
PER_METRIC = ("authoritative", "source", "judge", "judge_status", "judge_reason")
PER_REVIEWER = ("initial", "final", "repeat", "comment")
Contexts = Sequence[Mapping[str, Any]]


def export_items(queue: ReviewQueue, format_name: str, reviewer: User | None = None) -> ExportFile:
    """Export the queue's items. ``reviewer`` limits them to that user's view.

    :raises UnknownName: for a format that is not in :data:`ITEM_EXPORTS`."""
    export = ITEM_EXPORTS.write(format_name, f"queue-{queue.pk}", queue, reviewer)
    return replace(export, chunks=in_language(export.chunks, get_language()))


def export_items_to(queue: ReviewQueue, path: Path, format_name: str = "") -> None:
    """Write items to a file, completely or not at all. By default the file extension determines the format.

    :raises UnknownName: for an unknown format or extension.
    :raises OSError: if the file cannot be written."""
    write_atomically(path, export_items(queue, format_name or ITEM_EXPORTS.format_for_path(path)).chunks)


def item_header(metrics: Sequence[str], reviewers: Sequence[str], *, for_reviewer: bool) -> list[str]:
    """Columns: ids and texts, then per metric the effective and judge values (not for reviewers), then each reviewer's
    first and final value, hidden repeat and comment."""
    metric_columns = () if for_reviewer else PER_METRIC
    return [
        *IDS,
        *TEXTS,
        *(f"{metric}.{name}" for metric in metrics for name in metric_columns),
        *(f"{metric}.{reviewer}.{name}" for metric in metrics for reviewer in reviewers for name in PER_REVIEWER),
    ]


def item_row(
    record: ItemRecord, metrics: Sequence[str], reviewers: Sequence[str], *, for_reviewer: bool
) -> list[CellValue]:
    """Cells below :func:`item_header`. "Cannot judge" becomes ``?``."""
    facts, contexts = record.facts, record.facts["contexts"]
    row: list[CellValue] = [facts[name] for name in IDS]
    row += [facts["question"], "\n".join(facts["references"]), facts["answer"]]
    row += [passages_cell(contexts), chunk_ids_cell(contexts)]
    for metric in () if for_reviewer else metrics:
        row += _metric_cells(record.effective.get(metric))
    rating_by_phase = {
        (rating["metric"], rating["reviewer"], "repeat" if rating["repeat"] else rating["phase"]): rating
        for rating in record.ratings
    }
    for metric in metrics:
        for reviewer in reviewers:
            phases = [rating_by_phase.get((metric, reviewer, phase)) for phase in ("initial", "final", "repeat")]
            comments = dict.fromkeys(rating["comment"] for rating in phases if rating and rating["comment"])
            row += [*(_rating_cell(rating) for rating in phases), "\n".join(comments)]
    return row


def passages_cell(contexts: Contexts | None) -> str:
    """Passages, numbered from 1."""
    return "\n\n".join(f"[{n}] {context['text']}" for n, context in enumerate(contexts or (), start=1))


def chunk_ids_cell(contexts: Contexts | None) -> str:
    """Passage ids, one a line, with the number of the passage."""
    return "\n".join(
        f"[{n}] {context['chunk_id']}" for n, context in enumerate(contexts or (), start=1) if context["chunk_id"]
    )


def item_json(record: ItemRecord, metrics: Sequence[str], *, for_reviewer: bool) -> dict[str, Any]:
    document = dict(record.facts)
    for metric in metrics:
        ratings = [rating for rating in record.ratings if rating["metric"] == metric]
        effective = {} if for_reviewer else _effective_json(record.effective.get(metric))
        document.setdefault("metrics", {})[metric] = effective | {"ratings": ratings}
    return document


def _metric_cells(effective: EffectiveValue | None) -> list[CellValue]:
    if effective is None:
        return [None] * len(PER_METRIC)
    judged = effective.judged
    judge_value = judged.value_or_label if judged else None
    status, reason = (str(judged.status), judged.reason) if judged else ("", "")
    return [
        effective.label if effective.value is None else effective.value,
        str(effective.source),
        judge_value,
        status,
        reason,
    ]


def _rating_cell(rating: Mapping[str, Any] | None) -> CellValue:
    if rating is None:
        return None
    if rating["cannot_judge"]:
        return "?"
    value: CellValue = rating["label"] if rating["value"] is None else rating["value"]
    return value


def _effective_json(effective: EffectiveValue | None) -> dict[str, Any]:
    judged = effective.judged if effective else None
    carried = {"carried": plain(effective.carried)} if effective and effective.carried else {}
    return {
        "authoritative": effective and _fields(effective, "value", "label", "source", "raters", "unresolved") | carried,
        "judge": judged and _fields(judged, "value", "label", "status", "reason", "repeats"),
    }


def _fields(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _table(queue: ReviewQueue, reviewer: User | None) -> tuple[list[str], Iterator[list[CellValue]]]:
    metrics, reviewers, for_reviewer = metric_names(queue), reviewer_names(queue, reviewer), reviewer is not None
    rows = (item_row(record, metrics, reviewers, for_reviewer=for_reviewer) for record in item_records(queue, reviewer))
    return item_header(metrics, reviewers, for_reviewer=for_reviewer), rows


def _csv(queue: ReviewQueue, reviewer: User | None) -> Iterator[bytes]:
    return csv_chunks(*_table(queue, reviewer))


def _xlsx(queue: ReviewQueue, reviewer: User | None) -> Iterator[bytes]:
    """Workbook for people: reasons are sentences. Files for programs keep the codes."""
    header, rows = _table(queue, reviewer)
    reasons = [index for index, name in enumerate(header) if name.endswith(f".{PER_METRIC[-1]}")]
    yield xlsx_bytes({"items": (header, (_explain_reasons(row, reasons) for row in rows))})


def _explain_reasons(row: list[CellValue], reasons: Sequence[int]) -> list[CellValue]:
    for index in reasons:
        row[index] = explain_reason(str(row[index] or ""))
    return row


def _jsonl(queue: ReviewQueue, reviewer: User | None) -> Iterator[bytes]:
    metrics, for_reviewer = metric_names(queue), reviewer is not None
    rows = (item_json(record, metrics, for_reviewer=for_reviewer) for record in item_records(queue, reviewer))
    return (line.encode() for line in json_lines(rows))


def _label_studio(queue: ReviewQueue, reviewer: User | None) -> Iterator[bytes]:
    """Stream a JSON list of tasks, without judge, system or predictions."""
    yield b"["
    for number, record in enumerate(item_records(queue, reviewer)):
        yield (b",\n" if number else b"\n") + json.dumps(
            build_task(_task_data(record.facts), record.answer_id), ensure_ascii=False
        ).encode()
    yield b"\n]\n"


def _task_data(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    texts = {name: facts[name] for name in ("question_id", "sample", "question", "references", "answer")}
    return texts | {"references": "\n".join(texts["references"]), "contexts": passages_cell(facts["contexts"])}


def _label_config(queue: ReviewQueue, reviewer: User | None) -> Iterator[bytes]:
    """Labelling interface with level texts in the reader's language."""
    rows = queue_metrics(queue)
    # Level texts are the same for all items.
    example_item = queue.items.select_related("answer", "run").order_by("pk")[:1].get()
    cards = card_metrics(rows, get_language() or "en", example_item)
    controls = [
        Control(
            row.metric.name,
            card.question or card.title,
            row.metric.read_scale(),
            {x.value: x.text for x in card.levels},
        )
        for row, card in zip(rows, cards, strict=True)
    ]
    yield labelling_config(controls).encode()


ITEM_EXPORTS = Exports(
    "an export",
    {
        "csv": _csv,
        "xlsx": _xlsx,
        "jsonl": _jsonl,
        "label_studio": _label_studio,
        "label_studio_config": _label_config,
    },
)
