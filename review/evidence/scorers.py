"""Scorers of a run's answers (judges, imported judges, rules), and the combined value of repeats."""

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
from evaluation.scoring.scores import counting_scores, current_scores
from review.models import GoldItem
from review.models.statements import ANSWER_SCORES
from review.statistics.gold_split import Split

# As many repeats gave one class as another.
REPEATS_TIED = "repeats_tied"
# Primary keys of an answer and a metric.
AnswerMetricKey = tuple[int, int]


class JudgedValue(NamedTuple):
    """Scorer's value of one metric for one answer: the mean over scored repeats (classes: the majority).

    ``value`` or ``label`` is set exactly if ``status`` is scored, otherwise ``reason``. ``repeat_values`` holds the
    values of several repeats."""

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str = ""
    repeats: int = 1
    repeat_values: tuple[float, ...] = ()

    @property
    def value_or_label(self) -> float | str | None:
        """Value or label; ``None`` without either."""
        return self.label if self.value is None else self.value


class ScoreRow(NamedTuple):
    """Columns of a score that figures need; a row with a value drops its ``reason``."""

    status: str
    value: float | None
    label: str | None
    reason: str


def combine_repeats(repeats: Sequence[ScoreRow]) -> JudgedValue:
    """Combine repeats: the mean of the scored ones, also if others failed.

    Without a scored one, the first failure, or else the first reason why the metric does not apply."""
    scored = [row for row in repeats if row.status == Status.SCORED]
    if not scored:
        failed = [row for row in repeats if row.status == Status.FAILED]
        first = (failed or list(repeats))[0]
        return JudgedValue(Status(first.status), reason=first.reason, repeats=len(repeats))
    values = [row.value for row in scored if row.value is not None]
    if values:
        repeat_values = tuple(values) if len(values) > 1 else ()
        return JudgedValue(
            Status.SCORED, value=math.fsum(values) / len(values), repeats=len(repeats), repeat_values=repeat_values
        )
    label = majority(row.label for row in scored if row.label is not None)
    if label is None:
        return JudgedValue(Status.FAILED, reason=REPEATS_TIED, repeats=len(repeats))
    return JudgedValue(Status.SCORED, label=label, repeats=len(repeats))


def majority(labels: Iterable[str]) -> str | None:
    """Most frequent label; ``None`` without labels or if two are tied."""
    ranked = Counter(labels).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def metric_title(metric: MetricDefinition) -> Bilingual:
    """Stored title, or the name of a metric without a title, such as an imported one."""
    english = metric.title.get("en") or metric.name
    return Bilingual(english, metric.title.get("ko") or english)


def metric_titles(names: Iterable[str]) -> dict[str, Bilingual]:
    """Titles of the newest versions of metrics, by name. One query."""
    rows = MetricDefinition.objects.filter(name__in=set(names)).order_by("version")
    return {row.name: metric_title(row) for row in rows}


