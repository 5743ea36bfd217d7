"""Options in specifications: how they are read, refused and shown."""

from typing import Any

import pytest

from positions import JOURNEY
from retinue import cli
from retinue.agents import registry
from retinue.agents.base import Agent, CompiledAgent
from retinue.agents.options import Option
from retinue.agents.registry import AgentError, known_agents, make_agent, register, split_specs
from retinue.agents.scripted import choose_racer

OPTIONS = {
    "candidates": Option(int, 64, "how many turns it looks at", low=1, high=4096),
    "temper": Option(float, 0.5, "how bold it is", low=0),
    "base": Option(str, "racer", "whom it asks"),
    "order": Option(str, "near", "which Guard first", choices=("near", "far")),
    "greedy": Option(bool, False, "whether it takes the best at once"),
}
DEFAULTS = "candidates=64,temper=0.5,base=racer,order=near,greedy=false"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Register a kind with options; return the list of those that its agents are made with."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    seen: list[dict[str, Any]] = []

    def make(options: dict[str, Any], _: Any) -> Agent:
        seen.append(options)
        return CompiledAgent("unnamed", choose_racer)

    register("planner", make, "looks ahead", options=OPTIONS)
    return seen


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("planner", {}),
        ("planner:candidates=8", {"candidates": 8}),
        ("planner:greedy=true,temper=2", {"greedy": True, "temper": 2.0}),
        ("planner:base=tactician:width=3", {"base": "tactician:width=3"}),
        ("planner:base=a=b, order = far", {"base": "a=b", "order": "far"}),
        ("planner:candidates=1,temper=1e-3", {"candidates": 1, "temper": 0.001}),
    ],
)
def test_options_have_their_types_and_defaults(
    made: list[dict[str, Any]], spec: str, changed: dict[str, Any]
) -> None:
    assert make_agent(spec, JOURNEY).name == spec
    expected = {key: option.default for key, option in OPTIONS.items()} | changed
    assert made == [expected]
    assert [type(value) for value in made[0].values()] == [int, float, str, str, bool]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ":candidate=8",
            f" has no option 'candidate': did you mean candidates? its options: {DEFAULTS}",
        ),
        (":zzz=8", f" has no option 'zzz': its options: {DEFAULTS}"),
        (":candidates=8,candidates=9", ": option candidates is given twice; give it once"),
        (":candidates=x", ": option candidates must be a whole number from 1 to 4096, not 'x'"),
        (":candidates=1.5", ": option candidates must be a whole number from 1 to 4096, not '1.5'"),
        (":candidates=", ": option candidates must be a whole number from 1 to 4096, not ''"),
        (":candidates=0", ": option candidates must be a whole number from 1 to 4096, not '0'"),
        (
            ":candidates=4097",
            ": option candidates must be a whole number from 1 to 4096, not '4097'",
        ),
        (":temper=nan", ": option temper must be a number of at least 0, not 'nan'"),
        (":temper=inf", ": option temper must be a number of at least 0, not 'inf'"),
        (":base=", ": option base must be a text, not ''"),
        (":order=left", ": option order must be near or far, not 'left'"),
        (":greedy=1", ": option greedy must be true or false, not '1'"),
        (":", f": '' is no option; give them as planner:{DEFAULTS}"),
        (":fast", f": 'fast' is no option; give them as planner:{DEFAULTS}"),
        (":greedy=true,", f": '' is no option; give them as planner:{DEFAULTS}"),
    ],
)
def test_what_is_no_option_is_refused(made: list[dict[str, Any]], given: str, message: str) -> None:
    with pytest.raises(AgentError) as caught:
        make_agent(f"planner{given}", JOURNEY)
    assert str(caught.value) == f"agent planner{message}"
    assert made == []


def test_a_comma_in_place_of_the_colon_is_noticed(made: list[dict[str, Any]]) -> None:
    with pytest.raises(AgentError, match="options stand after a colon: planner:candidates=8"):
        make_agent("planner,candidates=8", JOURNEY)


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("racer", ["racer"]),
        ("racer, random,spread ,random", ["racer", "random", "spread", "random"]),
        (
            "search:base=tactician,rollouts=8,racer,racer,racer",
            ["search:base=tactician,rollouts=8", "racer", "racer", "racer"],
        ),
        ("a:x=1, y=2 ,b:z=3", ["a:x=1,y=2", "b:z=3"]),
        ("policy:runs/a=b,racer", ["policy:runs/a=b", "racer"]),
        ("racer,bot.py:Mine,./a=b.py:Mine", ["racer", "bot.py:Mine", "./a=b.py:Mine"]),
        ("racer,policy:a=b", ["racer", "policy:a=b"]),
        ("x=1,racer", ["x=1", "racer"]),
        ("racer,racer,racer,", ["racer", "racer", "racer", ""]),
        ("racer,=1,2=3", ["racer", "=1", "2=3"]),
        ("", [""]),
    ],
)
def test_a_list_of_agents_is_split(text: str, specs: list[str]) -> None:
    assert split_specs(text) == specs


def test_options_are_shown(
    made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert known_agents()[f"planner:{DEFAULTS}"] == "looks ahead"
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["agents"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    start = lines.index("planner looks ahead")
    assert lines[start + 1 : start + 6] == [
        "candidates=64 how many turns it looks at (a whole number from 1 to 4096)",
        "temper=0.5 how bold it is (a number of at least 0)",
        "base=racer whom it asks (a text)",
        "order=near which Guard first (near or far)",
        "greedy=false whether it takes the best at once (true or false)",
    ]
    assert "and given as" in " ".join(lines)


def test_the_command_line_takes_options(
    made: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["play", "--matches", "1", "--agents"]
    assert cli.main([*words, "planner:candidates=8,greedy=true,racer,planner,racer"]) == 0
    assert [(each["candidates"], each["greedy"]) for each in made] == [(8, True), (64, False)]
    capsys.readouterr()
    assert cli.main([*words, "planner:candidates=0,racer,racer,racer"]) == 2
    assert capsys.readouterr().err == (
        "retinue: agent planner: option candidates must be a whole number from 1 to 4096, not '0'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((list, [], "x"), "an option is an int, float, str or bool"),
        ((int, 1.5, "x"), "the default must be a whole number, not 1.5"),
        ((int, True, "x"), "the default must be a whole number, not True"),
        ((int, 0, "x", 1), "the default must be a whole number of at least 1, not 0"),
        ((int, 3, "x", None, 2), "the default must be a whole number of at most 2, not 3"),
        ((str, "c", "x", None, None, ("a", "b")), "the default must be a or b, not 'c'"),
    ],
)
def test_an_option_must_make_sense(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Option(*arguments)


def test_a_kind_has_an_argument_or_options(made: list[dict[str, Any]]) -> None:
    def make(_: Any, __: Any) -> Agent:
        raise AssertionError

    with pytest.raises(ValueError, match="an argument or options, not both"):
        register("other", make, "x", "PATH", options=OPTIONS)
    with pytest.raises(ValueError, match="option 'no-word' is no identifier"):
        register("other", make, "x", options={"no-word": OPTIONS["base"]})
