"""Watching and reading records on the page, and the page on a phone, in headless Chromium."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="the page is tested with playwright")

from playwright.sync_api import Browser, expect

from browsing import (
    NEEDS_CHROMIUM,
    PHONE,
    Visit,
    browsing,
    number,
    numbers_of,
    ready,
    visiting,
)
from drawn_positions import random_turn
from retinue.envs.game.board import BACKWARD, FORWARD, PIECES, SEATS
from retinue.envs.game.record import Recorder
from retinue.envs.game.ruleset import load_ruleset
from retinue.envs.game.state import OVER
from retinue.envs.render_text import place_name

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

BOTS = ["policy:hard", "greedy", "policy:easy", "random"]
NOT_LOADED = "Failed to load resource"
SMALLEST = 24
"""Pixels of whatever is tapped, in either direction."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ready(tmp_path_factory.mktemp("service")) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as chromium:
        yield chromium


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    with visiting(browser, address) as person:
        yield person


@pytest.fixture
def phone(browser: Browser, address: str) -> Iterator[Visit]:
    with visiting(browser, address, PHONE, has_touch=True, is_mobile=True) as person:
        yield person


def test_watching_to_the_end(visit: Visit) -> None:
    visit.begin("brawl", BOTS, shortest=False)
    expect(visit.find("#hand")).to_be_hidden()
    shown = visit.find("#turn-number")
    visit.find("#to-start").click()
    visit.find("#step-on").click()
    expect(visit.find("#play-pause")).to_have_accessible_name("Play")
    visit.page.wait_for_timeout(300)
    expect(shown).to_have_text("turn 2 of 180")

    with visit.page.expect_response("**/v1/decide") as answer:
        visit.find("#why-open").click()
    told = answer.value.json()["explanation"]["alternatives"]
    expect(visit.find("#why-list button")).to_have_count(len(told))
    shares = visit.texts("#why-list .share")
    assert shares[0] == f"{100 * told[0]['probability']:.{told[0]['probability'] < 0.1:d}f}%"
    expect(visit.find("#why-list .tag", has_text="played")).to_have_count(1)
    visit.find("#why-list button").first.click()
    expect(visit.find("#last-move")).to_contain_text("If Green")
    assert visit.texts("#scores .sum") == ["0"] * SEATS
    visit.find("#why-close").click()
    expect(visit.find("#last-move")).to_contain_text("Last Green")

    visit.find("#viewer").select_option("2")
    visit.find("#number-direction").click()
    assert visit.numbers() == numbers_of(2, BACKWARD)
    visit.find("#play-pause").click()
    expect(visit.find("#outcome")).to_be_visible(timeout=60_000)
    lines = visit.record()
    expect(shown).to_have_text("turn 180 of 180")
    expect(visit.find("#log > li")).to_have_count(len(lines) - 2)
    assert [number(text) for text in visit.texts("#scores .sum")] == lines[-1]["result"]["totals"]


def test_a_record_from_disk_is_scrubbed(visit: Visit, tmp_path: Path) -> None:
    ruleset, chance = load_ruleset("brawl"), random.Random(7)
    recorder = Recorder(ruleset, ["random"] * SEATS, seed=7)
    while recorder.game["phase"] != OVER:
        recorder.roll()
        recorder.play(random_turn(recorder.game, ruleset, chance))
    recorder.save(tmp_path / "match.jsonl")
    lines = [json.loads(line) for line in recorder.lines[1:-1]]
    visit.find("#file").set_input_files(tmp_path / "match.jsonl")
    visit.find("#words summary").click()
    penalised = False
    for turns in (1, 60, len(lines) - 1, 120, len(lines)):
        visit.find("#slider").fill(str(turns))
        state = lines[turns - 1]["after"]
        wanted = []
        for seat in range(SEATS):
            lost = sum(
                event.get("points", 0)
                for line in lines[:turns]
                for event in line["events"]
                if line["seat"] == seat and event["type"] == "blocked"
            )
            penalised |= lost < 0
            parts = [sum(state["progression"][seat]), state["combat"][seat] - lost, lost]
            wanted.append([sum(parts) + state["bonus"][seat], *parts, state["bonus"][seat]])
        assert table(visit, "#scores", number) == wanted
        assert [row[:PIECES] for row in table(visit, "#position", str)] == [
            [place(state, seat, piece, ruleset.home) for piece in range(PIECES)]
            for seat in range(SEATS)
        ]
    assert penalised  # so that penalties and captures are really told apart
    expect(visit.find("#outcome")).to_be_visible()
    visit.page.keyboard.press("ArrowLeft")
    expect(visit.find("#outcome")).to_be_hidden()


def table(visit: Visit, selector: str, read: Any) -> list[list[Any]]:
    rows = visit.find(f"{selector} tbody tr").all()
    return [[read(text) for text in row.locator("td").all_inner_texts()] for row in rows]


def place(state: dict[str, Any], seat: int, piece: int, home: int) -> str:
    position = state["position"][seat][piece]
    star = "*" if state["midpoint"][seat][piece] and position != home else ""
    return place_name(0, seat, position, FORWARD, home) + star


def header(**changed: Any) -> str:
    return json.dumps(
        json.loads(Recorder(load_ruleset("journey"), ["x"] * SEATS, 1).lines[0]) | changed
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "The file is empty"),
        ("{", "Line 1 is not JSON"),
        ("[1]", "Line 1 is not the header of a match record"),
        (header(version=2), "The record has version 2, and this page reads version 1"),
        (header(agents=["a", "b"]), "Line 1: agents has another form"),
        (header(start={}), "Line 1: start.position is missing"),
        (f'{header()}\n\n{{"turn": 0}}', "Line 3: seat is missing"),
        (f'{header()}\n{{"result": {{"totals": []}}}}', "Line 2: result.totals has another form"),
    ],
)
def test_a_file_that_is_no_record(visit: Visit, tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    visit.find("#file").set_input_files(tmp_path / "bad.jsonl")
    expect(visit.find("#problem-text")).to_have_text(f"{reason} (bad.jsonl)")
    expect(visit.find("#start")).to_be_visible()


def test_a_match_that_is_not_there(visit: Visit) -> None:
    visit.page.goto(f"{visit.address}/#match={'0' * 32}")
    expect(visit.find("#problem")).to_be_visible()
    assert "match" in visit.find("#problem-text").inner_text()
    visit.forgive(NOT_LOADED)


def test_a_phone_shows_all_and_can_be_tapped(phone: Visit) -> None:
    def check() -> None:
        assert not phone.is_too_wide
        targets = (
            phone.find("button, select, a.button, .segmented label").filter(visible=True).all()
        )
        for target in targets:
            box = target.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= SMALLEST, target

    check()
    phone.begin("brawl", ["human", *BOTS[1:]])
    assert phone.await_turn()
    phone.find("#tray button").first.tap()
    phone.find(".take").first.tap()
    phone.find("#noble-steps label").nth(3).tap()
    expect(phone.find("#board .ghost")).to_have_count(2)
    check()
    phone.find("#advice").tap()
    expect(phone.find("#why-list button")).not_to_have_count(0)
    phone.find("#words summary").tap()
    check()
    phone.find("#commit").tap()
    expect(phone.find("#away")).to_be_visible()
    check()
    assert len(phone.turns_of(0)) == 1
