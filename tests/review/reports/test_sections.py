"""An entry that is declared once stands in every output that it names, and in no other."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override
from openpyxl import load_workbook

from evaluation.core.roles import Role
from evaluation.models import Run
from review.reports.entries import EVERYWHERE, Entry, Output, Section
from review.reports.exports import export
from review.reports.figure import Figure
from review.reports.sections import ANSWERS, BY_CATEGORY, COVERAGE, METRICS, OVERALL, REPORT, RUN
from tests.examples import first_fast
from tests.factories import make_user
from tests.review.builders import answers_to, run_over
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db
SECTIONS: tuple[Section[Any, Any], ...] = (RUN, OVERALL, METRICS, COVERAGE, BY_CATEGORY, ANSWERS)


@contextmanager
def declared(*entries: tuple[Section[Any, Any], Entry[Any]]) -> Iterator[None]:
    for section, entry in entries:
        section.parts.append(entry)
    try:
        yield
    finally:
        for section, _ in entries:
            section.parts.pop()


def made_up(about: str, value: Any, outputs: frozenset[Output] = EVERYWHERE) -> Entry[Any]:
    return Entry(f"made_up_{about}.", lambda _row: value, "made up", outputs, f"Made-up {about.replace('_', ' ')}.")


@pytest.fixture
def run() -> Run:
    return fill(run_over(answers_to(["a", "b"])), [5, 3])


def exported(run: Run, form: str) -> bytes:
    with override("en"):
        return b"".join(export(run, form).chunks)


def page(run: Run) -> str:
    client = Client()
    client.force_login(make_user(Role.VIEWER, run.project))
    return client.get(reverse("run", args=[run.pk])).content.decode()


def terminal(run: Run) -> str:
    out = io.StringIO()
    with override("en"):
        call_command("results", str(run.pk), stdout=out)
    return out.getvalue()


def workbook(run: Run) -> str:
    sheets = load_workbook(io.BytesIO(exported(run, "xlsx")))
    return "\n".join(str(cell) for sheet in sheets for row in sheet.iter_rows(values_only=True) for cell in row)


READERS: dict[Output, Callable[[Run], str]] = {
    Output.PAGE: page,
    Output.XLSX: workbook,
    Output.TERMINAL: terminal,
} | {
    output: lambda run, form=str(output): exported(run, form).decode()  # type: ignore[misc]
    for output in Output
    if output not in {Output.PAGE, Output.XLSX, Output.TERMINAL}
}
VALUES: dict[str, Callable[[float], Any]] = {
    "number": lambda value: value,
    "figure": lambda value: Figure(value, value - 0.02, value + 0.02, "questions_like_these", 7),
    "several": lambda value: {"left": value, "right": 2},
}


def says(text: str, about: str) -> bool:
    """Whether an entry stands in a text: for programs by its name, for people by its title."""
    return f"made_up_{about}." in text or f"Made-up {about.replace('_', ' ')}." in text


@pytest.mark.parametrize("kind", list(VALUES))
def test_an_entry_stands_everywhere_by_default(run: Run, kind: str) -> None:
    numbers = {section.name: 0.4131 + at / 100 for at, section in enumerate(SECTIONS)}
    entries = [(section, made_up(section.name, VALUES[kind](numbers[section.name]))) for section in SECTIONS]
    with declared(*entries):
        found = {output: read(run) for output, read in READERS.items()}
    for output, text in found.items():
        for name, number in numbers.items():
            stands = output in EVERYWHERE
            assert says(text, name) is stands, (output, name)
            assert not stands or f"{number:.2f}"[:4] in text, (output, name)


@pytest.mark.parametrize("section", first_fast(SECTIONS, 2), ids=lambda one: one.name)
def test_an_entry_stands_only_where_it_says(run: Run, section: Section[Any, Any]) -> None:
    with declared(*((section, made_up(output, 0.4321, frozenset({output}))) for output in Output)):
        found = {other: read(run) for other, read in READERS.items()}
    for output in Output:
        there = {other for other, text in found.items() if says(text, output)}
        # a single answer stands in no test result, and commands print none
        assert there == ({output} if section is not ANSWERS or output in EVERYWHERE else set())


def test_json_lines_and_tables_say_of_each_answer_what_it_belongs_to(run: Run) -> None:
    figure = VALUES["figure"](0.4321)
    with declared((OVERALL, made_up("a", figure)), (METRICS, made_up("b", 0.5)), (BY_CATEGORY, made_up("c", 3))):
        first = json.loads(exported(run, "jsonl").splitlines()[0])
        header = exported(run, "csv").decode("utf-8-sig").splitlines()[0].split(",")
    assert first["overall"]["made_up_a."]["value"] == 0.4321
    assert first["metrics"]["correctness"]["made_up_b."] == 0.5
    assert first["metrics"]["correctness"]["value"] == 5
    assert first["by_category"] == {"made_up_c.": 3}
    wanted = {"overall.made_up_a.", "metrics.correctness.made_up_b.", "by_category.made_up_c."}
    assert wanted <= set(header)


def test_what_is_declared_has_a_meaning_and_readers_a_title() -> None:
    def walk(section: Section[Any, Any]) -> Iterator[Entry[Any]]:
        for part in section.parts:
            yield from walk(part) if isinstance(part, Section) else [part]

    for entry in (*walk(REPORT), *walk(ANSWERS)):
        assert entry.meaning, entry.name
        if entry.outputs & {Output.PAGE, Output.MARKDOWN, Output.TERMINAL}:
            assert entry.title, entry.name


def test_an_entry_is_declared_once_for_each_output() -> None:
    def check(section: Section[Any, Any]) -> None:
        for output in Output:
            names = [one.name for one in section.entries(output)]
            assert len(names) == len(set(names)), (section.name, output)
        for part in section.parts:
            if isinstance(part, Section):
                check(part)

    check(REPORT)
    check(ANSWERS)
