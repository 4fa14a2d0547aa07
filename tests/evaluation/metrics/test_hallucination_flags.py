"""Hallucination flags carry text and position; facts of sources, questions and exceptions are not flagged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Result
from evaluation.metrics import normalise
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.metrics.hallucination_flags import hallucination_flags
from tests.factories import question_spec

SOURCE = ContextSpec(
    "제15조(휴학) 학생은 학기 개시일부터 30일 이내에 학생지원팀에 신청한다. 문의: (02) 820-1234",
    metadata={"regulation": "학칙", "phone": "02-820-5555"},
)
NAMES = RuleSettings(phrases={"forbidden_names": ("서울대", "한국외대"), "own_names": ("한빛대학교", "우리 대학")})


def _flags(
    answer: str, question: str = "휴학은 어떻게 하나요?", settings: RuleSettings = NAMES, *contexts: ContextSpec
) -> list[tuple[str, str]]:
    result = hallucination_flags(
        QuestionSpec(id="q", category="c", text=question), AnswerSpec(answer, contexts=contexts or (SOURCE,)), settings
    )
    assert result.value == float(bool(result.findings))
    for f in result.findings:
        assert answer[f.start : f.end] == f.text
    return [(f.verdict, f.text) for f in result.findings]


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("문의는 02-123-4567로 하세요. 제15조를 보십시오.", ["02-123-4567"]),
        ("문의: +82 2 123 4567 (제15조)", ["+82 2 123 4567"]),
        ("문의: 02-820-1234 (제15조)", []),
        ("문의: +82-2-820-1234 (제15조)", []),
        ("문의: 028205555 (제15조)", []),  # in a field of the source
        ("번호는 102-820-1234-5입니다.", []),
    ],
)
def test_unsourced_phone_number_is_flagged(answer: str, flagged: list[str]) -> None:
    assert [text for verdict, text in _flags(answer) if verdict == "unknown_phone"] == flagged


def test_phone_number_of_the_question_is_not_flagged() -> None:
    assert _flags("네, 02-999-0000이 맞습니다. 제15조", "02 999 0000이 맞나요?") == []


@pytest.mark.parametrize(
    ("question", "answer", "flagged"),
    [
        ("휴학은?", "서울대 학칙 제15조에 따릅니다.", ["서울대"]),
        ("휴학은?", "서울대학교에서는 제15조에 따릅니다.", ["서울대학교"]),
        ("휴학은?", "서울대공원 근처입니다. 제15조", []),  # another word that begins with it
        ("서울대 휴학은?", "서울대는 제15조에 따릅니다.", ["서울대"]),
        ("서울대 휴학은?", "서울대의 학칙은 확인할 수 없습니다. 제15조", []),  # negated
        ("서울대 휴학은?", "서울대가 아니라 한빛대학교의 제15조입니다.", []),  # names its own institution
        ("서울대 휴학은?", "서울대의 학칙은 확인할 수 없습니다. 한국외대는 됩니다.", ["한국외대"]),  # the next name
        ("휴학은?", "서울대가 아닌 한빛대학교의 제15조입니다.", ["서울대"]),  # nobody asked about it
    ],
)
def test_forbidden_name_is_flagged_except_in_two_cases(question: str, answer: str, flagged: list[str]) -> None:
    assert [text for verdict, text in _flags(answer, question) if verdict == "forbidden_name"] == flagged


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("휴학 규정은 대학마다 다릅니다. 학교 홈페이지를 확인해주세요.", ["대학마다 다릅니다", "확인해주세요"]),
        ("휴학은 소속 대학에 문의하시기 바랍니다.", ["문의하시기 바랍니다"]),
        ("It varies by university. Please contact your department.", ["varies by university", "Please contact"]),
        ("휴학은 30일 이내에 신청합니다. 자세한 것은 확인해 주세요.", []),  # a number of the source
        ("학칙 제15조를 확인해 주세요.", []),  # an article of the source
        ("휴학은 학생지원팀에 문의하세요.", []),  # a name of the source: 5 syllables
        ("휴학은 20일 이내에 신청합니다. 자세한 것은 확인해 주세요.", ["확인해 주세요"]),  # a number of no source
        ("휴학은 30일 이내에 신청합니다.", []),
    ],
)
def test_avoidance_is_flagged_if_the_answer_has_no_sourced_fact(answer: str, flagged: list[str]) -> None:
    assert [text for verdict, text in _flags(answer) if verdict == "avoidance"] == flagged


def test_number_of_the_question_is_not_a_sourced_fact() -> None:
    answer = "30일 이내인지는 확인해 주세요."
    assert _flags(answer, "30일 이내에 신청하나요?") == [("avoidance", "확인해 주세요")]


def test_profile_defines_avoidance_phrases() -> None:
    settings = RuleSettings(phrases={"avoidance": ("담당 부서 소관",)})
    assert _flags("그것은 담당부서 소관입니다.", settings=settings) == [("avoidance", "담당부서 소관")]
    assert _flags("확인해 주세요.", settings=settings) == []


def _without_retrieval(answer: str, settings: RuleSettings) -> Result:
    return hallucination_flags(QuestionSpec(id="q", category="c", text="?"), AnswerSpec(answer), settings)


def test_only_names_are_checked_without_sources() -> None:
    result = _without_retrieval("서울대 학칙. 02-123-4567. 확인해 주세요.", NAMES)
    assert [f.verdict for f in result.findings] == ["forbidden_name"]
    assert result.detail["checked"] == "names"
    assert _without_retrieval("02-123-4567", RuleSettings()).reason == "does_not_retrieve"


def test_every_number_is_unknown_after_empty_retrieval() -> None:
    result = hallucination_flags(
        QuestionSpec(id="q", category="c", text="?"), AnswerSpec("02-123-4567", contexts=()), RuleSettings()
    )
    assert [f.verdict for f in result.findings] == ["unknown_phone"]


@given(st.text(alphabet="02-1345678+82() 서울대확인해주세요.\n", max_size=60))
def test_flags_lie_within_the_answer(answer: str) -> None:
    _flags(answer)


@pytest.mark.usefixtures("kiwi")
def test_english_text_never_loads_the_korean_analyser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock phrases are partly Korean, but English text contains none of them."""
    monkeypatch.setattr(normalise, "_analyser", lambda: pytest.fail("the model was loaded"))
    normalise._tokens.cache_clear()
    normalise.stems.cache_clear()
    question = question_spec(1, category="single_hop")
    text = "The river rises in the north. Please check with the council, phone 02-123-4567. It is city 1."
    spec = AnswerSpec(text, (ContextSpec("The council sits in the harbour."),))
    for metric in RULE_METRICS:
        metric(question, spec, RuleSettings())
