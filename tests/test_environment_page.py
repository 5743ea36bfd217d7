"""The page on the environment is true: its examples run, and it names every argument."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import retinue.agents
from retinue.envs.aec_env import RetinueAECEnv
from retinue.envs.gym_env import RetinueEnv
from retinue.envs.vector_env import RetinueVectorEnv

PAGE = Path(retinue.agents.__file__).parents[1] / "docs" / "environment.md"
TEXT = PAGE.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_its_examples_run(snippet: str, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(1)  # two are many times slower while others use the machine
    exec(compile(snippet, PAGE.name, "exec"), {"__name__": "example"})
    if "print(" in snippet:
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    "interface", ["make(", "make_vec(", "aec_env", "MaskablePPO", "Categorical"]
)
def test_every_interface_has_an_example(interface: str) -> None:
    assert any(interface in snippet for snippet in SNIPPETS)


@pytest.mark.parametrize("environment", [RetinueEnv, RetinueVectorEnv, RetinueAECEnv])
def test_it_names_every_argument(environment: Any) -> None:
    tables = TEXT.split("| argument | default | meaning |")[1:]
    rows = [
        name
        for table in tables
        for name in re.findall(r"^\| `(\w+)` \|", table.split("\n\n")[0], re.MULTILINE)
    ]
    arguments = list(environment.__init__.__annotations__)
    assert [name for name in arguments if name not in (*rows, "mode", "return")] == []


def test_its_links_lead_to_headings() -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    assert {link for link in re.findall(r"\]\(#([^)]+)\)", TEXT) if link not in anchors} == set()
