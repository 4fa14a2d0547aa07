"""Steps of a batch from its request file to its last reply.

Each step is recorded before and after it is taken, so that after a crash the next worker knows the batch's state."""

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
from contrib.batches.anthropic import AnthropicBatchClient
from contrib.batches.client import BatchClient, BatchFault, BatchReplies, BatchStatus
from contrib.batches.ledger import CHUNK, BatchSession, State
from contrib.batches.models import JudgeBatch
from evaluation.judges.clients import connection
from evaluation.judging.calls import JudgeReply
from evaluation.models import JudgeVersion, Run
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import TRANSIENT
from evaluation.worker.database import retry_on_db_error
from evaluation.worker.lifecycle import pause
from evaluation.worker.steps import Steps

log = logging.getLogger("concord.work")
# Unknown whether the batch was created.
UNKNOWN = "batch_unknown"
# The provider no longer knows the batch or its replies.
LOST = "batch_lost"
NOT_TAKEN = "no_batches"
INTERRUPTED = "batch_interrupted"
CANCELLED = "batch_cancelled"
# Pause after a failed upload.
RETRY_SECONDS = 60.0
# Clients by provider. Others have no batches, and their calls are sent singly.
CLIENTS: Mapping[str, type[BatchClient]] = {"openai": BatchClient, "anthropic": AnthropicBatchClient}
_NOT_FOUND_OUTCOMES = frozenset({Outcome.NOT_FOUND})
# 529: Anthropic is overloaded.
_REFUSED = frozenset({*range(400, 500), 529})


