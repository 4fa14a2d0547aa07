"""Callers of the REST API with tokens."""

from __future__ import annotations

import secrets
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from rest_framework.test import APIClient

from evaluation.core.roles import Role
from evaluation.models import ApiToken, Project, User
from tests.factories import make_user

API = "/api/v1/"


def token_for(user: User, project: Project, scope: str = "write", **fields: Any) -> str:
    """Create a token of the user for the project and return the text for the header."""
    text = secrets.token_urlsafe(32)
    expires = fields.pop("expires_at", timezone.now() + timedelta(days=1))
    digest = sha256(text.encode()).hexdigest()
    ApiToken.objects.create(
        user=user, made_by=user, project=project, name="t", sha256=digest, scope=scope, expires_at=expires, **fields
    )
    return text


class Caller:
    """A user with a token of a project. Paths are relative to ``/api/v1/``."""

    def __init__(self, role: Role | None, project: Project, scope: str = "write", user: User | None = None) -> None:
        self.user = user or make_user(role, project)
        self.client = APIClient()
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_for(self.user, project, scope)}")

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(API + path, query)

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(API + path, body if body is not None else {}, format="json")

    def upload(self, path: str, content: bytes, file_name: str = "file.json", **fields: Any) -> Any:
        """Post a form with a file, as a browser or curl sends it."""
        return self.client.post(API + path, {"file": SimpleUploadedFile(file_name, content), **fields})

    def send(self, path: str, content: bytes, content_type: str = "application/json") -> Any:
        """Post the bytes as the body."""
        return self.client.generic("POST", API + path, content, content_type=content_type)


def evaluator(project: Project) -> Caller:
    """A caller who may import and run."""
    return Caller(Role.EVALUATOR, project)


def viewer(project: Project) -> Caller:
    """A caller who may only read."""
    return Caller(Role.VIEWER, project)
