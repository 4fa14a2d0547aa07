"""Offline baseline judge: compares words, needs no model and no network. Real judges must beat it.

Readers are always told that a score is the baseline's. It extracts and checks claims, statements, nuggets and passages
by sentences and words, gives scores and labels, and scores custom criteria by word counts."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Bilingual, Direction, RuleSettings
from evaluation.core.samples import QuestionSpec, Result
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.judging.formulas import IRRELEVANT, PARTIAL, RELEVANT, SUPPORTED, UNSUPPORTED
from evaluation.judging.lexical import (
    BaselineReason,
    Grade,
    Words,
    claimed_words,
    completeness,
    contains_negation,
    content_words,
    correctness,
    coverage,
    faithfulness,
    is_denial,
    is_refusal,
    join_reasons,
    names_any,
    reason_text,
    reference_words,
    states_ignorance,
    words_of_all,
)
from evaluation.judging.prompt import passage_source
from evaluation.judging.prose import prose, quoted_sentences, sentences
from evaluation.judging.rubric import OfflineMeasure, Rubric, is_criterion
from evaluation.metrics.citations import citation_format, citation_validity
from evaluation.network.outcomes import Outcome

# Minimum shares of a text's words in the passages.
SUPPORTED_SHARE, PARTIAL_SHARE = 0.7, 0.45


@dataclass(frozen=True, slots=True)
class Support:
    """Verdict, with the passage that contains most words (index from 0), the sentence there and the reason."""

    verdict: str
    context: int | None
    quote: str
    reason: Bilingual


def word_support(text: str, contexts: Sequence[str], evidence: Words, question: str) -> Support:
    """Verdict on a text by word overlap with the passages. Supported: at least 70% of the words that the question lacks
    occur in the passages; partial: from 45%; unsupported if a number is in neither passages nor question.

    ``evidence`` are the words of all passages."""
    question_words = content_words(question)
    words = claimed_words(text, question_words) or content_words(text)
    share = coverage(words, evidence)
    foreign = words.numbers - evidence.numbers - question_words.numbers
    verdict = SUPPORTED if share >= SUPPORTED_SHARE else PARTIAL if share >= PARTIAL_SHARE else UNSUPPORTED
    reason = BaselineReason.IN_PASSAGES.format(percent=round(100 * share))
    if foreign:
        verdict = UNSUPPORTED
        reason = join_reasons(reason, BaselineReason.IN_NO_PASSAGE.format(listed=", ".join(sorted(foreign))))
    index = best_match(words, contexts) if verdict != UNSUPPORTED else None
    parts = sentences(contexts[index]) if index is not None else ()
    best = best_match(words, parts)
    return Support(verdict, index, parts[best] if best is not None else "", reason)


def best_match(words: Words, texts: Sequence[str]) -> int | None:
    """Index of the text that contains most of the words; ``None`` if none contains any."""
    shares = [coverage(words, content_words(text)) for text in texts]
    best = max(shares, default=0.0)
    return shares.index(best) if best > 0 else None


# Minimum shares of a nugget's words in the answer.
_NUGGET_SUPPORTED, _NUGGET_PARTIAL = 0.8, 0.5


def extract_claims(call: JudgeCall) -> dict[str, Any]:
    """Sentences of the answer's prose that add to the question and do not admit ignorance."""
    question_words = content_words(call.question.text)
    claims = []
    for sentence, quote in quoted_sentences(prose(call.answer.text)):
        words = claimed_words(sentence, question_words)
        # Numbers alone claim nothing, such as "3." before a list item.
        if not states_ignorance(sentence) and len(words) > len(words.numbers):
            claims.append({"claim": sentence, "quote": quote})
    return {"claims": claims}


def extract_statements(call: JudgeCall) -> dict[str, Any]:
    return {
        "statements": [
            {"reference": number, "statement": sentence}
            for number, reference in enumerate(call.question.references, start=1)
            for sentence in sentences(reference)
        ]
    }


