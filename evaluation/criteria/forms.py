"""The form of a custom criterion, and what its fields are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.criteria.services import name_is_free
from evaluation.judging.criteria.spec import (
    LONGEST_ANCHOR,
    LONGEST_LABEL,
    MOST_LEVELS,
    CriterionSpec,
    read_criterion,
)
from evaluation.judging.rubric import Offline, Slot
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import CriterionVersion, Project

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
_ABOUT_LEVELS = {  # of what is wrong with the criterion as a whole
    *("criterion_level_kind", "criterion_levels_order", "criterion_classes_repeat"),
    *("criterion_whole_levels", "criterion_yes_no"),
}
LANGUAGES = {"ko": _("in Korean"), "en": _("in English")}
Row = Mapping[str, str]  # a level as its fields hold it: key, ko, en


class LevelsWidget(forms.Widget):
    """A row of fields for each level there may be. A script hides those that are not used yet, and adds and removes
    them; without one they all stand there, and empty ones count for nothing."""

    class Media:
        js = ("js/levels.js",)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """The table."""
        held: list[Row] = [*(value or ())][:MOST_LEVELS]
        blank = {"key": "", **dict.fromkeys(LANGUAGES, "")}
        own = (get_language() or "en")[:2]
        languages = sorted(LANGUAGES.items(), key=lambda one: one[0] != own)
        said = {
            "name": name,
            "id": (attrs or {}).get("id", name),
            "languages": languages,
            "rows": [
                (row["key"], [(code, title, row[code]) for code, title in languages])
                for row in [*held, *[blank] * (MOST_LEVELS - len(held))]
            ],
            "described_by": (attrs or {}).get("aria-describedby", ""),
            "longest": {"key": LONGEST_LABEL, "text": LONGEST_ANCHOR},
        }
        return render_to_string("evaluation/criteria/_levels.html", said)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[dict[str, str]]:
        """The rows as they were sent, empty ones left out."""
        sent = (
            {part: str(data.get(f"{name}-{place}-{part}", "")).strip() for part in ("key", *LANGUAGES)}
            for place in range(MOST_LEVELS)
        )
        return [row for row in sent if any(row.values())]

    def id_for_label(self, id_: str) -> str:
        """None: the fields have labels of their own."""
        return ""


class LevelsField(forms.Field):
    """The levels of a criterion, each with its key and its text in one language or both."""

    widget = LevelsWidget

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether another level or text was written."""
        return bool([*(initial or ())] != data)


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
    question_en = _line(_("question in English"))
    instruction_en = _lines(_("guidance in English"), 5, _("Read by the judge below the fixed rules of grading."))
    levels = LevelsField(
        label=_("levels"),
        required=False,
        help_text=_(
            "From the lowest to the highest; no and yes are 0 and 1, classes have names. The text says when an answer "
            "gets it, briefly enough for a button. Empty rows count for nothing."
        ),
    )
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
            field = "levels" if problem.code in _ABOUT_LEVELS else field_of(problem.field)
            level = re.search(r"\.levels\.(\d+)", problem.field)
            place = gettext("level %(number)s") % {"number": int(level[1]) + 1} if level else ""
            told = explain(Problem(problem.code, field=place, params=problem.params))
            self.add_error(field if field in self.fields else None, told)
        return said

    def validate_unique(self) -> None:
        """Equal content selects the version that has it."""


def written(said: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The criterion as data from what the form's fields hold, and lines that are no levels."""
    problems: list[Problem] = []
    plain = ("name", "title_en", "title_ko", "form", "direction", "sees", "needs", "offline")
    values: dict[str, Any] = {key: said[key] for key in plain if key in said}
    values["categories"] = [line.strip() for line in said.get("categories", "").splitlines() if line.strip()]
    rows: list[Row] = said.get("levels") or []
    for language in LANGUAGES:
        question = said.get(f"question_{language}", "")
        if question or any(row[language] for row in rows):
            values[language] = {
                "question": question,
                "instruction": said.get(f"instruction_{language}", "").replace("\r\n", "\n"),
                "levels": [*_levels(rows, language, said.get("form") == "class", problems)],
            }
    return values, [one for place, one in enumerate(problems) if one not in problems[:place]]


def filled(spec: CriterionSpec) -> dict[str, Any]:
    """What the form's fields hold for a criterion."""
    found: dict[str, Any] = spec.model_dump(mode="json", exclude={"en", "ko"})
    found["categories"] = "\n".join(spec.categories)
    rows: list[dict[str, str]] = []
    for language in spec.languages:
        texts = spec.texts(language)
        found[f"question_{language}"] = texts.question
        found[f"instruction_{language}"] = texts.instruction
        rows = rows or [{"key": key_text(key), **dict.fromkeys(LANGUAGES, "")} for key in texts.keys]
        for row, level in zip(rows, texts.levels, strict=True):
            row[language] = level.text
    return found | {"levels": rows}


def key_text(key: float | str) -> str:
    """A level's key as it is written."""
    return key if isinstance(key, str) else f"{key:g}"


def field_of(path: str) -> str:
    """The form's field for a path such as ``en.question``; levels have one for both languages."""
    head, _, rest = path.partition(".")
    if head in LANGUAGES:
        name = rest.partition(".")[0] or "question"
        return name if name == "levels" else f"{name}_{head}"
    return head


def _levels(rows: list[Row], language: str, classes: bool, problems: list[Problem]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows, start=1):
        value = None if classes else _number(row["key"])
        if not row["key"] or (value is None and not classes):
            code = "criterion_class_unnamed" if classes else "criterion_level_no_number"
            problems.append(Problem(code, field="levels", params={"row": number}))
        elif not row[language]:
            told = {"row": number, "language": LANGUAGES[language]}
            problems.append(Problem("criterion_level_no_text", field="levels", params=told))
        else:
            yield {"label" if classes else "value": row["key"] if classes else value, "text": row[language]}


def _number(text: str) -> float | int | None:
    try:
        value = float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None
    return int(value) if value.is_integer() else value
