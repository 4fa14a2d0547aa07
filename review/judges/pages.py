"""What judges are like and how far they can be trusted (the pages of judges and criteria), and where
a run's figures come from: versions, draws, and what calls cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import get_language, gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import JudgeAttacks, features
from evaluation.judging.calls import Rung
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_reason
from evaluation.models import CriterionEvent, CriterionVersion, JudgeVersion
from evaluation.runs.progress import ASKING, EMBEDDINGS, PREFLIGHT, Spending
from review.comparisons.trend import JudgeRecord, MetricRecord
from review.reports.provenance import DrawUsed, JudgeUsed, PinnedJudge, Provenance, Versioned
from review.reports.verdict import MetricTrust
from review.statistics.agreement.trust import Trust
from review.statistics.sampling.member import Strategy


def judge_title(judge: JudgeUsed) -> str:
    """The judge as pages call it: the baseline always by that word."""
    if judge.baseline:
        return gettext("offline baseline")
    return f"{judge.judge.name} v{judge.judge.version}"


class JudgeMetric(NamedTuple):
    """A metric of a judge. ``newer`` names a newer version of its rubric; ``trust`` is ``None`` where no agreement has
    been computed."""

    record: MetricRecord
    newer: str
    trust: MetricTrust | None


class JudgeCard(NamedTuple):
    """A judge with everything that is at hand. ``price`` is empty where it is not known."""

    record: JudgeRecord
    title: str
    price: str
    metrics: tuple[JudgeMetric, ...]
    warnings: tuple[str, ...]


class CriterionLine(NamedTuple):
    """A custom criterion in force, in the reader's language."""

    version: CriterionVersion
    spec: CriterionSpec
    title: str
    question: str


def attacks_of(judge: JudgeVersion) -> JudgeAttacks | None:
    """How a judge stood up to attacks; ``None`` where the feature is not installed."""
    return next((feature.attacks(judge) for feature in features() if feature.attacks), None)


def judge_card(record: JudgeRecord) -> JudgeCard:
    """The card of a judge."""
    judge = record.judge
    return JudgeCard(
        record=record,
        title=gettext("offline baseline") if judge.is_baseline else f"{judge.name} v{judge.version}",
        price=_price(record),
        metrics=tuple(_metric(one) for one in record.metrics),
        warnings=tuple(_warnings(record)),
    )


def _price(record: JudgeRecord) -> str:
    if record.judge.is_baseline:
        return gettext("free: no model is called")
    if record.price is None:
        return ""
    prices = {"input": f"{record.price.input:g}", "output": f"{record.price.output:g}"}
    return gettext("$%(input)s in, $%(output)s out for a million tokens") % prices


def _metric(one: MetricRecord) -> JudgeMetric:
    newer = gettext("version %(number)d is newer") % {"number": one.newer} if one.newer else ""
    trust = None if one.agreed is None else MetricTrust(one.spec.name, one.spec.title, one.agreed, one.spec.scale)
    return JudgeMetric(one, newer, trust)


def _warnings(record: JudgeRecord) -> Iterator[str]:
    if record.judge.is_baseline:
        yield gettext("A simple word-overlap baseline. Use it as a reference point, not as a judge.")
    elif record.price is None:
        yield gettext("No price of its model is known, so neither is the cost of its runs.")
    if record.trouble:
        yield gettext("Its last check failed: %(reason)s") % {"reason": explain_reason(record.trouble)}
    if record.changed:
        before, now = record.changed
        yield gettext(
            "Its agreement is that of %(before)s, but %(now)s answers under its name now: rate answers of a newer run."
        ) % {"before": before, "now": now}
    if record.newer:
        yield gettext("Version %(number)d of this judge is newer.") % {"number": record.newer}
    if not record.runs:
        yield gettext("No run has used it yet.")
    elif record.measured is None:
        yield gettext("Nobody has rated an answer it judged, so nobody knows how far it can be trusted.")
    if any(one.agreed is not None and one.agreed.trust is Trust.NO for one in record.metrics):
        yield gettext("Don't rely on it for some metrics: it agrees too little with the experts.")


def criterion_line(event: CriterionEvent) -> CriterionLine:
    """The criterion that the event put in force."""
    spec, language = event.version.read(), get_language() or "en"
    title = spec.title_ko if language.startswith("ko") else spec.title_en
    return CriterionLine(event.version, spec, title, spec.texts(language).question)


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
