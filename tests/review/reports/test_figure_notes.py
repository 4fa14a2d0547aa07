"""Notes on a corrected figure, and category estimates on the run page and in the HTML file."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.roles import Role
from evaluation.models import Run
from review.reports.exports import export
from review.reports.figure import Figure, notes, withheld, withheld_reason
from review.reports.report import category_tables
from tests.factories import make_user
from tests.pages.markup import compact
from tests.review.builders import answers_to, make_report, run_over
from tests.review.sampled import fill, rate_half


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ({"labels": 4}, "Too few answers are rated. 4 more ratings are needed."),
        ({"labels": 1}, "Too few answers are rated. 1 more rating is needed."),
        ({"strata": {"a 3": 1, "b 5": 2}}, "Too few answers are rated. Ratings missing by stratum: a 3 (1), b 5 (2)."),
        ({"answers": 7}, "Too few answers are rated. 7 answers could not have been sampled."),
        ({"non_response": 0.25, "most": 0.1}, "Too few answers are rated. Share: 25%."),
        ({}, "Too few answers are rated."),
    ],
)
def test_withheld_figure_names_what_is_missing(missing: dict[str, object], sentence: str) -> None:
    with override("en"):
        assert withheld_reason(withheld("too_few_labels", 40, missing=missing)) == sentence


def test_withheld_parts_are_named_by_their_titles() -> None:
    missing = {"components": {"correctness": {"reason": "too_few_labels", "labels": 10}}}
    with override("en"):
        sentence = withheld_reason(withheld("components_withheld", missing=missing), {"correctness": "Correctness"})
    assert sentence == (
        "A part of the overall score cannot be corrected yet. "
        "Correctness: Too few answers are rated. 10 more ratings are needed."
    )


def test_notes_explain_a_figure() -> None:
    extra = {
        "warnings": ["few_off_commonest"],
        "non_response": 0.05,
        "response_bounds": [0.8, 0.9],
        "as_it_came": ["keyword_hit", "other"],
    }
    with override("en"):
        figure_notes = notes(Figure(0.85, extra=extra), {"keyword_hit": "Keyword hit"})
    assert figure_notes == [
        "Fewer than five ratings differ from the most common one.",
        "5% of the assigned answers have no rating. The interval covers all of them being worst (0.80) or best (0.90).",
        "Exact by definition, so not corrected: Keyword hit, other.",
    ]
    assert notes(Figure(0.85)) == []


@pytest.fixture
def run() -> Run:
    """Categories of 60 and 40 answers, judged 5 and 3 by turns of two; half of each is rated one level lower."""
    scored_run = fill(run_over(answers_to(["a"] * 60 + ["b"] * 40)), [5, 5, 3, 3] * 25)
    rate_half(scored_run, [4, 2] * 25)
    return scored_run


@pytest.mark.django_db
def test_categories_have_three_estimates(run: Run) -> None:
    with override("en"):
        overall, table = category_tables(make_report(run), "en")
    assert (overall.title, table.title) == ("Overall score", "Correctness")
    # .75 + .25 x 4 / 5 and .75 + .25 x 3 / 5
    assert overall.rows[0].judge_only.value == pytest.approx(0.95)
    assert overall.rows[0].corrected.value == pytest.approx(0.90)
    row = table.rows[0]
    # judged 4, half of them rated 3: 3.5; experts 3 throughout
    assert (row.name, row.answers) == ("a", 60)
    assert (row.judge_only.value, row.reviewed.value) == (4.0, 3.5)
    assert row.corrected.value == pytest.approx(3.0)


@pytest.mark.django_db
def test_run_page_and_html_file_show_categories(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER, run.project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "Scores by category" in page
    assert "Exact by definition, so not corrected:" in page
    assert "Partly corrected" in page
    assert ">estimated expert score" not in page
    with override("en"):
        text = compact(b"".join(export(run, "html", None).chunks).decode())
        markdown = b"".join(export(run, "md", None).chunks).decode()
    assert "Partly corrected" in text
    assert "**partly corrected**" in markdown
    # 1 x sqrt(1 / 59) x t(59) = 2.0010 x .1302 = .26
    cells = '4.00<br><small>3.74–4.26</small></td><td class="n">3.50<br><small>3.21–3.79</small></td>'
    for document in (compact(page), text):
        assert "Scores by category" in document
        assert cells in document
