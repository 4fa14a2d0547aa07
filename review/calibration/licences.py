"""Licences of judges: what an acceptance proved of a version on a metric, and whether that still holds for a run.

A licence belongs to the version of a rubric that was accepted for the judges of a name. For a run it holds while the
same version, model and way of asking judge questions of the same set in the same language, the proof is not older than
``CONCORD_LICENCE_DAYS``, no check of its anchors found that the judge moved (``review/calibration/anchors.py``), and at
most a tenth of the answers are of categories that no label of the gold set is of. A
run's licence is told as of the day it was made, so that a report says the same tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db.models import Count

from evaluation.judging.catalogue import family_for
from evaluation.models import JudgeVersion, Preflight, Run, RunJudge
from evaluation.worker.lifecycle import answers_in
from review.models import AnchorShift, GoldItem, Licence, LookResult

MOST_UNSEEN = 0.1  # of a run's answers in categories that no label knows


def license_metrics(result: LookResult, hold_out: Mapping[str, Sequence[GoldItem]], model: str) -> None:
    """Write down what an acceptance proved, for each metric and question set; ``model`` answered."""
    gold_set = result.look.gold_set
    rows = gold_set.items.values_list("metric", "answer__question__question_set__name", "category", "answer")
    known: dict[tuple[int, str], set[str]] = {}
    sets: dict[int, str] = {}
    for metric, name, category, answer in rows.distinct():
        known.setdefault((metric, name), set()).add(category)
        sets[answer] = name
    tested: dict[tuple[int, str], list[GoldItem]] = {}
    for items in hold_out.values():
        for one in items:
            tested.setdefault((one.metric_id, sets[one.answer_id]), []).append(one)
    Licence.objects.bulk_create(
        Licence(
            result=result,
            metric_id=metric,
            question_set=name,
            answers=len(items),
            groups=len({one.group for one in items}),
            seen=sum(one.seen for one in items),
            categories=sorted(known[metric, name]),
            model=model,
        )
        for (metric, name), items in sorted(tested.items())
    )


class LicenceState(StrEnum):
    """Whether a proof holds for a run."""

    LICENSED = "licensed"
    STALE = "stale"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Lapse:
    """Why a licence does not hold: a code of ``evaluation/messages/reasons.py`` with what fills its sentence."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunLicence:
    """What is proved of a run's judge on a metric. Without a proof (``none``) only the names are filled; ``lapses`` are
    all the reasons of a stale one. ``look`` is the look that proved it, ``proved_at`` when, with ``answers`` hold-out
    answers, ``seen`` of them marked so; ``model`` answered then."""

    metric: str
    judge: str
    rubric: str
    state: LicenceState
    lapses: tuple[Lapse, ...] = ()
    look: str = ""
    proved_at: datetime | None = None
    answers: int = 0
    seen: int = 0
    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self) | {"state": str(self.state), "proved_at": self.proved_at and self.proved_at.isoformat()}


def licences_of(run: Run) -> tuple[RunLicence, ...]:
    """What is proved of the judges whose values count in the run, metric by metric. Five queries at most."""
    seats = list(run.judges.filter(primary=True).select_related("judge_version", "rubric_version").order_by("pk"))
    names = {seat.judge_version.name for seat in seats}
    rows = Licence.objects.filter(
        result__look__project=run.project_id,
        result__look__judge_version__name__in=names,
        question_set=run.answer_set.question_set.name,
    ).select_related("metric", "result__look__candidate", "result__look__judge_version")
    held: dict[tuple[str, str, str], list[Licence]] = {}
    for row in rows.order_by("pk"):
        look = row.result.look
        held.setdefault((look.judge_version.name, look.candidate.family, row.metric.name), []).append(row)
    about = _AboutRun.of(run, [row.result_id for several in held.values() for row in several]) if held else None
    found = []
    for seat in seats:
        family = seat.rubric_version.family
        for spec in family_for(seat.rubric_version.rubric).given:
            several = held.get((seat.judge_version.name, family, spec.name), [])
            found.append(_licence(spec.name, seat, several, about))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _AboutRun:
    """When a run was made, which model answered under each judge's name, its answers by category, and by what proofs
    (key of the result, metric) a check before it had found that the judge moved."""

    made_at: datetime
    served: Mapping[int, str]
    categories: Mapping[str, int]
    moved: Mapping[tuple[int, int], AnchorShift]

    @classmethod
    def of(cls, run: Run, proofs: Sequence[int]) -> _AboutRun:
        pinned = Preflight.objects.filter(run=run, outcome="ok").values_list("judge_version_id", "model_returned")
        counted = answers_in(run).order_by().values_list("question__category").annotate(count=Count("pk"))
        shifts = AnchorShift.objects.filter(
            check_of__result__in=proofs, moved=True, check_of__ended_at__lte=run.created_at
        ).select_related("check_of")
        moved = {(one.check_of.result_id, one.metric_id): one for one in shifts.order_by("-pk")}
        return cls(run.created_at, dict(pinned), dict(counted), moved)


def _licence(metric: str, seat: RunJudge, held: Sequence[Licence], about: _AboutRun | None) -> RunLicence:
    """The licence that holds, else the one that lapsed for the fewest reasons, the newest first."""
    judge, rubric = str(seat.judge_version), str(seat.rubric_version)
    if about is None or not held:
        return RunLicence(metric, judge, rubric, LicenceState.NONE)
    lapses = {row.pk: tuple(_lapses(row, seat, about)) for row in held}
    best = min(reversed(held), key=lambda row: len(lapses[row.pk]))
    state = LicenceState.STALE if lapses[best.pk] else LicenceState.LICENSED
    return RunLicence(
        metric,
        judge,
        rubric,
        state,
        lapses[best.pk],
        look=str(best.result.look),
        proved_at=best.result.created_at,
        answers=best.answers,
        seen=best.seen,
        model=best.model,
    )


def _lapses(licence: Licence, seat: RunJudge, about: _AboutRun) -> Iterator[Lapse]:
    proved = licence.result.look
    if proved.candidate.language != seat.rubric_version.language:
        yield Lapse("licence_language", {"language": proved.candidate.language})
    elif proved.candidate_id != seat.rubric_version_id:
        yield Lapse("licence_rubric", {"rubric": str(proved.candidate)})
    served = about.served.get(seat.judge_version_id, "")
    if _asked(proved.judge_version) != _asked(seat.judge_version):
        yield Lapse("licence_judge", {"judge": str(proved.judge_version)})
    elif served and licence.model and served != licence.model:
        yield Lapse("licence_model", {"before": licence.model, "now": served})
    days = (about.made_at - licence.result.created_at).days
    if days > settings.CONCORD_LICENCE_DAYS:
        yield Lapse("licence_old", {"days": days, "limit": settings.CONCORD_LICENCE_DAYS})
    if (shift := about.moved.get((licence.result_id, licence.metric_id))) and shift.check_of.ended_at:
        day = shift.check_of.ended_at.date().isoformat()
        yield Lapse("licence_drift", {"change": f"{shift.change:+.2f}", "day": day})
    answers = sum(about.categories.values())
    unseen = {name: count for name, count in about.categories.items() if name not in licence.categories}
    if answers and sum(unseen.values()) > MOST_UNSEEN * answers:
        share = round(100 * sum(unseen.values()) / answers)
        yield Lapse("licence_categories", {"share": share, "names": ", ".join(sorted(unseen))})


def _asked(judge: JudgeVersion) -> tuple[Any, ...]:
    """What makes two versions of a judge the same one for a proof."""
    return judge.endpoint_id, judge.model, judge.params, judge.method
