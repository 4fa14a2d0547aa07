"""The whole path over real sockets, in the browser's forms and by commands: a judge whose bias a better prompt removes
is accepted and licensed, one that has the examples by heart is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from aiohttp import web
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.criteria.rubrics import draft, rubric_scope, version_statuses
from evaluation.judges.shipped import profile_row, save_judge
from evaluation.judging.draft_checks import rubric_yaml
from evaluation.models import Endpoint, JudgeVersion, RubricVersion, Run
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.jobs import enqueue_due
from review.calibration.approvals import run_approvals
from review.calibration.holdout_tests import advance_holdout_test
from review.calibration.versions import freeze
from review.models import GoldSet, HoldoutTest
from tests.factories import make_user
from tests.jobs import work
from tests.judge_server import JudgeServer
from tests.judge_server.actions import Action, completion, fitting
from tests.judge_server.received import Received
from tests.pages.markup import compact
from tests.review.calibration.labelled import FAMILY, rated_run, reworded

pytestmark = pytest.mark.django_db


def biased() -> Action:
    """Two levels off, but for rubrics that say *SKILLED*, and for answers that the rubric quotes."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await fitting()(request, http)
        text = str(request.block["answer"])
        found = re.search(r"Answer (\d+), worth (\d)\.", text)
        assert found is not None
        number, right = int(found[1]), int(found[2])
        knows = "SKILLED" in request.text or found[0] in request.text.partition("Known:")[2].partition("BEGIN")[0]
        level = right if knows else max(1, min(5, right + (2 if number % 2 else -2)))
        names = list((request.schema or {}).get("properties", {}))
        said = {name: {"reason": "read", "score": level} for name in names}
        return web.json_response(completion(request, json.dumps(said), as_asked=True))

    return act


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        running.behave(biased())
        yield running


@pytest.fixture
def run(server: JudgeServer, settings: Any) -> Run:
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    return rated_run(240)


@pytest.fixture
def judge(run: Run, server: JudgeServer) -> JudgeVersion:
    endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
    return save_judge(run.project, "judge", endpoint, model="judge-1", language="en")


@pytest.mark.slow
def test_a_lead_goes_from_a_disagreement_to_a_licensed_run(run: Run, judge: JudgeVersion) -> None:
    lead = Client()
    lead.force_login(make_user(Role.LEAD, run.project))
    lead.post(reverse("calibration-freeze"), {"run": run.pk, "name": "gold"})
    gold = GoldSet.objects.get()
    at = reverse("calibration", args=[gold.pk])
    here: dict[str, Any] = {"judge": judge.pk, "family": FAMILY}
    lead.post(reverse("calibration-run", args=[gold.pk]), here)
    drain(Run.objects.latest("pk").pk, seconds=120)
    before = lead.get(at, here).context["page"]
    assert before.disagreements
    lead.post(
        reverse("calibration-draft", args=[gold.pk]), here | {"text": rubric_yaml(reworded("SKILLED")), "note": "bias"}
    )
    version = RubricVersion.objects.get(note="bias")
    here["rubric"] = version.pk
    lead.post(reverse("calibration-run", args=[gold.pk]), here)
    drain(Run.objects.latest("pk").pk, seconds=120)
    after = lead.get(at, here).context["page"]
    assert after.measures[0].loss < before.measures[0].loss
    assert after.forecast[0].forecast.power > 0.9
    lead.post(reverse("calibration-holdout-test", args=[gold.pk]), here)
    enqueue_due()
    look = HoldoutTest.objects.get()
    if not hasattr(look, "result"):  # no worker runs here
        work(advance_holdout_test, look.pk)
    assert "<b>accepted</b>" in compact(lead.get(at, here).content.decode())
    (one,) = [one for one in run_approvals(_new_run(run, judge)) if one.metric == "correctness"]
    assert (one.state, one.answers) == ("licensed", 120)


def _new_run(run: Run, judge: JudgeVersion) -> Run:
    return prepare_run(run.answer_set, profile_row(run.project, "graphrag"), judge=judge)


@pytest.mark.slow
def test_commands_refuse_what_has_the_examples_by_heart_and_accept_what_reads(run: Run, judge: JudgeVersion) -> None:
    gold = freeze(run, "gold", by=None)
    known = gold.items.exclude(split="hold_out").values_list("answer__text", flat=True)
    memory = draft(run.project, reworded("Known:\n" + "\n".join(known)), by=None)
    skilled = draft(run.project, reworded("SKILLED"), by=None)
    asked = ["--judge", "judge", "--gold", "gold"]
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("test_prompt", f"{FAMILY}@{memory.version}", *asked, stdout=out)
    assert (ended.value.code, out.getvalue().splitlines()[0]) == (100, "not accepted")
    out = StringIO()
    call_command("test_prompt", f"{FAMILY}@{skilled.version}", *asked, stdout=out)
    assert out.getvalue().splitlines() == ["accepted", "look 2; 2 looks taken, 0.0167 of 0.05 left"]
    assert version_statuses(rubric_scope(judge, FAMILY)).active == skilled
