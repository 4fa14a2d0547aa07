"""Sixty questions over the demo's corpus in each language: written, filtered, decided on by forms, made a set, and
evaluated with the reference system. The model remembers from which passage it made a question."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

import review.management.demo
from contrib.corpora.documents import read_documents
from contrib.corpora.importing import import_corpus
from contrib.generation.models import DraftQuestion, Generation
from contrib.generation.runner import process_generation
from contrib.generation.selectors import overview
from contrib.generation.services import GenerationSpec, open_generation
from evaluation.core.roles import Role
from evaluation.judges.shipped import save_judge
from evaluation.metrics.normalise import content_tokens
from evaluation.models import Endpoint, QuestionSet, Run, Score
from evaluation.systems.services import save_system
from tests.factories import make_project, make_user
from tests.judge_server import JudgeServer
from tests.judge_server.actions import completion, fitting
from tests.judge_server.received import Received

pytestmark = pytest.mark.django_db
CORPUS = Path(review.management.demo.__file__).parent / "corpus.jsonl"
Filter = DraftQuestion.Filter
ASKS = {
    "ko": (
        "{0}번 항목에서 {1} 사안은 어떻게 되나요?",
        "{0}번 항목의 빛깔은 무엇인가요? ({1})",
        "위 글에 따르면 {1} 무엇인가요?",
    ),
    "en": (
        "How is matter {0} about {1} settled?",
        "Which colour has matter {0} ({1})?",
        "What does the passage say of {1}?",
    ),
}


class Remembering:
    """A model whose replies follow from what it wrote: a good question of each passage, and by turns one that nothing
    answers and one that names its passage."""

    def __init__(self, texts: list[str]) -> None:
        self.common = Counter(word for text in texts for word in set(content_tokens(text)))
        self.numbers = {text: number for number, text in enumerate(texts)}
        self.made: dict[str, str] = {}

    async def __call__(self, request: Received, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await fitting()(request, http)
        return web.json_response(completion(request, json.dumps(self.said(request.block)), as_asked=True))

    def said(self, block: dict[str, Any]) -> dict[str, Any]:
        if "count" in block:
            return {"questions": self.written(block["passages"][0]["text"], block["language"])}
        if "passages" in block:
            own = [one["number"] for one in block["passages"] if one["text"] == self.made.get(block["question"])]
            return {"answerable": bool(own), "needed": own, "alone": own}
        return {"known": False, "answer": ""}

    def written(self, text: str, language: str) -> list[dict[str, Any]]:
        good, lost, leaked = ASKS["ko" if language == "Korean" else "en"]
        words = sorted(set(content_tokens(text)), key=lambda one: (-self.common[one], one))
        first = re.split(r"(?<=[.다])\s", text)[0][:200]
        number = self.numbers[text]
        asked = [good.format(number, words[0]), good.format(f"{number}-{words[2]}", words[1])]
        self.made |= dict.fromkeys(asked, text)
        bad = (lost if number % 2 else leaked).format(number, words[0])
        return [
            {
                "question": question,
                "answer": f"{number} {place}: {first}",
                "keywords": [first[:12]],
                "required_info": [],
            }
            for place, question in enumerate([*asked, bad])
        ]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


def written(language: str, server: JudgeServer, settings: Any) -> Generation:
    """A generation over the demo's corpus that has ended; of every three questions the last is a planted bad one."""
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    project = make_project()
    corpus = import_corpus(project, "demo", read_documents(CORPUS.read_bytes(), CORPUS.name), by=None).corpus
    server.behave(Remembering(list(corpus.chunks.values_list("text", flat=True))))
    endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
    judge = save_judge(project, "writer", endpoint, model="writer-1", language="en")
    wanted = GenerationSpec("asked", language, ("single_hop",), passages=60, per_passage=3, seed=5)
    generation = open_generation(corpus, judge, wanted, by=None)
    while not process_generation(generation):
        pass
    return generation


def evaluated(generation: Generation) -> None:
    """The set of sixty questions is there, and the reference system is evaluated with it."""
    questions = QuestionSet.objects.get(name="asked")
    assert questions.questions.count() == 60
    corpus = generation.corpus
    save_system(corpus.project, "reference", "corpus", {"corpus": f"{corpus.name}@{corpus.version}"}, None)
    evaluate = ["evaluate", "--questions", "asked", "--system", "reference", "--type", "retrieval_only"]
    call_command(*evaluate, "--profile", "generation")
    run = Run.objects.get()
    assert run.state == Run.State.COMPLETED
    scored = Score.objects.filter(run=run, metric__name="recall_at_k", status="scored")
    assert scored.count() == 60
    assert any(one.value for one in scored)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ko", "en"])
def test_sixty_questions_become_a_set_that_is_evaluated(
    language: str, server: JudgeServer, settings: Any, client: Client
) -> None:
    generation = written(language, server, settings)
    planted = [draft for draft in generation.drafts.all() if draft.position % 3 == 2]
    assert len(planted) > 50
    assert {draft.removed_by for draft in planted} == {Filter.NOT_ANSWERABLE, Filter.LEAKED}
    assert overview(generation).waiting >= 60
    client.force_login(make_user(Role.LEAD, generation.corpus.project))
    first, seventh = (client.get(reverse("generation", args=[generation.pk]), {"page": page}) for page in (1, 7))
    asked = [{row.draft.pk for row in one.context["page"].rows} for one in (first, seventh)]
    assert [len(one) for one in asked] == [10, 10]
    assert not asked[0] & asked[1]
    assert (seventh.context["page"].back, first.context["page"].back) == ("?show=waiting&page=6", "")
    assert "/?show=waiting&amp;page=7" in seventh.content.decode()  # a decision leads back to here
    for draft in generation.drafts.filter(removed_by="")[:60]:
        client.post(reverse("draft-decide", args=[draft.pk]), {"verb": "accepted"})
    client.post(reverse("generation-set", args=[generation.pk]))
    evaluated(generation)
