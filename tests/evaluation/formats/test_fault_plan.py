"""U1 to U18 of the fault plan: bad inputs, each with its stated result."""

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
from tests.evaluation.formats.support import facts, jsonl, refused, xlsx

QUESTION = "- id: q1\n  category: single_hop\n  question: 무엇인가요?\n"


def test_u1_an_alias_bomb_is_refused_at_parse_in_little_time_and_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 9) + "]")
    tracemalloc.start()
    began = time.perf_counter()
    problems = refused(read_questions, "\n".join(lines), "bomb.yaml")
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert facts(problems) == [("yaml_alias", 2, "b")]
    assert seconds < 0.1
    assert peak < 50_000_000


def test_u2_yaml_nested_5000_deep_is_too_deep() -> None:
    assert [p.code for p in refused(read_questions, "[" * 5_000, "deep.yaml")] == ["too_deep"]
    assert [p.code for p in refused(read_questions, "- " * 5_000 + "x", "deep.yaml")] == ["too_deep"]


def test_u3_a_python_tag_is_refused_by_its_name() -> None:
    text = "- id: q1\n  category: c\n  question: !!python/object/apply:os.system [ls]\n"
    first = refused(read_questions, text, "tag.yaml")[0]
    assert (first.code, first.line, first.params["tag"]) == (
        "yaml_tag",
        3,
        "tag:yaml.org,2002:python/object/apply:os.system",
    )


@pytest.mark.parametrize(
    "spelling", ["010", "no", "1:30", "2024-01-01", "1_000", ".nan", "0x1F", "true", "17", "1.50", "+1", "=", "0o7x1e3"]
)
def test_u4_what_yaml_would_convert_must_be_quoted_to_be_an_id(spelling: str) -> None:
    text = f"- category: c\n  question: what\n  id: {spelling}\n"
    if spelling == "0o7x1e3":  # no number in YAML 1.1, so a text without quotes
        assert read_questions(text.encode(), "a.yaml").questions[0].id == spelling
        return
    (problem,) = refused(read_questions, text, "a.yaml")
    assert (problem.code, problem.line, problem.field, problem.params) == ("quote_value", 3, "id", {"value": spelling})
    quoted = read_questions(text.replace(spelling, f'"{spelling}"').encode(), "a.yaml")
    assert quoted.questions[0].id == spelling


def test_u4_keywords_take_plain_integers_by_their_text_and_refuse_odd_spellings() -> None:
    good = QUESTION + "  expected_keywords: [200, -5, [2024, 이천이십사]]\n"
    assert read_questions(good.encode(), "a.yaml").questions[0].keywords == (("200",), ("-5",), ("2024", "이천이십사"))
    bad = QUESTION + "  expected_keywords:\n  - 010\n  - 1_000\n  - no\n  - .5\n"
    (problem,) = refused(read_questions, bad, "a.yaml")
    assert (problem.code, problem.line, problem.field) == ("quote_value", 5, "expected_keywords[0]")
    assert problem.more_lines == (6, 7, 8)


def test_u5_duplicate_keys_are_refused_with_both_lines() -> None:
    (in_yaml,) = refused(read_questions, QUESTION + "  category: other\n", "a.yaml")
    assert (in_yaml.code, in_yaml.line, in_yaml.params) == ("duplicate_key", 4, {"key": "category", "first_line": 2})
    text = '[{"id": "a",\n"question": "x", "category": "c",\n"id": "b"}]'
    (in_json,) = refused(read_questions, text, "a.json")
    assert (in_json.code, in_json.line, in_json.params) == ("duplicate_key", 3, {"key": "id", "first_line": 1})


