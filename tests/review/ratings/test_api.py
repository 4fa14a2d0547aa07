"""The endpoints of an item, from lease to final rating."""

from __future__ import annotations

import pytest

from evaluation.models import IdempotencyKey
from review.models import Assignment, Draft, Rating
from review.queues.creation import close_queue
from review.ratings.submitting import queue_metrics
from tests.factories import make_queue, make_scored_run, make_user
from tests.review.clients import API, GOOD, Caller, members

pytestmark = pytest.mark.django_db


def test_an_item_goes_from_lease_to_final_rating() -> None:
    queue = make_queue(make_scored_run(values=[5]), reveal="on_difference")
    (me,) = members(queue)
    item = me.next(queue)["id"]
    values = {"correctness": {"value": 2, "comment": "two facts are wrong"}, "faithfulness": {"value": 5}}
    submitted = me.submit(item, values=values, active_ms=48_000).json()
    assert (submitted["state"], submitted["reveal"]) == ("submitted", True)
    comparisons = me.post(f"items/{item}/reveal/").json()
    assert [(row["metric"], row["value"], row["own_value"], row["levels_apart"]) for row in comparisons] == [
        ("correctness", 5.0, 2.0, 3.0),
        ("faithfulness", 5.0, 5.0, 0.0),
    ]
    changes = {"correctness": {"value": 4, "reason_code": "judge_too_lenient", "comment": "one fact"}}
    final = me.post(f"items/{item}/finalise/", {"changes": changes}).json()
    assert (final["state"], final["changed"]) == ("finished", ["correctness"])
    card = me.get(f"items/{item}/").json()
    assert (card["given"]["correctness"]["value"], card["final"]["correctness"]["value"]) == (2.0, 4.0)


def test_repeated_submit_is_one_decision() -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    first, second = me.submit(item, key="form-1"), me.submit(item, key="form-1")
    assert (first.json()["repeated"], second.json()["repeated"]) == (False, True)
    assert Rating.objects.count() == 2
    other_response = me.submit(item, key="form-2")
    assert (other_response.status_code, other_response.json()["code"]) == (409, "already_rated")


def test_repeated_key_with_another_value_is_409_and_the_first_rating_stays() -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    values = {"correctness": {"value": 2}, "faithfulness": {"value": 2}}
    assert me.submit(item, key="form", values=values).status_code == 200
    response = me.submit(item, key="form", values=values | {"correctness": {"value": 4}})
    assert (response.status_code, response.json()["code"]) == (409, "key_reused")
    assert list(Rating.objects.values_list("value", flat=True)) == [2, 2]
    assert me.submit(item, key="form", values=values).json()["repeated"]


@pytest.mark.parametrize("headers", [{}, {"idempotency-key": "k"}], ids=["without key", "with key"])
def test_refused_rating_of_a_closed_queue_stays_as_draft(headers: dict[str, str]) -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    close_queue(queue, by=None)
    body = {"values": GOOD, "idempotency_key": "form"}
    response = me.client.post(f"{API}/items/{item}/submit/", body, format="json", headers=headers)
    assert (response.status_code, response.json()["code"]) == (409, "queue_closed")
    assert Draft.objects.get().assignment_id
    assert not IdempotencyKey.objects.exists()


def test_true_is_not_a_number() -> None:
    queue = make_queue()
    (me,) = members(queue)
    values = GOOD | {"correctness": {"value": True}}
    assert me.submit(me.next(queue)["id"], values=values).status_code == 400


def test_draft_is_stored_and_returned_with_the_card() -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    draft = {"values": {"correctness": {"value": 2}}, "comment": "half"}
    assert me.post(f"items/{item}/draft/", draft).status_code == 204
    stored_draft = me.next(queue)["draft"]
    assert (stored_draft["comment"], stored_draft["values"]["correctness"]["value"]) == ("half", 2.0)


def test_undo_reopens_the_last_item_with_its_values() -> None:
    queue = make_queue(reveal="never")
    (me,) = members(queue)
    item = me.next(queue)["id"]
    me.submit(item)
    me.next(queue)
    card = me.post(f"items/{item}/undo/").json()
    assert (card["state"], card["draft"]["values"]["correctness"]["value"]) == ("leased", 3.0)
    assert me.next(queue)["id"] == item


def test_empty_queue_gives_an_empty_response() -> None:
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
def test_item_can_be_released_skipped_flagged_or_escalated(action: str, body: dict[str, str], state: str) -> None:
    queue = make_queue()
    (me,) = members(queue)
    item = me.next(queue)["id"]
    assert me.post(f"items/{item}/{action}/", body).status_code == 204
    assert Assignment.objects.get(pk=item).state == state
    assert me.post(f"items/{item}/{action}/", body).status_code == 409


def test_members_see_their_own_progress_and_leads_all() -> None:
    queue = make_queue(reviewers=2, reveal="never")
    me = members(queue)[0]
    me.submit(me.next(queue)["id"], active_ms=30_000)
    own = me.get(f"review-queues/{queue.pk}/progress/").json()
    assert own == {
        "own": {"items": 6, "rated": 1, "skipped": 0, "flagged": 0, "median_seconds": None},
        "queue": None,
    }
    lead_progress = Caller(make_user("lead", queue.project)).get(f"review-queues/{queue.pk}/progress/").json()
    queue_progress = lead_progress["queue"]
    assert (
        lead_progress["own"],
        queue_progress["done"],
        queue_progress["ratings"],
        queue_progress["ratings_needed"],
    ) == (None, 1, 1, 6)
    assert sorted(row["rated"] for row in queue_progress["reviewers"]) == [0, 1]


def test_lead_creates_a_queue_with_a_recorded_draw() -> None:
    run = make_scored_run()
    lead = Caller(make_user("lead", run.project))
    rater = make_user("reviewer", run.project)
    body = {"runs": [run.pk], "metrics": ["correctness"], "reviewers": [rater.username], "strategy": "uniform"}
    created_queue = lead.post("review-queues/", body | {"size": 3, "seed": 7, "name": "Spring"}).json()
    assert (created_queue["name"], created_queue["seed"], created_queue["metrics"], created_queue["reviewers"]) == (
        "Spring",
        7,
        ["correctness"],
        [rater.username],
    )
    draw = lead.get(f"draws/{created_queue['draws'][0]}/").json()
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
def test_texts_that_no_database_stores_are_refused(text: str) -> None:
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


def test_number_too_large_for_the_database_is_not_found() -> None:
    (me,) = members(make_queue())
    assert me.get(f"items/{10**30}/").status_code == 404
    assert me.post(f"review-queues/{10**30}/next/").status_code == 404
