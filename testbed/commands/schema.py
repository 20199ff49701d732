"""`testbed schema`."""

from __future__ import annotations

import json

from testbed.scenario.json_schema import json_schema


def schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    print(json.dumps(json_schema(), indent=1))
