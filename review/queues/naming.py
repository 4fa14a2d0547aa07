"""Names of queues: a reviewer reads them before rating, so they must not tell what the rating should not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evaluation.core.errors import Refused
from evaluation.models import Run
from review.statistics.sampling.member import Strategy

_STRATEGIES = tuple(strategy.value.replace("_", " ") for strategy in Strategy if strategy is not Strategy.ALL)
_SHORTEST = 3  # shorter names occur in ordinary words


def neutral_name(name: str, runs: Sequence[Run], *, hide_system: bool, number: int) -> str:
    """The queue's name: the given one, else question set and number.

    :raises Refused: ``queue_name_tells`` where it holds the name of a strategy, judge or model, or, with systems
        hidden, of a system or run.
    """
    if not name.strip():
        return f"{runs[0].answer_set.question_set.name} · {number}"[:200]
    told = [word for word in _telling(runs, hide_system=hide_system) if _stands_in(word, name)]
    if told:
        raise Refused("queue_name_tells", words=sorted(set(told)))
    return name.strip()[:200]


def _telling(runs: Sequence[Run], *, hide_system: bool) -> Iterable[str]:
    yield from _STRATEGIES
    for run in runs:
        for judge in run.judges.select_related("judge_version"):
            yield judge.judge_version.name
            yield judge.judge_version.model
        if hide_system:
            yield run.name
            yield run.answer_set.system_version.system.name


def _stands_in(word: str, name: str) -> bool:
    """Whether the word begins a word of the name; endings may follow it, as Korean particles do."""
    word = word.strip().casefold()
    text = name.casefold().replace("_", " ")
    return len(word) >= _SHORTEST and re.search(rf"(?<!\w){re.escape(word.replace('_', ' '))}", text) is not None
