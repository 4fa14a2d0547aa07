"""The plots of one judge against the experts, each with the same figures as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from evaluation.core.scales import Scale, ScaleKind
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.messages import explain_reason
from review.charts.confusion_grid import ConfusionGrid, confusion_grid
from review.charts.differences import Difference, Differences, differences
from review.charts.judge_against_expert import JudgeAgainstExpert, judge_against_expert
from review.charts.plane import Plane
from review.charts.reliability_plot import ReliabilityPlot, reliability_plot
from review.web.pages.twin import Twin

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often experts (rows) and judge (columns) gave which level: a cell is its text and whether both agree.
    ``grid`` is missing where there are too many categories for a picture."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    grid: ConfusionGrid | None
    texts: tuple[str, ...]
    name: str

    @property
    def cells(self) -> list[tuple[Any, str]]:
        """The grid's cells with their texts."""
        return list(zip(self.grid.cells, self.texts, strict=True)) if self.grid else []


@dataclass(frozen=True, slots=True)
class Places:
    """The judge's values beside the experts' means; ``name`` says in words what the picture shows."""

    chart: JudgeAgainstExpert
    name: str
    twin: Twin


@dataclass(frozen=True, slots=True)
class Curve:
    """The reliability curve; ``name`` as in :class:`Places`."""

    chart: ReliabilityPlot
    name: str
    twin: Twin


@dataclass(frozen=True, slots=True)
class Bias:
    """Judge minus expert, overall and by category."""

    chart: Differences
    twin: Twin


@dataclass(frozen=True, slots=True)
class JudgePlots:
    """All plots of one judge; those that its scale does not have are ``None``. ``unfolded``: shown without asking."""

    title: str
    unfolded: bool
    confusion: Confusion | None
    places: Places | None
    curve: Curve | None
    bias: Bias | None

    @property
    def any(self) -> bool:
        """Whether there is anything to see."""
        return any((self.confusion, self.places, self.curve, self.bias))


def judge_plots(title: str, of: Figures, *, unfolded: bool) -> JudgePlots:
    """The plots of a judge's agreement figures, in the form of the contract with categories."""
    if not of["n"]:
        return JudgePlots(title, unfolded, None, None, None, None)
    scale = Scale.parse(of["scale"])
    plane = None if scale.kind is ScaleKind.CLASS else Plane(scale.low, scale.high, scale.levels)
    return JudgePlots(
        title=title,
        unfolded=unfolded,
        confusion=_confusion(of, scale),
        places=None if plane is None or scale.kind is ScaleKind.YES_NO else _places(of, scale, plane),
        curve=None if plane is None else _curve(of, scale, plane),
        bias=_bias(of, scale),
    )


def _confusion(of: Figures, scale: Scale) -> Confusion | None:
    matrix = of["confusion"]
    if matrix is None:
        return None
    labels = tuple(numbers.on_scale(label, scale) for label in of["labels"])
    decimals = 1 if of["sampling"] == "weighted" else 0
    rows = tuple(
        (labels[i], tuple((numbers.plain(cell, decimals), i == j) for j, cell in enumerate(row)))
        for i, row in enumerate(matrix)
    )
    same = sum(row[at] for at, row in enumerate(matrix))
    name = gettext("Confusion matrix: both said the same on %(same)s of %(n)s answers") % {
        "same": numbers.plain(same, decimals),
        "n": of["n"],
    }
    texts = tuple(text for _, cells in rows for text, _ in cells)
    return Confusion(labels, rows, confusion_grid(matrix, labels), texts, name)


def _places(of: Figures, scale: Scale, plane: Plane) -> Places:
    places = [(float(expert), float(judge), int(count)) for expert, judge, count in of["places"]]
    above, below = (sum(c for e, j, c in places if (j - e) * sign > 0) for sign in (1, -1))
    name = gettext("Judge against experts: the judge gave more on %(above)d answers, less on %(below)d of %(n)d") % {
        "above": above,
        "below": below,
        "n": sum(count for _, _, count in places),
    }
    rows = tuple(
        (numbers.on_scale(expert, scale), (numbers.on_scale(judge, scale), str(count)))
        for expert, judge, count in places
    )
    twin = Twin(name, gettext("Experts’ mean"), (gettext("Judge"), gettext("Answers")), rows)
    return Places(judge_against_expert(places, plane), name, twin)


def _curve(of: Figures, scale: Scale, plane: Plane) -> Curve | None:
    points = of["reliability_curve"]
    if not points:
        return None
    name = gettext("Reliability curve: the experts’ mean where the judge gave a certain value")
    rows = tuple(
        (
            numbers.plain(one["judge"]),
            (numbers.plain(one["expert"]), numbers.interval(one["low"], one["high"]) or "–", str(one["n"])),
        )
        for one in points
    )
    header = (gettext("Experts’ mean"), gettext("95% interval"), gettext("Answers"))
    chart = reliability_plot([(one["judge"], one["expert"], one["low"], one["high"]) for one in points], plane)
    return Curve(chart, name, Twin(name, gettext("Judge gave"), header, rows))


def _bias(of: Figures, scale: Scale) -> Bias | None:
    if of["bias"] is None:
        return None
    parts: Mapping[str, Figures] = of.get("by_category", {})
    rows = [_difference(gettext("all answers"), of)]
    if len(parts) > 1:
        rows += [_difference(category_name(category), part) for category, part in parts.items()]
    header = (gettext("Judge minus experts"), gettext("95% interval"), gettext("Answers"))
    lines = tuple((row.label, (row.text or row.withheld, row.interval or "–", row.note)) for row in rows)
    return Bias(differences(rows, scale.width), Twin(gettext("Bias by category"), gettext("Category"), header, lines))


def _difference(label: str, of: Figures) -> Difference:
    count = gettext("n = %(count)d") % {"count": of["n"]}
    if of["bias"] is None:
        return Difference(label, None, withheld=explain_reason(of["undefined"]["bias"]), note=count)
    low, high = of["intervals"].get("bias", (None, None))
    return Difference(label, of["bias"], low, high, numbers.signed(of["bias"]), numbers.interval(low, high), note=count)
