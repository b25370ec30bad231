# SPDX-License-Identifier: Apache-2.0
# DRWA for a product whose ConnectivityService comes signed from outside, in place of drwa.mk:
#
#     $(call inherit-product, vendor/drwa/device/product/drwa_service.mk)

$(call inherit-product, vendor/drwa/device/product/drwa_common.mk)

PRODUCT_PACKAGES += \
    DrwaServiceOverlay \
    drwa-service

# For kernels without the series. The patches of system/bpf bring it; without them, nobody would load it.
# For a loader with a list, a module of this name makes drwa.bpf.
PRODUCT_PACKAGES += $(if $(wildcard system/bpf/drwa/Android.bp),drwa.o)

# The _EXTRA jars come last. The service needs the classes of services.jar.
PRODUCT_SYSTEM_SERVER_JARS_EXTRA += system_ext:drwa-service
