# SPDX-License-Identifier: Apache-2.0
# What drwa.mk and drwa_service.mk have in common.

# For userdebug and eng builds, to watch DRWA at work.
PRODUCT_PACKAGES_DEBUG += \
    drwa_debug.rc
