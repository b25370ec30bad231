# SPDX-License-Identifier: Apache-2.0
"""A series in a tree of some files, by the text of each."""

from drwatool.described import Series, Step, place, without


def placed(steps: list[Step], files: dict[str, str]) -> tuple[Series, dict[str, str]]:
    """The patches, and the tree with them."""
    series = place(steps, files.get)
    after = dict(files)
    for _, changed in series.steps:
        after |= changed
    return series, after


def assert_reverts(steps: list[Step], files: dict[str, str]) -> None:
    """What the patches have added goes again, and nothing else."""
    series, after = placed(steps, files)
    before, guesses = without(steps, after.get)
    assert guesses == {}
    touched = {path for _, changed in series.steps for path in changed} | set(files)
    assert {path: before(path) for path in touched} == {path: files.get(path) for path in touched}
