"""Messages sent one after another over one link, and what came of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from testbed.links.link import LinkModel
from testbed.roles.messages import Request
from testbed.scenario.link_words import Impairment
from testbed.scenario.topology import Effect, Link

SEED = 11


def model(seed: int = SEED, target: str = "us/leaf-1", watched: bool = False, **keys: Any) -> LinkModel:
    """A link that does what these keys of a scenario say."""
    effect = Effect().changed(Impairment.model_validate(keys))
    return LinkModel(seed, Link(0, "root.west", target, "request", effect), watched=watched)


class Sent(NamedTuple):
    """A message sent: its instant and its releases."""

    at_s: float
    releases: list[float]


def send(link: LinkModel, count: int, spacing_s: float = 1e-3, first: int = 0, prompt: int = 1) -> list[Sent]:
    """Send so many messages, as the engines do: `draw`, and `releases` where it has no answer."""
    found = []
    for i in range(first, first + count):
        at_s = i * spacing_s
        release_at_s = link.draw(i, 0, at_s)
        message = Request(i, 0, 0, prompt, 1)
        found.append(Sent(at_s, [release_at_s] if release_at_s is not None else link.releases(message, at_s)))
    return found


def delays_s(sent: list[Sent]) -> list[float]:
    """The delays of all that was released."""
    return [release_at_s - each.at_s for each in sent for release_at_s in each.releases]


def is_lost(sent: list[Sent]) -> list[bool]:
    """Whether each message was dropped."""
    return [not each.releases for each in sent]
