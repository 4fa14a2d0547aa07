"""The run page, from the report and the person's rights, and how far a run is while it runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from django.utils import timezone
from django.utils.formats import date_format, time_format
from django.utils.translation import gettext

from evaluation.core.roles import Action, Role, allowed
from evaluation.extensions import BatchesOut
from evaluation.formats.records import forms
from evaluation.messages import numbers
from evaluation.messages.sentences import advise, explain_reason
from evaluation.models import Endpoint, Run, System
from evaluation.runs.progress import Calls, Progress, Spending
from review.evidence.answers import RunAnswer
from review.queues.planning import ReviewPlan, guess_note, plan_json
from review.reports.cards import ReportCards, report_cards
from review.reports.entries import Entry, Output
from review.reports.exporting import REPORT_EXPORTS
from review.reports.figure_cards import facts, worst_answers
from review.reports.pages.run_list import StateChip, state_chip
from review.reports.provenance_facts import judge_title, saving
from review.reports.report import Report
from review.reports.sections import ANSWERS, RUN, ToldAnswer


@dataclass(frozen=True, slots=True)
class ProgressPage:
    """The fragment. ``live`` asks for it again; ``cost`` is empty where nothing was called, ``saved`` where the ledger
    answered nothing, ``calls`` where none is open, ``resting`` where no endpoint rests, ``out`` where nothing is out in
    batches. ``troubles`` are the bad ends of calls, ``batch_troubles`` those of batches."""

    run: Run
    now: Progress
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


def progress_page(run: Run, now: Progress, calls: Calls) -> ProgressPage:
    """The progress of a run; pace, estimates and open calls only while it runs."""
    live = run.state in {Run.State.RUNNING, Run.State.PREFLIGHT}
    left = now.seconds_left if live else None
    if left is not None and calls.resting_until:
        left += max(0.0, (calls.resting_until - timezone.now()).total_seconds())
    return ProgressPage(
        run=run,
        now=now,
        chip=state_chip(run.state),
        live=live,
        pace=_pace(now.pace) if live and now.pace else "",
        left=numbers.about(left) if left is not None else "",
        until=time_format(timezone.localtime() + timedelta(seconds=left)) if left is not None else "",
        cost=_cost(now.spent, calls if live else None, run.budget) if now.spent.calls or run.budget is not None else "",
        saved=saving(now.spent) if now.spent.hits else "",
        calls=_calls(calls) if live and (calls.in_flight or calls.pace) else "",
        resting=_resting(calls.rests) if live and calls.rests else "",
        out=_out(calls.out) if calls.out else "",
        batch_troubles=tuple(explain_reason(why) for why in dict.fromkeys(calls.batch_troubles)),
        troubles=tuple(f"{numbers.plain(count, 0)} × {explain_reason(why)}" for why, count in calls.troubles.items()),
    )


def _cost(spent: Spending, calls: Calls | None, budget: Decimal | None) -> str:
    """So far, and in the end where that is known; or of the budget, where there is one."""
    so_far = numbers.money(spent.known, at_least=spent.at_least)
    if budget is not None:
        return gettext("%(so_far)s of %(budget)s") % {"so_far": so_far, "budget": numbers.money(budget, at_least=False)}
    if calls is None or calls.expected is None or calls.expected == spent.known:
        return so_far
    figures = {"so_far": so_far, "expected": numbers.money(calls.expected, at_least=spent.at_least)}
    return gettext("%(so_far)s so far, %(expected)s in the end") % figures


def _calls(calls: Calls) -> str:
    figures = {"pace": _pace(calls.pace), "open": calls.in_flight, "limit": calls.limit}
    if calls.limit is None:
        return gettext("calls: %(pace)s, %(open)d in flight") % figures
    return gettext("calls: %(pace)s, %(open)d in flight of at most %(limit)d") % figures


def _resting(one: Endpoint | System) -> str:
    """Since when it does not answer and why, or that it asked for a rest, and when it is called again."""
    times = {"since": one.down_since, "until": max(one.cooldown_until or timezone.now(), timezone.now())}
    told = {name: time_format(timezone.localtime(time), "H:i:s") for name, time in times.items() if time}
    if not one.down_since:
        return gettext("the endpoint asked for a pause until %(until)s") % told
    return gettext(
        "%(name)s: no good answer since %(since)s. %(why)s The run waits; its next call is at %(until)s."
    ) % {**told, "name": one.name, "why": explain_reason(one.fault)}


def _out(out: BatchesOut) -> str:
    """Since when how many calls are out in batches, and what the provider told of them last."""
    figures = {
        "since": date_format(timezone.localtime(out.since), "SHORT_DATETIME_FORMAT"),
        "lines": numbers.plain(out.lines, 0),
        "ended": numbers.plain(out.done + out.failed, 0),
        "failed": numbers.plain(out.failed, 0),
    }
    said = gettext("Out in batches since %(since)s: %(ended)s of %(lines)s calls answered.")
    if out.failed:
        said = gettext(
            "Out in batches since %(since)s: %(ended)s of %(lines)s calls answered, %(failed)s of them badly."
        )
    return said % figures


def _pace(pace: float) -> str:
    if pace >= 1:
        return gettext("%(count)s a second") % {"count": numbers.plain(pace, 0 if pace >= 10 else 1)}
    return gettext("%(count)s a minute") % {"count": numbers.plain(pace * 60, 0 if pace * 60 >= 10 else 1)}


class RunActions(NamedTuple):
    """The buttons that make sense for this person and state."""

    start: bool
    pause: bool
    resume: bool
    cancel: bool
    retry: bool
    queue: bool
    assume: bool


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that ``review/reports/run.html`` shows. ``advice`` is what a person has to do before the run can go
    on."""

    cards: ReportCards
    chip: StateChip
    advice: str
    judges: tuple[str, ...]
    run_facts: tuple[tuple[str, str], ...]
    actions: RunActions
    progress: ProgressPage | None
    worst_columns: tuple[Entry[ToldAnswer], ...]
    worst: Sequence[tuple[RunAnswer, Sequence[str]]]
    formats: tuple[str, ...]
    forms: tuple[str, ...]

    @property
    def report(self) -> Report:
        """The report of the run."""
        return self.cards.report

    @property
    def answers_shown(self) -> tuple[int, ...]:
        """The answers of which the page tells what the judge said of them."""
        worst = (answer.answer_id for answer, _said in self.worst)
        return (*worst, *(found.answer.answer_id for found in self.cards.disagreements))


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
        assume=allowed(roles, Action.OVERRIDE) and ended,
    )


def run_page(
    report: Report, actions: RunActions, progress: ProgressPage | None, plan: ReviewPlan | None = None
) -> RunPage:
    """The page of a report; ``progress`` stands on it until the run has ended, ``plan`` says what to review next."""
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
        worst=worst_answers(report),
        formats=tuple(REPORT_EXPORTS.names),
        forms=forms(),
    )
