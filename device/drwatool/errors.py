# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code of each."""

import errno
import os

NO_ACCESS = "run as the owner of the tree, or change its permissions"
ADVICE = {
    errno.ENOSPC: "free some room",
    errno.EDQUOT: "free some of your quota",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EACCES: NO_ACCESS,
    errno.EPERM: f"{NO_ACCESS} (lsattr, chattr -i)",
    errno.EROFS: "mount the file system writable",
}
# For EACCES, git has words of its own, too.
ADVICE_ON_WORDS = {os.strerror(number): text for number, text in ADVICE.items()} | {
    "insufficient permission": NO_ACCESS
}


class DrwaError(Exception):
    """One line that says what is wrong and what to do."""

    code = 1


class ConflictError(DrwaError):
    """The trees are not as they would have to be: a patch does not fit, local changes, a lock."""


class UsageError(DrwaError):
    """What was asked for makes no sense: no such folder, not a git tree."""

    code = 2


class ElsewhereError(UsageError):
    """The tree has a file's name, and its text is elsewhere."""

    def __init__(self, path: str, what: str, advice: str) -> None:
        super().__init__(f"{path} is {what}: {advice}")
        self.what = what


class UnsupportedError(DrwaError):
    """There is no series for this Android release or kernel line."""

    code = 77


def explained(error: OSError) -> str:
    """One line with what to do, for what the file system refused."""
    advice = ADVICE.get(error.errno or 0, "put that right, then run again")
    return f"{error.filename or 'a file, or the output'}: {error.strerror}: {advice}"


def advised(said: str) -> str:
    """What git said, with what to do about it where the file system refused something."""
    return ": ".join([said, *(text for words, text in ADVICE_ON_WORDS.items() if words in said)])
