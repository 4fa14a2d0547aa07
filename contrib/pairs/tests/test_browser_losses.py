"""A preference survives a session that ends while it is written, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from contrib.pairs.models import Preference
from contrib.pairs.tests.site import make_pair_set
from tests.factories import make_project, make_user
from tests.pages.browser import open_window
from tests.pages.conftest import browser, worker_browser
from tests.pages.test_browser_losses import log_in

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
__all__ = ["browser", "worker_browser"]


def test_a_preference_survives_a_session_that_ends(browser: Any, live_server: Any) -> None:
    project = make_project()
    me = make_user("reviewer", project)
    pairs = make_pair_set(project, me)
    with open_window(browser, live_server.url, me) as window:
        window.open(f"/pairs/{pairs.pk}/rate/")
        window.page.keyboard.press("4")
        window.page.fill("#reason", "B names its source")
        Session.objects.all().delete()
        with window.page.expect_navigation():
            window.page.click("#preference button")
        log_in(window.page, me.username)
        window.settle()
        assert window.path == f"/pairs/{pairs.pk}/rate/"
        assert window.page.input_value("#reason") == "B names its source"
        assert window.page.is_checked("input[name=value][value='1']")
        with window.page.expect_navigation():
            window.page.click("#preference button")
        window.settle()
    assert Preference.objects.get().reason == "B names its source"
