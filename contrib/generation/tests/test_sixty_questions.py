"""Sixty questions over the demo corpus in each language: written, filtered, decided by forms, made a set, and evaluated
with the reference system."""

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
from tests.judge_server.actions import completion, valid_reply
from tests.judge_server.received import ReceivedRequest

pytestmark = pytest.mark.django_db
DEMO = Path(review.management.demo.__file__).parent
Filter = DraftQuestion.Filter
ASKS = {
    "ko": (
        "{0}번 항목에서 {1} 사안은 어떻게 되나요?",
        "{0}번 항목의 빛깔은 무엇인가요? ({1})",
        "위 글에 따르면 {1} 무엇인가요?",
    ),
    "en": (
        "How is matter {0} about {1} settled?",
        "Which colour has matter {0} ({2})?",
        "What does the passage say of {2}?",
    ),
}


class ScriptedWriter:
    """A model that writes a good question for each passage, and by turns an unanswerable one and one that names its
    passage."""

    def __init__(self, texts: list[str]) -> None:
        self.common = Counter(word for text in texts for word in set(content_tokens(text)))
        self.numbers = {text: number for number, text in enumerate(texts)}
        self.text_by_question: dict[str, str] = {}

    async def __call__(self, request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        return web.json_response(completion(request, json.dumps(self.reply(request.block)), as_asked=True))

    def reply(self, block: dict[str, Any]) -> dict[str, Any]:
        if "count" in block:
            return {"questions": self.write_questions(block["passages"][0]["text"], block["language"])}
        if "passages" in block:
            own = [
                passage["number"]
                for passage in block["passages"]
                if passage["text"] == self.text_by_question.get(block["question"])
            ]
            return {"answerable": bool(own), "needed": own, "alone": own}
        return {"known": False, "answer": ""}

    def write_questions(self, text: str, language: str) -> list[dict[str, Any]]:
        good_template, lost_template, leaked_template = ASKS["ko" if language == "Korean" else "en"]
        tokens = sorted(set(content_tokens(text)), key=lambda token: (-self.common[token], token))
        first = re.split(r"(?<=[.다])\s", text)[0][:200]
        number = self.numbers[text]
        good_questions = [
            good_template.format(number, tokens[0]),
            good_template.format(f"{number}-{tokens[2]}", tokens[1]),
        ]
        self.text_by_question |= dict.fromkeys(good_questions, text)
        bad_question = (lost_template if number % 2 else leaked_template).format(number, tokens[0], tokens[3])
        return [
            {
                "question": question,
                "answer": f"{number} {position}: {first}",
                "keywords": [first[:12]],
                "required_info": [],
            }
            for position, question in enumerate([*good_questions, bad_question])
        ]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


def run_generation(language: str, server: JudgeServer, settings: Any) -> Generation:
    """Return a finished generation over the demo corpus; every third question is a planted bad one."""
    settings.CONCORD_JUDGE_ORIGINS = [server.origin]
    project = make_project()
    file = DEMO / language / "corpus.jsonl"
    corpus = import_corpus(project, "demo", read_documents(file.read_bytes(), file.name), by=None).corpus
    server.behave(ScriptedWriter(list(corpus.chunks.values_list("text", flat=True))))
    endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
    judge = save_judge(project, "writer", endpoint, model="writer-1", language="en")
    spec = GenerationSpec("asked", language, ("single_hop",), passages=60, per_passage=3, seed=5)
    generation = open_generation(corpus, judge, spec, by=None)
    while not process_generation(generation):
        pass
    return generation


def assert_evaluated(generation: Generation) -> None:
    """Check the set of sixty questions, and evaluate the reference system with it."""
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
    assert any(score.value for score in scored)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ko", "en"])
def test_sixty_questions_become_an_evaluated_set(
    language: str, server: JudgeServer, settings: Any, client: Client
) -> None:
    generation = run_generation(language, server, settings)
    planted = [draft for draft in generation.drafts.all() if draft.position % 3 == 2]
    assert len(planted) > 50
    assert {draft.removed_by for draft in planted} == {Filter.NOT_ANSWERABLE, Filter.LEAKED}
    assert overview(generation).waiting >= 60
    client.force_login(make_user(Role.LEAD, generation.corpus.project))
    first, seventh = (client.get(reverse("generation", args=[generation.pk]), {"page": page}) for page in (1, 7))
    draft_ids = [{row.draft.pk for row in entry.context["page"].rows} for entry in (first, seventh)]
    assert [len(entry) for entry in draft_ids] == [10, 10]
    assert not draft_ids[0] & draft_ids[1]
    assert (seventh.context["page"].previous_url, first.context["page"].previous_url) == ("?show=waiting&page=6", "")
    assert "/?show=waiting&amp;page=7" in seventh.content.decode()  # a decision leads back to here
    for draft in generation.drafts.filter(removed_by="")[:60]:
        client.post(reverse("draft-decide", args=[draft.pk]), {"verb": "accepted"})
    client.post(reverse("generation-set", args=[generation.pk]))
    assert_evaluated(generation)
