"""Kinds of generated questions: number of passages, instruction for the writer, and properties of the question."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.core.samples import NEGATIVE_CATEGORY


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question. ``instruction`` is part of the prompt; ``difficulty`` and ``hops`` are stored with the
    question."""

    name: str
    passages: int
    difficulty: str
    hops: int | None
    instruction: str

    @property
    def needs_all_passages(self) -> bool:
        """Return whether the answer needs several passages."""
        return self.passages > 1

    @property
    def is_negative(self) -> bool:
        """Return whether the correct answer is that the documents do not contain it."""
        return self.name == NEGATIVE_CATEGORY


KINDS = {
    kind.name: kind
    for kind in (
        QuestionKind("single_hop", 1, "easy", 1, "Each asks for one fact that the passage states."),
        QuestionKind(
            *("multi_hop_2", 2, "medium", 2),
            "Each can only be answered by joining a fact of the first passage with a fact of the second: the answer to "
            "one part is needed to find the other.",
        ),
        QuestionKind(
            *("multi_hop_3", 3, "hard", 3),
            "Each can only be answered by joining facts of all three passages.",
        ),
        QuestionKind(
            *("aggregation", 3, "medium", None),
            "Each asks to count, compare, sum up or list over all the passages; none of them alone gives the answer.",
        ),
        QuestionKind(
            *("inference", 1, "hard", 1),
            "Each has an answer that follows from what the passage states, by a step of reasoning, and that the "
            "passage does not state word for word.",
        ),
        QuestionKind(
            *(NEGATIVE_CATEGORY, 1, "medium", None),
            "Each asks for something that a reader of the passage could well ask and that the passage does NOT tell, "
            "or rests on an assumption that the passage contradicts. The answer says that the documents do not tell "
            "it, or corrects the assumption.",
        ),
    )
}
