"""Actions on generated questions: plan and start a generation, decide on questions, create the question set."""

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
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftDecision, DraftQuestion, Generation, GenerationResult
from contrib.generation.prompts import GenerationRequests, writer_version
from contrib.generation.runner import DISTRACTORS, write_questions
from contrib.generation.selectors import latest_decision
from contrib.generation.slots import distinct_passages, eligible_passages
from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import clean_name
from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.importing import Imported, import_question_set
from evaluation.formats.question_rows import QuestionFile
from evaluation.judges.prices import price_table
from evaluation.judging.calls import JudgeReply, ResponseFormat
from evaluation.models import JudgeVersion, User
from evaluation.network.outcomes import Outcome
from evaluation.runs.budgets import check_budget
from evaluation.runs.planning import BYTES_PER_TOKEN, DEFAULT_REPLY_TOKENS, JudgeCalls, Plan
from evaluation.worker.lifecycle import RunConfig

MAX_PASSAGES = 1_000
MAX_PER_PASSAGE = 10
# Passages whose length is measured for the plan.
_MEASURED_PASSAGES = 20
Verb = DraftDecision.Verb


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """Fields of a ``Generation`` to create. Without ``seed`` a random one is used."""

    name: str
    language: str
    kinds: tuple[str, ...] = tuple(KINDS)
    passages: int = 20
    per_passage: int = 1
    seed: int | None = None
    budget: Decimal | None = None


def _validate(corpus: Corpus, judge: JudgeVersion, spec: GenerationSpec) -> list[Chunk]:
    """Validate the spec; return the passages that questions can be about."""
    if judge.is_baseline or judge.is_jury:
        raise DomainError("generation_of_baseline")
    if unknown := [kind for kind in spec.kinds if kind not in KINDS]:
        raise UnknownName("kind of question", unknown[0], list(KINDS))
    if spec.language not in Generation.Language.values:
        raise UnknownName("language", spec.language, list(Generation.Language.values))
    if not spec.kinds or not 1 <= spec.passages <= MAX_PASSAGES or not 1 <= spec.per_passage <= MAX_PER_PASSAGE:
        raise DomainError("generation_size", passages=MAX_PASSAGES, questions=MAX_PER_PASSAGE)
    clean_name(spec.name)
    check_budget(spec.budget, [judge], RunConfig())
    if not (chunks := eligible_passages(distinct_passages(corpus).values())):
        raise DomainError("generation_nothing_to_ask", corpus=str(corpus))
    return chunks


def plan_generation(corpus: Corpus, judge: JudgeVersion, spec: GenerationSpec) -> Plan:
    """Estimate the maximum effort from the length of real passages: a call for each passage and two checks for each
    question.

    :raises DomainError: see :func:`open_generation`."""
    chunks = _validate(corpus, judge, spec)
    passages = min(spec.passages, len(chunks))
    mean_tokens = (
        sum(len(chunk.text.encode()) for chunk in chunks[:_MEASURED_PASSAGES])
        / len(chunks[:_MEASURED_PASSAGES])
        / BYTES_PER_TOKEN
    )
    requests = GenerationRequests(judge.model, judge.parameters, ResponseFormat.JSON_SCHEMA)
    empty_calls = [
        requests.writing_call(KINDS[spec.kinds[0]], [], spec.language, 1),
        requests.locating_call("-", []),
        requests.closed_book_call("-"),
    ]
    write_tokens, locate_tokens, closed_book_tokens = (call.characters / BYTES_PER_TOKEN for call in empty_calls)
    passages_per_question = sum(KINDS[kind].passages for kind in spec.kinds) / len(spec.kinds)
    questions = passages * spec.per_passage
    tokens_in = round(
        passages * (write_tokens + passages_per_question * mean_tokens)
        + questions * (locate_tokens + (passages_per_question + DISTRACTORS) * mean_tokens + closed_book_tokens)
    )
    tokens_out = passages * DEFAULT_REPLY_TOKENS * spec.per_passage + 2 * questions * DEFAULT_REPLY_TOKENS // 3
    price = price_table().price(judge.model, datetime.now(UTC).date())
    usage = JudgeReply(outcome=Outcome.OK, tokens_in=tokens_in, tokens_out=tokens_out)
    calls = passages + 2 * questions
    judge_calls = JudgeCalls(
        judge=str(judge),
        rubric=spec.name,
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        measured=False,
        cost=price.cost(usage) if price else None,
        seconds=None,
    )
    return Plan(units=calls, answers=0, questions=0, calls=calls, paid=(judge_calls,), asking_seconds=None)


