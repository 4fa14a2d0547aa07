"""Where a run's figures come from, in words: versions, draws, and what calls cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.judging.calls import Rung
from evaluation.messages import numbers
from evaluation.runs.progress import ASKING, EMBEDDINGS, PREFLIGHT, Spending
from review.reports.provenance import DrawUsed, JudgeUsed, PinnedJudge, Provenance, Versioned
from review.statistics.sampling.member import Strategy


def judge_title(judge: JudgeUsed) -> str:
    """The judge as pages call it: the baseline always by that word."""
    if judge.baseline:
        return gettext("offline baseline")
    return f"{judge.judge.name} v{judge.judge.version}"


def part_title(name: str) -> str:
    """What a part of a run's cost was paid for: a rubric by its name, or what is no rubric in words."""
    titles = {EMBEDDINGS: gettext("embeddings"), PREFLIGHT: gettext("preflight"), ASKING: gettext("system")}
    return titles.get(name, name)


def cost_of_calls(spent: Spending) -> str:
    """How many calls were made and what they cost."""
    said = ngettext("%(count)d call", "%(count)d calls", spent.calls) % {"count": spent.calls}
    return f"{said} · {numbers.money(spent.known, at_least=spent.at_least)}"


def saving(spent: Spending) -> str:
    """How many calls the ledger answered, and what those had cost where anybody knows."""
    hits = {"count": spent.hits}
    said = ngettext("%(count)d call answered from the cache", "%(count)d calls answered from the cache", spent.hits)
    if spent.unpriced_hits == spent.hits:
        return said % hits + gettext(" (saved: unknown)")
    return said % hits + gettext(" (saved: %(money)s)") % {
        "money": numbers.money(spent.saved, at_least=spent.saved_at_least)
    }


TITLES: dict[str, str | Promise] = {
    Strategy.ALL: _("every answer"),
    Strategy.UNIFORM: _("by chance alone"),
    Strategy.STRATIFIED: _("spread over judge scores and categories"),
    Strategy.FAILS_PLUS_SHARE: _("all that failed and a share of the others"),
    Strategy.UNCERTAINTY: _("where the judge is unsure"),
    Strategy.HAND_PICKED: _("picked by hand"),
}


def strategy_title(name: str) -> str:
    """The strategy in words."""
    return str(TITLES.get(name, name))


HASH_SHOWN = 12


class Fact(NamedTuple):
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
        *(Fact(gettext("Imported judge"), f"{author} · {metric}") for metric, author in source.imported_judges.items()),
        *(_pinned(one) for one in source.preflights),
        *_embedded(source),
        *(_draw(draw) for draw in source.draws),
        *_costs(source),
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
    several = len(judge.served) > 1
    models = ", ".join(dict.fromkeys([judge.model, *(map(str, judge.served) if several else judge.models_returned)]))
    told = [judge_title(judge), rubric, repeats]
    if judge.method.startswith("expected"):
        told.append(gettext("levels expected over token probabilities"))
    return Fact(term, " · ".join(told), models)


def _pinned(found: PinnedJudge) -> Fact:
    """What the preflight found out."""
    told = [found.judge, rung_title(found.rung), gettext("answered by %(model)s") % {"model": found.model_returned}]
    told.append(gettext("tells tokens") if found.usage else gettext("tells no tokens"))
    if found.logprobs is not None:
        told.append(gettext("log probabilities") if found.logprobs else gettext("no log probabilities"))
    return Fact(gettext("Preflight"), " · ".join(told), found.judge_hash[:HASH_SHOWN])


def rung_title(rung: str) -> str:
    """How a judge is asked for its verdict."""
    titles = {
        Rung.JSON_SCHEMA: gettext("strict JSON schema"),
        Rung.TOOL: gettext("forced tool call"),
        Rung.JSON_OBJECT: gettext("JSON object"),
        Rung.TEXT: gettext("last line of the text"),
    }
    return titles[Rung(rung)] if rung else ""


def _embedded(source: Provenance) -> Iterator[Fact]:
    """What texts and tokens were embedded with; nothing where the run needed no embeddings or had none."""
    if found := source.embeddings:
        digest = "" if found.endpoint else f" {found.sha256[:HASH_SHOWN]}"
        yield Fact(gettext("Embeddings"), found.endpoint or gettext("local model"), f"{found.model}{digest}")
    if tokens := source.token_model:
        layer = gettext("local model, layer %(layer)d") % {"layer": tokens.layer}
        yield Fact("BERTScore", layer, tokens.sha256[:HASH_SHOWN])


def _draw(draw: DrawUsed) -> Fact:
    sizes = {
        "sampled": draw.sampled,
        "frame": draw.frame,
        "strategy": strategy_title(draw.strategy),
        "queue": draw.queue,
    }
    text = gettext("%(queue)s: %(sampled)d of %(frame)d drawn, %(strategy)s") % sizes
    return Fact(gettext("Draw"), text, gettext("seed %(seed)s") % {"seed": draw.seed})


def _costs(source: Provenance) -> list[Fact]:
    """The cost in all, by what it was paid for where that is several things, and what was not paid again."""
    saved = [Fact(gettext("Cache"), saving(source.cost))] if source.cost.hits else []
    if not source.cost.calls:
        return [Fact(gettext("Cost"), gettext("no calls")), *saved]
    called = {name: part for name, part in source.cost_by_rubric.items() if part.calls}
    parts = [Fact(_part_term(name), _cost(part)) for name, part in called.items()] if len(called) > 1 else []
    return [Fact(gettext("Cost"), _cost(source.cost)), *parts, *saved]


def _part_term(name: str) -> str:
    return gettext("Cost: %(rubric)s") % {"rubric": part_title(name)}


def _cost(cost: Spending) -> str:
    counts = {"calls": cost.calls, "tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out}
    said = [
        numbers.money(cost.known, at_least=cost.at_least),
        ngettext(
            "%(calls)d call, %(tokens_in)d tokens in, %(tokens_out)d out",
            "%(calls)d calls, %(tokens_in)d tokens in, %(tokens_out)d out",
            cost.calls,
        )
        % counts,
    ]
    if cost.tokens_cached:
        said.append(gettext("%(count)d of them cached") % {"count": cost.tokens_cached})
    if cost.tokens_reasoning:
        said.append(gettext("%(count)d for reasoning") % {"count": cost.tokens_reasoning})
    return " · ".join(said)
