"""Calibrate a judge prompt in the demo, for pictures of the workbench: ``python -m tools.prepared_workbench``.

Uses the database of the settings, which holds the demo. Two generated experts rate every answer of its last run; a
judge behind the tests' server rates a level too leniently until its prompt says otherwise. Prints the address of the
page."""

from __future__ import annotations

import json
import os
from typing import Any

import django


def main() -> None:
    """Prepare it."""
    os.environ["CONCORD_DISPATCHER"] = "local"  # runs are worked on here and by nobody else
    django.setup()
    from django.conf import settings

    from tests.judge_server import JudgeServer

    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        print(prepare(server))


def prepare(server: Any) -> str:
    """The address of the workbench, once all is judged."""
    from aiohttp import web

    from evaluation.criteria.rubrics import draft, propose
    from evaluation.judges.shipped import save_judge
    from evaluation.models import Endpoint, Run
    from evaluation.runs.execution import drain
    from review.calibration.versions import freeze
    from review.calibration.workbench import load_workbench, start_validation_runs
    from review.ratings.import_files import import_ratings
    from tests.judge_server.actions import completion, valid_reply

    run = Run.objects.order_by("-pk")[0]
    answers = list(run.answer_set.answers.select_related("question").order_by("pk"))
    level_by_text = {answer.text: 1 + (answer.pk * 7) % 5 for answer in answers}
    rows = [
        {
            "question_id": rated_answer.question.external_id,
            "sample": rated_answer.sample,
            "metric": "correctness",
            "rater": "human",
        }
        | {
            "author": expert,
            "value": min(5, level_by_text[rated_answer.text] + (rated_answer.pk % 3 == 0) * (expert == "Lee")),
        }
        for rated_answer in answers
        for expert in ("Kim", "Lee")
    ]
    import_ratings(run, "".join(json.dumps(row) + "\n" for row in rows).encode(), "ratings.jsonl", [], "all")

    async def respond(request: Any, http: web.Request) -> web.StreamResponse:
        if request.is_preflight:
            return await valid_reply()(request, http)
        level = level_by_text.get(str(request.block["answer"]), 3)
        if "only partly" not in request.text:
            level = min(5, level + 1 + level % 2)
        reason = "It says what the expected answer says." if level > 3 else "The core is missing or wrong."
        names = list((request.schema or {}).get("properties", {}))
        scores = {name: {"reason": reason, "score": level} for name in names}
        return web.json_response(completion(request, json.dumps(scores), as_asked=True))

    server.behave(respond)
    endpoint = Endpoint.objects.create(name="local model", base_url=server.base_url)
    judge = save_judge(run.project, "local-judge", endpoint, model="local-7b", language="en")
    gold = freeze(run, "team-gold", by=None)
    workbench = load_workbench(gold, judge, "answer_quality")
    shipped = workbench.active.rubric
    instruction = f"{shipped.instruction.rstrip()}\nAn answer that is only partly right is worth 3 at most.\n"
    candidate = draft(
        run.project, shipped.model_copy(update={"instruction": instruction}), by=None, note="Too lenient with halves"
    )
    propose(candidate, judge, by=None)
    for validation_run in start_validation_runs(workbench, candidate, by=None):
        drain(validation_run.pk, seconds=120)
    return f"/calibration/{gold.pk}/?judge={judge.pk}&family=answer_quality&rubric={candidate.pk}"


if __name__ == "__main__":
    main()
