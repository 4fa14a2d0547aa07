from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.judging.baseline import best_match, word_support
from evaluation.judging.lexical import (
    Words,
    contains_negation,
    content_words,
    coverage,
    faithfulness,
    is_denial,
    is_refusal,
    level_for_share,
    names_any,
    words_of_all,
)
from evaluation.judging.prose import quoted_sentences, sentences


def surfaces(text: str) -> list[str]:
    return [word.surface for word in content_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("휴학은 3년까지 가능합니다.", ["휴학", "3", "년", "가능"]),
        ("총보수는 연 0.15%입니다", ["총보수", "연", "0.15"]),
        ("1,000억원", ["1000", "억원"]),
        ("The fees of the funds", ["fee", "fund"]),
        ("ＡＢＣ", ["abc"]),
        ("그리고 또한 is the", ["또한"]),
        ("?!", []),
    ],
)
def test_content_words_have_no_particles_stop_words_or_grouping_commas(text: str, words: list[str]) -> None:
    assert surfaces(text) == words


def test_content_words_ignore_unicode_decomposition() -> None:
    assert surfaces("\u1109\u1161\u11b7\u1109\u1165\u11bc") == surfaces("삼성")


def test_coverage_is_the_mean_share_of_each_required_word() -> None:
    required = content_words("삼성전자 배당 2024")
    # 삼성전자 has the pairs 삼성, 성전, 전자; "삼성 전자" holds two of them: 2/3. 배당: 0. 2024: 1. Mean: 5/9.
    assert coverage(required, content_words("삼성 전자, 2024")) == pytest.approx(5 / 9)
    assert coverage(required, content_words("전자")) == 0  # a third of the pairs is chance
    assert coverage(Words(), content_words("x")) == 1.0


@pytest.mark.parametrize(
    ("share", "level"), [(1, 5), (0.9, 5), (0.89, 4), (0.7, 4), (0.45, 3), (0.2, 2), (0.19, 1), (0, 1)]
)
def test_levels_begin_at_fixed_shares(share: float, level: int) -> None:
    assert level_for_share(share) == level


def test_faithfulness_is_the_mean_share_of_supported_words_over_the_sentences() -> None:
    # "oak" and "old" of the first sentence stand in the passage, nothing of the second: (1 + 0) / 2
    answer = AnswerSpec(text="The oak is old. Pines fly quickly.", contexts=(ContextSpec(text="An old oak."),))
    assert faithfulness(QuestionSpec(id="q", category="c", text="What grows?"), answer).share == pytest.approx(0.5)


def test_point_is_named_with_four_fifths_of_its_words() -> None:
    point = ["alpha beta gamma delta epsilon"]
    assert names_any(point, content_words("alpha beta gamma delta"))
    assert not names_any(point, content_words("alpha beta gamma"))


def test_best_match_contains_most_words_and_is_none_without_any() -> None:
    words = content_words("oak elm")
    assert best_match(words, ["pine", "oak", "oak and elm"]) == 2
    assert best_match(words, ["oak", "elm"]) == 0
    assert best_match(words, ["pine"]) is None
    assert best_match(words, []) is None


def test_support_quotes_the_sentence_with_most_of_the_claim() -> None:
    passages = ["Pines are green.", "It is old. The oak grows in Seoul since 1900."]
    support = word_support("The oak grows in Seoul.", passages, words_of_all(passages), "")
    assert (support.context, support.quote) == (1, "The oak grows in Seoul since 1900.")
    assert (support.verdict, support.reason.en) == ("supported", "100% of its words are in the passages.")


def test_numbers_are_the_words_in_digits() -> None:
    assert content_words("제15조에 따라 1,200원").numbers == {"15", "1200"}


def test_source_marks_are_not_sentences() -> None:
    assert sentences("연 3년이다. [출처: 학칙 제21조] Then more. [Source: a]") == ("연 3년이다.", "Then more.")


def test_source_marks_are_removed_without_gaps_and_quotes_stay_verbatim() -> None:
    text = "월세는 [1], [2] 매월\t말일에 냅니다 [3] . [4] The rent [5] (출처 6), 1 [7].5 is due[8]!"
    pairs = quoted_sentences(text)
    assert [sentence for sentence, _ in pairs] == ["월세는, 매월 말일에 냅니다.", "The rent, 1 .5 is due!"]
    assert [quote for _, quote in pairs] == [text[: text.index(" [4]")], text[text.index("The") :]]


@pytest.mark.parametrize(
    "text",
    [
        "해당 정보를 찾을 수 없습니다.",
        "제공된 문서에서 확인할 수 없습니다.",
        "문서에는 그 내용이 없습니다.",
        "잘 모르겠습니다.",
        "I could not find this in the documents.",
        "The documents do not mention a branch on the moon.",
        "There is no information about it.",
    ],
)
def test_refusals_are_recognized(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "문제없습니다.",
        "1회에 1년을 넘을 수 없습니다.",
        "수수료가 없습니다.",
        "정보 없이도 가능합니다.",
        "끊임없이 노력합니다.",
        "원금은 보장되지 않습니다.",
        "Fees are not charged.",
        "There is no fee for early repayment.",
        "한도는 5년입니다. 기간은 3년입니다. 그 밖의 내용은 문서에 없습니다.",
    ],
)
def test_answers_are_not_refusals(text: str) -> None:
    assert not is_refusal(text)


def test_denial_of_existence_is_not_a_refusal() -> None:
    assert is_denial("그런 지점은 존재하지 않습니다.")
    assert is_denial("There is no such fund.")
    assert not is_denial("문제가 없습니다.")
    assert contains_negation("원금은 보장되지 않습니다.")
    assert not contains_negation("손실 없이 원금이 보장됩니다.")


@given(st.text())
def test_any_text_can_be_analyzed(text: str) -> None:
    assert 0.0 <= coverage(content_words(text), content_words(text[::-1])) <= 1.0
    assert isinstance(is_refusal(text) or is_denial(text) or contains_negation(text), bool)
