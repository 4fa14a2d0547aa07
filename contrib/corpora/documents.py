"""Documents of a corpus from files: text, Markdown, HTML, PDF and DOCX are a document each; the records of JSON Lines
and Parquet are chunks, those with one source in one document.

A document is plain text with paragraphs behind blank lines. Nothing of a file is ever run or fetched: of HTML only what
is read remains, of DOCX one part is unpacked within a limit, PDF is read by a process of its own with limits on time
and memory.
"""

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

from evaluation.core.canonical import composed
from evaluation.formats.reading import FileFormat, decode, ending, read_tree
from evaluation.formats.tree import MAX_BYTES, SHORT_TEXT, FileTree, Kind, Limits, Node, Problems, plain

_NOTHING: Mapping[str, Any] = MappingProxyType({})
MOST_CHARACTERS = 20_000_000  # of one file's text
LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that a file came with: its id, and its place in the document's text, end exclusive."""

    id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document that was read. ``media`` says from what; ``passages`` are its chunks where the file gave them, else
    the text is split."""

    id: str
    text: str
    title: str = ""
    media: str = "text"
    passages: tuple[Passage, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


ENDINGS = {
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
    """The documents of a file; ``name`` is its name or its path within a folder, which becomes a document's id.

    :raises InvalidFile: with every problem found; a file without any text has one.
    """
    problems, limits = Problems(name), replace(Limits(), bytes=max_bytes, inflated=10 * max_bytes)
    media = ENDINGS.get(ending(name), "")
    if not media:
        problems.stop("document_unknown", known=", ".join(sorted(ENDINGS)))
    if len(data) > max_bytes:
        problems.stop("file_too_large", size=len(data), limit=max_bytes)
    if not data.strip():
        problems.stop("file_empty")
    if media == "records":
        accepted = (FileFormat.JSONL, FileFormat.JSON, FileFormat.PARQUET, FileFormat.ARROW)
        return _of_records(read_tree(data, problems, accepted, max_bytes), name, problems)
    title, text = _READERS[media](data, problems, limits)
    text = tidy(text)
    if len(text) > MOST_CHARACTERS:
        problems.stop("document_too_long", limit=MOST_CHARACTERS)
    if not text:
        problems.stop("document_without_text")
    return [SourceDocument(_short(name), text, _title(title or _heading(text)), media)]


_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufeff]")


def tidy(text: str) -> str:
    """The text as it is kept: composed, without control characters, lines without white space at their ends, and at
    most one blank line in a row."""
    text = composed(_UNSTORABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _heading(text: str) -> str:
    """The first heading of Markdown; nothing for other texts."""
    first = text.partition("\n")[0]
    return first.lstrip("#").strip() if first.startswith("#") else ""


def _title(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TITLE]


def _short(name: str) -> str:
    """A name that fits: the end of a long path tells more than its beginning."""
    short = composed(_UNSTORABLE.sub("", name))
    return short if len(short) <= SHORT_TEXT else "…" + short[1 - SHORT_TEXT :]


def _text(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    return "", decode(data, problems)[0]


_BLOCK_NAMES = (
    "address article aside blockquote dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main "
    "nav ol p pre section table tbody thead tr ul br td th caption"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNREAD = {"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "textarea", "select"}


class _Reader(HTMLParser):
    """What a person reads of well-formed HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """A block is a paragraph, a cell stands behind a bar."""
        self.parts.append({"br": "\n", "td": " | ", "th": " | ", "li": "\n- ", "tr": "\n"}.get(tag, "\n\n"))

    def handle_endtag(self, tag: str) -> None:
        """What follows a block is another."""
        if tag not in {"td", "th", "br", "li", "tr"}:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Text, with white space as a browser shows it."""
        self.parts.append(re.sub(r"\s+", " ", data))


_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)


def _html(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    source = decode(data, problems)[0]
    title = _TITLE.search(source)
    # The sanitiser reads as a browser does and leaves well-formed HTML without scripts, styles and attributes.
    clean = nh3.clean(source, tags=_BLOCKS, attributes={}, clean_content_tags=_UNREAD | {"title"})
    reader = _Reader()
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
    told = {"problem": "pdf_encrypted"}
elif len(reader.pages) > pages:
    told = {"problem": "pdf_too_long"}
else:
    title = (reader.metadata.title if reader.metadata else None) or ""
    told = {"title": str(title), "pages": [page.extract_text() for page in reader.pages]}
sys.stdout.write(json.dumps(told))
"""


def _pdf(data: bytes, problems: Problems, _limits: Limits) -> tuple[str, str]:
    """The text of the pages, by pypdf; a scanned page has none."""
    if not data[:1024].lstrip().startswith(b"%PDF"):
        problems.stop("pdf_broken", detail="%PDF")
    limits = [str(number) for number in (_PDF_SECONDS, _PDF_MEMORY, _PDF_PAGES)]
    command = [sys.executable, "-I", "-c", _PDF_SCRIPT, *limits]
    try:
        done = subprocess.run(  # noqa: S603  -- our own script; the document is its input
            command, input=data, capture_output=True, timeout=2 * _PDF_SECONDS, check=False, env={}
        )
    except subprocess.TimeoutExpired:
        problems.stop("pdf_too_long", limit=_PDF_PAGES)
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        problems.stop("pdf_broken", detail=last[:200] or f"status {done.returncode}")
    told = json.loads(done.stdout)
    if told.get("problem") == "pdf_encrypted":
        problems.stop("pdf_encrypted")
    if "problem" in told:
        problems.stop("pdf_too_long", limit=_PDF_PAGES)
    pages = [page for page in told["pages"] if page.strip()]
    if not pages:
        problems.stop("pdf_without_text")
    return told["title"], "\n\n".join(pages)


