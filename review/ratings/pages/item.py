"""Components of item pages: texts with marked claims and quotes, values in words, and metrics as form fields."""

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
from evaluation.judging.lexical import translate_reason
from evaluation.messages import numbers
from evaluation.messages.markdown import language_of, render
from evaluation.messages.text_marks import Link, Mark
from evaluation.metrics.citation_coverage import passage_mentions
from review.evidence.rating_input import CITED, MISSING, PRESENT, UNCITED, CannotJudgeReason, HasValue, PartVerdict
from review.ratings.card import CardMetric, Claim, Passage


class TextPiece(NamedTuple):
    """A piece of a text; ``note`` is empty for unmarked pieces."""

    text: str
    note: str


class TextSpan(NamedTuple):
    """A span of a text: character offsets, end exclusive."""

    start: int
    end: int
    note: str


def split_at_spans(text: str, spans: Iterable[TextSpan]) -> tuple[TextPiece, ...]:
    """Split the text at the spans, in order and without loss. Of overlapping spans the first (of equal starts the
    longest) is marked; spans outside the text are ignored."""
    text_pieces: list[TextPiece] = []
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not position <= span.start < span.end <= len(text):
            continue
        if span.start > position:
            text_pieces.append(TextPiece(text[position : span.start], ""))
        text_pieces.append(TextPiece(text[span.start : span.end], span.note))
        position = span.end
    if position < len(text):
        text_pieces.append(TextPiece(text[position:], ""))
    return tuple(text_pieces)


def answer_html(text: str, claims: Iterable[Claim], passages: Sequence[Passage] | None) -> SafeString:
    """Render the answer as safe HTML, with numbered claims, and citations linked to the passages. An empty answer is
    stated as such, because a blank page would look like an error."""
    contexts = [ContextSpec(passage.text, source=passage.source) for passage in passages or ()]
    if not text.strip():
        return format_html('<p class="quiet" lang="{}">{}</p>', get_language() or "en", gettext("The answer is empty."))
    return render(
        text,
        [
            Mark(claim.start, claim.end, f"claim {claim_look(claim)}", str(claim.number))
            for claim in claims
            if claim.start is not None and claim.end is not None
        ],
        [
            Link(citation.start, citation.end, f"#passage-{citation.passages[0] + 1}")
            for citation in passage_mentions(text, contexts)
        ],
    )


def raw_pieces(text: str, claims: Iterable[Claim]) -> tuple[TextPiece, ...]:
    """The raw text with claims marked by their numbers."""
    return split_at_spans(
        text, [TextSpan(c.start, c.end, str(c.number)) for c in claims if c.start is not None and c.end is not None]
    )


_MARKUP, _SPACE_BEFORE_PUNCTUATION = re.compile(r"\*\*|`"), re.compile(r"(?<!\s)\s++(?=[.,!?])")


def claim_text(text: str) -> str:
    """A claim as one line: table rows without bars, no bold or code markup, no gap before punctuation."""
    if text.startswith("|"):
        text = " · ".join(filter(None, map(str.strip, text.split("|"))))
    return _SPACE_BEFORE_PUNCTUATION.sub("", _MARKUP.sub("", text))


class RenderedPassage(NamedTuple):
    """A rendered passage; ``raw`` is its source, empty if both read alike."""

    html: SafeString
    raw: str


def render_passage(passage: Passage, claims: Iterable[Claim], answer: str) -> RenderedPassage:
    """Render a passage as safe HTML with the judge's quotes marked by claim number. Without quotes, or while the judge
    is hidden, mark the words that the answer shares with it."""
    quotes = [
        Mark(c.judge.quote_start, c.judge.quote_end, "claim held", str(c.number))
        for c in claims
        if c.judge
        and c.judge.passage == passage.number
        and c.judge.quote_start is not None
        and c.judge.quote_end is not None
    ]
    shared_marks = [Mark(start, end, "taken", "") for start, end in shared_phrases(passage.text, answer)]
    return _rendered(passage.text, tuple(quotes or shared_marks))


# Prefetched cards are shown later, and answers of a corpus share passages.
@lru_cache(maxsize=512)
def _rendered(text: str, marks: tuple[Mark, ...]) -> RenderedPassage:
    if not text.strip():
        return RenderedPassage(SafeString("<p>–</p>"), "")
    html = render(text, marks)
    return RenderedPassage(html, text if _FORMATTING_TAG.search(html) or "]:" in text else "")


