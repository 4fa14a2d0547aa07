"""Form of a custom criterion, and the labels of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.criteria.services import is_name_free
from evaluation.judging.criteria.spec import (
    MAX_ANCHOR_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    MAX_LEVELS,
    CriterionSpec,
    read_criterion,
)
from evaluation.judging.rubric import OfflineMeasure, PromptSlot
from evaluation.messages.explanations import explain, explain_refusal
from evaluation.models import CriterionVersion, Project

FORMS = [
    ("levels", _("levels: whole numbers")),
    ("real", _("range: any number between the anchors")),
    ("yes_no", _("yes or no")),
    ("class", _("classes")),
]
DIRECTIONS = [("higher", _("higher is better")), ("lower", _("lower is better")), ("none", _("neither"))]
SLOTS = [
    (PromptSlot.REFERENCE, _("expected answer, otherwise expected keywords")),
    (PromptSlot.CONTEXTS, _("retrieved passages")),
    (PromptSlot.REQUIRED_INFO, _("required information")),
    (PromptSlot.PERSONA, _("persona")),
    (PromptSlot.HISTORY, _("earlier turns")),
    (PromptSlot.CLARIFICATION_OK, _("flag that asking back is welcome")),
]
STAND_INS = [
    (OfflineMeasure.NONE, _("none: not applicable without a model")),
    (OfflineMeasure.CORRECTNESS, _("share of the expected answer's words")),
    (OfflineMeasure.COMPLETENESS, _("share of each sentence of the expected answer")),
    (OfflineMeasure.FAITHFULNESS, _("share of the answer's words found in the passages")),
    (OfflineMeasure.RELEVANCY, _("whether the answer addresses the question")),
]
# Problems of the levels as a whole.
_LEVEL_PROBLEMS = {
    *("criterion_level_kind", "criterion_levels_order", "criterion_classes_repeat"),
    *("criterion_whole_levels", "criterion_yes_no"),
}
LANGUAGES = {"ko": _("in Korean"), "en": _("in English")}
# Form fields of a level: key, ko, en.
Row = Mapping[str, str]


class LevelsWidget(forms.Widget):
    """One row of fields per possible level. A script hides unused rows and adds and removes rows; without it all rows
    are visible, and empty ones are ignored."""

    class Media:
        js = ("js/levels.js",)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        levels: list[Row] = [*(value or ())][:MAX_LEVELS]
        blank = {"key": "", **dict.fromkeys(LANGUAGES, "")}
        reader_language = (get_language() or "en")[:2]
        languages = sorted(LANGUAGES.items(), key=lambda language: language[0] != reader_language)
        context = {
            "name": name,
            "id": (attrs or {}).get("id", name),
            "languages": languages,
            "rows": [
                (row["key"], [(code, title, row[code]) for code, title in languages])
                for row in [*levels, *[blank] * (MAX_LEVELS - len(levels))]
            ],
            "described_by": (attrs or {}).get("aria-describedby", ""),
            "longest": {"key": MAX_LABEL_CHARACTERS, "text": MAX_ANCHOR_CHARACTERS},
        }
        return render_to_string("evaluation/criteria/_levels.html", context)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[dict[str, str]]:
        """Submitted rows without empty ones."""
        rows = (
            {part: str(data.get(f"{name}-{index}-{part}", "")).strip() for part in ("key", *LANGUAGES)}
            for index in range(MAX_LEVELS)
        )
        return [row for row in rows if any(row.values())]

    def id_for_label(self, id_: str) -> str:
        """Return an empty string: each field has its own label."""
        return ""


class LevelsField(forms.Field):
    """Levels of a criterion, each with a key and a text in one or both languages."""

    widget = LevelsWidget

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool([*(initial or ())] != data)


def _text_area(label: Any, rows: int, help_text: Any = "") -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows, "cols": 90})
    return forms.CharField(label=label, widget=widget, required=False, help_text=help_text)


def _text_line(label: Any) -> forms.CharField:
    widget, help_text = forms.TextInput(attrs={"size": 90}), _("Shown to judge and experts for every answer.")
    return forms.CharField(label=label, max_length=300, required=False, widget=widget, help_text=help_text)


class CriterionForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's own is not generic when it runs
    """A criterion. Saving creates the next version, a draft until a lead activates it."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    name = forms.CharField(
        label=_("name"),
        max_length=64,
        help_text=_("Lowercase letters, digits and _. Files and profiles use this name."),
    )
    title_ko = forms.CharField(label=_("title in Korean"), max_length=80)
    title_en = forms.CharField(label=_("title in English"), max_length=80)
    form = forms.ChoiceField(label=_("values"), choices=FORMS, help_text=_("Possible values of an answer."))
    direction = forms.ChoiceField(label=_("direction"), choices=DIRECTIONS)
    question_ko = _text_line(_("question in Korean"))
    instruction_ko = _text_area(_("guidance in Korean"), 5, _("The judge reads this after the fixed grading rules."))
    question_en = _text_line(_("question in English"))
    instruction_en = _text_area(_("guidance in English"), 5, _("The judge reads this after the fixed grading rules."))
    levels = LevelsField(
        label=_("levels"),
        required=False,
        help_text=_(
            "From lowest to highest. No and yes are 0 and 1. Classes have names. The text says when an "
            "answer gets the level, short enough for a button. Empty rows are ignored."
        ),
    )
    sees = forms.MultipleChoiceField(
        label=_("visible to the judge"),
        choices=SLOTS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Question and answer are always visible."),
    )
    needs = forms.MultipleChoiceField(
        label=_("needs"),
        choices=[slot for slot in SLOTS if slot[0] != PromptSlot.CLARIFICATION_OK],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Answers without it are not applicable."),
    )
    categories = _text_area(_("categories"), 3, _("One per line. Leave empty for all categories."))
    offline = forms.ChoiceField(
        label=_("stand-in for the offline baseline"),
        choices=STAND_INS,
        help_text=_(
            "The baseline only compares words and can't read a criterion. Choose a measure only where it comes close."
        ),
    )

    class Meta:
        model = CriterionVersion
        fields: tuple[str, ...] = ()

    spec: CriterionSpec

    def clean(self) -> dict[str, Any]:
        """Validate the criterion and show each problem at its field."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        values, problems = criterion_values(cleaned)
        project, name = cleaned.get("project"), cleaned.get("name", "")
        if project is not None and not is_name_free(project, name):
            self.add_error("name", explain_refusal(DomainError("criterion_name_taken", name=name)))
        if not problems and not self.errors:
            try:
                self.spec = read_criterion(values)
            except InvalidFile as refusal:
                problems = list(refusal.problems)
        for problem in problems:
            field = "levels" if problem.code in _LEVEL_PROBLEMS else form_field(problem.field)
            level = re.search(r"\.levels\.(\d+)", problem.field)
            level_text = gettext("level %(number)s") % {"number": int(level[1]) + 1} if level else ""
            message = explain(Problem(problem.code, field=level_text, params=problem.params))
            self.add_error(field if field in self.fields else None, message)
        return cleaned

    def validate_unique(self) -> None:
        """Accept equal content, which selects the existing version."""


def criterion_values(cleaned: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Criterion data from the form's values, and problems of the levels."""
    problems: list[Problem] = []
    plain = ("name", "title_en", "title_ko", "form", "direction", "sees", "needs", "offline")
    values: dict[str, Any] = {key: cleaned[key] for key in plain if key in cleaned}
    values["categories"] = [line.strip() for line in cleaned.get("categories", "").splitlines() if line.strip()]
    rows: list[Row] = cleaned.get("levels") or []
    for language in LANGUAGES:
        question = cleaned.get(f"question_{language}", "")
        if question or any(row[language] for row in rows):
            values[language] = {
                "question": question,
                "instruction": cleaned.get(f"instruction_{language}", "").replace("\r\n", "\n"),
                "levels": [*_levels(rows, language, cleaned.get("form") == "class", problems)],
            }
    return values, [problem for index, problem in enumerate(problems) if problem not in problems[:index]]


