"""Serves one folder over HTTP on loopback: the ramdisk's parts, the boot ISOs that Ironic builds, disk images.

The standard library's own command would do, but its listen backlog of 5 resets connections as soon as twenty machines
boot at once. Usage: file_server.py ADDRESS PORT FOLDER
"""
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class Handler(SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = 30


if __name__ == '__main__':
    address, port, folder = sys.argv[1:]
    Server((address, int(port)), functools.partial(Handler, directory=folder)).serve_forever()
