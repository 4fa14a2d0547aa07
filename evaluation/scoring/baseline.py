"""Units judged by the offline baseline: its calls are computed in the worker's thread, several units at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from evaluation.judges.shipped import metric_row
from evaluation.judging.baseline import NAME, judge_offline
from evaluation.judging.calls import JudgeReply, ParsedReply
from evaluation.judging.prompt import parse_reply, request_hash
from evaluation.models import Attempt, Reply, Run, WorkUnit
from evaluation.scoring.judges import UnitConversation, judge_settings, unit_outcome
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.scoring.scores import UnitOutcome, write_scores
from evaluation.worker import units


class BaselineScorer:
    """The judgements of the offline baseline in one run, prepared once for all its units."""

    kind = WorkUnit.Kind.JUDGE

    def __init__(self, run: Run) -> None:
        judges = run.judges.filter(judge_version__endpoint=None).select_related("judge_version", "rubric_version")
        self._run = run
        self._judges = {judge.pk: judge for judge in judges if judge.judge_version.is_baseline}
        self._settings = judge_settings(run, self._judges.values(), {})
        self._metrics = {
            key: {spec.name: metric_row(spec) for spec in setting.specs} for key, setting in self._settings.items()
        }

    def claim(self, size: int, *, suspects: bool = False) -> list[WorkUnit]:
        if not self._judges:
            return []
        related = ["answer__question"]
        judge_ids = list(self._judges)
        return units.claim(self._run.pk, [self.kind], size, run_judge_ids=judge_ids, suspects=suspects, related=related)

    def score(self, claimed: Sequence[WorkUnit]) -> None:
        """Hold the conversation about each unit, and store all calls and results in one transaction."""
        prefetch_related_objects([unit.answer for unit in claimed if unit.answer is not None], "contexts")
        received_at = timezone.now()
        calls: list[tuple[Attempt, str, JudgeReply, ParsedReply]] = []
        outcomes: list[UnitOutcome] = []
        for unit in claimed:
            unit.run_judge = self._judges[unit.run_judge_id or 0]
            conversation = UnitConversation(self._settings[unit.run_judge.pk], unit, {})
            numbers = count(1)
            while (call := conversation.call) is not None:
                reply = judge_offline(call)
                parsed = parse_reply(reply, call.judge_request, call.response_format)
                attempt = Attempt(unit=unit, fence=unit.fence, round=unit.round, number=next(numbers))
                calls.append((attempt, request_hash(call, repeat=unit.repeat), reply, parsed))
                conversation.receive(parsed)
            outcomes.append(unit_outcome(unit, conversation, self._metrics[unit.run_judge.pk]))
        with transaction.atomic():
            # Nothing is stored twice after a commit of unknown outcome.
            held_units = set(units.still_held(claimed))
            calls = [row for row in calls if row[0].unit in held_units]
            Attempt.objects.bulk_create(attempt for attempt, *_ in calls)
            rows = [
                reply_row(attempt.pk, digest, reply, parsed, model=NAME, received_at=received_at)
                for attempt, digest, reply, parsed in calls
            ]
            insert_replies(Reply, rows)
            write_scores(outcomes)
