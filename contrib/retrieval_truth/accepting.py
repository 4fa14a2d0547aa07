"""Taking the labels of a repair over into a new version of the question set, and correcting runs on that version as
long as the pool is not rated as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Q

from contrib.retrieval_truth.models import AcceptedLabels, PooledPassage, RetrievalRepair
from contrib.retrieval_truth.pooling import NOT_RELEVANT, Key, Pooled, add_ranking, ranked_answers
from contrib.retrieval_truth.rating import touch_corrected
from contrib.retrieval_truth.results import by_labels, draw_of, pool_of, relevance
from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.datasets.importing import import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.models import QuestionSet, Run, User
from review.reports.retrieval import CorrectedRetrieval, Repaired, RepairedRetrieval, RetrievalFigure
from review.statistics.agreement.statistic import Array
from review.statistics.retrieval_truth.drawing import PassageDraw
from review.statistics.retrieval_truth.estimating import estimate, for_questions_like_these
from review.statistics.retrieval_truth.pool import Metric, Pool

REPAIRED = "retrieval_truth"  # in a set's metadata: the repair its labels come from, and what it left unrated


@transaction.atomic
def accept_labels(found: RetrievalRepair, *, by: User) -> AcceptedLabels:
    """Make the next version of the question set, whose questions name the passages that experts rated as relevant too
    (those with a mean above a half, and a chunk id). What they rated as not relevant is kept beside it, so that a later
    repair does not ask again. The version says which repair it comes from and how many passages of the pool nobody
    rated: as long as there are any, runs on it are corrected by :func:`corrected_retrieval`, and runs on the version
    that the repair was made from always are. Ratings given afterwards make a further version when it is called again.

    :raises Refused: ``newer_question_set`` when the set has a version made neither from this repair nor before it;
        ``no_new_labels`` when there is no relevant passage with an id that a version does not have.
    """
    source = QuestionSet.objects.get(pk=found.question_set_id)
    versions = QuestionSet.objects.filter(project=source.project_id, name=source.name).order_by("version")
    later = versions.filter(version__gt=source.version)
    if later.exclude(pk__in=found.accepted.values("question_set")).exists():
        raise Refused("newer_question_set", set=str(source))
    known, _ = relevance(found)
    fresh: dict[bool, dict[int, list[str]]] = {True: defaultdict(list), False: defaultdict(list)}
    for passage in found.passages.filter(pk__in=known).exclude(chunk_id="").order_by("pk").defer("text"):
        fresh[known[passage.pk] > 0.5][passage.question_id].append(passage.chunk_id)
    count = sum(map(len, fresh[True].values()))
    unrated = found.passages.filter(label=None).exclude(pk__in=known).count()
    about = {"repair": found.pk, "name": found.name, "unrated": unrated, "rated": len(known)}
    file = _file(source, fresh, about)
    if {spec.id: set(spec.ground_truth_chunk_ids) for spec in file.questions} == _labels(later.last() or source):
        raise Refused("no_new_labels")
    version = import_question_set(source.project, source.name, file, by=by).question_set
    audit.record(by, "repair_accepted", found, question_set=version.pk, relevant=count, unrated=unrated)
    made = AcceptedLabels.objects.create(
        repair=found, question_set=version, relevant=count, unrated=unrated, created_by=by
    )
    touch_corrected(found)
    return made


def _labels(version: QuestionSet) -> dict[str, set[str]]:
    """The relevant passages that each question names."""
    rows = version.questions.values_list("external_id", "spec__ground_truth_chunk_ids")
    return {name: set(ids or ()) for name, ids in rows}


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
        metadata=metadata,
        set_metadata=source.metadata | {REPAIRED: about},
        metadata_keys=(),
        remarks=(),
        format="repair",
        encoding="utf-8",
    )


OUTSIDE, OTHER_K = "outside_pool", "other_k"


def corrected_retrieval(run: Run) -> CorrectedRetrieval | None:
    """Precision, recall and nDCG of a run over a version that took labels over while passages of the pool were unrated,
    or over the one they were found for: the repair's stored guesses, probabilities and ratings under this run's own
    ranking. ``None`` for other runs.

    Withheld where the run retrieved passages that are not in the pool (``outside_pool``): of those nothing was drawn.
    """
    version = run.answer_set.question_set
    if (found := _repair_of([version.pk])) is None:
        return None
    one = _in_pool(found, [run], min(found.k, run.answer_set.k))
    truth = _labels(version)
    labels = np.array([float(row.chunk_id in truth[name]) for row, name in zip(one.rows, one.names, strict=True)])
    told = estimate(one.pool, one.drawn, one.rated, cannot=one.cannot)
    shown = [
        RetrievalFigure(each.metric.value, float(alone), None, None, None, OUTSIDE)
        if one.outside
        else RetrievalFigure(each.metric.value, float(alone), each.value, each.low, each.high, each.withheld or "")
        for each, alone in zip(told.figures, by_labels(one.pool, labels), strict=True)
    ]
    return CorrectedRetrieval(
        found.pk, found.name, one.pool.k, told.questions, one.unrated, one.outside, tuple(shown),
        older=found.question_set_id == version.pk,
    )  # fmt: skip


def repaired_retrieval(runs: Sequence[Run]) -> RepairedRetrieval | None:
    """The same at the depth of the runs for questions like these, of one run or of the first minus the second, where
    one repair covers both. Withheld as above, and where the runs retrieved to different depths (``other_k``)."""
    sets, depths = {run.answer_set.question_set_id for run in runs}, {run.answer_set.k for run in runs}
    if (found := _repair_of(sets)) is None:
        return None
    one = _in_pool(found, runs, max(depths))
    groups = dict(runs[0].answer_set.question_set.questions.values_list("external_id", "group"))
    asked = [groups[name] or name for name in dict.fromkeys(one.names)]
    told = for_questions_like_these(one.pool, one.drawn, one.rated, asked, cannot=one.cannot)
    figures, why = {}, OTHER_K if len(depths) > 1 else OUTSIDE if one.outside else ""
    for metric in Metric:
        said = told[metric, 0, 1 if len(runs) > 1 else None]
        reason = why or (said if isinstance(said, str) else "")
        value, deviation = (None, None) if isinstance(said, str) or reason else said
        figures[metric.value] = Repaired(value, deviation, reason)
    least = 0.0 if len(runs) == 1 else -1.0
    return RepairedRetrieval(found.pk, found.name, one.pool.questions, one.unrated, least, figures)


def _repair_of(sets: Collection[int]) -> RetrievalRepair | None:
    """The repair accepted last that corrects runs over all of these versions. One query."""
    found = RetrievalRepair.objects.filter(accepted__isnull=False)
    for pk in sets:
        took = AcceptedLabels.objects.filter(question_set=pk)
        took = took.filter(unrated__gt=0) if len(sets) == 1 else took  # beside an older version labels differ anyway
        found = found.filter(Q(question_set=pk) | Q(pk__in=took.values("repair")))
    return found.order_by("-accepted__pk").first()


class _InPool(NamedTuple):
    """Rankings of runs in a repair's pool, over the questions of it that all of them answered; ``names`` are those of
    the rows' questions."""

    rows: list[PooledPassage]
    names: list[str]
    pool: Pool
    drawn: PassageDraw
    rated: Array
    cannot: int
    unrated: int
    outside: int


