"""The JavaScript example for the tests: a copy with its packages, run by Node."""

import contextlib
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import platformdirs
import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLE: Final = ROOT / "docs" / "examples" / "javascript"
VECTORS: Final = ROOT / "docs" / "vectors"
OLDEST: Final = 18
"""Of Node, as ``package.json`` asks for."""
LIMIT: Final = 300


def node() -> str:
    """Return the path of Node; skip the test without one that is new enough."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    number = re.match(r"v(\d+)\.", version.stdout)
    if number is None or int(number[1]) < OLDEST:
        pytest.skip(f"Node {version.stdout.strip()} is older than {OLDEST}")
    return found


def packages() -> Path:
    """Return a folder ``node_modules`` with what the lock file names; skip if it cannot be had.

    It is kept in the user's cache, so that a registry is asked once for each lock file.
    """
    npm = shutil.which("npm")
    lock = (EXAMPLE / "package-lock.json").read_bytes()
    cache = Path(platformdirs.user_cache_dir("retinue", appauthor=False)) / "npm"
    kept = cache / hashlib.sha256(lock).hexdigest()[:16]
    if kept.exists():
        return kept / "node_modules"
    if npm is None:
        pytest.skip("npm is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=cache))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(EXAMPLE / name, draft)
        done = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=draft,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        if done.returncode != 0:
            reason = " ".join(done.stderr.split())[-200:]
            pytest.skip(f"npm could not install the packages: {reason}")
        with contextlib.suppress(OSError):  # another process was quicker
            draft.rename(kept)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return kept / "node_modules"


def copy_example(folder: Path) -> Path:
    """Return a copy of the example that finds its packages."""
    modules = packages()
    copy = folder / "javascript"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(modules)
    return copy


def run_script(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the example with its arguments."""
    return subprocess.run(
        [node(), *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
