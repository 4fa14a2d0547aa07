"""Provenance of a run in words: versions, draws and cost of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.judging.calls import ResponseFormat
from evaluation.messages import numbers
from evaluation.runs.progress import ASKING, EMBEDDINGS, PREFLIGHT, Spending
from review.reports.provenance import DrawUsed, JudgeUsed, PinnedJudge, Provenance, Versioned
from review.statistics.sampling.draw import CHANGED
from review.statistics.sampling.member import Strategy


def judge_title(judge: JudgeUsed) -> str:
    """Title of the judge. The baseline has a fixed name."""
    if judge.baseline:
        return gettext("offline baseline")
    return f"{judge.judge.name} v{judge.judge.version}"


def part_title(name: str) -> str:
    """Title of a cost position: a rubric's name, or embeddings, preflight or system in words."""
    titles = {EMBEDDINGS: gettext("embeddings"), PREFLIGHT: gettext("preflight"), ASKING: gettext("system")}
    return titles.get(name, name)


def cost_of_calls(spent: Spending) -> str:
    text = ngettext("%(count)d call", "%(count)d calls", spent.calls) % {"count": spent.calls}
    return f"{text} · {numbers.format_money(spent.known, at_least=spent.at_least)}"


def cache_savings(spent: Spending) -> str:
    """Number of calls answered from the cache and the cost they saved, if known."""
    hits = {"count": spent.hits}
    text = ngettext("%(count)d call answered from the cache", "%(count)d calls answered from the cache", spent.hits)
    if spent.unpriced_hits == spent.hits:
        return text % hits + gettext(" (saved: unknown)")
    return text % hits + gettext(" (saved: %(money)s)") % {
        "money": numbers.format_money(spent.saved, at_least=spent.saved_at_least)
    }


TITLES: dict[str, str | Promise] = {
    Strategy.ALL: _("all answers"),
    Strategy.UNIFORM: _("simple random"),
    Strategy.STRATIFIED: _("stratified by judge score and category"),
    Strategy.FAILS_PLUS_SHARE: _("all failed answers plus a sample of the rest"),
    Strategy.UNCERTAINTY: _("where the judge is least consistent"),
    Strategy.HAND_PICKED: _("hand-picked"),
    Strategy.SECOND_OPINION: _("second opinions"),
    Strategy.RECHECK: _("rechecks"),
    CHANGED: _("changed answers of two runs"),
}


def strategy_title(name: str) -> str:
    return str(TITLES.get(name, name))


HASH_SHOWN = 12


class Fact(NamedTuple):
    """A term with its text. ``code`` (a hash or model id) appears in a fixed-width font."""

    term: str
    text: str
    code: str = ""


def provenance_facts(source: Provenance) -> tuple[Fact, ...]:
    """Versions, hashes, models, draws, cost and dates."""
    facts = [
        _version_fact(gettext("Question set"), source.question_set),
        _version_fact(gettext("System"), source.system),
        _version_fact(gettext("Profile"), source.profile),
        *(_judge_fact(judge) for judge in source.judges),
        *(Fact(gettext("Imported judge"), f"{author} · {metric}") for metric, author in source.imported_judges.items()),
        *(_preflight_fact(preflight) for preflight in source.preflights),
        *_embedding_facts(source),
        *_package_facts(source),
        *(_draw_fact(draw) for draw in source.draws),
        *_cost_facts(source),
        Fact(gettext("Answers"), source.answers_source, source.answers_hash[:HASH_SHOWN]),
        Fact(gettext("Configuration"), f"k = {source.k} · {source.evaluation_type}", source.config_hash[:HASH_SHOWN]),
        Fact(gettext("Seed"), str(source.seed)),
        Fact(gettext("Product version"), source.product_version),
    ]
    if source.finished_at:
        finished = date_format(localtime(source.finished_at), "DATETIME_FORMAT")
        facts.append(Fact(gettext("Finished"), finished))
    return tuple(facts)


def _version_fact(term: str, versioned: Versioned) -> Fact:
    return Fact(term, f"{versioned.name} v{versioned.version}", versioned.content_hash[:HASH_SHOWN])