RULES = "rules"
# Judge and rubric version (0: none), author of imported scores, and whether these count.
_ScorerKey = tuple[int, int, str, bool]
# By metric and answer.
_RepeatsByMetric = dict[int, dict[int, tuple[ScoreRow, ...]]]
_FIELDS = ("judge_version_id", "rubric_version_id", "author", "metric_id", "answer_id", *ScoreRow._fields)


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scorer with its values.

    ``author`` is ``name@version``, an imported judge's label, or ``rules``. ``rubric`` is the rubric version and
    ``method`` the derivation of values; both are empty unless a judge of the run. ``primary``: its values are the
    run's. An imported judge that counts for some metrics only is two scorers of one name. ``values`` is by metric and
    answer, and equal values share one object. ``prompt_labels`` are the labels that its prompt was developed on, see
    :func:`prompt_labels_by_rubric`."""

    author: str
    rubric: str
    method: str
    primary: bool
    baseline: bool
    imported: bool
    values: dict[int, dict[int, JudgedValue]]
    prompt_labels: frozenset[AnswerMetricKey] = frozenset()


def load_scorers(run: Run, answer_ids: Collection[int] | None = None) -> list[Scorer]:
    """Load the scorers of the run's answers (or some of them), the run's own scorers first.

    Two queries, and two more if a judge uses a prompt written in the project."""
    judges = {
        (run_judge.judge_version_id, run_judge.rubric_version_id): run_judge
        for run_judge in run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "id")
    }
    scores = Score.objects.filter(run=run)
    if answer_ids is not None:
        scores = scores.filter(answer_id__in=answer_ids)
    rows: dict[_ScorerKey, _RepeatsByMetric] = {}
    # Hundreds of thousands of scores have few different values.
    row_by_columns: dict[tuple[Any, ...], tuple[ScoreRow]] = {}
    counting_imports = cache(lambda: set(ImportedJudge.objects.filter(run=run).values_list("metric_id", "author")))
    # Named answers use the index of answers: in the order of keys, SQLite reads all scores of the run.
    order = ("id",) if answer_ids is None else ("answer", "id")
    columns = current_scores(scores).order_by(*order).values_list(*_FIELDS)
    for judge_id, rubric_id, author, metric_id, answer_id, *outcome in columns.iterator(chunk_size=5000):
        counts = bool(author) and (metric_id, author) in counting_imports()
        if outcome[0] == Status.SCORED:
            outcome[-1] = ""
        if (row := row_by_columns.get(columns_key := tuple(outcome))) is None:
            row = row_by_columns[columns_key] = (ScoreRow(*outcome),)
        rows_by_answer = rows.setdefault((judge_id or 0, rubric_id or 0, author, counts), {}).setdefault(metric_id, {})
        rows_by_answer[answer_id] = rows_by_answer.get(answer_id, ()) + row
    names = _names(list(judges.values()))
    judge_keys = [*judges, (0, 0)]
    prompt_labels = prompt_labels_by_rubric(run, judges.values())
    return [
        _scorer(
            scorer_key,
            judges.get(scorer_key[:2]),
            names,
            rows[scorer_key],
            prompt_labels.get(scorer_key[1], frozenset()),
        )
        for scorer_key in sorted(
            rows,
            key=lambda scorer_key: (
                bool(scorer_key[2]),
                judge_keys.index(scorer_key[:2]),
                not scorer_key[3],
                scorer_key[2],
            ),
        )
    ]


def prompt_labels_by_rubric(run: Run, judges: Iterable[RunJudge]) -> dict[int, frozenset[AnswerMetricKey]]:
    """Labels of the run's answers that each rubric version was developed on.

    These are labels of examples and validation in gold sets that existed before the version was first activated.
    Agreement on them is optimistic: agreement leaves them out, and in a correction they represent no other answers.
    Shipped prompts have none. No query if there are only shipped prompts, else two."""
    written_versions = {judge.rubric_version_id for judge in judges if judge.rubric_version.project_id}
    if not written_versions:
        return {}
    events = RubricEvent.objects.filter(version__in=written_versions, verb=RubricEvent.Verb.ACTIVATED)
    activated_at = dict(events.order_by().values_list("version").annotate(Min("created_at")))
    items = GoldItem.objects.filter(answer__answer_set=run.answer_set_id).exclude(split=Split.HOLD_OUT)
    rows = list(items.values_list("answer_id", "metric_id", "gold_set__created_at"))
    return {
        version: frozenset(
            (answer, metric) for answer, metric, frozen_at in rows if frozen_at <= activated_at.get(version, frozen_at)
        )
        for version in written_versions
    }


def run_scores(scorers: Iterable[Scorer], answers: Collection[int]) -> dict[int, dict[int, JudgedValue]]:
    """Scores of the run for these answers, by metric and answer: from rules, primary judges and imported judges that
    count.

    Metrics without scores are left out."""
    scores: dict[int, dict[int, JudgedValue]] = {}
    for scorer in scorers:
        for metric, by_answer in scorer.values.items() if scorer.primary else ():
            if metric_scores := {answer: value for answer, value in by_answer.items() if answer in answers}:
                scores.setdefault(metric, {}).update(metric_scores)
    return scores


def _scorer(
    scorer_key: _ScorerKey,
    judge: RunJudge | None,
    names: dict[int, str],
    rows: _RepeatsByMetric,
    prompt_labels: frozenset[AnswerMetricKey],
) -> Scorer:
    author, counts = scorer_key[2:]
    combine = cache(combine_repeats)
    return Scorer(
        author=names[judge.pk] if judge else author or RULES,
        rubric=str(judge.rubric_version) if judge else "",
        method=judge.method if judge else "",
        primary=judge.primary if judge else not author or counts,
        baseline=bool(judge and judge.judge_version.is_baseline),
        imported=bool(author),
        values={
            metric: {pk: combine(repeats) for pk, repeats in by_answer.items()} for metric, by_answer in rows.items()
        },
        prompt_labels=frozenset((answer, metric) for answer, metric in prompt_labels if answer in rows.get(metric, ())),
    )


def _names(judges: list[RunJudge]) -> dict[int, str]:
    """``name@version``, with the rubric if one judge version uses several of a family."""
    families = [(judge.judge_version_id, judge.rubric_version.family) for judge in judges]
    return {
        judge.pk: str(judge.judge_version)
        if families.count((judge.judge_version_id, judge.rubric_version.family)) == 1
        else f"{judge.judge_version} {judge.rubric_version}"
        for judge in judges
    }


_SCORE_FIELDS = (
    *("answer_id", "metric_id", "status", "value", "label", "reason", "author", "detail"),
    *("judge_version__name", "judge_version__version", "judge_version__endpoint_id", "judge_version__params"),
    *("rubric_version__family", "rubric_version__version"),
)


@dataclass(frozen=True, slots=True)
class CombinedScore:
    """Value of one metric for one answer: the mean over repeats (classes: the most common label).

    ``status`` is ``failed`` if every repeat failed. ``spread`` is the standard deviation over repeats, or over the
    members of a jury; 0 with a single one. ``by`` is the judge version, empty for a rule, and ``rubric`` its rubric
    version. ``reason`` is the first repeat's explanation, or the code of the failure."""

    status: str
    value: float | None
    label: str | None
    reason: str
    by: str
    baseline: bool
    rubric: str
    spread: float = 0.0


