"""Results and requests of own code as JSON between its process and the worker: results that the database stores, and
requests that a judge can be asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import MetricSpec
from evaluation.core.samples import Finding, FrozenModel, Result, Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.judging.calls import JudgeRequest
from evaluation.judging.prompt import render
from evaluation.judging.rubric import Rubric
from evaluation.network.outcomes import replace_unstorable

MAX_CHARACTERS = 100_000
#: Reason codes of failed results: the code raised an error, or its result is unusable.
RAISED, INVALID = "metric_raised", "metric_invalid"
_Place = Annotated[int, Field(ge=0, lt=2**31)]


class _FindingContent(FrozenModel):
    model_config = ConfigDict(strict=True)

    kind: Annotated[str, Field(min_length=1, max_length=20)]
    text: str
    verdict: Annotated[str, Field(max_length=40)]
    context: _Place | None
    start: _Place | None
    end: _Place | None
    reason: str
    approximate: bool
    quote: str
    quote_start: _Place | None
    quote_end: _Place | None


class _ResultContent(FrozenModel):
    model_config = ConfigDict(strict=True)

    status: Status
    value: float | None
    label: str | None
    reason: str
    detail: dict[str, JsonValue]
    findings: tuple[_FindingContent, ...]


class InvalidResult(ValueError):
    """A return value of own code that is no result."""


def encode_result(spec: MetricSpec, result: object, *, mean: bool = False) -> str:
    """Encode the result of a metric. ``mean``: a value between the levels of a scale is valid.

    :raises InvalidResult: with a reason, for another type, a value off the metric's scale, and content that is not
        JSON, too long for its column, or longer than 100,000 characters in all."""
    if not isinstance(result, Result):
        raise InvalidResult(f"returned {type(result).__name__}, not a Result")
    if result.status is Status.SCORED and not _is_on_scale(spec.scale, result, mean=mean):
        value = result.label if result.value is None else result.value
        raise InvalidResult(f"{value!r} is not on the scale {spec.scale}")
    try:
        text = json.dumps(asdict(result), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(f"the result is not JSON: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise InvalidResult(f"the result has more than {MAX_CHARACTERS} characters")
    text = json.dumps(_storable(json.loads(text)))
    try:
        _ResultContent.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidResult(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return text


def decode_result(text: str) -> Result:
    """Decode a result that :func:`encode_result` has encoded."""
    content = json.loads(text)
    findings = tuple(Finding(**finding) for finding in content.pop("findings"))
    return Result(**content | {"status": Status(content["status"]), "findings": findings})


def _is_on_scale(scale: Scale, result: Result, *, mean: bool) -> bool:
    if scale.kind is ScaleKind.CLASS:
        return result.label in scale.labels
    return result.value is not None and (scale.contains_mean if mean else scale.contains)(result.value)


def encode_failure(reason: str) -> str:
    return json.dumps(asdict(Result.failed(replace_unstorable(reason))))


def encode_request(rubric: Rubric, request: object) -> dict[str, Any]:
    """Encode the request of a judge function.

    :raises InvalidResult: with a reason, if a judge cannot be asked so."""
    if not isinstance(request, JudgeRequest):
        raise InvalidResult(f"yielded {type(request).__name__}, not a JudgeRequest")
    try:
        render(rubric, request)
        content: dict[str, Any] = json.loads(json.dumps(asdict(request), allow_nan=False))
    except (UnknownName, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(f"the request is invalid: {error}") from error
    schemas = [schema for schema in (request.schema, request.accepted_schema) if schema is not None]
    if not all(schema.get("type") == "object" and _is_schema(schema) for schema in schemas):
        raise InvalidResult("the schema is not an object of the schemas in evaluation.judging.rubric")
    return content


def decode_request(content: Mapping[str, Any]) -> JudgeRequest:
    return JudgeRequest(**{**content, "names": tuple(content["names"])})


def _is_schema(schema: Any) -> bool:
    """Return whether ``rubric.conforms`` can read the schema."""
    if not isinstance(schema, Mapping):
        return False
    if "enum" in schema:
        return isinstance(schema["enum"], list)
    match schema.get("type"):
        case "object":
            members = schema.get("properties")
            return isinstance(members, Mapping) and all(map(_is_schema, members.values()))
        case "array":
            return _is_schema(schema.get("items"))
        case "string" | "number" | "boolean":
            return True
        case _:
            return not schema


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {replace_unstorable(key): _storable(item) for key, item in value.items()}
    return value
