"""The reviewer's path by forms alone, as it works without scripts."""

from __future__ import annotations

import re

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from evaluation.models import Context, Finding, Score
from review.models import Assignment, Draft, Rating, ReviewItem, ReviewQueue
from review.ratings.leases import next_assignment
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run
from tests.pages.markup import compact
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
State = Assignment.State


@pytest.fixture
def world() -> World:
    return make_world()


def rating_form(correctness: object, faithfulness: object, **overrides: object) -> dict[str, object]:
    return {"value:correctness": correctness, "value:faithfulness": faithfulness, "form_key": "k1", **overrides}


def submit(client: Client, assignment: Assignment, data: dict[str, object]) -> object:
    return client.post(reverse("review-submit", args=[assignment.pk]), data)


def judge_value(world: World) -> float:
    score = world.answer.scores.get(metric__name="correctness")
    assert score.value is not None
    return score.value


def test_next_address_shows_the_held_item(world: World) -> None:
    client = world.client("member")
    next_address, item_address = (
        reverse("review-next", args=[world.queue.pk]),
        reverse("review-item", args=[world.assignment.pk]),
    )
    next_response, item_response = (client.get(address) for address in (next_address, item_address))
    once_each = r'(csrfmiddlewaretoken|form_key|next)" value="[^"]*"|data-lease="\d+"'
    pages = [re.sub(once_each, "", response.content.decode()) for response in (next_response, item_response)]
    assert pages[0] == pages[1]
    assert f'data-item="{item_address}"' in pages[0]
    assert "no-store" in next_response.headers["Cache-Control"]  # going back must not show an item that was passed on


def test_rating_leads_to_the_next_item(world: World) -> None:
    judge_score = judge_value(world)
    response = submit(
        world.client("member"),
        world.assignment,
        rating_form(judge_score, judge_score, comment="fine", active_ms="4200"),
    )
    assert response.headers["Location"] == reverse("review-next", args=[world.queue.pk])  # type: ignore[attr-defined]
    rating = Rating.objects.get(metric__name="correctness")
    assert (rating.value, rating.phase, rating.blind, rating.comment, rating.active_ms) == (
        judge_score, "initial", True, "fine", 4200,
    )  # fmt: skip


def test_repeated_form_stores_one_decision(world: World) -> None:
    judge_score = judge_value(world)
    for _ in range(2):
        assert (
            submit(world.client("member"), world.assignment, rating_form(judge_score, judge_score)).status_code == 302
        )  # type: ignore[attr-defined]
    assert Rating.objects.count() == 2  # one for each metric


def test_missing_value_is_refused_and_input_kept(world: World) -> None:
    data = rating_form(4, "", comment="typed with care", form_key="kept")
    response = submit(world.client("member"), world.assignment, data)
    page = compact(response.content.decode())  # type: ignore[attr-defined]
    assert response.status_code == 409  # type: ignore[attr-defined]
    assert "typed with care" in page
    assert 'name="form_key" value="kept"' in page
    assert re.search(r'name="value:correctness" value="4"[^>]* checked', page)
    assert re.search(r'data-metric="faithfulness"[^>]* aria-invalid="true"', page)
    assert "Faithfulness" in page.partition('role="alert">')[2].partition("</p>")[0]
    assert not Rating.objects.exists()


def test_too_long_comment_is_refused_and_kept(world: World) -> None:
    response = submit(world.client("member"), world.assignment, rating_form(4, 4, comment="x" * 10_001))
    assert response.status_code == 409  # type: ignore[attr-defined]
    assert "x" * 10_001 in response.content.decode()  # type: ignore[attr-defined]


def test_cannot_judge_stores_a_rating_without_value(world: World) -> None:
    submit(world.client("member"), world.assignment, rating_form("cannot_judge", 4))
    rating = Rating.objects.get(metric__name="correctness")
    assert (rating.cannot_judge, rating.value) == (True, None)


def test_draft_restores_the_form(world: World) -> None:
    client = world.client("member")
    saved = client.post(
        reverse("review-draft", args=[world.assignment.pk]), rating_form(2, "", comment="half a thought")
    )
    assert saved.status_code == 204
    page = compact(client.get(reverse("review-item", args=[world.assignment.pk])).content.decode())
    assert "half a thought" in page
    assert re.search(r'name="value:correctness" value="2"[^>]* checked', page)
    assert Draft.objects.count() == 1


