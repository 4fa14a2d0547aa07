"""What pages read of what is kept."""

from __future__ import annotations

import dataclasses
import gzip
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import numpy as np
from django.conf import settings
from django.utils.translation import get_language
from pydantic import TypeAdapter

from evaluation.formats.export import FORMATS, ExportFile
from evaluation.models import Answer, MetricDefinition, Run
from review.agreement.answers import Selected, Wanted
from review.agreement.run_agreement import By, agreement_of
from review.calibration.licences import licences_of
from review.comparisons.gating import asked_of, gate_of, unlicensed
from review.comparisons.summaries import Headline
from review.comparisons.whole import Compared
from review.evidence.answers import run_answers
from review.evidence.effective import Effective, Source, effective_values, names_of
from review.evidence.experts import has_examples
from review.figure_cache.columns import ANSWERS, SOURCES, UNSAID, Arrays, unpacked, values_kind
from review.figure_cache.keeping import Made, Make, Stands, is_small, is_true, keep, kind_in_form, look, now, subject_of
from review.figure_cache.making import (
    AGREEMENT,
    AS_AGREEMENT,
    AS_COMPARISON,
    AS_CORRECTION,
    AS_FIGURES,
    AS_GATES,
    AS_HEADLINE,
    COMPARISON,
    CORRECTION,
    FIGURES,
    GATES,
    HEADLINE,
    AgreementFigures,
    CorrectionFigures,
    RunFigures,
    file_kind,
    gated_kind,
    make_agreement,
    make_comparison,
    make_correction,
    make_run,
    maker_of,
)
from review.models import Kept
from review.queues.planning import planned_review
from review.reports.exporting import export
from review.reports.gate import NO_GATE, Gate, GateAsked
from review.reports.lines import AnswerLine
from review.reports.report import Report

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shown(Generic[T]):
    """What is kept, ``None`` before it was made once; where it is ``old``, it is being made anew since."""

    value: T | None
    made_at: datetime | None
    old: bool


def _shown(stands: Stands, form: TypeAdapter[T]) -> Shown[T]:
    value = None if stands.content is None else form.validate_json(stands.content)
    return Shown(value, stands.made_at, stands.old)


def _one(kind: str, make: Make, runs: Sequence[Run], form: TypeAdapter[T]) -> Shown[T]:
    (stands,) = look(kind, make, [runs])
    return _shown(stands, form)


def run_figures(run: Run) -> Shown[RunFigures]:
    """The report of a run without its answers, and the next review worth while. State and licences are those of now."""
    found = _one(FIGURES, make_run, [run], AS_FIGURES)
    if found.value is None:
        return found
    return dataclasses.replace(found, value=dataclasses.replace(found.value, report=_as_now(found.value.report, run)))


def _now(kind: str, make: Make, runs: Sequence[Run], form: TypeAdapter[T]) -> Made[T]:
    found = now(kind, make, runs)
    return Made(form.validate_json(found.value), found.made_at)


def figures_now(run: Run) -> Made[RunFigures]:
    """The same as :func:`~review.figure_cache.keeping.now` has it.

    :raises Later: ``figures_in_making``, as the others below.
    """
    found = _now(FIGURES, make_run, [run], AS_FIGURES)
    return Made(dataclasses.replace(found.value, report=_as_now(found.value.report, run)), found.made_at)


def _as_now(report: Report, run: Run) -> Report:
    complete = run.state == Run.State.COMPLETED
    header = dataclasses.replace(report.header, state=run.state, reason=run.reason, complete=complete)
    judged = any(one.primary and not one.baseline for one in report.provenance.judges)
    return dataclasses.replace(report, header=header, licences=licences_of(run) if judged else ())


def headlines_of(runs: Sequence[Run]) -> dict[int, Headline]:
    """The headlines of the runs that have ended, as far as they were made, by primary key. Four queries."""
    ended = [run for run in runs if run.state in Run.ENDED]
    stands = look(HEADLINE, make_run, [[run] for run in ended], asked=FIGURES) if ended else []
    found = {run.pk: _shown(one, AS_HEADLINE).value for run, one in zip(ended, stands, strict=True)}
    return {pk: value for pk, value in found.items() if value is not None}


def agreement_figures(run: Run) -> Shown[AgreementFigures]:
    """Agreement of a run by category, with its intervals."""
    return _one(AGREEMENT, make_agreement, [run], AS_AGREEMENT)


def agreement_at_once(run: Run) -> tuple[Shown[AgreementFigures], bool]:
    """The same, and whether intervals are missing that :func:`agreement_figures` would make now: a small run is shown
    without them first."""
    if is_small([run]) and not is_true(AGREEMENT, [run]):
        found = AgreementFigures(agreement_of(run, by=By.CATEGORY).to_dict(), has_examples(run.answer_set_id))
        return Shown(found, None, old=False), True
    return agreement_figures(run), False


def agreement_now(run: Run) -> Made[AgreementFigures]:
    """The same as it stands now."""
    return _now(AGREEMENT, make_agreement, [run], AS_AGREEMENT)


def compared(runs: Sequence[Run]) -> Shown[Compared]:
    """Runs beside the first of them."""
    return _one(COMPARISON, make_comparison, runs, AS_COMPARISON)


def compared_now(runs: Sequence[Run]) -> Made[Compared]:
    """The same as it stands now."""
    return _now(COMPARISON, make_comparison, runs, AS_COMPARISON)


def correction_now(run: Run) -> Made[CorrectionFigures]:
    """The three estimates of a run as they stand now."""
    return _now(CORRECTION, make_correction, [run], AS_CORRECTION)


