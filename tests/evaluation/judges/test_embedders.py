"""Which embeddings a run takes: the named ones, else the judge's own, the first endpoint's, the local model's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.core.errors import DomainError, UnknownName
from evaluation.judges.embeddings import choose_embedding, choose_token_model, token_model
from evaluation.models import Endpoint
from tests.evaluation.judging.embedding.tiny import LAYERS, tiny_model
from tests.factories import make_judge, make_project

pytestmark = pytest.mark.django_db


def endpoint(name: str, model: str = "") -> Endpoint:
    return Endpoint.objects.create(name=name, base_url="https://llm.example/v1", embedding_model=model)


@pytest.fixture
def local(tmp_path: Path, settings: Any) -> Path:
    folder = tiny_model(tmp_path / "tiny")
    settings.CONCORD_LOCAL_MODEL = str(folder)
    return folder


def test_nothing_is_configured_by_default() -> None:
    assert choose_embedding(None) is None
    assert choose_token_model() is None


def test_the_judges_own_endpoint_comes_first_then_the_first_that_embeds_then_the_local_model(local: Path) -> None:
    judges = endpoint("z", "own")
    silent = endpoint("a")
    judge, other = (make_judge(make_project(), endpoint=where) for where in (judges, silent))
    endpoint("b", "shared")
    names = [getattr(choose_embedding(asked), "model", None) for asked in (judge, other, None)]
    assert names == ["own", "shared", "shared"]
    Endpoint.objects.update(embedding_model="")
    chosen = choose_embedding(None)
    assert chosen is not None
    assert (chosen.endpoint, chosen.model, len(chosen.sha256)) == (None, "tiny", 64)


def test_what_is_named_is_taken(local: Path) -> None:
    first, second = endpoint("a", "one"), endpoint("b", "two")
    named = choose_embedding(make_judge(make_project(), endpoint=first), "b")
    assert named is not None
    assert (named.endpoint, named.model) == (second.pk, "two")
    assert choose_embedding(None, "none") is None
    here = choose_embedding(None, "local")
    assert here is not None
    assert here.endpoint is None


def test_an_unknown_name_and_a_missing_local_model_are_refused_and_not_replaced() -> None:
    endpoint("a", "one")
    endpoint("chat")
    for name in ("b", "chat"):
        with pytest.raises(UnknownName) as unknown:
            choose_embedding(None, name)
        assert unknown.value.known == ("a", "local", "none")
    with pytest.raises(DomainError) as refused:
        choose_embedding(None, "local")
    assert refused.value.code == "no_local_model"


def test_bert_score_takes_the_last_layer_or_the_one_that_is_set(local: Path, settings: Any) -> None:
    chosen = choose_token_model()
    assert chosen is not None
    assert (chosen.layer, chosen.baseline) == (LAYERS, None)
    settings.CONCORD_BERT_SCORE_LAYER, settings.CONCORD_BERT_SCORE_BASELINE = 2, "0.83"
    chosen = choose_token_model()
    assert chosen is not None
    assert (chosen.layer, chosen.baseline) == (2, 0.83)
    assert token_model(chosen).provenance["layer"] == 2
    settings.CONCORD_BERT_SCORE_LAYER = LAYERS + 1
    with pytest.raises(DomainError) as refused:
        choose_token_model()
    assert refused.value.code == "no_such_layer"


def test_other_files_in_the_place_of_a_runs_model_are_refused(local: Path) -> None:
    chosen = choose_token_model()
    assert chosen is not None
    tiny_model(local, seed=12)
    with pytest.raises(DomainError) as refused:
        token_model(chosen)
    assert refused.value.code == "embedding_changed"
