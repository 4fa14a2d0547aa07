"""BERTScore by hand-made token vectors, and on a small model against the figures of its authors' package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contrib.local_embeddings.model import local_model
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.embedding.similarity import TokenEmbeddings, TokenMatch, TokenModel, bert_score_f1, match_tokens
from tests.evaluation.judging.embedding.pairs import CLOSE, FIGURES, PAIRS
from tests.evaluation.judging.embedding.tiny import LAYERS, tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("bert") / "tiny")


def question(*references: str) -> QuestionSpec:
    return QuestionSpec(id="q", category="c", text="?", references=references)


def tokens(*rows: tuple[float, float], marks: bool = False) -> TokenEmbeddings:
    counts = [not marks or 0 < position < len(rows) - 1 for position in range(len(rows))]
    return TokenEmbeddings(np.array(rows, dtype=np.float32), counts, False)


def test_each_token_is_matched_with_the_nearest_token_of_the_other_text() -> None:
    answer, expected = tokens((1, 0), (0.6, 0.8)), tokens((1, 0), (0, 1), (0.8, 0.6))
    pair = match_tokens(answer, expected)
    # precision: (1 + max(.6, .8, .48 + .48)) / 2; recall: (1 + .8 + .96) / 3
    assert pair.precision == pytest.approx((1 + 0.96) / 2)
    assert pair.recall == pytest.approx((1 + 0.8 + 0.96) / 3)
    assert pair.f1 == pytest.approx(2 * 0.98 * 0.92 / (0.98 + 0.92))


def test_marks_around_a_text_can_match_but_do_not_count() -> None:
    answer = tokens((1, 0), (0, 1), (1, 0), marks=True)
    expected = tokens((0, 1), (1, 0), (0, 1), marks=True)
    # the one token that counts, (0, 1), finds a mark of the other text
    assert match_tokens(answer, expected).precision == pytest.approx(1.0)


def test_f1_is_0_without_matches() -> None:
    assert TokenMatch(0.0, 0.0).f1 == 0.0


@pytest.mark.parametrize("layer", range(1, LAYERS + 1))
def test_figures_equal_those_of_the_authors_package(folder: Path, layer: int) -> None:
    model = local_model(str(folder))
    for (answer, expected), figures in zip(PAIRS, FIGURES[layer], strict=True):
        pair = match_tokens(*model.tokens([answer, expected], layer))
        assert (pair.precision, pair.recall, pair.f1) == pytest.approx(figures, abs=CLOSE)


def test_best_of_several_expected_answers_counts(folder: Path) -> None:
    model = local_model(str(folder))
    answer, reference = PAIRS[0]
    result = bert_score_f1(question(reference, answer), AnswerSpec(answer), TokenModel(model, 2))
    assert result.value == pytest.approx(100.0, abs=1e-3)
    assert result.detail["reference"] == 1
    assert result.detail["tokens"] == {"model": "tiny", "sha256": model.digest, "layer": 2}
    single_result = bert_score_f1(question(reference), AnswerSpec(answer), TokenModel(model, 2))
    precision, recall, f1 = FIGURES[2][0]
    assert single_result.value == pytest.approx(100 * f1, abs=1e-3)
    assert (single_result.detail["precision"], single_result.detail["recall"]) == pytest.approx(
        (precision, recall), abs=CLOSE
    )
    assert "rescaled" not in single_result.detail


def test_baseline_adds_rescaled_values_and_keeps_the_value(folder: Path) -> None:
    answer, reference = PAIRS[0]
    result = bert_score_f1(question(reference), AnswerSpec(answer), TokenModel(local_model(str(folder)), 2, 0.9))
    assert result.value == pytest.approx(98.4949, abs=1e-3)
    # (0.984949 - 0.9) / (1 - 0.9)
    assert result.detail["rescaled"]["f1"] == pytest.approx(0.84949, abs=1e-4)


def test_korean_is_not_applicable_without_korean_vocabulary(folder: Path) -> None:
    tiny = TokenModel(local_model(str(folder)), 1)
    korean_answer, expected = "원금은 보장됩니다", "원금은 보장되지 않습니다"
    for answer, reference in ((korean_answer, expected), ("the fund", expected), (korean_answer, "the fund")):
        result = bert_score_f1(question(reference), AnswerSpec(answer), tiny)
        assert (result.status, result.value, result.reason) == ("not_applicable", None, "language")
        assert result.detail["tokens"]["model"] == "tiny"


def test_without_an_expected_answer_a_model_or_an_answer(folder: Path) -> None:
    tiny = TokenModel(local_model(str(folder)), 1)
    assert bert_score_f1(question(), AnswerSpec("the fund"), tiny) == Result.not_applicable("no_reference")
    assert bert_score_f1(question("the fund"), AnswerSpec("x"), None) == Result.not_applicable("no_token_model")
    assert bert_score_f1(question("the fund"), AnswerSpec(" "), tiny).value == 0.0


def test_truncated_text_is_marked(folder: Path) -> None:
    long_text = " ".join(["the fund tracks an index"] * 20)
    result = bert_score_f1(question("the fund"), AnswerSpec(long_text), TokenModel(local_model(str(folder)), 1))
    assert result.detail["truncated"] is True
