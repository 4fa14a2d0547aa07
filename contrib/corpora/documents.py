"""Reads documents of a corpus from files.

Text, Markdown, HTML, PDF and DOCX files are one document each. Records of JSON Lines and Parquet are chunks; those with
the same source form a document. A document is plain text with paragraphs separated by blank lines. Nothing of a file is
executed or fetched: HTML is sanitised, one part of DOCX is unpacked within a limit, and PDF is read in a separate
process with limits on time and memory."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import nh3

from evaluation.core.canonical import normalize_nfc
from evaluation.formats.reading import FileFormat, decode, file_extension, read_tree
from evaluation.formats.tree import MAX_BYTES, MAX_SHORT_TEXT, FileTree, Limits, Node, NodeKind, Problems, plain_value
from evaluation.formats.xml_parts import Prolog, xml_prolog

_NO_METADATA: Mapping[str, Any] = MappingProxyType({})
# Length of one document.
MAX_CHARACTERS = 20_000_000
MAX_TITLE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk given by the file: its id and its span in the document's text, end exclusive."""

    id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document read from a file. ``media`` is its format; without ``passages`` the text is split into chunks."""

    id: str
    text: str
    title: str = ""
    media: str = "text"
    passages: tuple[Passage, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NO_METADATA)


MEDIA_BY_ENDING = {
    "txt": "text",
    "text": "text",
    "md": "markdown",
    "markdown": "markdown",
    "html": "html",
    "htm": "html",
    "pdf": "pdf",
    "docx": "docx",
    "jsonl": "records",
    "ndjson": "records",
    "json": "records",
    "parquet": "records",
    "arrow": "records",
}


def read_documents(data: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> list[SourceDocument]:
    """Read the documents of a file. ``name`` is its name or path within a folder and becomes the document's id.

    :raises InvalidFile: with every problem found; a file without text has one."""
    problems, limits = Problems(name), replace(Limits(), bytes=max_bytes, unpacked_bytes=10 * max_bytes)
    media = MEDIA_BY_ENDING.get(file_extension(name), "")
    if not media:
        problems.stop("document_unknown", known=", ".join(sorted(MEDIA_BY_ENDING)))
    if len(data) > max_bytes:
        problems.stop("file_too_large", size=len(data), limit=max_bytes)
    if not data.strip():
        problems.stop("file_empty")
    if media == "records":
        accepted = (FileFormat.JSONL, FileFormat.JSON, FileFormat.PARQUET, FileFormat.ARROW)
        return _read_records(read_tree(data, problems, accepted, max_bytes), name, problems)
    title, text = _READERS[media](data, problems, limits)
    text = tidy(text)
    if len(text) > MAX_CHARACTERS:
        problems.stop("document_too_long", limit=MAX_CHARACTERS)
    if not text:
        problems.stop("document_without_text")
    return [SourceDocument(_shorten(name), text, _title(title or _heading(text)), media)]


_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff]")


def tidy(text: str) -> str:
    """Normalise text: NFC, no control characters, no trailing white space, at most one blank line in a row."""
    text = normalize_nfc(_UNSTORABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _heading(text: str) -> str:
    """Return the first heading of Markdown; empty for other texts."""
    first = text.partition("\n")[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def _title(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_LENGTH]


def _shorten(name: str) -> str:
    """Shorten a name from the left, because the end of a long path is more specific."""
    short = normalize_nfc(_UNSTORABLE.sub("", name))
    return short if len(short) <= MAX_SHORT_TEXT else "…" + short[1 - MAX_SHORT_TEXT :]


def _text(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    return "", decode(data, problems)[0]


_BLOCK_NAMES = (
    "address article aside blockquote dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main "
    "nav ol p pre section table tbody thead tr ul br td th caption"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNREAD = {"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "textarea", "select"}


class _HTMLText(HTMLParser):
    """Extracts the visible text of well-formed HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Start a paragraph for a block and put a bar before a table cell."""
        self.parts.append({"br": "\n", "td": " | ", "th": " | ", "li": "\n- ", "tr": "\n"}.get(tag, "\n\n"))

    def handle_endtag(self, tag: str) -> None:
        """End the paragraph of a block."""
        if tag not in {"td", "th", "br", "li", "tr"}:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Add text with white space collapsed, as browsers do."""
        self.parts.append(re.sub(r"\s+", " ", data))


