"""Draining a run: claiming and doing its units until none is left or time is up. Needs no queue."""

from __future__ import annotations

import time
from functools import partial

from django.conf import settings

from evaluation.errors import Refused
from evaluation.judges.clients import client_of
from evaluation.judging.pool import CallPool
from evaluation.runs.config import RunConfig
from evaluation.runs.lifecycle import pause
from evaluation.runs.models import Run, RunJudge
from evaluation.runs.settling import fail_dependents, park_crash_loops, settle
from evaluation.scoring.judges import JudgeSession
from evaluation.scoring.rules import BATCH, score_rules
from evaluation.work import dispatch, units
from evaluation.work.models import WorkUnit
from evaluation.work.patience import patiently


def drain(run_id: int, *, seconds: float) -> Run:
    """Work on a run for up to ``seconds``; ring again when claimable units remain, settle it when none is open."""
    run = patiently(lambda: Run.objects.select_related("profile_version").get(pk=run_id))
    deadline = time.monotonic() + seconds
    patiently(lambda: park_crash_loops(run))
    patiently(lambda: fail_dependents(run))
    while time.monotonic() < deadline and patiently(lambda: _rules_once(run)):
        pass
    for judge in patiently(lambda: list(_judges(run))):
        if time.monotonic() < deadline and patiently(partial(_has_work, run, judge)):
            _judge(run, judge, deadline)
    patiently(lambda: settle(run))
    if run.state == Run.State.RUNNING and patiently(lambda: claimable_now(run_id)):
        patiently(lambda: dispatch.ring(run_id))
    return run


def claimable_now(run_id: int) -> bool:
    """Whether a running run has a unit that could be claimed at this moment."""
    return WorkUnit.objects.filter(units.claimable(), run_id=run_id, run__state=Run.State.RUNNING).exists()


def _rules_once(run: Run) -> int:
    rules = [WorkUnit.Kind.RULES]
    claimed = units.claim(run.pk, rules, BATCH) or units.claim(run.pk, rules, 1, suspects=True)
    if claimed:
        score_rules(run, claimed)
    return len(claimed)


def _judges(run: Run) -> list[RunJudge]:
    return list(run.judges.select_related("judge_version__endpoint", "rubric_version").order_by("id"))


def _has_work(run: Run, judge: RunJudge) -> bool:
    return WorkUnit.objects.filter(
        units.claimable(), run_id=run.pk, run_judge=judge, run__state=Run.State.RUNNING
    ).exists()


def _judge(run: Run, judge: RunJudge, deadline: float) -> None:
    try:
        client = client_of(judge.judge_version)
    except Refused as refused:
        pause(run, reason=refused.code)
        return
    endpoint = judge.judge_version.endpoint
    limit = RunConfig.model_validate(run.config).max_concurrency
    with CallPool(client, min(limit, endpoint.max_concurrency if endpoint else limit)) as pool:
        JudgeSession(run, judge, pool, deadline, settings.CONCORD_LEASE_SECONDS).work()
