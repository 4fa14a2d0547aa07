"""A text made ready for matching once, whatever number of keywords will look at it; and its numbers as values:
1,000억원, 천억 원, 1천억 and 100,000,000,000원 are one amount.

Read are digits with grouping and decimals, a sign, Korean multipliers (십 백 천 만 억 조) and English ones (thousand to
trillion), and numbers written in Hangul where a unit or a whole token shows that they are numbers. Not read as values:
codes with a leading zero (005930), digits glued to letters (200tr) and dotted dates or versions. A phone number is one
value: its digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

from evaluation.metrics.citations import article_references
from evaluation.metrics.negation import holds_negation, is_negated
from evaluation.metrics.normalise import (
    Mapped,
    fold,
    fold_with_lines,
    hangul_run,
    is_boundary,
    is_particle_chain,
    replaced,
)
from evaluation.metrics.phones import phones

_SAME = {
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
_BEHIND_COUNTERS = tuple(_SUFFIXES.split())


def unit_at(text: str, place: int) -> tuple[str, int] | None:
    """The one spelling of the unit that starts at ``place`` (after at most one space) and where it ends."""
    match = _UNIT.match(text, place)
    if match is None:
        return None
    run = hangul_run(text, match.start(1))
    if run and not starts_with_counter(run):
        return None  # 프로그램 and 원산지 are no units
    return _SAME.get(match[1], match[1]), match.end()


@lru_cache(maxsize=4096)
def starts_with_counter(run: str) -> bool:
    """Whether Hangul behind a number only counts: 명, 개월간, 원으로, 여 명; not 인버스 or 선물."""
    return bool(counter_of(run)) or run == "여"


def counter_of(run: str) -> str:
    """The counter that Hangul behind a number begins with, if only suffixes and particles follow it; else empty."""
    rest = run.removeprefix("여")
    for counter in _COUNTERS:
        if rest.startswith(counter):
            behind = rest[len(counter) :]
            if not behind or is_particle_chain(counter[-1], behind):
                return counter
            if any(
                behind == more or (behind.startswith(more) and is_particle_chain(more[-1], behind[len(more) :]))
                for more in _BEHIND_COUNTERS
            ):
                return counter
    return ""


_DIGITS = {c: Decimal(i) for i, c in enumerate("일이삼사오육칠팔구", 1)}
_SMALL = {"십": Decimal(10), "백": Decimal(100), "천": Decimal(1000)}
_LARGE = {"만": Decimal(10**4), "억": Decimal(10**8), "조": Decimal(10**12)}
_ENGLISH = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PLAIN = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_DOTTED = r"\d+(?:\.\d+){2,}"
_MULTIPLIERS = r"[십백천만억조]+"
_TAIL = rf"(?:\s?{_PLAIN}\s?{_MULTIPLIERS})*(?:\s?{_PLAIN})?"
_NUMBER = re.compile(
    rf"(?P<dotted>{_DOTTED})"
    rf"|(?P<sign>(?<![^\s(\[])[-+])?(?P<first>(?<![\d.,]){_PLAIN})(?!\d)(?:(?P<rest>\s?{_MULTIPLIERS}{_TAIL})"
    rf"|\s?(?P<english>thousand|million|billion|trillion)(?![a-z]))?"
    rf"|(?P<hangul>(?<![가-힣])(?:[일이삼사오육칠팔구십백천만억조]{{2,}}|[십백천만억조](?=\s?(?:원|명|달러))))"
)
_BEGINS = re.compile(r"[\d일이삼사오육칠팔구십백천만억조]")  # every number, but for its sign
_PARTS = re.compile(rf"{_PLAIN}|[일이삼사오육칠팔구십백천만억조]")
_LEAST_CODE = 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or an article of a folded text.

    ``canonical`` is equal for equal values: the plain decimal, or the article's name. ``end`` lies behind multipliers,
    ``unit_end`` also behind a unit that was read into ``unit`` (%, 원, kg, ...). ``is_round`` says that the last
    multiplier was 만, 억 or 조, after which 원 is often left out, ``is_counted`` that a counter follows (명, 개, ...).
    A code has no value but is not to be cut either.
    """

    canonical: str
    start: int
    end: int
    unit: str = ""
    unit_end: int = 0
    is_round: bool = False
    is_counted: bool = False
    is_code: bool = False


