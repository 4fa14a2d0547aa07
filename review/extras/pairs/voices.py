"""A comparison pair by pair: who preferred which answer, and why; and how far everybody is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.models import User
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.models import Pair, Preference

PREFERRED = {
    -2.0: _("A much better"),
    -1.0: _("A better"),
    0.0: _("No difference"),
    1.0: _("B better"),
    2.0: _("B much better"),
}


@dataclass(frozen=True, slots=True)
class Voice:
    """What one source said of a pair; ``metric`` is empty where there is one alone."""

    name: str
    judge: bool
    metric: str
    value: str
    reason: str
    language: str


@dataclass(frozen=True, slots=True)
class PairVoices:
    """A pair with everything said of it, people first. ``answers``: side, text and language of both."""

    question: str
    language: str
    answers: tuple[tuple[str, str, str], ...]
    voices: tuple[Voice, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """How many pairs a reviewer has compared."""

    name: str
    rated: int


def pair_voices(pairs: Sequence[Pair], said: Sequence[Preference]) -> tuple[PairVoices, ...]:
    """The pairs in their order with the preferences of them that count."""
    by_pair: dict[int, list[Preference]] = {}
    for row in sorted(said, key=lambda row: (row.by_judge, row.metric, row.pk)):
        by_pair.setdefault(row.pair_id, []).append(row)
    several = len({row.metric for row in said}) > 1
    return tuple(
        PairVoices(
            question=pair.question_text,
            language=language_of(pair.question_text),
            answers=tuple(
                (side, words, language_of(words)) for side, words in (("A", pair.text_a), ("B", pair.text_b))
            ),
            voices=tuple(_voice(row, several=several) for row in by_pair.get(pair.pk, ())),
        )
        for pair in pairs
    )


def done_by(people: Sequence[User], rated: Mapping[int, int]) -> tuple[Done, ...]:
    """Everybody named, in the order of names; ``rated`` is by their keys."""
    return tuple(Done(one.known_as, rated.get(one.pk, 0)) for one in sorted(people, key=lambda one: one.known_as))


def _voice(row: Preference, *, several: bool) -> Voice:
    reason = row.reason if row.value is not None else ""
    return Voice(
        name=row.rater.known_as if row.rater else row.author,
        judge=row.by_judge,
        metric=row.metric if several else "",
        value=_value(row),
        reason=reason,
        language=language_of(reason),
    )


def _value(row: Preference) -> str:
    if row.value is None:
        return explain_reason(row.failure) or gettext("no value")
    return str(PREFERRED[row.value]) if row.value in PREFERRED else numbers.signed(row.value)
