"""What people do about generated questions: have them written, decide on each, make accepted ones a question set."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Max
from pydantic import ValidationError

from contrib.corpora.models import Chunk, Corpus
from contrib.generation.drawing import long_enough, passages_of
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftDecision, DraftQuestion, Generation, GenerationResult
from contrib.generation.prompts import Asking, writer_version
from contrib.generation.selectors import decided
from contrib.generation.working import OTHERS, write_questions
from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import clean_name
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.importing import Imported, import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.judges.prices import price_table
from evaluation.judging.calls import JudgeReply, Rung
from evaluation.models import JudgeVersion, User
from evaluation.network.outcomes import Outcome
from evaluation.runs.budgets import check_budget
from evaluation.runs.planning import BYTES_PER_TOKEN, SHORT_REPLY, JudgeCalls, Plan
from evaluation.worker.lifecycle import RunConfig

MOST_PASSAGES = 1_000
MOST_PER_PASSAGE = 10
_SAMPLE = 20  # passages whose prompts are made to measure how long they are
Verb = DraftDecision.Verb


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written: the fields of ``Generation``. Without ``seed`` one is drawn."""

    name: str
    language: str
    kinds: tuple[str, ...] = tuple(KINDS)
    passages: int = 20
    per_passage: int = 1
    seed: int | None = None
    budget: Decimal | None = None


def _checked(corpus: Corpus, judge: JudgeVersion, wanted: Wanted) -> list[Chunk]:
    """The passages that can be asked about."""
    if judge.is_baseline or judge.is_jury:
        raise Refused("generation_of_baseline")
    if unknown := [kind for kind in wanted.kinds if kind not in KINDS]:
        raise UnknownName("kind of question", unknown[0], list(KINDS))
    if wanted.language not in Generation.Language.values:
        raise UnknownName("language", wanted.language, list(Generation.Language.values))
    if not wanted.kinds or not 1 <= wanted.passages <= MOST_PASSAGES or not 1 <= wanted.per_passage <= MOST_PER_PASSAGE:
        raise Refused("generation_size", passages=MOST_PASSAGES, questions=MOST_PER_PASSAGE)
    clean_name(wanted.name)
    check_budget(wanted.budget, [judge], RunConfig())
    if not (chunks := long_enough(passages_of(corpus).values())):
        raise Refused("generation_nothing_to_ask", corpus=str(corpus))
    return chunks


def plan_of(corpus: Corpus, judge: JudgeVersion, wanted: Wanted) -> Plan:
    """What it takes at most: a call a passage, and two checks a question, by the length of real passages.

    :raises Refused: see :func:`open_generation`.
    """
    chunks = _checked(corpus, judge, wanted)
    passages = min(wanted.passages, len(chunks))
    mean = sum(len(chunk.text.encode()) for chunk in chunks[:_SAMPLE]) / len(chunks[:_SAMPLE]) / BYTES_PER_TOKEN
    asking = Asking(judge.model, judge.parameters, Rung.JSON_SCHEMA)
    empty = [
        asking.write(KINDS[wanted.kinds[0]], [], wanted.language, 1),
        asking.locate("-", []),
        asking.closed_book("-"),
    ]
    write, locate, closed = (call.characters / BYTES_PER_TOKEN for call in empty)
    each = sum(KINDS[kind].passages for kind in wanted.kinds) / len(wanted.kinds)
    questions = passages * wanted.per_passage
    tokens_in = round(passages * (write + each * mean) + questions * (locate + (each + OTHERS) * mean + closed))
    tokens_out = passages * SHORT_REPLY * wanted.per_passage + 2 * questions * SHORT_REPLY // 3
    price = price_table().price(judge.model, datetime.now(UTC).date())
    spent = JudgeReply(outcome=Outcome.OK, tokens_in=tokens_in, tokens_out=tokens_out)
    calls = passages + 2 * questions
    paid = JudgeCalls(
        judge=str(judge),
        rubric=wanted.name,
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        measured=False,
        cost=price.cost(spent) if price else None,
        seconds=None,
    )
    return Plan(units=calls, answers=0, questions=0, calls=calls, paid=(paid,), asking_seconds=None)


