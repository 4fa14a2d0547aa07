"""No URL, export or command reveals a candidate's hold-out verdicts or a locked label."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judges.shipped import profile_row
from evaluation.judging.calls import JudgeReply
from evaluation.models import RoleGrant, RubricVersion, Run, Score, User
from evaluation.models.run_spec import RunSpec
from evaluation.network.outcomes import Outcome
from evaluation.runs.creation import prepare_run
from evaluation.worker.lifecycle import planned_units
from review.calibration import holdout_rules
from review.models import GoldItem, HoldoutTest
from tests.evaluation.rest.clients import Caller
from tests.factories import make_user
from tests.prepared import analyze
from tests.review.builders import metric, score
from tests.review.calibration.addresses import addresses, body_of
from tests.review.calibration.labelled import ScriptedJudge
from tests.review.calibration.place import CalibrationSetup, scripted_judge
from tests.review.calibration.world import World

pytestmark = pytest.mark.django_db
SECRET = "Only the hold-out was told this"
SUPERUSER = "superuser"
NO_GET = {405, 404, 403, 302, 400}
SCHEMA = "/api/v1/schema/"  # of no rows; it takes a second


class LeakingJudge(ScriptedJudge):
    """A judge that adds a secret sentence to every verdict of the candidate."""

    async def call(self, request: Any) -> JudgeReply:
        reply = await super().call(request)
        values = json.loads(reply.raw)
        if "LIKE IT" in request.rubric.instruction:
            for value in values.values():
                value["reason"] = SECRET
        return JudgeReply(Outcome.OK, raw=json.dumps(values))


class LabelledSite:
    """A project with recognisable labels, and one with a rejected candidate that also judged open answers in a run."""

    def __init__(self, world: World, place: CalibrationSetup) -> None:
        self.world, self.place = world, place
        place.script = LeakingJudge()
        with scripted_judge(place):
            self.version: RubricVersion = place.create_draft("LIKE IT")
            place.test_version(self.version)
        self.run = self._judge_open_answers()
        holdout_answer = GoldItem.objects.filter(gold_set=place.gold, split="hold_out").order_by("pk")[0].answer_id
        locked = world.answers[world.locked[0]]
        gold_sets = {world.gold.pk, place.gold.pk}
        self.subjects = {
            "runs": {world.run.pk, self.run.pk},
            "run": {self.run.pk},
            "answers": {locked.pk, holdout_answer},
            "items": {world.queue.items.get(answer=locked).pk},
            "calibration": gold_sets,
            "gold-sets": gold_sets,
            "question-sets": {world.run.answer_set.question_set_id},
            "rubrics": {self.version.pk},
            "rubricversion": {self.version.pk},
        }

    def _judge_open_answers(self) -> Run:
        place, version = self.place, self.version
        profile = profile_row(place.run.project, "graphrag")
        run = prepare_run(
            place.run.answer_set, profile, RunSpec(rubrics=[f"answer_quality@{version.version}"]), judge=place.judge
        )
        units = planned_units(run)
        judged_answers = [unit.answer for unit in units if unit.run_judge and unit.run_judge.rubric_version == version]
        holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
        assert judged_answers
        for answer in judged_answers:
            assert answer is not None
            assert answer.pk not in holdout_answers
            score(run, answer, metric("correctness"), 3, judge_version=place.judge, rubric_version=version)
        Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
        return Run.objects.get(pk=run.pk)

    def addresses(self) -> Iterator[str]:
        """Every URL, filled with the named objects, otherwise with the first one."""
        for address in sorted(set(addresses()) - {SCHEMA, reverse("logout")}):
            kind = next((kind for kind in self.subjects if f"/{kind}/%d" in address), "")
            subjects = sorted(self.subjects.get(kind, {1})) if "%d" in address else [0]
            yield from (address % pk if "%d" in address else address for pk in subjects)


@pytest.fixture(scope="module")
def site(prepared_world: World) -> LabelledSite:
    site = LabelledSite(prepared_world, CalibrationSetup(200))  # so many that a hundred are held out
    analyze()
    return site


def test_no_table_contains_the_secret(site: LabelledSite, tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    call_command("dumpdata", output=str(out))
    assert SECRET not in out.read_text(encoding="utf-8")
    assert site.place.script.calls  # the judge has said it


@pytest.mark.parametrize(
    "roles",
    [(Role.EVALUATOR, Role.LEAD), [Role.VIEWER], [Role.REVIEWER], [Role.ADMIN], [SUPERUSER]],
    ids=" and ".join,
)
@pytest.mark.slow
def test_no_url_reveals_or_reads_sealed_verdicts(
    site: LabelledSite, roles: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise AssertionError("a sealed verdict was read")

    monkeypatch.setattr(holdout_rules, "unseal", fail)
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)  # what is refused is logged at length
    for role in roles:
        client = Client()
        client.force_login(make_member(site, role))
        labels = collect_visible_labels(site, client)
        # Open labels are told, so that this test would find locked ones.
        assert labels == (set() if role == Role.REVIEWER else set(site.world.unlocked))
        for form in ("json", "jsonl", "csv", "xlsx", "md", "html", "junit"):
            reply = client.get(reverse("run-report", args=[site.run.pk]), {"format": form})
            assert reply.status_code in {200, *NO_GET}
            assert SECRET.encode() not in body_of(reply), form
        assert client.get(reverse("search"), {"q": SECRET}).status_code == 200


def collect_visible_labels(site: LabelledSite, client: Client) -> set[int]:
    """Numbers of the answers whose label appears at some URL."""
    ok_count, labels = 0, set[int]()
    for address in site.addresses():
        reply = client.get(address)
        assert reply.status_code < 500, address
        body = body_of(reply)
        assert SECRET.encode() not in body, address
        ok_count += reply.status_code == 200
        visible = site.world.labels_in(body.decode("utf-8", "replace"))
        assert not visible & set(site.world.locked), address
        labels |= visible
    assert ok_count > 20
    return labels


def make_member(site: LabelledSite, role: str) -> User:
    """User with this role in both projects."""
    if role == SUPERUSER:
        person = make_user()
        User.objects.filter(pk=person.pk).update(is_superuser=True, is_staff=True)
        return person
    person = make_user(Role(role), site.place.run.project)
    RoleGrant.objects.create(user=person, project=site.world.project, role=Role(role))
    return person


@pytest.mark.slow
def test_no_command_reveals_the_secret(site: LabelledSite, tmp_path: Path) -> None:
    number, project = str(site.run.pk), ["--project", site.place.run.project.name]
    commands: list[list[str]] = [
        ["results", number],
        ["agreement", number, "--format", "json"],
        ["corrected_scores", number],
        ["export_report", number, "--output", str(tmp_path / "r.json")],
        ["export_records", number, "--output", str(tmp_path / "r.jsonl")],
        ["gold_set", "show", "gold", "--format", "json", *project],
        ["gold_set", "export", "gold", "--output", str(tmp_path / "g.jsonl"), *project],
        ["judge_card", "judge", "--format", "json", *project],
        ["rubric", "list", "answer_quality", "--judge", "judge", *project],
        [
            *("test_prompt", f"answer_quality@{site.version.version}", "--judge", "judge"),
            *("--gold", "gold", "--dry-run", *project),
        ],
    ]
    out = StringIO()
    for words in commands:
        call_command(*words, stdout=out)
    written = out.getvalue() + "".join(file.read_text(encoding="utf-8") for file in tmp_path.iterdir())
    assert SECRET not in written
    holdout_texts = set(GoldItem.objects.filter(split="hold_out").values_list("answer__text", flat=True))
    exported = (tmp_path / "g.jsonl").read_text(encoding="utf-8")
    assert not [text for text in holdout_texts if f'"{text}"' in exported]


def test_agreement_of_the_candidate_excludes_holdout_answers(site: LabelledSite) -> None:
    """Figures of the candidate's run rest on open answers only, before and after a hold-out test."""
    caller = Caller(Role.LEAD, site.place.run.project)
    figures = caller.get(f"runs/{site.run.pk}/agreement/", resamples=0).json()["judges"].get(str(site.place.judge), {})
    holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    assert not Score.objects.filter(rubric_version=site.version, answer__in=holdout_answers).exists()
    judged_count = Score.objects.filter(rubric_version=site.version).values("answer").distinct().count()
    assert all(row["n"] + row.get("built_on", 0) <= judged_count for row in figures.values())
    assert HoldoutTest.objects.count() == 1
