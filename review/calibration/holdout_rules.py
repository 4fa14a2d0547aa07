"""Hold-out test: candidate and active version judge the hold-out, and only the outcome is revealed.

The test's parameters are stored before any call and count from then on. Verdicts are stored encrypted, so that an
interrupted test can continue; only :func:`close_holdout_test` and retirement read them. An accepted candidate becomes
active."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError
from evaluation.core.samples import Result, Status
from evaluation.criteria.rubrics import Ground, activate, rubric_scope, version_statuses
from evaluation.judges.secrets import seal, unseal
from evaluation.judging.catalogue import family_for
from evaluation.judging.draft_checks import rubric_texts
from evaluation.judging.leak_check import repeats_material
from evaluation.judging.rubric import is_criterion, shipped_rubric
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricEvent, RubricVersion, Score, User
from evaluation.models.runs import UNAPPROVED
from review.calibration.approvals import record_approvals
from review.calibration.overview import next_step
from review.calibration.versions import find_changes, is_retired
from review.evidence.seals import LabelForm, fixed_label_form, live_sets, readable
from review.models import GoldItem, GoldSet, HoldoutTest, HoldoutTestResult, SealedVerdict
from review.statistics.acceptance import (
    MAX_MISSING_SHARE,
    MIN_ANSWERS,
    MIN_GROUPS,
    Claim,
    Forecast,
    LossComparison,
    ResidualVariances,
    forecast_test,
    holdout_shortage,
    is_accepted,
    remaining_error,
    residual_variances,
    squared_losses,
)
from review.statistics.gold_split import Split

Outcome = HoldoutTestResult.Outcome
MAX_REPEATS = 10
NOT_APPLICABLE = "not_applicable"
# Answer -> metric -> value; None is a missing verdict; a metric that does not apply is absent.
Verdicts = dict[int, dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class HoldoutSummary:
    """Everything a hold-out test reveals: its number, outcome, and the unspent part of the 5% error rate."""

    number: int
    outcome: str
    looks: int
    left: float


@transaction.atomic
def open_holdout_test(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim,
    repeat: int = 1,
    since: int = 1,
    reference_judge: JudgeVersion | None = None,
) -> HoldoutTest:
    """Create a hold-out test, or return the unfinished one with the same parameters.

    :raises DomainError: see :func:`prepare_holdout_test`."""
    lock_project(gold_set.project_id)
    test = prepare_holdout_test(
        gold_set, judge, candidate, claim=claim, repeat=repeat, since=since, reference_judge=reference_judge
    )
    if test.pk is None:
        test.created_by = by
        test.save()
        audit.record(by, "look.opened", test, rubric=candidate.content_hash, gold=gold_set.content_hash, step=test.step)
    return test


def prepare_holdout_test(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    claim: Claim,
    repeat: int = 1,
    since: int = 1,
    reference_judge: JudgeVersion | None = None,
) -> HoldoutTest:
    """Return an unsaved hold-out test once every rule allows it, or the unfinished one with the same parameters.

    ``repeat``: judgements of each answer, whose mean counts. ``since``: test only groups added since that version of
    the gold set, which have an error budget of their own. ``reference_judge``: a judge proven on the gold set, which
    this judge must not fall below. Without it, an active version can show that it is not worse than when it was proven.

    :raises DomainError: ``rubric_of_baseline``, ``jury_asks_nobody``, ``rubric_active``, ``rubric_other_language``;
        ``reference_not_approved``, ``beside_not_better``; ``look_repeats``; ``gold_retired``; ``gold_old_version``;
        ``gold_other_metrics`` if no metric of the family is labelled; ``rubric_embeds``; ``gold_changed``;
        ``hold_out_too_small``; ``hold_out_seen`` if runs of the candidate have judged hold-out
        answers; ``prompt_quotes_hold_out`` if it repeats locked answers or questions; ``look_open`` while another test
        is unfinished."""
    _check_judge(judge, repeat)
    slot = rubric_scope(judge, candidate.family)
    if candidate.language != slot.language:
        raise DomainError("rubric_other_language", rubric=str(candidate), language=slot.language)
    statuses = version_statuses(slot)
    against = _comparison_test(gold_set, judge, candidate, statuses.active, claim, reference_judge)
    if is_retired(gold_set.project_id, gold_set.name):
        raise DomainError("gold_retired", gold=gold_set.name)
    check_no_quotes(gold_set.project_id, candidate)
    tests = HoldoutTest.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    fields = {"gold_set": gold_set, "judge_version": judge, "candidate": candidate, "claim": str(claim)}
    fields |= {"repeat": repeat, "since": since, "against": against}
    open_test = tests.filter(result=None).first()
    if open_test is not None:
        if all(getattr(open_test, name) == value for name, value in fields.items()):
            return open_test
        raise DomainError("look_open", look=str(open_test), rubric=str(open_test.candidate))
    _check_gold(gold_set, candidate, since)
    if statuses.status_of(candidate) in UNAPPROVED or reference_judge is not None:
        _check_hold_out_unseen(gold_set, candidate, since, judge if reference_judge else None)
    newest = tests.order_by("-number").values_list("number", flat=True).first() or 0
    return HoldoutTest(
        project_id=gold_set.project_id,
        lineage=gold_set.name,
        number=newest + 1,
        step=next_step(gold_set, since),
        active=statuses.active,
        best=against.candidate if against else _best_version(gold_set, slot.judge, candidate.family) or statuses.active,
        **fields,
    )


def _check_judge(judge: JudgeVersion, repeat: int) -> None:
    if judge.is_baseline:
        raise DomainError("rubric_of_baseline")
    if judge.is_jury:
        raise DomainError("jury_asks_nobody")
    if not 1 <= repeat <= MAX_REPEATS:
        raise DomainError("look_repeats", limit=MAX_REPEATS)


def check_no_quotes(project_id: int, version: RubricVersion) -> None:
    """Refuse a version that repeats text of locked answers or questions of the project, or names their ids.

    :raises DomainError: ``prompt_quotes_hold_out``."""
    columns = ("answer__text", "answer__question__text", "answer__question__external_id")
    rows = GoldItem.objects.filter(gold_set__in=live_sets().filter(project=project_id)).order_by()
    locked = set(rows.filter(split=Split.HOLD_OUT).values_list(*columns))
    texts = {text for answer, question, _ in locked for text in (answer, question)}
    in_open = rows.exclude(split=Split.HOLD_OUT).values_list("answer__text", "answer__question__text").distinct()
    rubric = version.rubric
    shipped_texts = () if is_criterion(rubric.family) else rubric_texts(shipped_rubric(rubric.family, rubric.language))
    if repeats_material(
        "\n".join(rubric_texts(rubric)),
        texts,
        {external_id for *_, external_id in locked},
        shipped="\n".join(shipped_texts),
        levels={f"{value:g}" for metric_rubric in rubric.metrics for value in metric_rubric.values},
        open_texts={text for pair in in_open for text in pair} - texts,
    ):
        raise DomainError("prompt_quotes_hold_out", rubric=str(version))


def _comparison_test(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    active: RubricVersion,
    claim: Claim,
    reference_judge: JudgeVersion | None,
) -> HoldoutTest | None:
    """Return the earlier test whose stored verdicts are the comparison; ``None`` to judge the active version as
    well."""
    if reference_judge is None and candidate.pk != active.pk:
        return None
    approved_judge = reference_judge or judge
    active_version = version_statuses(rubric_scope(approved_judge, candidate.family)).active
    accepted_tests = HoldoutTest.objects.filter(
        project=gold_set.project_id, lineage=gold_set.name, candidate=active_version, result__outcome=Outcome.ACCEPTED
    )
    test = accepted_tests.filter(judge_version__name=approved_judge.name).order_by("-number").first()
    if reference_judge is None and (test is None or claim is not Claim.NOT_WORSE):
        raise DomainError("rubric_active", rubric=str(candidate), judge=judge.name)
    if test is None:
        raise DomainError("reference_not_approved", judge=approved_judge.name, gold=str(gold_set))
    if claim is not Claim.NOT_WORSE or (reference_judge is not None and approved_judge.name == judge.name):
        raise DomainError("beside_not_better")
    return test


def _best_version(gold_set: GoldSet, judge: str, family: str) -> RubricVersion | None:
    """Return the version last accepted as better.

    Each of them beat its predecessor, while versions accepted as not worse may have drifted below it."""
    accepted_tests = HoldoutTest.objects.filter(
        project=gold_set.project_id,
        lineage=gold_set.name,
        judge_version__name=judge,
        candidate__family=family,
        claim=Claim.BETTER,
        result__outcome=Outcome.ACCEPTED,
    )
    newest = accepted_tests.select_related("candidate").order_by("-number").first()
    return newest.candidate if newest else None


def _check_gold(gold_set: GoldSet, candidate: RubricVersion, since: int) -> None:
    if GoldSet.objects.filter(project=gold_set.project_id, name=gold_set.name, version__gt=gold_set.version).exists():
        raise DomainError("gold_old_version", gold=str(gold_set))
    if any("embeddings" in spec.inputs for spec in family_for(candidate.rubric).produced_metrics):
        raise DomainError("rubric_embeds", family=candidate.family)
    if changed := find_changes(gold_set):
        raise DomainError("gold_changed", gold=str(gold_set), places=len(changed))
    by_metric = hold_out_items(gold_set, candidate, since)
    if not by_metric:
        raise DomainError("gold_other_metrics", gold=str(gold_set), family=candidate.family)
    for items in by_metric.values():
        groups = [item.group for item in items]
        if holdout_shortage(groups):
            needed = {"needed": MIN_ANSWERS, "needed_groups": MIN_GROUPS}
            raise DomainError("hold_out_too_small", answers=len(groups), groups=len(set(groups)), **needed)


def _check_hold_out_unseen(gold_set: GoldSet, candidate: RubricVersion, since: int, judge: JudgeVersion | None) -> None:
    """Refuse a version with scores on the hold-out, by ``judge`` or by any judge."""
    answer_ids = {item.answer_id for items in hold_out_items(gold_set, candidate, since).values() for item in items}
    scores = Score.objects.filter(rubric_version=candidate, answer__in=answer_ids)
    if judge is not None:
        scores = scores.filter(judge_version__name=judge.name)
    if judged := scores.values("answer").distinct().count():
        raise DomainError("hold_out_seen", rubric=str(candidate), answers=judged)


def hold_out_items(gold_set: GoldSet, rubric: RubricVersion, since: int) -> dict[str, list[GoldItem]]:
    """Return the hold-out labels of the rubric's metrics, by metric."""
    return _items(gold_set.items.filter(split=Split.HOLD_OUT, since__gte=since), rubric)


