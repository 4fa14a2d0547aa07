"""What was said about a run's answers, and the value that counts: a decision, else the experts, else the judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property, partial
from typing import NamedTuple, Protocol, TypeVar

from evaluation.core.metric_specs import Kind
from evaluation.core.samples import Status
from evaluation.core.scales import ScaleKind
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import RunAnswer, removed_answers, run_answers
from review.evidence.carried import Carried, Origin, carried_ratings
from review.evidence.experts import ExpertRating, agreement_ratings, effective_ratings, ratings_of, read
from review.evidence.sampling import Samples, samples_of
from review.evidence.scorers import Judged, Key, Scorer, majority, scorers_of, values_of_run
from review.evidence.seals import sealed_answers
from review.models import Override
from review.statistics.agreement.statistic import Indices, numbered


class _OfAKind(Protocol):
    @property
    def kind(self) -> str: ...


Row = TypeVar("Row", bound=_OfAKind)


@dataclass(frozen=True, slots=True)
class Decision:
    """A value or label above everything said before, by an override or an adjudication; a revert has neither."""

    value: float | None
    label: str | None
    kind: str


def standing(rows: Iterable[Row]) -> Row | None:
    """The override or adjudication that stands, from all rows of an answer and metric in the order of ``seq``: each
    revert takes away the newest one before it."""
    stack: list[Row] = []
    for row in rows:
        if row.kind != Override.Kind.REVERT:
            stack.append(row)
        elif stack:
            stack.pop()
    return stack[-1] if stack else None


def standing_decisions(answer_set_id: int | None, answer_ids: Collection[int] | None = None) -> dict[Key, Decision]:
    """The decision of each answer and metric that stands. Without an answer set, of the answers named. One query."""
    rows = (
        Override.objects.all()
        if answer_set_id is None
        else Override.objects.filter(answer__answer_set_id=answer_set_id)
    )
    if answer_ids is not None:
        rows = rows.filter(answer_id__in=answer_ids)
    found: dict[Key, list[Decision]] = {}
    columns = rows.order_by("answer_id", "metric_id", "seq")
    for answer_id, metric_id, kind, value, label in columns.values_list(
        "answer_id", "metric_id", "kind", "value", "label"
    ):
        found.setdefault((answer_id, metric_id), []).append(Decision(value, label, kind))
    return {key: top for key, several in found.items() if (top := standing(several)) is not None}


def adjudicated(answer_ids: Collection[int]) -> dict[int, frozenset[int]]:
    """Answer -> the metrics on which a lead's adjudication stands; they are closed for their raters. One query."""
    found: dict[int, set[int]] = {}
    for (answer, metric), decision in standing_decisions(None, answer_ids).items():
        if decision.kind == Override.Kind.ADJUDICATION:
            found.setdefault(answer, set()).add(metric)
    return {answer: frozenset(metrics) for answer, metrics in found.items()}


