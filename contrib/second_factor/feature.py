"""Extensions of the core: addresses, and the step after the password."""

from __future__ import annotations

from contrib.second_factor.views import admit, ask, has, reset
from evaluation.extensions import Feature, SecondFactor

FEATURE = Feature(
    name="second_factor",
    urls="contrib.second_factor.views",
    second_factor=SecondFactor(ask=ask, admit=admit, has=has, reset=reset),
)
