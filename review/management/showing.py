"""What commands say about a run's judges beside the figures: how they were asked, what is cached, what is doubtful.

Printing the figures of a run with its gate, and ending with the exit code they deserve.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator

from django.core.management.base import BaseCommand

from evaluation.models import Run
from evaluation.wording.messages import explain_doubt
from review.management.options import GATE, print_gate, warn_of_gate
from review.management.tables import results_sheets, write
from review.plans.ahead import next_review
from review.plans.wording import guess_note, plan_json, plan_sentence
from review.reports.as_json import summary_json
from review.reports.gate import Gate
from review.reports.gathering import gather
from review.reports.making import report_of
from review.reports.report import Report


def about_judges(report: Report) -> Iterator[str]:
    """A line for each preflight and each doubt."""
    for one in report.provenance.preflights:
        told = {True: "yes", False: "no", None: "unknown"}
        yield (
            f"preflight {one.judge}: asked by {one.rung}, answered by {one.model_returned}, "
            f"tokens {told[one.usage]}, log probabilities {told[one.logprobs]}, {one.calls} call(s)"
        )
    for doubt in report.doubts:
        yield f"warning: {explain_doubt(doubt.code, doubt.params)}"


def show_results(command: BaseCommand, run: Run, gate: Gate | None, form: str) -> None:
    """The gate first, then the figures; exit 0, 100 for a gate that is not passed or a run that is not complete."""
    basis = gather(run)
    plan = next_review(basis)
    report = dataclasses.replace(report_of(basis), gate=gate.to_dict() if gate else None, next_review=plan_json(plan))
    if form == "json":
        command.stdout.write(json.dumps(summary_json(report), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        if gate is not None:
            print_gate(command, gate)
        write(command.stdout, results_sheets(report))
        for line in about_judges(report):
            command.stdout.write(line)
        if plan:
            command.stdout.write(" ".join(part for part in (plan_sentence(plan), guess_note(plan)) if part))
    if gate is not None:
        warn_of_gate(command, gate)
    code = gate.exit_code if gate is not None else 0
    if not report.header.complete or code:
        sys.exit(code or GATE)
