"""Maps the relevant passages of a question set to another version of their corpus, as the set's next version.

Passages that cannot be found are never dropped silently."""

from __future__ import annotations

from dataclasses import dataclass

from contrib.corpora.chunk_mapping import ChunkMapping, map_chunks
from contrib.corpora.models import Corpus
from evaluation.core.errors import DomainError
from evaluation.datasets.importing import Imported, import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.models import QuestionSet, User

# Lost ids in a message.
_LISTED_IDS = 5


@dataclass(frozen=True, slots=True)
class CarriedSet:
    """The version of the set with the ids of the new corpus, and the mapping of ids."""

    imported: Imported
    mapping: ChunkMapping


def carry_questions(
    questions: QuestionSet, old: Corpus, new: Corpus, *, drop_lost: bool = False, by: User | None
) -> CarriedSet:
    """Create the version of the set that names the chunks of ``new`` instead of those of ``old``.

    Ids that ``old`` does not contain stay, because they may belong to another corpus.

    :raises DomainError: ``passages_lost`` if words of known passages are not in ``new``, unless ``drop_lost``;
        ``corpora_differ`` for corpora of two names; ``nothing_to_carry`` if no question names a chunk of ``old``."""
    if old.project_id != new.project_id or old.name != new.name:
        raise DomainError("corpora_differ", old=str(old), new=str(new))
    rows = list(questions.questions.order_by("position"))
    specs = [row.read() for row in rows]
    mapping = map_chunks({id_ for spec in specs for id_ in spec.ground_truth_chunk_ids}, old, new)
    if not mapping.chunks and not mapping.lost:
        raise DomainError("nothing_to_carry", set=str(questions), corpus=str(old))
    if mapping.lost and not drop_lost:
        raise DomainError(
            "passages_lost", count=len(mapping.lost), ids=", ".join(mapping.lost[:_LISTED_IDS]), corpus=str(new)
        )
    unknown_ids = frozenset(mapping.unknown)
    new_specs = []
    for spec in specs:
        new_ids = (
            new_id
            for id_ in spec.ground_truth_chunk_ids
            for new_id in mapping.chunks.get(id_, _unchanged(id_, unknown_ids))
        )
        new_specs.append(spec.model_copy(update={"ground_truth_chunk_ids": tuple(dict.fromkeys(new_ids))}))
    file = QuestionFile(
        questions=tuple(new_specs),
        metadata={row.external_id: row.metadata for row in rows},
        set_metadata={**questions.metadata, "carried_to": str(new)},
        metadata_keys=(),
        remarks=(),
        format="",
        encoding="",
    )
    return CarriedSet(import_question_set(questions.project, questions.name, file, by=by), mapping)


def _unchanged(id_: str, unknown_ids: frozenset[str]) -> tuple[str, ...]:
    return (id_,) if id_ in unknown_ids else ()
