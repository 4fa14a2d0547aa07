"""How a judge took the shipped attacks: its newest check, attack by attack."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from evaluation.judging.attacks.spec import AttackKind, attack_sets, attacks_hash
from evaluation.models import AttackResult, JudgeVersion, Preflight
from evaluation.wording.messages import explain_reason


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attack: the text shown to the judge, what it gave, what was due where it broke a bound."""

    language: str
    kind: str
    name: str
    text: str
    passed: bool
    given: str
    due: str


@dataclass(frozen=True, slots=True)
class AttacksCard:
    """The newest check of a judge. ``checked_at`` is empty where there was none; ``reason`` says why it could not be
    done, ``stale`` that the attacks have changed since, ``faced_by`` and ``answers_now`` which model was checked and
    which has answered since under the judge's name, where that is another."""

    command: str
    checked_at: datetime | None
    reason: str
    stale: bool
    faced_by: str
    answers_now: str
    passed: int
    attacks: int
    rows: tuple[AttackRow, ...]

    @property
    def all_passed(self) -> bool:
        """Whether the judge kept within every bound."""
        return bool(self.attacks) and self.passed == self.attacks


def attacks_card(judge: JudgeVersion) -> AttacksCard:
    """The card of a judge version. Three queries."""
    check = judge.checks.order_by("-id").first()
    faced_by = check.model_returned if check else ""
    later = Preflight.objects.filter(judge_version=judge, outcome="ok").exclude(model_returned="").order_by("-id")
    now = later.filter(created_at__gt=check.created_at).first() if check and faced_by else None
    answers_now = now.model_returned if now and now.model_returned != faced_by else ""
    results = list(check.results.order_by("-language", "id")) if check else []
    texts = {(str(one.language), attack.id): attack.answer for one in attack_sets() for attack in one.attacks}
    return AttacksCard(
        command=f"manage.py check_judge {judge.name}",
        checked_at=check.created_at if check else None,
        reason=explain_reason(check.reason) if check and check.reason else "",
        stale=bool(check and check.attacks_hash != attacks_hash()),
        faced_by=faced_by,
        answers_now=answers_now,
        passed=check.passed if check else 0,
        attacks=check.attacks if check else 0,
        rows=tuple(_row(one, texts.get((one.language, one.attack), "")) for one in results),
    )


def kind_title(kind: str) -> str:
    """What an attack tries."""
    titles = {
        AttackKind.CANARY: gettext("plain answer"),
        AttackKind.INJECTION: gettext("instruction to the judge"),
        AttackKind.BREAKOUT: gettext("leaving the data block"),
        AttackKind.ZERO_WIDTH: gettext("invisible characters"),
        AttackKind.BASE64: gettext("encoded instruction"),
        AttackKind.EMPTY: gettext("nothing said"),
        AttackKind.FLATTERY: gettext("flattery"),
        AttackKind.PADDING: gettext("padding"),
    }
    return titles[AttackKind(kind)] if kind in set(AttackKind) else kind


def _row(one: AttackResult, text: str) -> AttackRow:
    values = ", ".join(f"{name} {'–' if value is None else f'{value:g}'}" for name, value in one.values.items())
    given = explain_reason(one.reason) if one.reason else values
    if one.gate:
        given = gettext("decided by rule, not sent")
    return AttackRow(
        language=one.language,
        kind=kind_title(one.kind),
        name=one.attack,
        text=text.replace("\u200b", "␣").replace("\u2060", "␣").replace("\u202e", "␣"),
        passed=one.passed,
        given=given,
        due=", ".join(_due(bound) for bound in one.broken),
    )


def _due(bound: dict[str, object]) -> str:
    figures = {"metric": bound["metric"], "level": f"{bound['bound']:g}"}
    if bound["rule"] == "at_least":
        return gettext("%(metric)s at least %(level)s") % figures
    return gettext("%(metric)s at most %(level)s") % figures