_WORD_PART = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def _docx(data: bytes, problems: Problems, limits: Limits) -> tuple[str, str]:
    """The paragraphs and tables of the document's body; what was deleted in it is left out."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            part = archive.getinfo(_WORD_PART)
            if part.file_size > limits.inflated:
                problems.stop("docx_too_large", limit=limits.inflated)
            with archive.open(part) as opened:
                xml = opened.read(limits.inflated + 1)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, OSError, EOFError, ValueError) as error:
        problems.stop("docx_broken", detail=f"{type(error).__name__}: {str(error)[:100]}")
    except zlib.error as error:
        problems.stop("docx_broken", detail=str(error)[:100])
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml or xml[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        problems.stop("docx_entities")
    title, parts, line, depth = "", [], [], 0
    try:
        # Declarations of entities are refused above.
        for event, element in ET.iterparse(io.BytesIO(xml), events=("start", "end")):  # noqa: S314
            tag = element.tag.removeprefix(_W)
            if event == "start":
                depth += 1
                if depth > _MOST_DEPTH:
                    problems.stop("too_deep", limit=_MOST_DEPTH)
                continue
            depth -= 1
            if tag == "t":
                line.append(element.text or "")
            elif tag in {"tab", "br", "cr"}:
                line.append(" ")
            elif tag == "pStyle" and element.get(f"{_W}val", "").lower() == "title":
                title = title or _AWAITED
            elif tag == "p":
                said = "".join(line)
                title = said if title == _AWAITED and said.strip() else title
                parts.append(said)
                line = []
            elif tag == "tr":
                parts.append("")
            element.clear()
    except ET.ParseError as error:
        problems.stop("docx_broken", detail=str(error)[:100])
    return "" if title == _AWAITED else title, "\n\n".join(parts)


_AWAITED = "\x00"  # a title whose text is still to come
_MOST_DEPTH = 200

_READERS: Mapping[str, Callable[[bytes, Problems, Limits], tuple[str, str]]] = {
    "text": _text,
    "markdown": _text,
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
}

#: Names of the fields of a record, the first that is there counts.
_ID = ("chunk_id", "doc_id", "_id", "id", "passage_id", "docid")
_CONTENT = ("contents", "text", "content", "passage", "context", "body")
_SOURCE = ("source", "path", "document", "file", "url")


def _of_records(tree: FileTree, name: str, problems: Problems) -> list[SourceDocument]:
    """Records as chunks. AutoRAG's ``metadata.path`` and our ``source`` name the document that a chunk is of."""
    documents: dict[str, list[tuple[str, str, str, dict[str, Any]]]] = {}
    lines: dict[str, int] = {}
    for node in tree.root.elements or [tree.root]:
        if not node.entries:
            problems.add("row_not_mapping", node.line, found=node.kind.value)
            continue
        chunk_id, text = composed(_said(node, _ID)), tidy(_said(node, _CONTENT))
        for missing, names in ((chunk_id, _ID), (text, _CONTENT)):
            if not missing:
                problems.add("missing", node.line, names[0], names=", ".join(names))
        if len(chunk_id) > SHORT_TEXT:
            problems.add("too_long", node.line, _ID[0], length=len(chunk_id), limit=SHORT_TEXT)
        first = lines.setdefault(chunk_id, node.line)
        if chunk_id and first != node.line:
            problems.add("duplicate_id", node.line, _ID[0], id=chunk_id, first_line=first)
        inner = node.entries.get("metadata", Node(Kind.NULL, None, node.line))
        source = _said(node, _SOURCE) or _said(inner, _SOURCE) or name
        known = {*_ID, *_CONTENT, *_SOURCE, "title", "metadata"}
        beside = {key: plain(value) for key, value in node.entries.items() if key not in known}
        documents.setdefault(_short(source), []).append((chunk_id, text, _said(node, ("title",)), beside))
    problems.refuse_if_any()
    return [_joined(source, chunks) for source, chunks in documents.items()]


def _said(node: Node, names: tuple[str, ...]) -> str:
    """The text of the first of the fields that says something; numbers by their spelling."""
    for name in names:
        found = node.entries.get(name)
        if found is not None and found.kind not in {Kind.NULL, Kind.LIST, Kind.MAP}:
            text = found.value if isinstance(found.value, str) else found.spelling or str(found.value)
            if text.strip():
                return _UNSTORABLE.sub("", text).strip()
    return ""


def _joined(source: str, chunks: list[tuple[str, str, str, dict[str, Any]]]) -> SourceDocument:
    """The chunks of one source as a document, in their order, with a paragraph each."""
    passages, start = [], 0
    for chunk_id, text, _title_of, _beside in chunks:
        passages.append(Passage(chunk_id, start, start + len(text)))
        start += len(text) + 2
    titles = list(dict.fromkeys(title for _id, _text_of, title, _beside in chunks if title))
    metadata = {chunk_id: beside for chunk_id, _text_of, _title_of, beside in chunks if beside}
    text = "\n\n".join(text for _id, text, _title_of, _beside in chunks)
    title = titles[0] if len(titles) == 1 else source
    return SourceDocument(source, text, _title(title), "records", tuple(passages), metadata)
