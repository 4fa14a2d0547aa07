"""A criterion from its draft to the comparison of two systems; every interface shows equal hand-worked values.

Twelve questions, two systems. The first system answers each question with its reference, the second only every other
one and the rest wrongly. The baseline counts words of the reference (stand-in ``correctness``): 3, or 1 without a
shared word. The judge therefore gives 3 to the first system and (6 x 3 + 6 x 1) / 12 = 2 to the second. One expert
rates every answer of the second: 3 if correct, otherwise 2, on average 2.5; the first always gets 3."""

from __future__ import annotations

import json
from copy import deepcopy
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge
from evaluation.models import CriterionVersion, Run
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import start
from review.evidence.rating_input import RatingInput
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from tests.evaluation.criteria.written import level_form_data
from tests.evaluation.scoring.families import make_profile_version
from tests.examples import first_fast
from tests.factories import make_answer_set, make_question_set, make_queue, make_user, question_spec
from tests.pages.markup import compact
from tests.pages.world import World, make_world
from tests.prepared import module_db

__all__ = ["module_db"]
pytestmark = pytest.mark.django_db
QUESTIONS = 12
WRONG = "Nobody knows."
DRAFT = {
    "name": "tone", "title_ko": "말투", "title_en": "Tone", "form": "levels", "direction": "higher",
    "question_en": "Is the tone right?", "question_ko": "알맞은 말투입니까?",
    **level_form_data(("1", "무례함", "Rude"), ("2", "차가움", "Cold"), ("3", "공손함", "Polite")),
    "sees": ["reference"], "needs": ["reference"], "categories": "", "offline": "correctness",
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared_runs(module_db: None) -> tuple[World, Run, Run]:
    """A criterion drafted by an evaluator and activated by a lead in the admin; judged and rated in two runs."""
    with override_settings(CONCORD_DISPATCHER="local"):
        return prepare_runs()


@pytest.fixture
def reviewed_runs(prepared_runs: tuple[World, Run, Run], db: None) -> tuple[World, Run, Run]:
    return deepcopy(prepared_runs)


def prepare_runs() -> tuple[World, Run, Run]:
    world = make_world()
    project = world.project
    add = reverse("admin:evaluation_criterionversion_add")
    assert world.client("evaluator").post(add, {"project": project.pk, **DRAFT}).status_code == 302
    version = CriterionVersion.objects.get()
    assert world.client("lead").post(reverse("admin:criterion-activate", args=[version.pk])).status_code == 302
    specs = [question_spec(n, category="single_hop", check="") for n in range(1, QUESTIONS + 1)]
    references = [spec.references[0] for spec in specs]
    # Answers with the text of a rated one would keep its rating.
    mixed_texts = [f"{text}!" if n % 2 else WRONG for n, text in enumerate(references)]
    question_set = make_question_set(project, specs)
    sets = [
        make_answer_set(question_set, system=system, texts=texts)
        for system, texts in (("first", references), ("second", mixed_texts))
    ]
    profile = make_profile_version(
        sets[0], parts=[{"metric": "tone", "weight": 1}], unit="per_answer", normalise="min_max"
    )
    judge = baseline_judge(project, "en")
    first, second = (rate_run(start_and_drain(prepare_run(answer_set, profile, judge=judge))) for answer_set in sets)
    return world, first, second


def start_and_drain(run: Run) -> Run:
    start(run)
    return drain(run.pk, seconds=30)


def rate_run(run: Run) -> Run:
    """Rate every answer as one expert: 2 for the wrong ones, 3 for the others."""
    expert = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, [expert], metrics=["tone"], strategy="all", reveal="never")
    while assignment := next_assignment(queue, expert):
        value = 2 if assignment.item.answer.text == WRONG else 3
        submit(assignment, {"tone": RatingInput(value)}, idempotency_key=str(assignment.pk), by=expert)
    return run


