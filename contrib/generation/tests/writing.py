"""A corpus whose passages are told apart by what they are about, and a model behind a real socket that writes questions
about them: for each passage a good one, and a bad one whose kind the passage's number decides."""

from __future__ import annotations

import json
import re
from typing import Any

from aiohttp import web

from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from contrib.generation.models import DraftQuestion
from evaluation.models import Project
from tests.judge_server.actions import Action, completion, fitting
from tests.judge_server.received import Received

Filter = DraftQuestion.Filter
THINGS = ("lamp", "kettle", "ladder", "tent", "drill", "canoe", "harp", "loom", "spade", "scooter")
SEASONS = ("summer", "winter")
BAD = (Filter.LEAKED, Filter.DUPLICATE, Filter.NOT_ANSWERABLE, Filter.ELSEWHERE, Filter.KNOWN)
_ENGLISH = re.compile(r"In (\w+) a (\w+) may be kept for (\d+) days")
_KOREAN = re.compile(r"(\w+)에는 (\w+) 물품을 (\d+)일 동안")


def corpus_of(project: Project, language: str = "en") -> Corpus:
    """Two passages about each thing, a document each."""
    texts = []
    for number, (thing, season) in enumerate((thing, season) for thing in THINGS for season in SEASONS):
        days = 11 + number
        if language == "ko":
            season = {"summer": "여름", "winter": "겨울"}[season]
            text = (
                f"{season}에는 {thing} 물품을 {days}일 동안 가지고 있을 수 있으며, 그 뒤에는 정문 옆 창구에 "
                "저녁 종이 울리기 전까지 돌려주어야 합니다. 늦으면 다음 달에는 아무것도 빌릴 수 없습니다."
            )
        else:
            text = (
                f"In {season} a {thing} may be kept for {days} days by members of the house, and it is returned to the "
                "desk at the gate before the bell rings in the evening."
            )
        texts.append(SourceDocument(f"{thing}-{season}", text, title=f"{thing} {season}"))
    return import_corpus(project, f"house {language}", texts, by=None).corpus


def writer() -> Action:
    """The model."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await fitting()(request, http)
        return web.json_response(completion(request, json.dumps(said(request.block)), as_asked=True))

    return act


def said(block: dict[str, Any]) -> dict[str, Any]:
    """Its reply to what it is shown."""
    if "count" in block:
        return {"questions": _written(block)}
    if "passages" in block:
        return _located(block["question"], [one["text"] for one in block["passages"]])
    return {"known": (known := "shines" in block["question"]), "answer": "It is the moon." if known else ""}


def facts(passage: str) -> tuple[str, str, int]:
    """Season, thing and days of a passage."""
    found = _ENGLISH.search(passage) or _KOREAN.search(passage)
    assert found is not None
    return found[1], found[2], int(found[3])


def _written(block: dict[str, Any]) -> list[dict[str, Any]]:
    known = [facts(one["text"]) for one in block["passages"]]
    season, thing, days = known[0]
    if "NOT tell" in block["kind"]:
        return [_question(f"Who made the {thing} of {season}?", "The documents do not tell.", [])]
    if len(known) > 1:
        total = sum(one[2] for one in known)
        names = " and ".join(f"{one[1]} of {one[0]}" for one in known)
        return [_question(f"For how many days altogether may one keep {names}?", f"{total} days.", [f"{total} days"])]
    if block["language"] == "Korean":
        good = _question(f"{season}철에 회원은 {thing}을(를) 며칠이나 쓸 수 있나요?", f"{days}일입니다.", [f"{days}일"])
    else:
        good = _question(f"How long can one borrow the {thing} when it is {season}?", f"{days} days.", [f"{days} days"])
    return [good, _bad(BAD[days % len(BAD)], season, thing, days, good)][: block["count"]]


def _bad(kind: str, season: str, thing: str, days: int, good: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case Filter.LEAKED:
            return _question(f"According to the passage, how long is the {thing} of {season} kept?", "Long.", ["Long"])
        case Filter.DUPLICATE:
            return good | {"question": good["question"].replace("?", " now?")}
        case Filter.NOT_ANSWERABLE:
            return _question(f"What colour has the {thing} in {season}?", "It is red.", ["red"])
        case Filter.ELSEWHERE:
            return _question(f"Where does a {thing} of {season} and all else go?", f"{thing} {season}: desk.", ["desk"])
    return _question(f"What shines at night on the {thing} in {season}?", f"{thing} {season}: moon.", ["moon"])


def _question(text: str, answer: str, keywords: list[str]) -> dict[str, Any]:
    return {"question": text, "answer": answer, "keywords": keywords, "required_info": [answer]}


def _located(question: str, passages: list[str]) -> dict[str, Any]:
    known = [facts(one) for one in passages]
    own = [number for number, one in enumerate(known, 1) if one[1] in question and one[0] in question]
    if "colour" in question or "Who made" in question:
        return {"answerable": False, "needed": [], "alone": []}
    if "all else" in question:
        return {"answerable": True, "needed": [1], "alone": list(range(1, len(passages) + 1))}
    if "altogether" in question:
        pairs = [number for number, one in enumerate(known, 1) if f"{one[1]} of {one[0]}" in question]
        return {"answerable": True, "needed": pairs, "alone": []}
    return {"answerable": True, "needed": own, "alone": own}
