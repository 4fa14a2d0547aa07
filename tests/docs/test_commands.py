"""Every command that a page of the docs prints is there and takes what stands behind it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OURS = [name for name, app in get_commands().items() if app.partition(".")[0] in {"contrib", "evaluation", "review"}]
WHOLE = re.compile(
    r"^ *(?:[A-Z_]+=\S+ )*(?:\S*python3? )?(?:\S*manage\.py|\S*bin/concord) ([a-z_]+)([^`\n]*)$", re.MULTILINE
)
#: In a sentence what has to stand before or behind may be left out.
PART = re.compile(rf"`(?:(?:\S*python3? )?(?:manage\.py|concord) )?({'|'.join(OURS)})( [^`]*)?`")


def refused(name: str, rest: str) -> str:
    """Why the command does not take what stands behind it; empty where it does, or where the page leaves something open
    by ``…`` or a variable of the shell."""
    if name not in get_commands():
        return "there is no such command"
    words = shlex.split(re.split(r" [|>] ", rest)[0], comments=True)
    if any(set(word) & set("…·[]{}|$") for word in words):
        return ""
    command = load_command_class(get_commands()[name], name)
    try:
        command.create_parser("manage.py", name).parse_args(words)
    except CommandError as error:
        return str(error)
    return ""


def problems(page: Path) -> tuple[int, list[str]]:
    """How many commands the page prints, and what is wrong with them."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    whole, parts = WHOLE.findall(text), PART.findall(text)
    found = [(name, rest, refused(name, rest)) for name, rest in whole]
    for name, rest in parts:
        why = refused(name, rest)
        open_ended = "required" in why or ("argument" in why and re.search(r" [A-Z]{2,}\b", rest))
        found.append((name, rest, "" if open_ended else why))
    return len(found), [f"{name}{rest}: {why}" for name, rest, why in found if why]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_page_is_understood(page: Path) -> None:
    assert problems(page)[1] == []


def test_commands_are_found() -> None:
    counts = {page.stem: problems(page)[0] for page in PAGES}
    assert counts["operations"] > 30
    assert counts["judges"] > 5
