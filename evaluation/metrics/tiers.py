"""The tiers of a keyword match, and what may stand at the right edge of a keyword."""

from __future__ import annotations

from enum import StrEnum

from evaluation.metrics.korean import is_particle_chain, only_grammar_follows
from evaluation.metrics.normalise import hangul_run, is_boundary, is_hangul, sentence_span
from evaluation.metrics.numbers import starts_with_counter


class Tier(StrEnum):
    """How a keyword was found, the strictest way first."""

    EXACT = "exact"
    SPACING = "spacing"
    PARTICLE = "particle"
    NUMBER = "number"
    COMPOUND = "compound"
    ALTERNATIVE = "alternative"
    SUBSTRING = "substring"


def right_edge(text: str, end: int, *, may_go_on: bool) -> Tier | None:
    """The tier that the characters behind ``end`` of a folded text allow, or ``None`` where they make another word.

    Behind a digit only particles and counters may follow ("200은", "200명"), because a product name may go on there
    ("KODEX 200선물인버스"). ``may_go_on``: the keyword is long enough to begin a compound.
    """
    run = hangul_run(text, end)
    if is_boundary(text, end) and (not run or is_hangul(text[end - 1]) or end == 0):
        return Tier.EXACT
    if not run:
        return None
    if text[end - 1].isdigit() and starts_with_counter(run):
        return Tier.EXACT
    if drags_particles(text, end, run):
        return Tier.PARTICLE
    if not is_hangul(text[end - 1]) and not text[end - 1].isalnum():
        return Tier.EXACT
    return Tier.COMPOUND if may_go_on and not text[end - 1].isdigit() else None


def drags_particles(text: str, end: int, run: str) -> bool:
    """Whether the Hangul ``run`` behind ``end`` is particles and endings only, by morphemes or the closed list."""
    start, stop = sentence_span(text, end - 1)
    grammar = only_grammar_follows(text[start:stop], end - start, end - start + len(run))
    return is_particle_chain(text[end - 1], run) if grammar is None else grammar
