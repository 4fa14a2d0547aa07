"""Names of attacks that stand in rows: a change makes stored rows unreadable and takes a migration."""

from __future__ import annotations

from contrib.attacks.attacker import AttackKind


def test_kinds_of_attacks_keep_their_names() -> None:
    assert " ".join(AttackKind) == "canary injection breakout zero_width base64 empty flattery padding"
