"""The Korean catalogue is complete and compiled; English needs no catalogue, whatever the site's language."""

from __future__ import annotations

import re
from typing import Any

import polib
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext

from tools.catalogues import CATALOGUE

PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]|\{(\w*)\}")


def test_every_text_is_translated_and_none_is_fuzzy() -> None:
    file = polib.pofile(str(CATALOGUE))
    assert len(file) > 100
    assert [e.msgid for e in file.untranslated_entries()] == []
    assert [e.msgid for e in file.fuzzy_entries()] == []
    assert [e.msgid for e in file.obsolete_entries()] == []


def test_translations_keep_their_placeholders() -> None:
    def find_placeholders(text: str) -> set[str]:
        return {a or b for a, b in PLACEHOLDER.findall(text)}

    mismatches = []
    for entry in polib.pofile(str(CATALOGUE)):
        placeholders = find_placeholders(entry.msgid) | find_placeholders(entry.msgid_plural)
        for text in [entry.msgstr, *entry.msgstr_plural.values()]:
            if text and (
                not find_placeholders(text) <= placeholders
                or (not entry.msgid_plural and find_placeholders(text) != placeholders)
            ):
                mismatches.append(entry.msgid)
    assert mismatches == []


def test_compiled_catalogue_is_up_to_date() -> None:
    def texts(file: polib.POFile | polib.MOFile) -> dict[tuple[str | None, str], object]:
        return {(e.msgctxt, e.msgid): e.msgstr or e.msgstr_plural for e in file}

    assert texts(polib.mofile(str(CATALOGUE.with_suffix(".mo")))) == texts(polib.pofile(str(CATALOGUE)))


@pytest.fixture(params=["en", "ko"])
def site_language(request: pytest.FixtureRequest, settings: Any) -> str:
    """The site's default language; texts are loaded anew, as when the site starts with it."""
    settings.LANGUAGE_CODE = request.param
    settings.LOCALE_PATHS = list(settings.LOCALE_PATHS)  # whose change makes Django forget the texts it has loaded
    return str(request.param)


@pytest.mark.usefixtures("site_language")
def test_english_texts_are_those_of_the_sources() -> None:
    """No installed package translates one of our texts to English, and none falls back to the site's language."""
    translation.gettext("Skip to content")  # the site's own language is loaded first
    mismatches = []
    with translation.override("en"):
        for entry in polib.pofile(str(CATALOGUE)):
            message, context = entry.msgid, entry.msgctxt
            translated = translation.pgettext(context, message) if context else translation.gettext(message)
            if translated != message:
                mismatches.append((message, translated))
            for number in (0, 1, 2, 21) if entry.msgid_plural else ():
                expected = message if number == 1 else entry.msgid_plural
                if (translated_plural := translation.ngettext(message, entry.msgid_plural, number)) != expected:
                    mismatches.append((message, translated_plural))
    assert mismatches == []


@pytest.mark.django_db
def test_browser_language_takes_precedence_over_site_language(site_language: str) -> None:
    def page(**headers: str) -> str:
        return Client().get(reverse("login"), headers=headers, follow=True).content.decode()

    skip_links = {"en": "Skip to content", "ko": "본문으로 건너뛰기"}
    for language, text in skip_links.items():
        content = page(**{"accept-language": language})
        assert f'<html lang="{language}"' in content
        assert text in content
    assert skip_links[site_language] in page()


def test_korean_texts_have_no_particle_after_a_placeholder() -> None:
    """은/는, 이/가, 을/를, 과/와 and 으로/로 follow the sound before them, which a placeholder does not tell."""
    agreeing = re.compile(r"%\(\w+\)[sd][”’]?(?:은|는|이|가|을|를|과|와|으로|로|이며|며|이고|고)(?![가-힣])")
    assert agreeing.search("파일은 %(size)s이며, 큽니다")
    assert not agreeing.search("“%(id)s”인 질문, %(set)s의 답변, 버전(%(newest)s)은")
    mismatches = [
        text
        for entry in polib.pofile(str(CATALOGUE))
        for text in [entry.msgstr, *entry.msgstr_plural.values()]
        if agreeing.search(text)
    ]
    assert mismatches == []


def test_korean_back_office_text_for_no_permission_is_overridden() -> None:
    """Django's own sentence means "a reader has no view and edit permission"; the project's catalogue comes first."""
    with translation.override("ko"):
        translated = gettext("You don’t have permission to view or edit anything.")
    assert translated.startswith("보거나 고칠 수 있는 항목이 없습니다.")


def test_comparing_runs_and_pairs_has_distinct_korean_labels() -> None:
    with translation.override("ko"):
        names = {gettext(text) for text in ("Compare runs", "Compare side by side")}
    assert names == {"실행 비교", "답변 쌍 비교"}
