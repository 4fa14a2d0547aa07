"""Who gave a rating, when and how: the same fields for ratings and pairs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluation.files.row import Row
from evaluation.files.values import read_moment, read_number


class Rater(StrEnum):
    """Whether a person or a model gave the value."""

    HUMAN = "human"
    JUDGE = "judge"


class Phase(StrEnum):
    """Before the judge was seen, or after."""

    INITIAL = "initial"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Origin:
    """``author``: a label; judges ``name@version``. ``probability``: with which the answer was sampled, in (0, 1],
    ``None`` where the file does not say. ``created`` is without an offset where the file gives none."""

    rater: Rater
    author: str
    phase: Phase
    blind: bool
    probability: float | None
    created: datetime | None


def read_origin(row: Row) -> Origin:
    """Rater and author are required; the phase is ``initial`` and the rating blind unless the row says otherwise."""
    if row.has("rater"):
        row.set_aside("source")
    rater = _choice(row, ("rater", "source"), tuple(Rater))
    author = row.required_name("author")
    phase = _choice(row, ("phase",), tuple(Phase), Phase.INITIAL)
    probability, created = row.take("probability"), row.take("created")
    number = None if probability is None else read_number(probability, "probability", row.problems, 0, 1)
    if number == 0:
        row.problems.add("out_of_range", row.line, "probability", value="0", low=0, high=1)
    return Origin(
        rater=Rater(rater or Rater.HUMAN),
        author=author,
        phase=Phase(phase or Phase.INITIAL),
        blind=row.boolean("blind", True),
        probability=number,
        created=None if created is None else read_moment(created, "created", row.problems),
    )


def _choice(row: Row, names: tuple[str, ...], known: tuple[str, ...], default: str = "") -> str:
    """One of the known words in any case; empty after its problem was noted."""
    if not row.has(*names):
        if not default:
            row.problems.add("missing", row.line, names[0], names=", ".join(names))
        return default
    word = row.name(*names).lower()
    if word in known:
        return word
    row.problems.add("unknown_choice", row.line, names[0], value=word, known=", ".join(known))
    return ""
