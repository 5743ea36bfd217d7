"""Make the pictures of the page in ``docs`` anew: ``python tests/page_pictures.py``.

The matches are new ones, so every picture shows another position.
"""

import io
import tempfile
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Browser, expect

from browsing import Visit, browsing, ready
from retinue.envs.game.board import LOOP

DOCS: Final = Path(__file__).parents[1] / "docs"
PHONE: Final = (390, 844)
TURNS: Final = (16, 30)
"""That the person plays first, a policy's advice each time: until a piece is past its midpoint."""
COLOURS: Final = 255
"""Enough for what is drawn, and a fourth of the bytes."""
SEATS: Final = ["human", "policy:medium", "policy:easy", "policy:hard"]
BOTS: Final = ["policy:hard", "policy:medium", "tactician", "policy:easy"]


def save(visit: Visit, name: str) -> None:
    """Save what the page shows."""
    visit.page.mouse.move(0, 0)
    visit.page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(visit.page.screenshot()))
    picture.convert("RGB").quantize(COLOURS).save(DOCS / name, optimize=True)


def advised(visit: Visit) -> None:
    """Make a policy's first thought the draft."""
    assert visit.await_turn()
    visit.find("#advice").click()
    visit.find("#why-list button").first.click()
    visit.find("#why-close").click()
    visit.page.evaluate("scrollTo(0, 0)")


def glowing(state: dict[str, Any]) -> int:
    """Return how many pieces on the loop are past their midpoint."""
    return sum(
        midpoint and position < LOOP
        for each in zip(state["midpoint"], state["position"], strict=True)
        for midpoint, position in zip(*each, strict=True)
    )


def show_play(browser: Browser, address: str, mode: str, name: str, **options: Any) -> None:
    """Show a draft in the middle of a match."""
    visit = Visit(browser, address, **options)
    visit.begin(mode, SEATS, shortest=False)
    advised(visit)
    first, last = TURNS
    for turn in range(last):
        if turn >= first and glowing(visit.record()[-1]["after"]):
            break
        visit.commit()
        advised(visit)
    expect(visit.find("#board .ghost")).not_to_have_count(0)
    save(visit, name)
    visit.close()


def show_why(browser: Browser, address: str) -> None:
    """Show why a bot played its turn."""
    visit = Visit(browser, address, color_scheme="dark")
    visit.begin("journey", BOTS, shortest=False)
    visit.find("#to-end").click()
    expect(visit.find("#outcome")).to_be_visible(timeout=60_000)
    turns = [line for line in visit.record()[1:-1] if BOTS[line["seat"]] == BOTS[0]]
    shown = max(turns, key=lambda line: glowing(line["after"]))
    visit.find("#slider").fill(str(shown["turn"] + 1))
    visit.find("#why-open").click()
    expect(visit.find("#why-list button")).not_to_have_count(0)
    visit.page.evaluate("scrollTo(0, 0)")
    save(visit, "page-why.png")
    visit.close()


def main() -> None:
    """Make all pictures."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ready(Path(folder)) as address,
        browsing() as browser,
    ):
        show_play(browser, address, "journey", "page-desktop.png", color_scheme="dark")
        phone = {"size": PHONE, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
        show_play(browser, address, "brawl", "page-phone.png", **phone)
        show_why(browser, address)


if __name__ == "__main__":
    main()
