"""Agreement and corrected scores of a fully rated run, as the commands compute them.

    python -m tools.bench.rated [--answers 10000]    # PostgreSQL too with CONCORD_TEST_POSTGRES

Five metrics, each with a judge's score and an expert's rating of every answer. CPU time of ``agreement`` with 2,000
resamples and of ``corrected_scores``, compared with reading the same ratings and scores as bare tuples in the same run.
"""

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

ANSWERS, METRICS, EXPERTS = 10_000, 5, 3


def rating_file(answers: int) -> bytes:
    """Build the file: for every answer and metric, a value of the judge and of one expert, on a scale of 1 to 5."""
    random = Random(7)

    def rows() -> Iterator[dict[str, object]]:
        for question in range(1, answers + 1):
            for metric in range(METRICS):
                expert_value = random.randint(1, 5)
                judge_value = min(5, max(1, expert_value + random.choice((-1, 0, 0, 0, 1))))
                row = {"question_id": f"q{question}", "metric": f"m{metric}"}
                yield row | {"value": judge_value, "rater": "judge", "author": "judge@1"}
                yield row | {"value": expert_value, "rater": "human", "author": f"e{random.randrange(EXPERTS)}"}

    return "".join(json.dumps(row) + "\n" for row in rows()).encode()


def measure(answers: int) -> dict[str, float]:
    """CPU seconds of each step, on the database that the environment names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    from evaluation.judges.shipped import profile_row
    from evaluation.models import Run, Score
    from evaluation.worker.gc_pause import paused_gc
    from evaluation.worker.lifecycle import RunConfig, make_run
    from review.agreement.run_agreement import compute_agreement
    from review.models import Rating
    from review.ratings.import_files import import_ratings
    from review.reports.estimates import correction_sheet
    from review.reports.inputs import load_inputs
    from review.statistics.agreement.bootstrap import Resampling
    from tests.factories import make_answer_set, make_question_set, question_spec

    call_command("migrate", verbosity=0)
    answer_set = make_answer_set(make_question_set(specs=[question_spec(n) for n in range(1, answers + 1)]))
    run = make_run(answer_set, profile_row(answer_set.project, "graphrag"), RunConfig())
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    import_ratings(run, rating_file(answers), "r.jsonl", [f"m{number}=1..5" for number in range(METRICS)], "uniform")
    import scipy.special  # noqa: F401  -- so that no step pays for loading it

    seconds = {}
    columns = ("answer_id", "metric_id", "value")
    start = time.process_time()
    for rows in (Rating.objects.all(), Score.objects.filter(run=run)):
        list(rows.values_list(*columns))
    seconds["bare"] = time.process_time() - start
    with paused_gc():  # as commands do
        start = time.process_time()
        compute_agreement(run, resampling=Resampling()).to_dict()
        seconds["agreement"] = time.process_time() - start
        start = time.process_time()
        correction_sheet(load_inputs(run), by_category=False)
        return seconds | {"correct": time.process_time() - start}


def main() -> None:
    """Both databases where there is a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.rated")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--here", action="store_true", help="measure on DATABASE_URL and print JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.answers)))
        return
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
            command = [sys.executable, "-m", "tools.bench.rated", "--answers", str(options.answers), "--here"]
            environment = {**os.environ, "DATABASE_URL": url}
            completed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        measurements = json.loads(completed.stdout)
        print(
            f"{kind}: {options.answers} answers x {METRICS} metrics; read as tuples in "
            f"{measurements['bare']:.2f} s of CPU time"
        )
        for step in ("agreement", "correct"):
            print(
                f"  {step}: {measurements[step]:.2f} s, times reading {measurements[step] / measurements['bare']:.1f}"
            )


if __name__ == "__main__":
    main()
