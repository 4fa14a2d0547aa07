"""Values by hand, and the declarations as Concord checks them."""

from __future__ import annotations

import pytest
from reader_metrics import PACKAGE
from reader_metrics.politeness import FAMILY
from reader_metrics.short_sentences import short_sentences

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Status
from evaluation.judging.calls import JudgeCase, JudgeDialog, ParsedReply
from evaluation.judging.rubric import parse_rubric
from evaluation.metric_packages.discovery import PackageSource
from evaluation.metric_packages.loading import load_package
from evaluation.network.outcomes import Outcome

QUESTION = QuestionSpec(id="q1", category="single_hop", text="When does the library open?")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It opens at nine.", 1.0),
        # 26 words, then 2: one of two sentences is short.
        (" ".join(["word"] * 26) + ". At nine.", 0.5),
        ("아홉 시에 엽니다.", 1.0),
    ],
)
def test_share_of_short_sentences(text: str, value: float) -> None:
    assert short_sentences(QUESTION, AnswerSpec(text), RuleSettings()).value == value


def test_long_sentence_is_a_finding_with_its_place() -> None:
    text = "At nine. " + " ".join(["word"] * 26) + "."
    (finding,) = short_sentences(QUESTION, AnswerSpec(text), RuleSettings()).findings
    assert text[finding.start : finding.end].strip() == finding.text == text[9:]


def test_answer_without_sentences_is_not_applicable() -> None:
    assert short_sentences(QUESTION, AnswerSpec(" … "), RuleSettings()).status is Status.NOT_APPLICABLE


def test_judge_gives_a_level() -> None:
    rubric = parse_rubric((PACKAGE.rubrics / "reader_tone.en.yaml").read_text("utf-8"))
    dialog = JudgeDialog(FAMILY.judge(JudgeCase(rubric, QUESTION, AnswerSpec("Nine, please."), FAMILY.metrics)))
    dialog.advance(ParsedReply(Outcome.OK, {"politeness": {"reason": "It says please.", "score": 3}}))
    assert dialog.results["politeness"].value == 3


def test_concord_accepts_the_package() -> None:
    package = load_package(PackageSource("reader_metrics:PACKAGE", "reader-metrics", "0.1.0"))
    assert [spec.name for spec in package.specs] == ["short_sentences", "politeness"]
