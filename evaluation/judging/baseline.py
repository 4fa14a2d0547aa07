"""The offline baseline judge: compares words, needs no model and no network, and is the trivial judge that every real
one must beat. Readers are always told that it is a baseline. Here it finds and checks claims, statements, nuggets and
passages by sentences and words, scores and labels, and stands in for a custom criterion by counting words.
"""

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
    Grade,
    Said,
    Word,
    claimed_words,
    completeness,
    content_words,
    correctness,
    coverage,
    denies,
    faithfulness,
    joined,
    named,
    negates,
    numbers,
    refuses,
    states_ignorance,
    told,
    wanted_words,
)
from evaluation.judging.prompt import source_of
from evaluation.judging.prose import prose, quoted_sentences, sentences
from evaluation.judging.rubric import Offline, Rubric, is_criterion
from evaluation.metrics.citations import citation_format, citation_validity
from evaluation.network.outcomes import Outcome

FULLY, PARTLY = 0.7, 0.45  # share of a text's words in the passages


@dataclass(frozen=True, slots=True)
class Support:
    """A verdict with the passage that holds most of the words (its place from 0), the sentence there, and why."""

    verdict: str
    context: int | None
    quote: str
    reason: Bilingual


def support(text: str, contexts: Sequence[str], question: str) -> Support:
    """Supported where at least 70% of the words that the question does not hold occur in the passages together, partly
    from 45%; never where a number is in no passage and not in the question."""
    asked = content_words(question)
    words = claimed_words(text, asked) or content_words(text)
    evidence = [word for context in contexts for word in content_words(context)]
    share = coverage(words, evidence)
    foreign = numbers(words) - numbers(evidence) - numbers(asked)
    verdict = SUPPORTED if share >= FULLY else PARTIAL if share >= PARTLY else UNSUPPORTED
    reason = Said.IN_PASSAGES.of(percent=round(100 * share))
    if foreign:
        verdict = UNSUPPORTED
        reason = joined(reason, Said.IN_NO_PASSAGE.of(listed=", ".join(sorted(foreign))))
    place = best_of(words, contexts) if verdict != UNSUPPORTED else None
    parts = sentences(contexts[place]) if place is not None else ()
    best = best_of(words, parts)
    return Support(verdict, place, parts[best] if best is not None else "", reason)


def best_of(words: Sequence[Word], texts: Sequence[str]) -> int | None:
    """The place of the text that holds most of the words; ``None`` where none holds any."""
    shares = [coverage(words, content_words(text)) for text in texts]
    best = max(shares, default=0.0)
    return shares.index(best) if best > 0 else None


_NAMED, _HINTED = 0.8, 0.5  # share of a nugget's words in the answer


def claims_of(call: JudgeCall) -> dict[str, Any]:
    """Every sentence of the answer's prose that says something beyond the question and does not admit ignorance."""
    asked = content_words(call.question.text)
    claims = []
    for sentence, quote in quoted_sentences(prose(call.answer.text)):
        words = claimed_words(sentence, asked)
        # Numbers alone say nothing: "3." before an item of a list.
        if not states_ignorance(sentence) and len(words) > len(numbers(words)):
            claims.append({"claim": sentence, "quote": quote})
    return {"claims": claims}


def statements_of(call: JudgeCall) -> dict[str, Any]:
    """The sentences of each reference."""
    return {
        "statements": [
            {"reference": number, "statement": sentence}
            for number, reference in enumerate(call.question.references, start=1)
            for sentence in sentences(reference)
        ]
    }


