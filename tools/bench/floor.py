"""A bare Django view to compare with: no middleware, session, user or template. It is
served as the product is.

GET reads one answer by primary key and returns it as JSON, POST inserts one row.
"""

from __future__ import annotations

import os
import sys

import django
import environ
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path

from config.rsgi_adapter import BufferedRSGIAdapter

DATABASE = dict(environ.Env.db_url_config(os.environ["DATABASE_URL"]))
if DATABASE["ENGINE"].endswith("sqlite3"):
    DATABASE["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DATABASE["CONN_MAX_AGE"] = 60


def view(request: HttpRequest, pk: int) -> JsonResponse:
    """Handle a request with one statement."""
    with connection.cursor() as cursor:
        if request.method == "POST":
            cursor.execute("INSERT INTO bench_floor (answer_id, value) VALUES (%s, 3)", [pk])
            return JsonResponse({"id": pk})
        cursor.execute("SELECT id, text FROM evaluation_answer WHERE id = %s", [pk])
        return JsonResponse(dict(zip(("id", "text"), cursor.fetchone(), strict=True)))


urlpatterns = [path("<int:pk>/", view)]

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__, DATABASES={"default": DATABASE}, ALLOWED_HOSTS=["127.0.0.1"], MIDDLEWARE=[], DEBUG=False
    )
    django.setup()
    if "--table" in sys.argv:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE bench_floor (answer_id bigint, value integer)")
application = BufferedRSGIAdapter(get_wsgi_application(), max_body_bytes=1_000_000)
