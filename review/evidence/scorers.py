"""Everybody who scored a run's answers (its judges, imported ones, the rules), their repeats as one value."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from django.db.models import Min

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import Status
from evaluation.models import ImportedJudge, MetricDefinition, RubricEvent, Run, RunJudge, Score
from evaluation.scoring.writing import counting, current
from review.models import GoldItem
from review.models.statements import SAID
from review.statistics.gold_split import Split

REPEATS_TIED = "repeats_tied"  # as many repeats said one class as another
Key = tuple[int, int]  # answer, metric


class Judged(NamedTuple):
    """A scorer's value of one metric for one answer: the mean over the repeats that are scored (classes: their
    majority), ``value`` or ``label`` exactly where ``status`` is scored, else the ``reason``. ``each`` holds the
    repeats' values where there are several."""

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str = ""
    repeats: int = 1
    each: tuple[float, ...] = ()

    @property
    def answer(self) -> float | str | None:
        """The value or the label, ``None`` where there is neither."""
        return self.label if self.value is None else self.value


class ScoreRow(NamedTuple):
    """The columns of a score that figures read; the ``reason`` of one that has a value is not kept."""

    status: str
    value: float | None
    label: str | None
    reason: str


def folded(repeats: Sequence[ScoreRow]) -> Judged:
    """One value of several repeats: the mean of those that are scored, whatever failed beside them; without a scored
    one the first failure, else the first reason why the metric does not apply."""
    scored = [row for row in repeats if row.status == Status.SCORED]
    if not scored:
        failed = [row for row in repeats if row.status == Status.FAILED]
        first = (failed or list(repeats))[0]
        return Judged(Status(first.status), reason=first.reason, repeats=len(repeats))
    values = [row.value for row in scored if row.value is not None]
    if values:
        each = tuple(values) if len(values) > 1 else ()
        return Judged(Status.SCORED, value=math.fsum(values) / len(values), repeats=len(repeats), each=each)
    label = majority(row.label for row in scored if row.label is not None)
    if label is None:
        return Judged(Status.FAILED, reason=REPEATS_TIED, repeats=len(repeats))
    return Judged(Status.SCORED, label=label, repeats=len(repeats))


def majority(labels: Iterable[str]) -> str | None:
    """The most frequent label; ``None`` where two are tied for it, or there is none."""
    ranked = Counter(labels).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def title_of(metric: MetricDefinition) -> Bilingual:
    """The stored title; the name where a metric came without one, as imported ones do."""
    english = metric.title.get("en") or metric.name
    return Bilingual(english, metric.title.get("ko") or english)


def titles_of(names: Iterable[str]) -> dict[str, Bilingual]:
    """The titles of the newest versions of metrics, by name. One query."""
    rows = MetricDefinition.objects.filter(name__in=set(names)).order_by("version")
    return {row.name: title_of(row) for row in rows}


RULES = "rules"
_Who = tuple[int, int, str, bool]  # judge and rubric version (0: none), author of imported scores, whether they count
_Repeats = dict[int, dict[int, tuple[ScoreRow, ...]]]  # by metric and answer
_FIELDS = ("judge_version_id", "rubric_version_id", "author", "metric_id", "answer_id", *ScoreRow._fields)


@dataclass(frozen=True, slots=True)
class Scorer:
    """One scorer with what it said. ``author`` is ``name@version``, an imported judge's label, or ``rules``;
    ``rubric`` the version of the rubric it judged by and ``method`` how its values come about, empty without a judge of
    the run; ``primary`` marks the scorer whose values are the run's. An imported judge that counts for some metrics and
    not for others is two scorers of one name. ``said`` is by metric and answer, equal values being one object;
    ``built`` are the labels its prompt was worked out on, see :func:`built_on`."""

    author: str
    rubric: str
    method: str
    primary: bool
    baseline: bool
    imported: bool
    said: dict[int, dict[int, Judged]]
    built: frozenset[Key] = frozenset()


def scorers_of(run: Run, answer_ids: Collection[int] | None = None) -> list[Scorer]:
    """Who scored the run's answers (or some of them), the run's own scorers first. Two queries, and two more where a
    judge works by a prompt that a person of the project wrote."""
    judges = {
        (one.judge_version_id, one.rubric_version_id): one
        for one in run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "id")
    }
    scores = Score.objects.filter(run=run)
    if answer_ids is not None:
        scores = scores.filter(answer_id__in=answer_ids)
    rows: dict[_Who, _Repeats] = {}
    known: dict[tuple[Any, ...], tuple[ScoreRow]] = {}  # hundreds of thousands of scores have few different values
    counting = cache(lambda: set(ImportedJudge.objects.filter(run=run).values_list("metric_id", "author")))
    # By the index of answers where they are named: for the order of keys SQLite walks all scores of the run.
    order = ("id",) if answer_ids is None else ("answer", "id")
    columns = current(scores).order_by(*order).values_list(*_FIELDS)
    for judge_id, rubric_id, author, metric_id, answer_id, *outcome in columns.iterator(chunk_size=5000):
        counts = bool(author) and (metric_id, author) in counting()
        if outcome[0] == Status.SCORED:
            outcome[-1] = ""
        if (row := known.get(told := tuple(outcome))) is None:
            row = known[told] = (ScoreRow(*outcome),)
        of_metric = rows.setdefault((judge_id or 0, rubric_id or 0, author, counts), {}).setdefault(metric_id, {})
        of_metric[answer_id] = of_metric.get(answer_id, ()) + row
    names = _names(list(judges.values()))
    places = [*judges, (0, 0)]
    built = built_on(run, judges.values())
    return [
        _scorer(who, judges.get(who[:2]), names, rows[who], built.get(who[1], frozenset()))
        for who in sorted(rows, key=lambda who: (bool(who[2]), places.index(who[:2]), not who[3], who[2]))
    ]


