"""Codes to sentences in the reader's language, which the modules beside it hold; and names of the categories of
questions that the sources and the product's own data use.

A category is a word of the question set's author and stays that word in files, commands and REST; pages show a name
where the word is one of these, which no reader who is not an engineer would understand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from evaluation.core.errors import Problem, Refused
from evaluation.wording import problems, reasons, refusals

_BYTES = {"file_too_large", "workbook_too_large"}
_TABLES = (".csv", ".tsv", ".xlsx")


def explain(problem: Problem) -> str:
    """File, line (row, in a table) and field, then what is wrong and what to do."""
    place = ", ".join(part for part in (problem.file, _line(problem), problem.field) if part)
    sentence = _filled(problems.SENTENCES, problem.code, _readable(problem))
    return f"{place}: {sentence}" if place else sentence


def explain_reason(reason: str) -> str:
    """Why there is no value: the sentence of the code in front of ``": "``, then the detail behind it. A detail that is
    a reason itself (``upstream: timeout``) is explained too."""
    code, _colon, detail = reason.partition(": ")
    if code not in reasons.SENTENCES:
        return reason
    sentence = str(reasons.SENTENCES[code])
    return f"{sentence} ({explain_reason(detail)})" if detail else sentence


def advise(reason: str) -> str:
    """What a person has to do about the reason a run was paused for; empty where nothing needs to be done."""
    return str(reasons.ADVICE.get(reason.partition(": ")[0], ""))


def explain_doubt(code: str, params: Mapping[str, Any]) -> str:
    """What is doubtful about a run's judge."""
    return _filled(reasons.DOUBTS, code, params)


def explain_refusal(refused: Refused) -> str:
    """Why an action was refused and what to do instead."""
    params = {key: ", ".join(map(str, v)) if isinstance(v, list | tuple) else v for key, v in refused.params.items()}
    return _filled(refusals.SENTENCES, refused.code, params)


def _line(problem: Problem) -> str:
    if problem.line is None:
        return ""
    if problem.file.lower().endswith(_TABLES):
        return _("row %(number)s") % {"number": problem.line}
    return _("line %(number)s") % {"number": problem.line}


def _readable(problem: Problem) -> Mapping[str, Any]:
    """The parameters with kinds of values named in the language and sizes in bytes made readable."""
    params = dict(problem.params)
    if "found" in params:
        params["found"] = problems.KINDS.get(params["found"], params["found"])
    if problem.code in _BYTES:
        params |= {key: filesizeformat(params[key]) for key in ("size", "limit") if key in params}
    return params


def _filled(sentences: Mapping[str, str | Promise], code: str, params: Mapping[str, Any]) -> str:
    """The sentence with its parameters; a code without a sentence is shown as it is rather than hidden."""
    if code not in sentences:
        details = ", ".join(f"{key} = {value}" for key, value in params.items())
        return _("Problem “%(code)s” (%(details)s).") % {"code": code, "details": details}
    return str(sentences[code]) % params


CATEGORY_NAMES = {
    "single_hop": gettext_lazy("one fact"),
    "multi_hop_2": gettext_lazy("two linked facts"),
    "multi_hop_3": gettext_lazy("three linked facts"),
    "aggregation": gettext_lazy("gathered facts"),
    "inference": gettext_lazy("reasoning"),
    "negative": gettext_lazy("negative question"),
    "comparison": pgettext_lazy("category of questions", "comparison"),
    "conditional": pgettext_lazy("category of questions", "with a condition"),
}


def category_name(category: str) -> str:
    """The name of a known category, any other as its author wrote it."""
    return str(CATEGORY_NAMES.get(category, category))
