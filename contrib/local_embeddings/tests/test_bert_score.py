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
    counts = [not marks or 0 < place < len(rows) - 1 for place in range(len(rows))]
    return TokenEmbeddings(np.array(rows, dtype=np.float32), counts, False)


def test_each_token_is_matched_with_the_nearest_one_of_the_other_text() -> None:
    said, expected = tokens((1, 0), (0.6, 0.8)), tokens((1, 0), (0, 1), (0.8, 0.6))
    pair = match_tokens(said, expected)
    # precision: (1 + max(.6, .8, .48 + .48)) / 2; recall: (1 + .8 + .96) / 3
    assert pair.precision == pytest.approx((1 + 0.96) / 2)
    assert pair.recall == pytest.approx((1 + 0.8 + 0.96) / 3)
    assert pair.f1 == pytest.approx(2 * 0.98 * 0.92 / (0.98 + 0.92))


def test_the_marks_around_a_text_may_be_found_but_do_not_count() -> None:
    said = tokens((1, 0), (0, 1), (1, 0), marks=True)
    expected = tokens((0, 1), (1, 0), (0, 1), marks=True)
    # the one token that counts, (0, 1), finds a mark of the other text
    assert match_tokens(said, expected).precision == pytest.approx(1.0)


def test_where_nothing_matches_f1_is_0() -> None:
    assert TokenMatch(0.0, 0.0).f1 == 0.0


@pytest.mark.parametrize("layer", range(1, LAYERS + 1))
def test_the_figures_are_those_of_the_authors_package_on_the_same_model(folder: Path, layer: int) -> None:
    model = local_model(str(folder))
    for (said, expected), figures in zip(PAIRS, FIGURES[layer], strict=True):
        pair = match_tokens(*model.tokens([said, expected], layer))
        assert (pair.precision, pair.recall, pair.f1) == pytest.approx(figures, abs=CLOSE)


def test_the_best_of_several_expected_answers_counts_and_everything_stands_on_the_score(folder: Path) -> None:
    model = local_model(str(folder))
    said, other = PAIRS[0]
    result = bert_score_f1(question(other, said), AnswerSpec(said), TokenModel(model, 2))
    assert result.value == pytest.approx(100.0, abs=1e-3)
    assert result.detail["reference"] == 1
    assert result.detail["tokens"] == {"model": "tiny", "sha256": model.digest, "layer": 2}
    alone = bert_score_f1(question(other), AnswerSpec(said), TokenModel(model, 2))
    precision, recall, f1 = FIGURES[2][0]
    assert alone.value == pytest.approx(100 * f1, abs=1e-3)
    assert (alone.detail["precision"], alone.detail["recall"]) == pytest.approx((precision, recall), abs=CLOSE)
    assert "rescaled" not in alone.detail


def test_with_a_baseline_the_rescaled_values_are_kept_and_the_value_stays(folder: Path) -> None:
    said, other = PAIRS[0]
    result = bert_score_f1(question(other), AnswerSpec(said), TokenModel(local_model(str(folder)), 2, 0.9))
    assert result.value == pytest.approx(98.4949, abs=1e-3)
    # (0.984949 - 0.9) / (1 - 0.9)
    assert result.detail["rescaled"]["f1"] == pytest.approx(0.84949, abs=1e-4)


def test_korean_is_not_applicable_to_a_model_whose_vocabulary_holds_none(folder: Path) -> None:
    tiny = TokenModel(local_model(str(folder)), 1)
    said, expected = "원금은 보장됩니다", "원금은 보장되지 않습니다"
    for answer, reference in ((said, expected), ("the fund", expected), (said, "the fund")):
        result = bert_score_f1(question(reference), AnswerSpec(answer), tiny)
        assert (result.status, result.value, result.reason) == ("not_applicable", None, "language")
        assert result.detail["tokens"]["model"] == "tiny"


def test_without_an_expected_answer_a_model_or_an_answer(folder: Path) -> None:
    tiny = TokenModel(local_model(str(folder)), 1)
    assert bert_score_f1(question(), AnswerSpec("the fund"), tiny) == Result.not_applicable("no_reference")
    assert bert_score_f1(question("the fund"), AnswerSpec("x"), None) == Result.not_applicable("no_token_model")
    assert bert_score_f1(question("the fund"), AnswerSpec(" "), tiny).value == 0.0


def test_a_text_longer_than_the_model_reads_says_that_it_was_cut(folder: Path) -> None:
    long = " ".join(["the fund tracks an index"] * 20)
    result = bert_score_f1(question("the fund"), AnswerSpec(long), TokenModel(local_model(str(folder)), 1))
    assert result.detail["truncated"] is True