@dataclass(frozen=True)
class Said:
    """What was said about the answers of a run. ``metrics`` holds every metric that anybody gave a value for, by
    primary key; ``scored`` are the values of the rules and primary judges by metric and answer, ``computed`` their
    metrics. ``removed`` are answers that a lead took out of all means. ``carried`` are the ratings of equal answers
    that hold where nobody rated the answer itself; they are not among ``ratings``. ``sealed`` are the answers whose
    labels are left out here (:mod:`review.evidence.seals`), ``withheld`` their ratings without values: how answers
    were sampled does not depend on who reads."""

    answers: dict[int, RunAnswer]
    scorers: list[Scorer]
    scored: dict[int, dict[int, Judged]]
    ratings: list[ExpertRating]
    decisions: dict[Key, Decision]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]
    removed: tuple[RunAnswer, ...] = ()
    carried: Mapping[Key, Carried] = field(default_factory=dict)
    sealed: frozenset[int] = frozenset()
    withheld: Sequence[ExpertRating] = ()

    @cached_property
    def blind(self) -> dict[Key, list[ExpertRating]]:
        """Each rater's blind first word, see :func:`agreement_ratings`."""
        return agreement_ratings(self.ratings)

    @cached_property
    def blind_by_metric(self) -> dict[int, dict[int, list[ExpertRating]]]:
        """The same by metric and answer."""
        found: dict[int, dict[int, list[ExpertRating]]] = {}
        for (answer, metric), rows in self.blind.items():
            found.setdefault(metric, {})[answer] = rows
        return found

    @cached_property
    def latest(self) -> dict[Key, list[ExpertRating]]:
        """Each rater's last word, see :func:`effective_ratings`."""
        return effective_ratings(self.ratings)

    @cached_property
    def ratings_by_metric(self) -> dict[int, list[ExpertRating]]:
        """All ratings of each metric that has any."""
        found: dict[int, list[ExpertRating]] = {}
        for row in self.ratings:
            found.setdefault(row.metric_id, []).append(row)
        return found

    @property
    def built(self) -> frozenset[Key]:
        """The labels that the prompts of the judges that count were worked out on."""
        return frozenset().union(*(one.built for one in self.scorers if one.primary))

    @property
    def imported_judges(self) -> dict[str, str]:
        """Metric -> the imported judge that counts, by the metric's name."""
        theirs = (one for one in self.scorers if one.imported and one.primary)
        return dict(sorted((self.metrics[pk].name, one.author) for one in theirs for pk in one.said))

    @cached_property
    def keys(self) -> list[int]:
        """The answers' keys in their order."""
        return list(self.answers)

    @cached_property
    def groups(self) -> tuple[Indices, list[str]]:
        """The group of each answer, as its place among their names, and the names."""
        of_answer = [one.group for one in self.answers.values()]
        return numbered(of_answer), list(dict.fromkeys(of_answer))

    @cached_property
    def categories(self) -> tuple[Indices, dict[str, int]]:
        """The category of each answer as a number, and the number of each."""
        of_answer = [one.category for one in self.answers.values()]
        return numbered(of_answer), {name: at for at, name in enumerate(dict.fromkeys(of_answer))}

    @cached_property
    def names(self) -> dict[int, str]:
        """Metric -> its name, with the version where two versions of a metric were used."""
        return names_of(self.metrics)


def names_of(metrics: Mapping[int, MetricDefinition]) -> dict[int, str]:
    """Metric -> its name, with the version where there are two versions of it."""
    of_name = Counter(metric.name for metric in metrics.values())
    return {
        pk: metric.name if of_name[metric.name] == 1 else f"{metric.name}@{metric.version}"
        for pk, metric in metrics.items()
    }


def said_of(run: Run, answer_ids: Collection[int] | None = None) -> Said:
    """Read everything about the run's answers, or some of them, in nine queries, three more where ratings of equal
    answers hold, and up to three more where the project has a gold set. Over a whole run the answers that a lead took
    out are left out, and named in ``removed``. Labels that the current reader may not see are left out."""
    asked = run_answers(run, answer_ids)
    out = removed_answers(run.answer_set_id, answer_ids)
    removed = tuple(one for one in asked if one.answer_id in out)
    kept = asked if answer_ids is not None else [one for one in asked if one.answer_id not in out]
    answers = {answer.answer_id: answer for answer in kept}
    sealed = sealed_answers(run.project_id, run.answer_set_id, answer_ids)
    labelled = answers.keys() - sealed
    scorers = scorers_of(run, answer_ids)
    rows = read(ratings_of(run.answer_set_id, answer_ids))
    ratings = [row for row in rows if row.answer_id in labelled]
    withheld = [row._replace(value=None, label=None) for row in rows if row.answer_id in answers.keys() & sealed]
    decisions = {k: d for k, d in standing_decisions(run.answer_set_id, answer_ids).items() if k[0] in labelled}
    scored = values_of_run(scorers, answers)
    equal = _unsealed(run, {key: one for key, one in carried_ratings(run, answer_ids).items() if key[0] in labelled})
    seen = {metric for one in scorers for metric in one.said} | {row.metric_id for row in ratings}
    seen |= {metric for _, metric in decisions}
    known = MetricDefinition.objects.in_bulk(seen | {metric for _, metric in equal})
    computed = frozenset(scored)
    carried = _holding(equal, ratings, known, computed)
    metrics = {pk: known[pk] for pk in seen | {metric for _, metric in carried}}
    return Said(answers, scorers, scored, ratings, decisions, metrics, computed, removed, carried, sealed, withheld)


