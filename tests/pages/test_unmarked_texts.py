"""Korean pages hold no English sentence: texts that are not marked for translation are detected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from urllib.parse import urlencode

import polib
import pytest
from django.apps import apps
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import models
from django.test import Client
from django.urls import reverse

from evaluation.models import Run
from review.models import Assignment, ReviewItem
from review.ratings.leases import next_assignment
from tests.access_rules import PAGES
from tests.factories import make_draft_run, make_queue, make_scored_run, make_units, make_user
from tests.installed import merged
from tests.pages.visible_text import visible_texts
from tests.pages.world import PEOPLE, World, make_world
from tests.test_access_matrix import QUERIES, address, routes
from tools.catalogues import CATALOGUE

pytestmark = pytest.mark.django_db

WORD_PATTERN = r"[A-Za-z][A-Za-z'’-]*"
SENTENCE = re.compile(rf"{WORD_PATTERN}(?:,? {WORD_PATTERN}){{3,}}")
OWN_FIELDS = (models.CharField, models.TextField)
ALLOWED_ENGLISH = ("YAML, JSON, JSONL, CSV, XLSX",)  # names that are the same in every language

ROLE_OUTCOMES = {
    **PAGES,
    **{rule: outcomes for rule, outcomes in merged("RULES").items() if not rule[1].startswith("api-")},
}


def data_texts() -> list[str]:
    """Return all texts written by users or systems (questions, answers, reasons, names), the longest first."""
    texts: set[str] = set()
    for model in [*apps.get_app_config("evaluation").get_models(), *apps.get_app_config("review").get_models()]:
        fields = [f.attname for f in model._meta.concrete_fields if isinstance(f, OWN_FIELDS) and not f.choices]
        for row in model._default_manager.values_list(*fields) if fields else ():
            texts.update(" ".join(str(value).split()) for value in row if value)
    return sorted((text for text in texts if " " in text), key=len, reverse=True)


def english_in(texts: Iterable[str]) -> list[str]:
    """Runs of four Latin words and more, outside of data and of the names allowed."""
    suspects = [text for text in texts if SENTENCE.search(text)]  # what is taken out of a text adds no sentence to it
    data = data_texts() if suspects else []
    phrases = []
    for text in suspects:
        remaining = text
        for allowed_text in (*ALLOWED_ENGLISH, *data):
            remaining = remaining.replace(allowed_text, "·")
        phrases += [f"{hit[0]!r} in {text[:120]!r}" for hit in SENTENCE.finditer(remaining)]
    return phrases


@cache
def translated_texts() -> dict[str, str]:
    """Korean by English, where that is more than one word."""
    return {e.msgid: e.msgstr for e in polib.pofile(str(CATALOGUE)) if " " in e.msgid and e.msgstr}


def untranslated_texts(texts: Iterable[str]) -> list[str]:
    """Return texts in English that the catalogue translates, because they were translated when a module was
    imported."""
    return [text for text in texts if translated_texts().get(text, text) != text]


def submit_rating(world: World, differs_from_judge: bool) -> Client:
    """Return the member's client after rating the held item, far from the judge (who is then shown) or equal to it."""
    client = world.client("member")
    scores = {s.metric.name: s.value or 0 for s in world.answer.scores.select_related("metric")}
    values = {name: (5 if value <= 3 else 1) if differs_from_judge else value for name, value in scores.items()}
    data = {f"value:{name}": value for name, value in values.items()}
    client.post(reverse("review-submit", args=[world.assignment.pk]), data | {"form_key": "k"})
    return client


def finished_queue_path(world: World) -> str:
    Assignment.objects.filter(pk=world.assignment.pk).update(state=Assignment.State.EXPIRED)
    ReviewItem.objects.filter(queue=world.queue).update(state=ReviewItem.State.WITHDRAWN)
    return reverse("review-next", args=[world.queue.pk])


def flagged_item_path(world: World) -> str:
    world.client("member").post(reverse("review-flag", args=[world.assignment.pk]), {"flag": "bad_question"})
    return reverse("review-item", args=[world.assignment.pk])


