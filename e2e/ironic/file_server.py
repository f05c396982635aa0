"""Serves a directory over HTTP on loopback: the parts of the ramdisk, Ironic's boot ISOs, disk images.

A path below /redirect/ is answered with a redirect to the path without it.
http.server's command has a listen backlog of 5, which resets connections when twenty machines boot
simultaneously. Usage: file_server.py ADDRESS PORT DIRECTORY
"""
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

REDIRECT = '/redirect/'


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


class Handler(SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = 30

    def send_head(self):
        if not self.path.startswith(REDIRECT):
            return super().send_head()
        self.send_response(302)
        self.send_header('Location', '/' + self.path[len(REDIRECT):])
        self.send_header('Content-Length', '0')
        self.end_headers()


if __name__ == '__main__':
    address, port, folder = sys.argv[1:]
    Server((address, int(port)), functools.partial(Handler, directory=folder)).serve_forever()
