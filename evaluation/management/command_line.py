"""Entry point of ``manage.py`` and of the command ``concord``.

Errors that an operator can remove end a command with a sentence instead of a traceback."""

import os
import sqlite3
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db.utils import Error as DatabaseError
from django.utils.translation import gettext as _

from evaluation.core.errors import ConcordError, DomainError, InvalidFile
from evaluation.storage.versions import product_version

# The exit code of a process that Ctrl-C ended.
INTERRUPTED = 130
OPERATOR_ERRORS = (ConcordError, DatabaseError, ImproperlyConfigured, OSError, sqlite3.Error)
# Raised while the settings are read, for values that Django or a library checks.
SETTINGS_ERRORS = (ImportError, ValueError)


def run_command() -> None:
    """Run the command of ``sys.argv``. With ``--traceback``, every error keeps its traceback.

    :raises SystemExit: with a sentence, for errors of files, settings and the database, and of this application."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that cannot show Korean gets escape sequences.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _refuse_unreadable(sys.argv)
        if sys.argv[1:] in (["--version"], ["version"]):
            sys.stdout.write(f"{product_version()}\n")
            return
        try:
            execute_from_command_line(sys.argv)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _drop_unwritable_output()
        sys.exit(1)
    except (*OPERATOR_ERRORS, *SETTINGS_ERRORS) as error:
        is_expected = isinstance(error, OPERATOR_ERRORS) or not settings.configured
        if not is_expected or "--traceback" in sys.argv:
            raise
        _drop_unwritable_output()
        sys.exit(f"{' '.join(sys.argv[1:2])}: {explain_error(error)}")


def explain_error(error: Exception) -> str:
    """Explain an error of :data:`OPERATOR_ERRORS`, or any error of the settings, in a sentence."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    if not settings.configured:
        return str(error)
    # Imported here, because these modules need the settings.
    from evaluation.messages.databases import REFUSALS
    from evaluation.messages.explanations import explain, explain_refusal
    from evaluation.worker.database import unavailable_reason

    if isinstance(error, InvalidFile):
        return "\n".join(explain(problem) for problem in error.problems)
    if isinstance(error, DomainError):
        return explain_refusal(error)
    if isinstance(error, DatabaseError):
        reason = unavailable_reason(error)
        advice = REFUSALS[reason] if reason else _("Run migrate if Concord was updated or the database is new.")
        return f"{str(error).strip()}. {advice}"
    return str(error)


def _refuse_unreadable(argv: Sequence[str]) -> None:
    """Refuse arguments with bytes that are no text, which neither the database nor a message can hold, and ``--`` as
    the value of an option, which ``argparse`` turns into a list.

    :raises SystemExit: for such an argument."""
    try:
        "".join(argv).encode()
    except UnicodeEncodeError:
        sys.exit("An argument is not valid UTF-8.")
    if any(argument.startswith("-") and argument.endswith("=--") for argument in argv):
        sys.exit("-- is not a valid option value.")


def _drop_unwritable_output() -> None:
    """Discard output that cannot be written (a full disk, a reader that ended); Python would try again on exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
