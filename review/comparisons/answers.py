"""Two answers to one question, word by word, with what was said of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from evaluation.core.metric_specs import Bilingual
from evaluation.core.scales import Scale
from evaluation.models import Answer, Run
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.effective import said_of, values_from
from review.evidence.scorers import title_of

_WORDS = re.compile(r"\s+|[^\W_]+|[\W_]", re.UNICODE)
MOST_WORDS = 4_000  # the search for equal stretches grows with the square; longer texts are compared by the line


class Change(StrEnum):
    """What became of a stretch of text."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some text with what became of it. Same and removed stretches together are the first text, same and added ones
    the second, letter by letter."""

    change: Change
    text: str


def text_difference(before: str, after: str) -> tuple[Stretch, ...]:
    """The stretches in reading order. Words are runs of letters and digits; longer texts are compared by whole lines,
    so that a long answer does not keep a page waiting."""
    ours, theirs = _tokens(before), _tokens(after)
    if max(len(ours), len(theirs)) > MOST_WORDS:
        ours, theirs = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return tuple(_joined(_stretches(ours, theirs)))


def _tokens(text: str) -> list[str]:
    return _WORDS.findall(text)


def _stretches(before: list[str], after: list[str]) -> Iterator[Stretch]:
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Stretch(Change.SAME, "".join(before[i:j]))
            continue
        if i < j:
            yield Stretch(Change.REMOVED, "".join(before[i:j]))
        if k < m:
            yield Stretch(Change.ADDED, "".join(after[k:m]))


def _joined(stretches: Iterator[Stretch]) -> list[Stretch]:
    """A single space between two changes joins them: fewer, longer stretches are easier to read."""
    found: list[Stretch] = []
    pending = list(stretches)
    for at, one in enumerate(pending):
        between = 0 < at < len(pending) - 1 and one.change is Change.SAME and not one.text.strip()
        pieces = [Stretch(Change.REMOVED, one.text), Stretch(Change.ADDED, one.text)] if between else [one]
        for piece in pieces:
            _add(found, piece)
    return found


def _add(found: list[Stretch], piece: Stretch) -> None:
    """Append, joined with the stretch of the same kind that follows the last text which both have."""
    reach = 1 if piece.change is Change.SAME else 2
    for at in range(len(found) - 1, max(-1, len(found) - 1 - reach), -1):
        if found[at].change is piece.change:
            found[at] = Stretch(piece.change, found[at].text + piece.text)
            return
        if found[at].change is Change.SAME:
            break
    found.append(piece)


@dataclass(frozen=True, slots=True)
class Said:
    """A metric of both answers: what judge or rule said and what counts after review; ``None`` without a value."""

    title: Bilingual
    scale: Scale
    baseline: float | str | None
    ours: float | str | None
    baseline_counts: float | str | None
    ours_counts: float | str | None


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers of two runs to one question (of one sample each), the baseline's first."""

    baseline: RunAnswer
    ours: RunAnswer
    stretches: tuple[Stretch, ...]
    metrics: tuple[Said, ...]


def answer_pairs(ours: Run, baseline: Run, question_id: str) -> list[AnswerPair]:
    """The answers to the question by sample; empty where one of the runs has none."""
    mine, theirs = ({a.sample: a for a in run_answers(run) if a.question_id == question_id} for run in (ours, baseline))
    shared = sorted(set(mine) & set(theirs))
    keys = [one[sample].answer_id for one in (mine, theirs) for sample in shared]
    texts = dict(Answer.objects.filter(pk__in=keys).values_list("pk", "text"))
    values = _values(ours, [mine[sample].answer_id for sample in shared])
    before = _values(baseline, [theirs[sample].answer_id for sample in shared])
    return [
        AnswerPair(
            baseline=theirs[sample],
            ours=mine[sample],
            stretches=text_difference(texts[theirs[sample].answer_id], texts[mine[sample].answer_id]),
            metrics=_said(before.get(theirs[sample].answer_id, {}), values.get(mine[sample].answer_id, {})),
        )
        for sample in shared
    ]


_Value = tuple[Bilingual, Scale, float | str | None, float | str | None]


def _values(run: Run, answer_ids: list[int]) -> dict[int, dict[str, _Value]]:
    """Answer -> metric -> title, scale, what was said, what counts."""
    said = said_of(run, answer_ids)
    found: dict[int, dict[str, _Value]] = {}
    for metric_id, of_answers in values_from(said).values.items():
        metric = said.metrics[metric_id]
        for answer_id, value in of_answers.items():
            counts = value.label if value.value is None else value.value
            judged = value.judged.answer if value.judged else None
            found.setdefault(answer_id, {})[metric.name] = (title_of(metric), metric.read_scale(), judged, counts)
    return found


def _said(baseline: dict[str, _Value], ours: dict[str, _Value]) -> tuple[Said, ...]:
    found = []
    for name in dict.fromkeys([*baseline, *ours]):
        title, scale, *_ = baseline.get(name) or ours[name]
        before, now = baseline.get(name, (title, scale, None, None)), ours.get(name, (title, scale, None, None))
        found.append(Said(title, scale, before[2], now[2], before[3], now[3]))
    return tuple(found)
