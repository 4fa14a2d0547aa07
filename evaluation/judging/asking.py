"""A family at work on one answer: a conversation that asks once or several times and ends with results.

A family's ``judge`` function is a generator: it yields what it asks, is sent what was heard, and returns one result
for each of its metrics. It never sees the network or the ledger; whoever drives it makes the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.core.registry import MetricSpec, RuleMetric, RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import Ask, Chances, Outcome
from evaluation.judging.rubric import Rubric


@dataclass(frozen=True, slots=True)
class Case:
    """An answer before a judge: ``specs`` are the family's metrics that apply to it, ``settings`` the profile's.
    ``expects``: levels are expected over their token probabilities where they can be."""

    rubric: Rubric
    question: QuestionSpec
    answer: AnswerSpec
    specs: tuple[MetricSpec, ...]
    settings: RuleSettings = RuleSettings()  # noqa: RUF009 -- frozen
    expects: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(spec.name for spec in self.specs)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a reply holds: the ``parts`` of the right shape. ``outcome`` is the reply's own, or ``parse`` where nothing
    usable was heard; then there are no parts. ``chances`` are the token probabilities of their levels, where told."""

    outcome: Outcome
    parts: Mapping[str, Any]
    chances: Chances = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """The reason code of results that depend on it; empty when something was heard."""
        return "" if self.outcome is Outcome.OK else str(self.outcome)


Results = dict[str, Result]
Judging = Generator[Ask, Heard, Results]


@dataclass(frozen=True, slots=True)
class Family:
    """A rubric family: the metrics it gives and how it comes to them. ``decides`` are rule metrics whose value it
    gives where a judge is on. ``floor`` is what an answer that says nothing gets without being sent to a judge; without
    it, as in families that judge something else than the answer, every answer is sent."""

    name: str
    metrics: tuple[MetricSpec, ...]
    judge: Callable[[Case], Judging]
    decides: tuple[RuleMetric, ...] = ()
    floor: Callable[[MetricSpec], Result | None] | None = None

    @property
    def given(self) -> tuple[MetricSpec, ...]:
        """Every metric that a unit of the family gives."""
        return (*self.metrics, *(metric.spec for metric in self.decides))


class Talk:
    """The conversation about one case. ``ask`` is what is to be asked next, ``None`` when ``results`` are there."""

    def __init__(self, judging: Judging) -> None:
        self._judging = judging
        self.ask: Ask | None = None
        self.results: Results = {}
        self.hear(None)

    def hear(self, heard: Heard | None) -> None:
        """Go on with what was heard; ``None`` begins."""
        try:
            self.ask = next(self._judging) if heard is None else self._judging.send(heard)
        except StopIteration as end:
            self.ask, self.results = None, end.value


def failed(case: Case, heard: Heard) -> Results:
    """The results of a conversation that cannot go on."""
    return {name: Result.failed(heard.failure) for name in case.metrics}
