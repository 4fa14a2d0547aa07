"""From files to a report without a judge: questions and answers with three passages each, rules, report as JSON.

    python -m tools.bench.files [--answers 10000]    # PostgreSQL too with CONCORD_TEST_POSTGRES

Each command runs in its own process, as at a terminal; its seconds count from the start of the interpreter, with the
peak memory of the process. The cached figures of the run and its report files are built as well. A bare loop in the
same bench, on the same database, is the yardstick: every line by ``json.loads``, its rows by ``bulk_create`` in the
same tables, nothing checked, scored or reported."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.faults.site import ROOT, fresh_database

ANSWERS = 10_000
MOST_TIMES, MOST_MEGABYTES = 6, 300  # promised
_WORD_TEXT = (
    "river north sea harbour valley bridge season market council record length source village field border winter "
    "summer railway museum garden tower forest island mountain"
)
WORDS = _WORD_TEXT.split()


def write_files(folder: Path, answers: int) -> tuple[Path, Path]:
    """Write the two files: as many questions as answers, each with keywords; an answer has about 3 kB."""
    random = Random(11)

    def words(count: int) -> str:
        return " ".join(random.choice(WORDS) for _ in range(count))

    def questions() -> Iterator[dict[str, object]]:
        for n in range(answers):
            about = {"question": f"What is known of place {n}: {words(8)}?", "expected_answer": words(12)}
            keywords = [f"{words(1)} {n % 997}", words(1), f"place {n}"]
            yield {"id": f"q{n}", "category": "single_hop", "expected_keywords": keywords, **about}

    def answer_rows() -> Iterator[dict[str, object]]:
        for n in range(answers):
            contexts = [{"id": f"c{n}-{k}", "text": f"Passage {n}. {words(140)}.", "score": 0.9} for k in range(3)]
            answer = f"Place {n} is in the {words(1)}. {words(30)}. It has {n % 997} {words(1)}s."
            yield {"question_id": f"q{n}", "answer": answer, "contexts": contexts, "latency_seconds": 1.25}

    paths = folder / "questions.jsonl", folder / "answers.jsonl"
    for path, rows in zip(paths, (questions(), answer_rows()), strict=True):
        with path.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return paths


def run_bare_loop(questions: Path, answers: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of the bare loop, on the database of the environment; its rows are rolled back."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.db import transaction

    from evaluation.models import Answer, AnswerSet, Context, Question, QuestionSet
    from tests.factories import make_answer_set, make_question_set

    pattern = make_answer_set(make_question_set())
    start, cpu_start = time.monotonic(), time.process_time()
    with transaction.atomic():
        question_set = QuestionSet.objects.create(project=pattern.project, name="bare", version=1, content_hash="")
        with questions.open() as file:
            rows = [json.loads(line) for line in file]
        stored_questions = Question.objects.bulk_create(
            [
                Question(
                    question_set=question_set,
                    external_id=row["id"],
                    position=position,
                    category=row["category"],
                    text=row["question"],
                    spec=row,
                )
                for position, row in enumerate(rows)
            ],
            batch_size=1000,
        )
        ids = {question.external_id: question for question in stored_questions}
        answer_set = AnswerSet.objects.create(
            project=pattern.project, question_set=question_set, system_version=pattern.system_version
        )
        with answers.open() as file:
            rows = [json.loads(line) for line in file]
        stored_answers = Answer.objects.bulk_create(
            [
                Answer(answer_set=answer_set, question=ids[row["question_id"]], status="ok", text=row["answer"])
                for row in rows
            ],
            batch_size=1000,
        )
        Context.objects.bulk_create(
            [
                Context(
                    answer=answer,
                    position=position,
                    chunk_id=context["id"],
                    text=context["text"],
                    score=context["score"],
                )
                for answer, row in zip(stored_answers, rows, strict=True)
                for position, context in enumerate(row["contexts"])
            ],
            batch_size=1000,
        )
        seconds = time.monotonic() - start, time.process_time() - cpu_start
        transaction.set_rollback(True)
    return seconds


def command(environment: dict[str, str], *arguments: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and peak megabytes of a command.

    :raises SystemExit: where it fails.
    """
    start = time.monotonic()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} failed")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def run_on(kind: str, answers: int) -> None:
    """Measure on a fresh database of this kind, and print."""
    with tempfile.TemporaryDirectory() as name, fresh_database(kind, Path(name)) as url:
        folder = Path(name)
        environment = {**os.environ, "DATABASE_URL": url, "CONCORD_VAR": name, "DEBUG": "1"}
        files = write_files(folder, answers)
        size = sum(path.stat().st_size for path in files) / 1e6
        command(environment, "manage.py", "migrate", "--verbosity", "0")
        measured = folder / "bare.json"
        command(environment, "-m", "tools.bench.files", "--bare", str(measured), *map(str, files))
        bare_wall, bare_cpu = json.loads(measured.read_text())
        project = ("--project", "First project")
        report = str(folder / "report.json")
        evaluate_options = ("--questions", "bench", "--system", "s", "--no-judge", "--no-ask", "--output", report)
        steps = {
            "import_questions": ("import_questions", str(files[0]), "--name", "bench"),
            "import_answers": ("import_answers", str(files[1]), "--questions", "bench", "--system", "s"),
            "evaluate": ("evaluate", *evaluate_options),
        }
        print(
            f"{kind}: {answers} answers, {size:.0f} MB; bare loop {bare_wall:.1f} s, processor {bare_cpu:.1f} s",
            flush=True,
        )
        wall = cpu = most = 0.0
        for step, arguments in steps.items():
            seconds, cpu_seconds, megabytes = command(environment, "manage.py", *arguments, *project)
            wall, cpu, most = wall + seconds, cpu + cpu_seconds, max(most, megabytes)
            print(f"  {step}: {seconds:.1f} s, {cpu_seconds:.1f} s of processor time, {megabytes:.0f} MB", flush=True)
        print(f"  all: {wall:.1f} s, {wall / bare_wall:.1f} x bare of {MOST_TIMES} promised")
        print(f"  processor time: {cpu:.1f} s, {cpu / bare_cpu:.1f} x bare")
        print(f"  most memory: {most:.0f} MB of {MOST_MEGABYTES} promised", flush=True)
        other_steps = {
            "what pages read": ("-m", "tools.bench.keeping", "figures", "2")
        }  # the import's run was the first
        for file_format in ("jsonl", "csv", "html"):
            other_steps[f"export_report as {file_format}"] = (
                "manage.py",
                "export_report",
                "2",
                "--output",
                str(folder / f"r.{file_format}"),
            )
        for step, step_arguments in other_steps.items():
            seconds, cpu_seconds, megabytes = command(environment, *step_arguments)
            print(f"  {step}: {seconds:.1f} s, {cpu_seconds:.1f} s of processor time, {megabytes:.0f} MB", flush=True)
        sizes = {path.name: path.stat().st_size / 1e6 for path in folder.glob("r*.*") if path.is_file()}
        print("  files: " + ", ".join(f"{name} {size:.0f} MB" for name, size in sizes.items()), flush=True)


def main() -> None:
    """Both databases where there is a server."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.files")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--bare", type=Path, nargs=3, help="measure the bare loop on DATABASE_URL")
    options = parser.parse_args()
    if options.bare:
        into, questions, answers = options.bare
        into.write_text(json.dumps(run_bare_loop(questions, answers)))
        return
    os.chdir(ROOT)
    for kind in ("sqlite", *(["postgres"] if os.environ.get("CONCORD_TEST_POSTGRES") else [])):
        run_on(kind, options.answers)


if __name__ == "__main__":
    main()
