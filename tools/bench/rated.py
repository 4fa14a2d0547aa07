"""Agreement and corrected scores of a run that is rated whole, as the commands compute them.

    python -m tools.bench.rated [--answers 10000]    # PostgreSQL too with CONCORD_TEST_POSTGRES

Five metrics, on each a judge's score and an expert's rating of every answer. CPU time of ``agreement`` with 2,000
resamples and of ``corrected_scores``, beside reading the same ratings and scores as bare tuples in the same run.
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
    """The file: of every answer and metric what the judge and one of the experts said, on a scale of 1 to 5."""
    random = Random(7)

    def rows() -> Iterator[dict[str, object]]:
        for at in range(1, answers + 1):
            for metric in range(METRICS):
                truth = random.randint(1, 5)
                said = min(5, max(1, truth + random.choice((-1, 0, 0, 0, 1))))
                about = {"question_id": f"q{at}", "metric": f"m{metric}"}
                yield about | {"value": said, "rater": "judge", "author": "judge@1"}
                yield about | {"value": truth, "rater": "human", "author": f"e{random.randrange(EXPERTS)}"}

    return "".join(json.dumps(row) + "\n" for row in rows()).encode()


def measured(answers: int) -> dict[str, float]:
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
    import_ratings(run, rating_file(answers), "r.jsonl", [f"m{one}=1..5" for one in range(METRICS)], "uniform")
    import scipy.special  # noqa: F401  -- so that no step pays for loading it

    found = {}
    columns = ("answer_id", "metric_id", "value")
    start = time.process_time()
    for rows in (Rating.objects.all(), Score.objects.filter(run=run)):
        list(rows.values_list(*columns))
    found["bare"] = time.process_time() - start
    with paused_gc():  # as commands do
        start = time.process_time()
        compute_agreement(run, resampling=Resampling()).to_dict()
        found["agreement"] = time.process_time() - start
        start = time.process_time()
        correction_sheet(load_inputs(run), by_category=False)
        return found | {"correct": time.process_time() - start}


def main() -> None:
    """Both databases where there is a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.rated")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--here", action="store_true", help="measure on DATABASE_URL and print JSON")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measured(given.answers)))
        return
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
            command = [sys.executable, "-m", "tools.bench.rated", "--answers", str(given.answers), "--here"]
            environment = {**os.environ, "DATABASE_URL": url}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        print(
            f"{kind}: {given.answers} answers x {METRICS} metrics; read as tuples in {found['bare']:.2f} s of CPU time"
        )
        for step in ("agreement", "correct"):
            print(f"  {step}: {found[step]:.2f} s, times reading {found[step] / found['bare']:.1f}")


if __name__ == "__main__":
    main()
