"""Compiling: the one place that knows Numba's options, its cache and the first-use message.

Everything that runs inside the engine is a plain Python function decorated with :func:`jit`
(one game) or :func:`parallel_jit` (many games). With ``NUMBA_DISABLE_JIT=1`` the same functions
run as ordinary Python, which is how they are debugged and how their coverage is measured.

Numba's own cache looks at the file of the compiled function only, so it goes stale when a helper
in another file changes, and it fails where that folder cannot be written. Here the cache lives in
the user's cache folder, in a sub-folder named after a digest of all sources that are compiled.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.ir
import numba
import numpy as np
import platformdirs
from numba import types
from numba.core import event
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_CONFIG: Any = numba.config  # it makes its attributes as it starts, which no type checker sees

ENABLED = not _CONFIG.DISABLE_JIT
"""False when ``NUMBA_DISABLE_JIT=1``: nothing is compiled."""

CACHES_KEPT = 4
"""Source versions whose caches stay: the one in use and those used last before it."""

_COMPILED_FOLDERS = ("envs", "agents")
# Of these, no compiled code imports anything (a test checks it): an edit compiles nothing anew.
_NEVER_COMPILED = (
    "envs/*_env.py",
    "envs/batch.py",
    "envs/checks.py",
    "envs/common.py",
    "envs/document.py",
    "envs/last_moves.py",
    "envs/render*.py",
    "envs/scenes.py",
    "envs/seating.py",
    "envs/staged.py",
    "envs/vectors.py",
    "agents/artifact.py",
    "agents/loading.py",
    "agents/lookahead.py",
    "agents/network.py",
    "agents/onnx_export.py",
    "agents/playouts.py",
    "agents/options.py",
    "agents/policy.py",
    "agents/policy_search.py",
    "agents/process.py",
    "agents/registry.py",
    "agents/search.py",
    "agents/server/*.py",
    "agents/user.py",
    "agents/vectors.py",
    "agents/worker.py",
    "agents/zoo.py",
)
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def digested_sources(root: Path) -> list[Path]:
    """Return the sources that compiled code may depend on, relative to the package folder."""
    found = sorted(path for folder in _COMPILED_FOLDERS for path in (root / folder).rglob("*.py"))
    names = [path.relative_to(root) for path in found]
    return [name for name in names if not any(map(name.match, _NEVER_COMPILED))]


def source_digest(root: Path) -> str:
    """Return a hex digest of the compiled sources under the package folder ``root``."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in digested_sources(root):
        digest.update(name.as_posix().encode())
        digest.update((root / name).read_bytes())
    return digest.hexdigest()[:16]


def cache_candidates() -> Iterator[Path]:
    """Yield the folders that may hold the cache, the best one first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "retinue"
    yield Path(platformdirs.user_cache_dir("retinue", appauthor=False)) / "numba"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    with contextlib.suppress(OSError):  # there may be no temporary folder at all
        yield Path(tempfile.gettempdir()) / f"retinue-numba-{user}"


def usable_cache(base: Path, digest: str) -> Path | None:
    """Return ``base/digest``, made if need be; None if it is not ours or cannot be written."""
    folder = base / digest
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The cache holds pickles: a folder that somebody else planted must not be read.
        if hasattr(os, "getuid") and base.stat().st_uid != os.getuid():
            return None
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    return folder


def _drop_old_caches(used: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(used)  # its age is the time since its last use
        # The folder may hold other things than caches: somebody's checkout may have its name.
        caches = [path for path in used.parent.iterdir() if re.fullmatch("[0-9a-f]{16}", path.name)]
        others = [path for path in caches if path != used]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for folder in others[CACHES_KEPT - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)


def _find_cache() -> Path | None:
    digest = source_digest(Path(__file__).parents[2])
    for base in cache_candidates():
        if folder := usable_cache(base, digest):
            _drop_old_caches(folder)
            return folder
    warnings.warn(
        "Retinue found no folder to keep its compiled engine in and will compile it at every "
        "start; set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


CACHE_FOLDER: Path | None = _find_cache() if ENABLED else None
"""Where compiled code is kept; None when nothing is kept."""


@contextlib.contextmanager
def _our_cache(function: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Point Numba at our folder while it decorates one function; give the cache option.

    The digest covers our own sources alone, so what others write is compiled at each start: kept,
    it would go stale when a helper in another of their files changes.
    """
    if CACHE_FOLDER is None or not function.__module__.startswith("retinue."):
        yield {"cache": False}
        return
    before = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = str(CACHE_FOLDER)
    try:
        yield {"cache": True}
    finally:
        _CONFIG.CACHE_DIR = before


def _compiled(function: F, **options: Any) -> F:
    with _our_cache(function) as cache:
        return numba.njit(**_OPTIONS, **cache, **options)(function)  # type: ignore[no-any-return]


def jit(function: F) -> F:
    """Compile ``function`` for one game at a time."""
    return _compiled(function)


def inner_jit(function: F) -> F:
    """Compile ``function`` for compiled callers alone: without wrappers it takes half as long."""
    return _compiled(function, **_NO_WRAPPERS)


def inline_jit(function: F) -> F:
    """Compile ``function`` into its compiled callers: for the few helpers that run every step."""
    return _compiled(function, **_NO_WRAPPERS, forceinline=True)


