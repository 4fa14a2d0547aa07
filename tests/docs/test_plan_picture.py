"""The plan of the packages is the contract's."""

from __future__ import annotations

from tools.plan_picture import PICTURE, contract_layers, render_diagram


def test_package_diagram_is_up_to_date() -> None:
    assert PICTURE.read_text(encoding="utf-8") == render_diagram(), "python -m tools.plan_picture draws it anew"


def test_package_diagram_shows_every_package() -> None:
    diagram = render_diagram()
    assert all(f">{package}</text>" in diagram for line in contract_layers() for package in line)
