"""Register URLs and the login step after the password."""

from __future__ import annotations

from contrib.second_factor.views import check_session, has_factor, request_code, reset_factor
from evaluation.extensions import Feature, SecondFactor

FEATURE = Feature(
    name="second_factor",
    urls="contrib.second_factor.views",
    second_factor=SecondFactor(ask=request_code, admit=check_session, has=has_factor, reset=reset_factor),
)
