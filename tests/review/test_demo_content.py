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
def records(name: str, folder: Path = DEMO) -> list[Record]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


@cache
def chunks() -> dict[str, Record]:
    return {chunk["chunk_id"]: chunk for chunk in records("corpus.jsonl")}


@cache
def categories() -> dict[str, Record]:
    document: Record = yaml.safe_load((DEMO / "questions.yaml").read_text(encoding="utf-8"))
    return document["categories"]


@cache
def questions() -> dict[str, Record]:
    return {q["id"]: q | {"category": name} for name, body in categories().items() for q in body["questions"]}


@cache
def answers(system: str) -> dict[str, Record]:
    return {answer["question_id"]: answer for answer in records(SYSTEMS[system])}


def keyword_alternatives(question: Record) -> list[list[str]]:
    return [[k] if isinstance(k, str) else k for k in question.get("expected_keywords", [])]


def holds_every_keyword(question: Record, text: str) -> bool:
    plain_text = text.replace("*", "")
    return all(any(form in plain_text for form in forms) for forms in keyword_alternatives(question))


def test_importer_accepts_the_questions_and_all_their_fields() -> None:
    parsed = read_questions((DEMO / "questions.yaml").read_bytes(), "questions.yaml")
    assert [q.id for q in parsed.questions] == list(questions())
    assert parsed.metadata_keys == ()
    assert parsed.set_metadata == {"version": 1, "name": "demo"}
    by_id = {q.id: q for q in parsed.questions}
    assert by_id["two-hop-08"].difficulty == "hard"  # its own, not its section's
    assert by_id["single-09"].references[0] == "TOPIK level 4."
    assert by_id["single-04"].keywords == (("95,000원", "9만 5천 원", "9만5천원"), ("6학점",))


@pytest.mark.parametrize("system", SYSTEMS)
def test_importer_accepts_the_answers_and_stores_the_fault_as_metadata(system: str) -> None:
    parsed = read_answers((DEMO / SYSTEMS[system]).read_bytes(), SYSTEMS[system])
    assert [a.question_id for a in parsed.answers] == list(questions())
    assert parsed.metadata_keys == ("demo_fault",)
    for row in parsed.answers:
        assert row.answered != bool(row.error)
        assert {c.chunk_id for c in row.answer.contexts or ()} <= set(chunks())


def test_ids_are_unique_in_every_file() -> None:
    for name in ("corpus.jsonl", *SYSTEMS.values()):
        key = "chunk_id" if name == "corpus.jsonl" else "question_id"
        assert max(Counter(row[key] for row in records(name)).values()) == 1, name
    assert len(questions()) == sum(len(body["questions"]) for body in categories().values())


def test_the_six_categories_are_filled_in_both_languages() -> None:
    assert list(categories()) == CATEGORIES
    for name, body in categories().items():
        assert body["difficulty"] in {"easy", "medium", "hard"}
        assert {q["tags"][0] for q in body["questions"]} == {"ko", "en"}, name


def test_the_tag_of_a_question_is_its_language() -> None:
    for question in questions().values():
        korean = any("가" <= letter <= "힣" for letter in question["question"])
        assert question["tags"][0] == ("ko" if korean else "en"), question["id"]


def test_ground_truth_names_existing_passages() -> None:
    for question in questions().values():
        truth = question.get("ground_truth_chunk_ids", [])
        assert set(truth) <= set(chunks()), question["id"]
        assert truth or question["category"] == "negative", question["id"]


def test_questions_carry_the_field_of_their_category() -> None:
    needed = {"multi_hop_2": "hops", "multi_hop_3": "hops", "aggregation": "aggregation_type"}
    needed |= {"inference": "inference_type", "negative": "check"}
    for question in questions().values():
        field = needed.get(question["category"], "expected_keywords")
        assert question.get(field), question["id"]
        assert question["expected_answer"]


def test_every_built_in_check_occurs_and_a_wrong_premise_has_its_phrases() -> None:
    checks = {q["check"]: q for q in questions().values() if q["category"] == "negative"}
    assert len(checks) == 4
    for question in questions().values():
        if question.get("check") == "should_correct_premise":
            assert question["check_phrases"]["any_of"]


def test_an_expected_answer_holds_its_own_keywords() -> None:
    for question in questions().values():
        expected = question["expected_answer"]
        texts = [expected] if isinstance(expected, str) else expected
        assert any(holds_every_keyword(question, text) for text in texts), question["id"]


def test_groups_join_at_least_two_questions() -> None:
    sizes = Counter(q["group"] for q in questions().values() if "group" in q)
    assert sizes
    assert min(sizes.values()) >= 2


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_question_has_one_answer(system: str) -> None:
    assert list(answers(system)) == list(questions())


