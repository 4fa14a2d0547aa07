"""Imported judges: reading a rating file with the scores of 33 judges, and their agreement with experts.

    python -m tools.bench.importing [--answers 2425]    # PostgreSQL too with CONCORD_TEST_POSTGRES

80,025 scores of 2,425 answers, two experts' ratings of 400 of them; figures with intervals, in processor time. The
yardstick of the import is a bare insertion of as many rows into the table, in the same run."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.faults.site import fresh_database

ANSWERS, JUDGES, RATED_ANSWERS, EXPERTS = 2_425, 33, 400, 2
MOST_SECONDS = {"import": 30, "agreement": 10}  # of processor time, promised


def rating_file(answers: int) -> bytes:
    """The file: every judge's score of every answer, then the experts' of some, on a scale of 0 to 3."""
    random = Random(7)
    true_values = [random.randrange(4) for _ in range(answers)]

    def rows() -> Iterator[dict[str, object]]:
        for judge in range(JUDGES):
            for question, value in enumerate(true_values, start=1):
                score = min(3, max(0, value + random.choice((-1, 0, 0, 0, 1))))
                yield _row(question, score, "judge", f"judge-{judge}@1")
        for expert in range(EXPERTS):
            for question in random.sample(range(1, answers + 1), min(RATED_ANSWERS, answers)):
                yield _row(question, true_values[question - 1], "human", f"e{expert}")

    return "".join(json.dumps(row) + "\n" for row in rows()).encode()


def _row(question: int, value: int, rater: str, author: str) -> dict[str, object]:
    about = {"question_id": f"q{question}", "metric": "relevance", "value": value}
    return about | {"rater": rater, "author": author}


def measure(answers: int) -> dict[str, float]:
    """Seconds of each step, on the database that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from evaluation.judges.shipped import profile_row
    from evaluation.models import Run, Score
    from evaluation.worker.lifecycle import RunConfig, make_run
    from review.agreement.run_agreement import cached_agreement
    from review.ratings.import_files import import_ratings
    from tests.factories import make_answer_set, make_question_set, question_spec

    call_command("migrate", verbosity=0)
    questions = make_question_set(specs=[question_spec(n) for n in range(1, answers + 1)])
    answer_set = make_answer_set(questions)
    run = make_run(answer_set, profile_row(answer_set.project, "graphrag"), RunConfig())
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    data, seconds = rating_file(answers), {}

    start = time.process_time()
    summary = import_ratings(run, data, "judges.jsonl", ["relevance=0..3"], "uniform")
    seconds["import"] = time.process_time() - start
    start = time.process_time()
    cached_agreement(run)
    seconds["agreement"] = time.process_time() - start
    rows = list(Score.objects.filter(run=run).exclude(author=""))
    for number, row in enumerate(rows):
        row.pk, row.origin = None, f"bare {number}"
    start = time.process_time()
    with transaction.atomic():
        Score.objects.bulk_create(rows, batch_size=1000)
        seconds["bare"] = time.process_time() - start
        transaction.set_rollback(True)
    return seconds | {"scores": summary.judge, "ratings": summary.human}


def run_on(kind: str, answers: int) -> None:
    """Measure on a fresh database of this kind, in a process of its own, and print."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        command = [sys.executable, "-m", "tools.bench.importing", "--answers", str(answers), "--here"]
        completed = subprocess.run(
            command, env={**os.environ, "DATABASE_URL": url}, check=True, stdout=subprocess.PIPE, text=True
        )
    measured_values = json.loads(completed.stdout)
    print(f"{kind}: {measured_values['scores']} scores of {JUDGES} judges, {measured_values['ratings']} ratings")
    for step, most in MOST_SECONDS.items():
        print(f"  {step}: {measured_values[step]:.1f} s of {most} s promised, share {measured_values[step] / most:.2f}")
    print(f"  import, times a bare insertion of the scores: {measured_values['import'] / measured_values['bare']:.2f}")


def main() -> None:
    """Both databases where there is a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.importing")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--here", action="store_true", help="measure on DATABASE_URL and print JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.answers)))
        return
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        run_on(kind, options.answers)


if __name__ == "__main__":
    main()