def _validation_items(gold_set: GoldSet, rubric: RubricVersion) -> dict[str, list[GoldItem]]:
    """Return the validation labels of the rubric's metrics, without answers that another gold set locks."""
    with fixed_label_form(LabelForm.OPEN):
        return _items(readable(gold_set.items.filter(split=Split.VALIDATION)), rubric)


def _items(rows: QuerySet[GoldItem], rubric: RubricVersion) -> dict[str, list[GoldItem]]:
    names = [spec.name for spec in family_for(rubric.rubric).produced_metrics]
    rows = rows.filter(metric__name__in=names).select_related("metric")
    by_metric: dict[str, list[GoldItem]] = {}
    for item in rows.order_by("answer_id"):
        by_metric.setdefault(item.metric.name, []).append(item)
    return by_metric


def judging_versions(test: HoldoutTest) -> list[RubricVersion]:
    """Return the versions that judge the hold-out in a test, without duplicates."""
    if test.against_id:
        return [test.candidate]
    return list({version.pk: version for version in (test.candidate, test.active, test.best)}.values())


def store_sealed_verdicts(
    test: HoldoutTest, rubric: RubricVersion, answer: Answer, repeat: int, results: Mapping[str, Result]
) -> None:
    """Store an answer's results encrypted."""
    sealed_values = {
        name: NOT_APPLICABLE if result.status is Status.NOT_APPLICABLE else result.value
        for name, result in results.items()
    }
    row = SealedVerdict(test=test, rubric_version=rubric, answer=answer, repeat=repeat)
    row.sealed = seal(json.dumps(sealed_values), origin=_seal_origin(test), secret=settings.SECRET_KEY)
    SealedVerdict.objects.bulk_create([row], ignore_conflicts=True)