@transaction.atomic
def open_generation(corpus: Corpus, judge: JudgeVersion, wanted: Wanted, *, by: User | None) -> Generation:
    """The row of a generation, or the same one that has not ended.

    :raises Refused: ``generation_of_baseline`` for a judge that writes nothing; ``generation_size``;
        ``generation_nothing_to_ask``; ``bad_name``; see :func:`check_budget`.
    :raises UnknownName: for a kind or language there is not.
    """
    lock_project(corpus.project_id)
    _checked(corpus, judge, wanted)
    asked: dict[str, Any] = {
        "corpus": corpus,
        "judge_version": judge,
        "name": clean_name(wanted.name),
        "language": wanted.language,
        "kinds": list(wanted.kinds),
        "passages": wanted.passages,
        "per_passage": wanted.per_passage,
        "budget": wanted.budget,
        "writer": writer_version(judge),
    }
    same = {name: value for name, value in asked.items() if name != "kinds"}
    if wanted.seed is not None:
        same["seed"] = wanted.seed
    for one in Generation.objects.filter(result=None, **same).order_by("-pk"):
        if one.kinds == asked["kinds"]:
            return one
    seed = secrets.randbelow(2**31) if wanted.seed is None else wanted.seed
    made = Generation.objects.create(created_by=by, seed=seed, **asked)
    write_questions.add(made.pk)
    audit.record(by, "generation.opened", made, corpus=corpus.content_hash, writer=made.writer, seed=seed)
    return made


def edited(draft: DraftQuestion, fields: dict[str, Any]) -> dict[str, Any]:
    """The content of a question with other words: ``text``, ``references``, ``keywords`` and ``required_info``.

    :raises Refused: ``draft_invalid`` where that is no question.
    """
    try:
        spec = QuestionSpec.model_validate({"id": "-", **draft.content, **fields})
    except ValidationError as error:
        raise Refused("draft_invalid", error=error.errors()[0]["msg"]) from error
    if not spec.text.strip() or not any(one.strip() for one in spec.references):
        raise Refused("draft_empty")
    return spec.model_dump(mode="json", exclude={"id"})


@transaction.atomic
def decide(draft: DraftQuestion, verb: str, *, by: User, content: dict[str, Any] | None = None) -> DraftDecision:
    """Accept a question, as it is or with other words (``content`` of :func:`edited`), or reject it; the latest
    decision counts. A question that a filter took out can be accepted as well.

    :raises Refused: ``generation_under_way`` before its generation has ended.
    """
    lock_project(draft.generation.corpus.project_id)
    if not GenerationResult.objects.filter(generation=draft.generation_id).exists():
        raise Refused("generation_under_way")
    content = None if content == draft.content or verb != Verb.ACCEPTED else content
    seq = (draft.decisions.aggregate(last=Max("seq"))["last"] or 0) + 1
    made = DraftDecision.objects.create(draft=draft, seq=seq, verb=verb, content=content, created_by=by)
    audit.record(by, f"draft_question.{verb}", draft, edited=content is not None)
    return made


def accepted_questions(drafts: Sequence[DraftQuestion]) -> list[QuestionSpec]:
    """The accepted ones, as they were edited, with ids of their kind and number."""
    found, numbers = list[QuestionSpec](), dict[str, int]()
    for draft in drafts:
        decision = decided(draft)
        if decision is None or decision.verb != Verb.ACCEPTED:
            continue
        number = numbers[draft.kind] = numbers.get(draft.kind, 0) + 1
        content = decision.content or draft.content
        found.append(QuestionSpec.model_validate({**content, "id": f"{draft.kind}-{number:03}"}))
    return found


def make_set(generation: Generation, *, by: User) -> Imported:
    """A version of the question set of the generation's name with the accepted questions, marked as synthetic for good:
    the tag is part of their content.

    :raises Refused: ``generation_nothing_accepted``.
    """
    drafts = generation.drafts.prefetch_related("decisions")
    questions = accepted_questions(list(drafts))
    if not questions:
        raise Refused("generation_nothing_accepted")
    source = {
        "synthetic": True,
        "corpus": str(generation.corpus),
        "corpus_hash": generation.corpus.content_hash,
        "written_by": str(generation.judge_version),
        "generator_version": generation.writer,
        "generation": generation.pk,
    }
    file = QuestionFile(
        questions=tuple(questions),
        metadata={},
        set_metadata=source,
        metadata_keys=(),
        remarks=(),
        format="generated",
        encoding="utf-8",
    )
    made = import_question_set(generation.corpus.project, generation.name, file, by=by)
    audit.record(by, "generation.set_made", generation, set=made.question_set.content_hash, questions=len(questions))
    return made
