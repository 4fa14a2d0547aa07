"""Generates ``docs/metrics.md`` from the metric registry: ``python -m evaluation.management.metrics_page``."""

from collections.abc import Iterator
from pathlib import Path

from evaluation.core.metric_specs import MetricSpec
from evaluation.core.scales import ScaleKind
from evaluation.judging.catalogue import families, family_named, own_families
from evaluation.judging.embedding.similarity import EMBEDDING_METRICS
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS
from evaluation.profiles.spec import ProfileSpec, shipped_profiles

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
HEAD = """# Metrics

For evaluation engineers: look up a metric's formula, range and needs, and when it is not applicable.

This page is generated from the registry (`python -m evaluation.management.metrics_page`). A test fails if it is stale.
Change the metric, not this page.

A metric gives each answer a result that is *scored*, *not applicable* with a reason, or *failed* with a reason. A
failure is never a number. "Needs" lists what the question, the answer or the system must provide. "Sees" lists what
a judge is shown in addition to question and answer, if it exists. "Source" is the kind of evaluation that the metric
comes from ([sources](sources.md)).

[Own metrics](own-metrics.md) of a site are not listed here. `manage.py own_metrics` describes them in the same way.

이 문서는 지표 정의에서 생성합니다(`python -m evaluation.management.metrics_page`).
고치려면 문서가 아니라 지표를 바꾸세요.
지표는 답변마다 점수, 해당 없음(이유 포함), 실패(이유 포함) 중 하나를 냅니다. 실패는 숫자로 바꾸지 않습니다.
"""
FORMS = {
    "level": "anchored levels",
    "claims": "verdicts on claims",
    "nuggets": "verdicts on nuggets",
    "contexts": "verdicts on passages",
    "yes_no": "yes or no",
    "class": "a class",
    "none": "not rated",
}


def metrics_page() -> str:
    return (
        "\n".join(
            [HEAD, *_overview(), *_rule_metrics(), *_embedding_metrics(), *_judge_metrics(), *_derived_metrics()]
        ).rstrip()
        + "\n"
    )


def _overview() -> Iterator[str]:
    yield "## Profiles / 프로필\n"
    yield "| profile | source | overall score | metrics |"
    yield "|---|---|---|---|"
    for profile in shipped_profiles():
        title = f"`{profile.name}`: {profile.title.en} / {profile.title.ko}"
        metrics = ", ".join(f"`{name}`" for name in profile.metrics)
        yield f"| {title} | {_source(profile.source)} | {_overall(profile)} | {metrics} |"
    yield ""


def _overall(profile: ProfileSpec) -> str:
    if not profile.parts:
        return "none"
    parts = [
        f"{part.weight:.3g} `{part.metric}`" + (f" (else `{part.otherwise}`)" if part.otherwise else "")
        for part in profile.parts
    ]
    total = " + ".join([*parts, *([f"{profile.constant:g}"] if profile.constant else [])])
    whole_score = profile.whole_score
    whole_note = f"; `{whole_score.metric}` only for {', '.join(whole_score.categories)}" if whole_score else ""
    return f"{'per answer' if profile.unit == 'per_answer' else 'on the means of the run'}: {total}{whole_note}"


def _rule_metrics() -> Iterator[str]:
    yield "## Rule metrics / 규칙 지표\n"
    for metric in RULE_METRICS:
        yield from metric_section(metric.spec)


def _embedding_metrics() -> Iterator[str]:
    yield "## Embedding metrics / 임베딩 지표\n"
    yield "[Settings](settings.md#embeddings) describes the sources of embeddings. Every score records the name and the"
    yield "settings of the model. `answer_relevance` also needs a judge, so it is listed under judge metrics.\n"
    for spec in EMBEDDING_METRICS:
        yield from metric_section(spec)


def _judge_metrics() -> Iterator[str]:
    yield "## Judge metrics / 판정 지표\n"
    yield "One heading per rubric family; the metrics of a family come from one call, or from one chain of calls.\n"
    for name in (name for name in families() if name not in own_families()):
        family = family_named(name)
        yield f"### Family `{name}`\n"
        if family.decided_rules:
            metric_names = ", ".join(f"`{metric.spec.name}`" for metric in family.decided_rules)
            yield f"If a judge is used, this family decides {metric_names}.\n"
        for spec in family.metrics:
            yield from metric_section(spec, "####")


def _derived_metrics() -> Iterator[str]:
    yield "## Derived metrics / 파생 지표\n"
    yield "Computed from the other results of the same answer when the run ends.\n"
    for spec in (*(metric.spec for metric in DERIVED_METRICS), ANSWER_OVERALL):
        yield from metric_section(spec)


def _sentence(text: str) -> str:
    return f"{text}\n" if text.endswith("?") else f"{text}.\n"


def metric_section(spec: MetricSpec, heading: str = "###") -> Iterator[str]:
    """Markdown of a metric: titles, formulas in both languages, and its table."""
    yield f"{heading} `{spec.name}`: {spec.title.en} / {spec.title.ko}\n"
    yield _sentence(spec.formula.en)
    yield _sentence(spec.formula.ko)
    yield "| range | direction | needs | sees | rated by | version | source | profiles |"
    yield "|---|---|---|---|---|---|---|---|"
    cells = (
        _range(spec),
        str(spec.direction),
        _comma_list(spec.inputs),
        _comma_list(spec.optional_inputs),
        FORMS[spec.review_form],
        str(spec.version),
        _source(spec.source),
        _comma_list(tuple(profile.name for profile in shipped_profiles() if spec.name in profile.metrics)),
    )
    yield f"| {' | '.join(cells)} |\n"


def _range(spec: MetricSpec) -> str:
    match spec.scale.kind:
        case ScaleKind.CLASS:
            return ", ".join(spec.scale.labels)
        case ScaleKind.YES_NO:
            return "0 or 1"
        case ScaleKind.SECONDS:
            return "seconds"
        case ScaleKind.LEVELS:
            return f"whole numbers {spec.scale.low:g} to {spec.scale.high:g}"
        case _:
            return f"{spec.scale.low:g} to {spec.scale.high:g}"


def _source(source: str) -> str:
    return source or "ours"


def _comma_list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "–"


if __name__ == "__main__":
    PAGE.write_text(metrics_page(), encoding="utf-8")
