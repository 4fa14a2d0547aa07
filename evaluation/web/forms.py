"""The forms of the log-in page, of the own tokens, of a question set's upload and of a custom criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import NON_FIELD_ERRORS
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access, audit
from evaluation.accounts.logging_in import LONGEST_TOKEN, minutes_to_wait, new_token
from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.core.roles import Action
from evaluation.criteria.services import name_is_free
from evaluation.files.shaping import CHOSEN, MAP_BYTES, QUESTIONS, field_names
from evaluation.files.tree import Columns
from evaluation.judging.criteria.spec import CriterionSpec, read_criterion
from evaluation.judging.rubric import Offline, Slot
from evaluation.models import ApiToken, CriterionVersion, Project, User
from evaluation.questions.uploads import Preview
from evaluation.runs.answer_uploads import AnswersPreview
from evaluation.wording.messages import explain, explain_refusal

THROTTLED = "throttled"
QUESTION = "question"  # the field that a column has to be


class LogInForm(AuthenticationForm):
    """Name and password; says how long to wait after too many attempts."""

    # Django's own text has both particles in Korean ("이름와/과").
    error_messages = {**AuthenticationForm.error_messages, "invalid_login": _("Name or password is wrong.")}

    def get_invalid_login_error(self) -> forms.ValidationError:
        """Why the log-in failed, without telling whether the name exists."""
        minutes = minutes_to_wait(self.cleaned_data.get("username", ""), self.request)
        if not minutes:
            return super().get_invalid_login_error()
        text = _("Too many attempts to log in. Wait %(minutes)s minutes and try again.")
        return forms.ValidationError(text, code=THROTTLED, params={"minutes": minutes})

    @property
    def throttled(self) -> bool:
        """Whether the form was refused because of too many attempts."""
        return self.has_error(NON_FIELD_ERRORS, THROTTLED)


class OwnTokenForm(forms.Form):
    """A new token of one's own: where, what for, how long."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What it is for, such as the program's name."))
    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), empty_label=None)
    scope = forms.ChoiceField(label=_("What it may do"), choices=[("read", _("Read")), ("write", _("Write"))])
    days = forms.IntegerField(label=_("Days until it ends"), min_value=1, max_value=LONGEST_TOKEN.days, initial=90)

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        self.fields["project"].queryset = access.projects_with(person, Action.RATE)  # type: ignore[attr-defined]

    def made(self) -> tuple[str, ApiToken]:
        """The new token, and its text, which is kept nowhere."""
        asked, (text, digest) = self.cleaned_data, new_token()
        token = ApiToken.objects.create(
            user=self.person,
            made_by=self.person,
            sha256=digest,
            name=asked["name"],
            project=asked["project"],
            scope=asked["scope"],
            expires_at=timezone.now() + timedelta(days=asked["days"]),
        )
        audit.record(self.person, "token.made", token)
        return text, token


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
        file: UploadedFile[Any] | None = self.cleaned_data["map"]
        if file is None:
            return ""
        try:
            return str(_checked_size(file, MAP_BYTES).read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise forms.ValidationError(gettext("The map file is not in UTF-8. Save it again as UTF-8.")) from error


def _checked_size(file: UploadedFile[Any], limit: int, limited_by: str = "") -> UploadedFile[Any]:
    if (file.size or 0) > limit:
        text = gettext("The file is larger than %(limit)s.") % {"limit": filesizeformat(limit)}
        if limited_by:
            text += " " + gettext("Whoever runs the site sets this by %(name)s.") % {"name": limited_by}
        raise forms.ValidationError(text)
    return file


class ResumeForm(forms.Form):
    """What a paused run may cost from now on; empty leaves it."""

    budget = forms.DecimalField(
        label=_("Budget in US dollars"), min_value=0, max_digits=12, decimal_places=4, required=False
    )


ASKING = {"reference_not_found", "passages_not_found"}  # remarks that the choice of columns answers


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
    """A file of questions and where it goes."""

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


FORMS = [
    ("levels", _("levels: whole numbers")),
    ("real", _("range: any number between the anchors")),
    ("yes_no", _("yes or no")),
    ("class", _("classes")),
]
DIRECTIONS = [("higher", _("more is better")), ("lower", _("less is better")), ("none", _("neither"))]
SLOTS = [
    (Slot.REFERENCE, _("expected answer, else expected keywords")),
    (Slot.CONTEXTS, _("retrieved passages")),
    (Slot.REQUIRED_INFO, _("required information")),
    (Slot.PERSONA, _("who asks")),
    (Slot.HISTORY, _("earlier turns")),
    (Slot.CLARIFICATION_OK, _("mark that asking back is welcome")),
]
STAND_INS = [
    (Offline.NONE, _("none: not applicable without a model")),
    (Offline.CORRECTNESS, _("share of the expected answer's words")),
    (Offline.COMPLETENESS, _("share of each sentence of the expected answer")),
    (Offline.FAITHFULNESS, _("share of the answer's words found in the passages")),
    (Offline.RELEVANCY, _("whether the answer takes up the question")),
]
_LEVELS = _(
    "One level a line, from the lowest to the highest, as “key: text”; yes and no are 0 and 1, classes have names."
)


def _lines(label: Any, rows: int, help_text: Any = "") -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows, "cols": 90})
    return forms.CharField(label=label, widget=widget, required=False, help_text=help_text)


