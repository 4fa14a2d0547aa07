"""A look: a candidate and the version in force judge the hold-out, and only whether the candidate is accepted gets out.

What is tested is pinned in a row before anything is asked, and counts from then on. Verdicts are kept encrypted, so
that a look that was interrupted goes on where it was; nothing else reads them. An acceptance puts the candidate in
force.
"""

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
from evaluation.core.errors import Refused
from evaluation.core.samples import Result, Status
from evaluation.criteria.rubrics import Ground, activate, slot_of, standings
from evaluation.judges.secrets import seal, unseal
from evaluation.judging.catalogue import family_for
from evaluation.judging.drafting import texts_of
from evaluation.judging.overlap import repeats
from evaluation.judging.rubric import is_criterion, shipped_rubric
from evaluation.models import Answer, JudgeVersion, MetricDefinition, RubricEvent, RubricVersion, Score, User
from evaluation.models.runs import UNPROVEN
from review.calibration.freezing import changed_in, is_retired
from review.calibration.licences import license_metrics
from review.calibration.overview import step_of
from review.evidence.seals import Form, in_form, live_sets, readable
from review.models import GoldItem, GoldSet, Look, LookResult, SealedVerdict
from review.statistics.acceptance import (
    MOST_MISSING,
    Claim,
    Compared,
    Forecast,
    Residuals,
    accepted,
    forecast,
    left_before,
    losses,
    residuals_of,
    too_small,
)
from review.statistics.gold_split import Split

Outcome = LookResult.Outcome
MOST_REPEATS = 10
NOT_APPLICABLE = "not_applicable"
Verdicts = dict[int, dict[str, float | None]]  # answer -> metric -> value; None: no verdict; without: does not apply


@dataclass(frozen=True, slots=True)
class Answered:
    """All that a look tells: its number, how it ended, and what of the 5% is left to spend."""

    number: int
    outcome: str
    looks: int
    left: float


@transaction.atomic
def open_look(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    *,
    by: User | None,
    claim: Claim,
    repeat: int = 1,
    since: int = 1,
    beside: JudgeVersion | None = None,
) -> Look:
    """The row of a look, or the open one that tests the same. ``repeat``: judgements of each answer, whose mean counts.
    ``since``: test only groups added since that version of the gold set, which has a budget of its own. ``beside``: a
    judge whose version in force was proved on the gold set, from which this one, a cheaper one, must not fall off.
    Without it, a version in force can show that it is not worse than when it was proved.

    :raises Refused: ``rubric_of_baseline``, ``jury_asks_nobody``, ``rubric_active``, ``rubric_other_language``;
        ``beside_not_proved``, ``beside_not_better``; ``look_repeats``; ``gold_retired``; ``gold_old_version``;
        ``gold_other_metrics`` where nothing of the family is labelled; ``rubric_embeds``; ``gold_changed``;
        ``hold_out_too_small`` naming what is missing; ``hold_out_seen`` where the candidate has judged hold-out answers
        in the open; ``prompt_quotes_hold_out`` where it repeats locked answers or questions; ``look_open`` where
        another one has not ended.
    """
    lock_project(gold_set.project_id)
    _check_judge(judge, repeat)
    slot = slot_of(judge, candidate.family)
    if candidate.language != slot.language:
        raise Refused("rubric_other_language", rubric=str(candidate), language=slot.language)
    stand = standings(slot)
    against = _against(gold_set, judge, candidate, stand.active, claim, beside)
    if is_retired(gold_set.project_id, gold_set.name):
        raise Refused("gold_retired", gold=gold_set.name)
    check_quotes_nothing(gold_set.project_id, candidate)
    looks = Look.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    pinned = {"gold_set": gold_set, "judge_version": judge, "candidate": candidate, "claim": str(claim)}
    pinned |= {"repeat": repeat, "since": since, "against": against}
    waiting = looks.filter(result=None).first()
    if waiting is not None:
        if all(getattr(waiting, name) == value for name, value in pinned.items()):
            return waiting
        raise Refused("look_open", look=str(waiting), rubric=str(waiting.candidate))
    _check_gold(gold_set, candidate, since)
    if stand.of(candidate) in UNPROVEN or beside is not None:
        _check_unseen(gold_set, candidate, since, judge if beside else None)
    newest = looks.order_by("-number").values_list("number", flat=True).first() or 0
    look = Look.objects.create(
        project_id=gold_set.project_id,
        lineage=gold_set.name,
        number=newest + 1,
        step=step_of(gold_set, since),
        active=stand.active,
        best=against.candidate if against else _best(gold_set, slot.judge, candidate.family) or stand.active,
        created_by=by,
        **pinned,
    )
    audit.record(by, "look.opened", look, rubric=candidate.content_hash, gold=gold_set.content_hash, step=look.step)
    return look


