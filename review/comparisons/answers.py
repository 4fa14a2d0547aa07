"""Word-level difference of two answers to one question, with their metrics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from evaluation.core.metric_specs import Bilingual
from evaluation.core.scales import Scale
from evaluation.models import Answer, Run
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.effective import effective_values_from, load_evidence
from review.evidence.scorers import metric_title

_WORDS = re.compile(r"\s+|[^\W_]+|[\W_]", re.UNICODE)
# The search grows with the square of the length.
MAX_PIECES = 2_000


class ChangeKind(StrEnum):
    """Kind of change of a text stretch."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of text with its change.

    Same and removed stretches join to the first text, same and added ones to the second, character by character."""

    change: ChangeKind
    text: str


def text_difference(before: str, after: str) -> tuple[Stretch, ...]:
    """Return the stretches in reading order. Words are runs of letters and digits. Texts of too many words are compared
    by line, and texts of too many lines as a whole."""
    for split in (_WORDS.findall, _lines, _whole):
        old_pieces, new_pieces = split(before), split(after)
        if max(len(old_pieces), len(new_pieces)) <= MAX_PIECES:
            break
    return tuple(_join(_stretches(old_pieces, new_pieces)))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _whole(text: str) -> list[str]:
    return [text] if text else []


def _stretches(before: list[str], after: list[str]) -> Iterator[Stretch]:
    # Without its junk, frequent words would make the search grow with the cube of the length.
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=True).get_opcodes():
        if tag == "equal":
            yield Stretch(ChangeKind.SAME, "".join(before[i:j]))
            continue
        if i < j:
            yield Stretch(ChangeKind.REMOVED, "".join(before[i:j]))
        if k < m:
            yield Stretch(ChangeKind.ADDED, "".join(after[k:m]))


def _join(stretches: Iterator[Stretch]) -> list[Stretch]:
    """Join changes separated by a single space: fewer, longer stretches are easier to read."""
    joined: list[Stretch] = []
    pending = list(stretches)
    for index, stretch in enumerate(pending):
        between = 0 < index < len(pending) - 1 and stretch.change is ChangeKind.SAME and not stretch.text.strip()
        pieces = (
            [Stretch(ChangeKind.REMOVED, stretch.text), Stretch(ChangeKind.ADDED, stretch.text)]
            if between
            else [stretch]
        )
        for piece in pieces:
            _append(joined, piece)
    return joined


def _append(stretches: list[Stretch], piece: Stretch) -> None:
    """Append a piece, joined with a recent stretch of the same kind after the last common text."""
    lookback = 1 if piece.change is ChangeKind.SAME else 2
    for index in range(len(stretches) - 1, max(-1, len(stretches) - 1 - lookback), -1):
        if stretches[index].change is piece.change:
            stretches[index] = Stretch(piece.change, stretches[index].text + piece.text)
            return
        if stretches[index].change is ChangeKind.SAME:
            break
    stretches.append(piece)


@dataclass(frozen=True, slots=True)
class MetricPair:
    """A metric of both answers: judge or rule value, and the final value after review; ``None`` without one."""

    title: Bilingual
    scale: Scale
    baseline: float | str | None
    current: float | str | None
    baseline_final: float | str | None
    current_final: float | str | None


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Answers of two runs to one question, of the same sample."""

    baseline: RunAnswer
    current: RunAnswer
    stretches: tuple[Stretch, ...]
    metrics: tuple[MetricPair, ...]

    @property
    def same_text(self) -> bool:
        return all(stretch.change is ChangeKind.SAME for stretch in self.stretches)


def answer_pairs(
    current: Run, baseline: Run, question_ids: Collection[str], *, with_metrics: bool = True
) -> dict[str, list[AnswerPair]]:
    """Return the answer pairs of the questions by sample; no entry for a question that a run has no answer to."""
    current_answers, baseline_answers = (_answers_to(run, question_ids) for run in (current, baseline))
    shared = sorted(current_answers.keys() & baseline_answers.keys())
    current_ids, baseline_ids = (
        [answers[key].answer_id for key in shared] for answers in (current_answers, baseline_answers)
    )
    texts = dict(Answer.objects.filter(pk__in=[*current_ids, *baseline_ids]).values_list("pk", "text"))
    current_values = _values(current, current_ids) if with_metrics else {}
    baseline_values = _values(baseline, baseline_ids) if with_metrics else {}
    pairs: dict[str, list[AnswerPair]] = {}
    for key in shared:
        current_answer, baseline_answer = current_answers[key], baseline_answers[key]
        pairs.setdefault(current_answer.question_id, []).append(
            AnswerPair(
                baseline=baseline_answer,
                current=current_answer,
                stretches=text_difference(texts[baseline_answer.answer_id], texts[current_answer.answer_id]),
                metrics=_metric_pairs(
                    baseline_values.get(baseline_answer.answer_id, {}), current_values.get(current_answer.answer_id, {})
                ),
            )
        )
    return pairs


def _answers_to(run: Run, question_ids: Collection[str]) -> dict[tuple[str, int], RunAnswer]:
    """Answers of the run to the questions, by question and sample. Two queries."""
    rows = Answer.objects.filter(answer_set_id=run.answer_set_id, question__external_id__in=question_ids)
    return {
        (answer.question_id, answer.sample): answer
        for answer in run_answers(run, set(rows.values_list("pk", flat=True)))
    }


_Value = tuple[Bilingual, Scale, float | str | None, float | str | None]


def _values(run: Run, answer_ids: list[int]) -> dict[int, dict[str, _Value]]:
    """Return title, scale, original and final value by answer and metric."""
    evidence = load_evidence(run, answer_ids)
    by_answer: dict[int, dict[str, _Value]] = {}
    for metric_id, answer_values in effective_values_from(evidence).values.items():
        metric = evidence.metrics[metric_id]
        for answer_id, value in answer_values.items():
            counts = value.label if value.value is None else value.value
            judged = value.judged.value_or_label if value.judged else None
            by_answer.setdefault(answer_id, {})[metric.name] = (
                metric_title(metric),
                metric.read_scale(),
                judged,
                counts,
            )
    return by_answer


def _metric_pairs(baseline: dict[str, _Value], current: dict[str, _Value]) -> tuple[MetricPair, ...]:
    pairs = []
    for name in dict.fromkeys([*baseline, *current]):
        title, scale, *_ = baseline.get(name) or current[name]
        baseline_value, current_value = (
            baseline.get(name, (title, scale, None, None)),
            current.get(name, (title, scale, None, None)),
        )
        pairs.append(MetricPair(title, scale, baseline_value[2], current_value[2], baseline_value[3], current_value[3]))
    return tuple(pairs)
