# SPDX-License-Identifier: Apache-2.0
"""What check-api does."""
