"""Equivalence: two runs are alike where the whole interval of their difference lies inside a stated margin."""

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
from tests.review.comparisons.test_difference import a_run, questions

NAMES = {"run": "new", "baseline": "old"}


@pytest.mark.parametrize(
    ("low", "high", "margin", "inside"),
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
def test_an_interval_lies_within_a_margin_as_a_whole(low: float, high: float, margin: float, inside: bool) -> None:
    assert is_within_margin(low, high, margin) is inside


@pytest.mark.parametrize(("margin", "text"), [(0.03, "0.03"), (0.005, "0.005"), (0.1, "0.1"), (1.0, "1")])
def test_a_margin_is_written_with_the_digits_it_needs(margin: float, text: str) -> None:
    assert margin_text(margin) == text


@pytest.fixture
def near() -> tuple[Run, Run]:
    """40 questions; correctness a level up and a level down by turns: mean 0, standard error sqrt(40 / (39 x 40)) =
    .160 of a level, t(39) = 2.0227, and a level is .05 of the score: -.0162 to .0162."""
    asked = questions(40)
    return a_run(asked, [4] * 40), a_run(asked, [5, 3] * 20)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("margin", "verdict"),
    [(None, DifferenceVerdict.CANNOT_TELL), (0.016, DifferenceVerdict.CANNOT_TELL), (0.017, DifferenceVerdict.ALIKE)],
)
def test_runs_are_alike_within_a_margin_that_holds_the_interval(
    near: tuple[Run, Run], margin: float | None, verdict: DifferenceVerdict
) -> None:
    (found,) = with_margin(compare(near), margin).differences
    assert judge_only_verdict(found).verdict is verdict
    assert judge_only_verdict(found).alike_within == (margin if verdict is DifferenceVerdict.ALIKE else None)


@pytest.mark.django_db
def test_alike_is_said_in_words_and_in_json(near: tuple[Run, Run]) -> None:
    found = with_margin(compare(near), 0.03)
    baseline, run = near
    with override("en"):
        (told, *_) = [said for said in sentences(found.differences[0]) if "alike" in said]
    assert f"Run {run.pk} and Run {baseline.pk} are alike within 0.03 on questions like these" in told
    assert "the difference lies between -0.016 and +0.016." in told
    (one,) = comparison_json(found)["differences"]
    assert one["margin"] == 0.03
    assert one["verdict"]["judge_only"] == {"verdict": "alike", "alike_within": 0.03}


@pytest.mark.django_db
def test_a_run_that_is_better_by_less_than_the_margin_is_both() -> None:
    # 18 x +1 and 2 x -2 of 40: .006 to .029 of the score (test_verdict.py)
    asked = questions(40)
    runs = a_run(asked, [4] * 40), a_run(asked, [5, 4] * 18 + [2, 4, 2, 4])
    (found,) = with_margin(compare(runs), 0.03).differences
    assert judge_only_verdict(found).to_dict() == {"verdict": "better", "alike_within": 0.03}
    with override("en"):
        assert any(
            "is better by 0.006 to 0.029 on questions like these. The two are alike within 0.03." in said
            for said in sentences(found)
        )
        assert not any("alike" in said for said in sentences(with_margin(compare(runs), 0.02).differences[0]))


@pytest.mark.django_db
def test_the_command_and_rest_take_a_margin(near: tuple[Run, Run]) -> None:
    out = StringIO()
    call_command("compare", *(str(run.pk) for run in near), "--margin", "0.03", "--format", "json", stdout=out)
    (one,) = json.loads(out.getvalue())["differences"]
    assert one["verdict"]["judge_only"]["verdict"] == "alike"
    with pytest.raises(CommandError, match=r"must lie between 0\.001 and 1"):
        call_command("compare", *(str(run.pk) for run in near), "--margin", "-1", stdout=StringIO())
    caller = Caller(make_user(Role.VIEWER, near[0].project))
    path = f"runs/compare/?runs={near[0].pk},{near[1].pk}&margin="
    assert caller.get(path + "0.03").json()["differences"][0]["verdict"]["judge_only"]["verdict"] == "alike"
    assert caller.get(path + "0").status_code == 400


@pytest.mark.django_db
def test_a_gate_says_where_run_and_baseline_are_alike(near: tuple[Run, Run]) -> None:
    baseline, run = near
    wide = run_gate(run, GateRequest(baseline=baseline, max_drop=0.05, margin=0.03))
    narrow = run_gate(run, GateRequest(baseline=baseline, max_drop=0.05, margin=0.01))
    assert wide is not None
    assert narrow is not None
    assert wide.to_dict()["checks"][0]["alike_within"] == 0.03
    assert "alike_within" not in narrow.to_dict()["checks"][0]
    with override("en"):
        assert gate_reasons(wide)[0].endswith("This run and the baseline are alike within 0.03.")
        assert "alike" not in gate_reasons(narrow)[0]


@pytest.mark.django_db
def test_a_gate_with_a_margin_needs_a_baseline_and_a_drop(near: tuple[Run, Run]) -> None:
    with pytest.raises(DomainError, match="margin_needs_drop"):
        check_request(GateRequest(margin=0.03))
    with pytest.raises(DomainError, match="setting_range"):
        GateRequest(baseline=near[0], max_drop=0.02, margin=0.0)


@pytest.mark.django_db
def test_the_page_takes_a_margin_and_says_what_is_wrong_with_it(client: Client, near: tuple[Run, Run]) -> None:
    client.force_login(make_user(Role.VIEWER, near[0].project))
    address = f"/runs/compare/?runs={near[0].pk},{near[1].pk}"
    page = client.get(address + "&margin=0.03").content.decode()
    assert "are alike within 0.03 on questions like these" in page
    assert 'value="0.03"' in page
    wrong = client.get(address + "&margin=many").content.decode()
    assert "alike within" not in wrong
    assert 'class="errors"' in wrong


@pytest.mark.django_db
def test_what_to_do_with_runs_that_are_alike() -> None:
    asked = questions(40)
    runs = a_run(asked, [4] * 40), a_run(asked, [4] * 40)
    (found,) = with_margin(compare(runs), 0.03).differences
    assert judge_only_verdict(found).reason == "no_variation"  # nothing tells how far others would differ
    with override("en"):
        assert "cost" not in next_sentence(found, NAMES)
