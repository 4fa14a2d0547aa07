"""A queue's items with everything said about them as a file: one row for each with a column per reviewer (CSV, XLSX),
everything as JSON Lines, or tasks and interface for Label Studio.

For who rates in the queue only the own rated items and own ratings: no judge, no value that counts, nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.utils.translation import get_language

from evaluation.formats.export import Cell, ExportFile, Exports, csv_chunks, json_lines, write_whole, xlsx_bytes
from evaluation.formats.label_studio import Control, labelling_config, task
from evaluation.messages.sentences import explain_reason
from evaluation.models import Answer, Run, User
from review.evidence.effective import Effective, effective_values
from review.evidence.scorers import Key
from review.evidence.seals import readable
from review.models import Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.card import card_metrics
from review.ratings.settling import RATED
from review.ratings.submitting import metrics_of
from review.reports.exporting import in_language
from review.reports.figure import plain

BATCH = 200


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item as JSON says it: what it is about, its values by metric (empty for reviewers), and the ratings that
    count, a reviewer's newest of each phase. ``run`` and ``system`` are empty for reviewers where they are hidden."""

    facts: dict[str, Any]
    effective: Mapping[str, Effective]
    ratings: Sequence[dict[str, Any]]


def metric_names(queue: ReviewQueue) -> list[str]:
    """The queue's metrics in its order."""
    return list(queue.metrics.order_by("position", "pk").values_list("metric__name", flat=True))


def reviewer_names(queue: ReviewQueue, only: User | None = None) -> list[str]:
    """Everybody who may rate or has rated in the queue, by user name; or the one person."""
    if only is not None:
        return [only.get_username()]
    members = set(queue.members.values_list("reviewer__username", flat=True))
    rated = Rating.objects.filter(assignment__item__queue=queue).values_list("reviewer__username", flat=True)
    return sorted(members | set(rated.distinct()))


