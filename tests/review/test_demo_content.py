"""Demo files: they agree with each other and with the fields of their questions."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import review.management.demo
from evaluation.core.metric_specs import RuleSettings
from evaluation.formats.reading import read_answers, read_questions
from evaluation.metrics.phrases import negative_detection

pytestmark = pytest.mark.parametrize("language", ["en", "ko"])
DEMO = Path(review.management.demo.__file__).parent
SYSTEMS = {"demo-graph": "answers_graph.jsonl", "demo-vector": "answers_vector.jsonl"}
CATEGORIES = ["single_hop", "multi_hop_2", "multi_hop_3", "aggregation", "inference", "negative"]
FAULTS = {
    "hallucination",
    "fake_phone_number",
    "wrong_article",
    "unhelpful_refusal",
    "wrong_number",
    "missed_second_hop",
    "premise_accepted",
    "incomplete_list",
}
PHONE = re.compile(r"0\d{1,2}-\d{3,4}-\d{4}")
METRICS = {"correctness", "faithfulness", "completeness"}

Record = dict[str, Any]


@cache
def records(file: Path) -> list[Record]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def demo_records(language: str, name: str) -> list[Record]:
    return records(DEMO / language / name)


@cache
def chunks(language: str) -> dict[str, Record]:
    return {chunk["chunk_id"]: chunk for chunk in demo_records(language, "corpus.jsonl")}


@cache
def categories(language: str) -> dict[str, Record]:
    document: Record = yaml.safe_load((DEMO / language / "questions.yaml").read_text(encoding="utf-8"))
    return document["categories"]


@cache
def questions(language: str) -> dict[str, Record]:
    return {q["id"]: q | {"category": name} for name, body in categories(language).items() for q in body["questions"]}


@cache
def answers(language: str, system: str) -> dict[str, Record]:
    return {answer["question_id"]: answer for answer in demo_records(language, SYSTEMS[system])}


def is_korean(text: str) -> bool:
    return any("가" <= letter <= "힣" for letter in text)


def keyword_alternatives(question: Record) -> list[list[str]]:
    return [[k] if isinstance(k, str) else k for k in question.get("expected_keywords", [])]


def holds_every_keyword(question: Record, text: str) -> bool:
    plain_text = text.replace("*", "").casefold()
    return all(any(form.casefold() in plain_text for form in forms) for forms in keyword_alternatives(question))


def test_importer_accepts_the_questions_and_all_their_fields(language: str) -> None:
    parsed = read_questions((DEMO / language / "questions.yaml").read_bytes(), "questions.yaml")
    assert [q.id for q in parsed.questions] == list(questions(language))
    assert parsed.metadata_keys == ()
    assert parsed.set_metadata == {"version": 1, "name": f"demo-{language}", "language": language}
    by_id = {q.id: q for q in parsed.questions}
    assert by_id["two-hop-08"].difficulty == "hard"  # its own, not its section's
    assert len(by_id["single-09"].references) == 2
    assert [len(alternatives) for alternatives in by_id["single-04"].keywords] == [{"en": 2, "ko": 3}[language], 1]


@pytest.mark.parametrize("system", SYSTEMS)
def test_importer_accepts_the_answers_and_stores_the_fault_as_metadata(language: str, system: str) -> None:
    parsed = read_answers((DEMO / language / SYSTEMS[system]).read_bytes(), SYSTEMS[system])
    assert [a.question_id for a in parsed.answers] == list(questions(language))
    assert parsed.metadata_keys == ("demo_fault",)
    for row in parsed.answers:
        assert row.answered != bool(row.error)
        assert {c.chunk_id for c in row.answer.contexts or ()} <= set(chunks(language))


def test_ids_are_unique_in_every_file(language: str) -> None:
    for name in ("corpus.jsonl", *SYSTEMS.values()):
        key = "chunk_id" if name == "corpus.jsonl" else "question_id"
        assert max(Counter(row[key] for row in demo_records(language, name)).values()) == 1, name
    assert len(questions(language)) == sum(len(body["questions"]) for body in categories(language).values())


def test_the_six_categories_are_filled(language: str) -> None:
    assert list(categories(language)) == CATEGORIES
    for name, body in categories(language).items():
        assert body["difficulty"] in {"easy", "medium", "hard"}
        assert len(body["questions"]) >= 5, name


def test_texts_are_in_the_language_of_their_folder(language: str) -> None:
    for question in questions(language).values():
        assert is_korean(question["question"]) == (language == "ko"), question["id"]
    for chunk in chunks(language).values():
        assert chunk["language"] == language
        assert is_korean(chunk["text"]) == (language == "ko"), chunk["chunk_id"]
    for system in SYSTEMS:
        for answer in answers(language, system).values():
            if "error" not in answer:
                assert is_korean(answer["answer"]) == (language == "ko"), answer["question_id"]
    for rating in demo_records(language, "ratings.jsonl"):
        if rating["comment"]:
            assert is_korean(rating["comment"]) == (language == "ko"), rating


def test_both_languages_have_the_same_content(language: str) -> None:
    other = "en" if language == "ko" else "ko"
    facts = ("category", "group", "hops", "check", "ground_truth_chunk_ids", "difficulty")
    for question, translated in zip(questions(language).values(), questions(other).values(), strict=True):
        assert [question.get(fact) for fact in facts] == [translated.get(fact) for fact in facts]
    for system in SYSTEMS:
        for answer, translated in zip(answers(language, system).values(), answers(other, system).values(), strict=True):
            assert answer.get("demo_fault") == translated.get("demo_fault")
    assert [r["value"] for r in demo_records(language, "ratings.jsonl")] == [
        r["value"] for r in demo_records(other, "ratings.jsonl")
    ]


def test_ground_truth_names_existing_passages(language: str) -> None:
    for question in questions(language).values():
        truth = question.get("ground_truth_chunk_ids", [])
        assert set(truth) <= set(chunks(language)), question["id"]
        assert truth or question["category"] == "negative", question["id"]


def test_questions_carry_the_field_of_their_category(language: str) -> None:
    needed = {"multi_hop_2": "hops", "multi_hop_3": "hops", "aggregation": "aggregation_type"}
    needed |= {"inference": "inference_type", "negative": "check"}
    for question in questions(language).values():
        field = needed.get(question["category"], "expected_keywords")
        assert question.get(field), question["id"]
        assert question["expected_answer"]


def test_every_built_in_check_occurs_and_a_wrong_premise_has_its_phrases(language: str) -> None:
    checks = {q["check"]: q for q in questions(language).values() if q["category"] == "negative"}
    assert len(checks) == 4
    for question in questions(language).values():
        if question.get("check") == "should_correct_premise":
            assert question["check_phrases"]["any_of"]


def test_an_expected_answer_holds_its_own_keywords(language: str) -> None:
    for question in questions(language).values():
        expected = question["expected_answer"]
        texts = [expected] if isinstance(expected, str) else expected
        assert any(holds_every_keyword(question, text) for text in texts), question["id"]


def test_groups_join_at_least_two_questions(language: str) -> None:
    sizes = Counter(q["group"] for q in questions(language).values() if "group" in q)
    assert sizes
    assert min(sizes.values()) >= 2


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_question_has_one_answer(language: str, system: str) -> None:
    assert list(answers(language, system)) == list(questions(language))


@pytest.mark.parametrize("system", SYSTEMS)
def test_contexts_quote_the_corpus_in_falling_order_of_score(language: str, system: str) -> None:
    for answer in answers(language, system).values():
        contexts = answer.get("contexts", [])
        assert all(c["text"] == chunks(language)[c["chunk_id"]]["text"] for c in contexts), answer["question_id"]
        scores = [c["score"] for c in contexts]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score < 1 for score in scores)
        assert len({c["chunk_id"] for c in contexts}) == len(contexts)


@pytest.mark.parametrize("system", SYSTEMS)
def test_latencies_are_realistic_and_missing_only_where_the_system_failed(language: str, system: str) -> None:
    for answer in answers(language, system).values():
        assert ("latency_seconds" in answer) != ("error" in answer)
        assert 0.8 <= answer.get("latency_seconds", 1.0) <= 6


def test_every_kind_of_fault_occurs_and_the_worse_system_has_far_more(language: str) -> None:
    graph, vector = (
        Counter(a["demo_fault"] for a in answers(language, s).values() if "demo_fault" in a) for s in SYSTEMS
    )
    assert set(graph) | set(vector) == FAULTS
    assert 0 < 2 * graph.total() < vector.total()


def test_demo_has_a_failed_answer_and_an_empty_retrieval(language: str) -> None:
    vector = answers(language, "demo-vector").values()
    assert [a["question_id"] for a in vector if a.get("error")] == ["two-hop-05"]
    assert [a["question_id"] for a in vector if a.get("contexts") == []] == ["three-hop-06"]
    assert all(a["contexts"] for a in answers(language, "demo-graph").values())


def test_faultless_answers_of_the_better_system_hold_nearly_all_their_keywords(language: str) -> None:
    faultless = [a for a in answers(language, "demo-graph").values() if "demo_fault" not in a]
    missing = {
        answer["question_id"]
        for answer in faultless
        if not holds_every_keyword(questions(language)[answer["question_id"]], answer["answer"])
    }
    # Written to be incomplete without being wrong, so that completeness has something between 1 and 5.
    assert missing == {"two-hop-03", "three-hop-02", "three-hop-06"}


@pytest.mark.slow
def test_better_system_passes_five_negative_checks_and_the_worse_one_two(language: str) -> None:
    specs = {
        q.id: q for q in read_questions((DEMO / language / "questions.yaml").read_bytes(), "questions.yaml").questions
    }
    passed_ids = {}
    for system, name in SYSTEMS.items():
        rows = [
            r for r in read_answers((DEMO / language / name).read_bytes(), name).answers if specs[r.question_id].check
        ]
        passed_ids[system] = [
            r.question_id for r in rows if negative_detection(specs[r.question_id], r.answer, RuleSettings()).value == 1
        ]
    # The answer to neg-01 refuses, and then guesses at a rule.
    assert passed_ids["demo-graph"] == ["neg-02", "neg-03", "neg-04", "neg-05", "neg-06"]
    assert passed_ids["demo-vector"] == ["neg-03", "neg-06"]


def test_phone_number_is_in_the_corpus_unless_it_is_a_planted_fault(language: str) -> None:
    corpus_text = " ".join(chunk["text"] for chunk in chunks(language).values())
    for system in SYSTEMS:
        for answer in answers(language, system).values():
            numbers = [
                w for w in answer.get("answer", "").replace("(", " ").replace(")", " ").split() if w.count("-") == 2
            ]
            invented = [number for number in numbers if number[0] == "0" and number not in corpus_text]
            assert bool(invented) == (answer.get("demo_fault") == "fake_phone_number"), answer["question_id"]


def test_ratings_name_existing_answers_and_cover_all_metrics_once(language: str) -> None:
    metrics_by_rating = defaultdict(list)
    for rating in demo_records(language, "ratings.jsonl"):
        assert not answers(language, rating["system"])[rating["question_id"]].get("error")
        assert rating["value"] in {1, 2, 3, 4, 5}
        assert rating["reviewer"] in {"reviewer1", "reviewer2"}
        metrics_by_rating[rating["system"], rating["question_id"], rating["reviewer"]].append(rating["metric"])
    assert all(sorted(metrics) == sorted(METRICS) for metrics in metrics_by_rating.values())


def test_every_answer_of_the_better_system_is_rated_and_many_by_both_reviewers(language: str) -> None:
    raters = defaultdict(set)
    for rating in demo_records(language, "ratings.jsonl"):
        if rating["system"] == "demo-graph":
            raters[rating["question_id"]].add(rating["reviewer"])
    assert set(raters) == set(questions(language))
    assert sum(len(names) == 2 for names in raters.values()) >= 10


def test_reviewers_give_faulty_answers_low_ratings(language: str) -> None:
    lowest: dict[tuple[str, str], int] = {}
    for rating in demo_records(language, "ratings.jsonl"):
        key = (rating["system"], rating["question_id"])
        lowest[key] = min(lowest.get(key, 5), rating["value"])
    for (system, question_id), value in lowest.items():
        if answers(language, system)[question_id].get("demo_fault"):
            assert value <= 3, question_id
        else:
            assert value >= 3, question_id


def test_an_invention_is_rated_unfaithful(language: str) -> None:
    for rating in demo_records(language, "ratings.jsonl"):
        fault = answers(language, rating["system"])[rating["question_id"]].get("demo_fault")
        if fault in {"hallucination", "fake_phone_number"} and rating["metric"] == "faithfulness":
            assert rating["value"] <= 2, rating


def test_reviewers_differ_sometimes_and_never_by_more_than_one(language: str) -> None:
    values = defaultdict(list)
    for rating in demo_records(language, "ratings.jsonl"):
        values[rating["system"], rating["question_id"], rating["metric"]].append(rating["value"])
    gaps = Counter(abs(pair[0] - pair[1]) for pair in values.values() if len(pair) == 2)
    assert set(gaps) == {0, 1}