def _check_judge(judge: JudgeVersion, repeat: int) -> None:
    if judge.is_baseline:
        raise Refused("rubric_of_baseline")
    if judge.is_jury:
        raise Refused("jury_asks_nobody")
    if not 1 <= repeat <= MOST_REPEATS:
        raise Refused("look_repeats", limit=MOST_REPEATS)


def check_quotes_nothing(project_id: int, version: RubricVersion) -> None:
    """Refuse a version that repeats text of locked answers or questions of the project, or names their ids.

    :raises Refused: ``prompt_quotes_hold_out``.
    """
    columns = ("answer__text", "answer__question__text", "answer__question__external_id")
    rows = GoldItem.objects.filter(gold_set__in=live_sets().filter(project=project_id)).order_by()
    locked = set(rows.filter(split=Split.HOLD_OUT).values_list(*columns))
    texts = {text for answer, question, _ in locked for text in (answer, question)}
    in_open = rows.exclude(split=Split.HOLD_OUT).values_list("answer__text", "answer__question__text").distinct()
    rubric = version.rubric
    before = () if is_criterion(rubric.family) else texts_of(shipped_rubric(rubric.family, rubric.language))
    if repeats(
        "\n".join(texts_of(rubric)),
        texts,
        {external_id for *_, external_id in locked},
        shipped="\n".join(before),
        levels={f"{value:g}" for one in rubric.metrics for value in one.values},
        open_texts={text for pair in in_open for text in pair} - texts,
    ):
        raise Refused("prompt_quotes_hold_out", rubric=str(version))


def _against(
    gold_set: GoldSet,
    judge: JudgeVersion,
    candidate: RubricVersion,
    active: RubricVersion,
    claim: Claim,
    beside: JudgeVersion | None,
) -> Look | None:
    """The look whose verdicts the candidate must not fall off from, where these are not asked for anew."""
    if beside is None and candidate.pk != active.pk:
        return None
    of = beside or judge
    proved = standings(slot_of(of, candidate.family)).active
    good = Look.objects.filter(
        project=gold_set.project_id, lineage=gold_set.name, candidate=proved, result__outcome=Outcome.ACCEPTED
    )
    found = good.filter(judge_version__name=of.name).order_by("-number").first()
    if beside is None and (found is None or claim is not Claim.NOT_WORSE):
        raise Refused("rubric_active", rubric=str(candidate), judge=judge.name)
    if found is None:
        raise Refused("beside_not_proved", judge=of.name, gold=str(gold_set))
    if claim is not Claim.NOT_WORSE or (beside is not None and of.name == judge.name):
        raise Refused("beside_not_better")
    return found


def _best(gold_set: GoldSet, judge: str, family: str) -> RubricVersion | None:
    """The version that was accepted last for being better: every such one beat the one before it, and those accepted
    for being not worse may have crept away from it."""
    good = Look.objects.filter(
        project=gold_set.project_id,
        lineage=gold_set.name,
        judge_version__name=judge,
        candidate__family=family,
        claim=Claim.BETTER,
        result__outcome=Outcome.ACCEPTED,
    )
    newest = good.select_related("candidate").order_by("-number").first()
    return newest.candidate if newest else None


def _check_gold(gold_set: GoldSet, candidate: RubricVersion, since: int) -> None:
    if GoldSet.objects.filter(project=gold_set.project_id, name=gold_set.name, version__gt=gold_set.version).exists():
        raise Refused("gold_old_version", gold=str(gold_set))
    if any("embeddings" in spec.inputs for spec in family_for(candidate.rubric).given):
        raise Refused("rubric_embeds", family=candidate.family)
    if changed := changed_in(gold_set):
        raise Refused("gold_changed", gold=str(gold_set), places=len(changed))
    by_metric = hold_out_items(gold_set, candidate, since)
    if not by_metric:
        raise Refused("gold_other_metrics", gold=str(gold_set), family=candidate.family)
    for items in by_metric.values():
        if lacks := too_small(one.group for one in items):
            raise Refused("hold_out_too_small", groups=lacks.groups, answers=lacks.answers)


