"""Who judges a run: one judge, several side by side, or a jury."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.errors import Refused, UnknownName
from evaluation.judges.shipping import baseline_judge, judge_row, save_judge
from evaluation.judging.jury import JuryRule
from evaluation.models import JudgeVersion, Project


@dataclass(frozen=True, slots=True)
class Bench:
    """The judge whose values count, and those beside it, who are members of a jury or only compared."""

    primary: JudgeVersion
    beside: tuple[JudgeVersion, ...] = ()


def bench_of(project: Project, names: Sequence[str], jury: str = "", *, baseline: bool = True) -> Bench:
    """The judges of these names; the first counts, or the jury of all where ``jury`` names a rule. Without a name the
    project's own judge, else the baseline. With ``baseline`` the offline baseline sits beside them, so that everybody
    sees how much better than word counting they are; it calls nobody and costs nothing.

    :raises UnknownName: for a judge the project does not have, or another rule.
    :raises Refused: what :func:`jury_row` refuses.
    """
    judges = list({judge.pk: judge for judge in (judge_row(project, name) for name in names or [""])}.values())
    yardstick = baseline_judge(project, judges[0].language) if baseline else None
    beside = () if yardstick is None or yardstick in judges else (yardstick,)
    if not jury:
        return Bench(judges[0], (*judges[1:], *beside))
    if jury not in list(JuryRule):
        raise UnknownName("jury rule", jury, list(JuryRule))
    return Bench(jury_row(project, judges, JuryRule(jury)), (*judges, *beside))


def jury_row(project: Project, members: Sequence[JudgeVersion], rule: JuryRule) -> JudgeVersion:
    """The judge that joins these judges by the rule.

    :raises Refused: ``jury_too_small`` for fewer than two different judges or a jury among them, ``jury_languages``
        where they do not judge by rubrics in one language.
    """
    names = sorted({str(member) for member in members})
    if len(names) < 2 or any(member.is_jury for member in members):
        raise Refused("jury_too_small")
    languages = sorted({member.language for member in members})
    if len(languages) > 1:
        raise Refused("jury_languages", languages=", ".join(languages))
    params: dict[str, object] = {"jury": {"rule": str(rule), "members": names}}
    model, language = ", ".join(names)[:200], languages[0]
    return save_judge(project, f"{rule}-of-{len(names)}", None, model=model, language=language, params=params)