def _seal_origin(test: HoldoutTest) -> str:
    return f"look {test.pk}"


def sealed_verdicts(test: HoldoutTest, rubric: RubricVersion) -> Verdicts:
    """Decrypt a version's verdicts; repeats are averaged."""
    secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
    by_answer: dict[int, dict[str, list[float]]] = {}
    for row in SealedVerdict.objects.filter(test=test, rubric_version=rubric):
        for name, value in json.loads(unseal(row.sealed, origin=_seal_origin(test), secrets=secrets)).items():
            if value == NOT_APPLICABLE:
                continue
            values = by_answer.setdefault(row.answer_id, {}).setdefault(name, [])
            values += [] if value is None else [value]
    return {
        answer: {name: math.fsum(values) / len(values) if values else None for name, values in by_metric.items()}
        for answer, by_metric in by_answer.items()
    }


def compare_losses(
    items: Iterable[GoldItem], candidate: Verdicts, active: Verdicts, best: Verdicts, metric: MetricDefinition
) -> tuple[LossComparison, int]:
    """Return the losses of a metric on the items it applies to, and the candidate's number of missing verdicts."""
    scale, name = metric.read_scale(), metric.name
    applicable_items = [
        item for item in items if any(name in verdicts.get(item.answer_id, {}) for verdicts in (candidate, active))
    ]
    labels = [item.label for item in applicable_items]
    width = (scale.high - scale.low) ** 2
    values = [
        [verdicts.get(item.answer_id, {}).get(name) for item in applicable_items]
        for verdicts in (candidate, active, best)
    ]
    weights, groups = (
        np.array([item.weight for item in applicable_items], dtype=np.float64),
        [item.group for item in applicable_items],
    )
    compared = LossComparison(
        candidate=squared_losses(values[0], labels, width),
        active=squared_losses(values[1], labels, 0.0),
        best=squared_losses(values[2], labels, 0.0),
        weights=weights,
        groups=groups,
        categories=[item.category for item in applicable_items],
        residuals=residual_variances(labels, values[0], values[1], weights, groups),
    )
    return compared, sum(value is None for value in values[0])


