"""The plan of the packages is the contract's."""

from __future__ import annotations

from tools.plan_picture import PICTURE, floors, picture


def test_the_picture_is_fresh() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "python -m tools.plan_picture draws it anew"


def test_every_package_of_the_contract_has_a_room() -> None:
    drawn = picture()
    assert all(f">{package}</text>" in drawn for line in floors() for package in line)
