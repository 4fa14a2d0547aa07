"""What a part of a score is called on a page, and the verdict on it. Codes that nobody lists here, such as a number or
the label of an imported file, stand as they are."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext_lazy as _

from evaluation.wording.messages import explain_reason

register = template.Library()
KINDS = {
    "keyword": _("keyword"),
    "claim": _("claim"),
    "statement": _("statement"),
    "context": _("passage"),
    "nugget": _("nugget"),
    "citation": _("citation"),
    "flag": _("flagged passage"),
    "step": _("step"),
    "issue": _("issue"),
    "strength": _("strength"),
    "next_step": _("next step"),
}
VERDICTS = {
    "supported": _("supported"),
    "partial": _("supported in part"),
    "unsupported": _("unsupported"),
    "contradicted": _("contradicted"),
    "relevant": _("helps"),
    "irrelevant": _("does not help"),
    "cited": _("drawn on"),
    "uncited": _("not drawn on"),
    "article": _("article"),
    "name": _("name of a regulation"),
    "unknown_phone": _("telephone number in no source"),
    "forbidden_name": _("name that must not occur"),
    "avoidance": _("evasive wording"),
    "dont_know": _("admits not knowing"),
    "suggestion": _("suggested question"),
    "action": _("suggested action"),
    "correctness": _("correctness"),
    "completeness": _("completeness"),
    "consistency": _("consistency"),
    "missing": _("missing"),
    "negated": _("negated"),
    "all_of": _("has to occur"),
    "any_of": _("one of these has to occur"),
    "none_of": _("must not occur"),
}
TIERS = {
    "exact": _("word for word"),
    "spacing": _("spaced differently"),
    "particle": _("with a particle"),
    "number": _("as a number"),
    "compound": _("in a compound"),
    "alternative": _("in another wording"),
    "substring": _("as part of the text"),
    "reference": _("named"),
    "words": _("in the same words"),
    "characters": _("in the same characters"),
}


@register.filter
def finding_kind(kind: str) -> str:
    """The word for a kind of part."""
    return str(KINDS.get(kind, kind))


@register.filter
def finding_verdict(verdict: str) -> str:
    """The word for a verdict, or for the way something was found."""
    return str(VERDICTS.get(verdict) or TIERS.get(verdict) or verdict)


@register.filter
def finding_reason(reason: str) -> str:
    """A judge's own words as they are; a code in words."""
    named = TIERS.get(reason) or VERDICTS.get(reason)
    return str(named) if named else explain_reason(reason)