def value_of(digits_and_multipliers: str) -> Decimal:
    """The value of such as ``1,234``, ``3.5억``, ``천억``, ``1천5백만``.

    :raises ValueError: where nothing of it is a number.
    """
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
    """All numbers and articles of a folded text in order, none inside another."""
    articles = article_references(text)
    taken = [(a.start, a.end) for a in articles]
    found = [Quantity(a.name, a.start, a.end, unit_end=a.end) for a in articles]
    found += [q for q in _numbers(text) if not any(start < q.end and q.start < end for start, end in taken)]
    return tuple(sorted(found, key=lambda q: q.start))


def _numbers(text: str) -> Iterator[Quantity]:
    place = 0
    while (near := _BEGINS.search(text, place)) and (match := _NUMBER.search(text, max(place, near.start() - 1))):
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
    if touches_letters or (len(digits) >= _LEAST_CODE and digits[0] == "0" and "." not in digits):
        return Quantity(digits, start, end, unit_end=end, is_code=True)
    value, is_round = value_of(digits), False
    if match["english"]:
        value, end = value * _ENGLISH[match["english"]], match.end("english")
    elif match["rest"] and (length := _multiplied_length(text, match)):
        end = match.end("first") + length
        written = text[match.start("first") : end]
        value, is_round = value_of(written), written[-1] in _LARGE
    return _with_unit(text, -value if match["sign"] == "-" else value, start, end, is_round)


def _multiplied_length(text: str, match: re.Match[str]) -> int:
    """How much of the multipliers belongs to the number: 2조 원 is two trillion, 2조각 are two slices."""
    rest: str = match["rest"]
    while rest:
        place = match.end("first") + len(rest)
        run = hangul_run(text, place)
        counts = not run or starts_with_counter(run) or is_particle_chain(text[place - 1], run)
        if is_boundary(text, place) if rest[-1].isdigit() else counts:
            return len(rest)
        rest = rest[:-1].rstrip(" ,.") if not rest[-1].isdigit() else rest.rstrip("0123456789,. ")
    return 0


def _hangul_number(text: str, match: re.Match[str]) -> Quantity | None:
    """천억 원, 삼천만원, 백만; but 구조 and 이만 are numbers only before a unit."""
    written, start, end = match["hangul"], match.start(), match.end()
    run = hangul_run(text, end)
    before_unit = starts_with_counter(run) or re.match(r"\s(?:원|명|개|달러|퍼센트)", text[end:]) is not None
    stands_alone = written[0] in _SMALL and written[-1] in _LARGE and (not run or is_particle_chain(written[-1], run))
    if not (stands_alone or (before_unit and any(c in _SMALL or c in _LARGE for c in written))):
        return None
    return _with_unit(text, value_of(written), start, end, written[-1] in _LARGE)


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
_SQUEEZED_SPACE = re.compile(rf"{_FREE_SPACE.pattern}|(?<=[a-z&]) (?=\d)")  # ISO 27001 and ISO27001
_NUMERIC = re.compile(r"[\d십백천만억조]")
_OPEN, _CLOSE = "\ue000", "\ue001"  # private use characters around a canonical number


