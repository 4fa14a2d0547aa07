"""Every dotted path of the settings resolves, and without an optional feature the rest works."""

from __future__ import annotations

import pydoc
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as site
from django.test import Client
from django.urls import NoReverseMatch, reverse

from config.urls import url_routes
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.extensions import REGISTRY, features
from evaluation.judges.embeddings import choose_embedding, choose_token_model, embedder_of, token_model
from evaluation.judges.shipped import baseline_judge, profile_row, save_judge
from evaluation.judging.embedding.similarity import EmbeddingChoice, TokenChoice
from evaluation.models import Endpoint, Project, Run, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.runs.monitoring import exposition
from evaluation.runs.progress import call_status, progress
from evaluation.systems.services import connectors
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.health import find_issues
from evaluation.worker.lifecycle import cancel, resume, start
from tests.examples import first_fast
from tests.factories import make_answer_set, make_project, make_user

pytestmark = pytest.mark.django_db
CONTRIB = [path.rpartition(".")[2] for path in site.CONTRIB_APPS]
PROJECT_PATH = re.compile(r"(config|contrib|evaluation|review)(\.\w+)+")
RemoveFeature = Callable[[str], None]


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for part in value.items() for text in texts(part))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in texts(part))


def test_every_dotted_path_in_settings_is_importable() -> None:
    import config.settings as written

    strings = {text for name in dir(written) if name.isupper() for text in texts(getattr(written, name))}
    paths = {text for text in strings if PROJECT_PATH.fullmatch(text)} - {site.AUTH_USER_MODEL}
    assert {*site.CONTRIB_APPS, site.SESSION_ENGINE} <= paths
    assert [path for path in sorted(paths) if pydoc.locate(path) is None] == []
    assert apps.get_model(site.AUTH_USER_MODEL) is User


def test_every_feature_is_named_after_its_app() -> None:
    assert [feature.name for feature in features()] == ["evaluation", "review", *CONTRIB]


@pytest.fixture
def remove_feature(settings: Any, monkeypatch: pytest.MonkeyPatch) -> RemoveFeature:
    """Return a function that unregisters the feature of a name."""

    def remove(name: str) -> None:
        if name not in REGISTRY:
            pytest.skip(f"the feature {name} is not installed")
        monkeypatch.delitem(REGISTRY, name)
        urls = ModuleType(f"urls_without_{name}")
        urls.urlpatterns = url_routes()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, urls.__name__, urls)
        settings.ROOT_URLCONF = urls.__name__

    return remove


def evaluate_run(**options: Any) -> Run:
    answers = make_answer_set()
    judge = options.pop("judge", None) or baseline_judge(answers.project, "en")
    run = prepare_run(answers, profile_row(answers.project, "graphrag"), RunSpec(**options), judge=judge)
    start(run)
    return drain(run.pk, seconds=60)


def boss(project: Project) -> Client:
    client = Client()
    client.force_login(make_user(Role.ADMIN, project, is_superuser=True, language="en"))
    return client


@pytest.mark.parametrize("name", first_fast(CONTRIB, 3))
def test_runs_pages_and_monitoring_work_without_a_feature(name: str, remove_feature: RemoveFeature) -> None:
    remove_feature(name)
    run = evaluate_run()
    assert run.state == Run.State.COMPLETED
    assert (progress(run).failed, call_status(run).open_batches) == (0, None)
    assert requeue_stalled() == []
    assert all("heartbeat" in problem.text for problem in find_issues())
    assert b"concord_calls_total" in exposition([run.project_id])
    client, judge = boss(run.project), run.judges.all()[0].judge_version
    pages = [reverse(page) for page in ("home", "run-list", "queue-list", "judge-list")]
    pages += [reverse("run", args=[run.pk]), reverse("judge", args=[judge.pk]), reverse("run-progress", args=[run.pk])]
    assert {path: client.get(path).status_code for path in pages} == dict.fromkeys(pages, 200)
    assert client.get(reverse("api-metrics")).status_code == 200


ADDRESSES = {
    "pairs": "pair-list",
    "practice": "practice",
    "retrieval_truth": "truth-list",
    "corpora": "corpus-list",
    "generation": "generation-list",
}


