"""Page of a run and its progress."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format, time_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.roles import Action, Role, is_allowed
from evaluation.extensions import OpenBatches
from evaluation.formats.records import form_names
from evaluation.messages import numbers
from evaluation.messages.explanations import advise, explain_reason
from evaluation.models import Endpoint, Run, System
from evaluation.runs.progress import CallStatus, Progress, Spending
from review.evidence.answers import RunAnswer
from review.queues.planning import ReviewPlan, guess_note, plan_json
from review.queues.progress import UnratedAnswers
from review.releases.changes import PreviousRelease
from review.reports.cards import ReportCards, report_cards
from review.reports.entries import Entry, Output
from review.reports.exports import REPORT_EXPORTS
from review.reports.figure_cards import facts, worst_answer_facts
from review.reports.pages.run_list import StateChip, state_chip
from review.reports.provenance_facts import cache_savings, judge_title
from review.reports.report import Report
from review.reports.sections import ANSWERS, RUN, AnswerDetail


@dataclass(frozen=True, slots=True)
class ProgressPage:
    """Progress fragment of a run. ``live`` makes the page poll.

    ``cost`` is empty without calls, ``saved`` without cache hits, ``calls`` without open calls, ``resting`` unless an
    endpoint pauses, and ``out`` without open batches. ``troubles`` are failures of calls, ``batch_troubles`` those of
    batches."""

    run: Run
    counts: Progress
    chip: StateChip
    live: bool
    pace: str
    left: str
    until: str
    cost: str
    saved: str
    calls: str
    resting: str
    out: str
    troubles: tuple[str, ...]
    batch_troubles: tuple[str, ...]


def progress_page(run: Run, counts: Progress, calls: CallStatus) -> ProgressPage:
    """Build the progress fragment. Pace, estimates and open calls appear only while the run is active."""
    live = run.state in {Run.State.RUNNING, Run.State.PREFLIGHT}
    seconds_left = counts.seconds_left if live else None
    if seconds_left is not None and calls.resting_until:
        seconds_left += max(0.0, (calls.resting_until - timezone.now()).total_seconds())
    return ProgressPage(
        run=run,
        counts=counts,
        chip=state_chip(run.state),
        live=live,
        pace=_pace(counts.pace) if live and counts.pace else "",
        left=numbers.format_duration(seconds_left) if seconds_left is not None else "",
        until=time_format(timezone.localtime() + timedelta(seconds=seconds_left)) if seconds_left is not None else "",
        cost=_cost(counts.spent, calls if live else None, run.budget)
        if counts.spent.calls or run.budget is not None
        else "",
        saved=cache_savings(counts.spent) if counts.spent.hits else "",
        calls=_calls(calls) if live and (calls.in_flight or calls.pace) else "",
        resting=_resting(calls.resting) if live and calls.resting else "",
        out=_out(calls.open_batches) if calls.open_batches else "",
        batch_troubles=tuple(explain_reason(reason) for reason in dict.fromkeys(calls.batch_troubles)),
        troubles=tuple(
            f"{numbers.format_number(count, 0)} × {explain_reason(reason)}" for reason, count in calls.troubles.items()
        ),
    )


def _cost(spent: Spending, calls: CallStatus | None, budget: Decimal | None) -> str:
    """Cost so far with the expected total if known, or with the budget."""
    so_far = numbers.format_money(spent.known, at_least=spent.at_least)
    if budget is not None:
        return gettext("%(so_far)s of %(budget)s") % {
            "so_far": so_far,
            "budget": numbers.format_money(budget, at_least=False),
        }
    if calls is None or calls.expected is None or calls.expected == spent.known:
        return so_far
    figures = {"so_far": so_far, "expected": numbers.format_money(calls.expected, at_least=spent.at_least)}
    return gettext("%(so_far)s so far, %(expected)s expected in total") % figures


def _calls(calls: CallStatus) -> str:
    figures = {"pace": _pace(calls.pace), "open": calls.in_flight, "limit": calls.limit}
    if calls.limit is None:
        return gettext("calls: %(pace)s, %(open)d in flight") % figures
    return gettext("calls: %(pace)s, %(open)d in flight (limit %(limit)d)") % figures


def _resting(endpoint: Endpoint | System) -> str:
    """State of an endpoint that is down or asked for a pause, with the time of the next call."""
    times = {"since": endpoint.down_since, "until": max(endpoint.cooldown_until or timezone.now(), timezone.now())}
    params = {name: time_format(timezone.localtime(time), "H:i:s") for name, time in times.items() if time}
    params["name"] = endpoint.name
    if not endpoint.down_since:
        return gettext("%(name)s requested a pause until %(until)s") % params
    return gettext(
        "%(name)s: no successful reply since %(since)s. %(why)s The run is waiting and calls again at %(until)s."
    ) % {**params, "why": explain_reason(endpoint.fault)}


def _out(out: OpenBatches) -> str:
    """Number of calls in open batches and the provider's last counts."""
    figures = {
        "since": date_format(timezone.localtime(out.since), "SHORT_DATETIME_FORMAT"),
        "lines": numbers.format_number(out.lines, 0),
        "ended": numbers.format_number(out.done + out.failed, 0),
        "failed": numbers.format_number(out.failed, 0),
    }
    text = gettext("Sent in batches since %(since)s: %(ended)s of %(lines)s calls answered.")
    if out.failed:
        text = gettext(
            "Sent in batches since %(since)s: %(ended)s of %(lines)s calls answered, %(failed)s of them failed."
        )
    return text % figures


