"""Keyword hit and coverage of 100,000 answers beside a bare loop: ``python -m tools.bench.metrics [ANSWERS]``.

Printed per language, with kiwipiepy where it is installed and without: the share of answers that the first tier
settles, the share for which kiwipiepy was asked, and over the settled ones answers per second and the ratio to a bare
loop with ``in`` of the same run. That loop folds nothing, knows no word boundaries, counts negated hits and misses what
is spaced otherwise. Three ways of ours stand beside it:

- *as figures*: whether each keyword occurs and counts, and the two numbers; the question's keywords are compiled once.
  This is what is compared with a third of the bare loop.
- *as results*: the two metrics called one after the other, each giving a result with status and value. They share one
  look at the answer, and places and tiers are not looked up.
- *with findings read*: a run stores where and by which tier each keyword was found, so this is its path, before the
  rows are written, which takes longer than all of it.

CPU time of this process. The ways take turns over slices of the answers, so that what else the machine does meets all
of them, and of each slice the best of five counts; nothing is asserted.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evaluation.core.registry import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics import normalise
from evaluation.metrics.keyword_coverage import keyword_coverage, keyword_hit, keyword_set

ANSWERS, KEYWORDS, QUESTIONS = 100_000, 5, 500
TRIES, SLICE = 5, 2_000
SENTENCES = {"English": 5, "Korean": 6}  # of an answer: about 60 words, or 45 longer Korean ones
TEXTS = {
    "English": """The fund tracks an index of large companies and pays a dividend every quarter.
Its benchmark changed last spring when the board lowered the expense ratio.
Investors hold their shares with a custodian bank in the city of their choice.
Reports appear in print and online in the first week of each month.
A warrant gives its holder the right to buy at a fixed price.
The duration of the bonds fell as the manager sold the longer ones.
Costs are charged daily and are part of the price.
Rebalancing happens twice a year, in June and in December.
The prospectus lists all risks on its first two pages.""",
    "Korean": """펀드는 대형주 지수를 추종하며 매분기 배당을 지급합니다.
