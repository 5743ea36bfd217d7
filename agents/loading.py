"""A user's own agent: from the path of its class to an object, or to one line on what is wrong.

A path is ``folder/bot.py:ClassName`` or ``some.module:ClassName``. Importing runs whatever the file
holds, so nothing here may be reached by a path that somebody else wrote: in a record, in a
configuration, in a request.
"""

import difflib
import hashlib
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from retinue.envs.game.ruleset import Ruleset

SUFFIX: Final = ".py"
LONGEST: Final = 200
"""Characters of another's text in a message or a name."""

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class LoadError(ValueError):
    """A path that leads to no agent; one line that says what is wrong."""


def is_path(spec: str) -> bool:
    """Tell whether a specification is the path of a class, whether or not there is such a class."""
    source, colon, _ = spec.rpartition(":")
    return spec.endswith(SUFFIX) or (
        bool(colon) and (source.endswith(SUFFIX) or _DOTTED.fullmatch(source) is not None)
    )


def load(spec: str, ruleset: Ruleset, *, alone: bool = False) -> tuple[Any, str]:
    """Import a class, make an agent of it and return it with its name.

    Args:
        spec: the path of the class.
        ruleset: is given to the constructor if that takes it.
        alone: this process is the agent's own, and its folder is where imports look first.

    Returns:
        The agent, and what it is called: its own ``name``, or ``spec`` if it has none.

    Raises:
        LoadError: there is no such class, or what it makes is no agent.
    """
    source, _, name = (spec, "", "") if spec.endswith(SUFFIX) else spec.rpartition(":")
    module = (
        _import_file(source, alone=alone) if source.endswith(SUFFIX) else _import_module(source)
    )
    kind = _class_of(module, name, source)
    if not callable(getattr(kind, "choose", None)):
        raise LoadError(f"{spec}: has no method choose(self, view, rng)")
    try:
        agent = _make(kind, spec, ruleset)
        called = getattr(agent, "name", None)
    except (LoadError, KeyboardInterrupt):
        raise
    except BaseException as error:  # even what would end the process
        told = told_error(error, module.__file__)
        raise LoadError(f"{spec}: its constructor failed: {told}") from error
    if not _takes(agent.choose, None, None):
        raise LoadError(f"{spec}: choose must take (self, view, rng), not {_signature(kind)}")
    if called is None:
        return agent, spec
    if not isinstance(called, str) or not called.strip() or not called.isprintable():
        raise LoadError(f"{spec}: its name must be a line of text")
    return agent, called[:LONGEST]


def told_error(error: BaseException, file: str | None) -> str:
    """Return an error in one line: type, message, and the last line of ``file`` that led to it."""
    message = " ".join(str(error).split())[:LONGEST]
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return f"{text} (line {lines[-1]})" if lines else text


def _import_file(source: str, *, alone: bool) -> ModuleType:
    """Import a file under a name of its own, so that files of the same name do not clash."""
    path = Path(source).absolute()
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise LoadError(f"{source}: {error.strerror}") from error
    except SyntaxError as error:
        raise LoadError(f"{source}: line {error.lineno}: {error.msg}") from error
    except ValueError as error:  # null bytes
        raise LoadError(f"{source}: {error}") from error
    module = ModuleType(f"retinue_agent_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}")
    module.__file__ = str(path)
    with nullcontext() if alone else _neighbours(path.parent):
        sys.modules[module.__name__] = module  # dataclasses, for one, look there
        try:
            exec(code, module.__dict__)
        except BaseException as error:
            sys.modules.pop(module.__name__, None)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise LoadError(f"{source}: {told_error(error, str(path))}") from error
    return module


@contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let a file import those beside it, which no other file then meets under their names."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        new = set(sys.modules) - before
        tops = {name.partition(".")[0] for name in new}
        beside = {top for top in tops if _is_beside(top, folder)}
        for name in new:
            if name.partition(".")[0] in beside:
                del sys.modules[name]


def _is_beside(name: str, folder: Path) -> bool:
    """Tell whether an imported module, or package, stands in a folder."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return file in (str(folder / f"{name}{SUFFIX}"), str(folder / name / "__init__.py"))


def _import_module(source: str) -> ModuleType:
    """Import a module by its dotted name; also from the folder in which the command is given."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        return importlib.import_module(source)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(f"{source}: {told_error(error, None)}") from error
    finally:
        sys.path.remove(here)


def _class_of(module: ModuleType, name: str, source: str) -> Any:
    found = vars(module).get(name)
    if isinstance(found, type):
        return found
    if found is not None:
        raise LoadError(f"{source}: {name} is no class, but of type {type(found).__name__}")
    classes = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    close = difflib.get_close_matches(name, classes, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    there = f"its classes: {', '.join(classes)}" if classes else "it has no class"
    what = f"has no class {name!r}" if name else f"which class? give {source}:CLASS"
    raise LoadError(f"{source}: {what}; {hint}{there}")


def _make(kind: Any, spec: str, ruleset: Ruleset) -> Any:
    if _takes(kind, ruleset=ruleset):
        return kind(ruleset=ruleset)
    if _takes(kind):
        return kind()
    if _takes(kind, ruleset):
        return kind(ruleset)
    taken = inspect.signature(kind)
    raise LoadError(f"{spec}: its constructor must take nothing or (ruleset), not {taken}")


def _takes(function: Any, *arguments: Any, **named: Any) -> bool:
    """Tell whether a call fits a function's parameters; one that shows none is believed to."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _signature(kind: Any) -> str:
    return str(inspect.signature(kind.choose).replace(return_annotation=inspect.Signature.empty))
