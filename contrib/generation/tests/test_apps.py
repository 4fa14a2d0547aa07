"""Generated questions need corpora."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured


def test_site_without_corpora_refuses_generated_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    config = apps.get_app_config("generation")
    monkeypatch.setattr(apps, "is_installed", lambda name: name != "contrib.corpora")
    with pytest.raises(ImproperlyConfigured, match=r"contrib\.generation needs contrib\.corpora"):
        config.ready()
