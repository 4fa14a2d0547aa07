"""The whole protocol by keyboard alone in a real browser, in both languages: rate, reveal, revise, undo, skip, flag,
escalate, rate by claims, adjudicate. No console error, nothing stopped by the content security policy."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session

from evaluation.models import Finding, Score, User
from review.models import Assignment, Draft, ItemEvent, Override, Rating, ReviewQueue, SuggestedAnswer
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.browser import Visit, visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
State = Assignment.State


@pytest.fixture
def queue(settings: Any) -> ReviewQueue:
    """A queue of eight answers."""
    settings.DEBUG = True  # static files are served from where they are
    return queue_of(8)


def queue_of(answers: int) -> ReviewQueue:
    """A queue of so many answers for two reviewers each, the judge shown after every rating."""
    run = make_scored_run(
        make_answer_set(make_question_set(make_project(), answers)), values=[3], metrics=["correctness"]
    )
    return make_queue(run, 2, metrics=["correctness"], reveal="always", reviews_needed=2)


def person(queue: ReviewQueue, place: int = 0) -> User:
    return queue.members.order_by("pk")[place].reviewer


def rate(found: Visit, level: str) -> None:
    """Choose a level, submit and wait for the judge."""
    here = found.path
    found.page.keyboard.press(level)
    found.page.keyboard.press("Enter")
    found.moves_from(here, or_shows="#reveal")
    found.page.wait_for_timeout(500)  # a held Enter of the screen before decides nothing here


@pytest.mark.parametrize("language", ["en", "ko"])
def test_rate_reveal_revise_undo_skip_flag_and_escalate_by_keyboard(
    queue: ReviewQueue, browser: Any, live_server: Any, language: str
) -> None:
    me = person(queue)
    with visit(browser, live_server.url, me, language=language) as found:
        press = found.page.keyboard.press
        found.open(f"/review/{queue.pk}/")
        rate(found, "2")  # the judge said 3
        found.go("Enter")  # kept
        assert Rating.objects.get(phase="final").value == 2
        rate(found, "1")
        press("e")  # change: the key of the reveal
        press("3")
        found.page.focus('input[name="reason:correctness"]')
        press("Space")
        found.page.evaluate("document.activeElement.blur()")
        found.go("Enter")
        revised = Rating.objects.filter(phase="final").latest("pk")
        assert (revised.value, bool(revised.reason_code)) == (3, True)
        skipped = found.path
        press("s")
        found.moves_from(skipped)
        found.go("z")
        assert found.path == skipped
        press("f")
        press("Space")
        here = found.path
        press("Tab")
        press("Tab")
        press("Enter")
        found.moves_from(here)
        here = found.path
        press("e")
        found.page.keyboard.type("s f z 1")  # typing is no command
        press("Tab")
        press("Enter")
        found.moves_from(here)
        skipped = found.path
        press("s")
        found.moves_from(skipped)
        here = found.path
        press("f")
        press("Space")
        press("Tab")
        press("Tab")
        press("Enter")
        found.moves_from(here)
        here = found.path
        press("z")  # a flag is not undone, and not what was before it either
        found.settle()
        assert found.path == here
        assert found.complaints == []
    verbs = list(ItemEvent.objects.filter(assignment__reviewer=me).order_by("pk").values_list("verb", flat=True))
    assert verbs == ["reveal", "reveal", "skip", "undo", "flag", "escalate", "skip", "flag"]
    assert ItemEvent.objects.get(verb="escalate").comment == "s f z 1"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_claims_are_decided_and_a_dispute_adjudicated_by_keyboard(
    settings: Any, browser: Any, live_server: Any, language: str
) -> None:
    settings.DEBUG = True
    queue = queue_of(2)
    check = pytest.importorskip("axe_core_python.sync_playwright").Axe().run
    run = make_scored_run(make_answer_set(make_question_set(queue.project, 2)), values=[0.5], metrics=["claim_support"])
    for score in Score.objects.filter(run=run):
        Finding.objects.bulk_create(
            Finding(score=score, kind="claim", position=i, text=f"Claim {i}.", verdict="supported", start=4 * i)
            for i in range(2)
        )  # fmt: skip
    claims = make_queue(run, 1, metrics=["claim_support"], reveal="never")
    with visit(browser, live_server.url, person(claims), language=language) as found:
        found.open(f"/review/{claims.pk}/")
        here = found.path
        assert [one["id"] for one in check(found.page)["violations"]] == []
        found.page.keyboard.press("1")
        found.page.keyboard.press("3")
        found.page.keyboard.press("Enter")
        found.moves_from(here)
        assert found.complaints == []
    assert Rating.objects.get().value == 0.5  # one of two supported
    for place, level in ((0, "1"), (1, "5")):
        with visit(browser, live_server.url, person(queue, place), language=language) as found:
            for _ in range(2 if place else 1):
                found.open(f"/review/{queue.pk}/")
                rate(found, level)
                found.go("Enter")
    lead = make_user("lead", queue.project)
    with visit(browser, live_server.url, lead, language=language) as found:
        found.open("/adjudication/")
        assert [one["id"] for one in check(found.page)["violations"]] == []
        found.page.focus("main table a")
        found.go("Enter")
        assert [one["id"] for one in check(found.page)["violations"]] == []
        found.page.keyboard.press("4")
        found.page.keyboard.press("Tab")
        found.page.keyboard.type("The fee is right.")
        found.page.keyboard.press("Tab")
        found.go("Enter")
        assert found.complaints == []
    decided = Override.objects.get()
    assert (decided.value, decided.kind, decided.judge_seen) == (4, "adjudication", False)


def test_the_key_of_the_reveal_goes_from_one_difference_to_the_next(
    settings: Any, browser: Any, live_server: Any
) -> None:
    settings.DEBUG = True
    answers = make_answer_set(make_question_set(make_project(), 1))
    queue = make_queue(make_scored_run(answers, values=[3]), 1, reveal="always")  # two metrics
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        found.page.keyboard.press("4")
        rate(found, "4")
        for level in ("5", "3"):
            found.page.keyboard.press("e")
            found.page.keyboard.press(level)
        found.go("Enter")
        assert found.complaints == []
    assert sorted(Rating.objects.filter(phase="final").values_list("value", flat=True)) == [3, 5]


def test_a_number_is_typed_without_reaching_for_its_field(settings: Any, browser: Any, live_server: Any) -> None:
    settings.DEBUG = True
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 2)), values=[50], metrics=["ndcg_at_k"])
    queue = make_queue(run, 1, metrics=["ndcg_at_k", "correctness"], reveal="never")
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        assert found.page.locator("input[type=number]").count() == 1
        for key in ("0", ".", "2", "5", "Enter"):
            found.page.keyboard.press(key)
        assert found.path == here  # one criterion is left, and the screen leads there
        found.page.keyboard.press("4")
        found.page.keyboard.press("k")
        found.page.fill("input[type=number]", "7")  # off the scale
        found.page.keyboard.press("Escape")
        found.page.keyboard.press("j")
        found.page.keyboard.press("Enter")
        found.settle()
        assert found.path == here
        assert found.page.locator("input[type=number]").is_visible()  # where the mistake is
        assert found.page.evaluate("document.activeElement.type") == "number"
        found.page.fill("input[type=number]", "0.25")
        found.page.keyboard.press("Enter")
        found.moves_from(here)
        assert found.complaints == []
    assert sorted(Rating.objects.values_list("value", flat=True)) == [0.25, 4]


def test_a_session_that_ends_while_typing_is_renewed_in_place(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    me = person(queue)
    with visit(browser, live_server.url, me) as found:
        found.open(f"/review/{queue.pk}/")
        found.page.keyboard.press("2")
        found.page.keyboard.press("g")
        found.page.keyboard.type("What is right")
        found.page.keyboard.press("Escape")
        found.told_of_the_draft("saved")
        Session.objects.all().delete()
        found.page.evaluate("document.activeElement.blur()")
        found.page.keyboard.press("Enter")
        found.page.wait_for_selector("#log-in[open] input[name=username]")
        found.page.fill("#log-in input[name=username]", me.username)
        found.page.fill("#log-in input[name=password]", "a good password")
        found.page.keyboard.press("Enter")
        found.page.wait_for_selector("#reveal")
    assert Rating.objects.get().value == 2
    assert SuggestedAnswer.objects.get().text == "What is right"


def test_what_was_entered_survives_a_crash_without_a_connection(
    queue: ReviewQueue, browser: Any, live_server: Any
) -> None:
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        found.page.context.set_offline(True)
        found.page.keyboard.press("4")
        found.page.keyboard.press("c")
        found.page.keyboard.type("half a thought")
        found.told_of_the_draft("unsaved")
        assert not Draft.objects.exists()
        here = found.path
        found.page.close()  # nothing is sent
        found.page.context.set_offline(False)
        found.watch(found.page.context.new_page())
        found.open(here)
        assert found.page.input_value("#comment") == "half a thought"
        assert found.page.is_checked('input[name="value:correctness"][value="4"]')


def test_after_cannot_judge_a_digit_rates_the_next_criterion_and_enter_leads_to_it(
    settings: Any, browser: Any, live_server: Any
) -> None:
    settings.DEBUG = True
    names = ["completeness", "correctness", "faithfulness"]
    answers = make_answer_set(make_question_set(make_project(), 2))
    queue = make_queue(make_scored_run(answers, values=[3], metrics=names), 1, metrics=names, reveal="never")
    with visit(browser, live_server.url, person(queue)) as found:
        found.open(f"/review/{queue.pk}/")
        here = found.path
        for key in ("x", "Enter", "x"):  # the reason has the focus after each x
            found.page.keyboard.press(key)
        assert found.page.locator("[data-announce]").inner_text() == ""
        found.page.keyboard.press("5")
        found.page.keyboard.press("Enter")
        found.moves_from(here)
        assert found.complaints == []
    given = sorted(Rating.objects.values_list("cannot_judge", "value"), key=str)
    assert given == [(False, 5.0), (True, None), (True, None)]
