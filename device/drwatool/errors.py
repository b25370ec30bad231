# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, and the exit code of each."""

import errno


class DrwaError(Exception):
    """One line that says what is wrong and what to do."""

    code = 1


class ConflictError(DrwaError):
    """The trees are not as they would have to be: a patch does not fit, local changes, a lock."""


class UsageError(DrwaError):
    """What was asked for makes no sense: no such folder, not a git tree."""

    code = 2


class UnsupportedError(DrwaError):
    """There is no series for this Android release or kernel line."""

    code = 77


def explained(error: OSError) -> str:
    """One line with what to do, for what the file system refused."""
    advice = {
        errno.ENOSPC: "free some room",
        errno.EDQUOT: "free some of your quota",
        errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
        errno.EACCES: "run as the owner of the tree, or make it writable",
        errno.EPERM: "run as the owner of the tree, or make it writable (lsattr, chattr -i)",
        errno.EROFS: "mount the file system writable",
    }.get(error.errno or 0, "then run again")
    return f"{error.filename or 'a file'}: {error.strerror}: {advice}"
