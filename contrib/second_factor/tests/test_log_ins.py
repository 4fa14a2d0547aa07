"""Second factor in its own process, because apps and URLs are fixed at the start."""

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

pytest.importorskip("allauth", reason="the extra 'factor' is not installed")
pytest.importorskip("segno", reason="the extra 'factor' is not installed")

ROOT = Path(__file__).parents[3]


BROWSER = (
    "contrib/second_factor/tests/second_factor_in_a_browser.py::test_second_factor_is_set_up_and_used_on_clean_pages"
)
# One process each, which takes longest to start.
FACTOR = ("contrib/second_factor/tests/second_factor_on.py", f"{BROWSER}[en]")
OTHER_TESTS = (f"{BROWSER}[ko]", "tests/test_access_matrix.py", "tests/pages/test_passwords.py")


@pytest.mark.slow
@pytest.mark.parametrize("tests", [FACTOR, OTHER_TESTS], ids=["factor", "everything else"])
def test_suite_passes_with_the_feature_installed(tests: tuple[str, ...]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=os.environ | {"CONCORD_SECOND_FACTOR": "offered"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert "passed" in result.stdout or "." in result.stdout


def test_feature_is_absent_without_its_setting(client: Client) -> None:
    assert settings.CONCORD_SECOND_FACTOR == "off"
    assert client.get("/login/code/").status_code == 404
    assert client.get("/account/second-factor/").status_code == 404
    assert "config.middleware.SecondFactorMiddleware" not in settings.MIDDLEWARE  # nor looked up with every request
    assert "allauth.mfa" not in settings.INSTALLED_APPS


@pytest.mark.parametrize(
    ("mode", "is_installed", "message"), [("yes", True, "off, offered"), ("all", False, "concord-eval\\[factor\\]")]
)
def test_invalid_setting_is_named_at_startup(
    monkeypatch: pytest.MonkeyPatch, mode: str, is_installed: bool, message: str
) -> None:
    monkeypatch.setenv("CONCORD_SECOND_FACTOR", mode)
    if not is_installed:
        monkeypatch.setattr(environment, "find_spec", lambda _: None)
    with pytest.raises(ImproperlyConfigured, match=message):
        environment.second_factor_mode()
