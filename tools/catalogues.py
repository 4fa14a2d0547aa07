"""Collect and compile the Korean catalogue: ``make messages``. English is the source and needs none.

``python -m tools.catalogues`` needs GNU gettext; the compiled file is committed, so that running the product does not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
import polib

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "locale" / "ko" / "LC_MESSAGES" / "django.po"
IGNORED = ["var/*", ".venv/*", "tests/*", "contrib/*/tests/*", "conftest.py", "tools/*", "build/*", "docs/*"]


def collect() -> None:
    """Bring the catalogue up to date with the sources, without line numbers, so that diffs stay small."""
    from django.core.management import call_command

    call_command("makemessages", locale=["ko"], ignore_patterns=IGNORED, no_location=True, verbosity=0)
    file = polib.pofile(str(CATALOGUE), wrapwidth=110)
    for entry in file.obsolete_entries():
        file.remove(entry)
    file.metadata["POT-Creation-Date"] = ""
    file.save()


def main() -> int:
    """0 when the Korean catalogue is complete, 1 with the missing texts listed otherwise."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.chdir(ROOT)
    django.setup()
    collect()
    korean = polib.pofile(str(CATALOGUE))
    korean.save_as_mofile(str(CATALOGUE.with_suffix(".mo")))
    untranslated = [*korean.untranslated_entries(), *korean.fuzzy_entries()]
    for entry in untranslated:
        print(f"missing: {entry.msgid}")
    print(f"{len(korean)} texts, {len(untranslated)} missing in Korean")
    return 1 if untranslated else 0


if __name__ == "__main__":
    sys.exit(main())
