"""What an expert says about an answer: a value, a label or "cannot judge", checked against the metric's scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from evaluation.core.errors import Refused
from evaluation.core.registry import Scale, ScaleKind

COMMENT_LIMIT = 10_000
FIVE_LEVELS = 4.0  # steps of a five-level scale: the yardstick for scales without levels
MOVED = 2.0  # from this distance on a change needs a reason


class Valued(Protocol):
    """Anything that has a value or a label."""

    @property
    def value(self) -> float | None: ...

    @property
    def label(self) -> str | None: ...


class OverrideReason(StrEnum):
    """Why a judge's value does not stand: the closed list that calibration reads."""

    JUDGE_FACTUAL_ERROR = "judge_factual_error"
    JUDGE_MISSED_CLAIM = "judge_missed_claim"
    JUDGE_TOO_STRICT = "judge_too_strict"
    JUDGE_TOO_LENIENT = "judge_too_lenient"
    REFERENCE_WRONG = "reference_wrong"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    EVIDENCE_MISSING = "evidence_missing"
    FORMAT_ONLY = "format_only"
    MANIPULATION = "manipulation"
    POLICY = "policy"


class WhyNot(StrEnum):
    """Why an expert cannot judge a metric of an answer."""

    NOT_MY_FIELD = "not_my_field"
    EVIDENCE_MISSING = "evidence_missing"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    ANSWER_UNCLEAR = "answer_unclear"
    NOTHING_TO_JUDGE = "nothing_to_judge"
    OTHER = "other"


class FlagKind(StrEnum):
    """What can be wrong with an item beside the answer's quality."""

    BAD_QUESTION = "bad_question"
    BAD_REFERENCE = "bad_reference"
    UNREADABLE = "unreadable"
    UNSAFE = "unsafe"
    CONFLICT_OF_INTEREST = "conflict_of_interest"


@dataclass(frozen=True, slots=True)
class PartGiven:
    """A verdict on one part: the offered one of that ``number`` (from 1), or with 0 one the expert found missing,
    which brings its own ``text``."""

    verdict: str
    number: int = 0
    text: str = ""

    def as_json(self) -> dict[str, Any]:
        """The form in which drafts hold it."""
        return {"number": self.number, "text": self.text, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Given:
    """What was given for one metric: exactly one of value, label and ``cannot_judge``, which may say why in a code of
    :class:`WhyNot`. Metrics rated by their parts have ``parts``, and a value only once the formula gave it."""

    value: float | None = None
    label: str | None = None
    cannot_judge: bool = False
    comment: str = ""
    reason_code: str = ""
    parts: tuple[PartGiven, ...] = ()

    def check(self, metric: str, scale: Scale) -> None:
        """Refuse what is not on the scale.

        :raises Refused: ``one_value``, ``off_scale``, ``comment_too_long`` or ``unknown_why_not``, naming the metric.
        """
        check_comment(self.comment)
        if self.reason_code and (not self.cannot_judge or self.reason_code not in set(WhyNot)):
            raise Refused("unknown_why_not", reason=self.reason_code, known=[why.value for why in WhyNot])
        if (self.value is not None) + (self.label is not None) + self.cannot_judge != 1:
            raise Refused("one_value", metric=metric)
        if not self.cannot_judge:
            check_value(metric, scale, self.value, self.label)

    def as_json(self) -> dict[str, Any]:
        """The form in which drafts hold it."""
        return {
            "value": self.value,
            "label": self.label,
            "cannot_judge": self.cannot_judge,
            "comment": self.comment,
            "reason_code": self.reason_code,
            "parts": [part.as_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A new value or label for one metric after the judge was shown, and why. Without either the first one stays."""

    value: float | None = None
    label: str | None = None
    reason_code: str = ""
    comment: str = ""
    parts: tuple[PartGiven, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether the first rating stays."""
        return self.value is None and self.label is None and not self.parts


def check_value(metric: str, scale: Scale, value: float | None, label: str | None) -> None:
    """Refuse anything but one value or one label of the scale.

    :raises Refused: ``one_value`` or ``off_scale``.
    """
    if (value is None) == (label is None):
        raise Refused("one_value", metric=metric)
    on_scale = label in scale.labels if value is None else scale.holds(value)
    if not on_scale:
        raise Refused("off_scale", metric=metric, value=label if value is None else value, scale=str(scale))


def check_comment(text: str) -> None:
    """:raises Refused: ``comment_too_long`` beyond 10,000 characters. A line break is one, as browsers count, although
    they send two."""
    length = len(text.replace("\r\n", "\n"))
    if length > COMMENT_LIMIT:
        raise Refused("comment_too_long", length=length, limit=COMMENT_LIMIT)


def check_reason_code(code: str) -> None:
    """:raises Refused: ``unknown_reason`` for a code that is not on the closed list; an empty one passes."""
    if code and code not in set(OverrideReason):
        raise Refused("unknown_reason", reason=code, known=[reason.value for reason in OverrideReason])


def distance(scale: Scale, one: Valued, other: Valued) -> float:
    """How far two values lie apart, in levels of the scale; 0 where either has none.

    Level scales count their own steps. A real scale is measured as if it had five levels between its ends. Yes/no
    and classes have no steps: two different values are infinitely far apart.
    """
    if scale.kind is ScaleKind.CLASS:
        differs = None not in (one.label, other.label) and one.label != other.label
        return math.inf if differs else 0.0
    if one.value is None or other.value is None:
        return 0.0
    apart = abs(one.value - other.value)
    if scale.kind is ScaleKind.LEVELS:
        return apart
    if scale.kind is ScaleKind.YES_NO:
        return math.inf if apart >= 0.5 else 0.0
    return apart / scale.width * FIVE_LEVELS


def flips(threshold: float | None, first: float | None, second: float | None) -> bool:
    """Whether a change of value crosses the metric's threshold; false where there is none."""
    if threshold is None or first is None or second is None:
        return False
    return (first >= threshold) != (second >= threshold)
