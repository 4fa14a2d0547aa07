"""Choice of embeddings for a run: named, then the judge's own, the first endpoint's, and the local model."""

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
def local_model(tmp_path: Path, settings: Any) -> Path:
    folder = tiny_model(tmp_path / "tiny")
    settings.CONCORD_LOCAL_MODEL = str(folder)
    return folder


def test_no_embedding_is_configured_by_default() -> None:
    assert choose_embedding(None) is None
    assert choose_token_model() is None


def test_embedding_prefers_judge_then_first_endpoint_then_local_model(local_model: Path) -> None:
    judge_endpoint = endpoint("z", "own")
    endpoint_without_model = endpoint("a")
    judge, other_judge = (
        make_judge(make_project(), endpoint=own_endpoint) for own_endpoint in (judge_endpoint, endpoint_without_model)
    )
    endpoint("b", "shared")
    names = [getattr(choose_embedding(candidate), "model", None) for candidate in (judge, other_judge, None)]
    assert names == ["own", "shared", "shared"]
    Endpoint.objects.update(embedding_model="")
    embedding = choose_embedding(None)
    assert embedding is not None
    assert (embedding.endpoint, embedding.model, len(embedding.sha256)) == (None, "tiny", 64)


def test_named_embedding_is_used(local_model: Path) -> None:
    first, second = endpoint("a", "one"), endpoint("b", "two")
    by_name = choose_embedding(make_judge(make_project(), endpoint=first), "b")
    assert by_name is not None
    assert (by_name.endpoint, by_name.model) == (second.pk, "two")
    assert choose_embedding(None, "none") is None
    local_embedding = choose_embedding(None, "local")
    assert local_embedding is not None
    assert local_embedding.endpoint is None


def test_unknown_name_and_missing_local_model_are_refused() -> None:
    endpoint("a", "one")
    endpoint("chat")
    for name in ("b", "chat"):
        with pytest.raises(UnknownName) as error:
            choose_embedding(None, name)
        assert error.value.known == ("a", "local", "none")
    with pytest.raises(DomainError) as missing_error:
        choose_embedding(None, "local")
    assert missing_error.value.code == "no_local_model"


def test_bert_score_uses_the_last_or_the_configured_layer(local_model: Path, settings: Any) -> None:
    choice = choose_token_model()
    assert choice is not None
    assert (choice.layer, choice.baseline) == (LAYERS, None)
    settings.CONCORD_BERT_SCORE_LAYER, settings.CONCORD_BERT_SCORE_BASELINE = 2, "0.83"
    choice = choose_token_model()
    assert choice is not None
    assert (choice.layer, choice.baseline) == (2, 0.83)
    assert token_model(choice).provenance["layer"] == 2
    settings.CONCORD_BERT_SCORE_LAYER = LAYERS + 1
    with pytest.raises(DomainError) as error:
        choose_token_model()
    assert error.value.code == "no_such_layer"


def test_replaced_model_files_are_refused(local_model: Path) -> None:
    choice = choose_token_model()
    assert choice is not None
    tiny_model(local_model, seed=12)
    with pytest.raises(DomainError) as error:
        token_model(choice)
    assert error.value.code == "embedding_changed"
