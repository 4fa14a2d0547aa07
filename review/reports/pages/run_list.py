"""Rows and state chips of runs for the run list and the home page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext

from evaluation.core.canonical import parse_int
from evaluation.messages import numbers
from evaluation.models import QuestionSet, Run
from evaluation.templatetags.sorting import ListOrder, sorted_fields
from review.charts.axis import Tick
from review.charts.forest import DrawnRow, Figure, ForestRow, Shape, forest
from review.comparisons.summaries import Headline

_CHIPS = {
    Run.State.COMPLETED: ("ok", "✓"),
    Run.State.INCOMPLETE: ("bad", "!"),
    Run.State.CANCELLED: ("bad", "×"),
    Run.State.RUNNING: ("warn", "…"),
    Run.State.PREFLIGHT: ("warn", "…"),
    Run.State.PAUSED: ("warn", "‖"),
    Run.State.DRAFT: ("", "·"),
}


class StateChip(NamedTuple):
    """State of a run: ``look`` is a CSS class, ``sign`` a symbol that works without colour."""

    look: str
    sign: str
    text: str


def state_chip(state: str) -> StateChip:
    known = Run.State(state)
    look, sign = _CHIPS[known]
    return StateChip(look, sign, str(known.label))


SHAPES = {"corrected": Shape.CORRECTED, "expert": Shape.EXPERT, "judge": Shape.JUDGE, "plain-mark": Shape.PLAIN}


class RunRow(NamedTuple):
    """A run in a list. ``drawn`` is its headline on the list's common axis, or ``None``.

    ``score_kind`` names the score. ``rules`` is the folded rules-only run over the same answers."""

    run: Run
    headline: Headline | None
    drawn: DrawnRow | None
    score_kind: str
    chip: StateChip
    rules: Run | None = None

    @property
    def changed_at(self) -> datetime:
        """Time of the last change of state."""
        return self.run.finished_at or self.run.started_at or self.run.created_at


class RunRows(NamedTuple):
    """Rows with the ticks of their common axis."""

    rows: tuple[RunRow, ...]
    ticks: tuple[Tick, ...]


PAGE_SIZE = 20


class RunFilter:
    """Filters of the list and the matching rows of a page. Invalid values are ignored."""

    def __init__(self, data: QueryDict, visible: QuerySet[Run]) -> None:
        self.state = data.get("state", "") if data.get("state", "") in Run.State.values else ""
        self.words = data.get("q", "").strip()[:200]
        self.question_set = _parse_id(data.get("set", ""))
        self.page = max(_parse_id(data.get("page", "")), 1)
        self._visible = visible
        self.order = ListOrder(data, {"name": "name", "state": "state"})
        matching = self._matching().order_by(*sorted_fields(self.order), "-pk")
        start = (self.page - 1) * PAGE_SIZE
        runs = list(matching[start : start + PAGE_SIZE + 1])
        self.rows = runs[:PAGE_SIZE]
        self.older = self.order.page_query(self.page + 1) if len(runs) > PAGE_SIZE else ""
        self.newer = self.order.page_query(self.page - 1) if self.page > 1 else ""

    @property
    def filtered(self) -> bool:
        return bool(self.state or self.words or self.question_set)

    @property
    def states(self) -> list[tuple[str, str | Promise]]:
        return [*Run.State.choices]

    @property
    def question_sets(self) -> QuerySet[QuestionSet]:
        """Question sets that have a run, newest first."""
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


def _parse_id(text: str) -> int:
    return parse_int(text, 11) or 0


def exclude_shadowed_rule_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Hide complete rules-only runs whose answers also have a judged run."""
    judged = Run.objects.filter(answer_set=OuterRef("answer_set"), judges__isnull=False)
    return runs.exclude(Q(judges=None, state=Run.State.COMPLETED) & Exists(judged))


def rule_run_by_judged_run(visible: QuerySet[Run], runs: Sequence[Run]) -> dict[int, Run]:
    """Newest complete rules-only run over the same answers, by primary key of the judged run. One query."""
    sets = [run.answer_set_id for run in runs]
    rule_runs = list(visible.filter(answer_set__in=sets, judges=None, state=Run.State.COMPLETED).order_by("pk"))
    by_set = {run.answer_set_id: run for run in rule_runs}
    return {run.pk: by_set[run.answer_set_id] for run in runs if run.answer_set_id in by_set and run not in rule_runs}


def run_rows(
    runs: Sequence[Run], headlines: Mapping[int, Headline], rules: Mapping[int, Run] = MappingProxyType({})
) -> RunRows:
    """Build the rows. Figures share an axis from 0 to 1."""
    headlines_with_value = {pk: headline for pk, headline in headlines.items() if headline.value is not None}
    chart = forest(
        [
            ForestRow(str(pk), SHAPES[headline.kind], Figure(headline.value or 0.0, headline.low, headline.high))
            for pk, headline in headlines_with_value.items()
        ]
    )
    drawn = dict(zip(headlines_with_value, chart.rows, strict=True))
    return RunRows(
        tuple(_row(run, headlines.get(run.pk), drawn.get(run.pk), rules.get(run.pk)) for run in runs), chart.ticks
    )


def _row(run: Run, headline: Headline | None, drawn: DrawnRow | None, rules: Run | None) -> RunRow:
    score_kind = _score_kind(headline) if headline and drawn else ""
    return RunRow(run, headline, drawn, score_kind, state_chip(run.state), rules)


def _score_kind(headline: Headline) -> str:
    if headline.label != "overall_score":
        return gettext("parts only, weight %(weight)s") % {"weight": numbers.format_number(headline.weight)}
    return {
        "corrected": gettext("corrected"),
        "expert": gettext("reviewed"),
        "judge": gettext("judge only"),
    }.get(headline.kind, "")