_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)


def _html(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    source = decode(data, problems)[0]
    title = _TITLE.search(source)
    # The sanitiser parses like a browser and returns well-formed HTML without scripts, styles and attributes.
    clean = nh3.clean(source, tags=_BLOCKS, attributes={}, clean_content_tags=_UNREAD | {"title"})
    reader = _HTMLText()
    reader.feed(clean)
    reader.close()
    lines = (line.strip() for line in "".join(reader.parts).split("\n"))
    return unescape(title[1]) if title else "", "\n".join(line.lstrip("| ") for line in lines)


_PDF_SECONDS, _PDF_MEMORY, _PDF_PAGES = 60, 1_500_000_000, 5_000
_PDF_SCRIPT = """
import io, json, resource, sys
seconds, memory, pages = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import logging
logging.disable(logging.CRITICAL)
from pypdf import PdfReader
reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
if reader.is_encrypted and not reader.decrypt(""):
    output = {"problem": "pdf_encrypted"}
elif len(reader.pages) > pages:
    output = {"problem": "pdf_too_long"}
else:
    title = (reader.metadata.title if reader.metadata else None) or ""
    output = {"title": str(title), "pages": [page.extract_text() for page in reader.pages]}
sys.stdout.write(json.dumps(output))
"""


def _pdf(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    """Extract the text of the pages with pypdf; scanned pages have none."""
    if not data[:1024].lstrip().startswith(b"%PDF"):
        problems.stop("pdf_broken", detail="%PDF")
    limits = [str(number) for number in (_PDF_SECONDS, _PDF_MEMORY, _PDF_PAGES)]
    command = [sys.executable, "-I", "-c", _PDF_SCRIPT, *limits]
    try:
        process = subprocess.run(  # noqa: S603  -- our own script; the document is its input
            command, input=data, capture_output=True, timeout=2 * _PDF_SECONDS, check=False, env={}
        )
    except subprocess.TimeoutExpired:
        problems.stop("pdf_too_long", limit=_PDF_PAGES)
    if process.returncode:
        last_line = process.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        problems.stop("pdf_broken", detail=last_line[:200] or f"status {process.returncode}")
    output = json.loads(process.stdout)
    if output.get("problem") == "pdf_encrypted":
        problems.stop("pdf_encrypted")
    if "problem" in output:
        problems.stop("pdf_too_long", limit=_PDF_PAGES)
    pages = [page for page in output["pages"] if page.strip()]
    if not pages:
        problems.stop("pdf_without_text")
    return output["title"], "\n\n".join(pages)


_WORD_PART = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def _docx(data: bytes, problems: Problems, limits: Limits) -> tuple[str, str]:
    """Extract paragraphs and tables of the document's body, without deleted text."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            part = archive.getinfo(_WORD_PART)
            if part.file_size > limits.unpacked_bytes:
                problems.stop("docx_too_large", limit=limits.unpacked_bytes)
            with archive.open(part) as stream:
                xml = stream.read(limits.unpacked_bytes + 1)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, OSError, EOFError, ValueError) as error:
        problems.stop("docx_broken", detail=f"{type(error).__name__}: {str(error)[:100]}")
    except zlib.error as error:
        problems.stop("docx_broken", detail=str(error)[:100])
    if xml_prolog(xml) is Prolog.UNUSUAL:
        problems.stop("docx_entities")
    title, parts, line, depth = "", [], [], 0
    try:
        # Entity declarations are refused above.
        for event, element in ET.iterparse(io.BytesIO(xml), events=("start", "end")):  # noqa: S314
            tag = element.tag.removeprefix(_W)
            if event == "start":
                depth += 1
                if depth > _MAX_DEPTH:
                    problems.stop("too_deep", limit=_MAX_DEPTH)
                continue
            depth -= 1
            if tag == "t":
                line.append(element.text or "")
            elif tag in {"tab", "br", "cr"}:
                line.append(" ")
            elif tag == "pStyle" and element.get(f"{_W}val", "").lower() == "title":
                title = title or _PENDING_TITLE
            elif tag == "p":
                paragraph = "".join(line)
                title = paragraph if title == _PENDING_TITLE and paragraph.strip() else title
                parts.append(paragraph)
                line = []
            elif tag == "tr":
                parts.append("")
            element.clear()
    except ET.ParseError as error:
        problems.stop("docx_broken", detail=str(error)[:100])
    return "" if title == _PENDING_TITLE else title, "\n\n".join(parts)


# Placeholder for a title whose text follows.
_PENDING_TITLE = "\x00"
_MAX_DEPTH = 200

_READERS: Mapping[str, Callable[[bytes, Problems, Limits], tuple[str, str]]] = {
    "text": _text,
    "markdown": _text,
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
}

#: Accepted field names of a record; the first one present counts.
_ID = ("chunk_id", "doc_id", "_id", "id", "passage_id", "docid")
_CONTENT = ("contents", "text", "content", "passage", "context", "body")
_SOURCE = ("source", "path", "document", "file", "url")


def _read_records(tree: FileTree, name: str, problems: Problems) -> list[SourceDocument]:
    """Read records as chunks. AutoRAG's ``metadata.path`` or ``source`` names the document of a chunk."""
    documents: dict[str, list[tuple[str, str, str, dict[str, Any]]]] = {}
    lines: dict[str, int] = {}
    for node in tree.root.elements or [tree.root]:
        if not node.entries:
            problems.add("row_not_mapping", node.line, found=node.kind.value)
            continue
        chunk_id, text = normalize_nfc(_field_text(node, _ID)), tidy(_field_text(node, _CONTENT))
        for required, names in ((chunk_id, _ID), (text, _CONTENT)):
            if not required:
                problems.add("missing", node.line, names[0], names=", ".join(names))
        if len(chunk_id) > MAX_SHORT_TEXT:
            problems.add("too_long", node.line, _ID[0], length=len(chunk_id), limit=MAX_SHORT_TEXT)
        first_line = lines.setdefault(chunk_id, node.line)
        if chunk_id and first_line != node.line:
            problems.add("duplicate_id", node.line, _ID[0], id=chunk_id, first_line=first_line)
        metadata = node.entries.get("metadata", Node(NodeKind.NULL, None, node.line))
        source = _field_text(node, _SOURCE) or _field_text(metadata, _SOURCE) or name
        known_fields = {*_ID, *_CONTENT, *_SOURCE, "title", "metadata"}
        extra = {key: plain_value(value) for key, value in node.entries.items() if key not in known_fields}
        documents.setdefault(_shorten(source), []).append((chunk_id, text, _field_text(node, ("title",)), extra))
    problems.refuse_if_any()
    return [_join_chunks(source, chunks) for source, chunks in documents.items()]


def _field_text(node: Node, names: tuple[str, ...]) -> str:
    """Return the text of the first non-empty field; numbers as spelled in the file."""
    for name in names:
        member = node.entries.get(name)
        if member is not None and member.kind not in {NodeKind.NULL, NodeKind.LIST, NodeKind.MAP}:
            text = member.value if isinstance(member.value, str) else member.spelling or str(member.value)
            if text.strip():
                return _UNSTORABLE.sub("", text).strip()
    return ""


def _join_chunks(source: str, chunks: list[tuple[str, str, str, dict[str, Any]]]) -> SourceDocument:
    """Join the chunks of one source into a document, one paragraph each."""
    passages, start = [], 0
    for chunk_id, text, _title_of, _extra in chunks:
        passages.append(Passage(chunk_id, start, start + len(text)))
        start += len(text) + 2
    titles = list(dict.fromkeys(title for _id, _text_of, title, _extra in chunks if title))
    metadata = {chunk_id: extra for chunk_id, _text_of, _title_of, extra in chunks if extra}
    text = "\n\n".join(text for _id, text, _title_of, _extra in chunks)
    title = titles[0] if len(titles) == 1 else source
    return SourceDocument(source, text, _title(title), "records", tuple(passages), metadata)
