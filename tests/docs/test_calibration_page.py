"""The worked example of ``docs/calibration.md`` is what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from review.statistics.acceptance import evidence_of, level_of_look, losses

PAGE = Path("docs/calibration.md").read_text(encoding="utf-8")


def listed(words: str) -> list[float]:
    """The numbers that follow the words, up to the end of the clause."""
    found = re.search(re.escape(words) + r"\s+([-+\d., and\n]+)", PAGE)
    assert found is not None, words
    return [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", found[1])]


def figure(words: str) -> float:
    return listed(words)[0]


def test_the_example_by_hand_is_what_the_test_computes() -> None:
    labels = listed("with labels")
    active, candidate = (losses(listed(who), labels, 16.0) for who in ("active version says", "the candidate"))
    assert listed("distances: active") == active.tolist()
    assert listed("candidate 0.25,")[:3] == candidate.tolist()[1:]
    differences = candidate - active
    assert listed("Differences") == differences.tolist()
    found = evidence_of(differences, np.ones(4), np.arange(4))
    assert figure(", mean") == float(found.mean)
    assert figure("the variance is") == pytest.approx(float(found.error) ** 2, abs=5e-5)
    assert figure("the standard error") == pytest.approx(float(found.error), abs=5e-5)
    assert figure("t =") == pytest.approx(float(found.mean / found.error), abs=5e-5)
    assert figure("p =") == pytest.approx(float(found.p_below), abs=5e-5)
    assert figure("Above") == level_of_look(1)
