"""The second factor in a process of its own that has it, because apps and addresses are fixed when one starts."""

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
EVERYTHING_ELSE = (f"{BROWSER}[ko]", "tests/test_access_matrix.py", "tests/pages/test_passwords.py")


@pytest.mark.slow
@pytest.mark.parametrize("tests", [FACTOR, EVERYTHING_ELSE], ids=["factor", "everything else"])
def test_tests_pass_where_the_feature_is_installed(tests: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=os.environ | {"CONCORD_SECOND_FACTOR": "offered"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout or "." in done.stdout


def test_without_its_setting_nothing_of_it_is_there_or_asked(client: Client) -> None:
    assert settings.CONCORD_SECOND_FACTOR == "off"
    assert client.get("/login/code/").status_code == 404
    assert client.get("/account/second-factor/").status_code == 404
    assert "config.middleware.SecondFactorMiddleware" not in settings.MIDDLEWARE  # nor looked up with every request
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
        environment.second_factor_mode()
