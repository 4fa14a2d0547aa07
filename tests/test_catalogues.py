"""Both languages are complete, and what is compiled is what is written."""

from __future__ import annotations

import re
from pathlib import Path

import polib
import pytest

from tests.catalogues import LANGUAGES, catalogue

PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_and_none_is_doubtful(language: str) -> None:
    file = polib.pofile(str(catalogue(language)))
    assert len(file) > 100
    assert [e.msgid for e in file.untranslated_entries()] == []
    assert [e.msgid for e in file.fuzzy_entries()] == []
    assert [e.msgid for e in file.obsolete_entries()] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_their_placeholders(language: str) -> None:
    def names(text: str) -> set[str]:
        return {a or b for a, b in PLACEHOLDER.findall(text)}

    wrong = []
    for entry in polib.pofile(str(catalogue(language))):
        wanted = names(entry.msgid) | names(entry.msgid_plural)
        for text in [entry.msgstr, *entry.msgstr_plural.values()]:
            if text and (not names(text) <= wanted or (not entry.msgid_plural and names(text) != wanted)):
                wrong.append(entry.msgid)
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_compiled_catalogue_is_fresh(language: str) -> None:
    path: Path = catalogue(language)
    written = {e.msgid: e.msgstr or e.msgstr_plural for e in polib.pofile(str(path)) if e.translated()}
    compiled = {e.msgid: e.msgstr or e.msgstr_plural for e in polib.mofile(str(path.with_suffix(".mo")))}
    assert compiled == written


def test_no_korean_particle_has_to_agree_with_a_placeholder() -> None:
    """은/는, 이/가, 을/를, 과/와 and 으로/로 follow the sound before them, which a placeholder does not tell."""
    agreeing = re.compile(r"%\(\w+\)[sd][”’]?(?:은|는|이|가|을|를|과|와|으로|로|이며|며|이고|고)(?![가-힣])")
    assert agreeing.search("파일은 %(size)s이며, 큽니다")
    assert not agreeing.search("“%(id)s”인 질문, %(set)s의 답변, 버전(%(newest)s)은")
    wrong = [
        text
        for entry in polib.pofile(str(catalogue("ko")))
        for text in [entry.msgstr, *entry.msgstr_plural.values()]
        if agreeing.search(text)
    ]
    assert wrong == []
