"""Creates a repair: pools the passages retrieved by several runs by question, and draws a sample for experts."""

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
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.judging.formulas import RELEVANT, SUPPORTED
from evaluation.models import Answer, Finding, Question, Run, User
from review.evidence.answers import new_seed
from review.statistics.retrieval_truth.draw import PassageDraw, draw_passages
from review.statistics.retrieval_truth.pool import Pool

MAX_SYSTEMS = 8
# Key in a question's metadata for passages that experts rated as not relevant.
NOT_RELEVANT = "not_relevant_chunk_ids"
# Metric whose verdicts on passages guide the draw.
VERDICT_METRIC = "context_precision"
# Question, chunk id, and hash of the text without a chunk id.
PassageKey = tuple[int, str, str]


@dataclass(slots=True)
class PoolEntry:
    """A passage while the pool is built."""

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
    """Pool the first ``k`` passages of each run for the questions that all answered, and draw ``size`` unlabelled ones.

    The pool includes the passages that the question set names as relevant. Passages are identified by their chunk id,
    else by their text. Verdicts of ``context_precision`` in these runs guide the draw.

    :raises DomainError: ``repair_runs`` (two to eight), ``several_projects``, ``several_question_sets``,
        ``pairs_same_answers``, ``no_reviewers``, ``not_in_project``, ``repair_exists``, ``nothing_retrieved``,
        ``passages_without_text``, ``nothing_to_rate``, ``too_few_for_first``."""
    people = list(dict.fromkeys(reviewers))
    _validate(runs, people, name)
    pool = _build_pool(runs, k)
    arrays = pool_arrays(list(pool.items()), k)
    draw = draw_passages(arrays, size, seed := new_seed() if seed is None else seed, first_relevant=first_relevant)
    first = runs[0]
    repair = RetrievalRepair.objects.create(
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
    RepairMember.objects.bulk_create(RepairMember(repair=repair, reviewer=person) for person in people)
    RepairSystem.objects.bulk_create(
        RepairSystem(repair=repair, run=run, position=position, name=str(run.answer_set.system_version))
        for position, run in enumerate(runs)
    )
    PooledPassage.objects.bulk_create(_rows(repair, pool, draw), batch_size=500)
    audit.record(by, "repair_made", repair, runs=[run.pk for run in runs], drawn=int(draw.sampled.sum()))
    return repair


def _validate(runs: Sequence[Run], people: Sequence[User], name: str) -> None:
    if not 2 <= len(runs) <= MAX_SYSTEMS:
        raise DomainError("repair_runs", most=MAX_SYSTEMS)
    if len({run.project_id for run in runs}) > 1:
        raise DomainError("several_projects")
    if len({run.answer_set.question_set_id for run in runs}) > 1:
        raise DomainError("several_question_sets")
    if len({run.answer_set_id for run in runs}) < len(runs):
        raise DomainError("pairs_same_answers")
    if not people:
        raise DomainError("no_reviewers")
    outside = [reviewer.username for reviewer in people if not access.may(reviewer, runs[0].project_id, Action.RATE)]
    if outside:
        raise DomainError("not_in_project", people=", ".join(outside))
    if RetrievalRepair.objects.filter(project=runs[0].project_id, name=name).exists():
        raise DomainError("repair_exists", name=name)


def _build_pool(runs: Sequence[Run], k: int) -> dict[PassageKey, PoolEntry]:
    by_run = [ranked_answers(run) for run in runs]
    shared = set.intersection(*(set(answers) for answers in by_run))
    if not shared:
        raise DomainError("nothing_retrieved")
    pool: dict[PassageKey, PoolEntry] = {}
    for question in Question.objects.filter(pk__in=shared).order_by("position"):
        question_pool = _labelled_passages(question, len(runs))
        for system, answers in enumerate(by_run):
            add_ranking(question_pool, question.pk, system, len(runs), answers[question.pk], k)
        pool |= question_pool
    _add_verdicts(pool, runs)
    missing = [key for key, entry in pool.items() if entry.label is None and not entry.text.strip()]
    if missing:
        raise DomainError("passages_without_text", count=len(missing), chunk=missing[0][1])
    return pool


def ranked_answers(run: Run) -> dict[int, Answer]:
    """Return the first answer with a retrieval to each question, by question id."""
    rows = Answer.objects.filter(answer_set=run.answer_set_id, status="ok", retrieves=True)
    answers = rows.order_by("-sample", "round").prefetch_related("contexts")
    # Later rows replace earlier ones: the lowest sample in its last round remains.
    return {answer.question_id: answer for answer in answers}


def _labelled_passages(question: Question, systems: int) -> dict[PassageKey, PoolEntry]:
    """Return the labelled passages of a question: relevant ones, and those that an earlier repair found irrelevant."""
    labels = dict.fromkeys(question.metadata.get(NOT_RELEVANT, []), 0.0)
    labels |= dict.fromkeys(question.read().ground_truth_chunk_ids, 1.0)
    return {(question.pk, chunk, ""): PoolEntry([0] * systems, label=label) for chunk, label in labels.items()}


def add_ranking(
    pool: dict[PassageKey, PoolEntry], question: int, system: int, systems: int, answer: Answer, k: int
) -> None:
    """Add the first ``k`` passages of a ranking to the pool; a repeated passage keeps its first rank."""
    contexts = list(answer.contexts.all())
    texts = {context.chunk_id: context.text for context in contexts if context.chunk_id}
    ranked = [(context.chunk_id, context.text) for context in contexts]
    if answer.retrieved_ids is not None:
        ranked = [(chunk, texts.get(chunk, "")) for chunk in answer.retrieved_ids]
    for rank, (chunk, text) in enumerate(ranked[:k], start=1):
        entry = pool.setdefault(passage_key(question, chunk, text), PoolEntry([0] * systems))
        entry.ranks[system] = entry.ranks[system] or rank
        entry.text = entry.text or text


def passage_key(question: int, chunk: str, text: str) -> PassageKey:
    """Return the identity of a passage: its id, else its text with white space ignored."""
    return question, chunk, "" if chunk else hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def _add_verdicts(pool: Mapping[PassageKey, PoolEntry], runs: Sequence[Run]) -> None:
    """Add the judges' verdicts on passages in these runs."""
    findings = Finding.objects.filter(score__run__in=runs, score__metric__name=VERDICT_METRIC, kind="context")
    verdicts_by_answer: dict[int, list[tuple[int | None, bool]]] = defaultdict(list)
    for key, position, verdict_text in findings.values_list("score__answer", "context", "verdict"):
        verdicts_by_answer[key].append((position, verdict_text in {RELEVANT, SUPPORTED}))
    for answer in Answer.objects.filter(pk__in=verdicts_by_answer).prefetch_related("contexts"):
        contexts = list(answer.contexts.all())
        for position, verdict in verdicts_by_answer[answer.pk]:
            if position is not None and position < len(contexts):
                context = contexts[position]
                entry = pool.get(passage_key(answer.question_id, context.chunk_id, context.text))
                if entry is not None:
                    entry.verdicts.append(verdict)


def pool_arrays(passages: Sequence[tuple[PassageKey, PoolEntry]], k: int) -> Pool:
    """Convert the pool to arrays in the order of the passages; questions are numbered in order of appearance."""
    numbers = {question: index for index, question in enumerate(dict.fromkeys(key[0] for key, _ in passages))}
    missing = math.nan
    return Pool(
        question=np.array([numbers[key[0]] for key, _ in passages], dtype=np.intp),
        ranks=np.array([entry.ranks for _, entry in passages], dtype=np.intp).T,
        known=np.array([missing if entry.label is None else entry.label for _, entry in passages]),
        judge=np.array(
            [sum(entry.verdicts) / len(entry.verdicts) if entry.verdicts else missing for _, entry in passages]
        ),
        k=k,
    )


def _rows(repair: RetrievalRepair, pool: Mapping[PassageKey, PoolEntry], draw: PassageDraw) -> list[PooledPassage]:
    rows = []
    for index, ((question, chunk, digest), entry) in enumerate(pool.items()):
        probability = float(draw.probability[index])
        stratum = PooledPassage.Stratum.DRAWN if probability < 1 else PooledPassage.Stratum.CERTAIN
        rows.append(
            PooledPassage(
                repair=repair,
                question_id=question,
                chunk_id=chunk,
                text_hash=digest,
                text=entry.text,
                ranks=entry.ranks,
                label=entry.label,
                judge=sum(entry.verdicts) / len(entry.verdicts) if entry.verdicts else None,
                guess=float(draw.guess[index]),
                stratum=stratum if entry.label is None else PooledPassage.Stratum.LABELLED,
                probability=probability,
                sampled=bool(draw.sampled[index]),
            )
        )
    return rows
