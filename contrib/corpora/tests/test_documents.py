"""Documents of a corpus from valid and hostile files."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from contrib.corpora.documents import MEDIA_BY_ENDING, SourceDocument, read_documents
from evaluation.core.errors import InvalidFile
from tests.examples import max_examples

DOCX_XML = """<?xml version="1.0" encoding="UTF-8"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>휴가 규정</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">A leave </w:t></w:r><w:del><w:r><w:delText>never </w:delText></w:r></w:del>
<w:r><w:t>may last 15 days.</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
</w:body></w:document>"""


def docx(xml: str = DOCX_XML, member_name: str = "word/document.xml") -> bytes:
    """A Word document with this body."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member_name, xml)
    return buffer.getvalue()


def pdf(text: str = "A leave may last 15 days.", password: str = "") -> bytes:
    """A PDF of one page."""
    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject(
        {NameObject("/F1"): DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})}
    )
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode() if text else b"")
    page[NameObject("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def only_document(data: bytes, name: str) -> SourceDocument:
    (document,) = read_documents(data, name)
    return document


def refusal_code(data: bytes, name: str, **limits: int) -> str:
    """Code of the problem that the file is refused for."""
    with pytest.raises(InvalidFile) as error:
        read_documents(data, name, **limits)
    return error.value.problems[0].code


def test_text_and_markdown() -> None:
    document = only_document(b"# Leave \r\n\r\n\r\n\r\nIt lasts.\x00 ", "a/leave.md")
    assert (document.id, document.title, document.media, document.text) == (
        "a/leave.md",
        "Leave",
        "markdown",
        "# Leave\n\nIt lasts.",
    )
    assert only_document("휴가는 15일이다.".encode("cp949"), "휴가.txt").text == "휴가는 15일이다."


def test_html_keeps_readable_text_only() -> None:
    source = (
        "<html><head><title>Leave &amp; pay</title><style>p {}</style></head><body onload='x()'>"
        "<script>alert(1)</script><h1>Leave</h1><p>It lasts\n 15 days<br>or <b>less</b>.</p>"
        "<table><tr><td>a</td><td>b</td></tr></table>"
        "<!-- no --><svg><text>pic</text></svg><p>&lt;b&gt;</p></body></html>"
    )
    document = only_document(source.encode(), "leave.html")
    assert document.title == "Leave & pay"
    assert document.text == "Leave\n\nIt lasts 15 days\nor less.\n\na | b\n\n<b>"


def test_word_documents() -> None:
    document = only_document(docx(), "leave.docx")
    assert document.title == "휴가 규정"
    assert document.text == "휴가 규정\n\nA leave may last 15 days.\n\nCell"


def test_pdf() -> None:
    assert only_document(pdf(), "leave.pdf").text == "A leave may last 15 days."


def test_records_are_chunks_and_one_source_is_one_document() -> None:
    rows = [
        {"chunk_id": "a-1", "source": "a", "text": "One.", "title": "A", "page": 3},
        {"chunk_id": "b-1", "source": "b", "text": "Two."},
        {"chunk_id": "a-2", "source": "a", "text": "Three.", "title": "A"},
    ]
    first, second = read_documents("\n".join(map(json.dumps, rows)).encode(), "c.jsonl")
    assert (first.id, first.title, first.text) == ("a", "A", "One.\n\nThree.")
    assert first.passages is not None
    assert [(p.id, first.text[p.start : p.end]) for p in first.passages] == [("a-1", "One."), ("a-2", "Three.")]
    assert first.metadata == {"a-1": {"page": 3}}
    assert (second.id, second.text) == ("b", "Two.")


def test_autorag_parquet() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"doc_id": "d1", "contents": "One.", "path": "x.pdf", "metadata": {"prev_id": None, "next_id": "d2"}},
        {"doc_id": "d2", "contents": "Two.", "path": "x.pdf", "metadata": {"prev_id": "d1", "next_id": None}},
    ]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
    document = only_document(buffer.getvalue(), "corpus.parquet")
    assert (document.id, document.text) == ("x.pdf", "One.\n\nTwo.")
    assert document.passages is not None
    assert [p.id for p in document.passages] == ["d1", "d2"]


BOMB = "<w:document xmlns:w='w'>" + " " * 3_000_000 + "</w:document>"
ENTITIES = '<!DOCTYPE a [<!ENTITY b "bbbb">]><w:document xmlns:w="w">&b;</w:document>'


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"", "a.txt", "file_empty"),
        (b"x", "a.exe", "document_unknown"),
        (b"x", "a", "document_unknown"),
        (b"<p> </p><script>x</script>", "a.html", "document_without_text"),
        (b"\xff\xfe\x00", "a.txt", "encoding_utf16"),
        (b"%PDF-1.7 nothing", "a.pdf", "pdf_broken"),
        (b"no pdf", "a.pdf", "pdf_broken"),
        (pdf(password="secret"), "a.pdf", "pdf_encrypted"),
        (pdf(""), "a.pdf", "pdf_without_text"),
        (b"no zip", "a.docx", "docx_broken"),
        (docx()[:-40], "a.docx", "docx_broken"),
        (docx(member_name="else.xml"), "a.docx", "docx_broken"),
        (docx("<w:document"), "a.docx", "docx_broken"),
        (docx(ENTITIES), "a.docx", "docx_entities"),
        (docx("<a>" * 300 + "</a>" * 300), "a.docx", "too_deep"),
        (b'{"chunk_id": "a"}\n{"text": "b"}', "a.jsonl", "missing"),
        (b'{"id": "a", "text": "b"}\n{"id": "a", "text": "c"}', "a.jsonl", "duplicate_id"),
        (b"PAR1 broken", "a.parquet", "columnar_broken"),
    ],
)
def test_unreadable_file_is_refused_with_its_reason(data: bytes, name: str, expected: str) -> None:
    assert refusal_code(data, name) == expected


def test_sizes_have_limits() -> None:
    assert refusal_code(b"x" * 1001, "a.txt", max_bytes=1000) == "file_too_large"
    bomb = docx(BOMB)
    assert len(bomb) < 20_000
    assert refusal_code(bomb, "a.docx", max_bytes=20_000) == "docx_too_large"


@settings(max_examples=max_examples(60), deadline=None)
@given(st.sampled_from(sorted(set(MEDIA_BY_ENDING) - {"pdf"})), st.binary(max_size=300))
def test_any_bytes_are_documents_or_problems(suffix: str, data: bytes) -> None:
    try:
        documents = read_documents(data, f"a.{suffix}")
    except InvalidFile:
        return
    assert all(document.text and "\x00" not in document.text for document in documents)
