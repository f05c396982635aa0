"""Ironic's own single-process entry point, minus one cost.

For every Redfish operation Ironic 39 derives the key of its session cache from the BMC's password with 600,000 rounds of
PBKDF2: a third of a second of CPU each, fifty to a hundred times in a node's life. The key never leaves the process, so
one round serves a test as well. Nothing else differs from the stock `ironic` command.
"""
import hashlib
import sys
import types

from ironic.command.singleprocess import main
from ironic.drivers.modules.redfish import utils

utils.hashlib = types.SimpleNamespace(
    pbkdf2_hmac=lambda name, password, salt, _rounds: hashlib.pbkdf2_hmac(name, password, salt, 1))

if __name__ == '__main__':
    sys.exit(main())
