# SPDX-License-Identifier: Apache-2.0
# The board's part of DRWA where it comes as a module of the vendor's, drwa.ko, for a kernel that is
# not the device's to patch. At the end of BoardConfig.mk, in place of BoardConfigDrwa.mk:
#
#     DRWA_KERNEL_MODULE := device/COMPANY/DEVICE-kernel/drwa.ko
#     include vendor/drwa/device/product/BoardConfigDrwaModule.mk

SYSTEM_EXT_PRIVATE_SEPOLICY_DIRS += vendor/drwa/sepolicy/private

ifeq ($(wildcard $(DRWA_KERNEL_MODULE)),)
$(error DRWA_KERNEL_MODULE is no file: '$(DRWA_KERNEL_MODULE)'. \
    Name the drwa.ko that was built with the kernel of the device)
endif
BOARD_VENDOR_KERNEL_MODULES += $(DRWA_KERNEL_MODULE)

# Without a list of its own, a board loads all that it has. The module needs no other one.
ifneq ($(strip $(BOARD_VENDOR_KERNEL_MODULES_LOAD)),)
BOARD_VENDOR_KERNEL_MODULES_LOAD += $(DRWA_KERNEL_MODULE)
endif
