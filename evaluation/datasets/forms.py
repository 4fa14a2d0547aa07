"""Forms of file uploads: file, encoding and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.datasets.uploads import Preview
from evaluation.formats.shaping import COLUMN_MAP_TITLE, LIST_FIELDS, MAX_MAP_BYTES, QUESTIONS, field_names
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, Project
from evaluation.runs.answer_uploads import AnswersPreview

# Field that one column must map to.
QUESTION = "question"


ENCODING_TITLES = {
    "utf-8": "UTF-8",
    "cp949": _("CP949 (Korean Windows)"),
    "cp1252": _("Windows-1252 (Western European)"),
    "utf-16": "UTF-16",
}


class EncodingForm(forms.Form):
    """Encoding of an uploaded text."""

    encoding = forms.ChoiceField(label=_("Text encoding"), choices=list(ENCODING_TITLES.items()))


class FileForm(forms.Form):
    """File to preview before the import, and a map of its fields. Their content is checked when they are read."""

    file = forms.FileField(label=_("File"))
    map = forms.FileField(
        label=_("Map file"),
        required=False,
        help_text=_("Locates the fields in records of an unrecognised format."),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json"}),
    )

    encoding = forms.ChoiceField(
        label=_("Text encoding"),
        required=False,
        choices=[("", _("detect automatically")), *ENCODING_TITLES.items()],
        help_text=_("For text that isn't UTF-8. The preview shows how it was read."),
    )

    size_setting = "CONCORD_UPLOAD_BYTES"

    @property
    def max_bytes(self) -> int:
        return int(getattr(settings, self.size_setting))

    def clean_file(self) -> UploadedFile[Any]:
        """Refuse a too large file before reading it."""
        file = self.cleaned_data["file"]
        return _check_size(file, self.max_bytes, self.size_setting) if file else file

    def clean_map(self) -> str:
        """Text of the map file; empty without one."""
        return self._read_text("map", MAX_MAP_BYTES)

    def _read_text(self, name: str, limit: int) -> str:
        file: UploadedFile[Any] | None = self.cleaned_data[name]
        if file is None:
            return ""
        try:
            return str(_check_size(file, limit).read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            text = gettext("%(file)s isn't UTF-8. Save it as UTF-8.") % {"file": file.name}
            raise forms.ValidationError(text) from error


def _check_size(file: UploadedFile[Any], limit: int, size_setting: str = "") -> UploadedFile[Any]:
    if (file.size or 0) > limit:
        text = gettext("The file is larger than %(limit)s.") % {"limit": filesizeformat(limit)}
        if size_setting:
            text += " " + gettext("Set by the site operator (%(name)s).") % {"name": size_setting}
        raise forms.ValidationError(text)
    return file


# Remarks that a choice of columns can resolve.
COLUMN_REMARKS = {"reference_not_found", "passages_not_found"}


def encoding_form(batch: ImportBatch, encoding: str) -> EncodingForm | None:
    """Encoding form for a file that is not in UTF-8 or was read in a chosen encoding."""
    chosen = str(batch.options.get("encoding", "")) or encoding
    return EncodingForm(initial={"encoding": chosen}) if {chosen, encoding} & {"cp949", "cp1252"} else None


FIELD_TITLES = {
    "question": _("Question"),
    "id": _("Question ID"),
    "question_id": _("Question ID"),
    "expected_answer": _("Expected answer"),
    "expected_keywords": _("Expected keywords"),
    "category": _("Category"),
    "difficulty": _("Difficulty"),
    "tags": _("Tags"),
    "group": _("Group"),
    "ground_truth_chunk_ids": _("IDs of the passages to find"),
    "answer": _("Answer"),
    "error": _("Error"),
    "contexts": _("Retrieved passages"),
    "retrieved_context_ids": _("IDs of the retrieved passages"),
    "latency_seconds": _("Latency (seconds)"),
    "confidence": _("Confidence"),
    "system": _("System"),
    "sample": _("Sample number"),
    "check": _("Check for negative questions"),
    "check_phrases": _("Phrases of the check"),
    "nuggets": _("Facts of a good answer"),
    "history": _("Earlier turns"),
    "persona": _("Persona"),
    "required_info": _("Required points"),
    "clarification_ok": _("A clarifying question is acceptable"),
    "hops": _("Number of facts to link"),
    "aggregation_type": _("Aggregation type"),
    "inference_type": _("Inference type"),
}


class ColumnsForm(forms.Form):
    """Field of each column of an uploaded file. ``needs_choice``: the preview asks the user to choose."""

    needs_choice = False

    def __init__(
        self, kind: str, columns: Columns, *args: Any, samples: Mapping[str, Sequence[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._kind, field_choices = kind, field_names(kind)
        self.has_passages = "contexts" in field_choices
        choices = [("", _("Metadata")), *((name, FIELD_TITLES[name]) for name in field_choices)]
        self._columns = [column for column, _became in columns]
        for index, (column, targets) in enumerate(columns):
            first = targets.split(", ")[0]
            field = forms.ChoiceField(label=column, label_suffix="", choices=choices, required=False)
            field.initial = first if first in field_choices else ""
            # The template shows one value a line.
            field.samples = (samples or {}).get(column, ())  # type: ignore[attr-defined]
            self.fields[f"column_{index}"] = field

    def clean(self) -> None:
        """Require a column for the question, and only one for every field that is not a list."""
        fields = [field for field in self.cleaned_data.values() if field]
        if self._kind == QUESTIONS and QUESTION not in fields:
            raise forms.ValidationError(
                gettext("No column is mapped to the question. Choose the one that contains it.")
            )
        if repeated := [
            field for field in dict.fromkeys(fields) if fields.count(field) > 1 and field not in LIST_FIELDS
        ]:
            title = FIELD_TITLES[repeated[0]]
            text = gettext("Several columns are mapped to “%(field)s”. Choose one and set the others to metadata.")
            raise forms.ValidationError(text % {"field": title})

    @property
    def chosen_columns(self) -> Columns:
        """Columns of a valid form with their fields."""
        return tuple(zip(self._columns, self.cleaned_data.values(), strict=True))


def columns_form(kind: str, preview: Preview | AnswersPreview) -> ColumnsForm | None:
    """Columns form of a preview; ``None`` if a known shape or the user's map was used."""
    if preview.shape not in {"", COLUMN_MAP_TITLE}:
        return None
    form = ColumnsForm(kind, preview.columns)
    form.needs_choice = any(remark.code in COLUMN_REMARKS for remark in preview.remarks)
    return form


