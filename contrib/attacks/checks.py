"""Runs the shipped attacks against a judge, stores the results, and builds the card of the judge's page."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contrib.attacks.attacker import (
    MAX_CONCURRENT,
    Attacker,
    AttackKind,
    AttackOutcome,
    JudgeUnavailable,
    attack_rubric,
    attack_sets,
    attacks_hash,
)
from contrib.attacks.models import AttackResult, JudgeCheck
from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import probe_endpoint
from evaluation.judges.prices import total_cost
from evaluation.judging.calls import JudgeReply, ResponseFormat
from evaluation.judging.probing import ProbeResult
from evaluation.messages.explanations import explain_reason
from evaluation.models import Endpoint, JudgeVersion, Preflight, User
from evaluation.network.outcomes import Outcome, replace_unstorable
from evaluation.worker.endpoint_quota import ENDPOINT_BUSY, EndpointBusy, SharedPool, SingleCalls

MAX_RAW_CHARS = 4_000


# Longest wait for a free slot of the endpoint.
MAX_SLOT_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _CheckOutcome:
    """Outcome of a check: the replies to all calls, and the outcomes of all attacks.

    ``reason`` is the code of a failed check, which may have no attack outcomes."""

    reason: str = ""
    response_format: str = ""
    replies: tuple[JudgeReply, ...] = ()
    outcomes: tuple[AttackOutcome, ...] = ()


def run_check(judge: JudgeVersion, by: User | None = None) -> JudgeCheck:
    """Check the judge (a preflight, then about thirty calls) within the endpoint's shared quota, and store the results.

    A check in which the judge could not be called has a reason and no results."""
    try:
        outcome = _run_attacks(judge)
    except DomainError as error:
        outcome = _CheckOutcome(error.code)
    replies = outcome.replies
    with transaction.atomic():
        row = JudgeCheck.objects.create(
            judge_version=judge,
            rubric_hash=attack_rubric(judge.language).content_hash,
            attacks_hash=attacks_hash(),
            response_format=outcome.response_format,
            model_returned=next((reply.model_returned for reply in reversed(replies) if reply.model_returned), ""),
            reason=outcome.reason,
            attacks=len(outcome.outcomes),
            passed=sum(attack_outcome.passed for attack_outcome in outcome.outcomes),
            calls=0 if judge.is_baseline else len(replies),
            cost=total_cost(judge, replies),
            created_by=by,
        )
        AttackResult.objects.bulk_create(_result_row(row, attack_outcome) for attack_outcome in outcome.outcomes)
        audit.record(by, "judge.checked", judge)
    return row


def _run_attacks(judge: JudgeVersion) -> _CheckOutcome:
    if judge.is_jury:
        raise DomainError("jury_asks_nobody")
    response_format, preflight_replies = ResponseFormat.JSON_SCHEMA, tuple[JudgeReply, ...]()
    if judge.endpoint is not None:
        preflight = _preflight(judge, judge.endpoint)
        if preflight is None:
            return _CheckOutcome(ENDPOINT_BUSY)
        preflight_replies = tuple(probe.reply for probe in preflight.probes)
        if preflight.outcome != Outcome.OK or preflight.response_format is None:
            return _CheckOutcome(preflight.reason, replies=preflight_replies)
        response_format = preflight.response_format
    reason, outcomes = "", tuple[AttackOutcome, ...]()
    open_pool = partial(SharedPool, project_id=judge.project_id, max_wait_seconds=MAX_SLOT_WAIT_SECONDS)
    with open_pool(client_of(judge), judge.endpoint, MAX_CONCURRENT) as pool:
        attacker = Attacker(pool, judge.model, judge.parameters, response_format, judge.language, expects=judge.expects)
        try:
            outcomes = attacker.run_all()
        except JudgeUnavailable as error:
            reason = error.reason
        except EndpointBusy:
            reason = ENDPOINT_BUSY
        last_replies = pool.collect_sent_calls()
    return _CheckOutcome(
        reason,
        str(response_format) if judge.endpoint else "",
        (*preflight_replies, *attacker.replies, *last_replies),
        outcomes,
    )


def _preflight(judge: JudgeVersion, endpoint: Endpoint) -> ProbeResult | None:
    """Probe the judge's endpoint; ``None`` if no slot becomes free in time."""
    client = client_of(judge)
    with SingleCalls(endpoint, None, project_id=judge.project_id) as calls:
        if calls.wait(time.monotonic() + MAX_SLOT_WAIT_SECONDS):
            return None
        return probe_endpoint(client, judge, calls)