def test_difference_reveals_judge_and_keeping_needs_no_reason(world: World) -> None:
    client, distant_value = world.client("member"), 5 if judge_value(world) <= 3 else 1
    response = submit(client, world.assignment, rating_form(distant_value, distant_value))
    item = reverse("review-item", args=[world.assignment.pk])
    assert response.headers["Location"] == item  # type: ignore[attr-defined]
    page = compact(client.get(item).content.decode())
    assert "The judge" in page
    assert "s reason." in page
    final_response = client.post(reverse("review-finalise", args=[world.assignment.pk]), {"decision": "keep"})
    assert final_response.headers["Location"] == reverse("review-next", args=[world.queue.pk])
    final = Rating.objects.get(metric__name="correctness", phase="final")
    assert (final.value, final.blind) == (distant_value, False)


def test_change_by_two_levels_needs_a_reason(world: World) -> None:
    client, distant_value = world.client("member"), 5 if judge_value(world) <= 3 else 1
    submit(client, world.assignment, rating_form(distant_value, distant_value))
    client.get(reverse("review-item", args=[world.assignment.pk]))
    finalise = reverse("review-finalise", args=[world.assignment.pk])
    form_data = {
        "decision": "change",
        "value:correctness": 3,
        "value:faithfulness": distant_value,
        "comment:correctness": "hm",
    }
    refused_response = client.post(finalise, form_data)
    assert refused_response.status_code == 409
    assert re.search(r'name="value:correctness" value="3"[^>]* checked', compact(refused_response.content.decode()))
    assert ">hm</textarea>" in refused_response.content.decode()
    accepted_response = client.post(finalise, form_data | {"reason:correctness": "judge_missed_claim"})
    assert accepted_response.status_code == 302
    final = Rating.objects.get(metric__name="correctness", phase="final")
    assert (final.value, final.reason_code, final.comment) == (3, "judge_missed_claim", "hm")
    assert Rating.objects.get(metric__name="correctness", phase="initial").value == distant_value


@pytest.mark.parametrize("differs", [False, True], ids=["no reveal to come", "a reveal to come"])
def test_refused_value_before_reveal_shows_no_judge(world: World, differs: bool) -> None:
    client, value = world.client("member"), judge_value(world)
    if differs:
        value = 5 if value <= 3 else 1
    submit(client, world.assignment, rating_form(value, value))
    item = reverse("review-item", args=[world.assignment.pk])
    form_data = {"decision": "change", "value:correctness": 9, "value:faithfulness": value}
    response = client.post(reverse("review-finalise", args=[world.assignment.pk]), form_data)
    assert (response.status_code, response.headers["Location"]) == (302, item)
    world.assignment.refresh_from_db()
    assert world.assignment.revealed_at is None
    (message,) = get_messages(response.wsgi_request)
    assert "Correctness" in str(message)
    assert not Rating.objects.filter(phase="final").exists()


def test_skipping_leads_to_next_item_and_can_be_undone(world: World) -> None:
    client = world.client("member")
    client.post(reverse("review-skip", args=[world.assignment.pk]))
    world.assignment.refresh_from_db()
    assert world.assignment.state == State.SKIPPED
    assert (
        "skipped or flagged this item"
        in client.get(reverse("review-item", args=[world.assignment.pk])).content.decode()
    )
    client.post(reverse("review-undo", args=[world.assignment.pk]))
    world.assignment.refresh_from_db()
    assert world.assignment.state == State.LEASED


def test_undo_reopens_last_rating_and_new_one_supersedes_it(world: World) -> None:
    client, judge_score = world.client("member"), judge_value(world)
    submit(client, world.assignment, rating_form(judge_score, judge_score))
    following = client.get(reverse("review-next", args=[world.queue.pk]))
    assert reverse("review-undo", args=[world.assignment.pk]) in following.content.decode()
    client.post(reverse("review-undo", args=[world.assignment.pk]))
    page = compact(client.get(reverse("review-item", args=[world.assignment.pk])).content.decode())
    assert re.search(rf'name="value:correctness" value="{judge_score:g}"[^>]* checked', page)
    submit(client, world.assignment, rating_form(judge_score, "cannot_judge", form_key="k2"))
    assert list(Rating.objects.filter(metric__name="faithfulness").order_by("seq").values_list("cannot_judge")) == [
        (False,),
        (True,),
    ]


