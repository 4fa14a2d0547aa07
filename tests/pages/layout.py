"""Layout checks that axe lacks: targets too close for a finger, and the room left at 400 % zoom."""

from __future__ import annotations

from typing import Any

ZOOMED = (320, 256)  # a window of 1280 x 1024 at 400 %: WCAG 2.2, 1.4.10

#: WCAG 2.2, 2.5.8: smaller than 24 pixels, and a circle of 24 around its middle meets another target or its circle.
#: A label is part of its field's target; links within a sentence are exempt.
_TOO_CLOSE = """() => {
  const seen = (box) => box.width > 1 && box.height > 1;
  const shown = (one) => seen(one.getBoundingClientRect()) && one.checkVisibility();
  const target = (one) => (one.matches("input") && one.closest("label")) || one;
  const found = document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea");
  const all = [...new Set([...found].filter(shown).map(target))];
  const small = (box) => box.width < 24 || box.height < 24;
  const inText = (one) => getComputedStyle(one).display === "inline"
    && [...one.parentElement.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const meets = (one, other) => {
    if (one === other || one.contains(other) || other.contains(one)) return false;
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const [x, y] = [a.x + a.width / 2, a.y + a.height / 2];
    if (Math.hypot(Math.max(b.left - x, 0, x - b.right), Math.max(b.top - y, 0, y - b.bottom)) < 12) return true;
    return small(b) && Math.hypot(b.x + b.width / 2 - x, b.y + b.height / 2 - y) < 24;
  };
  const open = all.filter((one) => small(one.getBoundingClientRect()) && !inText(one));
  return open.filter((one) => all.some((other) => meets(one, other))).map((one) => one.outerHTML.slice(0, 100));
}"""

_FIXED_HEIGHT = """() => [...document.querySelectorAll("body *")]
  .filter((one) => ["sticky", "fixed"].includes(getComputedStyle(one).position) && one.checkVisibility())
  .reduce((sum, one) => sum + one.getBoundingClientRect().height, 0)"""


def close_targets(page: Any, name: str) -> list[str]:
    """Targets that a finger or an unsteady hand misses."""
    return [f"{name}: too small and too close: {target}" for target in page.evaluate(_TOO_CLOSE)]


def zoom_problems(page: Any, name: str) -> list[str]:
    """Return problems at 400 % zoom: content wider than the screen, or fixed parts that leave less than half of it."""
    previous_size = page.viewport_size
    page.set_viewport_size({"width": ZOOMED[0], "height": ZOOMED[1]})
    content_width, fixed_height = page.evaluate("document.documentElement.scrollWidth"), page.evaluate(_FIXED_HEIGHT)
    page.set_viewport_size(previous_size)
    problems = [f"{name}: {content_width} pixels wide at 400 %"] if content_width > ZOOMED[0] else []
    return problems + (
        [f"{name}: {fixed_height} of {ZOOMED[1]} pixels do not scroll at 400 %"] if fixed_height > ZOOMED[1] / 2 else []
    )
