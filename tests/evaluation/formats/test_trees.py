"""Lines, spellings and limits of the parse trees."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.formats.tables import read_csv, read_xlsx
from evaluation.formats.text_trees import read_json, read_json_lines, read_yaml
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, plain_value
from tests.evaluation.formats.support import facts, xlsx


def read_tree(reader: Callable[..., Node | None], source: Any, **limits: int) -> tuple[Node | None, Problems]:
    problems = Problems("a")
    return reader(source, problems, Limits(**limits)), problems


def fatal_problems(reader: Callable[..., Node | None], source: Any, **limits: int) -> list[tuple[str, int | None, str]]:
    with pytest.raises(InvalidFile) as error:
        read_tree(reader, source, **limits)
    return facts(error.value.problems)


def reported_problems(
    reader: Callable[..., Node | None], source: Any, **limits: int
) -> list[tuple[str, int | None, str]]:
    return facts(read_tree(reader, source, **limits)[1].errors)


def test_json_nodes_have_their_lines() -> None:
    root, _ = read_tree(read_json, '{\n"a": [1,\n\n2], "b":\n"x"}')
    assert root is not None
    assert root.line == 1
    assert [node.line for node in root.entries["a"].elements] == [2, 4]
    assert root.entries["b"].line == 5


def test_yaml_nodes_have_their_lines_and_spellings() -> None:
    root, _ = read_tree(read_yaml, "a:\n- 1\n- 01\n- |\n  text\n- !!str 5\n")
    assert root is not None
    assert root.entries["a"].elements == [
        Node(NodeKind.INTEGER, 1, 2, "1"),
        Node(NodeKind.AMBIGUOUS, "01", 3, "01"),
        Node(NodeKind.TEXT, "text\n", 4),
        Node(NodeKind.TEXT, "5", 6),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"a" 1}',
        '{"a": 1,}',
        "[1 2]",
        "[1,]",
        "{a: 1}",
        "[1]]",
        '"a',
        '"\\x"',
        "01",
        "tru",
        "[",
        '{"a"',
        "",
        '"a\tb"',
        "'a'",
        "-",
    ],
)
def test_invalid_json_is_refused_with_its_line(text: str) -> None:
    assert fatal_problems(read_json, "\n" + text)[0][:2] == ("json_syntax", 2)


def test_bad_json_line_does_not_hide_the_next() -> None:
    root, problems = read_tree(read_json_lines, '{"a": 1}\r\n\n{"a"\n{"a": NaN}\n{"a": 2}\n')
    assert root is not None
    assert [plain_value(node) for node in root.elements] == [{"a": 1}, {"a": None}, {"a": 2}]
    assert facts(problems.errors) == [("json_syntax", 3, ""), ("number_not_finite", 4, "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: *b", ("yaml_alias", 1, "a")),
        ("a: 1\n--- \nb: 2", ("yaml_documents", 2, "")),
        ("? {a: 1}\n: 2", ("yaml_complex_key", 1, "")),
        ("a: [1\nb: 2", ("yaml_syntax", 2, "")),
        ("a: b: c", ("yaml_syntax", 1, "")),
        ("a: 1\nb: \x01", ("yaml_syntax", 2, "")),
    ],
)
def test_fatal_yaml_problem_stops_reading(text: str, expected: tuple[str, int, str]) -> None:
    assert fatal_problems(read_yaml, text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {<<: {b: 1}}", ("yaml_merge_key", 1, "a")),
        ("a: 1\nno: 2", ("quote_key", 2, "")),
        ("2024: x", ("quote_key", 1, "")),
        ("a: !thing x", ("yaml_tag", 1, "a")),
        ("a: !!set {x}", ("yaml_tag", 1, "a")),
        ("a: !!int 5", ("yaml_tag", 1, "a")),
    ],
)
def test_recoverable_yaml_problem_is_reported(text: str, expected: tuple[str, int, str]) -> None:
    assert [fact[0] for fact in reported_problems(read_yaml, text)] == [expected[0]]
    assert reported_problems(read_yaml, text)[0][1] == expected[1]


def test_limits_apply_in_every_tree() -> None:
    assert fatal_problems(read_json, "[1,\n2,3]", nodes=2) == [("too_many_values", 2, "")]
    assert fatal_problems(read_yaml, "[1,\n2,3]", nodes=2) == [("too_many_values", 2, "")]
    assert fatal_problems(read_json_lines, "[1]\n[1]", nodes=3) == [("too_many_values", 2, "")]
    assert fatal_problems(read_json_lines, '{"a": 1}\n{"a": [{"b": 1}]}', nodes=5) == [("too_many_values", 2, "")]
    assert fatal_problems(read_json, "[[\n[]]]", depth=2) == [("too_deep", 2, "")]
    assert fatal_problems(read_yaml, "a:\n  b:\n    c: 1", depth=2) == [("too_deep", 3, "")]
    assert reported_problems(read_json, '{"a": "xyz"}', field_length=2) == [("text_too_long", 1, "a")]
    assert reported_problems(read_yaml, "a: xyz", field_length=2) == [("text_too_long", 1, "a")]
    for reader, source in ((read_csv, "a\n1\n2\n"), (read_xlsx, xlsx(["a"], ["1"], ["2"]))):
        assert fatal_problems(reader, source, rows=2) == [("too_many_rows", 3, "")]
        assert read_tree(reader, source, rows=3)[0] is not None
    for reader, source in ((read_csv, "a,b\n"), (read_xlsx, xlsx(["a", "b"]))):
        assert fatal_problems(reader, source, columns=1) == [("too_many_columns", 1, "")]
        assert read_tree(reader, source, columns=2)[0] is not None
    assert reported_problems(read_csv, "a\nxyz\n", field_length=2) == [("text_too_long", 2, "a")]
    assert reported_problems(read_xlsx, xlsx(["a"], ["xyz"]), field_length=2) == [("text_too_long", 2, "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a,,b\n1,2,3", ("header_empty", 1, "")), ("a,b,a\n1,2,3", ("header_twice", 1, "a"))],
)
def test_invalid_header_is_reported(text: str, expected: tuple[str, int, str]) -> None:
    assert reported_problems(read_csv, text) == [expected]
    assert reported_problems(read_xlsx, xlsx(*[line.split(",") for line in text.split("\n")])) == [expected]


def workbook_with(sheet_row: str, *, styles: int = 0, sheets: int = 0, workbook: str = "xl/workbook.xml") -> bytes:
    """A workbook whose sheet has a header and this row, in XML, with additional styles and sheets, and the name of the
    part that lists sheets."""
    original, buffer = zipfile.ZipFile(io.BytesIO(xlsx(["question", "category"]))), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in original.infolist():
            text = original.read(member).decode().replace("xl/workbook.xml", workbook)
            if member.filename == "xl/worksheets/sheet1.xml":
                text = text.replace('<dimension ref="A1:B1" />', "").replace("</sheetData>", f"{sheet_row}</sheetData>")
            text = text.replace("</cellXfs>", "<xf/>" * styles + "</cellXfs>")
            text = text.replace("</sheets>", "<sheet/>" * sheets + "</sheets>")
            archive.writestr(member.filename.replace("xl/workbook.xml", workbook), text)
    return buffer.getvalue()


def test_stray_cell_far_down_is_read_with_its_row() -> None:
    row = '<row r="400000"><c r="A400000" t="inlineStr"><is><t>Why?</t></is></c></row>'
    node = read_xlsx(workbook_with(row), Problems("a.xlsx"), Limits())
    assert [row.line for row in node.elements] == [400_000]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (workbook_with("<row>" + "<c/>" * 100 + "</row>"), "too_many_values"),
        (workbook_with("", styles=100_001), "workbook_broken"),
        (workbook_with("", sheets=100_001, workbook="xl/worksheets/sheet2.xml"), "workbook_broken"),
        (workbook_with("<row" + "".join(f" a{number}=''" for number in range(20_001)) + "/>"), "workbook_broken"),
    ],
    ids=["cells", "styles", "sheets in a part named as a sheet", "attributes"],
)
def test_workbook_with_too_many_tags_or_attributes_is_refused_before_it_is_read(content: bytes, code: str) -> None:
    problems = Problems("a.xlsx")
    with pytest.raises(InvalidFile):
        read_xlsx(content, problems, Limits(nodes=20))
    assert [problem.code for problem in problems.errors] == [code]


@pytest.mark.parametrize("text", ['a\n"1\n2', 'a\n"1"2\n'])
def test_unbalanced_quotes_stop_the_table(text: str) -> None:
    assert [fact[:2] for fact in fatal_problems(read_csv, text)] == [("csv_syntax", 2)]
    assert [fact[:2] for fact in fatal_problems(read_csv, '"a')] == [("csv_syntax", 1)]


@pytest.mark.parametrize(("delimiter", "named"), [(";", ";"), ("\t", "tab")])
def test_other_delimiters_are_detected_and_remarked(delimiter: str, named: str) -> None:
    root, problems = read_tree(read_csv, f'a{delimiter}b\n"x,y"{delimiter}2\n')
    assert root is not None
    assert plain_value(root) == [{"a": "x,y", "b": "2"}]
    assert [(remark.code, remark.params) for remark in problems.remarks] == [("delimiter", {"delimiter": named})]


def test_blank_rows_are_skipped_but_counted() -> None:
    for reader, source in (
        (read_csv, "a,b\n\n,\n1,2,,\n"),
        (read_xlsx, xlsx(["a", "b"], [], ["", ""], ["1", "2", None, None])),
    ):
        root, problems = read_tree(reader, source)
        assert root is not None
        assert (plain_value(root), root.elements[0].line, problems.errors) == ([{"a": "1", "b": "2"}], 4, [])


def test_formulas_and_error_cells_are_reported_with_their_place() -> None:
    assert reported_problems(read_xlsx, xlsx(["a", "b"], ["=1+1", "#DIV/0!"], ["1", "2", "3"])) == [
        ("formula", 2, "a"),
        ("error_cell", 2, "b"),
        ("ragged_row", 3, ""),
    ]


def test_additional_sheets_are_remarked() -> None:
    _, problems = read_tree(read_xlsx, xlsx(["a"], ["1"], further=["notes", "메모"]))
    params = {"sheet": "Sheet", "sheets": "notes, 메모"}
    assert [(r.code, r.params) for r in problems.remarks] == [("sheets_not_read", params)]


def test_reading_stops_at_the_problem_limit() -> None:
    problems = fatal_problems(read_csv, "a,b\n" + "1\n" * 20_000)
    assert problems == [("too_many_problems", None, ""), ("ragged_row", 2, "")]


def test_problem_needs_the_parameters_of_its_message() -> None:
    with pytest.raises(ValueError, match="quote_value"):
        Problems("a").add("quote_value", 1)
    with pytest.raises(KeyError):
        Problems("a").add("no_such_code", 1)
