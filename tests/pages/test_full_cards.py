"""The review screen under answers as they come: a table, code, 10,000 characters, 30 passages and 170 claims, on a
laptop and on phones, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.models import Context, Finding, Score
from review.models import ReviewQueue
from tests.factories import (
    make_answer_set,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    question_spec,
)
from tests.pages.browser import DESKTOP, PHONE, BrowserPage, open_window, page_problems

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SENTENCE = {
    "en": "The fee for a stay of one night is 500,000 won. ",
    "ko": "하룻밤 숙박 요금은 500,000원이며 매월 말일에 냅니다. ",
}
TABLE = (
    "| 항목 | 금액 |\n|---|---:|\n| 월세 | 500,000 |\n\n"
    "```python\nrent = 500_000  # a month\n```\n\n- **one**\n- two\n\n"
)
CLAIMS, PASSAGES = 170, 30


def full_queue(language: str) -> ReviewQueue:
    sentence = SENTENCE[language]
    text = (TABLE + sentence * (10_000 // len(sentence) + 1))[:10_000]
    questions = make_question_set(make_project(), [question_spec(1, text=sentence.replace("won", "won, is it?"))])
    answers = make_answer_set(questions, texts=[text])
    Context.objects.bulk_create(
        Context(answer=answers.answers.get(), position=n, chunk_id=f"c{n}", text=sentence * 6, source=f"rules-{n}.pdf")
        for n in range(1, PASSAGES)
    )
    run = make_scored_run(answers, values=[0.5, 3], metrics=["claim_support", "correctness"])
    score = Score.objects.get(run=run, metric__name="claim_support")
    starts = [len(TABLE) + index * len(sentence) for index in range(CLAIMS)]
    Finding.objects.bulk_create(
        Finding(
            score=score, kind="claim", position=index, text=sentence.strip(), verdict="supported",
            start=start, end=start + len(sentence.strip()),
        )
        for index, start in enumerate(starts)
    )  # fmt: skip
    return make_queue(run, 1, metrics=["correctness", "claim_support"], reveal="never", guideline="Be fair.\n\n" * 30)


def is_in_sight(window: BrowserPage, selector: str, height: float) -> bool:
    """Return whether the beginning of an element is on the screen above the bar."""
    box, bar = window.page.locator(selector).first.bounding_box(), window.page.locator(".bar").bounding_box()
    return bool(box["y"] >= 0 and box["y"] + height <= bar["y"])


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE, (360, 640)], ids=["laptop", "phone", "small"])
def test_question_answer_and_evidence_are_in_sight(
    browser: Any, live_server: Any, language: str, size: tuple[int, int]
) -> None:
    queue = full_queue(language)
    with open_window(browser, live_server.url, queue.members.get().reviewer, language=language, size=size) as window:
        window.open(f"/review/{queue.pk}/")
        assert is_in_sight(window, "main h1", 24)
        assert is_in_sight(window, ".answer", 60)
        assert window.page.locator(".answer td").count() == 2
        assert window.page.locator(".answer sup.k").count() > CLAIMS - 20  # as many as the 10,000 characters hold
        if size == DESKTOP:
            assert is_in_sight(window, ".ctx", 60)
            window.page.evaluate("window.scrollTo(0, 3000)")
            assert is_in_sight(window, ".ctx", 60)  # stays while the answer goes by
        if size == PHONE:  # what a level means is read before it is chosen
            assert window.page.locator(".level:visible span").first.bounding_box()["width"] > 100
        window.page.keyboard.press("3")
        if size != DESKTOP:
            assert window.page.locator(".level:visible").count() in {0, 5}
        for _ in range(11):
            window.page.keyboard.press("1")
        groups = window.page.locator("details.group[open]")
        assert groups.count() == 1
        assert (
            window.page.evaluate("document.querySelector('details.group[open] input').name.split(':').at(-1)") == "11"
        )
        submit = window.page.locator("[data-submit]").bounding_box()
        assert submit["y"] + submit["height"] <= size[1]  # the bar does not scroll its own button away
        assert window.page.locator(".bar").bounding_box()["height"] <= size[1] / 2
        assert page_problems(window, "card") == []
        assert window.complaints == []


def test_levels_fit_one_row_on_a_phone_and_chosen_level_is_named(browser: Any, live_server: Any) -> None:
    queue = make_queue(make_scored_run(values=[3]), 1, reveal="never")
    with open_window(browser, live_server.url, queue.members.get().reviewer, size=(360, 640)) as window:
        window.open(f"/review/{queue.pk}/")
        levels = window.page.locator("fieldset[data-metric]:not([hidden]) .level")
        boxes = [levels.nth(index).bounding_box() for index in range(5)]
        assert len({round(box["y"]) for box in boxes}) == 1
        assert not window.page.get_by_role("button", name="Skip").is_visible()
        levels.nth(1).click()  # stays, so that it can be read what was chosen
        chosen_label = window.page.locator("fieldset[data-metric]:not([hidden]) [data-chosen]")
        assert chosen_label.is_visible()
        assert chosen_label.inner_text() == levels.nth(1).locator("span").text_content()
        window.page.click("[data-more]")
        assert window.page.get_by_role("button", name="Skip").is_visible()
        assert page_problems(window, "card") == []
