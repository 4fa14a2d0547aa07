"""What is kept, made from nothing: one function for all of a run, one for its agreement, one for a comparison."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import override
from pydantic import TypeAdapter

from evaluation.models import Run
from review.agreement.run_agreement import By, kept_agreement
from review.comparisons.gating import gates_of
from review.comparisons.summaries import Headline, headline
from review.comparisons.values import sides
from review.comparisons.whole import Compared, compare
from review.evidence.experts import has_examples
from review.evidence.seals import Form, in_form
from review.figure_cache.columns import columns_of, unpacked
from review.figure_cache.keeping import FULL, Make, ask, count_touched, keep, stamp_of, stamps_of, subject_of
from review.models import Kept
from review.queues.planning import ReviewPlan, next_review, planned_review
from review.reports.estimates import three_ways
from review.reports.exporting import BRIEF, REPORT_EXPORTS, export
from review.reports.gate import NO_GATE, Gate, GateAsked
from review.reports.gathering import gather
from review.reports.report import Report, report_of


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The report of a run without its answers, and the next review worth while."""

    report: Report
    plan: ReviewPlan | None


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """Agreement by category with its intervals, in the form of the ``agreement`` command. ``examples``: some of the
    ratings were made for show."""

    figures: Mapping[str, Any]
    examples: bool


@dataclass(frozen=True, slots=True)
class CorrectionFigures:
    """The three estimates by category in the form of the ``correct`` command, and the next review worth while."""

    figures: Mapping[str, Any]
    plan: ReviewPlan | None


FIGURES, HEADLINE, AGREEMENT, COMPARISON = "figures", "headline", "agreement", "comparison"
CORRECTION, GATES = "correction", "gates"
WITH_GATE = Q(kind__contains=" {")
AS_FIGURES, AS_HEADLINE = TypeAdapter(RunFigures), TypeAdapter(Headline)
AS_CORRECTION, AS_GATES = TypeAdapter(CorrectionFigures), TypeAdapter(dict[int, Gate])
AS_AGREEMENT, AS_COMPARISON = TypeAdapter(AgreementFigures), TypeAdapter(Compared)


def _json(kind: TypeAdapter[Any], value: object) -> bytes:
    return kind.dump_json(value, fallback=dict, warnings=False)  # what maps is a dictionary there, whatever it is here


def make_run(runs: Sequence[Run]) -> dict[str, bytes]:
    """Everything kept of a run, from one reading of its scores and ratings."""
    (run,) = runs
    basis = gather(run)
    report = report_of(basis)
    figures = RunFigures(dataclasses.replace(report, answers=()), next_review(basis))
    return {
        FIGURES: _json(AS_FIGURES, figures),
        HEADLINE: _json(AS_HEADLINE, headline(report)),
        **columns_of(basis, report.answers),
    }


def make_agreement(runs: Sequence[Run]) -> dict[str, bytes]:
    """Agreement of a run with its intervals, which take longest."""
    (run,) = runs
    found = AgreementFigures(kept_agreement(run, by=By.CATEGORY), has_examples(run.answer_set_id))
    return {AGREEMENT: _json(AS_AGREEMENT, found)}


def make_correction(runs: Sequence[Run]) -> dict[str, bytes]:
    """The three estimates of a run, of its metrics and its categories."""
    (run,) = runs
    basis = gather(run)
    found = CorrectionFigures(three_ways(basis, by_category=True).to_dict(), next_review(basis))
    return {CORRECTION: _json(AS_CORRECTION, found)}


def make_comparison(runs: Sequence[Run]) -> dict[str, bytes]:
    """Runs beside the first of them, without what intervals at other levels are made of."""
    found = compare(runs)
    bare = Compared(
        tuple(dataclasses.replace(report, answers=()) for report in found.reports),
        tuple(one.settled() for one in found.differences),
        found.family,
        found.order,
    )
    return {COMPARISON: _json(AS_COMPARISON, bare)}


def make_file(format_name: str, language: str, runs: Sequence[Run], asked: GateAsked = NO_GATE) -> dict[str, bytes]:
    """A report of the last run with all answers, packed: of many answers it takes longer than anybody waits for a
    page. With the gate that is asked of it, its baseline is the run before."""
    run, packed = runs[-1], io.BytesIO()
    gate = gates_of(sides(runs), asked)[run.pk] if asked.anything else None
    with override(language), gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.writelines(export(run, format_name, gate, planned=planned_review).chunks)
    return {gated_kind(file_kind(format_name, language), asked): packed.getvalue()}


