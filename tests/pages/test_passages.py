"""Passages as a reviewer reads them: drawn by the renderer of answers, with what the answer took over and the words
that decide claims marked at their places in the raw text; searched, and led to from a citation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evaluation.models import Context
from review.ratings.card import Claim, JudgeOnClaim, Passage
from review.ratings.pages.item import answer_html, claim_text, render_passage, shared_phrases
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, question_spec
from tests.pages.browser import VIEW_IDS, VIEWS, open_window, page_problems
from tests.pages.markup import unsafe_markup
from tests.pages.test_hostile_text import ALL_HOSTILE_TEXT

RULES = "## 제14조\n\n| 항목 | 금액 |\n|---|---|\n| 월세 | **500,000원** 입니다 |\n\n- 매월 말일에 *냅니다*\n"


def passage(text: str) -> Passage:
    return Passage(1, "rules.pdf", text, "")


def test_markdown_is_rendered_and_raw_text_stays_available() -> None:
    html, raw = render_passage(passage(RULES), (), "")
    for fragment in ("<h3>제14조</h3>", "<td>월세</td>", "<strong>500,000원</strong>", "<em>냅니다</em>"):
        assert fragment in html
    assert raw == RULES
    plain_text = "Two lines\nof plain text [1], 3 < 4 & 5."
    assert render_passage(passage(plain_text), (), "") == (
        "<p>Two lines\nof plain text [1], 3 &lt; 4 &amp; 5.</p>\n",
        "",
    )
    assert render_passage(passage("[a]: http://a.example"), (), "").raw  # nothing of it is read
    assert render_passage(passage("  "), (), "") == ("<p>–</p>", "")


def test_copied_text_is_marked_at_its_place() -> None:
    text = "We say: **the fee** for a stay of one night is due. The fee for a dog is not."
    answer = "I read that the fee for a stay of one night is 9."
    spans = shared_phrases(text, answer)
    assert [text[start:end] for start, end in spans] == ["the fee** for a stay of one night is"]
    html = render_passage(passage(text), (), answer).html
    expected = '<mark class="taken">the fee</mark></strong><mark class="taken"> for a stay of one night is</mark> due.'
    assert expected in html
    assert "<sup" not in html
    assert shared_phrases("one two three four", "one two three four") == []  # four words may be chance
    assert shared_phrases("월세는 매월 말일에 냅니다.", "월세는 매월 말일에 보냅니다.") == [(0, 10)]
    assert shared_phrases("", answer) == shared_phrases(text, "") == []


def test_revealed_judge_quote_replaces_copied_marks() -> None:
    text = "The fee for a stay of one night is **9 won**."
    start = text.index("9 won")
    verdict = JudgeOnClaim("supported", "", 1, "9 won", start, start + 5, approximate=False)
    claim = Claim(7, "It is 9 won.", 0, 3, approximate=False, judge=verdict)
    html = render_passage(passage(text), [claim], text).html
    assert '<mark class="claim held">9 won</mark><sup class="k">7</sup>' in html
    assert "taken" not in html
    unmarked_passage = Passage(2, "", text, "")
    assert 'class="taken"' in render_passage(unmarked_passage, [claim], text).html  # the claim rests on the first


def test_citations_link_to_passages_except_in_code_and_links() -> None:
    passages = [Passage(number, f"s{number}.pdf", "x", "") for number in (1, 2, 3)]
    text = "Rent is due [1, 3] (출처 2). `[1]` [x [1]](http://a.example) **[2]** [9]\n\n| a |\n|---|\n| [s3.pdf] |\n"
    html = answer_html(text, [], passages)
    led = re.findall(r'<a href="#passage-(\d)" rel="[^"]+">([^<]*)</a>', html)
    assert led == [("1", "1"), ("3", "3"), ("2", "(출처 2)"), ("2", "[2]"), ("3", "[s3.pdf]")]
    assert "<code>[1]</code>" in html
    assert "[9]" in html
    claim = Claim(4, "due [1", 8, text.index("1") + 1, approximate=False, judge=None)
    html = answer_html(text, [claim], passages)
    assert '<mark class="claim neutral">1</mark></a><sup class="k">4</sup>, <a href="#passage-3"' in html
    for passages_of in (None, []):
        assert "#passage" not in answer_html(text, [claim], passages_of)
    assert "#passage" not in answer_html("[x](#passage-1) [y](#main)", [], passages)


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        ("| 월세 | **500,000원** |", "월세 · 500,000원"),
        ("The rent is due `today` .", "The rent is due today."),
        ("월세는 매월 말일에 냅니다 .", "월세는 매월 말일에 냅니다."),
        ("P(a | b) is 0.5", "P(a | b) is 0.5"),
    ],
)
def test_claim_is_one_line_of_text(claim: str, line: str) -> None:
    assert claim_text(claim) == line


@pytest.mark.parametrize("text", ALL_HOSTILE_TEXT)
def test_hostile_passages_stay_text(text: str) -> None:
    assert unsafe_markup(render_passage(passage(text), (), text * 2).html) == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("language", "size"), VIEWS, ids=VIEW_IDS)
def test_passages_are_searchable_and_reached_from_citations(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    answer_text = "The fee is 9 [2]. `[3]` There is no [44]. Rent [5][6] is due (출처 7)."
    questions = make_question_set(make_project(), [question_spec(n) for n in (1, 2)])
    answers = make_answer_set(questions, texts=[answer_text, answer_text])
    Context.objects.bulk_create(
        Context(answer=answer, position=n, chunk_id=f"c{n}", text=f"{RULES} rule {n}. Rent, rent." * 3, source="a.pdf")
        for answer in answers.answers.all()
        for n in range(1, 8)
    )
    queue = make_queue(make_scored_run(answers, values=[1]), 1, metrics=["correctness"], reveal="never")
    with open_window(browser, live_server.url, queue.members.get().reviewer, language=language, size=size) as window:
        page = window.page
        visible_passages = page.locator(".ctx:visible")
        window.open(f"/review/{queue.pk}/")
        for _card in range(2):  # the second one is shown in place
            links = page.locator(".answer[data-rendered] a")
            assert links.all_inner_texts() == ["[2]", "[5]", "[6]", "(출처 7)"]
            assert visible_passages.count() == 8
            page.fill("[data-find]", "RULE 4")
            assert visible_passages.count() == 1
            assert page.inner_text("[data-count]").replace("문단 8개 중 1개", "1 of 8 passages") == "1 of 8 passages"
            assert page.evaluate("[...CSS.highlights.get('found')].map(String)") == ["rule 4"] * 3
            page.keyboard.press("BracketRight")  # goes into the field
            page.keyboard.press("Escape")
            assert visible_passages.count() == 8
            page.fill("[data-find]", "rule 4")
            links.nth(1).click()
            assert visible_passages.count() == 8
            assert page.evaluate("document.querySelector('.ctx:target').id") == "passage-5"
            assert page.locator("#passage-5 .raw").is_hidden()
            page.click("[data-raw]")
            assert page.locator("#passage-5 .raw").inner_text().startswith("## 제14조")
            assert page.locator("#passage-5 table").first.is_hidden()
            page.click("[data-raw]")
            assert page_problems(window, "card") == []
            page.evaluate("document.activeElement.blur()")
            page.keyboard.press("3")
            page.keyboard.press("Enter")
            window.settle()
        assert window.complaints == []
