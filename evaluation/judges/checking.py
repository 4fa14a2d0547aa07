"""Putting a judge configuration to the shipped attacks, and keeping how it took them."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass

from django.db import transaction

from evaluation import audit
from evaluation.accounts.models import User
from evaluation.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judges.models import AttackResult, JudgeCheck, JudgeVersion
from evaluation.judges.pinning import cost_of_all
from evaluation.judging.attacks.running import Attacker, Faced, NoJudge, rubric_of_attacks
from evaluation.judging.attacks.spec import attacks_hash
from evaluation.judging.calls import JudgeClient, JudgeReply, Outcome, Rung
from evaluation.judging.probing import probe
from evaluation.judging.wire import storable

_RAW_KEPT = 4_000


@dataclass(frozen=True, slots=True)
class _Asked:
    """The outcome of a check: why it could not be done, or how every attack was taken."""

    reason: str = ""
    rung: str = ""
    replies: tuple[JudgeReply, ...] = ()
    faced: tuple[Faced, ...] = ()


def check(judge: JudgeVersion, by: User | None = None) -> JudgeCheck:
    """Make the calls (a preflight, then about thirty), and keep check and results as rows. A judge that cannot be asked
    leaves a check with its reason and no results."""
    try:
        asked = asyncio.run(_ask(client_of(judge), judge))
    except Refused as refused:
        asked = _Asked(refused.code)
    replies = [*asked.replies, *(reply for one in asked.faced for reply in one.replies)]
    with transaction.atomic():
        row = JudgeCheck.objects.create(
            judge_version=judge,
            rubric_hash=rubric_of_attacks(judge.language).content_hash,
            attacks_hash=attacks_hash(),
            rung=asked.rung,
            model_returned=next((reply.model_returned for reply in reversed(replies) if reply.model_returned), ""),
            reason=asked.reason,
            attacks=len(asked.faced),
            passed=sum(one.passed for one in asked.faced),
            calls=0 if judge.is_baseline else len(replies),
            cost=cost_of_all(judge, replies),
            created_by=by,
        )
        AttackResult.objects.bulk_create(_row(row, one) for one in asked.faced)
        audit.record(by, "judge.checked", judge)
    return row


async def _ask(client: JudgeClient, judge: JudgeVersion) -> _Asked:
    async with client as opened:
        rung, replies = Rung.JSON_SCHEMA, tuple[JudgeReply, ...]()
        if not judge.is_baseline:
            found = await probe(opened, judge.model, judge.params, expects=judge.expects)
            replies = tuple(one.reply for one in found.probes)
            if found.outcome != Outcome.OK or found.rung is None:
                return _Asked(found.outcome, replies=replies)
            rung = found.rung
        attacker = Attacker(opened, judge.model, judge.parameters, rung, judge.language, expects=judge.expects)
        try:
            faced = await attacker.face_all()
        except NoJudge as error:
            return _Asked(error.reason, str(rung), replies)
        return _Asked("", "" if judge.is_baseline else str(rung), replies, faced)


def _row(check_of: JudgeCheck, one: Faced) -> AttackResult:
    return AttackResult(
        check_of=check_of,
        attack=one.attack.id,
        kind=one.attack.kind,
        language=one.language,
        passed=one.passed,
        gate=one.gate,
        reason=one.unanswered,
        values=one.values,
        broken=[dataclasses.asdict(bound) for bound in one.broken],
        raw=storable(one.replies[-1].raw)[:_RAW_KEPT] if one.replies else "",
    )
