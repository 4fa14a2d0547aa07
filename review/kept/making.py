"""What is kept, made from nothing: one function for all of a run, one for its agreement, one for a comparison."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
from collections.abc import Mapping, Sequence
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
from review.comparisons.summaries import Headline, headline
from review.comparisons.whole import Compared, compare
from review.evidence.experts import has_examples
from review.kept.columns import columns_of, unpacked
from review.kept.keeping import Make, ask, count_touched, keep, stamp_of, stamps_of, subject_of
from review.models import Kept
from review.plans.ahead import ReviewPlan, next_review, planned_review
from review.reports.estimates import three_ways
from review.reports.exporting import BRIEF, REPORT_EXPORTS, export
from review.reports.gathering import gather
from review.reports.report import Report, report_of
from review.results.run_agreement import By, kept_agreement


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
CORRECTION = "correction"
AS_FIGURES, AS_HEADLINE = TypeAdapter(RunFigures), TypeAdapter(Headline)
AS_CORRECTION = TypeAdapter(CorrectionFigures)
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


def make_file(format_name: str, language: str, runs: Sequence[Run]) -> dict[str, bytes]:
    """A report with all answers, packed: of many answers it takes longer than anybody waits for a page."""
    (run,), packed = runs, io.BytesIO()
    with override(language), gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        file.writelines(export(run, format_name, planned=planned_review).chunks)
    return {file_kind(format_name, language): packed.getvalue()}


def file_kind(format_name: str, language: str) -> str:
    """The kind under which a file is kept: ``report csv ko``."""
    return f"report {format_name} {language}"


FILES: Mapping[str, Make] = {
    file_kind(format_name, language): partial(make_file, format_name, language)
    for format_name in REPORT_EXPORTS.names
    if format_name not in BRIEF
    for language, _ in settings.LANGUAGES
}
MAKERS: Mapping[str, Make] = {
    **FILES,
    FIGURES: make_run,
    AGREEMENT: make_agreement,
    CORRECTION: make_correction,
    COMPARISON: make_comparison,
}


def remake(pk: int) -> None:
    """A worker's task: make what a row is about, where it is still old. A row of runs that are gone goes too."""
    row = Kept.objects.filter(pk=pk).first()
    if row is None:
        return
    keys = [int(key) for key in row.subject.split(",")]
    found = Run.objects.in_bulk(keys)
    if len(found) < len(keys):
        row.delete()
        return
    keep(MAKERS[row.kind], [found[key] for key in keys])


NEWEST = 20  # runs whose figures are made before anybody looks
FORGOTTEN = timedelta(days=30)


def ring_waiting() -> None:
    """Every minute: count what was touched, ask for the figures of runs that ended lately and have none, and throw
    away comparisons and files that nobody can have looked at for long."""
    count_touched()
    ended = list(Run.objects.filter(state__in=Run.ENDED).order_by("-pk")[:NEWEST])
    rows = Kept.objects.filter(kind=FIGURES, subject__in=[subject_of([run]) for run in ended], made_at__isnull=False)
    made = set(rows.values_list("subject", flat=True))
    for run in ended:
        if subject_of([run]) not in made:
            ask(FIGURES, [run])
    Kept.objects.filter(kind__in=[COMPARISON, *FILES], made_at__lt=timezone.now() - FORGOTTEN).delete()


def make_waiting() -> None:
    """Make here what workers were asked for and have not done."""
    waiting = Kept.objects.filter(Q(asked_at__isnull=False) | Q(made_at=None), kind__in=MAKERS)
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
