"""Questions whose relevant passages are carried over to another version of their corpus, as the next version of their
set. What nobody can find again is never dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass

from contrib.corpora.models import Corpus
from contrib.corpora.rechunking import Carried, carry
from evaluation.core.errors import Refused
from evaluation.datasets.importing import Imported, import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.models import QuestionSet, User

_NAMED = 5  # lost ids in a message


@dataclass(frozen=True, slots=True)
class CarriedSet:
    """The version of the set with the ids of the new corpus, and what became of them."""

    imported: Imported
    carried: Carried


def carry_questions(
    questions: QuestionSet, old: Corpus, new: Corpus, *, drop_lost: bool = False, by: User | None
) -> CarriedSet:
    """Make the version of the set that names the chunks of ``new`` wherever it named those of ``old``. Ids that ``old``
    does not have stay as they are: they may be of another corpus.

    :raises Refused: ``passages_lost`` where words of known passages are not in ``new``, unless ``drop_lost``;
        ``corpora_differ`` for corpora of two names; ``nothing_to_carry`` where no question names a chunk of ``old``.
    """
    if old.project_id != new.project_id or old.name != new.name:
        raise Refused("corpora_differ", old=str(old), new=str(new))
    rows = list(questions.questions.order_by("position"))
    specs = [row.read() for row in rows]
    found = carry({id_ for spec in specs for id_ in spec.ground_truth_chunk_ids}, old, new)
    if not found.chunks and not found.lost:
        raise Refused("nothing_to_carry", set=str(questions), corpus=str(old))
    if found.lost and not drop_lost:
        raise Refused("passages_lost", count=len(found.lost), ids=", ".join(found.lost[:_NAMED]), corpus=str(new))
    others = frozenset(found.unknown)
    carried = []
    for spec in specs:
        kept = (new_id for id_ in spec.ground_truth_chunk_ids for new_id in found.chunks.get(id_, _same(id_, others)))
        carried.append(spec.model_copy(update={"ground_truth_chunk_ids": tuple(dict.fromkeys(kept))}))
    file = QuestionFile(
        questions=tuple(carried),
        metadata={row.external_id: row.metadata for row in rows},
        set_metadata={**questions.metadata, "carried_to": str(new)},
        metadata_keys=(),
        remarks=(),
        format="",
        encoding="",
    )
    return CarriedSet(import_question_set(questions.project, questions.name, file, by=by), found)


def _same(id_: str, others: frozenset[str]) -> tuple[str, ...]:
    return (id_,) if id_ in others else ()