def form_values(spec: CriterionSpec) -> dict[str, Any]:
    """Form values of a criterion."""
    values: dict[str, Any] = spec.model_dump(mode="json", exclude={"en", "ko"})
    values["categories"] = "\n".join(spec.categories)
    rows: list[dict[str, str]] = []
    for language in spec.languages:
        texts = spec.texts(language)
        values[f"question_{language}"] = texts.question
        values[f"instruction_{language}"] = texts.instruction
        rows = rows or [{"key": key_text(key), **dict.fromkeys(LANGUAGES, "")} for key in texts.keys]
        for row, level in zip(rows, texts.levels, strict=True):
            row[language] = level.text
    return values | {"levels": rows}


def key_text(key: float | str) -> str:
    return key if isinstance(key, str) else f"{key:g}"


def form_field(path: str) -> str:
    """Form field of a path such as ``en.question``; levels have one field for both languages."""
    head, _, subpath = path.partition(".")
    if head in LANGUAGES:
        name = subpath.partition(".")[0] or "question"
        return name if name == "levels" else f"{name}_{head}"
    return head


def _levels(rows: list[Row], language: str, classes: bool, problems: list[Problem]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows, start=1):
        value = None if classes else _number(row["key"])
        if not row["key"] or (value is None and not classes):
            code = "criterion_class_unnamed" if classes else "criterion_level_no_number"
            problems.append(Problem(code, field="levels", params={"row": number}))
        elif not row[language]:
            params = {"row": number, "language": LANGUAGES[language]}
            problems.append(Problem("criterion_level_no_text", field="levels", params=params))
        else:
            yield {"label" if classes else "value": row["key"] if classes else value, "text": row[language]}


def _number(text: str) -> float | int | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
