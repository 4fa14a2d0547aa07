"""A cluster whose workers die on one answer: ``python -m tests.faults.crashing_cluster``. The fake step of T4."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import os
import signal
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.core.management import call_command

from evaluation.scoring import judges

POISON = "city 7."
_honest = judges.judge_call


def crash_on_poison(rubric, question, answer, *arguments, **options):  # type: ignore[no-untyped-def]
    if answer.text.endswith(POISON):
        os.kill(os.getpid(), signal.SIGKILL)
    return _honest(rubric, question, answer, *arguments, **options)


judges.judge_call = crash_on_poison
call_command(*sys.argv[1:])
