"""Two answers word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from review.comparisons.answers import MAX_WORDS, ChangeKind, Stretch, text_difference

SAME, REMOVED, ADDED = ChangeKind.SAME, ChangeKind.REMOVED, ChangeKind.ADDED


def test_words_are_compared_and_not_letters() -> None:
    assert text_difference("The capital is Paris.", "The capital is Perth.") == (
        Stretch(SAME, "The capital is "),
        Stretch(REMOVED, "Paris"),
        Stretch(ADDED, "Perth"),
        Stretch(SAME, "."),
    )


def test_changes_with_only_a_space_between_them_are_one() -> None:
    assert text_difference("수도는 파리 시입니다", "수도는 퍼스 입니다") == (
        Stretch(SAME, "수도는 "),
        Stretch(REMOVED, "파리 시입니다"),
        Stretch(ADDED, "퍼스 입니다"),
    )


def test_equal_and_empty_texts() -> None:
    assert text_difference("same", "same") == (Stretch(SAME, "same"),)
    assert text_difference("", "new") == (Stretch(ADDED, "new"),)
    assert text_difference("", "") == ()


def test_long_texts_are_compared_by_the_line() -> None:
    before = "\n".join(f"word {n}" for n in range(MAX_WORDS))
    after = before.replace("word 7\n", "other 7\n")
    assert [one for one in text_difference(before, after) if one.change is not SAME] == [
        Stretch(REMOVED, "word 7\n"),
        Stretch(ADDED, "other 7\n"),
    ]


@given(before=st.text("ab .\n가", max_size=40), after=st.text("ab .\n가", max_size=40))
def test_both_texts_can_be_read_from_the_difference(before: str, after: str) -> None:
    found = text_difference(before, after)
    assert "".join(one.text for one in found if one.change is not ADDED) == before
    assert "".join(one.text for one in found if one.change is not REMOVED) == after
