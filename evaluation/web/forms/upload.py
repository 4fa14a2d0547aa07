"""The form of a question set's upload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.models import Project


class UploadForm(forms.Form):
    """A file and where it goes. The file itself is read by ``questions/uploads``."""

    project = forms.ChoiceField(label=_("Project"))
    file = forms.FileField(
        label=_("File"),
        help_text=_("YAML, JSON, JSONL, CSV or XLSX. Nothing is imported before you confirm."),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json,.jsonl,.csv,.xlsx"}),
    )
    name = forms.CharField(
        label=_("Name of the set"),
        max_length=200,
        required=False,
        help_text=_("Left empty, the name in the file or the file's own. A known name makes its next version."),
    )
    group_by = forms.CharField(
        label=_("Field that groups questions"),
        max_length=100,
        required=False,
        help_text=_("Questions that are not independent, such as all about one document, share a value of it."),
    )

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._projects = {str(one.pk): one for one in projects}
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  -- tells the type checker
        field.choices = [(pk, one.name) for pk, one in self._projects.items()]
        if len(self._projects) == 1:
            field.widget = forms.HiddenInput()
            field.initial = next(iter(self._projects))

    def clean_file(self) -> UploadedFile[Any]:
        """Refuse a file beyond the site's limit before it is read."""
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > settings.CONCORD_UPLOAD_BYTES:
            limit = filesizeformat(settings.CONCORD_UPLOAD_BYTES)
            raise forms.ValidationError(gettext("The file is larger than %(limit)s.") % {"limit": limit})
        return file

    @property
    def chosen_project(self) -> Project:
        """The project of a valid form."""
        return self._projects[self.cleaned_data["project"]]
