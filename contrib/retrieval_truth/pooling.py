"""Making a repair: what the systems of several runs retrieved, pooled by question, and the draw of what experts
rate."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from django.db import transaction

from contrib.retrieval_truth.models import PooledPassage, RepairMember, RepairSystem, RetrievalRepair
from evaluation.accounts import access, audit
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.judging.formulas import RELEVANT, SUPPORTED
from evaluation.models import Answer, Finding, Question, Run, User
from review.evidence.answers import new_seed
from review.statistics.retrieval_truth.drawing import PassageDraw, draw_passages
from review.statistics.retrieval_truth.pool import Pool

MOST_SYSTEMS = 8
NOT_RELEVANT = "not_relevant_chunk_ids"  # in a question's metadata: what experts rated and found not relevant
JUDGED_BY = "context_precision"  # the metric whose verdicts on passages steer the draw
Key = tuple[int, str, str]  # question, chunk id, hash of the text where there is no id


@dataclass(slots=True)
class Pooled:
    """A passage while the pool is made."""

    ranks: list[int]
    text: str = ""
    label: float | None = None
    verdicts: list[bool] = field(default_factory=list)


@transaction.atomic
def make_repair(
    runs: Sequence[Run],
    *,
    name: str,
    reviewers: Sequence[User],
    size: int = 200,
    k: int = 10,
    partly_counts: bool = False,
    first_relevant: bool = False,
    guideline: str = "",
    seed: int | None = None,
    by: User | None = None,
) -> RetrievalRepair:
    """Pool what the runs' systems retrieved among the first ``k`` for the questions that all of them answered, with the
    passages that the question set names as relevant, and draw ``size`` of those without a label.

    A passage is one by its chunk id, without one by its text. Verdicts of ``context_precision`` in these runs are the
    judge's word.

    :raises Refused: ``repair_runs`` (two to eight), ``several_projects``, ``several_question_sets``,
        ``pairs_same_answers``, ``no_reviewers``, ``not_in_project``, ``repair_exists``, ``nothing_retrieved``,
        ``passages_without_text``, ``nothing_to_rate``, ``too_few_for_first``.
    """
    people = list(dict.fromkeys(reviewers))
    _check(runs, people, name)
    pool = _pool(runs, k)
    arrays = arrays_of(list(pool.items()), k)
    drawn = draw_passages(arrays, size, seed := new_seed() if seed is None else seed, first_relevant=first_relevant)
    first = runs[0]
    made = RetrievalRepair.objects.create(
        project_id=first.project_id,
        question_set_id=first.answer_set.question_set_id,
        name=name,
        guideline=guideline,
        k=k,
        partly_counts=partly_counts,
        first_relevant=first_relevant,
        size=size,
        seed=seed,
        created_by=by,
    )
    RepairMember.objects.bulk_create(RepairMember(repair=made, reviewer=person) for person in people)
    RepairSystem.objects.bulk_create(
        RepairSystem(repair=made, run=run, position=place, name=str(run.answer_set.system_version))
        for place, run in enumerate(runs)
    )
    PooledPassage.objects.bulk_create(_rows(made, pool, drawn), batch_size=500)
    audit.record(by, "repair_made", made, runs=[run.pk for run in runs], drawn=int(drawn.sampled.sum()))
    return made


def _check(runs: Sequence[Run], people: Sequence[User], name: str) -> None:
    if not 2 <= len(runs) <= MOST_SYSTEMS:
        raise Refused("repair_runs", most=MOST_SYSTEMS)
    if len({run.project_id for run in runs}) > 1:
        raise Refused("several_projects")
    if len({run.answer_set.question_set_id for run in runs}) > 1:
        raise Refused("several_question_sets")
    if len({run.answer_set_id for run in runs}) < len(runs):
        raise Refused("pairs_same_answers")
    if not people:
        raise Refused("no_reviewers")
    outside = [one.username for one in people if not access.may(one, runs[0].project_id, Action.RATE)]
    if outside:
        raise Refused("not_in_project", people=", ".join(outside))
    if RetrievalRepair.objects.filter(project=runs[0].project_id, name=name).exists():
        raise Refused("repair_exists", name=name)


def _pool(runs: Sequence[Run], k: int) -> dict[Key, Pooled]:
    by_run = [ranked_answers(run) for run in runs]
    shared = set.intersection(*(set(answers) for answers in by_run))
    if not shared:
        raise Refused("nothing_retrieved")
    pool: dict[Key, Pooled] = {}
    for question in Question.objects.filter(pk__in=shared).order_by("position"):
        of_question = _labelled(question, len(runs))
        for system, answers in enumerate(by_run):
            add_ranking(of_question, question.pk, system, len(runs), answers[question.pk], k)
        pool |= of_question
    _add_verdicts(pool, runs)
    missing = [key for key, one in pool.items() if one.label is None and not one.text.strip()]
    if missing:
        raise Refused("passages_without_text", count=len(missing), chunk=missing[0][1])
    return pool


def ranked_answers(run: Run) -> dict[int, Answer]:
    """The first answer to each question that came with a retrieval, by the question's key."""
    rows = Answer.objects.filter(answer_set=run.answer_set_id, status="ok", retrieves=True)
    chosen = rows.order_by("-sample", "round").prefetch_related("contexts")
    return {answer.question_id: answer for answer in chosen}  # the lowest sample and its last round stay


