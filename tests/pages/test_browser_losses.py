"""What could get lost on the reviewer's screens, in a real browser: words typed into forms without a draft, a log-in in
another window, a server that fails for a while, a session that ends at the reveal, text under the bar."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from evaluation.models import Context, Finding, Score
from review.models import ItemEvent, Preference, Rating, RatingPart, ReviewQueue
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.browser import PHONE, Visit, visit
from tests.pages.test_browser_protocol import person, queue_of, rate
from tests.pages.world import make_pair_set

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIDEWAYS = (844, 390)
ZOOMED = (320, 256)  # 1280 x 1024 at 400%


@pytest.fixture
def queue(settings: Any) -> ReviewQueue:
    """A queue of four answers."""
    settings.DEBUG = True  # static files are served from where they are
    return queue_of(4)


def log_in(page: Any, name: str) -> None:
    """Fill the form of the log-in page and send it."""
    page.fill("main input[name=username]", name)
    page.fill("main input[name=password]", "a good password")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_escape_leads_out_of_a_comment_and_enter_submits_then(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with visit(browser, live_server.url, person(queue)) as found:
        press = found.page.keyboard.press
        found.open(f"/review/{queue.pk}/")
        here = found.path
        press("2")
        press("c")
        found.page.keyboard.type("fine")
        press("Escape")
        press("Enter")
        found.moves_from(here, or_shows="#reveal")
        found.page.wait_for_timeout(500)
        found.go("Enter")
        here = found.path
        press("2")
        press("c")
        found.page.keyboard.type("s and Enter are text")
        press("Control+Enter")  # from inside the field
        found.moves_from(here, or_shows="#reveal")
        found.page.wait_for_timeout(500)
        press("e")
        press("3")
        found.page.locator("details.extra > summary").click()
        found.page.locator(".comparison textarea").fill("a level more")
        found.go("Control+Enter")
        here = found.path
        press("e")
        found.page.keyboard.type("What is a fee?")
        press("Control+Enter")
        found.moves_from(here)
        assert found.complaints == []
    said = Rating.objects.filter(phase="initial").order_by("pk").values_list("comment", flat=True)
    assert list(said) == ["fine", "s and Enter are text"]
    assert Rating.objects.filter(phase="final").order_by("pk").values_list("value", "comment")[1] == (3, "a level more")
    assert ItemEvent.objects.get(verb="escalate").comment == "What is a fee?"


def test_a_log_in_in_another_window_costs_nothing(queue: ReviewQueue, browser: Any, live_server: Any) -> None:
    me = person(queue)
    with visit(browser, live_server.url, me) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        Session.objects.all().delete()
        other = found.page.context.new_page()
        other.goto(f"{live_server.url}/login/")
        log_in(other, me.username)
        other.close()
        found.page.keyboard.press("4")
        found.told_of_the_draft("saved")  # with the new session's token
        found.page.keyboard.press("Enter")
        found.moves_from(here, or_shows="#reveal")
    assert Rating.objects.get().value == 4


def test_a_rating_that_the_server_could_not_take_is_sent_again_by_itself(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        failing: list[Any] = []

        def fail(route: Any) -> None:
            failing.append(route)
            route.fulfill(status=503, body="")

        found.page.route("**/submit/", fail, times=1)
        found.page.keyboard.press("4")
        found.page.keyboard.press("Enter")
        said = found.page.get_attribute("#rating", "data-failing")
        found.page.locator("#messages", has_text=said).wait_for()
        assert len(failing) == 1
        assert not Rating.objects.exists()
        found.moves_from(here, or_shows="#reveal")
        refused: list[Any] = []
        found.page.wait_for_timeout(500)
        found.go("Enter")
        found.page.route("**/skip/", lambda route: (refused.append(route), route.fulfill(status=404, body="")))
        found.page.keyboard.press("s")
        said = found.page.get_attribute("#rating", "data-refused")
        found.page.locator("#messages", has_text=said).wait_for()
        found.page.wait_for_timeout(5500)
        assert len(refused) == 1  # what is refused is not asked for again
    assert Rating.objects.get(phase="initial").value == 4


def test_a_change_survives_a_session_that_ends_at_the_reveal(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    me = person(queue)
    with visit(browser, live_server.url, me, language="ko") as found:
        found.open(f"/review/{queue.pk}/")
        rate(found, "1")
        item = found.path
        found.page.keyboard.press("e")
        found.page.keyboard.press("3")
        found.page.locator("details.extra > summary").click()
        found.page.locator(".comparison textarea").fill("제가 놓쳤습니다")
        found.page.evaluate("document.activeElement.blur()")
        found.go("Enter")
        assert found.page.locator(".notice.error").count() == 1  # two levels need a reason
        assert found.path == item  # and not what the form was sent to, which cannot be opened
        found.page.wait_for_timeout(500)
        found.page.check('input[name="reason:correctness"] >> nth=0')
        Session.objects.all().delete()
        found.page.evaluate("document.activeElement.blur()")
        found.go("Enter")
        assert found.path == f"/login/?next={item}"
        log_in(found.page, me.username)
        found.settle()
        assert found.path == item
        found.page.wait_for_timeout(500)
        found.go("Enter")  # the change, as it was before
    final = Rating.objects.get(phase="final")
    assert (final.value, final.comment, bool(final.reason_code)) == (3, "제가 놓쳤습니다", True)


def test_what_a_second_window_sent_too_late_is_there_when_the_item_is_brought_back(
    browser: Any, live_server: Any, settings: Any
) -> None:
    settings.DEBUG = True
    queue = queue_of(4)
    ReviewQueue.objects.update(reveal="never")
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here, first = found.path, found.page
        second = first.context.new_page()
        second.goto(live_server.url + here)
        rate(found, "4")
        second.keyboard.press("c")
        second.keyboard.type("the date is wrong")
        second.keyboard.press("Escape")
        second.keyboard.press("1")
        with second.expect_navigation():
            second.keyboard.press("Enter")
        assert "the date is wrong" not in second.content()  # the item as it was rated in the first window
        with first.expect_navigation():
            first.keyboard.press("z")
        first.wait_for_selector("#rating")
        assert first.input_value("#comment") == "the date is wrong"
        assert first.is_checked("input[name='value:correctness'][value='1']")
    assert [row.value for row in Rating.objects.all()] == [4]


def test_a_preference_survives_a_session_that_ends(settings: Any, browser: Any, live_server: Any) -> None:
    settings.DEBUG = True
    project = make_project()
    me = make_user("reviewer", project)
    pairs = make_pair_set(project, me)
    with visit(browser, live_server.url, me) as found:
        found.open(f"/pairs/{pairs.pk}/rate/")
        found.page.keyboard.press("4")
        found.page.fill("#reason", "B names its source")
        Session.objects.all().delete()
        with found.page.expect_navigation():
            found.page.click("#preference button")
        log_in(found.page, me.username)
        found.settle()
        assert found.path == f"/pairs/{pairs.pk}/rate/"
        assert found.page.input_value("#reason") == "B names its source"
        assert found.page.is_checked("input[name=value][value='1']")
        with found.page.expect_navigation():
            found.page.click("#preference button")
        found.settle()
    assert Preference.objects.get().reason == "B names its source"


def test_a_question_to_the_lead_survives_a_crash_and_is_gone_once_asked(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        found.page.keyboard.press("e")
        found.page.keyboard.type("이 규정이 아직 유효한가요?")
        found.page.close()
        found.watch(found.page.context.new_page())
        found.open(here)
        assert found.page.input_value("#escalate-comment") == "이 규정이 아직 유효한가요?"
        found.page.keyboard.press("e")
        found.page.keyboard.press("Control+Enter")
        found.moves_from(here)
        kept = found.page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('concord.kept.'))")
        assert kept == []
    assert ItemEvent.objects.get(verb="escalate").comment == "이 규정이 아직 유효한가요?"


def test_missed_claims_get_a_line_each(settings: Any, browser: Any, live_server: Any) -> None:
    settings.DEBUG = True
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 1)), values=[1], metrics=["claim_support"])
    Finding.objects.create(score=Score.objects.get(run=run), kind="claim", position=0, text="One.", verdict="supported")
    queue = make_queue(run, 1, metrics=["claim_support"], reveal="never")
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        found.page.keyboard.press("1")
        lines = found.page.locator("[data-added]")
        for place, (text, verdict) in enumerate((("Two.", "1"), ("Three.", "3"))):
            lines.nth(place).locator("input[type=text]").focus()
            found.page.keyboard.type(text)
            found.page.keyboard.press("Escape")
            found.page.keyboard.press(verdict)  # of the one that was just written down
        assert lines.count() == 3
        found.told_of_the_draft("saved")
        found.page.reload()
        found.settle()
        assert [line.input_value() for line in lines.locator("input[type=text]").all()] == ["Two.", "Three.", ""]
        found.page.evaluate("document.activeElement.blur()")
        found.page.keyboard.press("Enter")
        found.moves_from(here)
        assert found.complaints == []
    parts = RatingPart.objects.order_by("pk").values_list("text", "verdict")
    assert list(parts) == [("One.", "supported"), ("Two.", "supported"), ("Three.", "unsupported")]


def test_the_time_somebody_looked_goes_on_after_loading_the_page_again(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        for _ in range(3):
            found.page.wait_for_timeout(1100)
            found.page.reload()
            found.settle()
        rate(found, "4")
        found.go("Enter")
        rate(found, "4")  # of the next item it is the time of that item alone
    spent = Rating.objects.filter(phase="initial").order_by("pk").values_list("active_ms", flat=True)
    assert spent[0] >= 3000
    assert spent[1] < 3000


def test_links_within_a_card_stay_in_it_and_back_and_forward_show_what_their_address_says(
    settings: Any, browser: Any, live_server: Any
) -> None:
    settings.DEBUG = True
    queue = make_queue(
        make_scored_run(make_answer_set(), metrics=["correctness"]), 1, metrics=["correctness"], reveal="never"
    )
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        asked = {}
        for _ in range(2):
            here = found.path
            asked[here] = found.page.inner_text("h1")
            found.page.keyboard.press("3")
            found.page.keyboard.press("Enter")
            found.moves_from(here)
            assert found.page.evaluate("document.activeElement.tagName") == "H1"  # the next question is read aloud
        asked[found.path] = found.page.inner_text("h1")
        found.page.evaluate("window.sameDocument = true")
        found.page.focus("a.skip")  # as a link to a passage does
        found.page.keyboard.press("Enter")
        found.settle()
        assert found.path.endswith("#main")
        assert found.page.evaluate("window.sameDocument")
        found.page.go_back()
        found.settle()
        assert found.page.evaluate("window.sameDocument")
        for step in (found.page.go_back, found.page.go_back, found.page.go_forward, found.page.go_forward):
            step()
            found.page.wait_for_timeout(300)
            found.settle()
            assert found.page.inner_text("h1") == asked[found.path]
        assert found.complaints == []


def test_the_question_stays_in_sight_while_passages_are_decided(settings: Any, browser: Any, live_server: Any) -> None:
    settings.DEBUG = True
    answers = make_answer_set(make_question_set(make_project(), 1))
    for position in range(1, 20):
        Context.objects.create(answer=answers.answers.get(), position=position, chunk_id="c", text="A passage. " * 40)
    run = make_scored_run(answers, values=[50], metrics=["context_precision"])
    queue = make_queue(run, 1, metrics=["context_precision"], reveal="never")
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        for _ in range(10):
            found.page.keyboard.press("1")
        assert found.page.evaluate("document.querySelector('.evidence').scrollTop") > 1000
        under = "document.querySelector('header.top').getBoundingClientRect().bottom"
        top = found.page.evaluate(f"document.querySelector('main h1').getBoundingClientRect().top - {under}")
        assert 0 <= top < 200
        assert found.complaints == []


def reading_room(found: Visit) -> float:
    """The share of the screen's height that neither head nor bar ever lie over."""
    return float(
        found.page.evaluate(
            """() => {
              const lies = (one) => ["sticky", "fixed"].includes(getComputedStyle(one).position);
              const over = [...document.querySelectorAll("header.top, .bar")].filter(lies);
              return 1 - over.reduce((sum, one) => sum + one.getBoundingClientRect().height, 0) / innerHeight;
            }"""
        )
    )


@pytest.mark.parametrize("size", [PHONE, SIDEWAYS, ZOOMED], ids=["phone", "sideways", "zoomed"])
def test_hard_answers_can_be_read_on_any_screen(
    settings: Any, browser: Any, live_server: Any, size: tuple[int, int]
) -> None:
    settings.DEBUG = True
    cells = " | ".join(["아주긴내용입니다" * 3] * 8)
    text = f"| {cells} |\n|{'---|' * 8}\n| {cells} |\n\n```\n{'x' * 300}\n```\n\nhttps://a.example/{'a' * 300}"
    answers = make_answer_set(make_question_set(make_project(), 1), texts=[text])
    queue = make_queue(make_scored_run(answers), 1)
    me = person(queue)
    with visit(browser, live_server.url, me, size=size, language="ko") as found:
        found.open(f"/review/{queue.pk}/")
        assert found.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert reading_room(found) >= 0.4
        found.page.keyboard.press("4")
        place = "document.activeElement.getBoundingClientRect()"
        assert found.page.evaluate(f"{place}.bottom > 0 && {place}.top < innerHeight")  # what has the focus is in sight
        check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
        assert [one["id"] for one in check(found.page)["violations"]] == []  # what scrolls, scrolls by keyboard