def assign_nuggets(call: JudgeCall) -> dict[str, Any]:
    """Verdict on each nugget: supported from 80% of the words of any wording, partial from 50%."""
    answer_words = content_words(call.answer.text)
    verdicts = {}
    for key, wordings in call.judge_request.blocks["nuggets"].items():
        words = [wording_words for text in wordings if (wording_words := content_words(text))]
        share = max((coverage(wording_words, answer_words) for wording_words in words), default=0.0)
        verdict = SUPPORTED if share >= _NUGGET_SUPPORTED else PARTIAL if share >= _NUGGET_PARTIAL else UNSUPPORTED
        reason = reason_text(call, BaselineReason.OF_NUGGET.format(percent=round(100 * share)))
        quote = ""
        # Quote the sentence of the answer that contains most words of any wording.
        if verdict != UNSUPPORTED:
            best_coverage = {
                sentence: max(coverage(wording_words, content_words(sentence)) for wording_words in words)
                for sentence in sentences(call.answer.text)
            }
            quote = max(best_coverage, key=best_coverage.__getitem__, default="")
        verdicts[key] = {"reason": reason, "verdict": verdict, "quote": quote}
    return verdicts


def check_texts(call: JudgeCall, *, partial: bool) -> dict[str, Any]:
    """Verdict on each claim or statement, the best over its wordings. For statements, partial support does not
    count."""
    texts: dict[str, str] = call.judge_request.blocks["claims" if partial else "statements"]
    contexts = [f"{context.text}\n{passage_source(context)}" for context in call.answer.contexts or ()]
    evidence, verdicts = words_of_all(contexts), {}
    for key, text in texts.items():
        options = [word_support(wording, contexts, evidence, call.question.text) for wording in text.split(" | ")]
        best = min(options, key=lambda candidate: (SUPPORTED, PARTIAL, UNSUPPORTED).index(candidate.verdict))
        accepted = partial or best.verdict == SUPPORTED
        verdicts[key] = {
            "reason": reason_text(call, best.reason),
            "verdict": best.verdict if accepted else UNSUPPORTED,
            "context": best.context + 1 if best.context is not None and accepted else 0,
            "quote": best.quote if accepted else "",
        }
    return verdicts


# Minimum shares of a reference sentence's words, and of the question's words if there is no reference.
_RELEVANT_SHARE, _ON_TOPIC_SHARE = 0.5, 0.6


def is_relevant(passage: str, question: QuestionSpec) -> bool:
    """Return whether a passage contains half of the words of a reference sentence, else a required point, else most of
    the question's words."""
    passage_words = content_words(passage)
    if question.references:
        word_lists = (
            reference_words(sentence, question)
            for reference in question.references
            for sentence in sentences(reference)
        )
        return any(words and coverage(words, passage_words) >= _RELEVANT_SHARE for words in word_lists)
    if question.keywords:
        return any(names_any(point, passage_words) for point in question.keywords)
    return coverage(content_words(question.text), passage_words) >= _ON_TOPIC_SHARE


def rate_passages(call: JudgeCall) -> dict[str, Any]:
    verdicts = {}
    for context in call.judge_request.blocks["contexts"]:
        relevant = is_relevant(context["text"], call.question)
        verdict = RELEVANT if relevant else IRRELEVANT
        verdicts[f"context_{context['number']}"] = {
            "reason": reason_text(call, (BaselineReason.HELPS if relevant else BaselineReason.HELPS_NOT).value),
            "verdict": verdict,
        }
    return verdicts


_SETTINGS = RuleSettings()
# Level of correctness.
_RIGHT = 4
# Minimum share of the reference's words.
_LIKE_REFERENCE = 0.45
Scorer = Callable[[JudgeCall], Grade]


def grade_levels(call: JudgeCall) -> dict[str, Any]:
    """Levels from 1 to 5, by metric."""
    grades = {name: SCORERS[name](call) for name in call.judge_request.names}
    return {name: {"reason": reason_text(call, grade.reason), "score": grade.level} for name, grade in grades.items()}


def grade_shares(call: JudgeCall) -> dict[str, Any]:
    """Scores from 0 to 1, by metric."""
    return {name: _scaled_score(call, SCORERS[name](call)) for name in call.judge_request.names}


def factual_accuracy(call: JudgeCall) -> dict[str, Any]:
    """Correctness and completeness by words. Contradictions are not detected, so the confidence is 0."""
    steps = {
        "correctness": correctness(call.question, call.answer),
        "completeness": completeness(call.question, call.answer),
        "consistency": Grade(5, BaselineReason.NOT_LOOKED_FOR.value, 1.0),
    }
    return {**{name: _scaled_score(call, grade, 100) for name, grade in steps.items()}, "confidence": 0}