보수는 연 수준으로 낮은 편이고 운용사는 자산을 직접 관리합니다.
투자자는 판매사에서 신청서를 제출하고 계좌를 개설합니다.
위탁 수수료는 매수할 때 계좌에서 함께 빠져나갑니다.
등록금 고지서는 학기 초에 누리집에서 내려받습니다.
장학금은 학기마다 심사하여 다음 달에 지급합니다.
기준일이 지나면 환매대금이 다음 영업일에 입금됩니다.
채권의 만기가 길수록 가격은 금리에 더 크게 움직입니다.
공모주 배정 결과는 청약이 끝난 뒤 공시합니다.""",
}
TERMS = {
    "English": "dividend benchmark quarter expense_ratio custodian_bank warrant prospectus yield_curve hedge "
    "duration coupon rebalancing index shares spread",
    "Korean": "배당 지수 보수 운용사 자산 판매사 수수료 등록금_고지서 장학금 환매대금 기준가격 선물 채권 공모주 "
    "만기 위탁_수수료 신용등급",
}
RESPACED_SHARE = 0.02
RESPACED = "등록 금고지서는 누리집에 있습니다."
Row = tuple[QuestionSpec, AnswerSpec]
Way = Callable[[Sequence[Row]], None]


@dataclass(frozen=True)
class Figures:
    """Seconds of each way through all answers, and shares of answers between 0 and 1."""

    hit_alone: float
    bare: float
    compiled: float
    metrics: float
    read: float
    settled: float
    analysed: float


def rows(language: str, count: int) -> list[Row]:
    """Answers of random sentences in the language, each to a question with five keywords; in some of the Korean ones
    a keyword stands with another spacing."""
    draw = random.Random(7)
    sentences, terms = TEXTS[language].splitlines(), [term.replace("_", " ") for term in TERMS[language].split()]
    questions = [
        QuestionSpec(id=str(n), category="c", text="?", keywords=tuple((t,) for t in draw.sample(terms, KEYWORDS)))
        for n in range(QUESTIONS)
    ]
    made = []
    for n in range(count):
        spoken = draw.sample(sentences, SENTENCES[language])
        spoken += [RESPACED] if language == "Korean" and draw.random() < RESPACED_SHARE else []
        made.append((questions[n % QUESTIONS], AnswerSpec(" ".join(spoken))))
    return made


def bare(answers: Sequence[Row]) -> None:
    """What the sources do: a loop with ``in``."""
    for question, answer in answers:
        text, keywords = answer.text, question.keywords
        found = sum(keyword in text for (keyword,) in keywords)
        _ = (1.0 if found else 0.0, found / len(keywords))


def hit_alone(answers: Sequence[Row]) -> None:
    """The bare loop that stops at the first keyword."""
    for question, answer in answers:
        text = answer.text
        _ = 1.0 if any(keyword in text for (keyword,) in question.keywords) else 0.0


def compiled(answers: Sequence[Row]) -> None:
    """Hit and coverage as numbers."""
    for question, answer in answers:
        occurring, found = keyword_set(question.keywords, "tiers").occurring(answer.text)
        _ = (1.0 if found else 0.0, found / len(occurring))


def metrics(answers: Sequence[Row]) -> None:
    """The two metrics called directly: results with status and value, whose findings nobody reads."""
    settings = RuleSettings()
    for question, answer in answers:
        keyword_hit(question, answer, settings)
        keyword_coverage(question, answer, settings)


def read(answers: Sequence[Row]) -> None:
    """The two metrics with all findings and details, as a run stores them."""
    settings = RuleSettings()
    for question, answer in answers:
        for metric in (keyword_hit, keyword_coverage):
            result = metric(question, answer, settings)
            _ = (tuple(result.findings), dict(result.detail))


def seconds(ways: Iterable[Way], answers: Sequence[Row], tries: int = TRIES) -> list[float]:
    """CPU seconds of each way through all answers."""
    took = dict.fromkeys(ways, 0.0)
    for first in range(0, len(answers), SLICE):
        part = answers[first : first + SLICE]
        best = dict.fromkeys(took, float("inf"))
        for _ in range(tries):
            for way in took:
                start = time.process_time()
                way(part)
                best[way] = min(best[way], time.process_time() - start)
        took = {way: took[way] + best[way] for way in took}
    return list(took.values())


def measure(language: str, count: int) -> Figures:
    """The ways over the answers that the first tier settles; reading findings is measured on a hundredth of them."""
    answers = rows(language, count)
    settled, asked = [], 0
    for question, answer in answers:
        wanted = keyword_set(question.keywords, "tiers")
        if None not in wanted.settled(answer.text):
            settled.append((question, answer))
            continue
        before = normalise.analysed()
        wanted.occurring(answer.text)
        asked += normalise.analysed() > before
    took = [each * count / len(settled) for each in seconds((hit_alone, bare, compiled, metrics), settled)]
    sample = settled[: max(len(settled) // 100, 1)]
    return Figures(
        *took,
        read=seconds([read], sample, 1)[0] * count / len(sample),
        settled=len(settled) / count,
        analysed=asked / count,
    )


def main(count: int) -> None:
    """Print a block of lines per language."""
    print(f"{count:,} answers, {KEYWORDS} keywords each; Korean read with {normalise.analysis()}")
    for language in TEXTS:
        f = measure(language, count)
        print(f"{language}: first tier settles {f.settled:.1%}, kiwipiepy asked for {f.analysed:.1%}; of the settled:")
        for name, took in (
            ("bare loop, hit alone", f.hit_alone),
            ("bare loop, hit and coverage", f.bare),
            ("hit and coverage as figures", f.compiled),
            ("the two metrics as results", f.metrics),
            ("the same with findings read", f.read),
        ):
            print(f"  {name:28} {count / took:>10,.0f} answers/s, ratio {f.bare / took:.3f}", flush=True)


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS
    if normalise.kiwi_installed:
        main(size)
        normalise.kiwi_installed = False
    main(size)
