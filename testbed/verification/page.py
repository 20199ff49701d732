"""The page of the documentation that `testbed verify --out` writes, and takes up again where it is there already.

The whole of it takes hours, so it may be put together: a command works out the targets that it is asked for, and the page
keeps its rows of the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.record.whole_file import write_whole
from testbed.verification.catalogue import entries
from testbed.verification.finding import Finding
from testbed.verification.table import COLUMNS, summary_line, words
from testbed.verification.work import Picture, Result

_TITLE = "# Verification"
_HEADER = f"| {' | '.join((*COLUMNS, 'form'))} |"
_BORDER = re.compile(r"(?<!\\) \| ")  # between cells; within one a bar is escaped
_PICTURE = re.compile(r"!\[.*\]\(figures/(?P<stem>.*)\.png\)")
_MET, _MISSED = "met", "**not met**"
_UNFINISHED = "**The verification has not come to its end: this is what it had found until then.**"


class Page:
    """The table as a page of Markdown, its figures in `figures` beside it.

    It is written anew with each result, so that nothing found is lost if the rest never comes. The first finding of a
    target takes the place of all that the page held of it, with real processes or without.

    Attributes:
        files: the paths of all that was written.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is written yet.

        Args:
            path: of the page; what is there already is kept, but for the targets of which something new comes.

        Raises:
            UsageError: what is there is no such page.
        """
        self._path = path
        self._findings: list[Finding] = []
        self._earlier, self._captions = _read(path)
        self.files = [path]

    def add(self, result: Result) -> None:
        """A result has come.

        Raises:
            RunError: the page cannot be written.
        """
        try:
            if isinstance(result, Finding):
                self._earlier = [each for each in self._earlier if _subject(each) != _subject(result)]
                self._findings.append(result)
            else:
                self._captions[result.stem] = result.caption
                self._save(result)
            self._write(_UNFINISHED)
        except OSError as error:
            raise RunError(f"writing {self._path}: {error.strerror}") from error

    def finish(self) -> None:
        """All results are there.

        Raises:
            RunError: the page cannot be written.
        """
        try:
            self._write()
        except OSError as error:
            raise RunError(f"writing {self._path}: {error.strerror}") from error

    def _save(self, picture: Picture) -> None:
        path = self._path.parent / "figures" / f"{picture.stem}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.png)
        self.files.append(path)

    def _write(self, *remarks: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, self._text(remarks))

    def _text(self, remarks: Sequence[str]) -> str:
        known = [*entries(), *entries(live=True)]
        order = list(dict.fromkeys(target for entry in known for target in entry.targets))
        findings = [each for each in (*self._earlier, *self._findings) if each.target in order]
        findings.sort(key=lambda finding: (order.index(finding.target), finding.engine == "live"))
        found = {finding.target for finding in findings}
        notes = [
            f"- **{', '.join(each.targets)}.** {each.note}"
            for each in known
            if each.note and found & set(each.targets)
        ]
        pictures = [
            f"![{caption}](figures/{stem}.png)\n\n{caption}\n"
            for stem, caption in sorted(self._captions.items())
        ]
        head = [
            _TITLE,
            "",
            "What theory and publications say, held against what this testbed gives: written by `testbed verify --out`, "
            "which puts new rows in the place of those of the same target and keeps the others.",
            f"{summary_line(findings)}.",
            *remarks,
            "",
        ]
        table = [
            _HEADER,
            "|" + "---|" * (len(COLUMNS) + 1),
            *(_row(finding) for finding in findings),
            "",
        ]
        return "\n".join([*head, *notes, *([""] if notes else []), *table, *pictures])


def _row(finding: Finding) -> str:
    met = _MET if finding.met else _MISSED
    cells = (*words(finding), met, finding.form)
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(word: str) -> str:
    return word.replace("|", "\\|").replace("\n", " ")


def _subject(finding: Finding) -> tuple[str, bool]:
    """What a finding is about: its target, and whether real processes were at it."""
    return finding.target, finding.engine == "live"


def _read(path: Path) -> tuple[list[Finding], dict[str, str]]:
    """The findings of a page, and the caption of each of its figures by stem; nothing where there is no page yet."""
    if not path.exists():
        return [], {}
    lines = path.read_text().splitlines() if path.is_file() else []
    if lines[:1] != [_TITLE] or _HEADER not in lines:
        raise UsageError(
            f"--out {path}: is no page that `verify` has written; accepted: such a page, or a new file"
        )
    rows = [line for line in lines[lines.index(_HEADER) + 2 :] if line.startswith("| ")]
    pictures = [
        (found["stem"], after)
        for line, after in zip(lines, lines[2:], strict=False)
        if (found := _PICTURE.match(line))
    ]
    return [_finding(row) for row in rows], dict(pictures)


def _finding(row: str) -> Finding:
    *told, met, form = (
        cell.replace("\\|", "|") for cell in _BORDER.split(row.removeprefix("| ").removesuffix(" |"))
    )
    target, what, source, engine, expected, measured, tolerance = told
    return Finding(target, what, source, engine, expected, measured, tolerance, met == _MET, form)
