"""Vectors for texts: those kept from earlier, and the rest in batches; every call is written down before it is made."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from evaluation.core.canonical import content_hash
from evaluation.embedding.protocol import Embedded, Embedder, Vector, batches, text_hash
from evaluation.judges.clients import price_table
from evaluation.judges.embedders import keep_vectors, kept_vectors
from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.judging.pricing import cost_of
from evaluation.judging.retrying import Defer, GiveUp, NeedsPerson, decide
from evaluation.models import Attempt, Reply, Run, WorkUnit
from evaluation.work import units
from evaluation.work.database import retry_on_db_error
from evaluation.work.lifecycle import pause
from evaluation.work.shared_pool import SingleCalls

# One text may be at fault, so the others of its batch are asked for without it.
_SEPARATED = frozenset({Outcome.BAD_REQUEST, Outcome.TOO_LARGE, Outcome.WRONG_CONTENT})
_TOKENS_PER_CHARACTER = 0.5
Fetched = tuple[dict[str, Vector], dict[str, str]]


@dataclass
class Fetching:
    """Fetches the vectors that some units need, until ``deadline`` (monotonic seconds)."""

    run: Run
    embedder: Embedder
    deadline: float
    calls: SingleCalls | None = None  # of the endpoint's; a local model has none
    rng: random.Random = field(default_factory=random.Random)
    _numbers: dict[int, int] = field(default_factory=dict)
    _stopped: bool = False

    def fetch(self, wanted: Mapping[WorkUnit, Sequence[str]]) -> Fetched | None:
        """The vectors by text, and for texts that got none the reason code; ``None`` where the units were given back,
        because the server wants to be left alone, a person is needed, or time is up."""
        texts = list(dict.fromkeys(text for several in wanted.values() for text in several))
        known = retry_on_db_error(lambda: kept_vectors(self.embedder.space, texts))
        failures: dict[str, str] = {}
        for batch in batches(text for text in texts if text not in known):
            self._batch(batch, wanted, known, failures)
            if self._stopped:
                return None
            retry_on_db_error(lambda: units.extend(list(wanted)))
        return known, failures

    def _batch(
        self,
        batch: Sequence[str],
        wanted: Mapping[WorkUnit, Sequence[str]],
        known: dict[str, Vector],
        failures: dict[str, str],
    ) -> None:
        earlier: list[Outcome] = []
        while not self._stopped:
            unit = next(unit for unit, texts in wanted.items() if not set(batch).isdisjoint(texts))
            if self.calls is not None and (seconds := self.calls.wait(self.deadline, _tokens(batch))):
                self._give_back(wanted, seconds)
                return
            embedded = self._call(unit, batch)
            outcome = embedded.outcome
            if outcome is Outcome.OK:
                found = dict(zip(batch, embedded.vectors, strict=True))
                retry_on_db_error(partial(keep_vectors, self.embedder.space, found))
                known |= found
                return
            decision = decide(outcome, len(earlier) + 1, embedded.retry_after, self.rng, earlier=earlier)
            earlier.append(outcome)
            if isinstance(decision, NeedsPerson):
                self._give_back(wanted, 0.0)
                retry_on_db_error(partial(pause, self.run, reason=decision.reason))
            elif isinstance(decision, GiveUp) and outcome in _SEPARATED and len(batch) > 1:
                for text in batch:
                    self._batch([text], wanted, known, failures)
                return
            elif isinstance(decision, GiveUp):
                failures |= dict.fromkeys(batch, decision.reason)
                return
            elif isinstance(decision, Defer) or time.monotonic() + decision.seconds > self.deadline:
                self._give_back(wanted, decision.seconds)
            else:
                time.sleep(decision.seconds)

    def _give_back(self, wanted: Mapping[WorkUnit, Sequence[str]], seconds: float) -> None:
        self._stopped = True
        for unit in wanted:
            retry_on_db_error(partial(units.give_back, unit, after_seconds=seconds))

    def _call(self, unit: WorkUnit, batch: Sequence[str]) -> Embedded:
        """One call, in the name of the first unit that needs it; what costs nothing leaves no trace in the ledger."""
        if self.embedder.provenance.get("kind") == "local":
            return self.embedder.embed(batch)
        number = self._numbers[unit.pk] = self._numbers.get(unit.pk, 0) + 1
        attempt, _ = retry_on_db_error(
            lambda: Attempt.objects.get_or_create(
                unit=unit, fence=unit.fence, number=number, defaults={"round": unit.round}
            )
        )
        if self.calls is None:
            embedded = self.embedder.embed(batch)
        else:
            embedded = self.calls.make(lambda: self.embedder.embed(batch))
            self.calls.heard(embedded.retry_after)
        row = _reply(attempt, self.embedder, batch, embedded)
        retry_on_db_error(lambda: Reply.objects.bulk_create([row], ignore_conflicts=True))
        return embedded


def _tokens(batch: Sequence[str]) -> float:
    """About how many tokens the texts are."""
    return sum(map(len, batch)) * _TOKENS_PER_CHARACTER


def _reply(attempt: Attempt, embedder: Embedder, batch: Sequence[str], embedded: Embedded) -> Reply:
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
