"""``make interchange``: files that the packages of other tools wrote are imported, and what ``export_records`` writes
is read by those packages. Prints the table of ``docs/files.md`` and fails where the page has another, or a package
failed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.records import Record, write_records
from tools.interchange.writing import READERS, ROWS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "files.md"


def main(python: str, folder: Path) -> int:
    """Write, import and read the files of every package; return the number of failed packages or comparisons."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failure_count = _run_packages(python, "write", folder)
    lines = ["| written by | questions | answers |", "|---|---|---|"]
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        lines.append(f"| `{path.stem}` ({path.suffix[1:]}) | {_questions(path)} | {_answers(path)} |")
    ours_folder = folder / "ours"
    ours_folder.mkdir()
    for form in READERS:
        text = "".join(write_records(form, [_record(row) for row in ROWS]))
        (ours_folder / f"{form}.jsonl").write_text(text, encoding="utf-8")
    failure_count += _run_packages(python, "read", ours_folder)
    lines += ["", "| read by its package | came back |", "|---|---|"]
    rows_by_format = json.loads((ours_folder / "read.json").read_text(encoding="utf-8"))
    lines += [f"| `{form}` | {_returned_fields(rows)} |" for form, rows in rows_by_format.items()]
    table = "\n".join(lines)
    print(table)
    if table not in PAGE.read_text(encoding="utf-8"):
        print("docs/files.md has another table", file=sys.stderr)
        failure_count += 1
    return failure_count


def _run_packages(python: str, action: str, folder: Path) -> int:
    quiet = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "RAGAS_DO_NOT_TRACK": "true", "HF_HUB_OFFLINE": "1"}
    script = str(Path(__file__).with_name("writing.py"))
    with (folder / f"{action}.log").open("w", encoding="utf-8") as log:
        completed = subprocess.run(
            [python, script, action, str(folder)], env={**os.environ, **quiet}, stdout=log, stderr=log, check=False
        )
    log_text = (folder / f"{action}.log").read_text(encoding="utf-8")
    (folder / f"{action}.log").unlink()
    if completed.returncode:
        print(log_text[-4000:], file=sys.stderr)
    return completed.returncode


def _questions(path: Path) -> str:
    try:
        file = read_questions(path.read_bytes(), path.name)
    except InvalidFile as refusal:
        return _refusal(refusal)
    read_questions_by_text = {question.text: question for question in file.questions}
    equal_by_field: dict[str, bool] = {}
    for row in ROWS:
        question = read_questions_by_text.get(row["question"])
        if question is None:
            return "**a question is missing**"
        for name, imported, expected in (
            ("id", question.id, row["id"]),
            ("expected", question.references, (row["expected"],)),
            ("category", question.category, row["category"]),
            ("passages to find", question.ground_truth_chunk_ids, tuple(row["wanted"])),
        ):
            equal_by_field[name] = equal_by_field.get(name, True) and imported == expected
    return _format_prefix(file.shape) + ", ".join(
        ["question", *(name for name, equal in equal_by_field.items() if equal)]
    )


def _answers(path: Path) -> str:
    try:
        file = read_answers(path.read_bytes(), path.name)
    except InvalidFile as refusal:
        return _refusal(refusal)
    equal_by_field: dict[str, bool] = {}
    left_out = sum(record.params["rows"] for record in file.remarks if record.code == "no_answer_yet")
    for record in file.answers:
        row = next(row for row in ROWS if row["question"] == record.question or row["id"] == record.question_id)
        passages = None if record.answer.contexts is None else [context.text for context in record.answer.contexts]
        for name, imported, expected in (
            ("answer", record.answer.text, row["answer"]),
            ("passages", passages, row["passages"]),
            ("ids of passages", list(record.answer.retrieved_ids or ()), row["ids"]),
        ):
            equal_by_field[name] = equal_by_field.get(name, True) and imported == expected
    names = [
        name
        for name, equal in equal_by_field.items()
        if equal and not (name == "ids of passages" and not _any_ids(file))
    ]
    return ", ".join(names) + (f"; {left_out} without an answer yet" if left_out else "")


def _any_ids(file: Any) -> bool:
    return any(read_answer.answer.retrieved_ids for read_answer in file.answers)


def _format_prefix(title: str) -> str:
    return f"{title}: " if title else ""


def _refusal(refusal: InvalidFile) -> str:
    return f"refused ({refusal.problems[0].code})"


def _record(row: dict[str, Any]) -> Record:
    passages = zip(row["passages"], row["ids"], strict=True)
    return Record(
        QuestionSpec(
            id=row["id"],
            category=row["category"],
            text=row["question"],
            references=(row["expected"],),
            ground_truth_chunk_ids=tuple(row["wanted"]),
        ),
        {},
        AnswerSpec(row["answer"], tuple(ContextSpec(text, id_) for text, id_ in passages)),
        system="rag",
    )


def _returned_fields(rows: list[Any]) -> str:
    """Return the names of the fields whose values appear in the package's output."""
    text = json.dumps(rows, ensure_ascii=False)
    names = {"question": "question", "expected": "expected", "answer": "answer", "passages": "passages"}
    names |= {"ids of passages": "ids", "passages to find": "wanted"}
    returned = []
    for name, key in names.items():
        values = [text_value for row in ROWS for text_value in (row[key] if isinstance(row[key], list) else [row[key]])]
        if all(json.dumps(value, ensure_ascii=False)[1:-1] in text for value in values):
            returned.append(name)
    return ", ".join(returned) or "**nothing**"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], ROOT / "var" / "interchange" / "files"), 1))
