"""Additions of installed features to the tests of the core, each in ``contrib/<app>/tests/site.py``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from django.apps import apps


def sites() -> list[ModuleType]:
    """Return the ``site`` modules of installed features, in the order of the apps."""
    return [
        import_module(f"{app.name}.tests.site")
        for app in apps.get_app_configs()
        if app.name.startswith("contrib.") and Path(app.path, "tests", "site.py").exists()
    ]


def merged(name: str) -> Mapping[Any, Any]:
    """Return the mappings of that name in all ``site`` modules as one."""
    return {key: value for site in sites() for key, value in getattr(site, name, {}).items()}
