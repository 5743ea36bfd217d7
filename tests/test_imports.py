"""Which module may know which: imports run one way, under one name."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("agents", "envs", "evaluation", "training")
MODULES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FILES = sorted({*MODULES, *ROOT.glob("*.py"), *(ROOT / "tests").rglob("*.py")})
LONGEST = 420

# What a layer must not know; a name stands for itself and all below it.
FORBIDDEN = {
    "envs/game": (
        "retinue.agents",
        "retinue.envs",  # but for `retinue.envs.game`
        "retinue.evaluation",
        "retinue.training",
        "gymnasium",
        "sb3_contrib",
        "stable_baselines3",
        "torch",
    ),
    "envs": ("retinue.agents", "retinue.evaluation", "retinue.training"),
    "agents": ("retinue.evaluation", "retinue.training"),
    "evaluation": ("retinue.training",),
}
NOT_BELOW_THE_COMMAND = (
    "retinue.cli",
    "retinue.cli_common",
    "retinue.cli_export",
    "retinue.cli_measure",
    "retinue.cli_serve",
    "retinue.cli_tune",
    "retinue.cli_vectors",
)


def at(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_or_in(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module a file names: imported anywhere in it, or written as a dotted text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            # `from retinue import training` names `retinue.training`.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            entry_point = re.fullmatch(r"(retinue(?:\.\w+)+)(?::\w+)?", node.value)
            if entry_point:
                yield entry_point[1]


def broken_rules(layer: str, tree: ast.AST) -> list[str]:
    return [
        name
        for name in imported(tree)
        for package in (*FORBIDDEN.get(layer, ()), *NOT_BELOW_THE_COMMAND)
        if is_or_in(name, package)
        and not (layer == "envs/game" and is_or_in(name, "retinue.envs.game"))
    ]


def layer_of(path: Path) -> str:
    return "envs/game" if at(path).startswith("envs/game/") else at(path).split("/")[0]


def texts(nodes: Iterable[ast.AST]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def shared_paths(tree: ast.AST) -> list[str]:
    """Texts that lead into a folder called `shared`: as part of a path, or joined to one."""
    parts: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts += [node.left, node.right]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Path", "join")):
            parts += node.args
    whole = [text for text in texts(parts) if text == "shared"]
    return whole + [t for t in texts(ast.walk(tree)) if re.search(r"(^|/)shared/|/shared$", t)]


@pytest.mark.parametrize("path", MODULES, ids=at)
def test_imports_run_one_way(path: Path) -> None:
    assert broken_rules(layer_of(path), ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", FILES, ids=at)
def test_imports_are_absolute_and_under_our_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    relative = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level]
    assert relative == [], "relative imports at these lines"
    generic = [name for name in imported(tree) if name.split(".")[0] in FOLDERS]
    assert generic == [], "these start with `retinue.`"


@pytest.mark.parametrize("path", FILES, ids=at)
def test_nothing_reads_a_shared_folder(path: Path) -> None:
    assert shared_paths(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", FILES, ids=at)
def test_file_is_not_too_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("envs/game", "import torch.nn"),
        ("envs/game", "from retinue.envs import observation"),
        ("envs", "from retinue import agents"),
        ("envs", "def f():\n    import retinue.training.ppo"),
        ("envs", "load('retinue.agents.base:Agent')"),
        ("agents", "from retinue.evaluation.arena import play"),
        ("evaluation", "from retinue.training import config"),
        ("training", "from retinue.cli import main"),
    ],
)
def test_a_forbidden_import_is_noticed(layer: str, line: str) -> None:
    assert broken_rules(layer, ast.parse(line)) != []


@pytest.mark.parametrize(
    ("layer", "line"),
    [
        ("envs/game", "from retinue.envs.game import board"),
        ("envs/game", "from retinue.envs.game.board import LOOP"),
        ("envs", "import gymnasium"),
        ("agents", "from retinue.envs import observation"),
        ("training", "from retinue.evaluation import arena"),
    ],
)
def test_an_allowed_import_is_not(layer: str, line: str) -> None:
    assert broken_rules(layer, ast.parse(line)) == []


@pytest.mark.parametrize(
    "line", ["open('../FOLDER/rules.md')", "open(root / 'FOLDER')", "Path('..', 'FOLDER')"]
)
def test_reading_a_shared_folder_is_noticed(line: str) -> None:
    assert shared_paths(ast.parse(line.replace("FOLDER", "shared"))) != []
    assert shared_paths(ast.parse(line.replace("FOLDER", "shared_layers"))) == []
