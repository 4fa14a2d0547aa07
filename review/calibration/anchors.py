"""Anchors: up to 100 answers of the hold-out that an accepted judge judges again, on schedule or when a lead asks.

The reference is what both versions gave in the hold-out test itself, so that a judge that moves right after it is
noticed at the first check. Checks judge the anchors by the version in force, and how far its verdicts moved since the
reference is tested for every metric. A judge that moved has no licence from then on. Both versions' references tell how
much of a change of score came with the new prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.samples import Result
from evaluation.criteria.rubrics import slot_of, standings
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricVersion, User
from evaluation.worker.dispatch import ring_for
from evaluation.worker.shares import ENDPOINT_BUSY
from evaluation.worker.turns import take_turn, turn_at
from review.calibration.accepting import hold_out_items, sealed_verdicts, versions_of
from review.calibration.turns import Left, judge_left
from review.calibration.workbench import Bench
from review.models import AnchorCheck, AnchorShift, AnchorVerdict, GoldItem, LookResult, LookTurn
from review.statistics.acceptance import shift_of

WORK = "review.calibration.anchors.work_on"
MOST, LEAST = 100, 20  # anchors
YEAR = timedelta(days=365)
PROOFS = LookResult.objects.filter(outcome=LookResult.Outcome.ACCEPTED).select_related(
    "look__gold_set__project", "look__judge_version__endpoint", "look__candidate", "look__active"
)


def proofs_in_force(proofs: QuerySet[LookResult] = PROOFS) -> list[LookResult]:
    """The acceptances by which versions are in force, not older than licences are."""
    since = timezone.now() - timedelta(days=settings.CONCORD_LICENCE_DAYS)
    newest: dict[tuple[int, str, int], LookResult] = {}
    for one in proofs.filter(created_at__gte=since).order_by("pk"):
        newest[one.look.project_id, one.look.judge_version.name, one.look.candidate_id] = one
    return [one for one in newest.values() if _in_force(one)]


def _in_force(proof: LookResult) -> bool:
    look = proof.look
    return standings(slot_of(look.judge_version, look.candidate.family)).active.pk == look.candidate_id


def proof_of(judge: JudgeVersion, rubric: RubricVersion) -> LookResult | None:
    """The newest acceptance of a version for the judges of the name."""
    of_name = PROOFS.filter(look__project=judge.project_id, look__judge_version__name=judge.name)
    return of_name.filter(look__candidate=rubric).order_by("-pk").first()


def proves(judge: JudgeVersion, bench: Bench) -> bool:
    """Whether what the judge works by in the bench's family was proved on its gold set. Two queries."""
    active = standings(slot_of(judge, bench.family)).active
    proof = proof_of(judge, active)
    return proof is not None and proof.look.lineage == bench.gold_set.name


@transaction.atomic
def begin_check(proof: LookResult, *, by: User | None) -> AnchorCheck:
    """The next check of an acceptance, or the one that has not ended.

    :raises Refused: ``anchors_not_in_force`` where another version is; ``anchors_too_few`` with fewer than 20 answers
        of which the hold-out test had a verdict.
    """
    look = proof.look
    lock_project(look.project_id)
    newest = proof.checks.order_by("-number").first() or keep_reference(proof)
    if newest.ended_at is None:
        return newest
    if not _in_force(proof):
        raise Refused("anchors_not_in_force", rubric=str(look.candidate))
    if (found := _reference(proof).values("answer").distinct().count()) < LEAST:
        raise Refused("anchors_too_few", answers=found, least=LEAST)
    check = AnchorCheck.objects.create(result=proof, number=newest.number + 1, step=_step(proof))
    audit.record(by, "anchors.begun", look, number=check.number, step=check.step)
    return check


@transaction.atomic
def keep_reference(proof: LookResult) -> AnchorCheck:
    """The reference of an acceptance: what the versions gave of the anchors in the hold-out test. Made once."""
    look = proof.look
    lock_project(look.project_id)
    if (made := proof.checks.filter(number=0).first()) is not None:
        return made
    model = LookTurn.objects.filter(look=look).values_list("model", flat=True).first() or ""
    check = AnchorCheck.objects.create(result=proof, number=0, step=0, model=model, ended_at=timezone.now())
    for rubric in versions_of(look):
        verdicts = sealed_verdicts(look, rubric)
        AnchorVerdict.objects.bulk_create(
            AnchorVerdict(
                check_of=check,
                rubric_version=rubric,
                answer_id=item.answer_id,
                metric=item.metric,
                group=item.group,
                value=verdicts[item.answer_id].get(item.metric.name),
            )
            for item in _chosen(proof)
            if item.answer_id in verdicts
        )
    return check