def regulation_quality(call: JudgeCall) -> dict[str, Any]:
    """Scores of the requested regulation metrics. A clarifying question gets full scores where one is welcome."""
    asks_back = call.question.clarification_ok and call.answer.text.strip().endswith("?")
    welcome = Grade(5, BaselineReason.ASKS_BACK.value, 1.0)
    grades = {name: welcome if asks_back else SCORERS[name](call) for name in call.judge_request.names}
    low = [f"{name}: {reason_text(call, grade.reason)}" for name, grade in grades.items() if grade.level <= 2]
    high = [f"{name}: {reason_text(call, grade.reason)}" for name, grade in grades.items() if grade.level == 5]
    return {**{name: _scaled_score(call, grade) for name, grade in grades.items()}, "issues": low, "strengths": high}


def _scaled_score(call: JudgeCall, grade: Grade, top: float = 1.0) -> dict[str, Any]:
    return {"reason": reason_text(call, grade.reason), "score": top * grade.unit}


def _relevancy(call: JudgeCall) -> Grade:
    """Half for any word beyond the question, half for the share of the question's words in the answer; 0 for a
    refusal."""
    question_words, answer_words = content_words(call.question.text), content_words(call.answer.text)
    new = {word.surface for word in answer_words} - {word.surface for word in question_words}
    if is_refusal(call.answer.text) or not new:
        return Grade(1, BaselineReason.NOTHING_NEW.value, 0.0)
    share = 0.5 + 0.5 * coverage(question_words, answer_words)
    return Grade.of(share, BaselineReason.TAKES_UP.format(percent=round(200 * (share - 0.5))))


def _accuracy(call: JudgeCall) -> Grade:
    has_reference = call.question.references or call.question.keywords
    return (correctness if has_reference else faithfulness)(call.question, call.answer)


def _answer_completeness(call: JudgeCall) -> Grade:
    if not call.question.required_info:
        return completeness(call.question, call.answer)
    answer_words, points = content_words(call.answer.text), call.question.required_info
    count = sum(names_any((point,), answer_words) for point in points)
    return Grade.of(count / len(points), BaselineReason.POINTS.format(count=count, total=len(points)))


def _citations(call: JudgeCall) -> Grade:
    """Citation format times the share of citations found in the sources, if there are sources."""
    form = citation_format(call.question, call.answer, _SETTINGS).value or 0.0
    valid = citation_validity(call.question, call.answer, _SETTINGS).value
    if valid is None:
        return Grade.of(form, BaselineReason.FORM.format(form=f"{form:g}"))
    return Grade.of(form * valid, BaselineReason.FORM_AND_SOURCES.format(form=f"{form:g}", valid=valid))


def _context_relevance(call: JudgeCall) -> Grade:
    contexts = call.answer.contexts or ()
    count = sum(is_relevant(context.text, call.question) for context in contexts)
    return Grade.of(
        count / len(contexts) if contexts else 0.0, BaselineReason.HELPING.format(count=count, total=len(contexts))
    )


#: By metric, and by the measures for custom criteria (:class:`OfflineMeasure`).
SCORERS: Mapping[str, Scorer] = {
    "correctness": lambda call: correctness(call.question, call.answer),
    "completeness": lambda call: completeness(call.question, call.answer),
    "faithfulness": lambda call: faithfulness(call.question, call.answer),
    "generation_faithfulness": lambda call: faithfulness(call.question, call.answer),
    "relevancy": _relevancy,
    "answer_relevancy": _relevancy,
    "accuracy": _accuracy,
    "answer_completeness": _answer_completeness,
    "citations": _citations,
    "context_relevance": _context_relevance,
}


def write_questions(call: JudgeCall) -> dict[str, Any]:
    """Turn the answer's first sentences into questions, because writing questions needs a model."""
    parts = [sentence.rstrip(" .!?。") + "?" for sentence in sentences(call.answer.text)][:3]
    return {"questions": parts, "noncommittal": is_refusal(call.answer.text)}


def classify_answer(call: JudgeCall) -> dict[str, Any]:
    """CORRECT from level 4 of the baseline's correctness, else WRONG."""
    grade = correctness(call.question, call.answer)
    label = "CORRECT" if grade.level >= _RIGHT else "WRONG"
    return {"answer_class": {"reason": reason_text(call, grade.reason), "label": label}}


