"""Which first ratings make an item a lead's matter, by the scale they are given on."""

from __future__ import annotations

import pytest

from evaluation.core.roles import Role
from review.decisions.cases import CaseReason, load_case, open_cases
from review.models import ReviewItem
from tests.evaluation.rest.clients import API, Caller
from tests.factories import make_user
from tests.review.builders import answer_rows, answers_to, assignment_of, decide, metric, queue_for, rate, run_over

pytestmark = pytest.mark.django_db

CLASSES = "class right|wrong|silent"


def rated(scale: str, said: list[float | str | None], *, adjudicate_from: float = 2) -> ReviewItem:
    """An item of which so many people have said so; ``None`` cannot judge."""
    run, row = run_over(answers_to(["a"]), judged=False), metric("own_measure", scale)
    people = [make_user() for _ in said]
    queue = queue_for(run, [row], people, adjudicate_from=adjudicate_from)
    for person, value in zip(people, said, strict=True):
        rate(assignment_of(queue, answer_rows(run)[0], person, run), row, value)
    return ReviewItem.objects.get(queue=queue)


def why(item: ReviewItem) -> tuple[CaseReason, ...]:
    """What the item is listed for; nothing where it is not."""
    return next((case.why for case in open_cases(item.queue.items.all())), ())


@pytest.mark.parametrize(
    ("scale", "said", "expected"),
    [
        ("levels 1..5", [2, 4], (CaseReason.DIFFERENCE,)),
        ("levels 1..5", [3, 4], ()),
        ("levels 1..5", [1, None], ()),
        ("yes_no", [1, 1, 0], (CaseReason.DIFFERENCE,)),
        ("yes_no", [1, 0], (CaseReason.TIE,)),
        ("yes_no", [1, None], ()),
        (CLASSES, ["right", "right", "wrong"], (CaseReason.DIFFERENCE,)),
        (CLASSES, ["right", "wrong"], (CaseReason.TIE,)),
        (CLASSES, ["right", None], ()),
    ],
)
def test_first_ratings_apart(scale: str, said: list[float | str | None], expected: tuple[CaseReason, ...]) -> None:
    assert why(rated(scale, said)) == expected


@pytest.mark.parametrize(("scale", "said"), [("yes_no", [1, 0]), (CLASSES, ["right", "wrong"])])
def test_an_even_split_goes_to_a_lead_whatever_the_queues_setting(scale: str, said: list[float | str | None]) -> None:
    assert why(rated(scale, said, adjudicate_from=0)) == (CaseReason.TIE,)


def test_what_was_adjudicated_is_apart_no_longer() -> None:
    item = rated("levels 1..5", [1, 5])
    row = item.queue.metrics.get().metric
    assert load_case(item).max_distance == 4
    decide(item.answer, row, 3, "adjudication")
    assert load_case(item).max_distance == 0
    decide(item.answer, row, None, "revert")
    assert load_case(item).max_distance == 4


def test_an_item_that_was_withdrawn_waits_for_nobody() -> None:
    item = rated("levels 1..5", [1, 5])
    ReviewItem.objects.update(state=ReviewItem.State.WITHDRAWN)
    assert why(item) == ()


def test_by_rest_open_cases_come_in_pages_newest_first_and_only_to_who_leads() -> None:
    run, row = run_over(answers_to(["a", "b", "c"]), judged=False), metric("own_measure", "levels 1..5")
    people = [make_user(), make_user()]
    queue = queue_for(run, [row], people, adjudicate_from=2)
    for answer in answer_rows(run):
        for reviewer, value in zip(people, (1, 5), strict=True):
            rate(assignment_of(queue, answer, reviewer, run), row, value)
    items = list(queue.items.order_by("pk"))
    decide(items[1].answer, row, 3, "adjudication")
    lead = Caller(Role.LEAD, queue.project)
    found, address = [], "adjudication/?page_size=1"
    while address:
        page = lead.get(address).json()
        found += [one["item"] for one in page["results"]]
        address = (page["next"] or "").partition(API)[2]
    assert found == [items[2].pk, items[0].pk]
    assert lead.get("adjudication/", cursor="x").status_code == 400
    for role in (Role.REVIEWER, Role.EVALUATOR, None):
        assert Caller(role, queue.project).get("adjudication/").json()["results"] == []