def _check_unseen(gold_set: GoldSet, candidate: RubricVersion, since: int, judge: JudgeVersion | None) -> None:
    """Nobody may have seen verdicts of the version on the hold-out, where given of this judge."""
    held = {one.answer_id for items in hold_out_items(gold_set, candidate, since).values() for one in items}
    scores = Score.objects.filter(rubric_version=candidate, answer__in=held)
    if judge is not None:
        scores = scores.filter(judge_version__name=judge.name)
    if judged := scores.values("answer").distinct().count():
        raise Refused("hold_out_seen", rubric=str(candidate), answers=judged)


def hold_out_items(gold_set: GoldSet, rubric: RubricVersion, since: int) -> dict[str, list[GoldItem]]:
    """The hold-out labels of the rubric's metrics, by metric."""
    return _items(gold_set.items.filter(split=Split.HOLD_OUT, since__gte=since), rubric)


def _validation_items(gold_set: GoldSet, rubric: RubricVersion) -> dict[str, list[GoldItem]]:
    """The validation labels of the rubric's metrics, without those of answers that another gold set locks."""
    with in_form(Form.OPEN):
        return _items(readable(gold_set.items.filter(split=Split.VALIDATION)), rubric)


def _items(rows: QuerySet[GoldItem], rubric: RubricVersion) -> dict[str, list[GoldItem]]:
    names = [spec.name for spec in family_for(rubric.rubric).given]
    rows = rows.filter(metric__name__in=names).select_related("metric")
    found: dict[str, list[GoldItem]] = {}
    for one in rows.order_by("answer_id"):
        found.setdefault(one.metric.name, []).append(one)
    return found


def versions_of(look: Look) -> list[RubricVersion]:
    """The versions that judge the hold-out in a look, each once."""
    if look.against_id:
        return [look.candidate]
    return list({one.pk: one for one in (look.candidate, look.active, look.best)}.values())


def keep_sealed(look: Look, rubric: RubricVersion, answer: Answer, repeat: int, results: Mapping[str, Result]) -> None:
    """Keep what the judge made of an answer where nothing but :func:`close_look` reads it."""
    said = {name: NOT_APPLICABLE if one.status is Status.NOT_APPLICABLE else one.value for name, one in results.items()}
    row = SealedVerdict(look=look, rubric_version=rubric, answer=answer, repeat=repeat)
    row.sealed = seal(json.dumps(said), origin=_about(look), secret=settings.SECRET_KEY)
    SealedVerdict.objects.bulk_create([row], ignore_conflicts=True)


def _about(look: Look) -> str:
    return f"look {look.pk}"


def sealed_verdicts(look: Look, rubric: RubricVersion) -> Verdicts:
    """What a version said, its repeats as their mean."""
    secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
    each: dict[int, dict[str, list[float]]] = {}
    for row in SealedVerdict.objects.filter(look=look, rubric_version=rubric):
        for name, value in json.loads(unseal(row.sealed, origin=_about(look), secrets=secrets)).items():
            if value == NOT_APPLICABLE:
                continue
            values = each.setdefault(row.answer_id, {}).setdefault(name, [])
            values += [] if value is None else [value]
    return {
        answer: {name: math.fsum(values) / len(values) if values else None for name, values in said.items()}
        for answer, said in each.items()
    }


def compared_on(
    items: Iterable[GoldItem], candidate: Verdicts, active: Verdicts, best: Verdicts, metric: MetricDefinition
) -> tuple[Compared, int]:
    """The losses of a metric on the items to which it applies, and how many verdicts the candidate misses."""
    scale, name = metric.read_scale(), metric.name
    kept = [one for one in items if any(name in said.get(one.answer_id, {}) for said in (candidate, active))]
    labels = [one.label for one in kept]
    width = (scale.high - scale.low) ** 2
    said = [[of.get(one.answer_id, {}).get(name) for one in kept] for of in (candidate, active, best)]
    weights, groups = np.array([one.weight for one in kept], dtype=np.float64), [one.group for one in kept]
    compared = Compared(
        candidate=losses(said[0], labels, width),
        active=losses(said[1], labels, 0.0),
        best=losses(said[2], labels, 0.0),
        weights=weights,
        groups=groups,
        categories=[one.category for one in kept],
        residuals=residuals_of(labels, said[0], said[1], weights, groups),
    )
    return compared, sum(value is None for value in said[0])