# "]:" may define a link, of which the HTML shows nothing.
_FORMATTING_TAG = re.compile(r"<(?!/?(?:p|mark|sup)\b)")
_WORD = re.compile(r"\w+")
# So many consecutive equal words are no coincidence. A Korean word includes its particle.
MIN_SHARED_WORDS = {"ko": 3, "en": 5}


def shared_phrases(passage: str, answer: str) -> list[tuple[int, int]]:
    """Offsets (end exclusive) in the passage of phrases that the answer contains word for word."""
    min_words = MIN_SHARED_WORDS[language_of(answer)]
    answer_words = [word.lower() for word in _WORD.findall(answer)]
    answer_phrases = {
        tuple(answer_words[index : index + min_words]) for index in range(len(answer_words) - min_words + 1)
    }
    matches = list(_WORD.finditer(passage))
    passage_words = [word[0].lower() for word in matches]
    spans: list[tuple[int, int]] = []
    for index in range(len(matches) - min_words + 1):
        if tuple(passage_words[index : index + min_words]) in answer_phrases:
            start, end = matches[index].start(), matches[index + min_words - 1].end()
            if spans and start <= spans[-1][1]:
                start = spans.pop()[0]
            spans.append((start, end))
    return spans


def claim_look(claim: Claim) -> str:
    """CSS class of a claim: neutral while the judge is hidden, else whether the claim is supported."""
    if claim.judge is None:
        return "neutral"
    return "held" if claim.judge.verdict == SUPPORTED else "open"


def value_or_label(verdict: HasValue | None) -> float | str | None:
    """Value or label of a rating, decision or score; ``None`` without either."""
    if verdict is None:
        return None
    return verdict.label if verdict.value is None else verdict.value


def value_text(verdict: HasValue | None, scale: Scale) -> str:
    """Value formatted by its scale; a dash if there is none."""
    return numbers.on_scale(value_or_label(verdict), scale)


def judge_text(verdict: HasValue | None, scale: Scale) -> str:
    """A judge's value formatted by its scale, or "no value" in words."""
    return gettext("no value") if value_or_label(verdict) is None else value_text(verdict, scale)


def judge_reason(reason: str) -> str:
    """A judge's reason; that of the offline baseline is translated."""
    return translate_reason(reason, get_language() or "en")


