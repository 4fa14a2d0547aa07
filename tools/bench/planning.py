"""Planning a run over a selection of many questions: the work of ``evaluate --dry-run`` without its start-up.

    python -m tools.bench.planning [--questions 100000]    # PostgreSQL too with CONCORD_TEST_POSTGRES

All questions but one are selected, the worst case: their ids are part of the configuration. For comparison, the same
run plans a tenth of the questions, to check that the time is linear, and reads every answer once."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.site import fresh_database

QUESTIONS = 100_000


def measure(questions: int) -> dict[str, float]:
    """Seconds for all, for a tenth, and for reading the answers, on the database that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from evaluation.models import Answer
    from evaluation.models.run_spec import RunSpec
    from evaluation.runs.creation import draft_run
    from evaluation.runs.planning import plan_draft
    from tests.factories import make_answer_set, make_question_set, question_spec

    call_command("migrate", verbosity=0)
    measurements: dict[str, float] = {}
    for name, count in (("tenth", questions // 10), ("all", questions)):
        answers = make_answer_set(make_question_set(specs=[question_spec(n) for n in range(1, count + 1)]))
        start = time.monotonic()
        with transaction.atomic():
            run = draft_run(answers, RunSpec(limit=count - 1), None)
            measurements["units"] = plan_draft(run).units
            measurements[name] = time.monotonic() - start
            transaction.set_rollback(True)
    start = time.monotonic()
    for _ in Answer.objects.filter(answer_set=answers).select_related("question").iterator():
        pass
    return measurements | {"reading": time.monotonic() - start}


def main() -> None:
    """Measure on SQLite, and on PostgreSQL if a server is configured."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.planning")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--here", action="store_true", help="measure on DATABASE_URL and print JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.questions)))
        return
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
            command = [sys.executable, "-m", "tools.bench.planning", "--questions", str(options.questions), "--here"]
            environment = {**os.environ, "DATABASE_URL": url}
            completed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        measurements = json.loads(completed.stdout)
        print(
            f"{kind}: {options.questions} questions but one, {measurements['units']} units planned in "
            f"{measurements['all']:.1f} s"
        )
        print(f"  times a tenth of them: {measurements['all'] / measurements['tenth']:.1f}")
        print(f"  times reading the answers once: {measurements['all'] / measurements['reading']:.2f}")


if __name__ == "__main__":
    main()
