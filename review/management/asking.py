"""What the commands about figures share: finding runs, and refusals as one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from evaluation.core.errors import InvalidFile, Refused, UnknownName
from evaluation.models import Run
from evaluation.wording.messages import explain, explain_refusal

GOOD, GATE = 0, 100


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