def unfinished_run_path(world: World, state: str) -> str:
    run = make_draft_run(world.run.answer_set, profile=world.run.profile_version)
    make_units(run, 2)
    Run.objects.filter(pk=run.pk).update(state=state)
    return reverse("run", args=[run.pk])


def item_path(world: World) -> str:
    return reverse("review-item", args=[world.assignment.pk])


def revealed_item_path(world: World) -> str:
    submit_rating(world, differs_from_judge=True)
    return item_path(world)


def rated_item_path(world: World) -> str:
    submit_rating(world, differs_from_judge=False)
    return item_path(world)


def agreement_path(world: World) -> str:
    submit_rating(world, differs_from_judge=True)
    return reverse("run-agreement", args=[world.run.pk])


def run_with_ratings(world: World) -> str:
    submit_rating(world, differs_from_judge=True)
    return reverse("run", args=[world.run.pk])


def comparison_path(world: World, name: str = "run-compare") -> str:
    other_run = make_scored_run(world.run.answer_set, (2, 2, 5), profile=world.run.profile_version)
    return f"{reverse(name)}?runs={world.run.pk},{other_run.pk}&question={world.answer.question.external_id}"


def dispute_path(world: World) -> str:
    queue = make_queue(world.run, [world.people["lead"]])
    ReviewItem.objects.filter(queue=queue).update(state=ReviewItem.State.DISPUTED)
    next_assignment(queue, world.people["lead"])
    return reverse("queue", args=[queue.pk])


def newcomer_path(world: World) -> str:
    world.people["newcomer"] = make_user()
    return reverse("home")


PAGES: dict[str, tuple[str, Callable[[World], str]]] = {
    "log in": ("anonymous", lambda w: reverse("login")),
    "nothing there": ("lead", lambda w: reverse("run", args=[987_654])),
    "not allowed": ("viewer", lambda w: reverse("queue-new") + f"?run={w.run.pk}"),
    "home of a newcomer": ("newcomer", newcomer_path),
    "home of a stranger": ("stranger", lambda w: reverse("home")),
    "home of a lead": ("lead", lambda w: reverse("home")),
    "home of a member": ("member", lambda w: reverse("home")),
    "home of an evaluator": ("evaluator", lambda w: reverse("home")),
    "runs": ("lead", lambda w: reverse("run-list")),
    "search": ("lead", lambda w: reverse("search") + "?q=nothing-like-it"),
    "runs, filtered to none": ("lead", lambda w: reverse("run-list") + "?q=nothing-like-it"),
    "run": ("lead", lambda w: reverse("run", args=[w.run.pk])),
    "run with ratings": ("lead", run_with_ratings),
    "draft run": ("evaluator", lambda w: unfinished_run_path(w, Run.State.DRAFT)),
    "running run": ("evaluator", lambda w: unfinished_run_path(w, Run.State.RUNNING)),
    "paused run": ("evaluator", lambda w: unfinished_run_path(w, Run.State.PAUSED)),
    "incomplete run": ("evaluator", lambda w: unfinished_run_path(w, Run.State.INCOMPLETE)),
    "cancelled run": ("evaluator", lambda w: unfinished_run_path(w, Run.State.CANCELLED)),
    "agreement": ("lead", agreement_path),
    "agreement without ratings": ("lead", lambda w: reverse("run-agreement", args=[w.run.pk])),
    "comparison": ("lead", comparison_path),
    "comparison of two answers": ("lead", lambda w: comparison_path(w, "run-compare-answers")),
    "answer": ("lead", lambda w: reverse("answer", args=[w.answer.pk]) + f"?run={w.run.pk}"),
    "queues for a lead": ("lead", lambda w: reverse("queue-list")),
    "queues for a member": ("member", lambda w: reverse("queue-list")),
    "queues for a stranger": ("stranger", lambda w: reverse("queue-list")),
    "queue for a lead": ("lead", lambda w: reverse("queue", args=[w.queue.pk])),
    "queue in dispute": ("lead", dispute_path),
    "queue for a member": ("member", lambda w: reverse("queue", args=[w.queue.pk])),
    "new queue": ("lead", lambda w: reverse("queue-new") + f"?run={w.run.pk}"),
    "question sets": ("evaluator", lambda w: reverse("question-set-list")),
    "question set": ("lead", lambda w: reverse("question-set", args=[w.question_set.pk])),
    "upload": ("evaluator", lambda w: reverse("question-set-upload")),
    "upload, previewed": ("evaluator", lambda w: reverse("question-set-preview", args=[w.batch.uuid])),
    "item": ("member", item_path),
    "item, the judge shown": ("member", revealed_item_path),
    "item, finished": ("member", rated_item_path),
    "item, flagged": ("member", flagged_item_path),
    "nothing left": ("member", finished_queue_path),
    "back office": ("admin", lambda w: reverse("admin:index")),
}


