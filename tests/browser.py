"""Pages in headless Chromium: the browser, and a measure of what can't be read in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")

# what can't be read: sideways scrolling, text below 12 px, contrast below 4.5
MEASURE = """
() => {
  const told = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1)
    told.push(`scrolls sideways: ${root.scrollWidth} in ${root.clientWidth}`);
  const colour = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return {rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1};
  };
  const light = ({rgb}) => {
    const [r, g, b] = rgb.map(v => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c.alpha > 0.99) return c;
    }
    return colour(getComputedStyle(root).colorScheme.includes("dark")
      ? "rgb(0, 0, 0)" : "rgb(255, 255, 255)");
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    if (element.closest("svg, math, script, style")) continue;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(element);
    const back = ground(element), front = colour(style.color);
    front.rgb = front.rgb.map((v, i) => front.alpha * v + (1 - front.alpha) * back.rgb[i]);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const what = `${element.tagName}.${element.className}`;
    if (size < 11.999 && !seen.has("s" + what)) {
      seen.add("s" + what);
      told.push(`${size}px: ${what}: ${walker.currentNode.textContent.trim().slice(0, 30)}`);
    }
    if (ratio < 4.5 && !seen.has("c" + what + style.color)) {
      seen.add("c" + what + style.color);
      told.push(`contrast ${ratio.toFixed(2)}: ${what} ${style.color} on ${back.rgb}: `
        + walker.currentNode.textContent.trim().slice(0, 30));
    }
  }
  return told;
}
"""


def chromium() -> Iterator[Any]:
    """Yield the running browser; without one, skip, and fail where it must be."""
    if not CHROMIUM.exists():
        if os.environ.get("CAPACITY_CI"):
            pytest.fail("CI must have chromium; `.ci/run` installs it.")
        pytest.skip("no chromium in /usr/bin")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield running
        running.close()
