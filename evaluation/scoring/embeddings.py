"""The embedding step: claimed units become texts, texts become vectors in few calls, and vectors become scores.

Stored vectors are reused and the others are fetched in batches. Each call is recorded before it is made."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from django.conf import settings
from django.db.models import prefetch_related_objects

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, Result, Status
from evaluation.judges.embeddings import cache_vectors, cached_vectors
from evaluation.judges.prices import price_table
from evaluation.judges.shipped import definitions
from evaluation.judging.calls import JudgeReply, call_cost
from evaluation.judging.embedding.similarity import (
    BERT_SCORE,
    SEMANTIC_SIMILARITY,
    Embedder,
    EmbeddingResult,
    TokenModel,
    Vector,
    answer_relevance,
    batches,
    bert_score_f1,
    semantic_similarity,
    text_hash,
    texts_to_embed,
)
from evaluation.judging.families import asked_back
from evaluation.models import Attempt, Endpoint, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, GiveUp, NeedsAction, decide
from evaluation.scoring import scores
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.endpoint_quota import SingleCalls
from evaluation.worker.lifecycle import RunConfig, pause
from evaluation.worker.steps import Steps, delay, run_in_thread
from evaluation.worker.unit_calls import BudgetLimit

# One text may be at fault, so the others of its batch are retried without it.
_SPLIT_OUTCOMES = frozenset({Outcome.BAD_REQUEST, Outcome.TOO_LARGE, Outcome.WRONG_CONTENT})
_TOKENS_PER_CHARACTER = 0.5


def _fetched_reply(attempt: Attempt, embedder: Embedder, batch: Sequence[str], embedded: EmbeddingResult) -> Reply:
    """The reply row of a call; its vectors are stored elsewhere."""
    model = str(embedder.provenance.get("model", ""))
    reply = JudgeReply(
        embedded.outcome,
        model_returned=embedded.model_returned,
        tokens_in=embedded.tokens_in,
        tokens_out=0,
        tokens_cached=0,
        free=embedded.free,
    )
    return Reply(
        attempt=attempt,
        outcome=embedded.outcome,
        http_status=embedded.http_status,
        model_returned=embedded.model_returned,
        request_hash=content_hash([embedder.space, [text_hash(text) for text in batch]]),
        tokens_in=embedded.tokens_in,
        tokens_out=0,
        tokens_cached=0,
        tokens_reasoning=0,
        cost=call_cost(model, reply, table=price_table()),
        elapsed_seconds=embedded.elapsed_seconds,
        raw=embedded.raw,
    )


UNITS_PER_CLAIM = 64
# Leases are extended after a third of their time.
HEARTBEATS_PER_LEASE = 3
Finish = Callable[[Mapping[str, Vector]], Result]


@dataclass(slots=True)
class EmbeddingTask:
    """A unit with the results that need no embedding, and in ``pending`` the texts and final computation of the
    others."""

    unit: WorkUnit
    results: dict[str, Result] = field(default_factory=dict)
    pending: dict[str, tuple[tuple[str, ...], Finish]] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for texts, _ in self.pending.values() for text in texts)


@dataclass
class EmbeddingSession:
    """A worker's loop over the embedding units of a run, until ``deadline`` (monotonic seconds). Results that need a
    missing embedder or token model are not applicable."""

    run: Run
    embedder: Embedder | None
    tokens: TokenModel | None
    deadline: float
    # Set when a call has ended.
    wake: Event
    budget_guard: BudgetLimit | None = None

    def __post_init__(self) -> None:
        self.config = RunConfig.model_validate(self.run.config)
        self.metrics = definitions([*self.config.embeddings, asked_back.METRIC])
        self._extended_at = time.monotonic()
        self._claimed: list[WorkUnit] = []
        # Texts of the claimed units that need vectors.
        self._texts_by_unit: dict[WorkUnit, tuple[str, ...]] = {}
        self._vectors: dict[str, Vector] = {}
        # Reason codes by text.
        self._failures: dict[str, str] = {}
        # The number of calls by unit.
        self._call_numbers: dict[int, int] = {}
        self._rng = random.Random()
        self._calls = self._quota_calls()

    def _quota_calls(self) -> SingleCalls | None:
        choice = self.config.embedding
        if self.embedder is None or choice is None or choice.endpoint is None:
            return None
        endpoint = Endpoint.objects.get(pk=choice.endpoint)
        return SingleCalls(endpoint, self.run.pk, on_wait=lambda: self._extend_leases(self._claimed))

    def steps(self) -> Steps[int]:
        """Claim and embed units until none is claimable, the run stops, or time is up; the number of ended units."""
        ended = 0
        with self.embedder or nullcontext(), self._calls or nullcontext():
            while time.monotonic() < self.deadline:
                claimed = retry_on_db_error(self._claim)
                if not claimed:
                    break
                ended += yield from self._process(claimed)
        return ended

    def _claim(self) -> list[WorkUnit]:
        embed = [WorkUnit.Kind.EMBED]
        claimed = units.claim(self.run.pk, embed, UNITS_PER_CLAIM) or units.claim(self.run.pk, embed, 1, suspects=True)
        if claimed and not self._may_call():
            units.give_back_all(claimed)
            return []
        prefetch_related_objects(claimed, "answer__question", "answer__contexts", "run_judge", "needs")
        return claimed

    def _may_call(self) -> bool:
        """Return whether the run still runs, and pause it if its budget is used up. Idempotent."""
        if self._calls and self.budget_guard and (reason := self.budget_guard.stop_reason()):
            pause(self.run, reason=reason)
        return Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING).exists()

    def _process(self, claimed: list[WorkUnit]) -> Steps[int]:
        self._extended_at, self._claimed = time.monotonic(), claimed
        self._vectors, self._failures, self._call_numbers = {}, {}, {}
        tasks = []
        for unit in claimed:
            tasks.append(self._task(unit))
            self._extend_leases(claimed)
            yield 0.0
        self._texts_by_unit = {task.unit: task.texts for task in tasks if task.pending}
        if self._texts_by_unit and self.embedder and not (yield from self._fetch(self.embedder)):
            # The units were given back.
            return 0
        outcomes = [self._outcome(task) for task in tasks]
        retry_on_db_error(lambda: scores.write_scores(outcomes))
        return len(outcomes)

    def _extend_leases(self, claimed: list[WorkUnit]) -> None:
        """Extend the leases while a local model computes."""
        if time.monotonic() - self._extended_at > settings.CONCORD_LEASE_SECONDS / HEARTBEATS_PER_LEASE:
            retry_on_db_error(lambda: units.extend(claimed))
            self._extended_at = time.monotonic()

    def _fetch(self, embedder: Embedder) -> Steps[bool]:
        """Load or fetch the vectors of the texts. False if the units were given back, because the server is cooling
        down, a person is needed, or time is up."""
        texts = list(dict.fromkeys(text for texts_of_unit in self._texts_by_unit.values() for text in texts_of_unit))
        self._vectors = retry_on_db_error(lambda: cached_vectors(embedder.space, texts))
        for batch in batches(text for text in texts if text not in self._vectors):
            if not (yield from self._fetch_batch(embedder, batch)):
                return False
            retry_on_db_error(lambda: units.extend(list(self._texts_by_unit)))
        return True

    def _fetch_batch(self, embedder: Embedder, batch: Sequence[str]) -> Steps[bool]:
        earlier: list[Outcome] = []
        while True:
            unit = next(unit for unit, texts in self._texts_by_unit.items() if not set(batch).isdisjoint(texts))
            tokens = sum(map(len, batch)) * _TOKENS_PER_CHARACTER
            if self._calls is not None and (seconds := (yield from self._calls.wait_steps(self.deadline, tokens))):
                return self._give_back(seconds)
            if not retry_on_db_error(self._may_call):
                return self._give_back(0.0)
            embedded = yield from self._call(embedder, unit, batch)
            outcome = embedded.outcome
            if outcome is Outcome.OK:
                vectors = dict(zip(batch, embedded.vectors, strict=True))
                retry_on_db_error(partial(cache_vectors, embedder.space, vectors))
                self._vectors |= vectors
                return True
            down = self._calls is not None and self._calls.is_down
            decision = decide(
                outcome, len(earlier) + 1, embedded.retry_after, self._rng, earlier=earlier, endpoint_down=down
            )
            earlier.append(outcome)
            if isinstance(decision, NeedsAction):
                self._give_back(0.0)
                retry_on_db_error(partial(pause, self.run, reason=decision.reason))
                return False
            if isinstance(decision, GiveUp):
                if outcome in _SPLIT_OUTCOMES and len(batch) > 1:
                    for text in batch:
                        if not (yield from self._fetch_batch(embedder, [text])):
                            return False
                    return True
                self._failures |= dict.fromkeys(batch, decision.reason)
                return True
            if isinstance(decision, Defer) or time.monotonic() + decision.seconds > self.deadline:
                return self._give_back(decision.seconds)
            yield from delay(decision.seconds)

    def _give_back(self, seconds: float) -> bool:
        retry_on_db_error(partial(units.give_back_all, self._claimed, after_seconds=seconds))
        return False

    def _embed_in_thread(self, embedder: Embedder, batch: Sequence[str]) -> Steps[EmbeddingResult]:
        call = partial(embedder.embed, batch)
        return run_in_thread(call, self.wake, on_wait=partial(self._extend_leases, self._claimed))

    def _call(self, embedder: Embedder, unit: WorkUnit, batch: Sequence[str]) -> Steps[EmbeddingResult]:
        """Make one call, recorded for the first unit that needs it. Free local calls are not recorded."""
        if embedder.provenance.get("kind") == "local":
            return (yield from self._embed_in_thread(embedder, batch))
        number = self._call_numbers[unit.pk] = self._call_numbers.get(unit.pk, 0) + 1
        attempt, _ = retry_on_db_error(
            lambda: Attempt.objects.get_or_create(
                unit=unit, fence=unit.fence, number=number, defaults={"round": unit.round}
            )
        )
        if self._calls is None:
            embedded = yield from self._embed_in_thread(embedder, batch)
        else:
            embedded = yield from self._calls.run_steps(partial(embedder.embed, batch), self.wake)
            self._calls.record_outcome(embedded.outcome, embedded.retry_after)
        row = _fetched_reply(attempt, embedder, batch, embedded)
        retry_on_db_error(lambda: Reply.objects.bulk_create([row], ignore_conflicts=True))
        return embedded

    def _task(self, unit: WorkUnit) -> EmbeddingTask:
        task = EmbeddingTask(unit)
        if unit.answer is None:
            return task
        if unit.needs is not None:
            self._request_relevance(task, unit.needs)
            return task
        question, failed_answer = unit.answer.question.read(), unit.answer.status == "failed"
        answer_spec = AnswerSpec("") if failed_answer else unit.answer.read()
        provenance = self.embedder.provenance if self.embedder else {}
        for name in self.config.embeddings:
            if name == BERT_SCORE.name:
                task.results[name] = bert_score_f1(question, answer_spec, self.tokens)
            elif name == SEMANTIC_SIMILARITY.name:
                texts = texts_to_embed(question, answer_spec)
                pair = () if isinstance(texts, Result) else texts
                self._request_vectors(task, name, texts, partial(semantic_similarity, pair, provenance=provenance))
        if failed_answer:
            failed = Result.failed("upstream: " + unit.answer.reason)
            task.results = {
                name: result if result.status is Status.NOT_APPLICABLE else failed
                for name, result in task.results.items()
            }
        return task

    def _request_vectors(self, task: EmbeddingTask, name: str, texts: tuple[str, ...] | Result, finish: Finish) -> None:
        """Request the texts' vectors, unless there already is a result or none is possible."""
        if isinstance(texts, Result) and texts.status is Status.NOT_APPLICABLE:
            task.results[name] = texts
        # Without an embedder, empty and failed answers are not applicable like all others.
        elif self.embedder is None:
            task.results[name] = Result.not_applicable("no_embeddings")
        elif isinstance(texts, Result):
            task.results[name] = texts
        elif refused := next(filter(None, map(self.embedder.refuses, texts)), ""):
            task.results[name] = Result.not_applicable(refused, detail={"embeddings": dict(self.embedder.provenance)})
        else:
            task.pending[name] = (texts, finish)

    def _request_relevance(self, task: EmbeddingTask, judge_unit: WorkUnit) -> None:
        """Request the vectors of the questions that the judge wrote in the preceding unit, unless the judge already
        gave the result."""
        good = [Outcome.OK, Outcome.CACHED]
        replies = Reply.objects.filter(attempt__unit=judge_unit, attempt__round=judge_unit.round, outcome__in=good)
        raw = replies.order_by("-id").values_list("raw", flat=True).first()
        generated = asked_back.parse_written(raw) if raw else None
        if generated is None:
            task.results[asked_back.METRIC] = Result.failed("upstream")
            return
        if generated.noncommittal or not generated.questions or task.unit.answer is None:
            return
        question = task.unit.answer.question.read().text

        def finish(vectors: Mapping[str, Vector]) -> Result:
            provenance = self.embedder.provenance if self.embedder else {}
            return answer_relevance(question, generated.questions, vectors, provenance)

        self._request_vectors(task, asked_back.METRIC, (question, *generated.questions), finish)

    def _outcome(self, task: EmbeddingTask) -> scores.UnitOutcome:
        results = dict(task.results)
        for name, (texts, finish) in task.pending.items():
            reason = next((self._failures[text] for text in texts if text in self._failures), "")
            try:
                results[name] = Result.failed(reason) if reason else finish(self._vectors)
            # The vectors cannot be compared, for example because their lengths differ.
            except ValueError:
                results[name] = Result.failed("embedding_space")
        return scores.UnitOutcome(task.unit, {self.metrics[name]: result for name, result in results.items()})
