"""Finds wording in the catalogue that reads as translated: ``python -m tools.wording``, part of ``make lint``.

The texts of pages, messages and commands are in the catalogue. CONTRIBUTING says how they are written."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import polib

CATALOGUE = Path(__file__).resolve().parents[1] / "locale" / "ko" / "LC_MESSAGES" / "django.po"
#: What to write instead, by pattern.
ENGLISH = {
    r"\bha(s|ve|d) to (?!be\b)": "must",
    r"(?<!here )\b(is|are) no (?!longer\b|worse\b)\w+": "isn't, aren't",
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
    r"증명": "입증",
    r"낱말": "단어",
    r"견주": "비교",
    r"시행 중": "적용 중",
}


def main() -> int:
    """Print every text that reads as translated; 1 if there is one."""
    lines = []
    for entry in polib.pofile(str(CATALOGUE)):
        korean = entry.msgstr or entry.msgstr_plural.get(0, "")
        for text, patterns in ((entry.msgid, ENGLISH), (entry.msgid_plural, ENGLISH), (korean, KOREAN)):
            lines += [f"{text!r}: {advice}" for pattern, advice in patterns.items() if re.search(pattern, text)]
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
