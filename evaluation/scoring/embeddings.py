"""The embedding step: claimed units become texts, texts become vectors in as few calls as possible, vectors scores.

Vectors are those kept from earlier, and the rest fetched in batches; every call is written down before it is made.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.db.models import prefetch_related_objects

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, Result, Status
from evaluation.judges.embeddings import keep_vectors, kept_vectors
from evaluation.judges.prices import price_table
from evaluation.judges.shipping import definitions
from evaluation.judging.calls import JudgeReply, cost_of
from evaluation.judging.embedding.similarity import (
    BERT_SCORE,
    SEMANTIC_SIMILARITY,
    Embedded,
    Embedder,
    TokenModel,
    Vector,
    answer_relevance,
    batches,
    bert_score_f1,
    semantic_similarity,
    text_hash,
    texts_of,
)
from evaluation.judging.families import asked_back
from evaluation.models import Attempt, Endpoint, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, GiveUp, NeedsPerson, decide
from evaluation.scoring import writing
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import RunConfig, pause
from evaluation.worker.shares import SingleCalls
from evaluation.worker.unit_calls import Purse

# One text may be at fault, so the others of its batch are asked for without it.
_SEPARATED = frozenset({Outcome.BAD_REQUEST, Outcome.TOO_LARGE, Outcome.WRONG_CONTENT})
_TOKENS_PER_CHARACTER = 0.5


def _fetched_reply(attempt: Attempt, embedder: Embedder, batch: Sequence[str], embedded: Embedded) -> Reply:
    """The call's row: its vectors are kept elsewhere."""
    model = str(embedder.provenance.get("model", ""))
    said = JudgeReply(
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
        cost=cost_of(model, said, table=price_table()),
        elapsed_seconds=embedded.elapsed_seconds,
        raw=embedded.raw,
    )


BATCH = 64
HEARTBEAT_SHARE = 3  # leases are prolonged when a third of their time has passed
Finish = Callable[[Mapping[str, Vector]], Result]


