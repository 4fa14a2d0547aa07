"""The interpreter's collector of cycles, held back while calls are out.

A full collection walks every object of the process, modules and models included, and stops all its threads for 0.1 s
and more, the one that sends calls too. What was there before is left out of it meanwhile, and it looks less often.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 10)


@contextmanager
def held_back() -> Iterator[None]:
    """Collect the cycles among new objects alone, and seldom."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
