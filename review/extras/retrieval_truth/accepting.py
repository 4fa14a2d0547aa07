"""Taking the labels of a repair over into a new version of the question set, and correcting runs on that version as
long as the pool is not rated as a whole."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.files.question_rows import QuestionFile
from evaluation.models import QuestionSet, Run, User
from evaluation.questions.importing import import_question_set
from evaluation.work.plugins import CorrectedRetrieval, RetrievalFigure
from review.extras.retrieval_truth.pooling import NOT_RELEVANT, Key, Pooled, add_ranking, ranked_answers
from review.extras.retrieval_truth.results import by_labels, draw_of, pool_of, relevance
from review.models import AcceptedLabels, RetrievalRepair
from review.statistics.retrieval_truth.estimating import estimate

REPAIRED = "retrieval_truth"  # in a set's metadata: the repair its labels come from, and what it left unrated


@transaction.atomic
def accept_labels(found: RetrievalRepair, *, by: User) -> AcceptedLabels:
    """Make the next version of the question set, whose questions name the passages that experts rated as relevant too
    (those with a mean above a half, and a chunk id). What they rated as not relevant is kept beside it, so that a later
    repair does not ask again. The version says which repair it comes from and how many passages of the pool nobody
    rated: as long as there are any, runs on it are corrected by :func:`corrected_retrieval`.

    :raises Refused: ``newer_question_set`` when the set has a version the repair was not made from; ``no_new_labels``
        when nobody found a further relevant passage with an id.
    """
    source = QuestionSet.objects.get(pk=found.question_set_id)
    if QuestionSet.objects.filter(project=source.project_id, name=source.name, version__gt=source.version).exists():
        raise Refused("newer_question_set", set=str(source))
    known, _ = relevance(found)
    fresh: dict[bool, dict[int, list[str]]] = {True: defaultdict(list), False: defaultdict(list)}
    for passage in found.passages.filter(pk__in=known).exclude(chunk_id="").order_by("pk").defer("text"):
        fresh[known[passage.pk] > 0.5][passage.question_id].append(passage.chunk_id)
    count = sum(map(len, fresh[True].values()))
    if not count:
        raise Refused("no_new_labels")
    unrated = found.passages.filter(label=None).exclude(pk__in=known).count()
    about = {"repair": found.pk, "name": found.name, "unrated": unrated, "rated": len(known)}
    made = import_question_set(source.project, source.name, _file(source, fresh, about), by=by).question_set
    audit.record(by, "repair_accepted", found, question_set=made.pk, relevant=count, unrated=unrated)
    return AcceptedLabels.objects.create(
        repair=found, question_set=made, relevant=count, unrated=unrated, created_by=by
    )


def _file(source: QuestionSet, fresh: dict[bool, dict[int, list[str]]], about: dict[str, Any]) -> QuestionFile:
    specs, metadata = [], {}
    for question in source.questions.order_by("position"):
        spec, kept = question.read(), dict(question.metadata)
        relevant = dict.fromkeys([*spec.ground_truth_chunk_ids, *fresh[True][question.pk]])
        specs.append(spec.model_copy(update={"ground_truth_chunk_ids": tuple(relevant)}))
        refused = dict.fromkeys([*kept.get(NOT_RELEVANT, []), *fresh[False][question.pk]])
        if refused:
            kept[NOT_RELEVANT] = list(refused)
        metadata[spec.id] = kept
    return QuestionFile(
        questions=tuple(specs),
        lines={},
        metadata=metadata,
        set_metadata=source.metadata | {REPAIRED: about},
        metadata_keys=(),
        remarks=(),
        format="repair",
        encoding="utf-8",
    )


OUTSIDE = "outside_pool"


def corrected_retrieval(run: Run) -> CorrectedRetrieval | None:
    """Precision, recall and nDCG of a run over a version that took labels over while passages of the pool were unrated:
    the repair's stored guesses, probabilities and ratings under this run's own ranking. ``None`` for other runs.

    Withheld where the run retrieved passages that are not in the pool (``outside_pool``): of those nothing was drawn.
    """
    version = run.answer_set.question_set
    made = AcceptedLabels.objects.filter(question_set=version, unrated__gt=0) if REPAIRED in version.metadata else None
    accepted = made.select_related("repair").order_by("pk").last() if made is not None else None
    if accepted is None:
        return None
    found, truth = accepted.repair, {}
    columns = ("external_id", "pk", "spec__ground_truth_chunk_ids")
    for name, pk, ids in version.questions.values_list(*columns):
        truth[name] = (pk, set(ids or ()))
    names = dict(QuestionSet.objects.get(pk=found.question_set_id).questions.values_list("pk", "external_id"))
    answers, k = ranked_answers(run), min(found.k, run.answer_set.k)
    answered = [pk for pk, name in names.items() if name in truth and truth[name][0] in answers]
    rows = list(found.passages.filter(question__in=answered).order_by("pk").defer("text"))
    own: dict[Key, Pooled] = {}
    for question in dict.fromkeys(row.question_id for row in rows):
        add_ranking(own, question, 0, 1, answers[truth[names[question]][0]], k)
    keys: list[Key] = [(row.question_id, row.chunk_id, row.text_hash) for row in rows]
    known, unjudged = relevance(found)
    rated = np.array([known.get(row.pk, np.nan) for row in rows])
    ranks = np.array([[own[key].ranks[0] if key in own else 0 for key in keys]], dtype=np.intp)
    pool = replace(pool_of(found, rows), ranks=ranks, k=k)
    labels = np.array([float(row.chunk_id in truth[names[row.question_id]][1]) for row in rows])
    told = estimate(pool, draw_of(rows), rated, cannot=sum(row.pk in unjudged for row in rows))
    outside = len(own.keys() - set(keys))
    shown = [
        RetrievalFigure(one.metric.value, float(alone), None, None, None, OUTSIDE)
        if outside
        else RetrievalFigure(one.metric.value, float(alone), one.value, one.low, one.high, one.withheld or "")
        for one, alone in zip(told.figures, by_labels(pool, labels), strict=True)
    ]
    unrated = sum(row.label is None and row.pk not in known for row in rows)
    return CorrectedRetrieval(found.pk, found.name, k, told.questions, unrated, outside, tuple(shown))
