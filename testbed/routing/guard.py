"""A guard around a user's policy: what it raises, and what it returns that no policy may, ends the run with a message.

The policies of the testbed run without it, so that their decisions pay nothing for the check.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from typing import Any

from testbed.errors import PolicyError
from testbed.roles.messages import Request
from testbed.routing.flow import Update
from testbed.routing.view import Target, View

Raised = (Exception, SystemExit)  # what a user's code may raise; Ctrl-C is nobody's mistake

# What each hook takes, and what it may return.
HOOKS = {
    "on_report": ("view, target", "an Update, or None"),
    "on_reply": ("target, sojourn_s, outcome", "anything"),
    "on_tick": ("view", "an Update, or None"),
    "probes": ("view, rng", "a list of targets of the view"),
    "on_probe_reply": ("view, target, reply", "anything"),
    "idle_probes": ("view, rng", "a list of targets of the view"),
    "ask": (
        "view, request, rng",
        "a list of targets of the view and how many answers are enough, at most all",
    ),
    "choose_answered": ("view, request, answers, rng", "one of view.allowed, or None"),
    "cost": ("target", "a number"),
}


class Guarded:
    """A user's policy under guard; has the hooks that the policy has."""

    def __init__(self, policy: Any, kind: str, node: str) -> None:
        """Args:
        policy: the user's.
        kind: its import path, for messages.
        node: where it works, for messages.
        """
        self._policy = policy
        self._choose = policy.choose
        self.label = f"{kind} at {node}"

    def choose(self, view: View, request: Request, rng: random.Random) -> Target | None:
        """As the user's policy chooses.

        Raises:
            PolicyError: it raised, or chose something else than a target that is allowed now, or None.
        """
        try:
            choice = self._choose(view, request, rng)
        except Raised as error:
            raise self._mistake(f"choose raised {in_words(error)}", _choices(view)) from error
        if choice is not None and (choice.__class__ is not Target or choice not in view.allowed):
            raise self._mistake(f"choose returned {_shown(choice)}", _choices(view))
        target: Target | None = choice
        return target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._policy, name)
        if name not in HOOKS:
            return found
        takes, returns = HOOKS[name]
        if not callable(found):
            problem = f"its attribute {name} is {_shown(found)}"
            raise self._mistake(problem, f"a method {name}({takes}), or no attribute of that name")
        return self._checked(name, found, returns)

    def _checked(self, name: str, hook: Callable[..., Any], returns: str) -> Callable[..., Any]:
        """The hook, with what it raises and returns checked."""
        is_right = _CHECKS.get(name)

        def call(*arguments: Any) -> Any:
            try:
                result = hook(*arguments)
            except Raised as error:
                raise self._mistake(f"{name} raised {in_words(error)}", returns) from error
            if is_right is not None and not is_right(result, arguments[0]):
                raise self._mistake(f"{name} returned {_shown(result)}", returns)
            return result

        return call

    def _mistake(self, problem: str, accepted: str) -> PolicyError:
        return PolicyError(f"policy {self.label}: {problem}; accepted: {accepted}")


def _is_update(result: Any, view: View) -> bool:
    if result is None:
        return True
    count = len(view.targets)
    return isinstance(result, Update) and all(
        len(each) == count for each in (result.before, result.after, result.costs, result.clipped)
    )


def _are_targets(result: Any, view: View) -> bool:
    return isinstance(result, list | tuple) and all(any(each is t for t in view.targets) for each in result)


def _is_question(result: Any, view: View) -> bool:
    if not isinstance(result, tuple) or len(result) != 2:
        return False
    targets, needed = result
    return _are_targets(targets, view) and isinstance(needed, int) and 0 <= needed <= len(targets)


def _is_choice(result: Any, view: View) -> bool:
    return result is None or (result.__class__ is Target and result in view.allowed)


def _is_number(result: Any, target: Target) -> bool:
    return isinstance(result, int | float)


_CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "on_report": _is_update,
    "on_tick": _is_update,
    "probes": _are_targets,
    "idle_probes": _are_targets,
    "ask": _is_question,
    "choose_answered": _is_choice,
    "cost": _is_number,
}


def _choices(view: View) -> str:
    allowed = ", ".join(target.name for target in view.allowed) or "none"
    return f"one of view.allowed ({allowed}), or None"


def _shown(value: Any) -> str:
    """A value for a message: a target by its name, anything else as Python writes it, shortened."""
    if isinstance(value, Target):
        return f"the target {value.name}, which is not allowed"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def in_words(error: BaseException) -> str:
    """Kind and text of an error, and the line of the user's that it came from."""
    said = " ".join(str(error).split())  # on one line, as every message
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    last = frames[-1]
    return f"{text} ({last.filename.rpartition('/')[2]}:{last.lineno})"
