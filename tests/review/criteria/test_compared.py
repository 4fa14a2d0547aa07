"""A criterion from its draft to the comparison of two reviewed runs, by pages, commands and REST."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.accounts.roles import Role
from evaluation.runs.draining import drain
from evaluation.runs.lifecycle import start
from evaluation.runs.making import prepare_run
from evaluation.runs.models import Run
from evaluation.shipping import baseline_judge
from tests.evaluation.criteria.written import in_force
from tests.evaluation.scoring.families import profile_of
from tests.factories import make_answer_set, make_question_set, make_user, question_spec
from tests.review.api.clients import Caller
from tests.review.criteria.test_reviewed import asked, rate_all, reviewer

pytestmark = pytest.mark.django_db
WRONG = "Bananas grow on trees."


@pytest.fixture
def compared(settings: Any) -> tuple[Run, Run, str]:
    """Six questions. The first system is right on three, the second on all: word for word, or without a common word, so
    that the stand-in says 3 or 1. The expert says 2 of all answers of the first run, 3 of all of the second."""
    settings.CONCORD_DISPATCHER = "local"
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, 7)])
    version = in_force(questions.project, offline="correctness", sees=["reference"], needs=["reference"])
    name = version.criterion.name
    right = [f"The capital is city {n}." for n in range(1, 7)]
    runs = []
    profile = None
    for texts, rating in (([*right[:3], *[WRONG] * 3], 2), (right, 3)):
        answers = make_answer_set(questions, texts=texts)
        profile = profile or profile_of(
            answers, unit="per_answer", normalise="min_max", parts=[{"metric": name, "weight": 1.0}]
        )
        run = prepare_run(answers, profile, judge=baseline_judge(questions.project, "en"))
        start(run)
        run = drain(run.pk, seconds=30)
        queue = asked(run, version, strategy="all")
        rate_all(queue, reviewer(queue), rating)
        runs.append(run)
    return runs[0], runs[1], name


def said(command: str, *arguments: str) -> Any:
    out = StringIO()
    call_command(command, *arguments, "--format", "json", stdout=out)
    return json.loads(out.getvalue())


def test_its_numbers_are_right_in_every_command_and_in_rest(compared: tuple[Run, Run, str]) -> None:
    first, second, name = compared
    found = said("compare", str(first.pk), str(second.pk))
    (change,) = found["differences"]
    # judged 3 3 3 1 1 1 and 3 six times: 0 0 0 2 2 2, mean 1 of a width of 2; experts 3 - 2
    assert change["metrics"][name]["difference"]["value"] == pytest.approx(1.0)
    assert change["overall"]["value"] == pytest.approx(0.5)
    assert change["metrics"][name]["corrected"]["value"] == pytest.approx(1.0)
    for run, judged, experts in ((first, 2.0, 2.0), (second, 3.0, 3.0)):
        corrected = said("correct", str(run.pk))
        assert corrected["metrics"][name]["judge_only"]["value"] == pytest.approx(judged)
        # every answer is rated, so that the corrected mean is the experts' and the score (mean - 1) / 2
        assert corrected["metrics"][name]["corrected"]["value"] == pytest.approx(experts)
        assert corrected["overall"]["corrected"]["value"] == pytest.approx((experts - 1) / 2)
        response = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/report/")
        line = json.loads(b"".join(response.streaming_content))["metrics"][name]
        assert (line["kind"], line["scale"], line["rated"]) == ("custom", "levels 1..3", 6)
        assert line["judge_only"]["value"] == pytest.approx(judged)
        assert line["corrected"]["value"] == pytest.approx(experts)
    agreement = said("agreement", str(first.pk))["judges"]["baseline@1"][name]
    # 3 3 3 1 1 1 against 2: no bias, every answer one level off
    assert (agreement["n"], agreement["bias"], agreement["mae"]) == (6, pytest.approx(0.0), pytest.approx(1.0))
    assert agreement["exact"] == pytest.approx(0.0)


def test_the_compare_page_shows_it_by_its_title(client: Client, compared: tuple[Run, Run, str]) -> None:
    first, second, _ = compared
    client.force_login(make_user(Role.LEAD, first.project))
    url = reverse("run-compare") + f"?runs={first.pk},{second.pk}"
    for language, title in (("en", "Tone"), ("ko", "말투")):
        page = client.get(url, headers={"accept-language": language}).content.decode()
        assert title in page
        assert "+1.000" in page
