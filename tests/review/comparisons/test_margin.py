"""Equivalence: runs are alike when the whole interval of their difference lies within a stated margin."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils.translation import override

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import Run
from review.comparisons.comparison import compare, comparison_json, with_margin
from review.comparisons.gates import check_request, run_gate
from review.comparisons.verdict import judge_only_verdict, next_sentence, sentences
from review.reports.gate import GateRequest, gate_reasons, margin_text
from review.statistics.paired_tests.gate import DifferenceVerdict, is_within_margin
from tests.factories import make_user
from tests.review.clients import Caller
from tests.review.comparisons.test_difference import create_run, make_questions

NAMES = {"run": "new", "baseline": "old"}
LIKE_THESE = "questions_like_these"


@pytest.mark.parametrize(
    ("low", "high", "margin", "is_within"),
    [
        (-0.02, 0.01, 0.03, True),
        (-0.03, 0.03, 0.03, True),  # the ends belong to the margin
        (-0.03, 0.031, 0.03, False),
        (-0.031, 0.01, 0.03, False),
        (0.01, 0.02, 0.03, True),  # better, by less than matters
        (0.04, 0.05, 0.03, False),
        (-(0.1 + 0.2), 0.0, 0.3, True),  # in nine digits
    ],
)
def test_interval_lies_within_a_margin_as_a_whole(low: float, high: float, margin: float, is_within: bool) -> None:
    assert is_within_margin(low, high, margin) is is_within


@pytest.mark.parametrize(("margin", "text"), [(0.03, "0.03"), (0.005, "0.005"), (0.1, "0.1"), (1.0, "1")])
def test_margin_is_written_with_the_digits_it_needs(margin: float, text: str) -> None:
    assert margin_text(margin) == text


@pytest.fixture
def equivalent_pair() -> tuple[Run, Run]:
    """40 questions; correctness a level up and a level down by turns: mean 0, standard error sqrt(40 / (39 x 40)) =
    .160 of a level, t(39) = 2.0227, and a level is .05 of the score: -.0162 to .0162."""
    question_set = make_questions(40)
    return create_run(question_set, [4] * 40), create_run(question_set, [5, 3] * 20)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("margin", "verdict"),
    [(None, DifferenceVerdict.CANNOT_TELL), (0.016, DifferenceVerdict.CANNOT_TELL), (0.017, DifferenceVerdict.ALIKE)],
)
def test_runs_are_alike_when_the_interval_lies_within_the_margin(
    equivalent_pair: tuple[Run, Run], margin: float | None, verdict: DifferenceVerdict
) -> None:
    (difference,) = with_margin(compare(equivalent_pair), margin).differences
    assert judge_only_verdict(difference).verdict is verdict
    assert judge_only_verdict(difference).alike_within == (margin if verdict is DifferenceVerdict.ALIKE else None)


@pytest.mark.django_db
def test_alike_runs_are_reported_in_text_and_json(equivalent_pair: tuple[Run, Run]) -> None:
    comparison = with_margin(compare(equivalent_pair), 0.03)
    baseline, run = equivalent_pair
    with override("en"):
        (alike_sentence, *_) = [
            sentence for sentence in sentences(comparison.differences[0]) if "equivalent" in sentence
        ]
    assert f"Run {run.pk} and Run {baseline.pk} are equivalent within 0.03 on questions like these" in alike_sentence
    assert "the difference is between -0.016 and +0.016." in alike_sentence
    (row,) = comparison_json(comparison)["differences"]
    assert row["margin"] == 0.03
    assert row["verdict"]["judge_only"] == {"verdict": "alike", "target": LIKE_THESE, "alike_within": 0.03}


@pytest.mark.django_db
def test_run_better_by_less_than_the_margin_is_better_and_alike() -> None:
    # 18 x +1 and 2 x -2 of 40: .006 to .029 of the score (test_verdict.py)
    question_set = make_questions(40)
    runs = create_run(question_set, [4] * 40), create_run(question_set, [5, 4] * 18 + [2, 4, 2, 4])
    (difference,) = with_margin(compare(runs), 0.03).differences
    assert judge_only_verdict(difference).to_dict() == {"verdict": "better", "target": LIKE_THESE, "alike_within": 0.03}
    with override("en"):
        assert any(
            "is better by 0.006 to 0.029 on questions like these. The two are equivalent within 0.03." in sentence
            for sentence in sentences(difference)
        )
        assert not any("alike" in sentence for sentence in sentences(with_margin(compare(runs), 0.02).differences[0]))


@pytest.mark.django_db
def test_command_and_rest_accept_a_margin(equivalent_pair: tuple[Run, Run]) -> None:
    out = StringIO()
    call_command(
        "compare", *(str(run.pk) for run in equivalent_pair), "--margin", "0.03", "--format", "json", stdout=out
    )
    (row,) = json.loads(out.getvalue())["differences"]
    assert row["verdict"]["judge_only"]["verdict"] == "alike"
    with pytest.raises(CommandError, match=r"must be between 0\.001 and 1"):
        call_command("compare", *(str(run.pk) for run in equivalent_pair), "--margin", "-1", stdout=StringIO())
    caller = Caller(make_user(Role.VIEWER, equivalent_pair[0].project))
    path = f"runs/compare/?runs={equivalent_pair[0].pk},{equivalent_pair[1].pk}&margin="
    assert caller.get(path + "0.03").json()["differences"][0]["verdict"]["judge_only"]["verdict"] == "alike"
    assert caller.get(path + "0").status_code == 400


@pytest.mark.django_db
def test_gate_reports_when_run_and_baseline_are_alike(equivalent_pair: tuple[Run, Run]) -> None:
    baseline, run = equivalent_pair
    wide = run_gate(run, GateRequest(baseline=baseline, max_drop=0.05, margin=0.03))
    narrow = run_gate(run, GateRequest(baseline=baseline, max_drop=0.05, margin=0.01))
    assert wide is not None
    assert narrow is not None
    assert wide.to_dict()["checks"][0]["alike_within"] == 0.03
    assert "alike_within" not in narrow.to_dict()["checks"][0]
    with override("en"):
        assert gate_reasons(wide)[0].endswith("This run and the baseline are equivalent within 0.03.")
        assert "alike" not in gate_reasons(narrow)[0]


@pytest.mark.django_db
def test_gate_with_a_margin_needs_a_baseline_and_a_drop(equivalent_pair: tuple[Run, Run]) -> None:
    with pytest.raises(DomainError, match="margin_needs_drop"):
        check_request(GateRequest(margin=0.03))
    with pytest.raises(DomainError, match="setting_range"):
        GateRequest(baseline=equivalent_pair[0], max_drop=0.02, margin=0.0)


@pytest.mark.django_db
def test_page_accepts_a_margin_and_reports_invalid_ones(client: Client, equivalent_pair: tuple[Run, Run]) -> None:
    client.force_login(make_user(Role.VIEWER, equivalent_pair[0].project))
    address = f"/runs/compare/?runs={equivalent_pair[0].pk},{equivalent_pair[1].pk}"
    page = client.get(address + "&margin=0.03").content.decode()
    assert "are equivalent within 0.03 on questions like these" in page
    assert 'value="0.03"' in page
    error_page = client.get(address + "&margin=many").content.decode()
    assert "equivalent within" not in error_page
    assert 'class="errors"' in error_page


@pytest.mark.django_db
def test_alike_runs_get_advice() -> None:
    question_set = make_questions(40)
    runs = create_run(question_set, [4] * 40), create_run(question_set, [4] * 40)
    (difference,) = with_margin(compare(runs), 0.03).differences
    assert judge_only_verdict(difference).reason == "no_variation"  # nothing tells how far others would differ
    with override("en"):
        assert "cost" not in next_sentence(difference, NAMES)
