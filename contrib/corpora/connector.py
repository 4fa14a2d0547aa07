"""Reference system: retrieves passages of a corpus and answers with a chat model or, without an endpoint, by quoting.

It serves as an example and as a baseline."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from contrib.corpora.corpus_search import open_corpus_search
from evaluation.connectors.chat import ChatSettings, ChatSystem, checked_base_url
from evaluation.connectors.protocol import (
    RETRIEVAL_ONLY,
    Connector,
    OperatorPolicy,
    SystemAnswer,
    SystemCall,
    SystemClient,
    SystemReply,
)
from evaluation.core.errors import DomainError
from evaluation.core.samples import AnswerSpec, ContextSpec
from evaluation.metrics.normalise import content_tokens, is_hangul, sentences
from evaluation.network.outcomes import Outcome

_PROMPT = (
    "Answer the question from the numbered passages alone, in the language of the question. Behind each statement name "
    "the passages it rests on by their numbers in brackets, such as [1]. If the passages do not hold the answer, say "
    "that you do not know."
)
# Sentences of an answer without a chat model.
_QUOTED_SENTENCES = 2
_ABSTENTIONS = {False: "The documents hold nothing about this.", True: "문서에서 관련 내용을 찾을 수 없습니다."}


class CorpusSettings(ChatSettings):
    """Corpus, retriever, and the optional chat model that answers."""

    corpus: str = Field(min_length=3, max_length=220, pattern=r"@\d+$", description="NAME@VERSION of a corpus.")
    retriever: Literal["words", "vectors", "both"] = Field(default="words", description="Retrieval method.")
    embeddings: str = Field(default="local", max_length=200, description="Embedding endpoint, or local.")
    base_url: str = Field(default="", max_length=300, description="https://host/v1; empty: quote without a model.")
    model: str = Field(default="", max_length=200, description="Name of the model at the endpoint.")
    system_prompt: str = Field(default=_PROMPT, max_length=20_000, description="System prompt.")

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, address: str) -> str:
        return checked_base_url(address) if address else ""

    @model_validator(mode="after")
    def _check_endpoint(self) -> Self:
        if bool(self.base_url) != bool(self.model):
            raise PydanticCustomError("endpoint_missing", "set both base_url and model, or neither")
        return self


class CorpusSystem(SystemClient):
    """Searches a corpus and answers from the passages."""

    def __init__(self, settings: CorpusSettings, policy: OperatorPolicy) -> None:
        if policy.project is None:
            raise DomainError("corpus_unknown", corpus=settings.corpus)
        self._corpus = open_corpus_search(policy.project, settings.corpus, settings.retriever, settings.embeddings)
        self._settings = settings
        self._model = ChatSystem(settings, policy) if settings.base_url else None
        self.deadline = settings.timeout_seconds

    def prepare(self) -> None:
        self._corpus.prepare()

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """Describe the search; the request to the model depends on its hits."""
        search = {"corpus": self._settings.corpus, "retriever": self._settings.retriever, "k": call.k}
        return {**search, "question": call.question.text, "model": self._settings.model or None}

    async def ask(self, call: SystemCall) -> SystemReply:
        """Return the best passages and an answer from them, or an abstention if no passage shares a word with the
        question.

        :raises AskFailed: if the question cannot be embedded, or the model gave no answer."""
        passages = await asyncio.to_thread(self._corpus.search, call.question.text, call.k)
        ids = tuple(passage.chunk_id for passage in passages)
        if call.evaluation_type == RETRIEVAL_ONLY:
            return SystemReply(Outcome.OK, content=SystemAnswer(AnswerSpec("", passages, ids)))
        if self._model is None or not passages:
            text = (
                quote_sentences(call.question.text, passages)
                if passages
                else _ABSTENTIONS[any(map(is_hangul, call.question.text))]
            )
            return SystemReply(Outcome.OK, content=SystemAnswer(AnswerSpec(text, passages, ids)))
        question = call.question.model_copy(update={"text": build_prompt(call.question.text, passages)})
        reply = await self._model.ask(replace(call, question=question))
        if reply.content is None:
            return reply
        answer = replace(reply.content.answer, contexts=passages, retrieved_ids=ids)
        return replace(reply, content=replace(reply.content, answer=answer))

    async def __aenter__(self) -> Self:
        if self._model is not None:
            await self._model.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._model is not None:
            await self._model.__aexit__(*error)


def build_prompt(question: str, passages: Sequence[ContextSpec]) -> str:
    """Build the prompt: the numbered passages, then the question."""
    numbered = "\n\n".join(f"[{number}] {passage.text}" for number, passage in enumerate(passages, 1))
    return f"{numbered}\n\nQuestion: {question}"


def quote_sentences(question: str, passages: Sequence[ContextSpec]) -> str:
    """Quote the two sentences that share most words with the question, in passage order, with their passage numbers."""
    question_words = frozenset(content_tokens(question))
    candidates = [
        (
            len(question_words.intersection(content_tokens(passage.text[start:end]))),
            number,
            start,
            passage.text[start:end].strip(),
        )
        for number, passage in enumerate(passages, 1)
        for start, end in sentences(passage.text)
    ]
    best = sorted(candidates, key=lambda candidate: (-candidate[0], candidate[1], candidate[2]))[:_QUOTED_SENTENCES]
    return " ".join(f"{text} [{number}]" for _, number, _, text in sorted(best, key=lambda candidate: candidate[1:3]))


CORPUS = Connector("corpus", CorpusSettings, CorpusSystem)
