from __future__ import annotations

import pytest

from evaluation.judging.calls import Outcome
from evaluation.wording import reasons


@pytest.mark.parametrize(
    "code",
    [*(str(o) for o in Outcome if o is not Outcome.OK), "scale", "no_reference", "does_not_retrieve", "no_answer"],
)
def test_every_reason_that_judging_gives_has_a_sentence(code: str) -> None:
    assert code in reasons.SENTENCES
