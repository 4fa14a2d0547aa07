"""Working a generation off: questions are written, filtered by what reads and by what a model is asked for, and put
down. Which step comes next follows from the ledger of calls alone; so it goes on after a crash where it was, and
nothing that was heard is paid for twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from django.db import transaction

from contrib.corpora.indexing import search
from contrib.generation.drawing import Place, draw, passages_of
from contrib.generation.filters import (
    Filter,
    Removed,
    read_question,
    removed_as_known,
    removed_at_sight,
    removed_by_place,
)
from contrib.generation.models import (
    DraftQuestion,
    Generation,
    GenerationCall,
    GenerationReply,
    GenerationResult,
)
from contrib.generation.prompts import Asking, located
from evaluation.accounts import audit
from evaluation.core.samples import QuestionSpec
from evaluation.judging.calls import Heard, JudgeCall, Rung
from evaluation.network.outcomes import Outcome
from evaluation.scoring.aside import reach
from evaluation.scoring.side_calls import Ledger, hear_all, spent_on
from evaluation.worker.jobs import AT_ONCE, Lease, job

OTHERS = 4  # passages beside its own among which a question's is looked for
_LOOKED_AT = 10


def ask_for(generation: Generation) -> None:
    """Have workers go on; what stands still for a person is tried again."""
    write_questions.enqueue(generation.pk)


@job("generation")
def write_questions(generation_id: int, lease: Lease) -> timedelta | None:
    """Write and check questions."""
    return None if _write(Generation.objects.get(pk=generation_id), lease) else AT_ONCE


def step(generation: Generation) -> bool:
    """Write and check questions here; whether the generation has ended. Also ``True`` while a worker has it.

    :raises Refused: ``judge_away`` where the model cannot be asked; what was heard before is kept.
    """
    with write_questions.claimed(generation.pk) as lease:
        if lease is not None:
            lease.done = _write(generation, lease)
        return lease is None or lease.done


def _write(generation: Generation, lease: Lease) -> bool:
    return GenerationResult.objects.filter(generation=generation).exists() or _Going(generation, lease).on()


@dataclass(slots=True)
class _Candidate:
    """A question on its way; ``own`` are the places of its passages among those ``shown`` to the model."""

    position: int
    place: Place
    question: QuestionSpec
    removed: Removed | None = None
    own: tuple[int, ...] = ()
    checks: int = 0  # still to be heard


class _Going:
    """A generation in hands."""

    def __init__(self, generation: Generation, lease: Lease) -> None:
        self.generation, self.lease = generation, lease
        self.judge = generation.judge_version
        self.passages = passages_of(generation.corpus)
        self.search = partial(search, generation.corpus)
        self.out_of_money = False

    def on(self) -> bool:
        places = draw(self.generation, self.passages, self.search)
        writing = {
            f"write:{place.number}": self.asking.write(
                place.kind, place.texts, self.generation.language, self.generation.per_passage
            )
            for place in places
            if place.linked
        }
        written = dict(self._heard(writing))
        if len(written) < len(writing) and not self.out_of_money:
            return False
        candidates = list(self._candidates(places, written))
        self._look_at(candidates)
        checks = {step: call for one in candidates if one.removed is None for step, call in self._checks(one).items()}
        by_position = {one.position: one for one in candidates}
        for step_name, heard in self._heard(checks):
            name, _, position = step_name.partition(":")
            self._told(by_position[int(position)], name, heard)
        unchecked = [one for one in candidates if one.removed is None and one.checks]
        if unchecked and not self.out_of_money:
            return False
        for one in unchecked:
            one.removed = Removed(Filter.UNCHECKED, {"reason": "budget"})
        self._end(places, written, candidates)
        return True

    @cached_property
    def asking(self) -> Asking:
        """Found out once, so that a reply that is kept is read as it was asked for."""
        if "rung" not in self.lease.job.notes:
            self.lease.note(rung=str(reach(self.judge).rung))
        return Asking(self.judge.model, self.judge.parameters, Rung(self.lease.job.notes["rung"]))

    def _heard(self, calls: Mapping[str, JudgeCall]) -> Iterator[tuple[str, Heard]]:
        return hear_all(self._ledger, self.judge, calls, rung=self.asking.rung, more=self._more)

    @property
    def _ledger(self) -> Ledger:
        mine = GenerationReply.objects.filter(attempt__generation=self.generation).order_by("pk")
        return Ledger(
            begin=lambda step: GenerationCall.objects.create(generation=self.generation, step=step).pk,
            kept=lambda: mine.values_list("attempt__step", "outcome", "raw"),
            replies=GenerationReply,
        )

    def _more(self) -> bool:
        budget = self.generation.budget
        if budget is not None and spent_on(GenerationCall.objects.filter(generation=self.generation)) >= budget:
            self.out_of_money = True
            return False
        return self.lease.more()

    def _candidates(self, places: list[Place], written: Mapping[str, Heard]) -> Iterator[_Candidate]:
        """What was written, in the order of places; more than was asked for is left out."""
        most = self.generation.per_passage
        for place in places:
            heard = written.get(f"write:{place.number}")
            questions = heard.parts["questions"] if heard and heard.outcome is Outcome.OK else []
            for number, one in enumerate(questions[:most]):
                question = read_question(one, place.kind, place.ids)
                yield _Candidate(place.number * most + number, place, question)

    def _look_at(self, candidates: list[_Candidate]) -> None:
        """The filters that need no call."""
        stand: list[QuestionSpec] = []
        for one in candidates:
            scores = self._scores(one) if not one.place.kind.together and not one.place.kind.is_negative else None
            one.removed = removed_at_sight(one.question, one.place.texts, stand, scores)
            if one.removed is None:
                stand.append(one.question)

    def _scores(self, one: _Candidate) -> tuple[float, float]:
        found, own = self.search(one.question.text, _LOOKED_AT), set(one.place.ids)
        return (
            max((score for chunk_id, score in found if chunk_id in own), default=0.0),
            max((score for chunk_id, score in found if chunk_id not in own), default=0.0),
        )

    def _checks(self, one: _Candidate) -> dict[str, JudgeCall]:
        """What a model is asked about a question: which of its passages and the most alike others answer it, in an
        order by chance, and whether it knows the answer by heart."""
        own = one.place.ids
        found = [chunk_id for chunk_id, _ in self.search(one.question.text, _LOOKED_AT) if chunk_id not in own]
        shown = [*own, *found[:OTHERS]]
        random.Random(f"{self.generation.seed}:{one.position}").shuffle(shown)
        one.own = tuple(place for place, chunk_id in enumerate(shown) if chunk_id in own)
        texts = [self.passages[chunk_id].text for chunk_id in shown]
        calls = {f"locate:{one.position}": self.asking.locate(one.question.text, texts)}
        if not one.place.kind.is_negative:
            calls[f"closed:{one.position}"] = self.asking.closed_book(one.question.text)
        one.checks = len(calls)
        return calls

    def _told(self, one: _Candidate, name: str, heard: Heard) -> None:
        one.checks -= 1
        if heard.outcome is not Outcome.OK:
            one.removed = one.removed or Removed(Filter.UNCHECKED, {"reason": str(heard.outcome)})
        elif name == "locate":
            place = removed_by_place(one.question, one.place.kind, located(heard.parts), one.own)
            one.removed = place or one.removed
        else:
            known = removed_as_known(one.question, heard.parts["known"], heard.parts["answer"])
            one.removed = one.removed or known

    def _end(self, places: list[Place], written: Mapping[str, Heard], candidates: list[_Candidate]) -> None:
        """Put all down at once."""
        removed = Counter(str(one.removed.by) for one in candidates if one.removed)
        figures: dict[str, Any] = {
            "passages": len(places),
            "unlinked": sum(not place.linked for place in places),
            "unread": sum(heard.outcome is not Outcome.OK for heard in written.values()),
            "written": len(candidates),
            "removed": dict(removed),
            "left": len(candidates) - removed.total(),
        }
        outcome = GenerationResult.Outcome.BUDGET if self.out_of_money else GenerationResult.Outcome.DONE
        with transaction.atomic():
            DraftQuestion.objects.bulk_create(
                DraftQuestion(
                    generation=self.generation,
                    position=one.position,
                    kind=one.place.kind.name,
                    content=one.question.model_dump(mode="json", exclude={"id"}),
                    removed_by=one.removed.by if one.removed else "",
                    detail=dict(one.removed.detail) if one.removed else {},
                )
                for one in candidates
            )
            GenerationResult.objects.create(generation=self.generation, outcome=outcome, figures=figures)
            audit.record(None, "generation.ended", self.generation, outcome=outcome, **figures)
