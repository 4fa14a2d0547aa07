"""Settings of a login provider, and every URL of a site that has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from config import environment

pytest.importorskip("allauth", reason="the extra 'sso' is not installed")
pytest.importorskip("requests", reason="the extra 'sso' is not installed")
from contrib.sso.tests.sso_provider import CLIENT, SECRET, SsoProvider

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_permission_table_covers_the_sso_urls() -> None:
    provider = SsoProvider()
    values = {"ISSUER": provider.issuer, "CLIENT": CLIENT, "SECRET": SECRET}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "tests/test_access_matrix.py"],
        cwd=ROOT,
        env=os.environ | {f"CONCORD_OIDC_{name}": value for name, value in values.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    provider.server.shutdown()
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]


def test_sso_login_is_absent_without_a_provider(client: Client) -> None:
    assert client.post("/login/sso/").status_code == 404


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ISSUER": "id.example"}, "CONCORD_OIDC_ISSUER"),
        ({"ISSUER": "http://id.example"}, "CONCORD_OIDC_ISSUER"),  # without TLS outside development
        ({"ISSUER": "https://id.example", "CLIENT": "x"}, "CONCORD_OIDC_SECRET"),
        ({"ISSUER": "https://id.example", "CLIENT": "x", "SECRET": "y"}, "concord-eval\\[sso\\]"),
    ],
)
def test_invalid_provider_settings_are_named_at_startup(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    assert environment.oidc_settings(without_tls=False) == {}
    monkeypatch.setattr(environment, "find_spec", lambda _: None)
    for name, value in variables.items():
        monkeypatch.setenv(f"CONCORD_OIDC_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=message):
        environment.oidc_settings(without_tls=False)
