"""The expected level of a score: the mean of its levels, weighted by the probabilities of their tokens where the judge
wrote its own (G-Eval, Liu et al. 2023, section 2.2). It is conditional on the reason the judge wrote before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evaluation.core.samples import Result
from evaluation.judging.rubric import RubricMetric
from evaluation.judging.tokens import one_digit

LEAST_MASS = 0.9  # of the probability at the place that has to lie on levels of the scale
MOST_ALTERNATIVES = 20  # what OpenAI and vLLM tell at most
_DIGITS = 9  # so that nothing but adding up leaves the scale


def asking_for(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's parameters with the wish for token probabilities. A server that tells fewer alternatives than 20 gets
    its own ``top_logprobs`` by the judge's parameters."""
    return {"top_logprobs": MOST_ALTERNATIVES, **parameters, "logprobs": True}


def covers(metric: RubricMetric) -> bool:
    """Whether the metric's level can be expected: its levels are whole numbers of one digit each. Labels, decimals and
    figures computed from parts are taken as the judge says them."""
    return bool(metric.levels) and one_digit(metric.read_scale().levels)


def expected(said: Result, chances: Mapping[str, float]) -> Result:
    """The expected level in place of the one ``said``, with the probabilities, the mass they cover and their standard
    deviation beside it.

    Fails with ``no_logprobs`` without probabilities, ``low_mass`` where levels of the scale cover less than 0.9 of the
    probability: the rest may stand for anything.
    """
    if said.value is None:
        return said
    told: dict[str, Any] = {**said.detail, "said": said.value}
    if not chances:
        return Result.failed("no_logprobs", detail={**told, "reason": said.reason})
    mass = math.fsum(chances.values())
    told |= {"mass": round(mass, _DIGITS), "chances": dict(chances)}
    if mass < LEAST_MASS:
        return Result.failed("low_mass", detail={**told, "reason": said.reason})
    mean = math.fsum(int(level) * chance for level, chance in chances.items()) / mass
    variance = math.fsum(chance * (int(level) - mean) ** 2 for level, chance in chances.items()) / mass
    told |= {"method": "expected", "spread": round(math.sqrt(variance), _DIGITS)}
    return replace(said, value=round(mean, _DIGITS), detail=told)
