# SPDX-License-Identifier: Apache-2.0
# For vendor/extra/product.mk, which every product of LineageOS inherits.
$(call inherit-product, vendor/drwa/device/product/drwa.mk)
