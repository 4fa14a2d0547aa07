"""Pairs: drawn from two runs, rated blind on random sides, judged in both orders, imported and compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contrib.pairs.figures import pair_figures
from contrib.pairs.models import PairSet, Preference
from contrib.pairs.services import import_pairs, is_swapped, last_rated_pair, make_pairs, pair_card, store_preference
from evaluation.core.errors import DomainError, InvalidFile
from evaluation.core.roles import Role
from evaluation.models import Run
from tests.factories import make_answer_set, make_project, make_question_set, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def two_runs(questions: int = 6) -> tuple[Run, Run]:
    asked = make_question_set(specs=questions)
    wrong = make_answer_set(asked, texts=["I know nothing about it."])
    return make_scored_run(make_answer_set(asked)), make_scored_run(wrong)


def compared(questions: int = 6, people: int = 2, size: int = 6) -> PairSet:
    a, b = two_runs(questions)
    reviewers = [make_user(Role.REVIEWER, a.project) for _ in range(people)]
    return make_pairs(a, b, name="blind", reviewers=reviewers, size=size, seed=3)


def members(found: PairSet) -> list[Any]:
    return [member.reviewer for member in found.members.order_by("id").select_related("reviewer")]


def test_a_set_draws_questions_that_both_runs_answered() -> None:
    found = compared(size=4)
    assert found.pairs.count() == 4
    pair = found.pairs.order_by("position").first()
    assert pair is not None
    assert pair.answer_a is not None
    assert (pair.text_a, pair.text_b) == (pair.answer_a.text, "I know nothing about it.")
    assert pair.system_a != pair.system_b


def test_what_cannot_be_compared_is_refused() -> None:
    a, b = two_runs(2)
    person = make_user(Role.REVIEWER, a.project)
    with pytest.raises(DomainError, match="pairs_same_answers"):
        make_pairs(a, a, name="x", reviewers=[person])
    with pytest.raises(DomainError, match="no_reviewers"):
        make_pairs(a, b, name="x", reviewers=[])
    with pytest.raises(DomainError, match="not_in_project"):
        make_pairs(a, b, name="x", reviewers=[make_user()])
    make_pairs(a, b, name="x", reviewers=[person])
    with pytest.raises(DomainError, match="pair_set_exists"):
        make_pairs(a, b, name="x", reviewers=[person])


def test_sides_are_drawn_for_each_person_and_stay() -> None:
    found = compared(questions=40, size=40)
    one, other = members(found)
    pairs = list(found.pairs.all())
    sides = [is_swapped(found, pair, one) for pair in pairs]
    assert sides == [is_swapped(found, pair, one) for pair in pairs]
    assert sides != [is_swapped(found, pair, other) for pair in pairs]
    assert 8 <= sum(sides) <= 32  # 40 fair coins: outside with probability below 0.0002
    card = pair_card(found, one)
    assert card is not None
    assert {card.left, card.right} == {card.pair.text_a, card.pair.text_b}


def test_a_preference_is_kept_towards_b_whatever_the_side() -> None:
    found = compared(questions=20, people=1, size=20)
    (me,) = members(found)
    seen = set()
    while card := pair_card(found, me):
        left_is_right_answer = card.left == card.pair.text_a
        store_preference(found, card.pair, me, -2 if left_is_right_answer else 2)  # A is the right one, each time
        seen.add(card.swapped)
    assert seen == {True, False}
    assert {row.value for row in Preference.objects.all()} == {-2.0}
    figures = pair_figures(found)["preference"]
    assert (figures.experts.n, figures.experts.mean, figures.experts.a) == (20, -2.0, 20)


def test_the_same_decision_twice_is_one_and_another_one_counts_instead() -> None:
    found = compared(people=1)
    (me,) = members(found)
    card = pair_card(found, me)
    assert card is not None
    for _ in range(2):
        store_preference(found, card.pair, me, 1)
    assert Preference.objects.count() == 1
    store_preference(found, card.pair, me, 0, reason="on second thought")
    assert [row.round for row in Preference.objects.order_by("id")] == [0, 1]
    assert pair_figures(found)["preference"].experts.ties == 1
    assert last_rated_pair(found, me) == card.pair.pk
    again = pair_card(found, me, card.pair.pk)
    assert again is not None
    assert (again.preference, again.reason) == (0, "on second thought")


def test_a_closed_set_and_a_value_off_the_scale_are_refused() -> None:
    found = compared(people=1)
    (me,) = members(found)
    pair = found.pairs.first()
    assert pair is not None
    with pytest.raises(DomainError, match="preference_range"):
        store_preference(found, pair, me, 3)
    PairSet.objects.update(closed_at=found.created_at)
    with pytest.raises(DomainError, match="pairs_closed"):
        store_preference(found, pair, me, 1)


def row(pair: str, value: Any, author: str, **fields: Any) -> dict[str, Any]:
    sides = {"answer_a": {"system": "s1", "answer": f"A {pair}"}, "answer_b": {"system": "s2", "answer": f"B {pair}"}}
    given = {"pair_id": pair, "question": f"Q {pair}", **sides, "value": value, "author": author, "rater": "human"}
    return given | fields


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(one) for one in rows).encode()


def test_a_file_of_preferences_becomes_a_set_once() -> None:
    project = make_project()
    content = lines(
        row("p1", -1, "kim"), row("p1", -2, "lee"), row("p1", -0.25, "ragchecker@1", rater="judge"),
        row("p2", 2, "kim"), row("p2", 1, "lee"), row("p2", None, "ragchecker@1", rater="judge", reason="parse"),
    )  # fmt: skip
    done = import_pairs(project, content, "pairs.jsonl", "imported")
    assert (done.pairs, done.human, done.judge, done.failed, done.unchanged) == (2, 4, 2, 1, 0)
    assert import_pairs(project, content, "pairs.jsonl", "imported").unchanged == 6
    figures = pair_figures(PairSet.objects.get())["preference"]
    assert (figures.experts.mean, figures.experts.a, figures.experts.b) == (0.0, 1, 1)  # -1.5 and 1.5
    assert figures.raters == ("kim", "lee")
    assert (figures.judges["ragchecker@1"].mean, figures.judges["ragchecker@1"].failed) == (-0.25, 1)


def test_a_preference_that_the_next_file_gives_differently_counts_instead() -> None:
    project = make_project()
    import_pairs(project, lines(row("p1", -1, "kim"), row("p2", 2, "kim")), "pairs.jsonl", "imported")
    done = import_pairs(project, lines(row("p1", 1, "kim"), row("p2", 2, "kim")), "pairs.jsonl", "imported")
    assert (done.pairs, done.human, done.unchanged) == (0, 1, 1)
    assert pair_figures(PairSet.objects.get())["preference"].experts.mean == 1.5  # of 1 and 2
    assert Preference.objects.count() == 3  # what was said first stays


def test_a_pair_that_changes_and_a_row_without_one_refuse_the_file() -> None:
    project = make_project()
    with pytest.raises(InvalidFile) as refused:
        import_pairs(project, lines(row("p1", 1, "kim"), row("p1", 1, "lee", question="Other?")), "x.jsonl", "n")
    assert [(p.code, p.line) for p in refused.value.problems] == [("pair_differs", 2)]
    assert not PairSet.objects.exists()
