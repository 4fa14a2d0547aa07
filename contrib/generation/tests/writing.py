"""A corpus of passages about different topics, and a model behind a real socket that writes questions about them.

It writes a good and a bad question for each passage; the passage's number decides the kind of the bad one."""

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
from tests.judge_server.actions import Action, completion, valid_reply
from tests.judge_server.received import ReceivedRequest

Filter = DraftQuestion.Filter
TOPICS = ("lamp", "kettle", "ladder", "tent", "drill", "canoe", "harp", "loom", "spade", "scooter")
SEASONS = ("summer", "winter")
BAD = (Filter.LEAKED, Filter.DUPLICATE, Filter.NOT_ANSWERABLE, Filter.ELSEWHERE, Filter.KNOWN)
_ENGLISH = re.compile(r"In (\w+) a (\w+) may be kept for (\d+) days")
_KOREAN = re.compile(r"(\w+)에는 (\w+) 물품을 (\d+)일 동안")


def corpus_of(project: Project, language: str = "en") -> Corpus:
    """Two passages about each topic, one document each."""
    texts = []
    for number, (topic, season) in enumerate((topic, season) for topic in TOPICS for season in SEASONS):
        days = 11 + number
        if language == "ko":
            season = {"summer": "여름", "winter": "겨울"}[season]
            text = (
                f"{season}에는 {topic} 물품을 {days}일 동안 가지고 있을 수 있으며, 그 뒤에는 정문 옆 창구에 "
                "저녁 종이 울리기 전까지 돌려주어야 합니다. 늦으면 다음 달에는 아무것도 빌릴 수 없습니다."
            )
        else:
            text = (
                f"In {season} a {topic} may be kept for {days} days by members of the house, and it is returned to the "
                "desk at the gate before the bell rings in the evening."
            )
        texts.append(SourceDocument(f"{topic}-{season}", text, title=f"{topic} {season}"))
    return import_corpus(project, f"house {language}", texts, by=None).corpus


def writer() -> Action:
    """A scripted model that writes and checks questions."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        return web.json_response(completion(request, json.dumps(_reply(request.block)), as_asked=True))

    return act


def _reply(block: dict[str, Any]) -> dict[str, Any]:
    """Reply to a request block."""
    if "count" in block:
        return {"questions": _write_questions(block)}
    if "passages" in block:
        return _locate(block["question"], [passage["text"] for passage in block["passages"]])
    return {"known": (is_known := "shines" in block["question"]), "answer": "It is the moon." if is_known else ""}


def facts(passage: str) -> tuple[str, str, int]:
    """Season, topic and days of a passage."""
    match = _ENGLISH.search(passage) or _KOREAN.search(passage)
    assert match is not None
    return match[1], match[2], int(match[3])


def _write_questions(block: dict[str, Any]) -> list[dict[str, Any]]:
    passage_facts = [facts(entry["text"]) for entry in block["passages"]]
    season, topic, days = passage_facts[0]
    if "NOT tell" in block["kind"]:
        return [_question(f"Who made the {topic} of {season}?", "The documents do not tell.", [])]
    if len(passage_facts) > 1:
        total = sum(entry[2] for entry in passage_facts)
        names = " and ".join(f"{entry[1]} of {entry[0]}" for entry in passage_facts)
        return [_question(f"For how many days altogether may one keep {names}?", f"{total} days.", [f"{total} days"])]
    if block["language"] == "Korean":
        good_question = _question(
            f"{season}철에 회원은 {topic}을(를) 며칠이나 쓸 수 있나요?", f"{days}일입니다.", [f"{days}일"]
        )
    else:
        good_question = _question(
            f"How long can one borrow the {topic} when it is {season}?", f"{days} days.", [f"{days} days"]
        )
    return [good_question, _bad_question(BAD[days % len(BAD)], season, topic, days, good_question)][: block["count"]]


def _bad_question(kind: str, season: str, topic: str, days: int, good_question: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case Filter.LEAKED:
            return _question(f"According to the passage, how long is the {topic} of {season} kept?", "Long.", ["Long"])
        case Filter.DUPLICATE:
            return good_question | {"question": good_question["question"].replace("?", " now?")}
        case Filter.NOT_ANSWERABLE:
            return _question(f"What colour has the {topic} in {season}?", "It is red.", ["red"])
        case Filter.ELSEWHERE:
            return _question(f"Where does a {topic} of {season} and all else go?", f"{topic} {season}: desk.", ["desk"])
    return _question(f"What shines at night on the {topic} in {season}?", f"{topic} {season}: moon.", ["moon"])


def _question(text: str, answer: str, keywords: list[str]) -> dict[str, Any]:
    return {"question": text, "answer": answer, "keywords": keywords, "required_info": [answer]}


def _locate(question: str, passages: list[str]) -> dict[str, Any]:
    passage_facts = [facts(entry) for entry in passages]
    own = [number for number, entry in enumerate(passage_facts, 1) if entry[1] in question and entry[0] in question]
    if "colour" in question or "Who made" in question:
        return {"answerable": False, "needed": [], "alone": []}
    if "all else" in question:
        return {"answerable": True, "needed": [1], "alone": list(range(1, len(passages) + 1))}
    if "altogether" in question:
        pairs = [number for number, entry in enumerate(passage_facts, 1) if f"{entry[1]} of {entry[0]}" in question]
        return {"answerable": True, "needed": pairs, "alone": []}
    return {"answerable": True, "needed": own, "alone": own}
