"""The garbage collector ignores older objects while paused and is restored afterwards."""

from __future__ import annotations

import gc
import weakref

from evaluation.worker.gc_pause import THRESHOLDS, paused_gc


class SelfReference:
    """Object with a reference to itself, freed only by the garbage collector."""

    def __init__(self) -> None:
        self.itself = self


def test_paused_collector_frees_only_new_cycles() -> None:
    gc.collect()
    thresholds = gc.get_threshold()
    old_cycle = weakref.ref(SelfReference())
    with paused_gc():
        new_cycle = weakref.ref(SelfReference())
        gc.collect()
        assert old_cycle() is not None
        assert new_cycle() is None
        assert gc.get_threshold() != thresholds
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert old_cycle() is None


def test_collector_is_restored_after_an_error() -> None:
    thresholds = gc.get_threshold()
    try:
        with paused_gc():
            raise ValueError
    except ValueError:
        pass
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_nested_pauses_end_with_the_last() -> None:
    thresholds = gc.get_threshold()
    first_pause, second_pause = paused_gc(), paused_gc()
    first_pause.__enter__()
    second_pause.__enter__()
    first_pause.__exit__(None, None, None)
    assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count()
    second_pause.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds
    assert not gc.get_freeze_count()
