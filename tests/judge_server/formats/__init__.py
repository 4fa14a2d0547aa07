"""Wire formats of the providers other than OpenAI: one module per provider, with its name and a ``FORMAT``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from tests.judge_server.formats.protocol import WireFormat

FORMATS: Mapping[str, WireFormat] = {
    name: import_module(f"{__name__}.{name}").FORMAT for _, name, _ in iter_modules(__path__) if name != "protocol"
}
