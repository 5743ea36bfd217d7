"""The report of a tournament: complete, safe whatever names say, and the same each time."""

import csv
import functools
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from retinue.envs.game.schema import SchemaError, from_json
from retinue.evaluation.heat_maps import heat_maps
from retinue.evaluation.plots import FIGURES
from retinue.evaluation.summary import AgentSummary, TournamentSummary
from retinue.evaluation.tournament_html import as_html
from retinue.evaluation.tournament_report import (
    as_markdown,
    as_rich,
    check_page,
    renew_page,
    write_all,
    write_report,
    write_tables,
)
from retinue.evaluation.tournament_words import (
    headline,
    luck_in_words,
    number,
    percent,
    short_names,
    signed,
)
from summaries import CASES, EIGHT, TWELVE, WILD, labels_of, made

PAGE = "# Title\n\n<!-- generated: tournament -->\nold\n<!-- end of generated part -->\n\nEnd.\n"


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@functools.cache
def report(case: str) -> str:
    return as_html(CASES[case])


class Page(HTMLParser):
    """What a page says and refers to; it must be well-formed."""

    EMPTY = ("meta", "link", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.titles: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
            elif name == "title":
                self.titles.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_a_report_needs_nothing_else(case: str) -> None:
    text = report(case)
    page = Page(text)
    assert {link[0] for link in page.links} == {"#"}
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert not {"script", "img", "iframe", "object", "embed", "link"} & set(page.tags)
    assert "symbol" not in page.tags  # it would be scaled to the part that a map shows
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert len(text) < 1_000_000


def test_a_report_is_the_same_each_time() -> None:
    assert as_html(CASES["two"]) == report("two")


def numbers_of(agent: AgentSummary) -> set[str]:
    """The numbers of an agent, as the tables have them."""
    of_intervals = {
        signed(agent.rating.value),
        f"{signed(agent.rating.low)} to {signed(agent.rating.high)}",
        percent(agent.first.value),
        number(agent.total.value),
    }
    whole = ("matches", "progression", "captures", "bonus", "points_lost", "forfeited")
    to_one = ("penalty", "exits", "rolls", "kept", "left", "wasted")
    captures = ("guards_captured", "nobles_captured", "guards_lost", "nobles_lost")
    to_two = ("place", "midpoints", "homes", *captures)
    shares = (*agent.places, *agent.guard_paths, *agent.noble_paths, *agent.by_seat)
    return {
        *of_intervals,
        *(number(getattr(agent, name)) for name in whole),
        *(number(getattr(agent, name), 1) for name in to_one),
        *(number(getattr(agent, name), 2) for name in to_two),
        *map(percent, (*shares, agent.finished, agent.forward, agent.still)),
        *map(number, agent.rounds),
    }


def test_every_agent_and_number_is_there(case: str) -> None:
    page, summary = Page(report(case)), CASES[case]
    told = " ".join(page.texts)
    for agent, label in zip(summary.agents, labels_of(summary), strict=True):
        assert label in page.texts
        assert numbers_of(agent) <= set(page.texts)
        assert (agent.finishing_round is None) or number(agent.finishing_round, 1) in page.texts
        assert (agent.microseconds is not None) or "not measured" in page.texts
    for meetings in summary.meetings:
        for meeting in filter(None, meetings):
            assert percent(meeting.ahead.value, 0) in page.texts
            assert signed(meeting.points) in page.texts
            assert any(f"in {meeting.blocks:,} blocks" in title for title in page.titles)
    tiles = [tile.words for maps in heat_maps(summary) for each in maps for tile in each.tiles]
    assert [text for text in page.texts if re.match(r"tile \d+[:,] ?", text)] == tiles
    for sentence in (*headline(summary), luck_in_words(summary.luck)):
        assert sentence in page.texts
    for fact in (summary.rules, summary.retinue, summary.mode, summary.processor):
        assert fact in told
    assert f"{summary.seed} to {summary.seed + summary.blocks - 1}" in told


def test_every_column_is_explained() -> None:
    heads = re.findall(r"<th scope=\"col\"([^>]*)>([^<]*)</th>", report("eight"))
    assert len(heads) > 60
    assert {head for title, head in heads if not title} == {"agent", "seat"}


def test_names_are_shown_as_they_are() -> None:
    summary, text = CASES["wild"], report("wild")
    assert "<b>" not in text
    page = Page(text)
    assert page.texts.count(WILD) > 10
    assert WILD in page.titles
    for name in ("a$b$_{c}^", "?[31mred?", "語 🎲", "-->", "{{ 1 + 1 }}"):
        assert name in page.texts
    assert "<b>" not in as_markdown(summary).replace(f"`{WILD}`", "")
    assert "`x\\|y?z`" in as_markdown(summary)


def test_plots_are_svg_with_text(case: str) -> None:
    found = re.findall(r'<svg [^>]*width="[\d.]+pt".*?</svg>', report(case), re.DOTALL)
    assert len(found) == len(FIGURES)
    for text in found:
        words = " ".join(ElementTree.fromstring(text).itertext())
        for label in labels_of(CASES[case]):
            assert label in words
        assert not re.search(r"matplotlib|20\d\d-|<image", text, re.IGNORECASE)


def test_names_are_short_and_no_two_alike() -> None:
    assert short_names(TWELVE[:4]) == ["search", "tactician", "hunter", "blockader"]
    assert short_names(["a/b/bot.py:Bot", "policy:runs/quick"]) == ["a/b/bot.py", "policy"]
    assert short_names(["policy:runs/one", "policy:a/longer/way/two"]) == [
        "policy:runs/one",
        "policy:two",
    ]
    assert (
        short_names(["/home/somebody/bot.py:Bot", "C:\\bots\\of\\mine\\bot.py:Bot"])[0] == "bot.py"
    )
    alike = ["search:top=8,depth=1,rollouts=10", "search:top=8,depth=2,rollouts=10"]
    assert short_names(alike) == ["search:to…louts=10 #1", "search:to…louts=10 #2"]
    assert short_names(["greedy", "greedy #2"]) == ["greedy", "greedy #2"]


def test_numbers_are_written_properly() -> None:
    assert [number(value) for value in (1234.4, -0.3, -12.6, np.inf)] == ["1,234", "0", "−13", "∞"]
    assert [signed(value) for value in (0.2, -0.2, 7, -7, np.inf)] == ["0", "0", "+7", "−7", "+∞"]
    assert percent(0.12345) == "12.3"


@pytest.mark.parametrize(
    ("above", "known"),
    [
        (1.0, "That it is the strongest is clear: it rates above hunter in every resample of"),
        (0.9995, "That it is the strongest is clear: it rates above hunter in over 99.9% of"),
        (0.9, "That it is the strongest is likely, but not sure: it rates above hunter in 90.0%"),
        (0.6, "Which of them is the strongest is open: it rates above hunter in 60.0% of"),
    ],
)
def test_the_headline_says_how_sure_it_is(above: float, known: str) -> None:
    summary = made(EIGHT[:3])
    rows = ((0.0, above, 0.99), *summary.above[1:])
    told, doubt = headline(summary.model_copy(update={"above": rows}))
    assert told.startswith("tactician rates highest of 3 agents, 70 points above hunter; it comes")
    assert doubt.startswith(known)
    rows = ((0.0, above, 0.7), *summary.above[1:])
    _, doubt = headline(summary.model_copy(update={"above": rows}))
    others = "blockader" if above > 0.95 else "hunter and blockader"
    assert doubt.endswith(f" Not told apart from it with certainty: {others}.")


def test_tables_can_be_read_back(tmp_path: Path) -> None:
    summary = CASES["wild"]
    paths = write_tables(summary, tmp_path / "new")
    assert [path.name for path in paths] == ["summary.json", "agents.csv", "head_to_head.csv"]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert from_json(TournamentSummary, texts[0]) == summary
    agents = list(csv.DictReader(io.StringIO(texts[1])))
    assert [row["name"] for row in agents] == [agent.name for agent in summary.agents]
    for row, agent in zip(agents, summary.agents, strict=True):
        assert [float(row[f"rating{end}"]) for end in ("", "_low", "_high")] == [
            agent.rating.value,
            agent.rating.low,
            agent.rating.high,
        ]
        assert float(row["places_2"]) == agent.places[1]
        assert float(row["by_seat_red"]) == agent.by_seat[1]
        assert float(row["noble_paths_backward_then_forward"]) == agent.noble_paths[3]
        assert int(row["matches"]) == agent.matches
    meetings = list(csv.DictReader(io.StringIO(texts[2])))
    assert len(meetings) == len(agents) * (len(agents) - 1)
    met = summary.meetings[0][1]
    assert met is not None
    assert meetings[0] == {
        "one": WILD,
        "other": "a$b$_{c}^",
        "ahead": str(met.ahead.value),
        "ahead_low": str(met.ahead.low),
        "ahead_high": str(met.ahead.high),
        "points": str(met.points),
        "blocks": str(met.blocks),
        "rates_above": str(summary.above[0][1]),
    }


def test_tables_leave_out_what_is_unknown(tmp_path: Path) -> None:
    paths = write_tables(CASES["unknown"], tmp_path)
    assert from_json(TournamentSummary, paths[0].read_text()) == CASES["unknown"]
    agent, meeting = (
        next(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) for path in paths[1:]
    )
    assert {agent[name] for name in ("finishing_round", "microseconds", "guard_paths_forward")} == {
        ""
    }
    assert [meeting["ahead"], meeting["points"], meeting["blocks"]] == ["", "", "0"]
    assert meeting["rates_above"]


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    summary = CASES["two"]
    assert write_all(summary, tmp_path / "new") == tmp_path / "new" / "report.html"
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == report("two")
    assert len(list((tmp_path / "new").iterdir())) == 4
    with pytest.raises(OSError, match="missing"):
        write_report(summary, tmp_path / "missing" / "report.html")


def test_the_table_for_the_terminal_fits(case: str) -> None:
    summary = CASES[case]
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(as_rich(summary))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    for agent in summary.agents:
        assert f"{signed(agent.rating.value)} ({signed(agent.rating.low)} to" in text
        assert f"{percent(agent.first.value)} ({percent(agent.first.low)} to" in text


def test_the_part_of_a_page_has_all_agents(case: str) -> None:
    summary = CASES[case]
    text = as_markdown(summary)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (2 + len(summary.agents))
    widths = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert set(widths) == {8, 17}
    assert "svg" not in text
    for agent in summary.agents:
        assert signed(agent.rating.value) in text


def test_a_page_is_renewed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    check_page(page)
    assert page.read_text() == PAGE
    renew_page(page, [CASES["eight"], CASES["twelve"]])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n")
    assert text.endswith("\n\nEnd.\n")
    assert "\nold\n" not in text
    assert text.index("### Journey") < text.index("### Brawl")
    pictures = re.findall(r"!\[[^]]+]\(([^)]+)\)", text)
    assert len(pictures) == 8
    assert all((tmp_path / picture).is_file() for picture in pictures)
    page.write_text("# Title\n")
    with pytest.raises(SchemaError, match=r"page\.md: the document has no"):
        check_page(page)
    with pytest.raises(SchemaError, match="No such file"):
        check_page(tmp_path / "none.md")
