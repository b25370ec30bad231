# SPDX-License-Identifier: Apache-2.0
# The board's part of DRWA's uplink, whose qdisc is a module, sch_drwa_up.ko.
# At the end of BoardConfig.mk, after BoardConfigDrwa.mk or BoardConfigDrwaModule.mk:
#
#     DRWA_UPLINK_MODULE := device/COMPANY/DEVICE-kernel/sch_drwa_up.ko
#     include vendor/drwa/device/product/BoardConfigDrwaUplink.mk
#
# A Qualcomm modem's driver is heard by drwa_up_dfc.ko. Name it there, too, behind sch_drwa_up.ko; it has
# to be loaded after rmnet_core.ko.

DRWA_UPLINK_MISSING := $(filter-out $(wildcard $(DRWA_UPLINK_MODULE)),$(or $(DRWA_UPLINK_MODULE),''))
ifneq ($(DRWA_UPLINK_MISSING),)
$(error DRWA_UPLINK_MODULE is no file: '$(DRWA_UPLINK_MISSING)'. \
    Name the sch_drwa_up.ko that was built with the kernel of the device)
endif
BOARD_VENDOR_KERNEL_MODULES += $(DRWA_UPLINK_MODULE)

# Without a list of its own, a board loads all that it has. netd may not have it loaded on demand.
ifneq ($(strip $(BOARD_VENDOR_KERNEL_MODULES_LOAD)),)
BOARD_VENDOR_KERNEL_MODULES_LOAD += $(DRWA_UPLINK_MODULE)
endif
