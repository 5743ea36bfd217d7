"""Compiling and its cache, seen from fresh processes that have a home folder of their own."""

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numba
import pytest

import retinue
from retinue.envs.game import jit

PACKAGE = Path(retinue.__file__).parent
LIMIT = 300
"""Seconds for one process, on the slowest machine."""

FOLDER = "from retinue.envs.game import jit; print(jit.CACHE_FOLDER)"
ROLL = """
import numpy as np
from retinue.envs.game import engine, jit, state
from retinue.envs.game.ruleset import load_ruleset
rules = load_ruleset("brawl")
game = state.new_game(rules)
engine.roll(game, rules.packed, np.uint64(7))
print(game["rolled"][: game["dice"]].tolist())
"""
ROLLED = "[5, 4, 4, 4, 3]\n"
PLAY = f"""{ROLL}
from retinue.envs.game.events import SILENT
turn = state.empty_turn()
turn["noble_steps"] = 6
print(engine.play(game, rules.packed, turn, SILENT), game["position"][0].tolist())
"""
PLAYED = f"{ROLLED}0 [-1, -1, -1, -1, 5]\n"
SLOW = """
import time
from numba.extending import overload
from retinue.envs.game.jit import jit

def wait(number): ...

@overload(wait)
def _wait(number):
    time.sleep(1.2)  # while compiling, not while running
    return lambda number: number

@jit
def inner():
    return wait(1)

@jit
def outer():
    return inner()

@jit
def other():
    return wait(2.5)
"""
"""A module of ours whose functions take a known time to compile."""
HELPER = """
from retinue.envs.game.jit import jit

@jit
def number():
    return 1
"""
CALLER = """
from retinue.envs.game.helper import number
from retinue.envs.game.jit import jit

@jit
def call():
    return number()
"""
"""A compiled function whose helper stands in another file."""
CALL = "from retinue.envs.game.caller import call; print(call())"


@dataclass
class Place:
    """A copy of the package, and a user's home, cache and temporary folder."""

    root: Path
    package: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("NUMBA_", "XDG_", "PYTHONWARNINGS"))
        }
        for name in ("home", "cache", "tmp"):
            (self.root / name).mkdir()
        self.variables = {
            **kept,
            "HOME": str(self.root / "home"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "TMPDIR": str(self.root / "tmp"),
            "PYTHONPATH": str(self.package.parent),
        }

    def set(self, name: str, value: Path | str) -> None:
        self.variables[name] = str(value)

    def start(self, code: str, *flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *flags, "-c", code],
            env=self.variables,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, *flags: str) -> tuple[str, str]:
        """Run ``code``, which must succeed; return what it wrote to standard output and error."""
        process = self.start(code, *flags)
        try:
            out, err = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
        assert process.returncode == 0, err
        return out, err


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package's compiled sources and their data, to be edited."""
    root = tmp_path / "sources" / "retinue"
    root.mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", root)
    for folder in ("agents", "configs", "envs"):
        shutil.copytree(
            PACKAGE / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return root


@pytest.fixture
def place(tmp_path: Path, package: Path) -> Place:
    return Place(tmp_path, package)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- First and later use


def test_first_use_says_once_that_it_compiles_and_later_use_is_silent(place: Place) -> None:
    (place.package / "envs/game/slow.py").write_text(SLOW)
    code = "from retinue.envs.game.slow import *; print(outer(), other(), outer())"
    begun = time.perf_counter()
    out, err = place.run(code)
    first = time.perf_counter() - begun
    assert out == "1 2.5 1\n"
    said = re.fullmatch(
        r"retinue: compiling the engine \(once; kept in (.+)\) \.\.\.\n"
        r"retinue: compiled outer in (\d+\.\d) s\n"  # with what it calls
        r"retinue: compiled other in (\d+\.\d) s\n",
        err,
    )
    assert said is not None, err
    assert Path(said[1]).is_dir()
    assert place.root in Path(said[1]).parents
    assert float(said[2]) >= 1.2
    assert float(said[3]) >= 1.2

    begun = time.perf_counter()
    assert place.run(code) == ("1 2.5 1\n", "")
    assert time.perf_counter() - begun < first


def test_two_processes_may_compile_at_once(place: Place) -> None:
    both = [place.start(ROLL), place.start(ROLL)]
    for process in both:
        out, err = process.communicate(timeout=LIMIT)
        assert (process.returncode, out) == (0, ROLLED), err
    assert place.run(ROLL) == (ROLLED, "")


def test_an_edited_helper_is_compiled_anew(place: Place) -> None:
    """Numba itself would go on with the old ``number``, since ``call`` stands in another file."""
    (place.package / "envs/game/helper.py").write_text(HELPER)
    (place.package / "envs/game/caller.py").write_text(CALLER)
    assert place.run(CALL)[0] == "1\n"
    edit(place.package / "envs/game/helper.py", "return 1", "return 2")
    assert place.run(CALL)[0] == "2\n"
    edit(place.package / "envs/game/helper.py", "return 2", "return 1")
    assert place.run(CALL) == ("1\n", ""), "the first version's cache is still there"


def test_without_compiling_everything_gives_the_same(place: Place) -> None:
    place.set("NUMBA_DISABLE_JIT", "1")
    assert place.run(PLAY, "-W", "error") == (PLAYED, "")
    assert place.run(FOLDER) == ("None\n", "")
    assert list((place.root / "cache").iterdir()) == []


def test_importing_warns_of_nothing_and_leaves_numba_s_own_cache_alone(place: Place) -> None:
    code = (
        "import numba; before = numba.config.CACHE_DIR; import retinue.envs.game.engine;"
        "print(numba.config.CACHE_DIR == before)"
    )
    assert place.run(code, "-W", "error") == ("True\n", "")


def test_other_people_s_functions_compile_without_a_word(place: Place) -> None:
    code = (
        "import numba, retinue.envs.game.jit;"
        "numba.njit(lambda x: x + 1)(1); print(numba.njit(lambda x: x + 2)(1))"
    )
    assert place.run(code) == ("3\n", "")


# --- The digest


def test_digest_tells_every_change_of_a_compiled_source(package: Path) -> None:
    digests = [jit.source_digest(package)]
    edit(package / "envs/game/dice.py", "return 1 + below(", "return 6 - below(")
    digests.append(jit.source_digest(package))
    (package / "agents/new.py").write_text("")
    digests.append(jit.source_digest(package))
    (package / "agents/new.py").rename(package / "agents/newer.py")
    digests.append(jit.source_digest(package))
    (package / "envs/game/deeper").mkdir()
    (package / "envs/game/deeper/new.py").write_text("")
    digests.append(jit.source_digest(package))
    assert len(set(digests)) == 5
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)


