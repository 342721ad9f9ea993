#!/bin/sh
# Print findings as they open, change and resolve: consume.sh BOOTSTRAP_SERVERS (needs kcat; ONCE=-e ends at the end)
exec kcat -b "$1" -C -t underhost.violations -o beginning -q -u ${ONCE:-} -f 'key=%k type=%h\n%s\n'
