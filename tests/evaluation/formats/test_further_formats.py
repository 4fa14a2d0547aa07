"""Parquet and Arrow, the TREC text formats, UTF-16, and index columns of pandas."""

from __future__ import annotations

import builtins
import io
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile
from evaluation.core.samples import ContextSpec
from evaluation.formats.columnar import read_columnar
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.streaming import MemorySource, read_question_set
from evaluation.formats.trec import detect_trec_form
from evaluation.formats.tree import Limits, Problems
from tests.evaluation.formats.support import expect_problems, facts, xlsx
from tests.examples import max_examples

ROWS = [
    {"question_id": 7, "question": "q", "answer": "a", "contexts": [{"id": "k", "text": "t", "score": 0.5}]},
    {"question_id": 8, "question": "p", "answer": "b|c", "contexts": []},
]


def _write_parquet(table: Any, sink: io.BytesIO) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, sink)


def _write_arrow_file(table: Any, sink: io.BytesIO) -> None:
    import pyarrow

    with pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_arrow_stream(table: Any, sink: io.BytesIO) -> None:
    import pyarrow

    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def columnar(write: Callable[[Any, io.BytesIO], None], rows: list[dict[str, Any]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
    sink = io.BytesIO()
    write(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


@pytest.mark.parametrize("write", [_write_parquet, _write_arrow_file, _write_arrow_stream])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a"])
def test_parquet_and_arrow_are_recognised_by_their_first_bytes(write: Any, name: str) -> None:
    first, second = read_answers(columnar(write, ROWS), name).answers
    assert (first.question_id, first.answer.contexts) == ("7", (ContextSpec("t", "k", 0.5),))
    assert (second.answer.text, second.answer.contexts, second.line) == ("b|c", (), 2)


def test_unsupported_column_values_are_converted_or_remarked() -> None:
    row = {"question": "q", "when": date(2026, 1, 31), "share": 0.25, "picture": b"\x89PNG", "__index_level_0__": 0}
    file = read_questions(columnar(_write_parquet, [row]), "a.parquet")
    assert file.metadata[file.questions[0].id] == {"when": "2026-01-31", "share": "0.25", "picture": None}
    assert [remark.params for remark in file.remarks if remark.code == "columns_not_read"] == [{"columns": "picture"}]
    indexed = read_questions(columnar(_write_parquet, [{"question": "q", "n": 0, "__index_level_0__": 7}]), "a.parquet")
    assert indexed.metadata[indexed.questions[0].id] == {"n": "0", "__index_level_0__": "7"}


def test_missing_pyarrow_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    original_import = builtins.__import__

    def import_without_pyarrow(name: str, *arguments: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original_import(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", import_without_pyarrow)
    assert [problem.code for problem in expect_problems(read_questions, b"PAR1xxx", "a.parquet")] == [
        "arrow_not_installed"
    ]


def test_oversized_table_is_refused_before_it_is_unpacked() -> None:
    data = columnar(_write_parquet, [{"question": "x" * 10_000}] * 50)
    for limits, code in (
        (Limits(unpacked_bytes=5_000), "workbook_too_large"),
        (Limits(rows=49), "too_many_rows"),
        (Limits(columns=0), "too_many_columns"),
    ):
        with pytest.raises(InvalidFile) as error:
            read_columnar(data, Problems("a"), limits)
        assert [problem.code for problem in error.value.problems] == [code]


def test_memory_is_bounded_while_a_file_is_unpacked() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
    feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    one_batch, one_value = io.BytesIO(), io.BytesIO()
    # One batch of 10 columns with 60 MB each
    column = pyarrow.array(["x" * 60_000_000])
    feather.write_feather(pyarrow.table([column] * 10, list("abcdefghij")), one_batch, compression="zstd")
    # One value of 10 MB in 100 rows
    shared = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 100, pyarrow.int32()), ["x" * 10_000_000])
    parquet.write_table(pyarrow.table({"question": shared}), one_value, store_schema=False)
    peak = pyarrow.default_memory_pool().max_memory()
    for sink in (one_batch, one_value):
        assert len(sink.getvalue()) < 1_000_000
        with pytest.raises(InvalidFile) as error:
            read_columnar(sink.getvalue(), Problems("a"), Limits(unpacked_bytes=20_000_000))
        assert [problem.code for problem in error.value.problems] == ["workbook_too_large"]
    assert pyarrow.default_memory_pool().max_memory() <= peak + 20_000_000


@settings(max_examples=max_examples(50), deadline=None)
@given(st.sampled_from([b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"]), st.binary(max_size=200))
def test_broken_bytes_are_refused(magic: bytes, content: bytes) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
    with pytest.raises(InvalidFile):
        read_questions(magic + content, "a")


def test_wrong_file_extension_is_refused() -> None:
    assert [problem.code for problem in expect_problems(read_questions, "question\nq\n", "a.parquet")] == [
        "file_not_columnar"
    ]


TOPICS = """<top>
<num> Number: 301
<title> International Organized Crime
<desc> Description:
Identify organizations.
<narr> Narrative:
A relevant document must name one.
</top>

<top>
<num> Number: 302
<desc> Description:
Is polio under control?
</top>
"""
RUN = "301 Q0 d1 2 3.5 bm25\n301 Q0 d2 1 4.0 bm25\n301 Q0 d3 3 3.5 bm25\n302 Q0 d9 1 1 bm25\n"
QRELS = "301 0 d1 1\n301 0 d2 0\n301 0 d3 2\n999 0 d1 1\n"


def test_topics_become_questions() -> None:
    file = read_questions(TOPICS.encode(), "topics.txt")
    first, second = file.questions
    assert (first.id, first.text, second.text) == ("301", "International Organized Crime", "Is polio under control?")
    assert file.metadata["301"]["narrative"] == "A relevant document must name one."
    assert file.format == "trec_topics"
    (tabbed_question,) = read_questions(b"1048585\twhat is paula deen's brother\n", "queries.tsv").questions
    assert (tabbed_question.id, tabbed_question.text) == ("1048585", "what is paula deen's brother")


def test_run_is_sorted_by_score_as_in_trec_eval() -> None:
    """d2 (4.0) comes first, then d3 before d1: with equal scores (3.5) the later id wins, whatever the ranks in the
    file."""
    file = read_answers(RUN.encode(), "bm25.run")
    assert [(row.question_id, row.answer.retrieved_ids) for row in file.answers] == [
        ("301", ("d2", "d3", "d1")),
        ("302", ("d9",)),
    ]
    assert (file.system, file.answers[0].answered, file.answers[1].line) == ("bm25", False, 4)


@pytest.mark.parametrize("qrels", [QRELS, "query-id\tcorpus-id\tscore\n301\td1\t1\n301\td2\t0\n301\td3\t2\n"])
def test_judgements_set_the_relevant_passages(qrels: str) -> None:
    file = read_questions(TOPICS.encode(), "topics.txt", qrels=qrels.encode())
    assert [row.ground_truth_chunk_ids for row in file.questions] == [("d1", "d3"), ()]
    assert [row.params for row in file.remarks if row.code == "qrels_added"] == [{"rows": 1, "missing": 1}]


def test_invalid_or_unmatched_judgements_are_refused() -> None:
    for qrels, code in ((b"a b c", "qrels_expected"), (b"1 0 d 1\n", "qrels_unmatched")):
        assert [problem.code for problem in expect_problems(read_questions, TOPICS, "t.txt", qrels=qrels)] == [code]
    assert facts(expect_problems(read_questions, TOPICS, "t.txt", qrels=QRELS.encode() + b"301 0 d1\n")) == [
        ("ragged_row", 5, "")
    ]


@pytest.mark.parametrize("read", [read_questions, read_answers])
def test_judgements_alone_are_refused_by_name(read: Any) -> None:
    assert [problem.code for problem in expect_problems(read, QRELS, "qrels.txt")] == ["shape_is_qrels"]


def test_run_is_refused_as_questions_and_topics_as_answers() -> None:
    assert [problem.code for problem in expect_problems(read_questions, RUN, "a.run")] == ["format_not_accepted"]
    assert [problem.code for problem in expect_problems(read_answers, TOPICS, "a.txt")] == ["format_not_accepted"]
    assert facts(expect_problems(read_answers, "301 Q0 d1 1 1 t\n302 Q0 d1 1 1 t\n303 Q0 d1 1 e t\n", "a.run")) == [
        ("not_number", 3, "score")
    ]


@pytest.mark.parametrize("text", ["id\tquestion\n1\tq\n", "question,answer\n", "1\tq\tmore\n", "a b\n", ""])
def test_tables_are_not_detected_as_trec(text: str) -> None:
    assert detect_trec_form(text) == ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_byte_order_mark_is_read(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    file = read_questions((mark + "question\tcategory\n왜?\t정책\n").encode(encoding), "a.csv")
    assert (file.questions[0].text, file.questions[0].category, file.encoding) == ("왜?", "정책", "utf-16")


def test_consecutive_pandas_index_is_left_out() -> None:
    file = read_questions(b",question,expected_answer\n0,q,a\n1,p,b\n", "a.csv")
    assert file.metadata_keys == ()
    assert "index_left_out" in [remark.code for remark in file.remarks]
    assert facts(expect_problems(read_questions, ",question\n0,q\n5,p\n", "a.csv")) == [("header_empty", 1, "")]


def test_text_shared_by_many_rows_counts_for_each() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
    shared = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 300, pyarrow.int32()), ["x" * 800_000])
    sink = io.BytesIO()
    _write_parquet(pyarrow.table({"question": shared, "category": ["a"] * 300}), sink)
    assert len(sink.getvalue()) < 1_000_000
    assert [code for code, *_ in facts(expect_problems(read_questions, sink.getvalue(), "a.parquet"))] == [
        "workbook_too_large"
    ]


@pytest.mark.parametrize("name", ["a.json", "a", "a.jsonl"])
def test_file_that_begins_with_megabytes_of_blanks_is_refused_or_read(name: str) -> None:
    assert expect_problems(
        lambda data, name: read_question_set(MemorySource(data), name), b" " * 3_000_000 + b"[", name
    )


TITLED = (["Answers of March", "", ""], ["", "", ""], ["checked by Kim", "", ""], ["question", "expected_answer", "n"])


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx"])
def test_title_rows_above_the_header_are_left_out(name: str) -> None:
    rows = [*TITLED, ["q", "a", ""], ["p", "b", "2"]]
    data = xlsx(*rows) if name == "a.xlsx" else "".join(f"{','.join(row)}\n" for row in rows).encode()
    file = read_questions(data, name)
    assert [(question.text, question.references) for question in file.questions] == [("q", ("a",)), ("p", ("b",))]
    remark = next(remark for remark in file.remarks if remark.code == "titles_left_out")
    assert remark.params == {"rows": 3}
    if name == "a.csv":
        streamed = read_question_set(MemorySource(data), name)
        assert ([*streamed.questions], streamed.remarks) == ([*file.questions], file.remarks)


def test_problems_below_a_title_name_the_row_of_the_header() -> None:
    text = "Answers,,\nquestion,question,x\nq,p,1\n"
    assert ("header_twice", 2, "question") in facts(expect_problems(read_questions, text, "a.csv"))


@pytest.mark.parametrize("text", ["question\nq\np\n", "question,,\nq,,\n", ",,\nquestion,x,\nq,1,\n"])
def test_tables_without_titles_keep_their_header(text: str) -> None:
    assert next(iter(read_questions(text.encode(), "a.csv").questions)).text == "q"


def test_pandas_columns_in_json_are_rows() -> None:
    text = '{"question": {"0": "q", "1": "p"}, "expected_answer": {"0": "a", "1": "b"}}'
    assert [(question.text, question.references) for question in read_questions(text.encode(), "a.json").questions] == [
        ("q", ("a",)),
        ("p", ("b",)),
    ]
