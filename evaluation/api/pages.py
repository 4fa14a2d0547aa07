"""Paging of REST lists."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

MOST = 500


class Pages(CursorPagination):
    """Cursor pages, newest first: constant cost however far one reads."""

    page_size = 50
    page_size_query_param = "page_size"
    page_size_query_description = "Results per page, 1 to 500."
    max_page_size = MOST
    ordering = "-id"

    def get_page_size(self, request: Request) -> int | None:
        """The size asked for, 50 without one.

        :raises ValidationError: for anything but a whole number from 1 to 500.
        """
        asked = request.query_params.get("page_size")
        if asked is None:
            return self.page_size
        if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= MOST):
            raise ValidationError({"page_size": [_("A whole number from 1 to 500.")]})
        return int(asked)

    def decode_cursor(self, request: Request) -> Any:
        """The cursor of the request, ``None`` without one.

        :raises ValidationError: for one that this API did not give out.
        """
        try:
            cursor = super().decode_cursor(request)
        except NotFound as error:
            raise ValidationError({"cursor": [_("Not a cursor of this list.")]}) from error
        position = None if cursor is None or cursor.position is None else str(cursor.position)
        if position is not None and not (position.isascii() and position.isdigit() and len(position) < 19):
            raise ValidationError({"cursor": [_("Not a cursor of this list.")]})
        return cursor

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """The parameters as OpenAPI has them, with the limits of the page size."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {"type": "integer", "minimum": 1, "maximum": MOST}
        return parameters


class PagesInOrder(Pages):
    """Cursor pages, oldest first: for the parts of one thing."""

    ordering = "id"