def command_json(*arguments: Any) -> Any:
    out = StringIO()
    call_command(*map(str, arguments), "--format", "json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def estimate_values(figures: Any) -> list[float]:
    return [figures[name]["value"] for name in ("judge_only", "reviewed", "corrected")]


def test_agreement_compares_the_judge_with_the_expert(reviewed_runs: tuple[World, Run, Run]) -> None:
    agreement = command_json("agreement", reviewed_runs[2].pk)["judges"]["baseline@1"]["tone"]
    # wrong answers: judge 1, expert 2; right ones: both 3
    assert (agreement["n"], agreement["exact"], agreement["within_one"], agreement["bias"], agreement["mae"]) == (
        12,
        0.5,
        1.0,
        -0.5,
        0.5,
    )
    assert (agreement["labels"], agreement["confusion"]) == ([1, 2, 3], [[0, 0, 0], [6, 0, 0], [0, 0, 6]])
    # exact .5, by chance 1/2 x 1/2 (both say 3): (.5 - .25) / .75
    assert agreement["cohen_kappa"] == pytest.approx(1 / 3)
    assert (agreement["rubric"], agreement["scale"]) == ("criterion:tone v1 (en)", "levels 1..3")


def test_corrected_scores_show_three_estimates_of_metric_and_overall_score(
    reviewed_runs: tuple[World, Run, Run],
) -> None:
    report = command_json("corrected_scores", reviewed_runs[2].pk)
    assert estimate_values(report["metrics"]["tone"]) == [2.0, 2.5, 2.5]
    assert estimate_values(report["overall"]) == [0.5, 0.75, 0.75]  # (2 - 1) / 2 and (2.5 - 1) / 2
    assert (report["metrics"]["tone"]["corrected"]["labels"], report["metrics"]["tone"]["corrected"]["method"]) == (
        12, "census",
    )  # fmt: skip


@pytest.mark.slow
def test_compare_shows_judge_and_expert_differences(reviewed_runs: tuple[World, Run, Run]) -> None:
    _, first, second = reviewed_runs
    report = command_json("compare", first.pk, second.pk)
    assert report["differs"] == {}
    metric = report["differences"][0]["metrics"]["tone"]
    assert (metric["scale"], metric["better"]) == ("levels 1..3", "higher")
    difference = metric["difference"]
    assert [difference[name] for name in ("value", "wins", "losses", "ties")] == [-1.0, 0, 6, 6]
    # Judge-only and corrected overall scores are two, so 97.5%. Six differences of -2 and six of 0: s = sqrt(12 / 11),
    # t(11) = 2.593093, so 2.593093 x s / sqrt(12) = .78185.
    assert difference["low"] == pytest.approx(-1.78185, abs=1e-5)
    assert difference["p_value"] == pytest.approx(2 / 2**6)  # all six signs alike
    # the experts: 2 against 3 on six answers, so half of all that
    assert metric["corrected"]["value"] == pytest.approx(-0.5)
    assert metric["corrected"]["low"] == pytest.approx(-0.89092, abs=1e-5)
    assert report["differences"][0]["overall"]["value"] == pytest.approx(-0.5)
    assert [row["metrics"]["tone"]["kind"] for row in report["runs"]] == ["custom", "custom"]


@pytest.mark.parametrize(
    ("language", "title", "verdict_text"), first_fast([("ko", "말투", "낮습니다"), ("en", "Tone", "is worse by")], 1)
)
def test_compare_page_shows_the_criterion_by_its_title(
    reviewed_runs: tuple[World, Run, Run], language: str, title: str, verdict_text: str
) -> None:
    world, first, second = reviewed_runs
    address = f"{reverse('run-compare')}?runs={first.pk},{second.pk}"
    page = compact(world.client("viewer").get(address, headers={"accept-language": language}).content.decode())
    row = page.split(f'<th scope="row">{title} <small>')[1].split("</tr>")[0]
    assert verdict_text in page
    # p as the interval is made: t = 1 / (s / sqrt(12)) = 3.31662, two-sided with 11 degrees of freedom .00687, twice.
    assert [number in row for number in ("−1.000", "−1.782", "0.014", "−0.500", "−0.891")] == [True] * 5


def test_rest_report_has_equal_figures(reviewed_runs: tuple[World, Run, Run]) -> None:
    world, _, second = reviewed_runs
    response = world.client("viewer").get(f"/api/v1/runs/{second.pk}/report/?format=json")
    report = json.loads(b"".join(response.streaming_content))  # type: ignore[attr-defined]
    line = report["metrics"]["tone"]
    assert estimate_values(line) == [2.0, 2.5, 2.5]
    assert [line[name] for name in ("kind", "scale", "rated")] == ["custom", "levels 1..3", 12]
    assert estimate_values(report["overall"]) == [0.5, 0.75, 0.75]
    assert report["agreement"]["judges"]["baseline@1"]["tone"]["bias"] == -0.5
    assert report["coverage"]["tone"]["scored"] == 12
