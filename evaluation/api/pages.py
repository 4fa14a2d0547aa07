"""Paging of REST lists."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class Pages(CursorPagination):
    """Cursor pages, newest first: constant cost however far one reads."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
    ordering = "-id"
