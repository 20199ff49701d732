"""Reading `summary.json`, which people copy, cut and edit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.errors import UsageError


def load_summary(path: Path) -> dict[str, Any]:
    """The summary of a finished run.

    Raises:
        UsageError: the file is missing, is no JSON, or is no summary; the text names it.
    """
    try:
        words = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path.parent} is not a finished run: reading {path.name} failed: {error}"
        ) from error
    if (
        not isinstance(words, dict)
        or not isinstance(words.get("arms"), dict)
        or "schema_version" not in words
    ):
        raise UsageError(f"{path} is not the summary of a run: it has no schema_version and arms")
    return words
