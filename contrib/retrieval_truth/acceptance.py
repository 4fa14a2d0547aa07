"""Copies the labels of a repair into a new version of the question set, and corrects runs while the pool is partly
rated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Q

from contrib.retrieval_truth.models import AcceptedLabels, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.pooling import NOT_RELEVANT, PassageKey, PoolEntry, add_ranking, ranked_answers
from contrib.retrieval_truth.rating import invalidate_corrected_figures
from contrib.retrieval_truth.results import figures_from_labels, load_draw, load_pool, relevance
from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.datasets.importing import import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.models import QuestionSet, Run, User
from review.reports.retrieval import CorrectedRetrieval, RepairedFigure, RepairedRetrieval, RetrievalFigure
from review.statistics.agreement.statistic import Array
from review.statistics.retrieval_truth.draw import PassageDraw
from review.statistics.retrieval_truth.estimates import estimate, estimate_for_similar_questions
from review.statistics.retrieval_truth.pool import Pool, RetrievalMetric

# Key in a set's metadata for the repair of its labels and the number of unrated passages.
REPAIR_KEY = "retrieval_truth"


@transaction.atomic
def accept_labels(repair: RetrievalRepair, *, by: User) -> AcceptedLabels:
    """Create the next version of the question set with the passages that experts rated as relevant.

    Relevant means a mean grade above a half; only passages with a chunk id are copied. Passages rated as not relevant
    are stored in the metadata, so that a later repair does not ask again. The version records its repair and the number
    of unrated passages: while there are any, :func:`corrected_retrieval` corrects runs on it. Runs on the original
    version are always corrected. After further ratings, another call creates a further version.

    :raises DomainError: ``newer_question_set`` if the set has a later version from elsewhere; ``no_new_labels`` without
    a
        relevant passage that the latest version lacks."""
    source = QuestionSet.objects.get(pk=repair.question_set_id)
    versions = QuestionSet.objects.filter(project=source.project_id, name=source.name).order_by("version")
    later_versions = versions.filter(version__gt=source.version)
    if later_versions.exclude(pk__in=repair.accepted.values("question_set")).exists():
        raise DomainError("newer_question_set", set=str(source))
    relevances, _ = relevance(repair)
    new_labels: dict[bool, dict[int, list[str]]] = {True: defaultdict(list), False: defaultdict(list)}
    for passage in repair.passages.filter(pk__in=relevances).exclude(chunk_id="").order_by("pk").defer("text"):
        new_labels[relevances[passage.pk] > 0.5][passage.question_id].append(passage.chunk_id)
    count = sum(map(len, new_labels[True].values()))
    unrated = repair.passages.filter(label=None).exclude(pk__in=relevances).count()
    provenance = {"repair": repair.pk, "name": repair.name, "unrated": unrated, "rated": len(relevances)}
    file = _question_file(source, new_labels, provenance)
    if {spec.id: set(spec.ground_truth_chunk_ids) for spec in file.questions} == _relevant_chunks(
        later_versions.last() or source
    ):
        raise DomainError("no_new_labels")
    version = import_question_set(source.project, source.name, file, by=by).question_set
    audit.record(by, "repair_accepted", repair, question_set=version.pk, relevant=count, unrated=unrated)
    accepted = AcceptedLabels.objects.create(
        repair=repair, question_set=version, relevant=count, unrated=unrated, created_by=by
    )
    invalidate_corrected_figures(repair)
    return accepted


def _relevant_chunks(version: QuestionSet) -> dict[str, set[str]]:
    """Return the relevant passages of each question."""
    rows = version.questions.values_list("external_id", "spec__ground_truth_chunk_ids")
    return {name: set(ids or ()) for name, ids in rows}


def _question_file(
    source: QuestionSet, new_labels: dict[bool, dict[int, list[str]]], provenance: dict[str, Any]
) -> QuestionFile:
    specs, metadata = [], {}
    for question in source.questions.order_by("position"):
        spec, question_metadata = question.read(), dict(question.metadata)
        relevant = dict.fromkeys([*spec.ground_truth_chunk_ids, *new_labels[True][question.pk]])
        specs.append(spec.model_copy(update={"ground_truth_chunk_ids": tuple(relevant)}))
        irrelevant = dict.fromkeys([*question_metadata.get(NOT_RELEVANT, []), *new_labels[False][question.pk]])
        if irrelevant:
            question_metadata[NOT_RELEVANT] = list(irrelevant)
        metadata[spec.id] = question_metadata
    return QuestionFile(
        questions=tuple(specs),
        metadata=metadata,
        set_metadata=source.metadata | {REPAIR_KEY: provenance},
        metadata_keys=(),
        remarks=(),
        format="repair",
        encoding="utf-8",
    )


OUTSIDE, OTHER_K = "outside_pool", "other_k"


def corrected_retrieval(run: Run) -> CorrectedRetrieval | None:
    """Return corrected precision, recall and nDCG of a run over a version of the set with a partly rated pool.

    The run's own ranking is combined with the repair's stored guesses, probabilities and ratings. ``None`` for other
    runs. Figures are withheld if the run retrieved passages outside the pool (``outside_pool``), of which nothing was
    drawn."""
    version = run.answer_set.question_set
    if (repair := _covering_repair([version.pk])) is None:
        return None
    ranked = _rank_in_pool(repair, [run], min(repair.k, run.answer_set.k))
    relevant = _relevant_chunks(version)
    labels = np.array(
        [float(row.chunk_id in relevant[name]) for row, name in zip(ranked.rows, ranked.names, strict=True)]
    )
    corrected = estimate(ranked.pool, ranked.draw, ranked.rated, unjudgeable=ranked.cannot)
    figures = [
        RetrievalFigure(figure.metric.value, float(label_value), None, None, None, OUTSIDE)
        if ranked.outside
        else RetrievalFigure(
            figure.metric.value, float(label_value), figure.value, figure.low, figure.high, figure.withheld or ""
        )
        for figure, label_value in zip(corrected.figures, figures_from_labels(ranked.pool, labels), strict=True)
    ]
    return CorrectedRetrieval(
        repair.pk, repair.name, ranked.pool.k, corrected.questions, ranked.unrated, ranked.outside, tuple(figures),
        older=repair.question_set_id == version.pk,
    )  # fmt: skip


def repaired_retrieval(runs: Sequence[Run]) -> RepairedRetrieval | None:
    """Return corrected figures of one run, or of the first run minus the second, for questions like these.

    ``None`` unless one repair covers all runs. Figures are withheld for passages outside the pool (``outside_pool``)
    and for runs of different depths (``other_k``)."""
    sets, depths = {run.answer_set.question_set_id for run in runs}, {run.answer_set.k for run in runs}
    if (repair := _covering_repair(sets)) is None:
        return None
    ranked = _rank_in_pool(repair, runs, max(depths))
    groups = dict(runs[0].answer_set.question_set.questions.values_list("external_id", "group"))
    question_groups = [groups[name] or name for name in dict.fromkeys(ranked.names)]
    estimates = estimate_for_similar_questions(
        ranked.pool, ranked.draw, ranked.rated, question_groups, unjudgeable=ranked.cannot
    )
    figures, withheld = {}, OTHER_K if len(depths) > 1 else OUTSIDE if ranked.outside else ""
    for metric in RetrievalMetric:
        value_or_reason = estimates[metric, 0, 1 if len(runs) > 1 else None]
        reason = withheld or (value_or_reason if isinstance(value_or_reason, str) else "")
        value, deviation = (None, None) if isinstance(value_or_reason, str) or reason else value_or_reason
        figures[metric.value] = RepairedFigure(value, deviation, reason)
    minimum = 0.0 if len(runs) == 1 else -1.0
    return RepairedRetrieval(repair.pk, repair.name, ranked.pool.questions, ranked.unrated, minimum, figures)


def _covering_repair(sets: Collection[int]) -> RetrievalRepair | None:
    """Return the latest accepted repair that covers all of these versions. One query."""
    repairs = RetrievalRepair.objects.filter(accepted__isnull=False)
    for pk in sets:
        accepted = AcceptedLabels.objects.filter(question_set=pk)
        # Two versions have different labels, so a fully rated pool must correct them too.
        accepted = accepted.filter(unrated__gt=0) if len(sets) == 1 else accepted
        repairs = repairs.filter(Q(question_set=pk) | Q(pk__in=accepted.values("repair")))
    return repairs.order_by("-accepted__pk").first()


class _PooledRankings(NamedTuple):
    """Rankings of runs in a repair's pool, over the questions that all runs answered; ``names`` are the question ids of
    the rows."""

    rows: list[PooledPassage]
    names: list[str]
    pool: Pool
    draw: PassageDraw
    rated: Array
    cannot: int
    unrated: int
    outside: int


def _rank_in_pool(repair: RetrievalRepair, runs: Sequence[Run], k: int) -> _PooledRankings:
    question_names = dict(QuestionSet.objects.get(pk=repair.question_set_id).questions.values_list("pk", "external_id"))
    answers = []
    for run in runs:
        names = dict(run.answer_set.question_set.questions.values_list("pk", "external_id"))
        answers.append({names[pk]: answer for pk, answer in ranked_answers(run).items()})
    answered = [pk for pk, name in question_names.items() if all(name in run_answers for run_answers in answers)]
    rows = list(repair.passages.filter(question__in=answered).order_by("pk").defer("text"))
    ranked_entries: dict[PassageKey, PoolEntry] = {}
    for question in dict.fromkeys(row.question_id for row in rows):
        for system, run_answers in enumerate(answers):
            add_ranking(ranked_entries, question, system, len(runs), run_answers[question_names[question]], k)
    keys: list[PassageKey] = [(row.question_id, row.chunk_id, row.text_hash) for row in rows]
    relevances, unjudged = relevance(repair)
    unranked = PoolEntry([0] * len(runs))
    ranks = np.array([ranked_entries.get(key, unranked).ranks for key in keys], dtype=np.intp).reshape(-1, len(runs)).T
    return _PooledRankings(
        rows=rows,
        names=[question_names[row.question_id] for row in rows],
        pool=replace(load_pool(repair, rows), ranks=ranks, k=k),
        draw=load_draw(rows),
        rated=np.array([relevances.get(row.pk, np.nan) for row in rows]),
        cannot=sum(row.pk in unjudged for row in rows),
        unrated=sum(row.label is None and row.pk not in relevances for row in rows),
        outside=len(ranked_entries.keys() - set(keys)),
    )
