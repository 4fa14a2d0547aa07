"""From a system's reply to an answer: JMESPath expressions say where each part stands. The reply is hostile: every part
is checked for type, range and size, and what does not fit is a failure with the place it was looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from evaluation.connectors.protocol import RETRIEVAL_ONLY, AskFailed, SystemCall, Told
from evaluation.core.canonical import composed
from evaluation.core.samples import VALUE_BOUND, AnswerSpec, ContextSpec, FrozenModel
from evaluation.network.outcomes import MOST_TOKENS, read_count, storable

LONGEST_TEXT = 1_000_000  # characters of an answer or passage, as in files
LONGEST_NAME = 300  # characters of a passage's id
MOST_CONTEXTS = 1_000
MOST_METADATA = 100_000  # characters of what is kept beside the answer
LONGEST_LATENCY = 86_400.0
Find = Callable[[str], Any]


def _compiled(expression: str) -> str:
    if expression.strip():
        try:
            jmespath.compile(expression)
        except JMESPathError as error:
            told = {"detail": str(error).splitlines()[0][:200]}
            raise PydanticCustomError("expression_invalid", "no JMESPath expression: {detail}", told) from error
    return expression.strip()


Expression = Annotated[str, Field(max_length=500), AfterValidator(_compiled)]


class ReplyMapping(FrozenModel):
    """Where each part of the answer stands in the reply, as JMESPath; empty where the reply does not have it.

    ``contexts`` gives a list: texts, or objects of which ``context_text``, ``context_id``, ``context_score`` and
    ``context_source`` tell the parts. Null contexts say that the system does not retrieve, ``[]`` that it found
    nothing.
    """

    answer: Expression = Field(default="answer", description="The answer's text.")
    contexts: Expression = Field(default="contexts", description="The passages that were retrieved, in their order.")
    context_text: Expression = Field(default="text || content", description="Of a passage: its text.")
    context_id: Expression = Field(default="id || chunk_id || doc_id", description="Of a passage: its id.")
    context_score: Expression = Field(default="score", description="Of a passage: how well it fits.")
    context_source: Expression = Field(default="source", description="Of a passage: where it is from.")
    retrieved_ids: Expression = Field(default="", description="Ids of the passages, where the reply lists them apart.")
    confidence: Expression = Field(default="", description="How sure the system is of its answer.")
    latency_seconds: Expression = Field(default="", description="Seconds it took; measured where it is empty.")
    tokens_in: Expression = Field(default="", description="Tokens of the prompt.")
    tokens_out: Expression = Field(default="", description="Tokens of the answer.")
    model: Expression = Field(default="", description="The model that answered.")
    error: Expression = Field(default="", description="A text that says why there is no answer.")
    metadata: Expression = Field(default="", description="What else to keep: an object.")

    def read(self, find: Find, call: SystemCall) -> Told:
        """The answer that the reply holds; ``find`` gives the value of an expression in it.

        :raises AskFailed: ``system_error`` where it reports one, ``no_answer``, ``empty``, and ``wrong_content`` for
            what has another type, range or size than it should.
        """
        error = find(self.error) if self.error else None
        if error not in (None, "", False):
            raise AskFailed("system_error", detail=storable(str(error)))
        answer = AnswerSpec(
            text=self._text(find(self.answer) if self.answer else None, call),
            contexts=self._contexts(find(self.contexts) if self.contexts else None),
            retrieved_ids=_ids(find(self.retrieved_ids) if self.retrieved_ids else None, self.retrieved_ids),
            latency_seconds=self._number(find, "latency_seconds", 0.0, LONGEST_LATENCY),
        )
        if call.evaluation_type == RETRIEVAL_ONLY and answer.contexts is None and answer.retrieved_ids is None:
            raise AskFailed("no_passages", detail=f"nothing at “{self.contexts or self.retrieved_ids}”")
        return Told(
            answer,
            confidence=self._number(find, "confidence", -VALUE_BOUND, VALUE_BOUND),
            tokens_in=read_count(find(self.tokens_in), MOST_TOKENS) if self.tokens_in else None,
            tokens_out=read_count(find(self.tokens_out), MOST_TOKENS) if self.tokens_out else None,
            model=_named(find(self.model)) if self.model else "",
            metadata=_metadata(find(self.metadata), self.metadata) if self.metadata else {},
        )

    def _text(self, value: Any, call: SystemCall) -> str:
        if call.evaluation_type == RETRIEVAL_ONLY and value is None:
            return ""
        if value is None:
            raise AskFailed("no_answer", detail=f"nothing at “{self.answer}”")
        text = _written(value, self.answer)
        if not text.strip() and call.evaluation_type != RETRIEVAL_ONLY:
            raise AskFailed("empty", detail=f"at “{self.answer}”")
        return text

    def _contexts(self, value: Any) -> tuple[ContextSpec, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            raise AskFailed("wrong_content", detail=f"no list at “{self.contexts}”")
        if len(value) > MOST_CONTEXTS:
            raise AskFailed("too_large", detail=f"{len(value)} passages at “{self.contexts}”")
        return tuple(self._context(item, f"{self.contexts}[{place}]") for place, item in enumerate(value))

    def _context(self, item: Any, place: str) -> ContextSpec:
        if isinstance(item, str):
            return ContextSpec(_written(item, place))
        if not isinstance(item, dict):
            raise AskFailed("wrong_content", detail=f"neither a text nor an object at “{place}”")
        found = {name: searched(expression, item) if expression else None for name, expression in self._parts()}
        text, chunk_id = found["text"], _named(found["id"])
        score = found["score"]
        if score is not None:
            score = _in_range(score, f"{place}.{self.context_score}", -VALUE_BOUND, VALUE_BOUND)
        if not chunk_id and not (isinstance(text, str) and text.strip()):
            raise AskFailed("wrong_content", detail=f"neither text nor id at “{place}”")
        text = "" if text is None else _written(text, f"{place}.{self.context_text}")
        kept = {key: value for key, value in item.items() if value != found["text"] and isinstance(value, str | int)}
        return ContextSpec(text, chunk_id, score, _named(found["source"]), _metadata(kept, place))

    def _parts(self) -> tuple[tuple[str, str], ...]:
        return (
            ("text", self.context_text),
            ("id", self.context_id),
            ("score", self.context_score),
            ("source", self.context_source),
        )

    def _number(self, find: Find, name: str, low: float, high: float) -> float | None:
        expression: str = getattr(self, name)
        value = find(expression) if expression else None
        return None if value is None else _in_range(value, expression, low, high)


def searched(expression: str, value: Any) -> Any:
    """What the expression finds in a value; nothing where the reply does not have the form it needs."""
    try:
        return jmespath.search(expression, value)
    except (JMESPathError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _in_range(value: Any, place: str, low: float, high: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value < high:
        raise AskFailed("wrong_content", detail=f"no number in range at “{place}”")
    return float(value)


def _written(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise AskFailed("wrong_content", detail=f"no text at “{place}”")
    if len(value) > LONGEST_TEXT:
        raise AskFailed("too_large", detail=f"{len(value)} characters at “{place}”")
    return storable(value)


def _named(value: Any) -> str:
    """A name such as an id, composed (NFC), which may be a whole number."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return composed(storable(str(value)).strip())[:LONGEST_NAME]


def _ids(value: Any, place: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MOST_CONTEXTS:
        raise AskFailed("wrong_content", detail=f"no list of ids at “{place}”")
    return tuple(name for one in value if (name := _named(one)))


def _metadata(value: Any, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise AskFailed("wrong_content", detail=f"no object at “{place}”")
    if _size(value) > MOST_METADATA:
        raise AskFailed("too_large", detail=f"what is to be kept at “{place}”")
    return {storable(str(key)): _kept(one) for key, one in value.items()}


def _kept(value: Any) -> Any:
    """A JSON value that both databases can store."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_kept(one) for one in value]
    return {storable(str(k)): _kept(v) for k, v in value.items()} if isinstance(value, dict) else value


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(str(key)) + _size(one) for key, one in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else len(str(value))
