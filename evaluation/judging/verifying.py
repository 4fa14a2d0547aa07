"""Checking texts one by one against the retrieved passages: the step that claims, statements and nuggets share."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from evaluation.core.samples import ContextSpec, Finding
from evaluation.judging.asking import Case, Heard
from evaluation.judging.calls import Ask
from evaluation.judging.prompt import numbered
from evaluation.judging.reading import locate
from evaluation.judging.shapes import TEXT, closed, list_of, one_of, whole_number

BATCH = 25  # texts in one request: more would cut off long replies

Verdicts = list[Mapping[str, Any]]


def verdicts_on(
    case: Case, step: str, kind: str, texts: Sequence[str], contexts: Sequence[ContextSpec]
) -> Generator[Ask, Heard, Verdicts | Heard]:
    """A verdict for each text, in order, asked for in batches; what was heard instead where one batch failed.

    A verdict has ``reason``, ``verdict`` (a label of the step's metric), ``context`` (the number of the passage it
    rests on, 0 for none) and ``quote``.
    """
    metric = case.rubric.metric(case.rubric.step(step).metric)
    found: Verdicts = []
    for first in range(0, len(texts), BATCH):
        batch = {f"{kind}_{first + i}": text for i, text in enumerate(texts[first : first + BATCH], start=1)}
        verdict = closed(
            {
                "reason": TEXT,
                "verdict": one_of(metric.verdicts),
                "context": whole_number(range(len(contexts) + 1)),
                "quote": TEXT,
            }
        )
        blocks = {"question": case.question.text, f"{kind}s": batch, "contexts": numbered(contexts)}
        heard = yield Ask(blocks, closed(dict.fromkeys(batch, verdict)), tuple(batch), step, whole=True)
        if heard.failure:
            return heard
        found += [heard.parts[key] for key in batch]
    return found


def as_finding(kind: str, text: str, verdict: Mapping[str, Any], contexts: Sequence[ContextSpec]) -> Finding:
    """A verdict as a finding, with the passage it rests on and the place of its quote there."""
    number: int = verdict["context"]
    place = locate(verdict["quote"], contexts[number - 1].text) if number else None
    return Finding(
        kind,
        text,
        verdict["verdict"],
        context=number - 1 if number else None,
        reason=verdict["reason"],
        quote=verdict["quote"] if number else "",
        quote_start=place.start if place else None,
        quote_end=place.end if place else None,
    )


def extracted(
    case: Case, step: str, kind: str, blocks: Mapping[str, Any], item: Mapping[str, Any]
) -> Generator[Ask, Heard, list[Mapping[str, Any]] | Heard]:
    """The list a judge finds: ``{"<kind>s": [item, ...]}``; what was heard instead where that failed."""
    schema = closed({f"{kind}s": list_of(closed(item))})
    heard = yield Ask(blocks, schema, (f"{kind}s",), step, whole=True)
    if heard.failure:
        return heard
    return [one for one in heard.parts[f"{kind}s"] if one[kind]]
