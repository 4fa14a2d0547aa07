"""What the pages of an item are made of: its texts with places marked in them (the numbers of claims in the answer, in
the passages the judge's supporting words where it may be seen), values in words, and metrics as fields of a form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.samples import ContextSpec
from evaluation.core.scales import Scale, ScaleKind
from evaluation.judging.formulas import CONTRADICTED, IRRELEVANT, PARTIAL, RELEVANT, SUPPORTED, UNSUPPORTED
from evaluation.judging.lexical import retold
from evaluation.messages import numbers
from evaluation.messages.markdown import language_of, render
from evaluation.messages.marking import Link, Mark
from evaluation.metrics.citation_coverage import passages_named
from review.evidence.rating_input import CITED, MISSING, PRESENT, UNCITED, PartGiven, Valued, WhyNot
from review.ratings.card import CardMetric, Claim, Passage


class Piece(NamedTuple):
    """A piece of the text; ``note`` is empty for plain pieces, else says what was found there."""

    text: str
    note: str


class Span(NamedTuple):
    """A place in a text: character offsets, end exclusive."""

    start: int
    end: int
    note: str


def pieces(text: str, spans: Iterable[Span]) -> tuple[Piece, ...]:
    """The text in pieces, in order and without loss. Where spans overlap the one that starts first (of these the
    longer) is marked; spans outside the text are passed over."""
    found: list[Piece] = []
    at = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not at <= span.start < span.end <= len(text):
            continue
        if span.start > at:
            found.append(Piece(text[at : span.start], ""))
        found.append(Piece(text[span.start : span.end], span.note))
        at = span.end
    if at < len(text):
        found.append(Piece(text[at:], ""))
    return tuple(found)


def numbered_html(text: str, claims: Iterable[Claim], passages: Sequence[Passage] | None) -> SafeString:
    """The answer as safe HTML with each claim marked and its number behind it, and citations leading to the passages
    beside it. An empty answer is said to be empty: nothing at all would look like a fault of the page."""
    contexts = [ContextSpec(one.text, source=one.source) for one in passages or ()]
    if not text.strip():
        return format_html('<p class="quiet" lang="{}">{}</p>', get_language() or "en", gettext("The answer is empty."))
    return render(
        text,
        [
            Mark(claim.start, claim.end, f"claim {claim_look(claim)}", str(claim.number))
            for claim in claims
            if claim.start is not None and claim.end is not None
        ],
        [Link(one.start, one.end, f"#passage-{one.passages[0] + 1}") for one in passages_named(text, contexts)],
    )


def raw_pieces(text: str, claims: Iterable[Claim]) -> tuple[Piece, ...]:
    """The raw text with the claims marked by their numbers."""
    return pieces(
        text, [Span(c.start, c.end, str(c.number)) for c in claims if c.start is not None and c.end is not None]
    )


_CELLS, _MARKUP, _LOOSE = re.compile(r"\s*\|\s*"), re.compile(r"\*\*|`"), re.compile(r"\s+(?=[.,!?])")


def claim_text(text: str) -> str:
    """A claim as a line to read: a row of a table without its bars, nothing of bold type and code, no gap where a
    citation stood."""
    if text.startswith("|"):
        text = " · ".join(filter(None, _CELLS.split(text)))
    return _LOOSE.sub("", _MARKUP.sub("", text))


class Drawn(NamedTuple):
    """A passage as it is read; ``raw`` is the text it is made of, empty where it reads the same."""

    html: SafeString
    raw: str


def drawn(passage: Passage, claims: Iterable[Claim], answer: str) -> Drawn:
    """A passage as safe HTML, with the words that decide claims marked by the claims' numbers; while the judge is
    hidden, and where it names none, with those that the answer took over."""
    quotes = [
        Mark(c.judge.quote_start, c.judge.quote_end, "claim held", str(c.number))
        for c in claims
        if c.judge
        and c.judge.passage == passage.number
        and c.judge.quote_start is not None
        and c.judge.quote_end is not None
    ]
    taken = [Mark(start, end, "taken", "") for start, end in taken_over(passage.text, answer)]
    return _drawn(passage.text, tuple(quotes or taken))


@lru_cache(maxsize=512)  # the card that is fetched ahead is shown later, and answers of a corpus share passages
def _drawn(text: str, marks: tuple[Mark, ...]) -> Drawn:
    if not text.strip():
        return Drawn(SafeString("<p>–</p>"), "")
    html = render(text, marks)
    return Drawn(html, text if _FORMATTED.search(html) or "]:" in text else "")


_FORMATTED = re.compile(r"<(?!/?(?:p|mark|sup)\b)")  # "]:" may be the address of a link, of which nothing is shown
_WORD = re.compile(r"\w+")
TAKEN_WORDS = {"ko": 3, "en": 5}  # so many words after each other are no chance; a Korean one holds its particle


def taken_over(passage: str, answer: str) -> list[tuple[int, int]]:
    """Where the passage has words that stand in the same order in the answer: offsets, end exclusive."""
    least = TAKEN_WORDS[language_of(answer)]
    said = [word.lower() for word in _WORD.findall(answer)]
    runs = {tuple(said[at : at + least]) for at in range(len(said) - least + 1)}
    words = list(_WORD.finditer(passage))
    read = [word[0].lower() for word in words]
    found: list[tuple[int, int]] = []
    for at in range(len(words) - least + 1):
        if tuple(read[at : at + least]) in runs:
            start, end = words[at].start(), words[at + least - 1].end()
            if found and start <= found[-1][1]:
                start = found.pop()[0]
            found.append((start, end))
    return found


def claim_look(claim: Claim) -> str:
    """The look of a claim: neutral while the judge is hidden, else whether it holds."""
    if claim.judge is None:
        return "neutral"
    return "held" if claim.judge.verdict == SUPPORTED else "open"


def said(one: Valued | None) -> float | str | None:
    """What a rating, decision or score is, ``None`` where there is neither value nor label."""
    if one is None:
        return None
    return one.label if one.value is None else one.value


def value_text(one: Valued | None, scale: Scale) -> str:
    """It as its scale is read, a dash without one."""
    return numbers.on_scale(said(one), scale)


def judge_text(one: Valued | None, scale: Scale) -> str:
    """The same of a judge, in words where it gave none."""
    return gettext("no value") if said(one) is None else value_text(one, scale)


def judge_reason(reason: str) -> str:
    """A judge's reason as it was given, that of the offline baseline in the reader's language."""
    return retold(reason, get_language() or "en")


WHY_NOT = {
    WhyNot.NOT_MY_FIELD: _("not my field"),
    WhyNot.EVIDENCE_MISSING: _("evidence missing"),
    WhyNot.QUESTION_AMBIGUOUS: _("question ambiguous"),
    WhyNot.ANSWER_UNCLEAR: _("answer unclear"),
    WhyNot.NOTHING_TO_JUDGE: _("nothing to judge here"),
    WhyNot.OTHER: _("another reason"),
}
VERDICTS = {
    SUPPORTED: _("supported"),
    PARTIAL: _("partly"),
    UNSUPPORTED: _("not supported"),
    CONTRADICTED: _("contradicted"),
    RELEVANT: _("relevant"),
    IRRELEVANT: _("not relevant"),
    PRESENT: _("present"),
    MISSING: _("missing"),
    CITED: _("used"),
    UNCITED: _("not used"),
}
UNFOLDED, GROUP = 12, 10  # so many parts stand open; more are folded in groups of so many
MOST_LEVELS = 11  # a scale with more levels is asked for as a number


class Choice(NamedTuple):
    """A level: ``value`` as the form sends it, ``key`` the digit that chooses it, ``text`` its anchor."""

    value: str
    title: str
    key: str
    text: str


class PartField(NamedTuple):
    """A part to be decided: its number, and the ``verdict`` on it so far. An added part has a field for its ``text``,
    ``passage`` is the number of the passage that it is, ``shown`` that passage where it is read here."""

    number: int
    text: str
    verdict: str
    passage: int | None = None
    approximate: bool = False
    added: bool = False
    shown: Passage | None = None


class PartGroup(NamedTuple):
    """Parts that stand together; ``folds``: under a line that names the first and the last."""

    parts: tuple[PartField, ...]
    folds: bool

    @property
    def first(self) -> int:
        """The number of its first part."""
        return self.parts[0].number

    @property
    def last(self) -> int:
        """The number of its last part."""
        return self.parts[-1].number


class MetricField(NamedTuple):
    """A metric on the review screen. Without ``choices`` a number is asked for, or, where the metric has verdicts, one
    of them on each of ``parts``. ``entered`` is what stands in the field now, ``missing`` that a refused form left it
    out, ``why`` the code of why it is left unjudged."""

    metric: CardMetric
    choices: tuple[Choice, ...]
    entered: str
    missing: bool
    why: str
    parts: tuple[PartField, ...]

    @property
    def why_not(self) -> Iterable[tuple[str, str | Promise]]:
        """The reasons for which it may be left unjudged."""
        return WHY_NOT.items()

    @property
    def in_passages(self) -> bool:
        """Whether its parts are passages, decided where they are read."""
        return any(part.passage and part.shown for part in self.parts)

    @property
    def groups(self) -> list[PartGroup]:
        """The parts in groups of :data:`GROUP` that fold where there are many; what is added stays in sight."""
        offered = [part for part in self.parts if not part.added]
        added = [part for part in self.parts if part.added]
        if len(offered) <= UNFOLDED or self.in_passages:
            return [PartGroup(self.parts, folds=False)]
        starts = range(0, len(offered), GROUP)
        groups = [PartGroup(tuple(offered[start : start + GROUP]), folds=True) for start in starts]
        return [*groups, PartGroup(tuple(added), folds=False)]

    @property
    def filled(self) -> str:
        """What the person entered: without it the field is the same on every card of a queue."""
        return repr((self.entered, self.missing, self.why))


def verdict_title(verdict: str) -> str:
    """The verdict in the reader's language."""
    return str(VERDICTS.get(verdict, verdict))