@dataclass(slots=True)
class Task:
    """A unit with the results that need no embedding, and for the others the texts and what becomes of their
    vectors."""

    unit: WorkUnit
    results: dict[str, Result] = field(default_factory=dict)
    wanted: dict[str, tuple[tuple[str, ...], Finish]] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text to be embedded for the unit."""
        return tuple(text for texts, _ in self.wanted.values() for text in texts)


@dataclass
class EmbeddingSession:
    """One worker's turn at the embedding units of a run, until ``deadline`` (monotonic seconds). Without an embedder
    or a token model what needs it is not applicable."""

    run: Run
    embedder: Embedder | None
    tokens: TokenModel | None
    deadline: float
    purse: Purse | None = None

    def __post_init__(self) -> None:
        self.config = RunConfig.model_validate(self.run.config)
        self.metrics = definitions([*self.config.embeddings, asked_back.METRIC])
        self._prolonged_at = time.monotonic()
        self._claimed: list[WorkUnit] = []
        self._wanted: dict[WorkUnit, tuple[str, ...]] = {}  # texts of those among them that need vectors
        self._vectors: dict[str, Vector] = {}
        self._failures: dict[str, str] = {}  # reason codes, by text
        self._numbers: dict[int, int] = {}  # of the calls in a unit's name
        self._rng = random.Random()
        self._calls = self._shared()

    def _shared(self) -> SingleCalls | None:
        chosen = self.config.embedding
        if self.embedder is None or chosen is None or chosen.endpoint is None:
            return None
        endpoint = Endpoint.objects.get(pk=chosen.endpoint)
        return SingleCalls(endpoint, self.run.pk, alive=lambda: self._prolong(self._claimed))

    def work(self) -> int:
        """Claim and embed until nothing is claimable, the run no longer runs, or time is up; how many units ended."""
        ended = 0
        with self.embedder or nullcontext(), self._calls or nullcontext():
            while time.monotonic() < self.deadline:
                claimed = retry_on_db_error(self._claim)
                if not claimed:
                    break
                ended += self._do(claimed)
        return ended

    def _claim(self) -> list[WorkUnit]:
        embed = [WorkUnit.Kind.EMBED]
        claimed = units.claim(self.run.pk, embed, BATCH) or units.claim(self.run.pk, embed, 1, suspects=True)
        if claimed and self._calls and self.purse and (reason := self.purse.stops()):
            pause(self.run, reason=reason)
            units.give_all_back(claimed)
            return []
        prefetch_related_objects(claimed, "answer__question", "answer__contexts", "run_judge", "needs")
        return claimed

    def _do(self, claimed: list[WorkUnit]) -> int:
        self._prolonged_at, self._claimed = time.monotonic(), claimed
        self._vectors, self._failures, self._numbers = {}, {}, {}
        tasks = []
        for unit in claimed:
            tasks.append(self._task(unit))
            self._prolong(claimed)
        self._wanted = {task.unit: task.texts for task in tasks if task.wanted}
        if self._wanted and self.embedder and not self._fetch(self.embedder):
            return 0  # the units were given back
        outcomes = [self._outcome(task) for task in tasks]
        retry_on_db_error(lambda: writing.write(outcomes))
        return len(outcomes)

    def _prolong(self, claimed: list[WorkUnit]) -> None:
        """Heartbeat: a local model takes its time."""
        if time.monotonic() - self._prolonged_at > settings.CONCORD_LEASE_SECONDS / HEARTBEAT_SHARE:
            retry_on_db_error(lambda: units.extend(claimed))
            self._prolonged_at = time.monotonic()

    def _fetch(self, embedder: Embedder) -> bool:
        """The vectors of the wanted texts, or why they got none; false where the units were given back, because the
        server wants to be left alone, a person is needed, or time is up."""
        texts = list(dict.fromkeys(text for several in self._wanted.values() for text in several))
        self._vectors = retry_on_db_error(lambda: kept_vectors(embedder.space, texts))
        for batch in batches(text for text in texts if text not in self._vectors):
            if not self._fetch_batch(embedder, batch):
                return False
            retry_on_db_error(lambda: units.extend(list(self._wanted)))
        return True

    def _fetch_batch(self, embedder: Embedder, batch: Sequence[str]) -> bool:
        earlier: list[Outcome] = []
        while True:
            unit = next(unit for unit, texts in self._wanted.items() if not set(batch).isdisjoint(texts))
            tokens = sum(map(len, batch)) * _TOKENS_PER_CHARACTER
            if self._calls is not None and (seconds := self._calls.wait(self.deadline, tokens)):
                return self._give_back(seconds)
            embedded = self._call(embedder, unit, batch)
            outcome = embedded.outcome
            if outcome is Outcome.OK:
                found = dict(zip(batch, embedded.vectors, strict=True))
                retry_on_db_error(partial(keep_vectors, embedder.space, found))
                self._vectors |= found
                return True
            down = self._calls is not None and self._calls.down
            decision = decide(outcome, len(earlier) + 1, embedded.retry_after, self._rng, earlier=earlier, down=down)
            earlier.append(outcome)
            if isinstance(decision, NeedsPerson):
                self._give_back(0.0)
                retry_on_db_error(partial(pause, self.run, reason=decision.reason))
                return False
            if isinstance(decision, GiveUp):
                if outcome in _SEPARATED and len(batch) > 1:
                    return all(self._fetch_batch(embedder, [text]) for text in batch)
                self._failures |= dict.fromkeys(batch, decision.reason)
                return True
            if isinstance(decision, Defer) or time.monotonic() + decision.seconds > self.deadline:
                return self._give_back(decision.seconds)
            time.sleep(decision.seconds)

    def _give_back(self, seconds: float) -> bool:
        for unit in self._wanted:
            retry_on_db_error(partial(units.give_back, unit, after_seconds=seconds))
        return False

    def _call(self, embedder: Embedder, unit: WorkUnit, batch: Sequence[str]) -> Embedded:
        """One call, in the name of the first unit that needs it; what costs nothing leaves no trace in the ledger."""
        if embedder.provenance.get("kind") == "local":
            return embedder.embed(batch)
        number = self._numbers[unit.pk] = self._numbers.get(unit.pk, 0) + 1
        attempt, _ = retry_on_db_error(
            lambda: Attempt.objects.get_or_create(
                unit=unit, fence=unit.fence, number=number, defaults={"round": unit.round}
            )
        )
        if self._calls is None:
            embedded = embedder.embed(batch)
        else:
            embedded = self._calls.make(lambda: embedder.embed(batch))
            self._calls.heard(embedded.outcome, embedded.retry_after)
        row = _fetched_reply(attempt, embedder, batch, embedded)
        retry_on_db_error(lambda: Reply.objects.bulk_create([row], ignore_conflicts=True))
        return embedded

    def _task(self, unit: WorkUnit) -> Task:
        task = Task(unit)
        if unit.answer is None:
            return task
        if unit.needs is not None:
            self._relevance(task, unit.needs)
            return task
        question, lost = unit.answer.question.read(), unit.answer.status == "failed"
        said = AnswerSpec("") if lost else unit.answer.read()
        provenance = self.embedder.provenance if self.embedder else {}
        for name in self.config.embeddings:
            if name == BERT_SCORE.name:
                task.results[name] = bert_score_f1(question, said, self.tokens)
            elif name == SEMANTIC_SIMILARITY.name:
                texts = texts_of(question, said)
                pair = () if isinstance(texts, Result) else texts
                self._want(task, name, texts, partial(semantic_similarity, pair, provenance=provenance))
        if lost:
            failed = Result.failed("upstream: " + unit.answer.reason)
            task.results = {
                name: result if result.status is Status.NOT_APPLICABLE else failed
                for name, result in task.results.items()
            }
        return task

    def _want(self, task: Task, name: str, texts: tuple[str, ...] | Result, finish: Finish) -> None:
        """Ask for the texts' vectors, unless there is a result already or can be none."""
        if isinstance(texts, Result) and texts.status is Status.NOT_APPLICABLE:
            task.results[name] = texts
        elif self.embedder is None:  # for an empty or lost answer as for every other
            task.results[name] = Result.not_applicable("no_embeddings")
        elif isinstance(texts, Result):
            task.results[name] = texts
        elif refused := next(filter(None, map(self.embedder.refuses, texts)), ""):
            task.results[name] = Result.not_applicable(refused, detail={"embeddings": dict(self.embedder.provenance)})
        else:
            task.wanted[name] = (texts, finish)

    def _relevance(self, task: Task, asked: WorkUnit) -> None:
        """The questions that the judge wrote in the unit before this one; nothing where it gave the result itself."""
        good = [Outcome.OK, Outcome.CACHED]
        replies = Reply.objects.filter(attempt__unit=asked, attempt__round=asked.round, outcome__in=good)
        raw = replies.order_by("-id").values_list("raw", flat=True).first()
        written = asked_back.written_in(raw) if raw else None
        if written is None:
            task.results[asked_back.METRIC] = Result.failed("upstream")
            return
        if written.noncommittal or not written.questions or task.unit.answer is None:
            return
        question = task.unit.answer.question.read().text

        def finish(vectors: Mapping[str, Vector]) -> Result:
            provenance = self.embedder.provenance if self.embedder else {}
            return answer_relevance(question, written.questions, vectors, provenance)

        self._want(task, asked_back.METRIC, (question, *written.questions), finish)

    def _outcome(self, task: Task) -> writing.Outcome:
        results = dict(task.results)
        for name, (texts, finish) in task.wanted.items():
            reason = next((self._failures[text] for text in texts if text in self._failures), "")
            try:
                results[name] = Result.failed(reason) if reason else finish(self._vectors)
            except ValueError:  # the server gave vectors that cannot be compared, such as of two lengths
                results[name] = Result.failed("embedding_space")
        return writing.Outcome(task.unit, {self.metrics[name]: result for name, result in results.items()})
