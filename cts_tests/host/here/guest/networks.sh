#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ConnectivityService, telephony and Wi-Fi do whenever the system server has started.
set -e
telephony xml "$(dirname "$(readlink -f "$0")")/vendor.xml"
telephony sim 1 cid=1989
network connect 100 cellular:1 rmnet0
network connect 101 wifi wlan0
