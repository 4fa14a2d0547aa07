"""Processes a generation: questions are written, filtered with and without a model, and stored.

The next step follows from the recorded calls only, so a generation continues after a crash, and no reply is paid for
twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from django.db import transaction

from contrib.corpora.indexing import search_words
from contrib.generation.filters import (
    Filter,
    Removal,
    filter_by_passages,
    filter_known,
    filter_without_calls,
    read_question,
)
from contrib.generation.models import (
    DraftQuestion,
    Generation,
    GenerationCall,
    GenerationReply,
    GenerationResult,
)
from contrib.generation.prompts import GenerationRequests, parse_locating_reply
from contrib.generation.slots import PassageSlot, distinct_passages, draw_slots
from evaluation.accounts import audit
from evaluation.core.samples import QuestionSpec
from evaluation.judging.calls import JudgeCall, ParsedReply, ResponseFormat
from evaluation.network.outcomes import Outcome
from evaluation.scoring.adhoc import find_response_format
from evaluation.scoring.recorded_calls import CallLedger, estimated_cost, run_calls
from evaluation.worker.jobs import AT_ONCE, Lease, job

# Other passages shown to the model together with the question's own.
DISTRACTORS = 4
_SEARCH_DEPTH = 10


def enqueue_generation(generation: Generation) -> None:
    """Enqueue the generation; a blocked one is retried."""
    write_questions.enqueue(generation.pk)


@job("generation")
def write_questions(generation_id: int, lease: Lease) -> timedelta | None:
    return None if _process(Generation.objects.get(pk=generation_id), lease) else AT_ONCE


def process_generation(generation: Generation) -> bool:
    """Process the generation in this process; returns whether it has ended. Also ``True`` while a worker has it.

    :raises DomainError: ``judge_away`` if the model cannot be called; earlier replies are kept."""
    with write_questions.claimed(generation.pk) as lease:
        if lease is not None:
            lease.done = _process(generation, lease)
        return lease is None or lease.done


def _process(generation: Generation, lease: Lease) -> bool:
    return GenerationResult.objects.filter(generation=generation).exists() or GenerationRunner(generation, lease).run()


@dataclass(slots=True)
class _Candidate:
    """A question in progress. ``own_indices`` are those of its passages among the ones shown to the model."""

    position: int
    slot: PassageSlot
    question: QuestionSpec
    removed: Removal | None = None
    own_indices: tuple[int, ...] = ()
    # Checks without a reply yet.
    checks: int = 0


class GenerationRunner:
    """Processes one generation under a lease."""

    def __init__(self, generation: Generation, lease: Lease) -> None:
        self.generation, self.lease = generation, lease
        self.judge = generation.judge_version
        self.passages = distinct_passages(generation.corpus)
        self.search = partial(search_words, generation.corpus)
        self.budget_exhausted = False

    def run(self) -> bool:
        slots = draw_slots(self.generation, self.passages, self.search)
        write_calls = {
            f"write:{slot.number}": self.requests.writing_call(
                slot.kind, slot.texts, self.generation.language, self.generation.per_passage
            )
            for slot in slots
            if slot.is_complete
        }
        replies = dict(self._run_calls(write_calls))
        if len(replies) < len(write_calls) and not self.budget_exhausted:
            return False
        candidates = list(self._candidates(slots, replies))
        self._filter_without_calls(candidates)
        check_calls = {
            step_key: call
            for candidate in candidates
            if candidate.removed is None
            for step_key, call in self._check_calls(candidate).items()
        }
        by_position = {candidate.position: candidate for candidate in candidates}
        for step_id, parsed in self._run_calls(check_calls):
            name, _, position = step_id.partition(":")
            self._apply_check(by_position[int(position)], name, parsed)
        unchecked = [candidate for candidate in candidates if candidate.removed is None and candidate.checks]
        if unchecked and not self.budget_exhausted:
            return False
        for candidate in unchecked:
            candidate.removed = Removal(Filter.UNCHECKED, {"reason": "budget"})
        self._store(slots, replies, candidates)
        return True

    @cached_property
    def requests(self) -> GenerationRequests:
        """Request builder with a response format that is determined once, so that stored replies are parsed as
        requested."""
        if "response_format" not in self.lease.job.notes:
            self.lease.note(response_format=str(find_response_format(self.judge).response_format))
        return GenerationRequests(
            self.judge.model, self.judge.parameters, ResponseFormat(self.lease.job.notes["response_format"])
        )

    def _run_calls(self, calls: Mapping[str, JudgeCall]) -> Iterator[tuple[str, ParsedReply]]:
        return run_calls(
            self._ledger, self.judge, calls, response_format=self.requests.response_format, may_start=self._may_continue
        )

    @property
    def _ledger(self) -> CallLedger:
        replies = GenerationReply.objects.filter(attempt__generation=self.generation).order_by("pk")
        return CallLedger(
            begin=lambda step: GenerationCall.objects.create(generation=self.generation, step=step).pk,
            load_replies=lambda: replies.values_list("attempt__step", "outcome", "raw"),
            reply_table=GenerationReply,
        )

    def _may_continue(self) -> bool:
        budget = self.generation.budget
        if budget is not None and estimated_cost(GenerationCall.objects.filter(generation=self.generation)) >= budget:
            self.budget_exhausted = True
            return False
        return self.lease.may_continue()

    def _candidates(self, slots: list[PassageSlot], replies: Mapping[str, ParsedReply]) -> Iterator[_Candidate]:
        """Yield the written questions in slot order, at most as many as requested."""
        per_slot = self.generation.per_passage
        for slot in slots:
            parsed = replies.get(f"write:{slot.number}")
            questions = parsed.parts["questions"] if parsed and parsed.outcome is Outcome.OK else []
            for number, raw in enumerate(questions[:per_slot]):
                question = read_question(raw, slot.kind, slot.ids)
                yield _Candidate(slot.number * per_slot + number, slot, question)

    def _filter_without_calls(self, candidates: list[_Candidate]) -> None:
        """Apply the filters that need no call."""
        accepted: list[QuestionSpec] = []
        for candidate in candidates:
            scores = (
                self._scores(candidate)
                if not candidate.slot.kind.needs_all_passages and not candidate.slot.kind.is_negative
                else None
            )
            candidate.removed = filter_without_calls(candidate.question, candidate.slot.texts, accepted, scores)
            if candidate.removed is None:
                accepted.append(candidate.question)

    def _scores(self, candidate: _Candidate) -> tuple[float, float]:
        hits, own_ids = self.search(candidate.question.text, _SEARCH_DEPTH), set(candidate.slot.ids)
        return (
            max((score for chunk_id, score in hits if chunk_id in own_ids), default=0.0),
            max((score for chunk_id, score in hits if chunk_id not in own_ids), default=0.0),
        )

    def _check_calls(self, candidate: _Candidate) -> dict[str, JudgeCall]:
        """Build the checks of a question: which passages answer it, and whether the model knows the answer from memory.

        Its own and the most similar other passages are shown in random order."""
        own_ids = candidate.slot.ids
        others = [
            chunk_id for chunk_id, _ in self.search(candidate.question.text, _SEARCH_DEPTH) if chunk_id not in own_ids
        ]
        shown_ids = [*own_ids, *others[:DISTRACTORS]]
        random.Random(f"{self.generation.seed}:{candidate.position}").shuffle(shown_ids)
        candidate.own_indices = tuple(index for index, chunk_id in enumerate(shown_ids) if chunk_id in own_ids)
        texts = [self.passages[chunk_id].text for chunk_id in shown_ids]
        calls = {f"locate:{candidate.position}": self.requests.locating_call(candidate.question.text, texts)}
        if not candidate.slot.kind.is_negative:
            calls[f"closed:{candidate.position}"] = self.requests.closed_book_call(candidate.question.text)
        candidate.checks = len(calls)
        return calls

    def _apply_check(self, candidate: _Candidate, name: str, parsed: ParsedReply) -> None:
        candidate.checks -= 1
        if parsed.outcome is not Outcome.OK:
            candidate.removed = candidate.removed or Removal(Filter.UNCHECKED, {"reason": str(parsed.outcome)})
        elif name == "locate":
            removal = filter_by_passages(
                candidate.question, candidate.slot.kind, parse_locating_reply(parsed.parts), candidate.own_indices
            )
            candidate.removed = removal or candidate.removed
        else:
            known_removal = filter_known(candidate.question, parsed.parts["known"], parsed.parts["answer"])
            candidate.removed = candidate.removed or known_removal

    def _store(
        self, slots: list[PassageSlot], replies: Mapping[str, ParsedReply], candidates: list[_Candidate]
    ) -> None:
        """Store all questions and the result in one transaction."""
        removed = Counter(str(candidate.removed.reason) for candidate in candidates if candidate.removed)
        figures: dict[str, Any] = {
            "passages": len(slots),
            "unlinked": sum(not slot.is_complete for slot in slots),
            "unread": sum(parsed.outcome is not Outcome.OK for parsed in replies.values()),
            "written": len(candidates),
            "removed": dict(removed),
            "left": len(candidates) - removed.total(),
        }
        outcome = GenerationResult.Outcome.BUDGET if self.budget_exhausted else GenerationResult.Outcome.DONE
        with transaction.atomic():
            DraftQuestion.objects.bulk_create(
                DraftQuestion(
                    generation=self.generation,
                    position=candidate.position,
                    kind=candidate.slot.kind.name,
                    content=candidate.question.model_dump(mode="json", exclude={"id"}),
                    removed_by=candidate.removed.reason if candidate.removed else "",
                    detail=dict(candidate.removed.detail) if candidate.removed else {},
                )
                for candidate in candidates
            )
            GenerationResult.objects.create(generation=self.generation, outcome=outcome, figures=figures)
            audit.record(None, "generation.ended", self.generation, outcome=outcome, **figures)
