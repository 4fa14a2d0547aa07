"""A design for each of several runs, and what their draws are told beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluation.models import MetricDefinition, Run
from review.models.queue_spec import QueueSpec
from review.plans.design import Design, design
from review.queues.making import shares
from review.reports.gathering import gather
from review.statistics.sampling.member import DrawParams


def designs(runs: Sequence[Run], metrics: Sequence[MetricDefinition], size: int, guess: float) -> dict[int, Design]:
    """Run -> how to draw from it, each with its share of the size and its own earlier ratings."""
    wanted = zip(runs, shares(runs, size), strict=True)
    return {run.pk: design(gather(run), metrics, share, guess) for run, share in wanted}


def told(
    planned: Mapping[int, Design], spec: QueueSpec, keys: Mapping[int, frozenset[int]] | None = None
) -> dict[int, DrawParams]:
    """Run -> everything its draw is told; ``keys`` are hand-picked answers by run."""
    picked = keys or {}
    return {
        run: replace(one.params, fail_below=spec.fail_below, share=spec.share, keys=picked.get(run, frozenset()))
        for run, one in planned.items()
    }