def test_u6_nan_infinite_numbers_and_deep_lists_in_json_are_three_distinct_problems() -> None:
    row = '[{"question": "x", "category": "c", "extra": %s}]'
    codes = {
        value: [p.code for p in refused(read_questions, row % value, "a.json")]
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
def test_u7_half_characters_and_nul_are_refused(name: str, text: str, code: str) -> None:
    assert [p.code for p in refused(read_questions, text, name)] == [code]


def test_u7_a_surrogate_written_in_yaml_is_refused_with_its_line() -> None:
    (problem,) = refused(read_questions, '- category: c\n  question: "x\\ud800"', "a.yaml")
    assert (problem.code, problem.line) == ("yaml_syntax", 2)


def test_u7_a_whole_pair_of_surrogates_is_one_character() -> None:
    read = read_questions(rb'[{"question": "\ud83d\ude00", "category": "c"}]', "a.json")
    assert read.questions[0].text == "😀"


def test_u8_csv_of_korean_excel_is_recognised_and_flagged() -> None:
    data = "id,category,question\nq1,단답,등록금은 얼마인가요?\n".encode("cp949")
    read = read_questions(data, "질문.csv")
    assert read.questions[0].text == "등록금은 얼마인가요?"
    assert read.encoding == "cp949"
    assert [remark.code for remark in read.remarks] == ["encoding_cp949"]


def test_u8_damaged_utf8_and_other_encodings_are_never_read_as_mojibake() -> None:
    damaged = "id,category,question\nq1,단답,등록금은 얼마인가요?\n".encode()[:-3] + b"\n"
    (problem,) = refused(read_questions, damaged, "a.csv")
    assert (problem.code, problem.line) == ("encoding_damaged", 2)
    latin = "id,category,question\nq1,c,Où est l'été à Paris?\n".encode("latin-1")
    assert [p.code for p in refused(read_questions, latin, "a.csv")] == ["encoding_western"]
    assert [p.code for p in refused(read_questions, b"\xff\xfea", "a.csv")] == ["encoding_utf16"]


def test_u9_a_byte_order_mark_is_no_part_of_the_first_header() -> None:
    read = read_questions("\ufeffid,category,question\nq1,c,x\n".encode(), "a.csv")
    assert (read.questions[0].id, read.encoding) == ("q1", "utf-8-sig")


def test_u10_ragged_rows_are_listed_by_their_numbers() -> None:
    text = 'id,category,question\nq1,c,"two\nlines"\nq2,c\nq3,c,x,y\nq4,c,fine\n'
    problems = refused(read_questions, text, "a.csv")
    ragged = [(p.line, p.params["found"], p.params["expected"]) for p in problems]
    # The row with the line break inside is row 2, as in a spreadsheet.
    assert ragged == [(3, 2, 3), (4, 4, 3)]


def test_u11_a_long_csv_field_meets_our_own_limit_and_message() -> None:
    long = read_questions(f"category,question\nc,{'x' * 131_073}\n".encode(), "a.csv")
    assert len(long.questions[0].text) == 131_073
    (problem,) = refused(read_questions, f"category,question\nc,{'x' * 1_000_001}\n", "a.csv")
    assert (problem.code, problem.line, problem.field) == ("text_too_long", 2, "question")
    assert problem.params == {"length": 1_000_001, "limit": 1_000_000}


def test_u12_a_large_file_is_refused_before_it_is_read() -> None:
    (problem,) = refused(read_questions, b"x" * 1_001, "a.yaml", max_bytes=1_000)
    assert (problem.code, problem.params) == ("file_too_large", {"size": 1_001, "limit": 1_000})
    assert [p.code for p in refused(read_questions, b"x" * (20 * 1024 * 1024 + 1), "a.yaml")] == ["file_too_large"]


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
def test_u13_a_content_that_is_not_what_the_name_says_is_refused_unread(data: bytes, name: str, code: str) -> None:
    assert [p.code for p in refused(read_questions, data, name)] == [code]


def test_u13_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        for number in range(11):
            archive.writestr(f"xl/worksheets/sheet{number}.xml", bytes(20 * 1024 * 1024))
    assert len(buffer.getvalue()) < 1_000_000
    assert [p.code for p in refused(read_questions, buffer.getvalue(), "bomb.xlsx")] == ["workbook_too_large"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("xl/workbook.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><workbook>&b;</workbook>'),
        ("xl/styles.xml", b"<!DOCTYPE a><a/>"),
        ("_rels/.rels", b'<!ENTITY b "c">'),
        ("xl/styles.xml", "\ufeff<!DOCTYPE a><a/>".encode("utf-16-le")),
        ("xl/styles.xml", "\ufeff<a/>".encode("utf-16-be")),
    ],
)
def test_u13_a_workbook_that_declares_what_its_xml_means_is_not_parsed(name: str, content: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    assert [p.code for p in refused(read_questions, buffer.getvalue(), "a.xlsx")] == ["workbook_entities"]


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
def test_u14_a_file_name_is_shown_never_used_as_a_path(name: str, shown: str) -> None:
    assert display_name(name) == shown
    assert refused(read_questions, b"", name)[0].file == shown


def test_u15_the_same_content_reads_the_same_whatever_the_order_and_spelling_of_the_file() -> None:
    flat = [{"category": "c", "question": "나"}, {"category": "c", "question": "가"}]
    other = {"categories": {"c": {"questions": [{"query": "가"}, {"user_input": "나"}]}}}
    hashes = {
        content_hash(
            sorted(q.model_dump_json() for q in read_questions(json.dumps(shape).encode(), "a.json").questions)
        )
        for shape in (flat, other)
    }
    assert len(hashes) == 1
    changed = [flat[0], {"category": "c", "question": "가 "}, {"category": "c", "question": "다"}]
    assert len(read_questions(json.dumps(changed).encode(), "a.json").questions) == 3


@pytest.mark.slow
def test_u16_ten_thousand_questions_are_read_in_less_than_two_seconds() -> None:
    row = (
        "    - id: Q-{0}\n      question: Which plant known as number {0} is called by another name?\n"
        "      expected_keywords: [Cornish heath, k{0}]\n      expected_answer: Cornish heath {0}\n      source: N{0}\n"
    )
    text = "categories:\n  single_hop:\n    questions:\n" + "".join(map(row.format, range(10_000)))
    began = time.process_time()
    read = read_questions(text.encode(), "large.yaml")
    assert len(read.questions) == 10_000
    assert time.process_time() - began < 20  # a bound against quadratic growth, not a measurement


def test_u17_an_empty_reference_no_keywords_and_an_unknown_category_are_no_problem() -> None:
    text = "- {id: a, category: neu, question: x, expected_answer: '', expected_keywords: []}\n- {id: b, question: y}\n"
    read = read_questions(text.encode(), "a.yaml")
    assert [(q.references, q.keywords, q.category) for q in read.questions] == [((), (), "neu"), ((), (), "")]
    assert [(r.code, r.params) for r in read.remarks] == [("category_empty", {"rows": 1})]


def test_u18_decomposed_hangul_and_full_width_digits_keep_their_original_and_equal_ids_are_noticed() -> None:
    text = unicodedata.normalize("NFD", "삼성전자 １２３")
    read = read_questions(json.dumps([{"category": "c", "question": text}]).encode(), "a.json")
    assert read.questions[0].text == text
    composed = [{"category": "c", "question": unicodedata.normalize("NFC", text)}]
    assert read_questions(json.dumps(composed).encode(), "a.json").questions[0].id == read.questions[0].id
    twice = [{"id": unicodedata.normalize(form, "가"), "category": "c", "question": form} for form in ("NFC", "NFD")]
    assert [p.code for p in refused(read_questions, json.dumps(twice), "a.json")] == ["duplicate_id"]


def test_a7_formulas_are_neutralised_for_spreadsheets() -> None:
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


def test_all_problems_of_a_file_are_listed_at_once_in_the_order_of_their_lines() -> None:
    text = QUESTION + "- id: q1\n  category: negative\n  question: 010\n- 5\n- id: [a]\n  hops: two\n  question: x\n"
    assert facts(refused(read_questions, text, "a.yaml")) == [
        ("check_missing", 4, "check"),
        ("quote_value", 6, "question"),
        ("row_not_mapping", 7, ""),
        ("not_text", 8, "id"),
        ("not_integer", 9, "hops"),
    ]


def test_answers_and_ratings_share_the_same_doors() -> None:
    assert [p.code for p in refused(read_answers, b"%PDF-", "a.csv")] == ["file_pdf"]
    scales = {"correctness": Scale.parse("1..5")}
    assert [p.code for p in refused(read_ratings, b"\xff\xfea", "a.csv", scales=scales)] == ["encoding_utf16"]
    assert [p.code for p in refused(read_ratings, b"a: 1", "a.yaml", scales=scales)] == ["format_not_accepted"]
    assert [p.code for p in refused(read_answers, jsonl({"answer": "x"}), "a.jsonl")] == ["missing_among"]
