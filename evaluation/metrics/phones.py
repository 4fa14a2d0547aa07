"""Phone numbers in any spelling: 02-123-4567, (02) 123 4567, +82-2-123-4567 and 021234567 are one number.

Korean numbers are recognized by area codes and as eight-digit service numbers (1588-0000); others by a country code or
the North American format. Digits glued to further digits (102-123-4567), dates and year ranges are not phone numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_GAP = r"[\s.·-]{0,3}"
_AREA = r"(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|80|50[2-8]|1[016-9])"
_SERVICE = r"(?:15(?:22|33|44|66|77|88|99)|16(?:00|11|33|44|55|60|61|66|68|70|77|88|99)|18(?:00|11|33|44|55|77|99))"
_PHONE = re.compile(
    rf"(?<![\d+])(?<!\d[-.])(?:"
    rf"(?P<korean>(?:(?:\+\s?|00)82{_GAP}(?:\(0\)|0)?{_GAP}|\(\s?0|0)(?P<area>{_AREA})\s?\)?{_GAP}"
    rf"(?P<middle>\d{{3,4}}){_GAP}(?P<last>\d{{4}}))"
    rf"|(?P<service>{_SERVICE})[\s.-]{{1,2}}(?P<rest>\d{{4}})"
    r"|(?P<world>\+(?!82)[1-9]\d{0,2}(?:[\s.-]{0,2}\(?\d{1,4}\)?){2,5})"
    r"|(?P<american>(?:\([2-9]\d{2}\)\s?|[2-9]\d{2}[-.])[2-9]\d{2}[-.]\d{4})"
    r")(?!\d)(?![-.]\d)"
)
_CUE = re.compile(r"(?:전화|연락처|문의|대표|상담|콜센터|고객센터|tel|phone|call|☎|☏)[^\d]{0,12}$")
_MAX_CUE_LENGTH = 20
_RANGE = re.compile(r"\s?~\s?(\d)(?!\d)")
_MIN_DIGITS, _AMERICAN_DIGITS, _LAST_YEAR = 8, 11, 2100


@dataclass(frozen=True, slots=True)
class Phone:
    """Phone number of a folded text. ``numbers`` holds its digits (Korean ones start with 0), followed by the further
    numbers of a range (02-123-4567~9)."""

    numbers: tuple[str, ...]
    start: int
    end: int


def phones(text: str) -> tuple[Phone, ...]:
    """Phone numbers of a folded text, in order."""
    return tuple(phone for match in _PHONE.finditer(text) if (phone := _phone(text, match)) is not None)


def _phone(text: str, match: re.Match[str]) -> Phone | None:
    digits = re.sub(r"\D", "", match[0])
    if match["korean"]:
        digits = "0" + match["area"] + match["middle"] + match["last"]
    elif (match["service"] and _is_span_of_years(text, match)) or len(digits) < _MIN_DIGITS:
        return None
    elif match["world"] and len(digits) == _AMERICAN_DIGITS and digits[0] == "1":
        digits = digits[1:]
    last = _RANGE.match(text, match.end())
    range_numbers = [f"{digits[:-1]}{digit}" for digit in range(int(digits[-1]) + 1, int(last[1]) + 1)] if last else []
    return Phone((digits, *range_numbers), *match.span())


def _is_span_of_years(text: str, match: re.Match[str]) -> bool:
    """Return whether it is a year range: 1600-1700 without a word such as 전화 before it."""
    first, second = int(match["service"]), int(match["rest"])
    return first < second <= _LAST_YEAR and not _CUE.search(
        text, max(0, match.start() - _MAX_CUE_LENGTH), match.start()
    )
