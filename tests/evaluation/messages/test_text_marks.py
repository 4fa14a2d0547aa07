"""Marks leave the Markdown rendering unchanged and cover the words at their offsets."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.messages.markdown import render
from evaluation.messages.text_marks import Mark

TEXT = """# Rent

Pay **500** &amp; more\\* at [the *desk*](http://a.example/desk) today.

| 항목 | 금액 |
|---|---:|
| 월세 | 500,000 |
| 관리비 | <b>7</b> |

```python
print("500 < 700")
```

- one `code` item
  1. nested
"""
MARKS = re.compile(r'<mark class="claim neutral">|</mark>|<sup class="k">\d+</sup>')
MARKED = re.compile(r'<mark class="claim neutral">(.*?)</mark>', re.DOTALL)
pieces = st.sampled_from(
    [*TEXT.split("\n"), "**", "`", "~~~", "> 인용", "    code", "\r\n", "&lt;", "[a](b)b", "\t1. x", ""]
)


def mark(words: str, number: int = 1, text: str = TEXT) -> Mark:
    start = text.index(words)
    return Mark(start, start + len(words), "claim neutral", str(number))


def marked_words(html: str) -> list[str]:
    return MARKED.findall(html)


@given(st.lists(pieces, max_size=12).map("\n".join), st.data())
@example(TEXT, None)
def test_rendering_without_marks_equals_plain_rendering(text: str, data: st.DataObject | None) -> None:
    place = st.integers(0, len(text) + 2)
    places = data.draw(st.lists(st.tuples(place, place), max_size=6)) if data else [(0, len(text)), (30, 70)]
    marks = [Mark(start, end, "claim neutral", "1") for start, end in places]
    assert MARKS.sub("", render(text, marks)) == render(text)


@given(st.lists(st.sampled_from(["alpha", "**beta**", "gamma", "`delta`", "한글"]), min_size=1, max_size=9), st.data())
def test_mark_covers_the_word_at_its_offsets(words: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(words) - 1))
    start = len(" ".join(words[:index])) + (index > 0)
    html = render(" ".join(words), [Mark(start, start + len(words[index]), "claim neutral", "1")])
    before = re.sub("<[^>]+>", "", html.split("<mark")[0])
    assert marked_words(html) == [words[index].strip("*`")]
    assert len(before.split()) == index  # the same occurrence, not an equal word elsewhere


def test_tables_code_lists_and_escapes_are_marked_per_cell() -> None:
    row, sentence = mark("| 월세 | 500,000 |", 7), mark(TEXT.split("\n")[2], 8)
    html = render(TEXT, [row, sentence])
    assert marked_words(html) == ["Pay ", "500", " &amp; more* at ", "the ", "desk", " today.", "월세", "500,000"]
    assert '500,000</mark><sup class="k">7</sup></td>' in html  # the number stands behind the last of it
    assert marked_words(render(TEXT, [mark("500 < 700")])) == ["500 &lt; 700"]
    assert marked_words(render(TEXT, [mark("one `code` item")])) == ["one ", "code", " item"]
    assert marked_words(render("    a\r\n      b\r\n", [Mark(13, 14, "claim neutral", "1")])) == ["b"]


def test_overlapping_marks_keep_their_numbers() -> None:
    html = render("One two three.", [mark("One two", 1, "One two three."), mark("two three", 2, "One two three.")])
    assert html.strip() == (
        '<p><mark class="claim neutral">One two</mark><sup class="k">1</sup>'
        '<mark class="claim neutral"> three</mark><sup class="k">2</sup>.</p>'
    )


def test_invisible_text_has_no_mark() -> None:
    assert render(TEXT, [mark("|---|---:|"), mark("http://a.example/desk"), mark("python")]) == render(TEXT)


def test_injected_mark_class_is_dropped() -> None:
    assert "<mark>x</mark>" in render("x", [Mark(0, 1, 'evil" onclick="x', "1")])
