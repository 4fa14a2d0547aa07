"""A jury's scores: joined from those of its members when no work is open any more.

They belong to no unit. Joining again changes nothing where the members say the same; where they have changed (after a
retry) a row of the next round supersedes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import QuerySet

from evaluation.core.canonical import content_hash
from evaluation.core.samples import Result
from evaluation.judging.jury import JuryRule, joined
from evaluation.models import Run, RunJudge, Score
from evaluation.scoring.coverage import current
from evaluation.scoring.deriving import folded

BATCH = 1000
_Key = tuple[int, int]  # answer, metric


def judge_together(run: Run) -> int:
    """Insert the scores of the run's juries that are new; how many rows that were.

    Two workers may do it at once: the constraint on a score's origin keeps one row of each.
    """
    if not Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        return 0
    seats = list(run.judges.select_related("judge_version", "rubric_version"))
    return sum(_join(run, seat, seats) for seat in seats if seat.judge_version.is_jury)


def _join(run: Run, jury: RunJudge, seats: Sequence[RunJudge]) -> int:
    spec = jury.judge_version.params["jury"]
    family = jury.rubric_version.family
    wanted = set(spec["members"])
    members = [seat for seat in seats if seat.rubric_version.family == family and str(seat.judge_version) in wanted]
    by_answer: dict[_Key, dict[str, Result]] = {}
    for member in members:
        for key, result in _results(run, member):
            by_answer.setdefault(key, {})[str(member.judge_version)] = result
    before = {(score.answer_id, score.metric_id): score for score in _scores(run, jury).order_by("round")}
    rows = []
    for key, said in by_answer.items():
        result, old = joined(said, JuryRule(spec["rule"])), before.get(key)
        if old is None or (old.status, old.value, old.label, old.detail) != _row(result):
            rows.append(_score(run, jury, key, result, old.round + 1 if old else 0))
    Score.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def _results(run: Run, member: RunJudge) -> Iterator[tuple[_Key, Result]]:
    """The member's results with its repeats folded. One query."""
    repeats: dict[_Key, list[Score]] = {}
    for score in current(_scores(run, member)).order_by("repeat", "id").iterator(chunk_size=5000):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    for key, several in repeats.items():
        yield key, folded([(one.status, one.value, one.label, one.reason) for one in several])


def _scores(run: Run, seat: RunJudge) -> QuerySet[Score]:
    return Score.objects.filter(run=run, judge_version=seat.judge_version_id, rubric_version=seat.rubric_version_id)


def _row(result: Result) -> tuple[str, float | None, str | None, dict[str, object]]:
    return result.status, result.value, result.label, dict(result.detail)


def _score(run: Run, jury: RunJudge, key: _Key, result: Result, number: int) -> Score:
    answer_id, metric_id = key
    return Score(
        run=run,
        answer_id=answer_id,
        metric_id=metric_id,
        origin=content_hash(["jury", run.pk, jury.pk, answer_id]),
        round=number,
        judge_version_id=jury.judge_version_id,
        rubric_version_id=jury.rubric_version_id,
        status=result.status,
        value=result.value,
        label=result.label,
        reason=result.reason,
        detail=dict(result.detail),
    )