def _labelled(question: Question, systems: int) -> dict[Key, Pooled]:
    """The passages the set knows: relevant ones, and those that an earlier repair found not to be."""
    known = dict.fromkeys(question.metadata.get(NOT_RELEVANT, []), 0.0)
    known |= dict.fromkeys(question.read().ground_truth_chunk_ids, 1.0)
    return {(question.pk, chunk, ""): Pooled([0] * systems, label=label) for chunk, label in known.items()}


def add_ranking(pool: dict[Key, Pooled], question: int, system: int, systems: int, answer: Answer, k: int) -> None:
    """Put the first k places of a ranking into the pool; a passage that comes twice has its first rank."""
    said = list(answer.contexts.all())
    texts = {context.chunk_id: context.text for context in said if context.chunk_id}
    ranked = [(context.chunk_id, context.text) for context in said]
    if answer.retrieved_ids is not None:
        ranked = [(chunk, texts.get(chunk, "")) for chunk in answer.retrieved_ids]
    for rank, (chunk, text) in enumerate(ranked[:k], start=1):
        one = pool.setdefault(passage_key(question, chunk, text), Pooled([0] * systems))
        one.ranks[system] = one.ranks[system] or rank
        one.text = one.text or text


def passage_key(question: int, chunk: str, text: str) -> Key:
    """What makes a passage one: its id, else its text whatever the white space."""
    return question, chunk, "" if chunk else hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def _add_verdicts(pool: Mapping[Key, Pooled], runs: Sequence[Run]) -> None:
    """Every verdict of a judge on a passage of these runs' answers."""
    found = Finding.objects.filter(score__run__in=runs, score__metric__name=JUDGED_BY, kind="context")
    places: dict[int, list[tuple[int | None, bool]]] = defaultdict(list)
    for key, position, said in found.values_list("score__answer", "context", "verdict"):
        places[key].append((position, said in {RELEVANT, SUPPORTED}))
    for answer in Answer.objects.filter(pk__in=places).prefetch_related("contexts"):
        contexts = list(answer.contexts.all())
        for position, verdict in places[answer.pk]:
            if position is not None and position < len(contexts):
                context = contexts[position]
                one = pool.get(passage_key(answer.question_id, context.chunk_id, context.text))
                if one is not None:
                    one.verdicts.append(verdict)


def arrays_of(passages: Sequence[tuple[Key, Pooled]], k: int) -> Pool:
    """The pool for the statistics, aligned with the passages; questions are numbered in the order they come."""
    numbers = {question: at for at, question in enumerate(dict.fromkeys(key[0] for key, _ in passages))}
    nothing = math.nan
    return Pool(
        question=np.array([numbers[key[0]] for key, _ in passages], dtype=np.intp),
        ranks=np.array([one.ranks for _, one in passages], dtype=np.intp).T,
        known=np.array([nothing if one.label is None else one.label for _, one in passages]),
        judge=np.array([sum(one.verdicts) / len(one.verdicts) if one.verdicts else nothing for _, one in passages]),
        k=k,
    )


def _rows(made: RetrievalRepair, pool: Mapping[Key, Pooled], drawn: PassageDraw) -> list[PooledPassage]:
    rows = []
    for at, ((question, chunk, digest), one) in enumerate(pool.items()):
        probability = float(drawn.probability[at])
        stratum = PooledPassage.Stratum.DRAWN if probability < 1 else PooledPassage.Stratum.CERTAIN
        rows.append(
            PooledPassage(
                repair=made,
                question_id=question,
                chunk_id=chunk,
                text_hash=digest,
                text=one.text,
                ranks=one.ranks,
                label=one.label,
                judge=sum(one.verdicts) / len(one.verdicts) if one.verdicts else None,
                guess=float(drawn.guess[at]),
                stratum=stratum if one.label is None else PooledPassage.Stratum.LABELLED,
                probability=probability,
                sampled=bool(drawn.sampled[at]),
            )
        )
    return rows