class UploadForm(FileForm):
    """Question file with its project and name, and relevance judgements. A worker parses large files row by row."""

    size_setting = "CONCORD_LARGE_UPLOAD_BYTES"

    project = forms.ChoiceField(label=_("Project"))
    file = forms.FileField(
        label=_("File"),
        help_text=_("YAML, JSON, JSONL, CSV, XLSX, Parquet or TREC topics. Nothing is imported before you confirm."),
    )
    name = forms.CharField(
        label=_("Question set name"),
        max_length=200,
        required=False,
        help_text=_("Default: the name in the file or the file name. An existing name gets a new version."),
    )
    group_by = forms.CharField(
        label=_("Grouping field"),
        max_length=100,
        required=False,
        help_text=_("Questions that depend on each other, such as all about one document, have the same value here."),
    )

    qrels = forms.FileField(
        label=_("Relevance judgements file"),
        required=False,
        help_text=_("TREC qrels or a BEIR table that lists the relevant passages of each question."),
    )

    def clean_qrels(self) -> str:
        """Text of the relevance judgements; empty without a file."""
        return self._read_text("qrels", settings.CONCORD_UPLOAD_BYTES)

    def __init__(self, *args: Any, projects: Sequence[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._projects = {str(project.pk): project for project in projects}
        field = self.fields["project"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  -- tells the type checker
        field.choices = [(pk, project.name) for pk, project in self._projects.items()]
        if len(self._projects) == 1:
            field.widget = forms.HiddenInput()
            field.initial = next(iter(self._projects))

    @property
    def chosen_project(self) -> Project:
        """Project of a valid form."""
        return self._projects[self.cleaned_data["project"]]
