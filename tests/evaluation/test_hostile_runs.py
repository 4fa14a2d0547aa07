"""Text of answers, passages and judges is read in time that grows with its length: no pattern reads a run again from
each of its characters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import NEGATIVE_CATEGORY, AnswerSpec, CheckPhrases, ContextSpec, Nugget, QuestionSpec
from evaluation.judging import lexical, prose
from evaluation.judging.prechecks import skip_reason
from evaluation.judging.prompt import locate_quote
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.metrics.citations import references_in_forms
from evaluation.metrics.matching import compile_keyword
from review.ratings.pages.item import claim_text, shared_phrases
from tests.hostile_runs import RUNS, assert_linear

QUESTION = QuestionSpec(
    id="q",
    category=NEGATIVE_CATEGORY,
    text="신청 기간은 언제인가요?",
    references=("신청은 30일 안에 합니다.",),
    keywords=(("30일", "삼십일"), ("신청 기간",), ("ab 12",)),
    required_info=("신청 기간",),
    nuggets=(Nugget(name="장소", alternatives=("수거함",)),),
    check_phrases=CheckPhrases(any_of=("없습니다",)),
    ground_truth_chunk_ids=("k",),
    clarification_ok=True,
)
SETTINGS = RuleSettings(phrases={"forbidden_names": ("서울대",), "own_names": ("국민대",)})
PASSAGE = ContextSpec("신청은 30일 안에 제15조에 따라 합니다. 문의 02-123-4567", "k", 0.5, "등록금 규정")
ANSWER = AnswerSpec("신청은 30일 안에 확인하세요. 문의 02-888-9999 [1]", (PASSAGE,))
QUOTE = "신청은 30일 안에 다른 창구에서"


def rule_metrics(question: QuestionSpec, answer: AnswerSpec) -> None:
    for metric in RULE_METRICS:
        metric(question, answer, SETTINGS)


READERS: dict[str, Callable[[str], object]] = {
    "metrics of an answer": lambda text: rule_metrics(QUESTION, AnswerSpec(text, (PASSAGE,))),
    "metrics of a passage": lambda text: rule_metrics(QUESTION, AnswerSpec(ANSWER.text, (ContextSpec(text, "k"),))),
    "metrics of a question": lambda text: rule_metrics(QUESTION.model_copy(update={"text": text}), ANSWER),
    "baseline": lambda text: (
        lexical.correctness(QUESTION, AnswerSpec(text, (PASSAGE,))),
        lexical.faithfulness(QUESTION, AnswerSpec(text, (PASSAGE,))),
        lexical.contains_negation(text),
        lexical.translate_reason(text, "ko"),
        skip_reason(QUESTION, AnswerSpec(text)),
    ),
    "prose": lambda text: (prose.prose(text), prose.quoted_sentences(text)),
    "quotes": lambda text: (locate_quote(QUOTE, text), locate_quote(text, ANSWER.text), locate_quote(QUOTE, text, 5)),
    "keyword": lambda text: (compile_keyword(text), references_in_forms(text, ("Section {n}", "제{n}조의{n}"))),
    "review card": lambda text: (claim_text(text), claim_text(f"|{text}"), shared_phrases(text, ANSWER.text)),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("run", RUNS)
def test_time_grows_with_the_length_of_the_text(reader: str, run: str) -> None:
    assert_linear(READERS[reader], RUNS[run])