def _compute_outcome(test: HoldoutTest) -> str:
    verdicts = {rubric.pk: sealed_verdicts(test, rubric) for rubric in judging_versions(test)}
    earlier_verdicts = sealed_verdicts(test.against, test.against.candidate) if test.against else {}
    metrics: dict[str, LossComparison] = {}
    for name, items in hold_out_items(test.gold_set, test.candidate, test.since).items():
        candidate, active, best = (
            verdicts.get(pk, earlier_verdicts) for pk in (test.candidate_id, test.active_id, test.best_id)
        )
        if test.against:
            active, best = earlier_verdicts, earlier_verdicts
            items = [item for item in items if item.answer_id in earlier_verdicts]
            if not items:
                return Outcome.REFUSED
        comparison, missing = compare_losses(items, candidate, active, best, items[0].metric)
        if holdout_shortage(comparison.groups) or missing > MAX_MISSING_SHARE * len(comparison.groups):
            return Outcome.REFUSED
        metrics[name] = comparison
    if is_accepted(metrics, test.step, Claim(test.claim)):
        return Outcome.ACCEPTED
    by_loss = {name: replace(comparison, residuals=None) for name, comparison in metrics.items()}
    return Outcome.LARGER_VARIANCE if is_accepted(by_loss, test.step, Claim(test.claim)) else Outcome.NOT_ACCEPTED


