"""Addresses and pages of generated questions, for the tests of the core that walk all of them."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse

from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from contrib.generation.filters import read_question
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftQuestion, Generation, GenerationResult
from evaluation.models import JudgeVersion, Run, User
from tests.access_rules import EVALUATES, EVALUATES_SOMEWHERE, LEADS, LOGGED_IN, SEES_RUNS
from tests.pages.world import World

RULES = {
    ("GET", "generation-list"): EVALUATES_SOMEWHERE,
    ("GET", "generation-new"): EVALUATES_SOMEWHERE,
    ("POST", "generation-new"): EVALUATES_SOMEWHERE,
    ("GET", "generation"): EVALUATES,
    ("POST", "generation-resume"): EVALUATES,
    ("POST", "generation-set"): LEADS,
    ("POST", "draft-decide"): LEADS,
    ("GET", "api-generation-list"): LOGGED_IN,
    ("POST", "api-generation-list"): EVALUATES,
    ("GET", "api-generation-detail"): SEES_RUNS,
    ("GET", "api-generation-questions"): EVALUATES,
    ("POST", "api-generation-set"): LEADS,
    ("POST", "api-generated-question-decide"): LEADS,
}


def drafted_question(corpus: Corpus, judge: JudgeVersion) -> DraftQuestion:
    """The only question of a finished generation about the first passage of a corpus, created when missing."""
    about = {"corpus": corpus, "judge_version": judge, "name": "asked"}
    sizes = {"language": "en", "kinds": ["single_hop"], "passages": 1, "per_passage": 1, "seed": 0, "writer": "w"}
    generation, created = Generation.objects.get_or_create(**about, defaults=sizes)
    if created:
        GenerationResult.objects.create(generation=generation, outcome="done")
        raw_question = {"question": "How many books?", "answer": "Ten.", "keywords": ["ten"], "required_info": []}
        question = read_question(raw_question, KINDS["single_hop"], [corpus.chunks.earliest("position").chunk_id])
        content = question.model_dump(mode="json", exclude={"id"})
        DraftQuestion.objects.create(generation=generation, position=0, kind="single_hop", content=content)
    return generation.drafts.earliest("position")


def draft_of(world: World) -> DraftQuestion:
    """Return a generated question with its corpus and judge, created when first needed."""
    text = "A library lends ten books for fourteen days to everybody who lives in the town and has a card."
    corpus = import_corpus(world.project, "town", [SourceDocument("library.txt", text)], by=None).corpus
    return drafted_question(corpus, world.run.judges.get().judge_version)


SUBJECTS = {
    "generation": lambda world: draft_of(world).generation_id,
    "draft": lambda world: draft_of(world).pk,
    "generated-question": lambda world: draft_of(world).pk,
}
BODIES = {
    "api-generation-list": lambda world: {
        "corpus": draft_of(world).generation.corpus_id,
        "judge": draft_of(world).generation.judge_version_id,
        "name": "asked",
    },
    "api-generated-question-decide": lambda _: {"verb": "rejected"},
}
PAGES = {
    "generations": ("lead", lambda _: reverse("generation-list"), 7),
    "generation": ("lead", lambda world: reverse("generation", args=[draft_of(world).generation_id]), 14),
    "new generation": (
        "lead", lambda world: f"{reverse('generation-new')}?corpus={draft_of(world).generation.corpus_id}", 8,
    ),
}  # fmt: skip


def prepare(vector: Run, graph: Run, people: Mapping[str, User]) -> None:
    """Add a generated question to the demo."""
    drafted_question(Corpus.objects.get(), JudgeVersion.objects.earliest("pk"))


def lead_pages(vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    return [
        reverse("generation-list"),
        f"{reverse('generation-new')}?corpus={Corpus.objects.get().pk}",
        reverse("generation", args=[Generation.objects.get().pk]),
    ]
