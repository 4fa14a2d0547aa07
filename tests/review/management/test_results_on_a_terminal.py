"""Output of ``results``: tables readable at 80 columns, the profile's own figures, and exit codes."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from evaluation.judges.shipped import profile_row
from evaluation.models import Endpoint, Run
from review.management.sheets import Sheet, render_tables
from review.management.tables import results_sheets
from tests.factories import make_judge
from tests.review.builders import answers_to, make_report, run_over, score_all


def lines_of(sheet: Sheet, width: int = 80) -> list[str]:
    console = Console(width=2 * width, file=StringIO(), color_system=None)  # would not hide what is too wide
    with console.capture() as capture:
        for table in render_tables(sheet, width):
            console.print(table)
    return capture.get().splitlines()


def test_long_names_stay_apart_and_empty_columns_are_left_out() -> None:
    names = ("keyword_hit_rate_of_the_first", "keyword_hit_rate_of_the_other")
    header = ("metric", "reviewed", *(f"figure_number_{n}" for n in range(6)))
    lines = lines_of(Sheet("Metrics", header, [(name, "–", *["0.697 [0.676, 0.706]"] * 6) for name in names]))
    text = "\n".join(lines)
    assert "…" not in text
    assert "reviewed" not in text
    # 29 + 3 of the name and its frame leave 80 - 33 = 47 for columns of 15 + 3 each: two a table, so three tables
    assert [text.count(name) for name in names] == [3, 3]
    assert all(f"figure_number_{n}" in text for n in range(6))


@given(st.lists(st.lists(st.text("가나다abc_ –", max_size=24), min_size=4, max_size=4), min_size=1, max_size=5))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(cells: list[list[str]]) -> None:
    lines = lines_of(Sheet("한글 title", ("name", "one", "two", "three"), cells), 60)
    assert all(cell_len(line) <= 60 for line in lines)
    assert "…" not in "".join(lines)


@pytest.mark.django_db
def test_a_profile_gives_its_own_answer() -> None:
    answers = answers_to(["single_hop", "single_hop", "negative", "aggregation"])
    run = run_over(answers, judge=make_judge(answers.project, "one"), profile=profile_row(answers.project, "ragas"))
    score_all(
        run, {"answer_class": ["CORRECT", "WRONG", "CORRECT", "DONT_KNOW"], "claim_support": [1.0, 0.5, 0.0, 0.5]}
    )
    with translation.override("en"):
        sheets = {sheet.title: sheet for sheet in results_sheets(make_report(run))}
    # 2 of 4 are correct; the exact interval of 2 of 4 is 7% to 93%
    classes = next(sheet for sheet in sheets.values() if sheet.header[0] == "class")
    assert next(iter(classes.rows)) == ("CORRECT", "2", "50%", "7% – 93%")
    # answers 1, 2 and 4 have an answer, and the fourth abstained; of the negative one nothing abstained
    assert next(iter(sheets["Answers and abstentions"].rows))[1:] == ("2", "1")


@pytest.mark.django_db
def test_passing_bands_and_diagnosis_are_printed() -> None:
    answers = answers_to(["a"] * 3)
    run = run_over(answers, profile=profile_row(answers.project, "regulation"))
    with translation.override("en"):
        titles = [sheet.title for sheet in results_sheets(make_report(run))]
    assert "Passing answers" in titles


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "code"), [(Run.State.PAUSED, 1), (Run.State.CANCELLED, 1), (Run.State.INCOMPLETE, 100)]
)
def test_exit_code_is_1_when_stopped_and_100_when_results_are_missing(state: Run.State, code: int) -> None:
    run = run_over(answers_to(["a"]), state=state)
    with pytest.raises(SystemExit) as error:
        call_command("results", run.pk, stdout=StringIO(), stderr=StringIO())
    assert error.value.code == code


@pytest.mark.django_db
def test_missing_key_is_named_with_the_place_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONCORD_KEY_ONE", raising=False)
    answers = answers_to(["a"])
    endpoint = Endpoint.objects.create(name="e", base_url="https://one.example/v1", key_env="CONCORD_KEY_ONE")
    judge = make_judge(answers.project, "one", endpoint)
    run = run_over(answers, judge=judge)
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED, reason="key_missing")
    err = StringIO()
    with translation.override("en"), pytest.raises(SystemExit):
        call_command("results", run.pk, stdout=StringIO(), stderr=err)
    assert "Set CONCORD_KEY_ONE in the environment or the .env file of web and workers." in err.getvalue()
    assert f"manage.py resume_run {run.pk}" in err.getvalue()
