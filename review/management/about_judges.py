"""What commands say about a run's judges beside the figures: how they were asked, what is cached, what is doubtful."""

from __future__ import annotations

from collections.abc import Iterator

from evaluation.wording.messages import explain_doubt
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
