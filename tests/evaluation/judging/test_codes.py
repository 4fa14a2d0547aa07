from __future__ import annotations

from evaluation.messages import reasons
from evaluation.network.outcomes import Outcome


def test_every_judging_reason_has_a_message() -> None:
    outcomes = {str(outcome) for outcome in Outcome if outcome is not Outcome.OK}
    reason_codes = outcomes | {"scale", "no_reference", "does_not_retrieve", "no_answer"}
    assert sorted(reason_codes - reasons.REASON_MESSAGES.keys()) == []