def _reference(proof: LookResult) -> QuerySet[AnchorVerdict]:
    return AnchorVerdict.objects.filter(check_of__result=proof, check_of__number=0)


def _step(proof: LookResult) -> int:
    """The how-manieth test for drift this is of the judges of the name with the family within a year. Those of any year
    then have steps of at least 1, 2, 3 …, the levels of which add up to less than 5%."""
    look = proof.look
    return 1 + (
        AnchorCheck.objects.filter(
            result__look__project=look.project_id,
            result__look__judge_version__name=look.judge_version.name,
            result__look__candidate__family=look.candidate.family,
            number__gt=0,
            created_at__gt=timezone.now() - YEAR,
        ).count()
    )


def _chosen(proof: LookResult) -> list[GoldItem]:
    """The labels whose answers are the anchors: of the hold-out that was tested, in an order by the gold set's hash."""
    look = proof.look
    by_metric = hold_out_items(look.gold_set, look.candidate, look.since)
    items = [item for several in by_metric.values() for item in several]
    order = {item.answer_id: content_hash([look.gold_set.content_hash, item.answer_id]) for item in items}
    taken = set(sorted(order, key=lambda answer: order[answer])[:MOST])
    return [item for item in items if item.answer_id in taken]


def check_now(proof: LookResult, *, by: User | None) -> AnchorCheck:
    """Judge the anchors here and now, or go on with a check that was interrupted.

    :raises Refused: see :func:`begin_check`; ``judge_away``, which leaves the check open; ``look_in_hands``.
    """
    check = begin_check(proof, by=by)
    if not _worked(check, deadline=float("inf")):
        raise Refused("look_in_hands", look=str(proof.look))
    return AnchorCheck.objects.get(pk=check.pk)


@transaction.atomic
def ask_for_check(proof: LookResult, *, by: User | None) -> AnchorCheck:
    """Have a worker judge the anchors, or go on with a check that stands still.

    :raises Refused: see :func:`begin_check`.
    """
    check = begin_check(proof, by=by)
    AnchorCheck.objects.filter(pk=check.pk).update(reason="")
    ring_for(WORK, check.pk)
    return check


def work_on(check_id: int) -> None:
    """A worker's turn at a check."""
    check = AnchorCheck.objects.get(pk=check_id)
    open_ones = AnchorCheck.objects.filter(pk=check_id, ended_at=None)
    take_turn(open_ones, lambda deadline: _worked(check, deadline), WORK, check_id)


def check_all() -> None:
    """Begin the checks that are due, and wake workers for those that nobody has in hands and that wait for no person.
    Nothing is due by itself where ``CONCORD_ANCHOR_DAYS`` is 0."""
    if settings.CONCORD_ANCHOR_DAYS:
        since = timezone.now() - timedelta(days=settings.CONCORD_ANCHOR_DAYS)
        due = PROOFS.annotate(newest=Max("checks__created_at")).filter(Q(newest=None) | Q(newest__lt=since))
        for proof in proofs_in_force(due):
            with suppress(Refused):  # too few anchors: the page says so
                begin_check(proof, by=None)
    waiting = AnchorCheck.objects.filter(ended_at=None, reason__in=["", ENDPOINT_BUSY])
    for pk in waiting.filter(Q(until=None) | Q(until__lt=Now())).values_list("pk", flat=True):
        ring_for(WORK, pk)


