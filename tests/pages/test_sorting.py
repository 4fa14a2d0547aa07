"""Column heads that sort a list."""

from __future__ import annotations

from django.http import QueryDict

from evaluation.templatetags.sorting import ListOrder, SortableHead, sorted_fields

COLUMNS = {"name": "title", "count": "answers"}


def order_of(query: str) -> ListOrder[str]:
    return ListOrder(QueryDict(query), COLUMNS)


def test_head_sorts_up_then_down_then_not_at_all() -> None:
    unsorted, up, down = (order_of(query) for query in ("", "order=name", "order=-name"))
    assert unsorted.head("name") == SortableHead("?order=name", "")
    assert up.head("name") == SortableHead("?order=-name", "ascending")
    assert down.head("name") == SortableHead("?", "descending")
    assert up.head("count") == SortableHead("?order=count", "")
    assert [sorted_fields(order) for order in (unsorted, up, down)] == [[], ["title"], ["-title"]]


def test_unknown_columns_are_ignored() -> None:
    for query in ("order=password", "order=--name", "order=-", "order=title"):
        order = order_of(query)
        assert (sorted_fields(order), order.value, order.page_query(2)) == ([], "", "?page=2")


def test_filters_stay_and_the_page_starts_again() -> None:
    order = order_of("q=a%26b&order=-count&page=3&state=done")
    assert order.head("name").url == "?q=a%26b&state=done&order=name"
    assert order.page_query(4) == "?q=a%26b&state=done&order=-count&page=4"
