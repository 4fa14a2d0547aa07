"""The sentence of everything that may be wrong with a custom criterion."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

SENTENCES = {
    "criterion_invalid": _("This does not make a criterion: %(error)s"),
    "criterion_unseen": _("The text holds characters that nobody sees (%(characters)s). Remove them."),
    "criterion_one_line": _("This has to be one line."),
    "criterion_level_line": _("Line %(line)s: write each level as “key: text”."),
    "criterion_level_key": _("A level has a number, a class a name of letters, digits and spaces."),
    "criterion_level_kind": _("Levels start with numbers, classes with names."),
    "criterion_levels_order": _("Write the levels from the lowest to the highest, without a gap."),
    "criterion_classes_repeat": _("Two classes have the same name."),
    "criterion_whole_levels": _("Levels are whole numbers. For numbers between them choose the range."),
    "criterion_yes_no": _("Yes and no are the levels 0 (no) and 1 (yes)."),
    "criterion_no_question": _("Write the question that judge and experts answer."),
    "criterion_no_language": _("Write question and levels in Korean, in English, or in both."),
    "criterion_languages_differ": _("The levels of the two languages have different keys."),
    "criterion_needs_unseen": _("The criterion needs what the judge may not see: %(slots)s."),
    "criterion_needs_mark": _("“clarification_ok” marks some questions; no criterion can need it."),
    "criterion_class_direction": _("Classes have no direction: choose “neither”."),
    "criterion_no_direction": _("Say whether more or less is better."),
    "criterion_offline_class": _("The offline baseline counts words and cannot choose a class."),
    "criterion_offline_needs": _(
        "The stand-in “%(stand_in)s” counts words of “%(slot)s”, so the criterion has to need it."
    ),
}
