"""Options in specifications of agents: ``key=value,key=value``, each with a type and a default."""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_NOUNS: Final = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_TRUTHS: Final = {"true": True, "false": False}


class OptionError(ValueError):
    """Options that are none or do not fit; the message names the agent, the option and the fix."""


@dataclass(frozen=True)
class Option:
    """One option of a kind of agent.

    Args:
        type: ``int``, ``float``, ``str`` or ``bool``.
        default: of that type.
        description: one line.
        low: the least that is allowed, if that is limited; of numbers only.
        high: the most.
        choices: all that is allowed, if that can be listed.

    Raises:
        ValueError: the type is none of these, or the default does not fit.
    """

    type: type[int] | type[float] | type[str] | type[bool]
    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.type not in _NOUNS:
            raise ValueError(f"an option is an int, float, str or bool, not {self.type!r}")
        if type(self.default) is not self.type or not self._allows(self.default):
            raise ValueError(f"the default must be {self.allowed}, not {self.default!r}")

    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return " or ".join(map(in_words, self.choices))
        noun = _NOUNS[self.type]
        if self.low is not None and self.high is not None:
            return f"{noun} from {self.low} to {self.high}"
        if self.low is not None:
            return f"{noun} of at least {self.low}"
        return noun if self.high is None else f"{noun} of at most {self.high}"

    def parse(self, text: str) -> Any:
        """Return the value that ``text`` stands for.

        Raises:
            ValueError: it stands for none that is allowed.
        """
        value: Any = _TRUTHS[text] if self.type is bool and text in _TRUTHS else None
        if self.type is not bool:
            value = self.type(text)
        if value is None or value == "" or not self._allows(value):
            raise ValueError(f"{text!r} is not {self.allowed}")
        return value

    def _allows(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if self.type is float and not math.isfinite(value):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def in_words(value: Any) -> str:
    """Return a value as it is given in a specification."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def join_options(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return keys and values as they stand in a specification."""
    return ",".join(f"{key}={in_words(value)}" for key, value in pairs)


def parse_options(
    agent: str, text: str, options: Mapping[str, Option], *, is_given: bool = True
) -> dict[str, Any]:
    """Return the value of every option, the default where ``text`` gives none.

    Args:
        agent: its name, for messages.
        text: ``key=value,key=value``, what stands after the colon.
        options: those that there are, by key.
        is_given: whether there was a colon; an empty text is then refused.

    Raises:
        OptionError: an option is unknown, given twice or not allowed, or a part is no option.
    """
    given: dict[str, Any] = {}
    all_of_them = join_options((key, option.default) for key, option in options.items())
    for part in text.split(",") if is_given else ():
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals:
            raise OptionError(
                f"agent {agent}: {part!r} is no option; give them as {agent}:{all_of_them}"
            )
        option = options.get(key)
        if option is None:
            close = difflib.get_close_matches(key, options, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise OptionError(
                f"agent {agent} has no option {key!r}: {hint}its options: {all_of_them}"
            )
        if key in given:
            raise OptionError(f"agent {agent}: option {key} is given twice; give it once")
        try:
            given[key] = option.parse(value)
        except ValueError:
            raise OptionError(
                f"agent {agent}: option {key} must be {option.allowed}, not {value!r}"
            ) from None
    return {key: given.get(key, option.default) for key, option in options.items()}