def _result_row(check: JudgeCheck, outcome: AttackOutcome) -> AttackResult:
    return AttackResult(
        check_of=check,
        attack=outcome.attack.id,
        kind=outcome.attack.kind,
        language=outcome.language,
        passed=outcome.passed,
        gate=outcome.gate,
        reason=outcome.no_verdict_reason,
        values=outcome.values,
        broken=[dataclasses.asdict(bound) for bound in outcome.broken],
        raw=replace_unstorable(outcome.replies[-1].raw)[:MAX_RAW_CHARS] if outcome.replies else "",
    )


KIND_LABELS = {
    AttackKind.CANARY: _("plain answer"),
    AttackKind.INJECTION: _("instruction to the judge"),
    AttackKind.BREAKOUT: _("breaking out of the data block"),
    AttackKind.ZERO_WIDTH: _("invisible characters"),
    AttackKind.BASE64: _("encoded instruction"),
    AttackKind.EMPTY: _("empty answer"),
    AttackKind.FLATTERY: _("flattery"),
    AttackKind.PADDING: _("padding"),
}
INVISIBLE_TO_SYMBOL = str.maketrans(dict.fromkeys("\u200b\u2060\u202e", "␣"))


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attack: its text, the judge's verdict, and the bound it broke."""

    result: AttackResult
    kind: str
    text: str
    verdict: str
    broken_bounds: str


@dataclass(frozen=True, slots=True)
class AttacksCard:
    """Card of the newest check of a judge. ``check`` is ``None`` if there is none.

    ``stale``: the attacks have changed since. ``current_model``: the model that now answers under the judge's name, if
    it is a different one."""

    judge: JudgeVersion
    check: JudgeCheck | None
    stale: bool
    current_model: str
    rows: tuple[AttackRow, ...]


def attacks_card(judge: JudgeVersion) -> AttacksCard:
    """Build the attack card of a judge. Three queries."""
    check = judge.checks.order_by("-id").first()
    checked_model = check.model_returned if check else ""
    preflights = Preflight.objects.filter(judge_version=judge, outcome="ok").exclude(model_returned="").order_by("-id")
    newer_preflight = preflights.filter(created_at__gt=check.created_at).first() if check and checked_model else None
    results = list(check.results.order_by("-language", "id")) if check else []
    texts = {
        (str(attack_set.language), attack.id): attack.answer
        for attack_set in attack_sets()
        for attack in attack_set.attacks
    }
    return AttacksCard(
        judge=judge,
        check=check,
        stale=bool(check and check.attacks_hash != attacks_hash()),
        current_model=newer_preflight.model_returned
        if newer_preflight and newer_preflight.model_returned != checked_model
        else "",
        rows=tuple(_attack_row(result, texts.get((result.language, result.attack), "")) for result in results),
    )


def _attack_row(result: AttackResult, text: str) -> AttackRow:
    values = ", ".join(f"{name} {'–' if value is None else f'{value:g}'}" for name, value in result.values.items())
    verdict = explain_reason(result.reason) if result.reason else values
    return AttackRow(
        result=result,
        kind=str(KIND_LABELS[AttackKind(result.kind)]) if result.kind in set(AttackKind) else result.kind,
        text=text.translate(INVISIBLE_TO_SYMBOL),
        verdict=gettext("decided by rule, not sent") if result.gate else verdict,
        broken_bounds=", ".join(_bound_text(bound) for bound in result.broken),
    )


def _bound_text(bound: dict[str, object]) -> str:
    params = {"metric": bound["metric"], "level": f"{bound['bound']:g}"}
    if bound["rule"] == "at_least":
        return gettext("%(metric)s at least %(level)s") % params
    return gettext("%(metric)s at most %(level)s") % params
