"""Messages: every code has one, with matching parameters and a place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.utils.translation import override

from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.formats.rating_rows import KNOWN_FAILURES
from evaluation.formats.reading import read_questions
from evaluation.formats.tree import PARAMETERS
from evaluation.judging.rubric import parse_rubric
from evaluation.messages import problems, reasons
from evaluation.messages.explanations import (
    REFUSALS,
    explain,
    explain_reason,
    explain_refusal,
    translate_parser_message,
)

_PARAMETER = re.compile(r"%\((\w+)\)s")


@pytest.fixture(autouse=True)
def english() -> object:
    with override("en"):
        yield


def test_every_reader_code_has_a_message_with_its_parameters() -> None:
    missing = sorted(PARAMETERS.keys() - problems.PROBLEM_MESSAGES.keys())
    invalid = []
    for code in PARAMETERS.keys() - set(missing):
        unknown_parameters = set(_PARAMETER.findall(str(problems.PROBLEM_MESSAGES[code]))) - set(PARAMETERS[code])
        if unknown_parameters or not explain(Problem(code, params=dict.fromkeys(PARAMETERS[code], 5))):
            invalid.append((code, unknown_parameters))
    assert (missing, invalid) == ([], [])


@pytest.mark.parametrize("sentences", [problems.PROBLEM_MESSAGES, reasons.REASON_MESSAGES, REFUSALS])
def test_messages_end_with_a_full_stop_and_have_no_stray_percent_sign(sentences: dict[str, object]) -> None:
    for code, sentence in sentences.items():
        text = str(sentence)
        assert text.endswith((".", "%(error)s", ").")), code
        assert "%" not in _PARAMETER.sub("", text), code


def test_problem_message_has_file_line_and_field() -> None:
    problem = Problem("quote_value", "a.yaml", 3, "id", {"value": "010"})
    assert explain(problem).startswith("a.yaml, line 3, id: Expected text. Quote this value: “010” would be")


def test_table_problems_name_rows() -> None:
    ragged = Problem("ragged_row", "a.csv", 4, "", {"found": 2, "expected": 3})
    assert explain(ragged).startswith("a.csv, row 4: The row has 2 cells, but the header has 3.")


def test_sizes_and_kinds_are_formatted() -> None:
    large = Problem("file_too_large", "a", params={"size": 200 * 1024 * 1024, "limit": 20 * 1024 * 1024})
    assert "200.0\xa0MB. The limit here is 20.0\xa0MB" in explain(large)
    assert "found: mapping" in explain(Problem("not_text", "a.json", 1, "id", {"found": "map"}))


def test_reasons_are_explained_with_their_details() -> None:
    assert explain_reason("scale: 7") == "The value is not on the metric's scale. (7)"
    assert explain_reason("upstream: timeout") == ("A required step failed. (The call took longer than allowed.)")
    assert explain_reason("a judge's own words: fine") == "a judge's own words: fine"
    assert {*KNOWN_FAILURES, "reported", "cannot_judge"} <= set(reasons.REASON_MESSAGES)


def test_refusals_are_explained_and_unknown_codes_are_shown() -> None:
    assert "a=5..1" in explain_refusal(DomainError("bad_definition", definition="a=5..1"))
    assert (
        explain_refusal(DomainError("unknown_keys", keys=["1", "2"]))
        == "These answers aren't in the sampling frame: 1, 2."
    )
    assert explain_refusal(DomainError("brand_new", size=3)) == "Problem “brand_new” (size = 3)."


ENGLISH_WORDS = re.compile(r"[A-Za-z]{3,}")


def parser_messages() -> Iterator[str]:
    """Problem messages for typical broken files, in the active language."""
    files = {
        "a.json": [
            '{"a": 1',
            '{"a" 1}',
            "{a: 1}",
            '[{"a": 1} {"b": 2}]',
            '["\\q"]',
            '["\\u12"]',
            '["a',
            "[1] 2",
            "[tru]",
        ],
        "a.jsonl": ['{"id": "1"', "nothing"],
        "a.csv": ['id,question\n1,"a" b\n', 'id,question\n1,"a\n', "id;question\n1;a\rb\n"],
        "a.yaml": ["a: [", "a: b: c", "- a\nb: 1", "a: 'b", "a: @b", 'a: "\\q"', "a:\n\tb: 1", "a: *b", "{a: 1", "%A"],
    }
    for name, texts in files.items():
        for text in texts:
            try:
                read_questions(text.encode(), name, max_bytes=10_000)
            except InvalidFile as error:
                yield from map(explain, error.problems)
    for text in ("a: [", "family: 1", "metrics: {}", "family: answer_quality\nlanguage: xx\nversion: a"):
        with pytest.raises(InvalidFile) as rubric_error:
            parse_rubric(text)
        yield from map(explain, rubric_error.value.problems)
    for detail in ("Invalid token: Unexpected token: ] at column 3", "KeyError: 'There is no item named x'"):
        yield explain(Problem("map_invalid", params={"detail": detail}))
        yield explain(Problem("workbook_broken", params={"detail": detail}))


def test_parser_messages_are_translated() -> None:
    with override("ko"):
        korean = list(parser_messages())
    assert len(korean) > 30
    # Names of formats, files, fields and values stay as they are.
    allowed = re.compile(r"JSON|YAML|CSV|UTF-8|Excel|map|[“'‘(].*?[”'’)]|^[\w.]+\.(json|jsonl|csv|yaml)")
    mixed = [text for text in korean if ENGLISH_WORDS.search(allowed.sub("", text.rpartition(": ")[2]))]
    assert mixed == []


def test_english_readers_get_the_original_parser_message() -> None:
    assert translate_parser_message("did not find expected key") == "did not find expected key"
    with override("ko"):
        assert translate_parser_message(
            "while parsing a block mapping, did not find expected key"
        ) != translate_parser_message("anything else")
