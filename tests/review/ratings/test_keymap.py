"""Keys of the review screen: chosen from a closed list, one key for one thing, kept with the person."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from review.ratings.card import DEFAULT_KEYS, KEY_LABELS, REVEAL_ACTIONS, KeyAction, checked_keys, keys_from
from review.ratings.pages.card import user_keys
from tests.pages.world import make_world

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5)


@given(st.dictionaries(st.sampled_from([str(action) for action in KeyAction]) | st.text(), JSON) | JSON)
def test_whatever_is_stored_only_keys_of_the_list_reach_a_page(stored: object) -> None:
    assert set(keys_from(stored)) == set(DEFAULT_KEYS)
    assert set(keys_from(stored).values()) <= set(KEY_LABELS)


@given(st.dictionaries(st.sampled_from([str(action) for action in KeyAction]), st.sampled_from(sorted(KEY_LABELS))))
def test_a_choice_is_kept_whole_or_refused_for_a_key_that_does_two_things(wanted: dict[str, str]) -> None:
    chosen = {action: wanted.get(action, code) for action, code in DEFAULT_KEYS.items()}
    on_card = [code for action, code in chosen.items() if action not in REVEAL_ACTIONS]
    if len(set(on_card)) < len(on_card):
        with pytest.raises(DomainError):
            checked_keys(wanted)
    else:
        assert keys_from(checked_keys(wanted)) == chosen


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"skip": "KeyF"}, "key_used_twice"),
        ({"skip": "<script>"}, "unknown_key"),
        ({"skip": "Enter"}, "unknown_key"),
        ({"publish": "KeyQ"}, "unknown_key_action"),
    ],
)
def test_other_keys_are_refused_with_their_reason(wanted: dict[str, str], code: str) -> None:
    with pytest.raises(DomainError) as refused:
        checked_keys(wanted)
    assert refused.value.code == code


@pytest.mark.django_db
def test_the_choice_is_kept_with_the_person_and_shows_on_the_card() -> None:
    world = make_world()
    client: Client = world.client("member")
    usual = {f"key:{action}": code for action, code in DEFAULT_KEYS.items()}
    assert client.post(reverse("review-keys"), usual | {"key:skip": "KeyQ", "off": "1"}).status_code == 302
    me = world.people["member"]
    me.refresh_from_db()
    assert (me.keymap, me.keys_off) == ({"skip": "KeyQ"}, True)
    assert json.loads(user_keys(me).card)["KeyQ"] == "skip"
    page = client.get(reverse("review-item", args=[world.assignment.pk])).content.decode()
    assert '<kbd class="hide-small">q</kbd>' in page
    assert " data-keys-off" in page
    refused = client.post(reverse("review-keys"), usual | {"key:skip": "<img src=x onerror=alert(1)>"})
    assert refused.status_code == 409
    assert "<img" not in refused.content.decode()
    assert client.post(reverse("review-keys"), {"usual": "1"}).status_code == 302
    me.refresh_from_db()
    assert (me.keymap, me.keys_off) == ({}, False)
