"""Machines that propose: a search makes versions of a judge prompt by a strategy, has them judged on the open labels of
a gold set in runs of the ledger, and offers the best one as a candidate where it comes nearer to the experts on
validation than the active version. None is put in force: that takes a look at the hold-out.

A search is a row and what hangs on it; which step comes next follows from that alone. So it goes on after a crash
where it was, and nothing that was heard is paid for twice. Its budget is over all its runs and calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import Refused
from evaluation.criteria.rubrics import check_may_draft, draft, propose, slot_of, standings
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion, MetricDefinition, RubricVersion, Run, Standing, User
from evaluation.runs.budgets import check_budget, spent
from evaluation.scoring.side_calls import spent_on
from evaluation.worker.dispatch import ring_for
from evaluation.worker.lifecycle import RunConfig, cancel, resume
from evaluation.worker.turns import turn_at
from review.calibration.accepting import Verdicts, compared_on
from review.calibration.examples import PICKS, with_examples
from review.calibration.rewriting import rewrite
from review.calibration.workbench import Bench, answer_sets, bench_of, run_over
from review.models import GoldItem, GoldSet, Search, SearchResult, SearchRun, SearchTurn, SearchVersion
from review.statistics.acceptance import MOST_MISSING
from review.statistics.gold_split import Split
from review.statistics.score_maps import MapProof, fitted, proved

WORK = "review.calibration.searching.work_on"
Strategy, Outcome = Search.Strategy, SearchResult.Outcome
MOST_ROUNDS = 10
ENDED = (Run.State.COMPLETED, Run.State.INCOMPLETE, Run.State.CANCELLED)
OUT_OF_MONEY = ("budget", "budget_untold")


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
    """The row of a search, or the same one that has not ended.

    :raises Refused: ``rubric_of_baseline`` for a judge that reads no rubric; ``search_rounds``; ``drafter_opened``;
        ``gold_old_version``; ``nothing_open`` where no answer is labelled and open; ``examples_of_steps``;
        ``map_of_map``; see :func:`check_budget`.
    """
    lock_project(gold_set.project_id)
    if judge.is_baseline or judge.is_jury:
        raise Refused("rubric_of_baseline")
    if not 1 <= rounds <= MOST_ROUNDS:
        raise Refused("search_rounds", limit=MOST_ROUNDS)
    check_may_draft(gold_set.project_id, family, by)
    if GoldSet.objects.filter(project=gold_set.project_id, name=gold_set.name, version__gt=gold_set.version).exists():
        raise Refused("gold_old_version", gold=str(gold_set))
    asked: dict[str, Any] = {"gold_set": gold_set, "judge_version": judge, "family": family, "strategy": strategy}
    asked |= {"rounds": rounds if strategy == Strategy.REWRITE else 1, "budget": budget}
    if (open_one := Search.objects.filter(result=None, **asked).first()) is not None:
        return open_one
    bench = bench_of(gold_set, judge, family)
    if not bench.items:
        raise Refused("nothing_open")
    if strategy != Strategy.REWRITE and bench.active.rubric.steps:
        raise Refused("examples_of_steps", family=family)
    if strategy == Strategy.MAP and bench.active.rubric.mapped_from:
        raise Refused("map_of_map", rubric=str(bench.active))
    check_budget(budget, [judge], RunConfig())
    made = Search.objects.create(active=bench.active, created_by=by, **asked)
    SearchTurn.objects.create(search=made)
    audit.record(by, "search.opened", made, strategy=strategy, gold=gold_set.content_hash, budget=str(budget))
    return made


def ask_for_search(search: Search) -> None:
    """Have workers go on with a search; what stands still for a person is tried again."""
    for one in search.runs.filter(run__state=Run.State.PAUSED).exclude(run__reason__in=OUT_OF_MONEY):
        resume(one.run, search.created_by)
    SearchTurn.objects.filter(search=search).update(reason="")
    ring_for(WORK, search.pk)


def work_on(search_id: int) -> None:
    """A worker's turn: one step, if none of the search's runs is under way. Runs wake workers themselves."""
    search = Search.objects.get(pk=search_id)
    reason = ""
    try:
        while (run := step(search)) is not None and run.state in ENDED:
            pass  # worked off where it was started
        reason = run.reason if run and run.state == Run.State.PAUSED else ""
    except Refused as refused:
        reason = str(refused.params.get("reason", refused.code))
    if reason:
        SearchTurn.objects.filter(search=search).update(reason=reason[:100])


def ring_waiting() -> None:
    """Wake workers for searches that nobody has in hands and that wait for no person."""
    free = Q(turn__until=None) | Q(turn__until__lt=Now())
    working = SearchRun.objects.exclude(run__state__in=[*ENDED, Run.State.PAUSED]).values("search")
    waiting = Search.objects.filter(free, result=None, turn__reason="").exclude(pk__in=working)
    for pk in waiting.values_list("pk", flat=True):
        ring_for(WORK, pk)


def step(search: Search) -> Run | None:
    """Go on as far as there is something to judge: that run. ``None`` once the search has ended.

    :raises Refused: ``search_in_hands``; ``judge_away`` where the model that rewrites cannot be asked.
    """
    with turn_at(SearchTurn.objects.filter(search=search), float("inf")) as turn:
        if turn is None:
            raise Refused("search_in_hands", search=str(search))
        if SearchResult.objects.filter(search=search).exists():
            return None
        return _Going(search).on()


def spent_by(search: Search) -> Decimal:
    """US dollars for the runs and calls of a search, what is out at the mean of what is known."""
    return sum((spent(one.run)[0] for one in search.runs.select_related("run")), spent_on(search.calls.all()))


class OutOfMoney(Exception):
    """Nothing is left of the budget."""


class _Going:
    """A search at its next step."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.bench: Bench = bench_of(search.gold_set, search.judge_version, search.family)

    def on(self) -> Run | None:
        """The run to be worked off, or the end."""
        strategies = {Strategy.EXAMPLES: self._examples, Strategy.REWRITE: self._rewrite, Strategy.MAP: self._map}
        try:
            if run := self._judged(0, [self.search.active], self.bench.items):
                return run
            return strategies[Strategy(self.search.strategy)]()
        except OutOfMoney:
            return self._end(Outcome.BUDGET)

    def _examples(self) -> Run | None:
        validation = [one for one in self.bench.items if one.split == Split.VALIDATION]
        versions = self._made(1) or self._make(1, {kind: with_examples(self.bench, kind) for kind in PICKS})
        return self._judged(1, versions, validation) or self._end()

    def _rewrite(self) -> Run | None:
        """Round after round, the best version so far is written anew; a round that gives none ends it."""
        for phase in range(1, self.search.rounds + 1):
            versions = self._made(phase)
            if not versions:
                self._left()
                best = self._best() or self.search.active
                run = self.search.runs.select_related("run").earliest("pk").run
                rubric = rewrite(self.search, phase, self.bench, best, run)
                versions = self._make(phase, {f"round {phase}": rubric})
            if not versions:
                break
            if run_now := self._judged(phase, versions, self.bench.items):
                return run_now
        return self._end()

    def _map(self) -> Run | None:
        versions = self._made(1)
        proofs = {metric.name: self._proof(metric) for metric in self.bench.metrics.values()}
        told = [{"kind": "map", "metric": name, **asdict(proof)} for name, proof in proofs.items() if proof]
        if not told:
            return self._end(Outcome.TOO_FEW)
        helping = [name for name, proof in proofs.items() if proof and proof.helps]
        if not versions and not helping:
            nearer = any(proof and proof.nearer for proof in proofs.values())
            return self._end(Outcome.COMPRESSES if nearer else Outcome.NOTHING_BETTER, told)
        versions = versions or self._make(1, {"map": self._mapped(helping)})
        return self._judged(1, versions, self.bench.items) or self._end(Outcome.OFFERED, told, versions[0])

    def _values(self, metric: MetricDefinition) -> tuple[list[GoldItem], Any, Any, Any]:
        """What the active version said of open labels, these, and their weights."""
        said = self.bench.verdicts.get(self.search.active_id, {})
        items = [one for one in self.bench.items if one.metric_id == metric.pk]
        kept = [one for one in items if (row := said.get((one.answer_id, metric.pk))) and row.value is not None]
        columns = [(said[one.answer_id, metric.pk].value, one.label, one.weight) for one in kept]
        values, labels, weights = np.array(columns, dtype=np.float64).reshape(-1, 3).T
        return kept, values, labels, weights

    def _proof(self, metric: MetricDefinition) -> MapProof | None:
        kept, said, labels, weights = self._values(metric)
        return proved(said, labels, weights, [one.group for one in kept], self._levels(metric))

    def _levels(self, metric: MetricDefinition) -> Sequence[int]:
        return () if self.search.judge_version.expects else metric.read_scale().levels

    def _mapped(self, names: Iterable[str]) -> Rubric:
        """The active version's words with maps for these metrics, fitted to all open labels."""
        rubric, rows = self.search.active.rubric, {one.name: one for one in self.bench.metrics.values()}
        knots = {}
        for name in names:
            _, said, labels, weights = self._values(rows[name])
            knots[name] = fitted(said, labels, weights, self._levels(rows[name]))
        metrics = tuple(
            one.model_copy(update={"score_map": knots[one.name]}) if one.name in knots else one
            for one in rubric.metrics
        )
        return rubric.model_copy(update={"metrics": metrics, "mapped_from": rubric.asked_hash})

    def _made(self, phase: int) -> list[RubricVersion]:
        return [one.version for one in self.search.versions.filter(phase=phase).select_related("version")]

    @transaction.atomic
    def _make(self, phase: int, rubrics: dict[str, Rubric | None]) -> list[RubricVersion]:
        """Drafts of these texts, each once."""
        made: dict[int, RubricVersion] = {}
        for kind, rubric in rubrics.items():
            if rubric is None:
                continue
            note = f"{self.search.strategy} #{self.search.pk}: {kind}"
            version = draft(self.bench.gold_set.project, rubric, by=self.search.created_by, note=note)
            if version.pk not in made:
                SearchVersion.objects.create(search=self.search, phase=phase, kind=kind, version=version)
                made[version.pk] = version
        return list(made.values())

    def _judged(self, phase: int, versions: Sequence[RubricVersion], items: Sequence[GoldItem]) -> Run | None:
        """The run that judges these answers by these versions, one answer set after the other; ``None`` when all are.

        :raises OutOfMoney: before a run that could pay for nothing, or where one stands still for that.
        """
        if not versions or not items:
            return None
        there = {one.run.answer_set_id: one.run for one in self.search.runs.filter(phase=phase).select_related("run")}
        for answers in answer_sets(items):
            run = there.get(answers.pk)
            if run is not None and run.state in ENDED:
                continue
            if run is None:
                with transaction.atomic():
                    lock_project(self.bench.gold_set.project_id)
                    run = run_over(self.bench, answers, items, versions, self.search.created_by, self._left())
                    SearchRun.objects.create(search=self.search, phase=phase, run=run)
                run.refresh_from_db()  # it may be worked off already
            elif run.state == Run.State.PAUSED and run.reason in OUT_OF_MONEY:
                cancel(run, self.search.created_by)
                raise OutOfMoney
            return run
        return None

    def _left(self) -> Decimal | None:
        if self.search.budget is None:
            return None
        left = self.search.budget - spent_by(self.search)
        if left <= 0:
            raise OutOfMoney
        return left

    def _end(
        self, outcome: str = "", told: list[dict[str, Any]] | None = None, offered: RubricVersion | None = None
    ) -> Run | None:
        """Write down how it ended, with no run to go on with; the best version, where one is better, becomes a
        candidate. ``told`` are figures that were come by otherwise."""
        figures = told or []
        if told is None:
            figures = [row for rows in self._figures().values() for row in rows]
            if (best := self._best()) is not None:
                outcome, offered = Outcome.OFFERED, best
        with transaction.atomic():
            lock_project(self.bench.gold_set.project_id)
            slot = slot_of(self.search.judge_version, self.search.family)
            if offered is not None and standings(slot).of(offered) == Standing.DRAFT:
                propose(offered, self.search.judge_version, by=self.search.created_by)
            outcome = outcome or Outcome.NOTHING_BETTER
            SearchResult.objects.create(search=self.search, outcome=outcome, version=offered, figures=figures)
            audit.record(self.search.created_by, "search.ended", self.search, outcome=str(outcome))
        return None

    def _figures(self) -> dict[RubricVersion, list[dict[str, Any]]]:
        """What validation tells of each version that was judged there."""
        found = {}
        for one in self.search.versions.select_related("version"):
            rows = [self._compared(one, metric) for metric in self.bench.metrics.values()]
            if rows and all(rows):
                found[one.version] = [row for row in rows if row]
        return found

    def _best(self) -> RubricVersion | None:
        """The version with the largest gain, the mean over metrics; ``None`` where none gains."""
        gains = {one: math.fsum(row["share"] for row in rows) / len(rows) for one, rows in self._figures().items()}
        best = max(gains, key=lambda one: gains[one], default=None)
        return best if best is not None and gains[best] > 0 else None

    def _compared(self, made: SearchVersion, metric: MetricDefinition) -> dict[str, Any] | None:
        """How much nearer a version comes to a metric's validation labels than the active one; ``None`` where it lacks
        more than 5% of the verdicts, or the other has none. ``share`` is the gain over the largest loss there is."""
        items = self.bench.validation(metric.pk)
        ours, theirs = (self._verdicts(pk, metric) for pk in (made.version_id, self.search.active_id))
        both = [one for one in items if one.answer_id in theirs]
        if not both or sum(one.answer_id not in ours for one in both) > MOST_MISSING * len(both):
            return None
        one, missing = compared_on(both, ours, theirs, theirs, metric)
        gain, (low, high) = float(one.gain.mean), one.gain.interval
        return {
            "version": made.version_id,
            "kind": made.kind,
            "metric": metric.name,
            "n": len(both),
            "missing": missing,
            "loss": one.loss,
            "gain": gain,
            "low": low,
            "high": high,
            "share": gain / metric.read_scale().width ** 2,
        }

    def _verdicts(self, version: int, metric: MetricDefinition) -> Verdicts:
        said = self.bench.verdicts.get(version, {})
        return {
            answer: {metric.name: row.value}
            for (answer, key), row in said.items()
            if key == metric.pk and row.value is not None
        }
