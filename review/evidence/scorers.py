"""A metric's title in both languages.

Everybody who scored a run's answers: its judges, judges imported from elsewhere, and the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from evaluation.core.registry import Bilingual
from evaluation.models import MetricDefinition, Run, RunJudge, Score
from evaluation.scoring.writing import current
from review.evidence.judged import Judged, Key, ScoreRow, folded


def title_of(metric: MetricDefinition) -> Bilingual:
    """The stored title; the name where a metric came without one, as imported ones do."""
    english = metric.title.get("en") or metric.name
    return Bilingual(english, metric.title.get("ko") or english)


RULES = "rules"
_Who = tuple[int, int, str]  # judge and rubric version (0: none), author of imported scores
_FIELDS = ("answer_id", "metric_id", "status", "value", "label", "reason")


@dataclass(frozen=True, slots=True)
class Scorer:
    """One scorer with what it said. ``author`` is ``name@version``, an imported judge's label, or ``rules``;
    ``rubric`` the version of the rubric it judged by and ``method`` how its values come about, empty without a judge of
    the run; ``primary`` marks the scorer whose values are the run's."""

    author: str
    rubric: str
    method: str
    primary: bool
    baseline: bool
    imported: bool
    said: dict[Key, Judged]


def scorers_of(run: Run, answer_ids: Collection[int] | None = None) -> list[Scorer]:
    """Who scored the run's answers (or some of them), the run's own scorers first. Two queries."""
    judges = {
        (one.judge_version_id, one.rubric_version_id): one
        for one in run.judges.select_related("judge_version", "rubric_version").order_by("-primary", "id")
    }
    scores = Score.objects.filter(run=run)
    if answer_ids is not None:
        scores = scores.filter(answer_id__in=answer_ids)
    rows: dict[_Who, dict[Key, list[ScoreRow]]] = {}
    columns = current(scores).order_by("id").values_list("judge_version_id", "rubric_version_id", "author", *_FIELDS)
    for judge_id, rubric_id, author, *values in columns.iterator(chunk_size=5000):
        row = ScoreRow(*values)
        said = rows.setdefault((judge_id or 0, rubric_id or 0, author), {})
        said.setdefault((row.answer_id, row.metric_id), []).append(row)
    names = _names(list(judges.values()))
    order = [*judges, (0, 0)]
    return [
        _scorer(who, judges.get(who[:2]), names, rows[who])
        for who in sorted(rows, key=lambda who: (bool(who[2]), order.index(who[:2]), who[2]))
    ]


def values_of_run(scorers: Iterable[Scorer]) -> dict[Key, Judged]:
    """What counts as the run's own values: those of the rules and of the primary judges."""
    return {key: said for one in scorers if one.primary for key, said in one.said.items()}


def _scorer(who: _Who, judge: RunJudge | None, names: dict[int, str], rows: dict[Key, list[ScoreRow]]) -> Scorer:
    author = who[2]
    return Scorer(
        author=names[judge.pk] if judge else author or RULES,
        rubric=str(judge.rubric_version) if judge else "",
        method=judge.method if judge else "",
        primary=judge.primary if judge else not author,
        baseline=bool(judge and judge.judge_version.is_baseline),
        imported=bool(author),
        said={place: folded(repeats) for place, repeats in rows.items()},
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
