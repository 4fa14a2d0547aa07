"""Names of the categories of questions that the sources and the product's own data use, in the language of the page.

A category is a word of the question set's author and stays that word in files, commands and REST; pages show a name
where the word is one of these, which no reader who is not an engineer would understand.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

NAMES = {
    "single_hop": _("one fact"),
    "multi_hop_2": _("two linked facts"),
    "multi_hop_3": _("three linked facts"),
    "aggregation": _("gathered facts"),
    "inference": _("reasoning"),
    "negative": _("negative question"),
    "comparison": pgettext_lazy("category of questions", "comparison"),
    "conditional": pgettext_lazy("category of questions", "with a condition"),
}


def category_name(category: str) -> str:
    """The name of a known category, any other as its author wrote it."""
    return str(NAMES.get(category, category))