def _in_pool(found: RetrievalRepair, runs: Sequence[Run], k: int) -> _InPool:
    asked = dict(QuestionSet.objects.get(pk=found.question_set_id).questions.values_list("pk", "external_id"))
    answers = []
    for run in runs:
        names = dict(run.answer_set.question_set.questions.values_list("pk", "external_id"))
        answers.append({names[pk]: answer for pk, answer in ranked_answers(run).items()})
    answered = [pk for pk, name in asked.items() if all(name in one for one in answers)]
    rows = list(found.passages.filter(question__in=answered).order_by("pk").defer("text"))
    own: dict[Key, Pooled] = {}
    for question in dict.fromkeys(row.question_id for row in rows):
        for system, one in enumerate(answers):
            add_ranking(own, question, system, len(runs), one[asked[question]], k)
    keys: list[Key] = [(row.question_id, row.chunk_id, row.text_hash) for row in rows]
    known, unjudged = relevance(found)
    nowhere = Pooled([0] * len(runs))
    ranks = np.array([own.get(key, nowhere).ranks for key in keys], dtype=np.intp).reshape(-1, len(runs)).T
    return _InPool(
        rows=rows,
        names=[asked[row.question_id] for row in rows],
        pool=replace(pool_of(found, rows), ranks=ranks, k=k),
        drawn=draw_of(rows),
        rated=np.array([known.get(row.pk, np.nan) for row in rows]),
        cannot=sum(row.pk in unjudged for row in rows),
        unrated=sum(row.label is None and row.pk not in known for row in rows),
        outside=len(own.keys() - set(keys)),
    )
