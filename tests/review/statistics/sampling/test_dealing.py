"""Distribution of items to reviewers: no duplicates, enough reviewers, balanced loads."""

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
def test_round_robin_is_balanced_and_gives_no_item_twice_to_a_person(
    table: tuple[list[int], list[int]],
) -> None:
    people, needs = table
    assignments = assign_round_robin(needs, people)
    assert [len(set(assigned)) for assigned in assignments] == needs
    counts = Counter(person for assigned in assignments for person in assigned)
    assert max(counts.values(), default=0) - min(counts[person] for person in people) <= 1


@given(PEOPLE, st.dictionaries(st.integers(0, 5), st.integers(0, 30)))
def test_by_load_prefers_people_with_lower_loads(table: tuple[list[int], list[int]], loads: dict[int, int]) -> None:
    people, needs = table
    current_loads = {person: loads.get(person, 0) for person in people}
    for need, assigned in zip(needs, assign_by_load(needs, people, loads), strict=True):
        assert len(set(assigned)) == need
        skipped_loads = [current_loads[person] for person in people if person not in assigned]
        assert max(current_loads[person] for person in assigned) <= min(skipped_loads, default=10**9)
        for person in assigned:
            current_loads[person] += 1


def test_by_tag_assigns_people_with_a_matching_tag() -> None:
    tags = [("tax",), ("law", "tax"), ("other",)]
    # the first to 1; the second to 2, who has less; the third fits nobody: 3 has nothing yet
    assert assign_by_tag([1, 1, 1], tags, [1, 2, 3], {"tax": [1], "law": [2]}, {}) == [(1,), (2,), (3,)]
    with pytest.raises(DomainError) as error_info:
        assign_by_tag([2], [("tax", "other")], [1, 2], {"tax": [1], "law": [2]}, {})
    assert error_info.value.code == "too_few_for_tag"
    assert error_info.value.params == {"tags": ["tax"], "needed": 2, "people": 1}


def test_more_reviewers_than_people_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="more people"):
        assign_round_robin([2], [1])
