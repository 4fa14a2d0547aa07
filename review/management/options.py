"""Shared parts of commands: finding runs, error handling, and options of gates and queues."""

from __future__ import annotations

from argparse import Action
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.core.errors import DomainError, InvalidFile, UnknownName
from evaluation.core.roles import Role
from evaluation.messages.explanations import explain, explain_refusal
from evaluation.models import RoleGrant, Run, User
from evaluation.specs.flags import add_flags, option_values, whole_number
from review.models.queue_spec import CONFIGURABLE_SETTINGS, Distribution, QueueSpec
from review.queues.distribution import NamedReviewers, parse_tag_lines
from review.reports.gate import GATE_SETTINGS, Gate, GateRequest, gate_line, gate_reasons
from review.statistics.paired_tests.gate import GateVerdict

MAX_RESAMPLES = 1_000_000


def find_run(pk: int) -> Run:
    """Return the run with this id.

    :raises CommandError: with exit code 2 if there is none."""
    run = Run.objects.filter(pk=pk).first()
    if run is None:
        raise CommandError(f"Run {pk} does not exist.", returncode=2)
    return run


@contextmanager
def command_errors() -> Iterator[None]:
    """Turn domain errors into a message with exit code 1, or 2 for an unknown name."""
    try:
        yield
    except InvalidFile as error:
        raise CommandError("\n".join(explain(problem) for problem in error.problems)) from error
    except DomainError as error:
        raise CommandError(explain_refusal(error)) from error
    except UnknownName as error:
        raise CommandError(str(error), returncode=2) from error


def add_resampling_arguments(parser: CommandParser) -> None:
    """Add ``--seed`` and ``--resamples`` of the bootstrap."""
    parser.add_argument("--seed", type=whole_number(), default=0, help="random seed of the bootstrap")
    resamples = whole_number(MAX_RESAMPLES)
    parser.add_argument("--resamples", type=resamples, default=2000, help="bootstrap resamples; 0 disables intervals")


def add_gate_arguments(parser: CommandParser, *, baseline: bool = True) -> list[Action]:
    """Add the gate options, and ``--baseline`` unless the command has its own."""
    gate = parser.add_argument_group("quality gate", "exit 100 unless it is passed; an undecided gate is not passed")
    actions = add_flags(gate, GATE_SETTINGS)
    if baseline:
        help_text = "baseline run, which this one must not fall below"
        actions.append(gate.add_argument("--baseline", type=int, metavar="RUN", help=help_text))
    return actions


def read_gate_request(options: dict[str, Any], baseline: Run | None = None) -> GateRequest:
    """Read the gate options. Commands with a ``--baseline`` of their own pass ``baseline``.

    :raises CommandError: with exit code 2 for inconsistent options or an unknown baseline."""
    # Imported here, because the import takes 0.5 s.
    from review.comparisons.gates import check_request

    if baseline is None and options.get("baseline") is not None:
        baseline = find_run(options["baseline"])
    try:
        return check_request(GateRequest(baseline=baseline, **option_values(GATE_SETTINGS, options)))
    except DomainError as error:
        raise CommandError(explain_refusal(error), returncode=2) from error


def print_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """Print the gate's score, verdict and reasons; ``run`` names it among several."""
    command.stdout.write(gate_line(gate, run))
    for reason in gate_reasons(gate):
        command.stdout.write(f"  {reason}")
    command.stdout.write("")


def warn_undecided_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """Warn on standard error that the gate is undecided although the command succeeds."""
    if gate.verdict is GateVerdict.UNDECIDED and gate.allow_undecided:
        command.stderr.write(gate_line(gate, run), command.style.WARNING)


# Options that belong to no setting, by the setting after which ``--help`` lists them.
_RELATED_FLAGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "strategy": {"--metrics": {"help": "criteria to rate; default: those of --coverage"}},
    "share": {
        "--answers": {"type": int, "help": "for hand_picked: ids of the answers"},
        "--questions": {"help": "for hand_picked: ids of the questions"},
    },
    "seed": {"--reviewers": {"help": "user names; default: all reviewers of the project"}},
}


def add_queue_options(parser: CommandParser) -> None:
    """Add the options of all queue settings except the size."""
    for setting in CONFIGURABLE_SETTINGS:
        if setting.name != "size":
            add_flags(parser, [setting])
        for flag, arguments in _RELATED_FLAGS.get(setting.name, {}).items():
            parser.add_argument(flag, nargs="+", default=[], **arguments)
        if setting.kind is Distribution:
            help_text = "for by_tag: tag or category, user names"
            parser.add_argument("--field", action="append", default=[], metavar="TAG:NAMES", help=help_text)


def read_queue_spec(options: Mapping[str, Any]) -> QueueSpec:
    """Read the queue settings.

    :raises DomainError: ``setting_range`` for a number out of range."""
    return QueueSpec(**option_values(CONFIGURABLE_SETTINGS, options))


def read_named_reviewers(options: Mapping[str, Any], people: Sequence[User]) -> NamedReviewers:
    """Read how items are distributed to reviewers.

    :raises DomainError: ``no_fields`` for a field not written as TAG:NAMES.
    :raises UnknownName: for a name that is not among the reviewers."""
    by_name = {person.get_username(): person for person in people}
    reviewers_by_tag: dict[str, list[User]] = {}
    for tag, names in parse_tag_lines("\n".join(options["field"])).items():
        for name in names:
            if name not in by_name:
                raise UnknownName("reviewer", name, list(by_name))
        reviewers_by_tag[tag] = [by_name[name] for name in names]
    return NamedReviewers(reviewers_by_tag)


def find_reviewers(run: Run, names: Sequence[str]) -> list[User]:
    """Return the named users, by default all reviewers of the project.

    :raises CommandError: if there is no reviewer.
    :raises UnknownName: for an unknown user name."""
    if names:
        by_name = {user.username: user for user in User.objects.filter(username__in=names, is_active=True)}
        for name in names:
            if name not in by_name:
                known = RoleGrant.objects.filter(project=run.project_id).values_list("user__username", flat=True)
                raise UnknownName("user", name, sorted(set(known)))
        return [by_name[name] for name in dict.fromkeys(names)]
    reviewer_ids = RoleGrant.objects.filter(project=run.project_id, role=Role.REVIEWER).values("user")
    people = list(User.objects.filter(pk__in=reviewer_ids, is_active=True).order_by("username"))
    if not people:
        raise CommandError(_("The project has no reviewers. Name people with --reviewers."))
    return people