def parallel_jit(function: F) -> F:
    """Compile ``function``, whose ``prange`` loop runs over games.

    Keep the body of that loop to one call: Numba 0.68 silently drops writes to nested arrays of
    a record that an inner loop makes there.
    """
    return _compiled(function, parallel=True)


def wrapping_jit(function: F) -> F:
    """Compile ``function``, whose ``uint64`` arithmetic is meant to wrap around.

    Compiled code wraps silently; NumPy's scalars warn about it, which is switched off here.
    """
    if ENABLED:
        return jit(function)
    return np.errstate(over="ignore")(function)


class Callback:
    """A function over records that compiled code calls by its address.

    Its callers need not be compiled again for another function of the same arguments, nor does its
    own code become part of theirs: the engine is compiled once, not once for each kernel.

    Args:
        function: the plain Python function, written for :func:`jit`; it returns an ``int64``.
        arguments: the NumPy dtypes of its arguments.
    """

    def __init__(self, function: Callable[..., int], arguments: Sequence[Any]) -> None:
        self.function = function
        self.arguments = tuple(np.dtype(each) for each in arguments)
        self._address = 0

    @property
    def address(self) -> int:
        """Where :func:`call_at` finds the function, which is compiled when this is first asked."""
        if not self._address:
            self._address = _address_of(self.function, self.arguments)
        return self._address

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the address behind: a copy may wake up in another process."""
        return type(self), (self.function, self.arguments)


_kept: list[Any] = []
"""What addresses point to; kept for good, since compiled code may hold the address."""


@functools.cache
def _address_of(function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
    if not ENABLED:
        _kept.append(function)
        return len(_kept)
    signature = types.int64(*(numba.from_dtype(each) for each in arguments))
    with _our_cache(function) as cache, _NOTICE.around(function.__name__):
        compiled = numba.cfunc(signature, **_OPTIONS, **cache)(function)
    _kept.append(compiled)
    return int(compiled.address)  # type: ignore[arg-type] # it is compiled by now


@intrinsic
def _call_address(context: Any, address: Any, arguments: Any) -> Any:
    signature = types.int64(types.int64, arguments)

    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        inputs = [target.get_value_type(each) for each in signature.args[1]]
        function = llvmlite.ir.FunctionType(llvmlite.ir.IntType(64), inputs)
        values = [builder.extract_value(given[1], index) for index in range(len(inputs))]
        return builder.call(builder.inttoptr(given[0], function.as_pointer()), values)

    return signature, generate


@intrinsic
def _address_as_record(context: Any, address: Any, dtype: Any) -> Any:
    signature = dtype.dtype(types.int64, dtype)

    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], target.get_value_type(signature.return_type))

    return signature, generate


if ENABLED:

    @inline_jit
    def record_at(address: int, dtype: Any) -> Any:
        """Return the record of a ``dtype`` (a global constant) that lies at ``address``."""
        return _address_as_record(address, dtype)  # type: ignore[call-arg] # Numba adds the first

    @inline_jit
    def call_at(address: int, arguments: tuple[Any, ...]) -> int:
        """Call the :class:`Callback` at ``address``; give what it returns."""
        return _call_address(address, arguments)  # type: ignore[call-arg] # Numba adds the first

else:

    def record_at(address: int, dtype: Any) -> Any:
        """Return the record of a ``dtype`` (a global constant) that lies at ``address``."""
        memory = (ctypes.c_char * dtype.itemsize).from_address(int(address))
        return np.frombuffer(memory, dtype)[0]

    def call_at(address: int, arguments: tuple[Any, ...]) -> int:
        """Call the :class:`Callback` at ``address``; give what it returns."""
        called: int = _kept[address - 1](*arguments)
        return called


class _CompileNotice(event.Listener):
    """Says on standard error, once, that the engine is being compiled, and how long it took."""

    SHORT = 1.0

    def __init__(self) -> None:
        self._depth = 0
        self._begun = 0.0
        self._announced = False

    @contextlib.contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Take all that is compiled inside as one."""
        self._start(announce=False)
        try:
            yield
        finally:
            self._end(name)

    def on_start(self, happening: Any) -> None:
        if self._is_ours(happening):
            self._start(announce=True)

    def on_end(self, happening: Any) -> None:
        if self._is_ours(happening):
            self._end(happening.data["dispatcher"].py_func.__name__)

    @staticmethod
    def _is_ours(happening: Any) -> bool:
        function = happening.data["dispatcher"].py_func
        return bool(function.__module__.startswith("retinue."))

    def _start(self, *, announce: bool) -> None:
        if self._depth == 0:
            self._begun = time.perf_counter()
        self._depth += 1
        if announce and not self._announced:
            self._announced = True
            kept = f"once; kept in {CACHE_FOLDER}" if CACHE_FOLDER else "not kept: no cache folder"
            print(f"retinue: compiling the engine ({kept}) ...", file=sys.stderr, flush=True)

    def _end(self, name: str) -> None:
        self._depth -= 1
        seconds = time.perf_counter() - self._begun
        if self._depth == 0 and self._announced and seconds >= self.SHORT:
            print(f"retinue: compiled {name} in {seconds:.1f} s", file=sys.stderr, flush=True)


_NOTICE = _CompileNotice()
if ENABLED:
    event.register("numba:compile", _NOTICE)  # type: ignore[no-untyped-call]
