"""Giving items to people: nobody twice, nobody too few, loads as even as they can be."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from review.statistics.sampling.draw import assign_by_load, assign_by_tag, assign_round_robin

PEOPLE = st.integers(1, 6).flatmap(
    lambda count: st.tuples(st.just(list(range(count))), st.lists(st.integers(1, count), max_size=40))
)


@given(PEOPLE)
def test_in_turn_nobody_has_two_more_than_another_and_no_item_one_person_twice(
    table: tuple[list[int], list[int]],
) -> None:
    people, needs = table
    dealt = assign_round_robin(needs, people)
    assert [len(set(ones)) for ones in dealt] == needs
    counts = Counter(one for ones in dealt for one in ones)
    assert max(counts.values(), default=0) - min(counts[one] for one in people) <= 1


@given(PEOPLE, st.dictionaries(st.integers(0, 5), st.integers(0, 30)))
def test_by_load_no_item_goes_to_somebody_who_had_more_than_one_it_passed_over(
    table: tuple[list[int], list[int]], loads: dict[int, int]
) -> None:
    people, needs = table
    having = {one: loads.get(one, 0) for one in people}
    for need, ones in zip(needs, assign_by_load(needs, people, loads), strict=True):
        assert len(set(ones)) == need
        others = [having[one] for one in people if one not in ones]
        assert max(having[one] for one in ones) <= min(others, default=10**9)
        for one in ones:
            having[one] += 1


def test_by_field_goes_to_who_has_one_of_the_tags() -> None:
    tags = [("tax",), ("law", "tax"), ("other",)]
    # the first to 1; the second to 2, who has less; the third fits nobody: 3 has nothing yet
    assert assign_by_tag([1, 1, 1], tags, [1, 2, 3], {"tax": [1], "law": [2]}, {}) == [(1,), (2,), (3,)]
    with pytest.raises(DomainError) as refused:
        assign_by_tag([2], [("tax", "other")], [1, 2], {"tax": [1], "law": [2]}, {})
    assert refused.value.code == "too_few_for_tag"
    assert refused.value.params == {"tags": ["tax"], "needed": 2, "people": 1}


def test_more_people_than_there_are_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="more people"):
        assign_round_robin([2], [1])
