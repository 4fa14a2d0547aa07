"""The state of a run as a chip: a word, a mark and a colour."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.models import Run

_LOOK = {
    Run.State.COMPLETED: ("ok", "✓"),
    Run.State.INCOMPLETE: ("bad", "!"),
    Run.State.CANCELLED: ("bad", "×"),
    Run.State.RUNNING: ("warn", "…"),
    Run.State.PREFLIGHT: ("warn", "…"),
    Run.State.PAUSED: ("warn", "‖"),
    Run.State.DRAFT: ("", "·"),
}


@dataclass(frozen=True, slots=True)
class StateChip:
    """``look`` is a class of the style sheet, ``sign`` a mark that does not need colour."""

    look: str
    sign: str
    text: str


def state_chip(state: str) -> StateChip:
    """The chip of a run's state."""
    known = Run.State(state)
    look, sign = _LOOK[known]
    return StateChip(look, sign, str(known.label))
