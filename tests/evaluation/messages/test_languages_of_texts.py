"""Which texts are named as English or Korean, for a screen reader to read them so."""

from __future__ import annotations

from django.template import Context, Template

from evaluation.messages.markdown import render


def test_an_english_paragraph_of_a_korean_text_is_named_and_names_and_numbers_are_not() -> None:
    both = "Rate what the answer says.\n\n# Look at the passages\n\n답변의 내용을 평가해 주세요.\n\nLRKX 2.0"
    assert render(both).split("\n")[:4] == [
        '<p lang="en">Rate what the answer says.</p>',
        '<h3 lang="en">Look at the passages</h3>',
        "<p>답변의 내용을 평가해 주세요.</p>",
        "<p>LRKX 2.0</p>",
    ]


def test_a_text_in_one_language_is_named_by_its_block_alone() -> None:
    assert "lang" not in render("Rate what the answer says.\n\nLook at the passages.")
    assert "lang" not in render("답변의 내용을\n\n평가해 주세요.")


def test_a_page_may_ask_for_the_language_of_a_text() -> None:
    shown = Template("{% load wording %}{{ a|language_of }} {{ b|language_of }}")
    assert shown.render(Context({"a": "학칙 제15조", "b": "Fact sheet"})) == "ko en"
