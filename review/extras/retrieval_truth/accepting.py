"""Taking the labels of a repair over into a new version of the question set."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.files.question_rows import QuestionFile
from evaluation.models import QuestionSet, User
from evaluation.questions.importing import import_question_set
from review.extras.retrieval_truth.pooling import NOT_RELEVANT
from review.extras.retrieval_truth.results import relevance
from review.models import AcceptedLabels, RetrievalRepair

REPAIRED = "retrieval_truth"  # in a set's metadata: the repair its labels come from, and what it left unrated


@transaction.atomic
def accept_labels(found: RetrievalRepair, *, by: User) -> AcceptedLabels:
    """Make the next version of the question set, whose questions name the passages that experts rated as relevant too
    (those with a mean above a half, and a chunk id). What they rated as not relevant is kept beside it, so that a later
    repair does not ask again. The version says which repair it comes from and how many passages of the pool nobody
    rated: as long as there are any, its own figures are about known labels, and the repair's about the pool.

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
