"""Ironic's single-process entry point with a faster key derivation.

For each Redfish operation Ironic 39 derives the key of its session cache from the BMC's password with 600,000 rounds of
PBKDF2: a third of a second of CPU each, fifty to a hundred times in the life cycle of a node. The key stays in the process,
so one round is sufficient for a test. Everything else equals the stock `ironic` command.
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
