#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command "setprop" of the device: networks come back with the system server.
set -e
/run/system/setprop "$@"
[ "$1" != ctl.restart ] || networks
