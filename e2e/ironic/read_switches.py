"""Has Ironic's networking service read the file of switches that this project writes.

The cases and the file are those of the tests of crates/hosts. Each switch must be read with the values of its case, and each
value that is never written must be an error or be read otherwise, alone in a file.
"""

import configparser
import json
import logging
import pathlib
import sys
import tempfile

from ironic.common import exception
from ironic.conf import CONF
from ironic.drivers.modules.switch import generic_switch
from ironic.networking.switch_drivers import driver_adapter

# The member of the driver's configuration for each member of a case.
SPEC = {"address": "ip", "macAddress": "ngs_mac_address", "deviceType": "device_type", "port": "port"}
LOGIN = {"username": "username", "admin-password": "secret"}


def read(text, folder):
    """Returns what Ironic makes of a file: the driver's sections."""
    source, target = folder / "switch-configs.conf", folder / "driver.conf"
    source.write_text(text, encoding="utf-8", newline="")
    CONF.set_override("switch_config_file", str(source), "ironic_networking")
    adapter = driver_adapter.NetworkingDriverAdapter({"generic-switch": generic_switch.GenericSwitchDriver})
    adapter.preprocess_config(str(target))
    driver = configparser.ConfigParser()
    driver.read(target, encoding="utf-8")
    return {name: dict(driver[name]) for name in driver.sections()}


def expected(case, keys):
    values = {SPEC[member]: str(value) for member, value in case["spec"].items() if member in SPEC}
    values |= {LOGIN[member]: value for member, value in case["login"].items() if member in LOGIN}
    if "ssh-privatekey" in case["login"]:
        values["key_file"] = f"{keys}/{case['spec']['macAddress'].replace(':', '-')}.key"
    else:
        values["password"] = case["login"]["password"]
    values["ngs_save_configuration"] = "False"
    return values


def is_read_as(value, section, folder):
    """Whether Ironic reads this value of a password as it is."""
    text = section.replace("password=secret", f"password={value}")
    assert text != section
    try:
        switches = read(text, folder)
    except exception.NetworkError:
        return False
    return [one.get("password") for one in switches.values()] == [value]


def main(cases, file):
    cases, file = json.loads(cases.read_text(encoding="utf-8")), file.read_text(encoding="utf-8")
    # Errors are expected of the values that are rejected.
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        CONF([], project="ironic", default_config_files=[], default_config_dirs=[])
        wanted = {f"genericswitch:{case['name']}": expected(case, cases["folder"]) for case in cases["switches"]}
        found = read(file, folder)
        differences = [
            f"{name}: Ironic reads {found.get(name)}, wanted {wanted.get(name)}"
            for name in sorted({*wanted, *found})
            if wanted.get(name) != found.get(name)
        ]
        header, first = file.split("[switch:")[:2]
        section = f"{header}[switch:{first}"
        assert is_read_as("secret2", section, folder), "the probe of values does not work"
        accepted = [value for value in cases["rejected"] if is_read_as(value, section, folder)]
    differences += [f"Ironic reads {value!r} as it is, and it is rejected here" for value in accepted]
    print("\n".join(differences), file=sys.stderr, end="\n" if differences else "")
    passed = len(wanted) + len(cases["rejected"]) - len(differences)
    print(f"switches: {passed} passed, {len(differences)} failed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
