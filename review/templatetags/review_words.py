"""Words for what judges, reviewers and leads store: parts of a score and verdicts on them, ratings and decisions. Codes
that nobody lists here, such as a number or the label of an imported file, stand as they are."""

from collections.abc import Sequence

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.messages.sentences import explain_reason
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
register.filter(claim_look)  # the class of the style sheet for a claim
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
ISSUES, CLAIMS = {"issue", "strength"}, {"claim", "statement"}
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
    "asking_back": _("asks back"),
    "suggestion": _("suggested question"),
    "action": _("suggested action"),
    "correctness": _("correctness"),
    "completeness": _("completeness"),
    "consistency": _("consistency"),
    "missing": _("missing"),
    "negated": _("negated"),
    "estimated": _("refused, and guessed at all the same"),
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
    "reworded": _("in other words"),
}


@register.filter
def leading_to(answer: str, passages: Sequence[Passage] | None) -> SafeString:
    """The answer as safe HTML, its citations leading to the passages beside it."""
    return item.numbered_html(answer, (), passages)


MADE_BY = {
    "corrected": _("examples the judge got most wrong"),
    "boundary": _("borderline examples"),
    "diverse": _("examples across levels and categories"),
    "map": _("a map of its scores"),
}


@register.filter
def made_by(kind: str) -> str:
    """How a search made a version: by which examples, by a map, in which round of rewriting."""
    if kind.startswith("round "):
        return gettext("round %(number)s of rewriting") % {"number": kind.removeprefix("round ")}
    return str(MADE_BY.get(kind, kind))


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
    return str(named) if named else item.judge_reason(explain_reason(reason))


@register.filter
def finding_text(finding: Finding) -> str:
    """A part's text; an issue of the baseline is the name of a metric and a reason."""
    if finding.kind in CLAIMS:
        return claim_text(finding.text)
    name, colon, reason = finding.text.partition(": ")
    return f"{name}{colon}{item.judge_reason(reason)}" if colon and finding.kind in ISSUES else finding.text


@register.filter
def flag_title(kind: str) -> str:
    """What is wrong with an item."""
    return str(FLAGS[FlagKind(kind)])


@register.filter
def stored_value(one: Rating | Override) -> str:
    """A rating or decision as its metric's scale is read; a dash where there is no value."""
    return value_text(one, one.metric.read_scale())


@register.simple_tag
def drawn(passage: Passage, claims: Sequence[Claim] | None, answer: str | None) -> item.Drawn:
    """A passage with the words marked that decide claims, or that the answer took over."""
    return item.drawn(passage, claims or (), answer or "")
