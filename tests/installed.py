"""Additions of installed features to the tests of the core, each in ``contrib/<app>/tests/site.py``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps

from evaluation.extensions import is_installed


def sites() -> list[ModuleType]:
    """Return the ``site`` modules of installed features, in the order of the apps."""
    return [
        import_module(f"{app.name}.tests.site")
        for app in apps.get_app_configs()
        if app.name.startswith("contrib.") and Path(app.path, "tests", "site.py").exists()
    ]


def needs(*features: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test where a feature is not installed."""
    return pytest.mark.skipif(not all(map(is_installed, features)), reason=f"not installed: {', '.join(features)}")


def merged(name: str) -> Mapping[Any, Any]:
    """Return the mappings of that name in all ``site`` modules as one."""
    return {key: value for site in sites() for key, value in getattr(site, name, {}).items()}
