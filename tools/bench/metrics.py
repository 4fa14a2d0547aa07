"""Keyword hit and coverage compared with a bare loop: ``python -m tools.bench.metrics [ANSWERS]``.

Printed per language, with kiwipiepy (if installed) and without: answers per second of CPU time, and the ratio to a bare
loop with ``in`` of the same run. The loop does no case folding, knows no word boundaries, counts negated hits and
misses other spacings. The two metrics share one search of the answer, and give findings as a run stores them."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics import normalise
from evaluation.metrics.keyword_coverage import keyword_coverage, keyword_hit

ANSWERS, KEYWORDS, QUESTIONS = 2_000, 5, 500
TRIES, SLICE = 2, 1_000
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
Contender = Callable[[Sequence[Row]], None]


def rows(language: str, count: int) -> list[Row]:
    """Generate answers of random sentences in the language, each to a question with five keywords; some Korean ones
    hold a keyword with another spacing."""
    draw = random.Random(7)
    sentences, terms = TEXTS[language].splitlines(), [term.replace("_", " ") for term in TERMS[language].split()]
    questions = [
        QuestionSpec(id=str(n), category="c", text="?", keywords=tuple((t,) for t in draw.sample(terms, KEYWORDS)))
        for n in range(QUESTIONS)
    ]
    sampled_rows = []
    for n in range(count):
        answer_sentences = draw.sample(sentences, SENTENCES[language])
        answer_sentences += [RESPACED] if language == "Korean" and draw.random() < RESPACED_SHARE else []
        sampled_rows.append((questions[n % QUESTIONS], AnswerSpec(" ".join(answer_sentences))))
    return sampled_rows


def bare_loop(answers: Sequence[Row]) -> None:
    """Match keywords by a loop with ``in``, as the metrics' sources do."""
    for question, answer in answers:
        text, keywords = answer.text, question.keywords
        hits = sum(keyword in text for (keyword,) in keywords)
        _ = (1.0 if hits else 0.0, hits / len(keywords))


def metrics(answers: Sequence[Row]) -> None:
    """The two metrics with their findings."""
    settings = RuleSettings()
    for question, answer in answers:
        keyword_hit(question, answer, settings)
        keyword_coverage(question, answer, settings)


def seconds(contenders: Iterable[Contender], answers: Sequence[Row], tries: int = TRIES) -> list[float]:
    """Return the CPU seconds of each contender over all answers."""
    totals = dict.fromkeys(contenders, 0.0)
    for start_row in range(0, len(answers), SLICE):
        batch = answers[start_row : start_row + SLICE]
        best = dict.fromkeys(totals, float("inf"))
        for _ in range(tries):
            for contender in totals:
                start = time.process_time()
                contender(batch)
                best[contender] = min(best[contender], time.process_time() - start)
        totals = {contender: totals[contender] + best[contender] for contender in totals}
    return list(totals.values())


def main(count: int) -> None:
    """Print two lines per language."""
    print(f"{count:,} answers, {KEYWORDS} keywords each; Korean read with {normalise.analysis()}")
    for language in TEXTS:
        bare_seconds, metric_seconds = seconds((bare_loop, metrics), rows(language, count))
        print(f"{language}: bare loop {count / bare_seconds:,.0f} answers/s", flush=True)
        print(
            f"  hit and coverage {count / metric_seconds:,.0f} answers/s, ratio {bare_seconds / metric_seconds:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS
    if normalise.kiwi_installed:
        main(size)
        normalise.kiwi_installed = False
    main(size)
