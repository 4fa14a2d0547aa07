"""First ratings that make an item an adjudication case, by rating scale."""

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


def rated_item(scale: str, values: list[float | str | None], *, adjudicate_from: float = 2) -> ReviewItem:
    """Create an item with one rating per value; ``None`` means cannot judge."""
    run, row = run_over(answers_to(["a"]), judged=False), metric("own_measure", scale)
    raters = [make_user() for _ in values]
    queue = queue_for(run, [row], raters, adjudicate_from=adjudicate_from)
    for person, value in zip(raters, values, strict=True):
        rate(assignment_of(queue, answer_rows(run)[0], person, run), row, value)
    return ReviewItem.objects.get(queue=queue)


def case_reasons(item: ReviewItem) -> tuple[CaseReason, ...]:
    """Return the reasons for which the item is a case; empty if it is none."""
    return next((case.why for case in open_cases(item.queue.items.all())), ())


@pytest.mark.parametrize(
    ("scale", "values", "expected"),
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
def test_distant_first_ratings_make_a_case(
    scale: str, values: list[float | str | None], expected: tuple[CaseReason, ...]
) -> None:
    assert case_reasons(rated_item(scale, values)) == expected


@pytest.mark.parametrize(("scale", "values"), [("yes_no", [1, 0]), (CLASSES, ["right", "wrong"])])
def test_even_split_is_a_case_whatever_the_queue_setting(scale: str, values: list[float | str | None]) -> None:
    assert case_reasons(rated_item(scale, values, adjudicate_from=0)) == (CaseReason.TIE,)


def test_adjudicated_item_has_no_distance() -> None:
    item = rated_item("levels 1..5", [1, 5])
    row = item.queue.metrics.get().metric
    assert load_case(item).max_distance == 4
    decide(item.answer, row, 3, "adjudication")
    assert load_case(item).max_distance == 0
    decide(item.answer, row, None, "revert")
    assert load_case(item).max_distance == 4


def test_withdrawn_item_is_not_a_case() -> None:
    item = rated_item("levels 1..5", [1, 5])
    ReviewItem.objects.update(state=ReviewItem.State.WITHDRAWN)
    assert case_reasons(item) == ()


def test_rest_lists_open_cases_newest_first_for_leads() -> None:
    run, row = run_over(answers_to(["a", "b", "c"]), judged=False), metric("own_measure", "levels 1..5")
    people = [make_user(), make_user()]
    queue = queue_for(run, [row], people, adjudicate_from=2)
    for answer in answer_rows(run):
        for reviewer, value in zip(people, (1, 5), strict=True):
            rate(assignment_of(queue, answer, reviewer, run), row, value)
    items = list(queue.items.order_by("pk"))
    decide(items[1].answer, row, 3, "adjudication")
    lead = Caller(Role.LEAD, queue.project)
    item_ids, address = [], "adjudication/?page_size=1"
    while address:
        page = lead.get(address).json()
        item_ids += [case_row["item"] for case_row in page["results"]]
        address = (page["next"] or "").partition(API)[2]
    assert item_ids == [items[2].pk, items[0].pk]
    assert lead.get("adjudication/", cursor="x").status_code == 400
    for role in (Role.REVIEWER, Role.EVALUATOR, None):
        assert Caller(role, queue.project).get("adjudication/").json()["results"] == []
