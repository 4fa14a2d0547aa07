"""Finds wording that reads as translated: ``python -m tools.wording``, part of ``make lint``.

It reads the texts of pages, messages and commands in the catalogue, the ``Bilingual`` texts of metrics and profiles,
and the documentation. CONTRIBUTING says how they are written."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "locale" / "ko" / "LC_MESSAGES" / "django.po"
DOCS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "contrib/*/README.md")
CODE = ("evaluation/**/*.py", "review/**/*.py", "contrib/**/*.py")
#: What to write instead, by pattern.
ENGLISH = {
    r"\bha(s|ve|d) to (?!be\b)": "must",
    r"(?<!here )\b(is|are) no (?!longer\b|worse\b|\w+ than\b)\w+": "isn't, aren't",
    r"\banew\b": "again",
    r"\balone\b": "only",
    r"\beither way\b": "±",
    r"\bwhoever\b|\bof whom\b": "people who, anyone",
    r"\bfor (good|ever)\b": "permanently",
    r"\bmeanwhile\b": "in the meantime",
    r"\bby itself\b": "automatically, separately",
    r"\bbesides\b": "also",
    r"\b(can|may) be had\b": "is available",
    r"\bat all the same\b|\bbut for\b": "leave it out",
    r"(?<!\d)\b0 (groups|answers|questions|ratings|runs|items)\b": "leave the part out",
    r"\banswers that are there\b": "existing answers",
    r"\bnot known\b": "unknown",
    r"\bsomebody\b": "someone",
}
KOREAN = {
    r"십시오": "-세요",
    r"라벨": "레이블",
    r"(?<!자격 )증명": "입증",
    r"낱말": "단어",
    r"견주": "비교",
    r"시행 중": "적용 중",
}


def main() -> int:
    """Print every text that reads as translated; 1 if there is one."""
    sources = (catalogue_texts(), bilingual_texts(), doc_texts())
    lines = [line for source in sources for place, text in source for line in problems(place, text)]
    print("\n".join(lines))
    return 1 if lines else 0


def problems(place: str, text: str) -> list[str]:
    """Passages of the text that match a pattern, with what to write instead."""
    return [
        f"{place}: …{text[max(0, match.start() - 40) : match.end() + 40]}…: {advice}"
        for pattern, advice in (ENGLISH | KOREAN).items()
        if (match := re.search(pattern, text))
    ]


def catalogue_texts() -> Iterator[tuple[str, str]]:
    for entry in polib.pofile(str(CATALOGUE)):
        for text in (entry.msgid, entry.msgid_plural, entry.msgstr, *entry.msgstr_plural.values()):
            yield "catalogue", text


def bilingual_texts() -> Iterator[tuple[str, str]]:
    """Literal arguments of ``Bilingual``, which no catalogue holds."""
    for file in _files(CODE):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Bilingual":
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        yield f"{file.relative_to(ROOT)}:{argument.lineno}", str(argument.value)


def doc_texts() -> Iterator[tuple[str, str]]:
    """Paragraphs of the documentation without code."""
    for file in _files(DOCS):
        prose = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n", re.sub(r"`[^`]*`", "`…`", prose)):
            yield str(file.relative_to(ROOT)), " ".join(paragraph.split())


def _files(patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))


if __name__ == "__main__":
    sys.exit(main())
