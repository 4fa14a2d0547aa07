"""Automatic search for a better judge prompt.

A search drafts versions by a strategy, has them judged on the open labels of a gold set, and proposes the best one if
it agrees better with the experts on validation than the active version. Only a hold-out test can activate it.

The next step follows from the rows of the search alone, so an interrupted search resumes where it stopped and repeats
no paid call. Its budget covers all its runs and calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import transaction

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError
from evaluation.criteria.rubrics import check_may_draft, draft, propose, rubric_scope, version_statuses
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, MetricDefinition, RubricVersion, Run, User, VersionStatus
from evaluation.runs.budgets import check_budget, estimated_spending
from evaluation.scoring.recorded_calls import estimated_cost
from evaluation.worker.jobs import AT_ONCE, NEXT_SWEEP, Lease, job
from evaluation.worker.lifecycle import RunConfig, cancel, resume
from review.calibration.examples import STRATEGIES, rubric_with_examples
from review.calibration.holdout_rules import Verdicts, compare_losses
from review.calibration.rewriting import rewrite
from review.calibration.workbench import Workbench, answer_sets, load_workbench, start_run
from review.models import GoldItem, GoldSet, Search, SearchResult, SearchRun, SearchVersion
from review.statistics.acceptance import MAX_MISSING_SHARE
from review.statistics.gold_split import Split
from review.statistics.score_maps import MapEvaluation, cross_validate_map, fit_score_map

Strategy, Outcome = Search.Strategy, SearchResult.Outcome
MAX_ROUNDS = 10
ENDED_STATES = (Run.State.COMPLETED, Run.State.INCOMPLETE, Run.State.CANCELLED)
BUDGET_REASONS = ("budget", "budget_untold")


@transaction.atomic
def open_search(
    gold_set: GoldSet,
    judge: JudgeVersion,
    family: str,
    strategy: str,
    *,
    by: User | None,
    rounds: int = 1,
    budget: Decimal | None = None,
) -> Search:
    """Create a search, or return the unfinished one with the same parameters.

    :raises DomainError: ``rubric_of_baseline`` for a judge that reads no rubric; ``search_rounds``; ``drafter_opened``;
        ``gold_old_version``; ``nothing_open`` without open labelled answers; ``examples_of_steps``; ``map_of_map``;
        see :func:`check_budget`."""
    lock_project(gold_set.project_id)
    if judge.is_baseline or judge.is_jury:
        raise DomainError("rubric_of_baseline")
    if not 1 <= rounds <= MAX_ROUNDS:
        raise DomainError("search_rounds", limit=MAX_ROUNDS)
    check_may_draft(gold_set.project_id, family, by)
    if GoldSet.objects.filter(project=gold_set.project_id, name=gold_set.name, version__gt=gold_set.version).exists():
        raise DomainError("gold_old_version", gold=str(gold_set))
    fields: dict[str, Any] = {"gold_set": gold_set, "judge_version": judge, "family": family, "strategy": strategy}
    fields |= {"rounds": rounds if strategy == Strategy.REWRITE else 1, "budget": budget}
    if (existing := Search.objects.filter(result=None, **fields).first()) is not None:
        return existing
    workbench = load_workbench(gold_set, judge, family)
    if not workbench.items:
        raise DomainError("nothing_open")
    if strategy != Strategy.REWRITE and workbench.active.rubric.steps:
        raise DomainError("examples_of_steps", family=family)
    if strategy == Strategy.MAP and workbench.active.rubric.mapped_from:
        raise DomainError("map_of_map", rubric=str(workbench.active))
    check_budget(budget, [judge], RunConfig())
    search = Search.objects.create(active=workbench.active, created_by=by, **fields)
    advance_search.add(search.pk)
    audit.record(by, "search.opened", search, strategy=strategy, gold=gold_set.content_hash, budget=str(budget))
    return search


def request_search(search: Search) -> None:
    """Enqueue a search and resume its paused runs."""
    for search_run in search.runs.filter(run__state=Run.State.PAUSED).exclude(run__reason__in=BUDGET_REASONS):
        resume(search_run.run, search.created_by)
    advance_search.enqueue(search.pk)


@job("search")
def advance_search(search_id: int, lease: Lease) -> timedelta | None:
    """Take steps until a run of the search is under way, then check again in a minute."""
    search = Search.objects.get(pk=search_id)
    if search.runs.exclude(run__state__in=[*ENDED_STATES, Run.State.PAUSED]).exists():
        return NEXT_SWEEP
    while lease.may_continue():
        run = _next_run(search)
        if run is None:
            return None
        if run.state == Run.State.PAUSED and run.reason:
            raise DomainError("judge_away", reason=run.reason)
        if run.state not in ENDED_STATES:
            return NEXT_SWEEP
    return AT_ONCE


def take_step(search: Search) -> Run | None:
    """Advance to the next run and return it; ``None`` once the search has ended.

    :raises DomainError: ``search_in_hands``; ``judge_away`` if the rewriting model cannot be reached."""
    with advance_search.claimed(search.pk) as lease:
        if lease is None:
            raise DomainError("search_in_hands", search=str(search))
        run = _next_run(search)
        lease.done = run is None
        return run


def _next_run(search: Search) -> Run | None:
    return None if SearchResult.objects.filter(search=search).exists() else SearchRunner(search).advance()


def search_cost(search: Search) -> Decimal:
    """Return the US dollars spent on runs and calls. Unknown costs count as the mean of the known ones."""
    return sum(
        (estimated_spending(search_run.run)[0] for search_run in search.runs.select_related("run")),
        estimated_cost(search.calls.all()),
    )


class BudgetExhausted(Exception):
    """The budget of the search is spent."""


class SearchRunner:
    """Executes the next step of a search."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.workbench: Workbench = load_workbench(search.gold_set, search.judge_version, search.family)

    def advance(self) -> Run | None:
        """Return the run to complete next; ``None`` after ending the search."""
        strategies = {
            Strategy.EXAMPLES: self._search_examples,
            Strategy.REWRITE: self._search_rewrites,
            Strategy.MAP: self._search_map,
        }
        try:
            if run := self._pending_run(0, [self.search.active], self.workbench.items):
                return run
            return strategies[Strategy(self.search.strategy)]()
        except BudgetExhausted:
            return self._finish(Outcome.BUDGET)

    def _search_examples(self) -> Run | None:
        validation = [item for item in self.workbench.items if item.split == Split.VALIDATION]
        versions = self._drafts(1) or self._create_drafts(
            1, {kind: rubric_with_examples(self.workbench, kind) for kind in STRATEGIES}
        )
        return self._pending_run(1, versions, validation) or self._finish()

    def _search_rewrites(self) -> Run | None:
        """Rewrite the best version so far, round after round. A round without a usable draft ends the search."""
        for phase in range(1, self.search.rounds + 1):
            versions = self._drafts(phase)
            if not versions:
                self._remaining_budget()
                best = self._best_version() or self.search.active
                run = self.search.runs.select_related("run").earliest("pk").run
                rubric = rewrite(self.search, phase, self.workbench, best, run)
                versions = self._create_drafts(phase, {f"round {phase}": rubric})
            if not versions:
                break
            if next_run := self._pending_run(phase, versions, self.workbench.items):
                return next_run
        return self._finish()

    def _search_map(self) -> Run | None:
        versions = self._drafts(1)
        tests = {metric.name: self._test_map(metric) for metric in self.workbench.metrics.values()}
        figures = [{"kind": "map", "metric": name, **asdict(test)} for name, test in tests.items() if test]
        if not figures:
            return self._finish(Outcome.TOO_FEW)
        helpful_metrics = [name for name, test in tests.items() if test and test.is_useful]
        if not versions and not helpful_metrics:
            is_nearer = any(test and test.reduces_error for test in tests.values())
            return self._finish(Outcome.COMPRESSES if is_nearer else Outcome.NOTHING_BETTER, figures)
        versions = versions or self._create_drafts(1, {"map": self._mapped_rubric(helpful_metrics)})
        return self._pending_run(1, versions, self.workbench.items) or self._finish(
            Outcome.OFFERED, figures, versions[0]
        )

    def _scored_labels(self, metric: MetricDefinition) -> tuple[list[GoldItem], Any, Any, Any]:
        """Return the labels with a score of the active version, and arrays of scores, labels and weights."""
        scores = self.workbench.scores_by_version.get(self.search.active_id, {})
        items = [item for item in self.workbench.items if item.metric_id == metric.pk]
        scored_items = [
            item for item in items if (row := scores.get((item.answer_id, metric.pk))) and row.value is not None
        ]
        columns = [(scores[item.answer_id, metric.pk].value, item.label, item.weight) for item in scored_items]
        values, labels, weights = np.array(columns, dtype=np.float64).reshape(-1, 3).T
        return scored_items, values, labels, weights

    def _test_map(self, metric: MetricDefinition) -> MapEvaluation | None:
        items, values, labels, weights = self._scored_labels(metric)
        return cross_validate_map(values, labels, weights, [item.group for item in items], self._levels(metric))

    def _levels(self, metric: MetricDefinition) -> Sequence[int]:
        return () if self.search.judge_version.expects else metric.read_scale().levels

    def _mapped_rubric(self, names: Iterable[str]) -> Rubric:
        """Return the active rubric with score maps for these metrics, fitted to all open labels."""
        rubric, rows = self.search.active.rubric, {metric.name: metric for metric in self.workbench.metrics.values()}
        knots = {}
        for name in names:
            _, values, labels, weights = self._scored_labels(rows[name])
            knots[name] = fit_score_map(values, labels, weights, self._levels(rows[name]))
        metrics = tuple(
            metric.model_copy(update={"score_map": knots[metric.name]}) if metric.name in knots else metric
            for metric in rubric.metrics
        )
        return rubric.model_copy(update={"metrics": metrics, "mapped_from": rubric.prompt_hash})

    def _drafts(self, phase: int) -> list[RubricVersion]:
        return [
            search_version.version
            for search_version in self.search.versions.filter(phase=phase).select_related("version")
        ]

    @transaction.atomic
    def _create_drafts(self, phase: int, rubrics: dict[str, Rubric | None]) -> list[RubricVersion]:
        """Save these rubrics as drafts, without duplicates."""
        drafts: dict[int, RubricVersion] = {}
        for kind, rubric in rubrics.items():
            if rubric is None:
                continue
            note = f"{self.search.strategy} #{self.search.pk}: {kind}"
            version = draft(self.workbench.gold_set.project, rubric, by=self.search.created_by, note=note)
            if version.pk not in drafts:
                SearchVersion.objects.create(search=self.search, phase=phase, kind=kind, version=version)
                drafts[version.pk] = version
        return list(drafts.values())

    def _pending_run(self, phase: int, versions: Sequence[RubricVersion], items: Sequence[GoldItem]) -> Run | None:
        """Return the run that judges the next answer set by these versions; ``None`` when all are judged.

        :raises BudgetExhausted: before a run without budget, or if a run is paused for its budget."""
        if not versions or not items:
            return None
        runs = {
            search_run.run.answer_set_id: search_run.run
            for search_run in self.search.runs.filter(phase=phase).select_related("run")
        }
        for answer_set in answer_sets(items):
            run = runs.get(answer_set.pk)
            if run is not None and run.state in ENDED_STATES:
                continue
            if run is None:
                with transaction.atomic():
                    lock_project(self.workbench.gold_set.project_id)
                    run = start_run(
                        self.workbench, answer_set, items, versions, self.search.created_by, self._remaining_budget()
                    )
                    SearchRun.objects.create(search=self.search, phase=phase, run=run)
                # In local mode the run may already be complete.
                run.refresh_from_db()
            elif run.state == Run.State.PAUSED and run.reason in BUDGET_REASONS:
                cancel(run, self.search.created_by)
                raise BudgetExhausted
            return run
        return None

    def _remaining_budget(self) -> Decimal | None:
        if self.search.budget is None:
            return None
        remaining = self.search.budget - search_cost(self.search)
        if remaining <= 0:
            raise BudgetExhausted
        return remaining

    def _finish(
        self, outcome: str = "", map_figures: list[dict[str, Any]] | None = None, version: RubricVersion | None = None
    ) -> Run | None:
        """Store the outcome and propose the best version if it is better. Return ``None``, as no run follows.

        ``map_figures`` are the figures of the map strategy; otherwise they are computed from validation."""
        figures = map_figures or []
        if map_figures is None:
            figures = [row for rows in self._validation_figures().values() for row in rows]
            if (best := self._best_version()) is not None:
                outcome, version = Outcome.OFFERED, best
        with transaction.atomic():
            lock_project(self.workbench.gold_set.project_id)
            slot = rubric_scope(self.search.judge_version, self.search.family)
            if version is not None and version_statuses(slot).status_of(version) == VersionStatus.DRAFT:
                propose(version, self.search.judge_version, by=self.search.created_by)
            outcome = outcome or Outcome.NOTHING_BETTER
            SearchResult.objects.create(search=self.search, outcome=outcome, version=version, figures=figures)
            audit.record(self.search.created_by, "search.ended", self.search, outcome=str(outcome))
        return None

    def _validation_figures(self) -> dict[RubricVersion, list[dict[str, Any]]]:
        """Return the validation figures of each version that was judged there."""
        figures = {}
        for search_version in self.search.versions.select_related("version"):
            rows = [self._compare(search_version, metric) for metric in self.workbench.metrics.values()]
            if rows and all(rows):
                figures[search_version.version] = [row for row in rows if row]
        return figures

    def _best_version(self) -> RubricVersion | None:
        """Return the version with the largest mean gain over metrics; ``None`` if none gains."""
        gains = {
            version: math.fsum(row["share"] for row in rows) / len(rows)
            for version, rows in self._validation_figures().items()
        }
        best = max(gains, key=lambda version: gains[version], default=None)
        return best if best is not None and gains[best] > 0 else None

    def _compare(self, search_version: SearchVersion, metric: MetricDefinition) -> dict[str, Any] | None:
        """Compare a version with the active one on a metric's validation labels.

        Return ``None`` if it lacks more than 5% of the verdicts, or the active version has none. ``share`` is the gain
        over the largest possible loss."""
        items = self.workbench.validation_items(metric.pk)
        candidate_verdicts, active_verdicts = (
            self._verdicts(pk, metric) for pk in (search_version.version_id, self.search.active_id)
        )
        shared_items = [item for item in items if item.answer_id in active_verdicts]
        if not shared_items or sum(
            item.answer_id not in candidate_verdicts for item in shared_items
        ) > MAX_MISSING_SHARE * len(shared_items):
            return None
        comparison, missing = compare_losses(shared_items, candidate_verdicts, active_verdicts, active_verdicts, metric)
        gain, (low, high) = float(comparison.gain.mean), comparison.gain.interval
        return {
            "version": search_version.version_id,
            "kind": search_version.kind,
            "metric": metric.name,
            "n": len(shared_items),
            "missing": missing,
            "loss": comparison.loss,
            "gain": gain,
            "low": low,
            "high": high,
            "share": gain / metric.read_scale().width ** 2,
        }

    def _verdicts(self, version: int, metric: MetricDefinition) -> Verdicts:
        scores = self.workbench.scores_by_version.get(version, {})
        return {
            answer: {metric.name: row.value}
            for (answer, metric_id), row in scores.items()
            if metric_id == metric.pk and row.value is not None
        }