def _worked(check: AnchorCheck, deadline: float) -> bool:
    """Whether the check has ended."""
    proof = PROOFS.get(pk=check.result_id)
    with turn_at(AnchorCheck.objects.filter(pk=check.pk), deadline) as turn:
        if turn is None:
            return False
        metrics, groups = _anchors(proof)

        def keep(rubric: RubricVersion, answer: Answer, _: int, results: Mapping[str, Result]) -> None:
            of = {"check_of": check, "rubric_version": rubric, "answer": answer, "group": groups[answer.pk]}
            rows = [AnchorVerdict(metric=one, value=results[one.name].value, **of) for one in metrics]
            AnchorVerdict.objects.bulk_create(rows, ignore_conflicts=True)

        if not judge_left(turn, proof.look.judge_version, lambda: _left(check, proof, set(groups)), keep):
            return False
        _close(check, proof)
        return True


def _anchors(proof: LookResult) -> tuple[list[MetricDefinition], dict[int, str]]:
    """The metrics that are told, and the group of each anchor: those of the reference, which chooses them."""
    rows = _reference(proof)
    names = MetricDefinition.objects.filter(pk__in=rows.values("metric"))
    return list(names), dict(rows.values_list("answer_id", "group"))


def _left(check: AnchorCheck, proof: LookResult, anchors: set[int]) -> Iterator[Left]:
    rows = AnchorVerdict.objects.filter(check_of=check, rubric_version=proof.look.candidate)
    if missing := sorted(anchors - set(rows.values_list("answer_id", flat=True))):
        yield proof.look.candidate, 1, missing


@transaction.atomic
def _close(check: AnchorCheck, proof: LookResult) -> None:
    """Test for drift, and end the check."""
    if not AnchorCheck.objects.filter(pk=check.pk, ended_at=None).update(ended_at=timezone.now()):
        return
    before, now = (_said(proof, number) for number in (0, check.number))
    metrics = sorted({metric for metric, _ in now})
    for metric in metrics:
        both = sorted(answer for of, answer in now.keys() & before.keys() if of == metric)
        if len(both) < LEAST:
            continue  # nothing is told by so few; the page says how many there were
        was, is_now = ([of[metric, answer][0] for answer in both] for of in (before, now))
        found = shift_of(was, is_now, [now[metric, answer][1] for answer in both], check.step, len(metrics))
        AnchorShift.objects.create(
            check_of=check,
            metric_id=metric,
            answers=found.n,
            groups=found.groups,
            change=found.change,
            low=found.low,
            high=found.high,
            moved=found.moved,
        )
        if found.moved:
            audit.record(None, "anchors.moved", proof.look, number=check.number, change=round(found.change, 6))


def _said(proof: LookResult, number: int) -> dict[tuple[int, int], tuple[float, str]]:
    """Metric and answer -> the value that the proved version gave in a check, with the answer's group."""
    rows = AnchorVerdict.objects.filter(
        check_of__result=proof, check_of__number=number, rubric_version=proof.look.candidate, value__isnull=False
    )
    return {
        (metric, answer): (float(value or 0.0), group)
        for metric, answer, value, group in rows.values_list("metric_id", "answer_id", "value", "group")
    }


@dataclass(frozen=True, slots=True)
class ShiftTold:
    """How far the judge moved on a metric since the reference, in units of its scale."""

    metric: str
    answers: int
    change: float
    low: float | None
    high: float | None
    moved: bool


@dataclass(frozen=True, slots=True)
class CheckTold:
    """A check: ``number`` 0 is the reference. ``at`` is when it ended; while it has not, ``waits_for`` is the code of
    why it stands still, where it does."""

    judge: str
    rubric: str
    number: int
    at: str
    model: str
    anchors: int
    waits_for: str
    shifts: list[ShiftTold]


def told_of(checks: QuerySet[AnchorCheck]) -> list[CheckTold]:
    """What checks tell, each proof's in their order. Three queries."""
    rows = checks.select_related("result__look__judge_version", "result__look__candidate")
    counted = rows.annotate(anchors=Count("verdicts__answer", distinct=True))
    return [
        CheckTold(
            judge=one.result.look.judge_version.name,
            rubric=str(one.result.look.candidate),
            number=one.number,
            at=one.ended_at.date().isoformat() if one.ended_at else "",
            model=one.model,
            anchors=one.anchors,
            waits_for=one.reason,
            shifts=[
                ShiftTold(of.metric.name, of.answers, of.change, of.low, of.high, of.moved) for of in one.shifts.all()
            ],
        )
        for one in counted.prefetch_related("shifts__metric").order_by("result", "number")
    ]