SORRY = {"nothing there": 404, "not allowed": 403}


def korean_page_english(world: World, person: str, url: str, status: int = 200) -> list[str]:
    """Return the English phrases on the page as shown to a user with a Korean browser."""
    response = world.client(person).get(url, headers={"accept-language": "ko"}, follow=True)
    assert response.status_code == status
    page = response.content.decode()
    assert '<html lang="ko"' in page
    return visible_texts(page)


@pytest.mark.parametrize("name", list(PAGES))
@pytest.mark.slow
def test_korean_page_has_no_english_sentence(name: str) -> None:
    world = make_world()
    person, address = PAGES[name]
    texts = korean_page_english(world, person, address(world), SORRY.get(name, 200))
    assert any(re.search("[가-힣]", text) for text in texts)
    assert english_in(texts) == []
    assert untranslated_texts(texts) == []


@pytest.mark.slow
def test_every_permitted_page_is_in_korean() -> None:
    """Users with access see no English sentence, on pages added later too."""
    world = make_world()
    patterns = {route.name: str(route.pattern) for route in routes()}
    for name in [name for method, name in ROLE_OUTCOMES if method == "GET" and name != "favicon"]:
        url = f"{address(world, name, patterns[name])}?{urlencode(QUERIES.get(name, lambda w: {})(world))}"
        for person, rule in zip(PEOPLE, ROLE_OUTCOMES["GET", name].split(), strict=True):
            if rule == "ok":
                response = world.client(person).get(url, headers={"accept-language": "ko"}, follow=True)
                if not response.headers.get("Content-Type", "").startswith("text/html"):
                    continue  # a file to download
                texts = visible_texts(response.getvalue().decode())
                assert (name, person, english_in(texts), untranslated_texts(texts)) == (name, person, [], [])


@pytest.mark.slow
def test_back_office_lists_are_in_korean() -> None:
    world = make_world()
    for model in admin.site._registry:
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        texts = korean_page_english(world, "admin", url)
        assert (model.__name__, english_in(texts), untranslated_texts(texts)) == (model.__name__, [], [])


def test_refused_file_is_explained_in_korean() -> None:
    world = make_world()
    from_disk = {"file": SimpleUploadedFile("q.yaml", b"- {question: 1}\n- {id: x}\n"), "project": world.project.pk}
    response = world.client("evaluator").post(
        reverse("question-set-upload"), from_disk, headers={"accept-language": "ko"}
    )
    texts = visible_texts(response.content.decode())
    assert any("가져오지 않은 파일" in text for text in texts)
    assert english_in(texts) == []


def test_unmarked_sentence_is_detected_and_data_is_ignored() -> None:
    world = make_world()
    texts = ["This was not marked.", "이것은 Nobody ever marked this 입니다", world.run.name, "Concord", "한국어 문장"]
    assert len(english_in(texts)) == 2
    assert untranslated_texts(["Skip to content", "본문으로 건너뛰기"]) == ["Skip to content"]
    english = world.client("anonymous").get(reverse("login"), headers={"accept-language": "en"}).content.decode()
    assert any("how good RAG answers are" in hit for hit in english_in(visible_texts(english)))
