"""Forms of file uploads: file, encoding, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.datasets.uploads import Preview
from evaluation.formats.shaping import CHOSEN, MAP_BYTES, QUESTIONS, field_names
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, Project
from evaluation.runs.answer_uploads import AnswersPreview

QUESTION = "question"  # the field that a column has to be


ENCODING_TITLES = {
    "utf-8": "UTF-8",
    "cp949": _("CP949 (Korean Windows)"),
    "cp1252": _("Windows-1252 (Western European)"),
    "utf-16": "UTF-16",
}


class EncodingForm(forms.Form):
    """How the text of an uploaded file is written."""

    encoding = forms.ChoiceField(label=_("Encoding of the text"), choices=list(ENCODING_TITLES.items()))


class FileForm(forms.Form):
    """A file that is previewed before it is imported, and a map of its fields. What they say is checked where they are
    read."""

    file = forms.FileField(label=_("File"))
    map = forms.FileField(
        label=_("Map file"),
        required=False,
        help_text=_("Says where the fields stand, for records of a shape that is not recognised."),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json"}),
    )

    encoding = forms.ChoiceField(
        label=_("Encoding of the text"),
        required=False,
        choices=[("", _("recognise it")), *ENCODING_TITLES.items()],
        help_text=_("For a text that is not in UTF-8. The preview shows how it was read."),
    )

    limited_by = "CONCORD_UPLOAD_BYTES"

    @property
    def most_bytes(self) -> int:
        """The site's limit."""
        return int(getattr(settings, self.limited_by))

    def clean_file(self) -> UploadedFile[Any]:
        """Refuse a file beyond the limit before it is read."""
        file = self.cleaned_data["file"]
        return _checked_size(file, self.most_bytes, self.limited_by) if file else file

    def clean_map(self) -> str:
        """The text of the map file, empty without one."""
        return self._text_of("map", MAP_BYTES)

    def _text_of(self, name: str, limit: int) -> str:
        file: UploadedFile[Any] | None = self.cleaned_data[name]
        if file is None:
            return ""
        try:
            return str(_checked_size(file, limit).read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            text = gettext("%(file)s is not in UTF-8. Save it again as UTF-8.") % {"file": file.name}
            raise forms.ValidationError(text) from error


def _checked_size(file: UploadedFile[Any], limit: int, limited_by: str = "") -> UploadedFile[Any]:
    if (file.size or 0) > limit:
        text = gettext("The file is larger than %(limit)s.") % {"limit": filesizeformat(limit)}
        if limited_by:
            text += " " + gettext("Whoever runs the site sets this by %(name)s.") % {"name": limited_by}
        raise forms.ValidationError(text)
    return file


ASKING = {"reference_not_found", "passages_not_found"}  # remarks that the choice of columns answers


def encoding_form(batch: ImportBatch, encoding: str) -> EncodingForm | None:
    """The choice of an encoding, for a file that is not, or was not said to be, in UTF-8."""
    chosen = str(batch.options.get("encoding", "")) or encoding
    return EncodingForm(initial={"encoding": chosen}) if chosen in {"cp949", "cp1252"} else None


class ColumnsForm(forms.Form):
    """What each column of an uploaded file is, for whom it was not read as meant. ``asked``: the preview asks."""

    asked = False

    def __init__(self, kind: str, columns: Columns, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kind, known = kind, field_names(kind)
        choices = [("", _("metadata")), *((name, name) for name in known)]
        self._columns = [column for column, _became in columns]
        for place, (column, became) in enumerate(columns):
            first = became.split(", ")[0]
            field = forms.ChoiceField(label=column, label_suffix="", choices=choices, required=False)
            field.initial = first if first in known else ""
            self.fields[f"column_{place}"] = field

    def clean(self) -> None:
        """Refuse a choice that leaves no question."""
        if self._kind == QUESTIONS and QUESTION not in self.cleaned_data.values():
            raise forms.ValidationError(gettext("No column is the question. Choose the one that holds it."))

    @property
    def chosen(self) -> Columns:
        """The columns of a valid form with their fields."""
        return tuple(zip(self._columns, self.cleaned_data.values(), strict=True))


def columns_form(kind: str, found: Preview | AnswersPreview) -> ColumnsForm | None:
    """The choice of what each column is; ``None`` where a known shape or a person's own map said it."""
    if found.shape not in {"", CHOSEN}:
        return None
    form = ColumnsForm(kind, found.columns)
    form.asked = any(remark.code in ASKING for remark in found.remarks)
    return form


class UploadForm(FileForm):
    """A file of questions and where it goes, with judgements of which passages should be found."""

    project = forms.ChoiceField(label=_("Project"))
    file = forms.FileField(
        label=_("File"),
        help_text=_("YAML, JSON, JSONL, CSV, XLSX, Parquet or TREC topics. Nothing is imported before you confirm."),
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

    qrels = forms.FileField(
        label=_("File of judgements"),
        required=False,
        help_text=_("TREC qrels or BEIR's table: which passages should be found for each question."),
    )

    def clean_qrels(self) -> str:
        """The text of the file of judgements, empty without one."""
        return self._text_of("qrels", self.most_bytes)

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._projects = {str(one.pk): one for one in projects}
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  -- tells the type checker
        field.choices = [(pk, one.name) for pk, one in self._projects.items()]
        if len(self._projects) == 1:
            field.widget = forms.HiddenInput()
            field.initial = next(iter(self._projects))

    @property
    def chosen_project(self) -> Project:
        """The project of a valid form."""
        return self._projects[self.cleaned_data["project"]]
