"""A process that has imported what jobs need, and forks a child for each: children start at once.

    server --control socket: limits, and a stream--> fork server --fork--> child on the stream

python -m driple.web.fork_server DESCRIPTOR

It has one thread and takes nothing from users. It ends when the server's end of the control socket
is closed, and its children end with it. Children are ended by the system when their time is over.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from importlib.util import find_spec

__all__ = ["serve_forks"]

_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_MESSAGE_BYTES = 4096


def serve_forks(control: socket.socket) -> None:
    """Fork a child for each message, until the server is gone.

    Args:
        control: its messages are limits, each with the descriptor of a stream.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets children that have ended
    parent = os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 1)
        if not message:
            return
        if os.fork() == 0:
            _be_child(parent, control, message, descriptors[0])
        os.close(descriptors[0])


def _be_child(parent: int, control: socket.socket, message: bytes, descriptor: int) -> None:
    """Work in this process, and end it."""
    status = 1
    with suppress(BaseException):  # nothing of the fork server may run here
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
        if os.getppid() == parent:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            from driple.web.child import work_in_child

            try:
                with socket.socket(fileno=descriptor) as stream:
                    work_in_child(stream, **json.loads(message))
                status = 0
            except Exception:  # a defect, shown where the server runs
                traceback.print_exc()
    os._exit(status)


def import_early() -> None:
    """Import what most jobs need, so that children need not."""
    import driple.api.inspecting
    import driple.api.planning
    import driple.api.sweeping
    import driple.graph.tf.pbtxt
    import driple.graph.tf.text_containers
    import driple.jobs.graph_facts
    import driple.planning.search
    import driple.simulate.run
    import driple.web.child

    tempfile.gettempdir()  # found by writing, which children may not
    if find_spec("onnx") is not None:
        import driple.graph.onnx.reader
    if find_spec("torch") is not None:
        import driple.jobs.pytorch.step_graph
        from driple.graph.torch.gradient_sums import sole_uses

        sole_uses()  # the first backward pass imports for seconds
        if find_spec("transformers") is not None:
            import driple.jobs.pytorch.huggingface
        if find_spec("timm") is not None:
            import driple.jobs.pytorch.timm_models  # noqa: F401
    # A search for garbage of a child passes over all this: 0.2 s, and no page is shared after it.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    import_early()
    serve_forks(socket.socket(fileno=int(sys.argv[1])))