def label_negative(call: JudgeCall) -> dict[str, Any]:
    """Label by words: a negation with the reference's words corrects the premise, a refusal abstains, supported claims
    answer, anything else is a fabrication."""
    text, answer_words = call.answer.text, content_words(call.answer.text)
    word_lists = [reference_words(reference, call.question) for reference in call.question.references]
    likeness = max((coverage(words, answer_words) for words in word_lists), default=0.0)
    if likeness >= _LIKE_REFERENCE and contains_negation(text) and not all(map(is_denial, call.question.references)):
        label, explanation = "correct_premise", BaselineReason.NEGATES
    elif is_denial(text):
        label, explanation = "abstain", BaselineReason.NOT_THERE
    elif call.answer.contexts and faithfulness(call.question, call.answer).level >= _RIGHT:
        label, explanation = "answer", BaselineReason.PASSAGES_WORDS
    else:
        label, explanation = "fabricate", BaselineReason.NO_PASSAGES_WORDS
    return {"negative_label": {"reason": reason_text(call, explanation.value), "label": label}}


def unsupported_metrics(rubric: Rubric, metrics: Iterable[str]) -> dict[str, Result]:
    """Not-applicable results of the metrics that the baseline has no rule for."""
    shipped = rubric.criterion is None and any(family == rubric.family for family, _ in RULES)
    if shipped or (rubric.criterion is not None and rubric.criterion.offline is not OfflineMeasure.NONE):
        return {}
    return {name: Result.not_applicable("baseline_has_no_rule") for name in metrics}


def grade_criterion(call: JudgeCall) -> dict[str, Any]:
    """Score of a custom criterion: the word share on its scale, inverted if lower is better. Shares between two levels
    are rounded down at one half."""
    terms = call.rubric.criterion
    if terms is None:
        raise ValueError(f"{call.rubric.family} is no criterion")
    grade = SCORERS[terms.offline](call)
    (metric,) = call.rubric.metrics
    scale = metric.read_scale()
    share = (grade.level - 1) / 4 if scale.levels else grade.unit
    offset = math.ceil(share * scale.width - 0.5) if scale.levels else share * scale.width
    value = scale.low + offset if terms.direction is Direction.HIGHER else scale.high - offset
    reason = reason_text(call, join_reasons(grade.reason, BaselineReason.COUNTED.format(offline=str(terms.offline))))
    score = int(value) if scale.levels else value
    return {metric.name: {"reason": reason, "score": score}}


NAME = "baseline"
# Raise when scores change, or the texts and positions of extracted claims.
BASELINE_VERSION = 3
DESCRIPTION = Bilingual(
    "Offline baseline: compares words with the expected answer and the passages, without a model. "
    "Use it as a lower bound for real judges.",
    "오프라인 기준선: 모델 없이 답변의 단어를 기대 답변, 문단과 비교합니다. 실제 판정관과 비교하는 하한으로 쓰세요.",
)


RULES: Mapping[tuple[str, str], Callable[[JudgeCall], dict[str, Any]]] = {
    ("answer_quality", ""): grade_levels,
    ("negative_questions", ""): label_negative,
    ("claims", "extract"): extract_claims,
    ("claims", "verify"): partial(check_texts, partial=True),
    ("passages", "rate"): rate_passages,
    ("statements", "extract"): extract_statements,
    ("statements", "attribute"): partial(check_texts, partial=False),
    ("asked_back", "write"): write_questions,
    ("factual_accuracy", "assess"): factual_accuracy,
    ("answer_class", ""): classify_answer,
    ("generation_faithfulness", ""): grade_shares,
    ("answer_relevancy", ""): grade_shares,
    ("regulation_quality", ""): regulation_quality,
    ("nuggets", "assign"): assign_nuggets,
    # Empty, because words do not tell what somebody needs next.
    ("proposals", "propose"): lambda call: {"suggested_queries": [], "action_items": [], "urgency": "low"},
}
"""How each step of each family is answered (the step is empty in families of one call)."""


def judge_offline(request: JudgeCall) -> JudgeReply:
    """Reply of the baseline: the JSON text that a remote judge would return, with zero tokens.

    :raises UnknownName: for a family or step without a baseline rule (see :data:`RULES`)."""
    started = time.monotonic()
    family, step = request.rubric.family, request.judge_request.step
    rule = grade_criterion if is_criterion(family) else RULES.get((family, step))
    if rule is None:
        raise UnknownName("baseline rule", f"{family}/{step}", sorted("/".join(key) for key in RULES))
    return JudgeReply(
        Outcome.OK,
        raw=json.dumps(rule(request), ensure_ascii=False),
        model_returned=NAME,
        fingerprint=f"{NAME}@{BASELINE_VERSION}",
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        tokens_reasoning=0,
        elapsed_seconds=time.monotonic() - started,
        free=True,
    )
