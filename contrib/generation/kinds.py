"""The kinds of questions that are written, each over so many linked passages, and what the writer is told of it."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.core.samples import NEGATIVE_CATEGORY


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question. ``together``: all of its passages are needed, so that no single one answers it. ``told`` goes
    into the prompt; ``difficulty`` and ``hops`` into the question."""

    name: str
    passages: int
    difficulty: str
    hops: int | None
    told: str

    @property
    def together(self) -> bool:
        """Whether several passages have to be read together."""
        return self.passages > 1

    @property
    def is_negative(self) -> bool:
        """Whether the right answer is to say that the documents do not tell."""
        return self.name == NEGATIVE_CATEGORY


KINDS = {
    kind.name: kind
    for kind in (
        Kind("single_hop", 1, "easy", 1, "Each asks for one fact that the passage states."),
        Kind(
            *("multi_hop_2", 2, "medium", 2),
            "Each can only be answered by joining a fact of the first passage with a fact of the second: the answer to "
            "one part is needed to find the other.",
        ),
        Kind(
            *("multi_hop_3", 3, "hard", 3),
            "Each can only be answered by joining facts of all three passages.",
        ),
        Kind(
            *("aggregation", 3, "medium", None),
            "Each asks to count, compare, sum up or list over all the passages; none of them alone gives the answer.",
        ),
        Kind(
            *("inference", 1, "hard", 1),
            "Each has an answer that follows from what the passage states, by a step of reasoning, and that the "
            "passage does not state word for word.",
        ),
        Kind(
            *(NEGATIVE_CATEGORY, 1, "medium", None),
            "Each asks for something that a reader of the passage could well ask and that the passage does NOT tell, "
            "or rests on an assumption that the passage contradicts. The answer says that the documents do not tell "
            "it, or corrects the assumption.",
        ),
    )
}
