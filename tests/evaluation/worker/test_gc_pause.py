"""The collector leaves alone what was there before while it is held back, and is as before afterwards."""

from __future__ import annotations

import gc
import weakref

from evaluation.worker.gc_pause import THRESHOLDS, paused_gc


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.own = self


def test_old_cycles_stay_while_it_is_held_back_and_new_ones_are_collected() -> None:
    gc.collect()
    thresholds = gc.get_threshold()
    old = weakref.ref(Knot())
    with paused_gc():
        new = weakref.ref(Knot())
        gc.collect()
        assert old() is not None
        assert new() is None
        assert gc.get_threshold() != thresholds
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert old() is None


def test_an_error_ends_it_as_well() -> None:
    thresholds = gc.get_threshold()
    try:
        with paused_gc():
            raise ValueError
    except ValueError:
        pass
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_of_two_at_a_time_the_last_gives_it_back() -> None:
    before = gc.get_threshold()
    one, other = paused_gc(), paused_gc()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count()
    other.__exit__(None, None, None)
    assert gc.get_threshold() == before
    assert not gc.get_freeze_count()
