"""What experts reach who are compared with their colleagues as the judge is: the ceiling, and whether the judge could
stand in for one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from evaluation.core.scales import Scale
from evaluation.wording import numbers
from review.comparisons.trend import headline_statistic
from review.web.pages.statistic_names import STATISTICS


@dataclass(frozen=True, slots=True)
class CeilingRow:
    """One judge and statistic: the left-out experts' figure and the judge's, both against the mean of the others, with
    their intervals; ``test`` is the outcome of the alternative-annotator test in words, on the first row of a judge."""

    judge: str
    statistic: str
    experts: str
    experts_interval: str
    judges: str
    judges_interval: str
    test: str


def ceiling_rows(judges: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[CeilingRow]:
    """The rows of every judge whose answers several experts rated."""
    for title, of in judges:
        beside = of["ceiling"]
        if beside is None:
            continue
        names = [headline_statistic(Scale.parse(of["scale"])), "mae", "exact"]
        defined = [name for name in names if None not in (beside["expert"][name], beside["judge"].get(name))]
        for at, name in enumerate(defined):
            expert, judge = beside["expert"], beside["judge"]
            yield CeilingRow(
                judge=title,
                statistic=str(STATISTICS[name][0]),
                experts=_text(name, expert[name]),
                experts_interval=_ends(expert, name),
                judges=_text(name, judge[name]),
                judges_interval=_ends(judge, name),
                test=_test(of["alternative_annotator"]) if at == 0 else "",
            )


def _text(name: str, value: float) -> str:
    return numbers.share(value) if name == "exact" else numbers.plain(value)


def _ends(side: Mapping[str, Any], name: str) -> str:
    low, high = side["intervals"].get(name, (None, None))
    if name == "exact" and low is not None and high is not None:
        return f"{numbers.share(low)}–{numbers.share(high)}"
    return numbers.interval(low, high)


def _test(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    if found["passed"] is None:
        return gettext("not tested: it needs three experts with 30 answers each")
    shown = {"share": numbers.share(found["winning_rate"])}
    if found["passed"]:
        return gettext("passed: it could stand in for %(share)s of the experts") % shown
    return gettext("not passed: shown for %(share)s of the experts") % shown
