"""Playing on the page, in headless Chromium, against a running service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="the page is tested with playwright")

from playwright.sync_api import Browser, Route, expect

from browsing import (
    NEEDS_CHROMIUM,
    Visit,
    address_of,
    browsing,
    number,
    numbers_of,
    ready,
    visiting,
)
from retinue.envs.game.board import BACKWARD, FORWARD, SEAT_NAMES, SEATS
from retinue.envs.game.record import verify_record
from serving_process import running

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

ONE_PERSON = ["human", "policy:easy", "greedy", "random"]
NOT_LOADED = "Failed to load resource"


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


@pytest.mark.parametrize("mode", ["journey", "brawl"])
def test_a_person_plays_a_match_to_its_end(visit: Visit, mode: str, tmp_path: Path) -> None:
    visit.begin(mode, ONE_PERSON)
    planned: list[tuple[str, int]] = []
    while visit.await_turn():
        roll = visit.find("#tray button").first
        planned.append(((roll.get_attribute("data-key") or "")[0], len(planned) + 2))
        roll.click()
        on_board = len(planned) % 2
        visit.find("#board .movable" if on_board else ".guard.open .take").first.click()
        visit.find("#noble-steps label").nth(planned[-1][1]).click()
        visit.find("#noble-when label").last.click()
        expect(visit.find("#preview")).to_contain_text("Noble to")
        visit.commit()
    mine = visit.turns_of(0)
    assert len(mine) == len(planned) == 5
    for line, (roll_given, steps) in zip(mine, planned, strict=True):
        assert line["noble"] == {"steps": steps, "when": "after"}
        assert sorted(line["guards"]) == [[], [], [], [int(roll_given)]]

    result = visit.record()[-1]["result"]
    assert [number(text) for text in visit.texts("#scores .sum")] == result["totals"]
    winners = [SEAT_NAMES[seat] for seat in range(SEATS) if result["places"][seat] == 1]
    title = visit.find("#outcome h2").inner_text()
    assert all(name.capitalize() in title for name in winners)
    with visit.page.expect_download() as download:
        visit.find("#download").click()
    download.value.save_as(tmp_path / "match.jsonl")
    verify_record(tmp_path / "match.jsonl")
    expect(visit.find("#outcome")).to_contain_text(f"{visit.record()[0]['seed']}")


def test_a_draft_is_changed_taken_back_and_undone(visit: Visit) -> None:
    visit.begin("journey", ONE_PERSON)
    assert visit.await_turn()
    dice, undo = visit.find("#tray button"), visit.find("#undo")
    ghosts = visit.find("#board .ghost")
    expect(dice).to_have_count(4)
    expect(undo).to_be_disabled()
    assert visit.numbers() == numbers_of(0, FORWARD)
    visit.find("#direction").click()
    assert visit.numbers() == numbers_of(0, BACKWARD)
    expect(visit.find("#direction")).to_have_accessible_name("Direction: backward. Change it")

    for index in (0, 2):  # two rolls at once
        dice.nth(index).click()
    expect(visit.find("#board .movable")).to_have_count(2)  # two credits, so G1 and G2
    expect(visit.find(".take:disabled")).to_have_count(2)
    visit.find(".take").first.click()
    expect(dice).to_have_count(2)
    expect(ghosts).to_have_count(1)
    visit.find(".given button").first.click()
    expect(dice).to_have_count(3)
    undo.click()
    expect(dice).to_have_count(2)
    undo.click()
    expect(dice).to_have_count(4)
    expect(ghosts).to_have_count(0)
    undo.click()
    expect(undo).to_be_disabled()
    assert visit.numbers() == numbers_of(0, FORWARD)

    visit.find("#noble-steps label").nth(6).click()
    expect(ghosts).to_have_count(1)
    visit.find("#clear").click()
    expect(visit.find("#commit")).to_have_text("Move nothing")
    visit.commit()
    (line,) = visit.turns_of(0)
    assert (line["direction"], line["guards"]) == ("forward", [[], [], [], []])
    assert line["noble"] == {"steps": 0, "when": "before"}


def test_turns_by_keyboard_alone(visit: Visit) -> None:
    keys = visit.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(60):
            if visit.find(selector).and_(visit.find(":focus")).count():
                return
            keys.press("Tab")
        raise AssertionError(f"Tab does not lead to {selector}")

    for seat in range(SEATS):
        tab_to(f"#seat-{seat}")
        keys.type("Easy" if seat else "You")
    tab_to("#begin")
    keys.press("Enter")
    assert visit.await_turn()
    tab_to("#direction")
    keys.press("Space")
    tab_to("#noble-steps input")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    tab_to("#noble-when input")
    keys.press("ArrowRight")
    for stop in ("#tray button", ".take", "#commit"):
        tab_to(stop)
        keys.press("Space")
    expect(visit.find("#hand")).to_be_hidden()
    first = visit.turns_of(0)[0]
    assert first["direction"] == "backward"
    assert first["noble"] == {"steps": 2, "when": "after"}
    assert [len(values) for values in first["guards"]] == [1, 0, 0, 0]

    assert visit.await_turn()
    expect(visit.find("#hand")).to_be_focused()  # whoever plays by keyboard goes on there
    value = (visit.find("#tray button").first.get_attribute("data-key") or "")[0]
    for key in ("d", value, "Shift+Digit1", "+", "+", "+", "-", "b", "d", "u"):
        keys.press(key)
    keys.press("Control+Enter")
    expect(visit.find("#hand")).to_be_hidden()
    second = visit.turns_of(0)[1]
    assert second["direction"] == "forward"
    assert second["noble"] == {"steps": 2, "when": "after"}
    assert second["guards"] == [[int(value)], [], [], []]


def test_advice_becomes_the_draft(visit: Visit) -> None:
    visit.begin("brawl", ONE_PERSON)
    assert visit.await_turn()
    with visit.page.expect_response("**/v1/decide") as answer:
        visit.find("#advice").click()
    advised = answer.value.json()["explanation"]["alternatives"][1]["turn"]
    expect(visit.find("#why-title")).to_be_focused()
    visit.find("#why-list button").nth(1).click()
    expect(visit.find("#board .ghost")).not_to_have_count(0)
    visit.find("#why-close").click()
    visit.commit()
    (line,) = visit.turns_of(0)
    assert {key: line[key] for key in advised} == advised


def test_the_page_comes_back_to_its_match(visit: Visit) -> None:
    visit.begin("journey", ONE_PERSON)
    assert visit.await_turn()
    visit.commit()
    assert visit.await_turn()
    match, shown = visit.match, visit.find("#turn-number").inner_text()
    visit.page.reload()
    assert visit.await_turn()
    expect(visit.find("#turn-number")).to_have_text(shown)
    visit.find(".brand").click()
    visit.find("#earlier a").first.click()
    assert visit.await_turn()
    assert visit.match == match
    visit.commit()
    assert len(visit.turns_of(0)) == 2


def test_whoever_has_the_address_may_watch(visit: Visit, browser: Browser) -> None:
    visit.begin("journey", ONE_PERSON)
    assert visit.await_turn()
    other = Visit(browser, visit.address)
    other.page.goto(visit.page.url)
    expect(other.find("#who")).to_have_text("Green to choose")
    expect(other.find("#hand")).to_be_hidden()
    visit.find("#noble-steps label").nth(3).click()
    visit.commit()
    expect(other.find("#log")).to_contain_text("Noble to 3 (3)")
    other.close()
    assert other.bad == []


def test_two_persons_at_one_browser(visit: Visit) -> None:
    visit.begin("journey", ["human", "random", "human", "random"])
    for seat in (0, 2, 0):
        assert visit.await_turn()
        expect(visit.find("#who")).to_have_text(f"{SEAT_NAMES[seat].capitalize()}, your turn")
        assert visit.numbers() == numbers_of(seat, FORWARD)
        visit.commit()
    assert [len(visit.turns_of(seat)) for seat in (0, 2)] == [2, 1]


def test_a_lost_answer_plays_no_turn_twice(visit: Visit) -> None:
    visit.begin("journey", ONE_PERSON)
    assert visit.await_turn()

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    visit.page.route("**/turns", lose, times=1)
    visit.commit()
    assert visit.await_turn()
    expect(visit.find("#lost")).to_be_hidden()
    expect(visit.find("#problem")).to_be_hidden()
    assert len(visit.turns_of(0)) == 1
    visit.forgive(NOT_LOADED)  # the answer that was lost, and the conflict after it


def test_a_service_that_ends_is_waited_for(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as service:
        url = address_of(service)
        visit = Visit(browser, url)
        visit.begin("journey", ONE_PERSON)
        assert visit.await_turn()
        service.process.kill()
        expect(visit.find("#lost")).to_be_visible()
        visit.find("#noble-steps label").nth(2).click()
        visit.find("#commit").click()
    with running(tmp_path, "--port", url.rpartition(":")[2]):
        expect(visit.find("#lost")).to_be_hidden(timeout=20_000)
        expect(visit.find("#turn-number")).not_to_have_text("turn 1 of 20", timeout=20_000)
        assert visit.await_turn()
        assert [line["noble"]["steps"] for line in visit.turns_of(0)] == [2]
        visit.forgive("ERR_")
        visit.close()
