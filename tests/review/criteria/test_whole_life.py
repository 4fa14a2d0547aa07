"""A criterion from its draft to the comparison of two systems: every entrance shows the same worked numbers.

Twelve questions, two systems. The first answers each with its reference; the second does so to every other question
and says something else to the rest. The baseline counts words of the reference (stand-in ``correctness``): 3 and, where
no word is shared, 1. So the judge gives 3 to the first and (6 x 3 + 6 x 1) / 12 = 2 to the second. One expert rates
every answer of the second: 3 where it is right and 2 where it is not, hence 2.5; of the first always 3.
"""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
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
from tests.evaluation.criteria.written import levels_sent
from tests.evaluation.scoring.families import profile_of
from tests.examples import first_fast
from tests.factories import make_answer_set, make_question_set, make_queue, make_user, question_spec
from tests.pages.markup import compact
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
QUESTIONS = 12
WRONG = "Nobody knows."
DRAFT = {
    "name": "tone", "title_ko": "말투", "title_en": "Tone", "form": "levels", "direction": "higher",
    "question_en": "Is the tone right?", "question_ko": "알맞은 말투입니까?",
    **levels_sent(("1", "무례함", "Rude"), ("2", "차가움", "Cold"), ("3", "공손함", "Polite")),
    "sees": ["reference"], "needs": ["reference"], "categories": "", "offline": "correctness",
}  # fmt: skip


@pytest.fixture
def life(settings: Any) -> tuple[World, Run, Run]:
    """Drafted by an evaluator, activated by a lead, both in the back office; judged and rated in two runs."""
    settings.CONCORD_DISPATCHER = "local"
    world = make_world()
    project = world.project
    add = reverse("admin:evaluation_criterionversion_add")
    assert world.client("evaluator").post(add, {"project": project.pk, **DRAFT}).status_code == 302
    version = CriterionVersion.objects.get()
    assert world.client("lead").post(reverse("admin:criterion-activate", args=[version.pk])).status_code == 302
    specs = [question_spec(n, category="single_hop", check="") for n in range(1, QUESTIONS + 1)]
    right = [spec.references[0] for spec in specs]
    mixed = [text if n % 2 else WRONG for n, text in enumerate(right)]
    asked = make_question_set(project, specs)
    sets = [
        make_answer_set(asked, system=system, texts=texts) for system, texts in (("first", right), ("second", mixed))
    ]
    profile = profile_of(sets[0], parts=[{"metric": "tone", "weight": 1}], unit="per_answer", normalise="min_max")
    judge = baseline_judge(project, "en")
    first, second = (rated(start_and_drain(prepare_run(one, profile, judge=judge))) for one in sets)
    return world, first, second


def start_and_drain(run: Run) -> Run:
    start(run)
    return drain(run.pk, seconds=30)


def rated(run: Run) -> Run:
    """One expert rates every answer: 2 for the wrong ones, 3 for the others."""
    expert = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, [expert], metrics=["tone"], strategy="all", reveal="never")
    while held := next_assignment(queue, expert):
        value = 2 if held.item.answer.text == WRONG else 3
        submit(held, {"tone": RatingInput(value)}, idempotency_key=str(held.pk), by=expert)
    return run


def printed(*arguments: Any) -> Any:
    said = StringIO()
    call_command(*map(str, arguments), "--format", "json", stdout=said, stderr=StringIO())
    return json.loads(said.getvalue())


def three(figures: Any) -> list[float]:
    return [figures[name]["value"] for name in ("judge_only", "reviewed", "corrected")]


def test_agreement_has_the_judge_against_the_expert(life: tuple[World, Run, Run]) -> None:
    found = printed("agreement", life[2].pk)["judges"]["baseline@1"]["tone"]
    # wrong answers: judge 1, expert 2; right ones: both 3
    assert (found["n"], found["exact"], found["within_one"], found["bias"], found["mae"]) == (12, 0.5, 1.0, -0.5, 0.5)
    assert (found["labels"], found["confusion"]) == ([1, 2, 3], [[0, 0, 0], [6, 0, 0], [0, 0, 6]])
    # exact .5, by chance 1/2 x 1/2 (both say 3): (.5 - .25) / .75
    assert found["cohen_kappa"] == pytest.approx(1 / 3)
    assert (found["rubric"], found["scale"]) == ("criterion:tone v1 (en)", "levels 1..3")


def test_correct_puts_the_three_figures_of_metric_and_score_side_by_side(life: tuple[World, Run, Run]) -> None:
    found = printed("corrected_scores", life[2].pk)
    assert three(found["metrics"]["tone"]) == [2.0, 2.5, 2.5]
    assert three(found["overall"]) == [0.5, 0.75, 0.75]  # (2 - 1) / 2 and (2.5 - 1) / 2
    assert (found["metrics"]["tone"]["corrected"]["labels"], found["metrics"]["tone"]["corrected"]["method"]) == (
        12, "census",
    )  # fmt: skip


def test_compare_has_the_difference_by_the_judge_and_by_the_experts(life: tuple[World, Run, Run]) -> None:
    _, first, second = life
    found = printed("compare", first.pk, second.pk)
    assert found["differs"] == {}
    metric = found["differences"][0]["metrics"]["tone"]
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
    assert found["differences"][0]["overall"]["value"] == pytest.approx(-0.5)
    assert [one["metrics"]["tone"]["kind"] for one in found["runs"]] == ["custom", "custom"]


@pytest.mark.parametrize(
    ("language", "title", "said"), first_fast([("ko", "말투", "낮습니다"), ("en", "Tone", "is worse by")], 1)
)
def test_the_compare_page_names_it_by_its_title(
    life: tuple[World, Run, Run], language: str, title: str, said: str
) -> None:
    world, first, second = life
    address = f"{reverse('run-compare')}?runs={first.pk},{second.pk}"
    page = compact(world.client("viewer").get(address, headers={"accept-language": language}).content.decode())
    row = page.split(f'<th scope="row">{title} <small>')[1].split("</tr>")[0]
    assert said in page
    # p as the interval is made: t = 1 / (s / sqrt(12)) = 3.31662, two-sided with 11 degrees of freedom .00687, twice.
    assert [number in row for number in ("−1.000", "−1.782", "0.014", "−0.500", "−0.891")] == [True] * 5


def test_the_rest_report_has_the_same_figures(life: tuple[World, Run, Run]) -> None:
    world, _, second = life
    response = world.client("viewer").get(f"/api/v1/runs/{second.pk}/report/?format=json")
    report = json.loads(b"".join(response.streaming_content))  # type: ignore[attr-defined]
    line = report["metrics"]["tone"]
    assert three(line) == [2.0, 2.5, 2.5]
    assert [line[name] for name in ("kind", "scale", "rated")] == ["custom", "levels 1..3", 12]
    assert three(report["overall"]) == [0.5, 0.75, 0.75]
    assert report["agreement"]["judges"]["baseline@1"]["tone"]["bias"] == -0.5
    assert report["coverage"]["tone"]["scored"] == 12
