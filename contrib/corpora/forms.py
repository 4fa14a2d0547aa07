"""Form for uploading a corpus: several files and their splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contrib.corpora.documents import MEDIA_BY_ENDING
from contrib.corpora.splitting import Splitting
from evaluation.models import Project

MAX_FILES = 200


class _MultipleFileInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files; their total size is limited to that of one upload."""

    widget = _MultipleFileInput(
        attrs={"multiple": True, "accept": ",".join(f".{file_ending}" for file_ending in sorted(MEDIA_BY_ENDING))}
    )

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """Validate each file.

        :raises ValidationError: without files, for too many, or beyond the size limit of uploads."""
        uploads = data if isinstance(data, list | tuple) else [data]
        files = [super(FilesField, self).clean(file, initial) for file in uploads or [None]]
        if len(files) > MAX_FILES:
            raise forms.ValidationError(gettext("At most %(most)s files at once.") % {"most": MAX_FILES})
        if sum(file.size or 0 for file in files) > settings.CONCORD_UPLOAD_BYTES:
            text = gettext("The files exceed %(limit)s MB in total. Use import_corpus for a folder.")
            raise forms.ValidationError(text % {"limit": settings.CONCORD_UPLOAD_BYTES // 1024**2})
        return files


def _splitting_field(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    """Build a field with the default and limits of ``Splitting``."""
    info = Splitting.model_fields[name]
    limits = {type(limit).__name__: limit for limit in info.metadata}
    return forms.IntegerField(
        label=label,
        initial=info.default,
        min_value=limits["Ge"].ge,
        max_value=limits["Le"].le,
        help_text=help_text,
    )


class CorpusForm(forms.Form):
    """Form of a corpus or its next version."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), empty_label=None)
    name = forms.CharField(label=_("Name"), max_length=200, help_text=_("An existing name gets a new version."))
    documents = FilesField(
        label=_("Files"),
        help_text=_(
            "Each text, Markdown, HTML, PDF or DOCX file is one document. JSON Lines and Parquet contain chunks."
        ),
    )
    characters = _splitting_field(
        "characters",
        _("Maximum chunk length (characters)"),
        _("Chunks end at sentence boundaries, so most are shorter."),
    )
    overlap = _splitting_field("overlap", _("Overlap (sentences)"), _("Sentences repeated in the next chunk."))

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        field.queryset = Project.objects.filter(pk__in=[project.pk for project in projects])  # type: ignore[attr-defined]
        if len(projects) == 1:
            field.initial, field.widget = projects[0], forms.HiddenInput()

    @property
    def splitting(self) -> Splitting:
        """Splitting of a valid form."""
        return Splitting(characters=self.cleaned_data["characters"], overlap=self.cleaned_data["overlap"])
