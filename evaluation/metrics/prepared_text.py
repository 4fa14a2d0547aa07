"""Text prepared once for matching many keywords, and its numbers as values: 1,000억원, 천억 원, 1천억 and
100,000,000,000원 are one amount.

Recognized: digits with grouping and decimals, a sign, Korean multipliers (십 백 천 만 억 조) and English ones (thousand
to trillion), and numbers written in Hangul if a unit or a whole token shows that they are numbers. Not recognized as
values: codes with a leading zero (005930), digits glued to letters (200tr), dotted dates and versions. The value of a
phone number is its digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

from evaluation.metrics.citations import article_references
from evaluation.metrics.negation import holds_negation, is_negated
from evaluation.metrics.normalise import (
    MappedText,
    covered_places,
    fold,
    fold_with_lines,
    hangul_run,
    is_boundary,
    is_particle_chain,
    replace_spans,
)
from evaluation.metrics.phones import phones

_UNIT_ALIASES = {
    **dict.fromkeys(("퍼센트", "프로", "percent"), "%"),
    **dict.fromkeys(("bp", "bps", "베이시스포인트"), "bp"),
    **dict.fromkeys(("won", "krw"), "원"),
    "퍼센트포인트": "%p",
}
_UNIT = re.compile(
    r"\s?(%p|퍼센트포인트|%|퍼센트|프로|(?:percent|bps?|won|krw)(?![a-z])|베이시스포인트|원"
    r"|(?:[kmgt]b|[kmg]?hz|[km]?g|[kcm]?m[23]?|ml|l|kwh?|usd)(?![a-z0-9]))"
)
_COUNTED = (
    "원 달러 유로 엔 위안 명 인 개 년 월 일 시 분 초 회 번 건 주 배 세 살 권 장 대 곳 종 쪽 점 위 차 조 항 호 평 톤 층 "
    "퍼센트포인트 베이시스포인트 "
    "학기 학점 학년 개월 시간 가지 종목 퍼센트 프로 포인트 이상 이하 미만 초과 정도 지수 호실"
)
_COUNTERS = tuple(sorted(_COUNTED.split(), key=len, reverse=True))
_SUFFIXES = (
    "간 째 대 씩 당 짜리 여 쯤 가량 정도 남짓 이내 이상 이하 미만 초과 내 안 전 후 이전 이후 동안 경 분 치 한도 "
    "기준 단위 연속"
)
_COUNTER_SUFFIXES = tuple(_SUFFIXES.split())


def unit_at(text: str, place: int) -> tuple[str, int] | None:
    """Normalized unit that starts at ``place`` (after at most one space), and its end."""
    match = _UNIT.match(text, place)
    if match is None:
        return None
    run = hangul_run(text, match.start(1))
    if run and not starts_with_counter(run):
        # 프로그램 and 원산지 are not units.
        return None
    return _UNIT_ALIASES.get(match[1], match[1]), match.end()


@lru_cache(maxsize=4096)
def starts_with_counter(run: str) -> bool:
    """Return whether Hangul after a number only counts: 명, 개월간, 원으로, 여 명; not 인버스 or 선물."""
    return bool(counter_of(run)) or run == "여"


def counter_of(run: str) -> str:
    """Counter at the start of the Hangul after a number, if only suffixes and particles follow it; else empty."""
    remaining = run.removeprefix("여")
    for counter in _COUNTERS:
        if remaining.startswith(counter):
            suffix = remaining[len(counter) :]
            if not suffix or is_particle_chain(counter[-1], suffix):
                return counter
            if any(
                suffix == known_suffix
                or (
                    suffix.startswith(known_suffix) and is_particle_chain(known_suffix[-1], suffix[len(known_suffix) :])
                )
                for known_suffix in _COUNTER_SUFFIXES
            ):
                return counter
    return ""


_DIGITS = {c: Decimal(i) for i, c in enumerate("일이삼사오육칠팔구", 1)}
_SMALL = {"십": Decimal(10), "백": Decimal(100), "천": Decimal(1000)}
_LARGE = {"만": Decimal(10**4), "억": Decimal(10**8), "조": Decimal(10**12)}
_ENGLISH = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PLAIN = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_DOTTED = r"\d+(?:\.\d+){2,}"
_MULTIPLIERS = r"[십백천만억조]{1,20}"
_TAIL = rf"(?:\s?{_PLAIN}\s?{_MULTIPLIERS})*(?:\s?{_PLAIN})?"
_NUMBER = re.compile(
    rf"(?P<dotted>{_DOTTED})"
    rf"|(?P<sign>(?<![^\s(\[])[-+])?(?P<first>(?<![\d.,]){_PLAIN})(?!\d)(?:(?P<rest>\s?{_MULTIPLIERS}{_TAIL})"
    rf"|\s?(?P<english>thousand|million|billion|trillion)(?![a-z]))?"
    rf"|(?P<hangul>(?<![가-힣])(?:[일이삼사오육칠팔구십백천만억조]{{2,40}}|[십백천만억조](?=\s?(?:원|명|달러))))"
)
# First character of every number, except for its sign.
_BEGINS = re.compile(r"[\d일이삼사오육칠팔구십백천만억조]")
_PARTS = re.compile(rf"{_PLAIN}|[일이삼사오육칠팔구십백천만억조]")
_SPACED_COUNTER = re.compile(r"\s(?:원|명|개|달러|퍼센트)")
_MIN_CODE_DIGITS = 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """Number or article of a folded text.

    ``canonical`` is equal for equal values: the plain decimal, or the article's name. ``end`` includes multipliers,
    ``unit_end`` also the ``unit`` (%, 원, kg, ...). ``is_round``: the last multiplier is 만, 억 or 조, after which 원
    is often omitted. ``is_counted``: a counter follows (명, 개, ...). A code has no value but must not be split."""

    canonical: str
    start: int
    end: int
    unit: str = ""
    unit_end: int = 0
    is_round: bool = False
    is_counted: bool = False
    is_code: bool = False


def value_of(digits_and_multipliers: str) -> Decimal:
    """Value of numerals such as ``1,234``, ``3.5억``, ``천억``, ``1천5백만``.

    :raises ValueError: if no part is a number."""
    total = section = Decimal(0)
    current: Decimal | None = None
    parts = _PARTS.findall(digits_and_multipliers)
    if not parts:
        raise ValueError(f"not a number: {digits_and_multipliers!r}")
    for part in parts:
        if part in _SMALL:
            section += (Decimal(1) if current is None else current) * _SMALL[part]
            current = None
        elif part in _LARGE:
            section += current or 0
            total += (section or Decimal(1)) * _LARGE[part]
            section, current = Decimal(0), None
        else:
            current = _DIGITS[part] if part in _DIGITS else Decimal(part.replace(",", ""))
    return total + section + (current or 0)


@lru_cache(maxsize=256)
def quantities(text: str) -> tuple[Quantity, ...]:
    """Numbers and articles of a folded text in order, without nesting."""
    articles = article_references(text)
    places = covered_places((article.start, article.end) for article in articles)
    values = [Quantity(a.name, a.start, a.end, unit_end=a.end) for a in articles]
    values += [q for q in _numbers(text) if places.isdisjoint(range(q.start, q.end))]
    return tuple(sorted(values, key=lambda q: q.start))


def _numbers(text: str) -> Iterator[Quantity]:
    place = 0
    while (candidate := _BEGINS.search(text, place)) and (
        match := _NUMBER.search(text, max(place, candidate.start() - 1))
    ):
        quantity = _hangul_number(text, match) if match["hangul"] else _digit_number(text, match)
        if quantity is not None:
            yield quantity
        place = max(quantity.end if quantity else 0, match.start() + 1) if not match["dotted"] else match.end()


def _digit_number(text: str, match: re.Match[str]) -> Quantity | None:
    if match["dotted"]:
        return None
    start, end = match.start(), match.end("first")
    digits = match["first"]
    touches_letters = not is_boundary(text, match.start("first")) or (
        not is_boundary(text, end) and unit_at(text, end) is None
    )
    if touches_letters or (len(digits) >= _MIN_CODE_DIGITS and digits[0] == "0" and "." not in digits):
        return Quantity(digits, start, end, unit_end=end, is_code=True)
    value, is_round = value_of(digits), False
    if match["english"]:
        value, end = value * _ENGLISH[match["english"]], match.end("english")
    elif match["rest"] and (length := _multiplied_length(text, match)):
        end = match.end("first") + length
        numeral = text[match.start("first") : end]
        value, is_round = value_of(numeral), numeral[-1] in _LARGE
    return _with_unit(text, -value if match["sign"] == "-" else value, start, end, is_round)


def _multiplied_length(text: str, match: re.Match[str]) -> int:
    """Length of the multipliers that belong to the number: 2조 원 is two trillion, 2조각 are two slices."""
    multipliers: str = match["rest"]
    while multipliers:
        place = match.end("first") + len(multipliers)
        run = hangul_run(text, place)
        may_count = not run or starts_with_counter(run) or is_particle_chain(text[place - 1], run)
        if is_boundary(text, place) if multipliers[-1].isdigit() else may_count:
            return len(multipliers)
        multipliers = (
            multipliers[:-1].rstrip(" ,.") if not multipliers[-1].isdigit() else multipliers.rstrip("0123456789,. ")
        )
    return 0


def _hangul_number(text: str, match: re.Match[str]) -> Quantity | None:
    """Number in Hangul: 천억 원, 삼천만원, 백만. 구조 and 이만 are numbers only before a unit."""
    numeral, start, end = match["hangul"], match.start(), match.end()
    run = hangul_run(text, end)
    before_unit = starts_with_counter(run) or _SPACED_COUNTER.match(text, end) is not None
    stands_alone = numeral[0] in _SMALL and numeral[-1] in _LARGE and (not run or is_particle_chain(numeral[-1], run))
    if not (stands_alone or (before_unit and any(c in _SMALL or c in _LARGE for c in numeral))):
        return None
    return _with_unit(text, value_of(numeral), start, end, numeral[-1] in _LARGE)


def _with_unit(text: str, value: Decimal, start: int, end: int, is_round: bool) -> Quantity:
    unit, unit_end = unit_at(text, end) or ("", end)
    if unit == "bp":
        value, unit = value / 100, "%"
    is_counted = starts_with_counter(hangul_run(text, end + text.startswith(" ", end)))
    plain = format(value, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return Quantity(plain, start, end, unit, unit_end, is_round, is_counted)


_SPACE = re.compile(" ")
_FREE_SPACE = re.compile(r"(?<=[가-힣ㄱ-ㅣ]) (?=.)|(?<=.) (?=[가-힣ㄱ-ㅣ])")
# ISO 27001 and ISO27001 are equal.
_SQUEEZED_SPACE = re.compile(rf"{_FREE_SPACE.pattern}|(?<=[a-z&]) (?=\d)")
_NUMERIC = re.compile(r"[\d십백천만억조]")
# Private-use characters around a canonical number.
_OPEN, _CLOSE = "\ue000", "\ue001"


class PreparedText:
    """Views of one text for the tiers of keyword matching, computed on first use.

    ``text`` is the folded text; offsets of the other views map back to it."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.folded = fold(original)
        self.text = self.folded.text

    @cached_property
    def lined(self) -> str:
        """Folded text with line feeds, at equal offsets."""
        return fold_with_lines(self.original)

    @cached_property
    def squeezed_text(self) -> str:
        """Text without the spaces beside Hangul and between letters and digits, where spelling varies."""
        return _SQUEEZED_SPACE.sub("", self.text)

    @cached_property
    def squeezed(self) -> MappedText:
        """Squeezed text, mapped to ``text``."""
        return replace_spans(self.text, ((*match.span(), "") for match in _SQUEEZED_SPACE.finditer(self.text)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return quantities(self.text)

    @cached_property
    def ends(self) -> tuple[frozenset[int], frozenset[int]]:
        """Starts and ends of the quantities."""
        return frozenset(q.start for q in self.quantities), frozenset(q.end for q in self.quantities)

    @cached_property
    def _inner_places(self) -> frozenset[int]:
        return covered_places((q.start + 1, q.end) for q in self.quantities)

    @cached_property
    def comparable(self) -> tuple[Quantity, ...]:
        """Quantities with a value, in order; a phone number replaces the numbers it is written with."""
        by_place = {place: q for q in self.quantities for place in range(q.start, q.end)}
        phone_values = [
            phone
            for phone in _phone_numbers(self.text)
            if not any(_is_amount(by_place[p], phone) for p in range(phone.start, phone.end) if p in by_place)
        ]
        places = covered_places((phone.start, phone.end) for phone in phone_values)
        other_values = [q for q in self.quantities if not q.is_code and places.isdisjoint(range(q.start, q.end))]
        return tuple(sorted([*phone_values, *other_values], key=lambda q: q.start))

    @cached_property
    def canonical(self) -> MappedText:
        """Text with every number, phone number and article normalized, and without the spaces beside Hangul and
        numbers."""
        spans = {q.start: q for q in self.comparable}
        return replace_spans(self.text, sorted([*_canonical_numbers(spans), *_spaces_between(self.text, spans)]))

    @cached_property
    def values(self) -> frozenset[str]:
        """Canonical forms of all numbers, phone numbers and articles."""
        return frozenset(q.canonical for q in self.comparable)

    @cached_property
    def _may_negate(self) -> bool:
        return holds_negation(self.text)

    def is_negated(self, start: int, end: int) -> bool:
        return self._may_negate and is_negated(self.lined, start, end)

    def is_cut(self, start: int, end: int) -> bool:
        """Return whether an edge of the span lies inside a number or article, so that part of a value would match."""
        if not _NUMERIC.search(self.text, max(start - 1, 0), end + 1):
            return False
        return start in self._inner_places or end in self._inner_places


@lru_cache(maxsize=64)
def prepare(original: str) -> PreparedText:
    """Prepared text, cached for the metrics of one answer."""
    return PreparedText(original)


def _phone_numbers(text: str) -> Iterator[Quantity]:
    for phone in phones(text):
        yield Quantity(phone.numbers[0], phone.start, phone.end, unit_end=phone.end)


def _is_amount(quantity: Quantity, phone: Quantity) -> bool:
    """Return whether the digits of an overlapping phone number are an amount: one decimal (+12.345678), or followed by
    a unit."""
    is_decimal = quantity.start <= phone.start and "." in quantity.canonical
    return is_decimal or quantity.unit_end > phone.end


def delimit_number(canonical: str) -> str:
    """Canonical number as written in :attr:`PreparedText.canonical`."""
    return f"{_OPEN}{canonical}{_CLOSE}"


def _canonical_numbers(spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    for quantity in spans.values():
        yield quantity.start, quantity.end, delimit_number(quantity.canonical)
        if quantity.unit:
            yield quantity.end, quantity.unit_end, quantity.unit


def _spaces_between(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    """Free spaces outside numbers and units, and those between adjacent articles (제3조 제2항)."""
    # Without Hangul there are no free spaces.
    if text.isascii():
        return
    occupied = {place for q in spans.values() for place in range(q.start, q.unit_end)}
    ends = {q.end for q in spans.values() if q.canonical.startswith("제")}
    for match in _SPACE.finditer(text):
        place = match.start()
        between_articles = place in ends and place + 1 in spans
        if (between_articles or _FREE_SPACE.match(text, place)) and place not in occupied:
            yield place, place + 1, ""
