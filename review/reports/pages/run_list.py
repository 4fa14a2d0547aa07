"""Runs as rows of a list, with the state as a chip; the list's page and the start page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext

from evaluation.core.canonical import whole_number
from evaluation.messages import numbers
from evaluation.models import QuestionSet, Run
from review.charts.axis import Tick
from review.charts.forest import Drawn, Figure, ForestRow, Shape, forest
from review.comparisons.summaries import Headline

_LOOK = {
    Run.State.COMPLETED: ("ok", "✓"),
    Run.State.INCOMPLETE: ("bad", "!"),
    Run.State.CANCELLED: ("bad", "×"),
    Run.State.RUNNING: ("warn", "…"),
    Run.State.PREFLIGHT: ("warn", "…"),
    Run.State.PAUSED: ("warn", "‖"),
    Run.State.DRAFT: ("", "·"),
}


class StateChip(NamedTuple):
    """``look`` is a class of the style sheet, ``sign`` a mark that does not need colour."""

    look: str
    sign: str
    text: str


def state_chip(state: str) -> StateChip:
    """The chip of a run's state."""
    known = Run.State(state)
    look, sign = _LOOK[known]
    return StateChip(look, sign, str(known.label))


LISTED = ("answer_set__question_set", Run.NAMED_BY)  # what rows of runs must come with
KINDS = {"corrected": Shape.CORRECTED, "expert": Shape.EXPERT, "judge": Shape.JUDGE, "plain-mark": Shape.PLAIN}


class RunRow(NamedTuple):
    """A run in a list. ``drawn`` is its headline over the list's common axis, ``None`` where there is no figure.
    ``says`` names which score it is, ``rules`` is the rules-only run over the same answers that is folded into it."""

    run: Run
    headline: Headline | None
    drawn: Drawn | None
    says: str
    chip: StateChip
    rules: Run | None = None

    @property
    def at(self) -> datetime:
        """When the run got where it is."""
        return self.run.finished_at or self.run.started_at or self.run.created_at


class RunRows(NamedTuple):
    """The rows with the ticks of the axis that their headlines share."""

    rows: tuple[RunRow, ...]
    ticks: tuple[Tick, ...]


SIZE = 20


class RunFilter:
    """What is asked for, and the rows of the page that match it. A value that is none is passed over."""

    def __init__(self, data: QueryDict, visible: QuerySet[Run]) -> None:
        self.state = data.get("state", "") if data.get("state", "") in Run.State.values else ""
        self.words = data.get("q", "").strip()[:200]
        self.question_set = _whole(data.get("set", ""))
        self.page = max(_whole(data.get("page", "")), 1)
        self._visible = visible
        matching = self._matching().order_by("-pk")
        start = (self.page - 1) * SIZE
        found = list(matching[start : start + SIZE + 1])
        self.rows = found[:SIZE]
        self.older = self._query(self.page + 1) if len(found) > SIZE else ""
        self.newer = self._query(self.page - 1) if self.page > 1 else ""

    @property
    def filtered(self) -> bool:
        """Whether anything but the page was asked for."""
        return bool(self.state or self.words or self.question_set)

    @property
    def states(self) -> list[tuple[str, str | Promise]]:
        """The states a run can have, with their names."""
        return [*Run.State.choices]

    @property
    def question_sets(self) -> QuerySet[QuestionSet]:
        """The question sets that have a run, newest first."""
        used = self._visible.order_by().values("answer_set__question_set")
        return QuestionSet.objects.filter(pk__in=used).order_by("-pk")[:100]

    def _matching(self) -> QuerySet[Run]:
        rows = self._visible
        if self.state:
            rows = rows.filter(state=self.state)
        if self.question_set:
            rows = rows.filter(answer_set__question_set_id=self.question_set)
        if self.words:
            rows = rows.filter(name__icontains=self.words)
        return rows

    def _query(self, page: int) -> str:
        query = QueryDict(mutable=True)
        wanted = {"state": self.state, "q": self.words, "set": self.question_set or "", "page": page}
        query.update({name: str(value) for name, value in wanted.items() if value})
        return f"?{query.urlencode()}"


def _whole(text: str) -> int:
    return whole_number(text, 11) or 0


def without_rules_beside(runs: QuerySet[Run]) -> QuerySet[Run]:
    """The runs without complete ones of rules alone over answers that a judge has scored too."""
    judged = Run.objects.filter(answer_set=OuterRef("answer_set"), judges__isnull=False)
    return runs.exclude(Q(judges=None, state=Run.State.COMPLETED) & Exists(judged))


def rules_beside(seen: QuerySet[Run], runs: Sequence[Run]) -> dict[int, Run]:
    """The newest complete rules-only run over the same answers, by the key of the run it stands beside. One query."""
    sets = [run.answer_set_id for run in runs]
    alone = list(seen.filter(answer_set__in=sets, judges=None, state=Run.State.COMPLETED).order_by("pk"))
    by_set = {run.answer_set_id: run for run in alone}
    return {run.pk: by_set[run.answer_set_id] for run in runs if run.answer_set_id in by_set and run not in alone}


def run_rows(
    runs: Sequence[Run], headlines: Mapping[int, Headline], rules: Mapping[int, Run] = MappingProxyType({})
) -> RunRows:
    """The rows of a list; figures are drawn over 0 to 1, so that rows can be compared by eye."""
    shown = {pk: one for pk, one in headlines.items() if one.value is not None}
    chart = forest(
        [ForestRow(str(pk), KINDS[one.kind], Figure(one.value or 0.0, one.low, one.high)) for pk, one in shown.items()]
    )
    drawn = dict(zip(shown, chart.rows, strict=True))
    return RunRows(
        tuple(_row(run, headlines.get(run.pk), drawn.get(run.pk), rules.get(run.pk)) for run in runs), chart.ticks
    )


def _row(run: Run, headline: Headline | None, drawn: Drawn | None, rules: Run | None) -> RunRow:
    says = _says(headline) if headline and drawn else ""
    return RunRow(run, headline, drawn, says, state_chip(run.state), rules)


def _says(headline: Headline) -> str:
    if headline.label != "overall_score":
        return gettext("parts only, weight %(weight)s") % {"weight": numbers.plain(headline.weight)}
    return {
        "corrected": gettext("corrected"),
        "expert": gettext("reviewed"),
        "judge": gettext("judge only"),
    }.get(headline.kind, "")
