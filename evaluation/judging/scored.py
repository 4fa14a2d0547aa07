"""One call, one score or label per metric: the plain family, and the reading that all families with scores share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from evaluation.core.samples import Result
from evaluation.core.scales import Scale
from evaluation.judging.asking import Case, Heard, Judging, Results, failed
from evaluation.judging.calls import Ask
from evaluation.judging.data import data_blocks, shown
from evaluation.judging.expectation import covers, expected
from evaluation.judging.rubric import Rubric, RubricMetric
from evaluation.judging.shapes import Schema, closed

_MOST_SHOWN = 80


def scored_in_one_call(case: Case) -> Judging:
    """Ask once for every metric of the case, with the data that these declare."""
    heard = yield scores_ask(case.rubric, case.metrics, data_blocks(case.question, case.answer, shown(case)))
    return read_scores(case, heard)


def scores_ask(
    rubric: Rubric, metrics: Sequence[str], blocks: Mapping[str, Any], beside: Mapping[str, Schema] | None = None
) -> Ask:
    """The request for a score or label of each metric; ``beside`` are further members of the reply.

    :raises UnknownName: for a metric that the rubric does not hold.
    """
    names = tuple(metrics)
    schema, shape = _plain(rubric, names)
    if beside:
        schema, shape = (closed({**known["properties"], **beside}) for known in (schema, shape))
    return Ask(blocks=blocks, schema=schema, names=names, shape=shape)


@lru_cache(maxsize=512)
def _plain(rubric: Rubric, names: tuple[str, ...]) -> tuple[Schema, Schema]:
    """What is asked for and what is read where nothing stands beside the metrics: the same for every answer."""
    asked = [rubric.metric(name) for name in names]
    schema = closed({metric.name: metric.verdict_schema for metric in asked})
    return schema, closed({metric.name: metric.verdict_shape for metric in asked})


def read_scores(case: Case, heard: Heard) -> Results:
    """One result per metric. A metric whose part is missing fails by ``parse``, one off its scale by ``scale``, one
    whose level cannot be expected although it should by :func:`expected`; each fails alone."""
    if heard.failure:
        return failed(case, heard)
    return {name: _read(case, heard, name) for name in case.metrics}


def _read(case: Case, heard: Heard, name: str) -> Result:
    metric = case.rubric.metric(name)
    said = read_verdict(metric, heard.parts.get(name))
    return expected(said, heard.chances.get(name, {})) if case.expects and covers(metric) else said


def read_verdict(metric: RubricMetric, verdict: Mapping[str, Any] | None) -> Result:
    """The result that a metric's part of a reply stands for. Nothing is clamped or rounded."""
    if verdict is None:
        return Result.failed("parse")
    scale, reason = metric.read_scale(), verdict["reason"]
    said = verdict["label"] if metric.labels else verdict["score"]
    if metric.labels:
        if isinstance(said, str) and said in scale.labels:
            return Result.labelled(said, reason=reason)
    elif _is_on(scale, said):
        return Result.scored(said, reason=reason)
    return Result.failed("scale", detail={"got": _short(said), "reason": reason})


def _is_on(scale: Scale, said: Any) -> bool:
    """Whether it is a number of the scale; a level has to be written as a whole number."""
    wanted = int if scale.levels else int | float
    return isinstance(said, wanted) and not isinstance(said, bool) and scale.holds(said)


def _short(said: Any) -> str:
    """What stood in place of a score, short; of a list or an object only its kind."""
    return type(said).__name__ if isinstance(said, list | dict) else json.dumps(said)[:_MOST_SHOWN]