def test_digest_tells_nothing_else(package: Path) -> None:
    before = jit.source_digest(package)
    (package / "evaluation").mkdir()
    (package / "evaluation/new.py").write_text("")
    (package / "envs/notes.txt").write_text("")
    (package / "__init__.py").write_text("")
    (package / "envs/render_more.py").write_text("")
    os.utime(package / "envs/game/dice.py", (1, 1))
    assert jit.source_digest(package) == before
    assert jit.source_digest(package.rename(package.with_name("moved"))) == before


def imports(path: Path) -> set[Path]:
    """Our sources that a file imports when it is imported itself."""
    found: set[Path] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("retinue."):
            module = PACKAGE.joinpath(*str(node.module).split(".")[1:])
            inner = [module / f"{name.name}.py" for name in node.names]
            found |= {module.with_suffix(".py"), module / "__init__.py", *inner}
    return {each for each in found if each.exists()}


def test_the_digest_tells_all_that_compiled_sources_import() -> None:
    sources = (path for folder in ("agents", "envs") for path in (PACKAGE / folder).rglob("*.py"))
    needed = {path for path in sources if PACKAGE / "envs/game/jit.py" in imports(path)}
    assert PACKAGE / "envs/kernels.py" in needed
    while more := {each for path in needed for each in imports(path)} - needed:
        needed |= more
    assert needed - {PACKAGE / name for name in jit.digested_sources(PACKAGE)} == set()


