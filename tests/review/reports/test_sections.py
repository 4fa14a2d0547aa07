"""Report sections: an entry that is declared once appears in every output that it names, and in no other."""

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


def make_entry(about: str, value: Any, outputs: frozenset[Output] = EVERYWHERE) -> Entry[Any]:
    return Entry(f"made_up_{about}.", lambda _row: value, "made up", outputs, f"Made-up {about.replace('_', ' ')}.")


@pytest.fixture
def run() -> Run:
    return fill(run_over(answers_to(["a", "b"])), [5, 3])


def export_bytes(run: Run, form: str) -> bytes:
    with override("en"):
        return b"".join(export(run, form).chunks)


def page(run: Run) -> str:
    client = Client()
    client.force_login(make_user(Role.VIEWER, run.project))
    return client.get(reverse("run", args=[run.pk])).content.decode()


def terminal(run: Run) -> str:
    output = io.StringIO()
    with override("en"):
        call_command("results", str(run.pk), stdout=output)
    return output.getvalue()


def workbook(run: Run) -> str:
    sheets = load_workbook(io.BytesIO(export_bytes(run, "xlsx")))
    return "\n".join(str(cell) for sheet in sheets for row in sheet.iter_rows(values_only=True) for cell in row)


READERS: dict[Output, Callable[[Run], str]] = {
    Output.PAGE: page,
    Output.XLSX: workbook,
    Output.TERMINAL: terminal,
} | {
    output: lambda run, form=str(output): export_bytes(run, form).decode()  # type: ignore[misc]
    for output in Output
    if output not in {Output.PAGE, Output.XLSX, Output.TERMINAL}
}
VALUES: dict[str, Callable[[float], Any]] = {
    "number": lambda value: value,
    "figure": lambda value: Figure(value, value - 0.02, value + 0.02, "questions_like_these", 7),
    "several": lambda value: {"left": value, "right": 2},
}


def has_entry(text: str, about: str) -> bool:
    """Return whether the text has the entry: by its name in files for programs, by its title in files for people."""
    return f"made_up_{about}." in text or f"Made-up {about.replace('_', ' ')}." in text


@pytest.mark.parametrize("kind", list(VALUES))
@pytest.mark.slow
def test_entry_appears_everywhere_by_default(run: Run, kind: str) -> None:
    numbers = {section.name: 0.4131 + at / 100 for at, section in enumerate(SECTIONS)}
    entries = [(section, make_entry(section.name, VALUES[kind](numbers[section.name]))) for section in SECTIONS]
    with declared(*entries):
        text_by_output = {output: render(run) for output, render in READERS.items()}
    for output, text in text_by_output.items():
        for name, number in numbers.items():
            is_expected = output in EVERYWHERE
            assert has_entry(text, name) is is_expected, (output, name)
            assert not is_expected or f"{number:.2f}"[:4] in text, (output, name)


@pytest.mark.parametrize("section", first_fast(SECTIONS, 2), ids=lambda section: section.name)
def test_entry_appears_only_in_its_outputs(run: Run, section: Section[Any, Any]) -> None:
    with declared(*((section, make_entry(output, 0.4321, frozenset({output}))) for output in Output)):
        text_by_output = {rendered_output: render(run) for rendered_output, render in READERS.items()}
    for output in Output:
        outputs_with_entry = {
            rendered_output for rendered_output, text in text_by_output.items() if has_entry(text, output)
        }
        # a single answer stands in no test result, and commands print none
        assert outputs_with_entry == ({output} if section is not ANSWERS or output in EVERYWHERE else set())


def test_json_lines_and_tables_name_the_section_of_each_entry(run: Run) -> None:
    figure = VALUES["figure"](0.4321)
    with declared(
        (OVERALL, make_entry("a", figure)), (METRICS, make_entry("b", 0.5)), (BY_CATEGORY, make_entry("c", 3))
    ):
        first = json.loads(export_bytes(run, "jsonl").splitlines()[0])
        header = export_bytes(run, "csv").decode("utf-8-sig").splitlines()[0].split(",")
    assert first["overall"]["made_up_a."]["value"] == 0.4321
    assert first["metrics"]["correctness"]["made_up_b."] == 0.5
    assert first["metrics"]["correctness"]["value"] == 5
    assert first["by_category"] == {"made_up_c.": 3}
    columns = {"overall.made_up_a.", "metrics.correctness.made_up_b.", "by_category.made_up_c."}
    assert columns <= set(header)


def test_every_entry_has_a_meaning_and_shown_ones_a_title() -> None:
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
            names = [entry.name for entry in section.entries(output)]
            assert len(names) == len(set(names)), (section.name, output)
        for part in section.parts:
            if isinstance(part, Section):
                check(part)

    check(REPORT)
    check(ANSWERS)