def item_records(queue: ReviewQueue, only: User | None = None) -> Iterator[ItemRecord]:
    """Every item on its first occasion, in the order of question and answer; memory stays the same however many there
    are. ``only``: as that reviewer may see them."""
    rows = queue.items.filter(occasion=FIRST_OCCASION)
    if only is not None:
        rows = rows.filter(assignments__reviewer=only, assignments__state__in=RATED)
    ids = list(rows.order_by("answer__question__position", "answer_id").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        yield from _batch(queue, ids[start : start + BATCH], only)


def _batch(queue: ReviewQueue, ids: Sequence[int], only: User | None) -> Iterator[ItemRecord]:
    related = ("answer__question", "answer__answer_set__system_version__system", "run")
    rows = ReviewItem.objects.filter(pk__in=ids).select_related(*related).prefetch_related("answer__contexts")
    items = {item.pk: item for item in rows}
    values = {} if only is not None else _values(items.values())
    ratings = _ratings(queue, [item.answer_id for item in items.values()], only)
    for pk in ids:
        if (item := items.get(pk)) is not None:
            run, answer = item.run_id, item.answer_id
            own = {name: one for (of, key), (name, one) in values.items() if of == run and key[0] == answer}
            yield ItemRecord(_facts(item, queue, only), own, ratings.get(answer, []))


def _facts(item: ReviewItem, queue: ReviewQueue, only: User | None) -> dict[str, Any]:
    answer, question = item.answer, item.answer.question.read()
    hidden = only is not None and queue.hide_system
    return {
        "item": item.pk,
        "state": item.state,
        "answer_id": answer.pk,
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
        "contexts": contexts_of(answer, with_scores=only is None),
    }


def _values(items: Any) -> dict[tuple[int, Key], tuple[str, Effective]]:
    """Run and key -> metric name and value that counts."""
    by_run: dict[Run, set[int]] = {}
    for item in items:
        by_run.setdefault(item.run, set()).add(item.answer_id)
    found = {}
    for run, answers in by_run.items():
        values = effective_values(run, answers)
        for metric, of_answers in values.values.items():
            for answer, one in of_answers.items():
                found[run.pk, (answer, metric)] = (values.metrics[metric].name, one)
    return found


def _ratings(queue: ReviewQueue, answers: Sequence[int], only: User | None) -> dict[int, list[dict[str, Any]]]:
    """Answer -> its ratings of this queue, the newest of each reviewer, metric, phase and occasion."""
    rows = Rating.objects.filter(assignment__item__queue=queue, answer__in=answers)
    rows = readable(rows) if only is None else rows.filter(reviewer=only)
    newest: dict[tuple[int, int, str], Rating] = {}
    related = ("metric", "reviewer", "assignment__item")
    for row in rows.select_related(*related).prefetch_related("rated_parts").order_by("seq", "pk"):
        newest[row.assignment_id or 0, row.metric_id, row.phase] = row
    found: dict[int, list[dict[str, Any]]] = {}
    for row in newest.values():
        found.setdefault(row.answer_id, []).append(_rating_json(row))
    return found


def _rating_json(row: Rating) -> dict[str, Any]:
    """A rating; ``repeat`` marks one of a hidden repeat."""
    assignment, shown = row.assignment, ("kind", "text", "verdict", "context", "added")
    parts = [{name: getattr(part, name) for name in shown} for part in row.rated_parts.all()]
    return {
        "metric": row.metric.name,
        "reviewer": row.reviewer.get_username() if row.reviewer else row.author,
        "phase": row.phase,
        "repeat": assignment is not None and assignment.item.occasion > FIRST_OCCASION,
        **{name: getattr(row, name) for name in ("value", "label", "cannot_judge", "blind", "reason_code", "comment")},
        "parts": row.parts or parts or None,
        "at": row.created_at.isoformat(),
    }


def contexts_of(answer: Answer, *, with_scores: bool) -> tuple[Mapping[str, Any], ...] | None:
    """The passages of an answer in the order the system used them; ``None`` where the system does not retrieve."""
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


def export_items(queue: ReviewQueue, format_name: str, only: User | None = None) -> ExportFile:
    """The queue's items in a format. ``only``: as that reviewer may see them, own ratings alone.

    :raises UnknownName: for a format that is not among :data:`ITEM_EXPORTS`.
    """
    made = ITEM_EXPORTS.write(format_name, f"queue-{queue.pk}", queue, only)
    return replace(made, chunks=in_language(made.chunks, get_language()))


def export_items_to(queue: ReviewQueue, path: Path, format_name: str = "") -> None:
    """Write the items to a file, whole or not at all; without a format the ending chooses it.

    :raises UnknownName: for an unknown format or ending.
    :raises OSError: where the file cannot be written.
    """
    write_whole(path, export_items(queue, format_name or ITEM_EXPORTS.format_of(path)).chunks)


def item_header(metrics: Sequence[str], reviewers: Sequence[str], *, own: bool) -> list[str]:
    """The columns: ids and texts; for each metric what counts and what the judge said (not for reviewers), then each
    reviewer's first and final value, hidden repeat and comment."""
    beside = () if own else PER_METRIC
    return [
        *IDS,
        *TEXTS,
        *(f"{metric}.{name}" for metric in metrics for name in beside),
        *(f"{metric}.{who}.{name}" for metric in metrics for who in reviewers for name in PER_REVIEWER),
    ]


def item_row(record: ItemRecord, metrics: Sequence[str], reviewers: Sequence[str], *, own: bool) -> list[Cell]:
    """The cells under :func:`item_header`. ``cannot judge`` stands as ``?``."""
    facts, contexts = record.facts, record.facts["contexts"]
    row: list[Cell] = [facts[name] for name in IDS]
    row += [facts["question"], "\n".join(facts["references"]), facts["answer"]]
    row += [passages_cell(contexts), chunk_ids_cell(contexts)]
    for metric in () if own else metrics:
        row += _judged(record.effective.get(metric))
    given = {
        (one["metric"], one["reviewer"], "repeat" if one["repeat"] else one["phase"]): one for one in record.ratings
    }
    for metric in metrics:
        for who in reviewers:
            phases = [given.get((metric, who, phase)) for phase in ("initial", "final", "repeat")]
            comments = dict.fromkeys(one["comment"] for one in phases if one and one["comment"])
            row += [*(_value(one) for one in phases), "\n".join(comments)]
    return row


def passages_cell(contexts: Contexts | None) -> str:
    """The passages under each other, numbered from 1; empty without any."""
    return "\n\n".join(f"[{n}] {one['text']}" for n, one in enumerate(contexts or (), start=1))


def chunk_ids_cell(contexts: Contexts | None) -> str:
    """The passages' ids, one a line under the number of its passage; a passage without an id has no line."""
    return "\n".join(f"[{n}] {one['chunk_id']}" for n, one in enumerate(contexts or (), start=1) if one["chunk_id"])


def item_json(record: ItemRecord, metrics: Sequence[str], *, own: bool) -> dict[str, Any]:
    """Everything of an item, lossless."""
    said = dict(record.facts)
    for metric in metrics:
        ratings = [one for one in record.ratings if one["metric"] == metric]
        beside = {} if own else _effective_json(record.effective.get(metric))
        said.setdefault("metrics", {})[metric] = beside | {"ratings": ratings}
    return said


def _judged(one: Effective | None) -> list[Cell]:
    if one is None:
        return [None] * len(PER_METRIC)
    judged = one.judged
    said = judged.answer if judged else None
    status, reason = (str(judged.status), judged.reason) if judged else ("", "")
    return [one.label if one.value is None else one.value, str(one.source), said, status, reason]


def _value(one: Mapping[str, Any] | None) -> Cell:
    if one is None:
        return None
    if one["cannot_judge"]:
        return "?"
    said: Cell = one["label"] if one["value"] is None else one["value"]
    return said


def _effective_json(one: Effective | None) -> dict[str, Any]:
    judged = one.judged if one else None
    carried = {"carried": plain(one.carried)} if one and one.carried else {}
    return {
        "authoritative": one and _fields(one, "value", "label", "source", "raters", "unresolved") | carried,
        "judge": judged and _fields(judged, "value", "label", "status", "reason", "repeats"),
    }


def _fields(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _table(queue: ReviewQueue, only: User | None) -> tuple[list[str], Iterator[list[Cell]]]:
    metrics, reviewers, own = metric_names(queue), reviewer_names(queue, only), only is not None
    rows = (item_row(record, metrics, reviewers, own=own) for record in item_records(queue, only))
    return item_header(metrics, reviewers, own=own), rows


def _csv(queue: ReviewQueue, only: User | None) -> Iterator[bytes]:
    return csv_chunks(*_table(queue, only))


def _xlsx(queue: ReviewQueue, only: User | None) -> Iterator[bytes]:
    """For people, so why there is no value is a sentence; files for programs keep the code."""
    header, rows = _table(queue, only)
    reasons = [at for at, name in enumerate(header) if name.endswith(f".{PER_METRIC[-1]}")]
    yield xlsx_bytes({"items": (header, (_readable(row, reasons) for row in rows))})


def _readable(row: list[Cell], reasons: Sequence[int]) -> list[Cell]:
    for at in reasons:
        row[at] = explain_reason(str(row[at] or ""))
    return row


def _jsonl(queue: ReviewQueue, only: User | None) -> Iterator[bytes]:
    metrics, own = metric_names(queue), only is not None
    rows = (item_json(record, metrics, own=own) for record in item_records(queue, only))
    return (line.encode() for line in json_lines(rows))


def _label_studio(queue: ReviewQueue, only: User | None) -> Iterator[bytes]:
    """A JSON list of tasks, one at a time; without judge, system or predictions."""
    yield b"["
    for number, record in enumerate(item_records(queue, only)):
        yield (b",\n" if number else b"\n") + json.dumps(
            task(_task_data(record.facts), record.facts["answer_id"]), ensure_ascii=False
        ).encode()
    yield b"\n]\n"


def _task_data(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    told = {name: facts[name] for name in ("question_id", "sample", "question", "references", "answer")}
    return told | {"references": "\n".join(told["references"]), "contexts": passages_cell(facts["contexts"])}


def _label_config(queue: ReviewQueue, only: User | None) -> Iterator[bytes]:
    """The labelling interface with the level texts in the reader's language."""
    rows = metrics_of(queue)
    some = queue.items.select_related("answer", "run").order_by("pk")[:1].get()  # texts are the same for all of them
    shown = card_metrics(rows, get_language() or "en", some)
    controls = [
        Control(
            row.metric.name, one.question or one.title, row.metric.read_scale(), {x.value: x.text for x in one.levels}
        )
        for row, one in zip(rows, shown, strict=True)
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
