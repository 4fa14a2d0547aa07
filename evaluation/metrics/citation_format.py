"""Citation format (source 003): how well the best reference to a regulation in the answer is written."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.citations import citations, mentions_regulations, regulation_names
from evaluation.metrics.normalise import fold


@rule_metric(
    MetricSpec(
        name="citation_format",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Citation format", "인용 형식"),
        formula=Bilingual(
            "the best reference: 1.0 regulation name and article side by side, 0.8 both apart, 0.5 one of them, "
            "0.3 a vague mention, 0 none; forms and levels are settings of the profile",
            "가장 좋은 인용: 규정명과 조문이 나란히 1.0, 떨어져 있으면 0.8, 하나만 0.5, 모호한 언급 0.3, 없으면 0; "
            "형식과 점수는 프로필 설정",
        ),
        source="003",
    )
)
def citation_format(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """One of the profile's five levels, for every answer; the references are findings."""
    view, rules = fold(answer.text), settings.citation
    cited, names = citations(view.text, rules), regulation_names(view.text, rules)
    levels = rules.levels
    findings = [_finding(answer.text, "article", *view.span(c.start, c.end)) for c in cited]
    findings += [_finding(answer.text, "name", *view.span(n.start, n.end)) for n in names]
    if any(citation.name for citation in cited):
        level = levels.adjacent
    elif cited and names:
        level = levels.apart
    elif cited or names:
        level = levels.one
    else:
        level = levels.vague if mentions_regulations(view.text, rules) else levels.none
    return Result.scored(level, findings=tuple(findings))


def _finding(text: str, verdict: str, start: int, end: int) -> Finding:
    return Finding("citation", text[start:end], verdict, start=start, end=end)
