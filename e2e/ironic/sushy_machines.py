"""sushy-tools' Redfish emulator with the machines of a profile, to compare labhosts with.

Its fake driver applies a power change after a random 1 to 11 seconds and has neither processors nor BIOS versions; here
a change is immediate and the rest is added. Usage: sushy_machines.py DIRECTORY, with the options in DIRECTORY/order.json.
"""
import json
import pathlib
import sys

import bcrypt
from sushy_tools.emulator.main import main
from sushy_tools.emulator.resources.systems import fakedriver


class NoDelay:
    @staticmethod
    def randint(_low, _high):
        return 0


def fill_in(driver, machines):
    """Methods of the emulator's driver interface that the fake driver lacks."""
    bios = {'BootMode': 'Uefi', 'ProcTurboMode': 'Enabled'}
    of = {machine['uuid']: machine for machine in machines}

    def processors(_self, uuid):
        machine = of[uuid]
        return [{'id': f'CPU{n}', 'Id': f'CPU{n}', 'socket': f'CPU{n}', 'vendor': 'Lab', 'model': machine['cpu_model'],
                 'cores': str(machine['cores']), 'threads': str(machine['threads'])} for n in range(machine['sockets'])]

    def simple_storage(_self, uuid):
        devices = [{'Name': disk['Id'], 'CapacityBytes': disk['bytes']} for disk in of[uuid]['disks']]
        return {'sata': {'Id': 'sata', 'Name': 'sata', 'DeviceList': devices}}

    driver.get_bios = lambda self, uuid: dict(bios)
    driver.get_versions = lambda self, uuid: {'BiosVersion': '1.0.0'}
    driver.get_total_memory = lambda self, uuid: of[uuid]['memory_gib']
    driver.get_total_cpus = lambda self, uuid: of[uuid]['sockets']
    driver.get_processors = processors
    driver.get_simple_storage_collection = simple_storage


def configuration(folder, order):
    machines = order['machines']
    htpasswd = folder / 'htpasswd'
    htpasswd.touch(mode=0o600)
    digest = bcrypt.hashpw(order['password'].encode(), bcrypt.gensalt(4)).decode()
    htpasswd.write_text(f'{order["username"]}:{digest}\n')
    return {
        'SUSHY_EMULATOR_LISTEN_IP': '127.0.0.1',
        'SUSHY_EMULATOR_LISTEN_PORT': order['port'],
        'SUSHY_EMULATOR_FAKE_DRIVER': True,
        'SUSHY_EMULATOR_STATE_DIR': str(folder),
        'SUSHY_EMULATOR_AUTH_FILE': str(htpasswd),
        'SUSHY_EMULATOR_FEATURE_SET': 'full',
        'SUSHY_EMULATOR_FAKE_SYSTEMS': [
            {'uuid': machine['uuid'], 'name': machine['name'], 'power_state': 'Off',
             'nics': [{'mac': mac, 'ip': ''} for mac in machine['macs']]} for machine in machines],
        # Each system links its storage; a missing one answers 500, which Ironic retries for half a minute.
        'SUSHY_EMULATOR_STORAGE': {
            machine['uuid']: [{'Id': '1', 'Name': 'storage', 'StorageControllers': [
                {'MemberId': '0', 'Name': 'storage', 'SpeedGbps': 12}],
                'Drives': [disk['Id'] for disk in machine['disks']]}] for machine in machines},
        'SUSHY_EMULATOR_DRIVES': {
            (machine['uuid'], '1'): [{'Id': disk['Id'], 'Name': disk['Id'], 'CapacityBytes': disk['bytes'],
                                      'Protocol': 'SATA'} for disk in machine['disks']] for machine in machines},
        'SUSHY_EMULATOR_VOLUMES': {(machine['uuid'], '1'): [] for machine in machines},
    }


if __name__ == '__main__':
    data = pathlib.Path(sys.argv[1])
    wanted = json.loads((data / 'order.json').read_text())
    (data / 'order.json').unlink()
    fakedriver.random = NoDelay
    fill_in(fakedriver.FakeDriver, wanted['machines'])
    config = data / 'sushy.conf'
    config.write_text(''.join(f'{name} = {value!r}\n' for name, value in configuration(data, wanted).items()))
    sys.argv[1:] = ['--config', str(config)]
    main()
