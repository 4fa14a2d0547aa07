"""The run page: one typed object from the report and the person's rights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.translation import get_language

from evaluation.core.roles import Action, Role, allowed
from evaluation.models import Run
from evaluation.wording.messages import advise, explain_doubt, explain_reason
from review.evidence.answers import RunAnswer
from review.plans.ahead import ReviewPlan
from review.plans.wording import guess_note, plan_sentence
from review.reports.answer_entries import ANSWERS, ToldAnswer
from review.reports.entries import Entry, Output
from review.reports.exporting import REPORT_EXPORTS
from review.reports.report import Report, RunHeader
from review.reports.sections import RUN
from review.web.pages.categories import CategoryCard, category_card
from review.web.pages.figures import MetricTable, facts, metric_table
from review.web.pages.links import AnswerLink, DisagreementLink, disagreement_links, worst_links
from review.web.pages.overall import OverallCard, overall_card
from review.web.pages.profile_card import ProfileCard, profile_card
from review.web.pages.progress import ProgressPage
from review.web.pages.provenance import Fact, provenance_facts
from review.web.pages.state import StateChip, state_chip
from review.web.pages.trust import TrustCard, judge_title, trust_card


@dataclass(frozen=True, slots=True)
class RunActions:
    """The buttons that make sense for this person and state."""

    start: bool
    pause: bool
    resume: bool
    cancel: bool
    retry: bool
    queue: bool


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that ``review/run.html`` shows. ``header`` names the run; while it is not complete it has no score to
    show, and ``reason`` says why. ``advice`` is what a person has to do before it can go on, ``doubts`` what makes its
    judge less to be trusted, ``removed`` the answers that count nowhere any more."""

    header: RunHeader
    chip: StateChip
    reason: str
    advice: str
    doubts: tuple[str, ...]
    removed: tuple[RunAnswer, ...]
    judges: tuple[str, ...]
    reviewed_answers: int
    run_facts: tuple[tuple[str, str], ...]
    actions: RunActions
    progress: ProgressPage | None
    overall: OverallCard
    trust: TrustCard
    categories: CategoryCard
    metrics: MetricTable
    profile_card: ProfileCard
    worst_columns: tuple[Entry[ToldAnswer], ...]
    worst: tuple[AnswerLink, ...]
    disagreements: tuple[DisagreementLink, ...]
    facts: tuple[Fact, ...]
    formats: tuple[str, ...]
    plan: str
    plan_note: str

    @property
    def answers_shown(self) -> tuple[int, ...]:
        """The answers of which the page tells what the judge said of them."""
        return tuple(one.answer_id for one in (*self.worst, *(found.answer for found in self.disagreements)))


def run_actions(state: str, roles: Collection[str], *, failed_units: bool) -> RunActions:
    """What the roles allow and the state makes possible."""
    evaluates = allowed(roles, Action.EVALUATE)
    ended = state in Run.ENDED
    return RunActions(
        start=evaluates and state == Run.State.DRAFT,
        pause=evaluates and state in {Run.State.PREFLIGHT, Run.State.RUNNING},
        resume=evaluates and state == Run.State.PAUSED,
        cancel=evaluates and state in {Run.State.DRAFT, Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED},
        retry=evaluates and failed_units and (ended or state == Run.State.PAUSED),
        queue=bool({Role.LEAD, Role.ADMIN} & set(roles)) and ended,
    )


def run_page(
    report: Report, actions: RunActions, progress: ProgressPage | None, plan: ReviewPlan | None = None
) -> RunPage:
    """The page of a report; ``progress`` stands on it until the run has ended, ``plan`` says what to review next."""
    header = report.header
    primary = [judge for judge in report.provenance.judges if judge.primary]
    return RunPage(
        header=header,
        chip=state_chip(header.state),
        reason=explain_reason(header.reason) if header.reason else "",
        advice=advise(header.reason) if header.state == Run.State.PAUSED else "",
        doubts=tuple(explain_doubt(one.code, one.params) for one in report.doubts),
        removed=report.removed,
        judges=tuple(dict.fromkeys(judge_title(judge) for judge in primary)),
        reviewed_answers=report.overall.reviewed_answers,
        run_facts=facts(RUN, report),
        actions=actions,
        progress=progress,
        overall=overall_card(report, _titles(report)),
        trust=trust_card(report),
        categories=category_card(report),
        metrics=metric_table(report),
        profile_card=profile_card(report),
        worst_columns=tuple(ANSWERS.entries(Output.PAGE)),
        worst=worst_links(report),
        disagreements=disagreement_links(report),
        facts=provenance_facts(report.provenance),
        formats=tuple(REPORT_EXPORTS.names),
        plan=plan_sentence(plan),
        plan_note=guess_note(plan),
    )


def _titles(report: Report) -> dict[str, str]:
    language = get_language() or "en"
    return {line.name: line.title.in_language(language) for line in report.metrics}