class PreparedText:
    """The views of one text that the tiers of keyword matching search; each is made when first needed.

    ``text`` is the folded text, and all offsets of the other views lead back to it.
    """

    def __init__(self, original: str) -> None:
        self.original = original
        self.folded = fold(original)
        self.text = self.folded.text

    @cached_property
    def lined(self) -> str:
        """The folded text with its line breaks, place by place the same."""
        return fold_with_lines(self.original)

    @cached_property
    def squeezed_text(self) -> str:
        """Without the spaces that stand beside Hangul and between letters and digits, where writers disagree."""
        return _SQUEEZED_SPACE.sub("", self.text)

    @cached_property
    def squeezed(self) -> Mapped:
        """The squeezed text with its way back to ``text``."""
        return replaced(self.text, ((*match.span(), "") for match in _SQUEEZED_SPACE.finditer(self.text)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The numbers and articles of the folded text."""
        return quantities(self.text)

    @cached_property
    def comparable(self) -> tuple[Quantity, ...]:
        """The quantities that have a value, in order: a phone number in place of the numbers it is written with."""
        numbers = [
            phone for phone in _phone_numbers(self.text) if not any(_is_amount(q, phone) for q in self.quantities)
        ]
        others = [q for q in self.quantities if not q.is_code and not any(_overlap(q, phone) for phone in numbers)]
        return tuple(sorted([*numbers, *others], key=lambda q: q.start))

    @cached_property
    def canonical(self) -> Mapped:
        """With every number, phone number and article in its one spelling, and without the spaces beside Hangul and
        numbers."""
        spans = {q.start: q for q in self.comparable}
        return replaced(self.text, sorted([*_canonical_numbers(spans), *_spaces_between(self.text, spans)]))

    @cached_property
    def values(self) -> frozenset[str]:
        """The canonical forms of all numbers, phone numbers and articles."""
        return frozenset(q.canonical for q in self.comparable)

    @cached_property
    def _may_negate(self) -> bool:
        return holds_negation(self.text)

    def is_negated(self, start: int, end: int) -> bool:
        """Whether the place of ``text`` lies in a negated clause."""
        return self._may_negate and is_negated(self.lined, start, end)

    def is_cut(self, start: int, end: int) -> bool:
        """Whether one of the edges lies inside a number or article, so that a part of a value would be taken for it."""
        if not _NUMERIC.search(self.text, max(start - 1, 0), end + 1):
            return False
        return any(q.start < start < q.end or q.start < end < q.end for q in self.quantities)


@lru_cache(maxsize=64)
def prepare(original: str) -> PreparedText:
    """The prepared text, shared by the metrics that look at the same answer one after another."""
    return PreparedText(original)


def _phone_numbers(text: str) -> Iterator[Quantity]:
    for phone in phones(text):
        yield Quantity(phone.numbers[0], phone.start, phone.end, unit_end=phone.end)


def _overlap(quantity: Quantity, phone: Quantity) -> bool:
    return quantity.start < phone.end and phone.start < quantity.end


def _is_amount(quantity: Quantity, phone: Quantity) -> bool:
    """Whether the digits taken for a phone number are an amount: one decimal (+12.345678), or with a unit behind."""
    is_decimal = quantity.start <= phone.start and "." in quantity.canonical
    return _overlap(quantity, phone) and (is_decimal or quantity.unit_end > phone.end)


def marked(canonical: str) -> str:
    """A canonical number as it stands in :attr:`PreparedText.canonical`."""
    return f"{_OPEN}{canonical}{_CLOSE}"


def _canonical_numbers(spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    for quantity in spans.values():
        yield quantity.start, quantity.end, marked(quantity.canonical)
        if quantity.unit:
            yield quantity.end, quantity.unit_end, quantity.unit


def _spaces_between(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    """Free spaces outside numbers and units, and those between one article and the next (제3조 제2항)."""
    if text.isascii():  # there is no Hangul, beside which they would be
        return
    taken = {place for q in spans.values() for place in range(q.start, q.unit_end)}
    ends = {q.end for q in spans.values() if q.canonical.startswith("제")}
    for match in _SPACE.finditer(text):
        place = match.start()
        between_articles = place in ends and place + 1 in spans
        if (between_articles or _FREE_SPACE.match(text, place)) and place not in taken:
            yield place, place + 1, ""
