"""Units and counters behind numbers: which spellings are one unit, and which Hangul only counts."""

from __future__ import annotations

import re
from functools import lru_cache

from evaluation.metrics.boundaries import hangul_run
from evaluation.metrics.particles import is_particle_chain

_SAME = {
    **dict.fromkeys(("퍼센트", "프로", "percent"), "%"),
    **dict.fromkeys(("bp", "bps", "베이시스포인트"), "bp"),
    **dict.fromkeys(("won", "krw"), "원"),
    "퍼센트포인트": "%p",
}
_UNIT = re.compile(
    r"\s?(%p|퍼센트포인트|%|퍼센트|프로|(?:percent|bps?|won|krw)(?![a-z])|베이시스포인트|원"
    r"|(?:[kmgt]b|[kmg]?hz|[km]?g|[kcm]?m[23]?|ml|l|kwh?|usd)(?![a-z0-9]))"
)
_COUNTED = (
    "원 달러 유로 엔 위안 명 인 개 년 월 일 시 분 초 회 번 건 주 배 세 살 권 장 대 곳 종 쪽 점 위 차 조 항 호 평 톤 층 "
    "퍼센트포인트 베이시스포인트 "
    "학기 학점 학년 개월 시간 가지 종목 퍼센트 프로 포인트 이상 이하 미만 초과 정도 지수 호실"
)
_COUNTERS = tuple(sorted(_COUNTED.split(), key=len, reverse=True))
_BEHIND_COUNTERS = ("간", "째", "대", "씩", "당", "짜리", "여", "쯤", "가량", "이내")


def unit_at(text: str, place: int) -> tuple[str, int] | None:
    """The one spelling of the unit that starts at ``place`` (after at most one space) and where it ends."""
    match = _UNIT.match(text, place)
    if match is None:
        return None
    run = hangul_run(text, match.start(1))
    if run and not starts_with_counter(run):
        return None  # 프로그램 and 원산지 are no units
    return _SAME.get(match[1], match[1]), match.end()


@lru_cache(maxsize=4096)
def starts_with_counter(run: str) -> bool:
    """Whether Hangul behind a number only counts: 명, 개월간, 원으로, 여 명; not 인버스 or 선물."""
    rest = run.removeprefix("여")
    for counter in _COUNTERS:
        if rest.startswith(counter):
            behind = rest[len(counter) :]
            if not behind or is_particle_chain(counter[-1], behind):
                return True
            if any(
                behind == more or (behind.startswith(more) and is_particle_chain(more[-1], behind[len(more) :]))
                for more in _BEHIND_COUNTERS
            ):
                return True
    return rest == "" and run == "여"
