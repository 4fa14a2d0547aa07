"""Word-by-word difference of two answers."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from review.comparisons.answers import MAX_PIECES, ChangeKind, Stretch, text_difference

SAME, REMOVED, ADDED = ChangeKind.SAME, ChangeKind.REMOVED, ChangeKind.ADDED


def test_texts_are_compared_by_words_not_letters() -> None:
    assert text_difference("The capital is Paris.", "The capital is Perth.") == (
        Stretch(SAME, "The capital is "),
        Stretch(REMOVED, "Paris"),
        Stretch(ADDED, "Perth"),
        Stretch(SAME, "."),
    )


def test_changes_separated_by_a_space_are_merged() -> None:
    assert text_difference("수도는 파리 시입니다", "수도는 퍼스 입니다") == (
        Stretch(SAME, "수도는 "),
        Stretch(REMOVED, "파리 시입니다"),
        Stretch(ADDED, "퍼스 입니다"),
    )


def test_equal_and_empty_texts() -> None:
    assert text_difference("same", "same") == (Stretch(SAME, "same"),)
    assert text_difference("", "new") == (Stretch(ADDED, "new"),)
    assert text_difference("", "") == ()


def test_long_texts_are_compared_by_line() -> None:
    old_text = "\n".join(f"word {n}" for n in range(MAX_PIECES))
    new_text = old_text.replace("word 7\n", "other 7\n")
    assert [span for span in text_difference(old_text, new_text) if span.change is not SAME] == [
        Stretch(REMOVED, "word 7\n"),
        Stretch(ADDED, "other 7\n"),
    ]


def test_texts_of_too_many_lines_are_compared_as_a_whole() -> None:
    old_text, new_text = "a\n" * (MAX_PIECES + 1), "b\n"
    assert text_difference(old_text, new_text) == (Stretch(REMOVED, old_text), Stretch(ADDED, new_text))
    assert text_difference(old_text, old_text) == (Stretch(SAME, old_text),)
    assert text_difference(old_text, "") == (Stretch(REMOVED, old_text),)


def test_time_for_repeated_words_does_not_grow_with_the_cube() -> None:
    def seconds(words: int) -> float:
        start = process_time()
        text_difference("a " * words, "b a " * (words // 2))
        return process_time() - start

    assert 3 * seconds(500) + 0.5 > seconds(1_000)


@given(old_text=st.text("ab .\n가", max_size=40), new_text=st.text("ab .\n가", max_size=40))
def test_both_texts_can_be_rebuilt_from_the_difference(old_text: str, new_text: str) -> None:
    spans = text_difference(old_text, new_text)
    assert "".join(span.text for span in spans if span.change is not ADDED) == old_text
    assert "".join(span.text for span in spans if span.change is not REMOVED) == new_text
