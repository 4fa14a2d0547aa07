"""Schemas of responses that no serializer writes, from Python types, and of exported files."""

from functools import cached_property
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from pydantic import TypeAdapter

from evaluation.formats.export import Exports


class TypedResponse:
    """JSON response that the schema describes by a Python type. ``name`` is that of its component."""

    def __init__(self, kind: Any, name: str = "") -> None:
        self.kind = kind
        self.name = name or kind.__name__

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """JSON schema with the components that it refers to in ``$defs``."""
        template = "#/components/schemas/{model}"
        schema: dict[str, Any] = _without_titles(
            TypeAdapter(self.kind).json_schema(mode="serialization", ref_template=template)
        )
        return schema


def _without_titles(schema: Any) -> Any:
    """Copy without titles, which repeat the names."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(part) for key, part in schema.items() if not (key == "title" and isinstance(part, str))
    }


class TypedResponseExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Writes the schema of a :class:`TypedResponse`; nested types become components of their own."""

    target_class = "evaluation.rest.typed.TypedResponse"

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        return str(self.target.name)

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Schema of the response.

        :raises ValueError: for a nested type whose name belongs to another component."""
        schema = dict(self.target.json_schema)
        for name, definition in schema.pop("$defs", {}).items():
            component = ResolvedComponent(name, ResolvedComponent.SCHEMA, definition, self.target)  # type: ignore[no-untyped-call]
            if component in auto_schema.registry and auto_schema.registry[component].schema != definition:
                raise ValueError(f"two schemas are called {name}")
            auto_schema.registry.register_on_missing(component)
        return schema


def file_responses(exports: Exports[Any], json: Any = None) -> dict[Any, Any]:
    """Responses of an endpoint that exports files: text or binary by media type, and ``json`` as described."""
    described = {"application/json": json or OpenApiTypes.ANY}
    return {
        (200, media_type): described.get(media_type)
        or (OpenApiTypes.BINARY if "openxmlformats" in media_type else OpenApiTypes.STR)
        for media_type in exports.media_types
    }


def merge_nullable_values(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Postprocessing hook: describe a nullable field of any value as any value, because null would match both sides of
    its ``oneOf``."""
    _merge_nullable_values(result)
    return result


def _merge_nullable_values(node: Any) -> None:
    if isinstance(node, dict) and node.get("oneOf") == [{}, {"type": "null"}]:
        del node["oneOf"]
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _merge_nullable_values(child)
