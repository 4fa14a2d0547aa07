"""Coverage of required information and nuggets, matched as keywords."""

from __future__ import annotations

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, Nugget, QuestionSpec
from evaluation.metrics.keyword_coverage import nugget_coverage, required_info_coverage

SETTINGS = RuleSettings()


def test_required_points_count_once_each() -> None:
    question = QuestionSpec(
        id="q", category="c", text="?", required_info=("신청 기간", "등록금 고지서", "신청 기간", "30일")
    )
    result = required_info_coverage(question, AnswerSpec("신청기간은 30일입니다."), SETTINGS)
    # 신청 기간 (spacing) and 30일 of three different points
    assert result.value == 2 / 3


def test_required_coverage_is_not_applicable_without_points() -> None:
    question = QuestionSpec(id="q", category="c", text="?", required_info=(" ",))
    assert required_info_coverage(question, AnswerSpec("a"), SETTINGS).reason == "no_required_info"


def test_nugget_matches_any_wording_and_missing_ones_are_listed() -> None:
    nuggets = (
        Nugget(name="배출 장소", alternatives=("수거함", "종량제")),
        Nugget(name="주의 사항", alternatives=("안됩니다",)),
        Nugget(name="요금", vital=False),
        Nugget(name="분리 여부", alternatives=("따로",), vital=False),
    )
    question = QuestionSpec(id="q", category="c", text="?", nuggets=nuggets)
    result = nugget_coverage(question, AnswerSpec("수거함에 따로 넣으세요. 섞으면 안 됩니다."), SETTINGS)
    # 배출 장소, 주의 사항 and 분리 여부 of four; both vital ones
    assert result.value == 3 / 4
    assert (result.detail["vital"], result.detail["vital_found"]) == (2, 2)
    assert [f.text for f in result.findings if f.verdict == "missing"] == ["요금"]
    assert {f.kind for f in result.findings} == {"nugget"}


def test_nugget_coverage_is_not_applicable_without_nuggets() -> None:
    question = QuestionSpec(id="q", category="c", text="?")
    assert nugget_coverage(question, AnswerSpec("a"), SETTINGS).reason == "no_nuggets"


def test_profile_nuggets_apply_to_questions_without_their_own() -> None:
    domain = (Nugget(name="분리 여부", alternatives=("분리하", "분리해", "따로")), Nugget(name="장소"))
    settings = RuleSettings(nuggets=domain)
    question = QuestionSpec(id="q", category="c", text="?")
    # 분리수거함 is not what to separate; 장소 is there: 1 of 2
    result = nugget_coverage(question, AnswerSpec("장소는 분리수거함입니다."), settings)
    assert (result.value, result.detail["nuggets"]) == (1 / 2, "profile")
    assert nugget_coverage(question, AnswerSpec("분리하세요."), settings).value == 1 / 2
    question_with_nugget = question.model_copy(update={"nuggets": (Nugget(name="요금"),)})
    result = nugget_coverage(question_with_nugget, AnswerSpec("요금은 없다"), settings)
    assert result.detail["nuggets"] == "question"
