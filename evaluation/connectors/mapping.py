"""Map a system's reply to an answer with JMESPath expressions. Replies are untrusted: every part is checked for type,
range and size, and a failure names its path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from evaluation.connectors.protocol import RETRIEVAL_ONLY, AskFailed, SystemAnswer, SystemCall
from evaluation.core.canonical import normalize_nfc
from evaluation.core.samples import VALUE_BOUND, AnswerSpec, ContextSpec, FrozenModel
from evaluation.network.outcomes import MAX_TOKENS, read_count, replace_unstorable

# Characters of an answer or passage; the limit of files.
MAX_TEXT_CHARACTERS = 1_000_000
# Characters of a passage id.
MAX_NAME_CHARACTERS = 300
MAX_CONTEXTS = 1_000
# Characters of the stored metadata.
MAX_METADATA_CHARACTERS = 100_000
MAX_LATENCY_SECONDS = 86_400.0
Find = Callable[[str], Any]


def _check_expression(expression: str) -> str:
    if expression.strip():
        try:
            jmespath.compile(expression)
        except JMESPathError as error:
            params = {"detail": str(error).splitlines()[0][:200]}
            raise PydanticCustomError("expression_invalid", "not valid JMESPath: {detail}", params) from error
    return expression.strip()


Expression = Annotated[str, Field(max_length=500), AfterValidator(_check_expression)]


class ReplyMapping(FrozenModel):
    """JMESPath of each part of the answer; empty if the reply lacks it.

    ``contexts`` gives a list of texts, or of objects with ``context_text``, ``context_id``, ``context_score`` and
    ``context_source``. Null contexts: the system does not retrieve; ``[]``: it found nothing."""

    answer: Expression = Field(default="answer", description="Text of the answer.")
    contexts: Expression = Field(default="contexts", description="Retrieved passages, in order.")
    context_text: Expression = Field(default="text || content", description="Text of a passage.")
    context_id: Expression = Field(default="id || chunk_id || doc_id", description="Id of a passage.")
    context_score: Expression = Field(default="score", description="Score of a passage.")
    context_source: Expression = Field(default="source", description="Source of a passage.")
    retrieved_ids: Expression = Field(default="", description="Ids of passages, if the reply lists them separately.")
    confidence: Expression = Field(default="", description="Confidence of the system in its answer.")
    latency_seconds: Expression = Field(default="", description="Latency in seconds; measured if empty.")
    tokens_in: Expression = Field(default="", description="Prompt tokens.")
    tokens_out: Expression = Field(default="", description="Answer tokens.")
    model: Expression = Field(default="", description="The model that answered.")
    error: Expression = Field(default="", description="Text that explains why there is no answer.")
    metadata: Expression = Field(default="", description="Additional metadata, an object.")

    def read(self, find: Find, call: SystemCall) -> SystemAnswer:
        """Map a reply; ``find`` gives the value of an expression in it.

        :raises AskFailed: ``system_error`` if the reply reports one, ``no_answer``, ``empty``, and ``wrong_content``
        for a part
            of the wrong type, range or size."""
        error = find(self.error) if self.error else None
        if error not in (None, "", False):
            raise AskFailed("system_error", detail=replace_unstorable(str(error)))
        answer = AnswerSpec(
            text=self._text(find(self.answer) if self.answer else None, call),
            contexts=self._contexts(find(self.contexts) if self.contexts else None),
            retrieved_ids=_ids(find(self.retrieved_ids) if self.retrieved_ids else None, self.retrieved_ids),
            latency_seconds=self._number(find, "latency_seconds", 0.0, MAX_LATENCY_SECONDS),
        )
        if call.evaluation_type == RETRIEVAL_ONLY and answer.contexts is None and answer.retrieved_ids is None:
            raise AskFailed("no_passages", detail=f"“{self.contexts or self.retrieved_ids}” is missing")
        return SystemAnswer(
            answer,
            confidence=self._number(find, "confidence", -VALUE_BOUND, VALUE_BOUND),
            tokens_in=read_count(find(self.tokens_in), MAX_TOKENS) if self.tokens_in else None,
            tokens_out=read_count(find(self.tokens_out), MAX_TOKENS) if self.tokens_out else None,
            model=_checked_name(find(self.model)) if self.model else "",
            metadata=_metadata(find(self.metadata), self.metadata) if self.metadata else {},
        )

    def _text(self, value: Any, call: SystemCall) -> str:
        if call.evaluation_type == RETRIEVAL_ONLY and value is None:
            return ""
        if value is None:
            raise AskFailed("no_answer", detail=f"“{self.answer}” is missing")
        text = _checked_text(value, self.answer)
        if not text.strip() and call.evaluation_type != RETRIEVAL_ONLY:
            raise AskFailed("empty", detail=f"at “{self.answer}”")
        return text

    def _contexts(self, value: Any) -> tuple[ContextSpec, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            raise AskFailed("wrong_content", detail=f"“{self.contexts}” is not a list")
        if len(value) > MAX_CONTEXTS:
            raise AskFailed("too_large", detail=f"{len(value)} passages at “{self.contexts}”")
        return tuple(self._context(item, f"{self.contexts}[{index}]") for index, item in enumerate(value))

    def _context(self, item: Any, path: str) -> ContextSpec:
        if isinstance(item, str):
            return ContextSpec(_checked_text(item, path))
        if not isinstance(item, dict):
            raise AskFailed("wrong_content", detail=f"“{path}” is neither a text nor an object")
        fields = {name: search_path(expression, item) if expression else None for name, expression in self._parts()}
        text, chunk_id = fields["text"], _checked_name(fields["id"])
        score = fields["score"]
        if score is not None:
            score = _in_range(score, f"{path}.{self.context_score}", -VALUE_BOUND, VALUE_BOUND)
        if not chunk_id and not (isinstance(text, str) and text.strip()):
            raise AskFailed("wrong_content", detail=f"“{path}” has neither text nor id")
        text = "" if text is None else _checked_text(text, f"{path}.{self.context_text}")
        extra_fields = {
            key: value for key, value in item.items() if value != fields["text"] and isinstance(value, str | int)
        }
        return ContextSpec(text, chunk_id, score, _checked_name(fields["source"]), _metadata(extra_fields, path))

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


def search_path(expression: str, value: Any) -> Any:
    """Value of the expression; ``None`` if it does not match the reply."""
    try:
        return jmespath.search(expression, value)
    except (JMESPathError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _in_range(value: Any, path: str, low: float, high: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not low <= value < high:
        raise AskFailed("wrong_content", detail=f"“{path}” is not a number in range")
    return float(value)


def _checked_text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise AskFailed("wrong_content", detail=f"“{path}” is not a text")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise AskFailed("too_large", detail=f"{len(value)} characters at “{path}”")
    return replace_unstorable(value)


def _checked_name(value: Any) -> str:
    """Name such as an id in NFC; integers are accepted."""
    if value is None or isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return normalize_nfc(replace_unstorable(str(value)).strip())[:MAX_NAME_CHARACTERS]


def _ids(value: Any, path: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MAX_CONTEXTS:
        raise AskFailed("wrong_content", detail=f"“{path}” is not a list of ids")
    return tuple(name for item in value if (name := _checked_name(item)))


def _metadata(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise AskFailed("wrong_content", detail=f"“{path}” is not an object")
    if _size(value) > MAX_METADATA_CHARACTERS:
        raise AskFailed("too_large", detail=f"metadata at “{path}”")
    return {replace_unstorable(str(key)): _storable_value(member) for key, member in value.items()}


def _storable_value(value: Any) -> Any:
    """JSON value that both databases can store."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_storable_value(item) for item in value]
    return (
        {replace_unstorable(str(k)): _storable_value(v) for k, v in value.items()} if isinstance(value, dict) else value
    )


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(str(key)) + _size(member) for key, member in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else len(str(value))
