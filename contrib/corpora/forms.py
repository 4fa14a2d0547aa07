"""The upload of a corpus: several files at once, and how they are split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from contrib.corpora.documents import ENDINGS
from contrib.corpora.splitting import Splitting
from evaluation.models import Project

MOST_FILES = 200


class _Several(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One file or more; the total is within what one upload may have."""

    widget = _Several(attrs={"multiple": True, "accept": ",".join(f".{one}" for one in sorted(ENDINGS))})

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """The files.

        :raises ValidationError: without any, for too many, and beyond the limit of uploads.
        """
        given = data if isinstance(data, list | tuple) else [data]
        files = [super(FilesField, self).clean(one, initial) for one in given or [None]]
        if len(files) > MOST_FILES:
            raise forms.ValidationError(gettext("At most %(most)s files at once.") % {"most": MOST_FILES})
        if sum(one.size or 0 for one in files) > settings.CONCORD_UPLOAD_BYTES:
            text = gettext("Together the files are larger than %(limit)s MB. Use import_corpus for a folder.")
            raise forms.ValidationError(text % {"limit": settings.CONCORD_UPLOAD_BYTES // 1024**2})
        return files


def _of_splitting(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    """A field with the default and limits that ``Splitting`` declares."""
    info = Splitting.model_fields[name]
    limits = {type(one).__name__: one for one in info.metadata}
    return forms.IntegerField(
        label=label,
        initial=info.default,
        min_value=limits["Ge"].ge,
        max_value=limits["Le"].le,
        help_text=help_text,
    )


class CorpusForm(forms.Form):
    """A corpus, or its next version."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), empty_label=None)
    name = forms.CharField(
        label=_("Name"), max_length=200, help_text=_("A name that is there already gets its next version.")
    )
    documents = FilesField(
        label=_("Files"),
        help_text=_("Text, Markdown, HTML, PDF and DOCX are a document each; JSON Lines and Parquet hold chunks."),
    )
    characters = _of_splitting(
        "characters", _("Longest chunk (characters)"), _("Chunks end behind sentences, so most are shorter.")
    )
    overlap = _of_splitting("overlap", _("Overlap (sentences)"), _("How many the next chunk repeats."))

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        field.queryset = Project.objects.filter(pk__in=[one.pk for one in projects])  # type: ignore[attr-defined]
        if len(projects) == 1:
            field.initial, field.widget = projects[0], forms.HiddenInput()

    @property
    def splitting(self) -> Splitting:
        """How the documents are split, of a valid form."""
        return Splitting(characters=self.cleaned_data["characters"], overlap=self.cleaned_data["overlap"])
