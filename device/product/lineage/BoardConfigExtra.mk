# SPDX-License-Identifier: Apache-2.0
# For vendor/extra/BoardConfigExtra.mk, which LineageOS includes after every BoardConfig.mk.
include vendor/drwa/device/product/BoardConfigDrwa.mk