def test_digest_tells_numba_s_version(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = jit.source_digest(package)
    monkeypatch.setattr(numba, "__version__", "0.0.1")
    assert jit.source_digest(package) != before


# --- The folder


def blocked(path: Path) -> Path:
    """A file where a folder is looked for: not even root can write into it."""
    shutil.rmtree(path, ignore_errors=True)
    path.write_text("")
    return path


def test_the_cache_folder_falls_back_step_by_step(place: Place) -> None:
    root = place.root
    place.set("NUMBA_CACHE_DIR", root / "chosen")
    expected = root / "chosen" / "retinue" / jit.source_digest(place.package)
    assert place.run(FOLDER) == (f"{expected}\n", "")

    place.set("NUMBA_CACHE_DIR", blocked(root / "file"))
    out, err = place.run(FOLDER)
    assert (root / "home") in Path(out).parents or (root / "cache") in Path(out).parents
    assert err == ""

    blocked(root / "home")
    blocked(root / "cache")
    out, err = place.run(FOLDER)
    assert (root / "tmp") in Path(out).parents
    assert err == ""


def test_without_any_folder_it_warns_once_and_works(place: Place) -> None:
    for name in ("home", "cache"):
        blocked(place.root / name)
    blocked(place.root / "tmp" / f"retinue-numba-{os.getuid()}")
    (place.package / "envs/game/helper.py").write_text(HELPER)
    (place.package / "envs/game/caller.py").write_text(CALLER)
    out, err = place.run(CALL)
    assert out == "1\n"
    assert err.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in err
    assert err.count("retinue: compiling the engine (not kept: no cache folder) ...") == 1


def test_no_temporary_folder_either_is_only_a_warning(place: Place) -> None:
    """With a read-only file system ``tempfile`` finds no folder and says so by an error."""
    for name in ("home", "cache"):
        blocked(place.root / name)
    no_folder = "import tempfile\ndef none():\n    raise FileNotFoundError(2, 'no usable folder')\n"
    out, err = place.run(f"{no_folder}tempfile.gettempdir = none\n{FOLDER}")
    assert out == "None\n"
    assert err.count("RuntimeWarning") == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no owners here")
def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    assert jit.usable_cache(base, "mine") == base / "mine"
    us = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: us + 1)
    assert jit.usable_cache(base, "theirs") is None
    assert not (base / "theirs").exists()
    assert jit.usable_cache(base, "mine") is None


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_nobody_else_may_read_or_write_the_folder(tmp_path: Path) -> None:
    folder = jit.usable_cache(tmp_path / "base", "digest")
    assert folder is not None
    for made in (folder, folder.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert list(folder.iterdir()) == [], "trying it out leaves nothing"


@pytest.mark.parametrize("at", ["base", "base/digest"])
def test_a_file_in_the_place_of_the_folder_is_no_cache(tmp_path: Path, at: str) -> None:
    (tmp_path / at).parent.mkdir(exist_ok=True)
    blocked(tmp_path / at)
    assert jit.usable_cache(tmp_path / "base", "digest") is None


# --- Old caches


def old_caches(base: Path, ages: range) -> list[Path]:
    """Folders like those of earlier versions, made so many hours ago; the newest first."""
    folders = [base / f"{age + 2**40:016x}" for age in ages]
    for folder, age in zip(folders, ages, strict=True):
        (folder / "game_0").mkdir(parents=True)
        (folder / "game_0" / "engine.roll.nbc").write_text("")
        moment = time.time() - 3600 * age
        os.utime(folder, (moment, moment))
    return folders


@pytest.fixture
def base(place: Place) -> Path:
    """The folder of all caches in ``place``."""
    place.set("NUMBA_CACHE_DIR", place.root / "chosen")
    base = place.root / "chosen" / "retinue"
    base.mkdir(parents=True)
    return base


@pytest.mark.parametrize("count", [jit.CACHES_KEPT - 1, jit.CACHES_KEPT + 2])
def test_the_oldest_caches_are_dropped(place: Place, base: Path, count: int) -> None:
    old = old_caches(base, range(1, count + 1))
    used = Path(place.run(FOLDER)[0].strip())
    assert used.parent == base
    assert set(base.iterdir()) == {used, *old[: jit.CACHES_KEPT - 1]}
    assert (old[0] / "game_0" / "engine.roll.nbc").exists()


def test_the_cache_used_last_is_not_dropped_for_its_age(place: Place, base: Path) -> None:
    """A program in daily use keeps its cache while another version of it is being worked on."""
    used = Path(place.run(FOLDER)[0].strip())
    (used / "marker").write_text("")
    os.utime(used, (1e9, 1e9))
    old = old_caches(base, range(1, jit.CACHES_KEPT))
    place.run(FOLDER)
    edit(place.package / "envs/game/dice.py", "return 1 + below(", "return 6 - below(")
    other = Path(place.run(FOLDER)[0].strip())
    assert other != used
    assert (used / "marker").exists()
    assert not old[-1].exists()


def test_only_caches_are_dropped(place: Place, base: Path) -> None:
    """``NUMBA_CACHE_DIR`` may be the parent of a folder ``retinue`` that is somebody's checkout."""
    theirs = [base / name for name in (".git", "agents", "configs", "docs", "envs", "my maps")]
    for index, folder in enumerate(theirs):
        folder.mkdir()
        (folder / "file").write_text("precious")
        os.utime(folder, (1e9 + index, 1e9 + index))
    blocked(base / "README.md")
    old_caches(base, range(1, jit.CACHES_KEPT + 3))
    place.run(FOLDER)
    assert [folder.name for folder in theirs if not (folder / "file").exists()] == []
    assert (base / "README.md").exists()
