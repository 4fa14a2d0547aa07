"""System checks report invalid operator files at startup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from evaluation.core.errors import DomainError
from evaluation.judges.secrets import key_of
from evaluation.models import Endpoint

pytestmark = pytest.mark.both_databases


@pytest.mark.parametrize(
    ("text", "code", "message_part"),
    [
        (None, "concord.E003", "cannot be read"),
        ("prices: [", "concord.E004", "prices.yaml"),
        ("prices: [{model: m, since: 2026-01-01, input: -1, output: 2}]", "concord.E004", "prices.0.input"),
        ('prices: [{model: m, since: 2026-01-01, input: "0.5", output: "2"}]', None, ""),
    ],
)
def test_invalid_price_table_is_a_system_check_error(
    settings: Any, tmp_path: Path, text: str | None, code: str | None, message_part: str
) -> None:
    file = tmp_path / "prices.yaml"
    if text is not None:
        file.write_text(text)
    settings.CONCORD_PRICES = str(file)
    errors = [(error.id, error.msg) for error in run_checks() if str(error.id).startswith("concord.E00")]
    assert [error[0] for error in errors] == ([code] if code else [])
    assert all(message_part in message for _, message in errors)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "CONCORD_KEY_", "CONCORD_KEY_a", "XCONCORD_KEY_A"])
def test_only_key_variables_are_read_as_keys(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "never to be sent")
    with pytest.raises(DomainError, match="key_name"):
        key_of(Endpoint(name="e", base_url="https://one.example/v1", key_env=name))
    monkeypatch.setenv("CONCORD_KEY_A", "sent")
    assert key_of(Endpoint(name="e", base_url="https://one.example/v1", key_env="CONCORD_KEY_A")) == "sent"
