"""XML parts of office files, checked before they are parsed."""

from __future__ import annotations

from enum import Enum, auto
from xml.parsers import expat


class Prolog(Enum):
    """``PLAIN``: UTF-8 and no document type. ``UNUSUAL``: another encoding or a document type, which may declare
    entities. ``NO_XML``: no parser would get to the first element."""

    PLAIN = auto()
    UNUSUAL = auto()
    NO_XML = auto()


class _Found(Exception):
    pass


def xml_prolog(part: bytes) -> Prolog:
    """Read a part up to its first element, with the parser that reads all of it later."""
    prolog = Prolog.PLAIN

    def refuse(*_: object) -> None:
        nonlocal prolog
        prolog = Prolog.UNUSUAL
        raise _Found

    def check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() != "utf-8":
            refuse()

    def end(*_: object) -> None:
        # UTF-16 needs no declaration.
        if b"\0" in part[:4]:
            refuse()
        raise _Found

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler, parser.StartElementHandler = refuse, check_encoding, end
    try:
        parser.Parse(part, True)
    except _Found:
        return prolog
    except (expat.ExpatError, ValueError, LookupError):
        pass
    return Prolog.NO_XML
