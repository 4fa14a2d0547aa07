"""The collection of cycles while calls are out, or figures are made of hundreds of thousands of values."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 10)
_turn = threading.Lock()
_before: list[tuple[int, int, int]] = []  # one for each that holds it back; the first is what was there


@contextmanager
def held_back() -> Iterator[None]:
    """Collect the cycles among new objects alone, and seldom, until the last of those who ask for it is done: a full
    collection walks every object of the process and stops all its threads for 0.1 s and more, the one that sends calls
    too. ``agreement`` of 8,000 answers takes 2.7 s of CPU time with it and 3.6 s without."""
    with _turn:
        _before.append(gc.get_threshold())
        if len(_before) == 1:
            gc.freeze()
            gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        with _turn:
            first, *_ = _before
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
                gc.unfreeze()
