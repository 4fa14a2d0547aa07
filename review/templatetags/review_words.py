"""Filters that word stored codes of findings, verdicts, ratings and decisions. Unknown codes stay unchanged."""

from collections.abc import Sequence

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.messages.explanations import explain_reason
from evaluation.models import Finding
from review.evidence.rating_input import FlagKind
from review.models import Override, Rating
from review.ratings.card import Claim, Passage
from review.ratings.pages import item
from review.ratings.pages.card import FLAGS
from review.ratings.pages.item import claim_look, claim_text, value_text, verdict_title
from review.reports.retrieval import unrated_in_words

register = template.Library()
register.filter(unrated_in_words)
register.filter(verdict_title)
register.filter(claim_text)
# Returns a CSS class.
register.filter(claim_look)
KINDS = {
    "keyword": _("keyword"),
    "claim": _("claim"),
    "statement": _("statement"),
    "context": _("passage"),
    "nugget": _("nugget"),
    "citation": _("citation"),
    "flag": _("flagged text"),
    "step": _("step"),
    "issue": _("issue"),
    "strength": _("strength"),
    "next_step": _("next step"),
}
ISSUES, CLAIMS = {"issue", "strength"}, {"claim", "statement"}
VERDICTS = {
    "supported": _("supported"),
    "partial": _("partly supported"),
    "unsupported": _("unsupported"),
    "contradicted": _("contradicted"),
    "relevant": _("helps"),
    "irrelevant": _("does not help"),
    "cited": _("used"),
    "uncited": _("not used"),
    "article": _("article"),
    "name": _("regulation name"),
    "unknown_phone": _("phone number not in any source"),
    "forbidden_name": _("forbidden name"),
    "avoidance": _("evasive wording"),
    "dont_know": _("admits not knowing"),
    "asking_back": _("asks a question back"),
    "suggestion": _("suggested question"),
    "action": _("suggested action"),
    "correctness": _("correctness"),
    "completeness": _("completeness"),
    "consistency": _("consistency"),
    "missing": _("missing"),
    "negated": _("negated"),
    "estimated": _("refused but guessed anyway"),
    "all_of": _("must occur"),
    "any_of": _("one of these must occur"),
    "none_of": _("must not occur"),
}
TIERS = {
    "exact": _("exact match"),
    "spacing": _("different spacing"),
    "particle": _("with a Korean particle attached"),
    "number": _("as a number"),
    "compound": _("in a compound"),
    "alternative": _("in another wording"),
    "substring": _("as part of the text"),
    "reference": _("named"),
    "words": _("in the same words"),
    "characters": _("in the same characters"),
    "reworded": _("in other words"),
}


@register.filter
def leading_to(answer: str, passages: Sequence[Passage] | None) -> SafeString:
    """Render the answer as safe HTML, with links from citations to passages."""
    return item.answer_html(answer, (), passages)


MADE_BY = {
    "corrected": _("examples the judge got most wrong"),
    "boundary": _("borderline examples"),
    "diverse": _("examples across levels and categories"),
    "map": _("score map"),
}


@register.filter
def made_by(kind: str) -> str:
    """Origin of a prompt version in a search: examples, a score map, or a round of rewriting."""
    if kind.startswith("round "):
        return gettext("rewriting round %(number)s") % {"number": kind.removeprefix("round ")}
    return str(MADE_BY.get(kind, kind))


@register.filter
def finding_kind(kind: str) -> str:
    return str(KINDS.get(kind, kind))


@register.filter
def finding_verdict(verdict: str) -> str:
    """Word a verdict or a type of match."""
    return str(VERDICTS.get(verdict) or TIERS.get(verdict) or verdict)


@register.filter
def finding_reason(reason: str) -> str:
    """Word a reason code. A judge's own words stay unchanged."""
    named = TIERS.get(reason) or VERDICTS.get(reason)
    return str(named) if named else item.judge_reason(explain_reason(reason))


@register.filter
def finding_text(finding: Finding) -> str:
    """Text of a finding. An issue of the baseline consists of a metric and a reason."""
    if finding.kind in CLAIMS:
        return claim_text(finding.text)
    name, colon, reason = finding.text.partition(": ")
    return f"{name}{colon}{item.judge_reason(reason)}" if colon and finding.kind in ISSUES else finding.text


@register.filter
def flag_title(kind: str) -> str:
    return str(FLAGS[FlagKind(kind)])


@register.filter
def stored_value(decision: Rating | Override) -> str:
    """Format a rating or decision on its metric's scale."""
    return value_text(decision, decision.metric.read_scale())


@register.simple_tag
def drawn(passage: Passage, claims: Sequence[Claim] | None, answer: str | None) -> item.RenderedPassage:
    """Mark words in a passage that decide claims or that the answer copied."""
    return item.render_passage(passage, claims or (), answer or "")
