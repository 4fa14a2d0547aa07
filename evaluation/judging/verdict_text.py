"""Where the one verdict stands in a reply's text, and what models put around it that says nothing: white space,
characters that nobody sees, a code fence, emphasis, tokens that end a turn.

Decoration is left out only where one verdict is left. Prose around an object, a second object or a second mark stay
what they are: a reply without a verdict.
"""

from __future__ import annotations

import re

from evaluation.judging.calls import VERDICT, Rung

_BLANK = r"[\s\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
_START = re.compile(f"{_BLANK}*")
_END_TOKENS = (
    r"<\|[A-Za-z][A-Za-z0-9_]{0,40}\|>|<\uff5c[^<>\n]{1,40}\uff5c>|</s>|<eos>|<end_of_turn>|<end_of_text>|\[EOS\]"
)
_END = re.compile(f"(?:{_BLANK}|{_END_TOKENS})*\\Z")
_FENCED = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*[\w+.-]*\s*?(?:\n|(?=\{))(?P<inner>.*?)\s*(?P=fence)\Z", re.DOTALL)
_EMPHASIS = re.compile(r"(?P<mark>[*_`]{1,3})(?P<inner>\{.*\})(?P=mark)\Z", re.DOTALL)
# The mark at the beginning of a line; lines end at line feeds alone, since JSON texts may hold the other line ends.
_MARK = re.compile(
    rf"^{_BLANK}*?(?:\#{{1,6}}[ \t]+)?(?P<open>[*_`]{{0,3}}){VERDICT[:-1]}(?P<inner>[*_`]{{0,3}})[ \t]*[:\uff1a]"
    r"(?P<after>[*_`]{0,3})",
    re.MULTILINE,
)
_FENCE_LINE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*[\w+.-]*[ \t\r]*\Z")


def find_verdict(text: str, rung: Rung) -> tuple[int, int] | None:
    """Start and end of the text that has to be the verdict's JSON object and nothing else; ``None`` where there is no
    such place. On the rung ``text`` it is what follows the mark, which begins exactly one line."""
    start, end = _bare(text, 0, len(text))
    if rung is not Rung.TEXT:
        return start, end
    marks = list(_MARK.finditer(text, 0, end))
    if len(marks) != 1:
        return None
    mark = marks[0]
    end = _without_closing(text, mark, start, end)
    return _bare(text, mark.end(), end)


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without what stands around its one object."""
    start, end = _trimmed(text, start, end)
    for pattern in (_FENCED, _EMPHASIS):
        if match := pattern.match(text[start:end]):
            start, end = _trimmed(text, start + match.start("inner"), start + match.end("inner"))
    return start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    head = _START.match(text, start, end)
    start = head.end() if head else start
    tail = _END.search(text[start:end])
    return start, start + tail.start() if tail else end


def _without_closing(text: str, mark: re.Match[str], start: int, end: int) -> int:
    """The end without the emphasis or the fence that was opened in front of the verdict."""
    opened = mark["open"] + mark["inner"] + mark["after"]
    rest = text[:end]
    if opened and rest.endswith(opened[-1]):
        rest = rest.rstrip("*_`")
    fence = _FENCE_LINE.search(text[start : mark.start()].rstrip())
    if fence and rest.endswith(fence["fence"]):
        rest = rest[: -len(fence["fence"])]
    return _trimmed(text, 0, len(rest))[1]
