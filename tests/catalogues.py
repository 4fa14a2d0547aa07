"""Collect and compile the catalogues: ``make messages``. English is the source, so its texts are filled in.

``python -m tests.catalogues`` needs GNU gettext; the compiled files are committed, so that running the product does
not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
import polib

ROOT = Path(__file__).resolve().parents[1]
LOCALE = ROOT / "locale"
LANGUAGES = ("en", "ko")
IGNORED = ["var/*", ".venv/*", "tests/*", "build/*", "docs/*"]


def catalogue(language: str) -> Path:
    """The file of a language's texts."""
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def collect() -> None:
    """Bring both catalogues up to date with the sources, without file positions, so that diffs stay small."""
    from django.core.management import call_command

    call_command("makemessages", locale=list(LANGUAGES), ignore_patterns=IGNORED, add_location="file", verbosity=0)
    for language in LANGUAGES:
        file = polib.pofile(str(catalogue(language)), wrapwidth=110)
        for entry in list(file):
            if entry.obsolete:
                file.remove(entry)
            elif language == "en":
                fill(entry)
        file.metadata["POT-Creation-Date"] = ""
        file.save()


def fill(entry: polib.POEntry) -> None:
    """An English text is its own translation."""
    entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
    if entry.msgid_plural:
        entry.msgstr_plural = {0: entry.msgid, 1: entry.msgid_plural}
    else:
        entry.msgstr = entry.msgid


def compile_all() -> None:
    """Write the ``.mo`` files."""
    for language in LANGUAGES:
        path = catalogue(language)
        polib.pofile(str(path)).save_as_mofile(str(path.with_suffix(".mo")))


def main() -> int:
    """0 when the Korean catalogue is complete, 1 with the missing texts listed otherwise."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.chdir(ROOT)
    django.setup()
    for language in LANGUAGES:
        catalogue(language).parent.mkdir(parents=True, exist_ok=True)
    collect()
    compile_all()
    korean = polib.pofile(str(catalogue("ko")))
    missing = [*korean.untranslated_entries(), *korean.fuzzy_entries()]
    for entry in missing:
        print(f"missing: {entry.msgid}")
    print(f"{len(korean)} texts, {len(missing)} missing in Korean")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
