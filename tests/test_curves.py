"""Learning curves: what a run's measurements say, drawn."""

import json
from pathlib import Path

import pytest

from retinue.cli import main
from retinue.training.curves import draw_curves, read_curves
from retinue.training.run_folder import RunError


def run_with(folder: Path, shares: dict[str, list[float]]) -> Path:
    """Write a run's measurements: at each million decisions a share, 0.1 on either side."""
    folder.mkdir()
    count = len(next(iter(shares.values())))
    lines = [
        {
            "decisions": 1_000_000 * (number + 1),
            "against": {
                name: {"value": values[number], "low": values[number] - 0.1, "high": 0.9}
                for name, values in shares.items()
            },
        }
        for number in range(count)
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def test_a_curve_is_what_was_measured(tmp_path: Path) -> None:
    one, other = read_curves(run_with(tmp_path / "run", {"a": [0.2, 0.4], "b": [0.5, 0.3]}))
    assert (one.against, other.against, other.run) == ("a", "b", "run")
    assert one.decisions.tolist() == [1.0, 2.0]
    assert one.shares[:, 0].tolist() == [0.2, 0.4]
    assert other.shares[1].tolist() == pytest.approx([0.3, 0.2, 0.9])


def test_the_final_measurement_ends_it(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"a": [0.2, 0.4]})
    final = {"decisions": 2_500_000, "against": {"a": {"value": 0.6, "low": 0.55, "high": 0.65}}}
    (run / "evaluation.json").write_text(json.dumps(final))
    (curve,) = read_curves(run)
    assert curve.decisions.tolist() == [1.0, 2.0, 2.5]
    assert curve.shares[-1].tolist() == [0.6, 0.55, 0.65]


def test_each_line_up_has_a_colour_and_each_run_a_line(tmp_path: Path) -> None:
    runs = [run_with(tmp_path / name, {"a": [0.2, 0.4], "b": [0.5, 0.3]}) for name in "xy"]
    figure = draw_curves([curve for run in runs for curve in read_curves(run)])
    lines = figure.axes[0].lines[:4]
    colours = [line.get_color() for line in lines]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_the_command_draws_them(tmp_path: Path) -> None:
    runs = [run_with(tmp_path / name, {"three tactician": [0.2, 0.4]}) for name in "xy"]
    out = tmp_path / "curves.svg"
    assert main(["curves", *map(str, runs), "--out", str(out)]) == 0
    text = out.read_text()
    assert text.startswith("<svg")
    assert "three tactician" in text
    assert "million decisions" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("", "has not been measured yet"),
        ("{", "not the measurements of a training run"),
        ('{"decisions": 1}\n', "not the measurements of a training run"),
    ],
)
def test_a_folder_without_measurements_is_refused(
    content: str | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "metrics.jsonl").write_text(content)
    with pytest.raises(RunError, match=message):
        read_curves(tmp_path)
