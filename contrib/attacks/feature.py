"""Register the attack section of a judge's page."""

from __future__ import annotations

from contrib.attacks.checks import attacks_card
from evaluation.extensions import Feature, JudgeAttacks
from evaluation.models import JudgeVersion


def judge_attacks(judge: JudgeVersion) -> JudgeAttacks:
    """Return the judge's newest check for its page and card."""
    card = attacks_card(judge)
    check = card.check
    passed = f"{check.passed}/{check.attacks}" if check and not check.reason else ""
    return JudgeAttacks("attacks/_card.html", card, passed)


FEATURE = Feature(name="attacks", attacks=judge_attacks)
