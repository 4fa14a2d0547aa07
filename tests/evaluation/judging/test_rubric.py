from __future__ import annotations

import json
from itertools import product

import pytest

from evaluation.core.errors import InvalidFile, UnknownName
from evaluation.judging.catalogue import families, family_named, judge_metric, judge_metrics
from evaluation.judging.formulas import scores_request
from evaluation.judging.rubric import SHIPPED_DIRECTORY, Rubric, parse_rubric, shipped_rubric, shipped_rubrics
from tests.evaluation.judging.rubric_versions import VERSIONS
from tests.evaluation.judging.samples import EN, KO


def yaml_of(rubric_file: str) -> str:
    return (SHIPPED_DIRECTORY / rubric_file).read_text("utf-8")


def test_each_family_ships_a_rubric_in_both_languages_with_exactly_its_metrics() -> None:
    shipped, wanted = {}, {}
    for family, language in product(families(), ("ko", "en")):
        rubric, metrics = shipped_rubric(family, language), family_named(family).metrics
        shipped[family, language] = [(name, rubric.metric(name).read_scale()) for name in rubric.names]
        wanted[family, language] = [(spec.name, spec.scale) for spec in metrics]
    assert shipped == wanted


def test_level_texts_are_short_enough_for_the_review_screen_and_differ() -> None:
    wrong = []
    for rubric in shipped_rubrics():
        for metric in rubric.metrics:
            texts = [anchor.text for anchor in (*metric.levels, *metric.labels)]
            unfit = [text for text in texts if len(text) > 70 or texts.count(text) > 1]
            if unfit or not texts:
                wrong.append((rubric.family, rubric.language, metric.name, unfit))
    assert wrong == []


def test_the_texts_of_a_rubric_are_in_its_own_language() -> None:
    def hangul(text: str) -> bool:
        return any("가" <= character <= "힣" for character in text)

    assert all(hangul(level.text) for metric in KO.metrics for level in metric.levels)
    assert not hangul(EN.text + EN.closing + EN.repair)


def test_a_changed_word_changes_the_content_hash_and_a_copy_does_not() -> None:
    text = yaml_of("answer_quality.en.yaml")
    assert parse_rubric(text).content_hash == EN.content_hash
    assert parse_rubric(text.replace("nothing is wrong", "nothing at all is wrong")).content_hash != EN.content_hash


def test_a_rubric_survives_storage_as_json() -> None:
    stored = json.loads(json.dumps(KO.model_dump(mode="json")))
    assert Rubric.model_validate(stored) == KO


def test_a_rubric_with_a_level_left_out_is_refused_and_the_metric_is_named() -> None:
    text = yaml_of("answer_quality.en.yaml").replace(
        '      - {value: 3, text: "The support of some claims is unclear"}\n', ""
    )
    with pytest.raises(InvalidFile) as refused:
        parse_rubric(text, file="mine.yaml")
    assert [(p.code, p.file, p.field) for p in refused.value.problems] == [("rubric_invalid", "mine.yaml", "metrics.1")]
    assert "faithfulness" in refused.value.problems[0].params["error"]


@pytest.mark.parametrize("text", ["a: [", "- not a rubric", "", "family: x", "!!python/object/apply:os.system [ls]"])
def test_what_is_no_rubric_is_refused_as_a_problem(text: str) -> None:
    with pytest.raises(InvalidFile):
        parse_rubric(text)


@pytest.mark.parametrize("told", ['"3"', "true"])
def test_a_level_is_a_number_as_it_is_written(told: str) -> None:
    text = yaml_of("answer_quality.en.yaml").replace(
        '{value: 3, text: "The support of some', f'{{value: {told}, text: "The support of some'
    )
    with pytest.raises(InvalidFile) as refused:
        parse_rubric(text, file="mine.yaml")
    assert {one.field for one in refused.value.problems} == {
        "metrics.1.levels.2.value.int",
        "metrics.1.levels.2.value.float",
    }


def test_where_yaml_breaks_off_is_told() -> None:
    with pytest.raises(InvalidFile) as refused:
        parse_rubric("a: [", file="mine.yaml")
    (problem,) = refused.value.problems
    assert (problem.code, problem.file, problem.line) == ("rubric_not_yaml", "mine.yaml", 2)
    assert problem.params["error"] == "while parsing a flow node, did not find expected node content"


def test_the_reply_schema_asks_for_the_reason_before_the_score_of_the_wanted_metrics_only() -> None:
    schema = scores_request(EN, ["faithfulness"], {}).schema
    verdict = schema["properties"]["faithfulness"]
    assert schema["required"] == ["faithfulness"]
    assert list(verdict["properties"]) == ["reason", "score"]
    assert verdict["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    assert schema["additionalProperties"] is verdict["additionalProperties"] is False


def test_the_system_text_anchors_every_level_of_the_wanted_metrics_and_no_other() -> None:
    text = EN.system_text(["correctness"])
    assert all(f"{level.value}: {level.text}" in text for level in EN.metric("correctness").levels)
    assert EN.metric("faithfulness").levels[0].text not in text


def test_the_catalogue_knows_the_family_of_a_metric_and_names_near_ones() -> None:
    assert {"correctness", "faithfulness", "completeness"} <= {spec.name for spec in judge_metrics()}
    assert judge_metric("faithfulness").rubric_family == "answer_quality"
    with pytest.raises(UnknownName, match="did you mean correctness"):
        judge_metric("corectness")


def test_a_shipped_text_changes_with_its_version_alone() -> None:
    """Two installations that say answer_quality@1 mean the same text."""
    shipped = [parse_rubric(path.read_text("utf-8")) for path in sorted(SHIPPED_DIRECTORY.glob("*.yaml"))]
    changed = [
        f"{one.family}.{one.language} version {one.version}: {one.content_hash}"
        for one in shipped
        if VERSIONS.get((one.family, one.language, one.version)) != one.content_hash
    ]
    assert changed == [], (
        "give a changed text the next version and add that line to rubric_versions.py (CONTRIBUTING.md)"
    )
    newest = {(family, language): version for family, language, version in sorted(VERSIONS)}
    assert {(one.family, one.language): one.version for one in shipped} == newest