def _line(label: Any) -> forms.CharField:
    widget, told = forms.TextInput(attrs={"size": 90}), _("What judge and experts are asked about every answer.")
    return forms.CharField(label=label, max_length=300, required=False, widget=widget, help_text=told)


class CriterionForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own is not generic when it runs
    """A criterion. Saving makes the next version of its name, a draft until a lead activates it."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    name = forms.CharField(
        label=_("name"), max_length=64, help_text=_("Small letters, digits and _; files and profiles use this name.")
    )
    title_ko = forms.CharField(label=_("title in Korean"), max_length=80)
    title_en = forms.CharField(label=_("title in English"), max_length=80)
    form = forms.ChoiceField(label=_("values"), choices=FORMS, help_text=_("What one answer can get."))
    direction = forms.ChoiceField(label=_("direction"), choices=DIRECTIONS)
    question_ko = _line(_("question in Korean"))
    instruction_ko = _lines(_("guidance in Korean"), 5, _("Read by the judge below the fixed rules of grading."))
    levels_ko = _lines(_("levels in Korean"), 6, _LEVELS)
    question_en = _line(_("question in English"))
    instruction_en = _lines(_("guidance in English"), 5, _("Read by the judge below the fixed rules of grading."))
    levels_en = _lines(_("levels in English"), 6, _LEVELS)
    sees = forms.MultipleChoiceField(
        label=_("the judge may see"),
        choices=SLOTS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Question and answer are always seen."),
    )
    needs = forms.MultipleChoiceField(
        label=_("needs"),
        choices=[slot for slot in SLOTS if slot[0] != Slot.CLARIFICATION_OK],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Answers without it are not applicable."),
    )
    categories = _lines(_("categories"), 3, _("One a line; empty: questions of every category."))
    offline = forms.ChoiceField(
        label=_("stand-in of the offline baseline"),
        choices=STAND_INS,
        help_text=_(
            "The baseline compares words and cannot read a criterion. Choose a count only where it comes close."
        ),
    )

    class Meta:
        model = CriterionVersion
        fields: tuple[str, ...] = ()

    spec: CriterionSpec

    def clean(self) -> dict[str, Any]:
        """Read the criterion; what is wrong stands beside its field."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        values, problems = written(said)
        project, name = said.get("project"), said.get("name", "")
        if project is not None and not name_is_free(project, name):
            self.add_error("name", explain_refusal(Refused("criterion_name_taken", name=name)))
        if not problems and not self.errors:
            try:
                self.spec = read_criterion(values)
            except InvalidFile as refused:
                problems = list(refused.problems)
        for problem in problems:
            field = field_of(problem.field)
            bare = Problem(problem.code, params=problem.params)
            self.add_error(field if field in self.fields else None, explain(bare))
        return said

    def validate_unique(self) -> None:
        """Equal content selects the version that has it."""


def written(said: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The criterion as data from what the form's fields hold, and lines that are no levels."""
    problems: list[Problem] = []
    plain = ("name", "title_en", "title_ko", "form", "direction", "sees", "needs", "offline")
    values: dict[str, Any] = {key: said[key] for key in plain if key in said}
    values["categories"] = [line.strip() for line in said.get("categories", "").splitlines() if line.strip()]
    for language in ("en", "ko"):
        question, levels = said.get(f"question_{language}", ""), said.get(f"levels_{language}", "")
        if question or levels.strip():
            values[language] = {
                "question": question,
                "instruction": said.get(f"instruction_{language}", "").replace("\r\n", "\n"),
                "levels": _levels(levels, said.get("form") == "class", f"{language}.levels", problems),
            }
    return values, problems


def filled(spec: CriterionSpec) -> dict[str, Any]:
    """What the form's fields hold for a criterion."""
    found: dict[str, Any] = spec.model_dump(mode="json", exclude={"en", "ko"})
    found["categories"] = "\n".join(spec.categories)
    for language, texts in (("en", spec.en), ("ko", spec.ko)):
        if texts is not None:
            found[f"question_{language}"] = texts.question
            found[f"instruction_{language}"] = texts.instruction
            lines = zip(texts.keys, texts.levels, strict=True)
            found[f"levels_{language}"] = "\n".join(f"{key_text(key)}: {level.text}" for key, level in lines)
    return found


def key_text(key: float | str) -> str:
    """A level's key as it is written."""
    return key if isinstance(key, str) else f"{key:g}"


def field_of(path: str) -> str:
    """The form's field for a path such as ``en.levels.0.text``."""
    head, _, rest = path.partition(".")
    if head in {"en", "ko"}:
        return f"{rest.partition('.')[0] or 'question'}_{head}"
    return head


def _levels(text: str, classes: bool, field: str, problems: list[Problem]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        key, colon, anchor = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        value = None if classes else _number(key)
        if not colon or not key or not anchor or (value is None and not classes):
            problems.append(Problem("criterion_level_line", field=field, params={"line": number}))
        else:
            found.append({"label": key, "text": anchor} if classes else {"value": value, "text": anchor})
    return found


def _number(text: str) -> float | int | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
