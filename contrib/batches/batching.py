"""Batches of a run, from the file of requests to the last reply. Every step is written down before and after it is
taken, so that a worker that dies in between leaves a batch of which the next one can tell what became of it."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db.models.functions import Now

from contrib.batches import ledger
from contrib.batches.client import BatchClient, BatchFault, Lines, Told
from contrib.batches.ledger import CHUNK, BatchSession, State
from contrib.batches.models import JudgeBatch
from evaluation.judges.clients import connection
from evaluation.judging.calls import JudgeReply
from evaluation.models import JudgeVersion, Run
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import PASSING
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import pause

log = logging.getLogger("concord.work")
UNKNOWN = "batch_unknown"  # whether it was created
LOST = "batch_lost"  # the provider does not know it any more, or its replies
NOT_TAKEN = "no_batches"
INTERRUPTED = "batch_interrupted"
CANCELLED = "batch_cancelled"
AGAIN_SECONDS = 60.0  # after a file that could not be handed over
_GONE = frozenset({Outcome.NOT_FOUND})
_REFUSED = range(400, 500)


@dataclass(frozen=True, slots=True)
class Batching:
    """A worker's turn at the batches of a run that go to one endpoint and model, until ``deadline`` (monotonic
    seconds): no request begins after it."""

    run: Run
    client: BatchClient
    session: BatchSession
    deadline: float

    def look(self) -> None:
        """See to every batch that is due, as long as there is time and the run goes on."""
        mine = ledger.due().filter(run=self.run, endpoint=self.session.endpoint, model=self.session.model)
        for batch in retry_on_db_error(lambda: list(mine.order_by("id"))):
            if time.monotonic() >= self.deadline or not self._may_go_on():
                return
            if retry_on_db_error(partial(ledger.take_turn, batch)):
                self._see_to(batch)

    def send(self) -> bool:
        """Hand over what the session has written, and have a batch made of it; false where there is nothing, or it
        could not be handed over."""
        batch, lines = self.session.batch, b"".join(self.session.lines)
        if batch is None:
            return False
        if not lines or time.monotonic() >= self.deadline or not retry_on_db_error(self.session.goes_on):
            self._drop(batch, INTERRUPTED)
            return False
        try:
            file_id = self.client.upload(lines)
        except BatchFault as fault:
            self._pause_for(fault)
            self._drop(batch, str(fault.reply.outcome), after_seconds=fault.reply.retry_after or AGAIN_SECONDS)
            return False
        digest, count = hashlib.sha256(lines).hexdigest(), len(self.session.lines)
        if self._note(batch, state=State.UPLOADED, file_id=file_id, file_sha256=digest, lines=count):
            self._create(batch)
        return True

    def abandon(self) -> None:
        """Give back what the session has written."""
        if self.session.batch is not None:
            self._drop(self.session.batch, INTERRUPTED)

    def _see_to(self, batch: JudgeBatch) -> None:
        """The next step of a batch that one has the turn of."""
        cancelled = self.run.state == Run.State.CANCELLED
        if batch.state == State.MADE:  # whoever wrote it died before its file was handed over
            self._drop(batch, INTERRUPTED)
        elif batch.state == State.UPLOADED and cancelled:
            self._drop(batch, CANCELLED)
        elif batch.state == State.UPLOADED:
            self._create(batch)
        elif batch.state == State.CREATING:
            self._find(batch)
        else:
            self._follow(batch)

    def _create(self, batch: JudgeBatch) -> None:
        if time.monotonic() >= self.deadline:
            self._leave(batch, after_seconds=0.0)
            return
        if not self._note(batch, state=State.CREATING):
            return
        try:
            told = self.client.create(batch.file_id, str(batch.mark))
        except BatchFault as fault:
            reply = fault.reply
            refused = reply.http_status in _REFUSED and reply.outcome is not Outcome.TIMEOUT
            self._pause_for(fault)
            if refused:  # for certain it was not created
                self._note(batch, state=State.UPLOADED)
            self._say(logging.WARNING, "a batch of %d calls was not created: %s", batch.lines, fault)
            self._leave(batch, after_seconds=reply.retry_after)
            return
        self._is_out(batch, told)

    def _find(self, batch: JudgeBatch) -> None:
        """Whether a batch was created whose id never came back."""
        try:
            told = self.client.find(str(batch.mark))
        except BatchFault as fault:
            if fault.reply.outcome in PASSING:
                self._leave(batch, after_seconds=fault.reply.retry_after)
            elif fault.reply.outcome in {Outcome.NOT_FOUND, Outcome.BAD_REQUEST, Outcome.WRONG_CONTENT}:
                self._lose(batch, UNKNOWN)  # the server has no list to look into
            else:
                self._pause_for(fault)
                self._leave(batch)
            return
        if told is not None:
            self._is_out(batch, told)
        elif self.run.state == Run.State.CANCELLED:
            self._drop(batch, CANCELLED)
        else:
            self._create(batch)

    def _is_out(self, batch: JudgeBatch, told: Told) -> None:
        self._say(logging.INFO, "batch %s with %d calls is out", told.provider_id, batch.lines)
        expires_at = datetime.fromtimestamp(told.expires_at, UTC) if told.expires_at else None
        sent = {"provider_id": told.provider_id, "status": told.status, "sent_at": Now(), "expires_at": expires_at}
        self._note(batch, state=State.SENT, **sent)
        self._leave(batch)

    def _follow(self, batch: JudgeBatch) -> None:
        """Ask how far a batch is, have it cancelled with its run, and read it once it has ended."""
        try:
            told = self.client.look(batch.provider_id)
            if self.run.state == Run.State.CANCELLED and not told.ended and not batch.cancel_asked:
                told = self.client.cancel(batch.provider_id)
                self._note(batch, cancel_asked=True)
            self._note(batch, status=told.status, done=told.done, failed=told.failed)
            if not told.ended:
                self._leave(batch)
                return
            found = self._replies(told)
        except BatchFault as fault:
            self._put_off(batch, fault)
            return
        if found is None or not self._hear(batch, found):
            self._leave(batch, after_seconds=0.0)
            return
        self._end(batch, told, found)

    def _replies(self, told: Told) -> Lines | None:
        """What stands in a batch's files; ``None`` where there is no time to fetch them."""
        replies, spoilt = dict[str, JudgeReply](), 0
        for file_id in filter(None, (told.error_file, told.output_file)):
            if time.monotonic() >= self.deadline:
                return None
            lines = self.client.replies(file_id)
            replies, spoilt = replies | lines.replies, spoilt + lines.spoilt
        return Lines(replies, spoilt)

    def _hear(self, batch: JudgeBatch, found: Lines) -> bool:
        """Write what the replies come to, each once; false where time is up before the last."""
        rows = ledger.unheard(batch).select_related("attempt__unit__answer__question")
        lines = retry_on_db_error(lambda: list(rows))
        for start in range(0, len(lines), CHUNK):
            if time.monotonic() >= self.deadline:
                return False
            self.session.hear_lines(lines[start : start + CHUNK], found.replies)
        return True

    def _end(self, batch: JudgeBatch, told: Told, found: Lines) -> None:
        """Of lines without a reply one knows that they were never run only where the provider took none of them."""
        reason = "" if told.status == "completed" else f"batch_{told.status}"
        reason += f": {told.reason}" if reason and told.reason else ""
        if found.spoilt:
            self._say(logging.WARNING, "%d lines of batch %s were of no use", found.spoilt, batch.provider_id)
        self._say(logging.INFO, "batch %s ended, %s", batch.provider_id, told.status)
        unpaid = told.status == "failed" and not found.replies
        retry_on_db_error(lambda: ledger.end(batch, State.ENDED, reason, unpaid=unpaid))

    def _put_off(self, batch: JudgeBatch, fault: BatchFault) -> None:
        """Come back to a batch later, or give it up where the provider knows nothing of it."""
        if fault.reply.outcome in _GONE:
            self._lose(batch, LOST)
            return
        self._pause_for(fault)
        self._say(logging.WARNING, "batch %s cannot be followed: %s", batch.provider_id, fault)
        self._leave(batch, after_seconds=fault.reply.retry_after)

    def _lose(self, batch: JudgeBatch, reason: str) -> None:
        """Nobody knows what was paid: the run waits for somebody who has looked."""
        self._say(logging.ERROR, "lost sight of a batch of %d calls: %s", batch.lines, reason)
        retry_on_db_error(lambda: pause(self.run, reason=reason))
        retry_on_db_error(lambda: ledger.end(batch, State.LOST, reason, unpaid=False))

    def _drop(self, batch: JudgeBatch, reason: str, after_seconds: float = 0.0) -> None:
        self._say(logging.WARNING, "a batch was not sent: %s", reason)
        retry_on_db_error(lambda: ledger.end(batch, State.DROPPED, reason, unpaid=True, after_seconds=after_seconds))

    def _pause_for(self, fault: BatchFault) -> None:
        """What does not pass by itself is for a person."""
        outcome = fault.reply.outcome
        if outcome not in PASSING:
            reason = NOT_TAKEN if outcome in _GONE or fault.reply.http_status == 405 else str(outcome)
            retry_on_db_error(lambda: pause(self.run, reason=reason))

    def _may_go_on(self) -> bool:
        states = [Run.State.RUNNING, Run.State.CANCELLED]
        return retry_on_db_error(lambda: Run.objects.filter(pk=self.run.pk, state__in=states).exists())

    def _say(self, level: int, text: str, *about: object) -> None:
        log.log(level, f"run %s: {text}", self.run.pk, *about, extra={"run": self.run.pk})

    def _note(self, batch: JudgeBatch, **said: object) -> bool:
        return retry_on_db_error(lambda: ledger.note(batch, **said))

    def _leave(self, batch: JudgeBatch, after_seconds: float | None = None) -> None:
        retry_on_db_error(lambda: ledger.leave(batch, after_seconds=after_seconds))


def work_in_batches(judge: JudgeVersion, shared: Mapping[str, Any]) -> int:
    """A worker's turn at the units of judges that share an endpoint and a model, those that ended with batches
    included; how many ended. ``shared`` is what a session is made of.

    :raises Refused: as :func:`evaluation.judges.clients.client_of`.
    """
    endpoint, deadline = judge.endpoint, shared["deadline"]
    if endpoint is None:
        raise ValueError("a batch needs an endpoint")
    ended, first, more = 0, True, True
    with BatchClient(**connection(endpoint)) as client:
        while more:
            now = time.monotonic()
            # What is written has to be handed over before time is up.
            options = {**shared, "deadline": now + (deadline - now) / 2, "batches": endpoint.batches}
            session = BatchSession(**options, endpoint=endpoint, model=judge.model)
            batching = Batching(shared["run"], client, session, deadline)
            if first:
                batching.look()
            try:
                session.work()
            except BaseException:  # an interruption as well: what is in the file must not wait for it to be found
                batching.abandon()
                raise
            more = batching.send() and session.full
            ended, first = ended + session.ended, False
    return ended
