"""The JSON Schema of a scenario file, for editors and other programs.

Made from the models; what pydantic cannot know is added: `arms` and `expect`, whole numbers where tokens are
due, and that a key without a value is a fault.
"""

from __future__ import annotations

from typing import Any

from testbed.scenario.expectation import ACCEPTED
from testbed.scenario.schema import Scenario

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ARMS = {
    "description": "Variants: each overrides parts of the file by paths of keys with globs; {} changes nothing.",
    "type": ["object", "null"],
    "propertyNames": {"pattern": r"^\w[\w-]*$"},
    "additionalProperties": {"type": ["object", "null"]},
}
_EXPECT = {
    "description": f"Assertions on the summary of an arm: {ACCEPTED}",
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "minProperties": 1,
        "maxProperties": 1,
    },
}


def json_schema() -> dict[str, Any]:
    """The schema of a scenario file, draft 2020-12."""
    schema: dict[str, Any] = _without_null(Scenario.model_json_schema(by_alias=True, mode="validation"))
    properties = schema["properties"]
    tokens = schema["$defs"]["Tokens"]
    schema["$defs"]["Tokens"] = {
        "description": tokens["description"],
        "anyOf": [{"type": "integer", "minimum": 1}, tokens],
    }
    return {
        "$schema": DIALECT,
        **schema,
        "title": "A scenario of the testbed",
        "description": "Roots, cells and links between them, the requests that come, and the policies that place them.",
        "properties": {**properties, "arms": _ARMS, "expect": _EXPECT},
    }


def _without_null(schema: Any) -> Any:
    """The schema without the `null` that stands for a key left out."""
    if isinstance(schema, list):
        return [_without_null(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _without_null(each) for key, each in schema.items() if each is not None}
    options = kept.get("anyOf")
    if options is None or {"type": "null"} not in options:
        return kept
    options = [each for each in options if each != {"type": "null"}]
    rest = {key: each for key, each in kept.items() if key != "anyOf"}
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}