@transaction.atomic
def close_holdout_test(test: HoldoutTest, model: str) -> HoldoutSummary:
    """Close the test once all verdicts are stored. An accepted candidate is activated and approved.

    ``model`` is the model that answered for the judge.

    :raises DomainError: ``gold_changed``."""
    lock_project(test.project_id)
    result = HoldoutTestResult.objects.filter(test=test).first()
    if result is None:
        if changed := find_changes(test.gold_set):
            raise DomainError("gold_changed", gold=str(test.gold_set), places=len(changed))
        outcome, event = _compute_outcome(test), None
        if outcome == Outcome.ACCEPTED:
            activation = None if test.against_id else _activation_event(test)
            event = activation or activate(
                test.candidate, test.judge_version, by=test.created_by, reason=str(test), ground=Ground.ACCEPTED
            )
        result = HoldoutTestResult.objects.create(test=test, outcome=outcome, event=event)
        if event is not None:
            record_approvals(result, hold_out_items(test.gold_set, test.candidate, test.since), model)
        audit.record(test.created_by, "look.ended", test, outcome=outcome)
    step = next_step(test.gold_set, test.since)
    return HoldoutSummary(test.number, str(result.outcome), step - 1, remaining_error(step))


def _activation_event(test: HoldoutTest) -> RubricEvent | None:
    """Return the event by which a lead activated the candidate during the test, if it is still active."""
    slot = rubric_scope(test.judge_version, test.candidate.family)
    if version_statuses(slot).active.pk != test.candidate_id:
        return None
    events = RubricEvent.objects.filter(**slot.columns, version=test.candidate, verb=RubricEvent.Verb.ACTIVATED)
    return events.order_by("-seq").first()


@dataclass(frozen=True, slots=True)
class HoldoutForecast:
    """Forecast of the next hold-out test on a metric, from verdicts on validation.

    ``forecast`` is ``None`` if the verdicts do not vary. ``residuals`` are those on validation: a test in which the
    candidate's residual variance is larger does not accept it."""

    metric: str
    validation: int
    hold_out_groups: int
    step: int
    forecast: Forecast | None
    residuals: ResidualVariances | None
    noisier: bool


def forecast_holdout_test(
    gold_set: GoldSet, judge: JudgeVersion, candidate: RubricVersion, *, since: int = 1
) -> tuple[HoldoutForecast, ...]:
    """Forecast a hold-out test from the newest verdicts of candidate and active version on validation answers.

    Metrics that were not judged by both are left out."""
    active = version_statuses(rubric_scope(judge, candidate.family)).active
    validation = _validation_items(gold_set, candidate)
    hold_out = hold_out_items(gold_set, candidate, since)
    step = next_step(gold_set, since)
    forecasts = []
    for name, items in validation.items():
        candidate_verdicts, active_verdicts = (_open_verdicts(judge, rubric, items) for rubric in (candidate, active))
        shared_items = [
            item for item in items if item.answer_id in candidate_verdicts and item.answer_id in active_verdicts
        ]
        groups = len({item.group for item in hold_out.get(name, [])})
        if not shared_items or not groups:
            continue
        compared, _ = compare_losses(
            shared_items, candidate_verdicts, active_verdicts, active_verdicts, items[0].metric
        )
        metric_forecast = forecast_test(compared, groups, step, test_count=len(hold_out))
        forecasts.append(
            HoldoutForecast(
                name, len(shared_items), groups, step, metric_forecast, compared.residuals, compared.is_noisier
            )
        )
    return tuple(forecasts)


def _open_verdicts(judge: JudgeVersion, rubric: RubricVersion, items: Sequence[GoldItem]) -> Verdicts:
    """Return the newest score of each answer by the judge and version."""
    rows = Score.objects.filter(
        judge_version=judge,
        rubric_version=rubric,
        answer__in=[item.answer_id for item in items],
        metric=items[0].metric,
        status=Status.SCORED,
    )
    return {
        answer: {items[0].metric.name: value} for answer, value in rows.order_by("id").values_list("answer", "value")
    }