def _pace(pace: float) -> str:
    if pace >= 1:
        return gettext("%(count)s a second") % {"count": numbers.format_number(pace, 0 if pace >= 10 else 1)}
    return gettext("%(count)s a minute") % {"count": numbers.format_number(pace * 60, 0 if pace * 60 >= 10 else 1)}


class RunActions(NamedTuple):
    """Buttons for this user and state."""

    start: bool
    pause: bool
    resume: bool
    cancel: bool
    retry: bool
    queue: bool
    assume: bool


EXPORT_PURPOSES = {
    "html": _("Shareable report (HTML)"),
    "xlsx": _("Spreadsheet (Excel)"),
    "csv": _("Spreadsheet (CSV)"),
    "md": _("For a pull request (Markdown)"),
    "junit": _("For CI (JUnit)"),
    "json": _("For programs (JSON)"),
    "jsonl": _("For programs (JSON Lines)"),
    "experiment": _("Configuration and results (YAML)"),
}


@dataclass(frozen=True, slots=True)
class RunPage:
    """Content of ``review/reports/run.html``. ``advice`` states how to resume a paused run, ``unrated`` the open queues
    that hold answers of the next review, ``previous`` the previous release of the system over these questions."""

    cards: ReportCards
    chip: StateChip
    advice: str
    judges: tuple[str, ...]
    run_facts: tuple[tuple[str, str], ...]
    actions: RunActions
    progress: ProgressPage | None
    worst_columns: tuple[Entry[AnswerDetail], ...]
    worst: Sequence[tuple[RunAnswer, Sequence[str]]]
    formats: tuple[tuple[str, str], ...]
    forms: tuple[str, ...]
    unrated: Sequence[UnratedAnswers]
    previous: PreviousRelease | None = None

    @property
    def report(self) -> Report:
        return self.cards.report

    @property
    def answers_shown(self) -> tuple[int, ...]:
        """Answers whose judge values the page reveals."""
        worst = (answer.answer_id for answer, _texts in self.worst)
        return (*worst, *(disagreement.answer.answer_id for disagreement in self.cards.disagreements))


def run_actions(state: str, roles: Collection[str], *, failed_units: bool) -> RunActions:
    """Actions that the roles allow and the state permits."""
    evaluates = is_allowed(roles, Action.EVALUATE)
    ended = state in Run.ENDED
    return RunActions(
        start=evaluates and state == Run.State.DRAFT,
        pause=evaluates and state in {Run.State.PREFLIGHT, Run.State.RUNNING},
        resume=evaluates and state == Run.State.PAUSED,
        cancel=evaluates and state in {Run.State.DRAFT, Run.State.PREFLIGHT, Run.State.RUNNING, Run.State.PAUSED},
        retry=evaluates and failed_units and (ended or state == Run.State.PAUSED),
        queue=bool({Role.LEAD, Role.ADMIN} & set(roles)) and ended,
        assume=is_allowed(roles, Action.OVERRIDE) and ended,
    )


def run_page(
    report: Report,
    actions: RunActions,
    progress: ProgressPage | None,
    plan: ReviewPlan | None = None,
    unrated: Sequence[UnratedAnswers] = (),
    previous: PreviousRelease | None = None,
) -> RunPage:
    """Build the page. ``progress`` is shown until the run has ended, ``plan`` is the next review, ``unrated`` its
    answers in open queues."""
    report = replace(report, next_review=plan_json(plan))
    primary = [judge for judge in report.provenance.judges if judge.primary]
    return RunPage(
        cards=report_cards(
            report, Output.PAGE, leads=actions.queue, assumes=actions.assume, plan_note=guess_note(plan)
        ),
        chip=state_chip(report.header.state),
        advice=advise(report.header.reason) if report.header.state == Run.State.PAUSED else "",
        judges=tuple(dict.fromkeys([*map(judge_title, primary), *report.provenance.imported_judges.values()])),
        run_facts=facts(RUN, report, Output.PAGE),
        actions=actions,
        progress=progress,
        worst_columns=tuple(ANSWERS.entries(Output.PAGE)),
        worst=worst_answer_facts(report),
        formats=tuple((name, str(EXPORT_PURPOSES[name])) for name in REPORT_EXPORTS.names),
        forms=form_names(),
        unrated=unrated,
        previous=previous,
    )
