"""The judge step of a run whose calls go out in batches: fresh calls are written into a file instead of being sent, and
the replies that come back are heard as those of single calls are. A repair, another try after a passing fault, and what
came to nothing in batches often enough are single calls, made at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from evaluation.extras.batches import ledger
from evaluation.extras.batches.client import request_line
from evaluation.judging.calls import Heard, JudgeReply, Outcome
from evaluation.judging.prompt import request_hash
from evaluation.models import BatchLine, Endpoint, JudgeBatch, Reply
from evaluation.scoring.judges import JudgeSession, UnitFlight, earlier_replies
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.work import units
from evaluation.work.database import retry_on_db_error

log = logging.getLogger("concord.work")
MOST_LINES = 2000
MOST_BYTES = 64_000_000
CHUNK = 200  # units that are taken, or replies that are heard, at a time


@dataclass(kw_only=True)
class BatchSession(JudgeSession):
    """A turn at units whose judges share an endpoint and a model. ``batches`` is false where the endpoint takes none
    any more: then every call is made singly, and only what is out still comes back in a batch."""

    endpoint: Endpoint
    model: str
    batches: bool = True
    batch: JudgeBatch | None = None  # the one being written
    lines: list[bytes] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no more fits into the batch."""
        return len(self.lines) >= MOST_LINES or sum(map(len, self.lines)) >= MOST_BYTES

    def send(self, flights: Sequence[UnitFlight]) -> None:
        """Write fresh calls into the batch; have the others made."""
        fruitless = retry_on_db_error(lambda: ledger.fruitless([flight.unit for flight in flights]))
        fresh = [f for f in flights if self.batches and not f.earlier and f.unit.pk not in fruitless]
        ours = {flight.key for flight in fresh}
        super().send([flight for flight in flights if flight.key not in ours])
        for flight in list(fresh):
            self._asked.discard(flight.digest)
            fresh += self._held.pop(flight.digest, [])
        if fresh:
            self._write(fresh)

    def _write(self, flights: Sequence[UnitFlight]) -> None:
        if self.batch is None:
            self.batch = retry_on_db_error(lambda: ledger.new_batch(self.run.pk, self.endpoint.pk, self.model))
        batch, wanted = self.batch, {flight.unit: (flight.attempt_id, flight.digest) for flight in flights}

        def write() -> set[int]:
            with transaction.atomic():
                return ledger.put_in(batch, wanted, share=self.kept is not None)

        file = retry_on_db_error(write)
        for flight in flights:
            if flight.attempt_id in file:
                self.lines.append(request_line(f"attempt-{flight.attempt_id}", flight.call))
            del self._hands[flight.key]

    def hear_lines(self, lines: Sequence[BatchLine], replies: Mapping[str, JudgeReply]) -> None:
        """Hear the replies to the lines that have one and write what they come to. Lines come with their attempts,
        units, answers and questions."""
        given = {line: replies[line.custom_id] for line in lines if line.custom_id in replies}
        never = [line.attempt_id for line, reply in given.items() if reply.outcome is Outcome.NOT_SENT]
        heard = {line: reply for line, reply in given.items() if reply.outcome is not Outcome.NOT_SENT}
        retry_on_db_error(lambda: units.mark_unsent(never))
        found = [line.attempt.unit for line in heard]
        self.prepare(found)
        earlier, now = earlier_replies(found), time.monotonic()
        done: list[tuple[UnitFlight, JudgeReply]] = []
        strange: list[tuple[BatchLine, JudgeReply]] = []
        for line, reply in heard.items():
            unit = line.attempt.unit
            talk = self.talk_about(unit, earlier.get(unit.pk, {}))
            if talk.call is None or request_hash(talk.call, repeat=unit.repeat) != line.digest:
                strange.append((line, reply))
                continue
            flight = self.flight(unit, talk, line.attempt_id, now)
            flight.number, flight.digest = line.attempt.number, line.digest
            done.append((flight, reply))
        self._set_aside(strange)
        self._hands |= {flight.key: flight for flight, _ in done}
        if done:
            self._receive(done)
        going_on = [flight.unit for flight, _ in done if flight.key in self._hands]
        retry_on_db_error(lambda: units.lease_again(going_on))

    def _set_aside(self, strange: Sequence[tuple[BatchLine, JudgeReply]]) -> None:
        """Keep replies to requests that would be made otherwise now, such as after an update; their units are asked
        about again."""
        if not strange:
            return
        about = {"run": self.run.pk}
        log.warning("run %s: %d replies to requests no longer made", self.run.pk, len(strange), extra=about)
        at, lost = timezone.now(), Heard(Outcome.WRONG_CONTENT, {})
        rows = [reply_row(line.attempt_id, line.digest, r, lost, model=self.model, at=at) for line, r in strange]
        retry_on_db_error(lambda: insert_replies(Reply, rows, again=True))

    def _wants(self) -> int:
        """As many as fit, a chunk at a time: those that go into the batch need no place."""
        if not self.batches:
            return super()._wants()
        if self.full or time.monotonic() < self._dry_until or any(f.suspect for f in self._hands.values()):
            return 0
        return min(CHUNK, MOST_LINES - len(self.lines)) if len(self._hands) < CHUNK else 0

    def _queues(self) -> bool:
        """Nothing in hands means here that what was taken is in the batch."""
        if not self.batches:
            return super()._queues()
        return not self._stopping and not self.full and time.monotonic() >= self._dry_until
