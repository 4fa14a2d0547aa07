"""Putting a judge configuration to the shipped attacks, keeping how it took them, and showing that."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contrib.attacks.models import AttackResult, JudgeCheck
from contrib.attacks.running import (
    AT_ONCE,
    Attacker,
    AttackKind,
    Faced,
    NoJudge,
    attack_sets,
    attacks_hash,
    rubric_of_attacks,
)
from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import probed
from evaluation.judges.prices import cost_of_all
from evaluation.judging.calls import JudgeReply, Rung
from evaluation.judging.probing import Probed
from evaluation.messages.sentences import explain_reason
from evaluation.models import Endpoint, JudgeVersion, Preflight, User
from evaluation.network.outcomes import Outcome, storable
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool, SingleCalls

_RAW_KEPT = 4_000


PATIENCE_SECONDS = 60.0  # until something can be sent


@dataclass(frozen=True, slots=True)
class _Asked:
    """The outcome of a check: why it could not be done, or how every attack was taken; ``replies`` to all calls."""

    reason: str = ""
    rung: str = ""
    replies: tuple[JudgeReply, ...] = ()
    faced: tuple[Faced, ...] = ()


def check(judge: JudgeVersion, by: User | None = None) -> JudgeCheck:
    """Make the calls (a preflight, then about thirty) within what all workers share of the endpoint, and keep check and
    results as rows. A check in which an attack could not be put to the judge has its reason and no results."""
    try:
        asked = _ask(judge)
    except Refused as refused:
        asked = _Asked(refused.code)
    replies = asked.replies
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


def _ask(judge: JudgeVersion) -> _Asked:
    if judge.is_jury:
        raise Refused("jury_asks_nobody")
    rung, before = Rung.JSON_SCHEMA, tuple[JudgeReply, ...]()
    if judge.endpoint is not None:
        found = _preflight(judge, judge.endpoint)
        if found is None:
            return _Asked(ENDPOINT_BUSY)
        before = tuple(one.reply for one in found.probes)
        if found.outcome != Outcome.OK or found.rung is None:
            return _Asked(found.reason, replies=before)
        rung = found.rung
    reason, faced = "", tuple[Faced, ...]()
    share = partial(SharedPool, project_id=judge.project_id, patience=PATIENCE_SECONDS)
    with share(client_of(judge), judge.endpoint, AT_ONCE) as pool:
        attacker = Attacker(pool, judge.model, judge.parameters, rung, judge.language, expects=judge.expects)
        try:
            faced = attacker.face_all()
        except NoJudge as error:
            reason = error.reason
        except Busy:
            reason = ENDPOINT_BUSY
        after = pool.end()
    return _Asked(reason, str(rung) if judge.endpoint else "", (*before, *attacker.replies, *after), faced)


def _preflight(judge: JudgeVersion, endpoint: Endpoint) -> Probed | None:
    """``None`` where the endpoint cannot be called at present."""
    client = client_of(judge)
    with SingleCalls(endpoint, None, project_id=judge.project_id) as calls:
        if calls.wait(time.monotonic() + PATIENCE_SECONDS):
            return None
        return probed(client, judge, calls)


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


KINDS = {
    AttackKind.CANARY: _("plain answer"),
    AttackKind.INJECTION: _("instruction to the judge"),
    AttackKind.BREAKOUT: _("leaving the data block"),
    AttackKind.ZERO_WIDTH: _("invisible characters"),
    AttackKind.BASE64: _("encoded instruction"),
    AttackKind.EMPTY: _("nothing said"),
    AttackKind.FLATTERY: _("flattery"),
    AttackKind.PADDING: _("padding"),
}
INVISIBLE = str.maketrans(dict.fromkeys("\u200b\u2060\u202e", "␣"))


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attack: the text shown to the judge, what it gave, what was due where it broke a bound."""

    result: AttackResult
    kind: str
    text: str
    given: str
    due: str


@dataclass(frozen=True, slots=True)
class AttacksCard:
    """The newest check of a judge, ``None`` where there was none; ``stale`` says that the attacks have changed since,
    ``answers_now`` which model has answered since under the judge's name, where that is another."""

    judge: JudgeVersion
    check: JudgeCheck | None
    stale: bool
    answers_now: str
    rows: tuple[AttackRow, ...]


def attacks_card(judge: JudgeVersion) -> AttacksCard:
    """How a judge version took the attacks. Three queries."""
    check = judge.checks.order_by("-id").first()
    faced_by = check.model_returned if check else ""
    later = Preflight.objects.filter(judge_version=judge, outcome="ok").exclude(model_returned="").order_by("-id")
    now = later.filter(created_at__gt=check.created_at).first() if check and faced_by else None
    results = list(check.results.order_by("-language", "id")) if check else []
    texts = {(str(one.language), attack.id): attack.answer for one in attack_sets() for attack in one.attacks}
    return AttacksCard(
        judge=judge,
        check=check,
        stale=bool(check and check.attacks_hash != attacks_hash()),
        answers_now=now.model_returned if now and now.model_returned != faced_by else "",
        rows=tuple(_attack(one, texts.get((one.language, one.attack), "")) for one in results),
    )


def _attack(one: AttackResult, text: str) -> AttackRow:
    values = ", ".join(f"{name} {'–' if value is None else f'{value:g}'}" for name, value in one.values.items())
    given = explain_reason(one.reason) if one.reason else values
    return AttackRow(
        result=one,
        kind=str(KINDS[AttackKind(one.kind)]) if one.kind in set(AttackKind) else one.kind,
        text=text.translate(INVISIBLE),
        given=gettext("decided by rule, not sent") if one.gate else given,
        due=", ".join(_due(bound) for bound in one.broken),
    )


def _due(bound: dict[str, object]) -> str:
    figures = {"metric": bound["metric"], "level": f"{bound['bound']:g}"}
    if bound["rule"] == "at_least":
        return gettext("%(metric)s at least %(level)s") % figures
    return gettext("%(metric)s at most %(level)s") % figures
