"""A server of HTTP in a thread, for the tests of the lab and of the site."""

import contextlib
import threading


@contextlib.contextmanager
def served(server):
    """A server that answers while the block runs."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
