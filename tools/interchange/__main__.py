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
    """How many packages or comparisons failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = _packages(python, "write", folder)
    lines = ["| written by | questions | answers |", "|---|---|---|"]
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        lines.append(f"| `{path.stem}` ({path.suffix[1:]}) | {_questions(path)} | {_answers(path)} |")
    out = folder / "ours"
    out.mkdir()
    for form in READERS:
        text = "".join(write_records(form, [_record(row) for row in ROWS]))
        (out / f"{form}.jsonl").write_text(text, encoding="utf-8")
    failed += _packages(python, "read", out)
    lines += ["", "| read by its package | came back |", "|---|---|"]
    found = json.loads((out / "read.json").read_text(encoding="utf-8"))
    lines += [f"| `{form}` | {_came_back(rows)} |" for form, rows in found.items()]
    table = "\n".join(lines)
    print(table)
    if table not in PAGE.read_text(encoding="utf-8"):
        print("docs/files.md has another table", file=sys.stderr)
        failed += 1
    return failed


def _packages(python: str, verb: str, folder: Path) -> int:
    quiet = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "RAGAS_DO_NOT_TRACK": "true", "HF_HUB_OFFLINE": "1"}
    script = str(Path(__file__).with_name("writing.py"))
    with (folder / f"{verb}.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            [python, script, verb, str(folder)], env={**os.environ, **quiet}, stdout=log, stderr=log, check=False
        )
    log_text = (folder / f"{verb}.log").read_text(encoding="utf-8")
    (folder / f"{verb}.log").unlink()
    if done.returncode:
        print(log_text[-4000:], file=sys.stderr)
    return done.returncode


def _questions(path: Path) -> str:
    try:
        file = read_questions(path.read_bytes(), path.name)
    except InvalidFile as refusal:
        return _refused(refusal)
    read = {question.text: question for question in file.questions}
    same: dict[str, bool] = {}
    for row in ROWS:
        question = read.get(row["question"])
        if question is None:
            return "**a question is missing**"
        for name, theirs, ours in (
            ("id", question.id, row["id"]),
            ("expected", question.references, (row["expected"],)),
            ("category", question.category, row["category"]),
            ("passages to find", question.ground_truth_chunk_ids, tuple(row["wanted"])),
        ):
            same[name] = same.get(name, True) and theirs == ours
    return _shape(file.shape) + ", ".join(["question", *(name for name, equal in same.items() if equal)])


def _answers(path: Path) -> str:
    try:
        file = read_answers(path.read_bytes(), path.name)
    except InvalidFile as refusal:
        return _refused(refusal)
    told: dict[str, bool] = {}
    left_out = sum(one.params["rows"] for one in file.remarks if one.code == "no_answer_yet")
    for one in file.answers:
        row = next(row for row in ROWS if row["question"] == one.question or row["id"] == one.question_id)
        passages = None if one.answer.contexts is None else [context.text for context in one.answer.contexts]
        for name, theirs, ours in (
            ("answer", one.answer.text, row["answer"]),
            ("passages", passages, row["passages"]),
            ("ids of passages", list(one.answer.retrieved_ids or ()), row["ids"]),
        ):
            told[name] = told.get(name, True) and theirs == ours
    names = [name for name, equal in told.items() if equal and not (name == "ids of passages" and not _any_ids(file))]
    return ", ".join(names) + (f"; {left_out} without an answer yet" if left_out else "")


def _any_ids(file: Any) -> bool:
    return any(one.answer.retrieved_ids for one in file.answers)


def _shape(title: str) -> str:
    return f"{title}: " if title else ""


def _refused(refusal: InvalidFile) -> str:
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


def _came_back(rows: list[Any]) -> str:
    """Which of the values stand somewhere in what the package gives back."""
    text = json.dumps(rows, ensure_ascii=False)
    names = {"question": "question", "expected": "expected", "answer": "answer", "passages": "passages"}
    names |= {"ids of passages": "ids", "passages to find": "wanted"}
    there = []
    for name, key in names.items():
        values = [one for row in ROWS for one in (row[key] if isinstance(row[key], list) else [row[key]])]
        if all(json.dumps(value, ensure_ascii=False)[1:-1] in text for value in values):
            there.append(name)
    return ", ".join(there) or "**nothing**"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], ROOT / "var" / "interchange" / "files"), 1))
