"""Class and spread tables of the ragas profile by system, as percentages."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import translation

from evaluation.core.roles import Role
from evaluation.judges.shipped import profile_row
from evaluation.messages.explanations import category_name
from evaluation.models import Run
from review.comparisons.comparison import compare, comparison_json
from review.comparisons.pages import systems_card
from review.management.sheets import escape_control_characters
from review.management.tables import results_sheets, system_sheets
from review.templatetags.figures import plain
from tests.factories import make_answer_set, make_judge, make_user
from tests.review.builders import answers_to, make_report, run_over, score_all

pytestmark = pytest.mark.django_db
CLASSES = (["CORRECT", "WRONG", "CORRECT", "DONT_KNOW"], ["WRONG", "WRONG", "WRONG", "CORRECT"])
FAITHFUL = ([1.0, 0.5, 0.0, 0.5], [1.0, 1.0, 1.0, 1.0])


@pytest.fixture
def runs() -> list[Run]:
    """Two systems that answered the same four questions."""
    first = answers_to(["single_hop", "single_hop", "negative", "aggregation"])
    judge, scored_runs = make_judge(first.project, "one"), []
    for answers, labels, shares in zip((first, make_answer_set(first.question_set)), CLASSES, FAITHFUL, strict=True):
        run = run_over(answers, judge=judge, profile=profile_row(answers.project, "ragas"))
        score_all(run, {"answer_class": labels, "claim_support": shares})
        scored_runs.append(run)
    return scored_runs


def test_class_table_shows_shares_and_intervals_by_system(runs: list[Run]) -> None:
    with translation.override("en"):
        classes, spread = system_sheets([make_report(run) for run in runs])
    first, second = classes.rows
    assert classes.header[2:] == ("CORRECT", "WRONG", "DONT_KNOW")
    assert [cell.split(",")[0] for cell in first[2:]] == ["2 (50%", "1 (25%", "1 (25%"]
    assert [cell.split(",")[0] for cell in second[2:]] == ["1 (25%", "3 (75%", "0 (0%"]
    assert first[1] != second[1]
    # mean, lowest and highest: (100 + 50 + 0 + 50) / 4 and 100 throughout
    total_rows = [row[-3:] for row in spread.rows if row[2] == "all"]
    assert total_rows == [("50.000", "0.000", "100.000"), ("100.000", "100.000", "100.000")]


def test_comparison_json_has_classes_and_spread(runs: list[Run]) -> None:
    report = json.loads(json.dumps(comparison_json(compare(runs))))
    counts = [
        {label: cell["count"] for label, cell in run["classes"]["answer_class"]["total"].items()}
        for run in report["runs"]
    ]
    assert counts == [{"CORRECT": 2, "WRONG": 1, "DONT_KNOW": 1}, {"CORRECT": 1, "WRONG": 3, "DONT_KNOW": 0}]
    assert [run["spread"][0]["mean"] for run in report["runs"]] == [50.0, 100.0]


def test_compare_command_prints_classes(runs: list[Run]) -> None:
    output = StringIO()
    with translation.override("en"):
        call_command("compare", *[str(run.pk) for run in runs], stdout=output)
    assert "answer_class by system" in output.getvalue()


def test_page_shows_classes_by_category_and_system(runs: list[Run]) -> None:
    with translation.override("en"):
        card = systems_card([make_report(run) for run in runs], {run.pk: str(run) for run in runs})
    (classes,) = card.classes
    cells = [[cell.answers for cell in line.cells] for line in classes.lines]
    # all questions of either system, then single_hop (2 questions), negative (1), aggregation (1)
    assert cells[:2] == [[2, 1, 1], [1, 3, 0]]
    by_category = {category_name(line.category): 0 for line in classes.lines}
    for line in classes.lines:
        by_category[category_name(line.category)] += sum(cell.answers for cell in line.cells)
    assert by_category == {"": 8, "one fact": 4, "negative question": 2, "aggregated facts": 2}
    assert len({line.system for line in classes.lines}) == 2
    assert [plain(row.mean) for _system, row in card.spread[:2]] == ["50.00", "100.00"]
    client = Client()
    client.force_login(make_user(Role.VIEWER, runs[0].project))
    page = client.get(reverse("run-compare"), {"runs": ",".join(str(run.pk) for run in runs)}).content.decode()
    assert "Spread of answer" in page
    assert "DONT_KNOW" in page


def test_profile_without_classes_has_no_system_tables() -> None:
    run = run_over(answers_to(["single_hop"]))
    assert list(system_sheets([make_report(run)])) == []


def test_ragas_metric_is_shown_on_the_ragas_scale(runs: list[Run]) -> None:
    with translation.override("en"):
        metrics = next(sheet for sheet in results_sheets(make_report(runs[0])) if sheet.title == "Metrics")
    values = {row[0]: row[1] for row in metrics.rows}
    assert values["ragas_faithfulness"] == "50.000"  # the mean of 1, .5, 0 and .5 as a percentage


def test_terminal_control_characters_are_escaped() -> None:
    assert escape_control_characters("c\x1b[2J\x07 가\nb") == "c\\x1b[2J\\x07 가\nb"