def _judge_fact(judge: JudgeUsed) -> Fact:
    term = gettext("Judge") if judge.primary else gettext("Comparison judge")
    repeats = ngettext("%(count)d repeat", "%(count)d repeats", judge.repeats) % {"count": judge.repeats}
    rubric = f"{judge.rubric.name} v{judge.rubric.version} ({judge.language})"
    several = len(judge.served) > 1
    models = ", ".join(dict.fromkeys([judge.model, *(map(str, judge.served) if several else judge.models_returned)]))
    parts = [judge_title(judge), rubric, repeats]
    if judge.method.startswith("expected"):
        parts.append(gettext("expected level from token probabilities"))
    return Fact(term, " · ".join(parts), models)


def _preflight_fact(preflight: PinnedJudge) -> Fact:
    parts = [
        preflight.judge,
        response_format_title(preflight.response_format),
        gettext("answered by %(model)s") % {"model": preflight.model_returned},
    ]
    parts.append(gettext("returns token counts") if preflight.usage else gettext("returns no token counts"))
    if preflight.logprobs is not None:
        parts.append(gettext("log probabilities") if preflight.logprobs else gettext("no log probabilities"))
    return Fact(gettext("Preflight"), " · ".join(parts), preflight.judge_hash[:HASH_SHOWN])


def response_format_title(response_format: str) -> str:
    """Response format that the judge is asked for, in words."""
    titles = {
        ResponseFormat.JSON_SCHEMA: gettext("strict JSON schema"),
        ResponseFormat.TOOL: gettext("forced tool call"),
        ResponseFormat.JSON_OBJECT: gettext("JSON object"),
        ResponseFormat.TEXT: gettext("last line of the reply"),
    }
    return titles[ResponseFormat(response_format)] if response_format else ""


def _embedding_facts(source: Provenance) -> Iterator[Fact]:
    """Models that embedded texts and tokens, if any."""
    if embeddings := source.embeddings:
        digest = "" if embeddings.endpoint else f" {embeddings.sha256[:HASH_SHOWN]}"
        yield Fact(gettext("Embeddings"), embeddings.endpoint or gettext("local model"), f"{embeddings.model}{digest}")
    if tokens := source.token_model:
        layer = gettext("local model, layer %(layer)d") % {"layer": tokens.layer}
        yield Fact("BERTScore", layer, tokens.sha256[:HASH_SHOWN])


def _package_facts(source: Provenance) -> Iterator[Fact]:
    """Packages of own metrics, each with its metrics."""
    for stamp in sorted(set(source.packages.values())):
        package, _space, digest = stamp.rpartition(" ")
        names = sorted(name for name, of_metric in source.packages.items() if of_metric == stamp)
        yield Fact(gettext("Own metrics"), f"{package} · {', '.join(names)}", digest)


def _draw_fact(draw: DrawUsed) -> Fact:
    sizes = {
        "sampled": draw.sampled,
        "frame": draw.frame,
        "strategy": strategy_title(draw.strategy),
        "queue": draw.queue,
    }
    text = gettext("%(queue)s: %(sampled)d of %(frame)d sampled, %(strategy)s") % sizes
    return Fact(gettext("Sample"), text, gettext("seed %(seed)s") % {"seed": draw.seed})


def _cost_facts(source: Provenance) -> list[Fact]:
    """Total cost, its positions if there are several, and cache savings."""
    saved = [Fact(gettext("Cache"), cache_savings(source.cost))] if source.cost.hits else []
    if not source.cost.calls:
        return [Fact(gettext("Cost"), gettext("no calls")), *saved]
    paid_parts = {name: part for name, part in source.cost_by_rubric.items() if part.calls}
    parts = (
        [Fact(_part_term(name), _cost_text(part)) for name, part in paid_parts.items()] if len(paid_parts) > 1 else []
    )
    return [Fact(gettext("Cost"), _cost_text(source.cost)), *parts, *saved]


def _part_term(name: str) -> str:
    return gettext("Cost: %(rubric)s") % {"rubric": part_title(name)}


def _cost_text(cost: Spending) -> str:
    counts = {"calls": cost.calls, "tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out}
    parts = [
        numbers.format_money(cost.known, at_least=cost.at_least),
        ngettext(
            "%(calls)d call, %(tokens_in)d tokens in, %(tokens_out)d out",
            "%(calls)d calls, %(tokens_in)d tokens in, %(tokens_out)d out",
            cost.calls,
        )
        % counts,
    ]
    if cost.tokens_cached:
        parts.append(gettext("%(count)d of them cached") % {"count": cost.tokens_cached})
    if cost.tokens_reasoning:
        parts.append(gettext("%(count)d for reasoning") % {"count": cost.tokens_reasoning})
    return " · ".join(parts)
