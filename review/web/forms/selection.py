"""The filters of the list of runs and of a run's answers, read with closed lists of names."""

from __future__ import annotations

import math

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.functional import Promise

from evaluation.core.canonical import whole_number
from evaluation.models import QuestionSet, Run
from review.evidence.effective import Source
from review.results.answers import Wanted

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


NAMES = ("metric", "low", "high", "label", "source", "category", "q")


def wanted_from(data: QueryDict) -> Wanted:
    """What is asked for; a value that is none is passed over."""
    source = data.get("source", "")
    return Wanted(
        metric=data.get("metric", "")[:100],
        low=_number(data.get("low", "")),
        high=_number(data.get("high", "")),
        label=data.get("label", "")[:200],
        source=source if source in set(Source) else "",
        category=data.get("category", "")[:200],
        words=data.get("q", "").strip()[:200],
    )


def query_of(data: QueryDict, **more: str) -> str:
    """The filters as a query string again."""
    kept = QueryDict(mutable=True)
    kept.update({name: text for name in NAMES if (text := data.get(name, ""))})
    kept.update({name: value for name, value in more.items() if value})
    return f"?{kept.urlencode()}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