@pytest.mark.parametrize("system", SYSTEMS)
def test_contexts_quote_the_corpus_in_falling_order_of_score(system: str) -> None:
    for answer in answers(system).values():
        contexts = answer.get("contexts", [])
        assert all(c["text"] == chunks()[c["chunk_id"]]["text"] for c in contexts), answer["question_id"]
        scores = [c["score"] for c in contexts]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score < 1 for score in scores)
        assert len({c["chunk_id"] for c in contexts}) == len(contexts)


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_answer_is_in_the_language_of_its_question(system: str) -> None:
    for answer in answers(system).values():
        if "error" not in answer:
            korean = any("가" <= letter <= "힣" for letter in answer["answer"])
            assert questions()[answer["question_id"]]["tags"][0] == ("ko" if korean else "en"), answer["question_id"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_latencies_are_realistic_and_missing_only_where_the_system_failed(system: str) -> None:
    for answer in answers(system).values():
        assert ("latency_seconds" in answer) != ("error" in answer)
        assert 0.8 <= answer.get("latency_seconds", 1.0) <= 6


def test_every_kind_of_fault_occurs_and_the_worse_system_has_far_more() -> None:
    graph, vector = (Counter(a["demo_fault"] for a in answers(s).values() if "demo_fault" in a) for s in SYSTEMS)
    assert set(graph) | set(vector) == FAULTS
    assert 0 < 2 * graph.total() < vector.total()


def test_demo_has_a_failed_answer_and_an_empty_retrieval() -> None:
    vector = answers("demo-vector").values()
    assert [a["question_id"] for a in vector if a.get("error")] == ["two-hop-05"]
    assert [a["question_id"] for a in vector if a.get("contexts") == []] == ["three-hop-06"]
    assert all(a["contexts"] for a in answers("demo-graph").values())


def test_faultless_answers_of_the_better_system_hold_nearly_all_their_keywords() -> None:
    faultless = [a for a in answers("demo-graph").values() if "demo_fault" not in a]
    missing = {
        answer["question_id"]
        for answer in faultless
        if not holds_every_keyword(questions()[answer["question_id"]], answer["answer"])
    }
    # Written to be incomplete without being wrong, so that completeness has something between 1 and 5.
    assert missing == {"two-hop-03", "three-hop-02", "three-hop-06"}


@pytest.mark.slow
def test_better_system_passes_five_negative_checks_and_the_worse_one_two() -> None:
    specs = {q.id: q for q in read_questions((DEMO / "questions.yaml").read_bytes(), "questions.yaml").questions}
    passed_ids = {}
    for system, name in SYSTEMS.items():
        rows = [r for r in read_answers((DEMO / name).read_bytes(), name).answers if specs[r.question_id].check]
        passed_ids[system] = [
            r.question_id for r in rows if negative_detection(specs[r.question_id], r.answer, RuleSettings()).value == 1
        ]
    # The answer to neg-01 refuses, and then guesses at a rule.
    assert passed_ids["demo-graph"] == ["neg-02", "neg-03", "neg-04", "neg-05", "neg-06"]
    assert passed_ids["demo-vector"] == ["neg-03", "neg-06"]


def test_phone_number_is_in_the_corpus_unless_it_is_a_planted_fault() -> None:
    corpus_text = " ".join(chunk["text"] for chunk in chunks().values())
    for system in SYSTEMS:
        for answer in answers(system).values():
            numbers = [
                w for w in answer.get("answer", "").replace("(", " ").replace(")", " ").split() if w.count("-") == 2
            ]
            invented = [number for number in numbers if number[0] == "0" and number not in corpus_text]
            assert bool(invented) == (answer.get("demo_fault") == "fake_phone_number"), answer["question_id"]


def test_ratings_name_existing_answers_and_cover_all_metrics_once() -> None:
    metrics_by_rating = defaultdict(list)
    for rating in records("ratings.jsonl"):
        assert not answers(rating["system"])[rating["question_id"]].get("error")
        assert rating["value"] in {1, 2, 3, 4, 5}
        assert rating["reviewer"] in {"reviewer1", "reviewer2"}
        metrics_by_rating[rating["system"], rating["question_id"], rating["reviewer"]].append(rating["metric"])
    assert all(sorted(metrics) == sorted(METRICS) for metrics in metrics_by_rating.values())


def test_every_answer_of_the_better_system_is_rated_and_many_by_both_reviewers() -> None:
    raters = defaultdict(set)
    for rating in records("ratings.jsonl"):
        if rating["system"] == "demo-graph":
            raters[rating["question_id"]].add(rating["reviewer"])
    assert set(raters) == set(questions())
    assert sum(len(names) == 2 for names in raters.values()) >= 10


def test_reviewers_give_faulty_answers_low_ratings() -> None:
    lowest: dict[tuple[str, str], int] = {}
    for rating in records("ratings.jsonl"):
        key = (rating["system"], rating["question_id"])
        lowest[key] = min(lowest.get(key, 5), rating["value"])
    for (system, question_id), value in lowest.items():
        if answers(system)[question_id].get("demo_fault"):
            assert value <= 3, question_id
        else:
            assert value >= 3, question_id


def test_an_invention_is_rated_unfaithful() -> None:
    for rating in records("ratings.jsonl"):
        fault = answers(rating["system"])[rating["question_id"]].get("demo_fault")
        if fault in {"hallucination", "fake_phone_number"} and rating["metric"] == "faithfulness":
            assert rating["value"] <= 2, rating


def test_reviewers_differ_sometimes_and_never_by_more_than_one() -> None:
    values = defaultdict(list)
    for rating in records("ratings.jsonl"):
        values[rating["system"], rating["question_id"], rating["metric"]].append(rating["value"])
    gaps = Counter(abs(pair[0] - pair[1]) for pair in values.values() if len(pair) == 2)
    assert set(gaps) == {0, 1}
