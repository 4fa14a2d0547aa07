"""The endpoints of an item, from lease to final rating."""

from __future__ import annotations

import pytest

from review.models import Assignment, Rating
from review.ratings.submitting import queue_metrics
from tests.factories import make_queue, make_scored_run, make_user
from tests.review.clients import Caller, members

pytestmark = pytest.mark.django_db


def test_an_item_goes_from_lease_to_final_rating() -> None:
    queue = make_queue(make_scored_run(values=[5]), reveal="on_difference")
    (me,) = members(queue)
    item = me.next(queue)["id"]
    given = {"correctness": {"value": 2, "comment": "two facts are wrong"}, "faithfulness": {"value": 5}}
    submitted = me.submit(item, values=given, active_ms=48_000).json()
    assert (submitted["state"], submitted["reveal"]) == ("submitted", True)
    shown = me.post(f"items/{item}/reveal/").json()
    assert [(one["metric"], one["value"], one["own_value"], one["levels_apart"]) for one in shown] == [
        ("correctness", 5.0, 2.0, 3.0),
        ("faithfulness", 5.0, 5.0, 0.0),
    ]
    changes = {"correctness": {"value": 4, "reason_code": "judge_too_lenient", "comment": "one fact"}}
    final = me.post(f"items/{item}/finalise/", {"changes": changes}).json()
    assert (final["state"], final["changed"]) == ("finished", ["correctness"])
    card = me.get(f"items/{item}/").json()
    assert (card["given"]["correctness"]["value"], card["final"]["correctness"]["value"]) == (2.0, 4.0)


def test_the_same_submit_twice_is_one_decision() -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    first, second = me.submit(item, key="form-1"), me.submit(item, key="form-1")
    assert (first.json()["repeated"], second.json()["repeated"]) == (False, True)
    assert Rating.objects.count() == 2
    other = me.submit(item, key="form-2")
    assert (other.status_code, other.json()["code"]) == (409, "already_rated")


def test_a_draft_is_kept_and_comes_back_with_the_card() -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    draft = {"values": {"correctness": {"value": 2}}, "comment": "half"}
    assert me.post(f"items/{item}/draft/", draft).status_code == 204
    again = me.next(queue)["draft"]
    assert (again["comment"], again["values"]["correctness"]["value"]) == ("half", 2.0)


def test_undo_opens_the_last_item_again_with_what_was_entered() -> None:
    queue = make_queue(reveal="never")
    (me,) = members(queue)
    item = me.next(queue)["id"]
    me.submit(item)
    me.next(queue)
    card = me.post(f"items/{item}/undo/").json()
    assert (card["state"], card["draft"]["values"]["correctness"]["value"]) == ("leased", 3.0)
    assert me.next(queue)["id"] == item


def test_nothing_left_is_an_empty_answer() -> None:
    queue = make_queue()
    (me,) = members(queue)
    queue.items.update(state="done")
    response = me.post(f"review-queues/{queue.pk}/next/")
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize(
    ("action", "body", "state"),
    [
        ("release", {}, "expired"),
        ("skip", {"comment": "not my field"}, "skipped"),
        ("flag", {"kind": "bad_reference", "comment": "outdated"}, "flagged"),
        ("escalate", {"comment": "please look"}, "flagged"),
    ],
)
def test_an_item_can_be_put_down(action: str, body: dict[str, str], state: str) -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    assert me.post(f"items/{item}/{action}/", body).status_code == 204
    assert Assignment.objects.get(pk=item).state == state
    assert me.post(f"items/{item}/{action}/", body).status_code == 409


def test_progress_tells_members_their_own_part_and_leads_everything() -> None:
    queue = make_queue(reviewers=2, reveal="never")
    me = members(queue)[0]
    me.submit(me.next(queue)["id"], active_ms=30_000)
    own = me.get(f"review-queues/{queue.pk}/progress/").json()
    assert own == {
        "own": {"items": 6, "rated": 1, "skipped": 0, "flagged": 0, "median_seconds": 30.0},
        "queue": None,
    }
    led = Caller(make_user("lead", queue.project)).get(f"review-queues/{queue.pk}/progress/").json()
    whole = led["queue"]
    assert (led["own"], whole["done"], whole["ratings"], whole["ratings_needed"]) == (None, 1, 1, 6)
    assert sorted(one["rated"] for one in whole["reviewers"]) == [0, 1]


def test_a_lead_makes_a_queue_and_its_draw_is_on_record() -> None:
    run = make_scored_run()
    lead = Caller(make_user("lead", run.project))
    rater = make_user("reviewer", run.project)
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [rater.username], "strategy": "uniform"}
    made = lead.post("review-queues/", body | {"size": 3, "seed": 7, "name": "Spring"}).json()
    assert (made["name"], made["seed"], made["metrics"], made["reviewers"]) == (
        "Spring",
        7,
        ["correctness"],
        [rater.username],
    )
    draw = lead.get(f"draws/{made['draws'][0]}/").json()
    assert (draw["strategy"], draw["frame_size"], draw["strata"]) == (
        "uniform",
        6,
        [{"name": "all", "size": 6, "sampled": 3}],
    )


def test_an_unknown_reviewer_is_named_with_the_near_ones() -> None:
    run = make_scored_run()
    lead = Caller(make_user("lead", run.project))
    make_user("reviewer", run.project, username="kim.minji")
    response = lead.post("review-queues/", {"runs": [run.pk], "metrics": ["correctness"], "reviewers": ["kim.minjii"]})
    assert response.status_code == 400
    assert "did you mean kim.minji?" in response.json()["detail"]


@pytest.mark.parametrize("text", ["\u0000", "x" * 100_001])
def test_texts_that_no_database_keeps_are_refused(text: str) -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    assert me.submit(item, comment=text).status_code == 400
    assert me.post(f"items/{item}/draft/", {"comment": text}).status_code == 400


def test_next_and_submit_cost_a_fixed_number_of_queries(django_assert_num_queries: object) -> None:
    queue = make_queue(make_scored_run(values=[3]), reviewers=1, reviews_needed=1)
    queue.members.update(offset=0)
    (me,) = members(queue)
    queue_metrics(queue)  # kept between requests
    for number in range(3):
        with django_assert_num_queries(11):  # type: ignore[operator]  # one asks whether the judge was seen
            item = me.next(queue)["id"]
        with django_assert_num_queries(11):  # type: ignore[operator]
            me.submit(item, key=f"k{number}")


def test_a_number_no_database_keeps_is_nobodys_item_or_queue() -> None:
    (me,) = members(make_queue())
    assert me.get(f"items/{10**30}/").status_code == 404
    assert me.post(f"review-queues/{10**30}/next/").status_code == 404