def test_flag_needs_a_kind(world: World) -> None:
    client = world.client("member")
    flag = reverse("review-flag", args=[world.assignment.pk])
    assert client.post(flag, {"kind": ""}).headers["Location"] == reverse("review-item", args=[world.assignment.pk])
    client.post(flag, {"kind": "bad_reference", "flag_comment": "outdated"})
    world.assignment.refresh_from_db()
    assert world.assignment.state == State.FLAGGED
    case_address = reverse("adjudication-case", args=[world.assignment.item_id])
    assert case_address in world.client("lead").get(reverse("queue", args=[world.queue.pk])).content.decode()
    assert "outdated" in world.client("lead").get(case_address).content.decode()


def test_verdict_span_beyond_the_answer_is_tolerated() -> None:
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 1)), values=[1], metrics=["claim_support"])
    score = Score.objects.get(run=run)
    for index, (start, end) in enumerate(((4, 11), (900, 920), (3, 900))):
        Finding.objects.create(score=score, kind="claim", position=index, text=f"C{index}.", start=start, end=end)
    queue = make_queue(run, 1, metrics=["claim_support"])
    page = open_item(queue)
    assert '<mark class="claim neutral">capital</mark><sup class="k">2</sup>' in page  # of "The capital is city 1."
    assert [f"C{index}." in page for index in range(3)] == [True, True, True]


def test_decided_passages_are_not_listed_again() -> None:
    answers = make_answer_set(make_question_set(make_project(), 1))
    answer = answers.answers.get()
    Context.objects.create(answer=answer, position=1, chunk_id="c2", text="The second passage.", source="rules")
    run = make_scored_run(answers, values=[1], metrics=["context_precision", "citation_coverage", "correctness"])
    metrics = ["correctness", "citation_coverage", "context_precision"]
    page = open_item(make_queue(run, 1, metrics=metrics))
    section = page.split('data-parts="citation_coverage"')[1].split("</section>")[0]
    for number, text in ((1, answer.text), (2, "The second passage.")):
        assert page.count(f'id="passage-{number}"') == 1
        decided = section.split(f'id="passage-{number}"')[1]
        assert text in strip_tags(decided.split(f'name="part:citation_coverage:{number}"')[0])
    assert page.count("The second passage.") == 1
    assert page.count('href="#passage-2"') == 1  # from the second criterion that asks for it
    assert open_item(make_queue(run, 1, metrics=["correctness"])).count("The second passage.") == 1


def test_language_switch_returns_from_a_refused_form(world: World) -> None:
    client, item = world.client("member"), reverse("review-item", args=[world.assignment.pk])
    submitted = reverse("review-submit", args=[world.assignment.pk])  # cannot be opened
    page = compact(
        client.post(submitted, rating_form("", ""), headers={"Referer": f"http://testserver{item}"}).content.decode()
    )
    assert f'name="next" value="{item}"' in page
    assert submitted not in page.partition("</header>")[0]
    assert f'name="next" value="{item}"' in client.get(item).content.decode()


def test_unknown_form_fields_change_nothing(world: World) -> None:
    """Extra fields added to a form by hand are ignored."""
    judge_score = judge_value(world)
    extra_fields = {
        **{"is_superuser": "on", "role": "lead", "score_final": "5", "reviewer": "1", "phase": "final", "blind": "0"},
        **{"value:overall": "5", "source": "import", "judge_seen": "1", "queue": "1"},
    }
    submit(world.client("member"), world.assignment, rating_form(judge_score, judge_score, **extra_fields))
    facts = ("reviewer", "source", "phase", "blind", "value")
    member = world.people["member"]
    assert set(Rating.objects.values_list(*facts)) == {(member.pk, "review", "initial", True, judge_score)}
    member.refresh_from_db()
    assert (member.is_superuser, set(member.grants.values_list("role", flat=True))) == (False, {"reviewer"})


