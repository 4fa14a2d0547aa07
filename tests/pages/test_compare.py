"""The page that compares runs, and the page of two answers to one question."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evaluation.core.roles import Role
from evaluation.core.samples import QuestionSpec
from evaluation.models import Run
from review.charts.forest import Difference, differences
from review.models import Exposure
from tests.factories import make_answer_set, make_judge, make_project, make_question_set, make_queue, make_user
from tests.pages.markup import compact
from tests.review.builders import run_over
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs() -> list[Run]:
    """Three runs of one judge over four questions."""
    project = make_project()
    question_set = make_question_set(
        project, [QuestionSpec(id=f"q{n}", category="a", text=f"Question {n}?") for n in range(1, 5)]
    )
    judge = make_judge(project)
    scores_by_text = {
        "The answer is old.": [3, 4, 4, 2],
        "The answer is <b>new</b>.": [5, 4, 4, 5],
        "Third": [5, 5, 5, 5],
    }
    return [
        fill(run_over(make_answer_set(question_set, texts=[text]), judge=judge), values)
        for text, values in scores_by_text.items()
    ]


def page_content(runs: list[Run], name: str = "run-compare", role: Role | None = Role.VIEWER, **query: str) -> str:
    client = Client()
    client.force_login(make_user(role, runs[0].project))
    response = client.get(reverse(name), {"runs": ",".join(str(run.pk) for run in runs), **query})
    assert response.status_code == 200
    return response.content.decode()


def test_two_runs_are_compared_in_text_plot_and_table(runs: list[Run]) -> None:
    # correctness differs by 2, 0, 0, 3: mean 1.25, overall 1.25 / 5 x .25 = .0625
    text = page_content(runs[:2])
    assert "A difference of" in text
    assert "+0.062" in text
    assert "<svg" in text
    assert "Show as table, with tests" in text
    assert "style=" not in text


def test_verdict_comes_first_and_statistics_are_folded(runs: list[Run]) -> None:
    text = page_content(runs[:2])
    places = [text.index(mark) for mark in ('id="pair-1"', 'id="answers"', '<details class="card fold">', "<svg")]
    assert places == sorted(places)
    assert 'id="order"' not in text


def test_answers_are_filtered_by_change_with_the_largest_first(runs: list[Run]) -> None:
    text = compact(page_content(runs[:2]))
    for label in ("All 4", "Worse 0", "Better 2", "Different answers 4"):
        assert f">{label}</a>" in text
    better = compact(page_content(runs[:2], show="better"))
    # correctness rises by 3 of 5 levels on q4, by 2 on q1, and stays on the others
    assert better.index("Question 4?") < better.index("Question 1?")
    assert "Question 2?" not in better
    assert "<del>old</del>.</div>" in better
    assert "<ins>&lt;b&gt;new&lt;/b&gt;</ins>.</div>" in better
    assert "No matching questions." in page_content(runs[:2], show="worse")
    assert text.count("<article") == compact(page_content(runs[:2], show="by whim", page="x")).count("<article") == 4


def test_equal_answers_are_shown_once_and_pages_follow_each_other() -> None:
    question_set = make_question_set(specs=10)
    judge = make_judge(question_set.project)
    equal_runs = [
        fill(run_over(make_answer_set(question_set, texts=["Same"]), judge=judge), [value] * 10) for value in (3, 4)
    ]
    text = compact(page_content(equal_runs, margin="0.05"))
    assert text.count("Same answer.") == 8
    assert "Different answers 0</a>" in text
    assert "margin=0.05&amp;show=all&amp;page=2#answers" in text
    second_page = compact(page_content(equal_runs, page="2"))
    assert second_page.count("Same answer.") == 2
    assert "page=1#answers" in second_page


def test_three_runs_are_ordered_and_compared_with_the_first(runs: list[Run]) -> None:
    text = page_content(runs)
    assert text.count('aria-labelledby="pair-') == 2
    assert text.index('aria-labelledby="order"') < text.index('aria-labelledby="pair-1"')


def test_comparison_of_one_run_asks_for_another(runs: list[Run]) -> None:
    text = page_content(runs[:1])
    assert "Choose at least two runs." in text
    assert text.count('name="runs"') == 3


def test_runs_may_be_given_by_checkboxes_or_list(runs: list[Run]) -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER, runs[0].project))
    response = client.get(reverse("run-compare"), {"runs": [runs[0].pk, runs[1].pk]})
    assert "A difference of" in response.content.decode()


@pytest.mark.parametrize("query", ["", "runs=", "runs=1,x", "runs=99999999", "runs=" + "9" * 40])
def test_invalid_run_ids_are_not_found(runs: list[Run], query: str) -> None:
    client = Client()
    client.force_login(make_user(Role.VIEWER, runs[0].project))
    assert client.get(f"{reverse('run-compare')}?{query}").status_code == 404


def test_run_of_another_project_is_not_found(runs: list[Run]) -> None:
    foreign_run = run_over(make_answer_set())
    client = Client()
    client.force_login(make_user(Role.VIEWER, runs[0].project))
    assert client.get(reverse("run-compare"), {"runs": f"{runs[0].pk},{foreign_run.pk}"}).status_code == 404


def test_answers_are_compared_word_by_word_with_escaped_html(runs: list[Run]) -> None:
    text = page_content(runs[:2], "run-compare-answers", question="q1")
    assert "<del>old</del><ins>&lt;b&gt;new&lt;/b&gt;</ins>" in text
    assert "<b>new</b>" not in text


def test_exposure_of_comparison_reader_with_open_ratings_is_recorded(runs: list[Run]) -> None:
    lead = make_user(Role.LEAD, runs[0].project)
    make_queue(runs[1], [lead], metrics=["correctness"])
    client = Client()
    client.force_login(lead)
    query = {"runs": f"{runs[0].pk},{runs[1].pk}"}
    client.get(reverse("run-compare-answers"), {**query, "question": "q1"})
    assert set(Exposure.objects.values_list("user", "scope")) == {(lead.pk, "answer")}
    client.get(reverse("run-compare"), query)
    assert Exposure.objects.filter(user=lead, scope="run").exists()


def test_comparison_stays_within_query_limits(
    runs: list[Run], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(98):
        page_content(runs[:2])
    with django_assert_max_num_queries(42):  # from then on it is kept
        page_content(runs[:2])


def test_plot_includes_the_zero_line() -> None:
    chart = differences([Difference("a", 0.2, 0.1, 0.3, "+0.20", "0.10–0.30")])
    assert chart.ticks[0].text in {"0.0", "0.00", "−0.1", "−0.05"}
    assert float(chart.zero.rstrip("%")) < float(chart.rows[0].start.rstrip("%"))
