"""Relaxed garbage collection while calls are in flight or figures are computed from very many values."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 10)
_lock = threading.Lock()
# One entry per nested use; the first has the original thresholds.
_saved_thresholds: list[tuple[int, int, int]] = []


@contextmanager
def paused_gc() -> Iterator[None]:
    """Freeze and relax the garbage collector; nested uses are counted.

    A full collection walks all objects and stops all threads for 0.1 s or more, including the one that sends calls."""
    with _lock:
        _saved_thresholds.append(gc.get_threshold())
        if len(_saved_thresholds) == 1:
            gc.freeze()
            gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        with _lock:
            first, *_ = _saved_thresholds
            _saved_thresholds.pop()
            if not _saved_thresholds:
                gc.set_threshold(*first)
                gc.unfreeze()