def make_gates(runs: Sequence[Run], asked: GateAsked) -> dict[str, bytes]:
    """The gates of runs measured against the first of them; their intervals have the level that is asked for."""
    return {gated_kind(GATES, asked): _json(AS_GATES, gates_of(sides(runs), asked))}


def file_kind(format_name: str, language: str) -> str:
    """The kind under which a file is kept: ``report csv ko``."""
    return f"report {format_name} {language}"


def gated_kind(kind: str, asked: GateAsked) -> str:
    """The kind with what a gate asks, as far as that differs from nothing: ``gates {"fail_under": 0.7}``; the kind
    alone where nothing is asked. The baseline is one of the runs."""
    if not asked.anything:
        return kind
    return f"{kind} {json.dumps(asked.model_dump(exclude_defaults=True, exclude={'baseline'}))}"


FILES: Mapping[str, Make] = {
    file_kind(format_name, language): partial(make_file, format_name, language)
    for format_name in REPORT_EXPORTS.names
    if format_name not in BRIEF
    for language, _ in settings.LANGUAGES
}
GATED: Mapping[str, Callable[..., Mapping[str, bytes]]] = {GATES: make_gates, **FILES}
MAKERS: Mapping[str, Make] = {
    **FILES,
    FIGURES: make_run,
    AGREEMENT: make_agreement,
    CORRECTION: make_correction,
    COMPARISON: make_comparison,
}


def maker_of(kind: str) -> Make:
    """What makes a kind, with the gate that stands in it."""
    name, brace, said = kind.partition(" {")
    return partial(GATED[name], asked=GateAsked(**json.loads("{" + said))) if brace else MAKERS[kind]


def remake(pk: int) -> None:
    """A worker's task: make what a row is about, where it is still old. A row of runs that are gone goes too."""
    row = Kept.objects.filter(pk=pk).first()
    if row is None:
        return
    keys = [int(key) for key in row.subject.split(",")]
    found = Run.objects.in_bulk(keys)
    if len(found) < len(set(keys)):
        row.delete()
        return
    form = Form.FULL if row.kind.startswith(FULL) else Form.OPEN
    with in_form(form):
        keep(maker_of(row.kind.removeprefix(FULL)), [found[key] for key in keys])


NEWEST = 20  # runs whose figures are made before anybody looks
FORGOTTEN = timedelta(days=30)


def ring_waiting() -> None:
    """Every minute: count what was touched, ask for the figures of runs that ended lately and have none, and throw
    away comparisons, gates and files that nobody can have looked at for long."""
    count_touched()
    ended = list(Run.objects.filter(state__in=Run.ENDED).order_by("-pk")[:NEWEST])
    rows = Kept.objects.filter(kind=FIGURES, subject__in=[subject_of([run]) for run in ended], made_at__isnull=False)
    made = set(rows.values_list("subject", flat=True))
    for run in ended:
        if subject_of([run]) not in made:
            ask(FIGURES, [run])
    forgotten = Q(kind__in=[COMPARISON, *FILES]) | Q(kind__startswith=FULL) | WITH_GATE
    Kept.objects.filter(forgotten, made_at__lt=timezone.now() - FORGOTTEN).delete()


def _makable() -> Q:
    return Q(kind__in=[*MAKERS, *(FULL + kind for kind in MAKERS)]) | WITH_GATE


def make_waiting() -> None:
    """Make here what workers were asked for and have not done."""
    waiting = Kept.objects.filter(Q(asked_at__isnull=False) | Q(made_at=None), _makable())
    for pk in waiting.values_list("pk", flat=True):
        remake(pk)


def differing(run: Run) -> list[str]:
    """The kinds of what is kept of a run, under a stamp that holds, that differ from what is made from nothing now:
    none unless something is wrong."""
    count_touched()
    stamp = stamp_of([run], stamps_of([run]))
    rows = Kept.objects.filter(subject=subject_of([run]), stamp=stamp) if stamp else ()
    kept = {row.kind: bytes(row.content) for row in rows}
    found = []
    for kind in (FIGURES, AGREEMENT, CORRECTION):
        if kind in kept:
            fresh = MAKERS[kind]([run])
            found += [name for name, content in fresh.items() if name in kept and not _same(name, kept[name], content)]
    return found


def _same(kind: str, one: bytes, other: bytes) -> bool:
    if kind in {FIGURES, HEADLINE, AGREEMENT, CORRECTION}:
        return bool(json.loads(one) == json.loads(other))
    ours, theirs = unpacked(one), unpacked(other)
    return ours.keys() == theirs.keys() and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
