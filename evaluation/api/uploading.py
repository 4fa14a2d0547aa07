"""A file in a request: as the field ``file`` of a form, or as the body itself with the options in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from evaluation.accounts.access import fetch, projects_with
from evaluation.api.endpoints import Endpoint
from evaluation.api.parsers import Body, FileBody, FormWithFile, TooLarge
from evaluation.core.roles import Action
from evaluation.models import Project, User

#: What the schema says of a body that is the file itself.
FILE_BODY = {"application/json": OpenApiTypes.OBJECT, "text/csv": OpenApiTypes.BINARY}


@extend_schema_field(OpenApiTypes.BINARY)  # without it the schema says that the address of a file is sent
class FileOfRows(serializers.FileField):
    """The file of a form."""


class UploadEndpoint(Endpoint):
    """An endpoint that takes a file; what its method declares as the ``query`` may also stand beside it in the form."""

    parser_classes = (FormWithFile, FileBody)  # type: ignore[assignment]

    def upload(self) -> tuple[Body, Any]:
        """The file, and the validated options.

        :raises ValidationError: without a file, or for an option that is unknown or wrong.
        :raises TooLarge: beyond the limit of uploads.
        """
        data = self.request.data
        given: dict[str, Any] = self.request.query_params.dict()
        if isinstance(data, Body):
            body = data
        else:
            body = _form_file(self.request)
            given |= {name: value for name, value in _plain(data).items() if name != "file"}
        return body, self.asked(given)


def _plain(data: Any) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = data.dict() if hasattr(data, "dict") else data
    return plain


def _form_file(request: Request) -> Body:
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or len(request.FILES) != 1:
        raise ValidationError({"file": [_("Exactly one file is expected, in the field “file”.")]})
    if (file.size or 0) > settings.CONCORD_UPLOAD_BYTES:
        raise TooLarge(settings.CONCORD_UPLOAD_BYTES)
    return Body(file.name or "file", file.read())


def project_for(user: User, pk: int | None) -> Project:
    """The project something is imported into: the named one, else the only one the caller may import into.

    :raises Http404: for a project the caller has no role in.
    :raises PermissionDenied: where the role does not allow it.
    :raises ValidationError: when none is named and there is not exactly one.
    """
    if pk is not None:
        return fetch(Project.objects.all(), user, Action.EVALUATE, pk)
    mine = list(projects_with(user, Action.EVALUATE)[:2])
    if len(mine) != 1:
        raise ValidationError({"project": [_("Name the project by its id.")]})
    return mine[0]
