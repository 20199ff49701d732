"""A scenario made shorter or longer in proportion, for a quick look or a test.

Only what is pinned to the course of the run moves: the warm-up, the faults, the windows and the stages of rates. Delays, work and
policies stay as they are, so what happens between two events is the same, there is only less of it.
"""

from __future__ import annotations

from testbed.scenario.fault_words import FaultLine, RandomFaults
from testbed.scenario.schema import Root, Scenario, Traffic, WindowWords
from testbed.scenario.words import Words


def with_duration(scenario: Scenario, duration_s: float) -> Scenario:
    """The scenario with this duration; warm-up, faults, windows and stages at the same fraction of it as before."""
    factor = duration_s / scenario.duration
    return scenario.model_copy(
        update={
            "duration": duration_s,
            "warmup": scenario.warmup * factor,
            "faults": tuple(_moved_fault(line, factor) for line in scenario.faults),
            "windows": {name: _moved_window(part, factor) for name, part in scenario.windows.items()},
            "roots": {name: _moved_root(root, factor) for name, root in scenario.roots.items()},
        }
    )


def _moved_window(part: WindowWords, factor: float) -> WindowWords:
    return part.model_copy(update=_moved(part, ("from_", "to"), factor))


def _moved_fault(line: FaultLine, factor: float) -> FaultLine:
    instants = ("at", "for_", "from_", "to", "every")
    moved = line.model_copy(update=_moved(line, instants, factor))
    return (
        moved
        if line.random is None
        else moved.model_copy(update={"random": _moved_random(line.random, factor)})
    )


def _moved_random(random: RandomFaults, factor: float) -> RandomFaults:
    """As many faults as before, each as much of the run."""
    kinds = tuple(kind.model_copy(update=_moved(kind, ("for_",), factor)) for kind in random.kinds)
    changes = {"rate": random.rate / factor, "kinds": kinds}
    return random.model_copy(update={**_moved(random, ("from_", "to"), factor), **changes})


def _moved(words: Words, keys: tuple[str, ...], factor: float) -> dict[str, float]:
    return {key: value * factor for key in keys if (value := getattr(words, key)) is not None}


def _moved_root(root: Root, factor: float) -> Root:
    return root.model_copy(update={"traffic": tuple(_moved_traffic(line, factor) for line in root.traffic)})


def _moved_traffic(line: Traffic, factor: float) -> Traffic:
    if line.stages is None:
        return line
    stages = tuple(stage.model_copy(update={"at": stage.at * factor}) for stage in line.stages)
    return line.model_copy(update={"stages": stages})
