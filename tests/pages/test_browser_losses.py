"""Input that could get lost on the reviewer's screens, in a real browser: text in forms without a draft, a login in
another window, a failing server, a session that ends at the reveal, text under the bar."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from evaluation.models import Context, Finding, Score
from review.models import ItemEvent, Rating, RatingPart, ReviewQueue
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run
from tests.pages.browser import PHONE, READ_MS, BrowserPage, open_window
from tests.pages.test_browser_protocol import make_blind_queue, queue_reviewer, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SIDEWAYS = (844, 390)
ZOOMED = (320, 256)  # 1280 x 1024 at 400%


@pytest.fixture
def queue() -> ReviewQueue:
    """A queue of four answers."""
    return make_blind_queue(4)


def log_in(page: Any, name: str) -> None:
    """Fill the form of the log-in page and send it."""
    page.fill("main input[name=username]", name)
    page.fill("main input[name=password]", "a good password")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_escape_leaves_a_comment_and_enter_submits(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        press = window.page.keyboard.press
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        press("2")
        press("c")
        window.page.keyboard.type("fine")
        press("Escape")
        press("Enter")
        window.wait_to_leave(item_path, or_show="#reveal")
        window.pass_time(READ_MS)
        window.follow("Enter")
        item_path = window.path
        press("2")
        press("c")
        window.page.keyboard.type("s and Enter are text")
        press("Control+Enter")  # from inside the field
        window.wait_to_leave(item_path, or_show="#reveal")
        window.pass_time(READ_MS)
        press("e")
        press("3")
        window.page.locator("details.extra > summary").click()
        window.page.locator(".comparison textarea").fill("a level more")
        window.follow("Control+Enter")
        item_path = window.path
        press("e")
        window.page.keyboard.type("What is a fee?")
        press("Control+Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    comments = Rating.objects.filter(phase="initial").order_by("pk").values_list("comment", flat=True)
    assert list(comments) == ["fine", "s and Enter are text"]
    assert Rating.objects.filter(phase="final").order_by("pk").values_list("value", "comment")[1] == (3, "a level more")
    assert ItemEvent.objects.get(verb="escalate").comment == "What is a fee?"


def test_login_in_another_window_loses_no_input(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    reviewer = queue_reviewer(queue)
    with open_window(browser, live_server.url, reviewer) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        Session.objects.all().delete()
        login_page = window.page.context.new_page()
        login_page.goto(f"{live_server.url}/login/")
        log_in(login_page, reviewer.username)
        login_page.close()
        window.page.keyboard.press("4")
        window.wait_for_draft("saved")  # with the new session's token
        window.page.keyboard.press("Enter")
        window.wait_to_leave(item_path, or_show="#reveal")
    assert Rating.objects.get().value == 4


def test_rating_is_resent_after_server_error(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        failed_routes: list[Any] = []

        def respond_with_503(route: Any) -> None:
            failed_routes.append(route)
            route.fulfill(status=503, body="")

        window.page.route("**/submit/", respond_with_503, times=1)
        window.page.keyboard.press("4")
        window.page.keyboard.press("Enter")
        message = window.page.get_attribute("#rating", "data-failing")
        window.page.locator("#messages", has_text=message).wait_for()
        assert len(failed_routes) == 1
        assert not Rating.objects.exists()
        window.pass_time(5000)
        window.wait_to_leave(item_path, or_show="#reveal")
        refused_routes: list[Any] = []
        window.pass_time(READ_MS)
        window.follow("Enter")
        window.page.route("**/skip/", lambda route: (refused_routes.append(route), route.fulfill(status=404, body="")))
        window.page.keyboard.press("s")
        message = window.page.get_attribute("#rating", "data-refused")
        window.page.locator("#messages", has_text=message).wait_for()
        window.pass_time(5500)
        window.settle()
        assert len(refused_routes) == 1  # what is refused is not asked for again
    assert Rating.objects.get(phase="initial").value == 4


def test_change_survives_session_end_at_the_reveal(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    reviewer = queue_reviewer(queue)
    with open_window(browser, live_server.url, reviewer, language="ko") as window:
        window.open(f"/review/{queue.pk}/")
        rate(window, "1")
        item = window.path
        window.page.keyboard.press("e")
        window.page.keyboard.press("3")
        window.page.locator("details.extra > summary").click()
        window.page.locator(".comparison textarea").fill("제가 놓쳤습니다")
        window.page.evaluate("document.activeElement.blur()")
        window.follow("Enter")
        assert window.page.locator(".notice.error").count() == 1  # two levels need a reason
        assert window.path == item  # and not what the form was sent to, which cannot be opened
        window.pass_time(READ_MS)
        window.page.check('input[name="reason:correctness"] >> nth=0')
        Session.objects.all().delete()
        window.page.evaluate("document.activeElement.blur()")
        window.follow("Enter")
        assert window.path == f"/login/?next={item}"
        log_in(window.page, reviewer.username)
        window.settle()
        assert window.path == item
        window.pass_time(READ_MS)
        window.follow("Enter")  # the change, as it was before
    final = Rating.objects.get(phase="final")
    assert (final.value, final.comment, bool(final.reason_code)) == (3, "제가 놓쳤습니다", True)


def test_late_input_of_second_window_is_restored_on_undo(browser: Any, live_server: Any) -> None:
    queue = make_blind_queue(4)
    ReviewQueue.objects.update(reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path, first_page = window.path, window.page
        second_page = first_page.context.new_page()
        second_page.goto(live_server.url + item_path)
        rate(window, "4")
        second_page.keyboard.press("c")
        second_page.keyboard.type("the date is wrong")
        second_page.keyboard.press("Escape")
        second_page.keyboard.press("1")
        with second_page.expect_navigation():
            second_page.keyboard.press("Enter")
        assert "the date is wrong" not in second_page.content()  # the item as it was rated in the first window
        with first_page.expect_navigation():
            first_page.keyboard.press("z")
        first_page.wait_for_selector("#rating")
        assert first_page.input_value("#comment") == "the date is wrong"
        assert first_page.is_checked("input[name='value:correctness'][value='1']")
    assert [row.value for row in Rating.objects.all()] == [4]


def test_unsent_question_survives_a_crash_and_is_cleared_when_sent(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        window.page.keyboard.press("e")
        window.page.keyboard.type("이 규정이 아직 유효한가요?")
        window.page.close()
        window.watch(window.page.context.new_page())
        window.open(item_path)
        assert window.page.input_value("#escalate-comment") == "이 규정이 아직 유효한가요?"
        window.page.keyboard.press("e")
        window.page.keyboard.press("Control+Enter")
        window.wait_to_leave(item_path)
        stored_drafts = window.page.evaluate(
            "Object.keys(localStorage).filter((name) => name.startsWith('concord.kept.'))"
        )
        assert stored_drafts == []
    assert ItemEvent.objects.get(verb="escalate").comment == "이 규정이 아직 유효한가요?"


def test_missed_claims_are_entered_one_per_line(browser: Any, live_server: Any) -> None:
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 1)), values=[1], metrics=["claim_support"])
    Finding.objects.create(score=Score.objects.get(run=run), kind="claim", position=0, text="One.", verdict="supported")
    queue = make_queue(run, 1, metrics=["claim_support"], reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        item_path = window.path
        window.page.keyboard.press("1")
        lines = window.page.locator("[data-added]")
        for index, (text, verdict) in enumerate((("Two.", "1"), ("Three.", "3"))):
            lines.nth(index).locator("input[type=text]").focus()
            window.page.keyboard.type(text)
            window.page.keyboard.press("Escape")
            window.page.keyboard.press(verdict)  # of the one that was just written down
        assert lines.count() == 3
        window.wait_for_draft("saved")
        window.page.reload()
        window.settle()
        assert [line.input_value() for line in lines.locator("input[type=text]").all()] == ["Two.", "Three.", ""]
        window.page.evaluate("document.activeElement.blur()")
        window.page.keyboard.press("Enter")
        window.wait_to_leave(item_path)
        assert window.complaints == []
    parts = RatingPart.objects.order_by("pk").values_list("text", "verdict")
    assert list(parts) == [("One.", "supported"), ("Two.", "supported"), ("Three.", "unsupported")]


def test_active_time_continues_after_reload(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        for _ in range(3):
            window.pass_time(1100)
            window.page.reload()
            window.settle()
        rate(window, "4")
        window.follow("Enter")
        rate(window, "4")  # of the next item it is the time of that item alone
    spent = Rating.objects.filter(phase="initial").order_by("pk").values_list("active_ms", flat=True)
    assert spent[0] >= 3000
    assert spent[1] < 3000


def test_card_links_and_history_navigation_show_the_right_item(browser: Any, live_server: Any) -> None:
    queue = make_queue(
        make_scored_run(make_answer_set(), metrics=["correctness"]), 1, metrics=["correctness"], reveal="never"
    )
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        questions_by_path = {}
        for _ in range(2):
            item_path = window.path
            questions_by_path[item_path] = window.page.inner_text("h1")
            window.page.keyboard.press("3")
            window.page.keyboard.press("Enter")
            window.wait_to_leave(item_path)
            assert window.page.evaluate("document.activeElement.tagName") == "H1"  # the next question is read aloud
        questions_by_path[window.path] = window.page.inner_text("h1")
        window.page.evaluate("window.sameDocument = true")
        window.page.focus("a.skip")  # as a link to a passage does
        window.page.keyboard.press("Enter")
        window.settle()
        assert window.path.endswith("#main")
        assert window.page.evaluate("window.sameDocument")
        window.page.go_back()
        window.settle()
        assert window.page.evaluate("window.sameDocument")
        for step in (window.page.go_back, window.page.go_back, window.page.go_forward, window.page.go_forward):
            step()
            window.page.locator("h1", has_text=questions_by_path[window.path]).wait_for()
            window.settle()
            assert window.page.inner_text("h1") == questions_by_path[window.path]
        assert window.complaints == []


def test_question_stays_visible_while_passages_are_decided(browser: Any, live_server: Any) -> None:
    answers = make_answer_set(make_question_set(make_project(), 1))
    for position in range(1, 20):
        Context.objects.create(answer=answers.answers.get(), position=position, chunk_id="c", text="A passage. " * 40)
    run = make_scored_run(answers, values=[50], metrics=["context_precision"])
    queue = make_queue(run, 1, metrics=["context_precision"], reveal="never")
    with open_window(browser, live_server.url, queue_reviewer(queue)) as window:
        window.open(f"/review/{queue.pk}/")
        for _ in range(10):
            window.page.keyboard.press("1")
        assert window.page.evaluate("document.querySelector('.evidence').scrollTop") > 1000
        header_bottom = "document.querySelector('header.top').getBoundingClientRect().bottom"
        top = window.page.evaluate(f"document.querySelector('main h1').getBoundingClientRect().top - {header_bottom}")
        assert 0 <= top < 200
        assert window.complaints == []


def free_height(window: BrowserPage) -> float:
    """Return the share of the screen's height that neither header nor bar covers."""
    return float(
        window.page.evaluate(
            """() => {
              const lies = (one) => ["sticky", "fixed"].includes(getComputedStyle(one).position);
              const over = [...document.querySelectorAll("header.top, .bar")].filter(lies);
              return 1 - over.reduce((sum, one) => sum + one.getBoundingClientRect().height, 0) / innerHeight;
            }"""
        )
    )


