"""The fault plan for input files: each kind of bad input with its specified result."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
import unicodedata
import zipfile

import pytest

from evaluation.core.canonical import content_hash
from evaluation.core.scales import Scale
from evaluation.formats.export import neutralize_formula
from evaluation.formats.reading import display_name, read_answers, read_questions, read_ratings
from tests.evaluation.formats.support import expect_problems, facts, jsonl, xlsx

QUESTION = "- id: q1\n  category: single_hop\n  question: 무엇인가요?\n"


def test_alias_bomb_is_refused_quickly_with_little_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, previous in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{previous}"] * 9) + "]")
    tracemalloc.start()
    began = time.perf_counter()
    problems = expect_problems(read_questions, "\n".join(lines), "bomb.yaml")
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert facts(problems) == [("yaml_alias", 2, "b")]
    assert seconds < 0.1
    assert peak < 50_000_000


def test_yaml_nested_5000_deep_is_refused() -> None:
    assert [p.code for p in expect_problems(read_questions, "[" * 5_000, "deep.yaml")] == ["too_deep"]
    assert [p.code for p in expect_problems(read_questions, "- " * 5_000 + "x", "deep.yaml")] == ["too_deep"]


def test_python_tag_is_refused_by_name() -> None:
    text = "- id: q1\n  category: c\n  question: !!python/object/apply:os.system [ls]\n"
    first = expect_problems(read_questions, text, "tag.yaml")[0]
    assert (first.code, first.line, first.params["tag"]) == (
        "yaml_tag",
        3,
        "tag:yaml.org,2002:python/object/apply:os.system",
    )


@pytest.mark.parametrize(
    "spelling", ["010", "no", "1:30", "2024-01-01", "1_000", ".nan", "0x1F", "true", "17", "1.50", "+1", "=", "0o7x1e3"]
)
def test_id_that_yaml_would_convert_must_be_quoted(spelling: str) -> None:
    text = f"- category: c\n  question: what\n  id: {spelling}\n"
    if spelling == "0o7x1e3":  # no number in YAML 1.1, so a text without quotes
        assert read_questions(text.encode(), "a.yaml").questions[0].id == spelling
        return
    (problem,) = expect_problems(read_questions, text, "a.yaml")
    assert (problem.code, problem.line, problem.field, problem.params) == ("quote_value", 3, "id", {"value": spelling})
    quoted = read_questions(text.replace(spelling, f'"{spelling}"').encode(), "a.yaml")
    assert quoted.questions[0].id == spelling


def test_keywords_accept_plain_integers_and_refuse_odd_spellings() -> None:
    accepted = QUESTION + "  expected_keywords: [200, -5, [2024, 이천이십사]]\n"
    assert read_questions(accepted.encode(), "a.yaml").questions[0].keywords == (
        ("200",),
        ("-5",),
        ("2024", "이천이십사"),
    )
    refused_text = QUESTION + "  expected_keywords:\n  - 010\n  - 1_000\n  - no\n  - .5\n"
    (problem,) = expect_problems(read_questions, refused_text, "a.yaml")
    assert (problem.code, problem.line, problem.field) == ("quote_value", 5, "expected_keywords[0]")
    assert problem.more_lines == (6, 7, 8)


def test_duplicate_keys_are_refused_with_both_lines() -> None:
    (in_yaml,) = expect_problems(read_questions, QUESTION + "  category: other\n", "a.yaml")
    assert (in_yaml.code, in_yaml.line, in_yaml.params) == ("duplicate_key", 4, {"key": "category", "first_line": 2})
    text = '[{"id": "a",\n"question": "x", "category": "c",\n"id": "b"}]'
    (in_json,) = expect_problems(read_questions, text, "a.json")
    assert (in_json.code, in_json.line, in_json.params) == ("duplicate_key", 3, {"key": "id", "first_line": 1})


def test_json_nan_infinity_and_deep_nesting_are_distinct_problems() -> None:
    row = '[{"question": "x", "category": "c", "extra": %s}]'
    codes = {
        value: [p.code for p in expect_problems(read_questions, row % value, "a.json")]
        for value in ("NaN", "Infinity", "-Infinity", "1e999", "[" * 100_000)
    }
    assert codes == {
        "NaN": ["number_not_finite"],
        "Infinity": ["number_not_finite"],
        "-Infinity": ["number_not_finite"],
        "1e999": ["number_too_large"],
        "[" * 100_000: ["too_deep"],
    }


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.json", r'[{"question": "x\ud800", "category": "c"}]', "lone_surrogate"),
        ("a.json", r'[{"question": "x\u0000", "category": "c"}]', "nul_character"),
        ("a.jsonl", r'{"question": "x", "category": "c", "k\udfff": 1}', "lone_surrogate"),
        ("a.yaml", '- question: "x\\0"\n  category: c', "nul_character"),
        ("a.csv", "question,category\nx\0,c", "nul_character"),
    ],
)
def test_lone_surrogates_and_nul_are_refused(name: str, text: str, code: str) -> None:
    assert [p.code for p in expect_problems(read_questions, text, name)] == [code]


def test_surrogate_in_yaml_is_refused_with_its_line() -> None:
    (problem,) = expect_problems(read_questions, '- category: c\n  question: "x\\ud800"', "a.yaml")
    assert (problem.code, problem.line) == ("yaml_syntax", 2)


def test_surrogate_pair_becomes_one_character() -> None:
    file = read_questions(rb'[{"question": "\ud83d\ude00", "category": "c"}]', "a.json")
    assert file.questions[0].text == "😀"


def test_csv_of_korean_excel_is_recognised_and_remarked() -> None:
    data = "id,category,question\nq1,단답,등록금은 얼마인가요?\n".encode("cp949")
    file = read_questions(data, "질문.csv")
    assert file.questions[0].text == "등록금은 얼마인가요?"
    assert file.encoding == "cp949"
    assert [remark.code for remark in file.remarks] == ["encoding_cp949"]


def test_damaged_utf8_and_other_encodings_are_never_read_as_mojibake() -> None:
    damaged = "id,category,question\nq1,단답,등록금은 얼마인가요?\n".encode()[:-3] + b"\n"
    (problem,) = expect_problems(read_questions, damaged, "a.csv")
    assert (problem.code, problem.line) == ("encoding_damaged", 2)
    latin = "id,category,question\nq1,c,Où est l'été à Paris?\n".encode("latin-1")
    assert [p.code for p in expect_problems(read_questions, latin, "a.csv")] == ["encoding_western"]
    assert [p.code for p in expect_problems(read_questions, b"\xff\xfea", "a.csv")] == ["encoding_utf16"]


def test_byte_order_mark_is_not_part_of_the_first_header() -> None:
    file = read_questions("\ufeffid,category,question\nq1,c,x\n".encode(), "a.csv")
    assert (file.questions[0].id, file.encoding) == ("q1", "utf-8-sig")


def test_ragged_rows_are_listed_by_row_number() -> None:
    text = 'id,category,question\nq1,c,"two\nlines"\nq2,c\nq3,c,x,y\nq4,c,fine\n'
    problems = expect_problems(read_questions, text, "a.csv")
    ragged = [(p.line, p.params["found"], p.params["expected"]) for p in problems]
    # The row with the line break inside is row 2, as in a spreadsheet.
    assert ragged == [(3, 2, 3), (4, 4, 3)]


def test_long_csv_field_is_refused_by_the_reader_limit() -> None:
    file = read_questions(f"category,question\nc,{'x' * 131_073}\n".encode(), "a.csv")
    assert len(file.questions[0].text) == 131_073
    (problem,) = expect_problems(read_questions, f"category,question\nc,{'x' * 1_000_001}\n", "a.csv")
    assert (problem.code, problem.line, problem.field) == ("text_too_long", 2, "question")
    assert problem.params == {"length": 1_000_001, "limit": 1_000_000}


def test_large_file_is_refused_before_it_is_read() -> None:
    (problem,) = expect_problems(read_questions, b"x" * 1_001, "a.yaml", max_bytes=1_000)
    assert (problem.code, problem.params) == ("file_too_large", {"size": 1_001, "limit": 1_000})
    assert [p.code for p in expect_problems(read_questions, b"x" * (20 * 1024 * 1024 + 1), "a.yaml")] == [
        "file_too_large"
    ]


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (xlsx(["id", "question"], ["q1", "x"]), "a.csv", "file_archive"),
        (b"PK\x05\x06" + bytes(18), "a.jsonl", "file_archive"),
        (b"\x1f\x8b\x08" + bytes(20), "a.yaml", "file_archive"),
        (b"%PDF-1.7\n1 0 obj", "a.csv", "file_pdf"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.csv", "file_old_excel"),
        (b"id,question\n", "a.xlsx", "file_not_workbook"),
        (b"%PDF-1.7\n1 0 obj", "a.xlsx", "file_pdf"),
        (b"PK\x03\x04" + bytes(40), "a.xlsx", "workbook_broken"),
        (b"\xff\x00\x81\x00" * 40, "a.csv", "file_binary"),
        (b" \n\t", "a.csv", "file_empty"),
        (b"", "a.xlsx", "file_empty"),
        (b"just words", "notes", "format_unknown"),
    ],
)
def test_content_that_contradicts_its_file_name_is_refused(data: bytes, name: str, code: str) -> None:
    assert [p.code for p in expect_problems(read_questions, data, name)] == [code]


def test_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        for number in range(11):
            archive.writestr(f"xl/worksheets/sheet{number}.xml", bytes(20 * 1024 * 1024))
    assert len(buffer.getvalue()) < 1_000_000
    assert [p.code for p in expect_problems(read_questions, buffer.getvalue(), "bomb.xlsx")] == ["workbook_too_large"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("xl/workbook.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><workbook>&b;</workbook>'),
        ("xl/styles.xml", b"<!DOCTYPE a><a/>"),
        ("xl/styles", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
        ("xl/media/image1.png", b'<?xml version="1.0"?> <!-- --> <!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'),
        ("xl/styles.xml", "<!DOCTYPE a><a/>".encode("utf-16-le")),
        ("xl/styles.xml", " <a/>".encode("utf-16-be")),
        ("xl/styles.xml", b'<?xml version="1.0" encoding="cp037"?>' + "<!DOCTYPE a><a/>".encode("cp037")),
        ("xl/styles.xml", "\ufeff<!DOCTYPE a><a/>".encode("utf-16-le")),
        ("xl/styles.xml", "\ufeff<a/>".encode("utf-16-be")),
    ],
)
def test_workbook_with_xml_entities_is_not_parsed(name: str, content: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    assert [p.code for p in expect_problems(read_questions, buffer.getvalue(), "a.xlsx")] == ["workbook_entities"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/x.csv", "x.csv"),
        ("C:\\data\\x.csv", "x.csv"),
        ("a\u202egnp.csv", "aU+202Egnp.csv"),
        (unicodedata.normalize("NFD", "질문.csv"), "질문.csv"),
        ("n" * 300 + ".csv", "n" * 79 + "…" + "n" * 16 + ".csv"),
        ("", "file"),
    ],
)
def test_file_name_is_displayed_and_never_used_as_a_path(name: str, shown: str) -> None:
    assert display_name(name) == shown
    assert expect_problems(read_questions, b"", name)[0].file == shown


def test_equal_content_reads_equally_in_any_order_and_spelling() -> None:
    flat = [{"category": "c", "question": "나"}, {"category": "c", "question": "가"}]
    nested = {"categories": {"c": {"questions": [{"query": "가"}, {"user_input": "나"}]}}}
    hashes = {
        content_hash(
            sorted(q.model_dump_json() for q in read_questions(json.dumps(shape).encode(), "a.json").questions)
        )
        for shape in (flat, nested)
    }
    assert len(hashes) == 1
    changed = [flat[0], {"category": "c", "question": "가 "}, {"category": "c", "question": "다"}]
    assert len(read_questions(json.dumps(changed).encode(), "a.json").questions) == 3


@pytest.mark.slow
def test_ten_thousand_questions_are_read_in_linear_time() -> None:
    row = (
        "    - id: Q-{0}\n      question: Which plant known as number {0} is called by another name?\n"
        "      expected_keywords: [Cornish heath, k{0}]\n      expected_answer: Cornish heath {0}\n      source: N{0}\n"
    )
    text = "categories:\n  single_hop:\n    questions:\n" + "".join(map(row.format, range(10_000)))
    start = time.process_time()
    file = read_questions(text.encode(), "large.yaml")
    assert len(file.questions) == 10_000
    assert time.process_time() - start < 20  # a bound against quadratic growth, not a measurement


def test_empty_reference_and_unknown_category_are_no_problem() -> None:
    text = "- {id: a, category: neu, question: x, expected_answer: '', expected_keywords: []}\n- {id: b, question: y}\n"
    file = read_questions(text.encode(), "a.yaml")
    assert [(q.references, q.keywords, q.category) for q in file.questions] == [((), (), "neu"), ((), (), "")]
    assert [(r.code, r.params) for r in file.remarks] == [("category_empty", {"rows": 1})]


def test_decomposed_text_is_kept_and_equal_ids_are_detected() -> None:
    text = unicodedata.normalize("NFD", "삼성전자 １２３")
    file = read_questions(json.dumps([{"category": "c", "question": text}]).encode(), "a.json")
    assert file.questions[0].text == text
    composed = [{"category": "c", "question": unicodedata.normalize("NFC", text)}]
    assert read_questions(json.dumps(composed).encode(), "a.json").questions[0].id == file.questions[0].id
    duplicates = [
        {"id": unicodedata.normalize(form, "가"), "category": "c", "question": form} for form in ("NFC", "NFD")
    ]
    assert [p.code for p in expect_problems(read_questions, json.dumps(duplicates), "a.json")] == ["duplicate_id"]


def test_formulas_are_neutralised_for_spreadsheets() -> None:
    for text in ('=HYPERLINK("http://x")', "＝1+1", "\t=1", "+1", "-1", "@SUM(A1)", "\r=1", " =1", "\u200b=1"):
        assert neutralize_formula(text) == "'" + text
    assert [neutralize_formula(cell) for cell in ("1-1", "plain", "", -1, 2.5, None, True)] == [
        "1-1",
        "plain",
        "",
        -1,
        2.5,
        None,
        True,
    ]


def test_all_problems_are_listed_in_line_order() -> None:
    text = QUESTION + "- id: q1\n  category: negative\n  question: 010\n- 5\n- id: [a]\n  hops: two\n  question: x\n"
    assert facts(expect_problems(read_questions, text, "a.yaml")) == [
        ("check_missing", 4, "check"),
        ("quote_value", 6, "question"),
        ("row_not_mapping", 7, ""),
        ("not_text", 8, "id"),
        ("not_integer", 9, "hops"),
    ]


def test_answer_and_rating_readers_apply_the_same_checks() -> None:
    assert [p.code for p in expect_problems(read_answers, b"%PDF-", "a.csv")] == ["file_pdf"]
    scales = {"correctness": Scale.parse("1..5")}
    assert [p.code for p in expect_problems(read_ratings, b"\xff\xfea", "a.csv", scales=scales)] == ["encoding_utf16"]
    assert [p.code for p in expect_problems(read_ratings, b"a: 1", "a.yaml", scales=scales)] == ["format_not_accepted"]
    assert [p.code for p in expect_problems(read_answers, jsonl({"answer": "x"}), "a.jsonl")] == ["missing_among"]
