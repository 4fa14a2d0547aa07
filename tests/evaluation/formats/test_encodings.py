"""Files that are not UTF-8: Korean is recognised, Windows-1252 must be chosen, and nothing is decoded as other
letters."""

import pytest

from evaluation.formats.reading import read_questions, recode
from tests.evaluation.formats.support import expect_problems

HEADER = "id,question\n"


@pytest.mark.parametrize(
    "text",
    [
        "1,출장비는 언제 정산합니까?\n",
        "1,A형과B형 계약의 차이는?\n",
        "1,RAG와LLM은 “사내 규정” 3조…에 있습니까?\n",
        "1,HR팀 3일 20일 며칠?\n",
    ],
)
def test_korean_is_read_as_cp949(text: str) -> None:
    file = read_questions((HEADER + text).encode("cp949"), "a.csv")
    assert (file.encoding, file.questions[0].text) == ("cp949", text.strip().partition(",")[2])


@pytest.mark.parametrize(
    "text",
    [
        "1,Who signs the tenant’s lease?\n",
        "1,He said “don’t…” and left – why?\n",
        "1,Größe und Gewähr für Mängel?\n",
        "1,Où est l’été à Noël?\n",
        "1,HÄÄYÖAIE JÄÄHALLI 100°C\n",
        "1,¿Qué año? ÁÉÍ 5 €\n",
    ],
)
def test_western_text_needs_a_chosen_encoding(text: str) -> None:
    data = (HEADER + text).encode("cp1252")
    (problem,) = expect_problems(read_questions, data, "a.csv")
    assert (problem.code, problem.line, problem.params) == ("encoding_western", 2, {"text": text.strip()})
    file = read_questions(recode(data, "cp1252", "a.csv"), "a.csv")
    assert file.questions[0].text == text.strip().partition(",")[2]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("合同由谁签署，什么时候签署？", "gbk"),
        ("КТО ПОДПИСЫВАЕТ ДОГОВОР?", "cp1251"),
        ("誰が契約に署名しますか。", "euc_jp"),
    ],
)
def test_other_languages_are_never_decoded_as_hangul(text: str, encoding: str) -> None:
    (problem,) = expect_problems(read_questions, (HEADER + f"1,{text}\n").encode(encoding), "a.csv")
    assert problem.code in {"encoding_western", "encoding_unknown"}


def test_chosen_encoding_that_does_not_fit_is_refused_with_its_line() -> None:
    (problem,) = expect_problems(lambda data, name: recode(data, "cp949", name), b"id\nok\n\xff\xff\n", "a.csv")
    assert (problem.code, problem.line, problem.params) == ("encoding_wrong", 3, {"encoding": "cp949", "byte": "0xFF"})
    assert recode(b"as it is", "", "a.csv") == b"as it is"
