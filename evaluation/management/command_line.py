"""Entry point of ``manage.py`` and of the command ``concord``."""

import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError


def run_command() -> None:
    """Run the command of ``sys.argv``. If the database is unavailable, print why and exit with 1."""
    try:
        execute_from_command_line(sys.argv)
    except DatabaseError as error:
        # Imported here because tables can be imported only after Django is set up.
        from evaluation.core.errors import DomainError
        from evaluation.messages.explanations import explain_refusal
        from evaluation.worker.database import unavailable_reason

        reason = unavailable_reason(error)
        if not reason or "--traceback" in sys.argv:
            raise
        sys.exit(f"{explain_refusal(DomainError(reason))}\n{error}")
