# SPDX-License-Identifier: Apache-2.0
# DRWA for a product that builds ConnectivityService from source. In the product's makefile:
#
#     $(call inherit-product, vendor/drwa/device/product/drwa.mk)
#
# and in its BoardConfig.mk the include that BoardConfigDrwa.mk asks for. All of this leaves DRWA off
# until the carrier configuration switches it on.

$(call inherit-product, vendor/drwa/device/product/drwa_common.mk)

# A prebuilt com.android.tethering would be without the patches to ConnectivityService, and say nothing.
PRODUCT_MODULE_BUILD_FROM_SOURCE := true