def _unsealed(run: Run, equal: Mapping[Key, Carried]) -> dict[Key, Carried]:
    """Leave out ratings of sealed answers: an answer without a text has ratings of an equal one, but is not sealed with
    it. One query where there are any ratings, and more where the project has a gold set."""
    origins = {one.origin.answer_id for one in equal.values()}
    sealed = sealed_answers(run.project_id, None, origins) if origins else frozenset()
    return {key: one for key, one in equal.items() if one.origin.answer_id not in sealed}


def _holding(
    equal: Mapping[Key, Carried],
    ratings: Sequence[ExpertRating],
    metrics: Mapping[int, MetricDefinition],
    computed: Collection[int],
) -> dict[Key, Carried]:
    """The ratings of equal answers that hold: nobody's rating of the answer itself takes their place, no decision on
    the equal answer stands above them, their raters were not tied, and the run does not compute another version of the
    metric. One query where there are any."""
    if not equal:
        return {}
    own = effective_ratings(ratings)
    decided = standing_decisions(None, {one.origin.answer_id for one in equal.values()})
    versions = {metrics[pk].name: pk for pk in computed}
    return {
        (answer, pk): one
        for (answer, pk), one in equal.items()
        if (answer, pk) not in own
        and (one.origin.answer_id, pk) not in decided
        and versions.get(metrics[pk].name, pk) == pk
        and together(metrics[pk], one.ratings) != (None, None)
    }


def samples_behind(run: Run, said: Said) -> Samples:
    """The draws and imported samples behind the ratings. Three queries."""
    return samples_of(run.answer_set_id, list(said.answers), said.withheld)


NO_VALUE = "no_value"  # nobody has scored or rated it yet


class Source(StrEnum):
    """Whose value counts. ``rule``: the metric is computed without a judge."""

    OVERRIDE = "override"
    REVIEW = "review"
    JUDGE = "judge"
    RULE = "rule"
    NONE = "none"


class Effective(NamedTuple):
    """The value of one metric for one answer that counts, beside what the judge (or rule) said; equal ones are shared.

    ``value`` or ``label`` is set unless ``source`` is none; then ``status`` tells failed, not applicable and pending
    (``None``) apart and ``reason`` says why. ``raters`` counts the experts behind the value, or who were tied:
    ``unresolved`` means that they were split evenly over yes and no or classes, so that the judge's value is shown
    and an adjudication is asked for. ``judged`` is ``None`` where nothing was scored. ``carried`` tells from which
    equal answer the experts' value comes where nobody rated this one.
    """

    source: Source
    status: Status | None
    value: float | None = None
    label: str | None = None
    reason: str = ""
    raters: int = 0
    unresolved: bool = False
    judged: Judged | None = None
    carried: Origin | None = None

    @property
    def human(self) -> bool:
        """Whether a person's decision or rating gave the value."""
        return self.source in {Source.OVERRIDE, Source.REVIEW}


@dataclass(frozen=True, slots=True)
class RunValues:
    """All effective values of a run by metric and answer, and the metrics they belong to, by primary key. ``heard`` are
    those of which a person said anything.

    ``computed`` are the metrics of which the run has scores; the others were only rated.
    """

    values: dict[int, dict[int, Effective]]
    heard: dict[int, dict[int, Effective]]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]

    @property
    def reviewed(self) -> frozenset[int]:
        """The answers of which any value is a person's."""
        return frozenset(pk for of_answers in self.heard.values() for pk, one in of_answers.items() if one.human)


