"""Pairs: drawn from two runs, rated blind on random sides, judged in both orders, imported and compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contrib.pairs.figures import pair_figures
from contrib.pairs.models import PairSet, Preference
from contrib.pairs.services import import_pairs, is_swapped, last_rated_pair, make_pairs, pair_card, store_preference
from evaluation.accounts import audit
from evaluation.accounts.password_links import distrust
from evaluation.core.errors import DomainError, InvalidFile
from evaluation.core.roles import Role
from evaluation.models import Run
from tests.factories import make_answer_set, make_project, make_question_set, make_scored_run, make_user
from tests.tampering import flaws_of_changes

pytestmark = pytest.mark.django_db


def two_runs(questions: int = 6) -> tuple[Run, Run]:
    question_set = make_question_set(specs=questions)
    wrong_answers = make_answer_set(question_set, texts=["I know nothing about it."])
    return make_scored_run(make_answer_set(question_set)), make_scored_run(wrong_answers)


def make_comparison(questions: int = 6, reviewer_count: int = 2, size: int = 6) -> PairSet:
    a, b = two_runs(questions)
    reviewers = [make_user(Role.REVIEWER, a.project) for _ in range(reviewer_count)]
    return make_pairs(a, b, name="blind", reviewers=reviewers, size=size, seed=3)


def members(pair_set: PairSet) -> list[Any]:
    return [member.reviewer for member in pair_set.members.order_by("id").select_related("reviewer")]


def test_comparison_draws_questions_answered_by_both_runs() -> None:
    pair_set = make_comparison(size=4)
    assert pair_set.pairs.count() == 4
    pair = pair_set.pairs.order_by("position").first()
    assert pair is not None
    assert pair.answer_a is not None
    assert (pair.text_a, pair.text_b) == (pair.answer_a.text, "I know nothing about it.")
    assert pair.system_a != pair.system_b


def test_invalid_comparison_is_refused() -> None:
    a, b = two_runs(2)
    reviewer = make_user(Role.REVIEWER, a.project)
    with pytest.raises(DomainError, match="pairs_same_answers"):
        make_pairs(a, a, name="x", reviewers=[reviewer])
    with pytest.raises(DomainError, match="no_reviewers"):
        make_pairs(a, b, name="x", reviewers=[])
    with pytest.raises(DomainError, match="not_in_project"):
        make_pairs(a, b, name="x", reviewers=[make_user()])
    make_pairs(a, b, name="x", reviewers=[reviewer])
    with pytest.raises(DomainError, match="pair_set_exists"):
        make_pairs(a, b, name="x", reviewers=[reviewer])


def test_sides_are_drawn_per_reviewer_and_stay() -> None:
    pair_set = make_comparison(questions=40, size=40)
    first_reviewer, second_reviewer = members(pair_set)
    pairs = list(pair_set.pairs.all())
    sides = [is_swapped(pair_set, pair, first_reviewer) for pair in pairs]
    assert sides == [is_swapped(pair_set, pair, first_reviewer) for pair in pairs]
    assert sides != [is_swapped(pair_set, pair, second_reviewer) for pair in pairs]
    assert 8 <= sum(sides) <= 32  # 40 fair coins: outside with probability below 0.0002
    card = pair_card(pair_set, first_reviewer)
    assert card is not None
    assert {card.left, card.right} == {card.pair.text_a, card.pair.text_b}


def test_preference_is_stored_towards_b_on_any_side() -> None:
    pair_set = make_comparison(questions=20, reviewer_count=1, size=20)
    (me,) = members(pair_set)
    swaps = set()
    while card := pair_card(pair_set, me):
        left_is_right_answer = card.left == card.pair.text_a
        store_preference(pair_set, card.pair, me, -2 if left_is_right_answer else 2)  # A is the right one, each time
        swaps.add(card.swapped)
    assert swaps == {True, False}
    assert {row.value for row in Preference.objects.all()} == {-2.0}
    figures = pair_figures(pair_set)["preference"]
    assert (figures.experts.n, figures.experts.mean, figures.experts.a) == (20, -2.0, 20)


def test_repeated_decision_is_stored_once_and_a_new_one_supersedes() -> None:
    pair_set = make_comparison(reviewer_count=1)
    (me,) = members(pair_set)
    card = pair_card(pair_set, me)
    assert card is not None
    for _ in range(2):
        store_preference(pair_set, card.pair, me, 1)
    assert Preference.objects.count() == 1
    store_preference(pair_set, card.pair, me, 0, reason="on second thought")
    assert [row.round for row in Preference.objects.order_by("id")] == [0, 1]
    assert pair_figures(pair_set)["preference"].experts.ties == 1
    assert last_rated_pair(pair_set, me) == card.pair.pk
    reopened = pair_card(pair_set, me, card.pair.pk)
    assert reopened is not None
    assert (reopened.preference, reopened.reason) == (0, "on second thought")


def test_a_closed_set_and_a_value_off_the_scale_are_refused() -> None:
    pair_set = make_comparison(reviewer_count=1)
    (me,) = members(pair_set)
    pair = pair_set.pairs.first()
    assert pair is not None
    with pytest.raises(DomainError, match="preference_range"):
        store_preference(pair_set, pair, me, 3)
    PairSet.objects.update(closed_at=pair_set.created_at)
    with pytest.raises(DomainError, match="pairs_closed"):
        store_preference(pair_set, pair, me, 1)


def row(pair: str, value: Any, author: str, **fields: Any) -> dict[str, Any]:
    sides = {"answer_a": {"system": "s1", "answer": f"A {pair}"}, "answer_b": {"system": "s2", "answer": f"B {pair}"}}
    record = {"pair_id": pair, "question": f"Q {pair}", **sides, "value": value, "author": author, "rater": "human"}
    return record | fields


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(record) for record in rows).encode()


def test_file_of_preferences_becomes_a_set_once() -> None:
    project = make_project()
    content = lines(
        row("p1", -1, "kim"), row("p1", -2, "lee"), row("p1", -0.25, "ragchecker@1", rater="judge"),
        row("p2", 2, "kim"), row("p2", 1, "lee"), row("p2", None, "ragchecker@1", rater="judge", reason="parse"),
    )  # fmt: skip
    imported = import_pairs(project, content, "pairs.jsonl", "imported")
    assert (imported.pairs, imported.human, imported.judge, imported.failed, imported.unchanged) == (2, 4, 2, 1, 0)
    assert import_pairs(project, content, "pairs.jsonl", "imported").unchanged == 6
    figures = pair_figures(PairSet.objects.get())["preference"]
    assert (figures.experts.mean, figures.experts.a, figures.experts.b) == (0.0, 1, 1)  # -1.5 and 1.5
    assert figures.raters == ("kim", "lee")
    assert (figures.judges["ragchecker@1"].mean, figures.judges["ragchecker@1"].failed) == (-0.25, 1)


def test_changed_preference_of_the_next_file_supersedes() -> None:
    project = make_project()
    import_pairs(project, lines(row("p1", -1, "kim"), row("p2", 2, "kim")), "pairs.jsonl", "imported")
    imported = import_pairs(project, lines(row("p1", 1, "kim"), row("p2", 2, "kim")), "pairs.jsonl", "imported")
    assert (imported.pairs, imported.human, imported.unchanged) == (0, 1, 1)
    assert pair_figures(PairSet.objects.get())["preference"].experts.mean == 1.5  # of 1 and 2
    assert Preference.objects.count() == 3  # what was said first stays


def test_changed_pair_or_row_without_a_pair_refuses_the_file() -> None:
    project = make_project()
    with pytest.raises(InvalidFile) as error:
        import_pairs(project, lines(row("p1", 1, "kim"), row("p1", 1, "lee", question="Other?")), "x.jsonl", "n")
    assert [(p.code, p.line) for p in error.value.problems] == [("pair_differs", 2)]
    assert not PairSet.objects.exists()


@pytest.mark.slow
@pytest.mark.both_databases
def test_changes_of_preferences_and_pairs_are_found_by_the_audit() -> None:
    pair_set = make_comparison()
    (person, _) = members(pair_set)
    pair = pair_set.pairs.first()
    assert pair is not None
    store_preference(pair_set, pair, person, 1, reason="clear")
    audit.seal_rows()
    changes = {
        "UPDATE pairs_preference SET value = 2": "rows_differ",
        "UPDATE pairs_preference SET reason = 'another'": "texts_differ",
        "DELETE FROM pairs_preference": "rows_differ",
        "UPDATE pairs_pair SET text_a = 'another' WHERE position = 1": "rows_differ",
        "UPDATE pairs_pairset SET seed = 9": "rows_differ",
    }
    found = flaws_of_changes({statement: statement for statement in changes})
    assert found == {statement: {code} for statement, code in changes.items()}


def test_pairs_cannot_be_rated_with_a_password_by_another_persons_link() -> None:
    pair_set = make_comparison()
    (person, _) = members(pair_set)
    pair = pair_set.pairs.first()
    assert pair is not None
    distrust(person)
    with pytest.raises(DomainError, match="password_by_others_link"):
        store_preference(pair_set, pair, person, 1)
