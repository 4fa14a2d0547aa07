"""Where the figures come from, as pairs of a term and its text."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext

from review.pages import numbers
from review.pages.strategies import strategy_title
from review.pages.trust import judge_title
from review.reporting.provenance import DrawUsed, JudgeUsed, Provenance, Versioned

HASH_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """A term with its text; ``code`` (a hash, a model id) is shown in a fixed-width face."""

    term: str
    text: str
    code: str = ""


def provenance_facts(source: Provenance) -> tuple[Fact, ...]:
    """Versions, hashes, models, draws, cost and dates."""
    facts = [
        _version(gettext("Question set"), source.question_set),
        _version(gettext("System"), source.system),
        _version(gettext("Profile"), source.profile),
        *(_judge(judge) for judge in source.judges),
        *(_draw(draw) for draw in source.draws),
        _cost(source),
        Fact(gettext("Answers"), source.answers_source, source.answers_hash[:HASH_SHOWN]),
        Fact(gettext("Configuration"), f"k = {source.k} · {source.evaluation_type}", source.config_hash[:HASH_SHOWN]),
        Fact(gettext("Seed"), str(source.seed)),
        Fact(gettext("Product version"), source.product_version),
    ]
    if source.finished_at:
        finished = date_format(localtime(source.finished_at), "DATETIME_FORMAT")
        facts.append(Fact(gettext("Finished"), finished))
    return tuple(facts)


def _version(term: str, thing: Versioned) -> Fact:
    return Fact(term, f"{thing.name} v{thing.version}", thing.content_hash[:HASH_SHOWN])


def _judge(judge: JudgeUsed) -> Fact:
    term = gettext("Judge") if judge.primary else gettext("Compared judge")
    repeats = ngettext("%(count)d repeat", "%(count)d repeats", judge.repeats) % {"count": judge.repeats}
    rubric = f"{judge.rubric.name} v{judge.rubric.version} ({judge.language})"
    models = ", ".join(dict.fromkeys([judge.model, *judge.models_returned]))
    return Fact(term, f"{judge_title(judge)} · {rubric} · {repeats}", models)


def _draw(draw: DrawUsed) -> Fact:
    sizes = {
        "sampled": draw.sampled,
        "frame": draw.frame,
        "strategy": strategy_title(draw.strategy),
        "queue": draw.queue,
    }
    text = gettext("%(queue)s: %(sampled)d of %(frame)d drawn, %(strategy)s") % sizes
    return Fact(gettext("Draw"), text, gettext("seed %(seed)s") % {"seed": draw.seed})


def _cost(source: Provenance) -> Fact:
    cost = source.cost
    if not cost.calls:
        return Fact(gettext("Cost"), gettext("no calls"))
    counts = {"calls": cost.calls, "tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out}
    calls = gettext("%(calls)d calls, %(tokens_in)d tokens in, %(tokens_out)d out") % counts
    return Fact(gettext("Cost"), f"{numbers.money(cost.known, at_least=cost.at_least)} · {calls}")