@transaction.atomic
def open_generation(corpus: Corpus, judge: JudgeVersion, spec: GenerationSpec, *, by: User | None) -> Generation:
    """Create a generation, or return the unfinished one with the same spec.

    :raises DomainError: ``generation_of_baseline`` for a judge without a model; ``generation_size``;
        ``generation_nothing_to_ask``; ``bad_name``; see :func:`check_budget`.
    :raises UnknownName: for an unknown kind or language."""
    lock_project(corpus.project_id)
    _validate(corpus, judge, spec)
    fields: dict[str, Any] = {
        "corpus": corpus,
        "judge_version": judge,
        "name": clean_name(spec.name),
        "language": spec.language,
        "kinds": list(spec.kinds),
        "passages": spec.passages,
        "per_passage": spec.per_passage,
        "budget": spec.budget,
        "writer": writer_version(judge),
    }
    filters = {name: value for name, value in fields.items() if name != "kinds"}
    if spec.seed is not None:
        filters["seed"] = spec.seed
    for existing in Generation.objects.filter(result=None, **filters).order_by("-pk"):
        if existing.kinds == fields["kinds"]:
            return existing
    seed = secrets.randbelow(2**31) if spec.seed is None else spec.seed
    generation = Generation.objects.create(created_by=by, seed=seed, **fields)
    write_questions.add(generation.pk)
    audit.record(by, "generation.opened", generation, corpus=corpus.content_hash, writer=generation.writer, seed=seed)
    return generation


def edit_content(draft: DraftQuestion, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a question's content with changed ``text``, ``references``, ``keywords`` or ``required_info``.

    :raises DomainError: ``draft_invalid``, ``draft_empty`` if the result is no question."""
    try:
        spec = QuestionSpec.model_validate({"id": "-", **draft.content, **fields})
    except ValidationError as error:
        raise DomainError("draft_invalid", error=error.errors()[0]["msg"]) from error
    if not spec.text.strip() or not any(reference.strip() for reference in spec.references):
        raise DomainError("draft_empty")
    return spec.model_dump(mode="json", exclude={"id"})


@transaction.atomic
def decide(draft: DraftQuestion, verb: str, *, by: User, content: dict[str, Any] | None = None) -> DraftDecision:
    """Accept a question, optionally with edited ``content`` (see :func:`edit_content`), or reject it.

    The latest decision counts. Questions removed by a filter can be accepted too.

    :raises DomainError: ``generation_under_way`` before the generation has ended."""
    lock_project(draft.generation.corpus.project_id)
    if not GenerationResult.objects.filter(generation=draft.generation_id).exists():
        raise DomainError("generation_under_way")
    content = None if content == draft.content or verb != Verb.ACCEPTED else content
    seq = (draft.decisions.aggregate(last=Max("seq"))["last"] or 0) + 1
    decision = DraftDecision.objects.create(draft=draft, seq=seq, verb=verb, content=content, created_by=by)
    audit.record(by, f"draft_question.{verb}", draft, edited=content is not None)
    return decision


def accepted_questions(drafts: Sequence[DraftQuestion]) -> list[QuestionSpec]:
    """Return the accepted questions in their edited form, with ids from kind and number."""
    questions, numbers = list[QuestionSpec](), dict[str, int]()
    for draft in drafts:
        decision = latest_decision(draft)
        if decision is None or decision.verb != Verb.ACCEPTED:
            continue
        number = numbers[draft.kind] = numbers.get(draft.kind, 0) + 1
        content = decision.content or draft.content
        questions.append(QuestionSpec.model_validate({**content, "id": f"{draft.kind}-{number:03}"}))
    return questions


def create_question_set(generation: Generation, *, by: User) -> Imported:
    """Create a version of the question set from the accepted questions.

    Each question carries the tag "synthetic" as part of its content.

    :raises DomainError: ``generation_nothing_accepted``."""
    drafts = generation.drafts.prefetch_related("decisions")
    questions = accepted_questions(list(drafts))
    if not questions:
        raise DomainError("generation_nothing_accepted")
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
    imported = import_question_set(generation.corpus.project, generation.name, file, by=by)
    audit.record(
        by, "generation.set_made", generation, set=imported.question_set.content_hash, questions=len(questions)
    )
    return imported
