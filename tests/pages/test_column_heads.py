"""Column heads of tables begin with a capital letter."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from django.test import Client

from evaluation.models import Run, User
from tests.pages.tours import pages_of_a_lead, pages_of_a_reviewer

#: Symbols of formulas: sample size, p-value, and the number of ranks that count, such as *k=5*.
SYMBOL = re.compile(r"n|p|k=\d+")


class ColumnHeadParser(HTMLParser):
    """Collects the texts of the column heads that no other language marks as data."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.heads: list[str] = []
        self._in_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "th" and ("scope", "row") not in attrs and "lang" not in dict(attrs):
            self._in_head = True
            self.heads.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_head = self._in_head and tag != "th"

    def handle_data(self, data: str) -> None:
        if self._in_head:
            self.heads[-1] += data


def lowercase_heads(page: str) -> set[str]:
    """Return the column heads of the page that begin in lower case and are no symbols."""
    parser = ColumnHeadParser()
    parser.feed(page)
    heads = {" ".join(head.split()) for head in parser.heads}
    return {head for head in heads if head[:1].islower() and not SYMBOL.fullmatch(head)}


def test_column_heads_begin_with_a_capital(toured: dict[str, User]) -> None:
    names = {str(run) for run in Run.objects.all()}
    pages = {"lead": pages_of_a_lead(), "reviewer1": pages_of_a_reviewer(toured["reviewer1"])}
    problems = []
    for name, paths in pages.items():
        client = Client()
        client.force_login(toured[name])
        for path in paths:
            heads = lowercase_heads(client.get(path).content.decode()) - names
            problems += [f"{path}: {head}" for head in sorted(heads)]
    assert not problems, "\n".join(problems)


def test_a_lowercase_head_is_found() -> None:
    page = """<table><tr><th scope="col"><span> </span>among <b>experts</b></th><th>n</th><th>Rated</th></tr>
        <tr><th scope="row">blue</th><th lang="ko">x</th></tr></table>"""
    assert lowercase_heads(page) == {"among experts"}
