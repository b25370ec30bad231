# SPDX-License-Identifier: GPL-2.0-only
"""The network lab of DRWA for Android."""

# Raise this when the same command no longer gives the same numbers.
__version__ = "1"
