"""The conversation with a judge about one pair: A first, then B first; a failed order ends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.asking import Heard
from evaluation.judging.calls import JudgeCall, JudgeReply, Rung
from evaluation.judging.prompt import judge_call, request_hash
from evaluation.judging.reading import hear
from evaluation.judging.rubric import Rubric
from evaluation.models import JudgeVersion
from review.extras.pairs.pairwise import Joined, joined, pairwise_ask, read_preference
from review.models import Pair

REPEAT = 1  # each order is asked once


@dataclass(frozen=True, slots=True)
class Setting:
    """What all conversations of a comparison share."""

    judge: JudgeVersion
    rubric: Rubric
    rung: Rung


class PairTalk:
    """``call`` is the next call to make, ``None`` at the end; ``results`` are the orders heard so far. Calls that the
    ledger has a reply to are heard at once."""

    def __init__(self, setting: Setting, pair: Pair, replies: Mapping[str, JudgeReply]) -> None:
        self._setting, self._pair, self._replies = setting, pair, replies
        self.results: list[Result] = []
        self.call: JudgeCall | None = None
        self._go_on()

    def hear(self, heard: Heard) -> None:
        """Go on with what the reply to the present call holds."""
        self.results.append(read_preference(self._setting.rubric, heard))
        self._go_on()

    @property
    def joined(self) -> Joined:
        """What both orders come to; of a conversation that has ended."""
        return joined(self.results[0], self.results[-1])

    def _go_on(self) -> None:
        self.call = None
        while len(self.results) < 2 and all(result.value is not None for result in self.results):
            call = self._next()
            reply = self._replies.get(request_hash(call, repeat=REPEAT))
            if reply is None:
                self.call = call
                return
            self.results.append(read_preference(self._setting.rubric, hear(reply, call.ask, call.rung)))

    def _next(self) -> JudgeCall:
        pair, rubric, judge = self._pair, self._setting.rubric, self._setting.judge
        first, second = (pair.text_b, pair.text_a) if self.results else (pair.text_a, pair.text_b)
        ask = pairwise_ask(rubric, pair.question_text, pair.reference, first, second)
        # Preferences are labels, which are taken as said: no log probabilities are asked for.
        return judge_call(
            rubric,
            question_of(pair),
            AnswerSpec(first),
            ask,
            model=judge.model,
            parameters=judge.params,
            rung=self._setting.rung,
        )


def question_of(pair: Pair) -> QuestionSpec:
    """The pair's question as judges see it."""
    references = (pair.reference,) if pair.reference else ()
    return QuestionSpec(id=pair.external_id, category="", text=pair.question_text, references=references)
