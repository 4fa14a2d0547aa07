from __future__ import annotations

from evaluation.messages import reasons
from evaluation.network.outcomes import Outcome


def test_every_reason_that_judging_gives_has_a_sentence() -> None:
    outcomes = {str(outcome) for outcome in Outcome if outcome is not Outcome.OK}
    given = outcomes | {"scale", "no_reference", "does_not_retrieve", "no_answer"}
    assert sorted(given - reasons.REASON_MESSAGES.keys()) == []