def test_empty_answer_is_labelled() -> None:
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 1), texts=[" \n"]))
    assert "The answer is empty." in open_item(make_queue(run, 1))
    run = make_scored_run(make_answer_set(make_question_set(make_project(), 1), texts=["."]))
    assert "The answer is empty." not in open_item(make_queue(run, 1))


def test_reveal_names_passages_by_source_and_links_them() -> None:
    answers = make_answer_set(make_question_set(make_project(), 1))
    run = make_scored_run(answers, values=[0], metrics=["context_precision"])
    queue = make_queue(run, 1, metrics=["context_precision"], reveal="always")
    reviewer = queue.members.get().reviewer
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    client = Client()
    client.force_login(reviewer)
    data = {"part:context_precision:1": "relevant", "form_key": "k"}
    page = compact(client.post(reverse("review-submit", args=[assignment.pk]), data, follow=True).content.decode())
    row = page.split('<table class="part-table">')[1].split("</table>")[0]
    assert ">atlas</span>" in row
    assert 'href="#passage-1"' in row
    assert "c1" not in row  # the system's own key tells a reviewer nothing


@pytest.mark.parametrize(
    ("given", "title"), [("4", "You and the judge agree"), ("cannot_judge", "Your rating and the judge")]
)
def test_reveal_claims_agreement_only_if_both_gave_a_value(given: str, title: str) -> None:
    run = make_scored_run(values=[4], metrics=["correctness"])
    queue = make_queue(run, 1, metrics=["correctness"], reveal="always")
    reviewer = queue.members.get().reviewer
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    client = Client()
    client.force_login(reviewer)
    data = {"value:correctness": given, "form_key": "k"}
    page = compact(client.post(reverse("review-submit", args=[assignment.pk]), data, follow=True).content.decode())
    assert title in page.split("<h1>")[1].split("</h1>")[0]


def open_item(queue: ReviewQueue) -> str:
    """The page of the first item in the hands of the queue's first reviewer."""
    client = Client()
    client.force_login(queue.members.order_by("pk")[0].reviewer)
    return compact(client.get(reverse("review-next", args=[queue.pk]), follow=True).content.decode())


def test_finished_queue_shows_message() -> None:
    world = make_world()
    ReviewItem.objects.filter(queue=world.queue).exclude(pk=world.assignment.item_id).update(state="withdrawn")
    client, judge_score = world.client("member"), judge_value(world)
    submit(client, world.assignment, rating_form(judge_score, judge_score))
    page = compact(client.get(reverse("review-next", args=[world.queue.pk])).content.decode())
    assert "All done" in page


def test_closed_queue_shows_message_and_keeps_draft(world: World) -> None:
    client = world.client("member")
    world.client("lead").post(reverse("queue-close", args=[world.queue.pk]))
    response = submit(client, world.assignment, rating_form(4, 4))
    assert response.status_code == 409  # type: ignore[attr-defined]
    assert Draft.objects.get().payload["values"]["correctness"]["value"] == 4


def test_reviewers_see_only_their_own_progress(world: World) -> None:
    shared_queue = make_queue(make_scored_run(), 2)
    first_reviewer, second_reviewer = (member.reviewer for member in shared_queue.members.all())
    client = Client()
    client.force_login(first_reviewer)
    page = compact(client.get(reverse("queue", args=[shared_queue.pk])).content.decode())
    assert second_reviewer.username not in page
    assert "Reviewers do not see this card" not in page


def test_real_scale_is_rated_by_its_anchors() -> None:
    run = make_scored_run(values=[0.5], metrics=["accuracy"], family="regulation_quality")
    queue = make_queue(run, metrics=["accuracy"])
    client = Client()
    client.force_login(queue.members.get().reviewer)
    page = compact(client.get(reverse("review-next", args=[queue.pk]), follow=True).content.decode())
    offered_values = re.findall(r'type="radio" name="value:accuracy" value="([\d.]+)"', page)
    # the levels of the rubric regulation_quality, of which the first and the last are written there as whole numbers
    assert offered_values == ["0", "0.3", "0.5", "0.7", "0.85", "1"]
    card = client.post(reverse("api-queue-next", args=[queue.pk]), content_type="application/json").json()
    assert [level["value"] for level in card["metrics"][0]["levels"]] == [0, 0.3, 0.5, 0.7, 0.85, 1]
