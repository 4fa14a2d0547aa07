"""The whole protocol by keyboard alone in a real browser, in both languages: rate, reveal, revise, undo, skip, flag,
escalate, rate by claims, adjudicate. No console error, nothing stopped by the content security policy."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from evaluation.models import Finding, Score, User
from review.models import Assignment, Draft, ItemEvent, Override, Rating, ReviewQueue, SuggestedAnswer
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.browser import READ_MS, BrowserPage, open_window

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
State = Assignment.State


@pytest.fixture
def queue() -> ReviewQueue:
    """A queue of eight answers."""
    return make_blind_queue(8)


def make_blind_queue(answers: int) -> ReviewQueue:
    """A queue of so many answers for two reviewers each, the judge shown after every rating."""
    run = make_scored_run(
        make_answer_set(make_question_set(make_project(), answers)), values=[3], metrics=["correctness"]
    )
    return make_queue(run, 2, metrics=["correctness"], reveal="always", reviews_needed=2)


def queue_reviewer(queue: ReviewQueue, index: int = 0) -> User:
    return queue.members.order_by("pk")[index].reviewer


def rate(window: BrowserPage, level: str) -> None:
    """Choose a level, submit and wait for the judge."""
    item_path = window.path
    window.page.keyboard.press(level)
    window.page.keyboard.press("Enter")
    window.wait_to_leave(item_path, or_show="#reveal")
    window.pass_time(READ_MS)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_review_protocol_works_by_keyboard(queue: ReviewQueue, browser: Any, live_server: Any, language: str) -> None:
    reviewer = queue_reviewer(queue)
    with open_window(browser, live_server.url, reviewer, language=language) as window:
        press = window.page.keyboard.press
        window.open(f"/review/{queue.pk}/")
        rate(window, "2")  # the judge said 3
        window.follow("Enter")  # kept
        assert Rating.objects.get(phase="final").value == 2
        rate(window, "1")
        press("e")  # change: the key of the reveal
        press("3")
        window.page.focus('input[name="reason:correctness"]')
        press("Space")
        window.page.evaluate("document.activeElement.blur()")
        window.follow("Enter")
        revised = Rating.objects.filter(phase="final").latest("pk")
        assert (revised.value, bool(revised.reason_code)) == (3, True)
        skipped = window.path
        press("s")
        window.wait_to_leave(skipped)
        window.follow("z")
        assert window.path == skipped
        press("f")
        press("Space")
        item_path = window.path
        press("Tab")
        press("Tab")
        press("Enter")
        window.wait_to_leave(item_path)
        item_path = window.path
        press("e")
        window.page.keyboard.type("s f z 1")  # typing is no command
        press("Tab")
        press("Enter")
        window.wait_to_leave(item_path)
        skipped = window.path
        press("s")
        window.wait_to_leave(skipped)
        item_path = window.path
        press("f")
        press("Space")
        press("Tab")
        press("Tab")
        press("Enter")
        window.wait_to_leave(item_path)
        item_path = window.path
        press("z")  # a flag is not undone, and not what was before it either
        window.settle()
        assert window.path == item_path
        assert window.complaints == []
    verbs = list(ItemEvent.objects.filter(assignment__reviewer=reviewer).order_by("pk").values_list("verb", flat=True))
    assert verbs == ["reveal", "reveal", "skip", "undo", "flag", "escalate", "skip", "flag"]
    assert ItemEvent.objects.get(verb="escalate").comment == "s f z 1"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_claims_and_disputes_are_decided_by_keyboard(browser: Any, live_server: Any, language: str) -> None:
    queue = make_blind_queue(2)
    check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
    run = make_scored_run(make_answer_set(make_question_set(queue.project, 2)), values=[0.5], metrics=["claim_support"])
    for score in Score.objects.filter(run=run):
        Finding.objects.bulk_create(
            Finding(score=score, kind="claim", position=i, text=f"Claim {i}.", verdict="supported", start=4 * i)
            for i in range(2)
        )  # fmt: skip
    claims = make_queue(run, 1, metrics=["claim_support"], reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(claims), language=language) as window:
        window.open(f"/review/{claims.pk}/")
        item_path = window.path
        assert [violation["id"] for violation in check(window.page)["violations"]] == []
        window.page.keyboard.press("1")
        window.page.keyboard.press("3")
        window.page.keyboard.press("Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    assert Rating.objects.get().value == 0.5  # one of two supported
    for index, level in ((0, "1"), (1, "5")):
        with open_window(browser, live_server.url, queue_reviewer(queue, index), language=language) as window:
            for _ in range(2 if index else 1):
                window.open(f"/review/{queue.pk}/")
                rate(window, level)
                window.follow("Enter")
    lead = make_user("lead", queue.project)
    with open_window(browser, live_server.url, lead, language=language) as window:
        window.open("/adjudication/")
        assert [violation["id"] for violation in check(window.page)["violations"]] == []
        window.page.focus("main table a")
        window.follow("Enter")
        assert [violation["id"] for violation in check(window.page)["violations"]] == []
        window.page.keyboard.press("4")
        window.page.keyboard.press("Tab")
        window.page.keyboard.type("The fee is right.")
        window.page.keyboard.press("Tab")
        window.follow("Enter")
        assert window.complaints == []
    decided = Override.objects.get()
    assert (decided.value, decided.kind, decided.judge_seen) == (4, "adjudication", False)


def test_reveal_key_moves_to_the_next_difference(browser: Any, live_server: Any) -> None:
    answers = make_answer_set(make_question_set(make_project(), 1))
    queue = make_queue(make_scored_run(answers, values=[3]), 1, reveal="always")  # two metrics
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        window.page.keyboard.press("4")
        rate(window, "4")
        for level in ("5", "3"):
            window.page.keyboard.press("e")
            window.page.keyboard.press(level)
        window.follow("Enter")
        assert window.complaints == []
    assert sorted(Rating.objects.filter(phase="final").values_list("value", flat=True)) == [3, 5]


def test_number_is_typed_without_focusing_its_field(browser: Any, live_server: Any) -> None:
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 2)), values=[50], metrics=["ndcg_at_k"])
    queue = make_queue(run, 1, metrics=["ndcg_at_k", "correctness"], reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        assert window.page.locator("input[type=number]").count() == 1
        for key in ("0", ".", "2", "5", "Enter"):
            window.page.keyboard.press(key)
        assert window.path == item_path  # one criterion is left, and the screen leads there
        window.page.keyboard.press("4")
        window.page.keyboard.press("k")
        window.page.fill("input[type=number]", "7")  # off the scale
        window.page.keyboard.press("Escape")
        window.page.keyboard.press("j")
        window.page.keyboard.press("Enter")
        window.settle()
        assert window.path == item_path
        assert window.page.locator("input[type=number]").is_visible()  # where the mistake is
        assert window.page.evaluate("document.activeElement.type") == "number"
        window.page.fill("input[type=number]", "0.25")
        window.page.keyboard.press("Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    assert sorted(Rating.objects.values_list("value", flat=True)) == [0.25, 4]


def test_session_that_ends_while_typing_is_renewed_in_place(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    reviewer = queue_reviewer(queue)
    with open_window(browser, live_server.url, reviewer) as window:
        window.open(f"/review/{queue.pk}/")
        window.page.keyboard.press("2")
        window.page.keyboard.press("g")
        window.page.keyboard.type("What is right")
        window.page.keyboard.press("Escape")
        window.wait_for_draft("saved")
        Session.objects.all().delete()
        window.page.evaluate("document.activeElement.blur()")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector("#log-in[open] input[name=username]")
        window.page.fill("#log-in input[name=username]", reviewer.username)
        window.page.fill("#log-in input[name=password]", "a good password")
        window.page.keyboard.press("Enter")
        window.page.wait_for_selector("#reveal")
    assert Rating.objects.get().value == 2
    assert SuggestedAnswer.objects.get().text == "What is right"


def test_offline_input_survives_a_crash(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        window.page.context.set_offline(True)
        window.page.keyboard.press("4")
        window.page.keyboard.press("c")
        window.page.keyboard.type("half a thought")
        window.wait_for_draft("unsaved")
        assert not Draft.objects.exists()
        item_path = window.path
        window.page.close()  # nothing is sent
        window.page.context.set_offline(False)
        window.watch(window.page.context.new_page())
        window.open(item_path)
        assert window.page.input_value("#comment") == "half a thought"
        assert window.page.is_checked('input[name="value:correctness"][value="4"]')


def test_digit_rates_next_criterion_after_cannot_judge(browser: Any, live_server: Any) -> None:
    names = ["completeness", "correctness", "faithfulness"]
    answers = make_answer_set(make_question_set(make_project(), 2))
    queue = make_queue(make_scored_run(answers, values=[3], metrics=names), 1, metrics=names, reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        for key in ("x", "Enter", "x"):  # the reason has the focus after each x
            window.page.keyboard.press(key)
        assert window.page.locator("[data-announce]").inner_text() == ""
        window.page.keyboard.press("5")
        window.page.keyboard.press("Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    ratings = sorted(Rating.objects.values_list("cannot_judge", "value"), key=str)
    assert ratings == [(False, 5.0), (True, None), (True, None)]
