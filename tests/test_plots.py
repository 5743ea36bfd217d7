"""Plots and heat maps: what they say, readable by all, and nobody else's settings touched."""

import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from retinue.evaluation import plots
from retinue.evaluation.heat_maps import heat_maps
from retinue.evaluation.plots import (
    AGENT_COLOURS,
    FIGURES,
    PLACE_COLOURS,
    agent_colours,
    apart,
    as_svg,
    ink_on,
    save_plots,
    share_colour,
)
from retinue.evaluation.tournament_words import number, percent, signed
from summaries import CASES, EIGHT, TWELVE, labels_of, made, of_one
from test_render import EYES, cielab


def test_a_tile_says_what_it_is() -> None:
    summary = CASES["eight"]
    kinds = heat_maps(summary)[0]
    assert [len(kind.tiles) for kind in kinds] == [68, 68, 68]
    words = [tile.words for tile in kinds[0].tiles]
    stood = summary.agents[0].stood
    assert words[0] == f"tile 1, the own entering tile: {stood[0]:.3f}"
    assert words[34] == f"tile 35, the midpoint: {stood[34]:.3f}"
    assert words[7] == f"tile 8, a Castle: {stood[7]:.3f}"
    assert words[51] == f"tile 52, yellow's entering tile: {stood[51]:.3f}"
    assert words[5] == f"tile 6: {stood[5]:.3f}"
    assert kinds[0].whole == number(sum(stood), 2)
    # As on the board: forward is clockwise from the right side of the lower arm.
    (x, y, *_), (next_x, next_y, *_) = kinds[0].tiles[0].box, kinds[0].tiles[1].box
    assert x == next_x > 360
    assert y > next_y > 360


def test_colours_of_a_heat_map_are_those_of_all_agents() -> None:
    summary = made(EIGHT[:2])
    nowhere = (0.0,) * 68
    full = of_one(of_one(summary, 0, lost_at=(1.0, 0.25, *nowhere[2:])), 1, lost_at=nowhere)
    (_, one, _), (_, other, _) = heat_maps(full)
    assert [value for _, value in one.legend] == ["0.000", "0.062", "0.250", "0.562", "1.00"]
    assert [one.tiles[tile].colour for tile in (0, 1, 2)] == [
        one.legend[step][0] for step in (4, 2, 0)
    ]
    assert one.legend == other.legend
    assert {tile.colour for tile in other.tiles} == {one.legend[0][0]}
    assert other.most == ""


def test_plots_leave_the_settings_of_others_alone() -> None:
    changed: Any = {"font.size": 31.0, "svg.fonttype": "path", "axes.facecolor": "red"}
    expected = as_svg(plots.ratings(CASES["two"]))
    with matplotlib.rc_context(changed):
        before = matplotlib.rcParams.copy()
        assert as_svg(plots.ratings(CASES["two"])) == expected
        assert matplotlib.rcParams.copy() == before


def test_plots_are_saved(tmp_path: Path) -> None:
    paths = save_plots(CASES["eight"], tmp_path / "new" / "plots")
    assert [path.name for path in paths] == [
        "ratings.svg",
        "places.svg",
        "sources.svg",
        "rounds.svg",
    ]
    for path in paths:
        ElementTree.parse(path)


def test_plots_say_the_numbers() -> None:
    summary = CASES["twelve"]
    words = {draw: ElementTree.fromstring(as_svg(draw(summary))) for draw in FIGURES}
    texts = {draw.__name__: list(tree.itertext()) for draw, tree in words.items()}
    assert "rating (random = 0), with 95% interval" in texts["ratings"]
    for agent, meetings in zip(summary.agents, summary.meetings, strict=True):
        assert signed(agent.rating.value) in texts["ratings"]
        assert number(agent.total.value) in texts["sources"]
        assert percent(agent.places[1], 0) in texts["places"]
        for meeting in filter(None, meetings):
            assert percent(meeting.ahead.value, 0) in texts["head_to_head"]
    assert "rating (mean of all = 0), with 95% interval" in list(
        ElementTree.fromstring(as_svg(plots.ratings(CASES["eight"]))).itertext()
    )


@pytest.mark.parametrize("draw", FIGURES)
@pytest.mark.parametrize("case", ["eight", "twelve", "two"])
def test_names_in_plots_do_not_meet(draw: Any, case: str) -> None:
    figure = draw(CASES[case])
    figure.draw_without_rendering()
    boxes = [
        text.get_window_extent()
        for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))
        if text.get_visible() and text.get_text().split("  ")[-1] in labels_of(CASES[case])
    ]
    assert len(boxes) == len(labels_of(CASES[case]))
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_labels_are_spread_no_more_than_needed() -> None:
    assert apart([1, 5, 3], 1, 0, 9) == [1, 5, 3]
    assert apart([4, 4, 4.5, 9], 1, 0, 9) == pytest.approx([3.17, 4.17, 5.17, 9], abs=0.01)
    assert apart([0, 0, 0], 1, 0, 9) == [0, 1, 2]
    assert apart([9, 9, 9], 1, 0, 9) == [7, 8, 9]
    assert apart([2, 1, 2], 4, 0, 3) == [4, 0, 8]


def test_an_agent_keeps_its_colour() -> None:
    colours = dict(zip(TWELVE, agent_colours(TWELVE), strict=True))
    assert len(set(colours.values())) == len(TWELVE)
    assert agent_colours(TWELVE[::-1]) == [colours[name] for name in TWELVE[::-1]]


@pytest.mark.parametrize("eye", EYES)
def test_colours_of_agents_are_told_apart_by_every_eye(eye: str) -> None:
    shares = np.array([matplotlib.colors.to_rgb(colour) for colour in AGENT_COLOURS])
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = [cielab(EYES[eye] @ colour) for colour in linear]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 25  # a difference of 2 is just noticeable


@pytest.mark.parametrize("colour", [*PLACE_COLOURS, *map(share_colour, np.linspace(0, 1, 41))])
def test_numbers_can_be_read_on_their_colours(colour: Any) -> None:
    def luminance(of: Any) -> float:
        parts = np.array(matplotlib.colors.to_rgb(of))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05

    dark, light = sorted((luminance(colour), luminance(ink_on(colour))))
    assert light / dark > 3.8
