"""Own rule metrics of claimed units, computed in a child process while calls are in flight.

Each unit is one metric of one answer. A batch takes some seconds, whatever a metric costs, so that scores are stored
often and other workers get their share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Event

from django.conf import settings
from django.db.models import prefetch_related_objects

from evaluation.core.samples import AnswerSpec, Result
from evaluation.judges.shipped import definitions
from evaluation.judging.prechecks import missing_input
from evaluation.metric_packages.isolation import PackageProcess
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.models import Run, WorkUnit
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring.rules import RETRIEVAL_INPUTS
from evaluation.scoring.scores import UnitOutcome, write_scores
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import RunConfig
from evaluation.worker.steps import Steps, run_in_thread

FIRST_BATCH, MAX_BATCH = 8, 200
BATCH_SECONDS = 5.0
# Leases are extended after a third of their time.
HEARTBEATS_PER_LEASE = 3


class OwnMetricSession:
    """A worker's loop over the units of own metrics of a run, until ``deadline`` (monotonic seconds)."""

    def __init__(self, run: Run, process: PackageProcess, deadline: float, wake: Event) -> None:
        self._run, self._process, self._deadline, self._wake = run, process, deadline, wake
        self._config = RunConfig.model_validate(run.config)
        self._settings = rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=self._config.k)
        self._metrics = definitions(self._config.own_rules)
        self._batch, self._extended_at = FIRST_BATCH, 0.0

    def steps(self) -> Steps[int]:
        """Claim and compute units until none is claimable, or time is up; the number of ended units."""
        ended = 0
        while time.monotonic() < self._deadline:
            claimed = retry_on_db_error(self._claim)
            if not claimed:
                break
            ended += yield from self._score(claimed)
        return ended

    def _claim(self) -> list[WorkUnit]:
        own = [WorkUnit.Kind.OWN]
        claimed = units.claim(self._run.pk, own, self._batch) or units.claim(self._run.pk, own, 1, suspects=True)
        prefetch_related_objects(claimed, "answer__question", "answer__contexts")
        return claimed

    def _score(self, claimed: Sequence[WorkUnit]) -> Steps[int]:
        """Compute units for some seconds, store their results and give back the others; the number of ended units."""
        started = self._extended_at = time.monotonic()
        results = yield from run_in_thread(
            partial(self._compute_all, claimed),
            self._wake,
            on_wait=lambda: self._extend_leases(claimed),
            on_close=self._process.close,
        )
        pace = len(results) / max(time.monotonic() - started, 0.001)
        self._batch = max(1, min(MAX_BATCH, int(pace * BATCH_SECONDS)))
        outcomes = [UnitOutcome(unit, {self._metrics[unit.metric]: result}) for unit, result in results.items()]
        retry_on_db_error(lambda: write_scores(outcomes))
        retry_on_db_error(lambda: units.give_back_all(unit for unit in claimed if unit not in results))
        return len(outcomes)

    def _extend_leases(self, claimed: Sequence[WorkUnit]) -> None:
        if time.monotonic() - self._extended_at > settings.CONCORD_LEASE_SECONDS / HEARTBEATS_PER_LEASE:
            retry_on_db_error(lambda: units.extend(claimed))
            self._extended_at = time.monotonic()

    def _compute_all(self, claimed: Sequence[WorkUnit]) -> dict[WorkUnit, Result]:
        """Results of the units that the time allows. No access to the database."""
        until = min(time.monotonic() + BATCH_SECONDS, self._deadline)
        results: dict[WorkUnit, Result] = {}
        for unit in claimed:
            result = self._compute(unit)
            if self._process.is_closed:
                break
            package = self._config.packages[unit.metric]
            results[unit] = replace(result, detail={**result.detail, "package": package})
            if time.monotonic() >= until:
                break
        return results

    def _compute(self, unit: WorkUnit) -> Result:
        answer, spec = unit.answer, rule_metric_named(unit.metric).spec
        if answer is None:
            return Result.failed("upstream")
        if self._config.evaluation_type == "retrieval_only" and not RETRIEVAL_INPUTS & set(spec.inputs):
            return Result.not_applicable("not_generated")
        question = answer.question.read()
        failed_answer = answer.status == "failed"
        answer_spec = AnswerSpec("") if failed_answer else answer.read()
        if reason := missing_input(spec, question, answer_spec, self._settings):
            return Result.not_applicable(reason)
        if failed_answer:
            return Result.failed(f"upstream: {answer.reason}")
        return self._process.compute(unit.metric, question, answer_spec, self._settings)
