"""Any bytes are read, or refused with explained problems; written files round-trip."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile
from evaluation.core.scales import Scale
from evaluation.formats.export import csv_chunks, json_lines, neutralize_csv_cell
from evaluation.formats.reading import read_answers, read_questions, read_ratings
from evaluation.formats.tables import read_csv, read_xlsx
from evaluation.formats.text_trees import read_json, read_json_lines, read_yaml
from evaluation.formats.tree import PARAMETERS, Limits, Problems, plain_value
from tests.evaluation.formats.support import xlsx
from tests.examples import max_examples

NAMES = ["a.yaml", "a.json", "a.jsonl", "a.csv", "a.xlsx", "a", "../a.tsv"]
DEFINITIONS = {"m": "1..5", "c": "class:a|b", "b": "bool", "r": "0..1:real"}
SCALES = {name: Scale.parse(definition) for name, definition in DEFINITIONS.items()}
FIELDS = [
    "id",
    "question",
    "query",
    "category",
    "expected_answer",
    "answer",
    "expected_keywords",
    "check",
    "check_phrases",
    "hops",
    "nuggets",
    "history",
    "clarification_ok",
    "group",
    "tags",
    "contexts",
    "score",
    "text",
    "sample",
    "error",
    "question_id",
    "metric",
    "value",
    "reason",
    "parts",
    "kind",
    "label",
    "start",
    "rater",
    "author",
    "pair_id",
    "answer_a",
    "phase",
    "blind",
    "probability",
    "created",
    "metadata",
    "questions",
    "categories",
    "results",
]
# A text that every reader keeps: storable, and no white space at the ends that readers take away.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(["m", "c", "human", "judge", "a|b", '["x"]', "{", "1", "3", "negative", "2024-01-01"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | TEXTS, inner, max_size=6),
    max_leaves=30,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(FIELDS), TREES, max_size=10), max_size=4)
MANY_EXAMPLES = settings(max_examples=max_examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def count_handled_reads(data: bytes, name: str) -> int:
    """The number of readers that read the bytes or refuse them with documented problems; other errors propagate."""
    handled = 0
    for reader, options in ((read_questions, {}), (read_answers, {}), (read_ratings, {"scales": SCALES})):
        try:
            reader(data, name, **options)  # type: ignore[operator]
        except InvalidFile as error:
            params_match = [set(PARAMETERS[problem.code]) == set(problem.params) for problem in error.problems]
            handled += bool(params_match) and all(params_match)
        else:
            handled += 1
    return handled


@MANY_EXAMPLES
@given(data=st.binary(max_size=300), name=st.sampled_from(NAMES))
@example(data=b"a: !!binary |\n  x", name="a.yaml")
@example(data=b"- &a [*a]", name="a.yaml")
@example(data=b"? [a]\n: b", name="a.yaml")
@example(data=b"\x85", name="a.yaml")
@example(data=b"[1e5,01]", name="a.json")
@example(data=b'"\\', name="a.json")
@example(data=b'"a\n', name="a.csv")
@example(data=b"\r\rx", name="a.csv")
@example(data=b",", name="a.csv")
def test_arbitrary_bytes_are_read_or_refused(data: bytes, name: str) -> None:
    assert count_handled_reads(data, name) == 3


@MANY_EXAMPLES
@given(text=st.text(st.sampled_from("[]{}:,-?*&!|>'\"#%@` \n\taé한01.e\\u~<=\ufeff\x85\u2028\x00"), max_size=60))
def test_arbitrary_punctuation_is_read_or_refused(text: str) -> None:
    assert [count_handled_reads(text.encode(), name) for name in NAMES] == [3] * len(NAMES)


@MANY_EXAMPLES
@given(rows=ROWS, name=st.sampled_from(["a.json", "a.yaml"]))
def test_arbitrary_values_in_known_fields_are_read_or_refused(rows: Any, name: str) -> None:
    assert count_handled_reads(json.dumps(rows).encode(), name) == 3
    if isinstance(rows, list):
        assert count_handled_reads("\n".join(map(json.dumps, rows)).encode(), "a.jsonl") == 3


@MANY_EXAMPLES
@given(cells=st.lists(st.lists(TEXTS | st.integers() | st.booleans() | st.none(), max_size=5), min_size=1, max_size=4))
def test_arbitrary_cells_are_read_or_refused(cells: Any) -> None:
    header = ["id", "question", "expected_keywords", "metric", "value"]
    legal = [["" if isinstance(c, str) and not c.isprintable() else c for c in row] for row in cells]
    assert count_handled_reads(xlsx(header, *legal), "a.xlsx") == 3
    table = "".join(csv_text([header, *cells]))
    assert count_handled_reads(table.encode(), "a.csv") == 3


@settings(max_examples=max_examples(60), deadline=None)
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_workbook_with_damaged_bytes_is_read_or_refused(flips: list[tuple[int, int]]) -> None:
    data = bytearray(xlsx(["id", "question"], ["q1", "x"]))
    for position, value in flips:
        data[position % len(data)] = value
    assert count_handled_reads(bytes(data), "a.xlsx") == 3


def csv_text(rows: list[list[Any]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def read_plain(reader: Any, source: Any) -> Any:
    problems = Problems("a")
    root = reader(source, problems, Limits())
    assert problems.errors == []
    return plain_value(root)


@MANY_EXAMPLES
@given(value=TREES)
def test_json_round_trips_standard_library_output(value: Any) -> None:
    for options in ({"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}):
        assert read_plain(read_json, json.dumps(value, **options)) == value  # type: ignore[arg-type]


@MANY_EXAMPLES
@given(value=TREES)
def test_yaml_reads_json_like_yaml_1_1(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert read_plain(read_yaml, text) == _yaml_value(value)


@MANY_EXAMPLES
@given(value=st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20))
def test_yaml_round_trips_texts_of_its_own_writer(value: Any) -> None:
    for style in (None, '"', "'", "|", ">"):
        text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True, default_style=style)
        assert read_plain(read_yaml, text) == value


def _yaml_value(value: Any) -> Any:
    """JSON as YAML 1.1 reads it: an exponent without a fraction is text, and long integers stay as spelled."""
    if isinstance(value, dict):
        return {key: _yaml_value(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_yaml_value(child) for child in value]
    if isinstance(value, float) and "e" in repr(value):
        spelling = repr(value)
        return value if "." in spelling and len(spelling.rpartition("e")[2].lstrip("+-")) <= 2 else spelling
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return str(value)
    return value


@MANY_EXAMPLES
@given(rows=st.lists(st.dictionaries(TEXTS, TREES, min_size=1, max_size=4), max_size=5))
def test_json_lines_are_lossless(rows: Any) -> None:
    assert read_plain(read_json_lines, "".join(json_lines(rows))) == rows


@MANY_EXAMPLES
@given(rows=st.lists(st.tuples(TEXTS, st.text(st.sampled_from('a"|,\n =＋-'), max_size=8)), max_size=5))
def test_csv_round_trips_neutralised_cells(rows: list[tuple[str, str]]) -> None:
    data = b"".join(csv_chunks(["a", "b"], rows))
    text = data.decode("utf-8-sig")
    expected = [
        {"a": neutralize_csv_cell(a), "b": neutralize_csv_cell(b)}
        for a, b in rows
        if f"{neutralize_csv_cell(a)}{neutralize_csv_cell(b)}".strip()
    ]
    assert read_plain(read_csv, text) == expected


@settings(max_examples=max_examples(30), deadline=None)
@given(rows=st.lists(st.tuples(st.integers(-(10**9), 10**9), st.booleans()), max_size=5))
def test_workbook_numbers_and_booleans_keep_their_type(rows: list[tuple[int, bool]]) -> None:
    data = xlsx(["n", "b"], *rows)
    assert read_plain(read_xlsx, data) == [{"n": n, "b": b} for n, b in rows]
