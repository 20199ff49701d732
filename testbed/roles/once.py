"""A role behind links that may bring a message twice: it takes each request, reply and probe once.

A receiver knows a copy by its sender, kind, identity and attempt, and drops it. A copy of a report passes: it is
recorded as received, and believed or not by the rules of the view. Roles stand behind this only where some link of
the scenario duplicates, so nobody else pays for it.
"""

from __future__ import annotations

from testbed.roles.environment import Role
from testbed.roles.messages import Message, Notice, Report
from testbed.roles.pass_through import PassThroughRole
from testbed.scenario.fault_plan import duplicates
from testbed.scenario.schema import Scenario


class Once(PassThroughRole):
    """Hands on to its role what has not come before."""

    def __init__(self, role: Role) -> None:
        """Nothing has come yet."""
        super().__init__(role)
        self._seen: set[tuple[str, type, int, int]] = set()

    def on_message(self, source: str, message: Message | Notice) -> None:
        """Take a message, unless it is a copy of one."""
        if not isinstance(message, Report | Notice):
            key = (source, message.__class__, message[0], message[1])
            if key in self._seen:
                return
            self._seen.add(key)
        self._hand_on(source, message)


def taken_once(role: Role, scenario: Scenario) -> Role:
    """The role, behind a `Once` where the scenario has links that duplicate."""
    return Once(role) if duplicates(scenario) else role