def gates_now(runs: Sequence[Run], asked: GateAsked) -> dict[int, Gate]:
    """The gates of runs measured against the first of them, or of one alone, as
    :func:`~review.figure_cache.keeping.now` has them; empty where nothing is asked. Licences are those of now.

    :raises Refused: as :func:`~review.comparisons.gating.asked_of` does.
    """
    if not asked_of(runs, asked).anything:
        return {}
    kind = gated_kind(GATES, asked)
    found = _now(kind, maker_of(kind), runs, AS_GATES).value
    if not asked.require_licence:
        return found
    reports = {run.pk: figures_now(run).value.report for run in runs if run.pk in found}
    return {pk: dataclasses.replace(gate, unlicensed=unlicensed(reports[pk])) for pk, gate in found.items()}


def report_file(run: Run, format_name: str, asked: GateAsked = NO_GATE) -> ExportFile:
    """The report in a format with all answers: of a small run as it is written, of others as a worker has.

    :raises Later: ``figures_in_making``.
    """
    if is_small(runs := asked.runs(run)):
        return export(run, format_name, gate_of(run, asked), planned=planned_review)
    named, known = file_kind(format_name, get_language() or settings.LANGUAGE_CODE), FORMATS[format_name]
    kind = gated_kind(named, asked)
    found = now(kind, maker_of(kind), runs)
    return ExportFile(f"run-{run.pk}.{known.ending}", known.media_type, _unpacked(found.value), found.made_at)


def _unpacked(content: bytes) -> Iterator[bytes]:
    with gzip.open(io.BytesIO(content)) as file:
        while piece := file.read(2**16):
            yield piece


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a run's answers that match: ``count`` of them in all, ``rows`` with their values of now. ``metric`` is
    the chosen one, else the first."""

    metric: MetricDefinition | None
    metrics: tuple[MetricDefinition, ...]
    categories: tuple[str, ...]
    count: int
    rows: tuple[Selected, ...]


def listed_answers(run: Run, wanted: Wanted, start: int, size: int) -> Shown[Listed]:
    """The answers that match, from the one at ``start``: found by what is kept, and so many of them read. A fixed
    number of queries."""
    (stands,) = look(ANSWERS, make_run, [[run]], asked=FIGURES)
    if stands.content is None:
        return Shown(None, None, old=True)
    columns = unpacked(stands.content)
    known = MetricDefinition.objects.in_bulk(columns["metrics"].tolist())
    metrics = tuple(known[pk] for pk in columns["metrics"].tolist())
    metric = next((one for one in metrics if one.name == wanted.metric), metrics[0] if metrics else None)
    categories = tuple(name for name in columns["categories"].tolist() if name)
    matching = columns["answer"][_matching(run, wanted, columns, _values(run, metric))]
    rows = _read(run, metric, matching[start : start + size].tolist())
    return Shown(Listed(metric, metrics, categories, len(matching), rows), stands.made_at, stands.old)


def _values(run: Run, metric: MetricDefinition | None) -> Arrays | None:
    if metric is None:
        return None
    kind = values_kind(metric.pk)
    # There is none where the database takes no writing.
    row = Kept.objects.filter(kind=kind_in_form(kind, [run]), subject=subject_of([run])).first()
    return unpacked(bytes(row.content) if row else keep(make_run, [run])[kind])


def _matching(run: Run, wanted: Wanted, columns: Arrays, values: Arrays | None) -> np.ndarray[Any, Any]:
    """Which answers match, as true and false by place."""
    kept = np.ones(len(columns["answer"]), dtype=bool)
    if wanted.category:
        kept &= columns["categories"][columns["category"]] == wanted.category
    if wanted.words:
        said = Answer.objects.filter(answer_set=run.answer_set_id, question__text__icontains=wanted.words)
        kept &= np.isin(columns["answer"], np.fromiter(said.values_list("pk", flat=True), dtype=np.int64))
    if values is None:
        return kept if not (wanted.label or wanted.low is not None or wanted.high is not None) else kept & False
    if wanted.source:
        source = values["source"]
        asked = source == SOURCES.index(Source(wanted.source))
        kept &= asked | (source == UNSAID) if wanted.source == Source.NONE else asked
    if wanted.label:
        kept &= (values["label"] >= 0) & np.append(values["labels"] == wanted.label, False)[values["label"]]
    if wanted.low is not None:
        kept &= values["value"] >= wanted.low
    if wanted.high is not None:
        kept &= values["value"] <= wanted.high
    return kept


def listed_lines(run: Run) -> tuple[AnswerLine, ...]:
    """The answers of a short report with their values of now; none before the run's figures were made once."""
    (stands,) = look(ANSWERS, make_run, [[run]], asked=FIGURES)
    if stands.content is None:
        return ()
    columns = unpacked(stands.content)
    ids = columns["listed"].tolist()
    scores = dict(zip(ids, (None if math.isnan(one) else one for one in columns["score"].tolist()), strict=True))
    found = effective_values(run, ids)
    names = names_of(found.metrics)
    values: dict[int, dict[str, Effective]] = {pk: {} for pk in ids}
    for metric_id, of_answers in found.values.items():
        for answer_id, one in of_answers.items():
            values[answer_id][names[metric_id]] = one
    answers = {one.answer_id: one for one in run_answers(run, ids)}
    return tuple(AnswerLine(answers[pk], values[pk], scores[pk]) for pk in ids if pk in answers)


def _read(run: Run, metric: MetricDefinition | None, ids: Sequence[int]) -> tuple[Selected, ...]:
    """The answers named, in this order, with what counts of them now."""
    answers = {one.answer_id: one for one in run_answers(run, ids)} if ids else {}
    values = effective_values(run, ids).values.get(metric.pk, {}) if ids and metric else {}
    return tuple(Selected(answers[pk], values.get(pk)) for pk in ids if pk in answers)
