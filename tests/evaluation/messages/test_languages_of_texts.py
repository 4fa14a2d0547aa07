"""Language tags on texts, for screen readers."""

from __future__ import annotations

from django.template import Context, Template

from evaluation.messages.markdown import render


def test_english_paragraph_of_a_korean_text_has_a_language_tag() -> None:
    text = "Rate what the answer says.\n\n# Look at the passages\n\n답변의 내용을 평가해 주세요.\n\nLRKX 2.0"
    assert render(text).split("\n")[:4] == [
        '<p lang="en">Rate what the answer says.</p>',
        '<h3 lang="en">Look at the passages</h3>',
        "<p>답변의 내용을 평가해 주세요.</p>",
        "<p>LRKX 2.0</p>",
    ]


def test_single_language_text_has_no_paragraph_tags() -> None:
    assert "lang" not in render("Rate what the answer says.\n\nLook at the passages.")
    assert "lang" not in render("답변의 내용을\n\n평가해 주세요.")


def test_template_filter_returns_the_language_of_a_text() -> None:
    template = Template("{% load wording %}{{ a|language_of }} {{ b|language_of }}")
    assert template.render(Context({"a": "학칙 제15조", "b": "Fact sheet"})) == "ko en"
