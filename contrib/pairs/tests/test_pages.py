"""The pages of comparisons side by side."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from contrib.pairs.figures import export_pairs
from contrib.pairs.models import Pair, PairMember, PairSet, Preference
from contrib.pairs.services import import_pairs
from contrib.pairs.tests.site import pair_set_of
from evaluation.messages.explanations import explain_reason
from evaluation.models import Context, User
from tests.factories import make_answer_set, make_scored_run
from tests.pages.markup import compact
from tests.pages.world import World, make_world

pytestmark = pytest.mark.django_db
QUERIES = 17  # of the page of a comparison, however many pairs there are


@pytest.fixture
def world() -> World:
    return make_world()


def test_a_reviewer_rates_a_pair_and_is_told_when_all_are_done(world: World) -> None:
    client, pk = world.client("member"), pair_set_of(world).pk
    page = client.get(reverse("pairs-rate", args=[pk])).content.decode()
    assert "Because of A." in page
    assert "Because of B." in page
    assert "alpha" not in page
    assert "beta" not in page
    pair = pair_set_of(world).pairs.get()
    said = {"pair": pair.pk, "value": "-2", "reason": "clearer", "seconds": "4.5"}
    assert client.post(reverse("pairs-prefer", args=[pk]), said).url == reverse("pairs-rate", args=[pk])
    stored = Preference.objects.get()
    assert abs(stored.value or 0) == 2
    assert (stored.reason, stored.seconds, stored.rater) == ("clearer", 4.5, world.people["member"])
    assert "compared all pairs" in client.get(reverse("pairs-rate", args=[pk])).content.decode()
    assert f"?pair={pair.pk}" in client.get(reverse("pairs-rate", args=[pk])).content.decode()


def test_a_missing_choice_is_said_and_nothing_is_stored(world: World) -> None:
    pair = pair_set_of(world).pairs.get()
    response = world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk})
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert not Preference.objects.exists()


def test_what_was_entered_stays_in_a_form_that_was_refused(world: World) -> None:
    client, pair = world.client("member"), pair_set_of(world).pairs.get()
    address = reverse("pairs-prefer", args=[pair_set_of(world).pk])
    long = "line\r\n" * 1_000  # browsers count a line break as one character and send two
    refused = client.post(address, {"pair": pair.pk, "value": "-2", "reason": long + "and more " * 12})
    assert refused.status_code == 409
    page = compact(refused.content.decode())
    assert "and more" in page
    assert 'value="-2" required checked' in page
    without_choice = client.post(address, {"pair": pair.pk, "reason": "because"})
    assert without_choice.status_code == 400
    assert ">because</textarea>" in without_choice.content.decode()
    assert not Preference.objects.exists()
    assert client.post(address, {"pair": pair.pk, "value": "-2", "reason": long}).status_code == 302
    assert len(Preference.objects.get().reason) == 5_000 - 1  # without the last line break


def test_what_a_browser_keeps_of_a_pair_is_one_persons_and_ends_with_the_preference(world: World) -> None:
    client, pair = world.client("member"), pair_set_of(world).pairs.get()
    shown, me = reverse("pairs-rate", args=[pair_set_of(world).pk]), world.people["member"].pk
    assert f'data-keep="pair.{pair.pk}.{me}.0"' in client.get(shown).content.decode()
    client.post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk, "value": "1"})
    stands = Preference.objects.get().pk
    assert f'data-keep="pair.{pair.pk}.{me}.{stands}"' in client.get(f"{shown}?pair={pair.pk}").content.decode()


def test_a_lead_makes_a_comparison_of_two_systems_and_reads_it(world: World) -> None:
    other = make_scored_run(make_answer_set(world.question_set))
    User.objects.filter(pk=world.people["member"].pk).update(first_name="Maya Lindqvist")
    client = world.client("lead")
    page = client.get(reverse("pair-new"), {"run": world.run.pk}).content.decode()
    assert str(other) in page
    assert "Maya Lindqvist" in page
    said: dict[str, Any] = {
        "run_a": world.run.pk, "run_b": other.pk, "name": "Round 1", "size": 3,
        "reviewers": [world.people["member"].pk],
    }  # fmt: skip
    response = client.post(reverse("pair-new"), said)
    made = PairSet.objects.get(name="Round 1")
    assert response.url == reverse("pairs", args=[made.pk])
    assert "Nobody has compared anything yet" in client.get(response.url).content.decode()
    again = client.post(reverse("pair-new"), said)
    assert "Choose another name" in again.content.decode()


def test_results_name_the_systems_for_leads_alone(world: World) -> None:
    pair = pair_set_of(world).pairs.get()
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), {"pair": pair.pk, "value": "1"})
    page = world.client("lead").get(reverse("pairs", args=[pair_set_of(world).pk])).content.decode()
    assert "alpha" in page
    assert "1 person" in page
    told = world.client("member").get(reverse("pairs", args=[pair_set_of(world).pk]), follow=True).content.decode()
    assert "alpha" not in told


def test_a_closed_comparison_takes_nothing_and_opens_again(world: World) -> None:
    lead, pk = world.client("lead"), pair_set_of(world).pk
    lead.post(reverse("pairs-close", args=[pk]))
    pair = pair_set_of(world).pairs.get()
    refused = world.client("member").post(reverse("pairs-prefer", args=[pk]), {"pair": pair.pk, "value": "1"})
    assert refused.status_code == 409
    lead.post(reverse("pairs-close", args=[pk]))
    assert world.client("member").post(reverse("pairs-prefer", args=[pk]), {"pair": pair.pk, "value": "1"}).url


def test_the_number_of_queries_does_not_grow(world: World, django_assert_num_queries: Any) -> None:
    client = world.client("member")
    path = reverse("pairs-rate", args=[pair_set_of(world).pk])
    client.get(reverse("pair-list"))
    with django_assert_num_queries(8):
        client.get(path)


def test_a_lead_who_rates_too_sees_neither_systems_nor_values_before_the_last_pair(world: World) -> None:
    member, lead, pk = world.client("member"), world.client("lead"), pair_set_of(world).pk
    PairMember.objects.create(pair_set=pair_set_of(world), reviewer=world.people["lead"])
    said = {"pair": pair_set_of(world).pairs.get().pk, "value": "1"}
    member.post(reverse("pairs-prefer", args=[pk]), said)
    page = lead.get(reverse("pairs", args=[pk])).content.decode()
    assert "Rate all your pairs first" in page
    assert "alpha" not in page
    lead.post(reverse("pairs-prefer", args=[pk]), said)
    assert "alpha" in lead.get(reverse("pairs", args=[pk])).content.decode()


def test_a_lead_reads_every_preference_with_its_reason_and_how_far_everybody_is(
    world: World, django_assert_num_queries: Any
) -> None:
    pair = pair_set_of(world).pairs.get()
    said = {"pair": pair.pk, "value": "2", "reason": "=cmd; the other one invents"}
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), said)
    kept = Preference.objects.get()
    lead = Client(headers={"accept-language": "en"})
    lead.force_login(world.people["lead"])
    path = reverse("pairs", args=[pair_set_of(world).pk])
    page = compact(lead.get(path).content.decode())
    assert ("A much better" if kept.value == -2 else "B much better") in page
    assert "the other one invents</q>" in page
    assert "Because of A." in page
    assert f"{world.people['member'].username} 1 / 1" in page
    with django_assert_num_queries(QUERIES):
        lead.get(path)
    for number in range(30):
        Pair.objects.create(pair_set=pair.pair_set, external_id=f"x{number}", position=number + 2, question_text="Q?")
    with django_assert_num_queries(QUERIES):
        assert 'rel="next"' in lead.get(path).content.decode()
    assert lead.get(path, {"page": "2"}).content.decode().count("Both answers") == 6  # 31 pairs, 25 on a page


@pytest.mark.parametrize(("name", "default"), [("pairs-export", "csv"), ("api-pairs-export", "jsonl")])
def test_preferences_are_exported_with_reasons_and_come_back_as_they_were(
    world: World, name: str, default: str
) -> None:
    pair, lead, path = pair_set_of(world).pairs.get(), world.client("lead"), reverse(name, args=[pair_set_of(world).pk])
    said = {"pair": pair.pk, "value": "2", "reason": "=cmd; 다른 쪽은 지어냈습니다"}
    world.client("member").post(reverse("pairs-prefer", args=[pair_set_of(world).pk]), said)
    files = {kind: b"".join(lead.get(path, {"format": kind}).streaming_content) for kind in ("csv", "xlsx", "jsonl")}
    assert f'"pairs-{pair_set_of(world).pk}.{default}"' in lead.get(path).headers["Content-Disposition"]
    assert files["csv"].startswith(b"\xef\xbb\xbf")
    (row,) = csv.DictReader(io.StringIO(files["csv"].decode("utf-8-sig")))
    assert (row["system_a"], row["answer_a"], row["reason"]) == (
        "alpha",
        "Because of A.",
        "'=cmd; 다른 쪽은 지어냈습니다",
    )
    sheet = openpyxl.load_workbook(io.BytesIO(files["xlsx"])).active
    assert sheet is not None
    cells = dict(zip([cell.value for cell in sheet[1]], [cell.value for cell in sheet[2]], strict=True))
    assert cells["reason"] == "'=cmd; 다른 쪽은 지어냈습니다"
    assert not any(row[f"{name}_{side}"] for name in ("contexts", "chunk_ids") for side in "ab")  # of no run
    done = import_pairs(world.project, files["jsonl"], "pairs.jsonl", "copy")
    assert (done.pairs, done.human) == (1, 1)
    copy = Preference.objects.get(pair__pair_set__name="copy")
    kept = Preference.objects.get(pair=pair)
    assert (copy.value, copy.reason, copy.author) == (kept.value, kept.reason, world.people["member"].username)


def test_preferences_over_answers_of_runs_are_exported_with_passages_and_their_ids(world: World) -> None:
    one, other = (make_answer_set(world.question_set, texts=[text]) for text in ("Said.", "=Said too."))
    a, b = (made.answers.order_by("question__position")[0] for made in (one, other))
    Context.objects.create(answer=a, position=1, text="No id.")
    Context.objects.create(answer=a, position=2, chunk_id="c3", text="Third.")
    texts = {"question_text": "Q?", "system_a": "alpha", "system_b": "beta", "text_a": a.text, "text_b": b.text}
    pair = pair_set_of(world).pairs.create(external_id="p2", position=2, answer_a=a, answer_b=b, **texts)
    Preference.objects.create(pair=pair, value=1, origin="x", author="kim")
    files = {name: b"".join(export_pairs(pair_set_of(world), name).chunks) for name in ("csv", "jsonl")}
    (row,) = csv.DictReader(io.StringIO(files["csv"].decode("utf-8-sig"), newline=""))
    assert row["contexts_a"] == "[1] Said.\n\n[2] No id.\n\n[3] Third."
    assert row["chunk_ids_a"] == "[1] c1\n[3] c3"
    assert (row["contexts_b"], row["chunk_ids_b"]) == ("[1] =Said too.", "[1] c1")
    assert [one["chunk_id"] for one in json.loads(files["jsonl"])["answer_a"]["contexts"]] == ["c1", "", "c3"]
    assert import_pairs(world.project, files["jsonl"], "pairs.jsonl", "copy").pairs == 1


def test_a_lead_who_rates_too_exports_nothing_before_the_last_pair(world: World) -> None:
    PairMember.objects.create(pair_set=pair_set_of(world), reviewer=world.people["lead"])
    lead, pk = world.client("lead"), pair_set_of(world).pk
    assert lead.get(reverse("pairs-export", args=[pk])).url == reverse("pairs", args=[pk])
    assert lead.get(reverse("api-pairs-export", args=[pk])).status_code == 409
    assert lead.get(reverse("pairs-export", args=[pk]), {"format": "docx"}).status_code == 404


@pytest.mark.parametrize(("language", "helps"), [("en", "Holds words of the expected answer."), ("ko", "")])
def test_a_workbook_says_reasons_of_judges_in_the_readers_language(world: World, language: str, helps: str) -> None:
    pair, stored = pair_set_of(world).pairs.get(), "기대 답변의 낱말이 있습니다."  # as the offline baseline says it
    judged = {"pair": pair, "by_judge": True}
    Preference.objects.create(**judged, value=1, author="a@1", origin="a", reason=stored)
    Preference.objects.create(**judged, value=None, author="b@1", origin="b", failure="timeout")
    Preference.objects.create(pair=pair, value=1, author="kim", origin="c", reason=stored)
    with override(language):  # the file is written while it is sent, when the language may be another
        made, csv_file, late = (
            export_pairs(pair_set_of(world), "xlsx"),
            export_pairs(pair_set_of(world), "csv"),
            "timeout",
        )
        said = {"a@1": helps or stored, "b@1": explain_reason(late), "kim": stored}
    sheet = openpyxl.load_workbook(io.BytesIO(b"".join(made.chunks))).active
    assert sheet is not None
    header, *rows = (dict(enumerate(cell.value for cell in row)) for row in sheet.iter_rows())
    at = {name: place for place, name in header.items()}
    assert {row[at["author"]]: row[at["reason"]] for row in rows} == said
    table = csv.DictReader(io.StringIO(b"".join(csv_file.chunks).decode("utf-8-sig")))
    assert {row["author"]: row["reason"] for row in table} == {"a@1": stored, "b@1": late, "kim": stored}
