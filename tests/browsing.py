"""The page in headless Chromium, and what a person does there."""

import contextlib
import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, expect, sync_playwright

from retinue.envs.game.board import LOOP
from retinue.envs.render_text import number_at
from serving import ok
from serving_process import LIMIT, Running, running

DESKTOP: Final = (1280, 800)
PHONE: Final = (360, 740)
FASTEST: Final = "16"
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Return the path of this machine's Chromium, None if it has none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


NEEDS_CHROMIUM: Final = pytest.mark.skipif(
    chromium() is None, reason="no Chromium on this machine to show the page in"
)


def address_of(service: Running) -> str:
    """Return where a service's page is."""
    return str(service.client.base_url).rstrip("/")


@contextlib.contextmanager
def ready(folder: Path) -> Iterator[str]:
    """Run a service and give its address, once all is compiled that the page's clicks wait for."""
    with running(folder) as service:
        client = service.client
        seats = ["policy:hard", "policy:easy", "greedy", "random"]
        body: dict[str, Any] = {"mode": "journey", "seats": seats, "clock_seconds": 80}
        match = ok(client.post("/v1/matches", json=body), 201)["match"]
        for _ in range(LIMIT):
            match = ok(client.get(f"/v1/matches/{match['id']}?wait=1"))
            if match["status"] == "over":
                break
        start, first, *_ = map(
            json.loads, client.get(f"/v1/matches/{match['id']}/record").iter_lines()
        )
        position = {
            "mode": "journey",
            "state": start["start"],
            "seat": 0,
            "rolled": first["rolled"],
        }
        ok(client.post("/v1/decide", json=position | {"agent": seats[0], "explain": 2}))
        choice = {key: first[key] for key in ("direction", "noble", "guards")}
        ok(client.post("/v1/referee/play", json=position | {"turn": choice}))
        yield address_of(service)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser. It meets no page but our own, so Chromium's sandbox is not needed."""
    path = chromium()
    assert path is not None, "no Chromium on this machine"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


class Visit:
    """A person at the page.

    Attributes:
        page: the page.
        bad: errors and warnings of the console, uncaught errors, and requests to elsewhere.
    """

    def __init__(
        self, browser: Browser, address: str, size: tuple[int, int] = DESKTOP, **options: Any
    ) -> None:
        self.address = address
        self.bad: list[str] = []
        width, height = size
        self._context = browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", **options
        )
        self.page = self._context.new_page()
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("request", lambda request: self._note_request(request.url))
        self.page.goto(address)
        expect(self.page.locator("#clock option")).not_to_have_count(0)

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.bad.append(f"{kind}: {text}")

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.address, "blob:", "data:")):
            self.bad.append(f"asked elsewhere: {url}")

    def close(self) -> None:
        """Leave."""
        self._context.close()

    def find(self, selector: str, **options: Any) -> Locator:
        """Return what is on the page."""
        return self.page.locator(selector, **options)

    def forgive(self, text: str) -> None:
        """Take it for meant that there are complaints, all of which hold a text."""
        assert self.bad
        assert all(text in complaint for complaint in self.bad), self.bad
        self.bad.clear()

    def begin(self, mode: str, seats: list[str], shortest: bool = True) -> None:
        """Begin a match from the first view, by clicks."""
        self.find(f"input[name=mode][value={mode}]").check()
        for seat, name in enumerate(seats):
            self.find(f"#seat-{seat}").select_option(name)
        clocks = self.find("#clock option").count()
        self.find("#clock").select_option(index=clocks - 1 if shortest else 0)
        self.find("#begin").click()
        expect(self.find("#table")).to_be_visible(timeout=1000 * LIMIT)
        self.find("#speed").select_option(FASTEST)

    def await_turn(self) -> bool:
        """Wait until it is the person's turn, and tell whether it is: else the match is over."""
        either = self.find("#hand, #outcome").filter(visible=True)
        expect(either.first).to_be_visible(timeout=30_000)
        return self.find("#hand").is_visible()

    def commit(self) -> None:
        """Play the draft and wait until it has been played."""
        shown = self.find("#turn-number").inner_text()
        self.find("#commit").click()
        expect(self.find("#turn-number")).not_to_have_text(shown)

    def texts(self, selector: str) -> list[str]:
        """Return what elements say."""
        return [text.strip() for text in self.find(selector).all_inner_texts()]

    def numbers(self) -> list[str]:
        """Return the tiles' numbers, by absolute tile; two of one tile with a slash."""
        return [
            "/".join(text.locator("tspan").all_text_contents())
            for text in self.find("#board .number").all()
        ]

    @property
    def is_too_wide(self) -> bool:
        """Whether something sticks out at the side of the page, or of a panel in it."""
        answer: bool = self.page.evaluate(
            """() => [document.documentElement, ...document.querySelectorAll(".panel, .top")]
                .some((each) => each.scrollWidth > each.clientWidth)"""
        )
        return answer

    @property
    def match(self) -> str:
        """The id of the match on the table."""
        return self.page.url.rpartition("#match=")[2]

    def record(self) -> list[dict[str, Any]]:
        """Return the record of the match so far, line by line."""
        lines = self.ask(f"/v1/matches/{self.match}/record").splitlines()
        return [json.loads(line) for line in lines]

    def ask(self, path: str) -> str:
        """Return what the service answers to a GET."""
        with urllib.request.urlopen(self.address + path) as answer:
            text: str = answer.read().decode()
        return text

    def turns_of(self, seat: int) -> list[dict[str, Any]]:
        """Return the lines of the record that are a seat's turns."""
        return [line for line in self.record() if line.get("seat") == seat]


@contextlib.contextmanager
def visiting(
    browser: Browser, address: str, size: tuple[int, int] = DESKTOP, **options: Any
) -> Iterator[Visit]:
    """Visit the page, which must complain of nothing and ask nobody else."""
    person = Visit(browser, address, size, **options)
    yield person
    person.close()
    assert person.bad == []


def number(text: str) -> int:
    """Return a number as the page writes it."""
    return int(text.replace("−", "-"))


def numbers_of(seat: int, direction: int) -> list[str]:
    """Return the tiles' numbers as a seat counts them, by absolute tile."""
    return [number_at(seat, tile, direction) for tile in range(LOOP)]
