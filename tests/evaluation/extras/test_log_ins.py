"""The extras of logging in, in a process that has them: apps and addresses stand at the start of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from config import environment

pytest.importorskip("allauth", reason="the extras 'sso' and 'factor' are not installed")
pytest.importorskip("segno", reason="the extra 'factor' is not installed")
from tests.evaluation.extras.sso_provider import CLIENT, SECRET, SsoProvider

ROOT = Path(__file__).parents[3]


BROWSER = "tests/evaluation/extras/second_factor_in_a_browser.py::test_second_factor_is_set_up_and_used_on_clean_pages"
# One process each, which takes longest to start.
FACTOR = ("tests/evaluation/extras/second_factor_on.py", f"{BROWSER}[en]")
EVERYTHING_ELSE = (f"{BROWSER}[ko]", "tests/test_access_matrix.py", "tests/pages/test_passwords.py")


@pytest.mark.slow
@pytest.mark.parametrize("tests", [FACTOR, EVERYTHING_ELSE], ids=["factor", "everything else"])
def test_tests_pass_where_the_extras_are_installed(tests: tuple[str, ...]) -> None:
    provider = SsoProvider()
    told = {"ISSUER": provider.issuer, "CLIENT": CLIENT, "SECRET": SECRET}
    environ = os.environ | {f"CONCORD_OIDC_{name}": value for name, value in told.items()}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=environ | {"CONCORD_SECOND_FACTOR": "offered"},
        capture_output=True,
        text=True,
        check=False,
    )
    provider.server.shutdown()
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout or "." in done.stdout


def test_without_its_setting_nothing_of_it_is_there_or_asked(client: Client) -> None:
    assert settings.CONCORD_SECOND_FACTOR == "off"
    assert client.get("/login/code/").status_code == 404
    assert client.get("/account/second-factor/").status_code == 404
    assert "config.middleware.GateMiddleware" not in settings.MIDDLEWARE  # nor looked up with every request
    assert "allauth.mfa" not in settings.INSTALLED_APPS


@pytest.mark.parametrize(
    ("told", "there", "named"), [("yes", True, "off, offered"), ("all", False, "concord-eval\\[factor\\]")]
)
def test_a_setting_that_cannot_work_is_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch, told: str, there: bool, named: str
) -> None:
    monkeypatch.setenv("CONCORD_SECOND_FACTOR", told)
    if not there:
        monkeypatch.setattr(environment, "find_spec", lambda _: None)
    with pytest.raises(ImproperlyConfigured, match=named):
        environment.second_factor()


def test_without_a_provider_its_address_is_not_there(client: Client) -> None:
    assert client.post("/login/sso/").status_code == 404


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"ISSUER": "id.example"}, "CONCORD_OIDC_ISSUER"),
        ({"ISSUER": "http://id.example"}, "CONCORD_OIDC_ISSUER"),  # without TLS outside development
        ({"ISSUER": "https://id.example", "CLIENT": "x"}, "CONCORD_OIDC_SECRET"),
        ({"ISSUER": "https://id.example", "CLIENT": "x", "SECRET": "y"}, "concord-eval\\[sso\\]"),
    ],
)
def test_settings_of_a_provider_that_cannot_work_are_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], named: str
) -> None:
    assert environment.oidc(debug=False) == {}
    monkeypatch.setattr(environment, "find_spec", lambda _: None)
    for name, value in told.items():
        monkeypatch.setenv(f"CONCORD_OIDC_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=named):
        environment.oidc(debug=False)