def scale_of(metric: CardMetric) -> Scale:
    """The scale of a metric on a card."""
    return Scale(ScaleKind(metric.kind), metric.low, metric.high, metric.labels)


def metric_field(
    metric: CardMetric,
    entered: str,
    *,
    missing: bool = False,
    why: str = "",
    decided: Sequence[PartGiven] = (),
    blank: int = 1,
) -> MetricField:
    """The field of a metric with what was entered before; ``blank`` lines are there for parts that were missed."""
    parts = _parts(metric, decided, blank) if metric.verdicts else ()
    return MetricField(metric, () if metric.verdicts else _choices(metric), entered, missing, why, parts)


def _parts(metric: CardMetric, decided: Sequence[PartGiven], blank: int) -> tuple[PartField, ...]:
    """The offered parts, then those that were added, then blank ones where parts may be added."""
    chosen = {part.number: part.verdict for part in decided if part.number}
    fields = [
        PartField(
            part.number,
            part.text,
            chosen.get(part.number, ""),
            None if part.context is None else part.context + 1,
            part.approximate,
        )
        for part in metric.parts
    ]
    if metric.adds:
        more = [*(part for part in decided if not part.number), *[PartGiven("")] * blank]
        fields += [
            PartField(number, part.text, part.verdict, added=True)
            for number, part in enumerate(more, start=len(metric.parts) + 1)
        ]
    return tuple(fields)


def _choices(metric: CardMetric) -> tuple[Choice, ...]:
    scale = scale_of(metric)
    if scale.labels:
        texts_of = dict(zip(scale.labels, metric.label_texts, strict=False))  # metrics without a rubric have none
        named = enumerate(scale.labels, start=1)
        return tuple(Choice(label, label, _key(place), texts_of.get(label, "")) for place, label in named)
    texts = {level.value: level.text for level in metric.levels}
    values = [float(level) for level in scale.levels] or sorted(texts)  # a real scale is asked for by its anchors
    if not 0 < len(values) <= MOST_LEVELS:
        return ()
    direct = all(value.is_integer() and 0 <= value <= 9 for value in values)  # digits mean themselves where they can
    return tuple(
        Choice(f"{value:g}", _title(scale, value), _key(int(value) if direct else place), texts.get(value, ""))
        for place, value in enumerate(values, start=1)
    )


def _title(scale: Scale, level: float) -> str:
    if scale.kind is ScaleKind.YES_NO:
        return gettext("Yes") if level else gettext("No")
    return f"{level:g}".replace("-", "\N{MINUS SIGN}")


def _key(number: int) -> str:
    return str(number) if 0 <= number <= 9 else ""
