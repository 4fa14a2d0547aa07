"""What several commands share: finding runs, refusals as one clear line, and the options of gates and queues."""

from __future__ import annotations

from argparse import Action
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.core.errors import InvalidFile, Refused, UnknownName
from evaluation.core.roles import Role
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.specs.flags import add_flags, values_of
from review.models.queue_spec import ASKED, Distribution, QueueSpec
from review.queues.sharing import Sharing, fields_from
from review.reports.gate import GATE_SETTINGS, Gate, GateAsked, gate_line, gate_reasons
from review.statistics.paired_tests.gate import GateVerdict


def run_named(pk: int) -> Run:
    """The run with this id.

    :raises CommandError: exit code 2, when there is none.
    """
    run = Run.objects.filter(pk=pk).first()
    if run is None:
        raise CommandError(f"there is no run {pk}", returncode=2)
    return run


@contextmanager
def refusals() -> Iterator[None]:
    """Turns our own errors into a message and exit code 1 (2 for an unknown name)."""
    try:
        yield
    except InvalidFile as error:
        raise CommandError("\n".join(explain(problem) for problem in error.problems)) from error
    except Refused as error:
        raise CommandError(explain_refusal(error)) from error
    except UnknownName as error:
        raise CommandError(str(error), returncode=2) from error
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}") from error


def add_gate_arguments(parser: CommandParser, *, baseline: bool = True) -> list[Action]:
    """The flags of a gate, and ``--baseline`` unless the command has one of its own."""
    gate = parser.add_argument_group("quality gate", "exit 100 unless it is passed; an undecided gate is not passed")
    actions = add_flags(gate, GATE_SETTINGS)
    if baseline:
        help_text = "run that this one must not fall behind"
        actions.append(gate.add_argument("--baseline", type=int, metavar="RUN", help=help_text))
    return actions


def gate_asked(options: dict[str, Any], baseline: Run | None = None) -> GateAsked:
    """What the options ask for; ``baseline`` is the one of a command that has its own.

    :raises CommandError: exit code 2, for options that do not go together and a baseline that does not exist.
    """
    from review.comparisons.gating import checked  # costs 0.5 s at import

    if baseline is None and options.get("baseline") is not None:
        baseline = run_named(options["baseline"])
    try:
        return checked(GateAsked(baseline=baseline, **values_of(GATE_SETTINGS, options)))
    except Refused as error:
        raise CommandError(explain_refusal(error), returncode=2) from error


def print_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """Which score the gate looks at and what it says, and the reasons; ``run`` names it among several."""
    command.stdout.write(gate_line(gate, run))
    for reason in gate_reasons(gate):
        command.stdout.write(f"  {reason}")
    command.stdout.write("")


def warn_of_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """Write on standard error that the gate is undecided, although the command succeeds."""
    if gate.verdict is GateVerdict.UNDECIDED and gate.allow_undecided:
        command.stderr.write(gate_line(gate, run), command.style.WARNING)


# What names rows, by the setting behind whose flag it stands.
_BESIDE: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "strategy": {"--metrics": {"help": "criteria; if not named, those that --coverage calls for"}},
    "share": {
        "--answers": {"type": int, "help": "for hand_picked: ids of the answers"},
        "--questions": {"help": "for hand_picked: ids of the questions"},
    },
    "seed": {"--reviewers": {"help": "user names; all reviewers, if not named"}},
}


def add_queue_options(parser: CommandParser) -> None:
    """Add the flags of all settings but the size, and of what is named with them."""
    for one in ASKED:
        if one.name != "size":
            add_flags(parser, [one])
        for beside, said in _BESIDE.get(one.name, {}).items():
            parser.add_argument(beside, nargs="+", default=[], **said)
        if one.kind is Distribution:
            help_text = "for by_tag: tag or category, user names"
            parser.add_argument("--field", action="append", default=[], metavar="TAG:NAMES", help=help_text)


def spec_of(options: Mapping[str, Any]) -> QueueSpec:
    """The settings.

    :raises Refused: ``setting_range`` for a number out of range.
    """
    return QueueSpec(**values_of(ASKED, options))


def sharing_of(options: Mapping[str, Any], people: Sequence[User]) -> Sharing:
    """Whom the items are for.

    :raises Refused: ``no_fields`` for a field that is not written as TAG:NAMES.
    :raises UnknownName: for a name that is not among the reviewers.
    """
    known = {one.get_username(): one for one in people}
    fields: dict[str, list[User]] = {}
    for tag, names in fields_from("\n".join(options["field"])).items():
        for name in names:
            if name not in known:
                raise UnknownName("reviewer", name, list(known))
        fields[tag] = [known[name] for name in names]
    return Sharing(fields)


def reviewers_of(run: Run, names: Sequence[str]) -> list[User]:
    """The named people, else every reviewer of the project.

    :raises CommandError: where there is no reviewer.
    :raises UnknownName: for a name that nobody has.
    """
    if names:
        found = {one.username: one for one in User.objects.filter(username__in=names, is_active=True)}
        for name in names:
            if name not in found:
                known = RoleGrant.objects.filter(project=run.project_id).values_list("user__username", flat=True)
                raise UnknownName("user", name, sorted(set(known)))
        return [found[name] for name in dict.fromkeys(names)]
    granted = RoleGrant.objects.filter(project=run.project_id, role=Role.REVIEWER).values("user")
    people = list(User.objects.filter(pk__in=granted, is_active=True).order_by("username"))
    if not people:
        raise CommandError(_("The project has no reviewer. Name people with --reviewers."))
    return people
