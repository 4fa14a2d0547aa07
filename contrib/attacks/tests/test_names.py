"""Attack names in stored rows: a change makes stored rows unreadable and needs a migration."""

from __future__ import annotations

from contrib.attacks.attacker import AttackKind


def test_attack_kinds_keep_their_names() -> None:
    assert " ".join(AttackKind) == "canary injection breakout zero_width base64 empty flattery padding"
