"""How a judge took the shipped attacks: its newest check, attack by attack."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.extras.attacks.spec import AttackKind, attack_sets, attacks_hash
from evaluation.models import AttackResult, JudgeCheck, JudgeVersion, Preflight
from evaluation.wording.messages import explain_reason

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
