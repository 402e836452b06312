"""A terminal as far as the live view uses one: lines that wrap and scroll, and the control sequences that it sends."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", re.DOTALL)


class Terminal:
    """Takes characters; shows ``screen``, what scrolled away, and whether the cursor is seen."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.scrolled: list[str] = []
        self.row = self.column = 0
        self.cursor = True

    @property
    def screen(self) -> list[str]:
        """Lines without trailing blanks, down to the last that has anything."""
        lines = ["".join(line).rstrip() for line in self.cells]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def resize(self, columns: int, rows: int) -> None:
        """Change the size as terminals do that cut lines."""
        lines = [(line + [" "] * columns)[:columns] for line in self.cells]
        lost = max(0, min(self.row + 1, len(lines)) - rows)
        self.scrolled += ["".join(line).rstrip() for line in lines[:lost]]
        lines = lines[lost : lost + rows]
        self.cells = lines + [[" "] * columns for _ in range(rows - len(lines))]
        self.columns, self.rows = columns, rows
        self.row, self.column = self.row - lost, min(self.column, columns - 1)

    def show(self, text: str) -> None:
        """Take in what a program writes: the kernel makes CR LF of its line feeds."""
        self.feed(text.replace("\n", "\r\n"))

    def feed(self, text: str) -> None:
        """Take in what comes from the kernel."""
        for arguments, command, character in _PIECE.findall(text):
            if command:
                self._command(arguments, command)
            else:
                self._character(character)

    def _character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self.column = 0
                self._down()
            self.cells[self.row][self.column] = character
            self.column += 1

    def _down(self) -> None:
        if self.row + 1 < self.rows:
            self.row += 1
            return
        self.scrolled.append("".join(self.cells.pop(0)).rstrip())
        self.cells.append([" "] * self.columns)

    def _command(self, arguments: str, command: str) -> None:
        match command, arguments:
            case "A", count:
                self.row = max(0, self.row - int(count))
            case "H", "":
                self.row = self.column = 0
            case "K", "":
                self._blank(self.row, self.column)
            case "J", "":
                self._blank(self.row, self.column)
                for row in range(self.row + 1, self.rows):
                    self._blank(row, 0)
            case "J", "2":
                for row in range(self.rows):
                    self._blank(row, 0)
            case (("h" | "l"), "?25"):
                self.cursor = command == "h"
            case "m", _:
                pass
            case _:
                msg = f"a control sequence that is not known here: {arguments}{command}"
                raise AssertionError(msg)

    def _blank(self, row: int, column: int) -> None:
        # Behind a full line the cursor stands on its last character until the next one comes.
        first = min(column, self.columns - 1)
        self.cells[row][first:] = [" "] * (self.columns - first)
