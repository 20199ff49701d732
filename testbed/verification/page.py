"""The page of the documentation that `testbed verify --out` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.errors import RunError
from testbed.verification.catalogue import entries
from testbed.verification.finding import Finding
from testbed.verification.table import COLUMNS, summary_line, verdict, words
from testbed.verification.work import Picture, Result

_UNFINISHED = "**The verification has not come to its end: this is what it had found until then.**"


class Page:
    """The table as a page of Markdown, its figures in `figures` beside it.

    It is written anew with each result, so that nothing found is lost if the rest never comes.

    Attributes:
        files: the paths of all that was written.
    """

    def __init__(self, path: Path, *, quick: bool, live: bool = False) -> None:
        """Nothing is written yet.

        Args:
            path: of the page.
            quick: whether the results are of the short form.
            live: whether they are of real processes.
        """
        self._path = path
        self._command = f"testbed verify {'--quick' if quick else '--full'}{' --live' if live else ''} --out"
        self._entries = entries(live)
        self._findings: list[Finding] = []
        self._pictures: list[Picture] = []
        self.files = [path]

    def add(self, result: Result) -> None:
        """A result has come.

        Raises:
            RunError: the page cannot be written.
        """
        try:
            if isinstance(result, Finding):
                self._findings.append(result)
            else:
                self._pictures.append(result)
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
        self._path.write_text(self._text(remarks))

    def _text(self, remarks: Sequence[str]) -> str:
        known = [entry for entry in self._entries if entry.note]
        order = [target for entry in self._entries for target in entry.targets]
        findings = sorted(self._findings, key=lambda finding: order.index(finding.target))
        found = {finding.target for finding in findings}
        notes = [
            f"- **{', '.join(each.targets)}.** {each.note}" for each in known if found & set(each.targets)
        ]
        pictures = [
            f"![{each.caption}](figures/{each.stem}.png)\n\n{each.caption}\n"
            for each in sorted(self._pictures, key=lambda each: each.stem)
        ]
        head = [
            "# Verification",
            "",
            f"What theory and publications say, held against what this testbed gives: written by `{self._command}`.",
            f"{summary_line(findings)}.",
            *remarks,
            "",
        ]
        columns = (*COLUMNS, "form")
        table = [
            "| " + " | ".join(columns) + " |",
            "|" + "---|" * len(columns),
            *(_row(finding) for finding in findings),
            "",
        ]
        return "\n".join([*head, *notes, *([""] if notes else []), *table, *pictures])


def _row(finding: Finding) -> str:
    met = "met" if finding.met else f"**{verdict(finding)}**"
    cells = (*words(finding), met, finding.form)
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(word: str) -> str:
    return word.replace("|", "\\|").replace("\n", " ")
