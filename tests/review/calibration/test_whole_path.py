"""End-to-end calibration over real sockets, by browser forms and by commands. A prompt that removes the judge's bias is
accepted and approved; one that memorised the examples is refused."""

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
from tests.jobs import work_on_job
from tests.judge_server import JudgeServer
from tests.judge_server.actions import Action, completion, valid_reply
from tests.judge_server.received import ReceivedRequest
from tests.pages.markup import compact
from tests.review.calibration.labelled import FAMILY, rated_run, rubric_with_instruction

pytestmark = pytest.mark.django_db


def biased_judge() -> Action:
    """Two levels off, except for rubrics that say *SKILLED* and for answers quoted in the rubric."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        text = str(request.block["answer"])
        match = re.search(r"Answer (\d+), worth (\d)\.", text)
        assert match is not None
        number, right = int(match[1]), int(match[2])
        knows = "SKILLED" in request.text or match[0] in request.text.partition("Known:")[2].partition("BEGIN")[0]
        level = right if knows else max(1, min(5, right + (2 if number % 2 else -2)))
        names = list((request.schema or {}).get("properties", {}))
        reply = {name: {"reason": "read", "score": level} for name in names}
        return web.json_response(completion(request, json.dumps(reply), as_asked=True))

    return act


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as judge_server:
        judge_server.behave(biased_judge())
        yield judge_server


@pytest.fixture
def run(server: JudgeServer, settings: Any) -> Run:
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    return rated_run(240)


@pytest.fixture
def judge(run: Run, server: JudgeServer) -> JudgeVersion:
    endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
    return save_judge(run.project, "judge", endpoint, model="judge-1", language="en")


@pytest.mark.slow
def test_lead_goes_from_a_disagreement_to_an_approved_run(run: Run, judge: JudgeVersion) -> None:
    lead = Client()
    lead.force_login(make_user(Role.LEAD, run.project))
    lead.post(reverse("calibration-freeze"), {"run": run.pk, "name": "gold"})
    gold = GoldSet.objects.get()
    url = reverse("calibration", args=[gold.pk])
    form: dict[str, Any] = {"judge": judge.pk, "family": FAMILY}
    lead.post(reverse("calibration-run", args=[gold.pk]), form)
    drain(Run.objects.latest("pk").pk, seconds=120)
    page_before = lead.get(url, form).context["page"]
    assert page_before.disagreements
    lead.post(
        reverse("calibration-draft", args=[gold.pk]),
        form | {"text": rubric_yaml(rubric_with_instruction("SKILLED")), "note": "bias"},
    )
    version = RubricVersion.objects.get(note="bias")
    form["rubric"] = version.pk
    lead.post(reverse("calibration-run", args=[gold.pk]), form)
    drain(Run.objects.latest("pk").pk, seconds=120)
    page_after = lead.get(url, form).context["page"]
    assert page_after.measures[0].loss < page_before.measures[0].loss
    assert page_after.forecast[0].forecast.power > 0.9
    lead.post(reverse("calibration-holdout-test", args=[gold.pk]), form)
    enqueue_due()
    holdout_test = HoldoutTest.objects.get()
    if not hasattr(holdout_test, "result"):  # no worker runs here
        work_on_job(advance_holdout_test, holdout_test.pk)
    assert '<span class="big">accepted</span>' in compact(lead.get(url, form).content.decode())
    (approval,) = [approval for approval in run_approvals(_new_run(run, judge)) if approval.metric == "correctness"]
    assert (approval.state, approval.answers) == ("approved", 120)


def _new_run(run: Run, judge: JudgeVersion) -> Run:
    return prepare_run(run.answer_set, profile_row(run.project, "graphrag"), judge=judge)


@pytest.mark.slow
def test_commands_refuse_a_memorising_prompt_and_accept_a_skilled_one(run: Run, judge: JudgeVersion) -> None:
    gold = freeze(run, "gold", by=None)
    known_texts = gold.items.exclude(split="hold_out").values_list("answer__text", flat=True)
    memory = draft(run.project, rubric_with_instruction("Known:\n" + "\n".join(known_texts)), by=None)
    skilled_version = draft(run.project, rubric_with_instruction("SKILLED"), by=None)
    options = ["--judge", "judge", "--gold", "gold"]
    out = StringIO()
    with pytest.raises(SystemExit) as exit_info:
        call_command("test_prompt", f"{FAMILY}@{memory.version}", *options, stdout=out)
    assert (exit_info.value.code, out.getvalue().splitlines()[0]) == (100, "not accepted")
    out = StringIO()
    call_command("test_prompt", f"{FAMILY}@{skilled_version.version}", *options, stdout=out)
    assert out.getvalue().splitlines() == ["accepted", "hold-out test 2 of 2; error budget left: 0.0167 of 0.05"]
    assert version_statuses(rubric_scope(judge, FAMILY)).active == skilled_version
