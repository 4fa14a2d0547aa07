"""Sealed keys open only with the right secret and origin."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.judges.secrets import seal, unseal
from evaluation.network.origins import parse_origin

ORIGIN = parse_origin("https://llm.example:8000/v1")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=80))
def test_sealed_key_opens_and_is_not_visible(key: str) -> None:
    sealed = seal(key, origin=ORIGIN, secret="s" * 50)
    assert unseal(sealed, origin=ORIGIN, secrets=["s" * 50]) == key
    assert len(key) < 8 or key not in sealed


def test_sealing_a_key_twice_differs() -> None:
    assert seal("sk-1", origin=ORIGIN, secret="s") != seal("sk-1", origin=ORIGIN, secret="s")


@pytest.mark.parametrize("url", ["http://llm.example:8000", "https://llm.example:8001", "https://other.example:8000"])
def test_other_scheme_host_or_port_cannot_unseal(url: str) -> None:
    sealed = seal("sk-1", origin=ORIGIN, secret="s")
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(sealed, origin=parse_origin(url), secrets=["s"])


def test_earlier_secret_unseals_and_a_foreign_one_does_not() -> None:
    sealed = seal("sk-1", origin=ORIGIN, secret="old")
    assert unseal(sealed, origin=ORIGIN, secrets=["new", "old"]) == "sk-1"
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(sealed, origin=ORIGIN, secrets=["new"])


@given(st.integers(0, 200), st.integers(0, 7))
def test_flipped_bit_prevents_unsealing(position: int, bit: int) -> None:
    sealed = seal("sk-1", origin=ORIGIN, secret="s")
    raw = bytearray(base64.urlsafe_b64decode(sealed[2:]))
    raw[position % len(raw)] ^= 1 << bit
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal("1." + base64.urlsafe_b64encode(raw).decode(), origin=ORIGIN, secrets=["s"])


@pytest.mark.parametrize("text", ["", "1.", "1.AAAA", "2.AAAA", "no dot", "1.not base64!", "1.한글"])
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(text, origin=ORIGIN, secrets=["s"])