@dataclass(frozen=True, slots=True)
class BatchRunner:
    """Advances the batches of a run at one endpoint and model.

    No request starts after ``deadline`` (monotonic seconds)."""

    run: Run
    client: BatchClient
    session: BatchSession
    deadline: float

    def advance_due(self) -> None:
        """Advance every due batch, while there is time and the run continues."""
        due_batches = ledger.due_batches().filter(
            run=self.run, endpoint=self.session.endpoint, model=self.session.model
        )
        for batch in retry_on_db_error(lambda: list(due_batches.order_by("id"))):
            if time.monotonic() >= self.deadline or not self._run_continues():
                return
            if retry_on_db_error(partial(ledger.claim_batch, batch)):
                self._advance(batch)

    def send(self) -> bool:
        """Upload the calls of the session and create the batch; false without calls or if the upload failed."""
        batch, lines = self.session.batch, b"".join(self.session.lines)
        if batch is None:
            return False
        if not lines or time.monotonic() >= self.deadline or not retry_on_db_error(self.session.may_continue):
            self._drop(batch, INTERRUPTED)
            return False
        try:
            file_id = self.client.upload(lines)
        except BatchFault as fault:
            self._pause_for(fault)
            self._drop(batch, str(fault.reply.outcome), after_seconds=fault.reply.retry_after or RETRY_SECONDS)
            return False
        digest, count = hashlib.sha256(lines).hexdigest(), len(self.session.lines)
        if self._update(batch, state=State.UPLOADED, file_id=file_id, file_sha256=digest, lines=count):
            self._create(batch)
        return True

    def abandon(self) -> None:
        """Release the units that the session has written."""
        if self.session.batch is not None:
            self._drop(self.session.batch, INTERRUPTED)

    def _advance(self, batch: JudgeBatch) -> None:
        """Take the next step of a claimed batch."""
        cancelled = self.run.state == Run.State.CANCELLED
        # The worker that wrote it died before the upload.
        if batch.state == State.PREPARING:
            self._drop(batch, INTERRUPTED)
        elif batch.state == State.UPLOADED and cancelled:
            self._drop(batch, CANCELLED)
        # Its calls were in the memory of another worker.
        elif batch.state == State.UPLOADED and not self.client.has_file(batch.file_id):
            self._drop(batch, INTERRUPTED)
        elif batch.state == State.UPLOADED:
            self._create(batch)
        elif batch.state == State.CREATING:
            self._find(batch)
        else:
            self._follow(batch)

    def _create(self, batch: JudgeBatch) -> None:
        if time.monotonic() >= self.deadline:
            self._release(batch, after_seconds=0.0)
            return
        if not self._update(batch, state=State.CREATING):
            return
        try:
            status = self.client.create(batch.file_id, str(batch.mark))
        except BatchFault as fault:
            reply = fault.reply
            was_refused = reply.http_status in _REFUSED and reply.outcome is not Outcome.TIMEOUT
            self._pause_for(fault)
            # The refusal proves that no batch was created.
            if was_refused:
                self._update(batch, state=State.UPLOADED)
            self._log(logging.WARNING, "a batch of %d calls was not created: %s", batch.lines, fault)
            self._release(batch, after_seconds=reply.retry_after)
            return
        self._mark_sent(batch, status)

    def _find(self, batch: JudgeBatch) -> None:
        """Find out whether a batch was created if its id was never received."""
        try:
            status = self.client.find(str(batch.mark))
        except BatchFault as fault:
            if fault.reply.outcome in TRANSIENT:
                self._release(batch, after_seconds=fault.reply.retry_after)
            elif fault.reply.outcome in {Outcome.NOT_FOUND, Outcome.BAD_REQUEST, Outcome.WRONG_CONTENT}:
                # The server offers no list to search.
                self._mark_lost(batch, UNKNOWN)
            else:
                self._pause_for(fault)
                self._release(batch)
            return
        if status is not None:
            self._mark_sent(batch, status)
        elif self.run.state == Run.State.CANCELLED:
            self._drop(batch, CANCELLED)
        else:
            self._create(batch)

    def _mark_sent(self, batch: JudgeBatch, status: BatchStatus) -> None:
        self._log(logging.INFO, "sent batch %s with %d calls", status.provider_id, batch.lines)
        expires_at = datetime.fromtimestamp(status.expires_at, UTC) if status.expires_at else None
        fields = {
            "provider_id": status.provider_id,
            "status": status.status,
            "sent_at": Now(),
            "expires_at": expires_at,
        }
        self._update(batch, state=State.SENT, **fields)
        self._release(batch)

    def _follow(self, batch: JudgeBatch) -> None:
        """Poll a batch, cancel it with its run, and read its replies after it has ended."""
        try:
            status = self.client.get_status(batch.provider_id)
            if self.run.state == Run.State.CANCELLED and not status.ended and not batch.cancel_requested:
                status = self.client.cancel(batch.provider_id)
                self._update(batch, cancel_requested=True)
            self._update(batch, status=status.status, done=status.done, failed=status.failed)
            if not status.ended:
                self._release(batch)
                return
            replies = self._fetch_replies(status)
        except BatchFault as fault:
            self._postpone(batch, fault)
            return
        if replies is None or not self._process_replies(batch, replies):
            self._release(batch, after_seconds=0.0)
            return
        self._end(batch, status, replies)

    def _fetch_replies(self, status: BatchStatus) -> BatchReplies | None:
        """Fetch the replies of a batch; ``None`` if time is up."""
        replies, unreadable = dict[str, JudgeReply](), 0
        for file_id in filter(None, (status.error_file, status.output_file)):
            if time.monotonic() >= self.deadline:
                return None
            lines = self.client.fetch_replies(file_id)
            replies, unreadable = replies | lines.replies, unreadable + lines.unreadable
        return BatchReplies(replies, unreadable)

    def _process_replies(self, batch: JudgeBatch, replies: BatchReplies) -> bool:
        """Process each reply once; false if time is up before the last."""
        rows = ledger.unanswered_lines(batch).select_related("attempt__unit__answer__question")
        lines = retry_on_db_error(lambda: list(rows))
        for start in range(0, len(lines), CHUNK):
            if time.monotonic() >= self.deadline:
                return False
            self.session.receive_replies(lines[start : start + CHUNK], replies.replies)
        return True

    def _end(self, batch: JudgeBatch, status: BatchStatus, replies: BatchReplies) -> None:
        """End the batch. Lines without a reply cost nothing only if the provider ran none of the lines."""
        reason = "" if status.status == "completed" else f"batch_{status.status}"
        reason += f": {status.reason}" if reason and status.reason else ""
        if replies.unreadable:
            self._log(logging.WARNING, "%d lines of batch %s could not be read", replies.unreadable, batch.provider_id)
        self._log(logging.INFO, "batch %s ended, %s", batch.provider_id, status.status)
        unpaid = status.status == "failed" and not replies.replies
        retry_on_db_error(lambda: ledger.end_batch(batch, State.ENDED, reason, unpaid=unpaid))

    def _postpone(self, batch: JudgeBatch, fault: BatchFault) -> None:
        """Postpone a batch, or mark it lost if the provider does not know it."""
        if fault.reply.outcome in _NOT_FOUND_OUTCOMES:
            self._mark_lost(batch, LOST)
            return
        self._pause_for(fault)
        self._log(logging.WARNING, "batch %s could not be polled: %s", batch.provider_id, fault)
        self._release(batch, after_seconds=fault.reply.retry_after)

    def _mark_lost(self, batch: JudgeBatch, reason: str) -> None:
        """Pause the run until a person has checked, because the cost is unknown."""
        self._log(logging.ERROR, "a batch of %d calls was lost: %s", batch.lines, reason)
        retry_on_db_error(lambda: pause(self.run, reason=reason))
        retry_on_db_error(lambda: ledger.end_batch(batch, State.LOST, reason, unpaid=False))

    def _drop(self, batch: JudgeBatch, reason: str, after_seconds: float = 0.0) -> None:
        self._log(logging.WARNING, "a batch was not sent: %s", reason)
        retry_on_db_error(
            lambda: ledger.end_batch(batch, State.DROPPED, reason, unpaid=True, after_seconds=after_seconds)
        )

    def _pause_for(self, fault: BatchFault) -> None:
        """Pause the run on a fault that is not transient."""
        outcome = fault.reply.outcome
        if outcome not in TRANSIENT:
            reason = NOT_TAKEN if outcome in _NOT_FOUND_OUTCOMES or fault.reply.http_status == 405 else str(outcome)
            retry_on_db_error(lambda: pause(self.run, reason=reason))

    def _run_continues(self) -> bool:
        states = [Run.State.RUNNING, Run.State.CANCELLED]
        return retry_on_db_error(lambda: Run.objects.filter(pk=self.run.pk, state__in=states).exists())

    def _log(self, level: int, text: str, *arguments: object) -> None:
        log.log(level, f"run %s: {text}", self.run.pk, *arguments, extra={"run": self.run.pk})

    def _update(self, batch: JudgeBatch, **fields: object) -> bool:
        return retry_on_db_error(lambda: ledger.update_batch(batch, **fields))

    def _release(self, batch: JudgeBatch, after_seconds: float | None = None) -> None:
        retry_on_db_error(lambda: ledger.release_batch(batch, after_seconds=after_seconds))


def process_batches(judge: JudgeVersion, shared: Mapping[str, Any]) -> Steps[int]:
    """Process the units of judges that share an endpoint and a model, and their batches; returns how many units ended.

    ``shared`` are the arguments of a session.

    :raises DomainError: as :func:`evaluation.judges.clients.client_of`."""
    endpoint, deadline = judge.endpoint, shared["deadline"]
    if endpoint is None:
        raise ValueError("a batch needs an endpoint")
    ended, first, continues = 0, True, True
    with CLIENTS.get(endpoint.provider, BatchClient)(**connection(endpoint)) as client:
        while continues:
            now = time.monotonic()
            # Half of the time is left for the upload of the written calls.
            options = {**shared, "deadline": now + (deadline - now) / 2, "batches": endpoint.batches}
            session = BatchSession(**options, endpoint=endpoint, model=judge.model, request_line=client.request_line)
            runner = BatchRunner(shared["run"], client, session, deadline)
            if first:
                runner.advance_due()
            try:
                yield from session.steps()
            # Release the units on interruptions too, instead of waiting for the leases to expire.
            except BaseException:
                runner.abandon()
                raise
            continues = runner.send() and session.full
            ended, first = ended + session.ended_conversations, False
    return ended