@pytest.mark.parametrize(
    ("name", "removed_routes"),
    first_fast(
        [
            ("pairs", ["/pairs/", "/pairs/new/", "/pairs/1/rate/", "/api/v1/pair-sets/"]),
            ("practice", ["/practice/", "/practice/1/"]),
            ("retrieval_truth", ["/retrieval-truth/", "/api/v1/retrieval-repairs/"]),
            ("corpora", ["/corpora/", "/corpora/upload/", "/api/v1/corpora/"]),
            ("generation", ["/generations/", "/generations/new/", "/api/v1/generations/"]),
        ],
        2,
    ),
)
def test_routes_and_links_are_removed_with_their_feature(
    name: str, removed_routes: list[str], remove_feature: RemoveFeature
) -> None:
    run = evaluate_run()
    client = boss(run.project)
    pages = [reverse("queue-list"), reverse("run", args=[run.pk]), reverse("question-set-list")]
    linked = f'href="{removed_routes[0]}'
    linked_before = any(linked in client.get(path).content.decode() for path in pages)
    remove_feature(name)
    assert linked_before
    assert {path: client.get(path).status_code for path in pages} == dict.fromkeys(pages, 200)
    assert {path: client.get(path).status_code for path in removed_routes} == dict.fromkeys(removed_routes, 404)
    assert not any(linked in client.get(path).content.decode() for path in pages)
    with pytest.raises(NoReverseMatch):
        reverse(ADDRESSES[name])


def test_judge_page_has_no_attack_card_without_attacks(remove_feature: RemoveFeature) -> None:
    run = evaluate_run()
    client, judge = boss(run.project), run.judges.all()[0].judge_version
    page = client.get(reverse("judge", args=[judge.pk])).content.decode()
    remove_feature("attacks")
    assert "attack_judge" in page
    assert "attack_judge" not in client.get(reverse("judge", args=[judge.pk])).content.decode()


def test_reference_system_and_passage_search_need_corpora(remove_feature: RemoveFeature) -> None:
    remove_feature("corpora")
    client = boss(make_project())
    assert "corpus" not in connectors()
    page = client.get(reverse("search"), {"q": "word"}).content.decode()
    assert "No question contains these words." in page
    assert "No passage contains these words." not in page


def test_new_evaluation_offers_no_traces_without_traces(remove_feature: RemoveFeature) -> None:
    client, address = boss(make_answer_set().project), reverse("evaluation-new")
    page = client.get(address).content.decode()
    remove_feature("traces")
    assert 'href="/evaluations/traces/"' in page
    assert "/evaluations/traces/" not in client.get(address).content.decode()
    assert client.get("/evaluations/traces/").status_code == 404


def test_local_embeddings_are_refused_without_their_feature(remove_feature: RemoveFeature) -> None:
    remove_feature("local_embeddings")
    assert (choose_embedding(None), choose_token_model()) == (None, None)
    for choice in (
        lambda: choose_embedding(None, "local"),
        lambda: embedder_of(EmbeddingChoice(model="m", sha256="0")),
        lambda: token_model(TokenChoice(sha256="0", layer=1)),
    ):
        with pytest.raises(DomainError) as error:
            choice()
        assert (error.value.code, error.value.params) == ("feature_off", {"feature": "local_embeddings"})


def test_batches_are_refused_and_their_runs_wait_without_batches(remove_feature: RemoveFeature) -> None:
    if "batches" not in REGISTRY:
        pytest.skip("the feature batches is not installed")
    answers = make_answer_set()
    endpoint = Endpoint.objects.create(name="e", base_url="https://llm.example/v1", batches=True)
    judge = save_judge(answers.project, "remote", endpoint, model="m", language="en")
    profile = profile_row(answers.project, "graphrag")
    run = prepare_run(answers, profile, RunSpec(batch=True), judge=judge)
    remove_feature("batches")
    with pytest.raises(DomainError) as error:
        prepare_run(answers, profile, RunSpec(batch=True), judge=judge)
    assert error.value.params == {"feature": "batches"}
    start(run)
    run = drain(run.pk, seconds=5)
    assert (run.state, run.reason) == (Run.State.PAUSED, "feature_off: batches")
    page = boss(run.project).get(reverse("run", args=[run.pk])).content.decode()
    assert "app back to INSTALLED_APPS" in page
    assert resume(run)
    assert drain(run.pk, seconds=5).state == Run.State.PAUSED
    assert cancel(run)