def combined_scores(run: Run, metric_ids: Collection[int]) -> dict[tuple[int, int], CombinedScore]:
    """Primary values of a whole run by (answer id, metric id)."""
    scores = counting_scores(run).filter(metric_id__in=metric_ids)
    repeats: dict[tuple[int, int], list[Score]] = {}
    for score in scores.select_related("judge_version", "rubric_version").only(*_SCORE_FIELDS).order_by("repeat", "id"):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    return {key: _combined_value(scores_of_key) for key, scores_of_key in repeats.items()}


def answer_scores(run_id: int, answer_id: int, metric_ids: Collection[int]) -> dict[int, CombinedScore]:
    """Primary values of one answer by metric id, in a fast query, because every review item needs them."""
    repeats: dict[int, list[Score]] = {}
    for score, judge, rubric in ANSWER_SCORES.rows(run=run_id, answer=answer_id, metrics=list(metric_ids)):
        score.judge_version, score.rubric_version = judge, rubric
        repeats.setdefault(score.metric_id, []).append(score)
    return {metric: _combined_value(scores_of_metric) for metric, scores_of_metric in repeats.items()}


def _combined_value(repeats: list[Score]) -> CombinedScore:
    scored = [score for score in repeats if score.status == Status.SCORED]
    first = next(iter(scored), repeats[0])
    values = [score.value for score in scored if score.value is not None]
    labels = [score.label for score in scored if score.label is not None]
    judge, rubric = first.judge_version, first.rubric_version
    return CombinedScore(
        status=first.status,
        value=statistics.fmean(values) if values else None,
        label=statistics.mode(labels) if labels and not values else None,
        reason=first.reason,
        by=str(judge) if judge else first.author,
        baseline=bool(judge and judge.is_baseline),
        rubric=f"{rubric.family} v{rubric.version}" if rubric else "",
        spread=statistics.pstdev(values) if len(values) > 1 else float(first.detail.get("spread", 0.0)),
    )