WHY_NOT = {
    CannotJudgeReason.NOT_MY_FIELD: _("not my field"),
    CannotJudgeReason.EVIDENCE_MISSING: _("evidence missing"),
    CannotJudgeReason.QUESTION_AMBIGUOUS: _("question ambiguous"),
    CannotJudgeReason.ANSWER_UNCLEAR: _("answer unclear"),
    CannotJudgeReason.NOTHING_TO_JUDGE: _("nothing to judge here"),
    CannotJudgeReason.OTHER: _("another reason"),
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
# More parts than the first number are folded in groups of the second.
MAX_UNFOLDED_PARTS, GROUP_SIZE = 12, 10
# A scale with more levels is entered as a number.
MAX_LEVEL_CHOICES = 11


class Choice(NamedTuple):
    """A level: ``value`` is the form's value, ``key`` the digit that selects it, ``text`` its anchor."""

    value: str
    title: str
    key: str
    text: str


class PartField(NamedTuple):
    """A part to judge: its number and current ``verdict``. An added part has a field for its ``text``. ``passage`` is
    the number of its passage, and ``shown_passage`` that passage if it is shown here."""

    number: int
    text: str
    verdict: str
    passage: int | None = None
    approximate: bool = False
    added: bool = False
    shown_passage: Passage | None = None


class PartGroup(NamedTuple):
    """Parts shown together; ``folds``: collapsed under a line with the first and last number."""

    parts: tuple[PartField, ...]
    folds: bool

    @property
    def first(self) -> int:
        return self.parts[0].number

    @property
    def last(self) -> int:
        return self.parts[-1].number


class MetricField(NamedTuple):
    """A metric on the review screen. Without ``choices`` it takes a number, or, for metrics with verdicts, a verdict on
    each of ``parts``. ``entered`` is the current text, ``missing`` marks a metric left out of a refused form, and
    ``reason_code`` says why it is unjudged."""

    metric: CardMetric
    choices: tuple[Choice, ...]
    entered: str
    missing: bool
    reason_code: str
    parts: tuple[PartField, ...]

    @property
    def reason_choices(self) -> Iterable[tuple[str, str | Promise]]:
        """Reasons to leave the metric unjudged."""
        return WHY_NOT.items()

    @property
    def in_passages(self) -> bool:
        """True if the parts are passages that are judged where they are shown."""
        return any(part.passage and part.shown_passage for part in self.parts)

    @property
    def groups(self) -> list[PartGroup]:
        """Parts in collapsible groups of :data:`GROUP_SIZE` if there are many; added parts stay visible."""
        offered = [part for part in self.parts if not part.added]
        added = [part for part in self.parts if part.added]
        if len(offered) <= MAX_UNFOLDED_PARTS or self.in_passages:
            return [PartGroup(self.parts, folds=False)]
        starts = range(0, len(offered), GROUP_SIZE)
        groups = [PartGroup(tuple(offered[start : start + GROUP_SIZE]), folds=True) for start in starts]
        return [*groups, PartGroup(tuple(added), folds=False)]

    @property
    def filled(self) -> str:
        """Cache key of the entered values; without them the field is equal on all cards of a queue."""
        return repr((self.entered, self.missing, self.reason_code))


def verdict_title(verdict: str) -> str:
    return str(VERDICTS.get(verdict, verdict))


def scale_of(metric: CardMetric) -> Scale:
    return Scale(ScaleKind(metric.kind), metric.low, metric.high, metric.labels)


def metric_field(
    metric: CardMetric,
    entered: str,
    *,
    missing: bool = False,
    reason_code: str = "",
    verdicts: Sequence[PartVerdict] = (),
    blank_lines: int = 1,
) -> MetricField:
    """Build the field of a metric with the entered values and ``blank_lines`` for missed parts."""
    parts = _parts(metric, verdicts, blank_lines) if metric.verdicts else ()
    return MetricField(metric, () if metric.verdicts else _choices(metric), entered, missing, reason_code, parts)


def _parts(metric: CardMetric, verdicts: Sequence[PartVerdict], blank_lines: int) -> tuple[PartField, ...]:
    """Offered parts, then added ones, then blank lines if parts may be added."""
    verdict_by_number = {part.number: part.verdict for part in verdicts if part.number}
    fields = [
        PartField(
            part.number,
            part.text,
            verdict_by_number.get(part.number, ""),
            None if part.context is None else part.context + 1,
            part.approximate,
        )
        for part in metric.parts
    ]
    if metric.adds:
        added_parts = [*(part for part in verdicts if not part.number), *[PartVerdict("")] * blank_lines]
        fields += [
            PartField(number, part.text, part.verdict, added=True)
            for number, part in enumerate(added_parts, start=len(metric.parts) + 1)
        ]
    return tuple(fields)


def _choices(metric: CardMetric) -> tuple[Choice, ...]:
    scale = scale_of(metric)
    if scale.labels:
        # Metrics without a rubric have no label texts.
        text_by_label = dict(zip(scale.labels, metric.label_texts, strict=False))
        numbered_labels = enumerate(scale.labels, start=1)
        return tuple(
            Choice(label, label, _digit_key(position), text_by_label.get(label, ""))
            for position, label in numbered_labels
        )
    texts = {level.value: level.text for level in metric.levels}
    # A real scale is entered by its anchors.
    values = [float(level) for level in scale.levels] or sorted(texts)
    if not 0 < len(values) <= MAX_LEVEL_CHOICES:
        return ()
    # Digits select their own value if possible.
    digits_are_values = all(value.is_integer() and 0 <= value <= 9 for value in values)
    return tuple(
        Choice(
            f"{value:g}",
            _title(scale, value),
            _digit_key(int(value) if digits_are_values else position),
            texts.get(value, ""),
        )
        for position, value in enumerate(values, start=1)
    )


def _title(scale: Scale, level: float) -> str:
    if scale.kind is ScaleKind.YES_NO:
        return gettext("Yes") if level else gettext("No")
    return f"{level:g}".replace("-", "\N{MINUS SIGN}")


def _digit_key(number: int) -> str:
    return str(number) if 0 <= number <= 9 else ""
