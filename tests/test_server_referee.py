"""The referee over HTTP says what the engine says."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from drawn_positions import random_turn
from playing import any_turn, is_legal
from positions import BRAWL, JOURNEY, any_rules, any_state
from retinue.envs.game import board, engine
from retinue.envs.game.dice import die
from retinue.envs.game.record import Recorder, turn_to_json, verify_record
from retinue.envs.game.state import OVER, new_game, state_from_json, state_to_json
from serving import PASS, ok, position, refused, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(tmp_path_factory.mktemp("matches")) as (found, _):
        yield found


@pytest.mark.parametrize("ruleset", [JOURNEY, BRAWL], ids=["journey", "brawl"])
async def test_a_whole_match_by_the_referee_is_a_record(
    client: httpx.AsyncClient, ruleset: object, tmp_path: Path
) -> None:
    rules = BRAWL if ruleset is BRAWL else JOURNEY
    header = json.loads(Recorder(rules, ["a", "b", "c", "d"], 5).lines[0])
    lines, state, seat, result = [header], header["start"], 0, None
    chance = random.Random(1)
    while result is None:
        asked = {"mode": rules.mode, "state": state, "seat": seat}
        rolled = ok(await client.post("/v1/referee/roll", json=asked | {"seed": 5}))
        asked["rolled"] = rolled["rolled"]
        game = state_from_json(state, rules)
        engine.set_dice(game, rules, rolled["rolled"])
        choice = turn_to_json(random_turn(game, rules, chance))
        answer = ok(await client.post("/v1/referee/play", json=asked | {"turn": choice}))
        assert answer["line"]["credits_earned"] == rolled["credits_earned"]
        lines.append(answer["line"])
        state, result = answer["line"]["after"], answer["result"]
        if result is None:
            seat = answer["next"]["seat"]
            expected = state_from_json(state, rules)
            assert answer["next"] == {
                "seat": expected["seat"],
                "dice": engine.dice_count(expected, rules.packed),
            }
    assert answer["next"] is None
    assert answer["totals"] == result["totals"]
    path = tmp_path / "match.jsonl"
    text = [json.dumps(line) for line in [*lines, {"result": result}]]
    path.write_text("".join(f"{line}\n" for line in text))
    replay = verify_record(path)
    assert replay.result is not None
    assert len(lines) == 181


async def test_rolls(client: httpx.AsyncClient) -> None:
    asked, game = position(37)
    seat, turn = asked["seat"], int(game["turns_taken"][asked["seat"]])
    due = {key: asked[key] for key in ("mode", "state", "seat")}
    of_seed = ok(await client.post("/v1/referee/roll", json=due | {"seed": 2**53 - 1}))
    expected = [die(np.uint64(2**53 - 1), seat, turn, i) for i in range(len(asked["rolled"]))]
    assert of_seed["rolled"] == expected
    given = ok(await client.post("/v1/referee/roll", json=due | {"rolled": asked["rolled"]}))
    assert given == {
        "seat": seat,
        "rolled": asked["rolled"],
        "credits_earned": game["credits_earned"],
        "credits": game["credits"][seat],
        "store": game["store"][seat].tolist(),
        "legal": ok(await client.post("/v1/referee/legal", json=asked))["legal"],
    }
    drawn = [str(ok(await client.post("/v1/referee/roll", json=due))["rolled"]) for _ in range(12)]
    assert len(set(drawn)) > 1


async def test_whatever_is_legal_in_any_position_under_any_rules(
    client: httpx.AsyncClient,
) -> None:
    chance, verdicts = random.Random(8), set()
    for _ in range(120):
        rules = any_rules(chance)
        state = any_state(chance, rules)
        game = state_from_json(state, rules)
        if game["phase"] == OVER:
            continue
        rolled = [chance.randint(1, 6) for _ in range(engine.dice_count(game, rules.packed))]
        engine.set_dice(game, rules, rolled)
        turn = any_turn(game, rules, chance)
        if chance.random() < 0.5:
            turn["rolls"][chance.randrange(4), chance.randrange(6)] += 1
        asked = {
            "rules": rules.model_dump(mode="json"),
            "state": state,
            "seat": int(game["seat"]),
            "rolled": rolled,
            "turn": turn_to_json(turn),
        }
        answer = ok(await client.post("/v1/referee/legal", json=asked))
        mask = engine.legal_guards(game, rules.packed)
        assert answer["legal"] == {
            "guards": [bool(mask >> guard & 1) for guard in range(4)],
            "noble": engine.noble_may_move(game, rules.packed),
            "store": game["store"][game["seat"]].tolist(),
        }
        legal = is_legal(game, rules, turn)
        verdicts.add(legal)
        assert answer["verdict"]["legal"] == legal
        response = await client.post("/v1/referee/play", json=asked)
        if legal:
            assert answer["verdict"]["reason"] is None
            ok(response)
        else:
            error = refused(response, 422, "illegal_turn")
            assert (error["field"], error["reason"]) == ("turn", answer["verdict"]["reason"])
    assert verdicts == {True, False}


async def test_no_turn_no_verdict(client: httpx.AsyncClient) -> None:
    assert ok(await client.post("/v1/referee/legal", json=position(4)[0]))["verdict"] is None


@pytest.mark.parametrize(
    ("entries", "field", "reason"),
    [
        ({"seat": 2}, "seat", "by the turns taken 1 is to move, not 2"),
        ({"rolled": [1]}, "rolled", "1 dice, but with"),
        ({"rolled": [1, 7]}, "rolled[1]", "less than or equal to 6"),
        ({"mode": "chess"}, "mode", "Input should be 'journey' or 'brawl'"),
        ({"mode": None}, None, "give either mode or rules"),
        ({"turn": {}}, "turn.direction", "is missing"),
        ({"turn": PASS | {"guards": [[3, 1], [], [], []]}}, "turn", "[3, 1] is not ascending"),
        ({"turn": PASS | {"direction": 0}}, "turn.direction", "'forward' or 'backward'"),
        ({"extra": 1}, "extra", "unknown key; known keys: mode, rules, state"),
        ({"turns": 1}, "turns", "unknown key; did you mean turn?"),
    ],
)
async def test_refusals_name_the_field_and_the_reason(
    client: httpx.AsyncClient, entries: dict[str, object], field: str | None, reason: str
) -> None:
    asked = position(9)[0] | {"turn": PASS} | entries
    error = refused(await client.post("/v1/referee/play", json=asked), 422, "invalid")
    assert error["field"] == field
    assert reason in error["reason"]


async def test_a_state_that_cannot_be(client: httpx.AsyncClient) -> None:
    for entry, value, words in (
        ("clock_seconds", 0, "the match is over"),
        ("clock_seconds", 1801, "clock_seconds: 1801 is not in 0 ... 1800"),
        ("store", [[13, 0, 0, 0, 0, 0]] + [[0] * 6] * 3, "store[0][0]: 13 is not in 0 ... 12"),
        ("position", [[76] * 5] * 4, "position[0][0]: 76 is not in -1 ... 75"),
    ):
        asked, _ = position(9)
        asked["state"][entry] = value
        error = refused(await client.post("/v1/referee/legal", json=asked), 422, "invalid")
        assert (error["field"], words in error["reason"]) == ("state", True)


async def test_the_start_of_a_mode(client: httpx.AsyncClient) -> None:
    for ruleset in (JOURNEY, BRAWL):
        answer = ok(await client.get(f"/v1/rules/{ruleset.mode}"))
        assert answer == {
            "mode": ruleset.mode,
            "digest": ruleset.digest,
            "rules": ruleset.model_dump(mode="json"),
            "start": state_to_json(new_game(ruleset)),
        }
    refused(await client.get("/v1/rules/chess"), 422)


async def test_the_board(client: httpx.AsyncClient) -> None:
    found = ok(await client.get("/v1/board"))
    assert [(each["x"], each["y"]) for each in found["loop"]] == board.loop_cells()
    for tile, each in enumerate(found["loop"]):
        assert each["tile"] == tile
        for seat, offset in enumerate(each["offsets"]):
            assert board.tile(seat, offset) == tile
            assert each["numbers"]["forward"][seat] == board.tile_number(offset, board.FORWARD)
            assert each["numbers"]["backward"][seat] == board.tile_number(offset, board.BACKWARD)
        assert each["castle"] == any(offset in board.CASTLES for offset in each["offsets"])
    for key, offset in (("entering", 0), ("midpoint", 34), ("turn_off", 63)):
        marked = {each[key]: each["tile"] for each in found["loop"] if each[key] is not None}
        assert marked == {seat: board.tile(seat, offset) for seat in range(4)}
    assert found["end_number"] == {"forward": 64, "backward": 69}
    assert found["home_code"] == 75
    longer = ok(await client.get("/v1/board?home_path_tiles=9"))
    assert longer["home_code"] == 77
    for seat, each in enumerate(longer["seats"]):
        cells = [list(cell) for cell in board.home_path_cells(seat, 9)]
        assert each["home_path"] == cells
        assert (each["yard"], each["home"]) == (
            list(board.yard_centre(seat)),
            list(board.home_centre(seat)),
        )
