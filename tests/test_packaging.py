"""What is installed: the whole package under one name, however it gets there."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import retinue

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {"build", "dist", "runs"}  # at the root: what tools and training write
NOT_CODE = {"docs", "tests"}
CONFIG = "configs/rules/journey.yaml"

# Run where the checkout is not: imports every package, reads a configuration.
PROBE = f"""
import importlib, importlib.resources, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
root = importlib.resources.files("retinue")
assert (root / {CONFIG!r}).read_text(encoding="utf-8").strip()
assert (root / "py.typed").is_file()
print(importlib.import_module("retinue").__file__)
"""


def skipped(folder: Path) -> bool:
    """Whether a folder of the checkout is a cache, a build or an environment."""
    return (
        folder.name.startswith((".", "__"))
        or folder.name.endswith(".egg-info")
        or (folder.name in NOT_OURS and folder.parent == ROOT)
        or (folder / "pyvenv.cfg").exists()
    )


def code_files() -> list[Path]:
    """Every Python file of the package, relative to the root."""
    found = []
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT)
        folders = [ROOT.joinpath(*inside.parts[:depth]) for depth in range(1, len(inside.parts))]
        if inside.parts[0] not in NOT_CODE and not any(map(skipped, folders)):
            found.append(inside)
    return sorted(found)


def dotted(folder: Path) -> str:
    return ".".join(("retinue", *folder.parts))


def run(*command: str | Path, cwd: Path, python_path: Path | None = None) -> str:
    """Run a Python command elsewhere and return what it printed; fail with all its output."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if python_path is not None:
        env["PYTHONPATH"] = str(python_path)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def packages(project: dict[str, Any]) -> list[str]:
    names: list[str] = project["tool"]["setuptools"]["packages"]
    return names


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel built from the checkout, the source distribution, and the wheel built from that.

    A copy is built, so that neither an old `build` folder gets in nor a new one is left behind.
    """
    source = tmp_path_factory.mktemp("source") / "checkout"

    def unwanted(folder: str, names: list[str]) -> set[str]:
        return {
            name for name in names if Path(folder, name).is_dir() and skipped(Path(folder, name))
        }

    shutil.copytree(ROOT, source, ignore=unwanted)
    out = tmp_path_factory.mktemp("dist")
    build = ("-m", "build", "--no-isolation")
    # Without `--wheel`, the wheel is built from the source distribution.
    run(*build, "--outdir", out / "indirect", source, cwd=out)
    shutil.rmtree(source / "retinue.egg-info")
    run(*build, "--wheel", "--outdir", out / "direct", source, cwd=out)
    (sdist,) = (out / "indirect").glob("*.tar.gz")
    (wheel,) = (out / "direct").glob("*.whl")
    (wheel_of_sdist,) = (out / "indirect").glob("*.whl")
    return {"sdist": sdist, "wheel": wheel, "wheel of the sdist": wheel_of_sdist}


@pytest.fixture(scope="session")
def install(
    built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Install a built wheel, without what it needs, in a folder of its own."""

    def into_folder(kind: str) -> Path:
        target = tmp_path_factory.mktemp("target")
        pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
        run(*pip, "--target", target, built[kind], cwd=target)
        return target

    return into_folder


def test_packages_are_the_folders_that_hold_code(packages: list[str]) -> None:
    with_init = {dotted(path.parent) for path in code_files() if path.name == "__init__.py"}
    assert sorted(packages) == sorted(with_init)


def test_every_folder_with_code_has_an_init() -> None:
    folders = {path.parent for path in code_files()}
    assert [str(f) for f in sorted(folders) if not (ROOT / f / "__init__.py").exists()] == []


@pytest.mark.parametrize("kind", ["wheel", "wheel of the sdist"])
def test_wheel_holds_the_package_and_nothing_else(built: dict[str, Path], kind: str) -> None:
    with zipfile.ZipFile(built[kind]) as archive:
        names = archive.namelist()
    data = {
        *ROOT.glob("configs/**/*.yaml"),
        *ROOT.glob("evaluation/templates/*"),
        *ROOT.glob("agents/zoo/*"),
        *(path for path in ROOT.glob("agents/server/static/**/*") if path.is_file()),
    }
    configs = {path.relative_to(ROOT).as_posix() for path in data}
    code = {path.as_posix() for path in code_files()}
    assert {CONFIG, "agents/zoo/README.md"} <= configs
    expected = {f"retinue/{name}" for name in code | configs | {"py.typed"}}
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_sdist_can_be_built_and_read(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "py.typed", CONFIG} <= names
    assert "agents/zoo/README.md" in names
    assert {path.as_posix() for path in code_files()} <= names


def test_version_and_licence_are_in_the_metadata(install: Callable[[str], Path]) -> None:
    (found,) = metadata.distributions(name="retinue", path=[str(install("wheel"))])
    assert found.version == retinue.__version__
    assert found.metadata["License-Expression"] == "MIT"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (found.version, "MIT")


@pytest.mark.parametrize("kind", ["wheel", "wheel of the sdist"])
def test_wheel_works_away_from_the_checkout(
    install: Callable[[str], Path], packages: list[str], tmp_path: Path, kind: str
) -> None:
    target = install(kind)
    imported = run("-c", PROBE, *packages, cwd=tmp_path, python_path=target)
    assert Path(imported.strip()) == target / "retinue" / "__init__.py"
    installed = {path.name for path in target.iterdir() if path.suffix != ".dist-info"}
    assert installed - {"bin"} == {"retinue"}


def test_editable_install_works_away_from_the_checkout(packages: list[str], tmp_path: Path) -> None:
    imported = run("-c", PROBE, *packages, cwd=tmp_path)
    assert Path(imported.strip()) == ROOT / "__init__.py"


def test_editable_install_offers_no_generic_name(tmp_path: Path) -> None:
    """With the root on `sys.path`, `import agents` would find ours."""
    printed = run("-c", "import sys; print(*sys.path, sep='\\n')", cwd=tmp_path)
    assert str(ROOT) not in printed.splitlines()


def test_command_is_installed(project: dict[str, Any]) -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="retinue")
    assert project["project"]["scripts"] == {"retinue": command.value}
    assert callable(command.load())


def test_lock_satisfies_what_the_package_asks_for(project: dict[str, Any]) -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    locked = {pin.name.lower().replace("_", "-"): pin for pin in pins}
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *(line for e in extras.values() for line in e)]
    for line in asked:
        need = Requirement(line)
        if need.name == "retinue":
            continue
        (pin,) = locked[need.name.lower().replace("_", "-")].specifier
        assert pin.operator == "=="
        assert need.specifier.contains(pin.version), f"{line} is locked at {pin.version}"
