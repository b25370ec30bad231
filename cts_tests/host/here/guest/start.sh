#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command "start" of the device: networks come back with the system server.
set -e
/run/system/start "$@"
networks
