"""Picking answers by hand: by their own ids or those of their questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evaluation.core.errors import Refused
from evaluation.models import Answer, Run

NAMED = 10  # unknown ids that a message lists


def answers_to(runs: Sequence[Run], question_ids: Sequence[str]) -> dict[int, frozenset[int]]:
    """Run -> its answers to these questions, of all samples, by primary key.

    :raises Refused: ``unknown_questions`` for ids that no run has an answer to.
    """
    found: dict[int, set[int]] = {run.pk: set() for run in runs}
    of_set = {run.answer_set_id: run.pk for run in runs}
    rows = Answer.objects.filter(answer_set__in=of_set, question__external_id__in=question_ids, status="ok")
    known = set()
    for pk, answer_set, question_id in rows.values_list("pk", "answer_set_id", "question__external_id"):
        found[of_set[answer_set]].add(pk)
        known.add(question_id)
    if unknown := [one for one in question_ids if one not in known]:
        raise Refused("unknown_questions", ids=unknown[:NAMED])
    return {run: frozenset(answers) for run, answers in found.items()}


def picked(
    runs: Sequence[Run], answers: Collection[int], question_ids: Sequence[str] = ()
) -> dict[int, frozenset[int]]:
    """Run -> its answers among those named by primary key, and its answers to the questions.

    :raises Refused: ``unknown_keys`` for answers of no run, ``unknown_questions`` for ids that no run has an answer to.
    """
    asked = answers_to(runs, question_ids)
    of_set = dict(Answer.objects.filter(pk__in=answers).values_list("pk", "answer_set_id"))
    own = {run.pk: frozenset(pk for pk, of in of_set.items() if of == run.answer_set_id) for run in runs}
    if unknown := sorted(frozenset(answers).difference(*own.values())):
        raise Refused("unknown_keys", keys=unknown)
    return {run.pk: asked[run.pk] | own[run.pk] for run in runs}
