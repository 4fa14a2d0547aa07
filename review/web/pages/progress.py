"""How far a run is, in words: for the fragment that is fetched again and again while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.formats import date_format, time_format
from django.utils.translation import gettext

from evaluation.models import Run
from evaluation.runs.costs import Spending
from evaluation.runs.progress import Calls, Progress
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from evaluation.work.plugins import BatchesOut
from review.web.pages.costs import saving
from review.web.pages.state import StateChip, state_chip


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
    return ProgressPage(
        run=run,
        now=now,
        chip=state_chip(run.state),
        live=live,
        pace=_pace(now.pace) if live and now.pace else "",
        left=numbers.about(left) if left is not None else "",
        until=time_format(timezone.localtime() + timedelta(seconds=left)) if left is not None else "",
        cost=_cost(now.spent, calls if live else None) if now.spent.calls else "",
        saved=saving(now.spent) if now.spent.hits else "",
        calls=_calls(calls) if live and (calls.in_flight or calls.pace) else "",
        resting=time_format(timezone.localtime(calls.resting_until), "H:i:s") if live and calls.resting_until else "",
        out=_out(calls.out) if calls.out else "",
        batch_troubles=tuple(explain_reason(why) for why in dict.fromkeys(calls.batch_troubles)),
        troubles=tuple(f"{numbers.plain(count, 0)} × {explain_reason(why)}" for why, count in calls.troubles.items()),
    )


def _cost(spent: Spending, calls: Calls | None) -> str:
    """So far, and in the end where that is known."""
    so_far = numbers.money(spent.known, at_least=spent.at_least)
    if calls is None or calls.expected is None or calls.expected == spent.known:
        return so_far
    figures = {"so_far": so_far, "expected": numbers.money(calls.expected, at_least=spent.at_least)}
    return gettext("%(so_far)s so far, %(expected)s in the end") % figures


def _calls(calls: Calls) -> str:
    figures = {"pace": _pace(calls.pace), "open": calls.in_flight, "limit": calls.limit}
    if calls.limit is None:
        return gettext("calls: %(pace)s, %(open)d in flight") % figures
    return gettext("calls: %(pace)s, %(open)d in flight of at most %(limit)d") % figures


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