@pytest.mark.parametrize("size", [PHONE, SIDEWAYS, ZOOMED], ids=["phone", "sideways", "zoomed"])
def test_wide_answers_are_readable_on_any_screen(browser: Any, live_server: Any, size: tuple[int, int]) -> None:
    cells = " | ".join(["아주긴내용입니다" * 3] * 8)
    text = f"| {cells} |\n|{'---|' * 8}\n| {cells} |\n\n```\n{'x' * 300}\n```\n\nhttps://a.example/{'a' * 300}"
    answers = make_answer_set(make_question_set(make_project(), 1), texts=[text])
    queue = make_queue(make_scored_run(answers), 1)
    reviewer = queue_reviewer(queue)
    with open_window(browser, live_server.url, reviewer, size=size, language="ko") as window:
        window.open(f"/review/{queue.pk}/")
        assert window.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert free_height(window) >= 0.4
        window.page.keyboard.press("4")
        focus_box = "document.activeElement.getBoundingClientRect()"
        assert window.page.evaluate(
            f"{focus_box}.bottom > 0 && {focus_box}.top < innerHeight"
        )  # what has the focus is in sight
        check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
        assert [
            violation["id"] for violation in check(window.page)["violations"]
        ] == []  # what scrolls, scrolls by keyboard
