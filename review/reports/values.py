"""One side of the figures: what the judge said of each answer, or the values that count after review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evaluation.core.registry import Scale
from evaluation.core.samples import Status
from evaluation.profiles.arithmetic import PartMean
from evaluation.profiles.per_answer import BY_ANSWER, PartValue
from evaluation.profiles.spec import ProfileSpec
from review.evidence.answers import RunAnswer
from review.evidence.effective import Effective, RunValues


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one answer on one side; ``status`` is ``None`` while there is no result."""

    status: Status | None
    value: float | None = None
    label: str | None = None
    reason: str = ""


PENDING = Value(None)


@dataclass(frozen=True, slots=True)
class MetricValues:
    """A metric's values for some answers, in their order."""

    name: str
    scale: Scale
    answers: Sequence[RunAnswer]
    values: Sequence[Value]

    def count(self, status: Status | None) -> int:
        """How many have the status."""
        return sum(value.status is status for value in self.values)

    @property
    def numbers(self) -> list[tuple[RunAnswer, float]]:
        """The scored numbers with their answers."""
        return [(a, v.value) for a, v in zip(self.answers, self.values, strict=True) if v.value is not None]

    @property
    def labels(self) -> list[str]:
        """The scored labels."""
        return [value.label for value in self.values if value.label is not None]

    def part_mean(self) -> PartMean:
        """The mean as profile arithmetic reads it. Only for metrics with numbers."""
        numbers = [number for _, number in self.numbers]
        mean = sum(numbers) / len(numbers) if numbers else None
        failed, left_out = self.count(Status.FAILED), self.count(Status.NOT_APPLICABLE)
        return PartMean(self.name, mean, len(numbers), failed, left_out, self.scale.low, self.scale.high)

    def within(self, answers: frozenset[int]) -> MetricValues:
        """The same of some of the answers."""
        kept = [(a, v) for a, v in zip(self.answers, self.values, strict=True) if a.answer_id in answers]
        return MetricValues(self.name, self.scale, [a for a, _ in kept], [v for _, v in kept])


@dataclass(frozen=True, slots=True)
class Side:
    """All metrics the run computed, on one side, by name."""

    answers: Sequence[RunAnswer]
    metrics: dict[str, MetricValues]

    def part_means(self) -> list[PartMean]:
        """The means of every metric with numbers."""
        return [one.part_mean() for one in self.metrics.values() if not one.scale.labels]

    def part_values(self, profile: ProfileSpec) -> list[list[PartValue]]:
        """Per answer, the values of the profile's metrics, as per-answer arithmetic reads them; pending ones are
        left out."""
        wanted = [one for name, one in self.metrics.items() if name in profile.metrics and not one.scale.labels]
        return [[_part_value(one, one.values[at]) for one in wanted if one.values[at].status] for at in self._places()]

    def within(self, answers: frozenset[int]) -> Side:
        """The same of some of the answers."""
        kept = [answer for answer in self.answers if answer.answer_id in answers]
        return Side(kept, {name: one.within(answers) for name, one in self.metrics.items()})

    def _places(self) -> range:
        return range(len(self.answers))


def machine_side(answers: Sequence[RunAnswer], found: RunValues) -> Side:
    """What the rules and the primary judges said, as it came."""
    return _side(answers, found, as_judged)


def reviewed_side(answers: Sequence[RunAnswer], found: RunValues) -> Side:
    """The effective values."""
    return _side(answers, found, as_effective)


def _side(answers: Sequence[RunAnswer], found: RunValues, convert: Callable[[Effective | None], Value]) -> Side:
    metrics: dict[str, MetricValues] = {}
    for pk in found.computed:
        metric = found.metrics[pk]
        values = [convert(found.values.get((answer.answer_id, pk))) for answer in answers]
        metrics[metric.name] = MetricValues(metric.name, metric.read_scale(), answers, values)
    return Side(answers, dict(sorted(metrics.items())))


def as_judged(effective: Effective | None) -> Value:
    """What the rule or the primary judge said."""
    said = effective.judged if effective else None
    return PENDING if said is None else Value(said.status, said.value, said.label, said.reason)


def as_effective(effective: Effective | None) -> Value:
    """The value that counts."""
    if effective is None:
        return PENDING
    return Value(effective.status, effective.value, effective.label, effective.reason)


def _part_value(metric: MetricValues, value: Value) -> PartValue:
    by_answer = value.reason.partition(":")[0] in BY_ANSWER
    status = value.status or Status.NOT_APPLICABLE
    return PartValue(metric.name, status, metric.scale.low, metric.scale.high, value.value, by_answer)


def categories_of(answers: Iterable[RunAnswer]) -> dict[str, frozenset[int]]:
    """Category -> its answers, in the order categories first appear."""
    found: dict[str, set[int]] = {}
    for answer in answers:
        found.setdefault(answer.category, set()).add(answer.answer_id)
    return {name: frozenset(ids) for name, ids in found.items()}
