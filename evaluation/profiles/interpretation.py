"""How a profile reads its figures: bands, automatic failures, and tables of high and low with a diagnosis each."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluation.core.registry import Bilingual

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(_Data):
    """A text in both languages of the product."""

    en: str = Field(min_length=1)
    ko: str = Field(min_length=1)

    @property
    def bilingual(self) -> Bilingual:
        """The same as the registry's type."""
        return Bilingual(self.en, self.ko)


class Band(_Data):
    """A named range of a figure, up to the next band, which it does not include. It starts at ``at_least``, or right
    above ``above``."""

    name: _Name
    title: Text
    at_least: _Finite | None = None
    above: _Finite | None = None

    @model_validator(mode="after")
    def _starts_once(self) -> Self:
        if (self.at_least is None) == (self.above is None):
            raise ValueError(f"the band {self.name} starts either at_least somewhere or above it")
        return self

    @property
    def start(self) -> tuple[float, bool]:
        """Where it starts, and whether only above that."""
        if self.above is not None:
            return self.above, True
        return self.at_least or 0.0, False


class AutomaticFailure(_Data):
    """A flag (a verdict of ``hallucination_flags``) with which an answer does not pass, whatever its scores."""

    flag: Literal["unknown_phone", "forbidden_name", "avoidance"]
    title: Text


class Axis(_Data):
    """One side of a table: high where every one of the metrics is at least ``at_least``."""

    name: _Name
    title: Text
    metrics: tuple[_Name, ...] = Field(min_length=1)
    at_least: _Finite


class Cell(_Data):
    """A field of a table: the axes that are high there (the other is low), and what that means."""

    name: _Name
    high: tuple[_Name, ...] = ()
    title: Text
    text: Text


class Table(_Data):
    """Two axes and a diagnosis for each of the four combinations of high and low."""

    name: _Name
    title: Text
    axes: tuple[Axis, Axis]
    cells: tuple[Cell, ...]

    @model_validator(mode="after")
    def _has_every_combination(self) -> Self:
        names = {axis.name for axis in self.axes}
        found = [frozenset(cell.high) for cell in self.cells]
        wanted = {frozenset(), frozenset(names), *(frozenset({name}) for name in names)}
        if len(names) != len(self.axes) or set(found) != wanted or len(found) != len(wanted):
            raise ValueError(f"the table {self.name} does not have each combination of its axes once")
        return self
