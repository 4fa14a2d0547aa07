"""The offline baseline judges every family in both languages, with reasons that can be translated."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import AnswerSpec, Nugget, QuestionSpec, Result, Status
from evaluation.judging import baseline
from evaluation.judging.catalogue import families
from evaluation.judging.lexical import BaselineReason, Grade, translate_reason
from tests.evaluation.judging.families.scripted import make_case
from tests.evaluation.judging.samples import answer, question, run_baseline

KO = {
    "question": "휴학은 몇 년까지 가능한가요?",
    "reference": "일반 휴학은 통산 3년까지 가능합니다(학칙 제21조).",
    "passages": ["제21조 일반 휴학은 통산 3년까지 가능하며 1회에 1년 이내로 한다.", "도서관은 평일 9시에 문을 연다."],
    "good": "일반 휴학은 통산 3년까지 가능합니다(학칙 제21조).",
    "bad": "휴학은 10년까지 되며 총장의 허가가 필요합니다.",
    "nugget": "통산 3년",
}
EN = {
    "question": "How long may a student be on leave?",
    "reference": "A student may be on leave for three years in total.",
    "passages": ["Leave of absence is limited to three years in total for each student.", "The library opens at nine."],
    "good": "A student may be on leave for three years in total.",
    "bad": "Leave is unlimited and needs the permission of the president.",
    "nugget": "three years in total",
}
TEXTS = {"ko": KO, "en": EN}


def judge_text(family: str, language: str, text: str, **fields: Any) -> dict[str, Result]:
    words = TEXTS[language]
    question_spec: QuestionSpec = question(
        str(words["question"]),
        **{
            "references": (str(words["reference"]),),
            "nuggets": (Nugget(name=str(words["nugget"])), Nugget(name="허가 신청서 form 7")),
            **fields,
        },
    )
    answer_spec: AnswerSpec = answer(text, list(words["passages"]))
    return run_baseline(make_case(family, question_spec, answer_spec, language=language))


def test_every_family_gets_a_result_for_every_metric() -> None:
    trap = {"category": "negative", "check": "should_not_hallucinate"}
    failures = []
    for family, language in product(families(), TEXTS):
        results = judge_text(family, language, str(TEXTS[language]["good"]), **trap)
        failed = {n: r for n, r in results.items() if r.status not in {Status.SCORED, Status.NOT_APPLICABLE}}
        if failed or not results:
            failures.append((family, language, failed))
    assert failures == []


@pytest.mark.parametrize("language", ["ko", "en"])
@pytest.mark.parametrize(
    "metric",
    [
        ("claims", "claim_support"),
        ("factual_accuracy", "factual_accuracy"),
        ("generation_faithfulness", "generation_faithfulness"),
        ("regulation_quality", "accuracy"),
        ("regulation_quality", "answer_completeness"),
        ("nuggets", "nugget_support"),
    ],
)
def test_a_good_answer_scores_above_a_bad_one(metric: tuple[str, str], language: str) -> None:
    family, name = metric
    good, bad = (judge_text(family, language, str(TEXTS[language][quality]))[name].value for quality in ("good", "bad"))
    assert good is not None
    assert bad is not None
    assert good > bad


@pytest.mark.parametrize("language", ["ko", "en"])
def test_passage_with_the_answer_is_relevant(language: str) -> None:
    results = judge_text("passages", language, "x")
    assert [f.verdict for f in results["context_precision"].findings] == ["relevant", "irrelevant"]
    assert results["context_average_precision"].value == 100.0
    assert judge_text("statements", language, "x")["context_recall"].value == 100.0


@pytest.mark.parametrize("language", ["ko", "en"])
def test_answer_class_follows_word_overlap(language: str) -> None:
    assert judge_text("answer_class", language, str(TEXTS[language]["good"]))["answer_class"].label == "CORRECT"
    assert judge_text("answer_class", language, str(TEXTS[language]["bad"]))["answer_class"].label == "WRONG"


@pytest.mark.parametrize(
    ("text", "label", "passed"),
    [
        ("달 지점에 대한 정보는 문서에 없습니다.", "abstain", 1.0),
        ("달 지점은 고요의 바다 12번지에 있습니다.", "fabricate", 0.0),
        ("도서관은 평일 9시에 문을 엽니다.", "answer", 0.0),
    ],
)
def test_negative_questions_are_labelled_by_predicates(text: str, label: str, passed: float) -> None:
    trap = {"category": "negative", "check": "should_not_hallucinate", "references": ("정보를 찾을 수 없습니다.",)}
    results = judge_text("negative_questions", "ko", text, **trap)
    assert (results["negative_label"].label, results["negative_detection"].value) == (label, passed)


def test_corrected_premise_is_labelled_differently_from_a_refusal() -> None:
    trap = {
        "category": "negative",
        "check": "should_correct_premise",
        "references": ("TIGER 200은 삼성자산운용이 아니라 미래에셋자산운용이 운용합니다.",),
    }
    text = "TIGER 200은 삼성자산운용이 아니라 미래에셋자산운용의 상품입니다."
    assert judge_text("negative_questions", "ko", text, **trap)["negative_label"].label == "correct_premise"


def test_clarifying_question_keeps_full_score_when_allowed() -> None:
    results = judge_text("regulation_quality", "ko", "어떤 휴학을 말씀하시나요?", clarification_ok=True)
    assert {result.value for result in results.values()} == {1.0}
    results = judge_text("regulation_quality", "ko", "어떤 휴학을 말씀하시나요?")
    assert results["accuracy"].value != 1.0


def test_only_the_two_lowest_levels_are_issues(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("accuracy", "answer_completeness", "citations", "context_relevance")
    for level, name in enumerate(names, start=1):
        grade = Grade(level, Bilingual(f"at {level}", f"{level}"), level / 5)
        monkeypatch.setitem(baseline.SCORERS, name, lambda _, grade=grade: grade)
    texts = [
        finding.text
        for result in judge_text("regulation_quality", "en", EN["good"]).values()
        for finding in result.findings
    ]
    assert [level for level in range(1, 5) if any(f"at {level}" in text for text in texts)] == [1, 2]


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("text", ["good", "bad"])
def test_every_reason_can_be_translated_to_the_other_language(language: str, text: str) -> None:
    target, reasons = {"ko": "en", "en": "ko"}[language], set()
    for family in families():
        for result in judge_text(family, language, str(TEXTS[language][text])).values():
            texts = [f.text.partition(": ")[2] for f in result.findings if f.kind in {"issue", "strength"}]
            texts += [f.reason for f in result.findings if f.reason and f.kind != "next_step"]
            reasons |= {result.reason, *texts} if result.status is Status.SCORED else set()
    translations = {reason: translate_reason(reason, target) for reason in reasons if reason}
    assert len(translations) > 5
    assert [reason for reason, translation in translations.items() if translation == reason] == []
    assert [
        reason for reason, translation in translations.items() if translate_reason(translation, language) != reason
    ] == []


@pytest.mark.parametrize("template", BaselineReason)
def test_every_template_translates_in_both_directions(template: BaselineReason) -> None:
    names = {"percent": 40, "count": 2, "total": 5, "weak": 1, "form": "0.5", "valid": 0.25}
    bilingual = template.format(**names, listed="3.5, 학칙, {leave}", offline="correctness")
    two_sentences = f"{bilingual.en} {BaselineReason.ECHO.value.en}"
    assert translate_reason(bilingual.en, "ko") == bilingual.ko == translate_reason(bilingual.ko, "ko")
    assert translate_reason(bilingual.ko, "en") == bilingual.en == translate_reason(bilingual.en, "en")
    assert translate_reason(two_sentences, "ko") == f"{bilingual.ko} {BaselineReason.ECHO.value.ko}"


def test_free_text_of_a_judge_is_not_translated() -> None:
    for text in ("", "The answer is right.", "Form 1. And more.", "Refuses as the reference does"):
        assert translate_reason(text, "ko") == text


def test_claim_with_citations_is_located_exactly() -> None:
    text = "Surely. Leave of absence [1] , is limited to three years [2]."
    (*_, finding) = judge_text("claims", "en", text)["claim_support"].findings
    assert (finding.text, finding.approximate) == ("Leave of absence, is limited to three years.", False)
    assert text[finding.start : finding.end] == text[len("Surely. ") :]
