# SPDX-License-Identifier: Apache-2.0
"""The integration tool: standard library and git alone, so that a build host needs nothing more."""