def _outcome(look: Look) -> str:
    said = {rubric.pk: sealed_verdicts(look, rubric) for rubric in versions_of(look)}
    before = sealed_verdicts(look.against, look.against.candidate) if look.against else {}
    metrics: dict[str, Compared] = {}
    for name, items in hold_out_items(look.gold_set, look.candidate, look.since).items():
        ours, active, best = (said.get(pk, before) for pk in (look.candidate_id, look.active_id, look.best_id))
        if look.against:
            active, best = before, before
            items = [one for one in items if one.answer_id in before]
            if not items:
                return Outcome.REFUSED
        one, missing = compared_on(items, ours, active, best, items[0].metric)
        if too_small(one.groups) or missing > MOST_MISSING * len(one.groups):
            return Outcome.REFUSED
        metrics[name] = one
    if accepted(metrics, look.step, Claim(look.claim)):
        return Outcome.ACCEPTED
    by_loss = {name: replace(one, residuals=None) for name, one in metrics.items()}
    return Outcome.LARGER_VARIANCE if accepted(by_loss, look.step, Claim(look.claim)) else Outcome.NOT_ACCEPTED


@transaction.atomic
def close_look(look: Look, model: str) -> Answered:
    """How the look ends, all its verdicts being there; an acceptance puts the candidate in force and licenses it.
    ``model`` answered under the judge's name.

    :raises Refused: ``gold_changed``.
    """
    lock_project(look.project_id)
    done = LookResult.objects.filter(look=look).first()
    if done is None:
        if changed := changed_in(look.gold_set):
            raise Refused("gold_changed", gold=str(look.gold_set), places=len(changed))
        outcome, event = _outcome(look), None
        if outcome == Outcome.ACCEPTED:
            standing = None if look.against_id else _activated(look)
            event = standing or activate(
                look.candidate, look.judge_version, by=look.created_by, reason=str(look), ground=Ground.ACCEPTED
            )
        done = LookResult.objects.create(look=look, outcome=outcome, event=event)
        if event is not None:
            license_metrics(done, hold_out_items(look.gold_set, look.candidate, look.since), model)
        audit.record(look.created_by, "look.ended", look, outcome=outcome)
    step = step_of(look.gold_set, look.since)
    return Answered(look.number, str(done.outcome), step - 1, left_before(step))


def _activated(look: Look) -> RubricEvent | None:
    """The event by which a lead put the candidate in force while the look was under way, if that stands."""
    slot = slot_of(look.judge_version, look.candidate.family)
    if standings(slot).active.pk != look.candidate_id:
        return None
    events = RubricEvent.objects.filter(**slot.columns, version=look.candidate, verb=RubricEvent.Verb.ACTIVATED)
    return events.order_by("-seq").first()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the next look could tell of a metric, by verdicts of runs on validation answers; ``forecast`` is ``None``
    where these do not vary. ``residuals`` are those on validation: a look that shows the candidate's to be larger does
    not accept it."""

    metric: str
    validation: int
    hold_out_groups: int
    step: int
    forecast: Forecast | None
    residuals: Residuals | None
    noisier: bool


def foresee(
    gold_set: GoldSet, judge: JudgeVersion, candidate: RubricVersion, *, since: int = 1
) -> tuple[Foreseen, ...]:
    """What a look could tell, from the newest verdicts of both versions on validation answers, which anybody may see.
    Run both there first: nothing is told of a metric that was not judged by both."""
    active = standings(slot_of(judge, candidate.family)).active
    validation = _validation_items(gold_set, candidate)
    hold_out = hold_out_items(gold_set, candidate, since)
    step = step_of(gold_set, since)
    found = []
    for name, items in validation.items():
        ours, theirs = (_open_verdicts(judge, rubric, items) for rubric in (candidate, active))
        both = [one for one in items if one.answer_id in ours and one.answer_id in theirs]
        groups = len({one.group for one in hold_out.get(name, [])})
        if not both or not groups:
            continue
        compared, _ = compared_on(both, ours, theirs, theirs, items[0].metric)
        ahead = forecast(compared, groups, step, tests=len(hold_out))
        found.append(Foreseen(name, len(both), groups, step, ahead, compared.residuals, compared.noisier))
    return tuple(found)


def _open_verdicts(judge: JudgeVersion, rubric: RubricVersion, items: Sequence[GoldItem]) -> Verdicts:
    """The newest scored value of each answer in runs, by the judge and version."""
    rows = Score.objects.filter(
        judge_version=judge,
        rubric_version=rubric,
        answer__in=[one.answer_id for one in items],
        metric=items[0].metric,
        status=Status.SCORED,
    )
    return {
        answer: {items[0].metric.name: value} for answer, value in rows.order_by("id").values_list("answer", "value")
    }
