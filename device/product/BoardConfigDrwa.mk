# SPDX-License-Identifier: Apache-2.0
# The board's part of DRWA. At the end of BoardConfig.mk:
#
#     include vendor/drwa/device/product/BoardConfigDrwa.mk

SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS += vendor/drwa/sepolicy/private

# A kernel that LineageOS builds with the rest of the product. For others, see README.md.
ifneq ($(strip $(TARGET_KERNEL_CONFIG)),)

# Nothing is asked of a source without the series: there, the module's BPF programs govern.
ifneq ($(if $(strip $(TARGET_KERNEL_SOURCE)),$(wildcard $(TARGET_KERNEL_SOURCE)/include/linux/tcp_drwa.h),unknown),)

# What kernel/configs/drwa.config has. Fragments of TARGET_KERNEL_CONFIG have to be in the kernel's own
# source.
ifneq ($(strip $(KERNEL_CONFIG_OVERRIDE)),)
$(error KERNEL_CONFIG_OVERRIDE is taken: $(KERNEL_CONFIG_OVERRIDE). It holds one option. \
    Move it to a fragment of TARGET_KERNEL_CONFIG)
endif
KERNEL_CONFIG_OVERRIDE := CONFIG_TCP_DRWA=y

# Without it, a kernel that came out without DRWA would go unnoticed.
DEVICE_PRODUCT_COMPATIBILITY_MATRIX_FILE += \
    vendor/drwa/device/product/compatibility_matrix.drwa.xml

endif
endif