def built_on(run: Run, judges: Iterable[RunJudge]) -> dict[int, frozenset[Key]]:
    """Rubric version -> the labels of the run's answers it was worked out on: those of examples and validation in gold
    sets that were there before it was first put in force. It flatters itself on them: agreement leaves them out, and
    in a correction they stand for themselves. Shipped prompts were worked out on none. No query where there are only
    these, else two."""
    written = {one.rubric_version_id for one in judges if one.rubric_version.project_id}
    if not written:
        return {}
    events = RubricEvent.objects.filter(version__in=written, verb=RubricEvent.Verb.ACTIVATED)
    since = dict(events.order_by().values_list("version").annotate(Min("created_at")))
    items = GoldItem.objects.filter(answer__answer_set=run.answer_set_id).exclude(split=Split.HOLD_OUT)
    rows = list(items.values_list("answer_id", "metric_id", "gold_set__created_at"))
    return {
        version: frozenset((answer, metric) for answer, metric, made in rows if made <= since.get(version, made))
        for version in written
    }


def values_of_run(scorers: Iterable[Scorer], answers: Collection[int]) -> dict[int, dict[int, Judged]]:
    """What counts as the run's own values of these answers, by metric and answer: those of the rules, of primary judges
    and of imported ones that count. Metrics without any are left out."""
    found: dict[int, dict[int, Judged]] = {}
    for one in scorers:
        for metric, of_answers in one.said.items() if one.primary else ():
            if said := {answer: value for answer, value in of_answers.items() if answer in answers}:
                found.setdefault(metric, {}).update(said)
    return found


def _scorer(
    who: _Who,
    judge: RunJudge | None,
    names: dict[int, str],
    rows: _Repeats,
    built: frozenset[Key],
) -> Scorer:
    author, counts = who[2:]
    fold = cache(folded)
    return Scorer(
        author=names[judge.pk] if judge else author or RULES,
        rubric=str(judge.rubric_version) if judge else "",
        method=judge.method if judge else "",
        primary=judge.primary if judge else not author or counts,
        baseline=bool(judge and judge.judge_version.is_baseline),
        imported=bool(author),
        said={metric: {pk: fold(each) for pk, each in of_answers.items()} for metric, of_answers in rows.items()},
        built=frozenset((answer, metric) for answer, metric in built if answer in rows.get(metric, ())),
    )


def _names(judges: list[RunJudge]) -> dict[int, str]:
    """``name@version``, with the rubric where one judge version works with several of a family."""
    families = [(one.judge_version_id, one.rubric_version.family) for one in judges]
    return {
        one.pk: str(one.judge_version)
        if families.count((one.judge_version_id, one.rubric_version.family)) == 1
        else f"{one.judge_version} {one.rubric_version}"
        for one in judges
    }


_COUNTING = (
    *("answer_id", "metric_id", "status", "value", "label", "reason", "author", "detail"),
    *("judge_version__name", "judge_version__version", "judge_version__endpoint_id", "judge_version__params"),
    *("rubric_version__family", "rubric_version__version"),
)


@dataclass(frozen=True, slots=True)
class MachineValue:
    """One metric of one answer: the mean over repeats (for classes the commonest label).

    ``status`` is ``failed`` where every repeat failed. ``spread`` is the standard deviation over repeats, of a jury
    over its members, 0 with one. ``by`` names the judge version, empty for a rule; ``rubric`` its rubric version.
    ``reason`` is the first repeat's explanation, or the code of the failure.
    """

    status: str
    value: float | None
    label: str | None
    reason: str
    by: str
    baseline: bool
    rubric: str
    spread: float = 0.0


def machine_values(run: Run, metric_ids: Collection[int]) -> dict[tuple[int, int], MachineValue]:
    """The counting values of a whole run by (answer id, metric id)."""
    scores = counting(run).filter(metric_id__in=metric_ids)
    repeats: dict[tuple[int, int], list[Score]] = {}
    for score in scores.select_related("judge_version", "rubric_version").only(*_COUNTING).order_by("repeat", "id"):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    return {key: _summed_up(several) for key, several in repeats.items()}


def answer_values(run_id: int, answer_id: int, metric_ids: Collection[int]) -> dict[int, MachineValue]:
    """The counting values of one answer by metric id: a reviewer waits for them with every item."""
    repeats: dict[int, list[Score]] = {}
    for score, judge, rubric in SAID.rows(run=run_id, answer=answer_id, metrics=list(metric_ids)):
        score.judge_version, score.rubric_version = judge, rubric
        repeats.setdefault(score.metric_id, []).append(score)
    return {metric: _summed_up(several) for metric, several in repeats.items()}


def _summed_up(repeats: list[Score]) -> MachineValue:
    scored = [score for score in repeats if score.status == Status.SCORED]
    first = next(iter(scored), repeats[0])
    values = [score.value for score in scored if score.value is not None]
    labels = [score.label for score in scored if score.label is not None]
    judge, rubric = first.judge_version, first.rubric_version
    return MachineValue(
        status=first.status,
        value=statistics.fmean(values) if values else None,
        label=statistics.mode(labels) if labels and not values else None,
        reason=first.reason,
        by=str(judge) if judge else first.author,
        baseline=bool(judge and judge.is_baseline),
        rubric=f"{rubric.family} v{rubric.version}" if rubric else "",
        spread=statistics.pstdev(values) if len(values) > 1 else float(first.detail.get("spread", 0.0)),
    )
