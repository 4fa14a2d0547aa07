"""Detection of locked material in prompts, in any spelling; ordinary wording passes."""

from __future__ import annotations

import pytest

from evaluation.judging.leak_check import repeats_material

ANSWER = "The warranty of the blue kettle ends two years after the day on which it was delivered."
KOREAN = "파란 주전자의 보증 기간은 배송된 날부터 이 년이 지나면 끝납니다."
SHIPPED = "Read the answer and the passages. Give 1 where nothing is right and 5 where everything is right."


@pytest.mark.parametrize(
    "prompt",
    [
        "Note: the warranty of the blue kettle ends two gives 2.",
        "THE WARRANTY, of the (blue) kettle -- ends two!",
        "the\nwarranty\tof  the blue kettle ends two",
        f"Full: {ANSWER}",
    ],
)
def test_eight_words_are_detected(prompt: str) -> None:
    assert repeats_material(prompt, [ANSWER], [])


@pytest.mark.parametrize("prompt", ["", SHIPPED, "the warranty of the blue kettle ends", "Be strict about warranties."])
def test_seven_words_and_other_wording_pass(prompt: str) -> None:
    assert not repeats_material(prompt, [ANSWER], [])


@pytest.mark.parametrize(
    "prompt",
    [
        "파란 주전자의 보증 기간은 배송된 날부터 4",
        "파란주전자의보증기간은배송된날부터",
        "“파란 주전자의, 보증 기간은 배송된 날부터”",
    ],
)
def test_twenty_korean_characters_are_detected(prompt: str) -> None:
    assert repeats_material(prompt, [KOREAN], [])


@pytest.mark.parametrize("prompt", ["파란 주전자의 보증 기간은", "보증 기간을 물으면 엄격하게 채점하세요."])
def test_fewer_korean_characters_pass(prompt: str) -> None:
    assert not repeats_material(prompt, [KOREAN], [])


@pytest.mark.parametrize("prompt", ["N7=2 N8=4 N12=5", "n7, n8 and n12 are bad", "[N7][N8][N12]"])
def test_three_ids_are_detected(prompt: str) -> None:
    assert repeats_material(prompt, [], ["N7", "N8", "N9", "N12"])


@pytest.mark.parametrize("prompt", ["N7=2 N8=4", "N77 N88 N129", "N7 N7 N7", "xN7 xN8 xN12"])
def test_two_ids_or_parts_of_words_pass(prompt: str) -> None:
    assert not repeats_material(prompt, [], ["N7", "N8", "N12"])


def test_levels_and_words_of_the_shipped_prompt_do_not_count_as_ids() -> None:
    ids = ["1", "2", "3", "4", "5", "answer", "passages", "right"]
    prompt = f"{SHIPPED} Levels: 1, 2, 3, 4, 5."
    assert not repeats_material(prompt, [], ids, shipped=SHIPPED, levels=["1", "2", "3", "4", "5"])
    assert repeats_material(prompt, [], ids, shipped=SHIPPED)


def test_short_texts_count_like_ids() -> None:
    texts = ["Two years later.", "Ask the shop.", "It is free of charge.", "Yes."]
    table = "two years later = 2; ask the shop = 4; it is free of charge = 5; yes = 1"
    assert repeats_material(table, texts, [])
    assert not repeats_material("two years later = 2; ask the shop = 4; yes = 1", texts, [])


def test_wording_in_open_texts_does_not_count_as_a_quotation() -> None:
    prompt = "Example: the warranty of the blue kettle ends two years after the day"
    assert not repeats_material(prompt, [ANSWER], [], open_texts=[f"Note: {ANSWER}"])
    assert repeats_material(prompt, [ANSWER], [], open_texts=["The warranty of the red kettle ends two years later."])
    ids = ["7", "9", "11"]
    assert repeats_material("7=1 9=2 11=2", [], ids, open_texts=["There are 7, 9 and 11 of them."])


def test_texts_are_matched_separately() -> None:
    assert not repeats_material(
        "the warranty of the blue red pan ends today", ["the warranty of the blue", "red pan ends today"], []
    )
