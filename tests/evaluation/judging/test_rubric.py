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


def rubric_yaml(rubric_file: str) -> str:
    return (SHIPPED_DIRECTORY / rubric_file).read_text("utf-8")


def test_each_family_ships_a_rubric_in_both_languages_with_exactly_its_metrics() -> None:
    shipped, expected = {}, {}
    for family, language in product(families(), ("ko", "en")):
        rubric, metrics = shipped_rubric(family, language), family_named(family).metrics
        shipped[family, language] = [(name, rubric.metric(name).read_scale()) for name in rubric.names]
        expected[family, language] = [(spec.name, spec.scale) for spec in metrics]
    assert shipped == expected


def test_level_texts_are_short_enough_for_the_review_screen_and_differ() -> None:
    problems = []
    for rubric in shipped_rubrics():
        for metric in rubric.metrics:
            texts = [anchor.text for anchor in (*metric.levels, *metric.labels)]
            unfit = [text for text in texts if len(text) > 70 or texts.count(text) > 1]
            if unfit or not texts:
                problems.append((rubric.family, rubric.language, metric.name, unfit))
    assert problems == []


def test_the_texts_of_a_rubric_are_in_its_own_language() -> None:
    def hangul(text: str) -> bool:
        return any("가" <= character <= "힣" for character in text)

    assert all(hangul(level.text) for metric in KO.metrics for level in metric.levels)
    assert not hangul(EN.text + EN.closing + EN.repair)


def test_content_hash_changes_with_the_text() -> None:
    text = rubric_yaml("answer_quality.en.yaml")
    assert parse_rubric(text).content_hash == EN.content_hash
    assert parse_rubric(text.replace("nothing is wrong", "nothing at all is wrong")).content_hash != EN.content_hash


def test_a_rubric_survives_storage_as_json() -> None:
    stored = json.loads(json.dumps(KO.model_dump(mode="json")))
    assert Rubric.model_validate(stored) == KO


def test_rubric_with_a_missing_level_is_refused_naming_the_metric() -> None:
    text = rubric_yaml("answer_quality.en.yaml").replace(
        '      - {value: 3, text: "The support of some claims is unclear"}\n', ""
    )
    with pytest.raises(InvalidFile) as error:
        parse_rubric(text, file="mine.yaml")
    assert [(p.code, p.file, p.field) for p in error.value.problems] == [("rubric_invalid", "mine.yaml", "metrics.1")]
    assert "faithfulness" in error.value.problems[0].params["error"]


@pytest.mark.parametrize("text", ["a: [", "- not a rubric", "", "family: x", "!!python/object/apply:os.system [ls]"])
def test_invalid_rubric_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidFile):
        parse_rubric(text)


@pytest.mark.parametrize("yaml_value", ['"3"', "true"])
def test_level_must_be_a_yaml_number(yaml_value: str) -> None:
    text = rubric_yaml("answer_quality.en.yaml").replace(
        '{value: 3, text: "The support of some', f'{{value: {yaml_value}, text: "The support of some'
    )
    with pytest.raises(InvalidFile) as error:
        parse_rubric(text, file="mine.yaml")
    assert {problem.field for problem in error.value.problems} == {
        "metrics.1.levels.2.value.int",
        "metrics.1.levels.2.value.float",
    }


def test_yaml_error_names_its_line() -> None:
    with pytest.raises(InvalidFile) as error:
        parse_rubric("a: [", file="mine.yaml")
    (problem,) = error.value.problems
    assert (problem.code, problem.file, problem.line) == ("rubric_not_yaml", "mine.yaml", 2)
    assert problem.params["error"] == "while parsing a flow node, did not find expected node content"


def test_reply_schema_has_reason_then_score_for_requested_metrics() -> None:
    schema = scores_request(EN, ["faithfulness"], {}).schema
    verdict = schema["properties"]["faithfulness"]
    assert schema["required"] == ["faithfulness"]
    assert list(verdict["properties"]) == ["reason", "score"]
    assert verdict["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    assert schema["additionalProperties"] is verdict["additionalProperties"] is False


def test_system_text_contains_only_levels_of_requested_metrics() -> None:
    text = EN.system_text(["correctness"])
    assert all(f"{level.value}: {level.text}" in text for level in EN.metric("correctness").levels)
    assert EN.metric("faithfulness").levels[0].text not in text


def test_catalogue_finds_the_family_and_suggests_similar_names() -> None:
    assert {"correctness", "faithfulness", "completeness"} <= {spec.name for spec in judge_metrics()}
    assert judge_metric("faithfulness").rubric_family == "answer_quality"
    with pytest.raises(UnknownName, match="did you mean correctness"):
        judge_metric("corectness")


def test_shipped_rubric_changes_only_with_its_version() -> None:
    """The version identifies the text on all installations."""
    shipped = [parse_rubric(path.read_text("utf-8")) for path in sorted(SHIPPED_DIRECTORY.glob("*.yaml"))]
    changed = [
        f"{rubric.family}.{rubric.language} version {rubric.version}: {rubric.content_hash}"
        for rubric in shipped
        if VERSIONS.get((rubric.family, rubric.language, rubric.version)) != rubric.content_hash
    ]
    assert changed == [], (
        "give a changed text the next version and add that line to rubric_versions.py (CONTRIBUTING.md)"
    )
    newest = {(family, language): version for family, language, version in sorted(VERSIONS)}
    assert {(rubric.family, rubric.language): rubric.version for rubric in shipped} == newest