def effective_values(run: Run, answer_ids: Collection[int] | None = None) -> RunValues:
    """The effective values of a run, or of some of its answers, in a fixed number of queries (seven).

    Every metric the run has computed has a value for every answer; a metric that was only rated has them where it was.
    Over a whole run, answers with an upheld flag of a bad question or reference are left out.
    """
    return values_from(said_of(run, answer_ids))


def values_from(said: Said) -> RunValues:
    """The effective values of everything that was said; the run's own metrics first, each in the answers' order."""
    rated: dict[int, set[int]] = {pk: set() for pk in said.computed}
    for answer, metric_id in (*said.latest, *said.decisions, *said.carried):
        rated.setdefault(metric_id, set()).add(answer)
    values: dict[int, dict[int, Effective]] = {}
    heard: dict[int, dict[int, Effective]] = {}
    for metric_id in sorted(rated, key=lambda pk: (pk not in said.computed, said.metrics[pk].name, pk)):
        by_machine, scored = cache(partial(_by_machine, said.metrics[metric_id])), said.scored.get(metric_id, {})
        mine = {pk: _by_people(said, pk, metric_id) for pk in said.answers if pk in rated[metric_id]}
        values[metric_id] = heard[metric_id] = mine
        if metric_id in said.computed:
            values[metric_id] = {pk: mine.get(pk) or by_machine(scored.get(pk)) for pk in said.answers}
    return RunValues(values, heard, {pk: said.metrics[pk] for pk in values}, said.computed)


def _by_people(said: Said, answer_id: int, metric_id: int) -> Effective:
    """The value that counts where a person said anything of the answer, or of an equal one."""
    key, metric = (answer_id, metric_id), said.metrics[metric_id]
    ratings, equal = said.latest.get(key, ()), said.carried.get(key)
    judged = said.scored.get(metric_id, {}).get(answer_id)
    made = partial(Effective, raters=len(ratings or (equal.ratings if equal else ())), judged=judged)
    if (decision := said.decisions.get(key)) is not None:
        return made(Source.OVERRIDE, Status.SCORED, decision.value, decision.label)
    value, label = together(metric, ratings)
    if value is not None or label is not None:
        return made(Source.REVIEW, Status.SCORED, value, label)
    if equal is not None and not ratings:
        return made(Source.REVIEW, Status.SCORED, *together(metric, equal.ratings), carried=equal.origin)
    return _by_machine(metric, judged)._replace(raters=len(ratings), unresolved=True)


def _by_machine(metric: MetricDefinition, judged: Judged | None) -> Effective:
    if judged is None:
        return Effective(Source.NONE, None, reason=NO_VALUE)
    status, value, label, reason, *_ = judged
    if status is not Status.SCORED:
        return Effective(Source.NONE, status, value, label, reason, judged=judged)
    source = Source.RULE if metric.kind in {Kind.RULE, Kind.EMBEDDING} else Source.JUDGE
    return Effective(source, status, value, label, judged=judged)


def together(metric: MetricDefinition, ratings: Sequence[ExpertRating]) -> tuple[float | None, str | None]:
    """The experts' common value: the mean; the majority for yes/no and classes, neither where they are tied."""
    if not ratings:
        return None, None
    kind = metric.read_scale().kind
    if kind is ScaleKind.CLASS:
        return None, majority(str(rating.label) for rating in ratings)
    values = [rating.value for rating in ratings if rating.value is not None]
    mean = math.fsum(values) / len(values)
    if kind is ScaleKind.YES_NO:
        return (None if math.isclose(mean, 0.5) else float(mean > 0.5)), None
    return mean, None
