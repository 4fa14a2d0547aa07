"""Locate the verdict in a reply, ignoring decoration around it: white space, invisible characters, a code fence,
emphasis and end-of-turn tokens.

Decoration is ignored only around a single verdict. Prose around the object, a second object or a second mark make the
reply unreadable."""

from __future__ import annotations

import re

from evaluation.judging.calls import VERDICT, ResponseFormat

_INVISIBLE = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_BLANK = rf"[\s{_INVISIBLE}]"
# Patterns are searched in hostile text of megabytes: none may scan a run again from each of its characters.
_START = re.compile(f"{_BLANK}*")
_END_TOKENS = (
    r"<\|[A-Za-z][A-Za-z0-9_]{0,40}\|>|<\uff5c[^<>\n]{1,40}\uff5c>|</s>|<eos>|<end_of_turn>|<end_of_text>|\[EOS\]"
)
_MAX_TOKEN_LENGTH = 60
_END = re.compile(f"(?:{_BLANK}++|{_END_TOKENS})\\Z")
_FENCED = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*+[\w+.-]*+(?>\s*?(?:\n|(?=\{)))(?P<inner>.*)(?P=fence)\Z", re.DOTALL)
_EMPHASIS = re.compile(r"(?P<mark>[*_`]{1,3})(?P<inner>\{.*\})(?P=mark)\Z", re.DOTALL)
# The mark at the start of a line. Lines end at line feeds only, because JSON texts may contain other line ends.
_MARK = re.compile(
    rf"^(?:[^\S\n]|[{_INVISIBLE}])*?(?:\#{{1,6}}[ \t]+)?(?P<open>[*_`]{{0,3}}){VERDICT[:-1]}"
    r"(?P<inner>[*_`]{0,3})[ \t]*[:\uff1a](?P<after>[*_`]{0,3})",
    re.MULTILINE,
)
_FENCE_LINE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*\Z")


def find_verdict(text: str, response_format: ResponseFormat) -> tuple[int, int] | None:
    """Start and end of the text that must be exactly the verdict's JSON object; ``None`` if there is no such span. In
    the format ``text`` it follows the mark, which begins exactly one line."""
    start, end = _without_decoration(text, 0, len(text))
    if response_format is not ResponseFormat.TEXT:
        return start, end
    marks = list(_MARK.finditer(text, 0, end))
    if len(marks) != 1:
        return None
    mark = marks[0]
    end = _end_without_closing(text, mark, start, end)
    return _without_decoration(text, mark.end(), end)


def _without_decoration(text: str, start: int, end: int) -> tuple[int, int]:
    """Span without the decoration around its object."""
    start, end = _trimmed(text, start, end)
    for pattern in (_FENCED, _EMPHASIS):
        if match := pattern.match(text[start:end]):
            start, end = _trimmed(text, start + match.start("inner"), start + match.end("inner"))
    return start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    head = _START.match(text, start, end)
    start = head.end() if head else start
    while tail := _END.search(text, max(start, end - _MAX_TOKEN_LENGTH), end):
        end = tail.start()
    return start, end


def _end_without_closing(text: str, mark: re.Match[str], start: int, end: int) -> int:
    """End before the emphasis or fence that was opened ahead of the verdict."""
    opened = mark["open"] + mark["inner"] + mark["after"]
    remaining = text[:end]
    if opened and remaining.endswith(opened[-1]):
        remaining = remaining.rstrip("*_`")
    fence = _FENCE_LINE.search(text[start : mark.start()].rstrip()[-_MAX_TOKEN_LENGTH:])
    if fence and remaining.endswith(fence["fence"]):
        remaining = remaining[: -len(fence["fence"])]
    return _trimmed(text, 0, len(remaining))[1]