def assigned_nuggets(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each nugget: from 80% of the words of any wording supported, from half of them partly."""
    given = content_words(call.answer.text)
    found = {}
    for key, wordings in call.ask.blocks["nuggets"].items():
        words = [wanted for text in wordings if (wanted := content_words(text))]
        share = max((coverage(wanted, given) for wanted in words), default=0.0)
        verdict = SUPPORTED if share >= _NAMED else PARTIAL if share >= _HINTED else UNSUPPORTED
        reason = told(call, Said.OF_NUGGET.of(percent=round(100 * share)))
        quote = ""
        if verdict != UNSUPPORTED:  # the sentence of the answer that holds most of any wording
            held = {s: max(coverage(wanted, content_words(s)) for wanted in words) for s in sentences(call.answer.text)}
            quote = max(held, key=held.__getitem__, default="")
        found[key] = {"reason": reason, "verdict": verdict, "quote": quote}
    return found


def checked(call: JudgeCall, *, partial: bool) -> dict[str, Any]:
    """A verdict on each claim, or on each statement, of the wordings of one the best; part of a statement does not
    count."""
    texts: dict[str, str] = call.ask.blocks["claims" if partial else "statements"]
    contexts = [f"{context.text}\n{source_of(context)}" for context in call.answer.contexts or ()]
    found = {}
    for key, text in texts.items():
        options = [support(wording, contexts, call.question.text) for wording in text.split(" | ")]
        best = min(options, key=lambda one: (SUPPORTED, PARTIAL, UNSUPPORTED).index(one.verdict))
        counts = partial or best.verdict == SUPPORTED
        found[key] = {
            "reason": told(call, best.reason),
            "verdict": best.verdict if counts else UNSUPPORTED,
            "context": best.context + 1 if best.context is not None and counts else 0,
            "quote": best.quote if counts else "",
        }
    return found


_HELPS, _ON_TOPIC = 0.5, 0.6  # share of a reference sentence's words; of the question's, where there is no reference


def helps(passage: str, question: QuestionSpec) -> bool:
    """Whether the passage holds half of the words of a sentence of a reference, else names a required point, else
    holds most of the question's words."""
    given = content_words(passage)
    if question.references:
        wanted = (wanted_words(s, question) for reference in question.references for s in sentences(reference))
        return any(words and coverage(words, given) >= _HELPS for words in wanted)
    if question.keywords:
        return any(named(point, given) for point in question.keywords)
    return coverage(content_words(question.text), given) >= _ON_TOPIC


def rated_passages(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each passage of the request."""
    found = {}
    for context in call.ask.blocks["contexts"]:
        relevant = helps(context["text"], call.question)
        verdict = RELEVANT if relevant else IRRELEVANT
        found[f"context_{context['number']}"] = {
            "reason": told(call, (Said.HELPS if relevant else Said.HELPS_NOT).value),
            "verdict": verdict,
        }
    return found


_SETTINGS = RuleSettings()
_RIGHT = 4  # level of correctness
_LIKE_REFERENCE = 0.45  # share of the reference's words
Scorer = Callable[[JudgeCall], Grade]


def graded(call: JudgeCall) -> dict[str, Any]:
    """Levels from 1 to 5, by metric."""
    grades = {name: SCORERS[name](call) for name in call.ask.names}
    return {name: {"reason": told(call, grade.reason), "score": grade.level} for name, grade in grades.items()}


def shares(call: JudgeCall) -> dict[str, Any]:
    """Shares from 0 to 1, by metric."""
    return {name: _real(call, SCORERS[name](call)) for name in call.ask.names}


def factual_accuracy(call: JudgeCall) -> dict[str, Any]:
    """Correctness and completeness by words. Contradictions are not looked for, so nothing is sure."""
    steps = {
        "correctness": correctness(call.question, call.answer),
        "completeness": completeness(call.question, call.answer),
        "consistency": Grade(5, Said.NOT_LOOKED_FOR.value, 1.0),
    }
    return {**{name: _real(call, grade, 100) for name, grade in steps.items()}, "confidence": 0}


def regulation_quality(call: JudgeCall) -> dict[str, Any]:
    """The scores of source 003 that are asked for. A question back where one is welcome costs nothing."""
    asks_back = call.question.clarification_ok and call.answer.text.strip().endswith("?")
    welcome = Grade(5, Said.ASKS_BACK.value, 1.0)
    grades = {name: welcome if asks_back else SCORERS[name](call) for name in call.ask.names}
    low = [f"{name}: {told(call, grade.reason)}" for name, grade in grades.items() if grade.level <= 2]
    high = [f"{name}: {told(call, grade.reason)}" for name, grade in grades.items() if grade.level == 5]
    return {**{name: _real(call, grade) for name, grade in grades.items()}, "issues": low, "strengths": high}


def _real(call: JudgeCall, grade: Grade, top: float = 1.0) -> dict[str, Any]:
    return {"reason": told(call, grade.reason), "score": top * grade.unit}


def _responds(call: JudgeCall) -> Grade:
    """Half for saying anything beyond the question, half for the question's words that come back; a refusal is no
    response."""
    asked, given = content_words(call.question.text), content_words(call.answer.text)
    new = {word.surface for word in given} - {word.surface for word in asked}
    if refuses(call.answer.text) or not new:
        return Grade(1, Said.NOTHING_NEW.value, 0.0)
    share = 0.5 + 0.5 * coverage(asked, given)
    return Grade.of(share, Said.TAKES_UP.of(percent=round(200 * (share - 0.5))))


def _accuracy(call: JudgeCall) -> Grade:
    known = call.question.references or call.question.keywords
    return (correctness if known else faithfulness)(call.question, call.answer)


def _answer_completeness(call: JudgeCall) -> Grade:
    if not call.question.required_info:
        return completeness(call.question, call.answer)
    given, points = content_words(call.answer.text), call.question.required_info
    count = sum(named((point,), given) for point in points)
    return Grade.of(count / len(points), Said.POINTS.of(count=count, total=len(points)))


def _citations(call: JudgeCall) -> Grade:
    """Form times the share of references that the sources hold, where there are sources."""
    form = citation_format(call.question, call.answer, _SETTINGS).value or 0.0
    valid = citation_validity(call.question, call.answer, _SETTINGS).value
    if valid is None:
        return Grade.of(form, Said.FORM.of(form=f"{form:g}"))
    return Grade.of(form * valid, Said.FORM_AND_SOURCES.of(form=f"{form:g}", valid=valid))


def _context_relevance(call: JudgeCall) -> Grade:
    contexts = call.answer.contexts or ()
    count = sum(helps(context.text, call.question) for context in contexts)
    return Grade.of(count / len(contexts) if contexts else 0.0, Said.HELPING.of(count=count, total=len(contexts)))


#: By metric, and by the stand-ins of custom criteria (:class:`Offline`).
SCORERS: Mapping[str, Scorer] = {
    "correctness": lambda call: correctness(call.question, call.answer),
    "completeness": lambda call: completeness(call.question, call.answer),
    "faithfulness": lambda call: faithfulness(call.question, call.answer),
    "generation_faithfulness": lambda call: faithfulness(call.question, call.answer),
    "relevancy": _responds,
    "answer_relevancy": _responds,
    "accuracy": _accuracy,
    "answer_completeness": _answer_completeness,
    "citations": _citations,
    "context_relevance": _context_relevance,
}


def asked_back(call: JudgeCall) -> dict[str, Any]:
    """The answer's first sentences with a question mark: all that can be done without a model."""
    parts = [sentence.rstrip(" .!?。") + "?" for sentence in sentences(call.answer.text)][:3]
    return {"questions": parts, "noncommittal": refuses(call.answer.text)}


def classed_answer(call: JudgeCall) -> dict[str, Any]:
    """CORRECT from level 4 of the baseline's correctness, else WRONG."""
    grade = correctness(call.question, call.answer)
    label = "CORRECT" if grade.level >= _RIGHT else "WRONG"
    return {"answer_class": {"reason": told(call, grade.reason), "label": label}}


def labelled_negative(call: JudgeCall) -> dict[str, Any]:
    """What predicates and words tell: a negation in the reference's own words corrects, a refusal abstains, claims
    that the passages support answer, anything else is made up."""
    text, given = call.answer.text, content_words(call.answer.text)
    wanted = [wanted_words(reference, call.question) for reference in call.question.references]
    alike = max((coverage(words, given) for words in wanted), default=0.0)
    if alike >= _LIKE_REFERENCE and negates(text) and not all(map(denies, call.question.references)):
        label, why = "correct_premise", Said.NEGATES
    elif denies(text):
        label, why = "abstain", Said.NOT_THERE
    elif call.answer.contexts and faithfulness(call.question, call.answer).level >= _RIGHT:
        label, why = "answer", Said.PASSAGES_WORDS
    else:
        label, why = "fabricate", Said.NO_PASSAGES_WORDS
    return {"negative_label": {"reason": told(call, why.value), "label": label}}


def unanswerable(rubric: Rubric, metrics: Iterable[str]) -> dict[str, Result]:
    """The metrics of the rubric that the baseline has no rule for, with that as their result."""
    if rubric.criterion is None or rubric.criterion.offline is not Offline.NONE:
        return {}
    return {name: Result.not_applicable("baseline_has_no_rule") for name in metrics}


def stand_in(call: JudgeCall) -> dict[str, Any]:
    """The share of words on the criterion's scale, turned round where less is better; between two levels the lower
    of the shares counts, so that a half is no yes."""
    terms = call.rubric.criterion
    if terms is None:
        raise ValueError(f"{call.rubric.family} is no criterion")
    grade = SCORERS[terms.offline](call)
    (metric,) = call.rubric.metrics
    scale = metric.read_scale()
    share = (grade.level - 1) / 4 if scale.levels else grade.unit
    place = math.ceil(share * scale.width - 0.5) if scale.levels else share * scale.width
    value = scale.low + place if terms.direction is Direction.HIGHER else scale.high - place
    reason = told(call, joined(grade.reason, Said.COUNTED.of(offline=str(terms.offline))))
    score = int(value) if scale.levels else value
    return {metric.name: {"reason": reason, "score": score}}


NAME = "baseline"
BASELINE_VERSION = 3  # rises when its levels would move, or the texts and places of its claims
DESCRIPTION = Bilingual(
    "Offline baseline: compares words with the reference and the contexts, without a model. "
    "A yardstick for real judges, not a judgement.",
    "오프라인 기준선: 모델 없이 낱말을 기대 답변과 문단에 견줍니다. 실제 판정관을 견주는 잣대이지 판정이 아닙니다.",
)


ANSWERS: Mapping[tuple[str, str], Callable[[JudgeCall], dict[str, Any]]] = {
    ("answer_quality", ""): graded,
    ("negative_questions", ""): labelled_negative,
    ("claims", "extract"): claims_of,
    ("claims", "verify"): partial(checked, partial=True),
    ("passages", "rate"): rated_passages,
    ("statements", "extract"): statements_of,
    ("statements", "attribute"): partial(checked, partial=False),
    ("asked_back", "write"): asked_back,
    ("factual_accuracy", "assess"): factual_accuracy,
    ("answer_class", ""): classed_answer,
    ("generation_faithfulness", ""): shares,
    ("answer_relevancy", ""): shares,
    ("regulation_quality", ""): regulation_quality,
    ("nuggets", "assign"): assigned_nuggets,
    # Nothing: words do not tell what somebody may need next.
    ("proposals", "propose"): lambda call: {"suggested_queries": [], "action_items": [], "urgency": "low"},
}
"""How each step of each family is answered (the step is empty in families of one call)."""


def judged(request: JudgeCall) -> JudgeReply:
    """The baseline's reply: the JSON text a remote judge is asked for, no tokens.

    :raises UnknownName: for a family or step that the baseline has no rule for (see :data:`ANSWERS`).
    """
    started = time.monotonic()
    family, step = request.rubric.family, request.ask.step
    rule = stand_in if is_criterion(family) else ANSWERS.get((family, step))
    if rule is None:
        raise UnknownName("baseline rule", f"{family}/{step}", sorted("/".join(known) for known in ANSWERS))
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
