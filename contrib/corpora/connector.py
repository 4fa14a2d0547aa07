"""The reference system: retrieves passages of a corpus that Concord holds, and answers from them by a chat model, or,
without an endpoint, by quoting. Something to begin with, and a baseline to be better than.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from contrib.corpora.retrieving import corpus_search
from evaluation.connectors.chat import ChatSettings, ChatSystem, plain_address
from evaluation.connectors.protocol import (
    RETRIEVAL_ONLY,
    Connector,
    Surroundings,
    SystemCall,
    SystemClient,
    SystemReply,
    Told,
)
from evaluation.core.errors import Refused
from evaluation.core.samples import AnswerSpec, ContextSpec
from evaluation.metrics.normalise import content_tokens, is_hangul, sentences
from evaluation.network.outcomes import Outcome

_PROMPT = (
    "Answer the question from the numbered passages alone, in the language of the question. Behind each statement name "
    "the passages it rests on by their numbers in brackets, such as [1]. If the passages do not hold the answer, say "
    "that you do not know."
)
_QUOTED = 2  # sentences
_ABSTAINS = {False: "The documents hold nothing about this.", True: "문서에서 관련 내용을 찾을 수 없습니다."}


class CorpusSettings(ChatSettings):
    """Which corpus is searched how, and the chat model that answers, if there is one."""

    corpus: str = Field(min_length=3, max_length=220, pattern=r"@\d+$", description="NAME@VERSION of a corpus.")
    retriever: Literal["words", "vectors", "both"] = Field(default="words", description="What passages are found by.")
    embeddings: str = Field(default="local", max_length=200, description="Endpoint that embeds, or local.")
    base_url: str = Field(default="", max_length=300, description="https://host/v1; empty: quotes, asks no model.")
    model: str = Field(default="", max_length=200, description="The model's name at the endpoint.")
    system_prompt: str = Field(default=_PROMPT, max_length=20_000, description="What the model is told before.")

    @field_validator("base_url")
    @classmethod
    def _plain(cls, address: str) -> str:
        return plain_address(address) if address else ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.base_url) != bool(self.model):
            raise PydanticCustomError("endpoint_missing", "base_url and model belong together")
        return self


class CorpusSystem(SystemClient):
    """Searches a corpus, and answers from what it found."""

    def __init__(self, settings: CorpusSettings, around: Surroundings) -> None:
        if around.project is None:
            raise Refused("corpus_unknown", corpus=settings.corpus)
        self._corpus = corpus_search(around.project, settings.corpus, settings.retriever, settings.embeddings)
        self._settings = settings
        self._model = ChatSystem(settings, around) if settings.base_url else None
        self.deadline = settings.timeout_seconds

    def prepare(self) -> None:
        """Index the corpus."""
        self._corpus.prepare()

    def describe(self, call: SystemCall) -> Mapping[str, Any]:
        """The search; what the model is sent depends on what it finds."""
        told = {"corpus": self._settings.corpus, "retriever": self._settings.retriever, "k": call.k}
        return {**told, "question": call.question.text, "model": self._settings.model or None}

    async def ask(self, call: SystemCall) -> SystemReply:
        """The best passages, and an answer from them; where none shares a word with the question it says so.

        :raises AskFailed: where the question could not be embedded, or the model gave no answer.
        """
        found = await asyncio.to_thread(self._corpus.search, call.question.text, call.k)
        ids = tuple(one.chunk_id for one in found)
        if call.evaluation_type == RETRIEVAL_ONLY:
            return SystemReply(Outcome.OK, told=Told(AnswerSpec("", found, ids)))
        if self._model is None or not found:
            text = quoted(call.question.text, found) if found else _ABSTAINS[any(map(is_hangul, call.question.text))]
            return SystemReply(Outcome.OK, told=Told(AnswerSpec(text, found, ids)))
        asked = call.question.model_copy(update={"text": prompted(call.question.text, found)})
        reply = await self._model.ask(replace(call, question=asked))
        if reply.told is None:
            return reply
        answer = replace(reply.told.answer, contexts=found, retrieved_ids=ids)
        return replace(reply, told=replace(reply.told, answer=answer))

    async def __aenter__(self) -> Self:
        if self._model is not None:
            await self._model.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._model is not None:
            await self._model.__aexit__(*error)


def prompted(question: str, passages: Sequence[ContextSpec]) -> str:
    """What the model is asked: the numbered passages, then the question."""
    numbered = "\n\n".join(f"[{number}] {one.text}" for number, one in enumerate(passages, 1))
    return f"{numbered}\n\nQuestion: {question}"


def quoted(question: str, passages: Sequence[ContextSpec]) -> str:
    """The two sentences of the passages that share most words with the question, in the order of the passages, each
    with the number of its passage."""
    asked = frozenset(content_tokens(question))
    told = [
        (len(asked.intersection(content_tokens(one.text[start:end]))), number, start, one.text[start:end].strip())
        for number, one in enumerate(passages, 1)
        for start, end in sentences(one.text)
    ]
    best = sorted(told, key=lambda one: (-one[0], one[1], one[2]))[:_QUOTED]
    return " ".join(f"{text} [{number}]" for _, number, _, text in sorted(best, key=lambda one: one[1:3]))


CORPUS = Connector("corpus", CorpusSettings, CorpusSystem)
